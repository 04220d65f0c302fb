//! The kernel side: loads `bpf/waits.bpf.o`, tells it which processes to follow, and reads its maps at the end. The
//! layouts are those of `waits.bpf.c`.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use aya::maps::{Array, HashMap};
use aya::programs::{BtfTracePoint, ProgramError};
use aya::{Btf, Ebpf, EbpfLoader};
use weir_host as host;
use weir_net::clock;

use super::account::{Behind, Did, Exchange, ThreadPhase, Wait, WokenBy};
use super::calls::{self, NUMBERS, is_mutex};
use super::sample::Followed;

/// The programs, built from their source by `bpf/build.sh`.
const OBJECT: &[u8] = include_bytes!("../../../bpf/waits.bpf.o");

/// `enum` of `waits.bpf.c`: the state of a switched-out thread.
const WAITS: u8 = 1;
const WAITS_DISK: u8 = 2;
const WAITS_CPU: u8 = 3;
/// TCP_LISTEN (Linux, include/net/tcp_states.h). Unix sockets use the same value.
const LISTEN: u8 = 10;
/// Paths of Unix sockets are cut at this length.
const NAME_MAX: usize = 40;

/// Required programs.
const NEEDED: &[(&str, &str)] = &[
    ("forked", "sched_process_fork"),
    ("ended", "sched_process_exit"),
    ("waking", "sched_waking"),
    ("woken", "sched_wakeup"),
    ("switched", "sched_switch"),
];
/// Optional programs (Linux 6.3). Without them, requests and connections are not observed. Either all of them run, or
/// none.
const CONNECTIONS: &[(&str, &str)] =
    &[("closed", "inet_sock_set_state"), ("came", "sock_recv_length"), ("sent", "sock_send_length")];

type Words<const N: usize> = [u64; N];

/// The contents of the kernel's maps.
#[derive(Debug, Default)]
pub struct Read {
    /// Times of threads.
    pub waits: Vec<Wait>,
    /// Traffic on connections.
    pub exchanges: Vec<Exchange>,
    /// Number of entries that did not fit.
    pub lost: u64,
}

/// Programs that run in the kernel until this value is dropped.
pub struct Tracer {
    bpf: Ebpf,
    start_ns: u64,
    /// Why connections are not observed, if so.
    pub blind: Option<String>,
}

impl Tracer {
    /// Loads and attaches the programs. The error is a sentence with the kernel's reason. Labels of the followed
    /// processes count from 1.
    pub fn start(followed: &[Followed]) -> Result<Tracer, String> {
        if !cfg!(target_arch = "x86_64") {
            return Err("weir reads the arguments of system calls only from x86-64 registers".to_owned());
        }
        let btf = Btf::from_sys_fs().map_err(|error| {
            format!("the kernel does not describe its structures (/sys/kernel/btf/vmlinux): {}", whole(&error))
        })?;
        let mut bpf = EbpfLoader::new()
            .btf(Some(&btf))
            .load(OBJECT)
            .map_err(|error| format!("the kernel refused the maps: {}{}", whole(&error), hint()))?;
        let inode =
            std::fs::metadata("/proc/self/ns/pid").map_err(|error| format!("/proc/self/ns/pid: {error}"))?.ino();
        let mut notes: Array<_, u64> = Array::try_from(map(&mut bpf, "notes")?).map_err(refused)?;
        notes.set(0, inode, 0).map_err(refused)?;
        let mut calls: Array<_, u32> = Array::try_from(map(&mut bpf, "calls")?).map_err(refused)?;
        for number in 0..NUMBERS {
            calls.set(number, calls::call(i32::try_from(number).unwrap_or(-1)).in_kernel(), 0).map_err(refused)?;
        }
        let mut wanted: HashMap<_, u32, u32> = HashMap::try_from(map(&mut bpf, "wanted")?).map_err(refused)?;
        for one in followed {
            for pid in host::family_under(Path::new("/"), one.pid) {
                wanted.insert(pid, one.label, 0).map_err(refused)?;
            }
        }
        let mut tracer = Tracer { bpf, start_ns: clock::precise().ns(), blind: None };
        followed.iter().for_each(|one| tracer.listens(one.label, one.ports.iter().copied()));
        for (name, point) in NEEDED.iter().chain(CONNECTIONS) {
            let loaded = tracer.program(name).and_then(|program| program.load(point, &btf));
            let loaded = loaded.map_err(|error| refused_at(point, &error));
            match loaded {
                Err(why) if CONNECTIONS.iter().any(|(known, _)| known == name) => {
                    tracer.blind.get_or_insert(why);
                }
                loaded => loaded?,
            }
        }
        let is_blind = tracer.blind.is_some();
        let connections = CONNECTIONS.iter().filter(|_| !is_blind);
        for (name, point) in NEEDED.iter().chain(connections) {
            let attached = tracer.program(name).and_then(|program| program.attach().map(drop));
            attached.map_err(|error| refused_at(point, &error))?;
        }
        Ok(tracer)
    }

