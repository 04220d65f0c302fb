//! A stack of the lab from outside: hosts with limits, processes on them, and actions on these processes. Needs root
//! and `unshare`; without them, the tests are not run.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/needs.rs"]
mod needs;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use needs::{Need, cases};
use serde_json::Value;
use weir_lab::stack::credits::Credits;
use weir_lab::stack::{self, Action, Deed, HUB, Host, LabDirectory, LineWatch, Process, ReadyCondition, Spec};
use weir_lab::wan::{BadLink, Direction};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

fn shell(name: &str, host: &str, script: &str) -> Process {
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    Process { name: name.to_owned(), host: host.to_owned(), argv, ..Process::default() }
}

fn act(at_ms: Option<u64>, deed: Deed) -> Action {
    Action { at_ms, deed }
}

/// Held by the test that uses the lab: a process has one directory for labs.
static TURN: Mutex<()> = Mutex::new(());

fn main() -> ExitCode {
    needs::run(cases![
        [Need::Namespaces] => hosts_have_their_own_limits_and_processes_what_is_done_to_them, a_link_with_a_delay_is_late_and_changes_nothing, a_bad_link_loses_and_reorders_single_packets_by_its_seed;
        [Need::Namespaces, Need::Machine] => other_programs_are_seen_from_inside;
        [] => an_end_that_nobody_asked_for_is_the_blocks, a_lab_says_what_holds_what_does_not_and_what_is_missing, labs_are_found_beside_the_program;
    ])
}

fn hosts_have_their_own_limits_and_processes_what_is_done_to_them() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let place = LabDirectory::new().unwrap();
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
        ready: ReadyCondition::Answers(vec![format!("{at}:3000").parse().unwrap()]),
        files: Some((300, 300)),
        ..Process::default()
    };
    spec.processes = vec![
        Process { is_step: true, ..shell("prepared", HUB, "echo ready > prepared.txt; pwd") },
        Process {
            ready: ReadyCondition::Prints("busy".into()),
            ..shell("busy", "db", "echo busy; while :; do :; done")
        },
        origin,
        shell("edge", HUB, "while :; do echo beat; sleep 0.05; done"),
    ];
    spec.processes[0].cwd = Some(spec.dir.clone());
    spec.edge = "edge".into();
    // The properties of a host: its names, its parameters, its ports; and bytes through a narrow link.
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
    spec.watches = vec![LineWatch { name: "beats".into(), file: "edge.out".into(), text: "beat".into() }];
    let answer = stack::run(&spec, Path::new(WEIR), &AtomicBool::new(false)).unwrap();
    let told = &answer["load"];
    assert_eq!((&told["ports"], &told["app"]), (&"50000 50009".into(), &at.to_string().into()), "{answer}");
    // 2 MB at 10 Mbit/s take 1.6 s, minus the initial content of the bucket.
    assert!(told["ms"].as_u64() > Some(1500), "{answer}");
    assert_eq!(answer["told"]["look"], serde_json::json!({"somaxconn": 8, "files": 77}));
    assert_eq!(answer["ended"], Value::Array(vec![]));
    assert!(answer["counts"]["beats"].as_u64() > Some(5), "{answer}");
    // 0.3 credits at sixty times the speed give a third of a second of one CPU; after that, a tenth of a CPU is left.
    let db = &answer["usage"]["hosts"]["db"];
    // Where others use most of the machine, it gets less than that, and nobody has to stop it.
    let is_disturbed = answer["usage"]["foreign"].as_f64() > Some(0.5);
    assert!(db["throttled"].as_u64() > Some(5) || is_disturbed, "{answer}");
    assert_eq!(answer["usage"]["hosts"][HUB]["ActiveOpens"].as_u64(), Some(1), "{answer}");
    assert!(spec.dir.join("prepared.txt").exists());
    // Nothing is left behind: neither control groups nor namespaces.
    let groups = ["cpu", "memory", ""].map(|name| Path::new("/sys/fs/cgroup").join(name));
    let own = place.path().file_name().unwrap().to_string_lossy().into_owned();
    for entry in groups.iter().flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten().flatten()) {
        assert!(!entry.file_name().to_string_lossy().starts_with(&own), "{entry:?}");
    }
}

