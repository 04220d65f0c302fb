//! The process that keeps a block: it starts the others, measures what they use, and takes them with it.

use std::fs;
use std::io::{BufRead, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};
use weir_meter::host::{self, CpuTime};
use weir_net::{Instant, clock, process, worker};

use super::leftovers::note;
use super::network::unmake;
use super::spec::{Host, Role, Spec};
use crate::series::{self, Series};

/// How long origins and edge may take to listen.
const START: Duration = Duration::from_secs(15);
/// How often one that starts is asked.
const ASK: Duration = Duration::from_millis(10);
/// Rounds of warming up before a block is given up.
const ROUNDS_MAX: u32 = 3;
/// Bytes of a spec.
const SPEC_MAX: u64 = 16 << 20;
/// Bytes of a report of the client's.
const REPORT_MAX: u64 = 64 << 20;
/// Bytes shown of what a process said before it failed.
const SAID_MAX: usize = 1500;

/// The process groups to end, wherever the keeper is when it has to go.
static KEPT: Mutex<Vec<u32>> = Mutex::new(Vec::new());
/// Directories that were made, likewise.
static MADE: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Serves one block: its spec is the first line of standard input, its answer a line of standard output.
pub fn keep() -> u8 {
    let mut line = String::new();
    let read = std::io::stdin().lock().take(SPEC_MAX).read_line(&mut line);
    let spec = read.ok().and_then(|_| serde_json::from_str(&line).ok()).and_then(|json| Spec::of_json(&json));
    let Some(spec) = spec else {
        eprintln!("weir lab block is told by weir lab what to do, on its standard input");
        return 2;
    };
    let watching = worker::block_aside("lifeline", || {
        // Nothing more is ever sent: an end is the end of the lab.
        let _ = std::io::stdin().lock().read(&mut [0]);
        end_all();
        std::process::exit(3);
    });
    let answer = match watching {
        Ok(()) => block(&spec).unwrap_or_else(|error| json!({"error": error})),
        Err(error) => json!({"error": format!("no thread for a keeper: {error}")}),
    };
    end_all();
    let mut stdout = std::io::stdout();
    // Nobody reads it any more: then nobody wants it.
    let _ = writeln!(stdout, "{answer}").and_then(|()| stdout.flush());
    0
}

