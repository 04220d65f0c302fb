//! The keeper's thread that opens files for a server, as the server's user.

use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use weir_net::log::{self, Level, Os};
use weir_net::process::{self, Channel, Identity};
use weir_net::{opening, worker};

use crate::keeper::order::{Done, Opening};

/// Files that wait to be opened, at most: each of a server's threads asks for one at a time. One more is refused.
const WAITING_MAX: usize = 256;

/// The thread of one server; it ends when this is dropped.
pub struct Opener(SyncSender<(Opening, Channel)>);

impl Opener {
    /// Starts the thread.
    ///
    /// # Errors
    /// The kernel has no more threads.
    pub fn start(identity: Option<Identity>) -> io::Result<Opener> {
        let (send, wanted) = sync_channel(WAITING_MAX);
        worker::block_aside("opener", move || {
            match identity.as_ref().map_or(Ok(()), process::open_files_as) {
                Ok(()) => serve(&wanted),
                // Without the thread, the files are refused.
                Err(error) => log::global(Level::Emerg, format_args!("setfsuid() failed {}", Os(&error))),
            }
        })?;
        Ok(Opener(send))
    }

    /// Opens a file, and answers with its descriptor.
    pub fn open(&self, opening: Opening, answer: Channel) {
        // Without an answer, the file is refused.
        let _ = self.0.try_send((opening, answer));
    }
}

fn serve(wanted: &Receiver<(Opening, Channel)>) {
    for (opening, answer) in wanted {
        let opened = opening::open_disk(&opening.path, opening.guard());
        let done = match &opened {
            Ok(_) => Done::Opened(Ok(())),
            Err(error) => Done::Opened(Err(error.raw_os_error().unwrap_or(0))),
        };
        let files: Vec<_> = opened.iter().map(AsFd::as_fd).collect();
        answer.answer(&done.to_bytes(), &files);
    }
}
