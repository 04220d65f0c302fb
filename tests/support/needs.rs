//! Tests that need more than weir: a program, root, namespaces.
//!
//! A test with an unmet need is reported as `ignored` and names the need. If [`STRICT`] is set, as in `cargo xtask
//! ci`, it fails. Needs are checked before a test runs, so no test passes without its assertions.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use libtest_mimic::{Arguments, Trial};

/// The environment variable under which an unmet need is a failure.
pub const STRICT: &str = "WEIR_CI";

/// A need of a test.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "each test needs its own")]
pub enum Need {
    /// A program: a name in PATH, or a path.
    Program(&'static str),
    /// Effective user 0.
    Root,
    /// Network, mount and process namespaces of its own: root, unshare(1) and ip(8).
    Namespaces,
    /// `/proc` shows the processes of the whole machine; it does not in a container.
    Machine,
}

impl Need {
    /// The missing need, for the reader; `None` if it is met.
    fn missing(self) -> Option<String> {
        match self {
            Need::Program(name) => (!in_path(name)).then(|| format!("needs {name}")),
            Need::Root => (!is_root()).then(|| "needs root".to_owned()),
            Need::Namespaces => (!has_namespaces()).then(|| "needs root, unshare and ip".to_owned()),
            Need::Machine => {
                weir_host::others_cpu(Path::new("/proc")).is_none().then(|| "needs the machine's /proc".to_owned())
            }
        }
    }
}

/// One test: its name, its needs, and its function.
pub type Case = (&'static str, &'static [Need], fn());

/// Tests by need: `cases![NEEDS: test, test; NEEDS: test]`, where NEEDS is a list of [`Need`]s.
macro_rules! cases {
    ($($needs:expr => $($test:ident),+);+ $(;)?) => {{
        const CASES: &[$crate::needs::Case] = &[$($((stringify!($test), &$needs, $test)),+),+];
        CASES
    }};
}
pub(crate) use cases;

/// Runs the tests as libtest would, with its command line and its closing line.
pub fn run(cases: &'static [Case]) -> ExitCode {
    let is_strict = std::env::var_os(STRICT).is_some();
    let trials = cases.iter().map(|&(name, needs, test)| trial(name, needs, test, is_strict)).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn trial(name: &str, needs: &[Need], test: fn(), is_strict: bool) -> Trial {
    let missing: Vec<String> = needs.iter().filter_map(|need| need.missing()).collect();
    if missing.is_empty() {
        return Trial::test(name, move || {
            test();
            Ok(())
        });
    }
    let missing = missing.join(", ");
    let failure = format!("{name} {missing}, and {STRICT} is set");
    Trial::test(name, move || Err(failure.into())).with_kind(missing).with_ignored_flag(!is_strict)
}

fn in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn has_namespaces() -> bool {
    let mut own = Command::new("unshare");
    own.args(["--net", "--mount", "--pid", "--fork", "ip", "link", "set", "lo", "up"]);
    is_root() && own.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
