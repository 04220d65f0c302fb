//! The committed reference pages equal the output of the tables.
#![allow(clippy::expect_used)]

use std::process::Command;

#[test]
fn the_reference_is_what_the_tables_say() {
    is_printed("--reference", "docs/reference/directives.md");
    is_printed("--reference-metrics", "docs/reference/metrics.md");
}

fn is_printed(flag: &str, file: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_weir")).args(["edge", flag]).output().expect("weir runs");
    let committed = std::fs::read_to_string(format!("{}/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap_or_default();
    assert!(String::from_utf8_lossy(&output.stdout) == committed, "{file} is stale: cargo run -- edge {flag} > {file}");
}
