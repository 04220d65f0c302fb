//! Replies, in version 2 of the protocol (<https://redis.io/docs/latest/develop/reference/protocol-spec/>).

use std::io::{self, BufRead, ErrorKind, Read};

/// Bytes of one reply, at most.
pub const BYTES_MAX: u64 = 16 << 20;

/// Values within one reply, at most.
pub const ITEMS_MAX: usize = 100_000;

/// How deep lists in a reply may nest.
pub const DEPTH_MAX: usize = 8;

/// A reply, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Nothing: the key is not there, or a wait was in vain.
    Nil,
    /// A number.
    Number(i64),
    /// Bytes, or a word such as `OK`.
    Text(Vec<u8>),
    /// A list.
    List(Vec<Value>),
    /// The server refuses the command: its words.
    Error(String),
}

impl Value {
    /// Reads one reply.
    ///
    /// # Errors
    /// The bytes end, are not in the protocol, or pass a bound. The rest of them cannot be read then.
    pub fn read(from: &mut impl BufRead) -> io::Result<Value> {
        Reader { from: from.take(BYTES_MAX), items: ITEMS_MAX }.value(DEPTH_MAX)
    }

    /// The items of a list; none for any other value.
    pub fn list(&self) -> &[Value] {
        match self {
            Value::List(values) => values,
            _ => &[],
        }
    }

    /// The bytes of a text; none for any other value.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Value::Text(bytes) => bytes,
            _ => &[],
        }
    }

    /// A text in UTF-8.
    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Text(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// A number, also one that is written as a text.
    pub fn number(&self) -> Option<i64> {
        match self {
            Value::Number(number) => Some(*number),
            other => other.text()?.parse().ok(),
        }
    }

    /// The first error in it: the reply to a transaction has those of its commands.
    pub fn error(&self) -> Option<&str> {
        match self {
            Value::Error(words) => Some(words),
            other => other.list().iter().find_map(Value::error),
        }
    }
}

/// The items of a list two by two: names and values of fields.
pub fn pairs(values: &[Value]) -> impl Iterator<Item = (&[u8], &[u8])> {
    values.as_chunks::<2>().0.iter().map(|[name, value]| (name.bytes(), value.bytes()))
}

struct Reader<R> {
    from: io::Take<R>,
    /// How many values the reply may still have.
    items: usize,
}

impl<R: BufRead> Reader<R> {
    fn value(&mut self, depth: usize) -> io::Result<Value> {
        self.items = self.items.checked_sub(1).ok_or_else(|| wrong("has too many values"))?;
        let line = self.line()?;
        let (kind, rest) = line.split_first().ok_or_else(|| wrong("has an empty line"))?;
        let text = || String::from_utf8_lossy(rest).into_owned();
        match kind {
            b'+' => Ok(Value::Text(rest.to_vec())),
            b'-' => Ok(Value::Error(text())),
            b':' => Ok(Value::Number(number(rest)?)),
            b'$' => self.bulk(number(rest)?),
            b'*' => self.items(number(rest)?, depth),
            _ => Err(wrong("is not in its protocol")),
        }
    }

    /// A line without its end.
    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        self.from.read_until(b'\n', &mut line)?;
        match line.strip_suffix(b"\r\n") {
            Some(text) => Ok(text.to_vec()),
            None => Err(self.cut()),
        }
    }

    fn bulk(&mut self, length: i64) -> io::Result<Value> {
        let Ok(length) = usize::try_from(length) else { return Ok(Value::Nil) };
        let mut bytes = Vec::new();
        self.from.by_ref().take(length as u64 + 2).read_to_end(&mut bytes)?;
        if bytes.len() != length + 2 {
            return Err(self.cut());
        }
        match bytes.ends_with(b"\r\n") {
            true => bytes.truncate(length),
            false => return Err(wrong("is not in its protocol")),
        }
        Ok(Value::Text(bytes))
    }

    fn items(&mut self, count: i64, depth: usize) -> io::Result<Value> {
        let Ok(count) = usize::try_from(count) else { return Ok(Value::Nil) };
        let depth = depth.checked_sub(1).ok_or_else(|| wrong("nests too deep"))?;
        if count > self.items {
            return Err(wrong("has too many values"));
        }
        (0..count).map(|_| self.value(depth)).collect::<io::Result<Vec<Value>>>().map(Value::List)
    }

    /// Why bytes are missing.
    fn cut(&self) -> io::Error {
        match self.from.limit() {
            0 => wrong("is too large"),
            _ => io::Error::new(ErrorKind::UnexpectedEof, "the server closed the connection"),
        }
    }
}

fn number(text: &[u8]) -> io::Result<i64> {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or_else(|| wrong("is not in its protocol"))
}

fn wrong(how: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the server's answer {how}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(mut bytes: &[u8]) -> Result<Value, String> {
        let value = Value::read(&mut bytes).map_err(|error| error.to_string())?;
        assert!(bytes.is_empty(), "{value:?} left {bytes:?}");
        Ok(value)
    }

    #[test]
    fn each_kind_of_reply_is_read() {
        let text = |text: &str| Value::Text(text.into());
        for (bytes, value) in [
            ("+OK\r\n", text("OK")),
            ("-ERR no\r\n", Value::Error("ERR no".to_owned())),
            (":-7\r\n", Value::Number(-7)),
            ("$4\r\na\r\nb\r\n", text("a\r\nb")),
            ("$0\r\n\r\n", text("")),
            ("$-1\r\n", Value::Nil),
            ("*-1\r\n", Value::Nil),
            ("*2\r\n:1\r\n*1\r\n+a\r\n", Value::List(vec![Value::Number(1), Value::List(vec![text("a")])])),
        ] {
            assert_eq!(read(bytes.as_bytes()), Ok(value), "{bytes}");
        }
        assert_eq!(read(b"*2\r\n:1\r\n*1\r\n-no\r\n").unwrap().error(), Some("no"));
        assert_eq!((text("12").number(), text("x").number(), Value::Nil.number()), (Some(12), None, None));
    }

    #[test]
    fn what_is_no_reply_is_an_error_with_a_reason() {
        let deep = "*1\r\n".repeat(DEPTH_MAX + 1) + ":1\r\n";
        let many = format!("*{}\r\n", ITEMS_MAX + 1);
        let nested = format!("*2\r\n*{}\r\n{}:1\r\n", ITEMS_MAX - 2, ":1\r\n".repeat(ITEMS_MAX - 2));
        let large = format!("${}\r\n{}\r\n", BYTES_MAX, "x".repeat(BYTES_MAX as usize));
        for (bytes, why) in [
            ("", "closed the connection"),
            ("+OK\r", "closed the connection"),
            ("$4\r\nabc\r\n", "closed the connection"),
            ("+OK\n", "closed the connection"),
            ("\r\n", "empty line"),
            ("%1\r\n", "not in its protocol"),
            (":x\r\n", "not in its protocol"),
            ("$2\r\nabcd", "not in its protocol"),
            (&deep, "nests too deep"),
            (&many, "too many values"),
            (&nested, "too many values"),
            (&large, "too large"),
        ] {
            let said = read(bytes.as_bytes()).unwrap_err();
            assert!(said.contains(why), "{}: {said}", &bytes[..bytes.len().min(40)]);
        }
    }
}
