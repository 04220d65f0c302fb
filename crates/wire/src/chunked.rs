//! The chunked transfer coding, decoded without copying (RFC 9112 §7.1).
//!
//! The decoder takes the buffer and a position, and returns the ranges of the buffer that are payload. It copies only
//! a trailer section, into a bounded buffer of its own.
//!
//! Invariant: framing lines end in CRLF and nothing else. A bare LF is refused (as in nginx since 1.29.4): another
//! party may see a line end where weir does not.

mod extension;

use crate::field::{self, FieldLine, Resume, SectionSender};
use crate::span::Field;
use crate::violation::Violation;

use extension::ExtensionPlace;

/// Bytes of one chunk's extension, at most; S3's signatures take some 90.
pub const CHUNK_EXTENSION_BYTES_MAX: usize = 1024;

/// Digits of a chunk size, at most; the grammar allows leading zeros, but an endless row of them is an attack.
pub const CHUNK_SIZE_DIGITS_MAX: usize = 32;

/// Largest chunk: nginx's `off_t`.
pub const CHUNK_BYTES_MAX: u64 = i64::MAX as u64;

/// Bytes of a trailer section, at most, including line ends.
pub const TRAILER_BYTES_MAX: usize = 8192;

/// Fields of a trailer section, at most.
pub const TRAILER_FIELDS_MAX: usize = 64;

/// The next part that the decoder found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkEvent {
    /// `input[start..end]` is payload; never empty.
    Data {
        /// First byte.
        start: usize,
        /// One past the last byte.
        end: usize,
    },
    /// All of the input is consumed and the body is not complete.
    NeedMore,
    /// The body and its trailer section are complete; the next message begins at `pos`.
    End,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    Size,
    /// Spaces after the size: only `;` or the line end may follow.
    SizeSpace,
    Extension,
    /// The extension of a client's chunk: read by the grammar of extensions.
    ClientExtension(ExtensionPlace),
    LineFeed,
    Data,
    DataCr,
    DataLf,
    /// At the start of a trailer line.
    Trailer,
    TrailerText,
    TrailerLf,
    TrailerEndLf,
    End,
}

/// Decodes one chunked body.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    state: State,
    /// Bytes left of the chunk; while its size is read, the size so far.
    left: u64,
    /// Digits of the size, then bytes of the extension.
    count: usize,
    trailer: Vec<u8>,
    fields: Vec<Field>,
    is_of_client: bool,
}

impl Decoder {
    /// A decoder before the first chunk. It accepts spaces after a size and odd extensions: old origins pad their
    /// sizes with spaces, and weir frames their bodies anew.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// A decoder of a request's body: it accepts only the chunk lines of RFC 9112 §7.1.
    pub fn of_client() -> Decoder {
        Decoder { is_of_client: true, ..Decoder::default() }
    }

    /// Starts over with the next body; the allocations stay.
    pub fn reset(&mut self) {
        let mut trailer = std::mem::take(&mut self.trailer);
        let mut fields = std::mem::take(&mut self.fields);
        trailer.clear();
        fields.clear();
        *self = Decoder { trailer, fields, is_of_client: self.is_of_client, ..Decoder::default() };
    }

    /// Whether the body is complete.
    pub fn is_done(&self) -> bool {
        self.state == State::End
    }

    /// Reads on from `input[*pos]` and moves `pos` past the consumed bytes.
    ///
    /// Call it until [`ChunkEvent::NeedMore`] or [`ChunkEvent::End`]. Consumed bytes need not be kept. After a
    /// refusal or the end, `pos` does not move any more.
    pub fn next(&mut self, input: &[u8], pos: &mut usize) -> Result<ChunkEvent, Violation> {
        loop {
            if self.state == State::End {
                return Ok(ChunkEvent::End);
            }
            let Some(rest) = input.get(*pos..).filter(|rest| !rest.is_empty()) else {
                return Ok(ChunkEvent::NeedMore);
            };
            match self.state {
                State::Data => return Ok(self.data(rest.len(), pos)),
                State::TrailerText => self.trailer_text(rest, pos)?,
                _ => {
                    if let Some(&byte) = rest.first() {
                        self.framing(byte)?;
                        *pos += 1;
                    }
                }
            }
        }
    }

    /// The trailer fields, after [`ChunkEvent::End`]: ranges into the returned bytes. Fields that are not allowed in
    /// a trailer section (RFC 9110 §6.5.1: framing, routing, authentication ...) and fields with an invalid name are
    /// left out.
    pub fn trailers(&self) -> (&[u8], &[Field]) {
        (&self.trailer, &self.fields)
    }

    fn data(&mut self, available: usize, pos: &mut usize) -> ChunkEvent {
        let length = usize::try_from(self.left).map_or(available, |left| left.min(available));
        self.left -= length as u64;
        if self.left == 0 {
            self.state = State::DataCr;
        }
        let start = *pos;
        *pos += length;
        ChunkEvent::Data { start, end: *pos }
    }

