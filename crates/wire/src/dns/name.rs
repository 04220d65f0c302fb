//! Domain names: labels of at most 63 bytes, compared without case; a bounded number of pointers is followed.

use std::fmt;

/// Bytes of a name in a message, its closing zero included: 255 in RFC 1035 §2.3.4. nginx accepts four labels of the
/// maximum length, which are two bytes more, and so does weir.
pub const NAME_BYTES_MAX: usize = 257;

/// Bytes of a label.
const LABEL_BYTES_MAX: usize = 63;

/// Pointers followed for one name: each leads to at least one byte of it.
const POINTERS_MAX: usize = NAME_BYTES_MAX;

/// A domain name in lower case, in the form of a message, without pointers.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Name(Box<[u8]>);

/// A text that is not a domain name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadName;

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a domain name")
    }
}

impl std::error::Error for BadName {}

impl Name {
    /// Reads a text such as `www.example.com`; a dot at the end is ignored.
    ///
    /// # Errors
    ///
    /// An empty label, a label of more than 63 bytes, or more than `NAME_BYTES_MAX` in total.
    pub fn of_text(text: &str) -> Result<Name, BadName> {
        let text = text.strip_suffix('.').unwrap_or(text);
        if text.is_empty() || text.len() + 2 > NAME_BYTES_MAX {
            return Err(BadName);
        }
        let mut wire = Vec::with_capacity(text.len() + 2);
        for label in text.split('.') {
            if label.is_empty() || label.len() > LABEL_BYTES_MAX {
                return Err(BadName);
            }
            wire.push(label.len() as u8);
            wire.extend(label.bytes().map(|byte| byte.to_ascii_lowercase()));
        }
        wire.push(0);
        Ok(Name(wire.into()))
    }

    /// The name in the form of a message.
    pub fn wire(&self) -> &[u8] {
        &self.0
    }

    /// Reads the name that begins at `at`; `None` if it breaks a rule; else also returns the position after it.
    pub(super) fn read(bytes: &[u8], mut at: usize) -> Option<(Name, usize)> {
        let mut wire = Vec::new();
        let mut after = None;
        let mut pointers = 0;
        loop {
            let length = *bytes.get(at)?;
            match length >> 6 {
                0 => {
                    let label = bytes.get(at + 1..at + 1 + usize::from(length))?;
                    wire.push(length);
                    wire.extend(label.iter().map(u8::to_ascii_lowercase));
                    if wire.len() > NAME_BYTES_MAX {
                        return None;
                    }
                    at += 1 + usize::from(length);
                    if length == 0 {
                        return Some((Name(wire.into()), after.unwrap_or(at)));
                    }
                }
                3 => {
                    let low = *bytes.get(at + 1)?;
                    after = after.or(Some(at + 2));
                    pointers += 1;
                    if pointers > POINTERS_MAX {
                        return None;
                    }
                    at = usize::from(length & 0x3f) << 8 | usize::from(low);
                }
                _ => return None,
            }
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut at = 0;
        while let Some(length) = self.0.get(at).map(|length| usize::from(*length)).filter(|length| *length > 0) {
            if at > 0 {
                f.write_str(".")?;
            }
            for byte in self.0.get(at + 1..at + 1 + length).unwrap_or_default() {
                match byte {
                    b'!'..=b'~' => write!(f, "{}", char::from(*byte))?,
                    _ => write!(f, "\\{byte:03}")?,
                }
            }
            at += 1 + length;
        }
        Ok(())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name({self})")
    }
}
