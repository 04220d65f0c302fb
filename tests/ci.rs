//! The files for pipelines in `examples/ci`: the workflows are YAML and call checks that are there, and the checks decide.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/needs.rs"]
mod needs;
#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use needs::cases;
use saphyr_parser::{Event, Parser, StrInput};

fn main() -> ExitCode {
    needs::run(cases![
        [] => the_workflows_are_yaml_and_call_checks_that_are_there, the_checks_pass_and_fail, the_guide_names_the_files;
    ])
}

fn file(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name))
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Every text of a YAML document.
fn texts(yaml: &str) -> Vec<String> {
    let events = Parser::new(StrInput::new(yaml)).map(|event| event.expect("YAML").0);
    let text = |event: Event<'_>| match event {
        Event::Scalar(text, ..) => Some(text.into_owned()),
        _ => None,
    };
    events.filter_map(text).collect()
}

fn the_workflows_are_yaml_and_call_checks_that_are_there() {
    let script = file("examples/ci/check.sh");
    for name in ["github.yml", "gitlab.yml"] {
        let texts = texts(&file(&format!("examples/ci/{name}")));
        let called: Vec<&str> = texts
            .iter()
            .flat_map(|text| text.lines())
            .filter_map(|line| line.trim().strip_prefix("./check.sh "))
            .collect();
        assert_eq!(called, ["config", "load", "ab base.conf"], "{name}");
        let is_there = |call: &&str| script.contains(&format!("\n{})\n", call.split(' ').next().unwrap_or_default()));
        assert!(called.iter().all(is_there), "{name}: {called:?}");
    }
    assert!(texts(&file("examples/ci/ci.yml")).contains(&"ensure".to_owned()));
}

fn the_guide_names_the_files() {
    let guide = file("docs/guide/ci.md");
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/ci")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        assert!(guide.contains(&format!("| `{name}` |")), "{name}");
    }
}

/// A copy of the example, on ports of this test, with a short load.
fn room() -> (PathBuf, u16) {
    let room = support::scratch("ci");
    let [edge, app] = [(); 2].map(|()| support::free_port());
    for name in ["check.sh", "ci.yml", "nginx.conf"] {
        let text = file(&format!("examples/ci/{name}")).replace("8080", &edge.to_string());
        let text = text.replace("127.0.0.1:3000", &format!("127.0.0.1:{app}")).replace("duration: 30", "duration: 2");
        // A machine of tests is slower than one of a pipeline.
        std::fs::write(room.join(name), text.replace("p95: 200", "p95: 5000").replace("p99: 500", "p99: 9000"))
            .unwrap();
    }
    std::fs::create_dir(room.join("bin")).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_weir"), room.join("bin/weir")).unwrap();
    (room, edge)
}

fn check(room: &Path, words: &[&str]) -> (Option<i32>, String) {
    let path = format!("{}:{}", room.join("bin").display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.arg("check.sh").args(words).current_dir(room).env("PATH", path).env("WEIR_LANG", "en");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code(), said)
}

fn the_checks_pass_and_fail() {
    let (room, _) = room();
    let (code, said) = check(&room, &["config"]);
    assert!(code == Some(0) && said.contains("test is successful") && said.contains("0 wrong, 0 at risk"), "{said}");
    let (code, said) = check(&room, &["load"]);
    assert!(code == Some(0) && said.contains("ok: maxErrorRate < 1"), "{said}");
    assert!(room.join("ci-report/run.html").exists() && room.join("ci-report/run.json").exists());
    let strict = std::fs::read_to_string(room.join("ci.yml")).unwrap().replace("p95: 5000", "p95: 0.001");
    std::fs::write(room.join("ci.yml"), strict).unwrap();
    let (code, said) = check(&room, &["load"]);
    assert!(code == Some(1) && said.contains("fail: http.response_time.p95"), "{code:?} {said}");
    let conf = std::fs::read_to_string(room.join("nginx.conf")).unwrap();
    std::fs::write(room.join("base.conf"), &conf).unwrap();
    let (code, said) = check(&room, &["ab", "base.conf"]);
    assert!(code == Some(0) && said.contains("nginx.conf is unchanged"), "{said}");
    std::fs::write(room.join("nginx.conf"), conf.replace("keepalive 32;", "")).unwrap();
    assert_eq!(check(&room, &["config"]).0, Some(1), "a risk");
    assert_eq!(check(&room, &["nothing"]).0, Some(2));
    std::fs::remove_dir_all(&room).unwrap();
}
