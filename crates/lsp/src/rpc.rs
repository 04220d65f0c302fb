//! JSON-RPC 2.0: the kinds of messages, and their errors.

use serde_json::{Value, json};

/// A message that came from the client.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientMessage {
    /// A request; it gets exactly one answer.
    Request {
        /// Its id: a number or a text.
        id: Value,
        /// Its method.
        method: String,
        /// Its parameters.
        params: Value,
    },
    /// A notification; it gets no answer.
    Notification {
        /// Its method.
        method: String,
        /// Its parameters.
        params: Value,
    },
    /// The answer of a request of the server.
    Answer {
        /// The id of the request.
        id: Value,
        /// Its result; null for an error.
        result: Value,
    },
}

/// An error for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    /// Its code.
    pub code: i64,
    /// Its text.
    pub message: String,
}

impl RpcError {
    /// The bytes are no JSON.
    pub const PARSE: i64 = -32700;
    /// The JSON is no request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// There is no such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters have another form.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The server made a mistake.
    pub const INTERNAL: i64 = -32603;
    /// A request came before `initialize`.
    pub const NOT_INITIALIZED: i64 = -32002;
    /// The request is right, and cannot be done.
    pub const REQUEST_FAILED: i64 = -32803;
    /// The server ended the request.
    pub const SERVER_CANCELLED: i64 = -32802;
    /// The client ended the request.
    pub const CANCELLED: i64 = -32800;

    /// An error.
    pub fn new(code: i64, message: impl Into<String>) -> RpcError {
        RpcError { code, message: message.into() }
    }

    /// The parameters lack something.
    pub fn lacks(what: &str) -> RpcError {
        RpcError::new(RpcError::INVALID_PARAMS, format!("the parameters have no valid {what}"))
    }
}

/// Reads a message. The error has the id that its answer needs, null if there is none.
///
/// # Errors
/// The bytes are no message.
pub fn parse(bytes: &[u8]) -> Result<ClientMessage, (Value, RpcError)> {
    let not_json = |error: serde_json::Error| (Value::Null, RpcError::new(RpcError::PARSE, error.to_string()));
    let mut message: Value = serde_json::from_slice(bytes).map_err(not_json)?;
    let Some(fields) = message.as_object_mut() else {
        return Err((Value::Null, RpcError::new(RpcError::INVALID_REQUEST, "a message is a JSON object")));
    };
    let id = fields.remove("id").filter(|id| id.is_i64() || id.is_u64() || id.is_string());
    let method = fields.remove("method");
    let params = fields.remove("params").unwrap_or_default();
    let refused = |what: &str| Err((id.clone().unwrap_or_default(), RpcError::new(RpcError::INVALID_REQUEST, what)));
    match (method, id.clone()) {
        (Some(Value::String(method)), Some(id)) => Ok(ClientMessage::Request { id, method, params }),
        (Some(Value::String(method)), None) => Ok(ClientMessage::Notification { method, params }),
        (Some(_), _) => refused("the method is a text"),
        (None, Some(id)) if fields.contains_key("result") || fields.contains_key("error") => {
            Ok(ClientMessage::Answer { id, result: fields.remove("result").unwrap_or_default() })
        }
        (None, _) => refused("a message has a method, or an id and a result"),
    }
}

/// The answer of a request.
pub fn answer(id: &Value, result: Result<Value, RpcError>) -> Value {
    match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(RpcError { code, message }) => {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
        }
    }
}

/// A notification of the server.
pub fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// A request of the server.
pub fn request(id: &str, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_of_messages_are_told_apart() {
        let request = parse(br#"{"jsonrpc":"2.0","id":7,"method":"m","params":[1]}"#);
        assert_eq!(request, Ok(ClientMessage::Request { id: json!(7), method: "m".into(), params: json!([1]) }));
        let notification = parse(br#"{"jsonrpc":"2.0","method":"m"}"#);
        assert_eq!(notification, Ok(ClientMessage::Notification { method: "m".into(), params: Value::Null }));
        let answer = parse(br#"{"jsonrpc":"2.0","id":"a","error":{"code":1}}"#);
        assert_eq!(answer, Ok(ClientMessage::Answer { id: json!("a"), result: Value::Null }));
    }

    #[test]
    fn what_is_no_message_gets_its_error() {
        for (text, id, code) in [
            ("", Value::Null, RpcError::PARSE),
            ("{", Value::Null, RpcError::PARSE),
            ("[]", Value::Null, RpcError::INVALID_REQUEST),
            (r#"{"id":3}"#, json!(3), RpcError::INVALID_REQUEST),
            (r#"{"id":"x","method":4}"#, json!("x"), RpcError::INVALID_REQUEST),
            (r#"{"id":{"a":1},"result":1}"#, Value::Null, RpcError::INVALID_REQUEST),
        ] {
            let error = parse(text.as_bytes()).map_err(|(id, error)| (id, error.code));
            assert_eq!(error, Err((id, code)), "{text}");
        }
        // serde_json ends at a depth, so no message exhausts the stack.
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
    }
}
