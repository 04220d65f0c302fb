//! The ledger of nginx's vulnerabilities: `tests/ledger.py` attacks weir with each of them.
//!
//! The program also attacks old releases of nginx, which it builds; a run by hand does this (docs/security.md).

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/needs.rs"]
mod needs;

use std::path::Path;
use std::process::{Command, ExitCode};

use needs::{Need, cases};

fn main() -> ExitCode {
    // openssl makes certificates and is a responder of OCSP; the servers change their user as root does.
    needs::run(cases![[Need::Root, Need::Program("python3"), Need::Program("openssl")] => weir_has_no_hole_of_nginx])
}

fn weir_has_no_hole_of_nginx() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ledger.py");
    let output = Command::new(script).args(["--weir", env!("CARGO_BIN_EXE_weir"), "--check"]).output().unwrap();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{}", said.concat());
}
