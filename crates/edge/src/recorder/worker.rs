//! A worker's side of recorders: it fills blocks, and gives each to the thread of its run when the block is full, or a
//! second after its first exchange.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_http::exchange::Exchange;
use weir_http::text::texts::push_address;
use weir_net::{buffer, timer, worker};

use super::Recorder;
use super::block::Block;
use super::exchange;
use super::options::PPM;
use super::run::RecordRun;
use crate::family::record::RecordPlace;

/// How long a worker keeps a block that is not full.
const KEEP: Duration = Duration::from_secs(1);

/// The block that this worker fills for a run.
struct Filling {
    run: Arc<RecordRun>,
    block: Option<Block>,
    /// Counts blocks: a timer can see whether its block is still here.
    number: u64,
}

thread_local! {
    static FILLING: RefCell<Vec<Filling>> = const { RefCell::new(Vec::new()) };
}

/// Records an exchange that has ended, if its client is among the recorded ones.
pub fn record(exchange: &mut Exchange<'_>, place: &RecordPlace) {
    let Some(run) = run_of(&place.recorder) else { return };
    let Some(client) = client(exchange, place, &run) else { return };
    let recorded = exchange::recorded(exchange, &run, client);
    with_block(&run, |block| block.put(recorded));
}

/// The run of a recorder that is on.
fn run_of(recorder: &Recorder) -> Option<Arc<RecordRun>> {
    let number = recorder.number();
    if number == 0 {
        return None;
    }
    let known = FILLING.with_borrow(|all| all.iter().find(|own| own.run.number == number).map(|own| own.run.clone()));
    known.or_else(|| recorder.run().filter(|run| run.number == number))
}

/// The client, if it is among the recorded ones.
fn client(exchange: &mut Exchange<'_>, place: &RecordPlace, run: &RecordRun) -> Option<u64> {
    let mut text = buffer::lease(0);
    match &place.client {
        Some(template) => template.eval(exchange, &mut text),
        None => push_address(exchange.remote(), &mut text),
    }
    let client = run.key.client(&text);
    is_sampled(client, run.share_ppm).then_some(client)
}

/// Whether a client is among the recorded ones.
fn is_sampled(client: u64, share_ppm: u32) -> bool {
    share_ppm >= PPM || u128::from(client) * u128::from(PPM) < u128::from(share_ppm) << 64
}

/// Puts something into the block for a run.
fn with_block(run: &Arc<RecordRun>, put: impl FnOnce(&mut Block)) {
    let begun = FILLING.with_borrow_mut(|all| {
        let at = match all.iter().position(|own| Arc::ptr_eq(&own.run, run)) {
            Some(at) => at,
            None => {
                // The runs before it have ended, or end now.
                all.iter_mut().filter(|own| own.run.is_closing()).for_each(Filling::give);
                all.retain(|own| !own.run.is_closing());
                all.push(Filling { run: run.clone(), block: None, number: 0 });
                all.len() - 1
            }
        };
        let own = all.get_mut(at)?;
        let begins = own.block.is_none();
        let block = own.block.get_or_insert_with(|| {
            run.open_blocks.fetch_add(1, Ordering::AcqRel);
            Block::default()
        });
        put(block);
        if block.is_full() {
            own.give();
            return None;
        }
        begins.then(|| {
            own.number += 1;
            own.number
        })
    });
    if let Some(number) = begun {
        let run = run.clone();
        worker::spawn(async move {
            timer::sleep(KEEP).await;
            give_if(&run, number);
        });
    }
}

/// Gives the block of this number if it is still here.
fn give_if(run: &Arc<RecordRun>, number: u64) {
    FILLING.with_borrow_mut(|all| {
        let own = all.iter_mut().find(|own| Arc::ptr_eq(&own.run, run) && own.number == number);
        own.into_iter().for_each(Filling::give);
        all.retain(|own| !own.run.is_closing() || own.block.is_some());
    });
}

impl Filling {
    fn give(&mut self) {
        if let Some(block) = self.block.take() {
            self.run.hand_over(block);
        }
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
