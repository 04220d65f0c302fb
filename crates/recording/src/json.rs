//! Parts as JSON, for programs and for people.

use serde_json::{Value, json};

use crate::model::{
    Losses, RecordedBody, RecordedExchange, RecordedField, RecordedText, RecordedTry, RecordedVersion, RecordingPart,
};

/// A part as JSON. A text that is UTF-8 is a string, another one is `{"hex": …}`, and one with hidden places is
/// `{"text": …, "hidden": [begin, end, …]}`.
pub fn to_json(part: &RecordingPart) -> Value {
    match part {
        RecordingPart::Beginning(b) => json!({
            "kind": "beginning", "unix_us": b.unix_us, "program": b.program, "share_ppm": b.share_ppm,
            "key_id": b.key_id, "has_bodies": b.has_bodies,
        }),
        RecordingPart::Configuration(c) => json!({
            "kind": "configuration", "generation": c.generation, "path": c.path, "locations": c.locations,
        }),
        RecordingPart::Exchange(exchange) => of_exchange(exchange),
        RecordingPart::Message(m) => json!({
            "kind": "message", "at_us": m.at_us, "tunnel": m.tunnel, "is_of_client": m.is_of_client,
            "is_binary": m.is_binary, "content": body(&m.content),
        }),
        RecordingPart::Lost(lost) => json!({"kind": "lost", "lost": losses(lost)}),
        RecordingPart::Ending(e) => json!({
            "kind": "ending", "at_us": e.at_us, "exchanges": e.exchanges, "recorded": e.recorded, "lost": losses(&e.lost),
        }),
    }
}

fn of_exchange(x: &RecordedExchange) -> Value {
    let answer = x.answer.as_ref();
    let answer = answer.map(|a| json!({"status": a.status, "fields": fields(&a.fields), "body": body(&a.body)}));
    let tries = x
        .tries
        .iter()
        .map(|RecordedTry { peer, status, took_us }| json!({"peer": peer, "status": status, "took_us": took_us}));
    json!({
        "kind": "exchange", "at_us": x.at_us, "client": x.client, "connection": x.connection,
        "version": version(x.version), "is_tls": x.is_tls, "port": x.port, "method": bytes(&x.method),
        "target": text(&x.target), "fields": fields(&x.fields), "body": body(&x.body), "answer": answer,
        "is_cut": x.is_cut, "took_us": x.took_us, "tries": tries.collect::<Vec<_>>(), "cache": x.cache,
        "generation": x.generation, "location": x.location, "tunnel": x.tunnel,
    })
}

fn fields(fields: &[RecordedField]) -> Value {
    fields.iter().map(|field| json!([bytes(&field.name), text(&field.value)])).collect()
}

fn body(body: &RecordedBody) -> Value {
    json!({"length": body.length, "hash": body.hash, "kept": body.kept.as_ref().map(text)})
}

fn losses(losses: &Losses) -> Value {
    let Losses { queue, size, writing, large } = losses;
    json!({"queue": queue, "size": size, "writing": writing, "large": large})
}

fn version(version: RecordedVersion) -> &'static str {
    match version {
        RecordedVersion::Http10 => "1.0",
        RecordedVersion::Http11 => "1.1",
        RecordedVersion::Http2 => "2",
        RecordedVersion::Http3 => "3",
    }
}

fn text(text: &RecordedText) -> Value {
    let bytes = bytes(&text.bytes);
    if text.hidden.is_empty() {
        return bytes;
    }
    let hidden: Vec<u32> = text.hidden.iter().flat_map(|(begin, end)| [*begin, *end]).collect();
    match bytes {
        Value::String(text) => json!({"text": text, "hidden": hidden}),
        mut other => {
            other["hidden"] = json!(hidden);
            other
        }
    }
}

fn bytes(bytes: &[u8]) -> Value {
    match str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({"hex": bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()}),
    }
}
