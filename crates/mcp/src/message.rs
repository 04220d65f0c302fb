//! JSON-RPC 2.0 in lines: reads a message within bounds, and makes responses.
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio>

use std::io::{self, BufRead};

use serde_json::{Value, json};

/// Most bytes of a message. A longer one is refused, and its bytes are not kept.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// The code of JSON-RPC for bytes that are no JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The code of JSON-RPC for JSON that is no request.
pub const INVALID_REQUEST: i64 = -32600;
/// The code of JSON-RPC for a method that this server does not have.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The code of JSON-RPC for wrong parameters.
pub const INVALID_PARAMS: i64 = -32602;
/// The code of the protocol for a version that this server does not have.
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// The content of a line.
#[derive(Debug, PartialEq)]
pub enum Incoming {
    /// A request: its id, the method, the parameters.
    Request(Value, String, Value),
    /// A notification: the method, the parameters.
    Notification(String, Value),
    /// An answer of the client, or an empty line. Nothing is to be done.
    Nothing,
    /// No message: the response that says why.
    Wrong(Value),
}

/// Reads the next message. `None`: the input has ended.
///
/// # Errors
/// The input cannot be read.
pub fn next(input: &mut impl BufRead) -> io::Result<Option<Incoming>> {
    let mut line = Vec::new();
    let mut is_long = false;
    loop {
        let chunk = input.fill_buf()?;
        if chunk.is_empty() {
            return Ok(if line.is_empty() && !is_long { None } else { Some(read(&line, is_long)) });
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
        let used = part.len() + usize::from(end.is_some());
        is_long |= line.len() + part.len() > MESSAGE_BYTES_MAX;
        match is_long {
            true => line = Vec::new(),
            false => line.extend_from_slice(part),
        }
        input.consume(used);
        if end.is_some() {
            return Ok(Some(read(&line, is_long)));
        }
    }
}

fn read(line: &[u8], is_long: bool) -> Incoming {
    if is_long {
        let why = format!("a message has more than {MESSAGE_BYTES_MAX} bytes: name files instead of sending them");
        return Incoming::Wrong(error(&Value::Null, INVALID_REQUEST, &why, Value::Null));
    }
    if line.iter().all(u8::is_ascii_whitespace) {
        return Incoming::Nothing;
    }
    let Ok(message) = serde_json::from_slice::<Value>(line) else {
        return Incoming::Wrong(error(&Value::Null, PARSE_ERROR, "a line that is no JSON", Value::Null));
    };
    let (id, method) = (message["id"].clone(), message["method"].as_str().map(str::to_owned));
    let wrong = |why: &str| {
        let id = if is_id(&id) { &id } else { &Value::Null };
        Incoming::Wrong(error(id, INVALID_REQUEST, why, Value::Null))
    };
    let params = message["params"].clone();
    match method {
        _ if !message.is_object() => wrong("a message is one JSON object"),
        // This server sends no requests, so there is nothing to answer.
        None if message.get("result").is_some() || message.get("error").is_some() => Incoming::Nothing,
        _ if message["jsonrpc"] != "2.0" => wrong("a message needs \"jsonrpc\": \"2.0\""),
        None => wrong("a message needs a method"),
        Some(_) if !(params.is_null() || params.is_object()) => wrong("params are an object"),
        Some(method) if message.get("id").is_none() => Incoming::Notification(method, params),
        Some(method) if is_id(&id) => Incoming::Request(id, method, params),
        Some(_) => wrong("an id is a text or a whole number"),
    }
}

/// Whether a value may be the id of a request.
fn is_id(id: &Value) -> bool {
    id.is_i64() || id.is_u64() || id.as_str().is_some_and(|text| text.len() <= 256)
}

/// The response with a result.
pub fn response(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// The response with an error. `Null` as the data means none.
pub fn error(id: &Value, code: i64, why: &str, data: Value) -> Value {
    let mut error = json!({"code": code, "message": why});
    if !data.is_null() {
        error["data"] = data;
    }
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use std::io::Cursor;

    fn all(text: &str) -> Vec<Incoming> {
        let mut input = io::BufReader::with_capacity(7, Cursor::new(text.to_owned()));
        std::iter::from_fn(|| next(&mut input).unwrap()).collect()
    }

    fn code(one: &Incoming) -> i64 {
        match one {
            Incoming::Wrong(response) => response["error"]["code"].as_i64().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_line_is_a_message() {
        let text =
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":{}}\n\r\n{\"jsonrpc\":\"2.0\",\"method\":\"b\"}";
        assert_eq!(
            all(text),
            [
                Incoming::Request(json!(1), "a".to_owned(), json!({})),
                Incoming::Nothing,
                Incoming::Notification("b".to_owned(), Value::Null)
            ]
        );
    }

    #[test]
    fn what_is_no_message_is_refused_by_name() {
        for (text, expect) in [
            ("{", PARSE_ERROR),
            ("\u{0}", PARSE_ERROR),
            ("[1]", INVALID_REQUEST),
            ("\"text\"", INVALID_REQUEST),
            ("{\"id\":1,\"method\":\"a\"}", INVALID_REQUEST),
            ("{\"jsonrpc\":\"2.0\",\"id\":1}", INVALID_REQUEST),
            ("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"a\"}", INVALID_REQUEST),
            ("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"a\"}", INVALID_REQUEST),
            ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":[1]}", INVALID_REQUEST),
        ] {
            assert_eq!(code(&all(text)[0]), expect, "{text}");
        }
        assert_eq!(code(&all(&"[".repeat(200_000))[0]), PARSE_ERROR);
        assert_eq!(all("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"), [Incoming::Nothing]);
    }

    #[test]
    fn a_long_message_is_refused_and_the_next_one_read() {
        let text = format!("{}\n{{\"jsonrpc\":\"2.0\",\"method\":\"b\"}}\n", "x".repeat(MESSAGE_BYTES_MAX + 1));
        let all = all(&text);
        assert_eq!(code(&all[0]), INVALID_REQUEST);
        assert_eq!(all[1..], [Incoming::Notification("b".to_owned(), Value::Null)]);
    }
}
