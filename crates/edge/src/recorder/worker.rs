//! A worker's side of recorders: it fills blocks, and gives each to the thread of its run when the block is full, or a
//! second after its first part.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_http::exchange::Exchange;
use weir_net::{buffer, timer, worker};
use weir_recording::block::BLOCK_BYTES;
use weir_recording::{BlockRefusal, BlockWriter, LiveExchange, LiveMessage};

use super::Recorder;
use super::block::RecordBlock;
use super::exchange;
use super::noted::Noted;
use super::options::PPM;
use super::place::RecordPlace;
use super::run::RecordRun;

/// How long a worker keeps a block that is not full.
const KEEP: Duration = Duration::from_secs(1);

/// A run, as a worker holds it: the count of references of the worker's own is no memory that workers share.
pub type RunHere = Rc<Arc<RecordRun>>;

/// The block that this worker fills for a run.
struct Filling {
    run: RunHere,
    writer: BlockWriter,
    exchanges: u64,
    messages: u64,
    generations: Vec<u64>,
    /// Counts blocks: a timer can see whether its block is still here.
    number: u64,
}

thread_local! {
    static FILLING: RefCell<Vec<Filling>> = const { RefCell::new(Vec::new()) };
}

/// Records an exchange that has ended, if its client is among the recorded ones.
pub fn record(exchange: &mut Exchange<'_>, place: &RecordPlace) {
    let noted = exchange.own.take::<Noted>();
    let Some(run) = run_of(&place.recorder) else { return };
    // The decision is made once for an exchange.
    let client = match &noted {
        Some(noted) if noted.run == run.number => noted.client,
        Some(_) | None => client(exchange, place, &run),
    };
    let Some(client) = client else { return };
    exchange::with_live(exchange, place, &run, client, noted.as_deref(), |live| put(&run, live));
}

/// The run of a recorder that is on.
pub fn run_of(recorder: &Recorder) -> Option<RunHere> {
    let number = recorder.number();
    if number == 0 {
        return None;
    }
    FILLING.with_borrow_mut(|all| {
        if let Some(own) = all.iter().find(|own| own.run.number == number) {
            return Some(own.run.clone());
        }
        let run = Rc::new(recorder.run().filter(|run| run.number == number)?);
        // The runs before it have ended, or end now.
        all.retain(|own| !own.run.is_closing());
        all.push(Filling::new(run.clone()));
        Some(run)
    })
}

/// The client, if it is among the recorded ones.
pub fn client(exchange: &mut Exchange<'_>, place: &RecordPlace, run: &RecordRun) -> Option<u64> {
    let client = match &place.client {
        Some(template) => {
            let mut text = buffer::lease(0);
            template.eval(exchange, &mut text);
            run.secrets.client_of(&text)
        }
        None => match exchange.remote().tcp() {
            Some(address) => run.secrets.client(address.ip().to_canonical()),
            None => run.secrets.client_of(b"unix:"),
        },
    };
    is_sampled(client, run.share_ppm).then_some(client)
}

/// Whether a client is among the recorded ones.
fn is_sampled(client: u64, share_ppm: u32) -> bool {
    share_ppm >= PPM || u128::from(client) * u128::from(PPM) < u128::from(share_ppm) << 64
}

fn put(run: &RecordRun, live: &LiveExchange<'_>) {
    with_filling(run, |filling| match filling.push(|writer| writer.push(live)) {
        Ok(()) => {
            filling.exchanges += 1;
            if !filling.generations.contains(&live.generation) {
                filling.generations.push(live.generation);
            }
        }
        Err(_) => run.too_large(),
    });
}

/// Records a message of a WebSocket.
pub fn put_message(run: &RunHere, live: &LiveMessage<'_>) {
    with_filling(run, |filling| match filling.push(|writer| writer.push_message(live)) {
        Ok(()) => filling.messages += 1,
        Err(_) => run.too_large_message(),
    });
}

/// Puts something into the block for a run that [`run_of`] has found here.
fn with_filling(run: &RecordRun, put: impl FnOnce(&mut Filling)) {
    let begun = FILLING.with_borrow_mut(|all| {
        let own = all.iter_mut().find(|own| own.run.number == run.number)?;
        let (number, was_empty) = (own.number, own.writer.is_empty());
        put(own);
        if own.writer.len() >= BLOCK_BYTES {
            own.give();
        }
        (was_empty || own.number != number).then_some(own.number).filter(|_| !own.writer.is_empty())
    });
    if let Some(block) = begun {
        let run = run.number;
        worker::spawn(async move {
            timer::sleep(KEEP).await;
            give_if(run, block);
        });
    }
}

/// Gives the block of this number if it is still here.
fn give_if(run: u64, block: u64) {
    FILLING.with_borrow_mut(|all| {
        let own = all.iter_mut().find(|own| own.run.number == run && own.number == block);
        own.into_iter().for_each(Filling::give);
        all.retain(|own| !own.run.is_closing() || !own.writer.is_empty());
    });
}

impl Filling {
    fn new(run: RunHere) -> Filling {
        let writer = BlockWriter::new(run.secrets.clone());
        Filling { run, writer, exchanges: 0, messages: 0, generations: Vec::new(), number: 0 }
    }

    /// Pushes a part, into the next block if this one is full.
    fn push(&mut self, mut push: impl FnMut(&mut BlockWriter) -> Result<(), BlockRefusal>) -> Result<(), BlockRefusal> {
        self.open();
        let pushed = match push(&mut self.writer) {
            Err(BlockRefusal::Full) => {
                self.give();
                self.open();
                push(&mut self.writer)
            }
            pushed => pushed,
        };
        if self.writer.is_empty() {
            self.run.open_blocks.fetch_sub(1, Ordering::AcqRel);
        }
        pushed
    }

    /// The run waits for the block that begins.
    fn open(&self) {
        if self.writer.is_empty() {
            self.run.open_blocks.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn give(&mut self) {
        if self.writer.is_empty() {
            return;
        }
        self.number += 1;
        let block = RecordBlock {
            bytes: self.writer.take(Vec::with_capacity(BLOCK_BYTES)),
            exchanges: std::mem::take(&mut self.exchanges),
            messages: std::mem::take(&mut self.messages),
            generations: std::mem::take(&mut self.generations),
        };
        self.run.hand_over(block);
    }
}

impl Drop for Filling {
    /// The worker ends.
    fn drop(&mut self) {
        self.give();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_clients_is_sampled_and_grows_by_others() {
        let clients: Vec<u64> = (0..100_000u64).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        let sampled = |share_ppm| clients.iter().filter(move |client| is_sampled(**client, share_ppm));
        let tenth = sampled(PPM / 10).count();
        assert!((9_500..10_500).contains(&tenth), "{tenth}");
        assert!(sampled(PPM / 10).all(|client| is_sampled(*client, PPM / 5)));
        assert_eq!(sampled(PPM).count(), clients.len());
        assert!(is_sampled(0, 1) && !is_sampled(u64::MAX, PPM - 1));
    }
}
