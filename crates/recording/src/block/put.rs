//! Parts whose secrets are replaced already.

use crate::block::encode::{BlockRefusal, Encoder, Hidden, Looked, Piece, PieceKind, Pieces};
use crate::block::form::{FIELD_BYTES, HIDDEN_BYTES, PART_BYTES_MAX, count, kind};
use crate::model::{
    Losses, RecordedAnswer, RecordedBody, RecordedExchange, RecordedField, RecordedText, RecordedTry, RecordedVersion,
    RecordingPart,
};

/// Adds a part.
///
/// # Errors
/// If the block is full, or the part has more than [`PART_BYTES_MAX`] bytes.
pub(crate) fn put(encoder: &mut Encoder, part: &RecordingPart) -> Result<(), BlockRefusal> {
    if size_of(part) > PART_BYTES_MAX {
        return Err(BlockRefusal::Large);
    }
    if encoder.is_full() {
        return Err(BlockRefusal::Full);
    }
    match part {
        RecordingPart::Beginning(beginning) => {
            encoder.part(kind::BEGINNING, count::BEGINNING);
            encoder.number(beginning.unix_us);
            encoder.text(&beginning.program);
            encoder.number(u64::from(beginning.share_ppm));
            encoder.number(beginning.key_id);
            encoder.bool(beginning.has_bodies);
        }
        RecordingPart::Configuration(configuration) => {
            encoder.part(kind::CONFIGURATION, count::CONFIGURATION);
            encoder.number(configuration.generation);
            encoder.text(&configuration.path);
            encoder.array(configuration.locations.len() as u64);
            configuration.locations.iter().for_each(|location| encoder.text(location));
        }
        RecordingPart::Exchange(exchange) => put_exchange(encoder, exchange),
        RecordingPart::Message(message) => {
            message_head(encoder, message.at_us, message.tunnel, message.is_of_client, message.is_binary);
            put_body(encoder, &message.content);
        }
        RecordingPart::Lost(losses) => {
            encoder.part(kind::LOST, count::LOST);
            put_losses(encoder, losses);
        }
        RecordingPart::Ending(ending) => {
            encoder.part(kind::ENDING, count::ENDING);
            encoder.number(ending.at_us);
            encoder.number(ending.exchanges);
            encoder.number(ending.recorded);
            put_losses(encoder, &ending.lost);
        }
    }
    Ok(())
}

fn put_exchange(encoder: &mut Encoder, x: &RecordedExchange) {
    encoder.part(kind::EXCHANGE, count::EXCHANGE);
    encoder.number(x.at_us);
    encoder.number(x.client);
    encoder.number(x.connection);
    encoder.number(version(x.version));
    encoder.bool(x.is_tls);
    encoder.number(u64::from(x.port));
    encoder.bytes(&x.method);
    encoder.piece(&ready(None, &x.target), &mut Hidden);
    put_fields(encoder, &x.fields);
    put_body(encoder, &x.body);
    match &x.answer {
        None => encoder.null(),
        Some(RecordedAnswer { status, fields, body }) => {
            encoder.array(count::ANSWER);
            encoder.number(u64::from(*status));
            put_fields(encoder, fields);
            put_body(encoder, body);
        }
    }
    encoder.bool(x.is_cut);
    encoder.number(x.took_us);
    encoder.array(x.tries.len() as u64);
    for RecordedTry { peer, status, took_us } in &x.tries {
        encoder.array(count::TRY);
        encoder.text(peer);
        encoder.number(u64::from(*status));
        encoder.option(*took_us);
    }
    end(encoder, x.cache.as_deref(), x.generation, x.location, x.tunnel);
}

fn put_fields(encoder: &mut Encoder, fields: &[RecordedField]) {
    let mut looked = Looked::default();
    encoder.look(&fields, &mut looked);
    encoder.fields(&fields, &mut looked, &mut Hidden);
}

impl Pieces for &[RecordedField] {
    fn each(&self, mut take: impl FnMut(Piece<'_>)) {
        self.iter().for_each(|field| take(ready(Some(&field.name), &field.value)));
    }
}

fn ready<'p>(name: Option<&'p [u8]>, text: &'p RecordedText) -> Piece<'p> {
    Piece { kind: PieceKind::Ready, name, value: &text.bytes, hidden: &text.hidden }
}

fn put_body(encoder: &mut Encoder, body: &RecordedBody) {
    body_head(encoder, body.length, body.hash);
    match &body.kept {
        Some(kept) => encoder.once((&kept.bytes, &kept.hidden)),
        None => encoder.null(),
    }
}

fn put_losses(encoder: &mut Encoder, losses: &Losses) {
    let Losses { queue, size, writing, large } = *losses;
    [queue, size, writing, large].into_iter().for_each(|number| encoder.number(number));
}

pub(super) fn body_head(encoder: &mut Encoder, length: u64, hash: Option<u64>) {
    encoder.array(count::BODY);
    encoder.number(length);
    encoder.option(hash);
}

pub(super) fn message_head(encoder: &mut Encoder, at_us: u64, tunnel: u64, is_of_client: bool, is_binary: bool) {
    encoder.part(kind::MESSAGE, count::MESSAGE);
    encoder.number(at_us);
    encoder.number(tunnel);
    encoder.bool(is_of_client);
    encoder.bool(is_binary);
}

/// The last items of an exchange.
pub(super) fn end(encoder: &mut Encoder, cache: Option<&str>, generation: u64, location: u32, tunnel: u64) {
    match cache {
        Some(cache) => encoder.text(cache),
        None => encoder.null(),
    }
    encoder.number(generation);
    encoder.number(u64::from(location));
    encoder.number(tunnel);
}

pub(super) fn version(version: RecordedVersion) -> u64 {
    match version {
        RecordedVersion::Http10 => 10,
        RecordedVersion::Http11 => 11,
        RecordedVersion::Http2 => 20,
        RecordedVersion::Http3 => 30,
    }
}

fn size_of(part: &RecordingPart) -> usize {
    match part {
        RecordingPart::Beginning(beginning) => beginning.program.len(),
        RecordingPart::Configuration(configuration) => {
            let locations = configuration.locations.iter().map(|location| location.len() + FIELD_BYTES);
            configuration.path.len() + locations.sum::<usize>()
        }
        RecordingPart::Exchange(x) => {
            let answer =
                x.answer.as_ref().map_or(0, |answer| size_of_fields(&answer.fields) + size_of_body(&answer.body));
            let tries = x.tries.iter().map(|one| one.peer.len() + FIELD_BYTES).sum::<usize>();
            let cache = x.cache.as_ref().map_or(0, String::len);
            x.method.len()
                + size_of_text(&x.target)
                + size_of_fields(&x.fields)
                + size_of_body(&x.body)
                + answer
                + tries
                + cache
        }
        RecordingPart::Message(message) => size_of_body(&message.content),
        RecordingPart::Lost(_) | RecordingPart::Ending(_) => 0,
    }
}

fn size_of_fields(fields: &[RecordedField]) -> usize {
    fields.iter().map(|field| field.name.len() + size_of_text(&field.value) + FIELD_BYTES).sum()
}

fn size_of_body(body: &RecordedBody) -> usize {
    body.kept.as_ref().map_or(0, size_of_text)
}

fn size_of_text(text: &RecordedText) -> usize {
    text.bytes.len() + text.hidden.len() * HIDDEN_BYTES
}
