//! What controller and agents write to each other: a line of JSON, then bytes. And the subjects it travels on.

use serde_json::{Map, Value};

/// Where a controller asks for agents.
pub const CALL: &str = "weir.v1.call";

/// Where the agents of a run write to its controller.
pub fn up(run: &str) -> String {
    format!("weir.v1.run.{run}.up")
}

/// Where the controller of a run writes to all its agents.
pub fn down(run: &str) -> String {
    format!("weir.v1.run.{run}.down")
}

/// Where one agent is written to.
pub fn seat(agent: &str) -> String {
    format!("weir.v1.agent.{agent}")
}

/// The longest name of a run or an agent's number.
const TOKEN_BYTES_MAX: usize = 64;

/// Whether a text may be part of a subject: whoever names runs and agents does not write protocol.
pub fn is_token(text: &str) -> bool {
    (1..=TOKEN_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub struct Letter {
    head: Map<String, Value>,
    /// What follows the line.
    pub body: Vec<u8>,
}

impl Letter {
    /// One of a kind, from somebody.
    pub fn new(kind: &str, from: &str) -> Letter {
        let head = [("kind".to_owned(), kind.into()), ("from".to_owned(), from.into())];
        Letter { head: head.into_iter().collect(), body: Vec::new() }
    }

    /// With a member more.
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Letter {
        self.head.insert(key.to_owned(), value.into());
        self
    }

    /// With these bytes.
    pub fn body(self, body: Vec<u8>) -> Letter {
        Letter { body, ..self }
    }

    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(&self.head).unwrap_or_default();
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.body);
        bytes
    }

    /// Reads what [`Letter::encode`] wrote; `None` for anything else.
    pub fn decode(bytes: &[u8]) -> Option<Letter> {
        let end = memchr::memchr(b'\n', bytes)?;
        let head = serde_json::from_slice(bytes.get(..end)?).ok()?;
        Some(Letter { head, body: bytes.get(end + 1..)?.to_vec() })
    }

    /// What it is about.
    pub fn kind(&self) -> &str {
        self.text("kind")
    }

    /// A text; empty if there is none.
    pub fn text(&self, key: &str) -> &str {
        self.head.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// A whole number.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.head.get(key)?.as_u64()
    }

    /// A whole number that may be below zero.
    pub fn signed(&self, key: &str) -> Option<i64> {
        self.head.get(key)?.as_i64()
    }

    /// Yes or no; no if it is not said.
    pub fn is(&self, key: &str) -> bool {
        self.head.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    /// Anything.
    pub fn value(&self, key: &str) -> &Value {
        self.head.get(key).unwrap_or(&Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_give_it_back() {
        let letter = Letter::new("tick", "a1").with("seq", 7).with("ahead", -3).with("last", true);
        let letter = letter.body(b"x\ny".to_vec());
        let read = Letter::decode(&letter.encode()).unwrap();
        assert_eq!(read, letter);
        assert_eq!((read.kind(), read.text("from"), read.number("seq")), ("tick", "a1", Some(7)));
        assert_eq!((read.signed("ahead"), read.number("ahead"), read.is("last")), (Some(-3), None, true));
        assert_eq!((read.text("seq"), read.number("nothing"), read.is("seq")), ("", None, false));
    }

    #[test]
    fn other_bytes_are_refused() {
        for bytes in [&b""[..], b"{}", b"[]\n", b"{\n", b"\xff\n"] {
            assert_eq!(Letter::decode(bytes), None, "{bytes:?}");
        }
        let tokens = ["", "a.b", "a b", "x\r\nPUB y 0", "*", &"a".repeat(65)].map(is_token);
        assert_eq!((tokens, is_token("a1Z")), ([false; 6], true));
    }
}
