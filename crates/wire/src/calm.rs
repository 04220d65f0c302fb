//! Limits the cost of a peer of HTTP/2 or HTTP/3 that does no useful work: PING and SETTINGS floods, empty frames,
//! streams that are begun and reset.
//!
//! Every frame costs one point; frames that serve a message pay it back. A connection ends if its peer owes too many
//! points.

/// The points that a peer may owe, at most.
const OWED_MAX: u32 = 1000;
/// The cost of a reset stream; the attack CVE-2023-44487 is thousands of them.
const RESET_COST: u32 = 10;
/// The points that a request pays back: for its own frames, and for some WINDOW_UPDATEs.
const REQUEST_PAYS: u32 = 4;
/// The points that a completely sent answer pays back: the cost of a reset, and some more.
const ANSWER_PAYS: u32 = 12;
/// Bytes of a body that pay for one frame.
const BYTES_PER_FRAME: usize = 256;
/// The points that a DATA frame of ours pays back: for a WINDOW_UPDATE of the stream and one of the connection.
const SENT_PAYS: u32 = 2;

/// The peer owes too many points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restless;

impl Restless {
    /// The text for the log.
    pub const WHAT: &str = "more frames than its messages need";
}

/// See the module.
#[derive(Debug, Default)]
pub struct Calm {
    owed: u32,
}

impl Calm {
    /// Counts a frame.
    pub fn frame(&mut self) -> Result<(), Restless> {
        self.cost(1)
    }

    /// Counts several frames, or things that cost as much.
    pub fn frames(&mut self, count: usize) -> Result<(), Restless> {
        self.cost(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// Counts a stream that was reset before it was served, by the peer or for a fault of the peer.
    pub fn reset(&mut self) -> Result<(), Restless> {
        self.cost(RESET_COST)
    }

    /// The frame was a request.
    pub fn request(&mut self) {
        self.pay(REQUEST_PAYS);
    }

    /// The frame was a piece of a body.
    pub fn data(&mut self, length: usize, ends: bool) {
        self.data_piece(length, ends || length > 0);
    }

    /// A piece of a DATA frame came; `is_last` is true if it completes the frame.
    pub fn data_piece(&mut self, length: usize, is_last: bool) {
        let frames = u32::try_from(length / BYTES_PER_FRAME).unwrap_or(u32::MAX);
        self.pay(frames.saturating_add(u32::from(is_last)));
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

    fn cost(&mut self, amount: u32) -> Result<(), Restless> {
        self.owed = self.owed.saturating_add(amount);
        if self.owed > OWED_MAX {
            return Err(Restless);
        }
        Ok(())
    }
}
