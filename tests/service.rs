//! weir as a service of systemd: `tests/service.py` takes systemd's place.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::path::Path;
use std::process::Command;

#[test]
fn weir_and_its_service_manager_understand_each_other() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/service.py");
    let output = Command::new(script).args(["--weir", env!("CARGO_BIN_EXE_weir")]).output().unwrap();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{}", said.concat());
}
