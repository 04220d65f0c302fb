//! The alert rules and the dashboards for Grafana, read by a real Prometheus (Debian's `prometheus`): `tests/prometheus.py`.
//!
//! Grafana's schema is in the Python environment of the tests; `INSTALL` below fills it, as `cargo xtask ci` does.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/needs.rs"]
mod needs;
#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::path::Path;
use std::process::{Command, ExitCode};

use needs::{Need, cases};

const INSTALL: &str = "python3 -m venv target/python && target/python/bin/pip install -r tests/grafana.txt";

fn main() -> ExitCode {
    needs::run(cases![
        [] => the_dashboards_are_current_and_fit_grafanas_schema;
        [Need::Program("promtool")] => each_alert_fires_and_stays_silent;
        [Need::Program("prometheus"), Need::Program("openssl")] => prometheus_has_data_for_every_query;
    ])
}

fn the_dashboards_are_current_and_fit_grafanas_schema() {
    holds(&["dashboards"]);
}

fn each_alert_fires_and_stays_silent() {
    holds(&["rules"]);
}

fn prometheus_has_data_for_every_query() {
    let ports = [(); 5].map(|()| support::free_port().to_string());
    holds(&["live", "--ports", &ports.join(",")]);
}

fn holds(words: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("target/python/bin/python");
    assert!(python.exists(), "Grafana's schema is not installed: {INSTALL}");
    let mut command = Command::new(python);
    command.arg(root.join("tests/prometheus.py")).args(["--weir", env!("CARGO_BIN_EXE_weir")]).args(words);
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{}", said.concat());
}
