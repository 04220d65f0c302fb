//! The block of a worker: running exchanges go into it without an allocation.

use crate::block::encode::{BlockRefusal, Encoder, Hide, Looked, Piece, PieceKind, Pieces, Shown};
use crate::block::form::{FIELD_BYTES, LIVE_BYTES_MAX, count, kind};
use crate::block::put::{body_head, end, message_head, version};
use crate::model::RecordedVersion;
use crate::secrets::{Redactor, Secrets};

/// The fields of a message that is still in its own form.
pub trait LiveFields {
    /// Gives each name and value to `take`, in their order, and each time the same ones. A name may have capital letters.
    fn each(&self, take: &mut dyn FnMut(&[u8], &[u8]));
}

impl LiveFields for &[(&[u8], &[u8])] {
    fn each(&self, take: &mut dyn FnMut(&[u8], &[u8])) {
        self.iter().for_each(|(name, value)| take(name, value));
    }
}

impl<const COUNT: usize> LiveFields for [(&[u8], &[u8]); COUNT] {
    fn each(&self, take: &mut dyn FnMut(&[u8], &[u8])) {
        (&self[..]).each(take);
    }
}

/// An exchange that has ended, with borrowed parts: [`RecordedExchange`] before its secrets are replaced.
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "as in RecordedExchange")]
pub struct LiveExchange<'x> {
    pub at_us: u64,
    pub client: u64,
    pub connection: u64,
    pub version: RecordedVersion,
    pub is_tls: bool,
    pub port: u16,
    pub method: &'x [u8],
    pub target: &'x [u8],
    pub fields: &'x dyn LiveFields,
    pub body: LiveBody<'x>,
    pub answer: Option<LiveAnswer<'x>>,
    pub is_cut: bool,
    pub took_us: u64,
    pub tries: &'x [LiveTry<'x>],
    pub cache: Option<&'x str>,
    pub generation: u64,
    pub location: u32,
    pub tunnel: u64,
}

/// An answer, with borrowed parts.
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "as in RecordedAnswer")]
pub struct LiveAnswer<'x> {
    pub status: u16,
    pub fields: &'x dyn LiveFields,
    pub body: LiveBody<'x>,
}

/// A body, with borrowed bytes.
#[derive(Clone, Copy, Default)]
pub struct LiveBody<'x> {
    /// Its length as it was transferred, in bytes.
    pub length: u64,
    /// A keyed hash of its bytes, if weir saw all of them.
    pub hash: Option<u64>,
    /// The value of `content-type`; empty without one.
    pub content_type: &'x [u8],
    /// Its bytes, if they are recorded.
    pub kept: Option<&'x [u8]>,
}

/// A try at one origin, with borrowed parts.
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "as in RecordedTry")]
pub struct LiveTry<'x> {
    pub peer: &'x str,
    pub status: u16,
    pub took_us: Option<u64>,
}

/// A message of a WebSocket, with borrowed bytes.
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "as in RecordedMessage")]
pub struct LiveMessage<'x> {
    pub at_us: u64,
    pub tunnel: u64,
    pub is_of_client: bool,
    pub is_binary: bool,
    pub content: LiveBody<'x>,
}

/// A block that one worker fills.
pub struct BlockWriter {
    encoder: Encoder,
    redactor: Redactor,
    /// The fields of the request and of the answer at hand.
    looked: [Looked; 2],
}

impl BlockWriter {
    /// An empty block, whose secrets are replaced with this key.
    pub fn new(secrets: Secrets) -> BlockWriter {
        let encoder = Encoder::new(secrets.seed());
        BlockWriter { encoder, redactor: Redactor::new(secrets), looked: Default::default() }
    }

    /// Bytes of the block. Hand it on at [`BLOCK_BYTES`](crate::block::BLOCK_BYTES), or after a second.
    pub fn len(&self) -> usize {
        self.encoder.len()
    }

    /// The block has no part.
    pub fn is_empty(&self) -> bool {
        self.encoder.is_empty()
    }

    /// The block, for [`seal`](crate::frame::seal). The next one uses the memory of `buffer`.
    pub fn take(&mut self, buffer: Vec<u8>) -> Vec<u8> {
        self.encoder.take(buffer)
    }

