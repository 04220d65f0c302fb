//! The experiments that are data (`labs/NAME/lab.yml`) and marked for CI: counted facts, nginx beside weir, no
//! figures.

use crate::run::run;
use std::path::Path;
use std::process::Command;

/// The random stacks of `ci`: first seed, number, and kinds. One is healthy, one has a fault with a rule, and one has
/// a fault without a rule. The checks hold on a busy machine: each stack starts, each run can be read, and nothing
/// false is proved.
const RANDOM: [&str; 6] = ["--seed", "1", "--stacks", "3", "--only", "healthy-loop,pool-told,lock-sleep"];

/// The tests of `bench/`, and a few of its random stacks with `weir lab why --prove`.
pub fn random_faults(root: &Path, weir: &Path) -> Result<(), String> {
    run(Command::new("python3").args(["-m", "unittest", "discover", "bench"]).current_dir(root))?;
    let mut python = Command::new("python3");
    python.args(["bench/random_faults.py", "--prove", "--noisy", "--block", "1s", "--weir"]).arg(weir);
    run(python.args(RANDOM).current_dir(root))
}

/// Runs the experiments.
pub fn labs(root: &Path, weir: &Path) -> Result<(), String> {
    let mut command = Command::new(weir);
    command.args(["lab", "run", "--all", "--ci", "--noisy", "--store", "target/labs"]).current_dir(root);
    run(&mut command)
}
