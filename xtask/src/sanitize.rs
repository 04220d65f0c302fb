//! Runs the tests of the crate with `unsafe` code, and the targets of the parsers of bytes, under AddressSanitizer.
//!
//! The compiler is the stable one: its runtime for sanitizers comes with it, and `RUSTC_BOOTSTRAP` unlocks the flag. The
//! standard library and the libraries in C are not instrumented: of their code, only calls such as `memcpy` and `malloc` are
//! checked. Leaks are reported too.

use crate::run::{TARGET, cargo, run_tests};
use std::path::Path;

/// Crates whose tests run: `net` has the `unsafe` code, and `wire` reads the bytes of strangers.
const CRATES: [&str; 2] = ["weir-net", "weir-wire"];

/// Builds the tests anew, with a target folder of their own, and runs them.
pub fn sanitize(root: &Path) -> Result<(), String> {
    let packages = CRATES.map(|name| format!("--package {name}")).join(" ");
    run_tests(
        cargo(&format!("test --quiet --lib --tests {packages} --target {TARGET}"))
            .env("CARGO_TARGET_DIR", root.join("target/sanitize"))
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", "-Zsanitizer=address")
            .env("ASAN_OPTIONS", "detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1"),
    )
}