    fn program(&mut self, name: &str) -> Result<&mut BtfTracePoint, ProgramError> {
        self.bpf.program_mut(name).ok_or(ProgramError::NotLoaded)?.try_into()
    }

    /// Registers the ports that a process listens on: traffic there is with its clients.
    pub fn listens(&mut self, label: u32, ports: impl Iterator<Item = u16>) {
        let Ok(map) = map(&mut self.bpf, "listens") else { return };
        let Ok(mut listens) = HashMap::<_, u64, u32>::try_from(map) else { return };
        for port in ports {
            // A port that does not fit is taken for a connection to a server. No process listens on more than 4096
            // ports.
            let _ = listens.insert(u64::from(label) << 32 | u64::from(port), 1, 0);
        }
    }

    /// All counts since the start.
    pub fn read(&mut self) -> Result<Read, String> {
        let now_ns = clock::precise().ns();
        let mut found = Read::default();
        let totals: HashMap<_, Words<11>, Words<3>> =
            HashMap::try_from(map(&mut self.bpf, "totals")?).map_err(refused)?;
        for (key, [ns, count, most_ns]) in totals.iter().flatten() {
            found.waits.extend(wait(&bytes(&key), ns, count, most_ns));
        }
        // Threads that are still in their last wait.
        let threads: HashMap<_, u32, Words<16>> = HashMap::try_from(map(&mut self.bpf, "threads")?).map_err(refused)?;
        for (_, words) in threads.iter().flatten() {
            let [since, woken, on, ..] = words;
            let thread = bytes(&words);
            let Some(key) = thread.get(40..) else { continue };
            if since > 0 && woken == 0 {
                let ns = now_ns.saturating_sub(since.max(self.start_ns));
                let open = wait(key, ns, 1, ns);
                found.waits.extend(open.map(|wait| Wait { by: WokenBy::Unknown, ..wait }));
            } else if on > 0 {
                let ns = now_ns.saturating_sub(on);
                let ran = |at| number(&thread, at);
                found.waits.push(Wait {
                    label: ran(24),
                    thread: ran(28),
                    process: ran(32),
                    phase: phase(ran(36) as u8),
                    did: Did::Ran,
                    ns,
                    count: 1,
                    most_ns: ns,
                    ..Wait::default()
                });
            }
        }
        found.exchanges = self.exchanges(now_ns)?;
        let notes: Array<_, u64> = Array::try_from(map(&mut self.bpf, "notes")?).map_err(refused)?;
        found.lost = notes.get(&1, 0).unwrap_or(0);
        Ok(found)
    }

    fn exchanges(&mut self, now_ns: u64) -> Result<Vec<Exchange>, String> {
        let mut all: BTreeMap<Words<9>, Words<4>> = BTreeMap::new();
        let peers: HashMap<_, Words<9>, Words<4>> = HashMap::try_from(map(&mut self.bpf, "peers")?).map_err(refused)?;
        all.extend(peers.iter().flatten());
        // Requests without an answer yet also count as waits.
        let open: HashMap<_, u64, Words<11>> =
            HashMap::try_from(map(&mut self.bpf, "connections")?).map_err(refused)?;
        for (_, words) in open.iter().flatten() {
            let [sent, came, rest @ ..] = words;
            let is_in = number(&bytes(&words), 20) == 1;
            let began = if is_in { came } else { sent };
            if let Some([ns, ..]) = all.get_mut(&rest).filter(|_| began > 0) {
                *ns += now_ns.saturating_sub(began);
            }
        }
        let row = |(key, [ns, count, most_ns, connections]): (Words<9>, Words<4>)| {
            let key = bytes(&key);
            let is_in = number(&key, 4) == 1;
            Some(Exchange {
                label: number(&key, 0),
                is_in,
                with: behind(key.get(8..)?, is_in),
                ns,
                count,
                most_ns,
                connections,
            })
        };
        Ok(all.into_iter().filter_map(row).collect())
    }
}

