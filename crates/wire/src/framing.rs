//! The length of the body: one function per direction decides it, and no other place.
//!
//! This is the main protection against request smuggling: an attack is possible if two parties find different lengths
//! for the same bytes. So weir refuses a message with two possible lengths, and frames forwarded bodies anew.
//!
//! Invariant: a length is returned only when RFC 9112 §6.3 gives exactly one.

use crate::field;
use crate::head::{RequestHead, ResponseHead, Version};
use crate::known::Known;
use crate::span::Field;
use crate::violation::Violation;

pub use crate::connection::{ConnectionTokens, keeps_alive};
pub use crate::host::{Host, LastHost, request_host};

/// The length of a message's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// There is no body.
    None,
    /// Exactly this many bytes; 0 if the message declares it.
    Exact(u64),
    /// Chunked transfer coding (RFC 9112 §7.1).
    Chunked,
    /// Until the sender closes; responses only.
    UntilClose,
}

/// Content-Length beyond this is refused: nginx's `off_t`.
pub const CONTENT_LENGTH_MAX: u64 = i64::MAX as u64;

/// The length of a request's body (RFC 9112 §6.3).
///
/// Refuses a Content-Length that is not plain digits, either framing field twice, both of them, a coding other than
/// `chunked`, and any coding in HTTP/1.0. The parser has already refused duplicates, but this function does not rely
/// on that.
pub fn request_body(buf: &[u8], head: &RequestHead) -> Result<BodyLength, Violation> {
    if head.version == Version::Http09 {
        return Ok(BodyLength::None);
    }
    let seen = head.known();
    if !seen.contains(Known::ContentLength) && !seen.contains(Known::TransferEncoding) {
        return Ok(BodyLength::None);
    }
    let (length, coding) = framing_fields(&head.fields, Violation::DuplicateField)?;
    let length = match length {
        Some(field) => Some(content_length(field.value.of(buf)).ok_or(Violation::InvalidContentLength)?),
        None => None,
    };
    let Some(coding) = coding else {
        return Ok(length.map_or(BodyLength::None, BodyLength::Exact));
    };
    if head.version < Version::Http11 {
        return Err(Violation::EncodingInHttp10);
    }
    if !is_chunked(coding.value.of(buf)) {
        let known_grammar = is_list_of_codings(coding.value.of(buf));
        return Err(if known_grammar { Violation::UnknownEncoding } else { Violation::InvalidEncoding });
    }
    if length.is_some() {
        return Err(Violation::LengthAndEncoding);
    }
    Ok(BodyLength::Chunked)
}

/// The length of a response's body (RFC 9112 §6.3), `request_method` is the method of the request.
///
/// Faulty framing fields are refused even if there is no body: the next bytes of such an origin cannot be trusted
/// either. Interim responses (1xx except 101) are not checked, because nginx does not read their fields.
pub fn response_body(buf: &[u8], head: &ResponseHead, request_method: &[u8]) -> Result<BodyLength, Violation> {
    if head.is_interim() {
        return Ok(BodyLength::None);
    }
    let seen = head.known();
    let (length, coding) = if seen.contains(Known::ContentLength) || seen.contains(Known::TransferEncoding) {
        framing_fields(&head.fields, Violation::UpstreamDuplicateField)?
    } else {
        (None, None)
    };
    if length.is_some() && coding.is_some() {
        return Err(Violation::UpstreamLengthAndEncoding);
    }
    let length = match length {
        Some(field) => Some(content_length(field.value.of(buf)).ok_or(Violation::UpstreamContentLength)?),
        None => None,
    };
    if let Some(field) = coding
        && !is_chunked(field.value.of(buf))
    {
        return Err(Violation::UpstreamUnknownEncoding);
    }
    let bodiless = request_method == b"HEAD"
        || matches!(head.status, 101 | 204 | 304)
        || (request_method == b"CONNECT" && (200..300).contains(&head.status));
    Ok(match (bodiless, coding, length) {
        (true, _, _) => BodyLength::None,
        (false, Some(_), _) => BodyLength::Chunked,
        (false, None, Some(length)) => BodyLength::Exact(length),
        (false, None, None) => BodyLength::UntilClose,
    })
}

/// Refuses the methods a reverse proxy does not serve: TRACE, and CONNECT unless allowed (nginx: `allow_connect`);
/// CONNECT must not have a body.
pub fn request_method(buf: &[u8], head: &RequestHead, body: BodyLength, allow_connect: bool) -> Result<(), Violation> {
    match head.method.of(buf) {
        b"CONNECT" if !allow_connect || head.version != Version::Http11 => Err(Violation::ConnectMethod),
        b"CONNECT" if !matches!(body, BodyLength::None | BodyLength::Exact(0)) => Err(Violation::ConnectWithBody),
        b"TRACE" => Err(Violation::TraceMethod),
        _ => Ok(()),
    }
}

/// Content-Length's value: digits only, up to [`CONTENT_LENGTH_MAX`]. No sign,
/// no list, no space inside, not empty (RFC 9110 §8.6).
pub fn content_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    let mut length = 0u64;
    for &byte in value {
        if !byte.is_ascii_digit() || length > CONTENT_LENGTH_MAX / 10 {
            return None;
        }
        length = length * 10 + u64::from(byte - b'0');
        if length > CONTENT_LENGTH_MAX {
            return None;
        }
    }
    Some(length)
}

/// Transfer-Encoding's value must be this one coding, without parameters.
fn is_chunked(value: &[u8]) -> bool {
    value.eq_ignore_ascii_case(b"chunked")
}

/// Whether the value names codings (RFC 9112 §7), one of which is not `chunked`: such a coding is unknown, but not an
/// attack.
fn is_list_of_codings(value: &[u8]) -> bool {
    let mut names = value.split(|&byte| byte == b',').map(field::trim);
    let are_names = names.clone().all(|name| !name.is_empty() && name.iter().all(|&byte| field::is_token_byte(byte)));
    are_names && names.any(|name| !is_chunked(name))
}

type Framing<'a> = (Option<&'a Field>, Option<&'a Field>);

/// The Content-Length and the Transfer-Encoding field, each at most once.
fn framing_fields(fields: &[Field], duplicate: Violation) -> Result<Framing<'_>, Violation> {
    let mut length = None;
    let mut coding = None;
    for field in fields {
        let place = match field.known {
            Some(Known::ContentLength) => &mut length,
            Some(Known::TransferEncoding) => &mut coding,
            _ => continue,
        };
        if place.replace(field).is_some() {
            return Err(duplicate);
        }
    }
    Ok((length, coding))
}

#[cfg(test)]
mod tests;
