//! The end-to-end tests (`tests/`), against weir or against nginx.

use crate::run::{cargo, cargo_with_profile, run};

/// Debian's nginx: it decides how nginx behaves.
pub const NGINX: &str = "/usr/sbin/nginx";

pub fn vtc(filter: &[String]) -> Result<(), String> {
    run(cargo("test --quiet --test vtc").args(filter))
}

/// A script that fails here is wrong, unless it contains `# weir only: why`.
pub fn oracle(profile: &str, filter: &[String]) -> Result<(), String> {
    run(cargo_with_profile("test --quiet --no-fail-fast --test vtc --test apps", profile)
        .arg("--")
        .args(filter)
        .env("WEIR_VTC_BINARY", NGINX)
        .env("WEIR_VTC_ORACLE", "1"))
}
