//! An exchange as it is recorded.

use std::sync::Arc;

use weir_http::exchange::Exchange;
use weir_http::exchange::message::Try;
use weir_http::send::head_out;
use weir_net::{buffer, clock};
use weir_recording::model::{
    RecordedAnswer, RecordedBody, RecordedExchange, RecordedField, RecordedText, RecordedTry, RecordedVersion,
};
use weir_wire::{BodyLength, Version};

use super::run::RecordRun;

/// The exchange, at its end.
pub fn recorded(exchange: &mut Exchange<'_>, run: &RecordRun, client: u64) -> RecordedExchange {
    let answer = (exchange.bytes.sent > 0).then(|| answer(exchange));
    let (request, facts) = (&*exchange.request, &exchange.facts);
    RecordedExchange {
        at_us: facts.started.us_since(run.begun),
        client,
        connection: exchange.client.number,
        version: version(request.version()),
        is_tls: exchange.client.facts().is_some(),
        port: exchange.client.local().tcp().map_or(0, |local| local.port()),
        method: request.text(request.head.method).to_vec(),
        target: RecordedText::plain(request.target()),
        fields: request
            .fields()
            .iter()
            .map(|field| field_of(request.text(field.name), request.text(field.value)))
            .collect(),
        body: RecordedBody { length: request_length(exchange), hash: None, kept: None },
        answer,
        is_cut: !exchange.flags.complete,
        took_us: clock::now().us_since(facts.started),
        tries: exchange.tries.iter().map(tried).collect(),
        cache: exchange.cache.status.map(|status| status.as_str().to_owned()),
        generation: exchange.conf.generation.into(),
        location: exchange.location.id.0,
        tunnel: 0,
    }
}

fn version(version: Version) -> RecordedVersion {
    match version {
        Version::Http09 | Version::Http10 => RecordedVersion::Http10,
        Version::Http11 => RecordedVersion::Http11,
        Version::Http2 => RecordedVersion::Http2,
        Version::Http3 => RecordedVersion::Http3,
    }
}

fn field_of(name: &[u8], value: &[u8]) -> RecordedField {
    RecordedField { name: name.to_ascii_lowercase(), value: RecordedText::plain(value) }
}

/// The length of the request's body, as far as the client has sent it.
fn request_length(exchange: &Exchange<'_>) -> u64 {
    match (exchange.request.length, &exchange.reader) {
        (_, Some(reader)) => reader.taken(),
        (Some(BodyLength::Exact(length)), None) => length,
        (_, None) => exchange.body.length(),
    }
}

fn answer(exchange: &mut Exchange<'_>) -> RecordedAnswer {
    let mut head = buffer::lease(0);
    head_out::again(exchange, &mut head);
    let is_framed = exchange.request.version().is_framed();
    let lines = head.split(|byte| *byte == b'\n').skip(1).map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let mut fields: Vec<RecordedField> = lines
        .filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let (name, value) = (line.get(..colon)?, line.get(colon + 1..)?.trim_ascii());
            // Fields about a connection of HTTP/1.1, which a stream has not.
            (!is_framed || !is_of_connection(name)).then(|| field_of(name, value))
        })
        .collect();
    fields.extend(exchange.response.trailers.iter().map(|field| field_of(field.name, field.value)));
    RecordedAnswer {
        status: exchange.response.status.get(),
        fields: Arc::from(fields),
        body: RecordedBody { length: exchange.bytes.body_sent, hash: None, kept: None },
    }
}

fn is_of_connection(name: &[u8]) -> bool {
    let names: [&[u8]; 5] = [b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"proxy-connection"];
    names.iter().any(|known| name.eq_ignore_ascii_case(known))
}

fn tried(attempt: &Try) -> RecordedTry {
    RecordedTry { peer: attempt.peer.to_string(), status: attempt.status, took_us: attempt.response_us }
}
