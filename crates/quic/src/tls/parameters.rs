//! Transport parameters as they are sent (RFC 9000 §18).

/// The parameter `active_connection_id_limit` (RFC 9000 §18.2).
const ID_LIMIT: u64 = 0x0e;

/// The same parameters, but with this limit of connection ids; below 64. Bytes that are no parameters stay as they are.
///
/// quinn-proto always names the number that it can keep.
pub(super) fn with_id_limit(written: &[u8], limit: u8) -> Vec<u8> {
    let (mut sent, mut rest) = (Vec::with_capacity(written.len()), written);
    while let Some((id, length)) = parameter(rest) {
        let (one, others) = rest.split_at(length);
        match id {
            ID_LIMIT => sent.extend_from_slice(&[ID_LIMIT as u8, 1, limit & 0x3f]),
            _ => sent.extend_from_slice(one),
        }
        rest = others;
    }
    sent.extend_from_slice(rest);
    sent
}

/// The number of the first parameter, and how many bytes it takes.
fn parameter(bytes: &[u8]) -> Option<(u64, usize)> {
    let (id, after) = number(bytes)?;
    let (length, value) = number(after)?;
    let length = usize::try_from(length).ok().filter(|length| *length <= value.len())?;
    Some((id, bytes.len() - value.len() + length))
}

/// A number of variable length (RFC 9000 §16), and the bytes after it.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_at_checked(1 << (bytes.first()? >> 6))?;
    let (first, others) = number.split_first()?;
    Some((others.iter().fold(u64::from(first & 0x3f), |number, byte| number << 8 | u64::from(*byte)), rest))
}

#[cfg(test)]
mod tests {
    use super::with_id_limit;

    #[test]
    fn the_limit_alone_changes_whatever_is_around_it() {
        let (before, after): (&[u8], &[u8]) = (&[0x01, 2, 0x40, 0x64, 0x40, 0x21, 3, 0x0e, 1, 5], &[0x0c, 0]);
        for limit in [&[0x0e, 1, 5][..], &[0x0e, 2, 0x40, 5], &[0x40, 0x0e, 1, 5]] {
            assert_eq!(with_id_limit(&[before, limit, after].concat(), 2), [before, &[0x0e, 1, 2], after].concat());
        }
        for none in [&[][..], before, &[0x0e], &[0x0e, 9, 5], &[0xff, 0xff]] {
            assert_eq!(with_id_limit(none, 2), none);
        }
    }
}
