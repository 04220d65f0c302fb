//! Samples the waits of threads from `/proc`. Sampling misses short waits and does not separate requests.
//!
//! Linux, Documentation/filesystems/proc.rst: `task/*/syscall` has the call and its arguments, or `running`;
//! `task/*/stat` has the state.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_host::{self as host, Ends};
use weir_net::{Instant, clock};

use super::account::{Behind, Did, Wait};
use super::calls::{Call, call, is_mutex};

/// Most threads of a stack that are sampled.
const THREADS_MAX: usize = 2048;
/// The socket table of a network is read at most once in this time.
const TABLE_EVERY: Duration = Duration::from_millis(250);
/// Most waits that are counted separately.
const KEYS_MAX: usize = 32_768;

/// A process of the stack: its label, its first process, and the ports that it listens on.
pub struct Followed {
    /// Its label.
    pub label: u32,
    /// Its first process.
    pub pid: u32,
    /// The ports that it listens on.
    pub ports: Vec<u16>,
}

/// The samples so far.
pub struct Sampler {
    root: PathBuf,
    found: BTreeMap<(u32, u32, u32, String), Wait>,
    tables: BTreeMap<u32, (Instant, BTreeMap<u64, Ends>)>,
    /// The first system call of a thread that the kernel did not allow to read, and its error.
    pub refused: Option<String>,
}

impl Sampler {
    /// Samples below a root directory. Outside of tests that is `/`.
    pub fn new(root: &Path) -> Sampler {
        Sampler { root: root.to_owned(), found: BTreeMap::new(), tables: BTreeMap::new(), refused: None }
    }

    /// Samples every thread once. Each sample stands for the time `each`.
    pub fn look(&mut self, followed: &[Followed], each: Duration) {
        let mut left = THREADS_MAX;
        for one in followed {
            for pid in host::family_under(&self.root, one.pid) {
                let tasks = fs::read_dir(self.root.join(format!("proc/{pid}/task")));
                for task in tasks.into_iter().flatten().flatten() {
                    if left == 0 {
                        return;
                    }
                    left -= 1;
                    let Some(thread) = task.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
                    if let Some(wait) = self.thread(one, pid, thread) {
                        self.add(wait, each);
                    }
                }
            }
        }
    }

    /// The waits, each the sum of its samples.
    pub fn end(self) -> Vec<Wait> {
        self.found.into_values().collect()
    }

    fn add(&mut self, wait: Wait, each: Duration) {
        let what = format!("{} {:?} {:?} {:x}", wait.call, wait.did, wait.behind, wait.futex);
        let key = (wait.label, wait.process, wait.thread, what);
        if self.found.len() >= KEYS_MAX && !self.found.contains_key(&key) {
            return;
        }
        let sum = self.found.entry(key).or_insert(wait);
        sum.ns += u64::try_from(each.as_nanos()).unwrap_or(0);
        sum.count += 1;
    }

    fn thread(&mut self, of: &Followed, pid: u32, thread: u32) -> Option<Wait> {
        let task = self.root.join(format!("proc/{pid}/task/{thread}"));
        let stat = fs::read_to_string(task.join("stat")).ok()?;
        // The name is in brackets and may contain brackets.
        let state = stat.rsplit_once(") ")?.1.chars().next()?;
        let mut wait = Wait { label: of.label, process: pid, thread, call: -1, ..Wait::default() };
        wait.did = match state {
            'R' => Did::Ran,
            'D' => Did::Uninterruptibly { is_io: true },
            'S' => Did::Waits,
            _ => return None,
        };
        if wait.did == Did::Ran {
            return Some(wait);
        }
        let text = match fs::read_to_string(task.join("syscall")) {
            Ok(text) => text,
            Err(error) => {
                self.refused.get_or_insert_with(|| format!("/proc/{pid}/task/{thread}/syscall: {error}"));
                return Some(wait);
            }
        };
        let mut words = text.split_ascii_whitespace();
        wait.call = words.next()?.parse().unwrap_or(-1);
        let mut argument = || {
            let word = words.next()?;
            u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()
        };
        match call(wait.call) {
            Call::Descriptor | Call::Sync | Call::FileLock => {
                let fd = u32::try_from(argument()?).ok()?;
                wait.behind = self.behind(of, pid, fd);
                // The client's address does not matter.
                wait.behind = without_client(wait.behind);
            }
            Call::Poll => {
                let (list, count) = (argument()?, argument()?);
                if count == 1
                    && let Some(fd) = self.first_of(pid, list)
                {
                    wait.behind = without_client(self.behind(of, pid, fd));
                }
            }
            Call::Futex => {
                wait.futex = argument()?;
                let (operation, value) = (argument()?, argument()?);
                wait.is_timed = argument()? != 0;
                wait.is_mutex = is_mutex((operation & 0x7f) as u32, value as u32 == 2);
            }
            Call::Events | Call::Sleep | Call::Child | Call::File | Call::Other => {}
        }
        Some(wait)
    }

