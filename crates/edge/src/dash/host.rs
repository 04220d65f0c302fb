//! A thread that looks at the machine for viewers: its processes, and the logs of services and containers.
//!
//! Only root may see which process of another user listens where, and read the log of every service, so the thread asks
//! for [`errands`]. They read `/proc`, and run two programs with names from the configuration; they give out names, CPU and
//! memory of processes, never their arguments.

pub mod output;
pub mod programs;

use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use serde_json::Value;
use weir_dash::logs::Tail;
use weir_net::{clock, worker};
use weir_words::Said;

pub use output::{LogPlace, ProgramOutput};
pub use programs::ProgramOrigin;

use programs::Programs;

use crate::errands;
use crate::keeper::order::{Done, Errand};
use crate::live::ticket::{self, PendingQuestion};

/// Questions that wait for the thread, at most; one more is answered 503.
const QUESTIONS_MAX: usize = 8;

/// The way to the thread.
#[derive(Default)]
pub struct HostThread(OnceLock<SyncSender<PendingQuestion<Errand, Option<Done>>>>);

impl HostThread {
    /// Starts the thread, if it does not run; it ends with this.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn open(&self) -> io::Result<()> {
        if self.0.get().is_some() {
            return Ok(());
        }
        let (send, list) = sync_channel(QUESTIONS_MAX);
        worker::block_aside("host", move || serve(&list))?;
        // Only the control thread opens it.
        drop(self.0.set(send));
        Ok(())
    }

    /// The programs of the machine; `None` if the thread does not run, too many questions wait, or it takes too long.
    pub async fn programs(&self, origins: Vec<ProgramOrigin>) -> Option<Value> {
        match ticket::ask(self.0.get()?, Errand::Programs(origins)).await?? {
            Done::Programs(programs) => Some(programs),
            Done::Output(_) | Done::Hook(_) | Done::Opened(_) | Done::Resolved(_) => None,
        }
    }

    /// The end of a log; `None` as above.
    pub async fn output(&self, source: ProgramOutput) -> Option<Result<Tail, Said>> {
        match ticket::ask(self.0.get()?, Errand::Output(source.to_string())).await?? {
            Done::Output(output) => Some(output),
            Done::Programs(_) | Done::Hook(_) | Done::Opened(_) | Done::Resolved(_) => None,
        }
    }
}

fn serve(list: &Receiver<PendingQuestion<Errand, Option<Done>>>) {
    let mut programs = Programs::default();
    while let Ok(question) = list.recv() {
        // A viewer that has left needs no answer.
        if question.is_awaited() {
            question.settle_with(|errand| look(errand, &mut programs));
        }
    }
}

fn look(errand: Errand, programs: &mut Programs) -> Option<Done> {
    let here = || match &errand {
        Errand::Programs(origins) => Some(Done::Programs(programs.look(Path::new("/"), clock::precise(), origins))),
        Errand::Output(name) => Some(Done::Output(ProgramOutput::parse(name)?.ok()?.tail())),
        // Other threads ask for these.
        Errand::Hook(..) | Errand::Open(_) | Errand::Resolve(_) => None,
    };
    errands::run(errand.clone(), here)
}
