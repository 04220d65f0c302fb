//! Compares weir's reading of whole connections with the model's (`model.rs`).
//!
//! A message that weir accepts has the same parts and ends for the model. A message that the model calls wrong is
//! refused by weir. weir may refuse more, but only messages of the forms that `Choice` lists.

use super::model::{self, Choice, End, Message, Reading, Sender, Treatment};
use weir_wire::chunked::{ChunkEvent, Decoder};
use weir_wire::{
    BodyLength, ConnectionTokens, Field, HeadPolicy, LastHost, Parser, Progress, RequestHead, ResponseHead, Version,
    Violation, answer_keeps_alive, keeps_alive, request_body, request_host, request_method, response_body,
};

/// weir's reading of a message.
enum Read {
    Message(Got),
    Incomplete,
    Refused(Violation),
}

/// The parts that the model has as well.
#[derive(Debug, PartialEq, Eq)]
struct Got {
    start: Vec<u8>,
    subject: Vec<u8>,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    head_end: usize,
    payload: Vec<u8>,
    end: End,
    persists: bool,
}

/// The bytes of a client's connection: requests, one after the other.
pub fn requests(data: &[u8]) {
    let mut at = 0;
    while at < data.len() {
        match compare(request(data, at), model::request(data, at), Sender::Client) {
            Some(next) => at = next,
            None => return,
        }
    }
}

/// The bytes of an origin's connection: answers to requests of some methods; the first byte chooses the methods.
pub fn answers(data: &[u8]) {
    let Some((choice, data)) = data.split_first() else { return };
    let methods = [&b"GET"[..], b"HEAD", b"POST", b"CONNECT"];
    let (mut at, mut number) = (0, usize::from(*choice));
    while at < data.len() {
        let method = methods[number % methods.len()];
        match compare(answer(data, at, method), model::answer(data, at, method), Sender::Origin) {
            Some(next) => {
                // The final answer to the same request follows an interim one.
                let is_interim =
                    matches!(model::answer(data, at, method), Reading::Message(found) if found.start.starts_with(b"1"));
                number += usize::from(!is_interim);
                at = next;
            }
            None => return,
        }
    }
}

/// Compares one message; returns the start of the next one, if there may be one.
fn compare(weir: Read, model: Reading, sender: Sender) -> Option<usize> {
    match (weir, model) {
        (Read::Message(weir), Reading::Message(model)) => {
            let is_refused = |choice: &&Choice| choice.of(sender) == Treatment::Refuses;
            let laxer = model.choices.iter().find(is_refused);
            assert_eq!(laxer, None, "weir took a message of a form that it is said to refuse");
            let is_interim = sender == Sender::Origin && model.start.starts_with(b"1");
            let (end, persists) = (model.end, model.persists);
            let wanted = got(model, weir.persists, is_interim);
            assert_eq!(weir, wanted, "weir (left) and the model read different messages");
            match end {
                End::At(next) if persists || is_interim => Some(next),
                End::At(_) | End::Later | End::InLine | End::Close => None,
            }
        }
        (Read::Message(weir), other) => {
            panic!("weir is laxer than RFC 9112: it took {weir:?}, the model says {other:?}")
        }
        (Read::Incomplete, Reading::Incomplete) => None,
        (Read::Incomplete, other) => panic!("weir waits for more bytes, the model says {other:?}"),
        (Read::Refused(_), Reading::Wrong(_) | Reading::Incomplete) => None,
        (Read::Refused(violation), Reading::Message(model)) => {
            let is_explained = model.choices.iter().any(|choice| choice.of(sender) != Treatment::Takes);
            assert!(
                is_explained || model.end == End::InLine,
                "weir is stricter than its list: {violation:?} of {model:?}"
            );
            None
        }
    }
}

/// The model's message in the form of weir's. An interim answer does not decide whether the connection goes on.
fn got(model: Message, persists: bool, is_interim: bool) -> Got {
    let Message { start, subject, fields, head_end, payload, end, .. } = model;
    let persists = if is_interim { persists } else { model.persists };
    // weir's reader has no place of its own for a body that ends within a line.
    let end = if end == End::InLine { End::Later } else { end };
    Got { start, subject, fields, head_end, payload, end, persists }
}

