//! The thread of a run: it takes the blocks of workers and writes them, until the run ends.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use weir_net::identity::assume;
use weir_net::log::file::LogFile;
use weir_net::process::Identity;
use weir_net::{clock, worker};

use super::block::RecordBlock;
use super::run::RecordRun;
use super::segment::Segments;

/// How often the thread looks at its file and at its end, if no block comes.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The same at the end of the run.
const CLOSE_EVERY: Duration = Duration::from_millis(10);

/// How long the end of a run waits for blocks that workers still fill: each worker gives its block within a second.
const BLOCKS_PATIENCE: Duration = Duration::from_millis(2500);

/// Starts the thread of a run, as `identity`. It first waits for the runs `before` on the same file. It calls `expire` when the time of the
/// run is over.
///
/// # Errors
/// The thread could not be started.
pub fn start(
    run: &Arc<RecordRun>,
    file: Arc<LogFile>,
    before: Vec<Arc<RecordRun>>,
    identity: Option<Identity>,
    expire: impl Fn() + Send + 'static,
) -> io::Result<()> {
    let Some(blocks) = run.blocks() else { return Ok(()) };
    let run = run.clone();
    worker::block_aside("recorder", move || {
        let _ends = Ends(run.clone());
        let until = clock::precise() + BLOCKS_PATIENCE;
        before.iter().for_each(|earlier| earlier.wait(until));
        drop(before);
        if assume(identity.as_ref()) {
            serve(&run, &blocks, Segments::new(&run, file), &expire);
        }
    })
}

/// Reports that the thread has ended, for whatever reason.
struct Ends(Arc<RecordRun>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.ended();
    }
}

fn serve(run: &RecordRun, blocks: &Receiver<Option<RecordBlock>>, mut segments: Segments<'_>, expire: &dyn Fn()) {
    segments.begin();
    let mut closes = None;
    loop {
        let is_closing = run.is_closing();
        match blocks.recv_timeout(if is_closing { CLOSE_EVERY } else { LOOK_EVERY }) {
            Ok(Some(block)) => {
                segments.put(block);
                continue;
            }
            Ok(None) => {}
            Err(RecvTimeoutError::Timeout) => segments.look(),
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let now = clock::precise();
        if is_closing {
            // A worker has put its block into the queue before the block counts as given.
            let has_all = run.open_blocks.load(Ordering::Acquire) == 0;
            blocks.try_iter().flatten().for_each(|block| segments.put(block));
            if has_all || now >= *closes.get_or_insert(now + BLOCKS_PATIENCE) {
                break;
            }
        } else if run.until.is_some_and(|until| now >= until) {
            expire();
        }
    }
    segments.end();
}
