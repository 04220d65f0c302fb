//! A stack of the lab's, from outside: hosts with limits, processes on them, and what is done to those. Root and `unshare` are
//! needed; where they are not, nothing is claimed.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde_json::Value;
use weir_lab::stack::credits::Credits;
use weir_lab::stack::{self, Action, Deed, HUB, Host, Place, Process, Ready, Spec, Watch};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

fn shell(name: &str, host: &str, script: &str) -> Process {
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    Process { name: name.to_owned(), host: host.to_owned(), argv, ..Process::default() }
}

fn act(at_ms: Option<u64>, deed: Deed) -> Action {
    Action { at_ms, deed }
}

#[test]
fn hosts_have_their_own_limits_and_processes_what_is_done_to_them() {
    if !stack::can_isolate() {
        return;
    }
    let place = Place::new().unwrap();
    let burst = Credits { cpus: 1.0, baseline: 0.1, earned_hourly: 6.0, initial: 0.3, speed: 60.0 };
    let hosts = vec![
        Host { sysctls: vec![("net.ipv4.ip_local_port_range".into(), "50000 50009".into())], ..Host::named(HUB) },
        Host {
            rate_kbit: Some(10_000),
            memory_mb: Some(256),
            sysctls: vec![("net.core.somaxconn".into(), "8".into())],
            ..Host::named("app")
        },
        Host { credits: Some(burst), ..Host::named("db") },
    ];
    let mut spec = Spec { dir: place.path().join("0"), is_isolated: true, hosts, limit_ms: 60_000, ..Spec::default() };
    std::fs::create_dir_all(&spec.dir).unwrap();
    let at = spec.address_of("app").unwrap();
    let origin = Process {
        name: "origin".into(),
        host: "app".into(),
        argv: vec![WEIR.into(), "origin".into(), "--listen".into(), format!("{at}:3000")],
        ready: Ready::Answers(vec![format!("{at}:3000").parse().unwrap()]),
        files: Some((300, 300)),
        ..Process::default()
    };
    spec.processes = vec![
        Process { is_step: true, ..shell("prepared", HUB, "echo ready > prepared.txt; pwd") },
        Process { ready: Ready::Prints("busy".into()), ..shell("busy", "db", "echo busy; while :; do :; done") },
        origin,
        shell("edge", HUB, "while :; do echo beat; sleep 0.05; done"),
    ];
    spec.processes[0].cwd = Some(spec.dir.clone());
    spec.edge = "edge".into();
    // What a host knows: its names, its parameters, its ports; and bytes through a narrow link.
    let facts = "s=$(tr '\\t' ' ' < /proc/sys/net/ipv4/ip_local_port_range); n=$(getent hosts app | cut -d' ' -f1); \
                 t=$(date +%s%N); curl -s -o /dev/null http://app:3000/2m; t=$(( ($(date +%s%N) - t) / 1000000 )); sleep 1.5; \
                 echo \"{\\\"ports\\\": \\\"$s\\\", \\\"app\\\": \\\"$n\\\", \\\"ms\\\": $t}\"";
    spec.client = shell("client", HUB, facts);
    spec.is_report_printed = true;
    let look =
        "s=$(cat /proc/sys/net/core/somaxconn); f=$(ulimit -n); echo \"{\\\"somaxconn\\\": $s, \\\"files\\\": $f}\"";
    let files = Some((77, 77));
    spec.actions = vec![
        act(Some(100), Deed::Stop("edge".into())),
        act(Some(900), Deed::Continue("edge".into())),
        act(Some(2200), Deed::Kill("origin".into())),
        act(Some(2300), Deed::Restart("origin".into())),
        act(None, Deed::Run(Process { files, ..shell("look", "app", look) })),
    ];
    spec.watches = vec![Watch { name: "beats".into(), file: "edge.out".into(), text: "beat".into() }];
    let answer = stack::run(&spec, Path::new(WEIR), &AtomicBool::new(false)).unwrap();
    let told = &answer["load"];
    assert_eq!((&told["ports"], &told["app"]), (&"50000 50009".into(), &at.to_string().into()), "{answer}");
    // 2 MB at 10 Mbit/s are 1.6 s, but for what the bucket holds at first.
    assert!(told["ms"].as_u64() > Some(1500), "{answer}");
    assert_eq!(answer["told"]["look"], serde_json::json!({"somaxconn": 8, "files": 77}));
    assert_eq!(answer["ended"], Value::Array(vec![]));
    assert!(answer["counts"]["beats"].as_u64() > Some(5), "{answer}");
    // 0.3 credits at sixty times the speed are a third of a second of one CPU: then there is a tenth of it.
    let db = &answer["usage"]["hosts"]["db"];
    assert!(db["throttled"].as_u64() > Some(5), "{answer}");
    assert_eq!(answer["usage"]["hosts"][HUB]["ActiveOpens"].as_u64(), Some(1), "{answer}");
    assert!(spec.dir.join("prepared.txt").exists());
    // Nothing stays: neither control groups nor namespaces.
    let groups = ["cpu", "memory", ""].map(|name| Path::new("/sys/fs/cgroup").join(name));
    let own = place.path().file_name().unwrap().to_string_lossy().into_owned();
    for entry in groups.iter().flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten().flatten()) {
        assert!(!entry.file_name().to_string_lossy().starts_with(&own), "{entry:?}");
    }
}

