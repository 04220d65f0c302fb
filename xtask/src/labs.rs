//! The field reports' configurations (`labs/`), each for some seconds: that they run and what they answer, no figure.

use crate::run::spoken;
use std::path::Path;
use std::process::Command;

/// The labs whose verdict depends on no time. `e0e` counts what arrives within a second: `tests/limit` has its case.
const LABS: &[&str] = &["s0", "s2", "s3", "e2b"];

/// Those with a `load.yml`: once more by `weir load`.
const LOADED: &[&str] = &["s0", "s2"];

/// What a lab says that cannot run here: no root, no namespaces.
const SKIPPED: i32 = 77;

/// Runs them against weir, as built for release.
pub fn labs(root: &Path) -> Result<(), String> {
    let loaded = LOADED.iter().map(|lab| (lab, &["--load"][..]));
    for (lab, more) in LABS.iter().map(|lab| (lab, &[][..])).chain(loaded) {
        let mut command = Command::new("python3");
        command
            .arg(root.join("labs").join(lab).join("run.py"))
            .args(["--only", "weir", "--quick", "--check"])
            .args(more);
        let said = spoken(&command);
        println!("\n$ {said}");
        let status = command.status().map_err(|e| format!("{said}: {e}"))?;
        if !status.success() && status.code() != Some(SKIPPED) {
            return Err(format!("{said}: {status}"));
        }
    }
    Ok(())
}
