//! Runs every `tests/**/*.vtc` through Debian's `varnishtest`, one libtest case per script.
//!
//! A script uses nothing of this crate: it starts the binary as a process and speaks to it over sockets, so the same
//! script runs against nginx (`cargo xtask oracle`). `tests/README.md` has the conventions.
//!
//! Besides its own checks, each script passes only if the edge ends within [`END_LIMIT`] of a QUIT and its log
//! contains no `[alert]` and no panic.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod run;
mod support;

use libtest_mimic::{Arguments, Trial};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Scripts spend most of the time waiting; four at a time keep two cores busy and the whole suite short.
    arguments.test_threads.get_or_insert(4);
    let bench = Arc::new(run::Bench::from_env());
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let trials = scripts(&home).into_iter().map(|path| trial(&home, path, &bench)).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(home: &Path, path: PathBuf, bench: &Arc<run::Bench>) -> Trial {
    let name = path.strip_prefix(home).unwrap().with_extension("").display().to_string();
    let text = std::fs::read_to_string(&path).expect("script is readable");
    let exempt = bench.is_oracle && text.lines().any(|line| line.starts_with("# weir only:"));
    let bench = Arc::clone(bench);
    Trial::test(name, move || bench.script(&path).map_err(Into::into)).with_ignored_flag(exempt)
}

/// Every `.vtc` one folder below `home`, in lexicographic order, so that the most important failure comes first.
fn scripts(home: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = entries(home)
        .filter(|path| path.is_dir())
        .flat_map(|folder| entries(&folder).collect::<Vec<_>>())
        .filter(|path| path.extension().is_some_and(|extension| extension == "vtc"))
        .collect();
    found.sort();
    found
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(folder).expect("folder is readable").map(|entry| entry.unwrap().path())
}
