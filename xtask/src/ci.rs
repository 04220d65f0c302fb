//! All checks, in an order in which cheap failures come first.

use crate::run::{CI, cargo_with_profile, run, run_tests};
use crate::{deny, end_to_end, format, fuzz, harness, labs, tidy};
use std::path::Path;
use std::process::Command;

/// The environment variable that makes a test with an unmet need fail (`tests/support/needs.rs`).
const STRICT: &str = "WEIR_CI";

pub fn ci(root: &Path) -> Result<(), String> {
    format::format(root, true)?;
    tidy::tidy(root)?;
    deny::deny(root)?;
    let peers = std::thread::spawn({
        let root = root.to_owned();
        move || peers(&root)
    });
    // Every cargo command takes all default members, so that they share build scripts, C libraries, proc macros and
    // features: nothing is compiled twice. `build` would choose fewer features than `test`.
    run(&mut cargo_with_profile("test --quiet --test vtc --no-run", CI))?;
    peers.join().map_err(|_| "the programs that the tests need could not be installed")??;
    let weir = root.join("target/ci/weir");
    smoke(&weir)?;
    // The labs and the next steps wait more than they compute and have no figures, so this may run beside them.
    let beside = std::thread::spawn({
        let (root, weir) = (root.to_owned(), weir.clone());
        move || {
            let tests = harness::build(CI)?;
            let failures = [
                fuzz::fuzz_in_ci(&tests),
                end_to_end::oracle(CI, &[]),
                lasting(&root, &weir),
                pages(&root, &weir, &["pure", "report"]),
            ];
            Ok::<_, String>((tests, failures.map(Result::err)))
        }
    });
    // A step that fails hides no other one.
    type Step = fn(&Path, &Path) -> Result<(), String>;
    let broken = |steps: &[Step]| steps.iter().filter_map(|step| step(root, &weir).err()).collect::<Vec<_>>();
    let mut failures = broken(&[labs::labs, labs::random_faults, real, faults, composed, agents]);
    let (tests, others) = beside.join().map_err(|_| "building, fuzzing or nginx's own run panicked")??;
    failures.extend(others.into_iter().flatten());
    // The page has seconds to show something: nothing runs beside it.
    failures.extend(pages(root, &weir, &["dashboard"]).err());
    failures.extend(harness::run(tests, (STRICT, "1")).err());
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// The programs of tests.
pub fn tests() -> Result<(), String> {
    harness::run(harness::build(CI)?, (STRICT, "1"))
}

/// Packages that tests talk to, from npm and PyPI. Fetching them waits for the network, and compiling for the CPUs.
fn peers(root: &Path) -> Result<(), String> {
    for tests in ["tests/apps", "tests/dash"] {
        run(Command::new("npm").args(["ci", "--no-audit", "--no-fund", "--prefix"]).arg(root.join(tests)))?;
    }
    let python = root.join("target/python");
    run(Command::new("python3").args(["-m", "venv"]).arg(&python))?;
    let lists = [
        "grpc_peers.txt",
        "cgi/python.txt",
        "grafana.txt",
        "faults/python.txt",
        "http3/python.txt",
        "lasting/python.txt",
        "compose/python.txt",
        "mcp_peers/python.txt",
        "recording_format.txt",
    ];
    let lists = lists.map(|list| root.join("tests").join(list));
    run(Command::new(python.join("bin/pip"))
        .args(["install", "-q"])
        .args(lists.iter().flat_map(|list| [Path::new("-r"), list])))
}

/// Checks that the binary prints its version, in nginx's form and in its own.
fn smoke(weir: &Path) -> Result<(), String> {
    run(Command::new(weir).arg("--version"))?;
    run(Command::new(weir).args(["edge", "-V"]))
}

/// The dashboard's page and the report's: `pure` needs no browser, `report` has Chromium on a load report, `dashboard` on a
/// loaded edge for a minute.
fn pages(root: &Path, weir: &Path, names: &[&str]) -> Result<(), String> {
    let tests = root.join("tests/dash");
    names.iter().try_for_each(|name| {
        let file = tests.join(format!("{name}.test.mjs"));
        run_tests(Command::new("node").arg("--test").arg(file).env("WEIR", weir))
    })
}

/// WordPress and a cloud of Nextcloud's shape behind weir and behind nginx. The third test of the program needs a binary of
/// Go, which takes minutes to compile here.
fn real(root: &Path, weir: &Path) -> Result<(), String> {
    let program = root.join("tests/real.py");
    run_tests(Command::new(program).arg("--weir").arg(weir).args(["--nginx", end_to_end::NGINX, "wordpress", "cloud"]))
}

/// Hostile origins behind weir.
fn faults(root: &Path, weir: &Path) -> Result<(), String> {
    run_tests(
        Command::new(root.join("target/python/bin/python")).arg(root.join("tests/faults.py")).arg("--weir").arg(weir),
    )
}

/// The tools of `weir mcp` with the client of PyPI.
fn agents(root: &Path, weir: &Path) -> Result<(), String> {
    let program = root.join("tests/mcp.py");
    run_tests(
        Command::new(root.join("target/python/bin/python"))
            .arg(program)
            .args(["--lines", "40"])
            .arg("--weir")
            .arg(weir),
    )
}

/// The first seed of the composed cases that decide, and the last one. Beside Debian's nginx none of them has a difference without a reason.
const COMPOSED: &str = "1-102";

/// The composer's own tests, and configurations composed at random beside Debian's nginx. The fixed seeds decide.
fn composed(root: &Path, weir: &Path) -> Result<(), String> {
    run(Command::new("python3").args(["-m", "unittest", "discover", "tests/compose"]).current_dir(root))?;
    let mut compose = Command::new(root.join("target/python/bin/python"));
    compose.arg(root.join("tests/compose.py")).args(["run", "-v", "--jobs", "2", "--each", "0", "--seeds", COMPOSED]);
    compose.args(["--nginx", end_to_end::NGINX]).arg("--weir").arg(weir);
    run(compose.arg("--known").arg(root.join("tests/compose/open.txt")))
}

/// Reloads, upgrades, killed servers and full disks under load.
fn lasting(root: &Path, weir: &Path) -> Result<(), String> {
    run_tests(
        Command::new(root.join("target/python/bin/python"))
            .arg(root.join("tests/lasting.py"))
            .arg("--ci")
            .arg("--weir")
            .arg(weir),
    )
}