/// Echoes each connection's data after its peer has closed its half; and echoes datagrams as they arrive.
const FAR: &str = r"
import socket, threading
def echo(peer):
    said = b''
    while part := peer.recv(65536): said += part
    peer.sendall(said); peer.close()
def datagrams():
    it = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); it.bind(('0.0.0.0', 3001))
    while True: it.sendto(*it.recvfrom(2000))
threading.Thread(target=datagrams, daemon=True).start()
listener = socket.create_server(('0.0.0.0', 3000), backlog=50)
while True: threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()
";

/// Measures the time to connect and to be refused, compares the echo after a half-close with the data sent, and
/// checks the order of the datagrams.
const NEAR: &str = r"
import json, os, socket, time
def took(port):
    began = time.monotonic()
    try: return socket.create_connection(('far', port), 10), (time.monotonic() - began) * 1000
    except ConnectionRefusedError: return None, (time.monotonic() - began) * 1000
sent, got = os.urandom(3_000_000), b''
connection, connected = took(3000)
connection.sendall(sent); connection.shutdown(socket.SHUT_WR)
while part := connection.recv(65536): got += part
nobody, refused = took(3999)
it = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); it.settimeout(5)
for number in range(200): it.sendto(str(number).encode(), ('far', 3001))
order = [int(it.recv(100)) for _ in range(200)]
print(json.dumps({'connected': connected, 'refused': refused, 'same': sent == got, 'nobody': nobody is None,
                  'order': order == sorted(order)}))
";

fn a_link_with_a_delay_is_late_and_changes_nothing() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let place = LabDirectory::new().unwrap();
    let hosts = vec![Host { link: Some(BadLink::late(30_000, 10_000)), ..Host::named("far") }];
    let mut spec = Spec { dir: place.path().join("0"), is_isolated: true, hosts, limit_ms: 60_000, ..Spec::default() };
    std::fs::create_dir_all(&spec.dir).unwrap();
    let python = |name: &str, host: &str, script: &str| Process {
        argv: ["python3", "-c", script].map(str::to_owned).to_vec(),
        ..shell(name, host, "")
    };
    let at = format!("{}:3000", spec.address_of("far").unwrap());
    spec.processes =
        vec![Process { ready: ReadyCondition::Answers(vec![at.parse().unwrap()]), ..python("echo", "far", FAR) }];
    spec.client = python("client", HUB, NEAR);
    spec.is_report_printed = true;
    let answer = stack::run(&spec, Path::new(WEIR), &AtomicBool::new(false)).unwrap();
    let told = &answer["load"];
    // Both directions take 40 ms together: a handshake takes at least that, and so does a refusal.
    assert!(told["connected"].as_f64() >= Some(40.0) && told["refused"].as_f64() >= Some(40.0), "{answer}");
    for name in ["same", "nobody", "order"] {
        assert_eq!(told[name], true, "{name}: {answer}");
    }
}

/// Keeps the numbers of datagrams in their order; echoes each connection after its half-close, or gives it the numbers.
const COUNTING: &str = r"
import json, socket, threading
seen = []
def datagrams():
    it = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); it.bind(('0.0.0.0', 3001))
    while True:
        said = it.recv(2000); seen.append((int.from_bytes(said[:4], 'big'), len(said)))
threading.Thread(target=datagrams, daemon=True).start()
listener = socket.create_server(('0.0.0.0', 3000))
while True:
    peer, said = listener.accept()[0], b''
    while part := peer.recv(65536): said += part
    peer.sendall(said or json.dumps(seen).encode()); peer.close()
";

