//! The bytes of an answer to a GET or a POST, and where they end.

use weir_wire::chunked::{ChunkEvent, Decoder};
use weir_wire::{BodyLength, Parser, Progress, ResponseHead, Span, connection};

/// Interim answers before the final one (RFC 9110 §15.2).
const INTERIM_MAX: usize = 8;

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The fields, names in lower case.
    pub fields: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Whether the connection may carry another exchange.
    pub is_kept: bool,
}

/// Reads an answer. `None` if its end is not there, and the server has not closed the connection; also the number of
/// bytes that belong to it.
///
/// # Errors
/// The bytes are not HTTP: the violation.
pub fn whole(bytes: &[u8], is_closed: bool) -> Result<Option<(Answer, usize)>, String> {
    let Some((at, head)) = head(bytes)? else { return Ok(None) };
    let own = bytes.get(at..).unwrap_or_default();
    let rest = own.get(head.len..).unwrap_or_default();
    let length = weir_wire::response_body(own, &head, b"GET").map_err(|violation| violation.to_string())?;
    let found = match length {
        BodyLength::None => Some((Vec::new(), 0)),
        BodyLength::Exact(length) => {
            usize::try_from(length).ok().and_then(|length| Some((rest.get(..length)?.to_vec(), length)))
        }
        BodyLength::UntilClose => is_closed.then(|| (rest.to_vec(), rest.len())),
        BodyLength::Chunked => chunks(rest)?,
    };
    let Some((body, length)) = found else { return Ok(None) };
    let text = |span: Span| String::from_utf8_lossy(span.of(own)).into_owned();
    let fields = head.fields.iter().map(|field| (text(field.name).to_ascii_lowercase(), text(field.value)));
    let is_kept = !is_closed && connection::answer_keeps_alive(own, &head);
    Ok(Some((Answer { status: head.status, fields: fields.collect(), body, is_kept }, at + head.len + length)))
}

/// The status of the final head; 0 if it is not there.
pub fn status(bytes: &[u8]) -> u16 {
    head(bytes).ok().flatten().map_or(0, |(_, head)| head.status)
}

/// The final head, and where it begins.
fn head(bytes: &[u8]) -> Result<Option<(usize, ResponseHead)>, String> {
    let mut at = 0;
    for _ in 0..INTERIM_MAX {
        let mut head = ResponseHead::default();
        match Parser::new().response(bytes.get(at..).unwrap_or_default(), &mut head) {
            Ok(Progress::Done) if head.is_interim() => at += head.len,
            Ok(Progress::Done) => return Ok(Some((at, head))),
            Ok(Progress::Partial { .. }) => return Ok(None),
            Err(violation) => return Err(violation.to_string()),
        }
    }
    Err("too many interim answers".to_owned())
}

/// The content of chunks, and the number of their bytes; `None` if the last one is not there.
fn chunks(rest: &[u8]) -> Result<Option<(Vec<u8>, usize)>, String> {
    let (mut decoder, mut at, mut parts) = (Decoder::new(), 0, Vec::new());
    loop {
        match decoder.next(rest, &mut at).map_err(|violation| violation.to_string())? {
            ChunkEvent::Data { start, end } => parts.push(start..end),
            ChunkEvent::NeedMore => return Ok(None),
            // Only now: this function looks again after each read, and would copy the same bytes again.
            ChunkEvent::End => {
                let mut body = Vec::new();
                parts.into_iter().for_each(|part| body.extend_from_slice(rest.get(part).unwrap_or_default()));
                return Ok(Some((body, at)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

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
                let _ = (whole(bytes, true), status(bytes));
            });
        }
    }
}
