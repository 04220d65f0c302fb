//! The keeper's side of errands.
//!
//! Invariant: the keeper does only errands that the configuration in force, which it has read itself, allows ([`Allowed`]).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use weir_http::exchange::conf::Conf;
use weir_http::hold::board::lock;
use weir_http::hold::reach::Reach;
use weir_net::path::as_path;
use weir_net::process::{self, Channel, Identity};
use weir_net::{clock, worker};

use crate::acme::publish::{Hook, Publisher};
use crate::dash::host::output::{LogPlace, ProgramOutput};
use crate::dash::host::programs::Programs;
use crate::keeper::opener::Opener;
use crate::keeper::order::{Done, Errand};

/// Errands that the keeper does for one server at once, at most; one more gets no answer.
const RUNNING_MAX: usize = 8;

/// The errands that a configuration allows.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    has_dashboard: bool,
    outputs: Vec<ProgramOutput>,
    hooks: Vec<PathBuf>,
    /// The user of the hooks.
    identity: Option<Identity>,
    /// The places of which the keeper opens files.
    reach: Reach,
}

/// An errand that is allowed.
enum Task {
    Programs(Vec<(String, String)>),
    Output(ProgramOutput),
    Hook(Hook),
    Resolve(String),
}

/// The longest name of a host (RFC 1035 §2.3.4).
const HOST_BYTES_MAX: usize = 255;

/// Whether a text may be the name of a host. Any host: the server can send questions to name servers itself.
fn is_plain(host: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    (1..=HOST_BYTES_MAX).contains(&host.len()) && host.bytes().all(is_part)
}

impl Allowed {
    /// Those of a configuration.
    pub fn of(conf: &Conf, identity: Option<&Identity>) -> Allowed {
        let declared = crate::declared(conf);
        let outputs = declared.dashboard.logs.iter().filter_map(|log| match &log.place {
            LogPlace::Output(source) => Some(source.clone()),
            LogPlace::File(_) => None,
        });
        let hooks = declared.acme.authorities.iter().filter_map(|authority| match &authority.publisher {
            Publisher::Hook(program) => Some(program.clone()),
            Publisher::Nobody | Publisher::Responder | Publisher::Update(_) => None,
        });
        Allowed {
            has_dashboard: conf.locations.iter().any(|location| crate::values(location).dashboard.is_on),
            outputs: outputs.collect(),
            hooks: hooks.collect(),
            identity: identity.cloned(),
            reach: conf.reach.clone(),
        }
    }

    fn task(&self, errand: Errand) -> Option<Task> {
        match errand {
            Errand::Programs(origins) => self.has_dashboard.then_some(Task::Programs(origins)),
            Errand::Output(name) => {
                self.outputs.iter().find(|source| source.to_string() == name).cloned().map(Task::Output)
            }
            Errand::Hook(program, words) => {
                let hook = Hook { program, words };
                (hook.is_plain() && self.hooks.contains(&hook.program)).then_some(Task::Hook(hook))
            }
            Errand::Resolve(host) => is_plain(&host).then_some(Task::Resolve(host)),
            Errand::Open(_) => None,
        }
    }
}

/// The place where a keeper does the errands of its servers.
#[derive(Clone, Default)]
pub struct Desk(Arc<Shared>);

#[derive(Default)]
struct Shared {
    allowed: Mutex<Allowances>,
    /// The last readings of the machine, for shares of CPU.
    programs: Mutex<Programs>,
}

/// The errands that the keeper does now.
#[derive(Default)]
struct Allowances {
    current: Allowed,
    /// While a configuration is put in force: its errands.
    next: Option<Allowed>,
}

impl Desk {
    /// Allows the errands of a configuration that a server is about to put in force, besides those of the current one.
    pub fn allow_next(&self, next: Allowed) {
        lock(&self.0.allowed).next = Some(next);
    }

    /// Allows the errands of the next configuration only, if it `is_in_force` now; else of the current one only.
    pub fn settle(&self, is_in_force: bool) {
        let mut allowed = lock(&self.0.allowed);
        if let (Some(next), true) = (allowed.next.take(), is_in_force) {
            allowed.current = next;
        }
    }