/// Sends 2000 numbered datagrams, then sixty at once that the kernel has to cut (UDP_SEGMENT), then a megabyte and back
/// by TCP; asks for the numbers that arrived.
const SENDING: &str = r"
import json, os, socket, time
it = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); it.connect(('far', 3001))
for number in range(2000): it.send(number.to_bytes(4, 'big')); time.sleep(0.0003)
it.setsockopt(17, 103, 1000)
it.send(b''.join(number.to_bytes(4, 'big') + bytes(996) for number in range(2000, 2060)))
time.sleep(0.2)
def exchanged(sent):
    peer, got = socket.create_connection(('far', 3000)), b''
    peer.sendall(sent); peer.shutdown(socket.SHUT_WR)
    while part := peer.recv(65536): got += part
    return got
sent = os.urandom(1_000_000)
print(json.dumps({'same': exchanged(sent) == sent, 'seen': json.loads(exchanged(b''))}))
";

/// One block with a bad link to `far`: what arrived there, and the link's own counts.
fn over_a_bad_link(place: &LabDirectory, seed: u64) -> (Value, Value) {
    let way = |loss| Direction { delay_us: 5000, jitter_us: 500, loss, reorder: 30 };
    let link = BadLink { to: way(50), from: way(10), seed: Some(seed) };
    let hosts = vec![Host { link: Some(link), ..Host::named("far") }];
    let dir = place.path().join(seed.to_string());
    std::fs::create_dir_all(&dir).unwrap();
    let mut spec = Spec { dir, is_isolated: true, hosts, limit_ms: 60_000, ..Spec::default() };
    let python = |name: &str, host: &str, script: &str| Process {
        argv: ["python3", "-c", script].map(str::to_owned).to_vec(),
        ..shell(name, host, "")
    };
    let at = format!("{}:3000", spec.address_of("far").unwrap());
    let ready = ReadyCondition::Answers(vec![at.parse().unwrap()]);
    spec.processes = vec![Process { ready, ..python("far", "far", COUNTING) }];
    spec.client = python("client", HUB, SENDING);
    spec.is_report_printed = true;
    let mut answer = stack::run(&spec, Path::new(WEIR), &AtomicBool::new(false)).unwrap();
    assert_eq!(answer["load"]["same"], true, "{answer}");
    (answer["load"]["seen"].take(), answer["usage"]["links"]["far"].take())
}

fn a_bad_link_loses_and_reorders_single_packets_by_its_seed() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let place = LabDirectory::new().unwrap();
    let numbers =
        |seen: &Value| -> Vec<u64> { seen.as_array().unwrap().iter().map(|one| one[0].as_u64().unwrap()).collect() };
    let sorted = |mut numbers: Vec<u64>| {
        numbers.sort_unstable();
        numbers
    };
    let (seen, counts) = over_a_bad_link(&place, 1);
    // The datagrams were the first packets towards the host: of two thousand, a hundred are lost.
    let single = numbers(&seen).into_iter().filter(|number| *number < 2000).collect::<Vec<_>>();
    assert_eq!(single.len(), 1900, "{counts}");
    assert!(!single.is_sorted() && sorted(single.clone()).windows(2).all(|two| two[0] < two[1]));
    // Datagrams that were sent as one were lost one by one, and came as a thousand bytes each.
    let cut: Vec<&Value> = seen.as_array().unwrap().iter().filter(|one| one[0].as_u64() >= Some(2000)).collect();
    assert!((40..60).contains(&cut.len()) && cut.iter().all(|one| one[1] == 1000), "{cut:?}");
    for way in ["to", "from"] {
        let count = |name: &str| counts[way][name].as_u64().unwrap();
        let (packets, lost, late) = (count("packets"), count("lost"), count("late"));
        // A megabyte went each way, in packets that a wire can carry; the shares hold for whole thousands.
        assert!(packets > 2060 * u64::from(way == "to") + 1_000_000 / 1448 && count("long") == 0, "{counts}");
        let share = if way == "to" { 50 } else { 10 };
        let whole = packets / 1000;
        assert!(
            (share * whole..=share * (whole + 1)).contains(&lost) && (30 * whole..=30 * (whole + 1)).contains(&late),
            "{counts}"
        );
        assert_eq!((count("full"), count("refused")), (0, 0), "{counts}");
    }
    let again = |seed| sorted(numbers(&over_a_bad_link(&place, seed).0));
    let lost = sorted(numbers(&seen));
    assert_eq!(again(1)[..1900], lost[..1900], "the same seed loses the same packets");
    assert_ne!(again(2)[..1900], lost[..1900]);
}

