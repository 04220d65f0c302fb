//! Observes where the threads of a stack wait, without changing the programs. It uses eBPF programs if the kernel
//! accepts them, otherwise it reads `/proc` fifty times a second. The result says which way was used, and why.
//!
//! ```text
//!   sched_switch, sched_wakeup, sockets ─► bpf/waits.bpf.o ─► maps ──┐
//!   /proc/PID/task/*/{stat,syscall} ─────► sample ───────────────────┴► account ─► Waits of each process
//! ```

pub mod account;
mod bpf;
pub mod calls;
mod sample;

use std::collections::BTreeSet;
use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_host as host;
use weir_net::{clock, worker};

use account::{Exchange, Wait, sum};
pub use account::{Lock, TimeKind, UsedServer, Waits};
use sample::{Followed, Sampler};

use super::plan::WatchedProcess;
pub use super::plan::Way;

/// Interval of reads of `/proc` if the kernel accepts no program. Reading one thread costs about 20 µs.
const EVERY: Duration = Duration::from_millis(20);
/// Interval of the search for ports that processes listen on.
const PORTS_EVERY: Duration = Duration::from_secs(1);
/// How long to wait for the start and the result of the follower.
const AT_END: Duration = Duration::from_secs(10);
/// Most processes of a stack that are followed.
const PROCESSES_MAX: usize = 64;
/// Most processes of a family with a check for Go.
const PROGRAMS_MAX: usize = 4;
/// Bytes of a program that are searched for Go's mark.
const PROGRAM_MAX: u64 = 64 << 20;
/// A text that every Go program contains (cmd/internal/buildid, `.go.buildinfo`).
const GO_MARK: &[u8] = b"\xff Go buildinf:";

/// The waits of the threads of a stack.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Inside {
    /// Programs in the kernel saw every wait. Otherwise the figures are samples of `/proc`.
    pub is_traced: bool,
    /// Why the programs in the kernel were missing or saw less.
    pub why: Option<String>,
    /// The observed time, s.
    pub seconds: f64,
    /// Number of entries that did not fit into the kernel's tables.
    pub lost: u64,
    /// Each process of the stack except the edge and the client.
    pub processes: Vec<Waits>,
}

/// Observes on its own thread, from [`Follower::start`] to [`Follower::end`].
pub struct Follower {
    is_over: Arc<AtomicBool>,
    told: mpsc::Receiver<Inside>,
}

impl Follower {
    /// Starts observing. Nothing starts if the way is [`Way::Off`].
    pub fn start(way: Way, targets: &[WatchedProcess]) -> std::io::Result<Option<Follower>> {
        if way == Way::Off {
            return Ok(None);
        }
        let names: Vec<(String, u32)> = targets
            .iter()
            .filter(|target| !target.is_edge && !target.is_neighbour)
            .take(PROCESSES_MAX)
            .map(|target| (target.name.clone(), target.pid))
            .collect();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let (tell, told) = mpsc::channel();
        // The caller waits until the observation runs: it has to begin before the load.
        let (ready, started) = mpsc::channel();
        worker::block_aside("inside", move || {
            let inside = follow(way, &names, &over, &ready);
            // The send fails only if the receiver is gone; then the result is not needed.
            let _ = tell.send(inside);
        })?;
        let _ = started.recv_timeout(AT_END);
        Ok(Some(Follower { is_over, told }))
    }

    /// Stops and returns the result.
    pub fn end(self) -> Option<Inside> {
        self.is_over.store(true, Ordering::Relaxed);
        self.told.recv_timeout(AT_END).ok()
    }
}