    /// Does an errand, and answers. The opener of `clerk` opens files, one after another; every other errand has a thread of its own. A
    /// refused errand gets no answer.
    pub fn take(&self, errand: Errand, answer: Channel, clerk: &Clerk) {
        let errand = match errand {
            Errand::Open(opening) => {
                let path = as_path(&opening.path);
                if self.find(|allowed| allowed.reach.has_read(path).then_some(())).is_some() {
                    clerk.opener.open(opening, answer);
                }
                return;
            }
            errand => errand,
        };
        let found = self.find(|allowed| Some((allowed.task(errand.clone())?, allowed.identity.clone())));
        let Some((task, identity)) = found else { return };
        let (running, shared) = (Running::new(&clerk.running), self.0.clone());
        if running.number > RUNNING_MAX {
            return;
        }
        let work = move || {
            let done = match task {
                Task::Programs(origins) => {
                    let mut programs = lock(&shared.programs);
                    Done::Programs(programs.look(Path::new("/"), clock::precise(), &origins))
                }
                Task::Output(source) => Done::Output(source.tail()),
                // A program of the user's runs as the server does.
                Task::Hook(hook) => Done::Hook(hook.run(identity.as_ref())),
                Task::Resolve(host) => Done::Resolved(process::resolve(&host).map_err(|error| error.to_string())),
            };
            drop(running);
            answer.answer(&done.to_bytes(), &[]);
        };
        // Without a thread, the errand gets no answer.
        let _ = worker::block_aside("errand", work);
    }

    /// The first find among the errands that are allowed.
    fn find<T>(&self, find: impl Fn(&Allowed) -> Option<T>) -> Option<T> {
        let allowed = lock(&self.0.allowed);
        find(&allowed.current).or_else(|| allowed.next.as_ref().and_then(find))
    }
}

/// The part of the desk that works for one server. Another server, also a hostile one, takes nothing from it.
pub struct Clerk {
    opener: Opener,
    running: Arc<AtomicUsize>,
}

impl Clerk {
    /// The clerk of a server of this user.
    ///
    /// # Errors
    /// The kernel has no more threads.
    pub fn new(identity: Option<Identity>) -> io::Result<Clerk> {
        Ok(Clerk { opener: Opener::start(identity)?, running: Arc::default() })
    }
}

/// Counts an errand until it has ended.
struct Running {
    all: Arc<AtomicUsize>,
    /// How many run, with this one.
    number: usize,
}

impl Running {
    fn new(all: &Arc<AtomicUsize>) -> Running {
        Running { all: all.clone(), number: all.fetch_add(1, Ordering::AcqRel) + 1 }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::keeper::order::Opening;

    #[test]
    fn the_keeper_does_what_its_configuration_names_and_nothing_else() {
        let text = "events {} http { dashboard_upstream_log journald:shop.service;
                     server { listen 1; location /weir/ { dashboard; } } }";
        let (conf, said) = crate::of_text(text);
        let conf = conf.ok_or(said).unwrap();
        let allowed = Allowed { hooks: vec!["/etc/hook".into()], ..Allowed::of(&conf, None) };
        let hook = |program: &str, words: [&str; 3]| Errand::Hook(program.into(), words.map(str::to_owned));
        let digest = "-Aa0_".repeat(9);
        let good = ["present", "_acme-challenge.a.example.", &digest[..43]];
        for (errand, is_allowed) in [
            (Errand::Programs(Vec::new()), true),
            (Errand::Output("journald:shop.service".to_owned()), true),
            (Errand::Output("journald:ssh.service".to_owned()), false),
            (Errand::Output("docker:shop.service".to_owned()), false),
            (hook("/etc/hook", good), true),
            (hook("/bin/sh", good), false),
            (Errand::Resolve("redis.internal".to_owned()), true),
            (Errand::Resolve("-f /etc/passwd".to_owned()), false),
            (Errand::Open(Opening::new(b"/etc/passwd", None)), false),
            (hook("/etc/hook", ["-c", good[1], good[2]]), false),
            (hook("/etc/hook", [good[0], "a b", good[2]]), false),
            (hook("/etc/hook", [good[0], good[1], "--force"]), false),
        ] {
            assert_eq!(allowed.task(errand.clone()).is_some(), is_allowed, "{errand:?}");
        }
        assert!(Allowed::default().task(Errand::Programs(Vec::new())).is_none());
    }
}