fn an_end_that_nobody_asked_for_is_the_blocks() {
    let place = std::env::temp_dir().join(format!("weir-test-stack-{}", std::process::id()));
    let mut spec = Spec { dir: place.join("1"), limit_ms: 20_000, is_report_printed: true, ..Spec::default() };
    std::fs::create_dir_all(&spec.dir).unwrap();
    spec.processes = vec![shell("short", HUB, "sleep 0.3; echo gone >&2; exit 7")];
    spec.client = shell("client", HUB, "sleep 1; echo {}");
    let failed = stack::run(&spec, Path::new(WEIR), &AtomicBool::new(false)).unwrap_err();
    let words = "short ended during the block (exit status: 7): gone";
    assert_eq!(failed, stack::BlockFailure::Broken(words.into()));
    spec.may_end = true;
    let answer = stack::run(&spec, Path::new(WEIR), &AtomicBool::new(false)).unwrap();
    assert_eq!(answer["ended"], serde_json::json!(["short"]));
    spec.processes[0].is_step = true;
    let failed = stack::run(&spec, Path::new(WEIR), &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(failed, stack::BlockFailure::Broken(why) if why.starts_with("short failed")));
    std::fs::remove_dir_all(place).unwrap();
}

fn other_programs_are_seen_from_inside() {
    let place = std::env::temp_dir().join(format!("weir-test-others-{}", std::process::id()));
    let dir = place.join("0");
    std::fs::create_dir_all(&dir).unwrap();
    let mut neighbour = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let edge = shell("edge", HUB, "sleep 60");
    let client = shell("client", HUB, "sleep 1; echo '{}'");
    let spec = Spec {
        dir,
        is_isolated: true,
        hosts: vec![Host::named(HUB)],
        limit_ms: 60_000,
        processes: vec![edge],
        edge: "edge".into(),
        client,
        is_report_printed: true,
        ..Spec::default()
    };
    let answer = stack::run(&spec, Path::new(WEIR), &AtomicBool::new(false));
    neighbour.kill().unwrap();
    neighbour.wait().unwrap();
    let answer = answer.unwrap();
    let seen = answer["usage"]["others_cpu_s"].as_f64();
    assert!(seen.is_some_and(|seen| seen > 0.2), "a program never rests: {answer}");
    assert!(answer["usage"]["foreign"].as_f64().is_some_and(|share| share > 0.0), "{answer}");
    std::fs::remove_dir_all(place).unwrap();
}

