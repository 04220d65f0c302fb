//! The request's body: read before the upstream is asked, or passed on as it comes.

use std::fs::File;

/// Where the request's body is.
#[derive(Default)]
pub enum RequestBody {
    /// Not read yet; some of it may stand behind the head.
    #[default]
    Unread,
    /// There is none, or it was read and thrown away.
    Gone,
    /// In memory.
    Memory(Vec<u8>),
    /// In a file, wholly.
    File {
        /// Open for reading.
        file: File,
        /// Its name; `None` once it was unlinked.
        path: Option<String>,
        /// Its length.
        length: u64,
        /// Removed when the exchange ends.
        remove: bool,
    },
}

impl RequestBody {
    /// Its length in bytes, as far as it was read.
    pub fn length(&self) -> u64 {
        match self {
            RequestBody::Unread | RequestBody::Gone => 0,
            RequestBody::Memory(bytes) => bytes.len() as u64,
            RequestBody::File { length, .. } => *length,
        }
    }
}