    /// One byte of framing.
    fn framing(&mut self, byte: u8) -> Result<(), Violation> {
        self.state = match (self.state, byte) {
            (State::Start, _) => {
                self.left = 0;
                self.count = 0;
                self.digit(byte).ok_or(Violation::ChunkSize)?
            }
            (State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                self.digit(byte).ok_or(Violation::ChunkSizeTooLarge)?
            }
            (State::SizeSpace, b'\r') if self.is_of_client => return Err(Violation::ChunkExtension),
            (State::Size | State::SizeSpace | State::Extension, b'\r') => State::LineFeed,
            (State::Size | State::SizeSpace, b';') => {
                self.count = 0;
                if self.is_of_client { State::ClientExtension(ExtensionPlace::default()) } else { State::Extension }
            }
            (State::Size, b' ' | b'\t') => {
                self.count = 0;
                State::SizeSpace
            }
            (State::Size | State::SizeSpace | State::Extension | State::ClientExtension(_), b'\n') => {
                return Err(Violation::ChunkLineEnd);
            }
            (State::Size, _) => return Err(Violation::ChunkSize),
            (State::SizeSpace, b' ' | b'\t') => self.extension(State::SizeSpace)?,
            (State::SizeSpace, _) => return Err(Violation::ChunkExtension),
            (State::Extension, 0..=8 | 10..=31 | 127) => return Err(Violation::ChunkExtension),
            (State::Extension, _) => self.extension(State::Extension)?,
            (State::ClientExtension(place), b'\r') if place.may_end() => State::LineFeed,
            (State::ClientExtension(place), _) => {
                let next = place.after(byte).ok_or(Violation::ChunkExtension)?;
                self.extension(State::ClientExtension(next))?
            }
            (State::LineFeed, b'\n') if self.left == 0 => State::Trailer,
            (State::LineFeed, b'\n') => State::Data,
            (State::LineFeed, _) => return Err(Violation::ChunkLineEnd),
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Start,
            (State::DataCr | State::DataLf, _) => return Err(Violation::ChunkDataEnd),
            (State::Trailer, b'\r') => State::TrailerEndLf,
            (State::Trailer, b'\n') => return Err(Violation::ChunkLineEnd),
            (State::Trailer, _) => {
                self.keep(&[byte])?;
                State::TrailerText
            }
            (State::TrailerLf, b'\n') => {
                self.keep(b"\r\n")?;
                State::Trailer
            }
            (State::TrailerEndLf, b'\n') => {
                self.parse_trailer()?;
                State::End
            }
            (State::TrailerLf | State::TrailerEndLf, _) => return Err(Violation::ChunkLineEnd),
            (State::Data | State::TrailerText | State::End, _) => self.state,
        };
        Ok(())
    }

    /// One more digit of the size; `None` if it is not a digit, or one too many.
    fn digit(&mut self, byte: u8) -> Option<State> {
        let digit = (byte as char).to_digit(16)?;
        self.count += 1;
        if self.count > CHUNK_SIZE_DIGITS_MAX || self.left > CHUNK_BYTES_MAX >> 4 {
            return None;
        }
        self.left = self.left << 4 | u64::from(digit);
        Some(State::Size)
    }

    fn extension(&mut self, state: State) -> Result<State, Violation> {
        self.count += 1;
        if self.count > CHUNK_EXTENSION_BYTES_MAX {
            return Err(Violation::ChunkExtensionTooLong);
        }
        Ok(state)
    }

    /// The text of a trailer line up to its CR.
    fn trailer_text(&mut self, rest: &[u8], pos: &mut usize) -> Result<(), Violation> {
        let end = memchr::memchr2(b'\r', b'\n', rest);
        let length = end.unwrap_or(rest.len());
        self.keep(rest.get(..length).unwrap_or_default())?;
        *pos += length;
        if let Some(end) = end {
            if rest.get(end) == Some(&b'\n') {
                return Err(Violation::ChunkLineEnd);
            }
            *pos += 1;
            self.state = State::TrailerLf;
        }
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        if self.trailer.len() + bytes.len() > TRAILER_BYTES_MAX {
            return Err(Violation::TrailerTooLarge);
        }
        self.trailer.extend_from_slice(bytes);
        Ok(())
    }

    fn parse_trailer(&mut self) -> Result<(), Violation> {
        self.fields.clear();
        let mut at = 0;
        let mut lines = 0;
        while at < self.trailer.len() {
            match field::line(&self.trailer, at, &mut Resume::at(at), SectionSender::Client) {
                FieldLine::Field { field, spelling, next, .. } => {
                    lines += 1;
                    if lines > TRAILER_FIELDS_MAX {
                        return Err(Violation::TrailerTooLarge);
                    }
                    let forbidden = field.known.is_some_and(|name| name.is_forbidden_in_trailer());
                    if spelling == field::Spelling::Plain && !forbidden {
                        self.fields.push(field);
                    }
                    at = next;
                }
                FieldLine::Skipped { .. } | FieldLine::End { .. } | FieldLine::Need | FieldLine::Bad { .. } => {
                    return Err(Violation::TrailerField);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