#[test]
fn an_end_that_nobody_asked_for_is_the_blocks() {
    let place = std::env::temp_dir().join(format!("weir-test-stack-{}", std::process::id()));
    let mut spec = Spec { dir: place.join("1"), limit_ms: 20_000, is_report_printed: true, ..Spec::default() };
    std::fs::create_dir_all(&spec.dir).unwrap();
    spec.processes = vec![shell("short", HUB, "sleep 0.3; echo gone >&2; exit 7")];
    spec.client = shell("client", HUB, "sleep 1; echo {}");
    let failed = stack::run(&spec, Path::new(WEIR), &AtomicBool::new(false)).unwrap_err();
    let words = "short ended during the block (exit status: 7): gone";
    assert_eq!(failed, stack::Failed::Broken(words.to_owned()));
    spec.may_end = true;
    let answer = stack::run(&spec, Path::new(WEIR), &AtomicBool::new(false)).unwrap();
    assert_eq!(answer["ended"], serde_json::json!(["short"]));
    spec.processes[0].is_step = true;
    let failed = stack::run(&spec, Path::new(WEIR), &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(failed, stack::Failed::Broken(why) if why.starts_with("short failed")));
    std::fs::remove_dir_all(place).unwrap();
}

#[test]
fn a_lab_says_what_holds_what_does_not_and_what_is_missing() {
    let place = std::env::temp_dir().join(format!("weir-test-labs-{}", std::process::id()));
    let dir = place.join("labs/tiny");
    std::fs::create_dir_all(&dir).unwrap();
    let conf = "events { } http { server { listen 80; location / { return 200 ok; } location /no { return 404; } } }";
    std::fs::write(dir.join("nginx.conf"), conf).unwrap();
    let write = |more: &str| {
        let text = format!(
            "title: tiny\nedge: {{conf: nginx.conf}}\nload: {{path: /, flags: [-c, 2, -n, 10]}}\nvariants: {{one: {{}}, other: {{load: {{path: /no}}}}}}\nexpect:\n  - {{that: responses, is: 10, says: all are answered}}\n  - {{variant: one, that: codes.200, is: 10, says: by 200}}\n{more}"
        );
        std::fs::write(dir.join("lab.yml"), text).unwrap();
    };
    let run = |args: &[&str]| {
        let output =
            std::process::Command::new(WEIR).args(["lab", "run"]).args(args).current_dir(&place).output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        (output.status.code(), text)
    };
    write("needs: [{no-such-program: apt-get install it}]\n");
    let (code, said) = run(&["tiny", "--edge", "weir"]);
    assert!(code == Some(2) && said.contains("not installed here: no-such-program (apt-get install it)"), "{said}");
    assert!(run(&["--all"]).1.contains("left out, not installed here: apt-get install it"));
    assert!(run(&["none"]).1.contains("there is no such file (weir lab list names the experiments"));
    write("");
    if stack::can_isolate() {
        let (code, said) = run(&["tiny", "--edge", "weir", "--html", "page.html"]);
        assert!(code == Some(0) && said.contains("tiny: all 3 that was expected holds"), "{said}");
        assert!(std::fs::read_to_string(place.join("page.html")).unwrap().contains("all are answered"));
        write("  - {variant: other, that: codes.200, is: 10, says: this cannot be}\n");
        let (code, said) = run(&["tiny", "--edge", "weir"]);
        assert!(code == Some(1) && said.contains("FAILS: this cannot be: 0 (wanted: 10)"), "{said}");
    }
    std::fs::remove_dir_all(place).unwrap();
}
