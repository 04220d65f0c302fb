//! The bytes of an answer to a GET or a POST, and where they end.

use weir_wire::chunked::{ChunkEvent, Decoder};
use weir_wire::{BodyLength, Parser, Progress, ResponseHead, Span, connection};

/// Interim answers before the final one (RFC 9110 §15.2).
const INTERIM_MAX: usize = 8;

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchedAnswer {
    /// The status.
    pub status: u16,
    /// The fields, names in lower case.
    pub fields: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Whether the connection may carry another exchange.
    pub is_kept: bool,
}

/// An answer while its bytes arrive. The work is linear in their number, however they arrive.
#[derive(Default)]
pub struct Arriving {
    parser: Parser,
    head: ResponseHead,
    /// Where the head begins: behind the interim answers.
    begin: usize,
    interim: usize,
    /// The length of the body; `None` until the final head is complete.
    length: Option<BodyLength>,
    chunks: Decoder,
    /// Bytes of chunks that are decoded, and their content.
    decoded: usize,
    content: Vec<u8>,
}

impl Arriving {
    /// Reads on. `bytes` are all that arrived: those of the last call, and more. `None` if the answer's end is not there,
    /// and the server has not closed the connection; also the number of bytes that belong to the answer.
    ///
    /// # Errors
    /// The bytes are not HTTP: the violation.
    pub fn read(&mut self, bytes: &[u8], is_closed: bool) -> Result<Option<(FetchedAnswer, usize)>, String> {
        let Some(length) = self.length(bytes)? else { return Ok(None) };
        let own = bytes.get(self.begin..).unwrap_or_default();
        let rest = own.get(self.head.len..).unwrap_or_default();
        let found = match length {
            BodyLength::None => Some(0),
            BodyLength::Exact(length) => usize::try_from(length).ok().filter(|length| *length <= rest.len()),
            BodyLength::UntilClose => is_closed.then_some(rest.len()),
            BodyLength::Chunked => self.decode(rest)?.then_some(self.decoded),
        };
        let Some(end) = found else { return Ok(None) };
        let body = match length {
            BodyLength::Chunked => std::mem::take(&mut self.content),
            _ => rest.get(..end).unwrap_or_default().to_vec(),
        };
        let head = &self.head;
        let text = |span: Span| String::from_utf8_lossy(span.of(own)).into_owned();
        let fields = head.fields.iter().map(|field| (text(field.name).to_ascii_lowercase(), text(field.value)));
        let is_kept = !is_closed && connection::answer_keeps_alive(own, head);
        let answer = FetchedAnswer { status: head.status, fields: fields.collect(), body, is_kept };
        Ok(Some((answer, self.begin + head.len + end)))
    }

    /// The status of the final head; 0 if it is not there.
    pub fn status(&self) -> u16 {
        self.length.map_or(0, |_| self.head.status)
    }

    /// The length of the body, once the final head is there.
    fn length(&mut self, bytes: &[u8]) -> Result<Option<BodyLength>, String> {
        while self.length.is_none() {
            let own = bytes.get(self.begin..).unwrap_or_default();
            match self.parser.response(own, &mut self.head).map_err(|violation| violation.to_string())? {
                Progress::Partial { .. } => break,
                Progress::Done if self.head.is_interim() => {
                    self.interim += 1;
                    if self.interim == INTERIM_MAX {
                        return Err("too many interim answers".to_owned());
                    }
                    self.begin += self.head.len;
                    self.parser.reset();
                }
                Progress::Done => {
                    let length = weir_wire::response_body(own, &self.head, b"GET");
                    self.length = Some(length.map_err(|violation| violation.to_string())?);
                }
            }
        }
        Ok(self.length)
    }

    /// Decodes chunks; true if the last one is there.
    fn decode(&mut self, rest: &[u8]) -> Result<bool, String> {
        loop {
            match self.chunks.next(rest, &mut self.decoded).map_err(|violation| violation.to_string())? {
                ChunkEvent::Data { start, end } => {
                    self.content.extend_from_slice(rest.get(start..end).unwrap_or_default());
                }
                ChunkEvent::NeedMore => return Ok(false),
                ChunkEvent::End => return Ok(true),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn whole(bytes: &[u8], is_closed: bool) -> Result<Option<(FetchedAnswer, usize)>, String> {
        Arriving::default().read(bytes, is_closed)
    }

    fn read(text: &str, is_closed: bool) -> Option<(u16, String, usize)> {
        let (answer, length) = whole(text.as_bytes(), is_closed).ok()??;
        Some((answer.status, String::from_utf8(answer.body).unwrap(), length))
    }

    #[test]
    fn bodies_end_as_their_heads_say() {
        let more = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1";
        for (text, is_closed, wanted) in [
            (more, false, Some((200, "abc", more.len() - 8))),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", false, None),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", true, None),
            ("HTTP/1.0 200 OK\r\n\r\nabc", false, None),
            ("HTTP/1.0 200 OK\r\n\r\nabc", true, Some((200, "abc", 22))),
            ("HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", false, Some((404, "ab", 59))),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", true, None),
            ("HTTP/1.1 204 No\r\n\r\n", false, Some((204, "", 19))),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", false, Some((200, "a", 64))),
        ] {
            let wanted = wanted.map(|(status, body, length)| (status, body.to_owned(), length));
            assert_eq!(read(text, is_closed), wanted, "{text}");
        }
        assert!(whole(b"220 smtp\r\n", false).is_err());
        assert!(whole("HTTP/1.1 100 Continue\r\n\r\n".repeat(20).as_bytes(), false).is_err());
    }

    #[test]
    fn names_are_in_lower_case_and_a_close_is_noted() {
        let answer = |text: &[u8]| whole(text, false).unwrap().unwrap().0;
        let kept = answer(b"HTTP/1.1 201 Created\r\nReplay-Nonce: aB\r\nContent-Length: 0\r\n\r\n");
        assert_eq!((kept.fields.first().unwrap(), kept.is_kept), (&("replay-nonce".into(), "aB".into()), true));
        assert!(!answer(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").is_kept);
    }

    mod mutate {
        use super::*;

        /// Answers of servers: what is read is no longer than the bytes, and stays the same when more follow.
        #[test]
        fn answers() {
            let seeds = [
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
                "HTTP/1.0 204 No\r\n\r\n",
            ];
            let words = ["\r\n", "HTTP/1.1 ", "Content-Length: ", "0\r\n", "99999999999999999999", "chunked", ";", ":"];
            weir_mutate::mutate(&seeds, &words, |bytes| {
                if let Ok(Some((answer, length))) = whole(bytes, false) {
                    assert!(length <= bytes.len() && answer.body.len() <= length);
                    assert_eq!(whole(&[bytes, b"more"].concat(), false), Ok(Some((answer, length))));
                }
                let mut arriving = Arriving::default();
                let mut piecewise = (0..=bytes.len()).map(|length| arriving.read(bytes.get(..length).unwrap(), false));
                let first = piecewise.find(|read| *read != Ok(None)).unwrap_or(Ok(None));
                assert_eq!(first, whole(bytes, false));
                let _ = whole(bytes, true);
            });
        }
    }
}
