//! The thread that reads the workers' counters: once a second, and when a request needs them.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use weir_http::hold::board::lock;
use weir_net::identity::assume;
use weir_net::process::Identity;
use weir_net::{clock, worker};

use super::Live;
use super::api;
use super::gather::Gatherer;
use super::question::{QUESTIONS_MAX, Question, Reply};
use super::ticket;

/// How often everything is read.
const EVERY: Duration = Duration::from_secs(1);

impl Live {
    /// Starts the thread, as `identity`; it ends when nobody holds this `Live` any more.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn observe(self: &Arc<Live>, identity: Option<Identity>) -> io::Result<()> {
        let (send, list) = sync_channel(QUESTIONS_MAX);
        if self.questions.set(send).is_err() {
            return Ok(());
        }
        let live = Arc::downgrade(self);
        worker::block_aside("observer", move || {
            if assume(identity.as_ref()) {
                Observer::new().run(&live, &list);
            }
        })
    }

    /// Asks and waits for the answer, while the worker serves others; `None` if too many questions wait, or it takes
    /// too long.
    pub async fn ask(&self, question: Question) -> Option<Reply> {
        ticket::ask(self.questions.get()?, question).await
    }
}

struct Observer {
    gatherer: Gatherer,
}

impl Observer {
    fn new() -> Observer {
        Observer { gatherer: Gatherer::new(PathBuf::from("/"), clock::unix_ms()) }
    }

    fn run(&mut self, live: &Weak<Live>, list: &Receiver<super::LiveQuestion>) {
        let mut next = clock::precise();
        loop {
            let now = clock::precise();
            if now >= next {
                let Some(live) = live.upgrade() else { return };
                self.gatherer.tick(&live, clock::unix_ms());
                let snapshot = Arc::new(self.gatherer.snapshot(&live, clock::unix_ms()));
                *lock(&live.newest) = snapshot.clone();
                let conf = lock(&live.scene).conf.clone();
                if let Some(fleet) = conf.as_ref().and_then(|conf| crate::declared(conf).fleet.fleet()) {
                    fleet.tell(&snapshot);
                }
                if let Some(hall) = conf.as_ref().and_then(|conf| crate::declared(conf).dashboard.watched()) {
                    hall.observe(snapshot);
                }
                next = now + EVERY;
            }
            match list.recv_timeout(next.saturating_duration_since(clock::precise())) {
                Ok(errand) => {
                    let Some(live) = live.upgrade() else { return };
                    // A client that has left needs no answer.
                    if errand.is_awaited() {
                        let reply = self.reply(&live, &errand.question);
                        errand.settle(reply);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn reply(&mut self, live: &Live, question: &Question) -> Reply {
        let mut snapshot = self.gatherer.snapshot(live, clock::unix_ms());
        snapshot.nginx.address.clone_from(&question.address);
        let Some(path) = &question.path else {
            return super::metrics::reply(&snapshot, question.wants_openmetrics);
        };
        let conf = lock(&live.scene).conf.clone();
        let (reply, reset) = api::reply(&snapshot, conf.as_deref(), question, path);
        if let Some(what) = reset {
            self.gatherer.reset(live, &what);
        }
        reply
    }
}