/// Ends everything that was started.
fn end_all() {
    let kept = std::mem::take(&mut *KEPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    for group in kept {
        // Gone already is as good.
        let _ = process::kill_group(group);
    }
    let made = std::mem::take(&mut *MADE.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    made.iter().for_each(|directory| unmake(directory));
}

fn block(spec: &Spec) -> Result<Value, String> {
    let end = clock::precise() + spec.limit;
    if spec.is_isolated {
        let mut made = |directory: &str| {
            MADE.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(directory.to_owned());
        };
        spec.hosts.make(&spec.dir, &spec.fresh, &mut made)?;
        // Repeatable wherever the machine prefers another; not all kernels have it.
        let _ = fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "cubic");
    }
    free(spec)?;
    let mut origins = Vec::new();
    for (number, role) in spec.origins.iter().enumerate() {
        origins.push(start(spec, role, &format!("origin{number}"))?);
    }
    for address in &spec.origins_at {
        listens(*address, &mut origins, &spec.dir, end)?;
    }
    let mut edge = vec![start(spec, &spec.edge, "edge")?];
    for address in &spec.edge_at {
        listens(*address, &mut edge, &spec.dir, end)?;
    }
    let edge_pid = edge.first().map_or(0, |edge| edge.child.id());
    let warm = warm_up(spec, end)?;
    let before = Usage::now(spec, edge_pid);
    let report = client(spec, &spec.client, "load.json", end)?;
    let after = Usage::now(spec, edge_pid);
    for process in edge.iter_mut().chain(&mut origins) {
        if let Ok(Some(status)) = process.child.try_wait() {
            return Err(format!("{} ended during the block ({status}){}", process.name, process.said(&spec.dir)));
        }
    }
    Ok(
        json!({"warm": warm, "usage": after.since(&before, spec), "load": report, "edge": edge_version(&edge, &spec.dir)}),
    )
}

/// Load goes to what this keeper started: whoever is at one of its addresses already is somebody else.
fn free(spec: &Spec) -> Result<(), String> {
    let taken = spec.origins_at.iter().chain(&spec.edge_at).find(|address| answers(**address));
    taken.map_or(Ok(()), |address| {
        Err(format!("somebody listens at {address} already: end it, or run the lab as root, in namespaces of its own"))
    })
}

fn answers(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
}

/// What the edge said while it ran, its last lines: nginx's alerts and warnings are there.
fn edge_version(edge: &[Started], dir: &Path) -> Value {
    json!({"said": edge.first().map(|edge| edge.said(dir)).unwrap_or_default()})
}

/// A process that was started.
struct Started {
    name: String,
    child: Child,
}

impl Started {
    /// The end of what it wrote on standard error, for a message.
    fn said(&self, dir: &Path) -> String {
        let text = fs::read(dir.join(format!("{}.err", self.name))).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let text = text.trim();
        let from = text.char_indices().rev().nth(SAID_MAX).map_or(0, |(at, _)| at);
        let text = text.get(from..).unwrap_or_default();
        if text.is_empty() { String::new() } else { format!(": {text}") }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = process::kill_group(self.child.id());
        let _ = self.child.wait();
    }
}

fn start(spec: &Spec, role: &Role, name: &str) -> Result<Started, String> {
    let mut argv: Vec<&str> = Vec::new();
    if !role.groups.is_empty() {
        // A shell that joins the groups and becomes the process: nothing of it is ever outside.
        let script =
            "n=$1; shift; while [ $n -gt 0 ]; do echo 0 > \"$1\" || exit 97; shift; n=$((n-1)); done; exec \"$@\"";
        argv.extend(["sh", "-c", script, "sh"]);
    }
    let count = role.groups.len().to_string();
    if !role.groups.is_empty() {
        argv.push(&count);
        argv.extend(role.groups.iter().map(String::as_str));
    }
    if spec.is_isolated && role.host != Host::Edge {
        argv.extend(["ip", "netns", "exec", role.host.name()]);
    }
    argv.extend(role.argv.iter().map(String::as_str));
    let (program, arguments) = argv.split_first().ok_or("a process without a name")?;
    let path = spec.dir.join(format!("{name}.err"));
    let errors = fs::File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
    let child = process::spawn_on(&role.cpus, &mut command).map_err(|error| format!("{program}: {error}"))?;
    KEPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(child.id());
    if !spec.is_isolated {
        note(spec.dir.parent().unwrap_or(&spec.dir), child.id());
    }
    Ok(Started { name: name.to_owned(), child })
}

/// Waits until somebody answers at an address; fails when one of those who should has ended.
fn listens(address: SocketAddr, who: &mut [Started], dir: &Path, end: Instant) -> Result<(), String> {
    let give_up = (clock::precise() + START).min(end);
    loop {
        // First, so that whoever answers is asked afterwards whether it is still there.
        let is_there = answers(address);
        for process in who.iter_mut() {
            if let Ok(Some(status)) = process.child.try_wait() {
                return Err(format!("{} did not start ({status}){}", process.name, process.said(dir)));
            }
        }
        if is_there {
            return Ok(());
        }
        if clock::precise() > give_up {
            let names: Vec<&str> = who.iter().map(|process| process.name.as_str()).collect();
            return Err(format!("nobody listens at {address} ({}, {} s)", names.join(", "), START.as_secs()));
        }
        std::thread::sleep(ASK);
    }
}

/// Warms up, again while the windows of the last round say it has not.
fn warm_up(spec: &Spec, end: Instant) -> Result<Value, String> {
    let Some(role) = &spec.warm else {
        return Ok(json!({"rounds": 0, "is_warm": true}));
    };
    let mut rounds = 0;
    loop {
        let report = client(spec, role, "warm.json", end)?;
        rounds += 1;
        let series = Series::of(&report);
        let is_warm = !spec.is_warm_judged || series.as_ref().is_none_or(series::has_warmed_up);
        if is_warm || rounds >= ROUNDS_MAX {
            return Ok(json!({"rounds": rounds, "is_warm": is_warm}));
        }
    }
}

/// Runs the client to its end, and gives its report.
fn client(spec: &Spec, role: &Role, report: &str, end: Instant) -> Result<Value, String> {
    let mut started = start(spec, role, "client")?;
    loop {
        match started.child.try_wait() {
            Ok(None) if clock::precise() > end => {
                return Err(format!("the load took longer than the {} s of a block", spec.limit.as_secs()));
            }
            Ok(None) => std::thread::sleep(ASK),
            Ok(Some(_)) => break,
            Err(error) => return Err(format!("the load: {error}")),
        }
    }
    let path = spec.dir.join(report);
    let mut text = String::new();
    let read = fs::File::open(&path).and_then(|file| file.take(REPORT_MAX).read_to_string(&mut text));
    let json = read.ok().and_then(|_| serde_json::from_str(&text).ok());
    json.ok_or_else(|| format!("the load gave no report{}", started.said(&spec.dir)))
}

/// What everybody has used so far.
struct Usage {
    at: Instant,
    edge: Duration,
    /// Everything the keeper started and itself.
    own: Duration,
    machine: Vec<CpuTime>,
}

impl Usage {
    fn now(spec: &Spec, edge: u32) -> Usage {
        let cpus: Vec<usize> =
            spec.origins.iter().chain([&spec.edge, &spec.client]).flat_map(|role| role.cpus.clone()).collect();
        let family = host::family_cpu(std::process::id()).unwrap_or_default();
        Usage {
            at: clock::precise(),
            edge: host::family_cpu(edge).unwrap_or_default().cpu,
            own: family.cpu + host::ended_children_cpu(),
            machine: host::cpu_times().into_iter().filter(|time| cpus.contains(&time.cpu)).collect(),
        }
    }

    /// What was used since `before`, in shares of what there was.
    fn since(&self, before: &Usage, spec: &Spec) -> Value {
        let elapsed = (self.at - before.at).as_secs_f64().max(1e-9);
        let deltas: Vec<CpuTime> =
            self.machine.iter().zip(&before.machine).map(|(now, then)| now.since(*then)).collect();
        let room = elapsed * deltas.len().max(1) as f64;
        let busy: f64 = deltas.iter().map(|time| time.busy.as_secs_f64()).sum();
        let own = self.own.saturating_sub(before.own).as_secs_f64();
        let share =
            |wanted: fn(&CpuTime) -> Duration| deltas.iter().map(|time| wanted(time).as_secs_f64()).sum::<f64>() / room;
        let client_busy = deltas
            .iter()
            .filter(|time| spec.client.cpus.contains(&time.cpu))
            .map(|time| (time.busy + time.interrupts).as_secs_f64() / elapsed)
            .fold(0.0, f64::max);
        json!({
            "seconds": elapsed,
            "edge_cpu_s": self.edge.saturating_sub(before.edge).as_secs_f64(),
            "own_cpu_s": own,
            "foreign": ((busy - own) / room).max(0.0),
            "steal": share(|time| time.steal),
            "client_core": client_busy,
        })
    }
}
