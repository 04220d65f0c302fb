//! The account of a recording: what it has, and what it lost.

use weir_recording::model::{Ending, Losses};

/// The account of a recording.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordingSource {
    pub(super) name: String,
    /// Exchanges of recorded clients, also those that the recording lacks.
    pub(super) exchanges: u64,
    pub(super) recorded: u64,
    pub(super) lost: Losses,
    /// Shares of clients, each with the requests that were recorded with it.
    pub(super) shares: Vec<(f64, u64)>,
    /// False if a recorder did not end in order.
    pub(super) has_end: bool,
}

/// The account of a recorder, from its parts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecorderAccount {
    /// The share of clients that it records.
    pub(super) share: f64,
    pub(super) seen: u64,
    pub(super) lost: Losses,
}

impl RecorderAccount {
    pub(super) fn lose(&mut self, lost: &Losses) {
        self.lost = sum(&self.lost, lost);
    }
}

impl RecordingSource {
    /// Takes the account of a recorder: what its end says, or, without one, what the file has.
    pub(super) fn end(&mut self, recorder: Option<RecorderAccount>, ending: Option<&Ending>) {
        let Some(RecorderAccount { share, seen, lost }) = recorder else { return };
        let own = Ending { at_us: 0, exchanges: seen.saturating_add(lost.all()), recorded: seen, lost };
        let ending = match ending {
            Some(ending) => *ending,
            None => {
                self.has_end = false;
                own
            }
        };
        self.exchanges = self.exchanges.saturating_add(ending.exchanges);
        self.recorded = self.recorded.saturating_add(ending.recorded);
        self.lost = sum(&self.lost, &ending.lost);
        self.shares.push((share, seen));
    }
}

fn sum(a: &Losses, b: &Losses) -> Losses {
    Losses {
        queue: a.queue.saturating_add(b.queue),
        size: a.size.saturating_add(b.size),
        writing: a.writing.saturating_add(b.writing),
        large: a.large.saturating_add(b.large),
    }
}
