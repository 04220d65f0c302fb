//! A block on its way from a worker to the thread of a run.

/// A block.
pub struct RecordBlock {
    /// Its parts, as [`seal`](weir_recording::seal) takes them.
    pub bytes: Vec<u8>,
    /// Exchanges in it.
    pub exchanges: u64,
    /// Messages in it.
    pub messages: u64,
    /// The generations of configurations that its exchanges name.
    pub generations: Vec<u64>,
}

impl RecordBlock {
    /// Exchanges and messages in it.
    pub fn count(&self) -> u64 {
        self.exchanges + self.messages
    }
}