fn request(data: &[u8], at: usize) -> Read {
    let buf = &data[at..];
    let (mut parser, mut head) = (Parser::new(), RequestHead::new());
    match parser.request(buf, &HeadPolicy::default(), &mut head) {
        Ok(Progress::Done) => {}
        Ok(Progress::Partial { .. }) => return Read::Incomplete,
        Err(violation) => return Read::Refused(violation),
    }
    let read = || {
        // The rule of `http::head` for HTTP/0.9.
        if head.version == Version::Http09 && !buf[head.len..].trim_ascii().is_empty() {
            return Err(Violation::InvalidRequest);
        }
        request_host(buf, &head, &mut LastHost::default())?;
        let length = request_body(buf, &head)?;
        request_method(buf, &head, length, true)?;
        let (payload, end) = body(data, at + head.len, length, Decoder::of_client())?;
        Ok(Got {
            start: head.method.of(buf).to_vec(),
            subject: head.target.of(buf).to_vec(),
            fields: pairs(buf, &head.fields),
            head_end: at + head.len,
            payload,
            end,
            persists: keeps_alive(head.version, ConnectionTokens::of(buf, &head.fields)),
        })
    };
    read().map_or_else(Read::Refused, Read::Message)
}

fn answer(data: &[u8], at: usize, method: &[u8]) -> Read {
    let buf = &data[at..];
    let (mut parser, mut head) = (Parser::new(), ResponseHead::new());
    match parser.response(buf, &mut head) {
        Ok(Progress::Done) => {}
        Ok(Progress::Partial { .. }) => return Read::Incomplete,
        Err(violation) => return Read::Refused(violation),
    }
    let read = || {
        let length = response_body(buf, &head, method)?;
        let (payload, end) = body(data, at + head.len, length, Decoder::new())?;
        let is_tunnel = head.status == 101 || (method == b"CONNECT" && (200..300).contains(&head.status));
        Ok(Got {
            start: head.status.to_string().into_bytes(),
            subject: head.reason.of(buf).to_vec(),
            fields: pairs(buf, &head.fields),
            head_end: at + head.len,
            payload,
            end: if is_tunnel { End::Close } else { end },
            persists: answer_keeps_alive(buf, &head),
        })
    };
    read().map_or_else(Read::Refused, Read::Message)
}

fn pairs(buf: &[u8], fields: &[Field]) -> Vec<(Vec<u8>, Vec<u8>)> {
    fields.iter().map(|field| (field.name.of(buf).to_vec(), field.value.of(buf).to_vec())).collect()
}

fn body(data: &[u8], at: usize, length: BodyLength, mut decoder: Decoder) -> Result<(Vec<u8>, End), Violation> {
    let rest = &data[at..];
    Ok(match length {
        BodyLength::None => (Vec::new(), End::At(at)),
        BodyLength::UntilClose => (rest.to_vec(), End::Close),
        BodyLength::Exact(length) if length <= rest.len() as u64 => {
            (rest[..length as usize].to_vec(), End::At(at + length as usize))
        }
        BodyLength::Exact(_) => (rest.to_vec(), End::Later),
        BodyLength::Chunked => {
            let (mut payload, mut pos) = (Vec::new(), at);
            loop {
                match decoder.next(data, &mut pos)? {
                    ChunkEvent::Data { start, end } => payload.extend_from_slice(&data[start..end]),
                    ChunkEvent::NeedMore => return Ok((payload, End::Later)),
                    ChunkEvent::End => return Ok((payload, End::At(pos))),
                }
            }
        }
    })
}

/// Whether weir takes the message at the beginning of a client's connection.
pub fn takes_request(data: &[u8]) -> bool {
    matches!(request(data, 0), Read::Message(_))
}

/// Whether weir takes the answer at the beginning of an origin's connection.
pub fn takes_answer(data: &[u8], method: &[u8]) -> bool {
    matches!(answer(data, 0, method), Read::Message(_))
}