fn follow(way: Way, names: &[(String, u32)], over: &AtomicBool, ready: &mpsc::Sender<()>) -> Inside {
    let mut followed: Vec<Followed> =
        names.iter().zip(1..).map(|((_, pid), label)| Followed { label, pid: *pid, ports: ports_of(*pid) }).collect();
    let (mut tracer, mut why) = match way {
        Way::Proc => (None, Some("--inside=proc".to_owned())),
        Way::Off | Way::Auto => match bpf::Tracer::start(&followed) {
            Ok(tracer) => (Some(tracer), None),
            Err(why) => (None, Some(why)),
        },
    };
    if let Some(tracer) = &mut tracer {
        why = tracer.blind.take();
    }
    let mut sampler = Sampler::new(Path::new("/"));
    let start = clock::precise();
    let (mut last, mut ports_at) = (start, start);
    let _ = ready.send(());
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(EVERY);
        let now = clock::precise();
        if now - ports_at >= PORTS_EVERY {
            ports_at = now;
            for one in &mut followed {
                one.ports = ports_of(one.pid);
                if let Some(tracer) = &mut tracer {
                    tracer.listens(one.label, one.ports.iter().copied());
                }
            }
        }
        if tracer.is_none() {
            sampler.look(&followed, now - last);
        }
        last = now;
    }
    let elapsed = clock::precise() - start;
    let is_traced = tracer.is_some();
    if let Some(refused) = sampler.refused.take().filter(|_| !is_traced) {
        why = Some(format!("{}; {refused}", why.unwrap_or_default()));
    }
    let read = all_of(tracer, sampler, &followed, elapsed).unwrap_or_else(|error| {
        why = Some(error);
        bpf::Read::default()
    });
    let own = |label: u32, (name, pid): &(String, u32)| {
        let waits: Vec<Wait> = read.waits.iter().filter(|wait| wait.label == label).cloned().collect();
        let exchanges: Vec<Exchange> = read.exchanges.iter().filter(|one| one.label == label).cloned().collect();
        sum((name, is_go(*pid)), is_traced, &waits, &exchanges, elapsed.as_secs_f64())
    };
    Inside {
        is_traced,
        why,
        seconds: elapsed.as_secs_f64(),
        lost: read.lost,
        processes: (1..).zip(names).map(|(label, name)| own(label, name)).collect(),
    }
}

/// The result of either way.
fn all_of(
    tracer: Option<bpf::Tracer>,
    mut sampler: Sampler,
    followed: &[Followed],
    elapsed: Duration,
) -> Result<bpf::Read, String> {
    let Some(mut tracer) = tracer else {
        return Ok(bpf::Read { waits: sampler.end(), ..bpf::Read::default() });
    };
    let mut read = tracer.read()?;
    // Threads that slept all the time never met the kernel's programs.
    sampler.look(followed, elapsed);
    let met: BTreeSet<u32> = read.waits.iter().map(|wait| wait.thread).collect();
    read.waits.extend(sampler.end().into_iter().filter(|wait| !met.contains(&wait.thread)));
    Ok(read)
}

fn ports_of(pid: u32) -> Vec<u16> {
    let root = Path::new("/");
    let all = host::listens_of(root, &host::family_under(root, pid));
    let ports: BTreeSet<u16> = all.iter().filter_map(|at| Some(at.parse::<SocketAddr>().ok()?.port())).collect();
    ports.into_iter().collect()
}

/// Whether one process of a family was built by Go.
fn is_go(pid: u32) -> bool {
    let of = |pid: u32| {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(format!("/proc/{pid}/exe"));
        // A program that cannot be read counts as not built by Go.
        file.is_ok_and(|file| file.take(PROGRAM_MAX).read_to_end(&mut bytes).is_ok())
            && memchr::memmem::find(&bytes, GO_MARK).is_some()
    };
    host::family_under(Path::new("/"), pid).into_iter().take(PROGRAMS_MAX).any(of)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_off_follows_nobody() {
        assert!(Follower::start(Way::Off, &[]).unwrap().is_none());
    }

    #[test]
    fn by_proc_this_process_is_seen_and_the_way_is_told() {
        let own = WatchedProcess { name: "own".into(), pid: std::process::id(), ..WatchedProcess::default() };
        let follower = Follower::start(Way::Proc, &[own]).unwrap().unwrap();
        std::thread::sleep(Duration::from_millis(200));
        let inside = follower.end().unwrap();
        assert_eq!((inside.is_traced, inside.why.as_deref()), (false, Some("--inside=proc")));
        assert!(inside.seconds >= 0.2 && inside.processes[0].threads > 0, "{inside:?}");
        let json = serde_json::to_value(&inside).unwrap();
        assert_eq!(serde_json::from_value::<Inside>(json).unwrap(), inside);
    }

    /// The kernel accepts the programs or says why not. The user reads that reason.
    #[test]
    fn the_kernel_is_asked_and_its_answer_is_told() {
        let own = WatchedProcess { name: "own".into(), pid: std::process::id(), ..WatchedProcess::default() };
        let follower = Follower::start(Way::Auto, &[own]).unwrap().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let inside = follower.end().unwrap();
        assert!(inside.is_traced || inside.why.is_some(), "{inside:?}");
        assert!(inside.processes[0].threads > 0, "{inside:?}");
    }
}
