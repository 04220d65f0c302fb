//! The keeper's side of errands.
//!
//! Invariant: the keeper does only errands that the configuration in force, which it has read itself, allows ([`Allowed`]).

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use weir_http::board::lock;
use weir_http::conf::Conf;
use weir_net::identity::assume;
use weir_net::process::{Channel, Identity};
use weir_net::{clock, worker};

use crate::acme::publish::{Hook, Publisher};
use crate::dash::host::output::Source;
use crate::dash::host::programs::Programs;
use crate::family::dashboard::LogPlace;
use crate::keeper::order::{Done, Errand};

/// Errands that the keeper does at once, at most; one more gets no answer.
const RUNNING_MAX: usize = 8;

/// The errands that a configuration allows.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    has_dashboard: bool,
    outputs: Vec<Source>,
    hooks: Vec<PathBuf>,
    /// The user of the hooks.
    identity: Option<Identity>,
}

/// An errand that is allowed.
enum Task {
    Programs(Vec<(String, String)>),
    Output(Source),
    Hook(Hook),
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
        }
    }
}

/// The place where a keeper does the errands of its servers.
#[derive(Clone, Default)]
pub struct Desk(Arc<Shared>);

#[derive(Default)]
struct Shared {
    allowed: Mutex<Allowed>,
    running: AtomicUsize,
    /// The last readings of the machine, for shares of CPU.
    programs: Mutex<Programs>,
}

impl Desk {
    /// Allows the errands of another configuration, and no others.
    pub fn allow(&self, allowed: Allowed) {
        *lock(&self.0.allowed) = allowed;
    }

    /// Does an errand on a thread of its own, and answers there. A refused errand gets no answer.
    pub fn take(&self, errand: Errand, answer: Channel) {
        let (task, identity) = {
            let allowed = lock(&self.0.allowed);
            (allowed.task(errand), allowed.identity.clone())
        };
        let running = Running::new(&self.0);
        let Some(task) = task.filter(|_| running.number <= RUNNING_MAX) else { return };
        let work = move || {
            // A program of the user's runs as the server does.
            if matches!(task, Task::Hook(_)) && !assume(identity.as_ref()) {
                return;
            }
            let done = match task {
                Task::Programs(origins) => {
                    let mut programs = lock(&running.shared.programs);
                    Done::Programs(programs.look(Path::new("/"), clock::precise(), &origins))
                }
                Task::Output(source) => Done::Output(source.tail()),
                Task::Hook(hook) => Done::Hook(hook.run()),
            };
            // A server that does not wait any more needs no answer.
            let _ = answer.send(&done.to_bytes(), &[]);
        };
        // Without a thread, the errand gets no answer.
        let _ = worker::block_aside("errand", work);
    }
}

/// Counts an errand until it has ended.
struct Running {
    shared: Arc<Shared>,
    /// How many run, with this one.
    number: usize,
}

impl Running {
    fn new(shared: &Arc<Shared>) -> Running {
        Running { shared: shared.clone(), number: shared.running.fetch_add(1, Ordering::AcqRel) + 1 }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.running.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

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
            (hook("/etc/hook", ["-c", good[1], good[2]]), false),
            (hook("/etc/hook", [good[0], "a b", good[2]]), false),
            (hook("/etc/hook", [good[0], good[1], "--force"]), false),
        ] {
            assert_eq!(allowed.task(errand.clone()).is_some(), is_allowed, "{errand:?}");
        }
        assert!(Allowed::default().task(Errand::Programs(Vec::new())).is_none());
    }
}