fn map<'a>(bpf: &'a mut Ebpf, name: &str) -> Result<&'a mut aya::maps::Map, String> {
    bpf.map_mut(name).ok_or_else(|| format!("no map {name}"))
}

#[allow(clippy::needless_pass_by_value)]
fn refused(error: aya::maps::MapError) -> String {
    format!("the kernel refused a map: {}", whole(&error))
}

fn refused_at(point: &str, error: &ProgramError) -> String {
    format!("the kernel refused the program at its tracepoint {point}: {}{}", whole(error), hint())
}

/// An error and its causes on one line, without the verifier's log.
fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut inner = error.source();
    while let Some(error) = inner {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        inner = error.source();
    }
    let line: String = text.lines().next().unwrap_or_default().chars().take(300).collect();
    line.trim_end_matches([':', ' ']).to_owned()
}

/// The probable obstacle, as far as it is visible.
fn hint() -> &'static str {
    let lockdown = std::fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    if lockdown.contains("[confidentiality]") {
        " (the kernel is locked down: confidentiality)"
    } else if !weir_net::process::is_root() {
        " (this needs root, or CAP_BPF and CAP_PERFMON)"
    } else {
        ""
    }
}

fn bytes<const N: usize>(words: &Words<N>) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

fn half(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|two| two.try_into().ok()).map_or(0, u16::from_ne_bytes)
}

fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

fn phase(number: u8) -> ThreadPhase {
    match number {
        1 => ThreadPhase::Asked,
        2 => ThreadPhase::Answered,
        _ => ThreadPhase::None,
    }
}

/// `enum` of `waits.bpf.c`: who ended a wait.
fn woken_by(number: u8) -> WokenBy {
    match number {
        1 => WokenBy::Thread,
        2 => WokenBy::Request,
        _ => WokenBy::Nobody,
    }
}

/// `struct key`.
fn wait(key: &[u8], ns: u64, count: u64, most_ns: u64) -> Option<Wait> {
    let object = key.get(24..)?;
    let did = match byte(key, 16) {
        WAITS => Did::Waits,
        WAITS_DISK => Did::Uninterruptibly { is_io: byte(object, 11) == 1 },
        WAITS_CPU => Did::Queued,
        _ => Did::Ran,
    };
    let op = number(object, 12);
    let address = object.get(16..24).and_then(|eight| eight.try_into().ok()).map_or(0, u64::from_ne_bytes);
    Some(Wait {
        label: number(key, 0),
        thread: number(key, 4),
        process: number(key, 8),
        call: number(key, 12).cast_signed(),
        did,
        phase: phase(byte(key, 17)),
        behind: behind(object, byte(object, 10) == 1),
        futex: address,
        is_mutex: is_mutex(op & 0x7f, op & 0x100 != 0),
        is_timed: op & 0x200 != 0,
        by: woken_by(byte(key, 18)),
        ns,
        count,
        most_ns,
    })
}

