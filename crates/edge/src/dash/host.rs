//! A thread that looks at the machine for viewers: its processes, and the logs of services and containers.
//!
//! The thread stays the user that started weir. Only root may see which process of another user listens where, and read
//! the log of every service. It reads `/proc`, and runs two programs with names from the configuration; it gives out
//! names, CPU and memory of processes, never their arguments.

mod output;
mod programs;

use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use serde_json::Value;
use weir_dash::logs::Tail;
use weir_dash::words::Said;
use weir_net::{clock, worker};

pub use output::Source;
pub use programs::Origin;

use crate::live::ticket::{self, Errand};

/// Questions that wait for the thread, at most; one more is answered 503.
const QUESTIONS_MAX: usize = 8;

enum Question {
    /// The programs of the machine, and which of them serve these addresses.
    Programs(Vec<Origin>),
    /// The end of a log.
    Output(Source),
}

enum Answer {
    Programs(Value),
    Output(Result<Tail, Said>),
}

/// The way to the thread.
#[derive(Default)]
pub struct Host(OnceLock<SyncSender<Errand<Question, Answer>>>);

impl Host {
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
    pub async fn programs(&self, origins: Vec<Origin>) -> Option<Value> {
        match ticket::ask(self.0.get()?, Question::Programs(origins)).await? {
            Answer::Programs(programs) => Some(programs),
            Answer::Output(_) => None,
        }
    }

    /// The end of a log; `None` as above.
    pub async fn output(&self, source: Source) -> Option<Result<Tail, Said>> {
        match ticket::ask(self.0.get()?, Question::Output(source)).await? {
            Answer::Output(output) => Some(output),
            Answer::Programs(_) => None,
        }
    }
}

fn serve(list: &Receiver<Errand<Question, Answer>>) {
    let mut programs = programs::Programs::default();
    while let Ok(errand) = list.recv() {
        // A viewer that has left needs no answer.
        if errand.is_awaited() {
            let answer = match &errand.question {
                Question::Programs(origins) => {
                    Answer::Programs(programs.look(Path::new("/"), clock::precise(), origins))
                }
                Question::Output(source) => Answer::Output(source.tail()),
            };
            errand.settle(answer);
        }
    }
}
