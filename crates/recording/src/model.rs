//! The parts of a recording.

use std::sync::Arc;

/// One part of a recording, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingPart {
    /// A recorder begins. A file may have several beginnings: one for each start of a server.
    Beginning(Beginning),
    /// A configuration answers the exchanges that follow with its generation.
    Configuration(RecordedConfiguration),
    /// A request with its answer.
    Exchange(Box<RecordedExchange>),
    /// A message of a WebSocket.
    Message(RecordedMessage),
    /// Exchanges and messages that the recording lacks since the last such part.
    Lost(Losses),
    /// A recorder has ended in order.
    Ending(Ending),
}

/// The beginning of a recorder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// The moment from which the offsets of the parts count, in microseconds since 1970.
    pub unix_us: u64,
    /// The program that records, with its version: `weir/0.1.0`.
    pub program: String,
    /// The share of clients that are recorded, in millionths.
    pub share_ppm: u32,
    /// A number that two beginnings share if the same key hashes their secrets and clients.
    pub key_id: u64,
    /// Bodies are recorded.
    pub has_bodies: bool,
}

/// A configuration, and its locations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedConfiguration {
    /// Its number, as exchanges name it.
    pub generation: u64,
    /// The path of its first file.
    pub path: String,
    /// The locations, by the number that exchanges name: `FILE:LINE location /x`.
    pub locations: Vec<String>,
}

/// The version of HTTP between client and weir.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordedVersion {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2.
    Http2,
    /// HTTP/3.
    Http3,
}

/// A request with its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedExchange {
    /// When the head of the request had arrived, in microseconds from the beginning.
    pub at_us: u64,
    /// The client: a keyed hash of its address, or of the variable that the user named.
    pub client: u64,
    /// The connection; its number means nothing beyond one beginning.
    pub connection: u64,
    /// The version of HTTP.
    pub version: RecordedVersion,
    /// The client used TLS.
    pub is_tls: bool,
    /// The port on which the client arrived.
    pub port: u16,
    /// The method.
    pub method: Vec<u8>,
    /// The target as the client sent it: a path with its query, mostly.
    pub target: RecordedText,
    /// The fields in their order; `:authority` of HTTP/2 and HTTP/3 is `host`. Names are in lower case.
    pub fields: Arc<[RecordedField]>,
    /// The body of the request.
    pub body: RecordedBody,
    /// The answer. `None`: the client got none.
    pub answer: Option<RecordedAnswer>,
    /// The client or weir ended the connection before the answer was complete.
    pub is_cut: bool,
    /// From the request's head to the last byte of the answer, in microseconds.
    pub took_us: u64,
    /// The tries at origins.
    pub tries: Vec<RecordedTry>,
    /// The status of the cache: `HIT`, `MISS` and so on, as `$upstream_cache_status`.
    pub cache: Option<String>,
    /// The generation of the configuration.
    pub generation: u64,
    /// The number of the location in that configuration.
    pub location: u32,
    /// The number by which [`RecordedMessage`]s name this exchange; 0 without messages.
    pub tunnel: u64,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedAnswer {
    /// The status.
    pub status: u16,
    /// The fields in their order. Names are in lower case.
    pub fields: Arc<[RecordedField]>,
    /// The body.
    pub body: RecordedBody,
}

/// A try at one origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedTry {
    /// The address, as `$upstream_addr` shows it.
    pub peer: String,
    /// The status; 0 without an answer.
    pub status: u16,
    /// From the try's begin to the end of the answer, in microseconds. `None`: it did not come to this.
    pub took_us: Option<u64>,
}

/// A field of a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordedField {
    /// The name, in lower case.
    pub name: Vec<u8>,
    /// The value.
    pub value: RecordedText,
}

/// Bytes of a message. Some of them may stand for a secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RecordedText {
    /// The bytes, with keyed hashes in the places of secrets.
    pub bytes: Vec<u8>,
    /// The places of the hashes: begin and end, in rising order, without overlaps.
    pub hidden: Vec<(u32, u32)>,
}

/// A body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedBody {
    /// Its length as it was transferred, in bytes.
    pub length: u64,
    /// A keyed hash of its bytes. `None`: weir did not see all of them.
    pub hash: Option<u64>,
    /// The bytes, if the user asked for bodies and this one is small and of a listed type.
    pub kept: Option<RecordedText>,
}

/// A message of a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedMessage {
    /// When it had arrived, in microseconds from the beginning.
    pub at_us: u64,
    /// [`RecordedExchange::tunnel`] of the exchange that opened the WebSocket. The exchange follows its messages.
    pub tunnel: u64,
    /// The client sent it, and not the origin.
    pub is_of_client: bool,
    /// It is binary, and not text.
    pub is_binary: bool,
    /// Its content.
    pub content: RecordedBody,
}

/// Exchanges and messages that a recording lacks, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// The queue to the writer was full.
    pub queue: u64,
    /// The file had its largest size.
    pub size: u64,
    /// The file could not be written.
    pub writing: u64,
    /// The exchange was larger than a block may be.
    pub large: u64,
}

/// The end of a recorder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// When it ended, in microseconds from the beginning.
    pub at_us: u64,
    /// Exchanges of recorded clients since the beginning, also those that the recording lacks.
    pub exchanges: u64,
    /// Exchanges in the recording.
    pub recorded: u64,
    /// Everything that it lacks.
    pub lost: Losses,
}

impl RecordedText {
    /// Bytes without a secret.
    pub fn plain(bytes: impl Into<Vec<u8>>) -> RecordedText {
        RecordedText { bytes: bytes.into(), hidden: Vec::new() }
    }
}

impl Losses {
    /// All of them.
    pub fn all(&self) -> u64 {
        let Losses { queue, size, writing, large } = self;
        queue.saturating_add(*size).saturating_add(*writing).saturating_add(*large)
    }
}
