//! Messages in bytes: header lines, an empty line, JSON.
//!
//! A message that is too large is skipped and never held. A header without a length is skipped up to its empty line; so the
//! reader finds the next message after rubbish that ends with one.

use std::io::{self, BufRead, Read, Write};

/// Most bytes of one message; a document of the largest size fits, with its escapes.
pub const MESSAGE_BYTES_MAX: u64 = 16 << 20;

/// Most bytes of one header line that are looked at; the others are skipped.
const HEADER_BYTES_MAX: u64 = 1024;

/// A result of the reader.
#[derive(Debug, PartialEq, Eq)]
pub enum Framed {
    /// The bytes of a message.
    Message(Vec<u8>),
    /// A message of so many bytes, which was skipped.
    TooLarge(u64),
    /// A header without `Content-Length`, or with a value that is no number.
    NoLength,
    /// The end of the input.
    End,
}

/// Reads the next message.
///
/// # Errors
/// The input cannot be read.
pub fn read(input: &mut impl BufRead) -> io::Result<Framed> {
    let mut length = None;
    let mut is_first = true;
    loop {
        let Some(line) = header(input)? else { return Ok(Framed::End) };
        match line.as_slice() {
            // A stray line break between messages harms nobody.
            b"" if is_first => continue,
            b"" => break,
            line => {
                is_first = false;
                length = length_in(line).or(length);
            }
        }
    }
    let Some(length) = length else { return Ok(Framed::NoLength) };
    if length > MESSAGE_BYTES_MAX {
        io::copy(&mut input.by_ref().take(length), &mut io::sink())?;
        return Ok(Framed::TooLarge(length));
    }
    let mut body = Vec::new();
    input.by_ref().take(length).read_to_end(&mut body)?;
    // A client that ends in the middle of a message has ended.
    Ok(if body.len() as u64 == length { Framed::Message(body) } else { Framed::End })
}

/// A header line without its line break; its beginning if it is longer than [`HEADER_BYTES_MAX`]. `None` at the end.
fn header(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    input.by_ref().take(HEADER_BYTES_MAX).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if !line.ends_with(b"\n") && !skip_line(input)? {
        return Ok(None);
    }
    let end = line.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |at| at + 1);
    line.truncate(end);
    Ok(Some(line))
}

/// Skips the rest of a line. False at the end of the input.
fn skip_line(input: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let held = input.fill_buf()?;
        if held.is_empty() {
            return Ok(false);
        }
        let (skipped, is_end) = match held.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (held.len(), false),
        };
        input.consume(skipped);
        if is_end {
            return Ok(true);
        }
    }
}

/// The value of `Content-Length`; `None` for another line.
fn length_in(line: &[u8]) -> Option<u64> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (name, value) = line.split_at_checked(colon)?;
    if !name.trim_ascii().eq_ignore_ascii_case(b"content-length") {
        return None;
    }
    std::str::from_utf8(value.get(1..)?).ok()?.trim().parse().ok()
}

/// Writes one message.
///
/// # Errors
/// The output cannot be written.
pub fn write(output: &mut impl Write, body: &[u8]) -> io::Result<()> {
    write!(output, "Content-Length: {}\r\n\r\n", body.len())?;
    output.write_all(body)?;
    output.flush()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::BufReader;

    fn all(mut input: impl BufRead) -> Vec<Framed> {
        let mut found = Vec::new();
        loop {
            let next = read(&mut input).unwrap();
            let is_end = next == Framed::End;
            found.push(next);
            if is_end {
                return found;
            }
        }
    }

    fn message(text: &str) -> Framed {
        Framed::Message(text.as_bytes().to_vec())
    }

    #[test]
    fn messages_come_back_and_other_headers_do_not_matter() {
        let mut bytes = Vec::new();
        write(&mut bytes, b"one").unwrap();
        bytes.extend_from_slice(b"\r\nContent-Type: x\r\ncontent-length :  3 \r\n\r\ntwo");
        bytes.extend_from_slice(b"Content-Length: 0\n\n");
        assert_eq!(all(&bytes[..]), [message("one"), message("two"), message(""), Framed::End]);
    }

    #[test]
    fn what_has_no_length_is_skipped() {
        let bytes = format!("rubbish {}\r\nContent-Length: x\r\n\r\nContent-Length: 1\r\n\r\na", "x".repeat(5_000));
        assert_eq!(all(bytes.as_bytes()), [Framed::NoLength, message("a"), Framed::End]);
        assert_eq!(all(&b"Content-Length: 9\r\n\r\nab"[..]), [Framed::End]);
        assert_eq!(all(&b"Content-Length: 9"[..]), [Framed::End]);
    }

    /// The length that a header announces costs no memory: the input below is made while it is read.
    #[test]
    fn a_message_that_is_too_large_is_skipped() {
        let length = MESSAGE_BYTES_MAX + 1;
        let head = format!("Content-Length: {length}\r\n\r\n");
        let input = head.as_bytes().chain(io::repeat(b'x').take(length)).chain(&b"Content-Length: 1\r\n\r\na"[..]);
        assert_eq!(all(BufReader::new(input)), [Framed::TooLarge(length), message("a"), Framed::End]);
        let huge = format!("Content-Length: {}\r\n\r\nabc", u64::MAX);
        assert_eq!(all(huge.as_bytes()), [Framed::TooLarge(u64::MAX), Framed::End]);
    }

    mod mutate {
        use super::*;

        /// Reading ends, and no message is longer than its input.
        #[test]
        fn streams_of_clients() {
            let seeds = [
                "Content-Length: 2\r\n\r\n{}",
                "Content-Length: 20\r\nContent-Type: a\r\n\r\n{\"jsonrpc\": \"2.0\"   }",
            ];
            weir_mutate::mutate(&seeds, &["\r\n\r\n", "Content-Length: ", "18446744073709551615", "-1"], |bytes| {
                let mut input = bytes;
                let mut count = 0;
                while let Ok(found) = read(&mut input) {
                    count += 1;
                    assert!(count <= bytes.len() + 1);
                    match found {
                        Framed::Message(body) => assert!(body.len() <= bytes.len()),
                        Framed::End => break,
                        Framed::TooLarge(_) | Framed::NoLength => {}
                    }
                }
            });
        }
    }
}