    /// Replaces the secrets of an exchange and adds it.
    ///
    /// # Errors
    /// If the block is full, or the exchange has more than [`LIVE_BYTES_MAX`] bytes.
    pub fn push(&mut self, exchange: &LiveExchange<'_>) -> Result<(), BlockRefusal> {
        let x = exchange;
        let [request, answer] = &mut self.looked;
        let mut bytes = size_without_fields(x) + self.encoder.look(&Live(x.fields), request);
        if let Some(x) = &x.answer {
            bytes += self.encoder.look(&Live(x.fields), answer);
        }
        self.room(bytes)?;
        let BlockWriter { encoder, redactor, looked: [request, answer] } = self;
        encoder.part(kind::EXCHANGE, count::EXCHANGE);
        encoder.number(x.at_us);
        encoder.number(x.client);
        encoder.number(x.connection);
        encoder.number(version(x.version));
        encoder.bool(x.is_tls);
        encoder.number(u64::from(x.port));
        encoder.bytes(x.method);
        encoder.piece(&Piece { kind: PieceKind::Target, name: None, value: x.target, hidden: &[] }, redactor);
        encoder.fields(&Live(x.fields), request, redactor);
        body(encoder, &x.body, redactor);
        match &x.answer {
            None => encoder.null(),
            Some(LiveAnswer { status, fields, body: content }) => {
                encoder.array(count::ANSWER);
                encoder.number(u64::from(*status));
                encoder.fields(&Live(*fields), answer, redactor);
                body(encoder, content, redactor);
            }
        }
        encoder.bool(x.is_cut);
        encoder.number(x.took_us);
        encoder.array(x.tries.len() as u64);
        for one in x.tries {
            encoder.array(count::TRY);
            encoder.text(one.peer);
            encoder.number(u64::from(one.status));
            encoder.option(one.took_us);
        }
        end(encoder, x.cache, x.generation, x.location, x.tunnel);
        Ok(())
    }

    /// Replaces the secrets of a message and adds it.
    ///
    /// # Errors
    /// As [`BlockWriter::push`].
    pub fn push_message(&mut self, message: &LiveMessage<'_>) -> Result<(), BlockRefusal> {
        self.room(message.content.kept.map_or(0, <[u8]>::len))?;
        message_head(&mut self.encoder, message.at_us, message.tunnel, message.is_of_client, message.is_binary);
        body(&mut self.encoder, &message.content, &mut self.redactor);
        Ok(())
    }

    fn room(&self, bytes: usize) -> Result<(), BlockRefusal> {
        match () {
            () if bytes > LIVE_BYTES_MAX => Err(BlockRefusal::Large),
            () if self.encoder.is_full() => Err(BlockRefusal::Full),
            () => Ok(()),
        }
    }
}

fn size_without_fields(exchange: &LiveExchange<'_>) -> usize {
    let answer = exchange.answer.as_ref().and_then(|answer| answer.body.kept).map_or(0, <[u8]>::len);
    let bodies = exchange.body.kept.map_or(0, <[u8]>::len) + answer;
    let tries = exchange.tries.iter().map(|one| one.peer.len() + FIELD_BYTES).sum::<usize>();
    exchange.target.len() + exchange.method.len() + bodies + tries
}

struct Live<'x>(&'x dyn LiveFields);

impl Pieces for Live<'_> {
    #[inline]
    fn each(&self, mut take: impl FnMut(Piece<'_>)) {
        self.0.each(&mut |name, value| take(Piece { kind: PieceKind::Field, name: Some(name), value, hidden: &[] }));
    }
}

impl Hide for Redactor {
    fn hide<'p>(&'p mut self, piece: &Piece<'p>) -> Shown<'p> {
        match (piece.kind, piece.name) {
            (PieceKind::Field, Some(name)) => self.field(name, piece.value),
            (PieceKind::Target, _) => self.target(piece.value),
            _ => (piece.value, piece.hidden),
        }
    }
}

fn body(encoder: &mut Encoder, body: &LiveBody<'_>, redactor: &mut Redactor) {
    body_head(encoder, body.length, body.hash);
    match body.kept {
        Some(kept) => encoder.once(redactor.body(body.content_type, kept)),
        None => encoder.null(),
    }
}
