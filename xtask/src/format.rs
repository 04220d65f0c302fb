//! Runs rustfmt on every file that git knows.
//!
//! `cargo fmt` follows `mod` lines. It does not see modules that a macro declares, such as the families of the edge
//! and the rules of the doctor, and it does not enter other workspaces.

use crate::run::output;
use std::path::Path;
use std::process::Command;

/// As in the workspace's `Cargo.toml`; rustfmt reads no manifest when it gets files.
const EDITION: &str = "2024";

/// Formats all files; if `is_check`, fails if one is not formatted.
pub fn format(root: &Path, is_check: bool) -> Result<(), String> {
    let list = output(Command::new("git").current_dir(root).args(["ls-files", "-co", "--exclude-standard", "*.rs"]))?;
    // The list also contains files that were deleted without a commit.
    let files = list.lines().filter(|file| root.join(file).exists());
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.current_dir(root).args(["--edition", EDITION]).args(is_check.then_some("--check")).args(files);
    println!("\n$ rustfmt{} (every file)", if is_check { " --check" } else { "" });
    let status = rustfmt.status().map_err(|e| format!("rustfmt: {e}"))?;
    match (status.success(), is_check) {
        (true, _) => Ok(()),
        (false, true) => Err("rustfmt: a file is not formatted; `cargo xtask fmt` formats all".to_owned()),
        (false, false) => Err(format!("rustfmt: {status}")),
    }
}