    /// The descriptor in the first `struct pollfd` of a list in the memory of a process.
    fn first_of(&self, pid: u32, list: u64) -> Option<u32> {
        let mut four = [0; 4];
        File::open(self.root.join(format!("proc/{pid}/mem"))).ok()?.read_exact_at(&mut four, list).ok()?;
        u32::try_from(i32::from_ne_bytes(four)).ok()
    }

    fn behind(&mut self, of: &Followed, pid: u32, fd: u32) -> Behind {
        let Ok(target) = fs::read_link(self.root.join(format!("proc/{pid}/fd/{fd}"))) else { return Behind::Nothing };
        let target = target.to_string_lossy();
        let Some(inode) = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']')?.parse().ok()) else {
            return match target.starts_with("pipe:[") {
                true => Behind::Pipe,
                false if target.starts_with('/') => Behind::File,
                false => Behind::Other,
            };
        };
        let Some(ends) = self.ends(of.pid, inode) else {
            // The path, if there is one, belongs to the other end.
            return Behind::Unix { path: String::new(), is_in: false, is_listening: false };
        };
        let is_in = of.ports.contains(&ends.local.port());
        Behind::Inet { peer: ends.remote, local: ends.local.port(), is_in, is_listening: ends.is_listening }
    }

    /// The ends of a socket. The table is read again if the socket is missing.
    fn ends(&mut self, pid: u32, inode: u64) -> Option<Ends> {
        let now = clock::precise();
        let table = self.tables.get(&pid);
        if let Some(ends) = table.and_then(|(_, table)| table.get(&inode)) {
            return Some(*ends);
        }
        if table.is_none_or(|(read, _)| now - *read >= TABLE_EVERY) {
            self.tables.insert(pid, (now, host::ends_of(&self.root, pid)));
        }
        self.tables.get(&pid)?.1.get(&inode).copied()
    }
}

fn without_client(behind: Behind) -> Behind {
    match behind {
        Behind::Inet { peer, local, is_in: true, is_listening } => {
            let peer = std::net::SocketAddr::new(peer.ip(), 0);
            Behind::Inet { peer, local, is_in: true, is_listening }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Read;

    use super::*;
    use crate::watch::inside::account::{TimeKind, kind_of, sum};

    #[test]
    fn threads_of_this_process_are_seen_where_they_wait() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let mut client = std::net::TcpStream::connect(at).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        weir_net::worker::block_aside("reads", move || {
            tell.send(host::own_thread()).unwrap();
            let _ = client.read(&mut [0]);
        })
        .unwrap();
        let reader = told.recv().unwrap().unwrap();
        let followed = [Followed { label: 1, pid: std::process::id(), ports: Vec::new() }];
        let mut sampler = Sampler::new(Path::new("/"));
        let seen = (0..6_000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            sampler.look(&followed, Duration::from_millis(10));
            let all: Vec<Wait> = sampler.found.values().filter(|wait| wait.thread == reader).cloned().collect();
            all.into_iter().find(|wait| matches!(&wait.behind, Behind::Inet { peer, .. } if *peer == at))
        });
        assert!(seen.is_some_and(|wait| kind_of(&wait, false) == TimeKind::Peer), "{:?}", sampler.refused);
        let found = sum(("own", false), false, &sampler.end(), &[], 1.0);
        assert!(found.threads >= 2 && found.peers.iter().any(|peer| peer.at == at.to_string()), "{found:?}");
        drop(listener);
    }

    #[test]
    fn who_is_gone_is_not_seen() {
        let mut sampler = Sampler::new(Path::new("/nowhere"));
        sampler.look(&[Followed { label: 1, pid: 1, ports: Vec::new() }], Duration::from_millis(10));
        assert!(sampler.end().is_empty());
    }
}
