//! The experiments that are data (`labs/NAME/lab.yml`) and say that CI runs them: counted facts, nginx beside weir, no figure.

use crate::run::spoken;
use std::path::Path;
use std::process::Command;

/// Runs them by weir, as built for release.
pub fn labs(root: &Path) -> Result<(), String> {
    let mut command = Command::new(root.join("target/release/weir"));
    command.args(["lab", "run", "--all", "--ci", "--noisy", "--store", "target/labs"]).current_dir(root);
    let said = spoken(&command);
    println!("\n$ {said}");
    let status = command.status().map_err(|e| format!("{said}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{said}: {status}")) }
}
