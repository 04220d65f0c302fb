//! Messages between controller and agents: a line of JSON, then bytes. Also the channels of these messages.

use serde_json::{Map, Value};

/// Channel of the messages of controllers to all agents. Each message names its run; agents of other runs ignore it.
pub const AGENTS: &str = "weir.v1.agents";

/// Channel of the agents' messages to the controller of a run.
pub fn up(run: &str) -> String {
    format!("weir.v1.run.{run}")
}

/// Channel of the messages to one agent.
pub fn seat(agent: &str) -> String {
    format!("weir.v1.agent.{agent}")
}

/// Longest name of a run or id of an agent.
const TOKEN_BYTES_MAX: usize = 64;

/// True if the text is safe as part of a channel's name, so that no name reaches the channel of another.
pub fn is_token(text: &str) -> bool {
    (1..=TOKEN_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub struct Letter {
    head: Map<String, Value>,
    /// The bytes after the line.
    pub body: Vec<u8>,
}

impl Letter {
    /// A message of this kind from this sender.
    pub fn new(kind: &str, from: &str) -> Letter {
        let head = [("kind".to_owned(), kind.into()), ("from".to_owned(), from.into())];
        Letter { head: head.into_iter().collect(), body: Vec::new() }
    }

    /// Adds a member.
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Letter {
        self.head.insert(key.to_owned(), value.into());
        self
    }

    /// Sets the body.
    pub fn body(self, body: Vec<u8>) -> Letter {
        Letter { body, ..self }
    }

    /// The message as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(&self.head).unwrap_or_default();
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.body);
        bytes
    }

    /// Reads the bytes of [`Letter::encode`]; `None` for anything else.
    pub fn decode(bytes: &[u8]) -> Option<Letter> {
        let end = memchr::memchr(b'\n', bytes)?;
        let head = serde_json::from_slice(bytes.get(..end)?).ok()?;
        Some(Letter { head, body: bytes.get(end + 1..)?.to_vec() })
    }

    /// The kind of the message.
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

    /// A boolean; false if there is none.
    pub fn is(&self, key: &str) -> bool {
        self.head.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    /// Any value.
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
        let tokens = ["", "a.b", "a b", "x\r\nPING", "*", &"a".repeat(65)].map(is_token);
        assert_eq!((tokens, is_token("a1Z")), ([false; 6], true));
    }

    mod mutate {
        use super::*;
        /// A message of an agent: it is read and written as the same one, or it is none.
        #[test]
        fn letters() {
            let seeds = [Letter::new("job", "a").with("n", 5).body(b"body".to_vec()).encode(), b"{}\n".to_vec()];
            weir_mutate::mutate(&seeds, &["\n", "{", "}", ":", "\"", "null", "-1", "1e999", "\0", "é"], |bytes| {
                if let Some(letter) = Letter::decode(bytes) {
                    let again = Letter::decode(&letter.encode()).unwrap();
                    assert_eq!(
                        (again.kind(), again.number("n"), again.body.len()),
                        (letter.kind(), letter.number("n"), letter.body.len())
                    );
                }
            });
        }
    }
}
