//! The encoders of both versions, as one interface.

use crate::known::Known;

/// Writes the fields of a section in the form of HPACK or QPACK, pseudo-header fields first.
pub trait SectionEncoder {
    /// Appends `:status`, which has three digits.
    fn status(&mut self, status: u16, out: &mut Vec<u8>);

    /// Appends a pseudo-header field of a request: `:method`, `:scheme`, `:authority`, `:path`, `:protocol`.
    fn pseudo(&mut self, name: &str, value: &[u8], out: &mut Vec<u8>);

    /// Appends a field: its name in lower case, its value without the whitespace around it. With either of them, the whole section
    /// is malformed (RFC 9113 §8.2.1, RFC 9114 §4.2, RFC 9110 §5.5).
    fn field(&mut self, name: &[u8], value: &[u8], known: Option<Known>, out: &mut Vec<u8>);
}

/// Whether another user of the connection must not be able to guess the value from the size of sections, and whether
/// no proxy may keep it in a table (RFC 7541 §7.1, RFC 9204 §7.1).
pub(crate) fn is_secret(known: Option<Known>, value: &[u8]) -> bool {
    match known {
        Some(Known::Authorization | Known::ProxyAuthorization) => true,
        // An attacker could guess a short cookie, one character at a time.
        Some(Known::Cookie) => value.len() < 20,
        _ => false,
    }
}
