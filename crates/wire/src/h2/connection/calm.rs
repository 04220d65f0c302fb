//! What a peer may cost that asks for nothing: PING and SETTINGS floods, empty frames, streams begun and reset.
//!
//! Every frame costs one; what serves a message pays it back. A peer that owes too much is told to calm down.

use super::super::{Code, Fault};

/// What may be owed.
const OWED_MAX: u32 = 1000;
/// What a stream costs that is reset; CVE-2023-44487 is thousands of them.
const RESET_COST: u32 = 10;
/// What a request pays: its own frames, and some WINDOW_UPDATEs.
const REQUEST_PAYS: u32 = 4;
/// What an answer pays that was sent to its end: as much as a reset costs, and some more.
const ANSWER_PAYS: u32 = 12;
/// Bytes of a body that pay for one frame.
const BYTES_PER_FRAME: usize = 256;
/// What a DATA frame of ours pays: a WINDOW_UPDATE for the stream and one for the connection.
const SENT_PAYS: u32 = 2;

/// See the module.
#[derive(Debug, Default)]
pub struct Calm {
    owed: u32,
}

impl Calm {
    /// A frame came.
    pub fn frame(&mut self) -> Result<(), Fault> {
        self.cost(1)
    }

    /// A stream was reset before it was served, by the peer or for what it did.
    pub fn reset(&mut self) -> Result<(), Fault> {
        self.cost(RESET_COST)
    }

    /// It was a request.
    pub fn request(&mut self) {
        self.pay(REQUEST_PAYS);
    }

    /// It was a piece of a body.
    pub fn data(&mut self, length: usize, ends: bool) {
        let frames = u32::try_from(length / BYTES_PER_FRAME).unwrap_or(u32::MAX);
        self.pay(frames.saturating_add(u32::from(ends || length > 0)));
    }

    /// A DATA frame was sent.
    pub fn sent(&mut self) {
        self.pay(SENT_PAYS);
    }

    /// An answer was sent to its end.
    pub fn answered(&mut self) {
        self.pay(ANSWER_PAYS);
    }

    fn pay(&mut self, amount: u32) {
        self.owed = self.owed.saturating_sub(amount);
    }

    fn cost(&mut self, amount: u32) -> Result<(), Fault> {
        self.owed = self.owed.saturating_add(amount);
        if self.owed > OWED_MAX {
            return Err(Fault::connection(Code::EnhanceYourCalm, "more frames than its messages need"));
        }
        Ok(())
    }
}