/// `struct object`.
fn behind(object: &[u8], is_in: bool) -> Behind {
    let is_listening = byte(object, 9) == LISTEN;
    match number(object, 0) {
        1 => {
            let name = object.get(24..).unwrap_or_default();
            let ip = match (byte(object, 8), name.get(..4), name.get(..16)) {
                (2, Some(&[a, b, c, d]), _) => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
                (_, _, Some(all)) => {
                    let all: [u8; 16] = all.try_into().unwrap_or_default();
                    Ipv6Addr::from(all).to_canonical()
                }
                _ => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            };
            let peer = SocketAddr::new(ip, half(object, 6));
            Behind::Inet { peer, local: half(object, 4), is_in, is_listening }
        }
        2 => {
            let name = object.get(24..24 + NAME_MAX).unwrap_or_default();
            let is_abstract = name.first() == Some(&0) && name.iter().any(|byte| *byte != 0);
            let name: &[u8] = name.get(usize::from(is_abstract)..).unwrap_or_default();
            let text = String::from_utf8_lossy(name.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned();
            let path = if is_abstract { format!("@{text}") } else { text };
            Behind::Unix { path, is_in, is_listening }
        }
        3 => Behind::Pipe,
        4 => Behind::File,
        5 => Behind::Other,
        _ => Behind::Nothing,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use sha2::{Digest, Sha256};

    use super::*;

    /// If the source changed, rebuild the object (`crates/lab/bpf/build.sh`). Otherwise the lab would run an object
    /// of another source.
    #[test]
    fn the_object_is_of_its_source() {
        let hex = |bytes: &[u8]| Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let noted = include_str!("../../../bpf/waits.sha256");
        let of = |name: &str| noted.lines().find_map(|line| line.strip_suffix(name)).map(str::trim_end);
        assert_eq!(
            of("waits.bpf.c"),
            Some(hex(include_bytes!("../../../bpf/waits.bpf.c")).as_str()),
            "run bpf/build.sh"
        );
        assert_eq!(of("waits.bpf.o"), Some(hex(OBJECT).as_str()), "run bpf/build.sh");
    }

    fn object(behind: u32, local: u16, remote: u16, four: [u8; 4], name: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..4].copy_from_slice(&behind.to_ne_bytes());
        bytes[4..6].copy_from_slice(&local.to_ne_bytes());
        bytes[6..8].copy_from_slice(&remote.to_ne_bytes());
        bytes[8..12].copy_from_slice(&four);
        bytes[24..24 + name.len()].copy_from_slice(name);
        bytes
    }

    #[test]
    fn what_the_kernel_wrote_is_read() {
        let four = behind(&object(1, 4001, 5432, [2, 1, 0, 0], &[10, 0, 0, 3]), false);
        let peer = |text: &str| text.parse::<SocketAddr>().unwrap();
        let inet = |at, local, is_listening| Behind::Inet { peer: peer(at), local, is_in: false, is_listening };
        assert_eq!(four, inet("10.0.0.3:5432", 4001, false));
        let mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 3];
        assert_eq!(behind(&object(1, 4001, 5432, [10, 1, 0, 0], &mapped), false), four);
        assert_eq!(behind(&object(1, 80, 0, [2, LISTEN, 0, 0], &[]), false), inet("0.0.0.0:0", 80, true));
        let unix = |path: &str| Behind::Unix { path: path.into(), is_in: false, is_listening: false };
        assert_eq!(behind(&object(2, 0, 0, [1, 1, 0, 0], b"/run/x.sock\0"), false), unix("/run/x.sock"));
        assert_eq!(behind(&object(2, 0, 0, [1, 1, 0, 0], b"@"), false), unix("@"));
        assert_eq!(
            (behind(&object(0, 0, 0, [0; 4], &[]), false), behind(&[], false)),
            (Behind::Nothing, Behind::Nothing)
        );
        let mut key = [1u32, 9, 7, 202].iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        key.extend([WAITS, 1, 2, 0, 0, 0, 0, 0]);
        let mut futex = object(0, 0, 0, [0; 4], &[]);
        futex[12..16].copy_from_slice(&0x300u32.to_ne_bytes());
        futex[16..24].copy_from_slice(&0x7f00u64.to_ne_bytes());
        key.extend(futex);
        let wait = wait(&key, 5, 2, 3).unwrap();
        assert_eq!((wait.label, wait.thread, wait.process, wait.call), (1, 9, 7, 202));
        assert_eq!((wait.phase, wait.futex, wait.is_mutex, wait.did), (ThreadPhase::Asked, 0x7f00, true, Did::Waits));
        assert_eq!((wait.is_timed, wait.by), (true, WokenBy::Request));
        assert_eq!((is_mutex(6, false), is_mutex(9, true), is_mutex(0, false)), (true, false, false));
    }
}
