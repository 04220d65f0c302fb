//! The field reports' configurations (`labs/`), each for some seconds: that they run and what they answer, no figure.

use crate::run::spoken;
use std::path::Path;
use std::process::Command;

/// The reports' own configurations whose verdict depends on no time.
const LABS: &[&str] = &["s0", "s2", "s3"];

/// Those with a `load.yml`: once more by `weir load`.
const LOADED: &[&str] = &["s0", "s2"];

/// What a lab says that cannot run here: no root, no namespaces.
const SKIPPED: i32 = 77;

/// Runs them against weir, as built for release, and the experiments that are data by both edges.
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
    experiments(root)
}

/// The labs that are data (`labs/NAME/lab.yml`) and say that CI runs them: counted facts, nginx beside weir.
fn experiments(root: &Path) -> Result<(), String> {
    let can = Command::new("unshare").args(["--net", "--mount", "--pid", "--fork", "true"]).status();
    if !can.is_ok_and(|status| status.success()) {
        println!("\nskipped: weir lab run --all --ci needs root, for namespaces of its own");
        return Ok(());
    }
    let mut command = Command::new(root.join("target/release/weir"));
    command.args(["lab", "run", "--all", "--ci", "--noisy", "--store", "target/labs"]).current_dir(root);
    let said = spoken(&command);
    println!("\n$ {said}");
    let status = command.status().map_err(|e| format!("{said}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{said}: {status}")) }
}
