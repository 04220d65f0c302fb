//! A server in the keeper's own process: `master_process off`, the demo, and weir beside another server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_http::hold::board::lock;
use weir_meter::live::Canary;
use weir_net::forward::ForwardEnd;
use weir_net::log::{self, Level};
use weir_net::process::Manager;
use weir_net::worker;

use crate::canary::terms::{CanaryOrder, CanaryServe};
use crate::control::Running;
use crate::drive::quic;
use crate::keeper::canary::{Word, newest};
use crate::keeper::processes::Processes;
use crate::keeper::{Bell, CanaryNews, KeptServer, Load, News};
use crate::log_files;

/// The server.
pub struct Here {
    running: Option<Running>,
    has_ended: Arc<AtomicBool>,
    bell: Bell,
    manager: Option<Manager>,
    processes: Processes,
    /// The newest state of the canary.
    canary: Word,
}

impl Here {
    /// A server without a configuration yet.
    pub fn new(bell: Bell, manager: Option<Manager>) -> Here {
        Here {
            running: None,
            has_ended: Arc::default(),
            bell,
            manager,
            processes: Processes::new(),
            canary: Word::default(),
        }
    }
}

impl KeptServer for Here {
    fn serve(&mut self, load: Load) -> Result<(), String> {
        if let Some(running) = &mut self.running {
            let Some(CanaryServe::Beside(_, terms)) = load.canary else {
                return running.replace(load.conf, &load.tree, load.resources, load.canary.is_some());
            };
            let (word, bell) = (self.canary.clone(), self.bell.clone());
            let tell = move |state: &Canary| {
                *lock(&word) = Some(state.clone());
                bell.ring();
            };
            return running.split(load.conf, terms, Box::new(tell));
        }
        let (process, ways) =
            self.processes.begin().map_err(|error| format!("socketpair() failed {}", log::Os(&error)))?;
        quic::process::join(process, ways);
        let running = Running::start(load.conf, &load.tree, load.resources)?;
        // Without a keeper, only the service manager can act on a worker that hangs.
        if let Some(manager) = self.manager.filter(|manager| manager.patience().is_some()) {
            let wait = load.ask_every;
            let watched = running.watch(wait, move |silent| {
                if silent.is_empty() {
                    manager.alive();
                }
                for seat in silent {
                    let wait = wait.as_millis();
                    log::global(Level::Alert, format_args!("worker {seat} has not answered for {wait} ms"));
                }
            });
            if let Err(error) = watched {
                log::global(Level::Alert, format_args!("thread could not be started {}", log::Os(&error)));
            }
        }
        self.running = Some(running);
        Ok(())
    }

    fn refuse(&mut self, why: Vec<String>) {
        self.running.iter().for_each(|running| running.refuse(why.clone()));
    }

    fn left(&mut self) -> (String, Vec<ForwardEnd>) {
        self.processes.left()
    }

    fn reopen(&mut self) {
        self.running.iter().for_each(Running::flush);
        log_files::reopen();
    }

    fn succeed(&mut self, is_succeeded: bool) {
        self.running.iter_mut().for_each(|running| running.succeed(is_succeeded));
    }

    fn steer(&mut self, order: CanaryOrder) {
        self.running.iter().for_each(|running| running.steer(order));
    }

    fn canary(&mut self) -> CanaryNews {
        newest(&self.canary).map_or(CanaryNews::None, |state| CanaryNews::State(Box::new(state)))
    }

    fn quit(&mut self) {
        let Some(running) = &mut self.running else { return };
        let (left, ended, bell) = (running.quit(), self.has_ended.clone(), self.bell.clone());
        let waits = worker::block_aside("quit", move || {
            left.wait();
            ended.store(true, Ordering::Release);
            bell.ring();
        });
        if waits.is_err() {
            self.has_ended.store(true, Ordering::Release);
        }
    }

    fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop();
        }
    }

    fn news(&mut self) -> News {
        if self.has_ended.load(Ordering::Acquire) { News::Ended } else { News::None }
    }

    fn wait(&self) -> Option<Duration> {
        None
    }
}
