//! Properties of HTTP/3 and QPACK, as functions that panic if one does not hold.

use std::collections::BTreeMap;

use weir_mutate::splits;
use weir_wire::h2::connection::Role;
use weir_wire::h3::connection::{H3Connection, H3News, OurStream};
use weir_wire::h3::frame::{FrameReader, H3FrameHead, H3Kind};
use weir_wire::h3::qpack::{QpackDecoder, QpackEncoder, QpackRead};
use weir_wire::h3::settings::H3Limits;
use weir_wire::h3::stream::{H3Event, RequestStream};
use weir_wire::h3::{H3Fault, varint};
use weir_wire::section::{Block, SectionEncoder, Urgency, message};
use weir_wire::{RequestHead, ResponseHead, Version};

/// Payloads up to this length are kept in [`frames`].
const KEPT_BYTES_MAX: u64 = 64;

/// Frames of one stream: they do not depend on how the bytes arrive, only short payloads are kept, and a head is read as it
/// was written.
pub fn frames(data: &[u8]) {
    let whole = frames_of(&[data]);
    for split in splits(data.len()) {
        let (head, tail) = data.split_at(split);
        assert_eq!(frames_of(&[head, tail]), whole, "split at {split}");
    }
    assert_eq!(frames_of(&data.chunks(1).collect::<Vec<_>>()), whole, "byte by byte");
    if let Some((head, _)) = H3FrameHead::read(data) {
        let mut out = Vec::new();
        head.push(&mut out);
        assert_eq!(H3FrameHead::read(&out), Some((head, out.len())));
    }
    if let Some((value, used)) = varint::read(data) {
        let mut out = Vec::new();
        varint::push(value, &mut out);
        assert!(out.len() <= used && varint::read(&out) == Some((value, out.len())));
    }
    let urgency = Urgency::read(data);
    assert!(urgency.level <= 7);
}

/// Kinds and lengths, kept payloads, and the number of bytes of the others.
fn frames_of(pieces: &[&[u8]]) -> Vec<(H3Kind, u64, Vec<u8>, usize)> {
    let (mut reader, mut frames, mut is_in_frame) = (FrameReader::default(), Vec::new(), false);
    for piece in pieces {
        let mut rest = *piece;
        loop {
            if !is_in_frame {
                let (used, head) = reader.head(rest);
                rest = &rest[used..];
                let Some(head) = head else {
                    assert!(rest.is_empty());
                    break;
                };
                frames.push((head.kind, head.length, Vec::new(), 0));
                is_in_frame = true;
            }
            let (_, length, kept, passed) = frames.last_mut().expect("it has begun");
            let used = if *length <= KEPT_BYTES_MAX {
                let (used, payload) = reader.keep(rest);
                if let Some(payload) = payload {
                    assert_eq!(payload.len() as u64, *length);
                    *kept = payload.to_vec();
                    is_in_frame = false;
                }
                used
            } else {
                let used = reader.pass(rest);
                *passed += used;
                is_in_frame = !reader.is_payload_over();
                used
            };
            rest = &rest[used..];
            if is_in_frame {
                assert!(rest.is_empty());
                break;
            }
            assert!(reader.take_kept().len() as u64 <= KEPT_BYTES_MAX);
        }
    }
    frames
}

/// The limits of [`sections`].
const SECTION_BYTES_MAX: usize = 400;
const TABLE_BYTES: usize = 256;
const BLOCKED_MAX: usize = 2;

/// Field sections with the instructions of an encoder between them: they are bounded, they do not depend on how the
/// instructions arrive, and their fields read the same after weir encodes them.
///
/// The input is a list: a byte whose bits say whether a section follows and of which stream, a length, the bytes.
pub fn sections(data: &[u8]) {
    assert_eq!(sections_of(data, usize::MAX), sections_of(data, 1));
}

