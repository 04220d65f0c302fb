//! The committed reference is what the tables print.

use std::process::Command;

#[test]
fn the_reference_is_what_the_tables_say() {
    let output = Command::new(env!("CARGO_BIN_EXE_weir")).args(["edge", "--reference"]).output().expect("weir runs");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/directives.md");
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        String::from_utf8_lossy(&output.stdout) == committed,
        "docs/reference/directives.md is stale: cargo run -- edge --reference > docs/reference/directives.md"
    );
}
