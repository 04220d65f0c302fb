//! Parses the bytes of a NATS server into operations: the text protocol, no socket.
//!
//! <https://docs.nats.io/reference/reference-protocols/nats-protocol>. The client does not ask for headers, so HMSG
//! never comes.

use std::fmt;

/// The longest control line, in bytes: INFO names every server of a cluster.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// The longest payload, in bytes; the default of NATS servers is 1 MiB.
pub const PAYLOAD_BYTES_MAX: usize = 16 << 20;

/// An operation of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Information about the server, as JSON.
    Info(String),
    /// A message for a subscription.
    Message(NatsMessage),
    /// The server wants a PONG.
    Ping,
    /// The server has read everything up to our PING.
    Pong,
    /// The server accepts, in verbose mode.
    Ok,
    /// The server refuses; it often closes the connection afterwards.
    Error(String),
}

/// A published message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsMessage {
    /// The subject.
    pub subject: String,
    /// The subject for an answer.
    pub reply: Option<String>,
    /// The payload.
    pub payload: Vec<u8>,
}

/// Why the bytes are not NATS; after this error the connection is useless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// More than [`LINE_BYTES_MAX`].
    LineTooLong,
    /// More than [`PAYLOAD_BYTES_MAX`].
    PayloadTooLong,
    /// Not an operation.
    Line(String),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::LineTooLong => write!(f, "a line has more than {LINE_BYTES_MAX} bytes: this is not a NATS server"),
            Wrong::PayloadTooLong => write!(f, "a message of more than {PAYLOAD_BYTES_MAX} bytes"),
            Wrong::Line(line) => write!(f, "this is not a NATS server: it sent {line:?}"),
        }
    }
}

/// The parser; takes bytes as they come.
#[derive(Debug, Default)]
pub struct Parser {
    bytes: Vec<u8>,
    /// Bytes before this index have been returned already.
    at: usize,
}

/// The head of a message whose payload may not be complete.
struct Head {
    subject: String,
    reply: Option<String>,
    length: usize,
}

impl Parser {
    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next operation, once all its bytes are there.
    pub fn pull(&mut self) -> Result<Option<Op>, Wrong> {
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let Some(end) = memchr::memchr(b'\n', rest.get(..LINE_BYTES_MAX).unwrap_or(rest)) else {
                return if rest.len() >= LINE_BYTES_MAX { Err(Wrong::LineTooLong) } else { Ok(None) };
            };
            let line = rest.get(..end).unwrap_or_default();
            let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned();
            let (name, words) = line.split_once([' ', '\t']).unwrap_or((&line, ""));
            let op = match name.to_ascii_uppercase().as_str() {
                "MSG" => {
                    let head = head(words).ok_or_else(|| wrong(&line))?;
                    return self.message(head, end + 1);
                }
                "INFO" => Op::Info(words.trim().to_owned()),
                "PING" => Op::Ping,
                "PONG" => Op::Pong,
                "+OK" => Op::Ok,
                "-ERR" => Op::Error(words.trim().trim_matches('\'').to_owned()),
                "" => {
                    self.at += end + 1;
                    continue;
                }
                _ => return Err(wrong(&line)),
            };
            self.at += end + 1;
            return Ok(Some(op));
        }
    }

    /// The message whose head line has `line` bytes.
    fn message(&mut self, head: Head, line: usize) -> Result<Option<Op>, Wrong> {
        if head.length > PAYLOAD_BYTES_MAX {
            return Err(Wrong::PayloadTooLong);
        }
        let from = self.at + line;
        let Some(framed) = self.bytes.get(from..from + head.length + 2) else { return Ok(None) };
        let Some(payload) = framed.strip_suffix(b"\r\n") else { return Err(wrong("a message has no end")) };
        let payload = payload.to_vec();
        self.at = from + head.length + 2;
        Ok(Some(Op::Message(NatsMessage { subject: head.subject, reply: head.reply, payload })))
    }
}

/// `SUBJECT SID [REPLY] BYTES`.
fn head(words: &str) -> Option<Head> {
    let words: Vec<&str> = words.split_ascii_whitespace().collect();
    let (subject, reply, length) = match *words.as_slice() {
        [subject, _, length] => (subject, None, length),
        [subject, _, reply, length] => (subject, Some(reply.to_owned()), length),
        _ => return None,
    };
    Some(Head { subject: subject.to_owned(), reply, length: length.parse().ok()? })
}

