//! `weir lab why --inside` from outside: applications that wait for a lock, for a connection pool to a slow server,
//! or for a disk. weir must name the cause of each wait, by programs in the kernel and by `/proc`. If the machine
//! lacks root, Node.js or a kernel that accepts the programs, the test is reported as ignored.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::{Value, json};
use weir_lab::stack;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// Other work of the machine spoils blocks, so the test tries this many times.
const TRIES: usize = 4;
/// If other work uses more of the CPUs than this, shares of time and the verdict say something else, and are not asserted.
const OTHER_WORK_MAX: f64 = 0.05;
const CONF: &str = "worker_processes 1;\nevents { worker_connections 512; }\nhttp {\n    access_log off;\n    upstream app { server 127.0.0.1:3000; }\n    server { listen 8080; location / { proxy_pass http://app; } }\n}\n";

/// A thread for each connection, and 20 ms under one lock.
const LOCK: &str = "
import threading, time
LOCK = threading.Lock()
def work():
    with LOCK:
        time.sleep(0.02)
    return b'x'
";
/// A thread for each connection, and two connections to a server that takes 50 ms.
const POOL: &str = "
import queue, socket
POOL = queue.Queue()
for _ in range(2):
    POOL.put(socket.create_connection(('127.0.0.1', 5999)))
def work():
    peer = POOL.get()
    peer.sendall(b'?')
    answer = peer.recv(1)
    POOL.put(peer)
    return answer
";
/// A thread for each connection, and a file that is flushed to its disk.
const DISK: &str = "
import os
FILE = os.open('written', os.O_WRONLY | os.O_CREAT)
def work():
    os.pwrite(FILE, b'x' * 65536, 0)
    os.fsync(FILE)
    return b'x'
";
const SERVER: &str = "
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = work()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
class Server(ThreadingHTTPServer):
    request_queue_size = 128
Server(('127.0.0.1', 3000), Handler).serve_forever()
";
/// An event loop with the same two connections.
const NODE: &str = "
const http = require('http'), net = require('net');
const free = [], waiting = [];
const give = (peer) => { const next = waiting.shift(); if (next) next(peer); else free.push(peer); };
const take = () => new Promise((done) => { const peer = free.pop(); if (peer) done(peer); else waiting.push(done); });
for (let n = 0; n < 2; n++) { const peer = net.connect(5999, '127.0.0.1', () => give(peer)); }
http.createServer(async (_, answer) => {
  const peer = await take();
  peer.once('data', (data) => { give(peer); answer.end(data); });
  peer.write('?');
}).listen(3000, '127.0.0.1');
";
const SLOW: &str = "
import socket, threading, time
def serve(peer):
    while peer.recv(1):
        time.sleep(0.05)
        peer.sendall(b'!')
listener = socket.create_server(('127.0.0.1', 5999))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
";

struct Bench(PathBuf);

impl Bench {
    fn new(name: &str) -> Bench {
        // The test needs a real disk: the directory for temporary files may be in memory.
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("inside-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("nginx.conf"), CONF).unwrap();
        fs::write(dir.join("slow.py"), SLOW).unwrap();
        let slow = json!({"processes": [{"name": "db", "host": "edge", "argv": ["python3", dir.join("slow.py")],
            "ready": {"Answers": ["127.0.0.1:5999"]}}]});
        fs::write(dir.join("slow.json"), slow.to_string()).unwrap();
        Bench(dir)
    }

    /// Runs it; tries again while other work of the machine spoils the run.
    fn why(&self, file: &str, text: &str, args: &[&str]) -> Ran {
        let path = self.0.join(file);
        fs::write(&path, text).unwrap();
        let program = if file.ends_with(".js") { "node" } else { "python3" };
        let origin = format!("cd {} && exec {program} {}", self.0.display(), path.display());
        let mut last = Ran { run: Value::Null, said: String::new() };
        for number in 0..TRIES {
            let store = self.0.join(format!("runs-{number}"));
            let mut command = Command::new(WEIR);
            command.args(["lab", "why", "nginx.conf", "/", "-c", "16", "--origin", &origin]).args(args);
            command.args(["--block", "2s", "--warmup", "200ms", "--noisy", "--seed", "1"]);
            command.arg("--store").arg(&store).current_dir(&self.0).stdin(Stdio::null());
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
            let Some(Ok(file)) = fs::read_dir(&store).ok().and_then(|mut files| files.next()) else {
                panic!("nothing was kept: {said}");
            };
            let run: Value = serde_json::from_str(&fs::read_to_string(file.path()).unwrap()).unwrap();
            last = Ran { run, said };
            if last.run["verdict"]["name"] != "no verdict" && last.other_work() <= OTHER_WORK_MAX {
                break;
            }
        }
        last
    }
}

/// A run: what is stored, and what is printed.
struct Ran {
    run: Value,
    said: String,
}

impl Ran {
    /// The share of the CPUs that other work used; 1 if the run does not say.
    fn other_work(&self) -> f64 {
        self.run["signals"]["machine"]["foreign"].as_f64().unwrap_or(1.0)
    }