/// The sections by stream, and whether the list was right. Instructions come in pieces of this size.
fn sections_of(data: &[u8], piece: usize) -> (BTreeMap<u64, Vec<Option<Fields>>>, bool) {
    let mut decoder = QpackDecoder::new(TABLE_BYTES, BLOCKED_MAX);
    let (mut found, mut waiting) = (BTreeMap::<u64, Vec<_>>::new(), BTreeMap::<u64, Vec<u8>>::new());
    for (kind, bytes) in parts(data) {
        let stream = u64::from(kind / 4 % 8) * 4;
        let said = match kind % 4 {
            0 | 1 => {
                bytes.chunks(piece.min(bytes.len().max(1))).try_for_each(|piece| decoder.instructions(piece).map(drop))
            }
            2 => {
                decoder.cancel(stream);
                waiting.remove(&stream);
                Ok(())
            }
            _ if waiting.contains_key(&stream) => Ok(()),
            _ => section(&mut decoder, stream, bytes, &mut found, &mut waiting),
        };
        if said.is_err() {
            return (found, false);
        }
        assert!(waiting.len() <= BLOCKED_MAX);
        // Sections that were blocked come again.
        while let Some(stream) = decoder.take_ready() {
            let bytes = waiting.remove(&stream).expect("it waits");
            if section(&mut decoder, stream, &bytes, &mut found, &mut waiting).is_err() {
                return (found, false);
            }
        }
        // A section or an increment needs at most ten bytes.
        assert!(decoder.acks().len() <= 11 * data.len());
    }
    (found, true)
}

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

fn section(
    decoder: &mut QpackDecoder,
    stream: u64,
    bytes: &[u8],
    found: &mut BTreeMap<u64, Vec<Option<Fields>>>,
    waiting: &mut BTreeMap<u64, Vec<u8>>,
) -> Result<(), H3Fault> {
    let mut block = Block::default();
    if decoder.decode(stream, bytes, SECTION_BYTES_MAX, &mut block)? != QpackRead::Whole {
        waiting.insert(stream, bytes.to_vec());
        return Ok(());
    }
    assert!(block.bytes.len() <= SECTION_BYTES_MAX && block.fields.len() <= bytes.len());
    let mut out = Vec::new();
    QpackEncoder.begin(&mut out);
    for field in &block.fields {
        QpackEncoder.field(field.name.of(&block.bytes), field.value.of(&block.bytes), field.known, &mut out);
    }
    // The longest code of a byte has 30 bits.
    assert!(out.len() <= 4 * block.bytes.len() + 12 * block.fields.len() + 2);
    let mut again = Block::default();
    let read = QpackDecoder::new(0, 0).decode(0, &out, SECTION_BYTES_MAX, &mut again);
    assert_eq!((read, again.is_too_large), (Ok(QpackRead::Whole), false), "weir's own section is readable");
    let lower = |block: &Block| -> Fields {
        block.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.to_vec())).collect()
    };
    let trimmed = lower(&block).into_iter().map(|(name, value)| (name, value.trim_ascii().to_vec()));
    assert_eq!(lower(&again), trimmed.collect::<Fields>());
    found.entry(stream).or_default().push((!block.is_too_large).then(|| lower(&block)));
    Ok(())
}

/// A list of parts: a byte, a length of one byte, the bytes.
fn parts(mut rest: &[u8]) -> Vec<(u8, &[u8])> {
    let mut parts = Vec::new();
    while let [kind, length, after @ ..] = rest {
        let (bytes, after) = after.split_at(usize::from(*length).min(after.len()));
        parts.push((*kind, bytes));
        rest = after;
    }
    parts
}

const LIMITS: H3Limits = H3Limits { section: 200, table: 256, blocked: 2, is_connect_extended: true };

/// Bytes that a peer can make weir hold for it, besides fixed parts: those of `connection::ACKS_BYTES_MAX`.
const OUTPUT_BYTES_MAX: usize = 64 * 1024 + 16;