/// Most characters of a wrong line that are shown.
const SHOWN_CHARS_MAX: usize = 80;

fn wrong(line: &str) -> Wrong {
    Wrong::Line(line.chars().take(SHOWN_CHARS_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(parser: &mut Parser) -> Result<Vec<Op>, Wrong> {
        let mut ops = Vec::new();
        while let Some(op) = parser.pull()? {
            ops.push(op);
        }
        Ok(ops)
    }

    fn message(subject: &str, reply: Option<&str>, payload: &str) -> Op {
        Op::Message(NatsMessage {
            subject: subject.to_owned(),
            reply: reply.map(str::to_owned),
            payload: payload.as_bytes().to_vec(),
        })
    }

    const TEXT: &[u8] = b"INFO {\"a\":1} \r\n+OK\r\nPING\r\nmsg a.b 9 5\r\nhe\r\no\r\nPONG\r\nMSG x 1 re.ply 0\r\n\r\n\
                          -ERR 'Authorization Violation'\r\n";

    fn expected() -> Vec<Op> {
        vec![
            Op::Info("{\"a\":1}".to_owned()),
            Op::Ok,
            Op::Ping,
            message("a.b", None, "he\r\no"),
            Op::Pong,
            message("x", Some("re.ply"), ""),
            Op::Error("Authorization Violation".to_owned()),
        ]
    }

    #[test]
    fn operations_come_out_however_the_bytes_are_cut() {
        for size in 1..TEXT.len() {
            let mut parser = Parser::default();
            let mut ops = Vec::new();
            for piece in TEXT.chunks(size) {
                parser.push(piece);
                ops.extend(all(&mut parser).unwrap());
            }
            assert_eq!(ops, expected(), "{size}");
        }
    }

    #[test]
    fn what_is_no_nats_is_refused() {
        let table: [(&[u8], &str); 6] = [
            (b"HTTP/1.1 400 Bad Request\r\n", "this is not a NATS server"),
            (b"MSG a\r\n", "MSG a"),
            (b"MSG a 1 x\r\n", "MSG a 1 x"),
            (b"MSG a 1 99999999999999999999999\r\n", "MSG a 1"),
            (b"MSG a 1 17000000\r\n", "more than 16777216 bytes"),
            (b"MSG a 1 2\r\nabcd", "has no end"),
        ];
        for (bytes, words) in table {
            let mut parser = Parser::default();
            parser.push(bytes);
            let wrong = all(&mut parser).unwrap_err().to_string();
            assert!(wrong.contains(words), "{wrong}");
        }
        let mut parser = Parser::default();
        parser.push(&vec![b'x'; LINE_BYTES_MAX]);
        assert_eq!(parser.pull(), Err(Wrong::LineTooLong));
    }

    mod mutate {
        use super::*;
        use weir_mutate::{mutate, splits};

        /// A server's bytes: the operations do not depend on how the bytes arrive, and their texts are parts of the bytes.
        #[test]
        fn operations() {
            let seeds = [
                "INFO {\"server_id\":\"a\"}\r\nPING\r\nMSG a.b 1 5\r\nhello\r\n+OK\r\n",
                "MSG a 1 reply.to 0\r\n\r\n-ERR 'no'\r\nPONG\r\n",
                "msg\ta\t1\t3\nabc\r\n\r\n",
            ];
            let words =
                ["\r\n", "\n", " ", "MSG ", "-ERR", "18446744073709551615", "16777217", "\0", "é", "+OK\r\n", "-1"];
            let all = |pieces: &[&[u8]]| {
                let (mut parser, mut seen) = (Parser::default(), Vec::new());
                for piece in pieces {
                    parser.push(piece);
                    loop {
                        match parser.pull() {
                            Ok(Some(op)) => seen.push(Ok(op)),
                            Ok(None) => break,
                            Err(wrong) => {
                                seen.push(Err(wrong));
                                return seen;
                            }
                        }
                    }
                }
                seen
            };
            mutate(&seeds, &words, |bytes| {
                let whole = all(&[bytes]);
                assert!(whole.len() <= bytes.len() / 4 + 1);
                for split in splits(bytes.len()) {
                    let (head, tail) = bytes.split_at(split);
                    assert_eq!(all(&[head, tail]), whole, "split at {split}");
                }
                assert_eq!(all(&bytes.chunks(1).collect::<Vec<_>>()), whole, "byte by byte");
            });
        }
    }
}
