//! The known readiness of a socket.

use crate::slots::SlotKey;

/// The known state of one socket.
pub(crate) struct Registration {
    pub(crate) ready: u8,
    pub(super) side: OpenedBy,
    pub(super) reader: SlotKey,
    pub(super) writer: SlotKey,
}

/// The side that opened a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenedBy {
    /// We did: incoming bytes are an answer.
    Ours,
    /// The peer did, or it is a listener.
    Theirs,
}

/// Bits of [`Registration::ready`].
pub(crate) const READ: u8 = 1;
pub(crate) const WRITE: u8 = 2;
/// The peer shut its side down: read until 0.
pub(crate) const PEER_CLOSED: u8 = 4;
/// Both sides are shut.
pub(crate) const HUNG_UP: u8 = 8;
pub(crate) const FAILED: u8 = 16;
/// We open the connection, and it is not made yet.
pub(crate) const OPENING: u8 = 32;
/// After any of these a short read does not mean "drained".
pub(crate) const ENDING: u8 = PEER_CLOSED | HUNG_UP | FAILED;
