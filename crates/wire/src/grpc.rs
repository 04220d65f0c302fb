//! gRPC's frames around messages. <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>

/// The prefix of a frame: whether its message is compressed, and the length of the message.
const PREFIX: usize = 5;

/// A message in a frame, not compressed; `None` for a message of 4 GiB or more.
pub fn frame(message: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(message.len()).ok()?;
    let mut out = Vec::with_capacity(PREFIX + message.len());
    out.push(0);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(message);
    Some(out)
}

/// The message of the first frame; `None` if it is compressed or incomplete.
pub fn message(body: &[u8]) -> Option<&[u8]> {
    let (prefix, rest) = body.split_at_checked(PREFIX)?;
    let [0, length @ ..] = prefix else { return None };
    let length = u32::from_be_bytes(length.try_into().ok()?);
    rest.get(..usize::try_from(length).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_framed_is_found_again() {
        assert_eq!(frame(b"ab").as_deref(), Some(&[0, 0, 0, 0, 2, b'a', b'b'][..]));
        for text in [&b""[..], b"ab", &[7; 300]] {
            assert_eq!(frame(text).as_deref().and_then(message), Some(text));
        }
        assert_eq!(message(&[0, 0, 0, 0, 1, 8, 9]), Some(&[8][..]));
        for broken in [&[][..], &[0, 0, 0, 0], &[1, 0, 0, 0, 1, 8], &[0, 0, 0, 0, 2, 8]] {
            assert_eq!(message(broken), None, "{broken:?}");
        }
    }
}