/// Whole connections: what each request stream says does not depend on how the bytes arrive; sections and answers are
/// bounded; each head that weir takes could be written in HTTP/1.
///
/// The input is a list: a byte that says the stream, and whether it ends or is reset, a length, the bytes.
pub fn connections(data: &[u8]) {
    for role in [Role::Server, Role::Client] {
        let whole = Peer::run(data, role, |bytes, is_last| vec![(bytes, is_last)]);
        let bytewise = Peer::run(data, role, |bytes, is_last| {
            let singles = bytes.chunks(1).map(|byte| (byte, false));
            singles.chain([(&[][..], is_last)]).collect()
        });
        let halves = Peer::run(data, role, |bytes, is_last| {
            let (head, tail) = bytes.split_at(bytes.len() / 2);
            vec![(head, false), (tail, is_last)]
        });
        for pieces in [bytewise, halves] {
            assert_eq!(pieces.is_failed, whole.is_failed, "{pieces:?}\n{whole:?}");
            for (id, said) in &pieces.streams {
                let other = whole.streams.get(id).expect("the same streams begin");
                assert!(said.said.agrees(&other.said, whole.is_failed), "{role:?} {id}: {said:?}\n{other:?}");
            }
            assert!(whole.is_failed || pieces.news == whole.news, "{pieces:?}\n{whole:?}");
        }
    }
}

/// What the caller learned on a request stream.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    heads: Vec<String>,
    body: Vec<u8>,
    has_ended: bool,
    fault: Option<String>,
}

impl Said {
    /// A message that is malformed may have told a part of its body; a failed connection, a part of everything.
    fn agrees(&self, whole: &Said, is_failed: bool) -> bool {
        if is_failed {
            return true;
        }
        self.heads == whole.heads && self.fault == whole.fault && (self.fault.is_some() || self == whole)
    }
}

#[derive(Debug)]
struct OneStream {
    reader: RequestStream,
    waiting: Vec<u8>,
    is_last: bool,
    is_blocked: bool,
    is_over: bool,
    said: Said,
}

/// The caller of a connection.
#[derive(Debug)]
struct Peer {
    connection: H3Connection,
    role: Role,
    streams: BTreeMap<u64, OneStream>,
    news: Vec<H3News>,
    is_failed: bool,
}

impl Peer {
    fn run(data: &[u8], role: Role, pieces: impl Fn(&[u8], bool) -> Vec<(&[u8], bool)>) -> Peer {
        let connection = H3Connection::new(role, LIMITS);
        let streams = BTreeMap::new();
        let mut peer = Peer { connection, role, streams, news: Vec::new(), is_failed: false };
        peer.connection.output(OurStream::Control).clear();
        let mut stopped = Vec::new();
        for (kind, bytes) in parts(data) {
            let (id, is_last) = (u64::from(kind % 8), kind & 0x80 != 0);
            let is_reset = kind & 0x40 != 0;
            let said = match id {
                _ if stopped.contains(&id) => Ok(()),
                0..4 if is_reset => peer.reset(4 * id),
                0..4 => {
                    pieces(bytes, is_last).into_iter().try_for_each(|(bytes, last)| peer.request(4 * id, bytes, last))
                }
                _ if is_reset => peer.connection.uni_reset(id),
                _ => pieces(bytes, is_last).into_iter().try_for_each(|(bytes, last)| {
                    if stopped.contains(&id) {
                        return Ok(());
                    }
                    let is_stopped = peer.uni(id, bytes, last)?;
                    stopped.extend((is_stopped || last).then_some(id));
                    Ok(())
                }),
            };
            // Only after all pieces: an encoder that drops entries which a waiting section needs is wrong, and then the
            // time matters.
            if said.and_then(|()| peer.go_on()).is_err() {
                peer.is_failed = true;
                break;
            }
            assert!(peer.connection.output(OurStream::Decoder).len() <= OUTPUT_BYTES_MAX);
        }
        peer
    }

    /// Takes bytes of a unidirectional stream; returns whether the stream is unwanted.
    fn uni(&mut self, id: u64, mut bytes: &[u8], is_last: bool) -> Result<bool, H3Fault> {
        loop {
            let (used, news) = self.connection.uni(id, bytes, is_last)?;
            bytes = &bytes[used..];
            match news {
                None => {
                    assert!(bytes.is_empty());
                    return Ok(false);
                }
                Some(H3News::Unwanted) => return Ok(true),
                Some(H3News::Ready) => {}
                Some(news) => self.news.push(news),
            }
        }
    }