fn labs_are_found_beside_the_program() {
    // A hard link has a path of its own, so weir takes this folder as its prefix.
    let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("labs-{}", std::process::id()));
    let (program, labs, elsewhere) =
        (prefix.join("bin/weir"), prefix.join("share/weir/labs"), prefix.join("elsewhere"));
    for folder in [&prefix.join("bin"), &labs.join("tiny"), &elsewhere] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::fs::hard_link(WEIR, &program).unwrap();
    let lab = |args: &[&str]| {
        let output =
            std::process::Command::new(&program).arg("lab").args(args).current_dir(&elsewhere).output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        (output.status.code(), text)
    };
    for args in [&["list"][..], &["run", "--all"], &["run", "tiny"], &["why", "--stack", "tiny"]] {
        let (code, said) = lab(args);
        assert!(code == Some(2) && said.contains("/usr/share/weir/labs"), "{args:?}: {said}");
        for place in [elsewhere.join("labs"), labs.clone()] {
            assert!(said.contains(&place.display().to_string()), "{args:?}: {said}");
        }
    }
    std::fs::write(
        labs.join("tiny/lab.yml"),
        "title: tiny\nedge: {conf: nginx.conf}\nneeds: [{no-such-program: get it}]\n",
    )
    .unwrap();
    std::fs::set_permissions(&labs, std::os::unix::fs::PermissionsExt::from_mode(0o555)).unwrap();
    let (code, said) = lab(&["list"]);
    assert!(code == Some(0) && said.starts_with("tiny      tiny"), "{said}");
    for args in [&["run", "tiny"][..], &["why", "--stack", "labs/tiny"], &["why", "--stack", "tiny"]] {
        assert!(lab(args).1.contains("these programs are not installed: no-such-program (get it)"), "{args:?}");
    }
    // A folder that the user names is the only one, and a `labs` here comes before the installation's.
    assert!(lab(&["list", "--labs", "none"]).1.contains("elsewhere/none"));
    std::fs::create_dir_all(elsewhere.join("labs/own")).unwrap();
    std::fs::write(elsewhere.join("labs/own/lab.yml"), "title: own\nedge: {conf: nginx.conf}\n").unwrap();
    assert!(lab(&["list"]).1.starts_with("own       own"));
    std::fs::remove_dir_all(prefix).unwrap();
}

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
    assert!(
        code == Some(2) && said.contains("these programs are not installed: no-such-program (apt-get install it)"),
        "{said}"
    );
    assert!(run(&["--all"]).1.contains("left out, not installed here: apt-get install it"));
    assert!(run(&["none"]).1.contains("there is no such file (weir lab list names the experiments"));
    write("");
    if stack::can_isolate() {
        let (code, said) = run(&["tiny", "--edge", "weir", "--html", "page.html"]);
        assert!(code == Some(0) && said.contains("tiny: all 3 expectations hold"), "{said}");
        assert!(std::fs::read_to_string(place.join("page.html")).unwrap().contains("all are answered"));
        write("  - {variant: other, that: codes.200, is: 10, says: this cannot be}\n");
        let (code, said) = run(&["tiny", "--edge", "weir"]);
        assert!(code == Some(1) && said.contains("FAILS: this cannot be: 0 (wanted: 10)"), "{said}");
    }
    // Several experiments, of which only the first may begin: pages, tables and the summary cover only those that
    // ran.
    let other = place.join("labs/tiny2");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::create_dir_all(place.join("pages")).unwrap();
    std::fs::copy(dir.join("nginx.conf"), other.join("nginx.conf")).unwrap();
    write("");
    std::fs::copy(dir.join("lab.yml"), other.join("lab.yml")).unwrap();
    if stack::can_isolate() {
        let many = ["--all", "--edge", "weir", "--within", "1ms", "--html", "pages", "--table", "table.md"];
        let (code, said) = run(&many);
        assert_eq!(code, Some(0), "{said}");
        assert!(
            said.contains("1 of 2: tiny: tiny")
                && said.contains("Lab tiny2: left out, the time of --within (1ms) is over"),
            "{said}"
        );
        assert!(
            said.contains("tiny      weir     3 of   3 holds") && said.contains("1 of 2 experiments, 0 min"),
            "{said}"
        );
        let page = std::fs::read_to_string(place.join("pages/tiny.html")).unwrap();
        assert!(page.contains("<th>p99.9</th>") && page.contains("busiest thread of edge"), "{page}");
        let table = std::fs::read_to_string(place.join("table.md")).unwrap();
        assert!(table.contains("| one | by 200 | 10 | 10 |") && !table.contains("## tiny2"), "{table}");
    }
    std::fs::remove_dir_all(place).unwrap();
}
