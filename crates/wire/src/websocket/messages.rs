//! Joins frames to messages.

use super::frame::{FRAME_HEAD_BYTES_MAX, FrameHead, FrameSender, Mask};
use super::opcode::{Opcode, is_close_code};
use super::violation::Violation;

/// The events of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebSocketEvent<'b> {
    /// A whole message. Text is checked to be UTF-8, unless it is compressed: then call [`check_text`] after
    /// inflating it.
    Message {
        /// Text, not bytes.
        is_text: bool,
        /// The caller must inflate it first (RFC 7692 §7.2.2).
        is_compressed: bool,
        /// Its content.
        payload: &'b [u8],
    },
    /// A ping: the receiver must answer with a pong of these bytes.
    Ping(&'b [u8]),
    /// An answer to a ping.
    Pong(&'b [u8]),
    /// The end, with or without a code and a reason. Nothing may follow.
    Close(Option<(u16, &'b str)>),
    /// The input is used up.
    NeedMore,
}

/// Reads one direction of a connection. Between messages it holds no memory of its own.
#[derive(Debug)]
pub struct Messages {
    from: FrameSender,
    compresses: bool,
    message_bytes_max: usize,
    /// An incomplete head.
    head: [u8; FRAME_HEAD_BYTES_MAX],
    head_len: u8,
    /// The frame whose payload is being read.
    frame: Option<Frame>,
    /// For a message that has begun: whether it is text, and whether it is compressed.
    message: Option<(bool, bool)>,
    /// The part of the message that has arrived.
    message_bytes: Vec<u8>,
    control_bytes: Vec<u8>,
    is_closed: bool,
    /// The content of `message_bytes` or `control_bytes` was returned, and must be forgotten.
    is_given: bool,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    is_last: bool,
    opcode: Opcode,
    mask: Option<Mask>,
    left: u64,
}

impl Messages {
    /// A reader for messages of `from`, each of at most `message_bytes_max` bytes as received; `compresses` is true
    /// if permessage-deflate was agreed.
    pub fn new(from: FrameSender, compresses: bool, message_bytes_max: usize) -> Messages {
        Messages {
            from,
            compresses,
            message_bytes_max,
            head: [0; FRAME_HEAD_BYTES_MAX],
            head_len: 0,
            frame: None,
            message: None,
            message_bytes: Vec::new(),
            control_bytes: Vec::new(),
            is_closed: false,
            is_given: false,
        }
    }

    /// The next event. Adds the number of bytes it read from `input` to `used`; call it again with the rest.
    pub fn next<'b>(&'b mut self, input: &'b [u8], used: &mut usize) -> Result<WebSocketEvent<'b>, Violation> {
        self.forget();
        let mut rest = input;
        loop {
            if self.frame.is_none() {
                let before = rest.len();
                let is_there = self.next_head(&mut rest);
                *used += before - rest.len();
                if !is_there? {
                    return Ok(WebSocketEvent::NeedMore);
                }
            }
            let Some(frame) = &mut self.frame else { return Ok(WebSocketEvent::NeedMore) };
            let len = usize::try_from(frame.left).unwrap_or(usize::MAX).min(rest.len());
            let (payload, after) = rest.split_at_checked(len).unwrap_or((rest, &[]));
            (rest, *used) = (after, *used + len);
            frame.left -= len as u64;
            let (opcode, is_whole, mask) = (frame.opcode, frame.left == 0, &mut frame.mask);
            let kept = if opcode.is_control() { &mut self.control_bytes } else { &mut self.message_bytes };
            let is_end = is_whole && frame.is_last;
            if is_end && mask.is_none() && kept.is_empty() {
                self.frame = None;
                return self.end(opcode, Some(payload));
            }
            let from = kept.len();
            kept.extend_from_slice(payload);
            if let (Some(mask), Some(payload)) = (mask, kept.get_mut(from..)) {
                mask.apply(payload);
            }
            if !is_whole {
                return Ok(WebSocketEvent::NeedMore);
            }
            self.frame = None;
            if is_end {
                return self.end(opcode, None);
            }
        }
    }

    /// Reads a head: true if a frame has begun. Keeps the bytes of an incomplete head.
    fn next_head(&mut self, input: &mut &[u8]) -> Result<bool, Violation> {
        if self.is_closed && !input.is_empty() {
            return Err(Violation::AfterClose);
        }
        let mut parsed = None;
        if self.head_len == 0 {
            parsed = FrameHead::parse(input, self.from, self.compresses)?;
            if let Some((_, len)) = parsed {
                *input = input.get(len..).unwrap_or_default();
            }
        }
        while parsed.is_none() {
            let Some((&byte, rest)) = input.split_first() else { return Ok(false) };
            *input = rest;
            let Some(place) = self.head.get_mut(usize::from(self.head_len)) else { return Ok(false) };
            *place = byte;
            self.head_len += 1;
            let head = self.head.get(..usize::from(self.head_len)).unwrap_or_default();
            parsed = FrameHead::parse(head, self.from, self.compresses)?;
        }
        self.head_len = 0;
        let Some((head, _)) = parsed else { return Ok(false) };
        self.begin(&head)?;
        Ok(true)
    }

    fn begin(&mut self, head: &FrameHead) -> Result<(), Violation> {
        match (head.opcode, self.message) {
            (Opcode::Continuation, None) => return Err(Violation::NothingToContinue),
            (Opcode::Text | Opcode::Binary, Some(_)) => return Err(Violation::MessageInMessage),
            (Opcode::Text | Opcode::Binary, None) => {
                self.message = Some((head.opcode == Opcode::Text, head.is_compressed));
            }
            _ => {}
        }
        if !head.opcode.is_control() {
            let so_far = self.message_bytes.len() as u64;
            if head.payload_bytes.saturating_add(so_far) > self.message_bytes_max as u64 {
                return Err(Violation::MessageTooLarge);
            }
        }
        let mask = head.mask.map(Mask::new);
        self.frame = Some(Frame { is_last: head.is_last, opcode: head.opcode, mask, left: head.payload_bytes });
        Ok(())
    }

    /// The event of a complete message or control frame: its payload is `whole`, or the kept bytes.
    fn end<'b>(&'b mut self, opcode: Opcode, whole: Option<&'b [u8]>) -> Result<WebSocketEvent<'b>, Violation> {
        self.is_given = whole.is_none();
        if opcode == Opcode::Close {
            self.is_closed = true;
        }
        if opcode.is_control() {
            let payload = whole.unwrap_or(&self.control_bytes);
            return match opcode {
                Opcode::Ping => Ok(WebSocketEvent::Ping(payload)),
                Opcode::Pong => Ok(WebSocketEvent::Pong(payload)),
                _ => Ok(WebSocketEvent::Close(close(payload)?)),
            };
        }
        let (is_text, is_compressed) = self.message.take().unwrap_or_default();
        let payload = whole.unwrap_or(&self.message_bytes);
        if is_text && !is_compressed {
            check_text(payload)?;
        }
        Ok(WebSocketEvent::Message { is_text, is_compressed, payload })
    }

    /// Frees the memory of the last event.
    fn forget(&mut self) {
        if std::mem::take(&mut self.is_given) {
            self.control_bytes = Vec::new();
            if self.message.is_none() {
                self.message_bytes = Vec::new();
            }
        }
    }
}

/// Checks that a message's text is valid UTF-8 (RFC 6455 §8.1).
pub fn check_text(payload: &[u8]) -> Result<&str, Violation> {
    std::str::from_utf8(payload).map_err(|_| Violation::NotUtf8)
}

fn close(payload: &[u8]) -> Result<Option<(u16, &str)>, Violation> {
    let (code, reason) = match payload {
        [] => return Ok(None),
        [high, low, reason @ ..] => (u16::from_be_bytes([*high, *low]), reason),
        [_] => return Err(Violation::ShortClose),
    };
    if !is_close_code(code) {
        return Err(Violation::CloseCode);
    }
    Ok(Some((code, check_text(reason)?)))
}

#[cfg(test)]
#[path = "messages_tests.rs"]
mod tests;