    fn go_on(&mut self) -> Result<(), H3Fault> {
        while let Some(id) = self.connection.take_ready() {
            let ready = self.streams.get_mut(&id).expect("it has begun");
            assert!(std::mem::take(&mut ready.is_blocked));
            self.read(id)?;
        }
        Ok(())
    }

    fn request(&mut self, id: u64, bytes: &[u8], is_last: bool) -> Result<(), H3Fault> {
        if !self.streams.contains_key(&id) {
            let reader = RequestStream::begin(&mut self.connection, id)?;
            let (waiting, said) = (Vec::new(), Said::default());
            self.streams
                .insert(id, OneStream { reader, waiting, is_last: false, is_blocked: false, is_over: false, said });
        }
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.is_last) else { return Ok(()) };
        stream.waiting.extend_from_slice(bytes);
        stream.is_last = is_last;
        if stream.is_blocked { Ok(()) } else { self.read(id) }
    }

    fn reset(&mut self, id: u64) -> Result<(), H3Fault> {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.is_over && !stream.is_last) else {
            return Ok(());
        };
        (stream.is_over, stream.is_last, stream.is_blocked) = (true, true, false);
        self.connection.reset_came(id)
    }

    fn read(&mut self, id: u64) -> Result<(), H3Fault> {
        let stream = self.streams.get_mut(&id).expect("it has begun");
        while !stream.is_over {
            let step = match stream.reader.next(&mut self.connection, &stream.waiting, stream.is_last) {
                Ok(step) => step,
                Err(H3Fault { stream: Some(of), what, .. }) => {
                    assert_eq!(of, id);
                    stream.is_over = true;
                    stream.said.fault = Some(what.to_owned());
                    self.connection.cancel(id);
                    return Ok(());
                }
                Err(fault) => return Err(fault),
            };
            let ends = match &step.event {
                None => {
                    assert_eq!(step.used, stream.waiting.len());
                    stream.waiting.clear();
                    return Ok(());
                }
                Some(H3Event::Blocked) => {
                    stream.is_blocked = true;
                    stream.waiting.drain(..step.used);
                    return Ok(());
                }
                Some(H3Event::Data { range, ends }) => {
                    assert!(!range.is_empty() && range.end == step.used);
                    stream.said.body.extend_from_slice(&stream.waiting[range.clone()]);
                    *ends
                }
                Some(H3Event::Malformed(what)) => {
                    stream.said.fault = Some((*what).to_owned());
                    true
                }
                Some(H3Event::Head { ends, malformed }) => {
                    let line = head(self.connection.block(), self.role);
                    stream.said.heads.push(line);
                    stream.said.fault = malformed.map(str::to_owned);
                    *ends || malformed.is_some()
                }
                Some(H3Event::Trailers { ends }) => {
                    let block = self.connection.block();
                    assert!(block.bytes.len() <= LIMITS.section);
                    stream.said.heads.push(format!("{:?}", message::check_trailers(block)));
                    *ends
                }
                Some(H3Event::End) => true,
            };
            stream.waiting.drain(..step.used);
            stream.is_over = ends;
            stream.said.has_ended |= ends;
        }
        Ok(())
    }
}

/// The first line of a head, or its error.
fn head(block: &mut Block, role: Role) -> String {
    assert!(block.bytes.len() <= LIMITS.section);
    let mut block = std::mem::take(block);
    if role == Role::Client {
        let mut head = ResponseHead::new();
        return match message::response(&mut block, Version::Http3, &mut head) {
            Ok(()) => format!("{} {}", head.status, head.fields.len()),
            Err(what) => what.to_owned(),
        };
    }
    let mut head = RequestHead::new();
    match message::request(&mut block, Version::Http3, true, &mut head) {
        Ok(_) => {
            let texts = head.fields.iter().flat_map(|field| [field.name, field.value]).chain([head.line]);
            for text in texts.map(|span| span.of(&block.bytes)) {
                assert!(!text.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)), "{}", text.escape_ascii());
            }
            head.line.of(&block.bytes).escape_ascii().to_string()
        }
        Err(what) => what.to_owned(),
    }
}