    /// Whether the machine was quiet enough for times and a verdict; says if it was not.
    fn is_quiet(&self) -> bool {
        let other = self.other_work();
        if other > OTHER_WORK_MAX {
            println!(
                "other work used {:.0} % of the CPUs: neither shares of time nor the verdict are checked",
                other * 100.0
            );
        }
        other <= OTHER_WORK_MAX
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The data about the threads of a process.
fn waits<'a>(run: &'a Value, process: &str) -> &'a Value {
    let all = run["signals"]["inside"]["processes"].as_array().expect("it was looked inside");
    all.iter().find(|one| one["process"] == process).expect("the process was seen")
}

fn share(waits: &Value, kind: &str) -> f64 {
    waits["shares"][kind].as_f64().unwrap_or(0.0)
}

fn a_lock_is_named_with_those_that_wait_for_it() {
    let bench = Bench::new("lock");
    let ran = bench.why("app.py", &format!("{LOCK}{SERVER}"), &["--inside"]);
    let Ran { run, said } = &ran;
    assert_eq!(run["signals"]["inside"]["is_traced"], true, "{said}");
    assert!(said.contains("by programs in the kernel (eBPF), which saw every wait"), "{said}");
    if !ran.is_quiet() {
        return;
    }
    assert_eq!((&run["verdict"]["rule"], &run["verdict"]["name"]), (&json!("B60"), &json!("SUSPECTED")), "{said}");
    let waits = waits(run, "origin0");
    assert!(waits["is_of_requests"] == true && share(waits, "lock") > 0.6, "{said}");
    // One of sixteen requests holds the lock.
    assert!(waits["locks"][0]["threads"].as_u64() >= Some(8), "{said}");
}

fn a_pool_of_connections_is_found_without_its_size() {
    let bench = Bench::new("pool");
    let ran = bench.why("app.py", &format!("{POOL}{SERVER}"), &["--inside", "--inject", "slow.json"]);
    let Ran { run, said } = &ran;
    assert!(share(waits(run, "db"), "sleep") > 0.0, "{said}");
    if !ran.is_quiet() {
        return;
    }
    assert_eq!(run["verdict"]["rule"], "B61", "{said}");
    assert!(said.contains("from origin0 to 127.0.0.1:5999: 2 connections"), "{said}");
    // The server behind the pool is watched too: it sleeps while it has a request.
    assert!(share(waits(run, "db"), "sleep") > 0.5, "{said}");
}

fn an_event_loops_connections_are_told_apart() {
    let bench = Bench::new("node");
    let ran = bench.why("app.js", NODE, &["--inside", "--inject", "slow.json"]);
    let Ran { run, said } = &ran;
    let waits = waits(run, "origin0");
    if !ran.is_quiet() {
        return;
    }
    assert_eq!(run["verdict"]["rule"], "B61", "{said}");
    assert!(said.contains("from origin0 to 127.0.0.1:5999: 2 connections"), "{said}");
    // All waits of the loop are at one address; its incoming requests are not there.
    assert!(waits["peers"][0]["in_flight"].as_f64() > Some(1.2) && waits["clients"][1].as_f64() > Some(8.0), "{said}");
}

fn a_disk_is_waited_for() {
    let bench = Bench::new("disk");
    let Ran { run, said } = bench.why("app.py", &format!("{DISK}{SERVER}"), &["--inside"]);
    let waits = waits(&run, "origin0");
    assert!(share(waits, "disk") > 0.0 && waits["all"]["disk"].as_f64() > Some(0.0), "{said}");
}

fn without_the_kernels_programs_proc_is_looked_at_and_that_is_said() {
    let bench = Bench::new("proc");
    let ran = bench.why("app.py", &format!("{LOCK}{SERVER}"), &["--inside=proc"]);
    let Ran { run, said } = &ran;
    assert_eq!(run["signals"]["inside"]["is_traced"], false, "{said}");
    assert!(said.contains("by /proc, 50 times a second") && said.contains("--inside=proc"), "{said}");
    if !ran.is_quiet() {
        return;
    }
    // No verdict: in `/proc`, a lock and an idle pool look the same. It still shows that the threads wait at one
    // address.
    let waits = waits(run, "origin0");
    assert!(share(waits, "parked") + share(waits, "lock") > 0.5, "{said}");
    assert!(said.contains("locks of origin0: futex 0x"), "{said}");
}

fn what_is_not_asked_for_is_not_looked_at() {
    let bench = Bench::new("off");
    let Ran { run, said } = bench.why("app.py", &format!("{LOCK}{SERVER}"), &[]);
    assert!(
        run["signals"]["inside"].is_null() && !said.lines().any(|line| line.trim_start().starts_with("inside ")),
        "{said}"
    );
}

fn has(program: &str) -> bool {
    let status = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn main() {
    let can_run = stack::can_isolate() && has("python3");
    // x86-64 kernels from 6.3 on have this tracepoint. The tests then check that the kernel accepts the programs.
    let has_points = cfg!(target_arch = "x86_64")
        && fs::read("/sys/kernel/btf/vmlinux").is_ok_and(|types| {
            let point: &[u8] = b"btf_trace_sock_send_length";
            types.windows(point.len()).any(|window| window == point)
        });
    let test = |name: &str, is_possible: bool, run: fn()| {
        let run = move || -> Result<(), Failed> {
            run();
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(!is_possible)
    };
    let is_traced = can_run && has_points;
    let trials = vec![
        test("a_lock_is_named_with_those_that_wait_for_it", is_traced, a_lock_is_named_with_those_that_wait_for_it),
        test(
            "a_pool_of_connections_is_found_without_its_size",
            is_traced,
            a_pool_of_connections_is_found_without_its_size,
        ),
        test(
            "an_event_loops_connections_are_told_apart",
            is_traced && has("node"),
            an_event_loops_connections_are_told_apart,
        ),
        test("a_disk_is_waited_for", is_traced, a_disk_is_waited_for),
        test(
            "without_the_kernels_programs_proc_is_looked_at_and_that_is_said",
            can_run,
            without_the_kernels_programs_proc_is_looked_at_and_that_is_said,
        ),
        test("what_is_not_asked_for_is_not_looked_at", can_run, what_is_not_asked_for_is_not_looked_at),
    ];
    let mut arguments = Arguments::from_args();
    // A test measures its block: two at the same time would disturb each other.
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, trials).exit();
}
