//! The numbers of the format: kinds of parts, counts of items, limits.

/// A block with this many bytes is handed on.
pub const BLOCK_BYTES: usize = 256 << 10;
/// Most bytes of a part: the lengths of all of its names and values, and [`FIELD_BYTES`] for each field.
pub const PART_BYTES_MAX: usize = 1 << 20;
/// Most bytes of an exchange or a message that a worker records: hidden places make it longer in the block.
pub const LIVE_BYTES_MAX: usize = 256 << 10;

/// The memory that a field needs beside its bytes.
pub(crate) const FIELD_BYTES: usize = 80;
/// The memory of a hidden place.
pub(crate) const HIDDEN_BYTES: usize = 10;
/// Most bytes of the lists of fields that a block shares, as a reader counts them.
pub(crate) const SHARED_BYTES_MAX: usize = 64 << 20;
/// Most bytes of a part, as a reader counts them, without shared lists.
pub(crate) const DECODED_BYTES_MAX: usize = 8 << 20;

/// The kinds of parts, the first number of each.
pub(crate) mod kind {
    pub(crate) const BEGINNING: u64 = 0;
    pub(crate) const CONFIGURATION: u64 = 1;
    pub(crate) const EXCHANGE: u64 = 2;
    pub(crate) const MESSAGE: u64 = 3;
    pub(crate) const LOST: u64 = 4;
    pub(crate) const ENDING: u64 = 5;
}

/// The numbers of a part: its items with the kind.
pub(crate) mod count {
    pub(crate) const BEGINNING: u64 = 6;
    pub(crate) const CONFIGURATION: u64 = 4;
    pub(crate) const EXCHANGE: u64 = 19;
    pub(crate) const MESSAGE: u64 = 6;
    pub(crate) const LOST: u64 = 5;
    pub(crate) const ENDING: u64 = 8;
    pub(crate) const ANSWER: u64 = 3;
    pub(crate) const BODY: u64 = 3;
    pub(crate) const TRY: u64 = 3;
}
