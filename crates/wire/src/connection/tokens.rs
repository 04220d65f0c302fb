//! The options in the Connection field, and the other fields it names (RFC 9110 §7.6.1).

use crate::field::trim;
use crate::known::Known;
use crate::span::Field;

/// The tokens of all Connection fields of a head.
///
/// nginx searches the value for substrings; weir reads whole list members, so `Connection: not-close` closes nothing.
/// `close` has priority over `keep-alive`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionTokens {
    /// `close`.
    pub close: bool,
    /// `keep-alive`.
    pub keep_alive: bool,
    /// `upgrade`.
    pub upgrade: bool,
    /// Some other token: fields of that name are not passed on; see [`lists`](Self::lists) for an answer, and
    /// [`RequestHead::leave_out_named`](crate::RequestHead::leave_out_named) for a request.
    pub names: bool,
}

impl ConnectionTokens {
    /// Reads the Connection fields among `fields`.
    pub fn of(buf: &[u8], fields: &[Field]) -> ConnectionTokens {
        let mut tokens = ConnectionTokens::default();
        for token in members(buf, fields) {
            if token.eq_ignore_ascii_case(b"keep-alive") {
                tokens.keep_alive = true;
            } else if token.eq_ignore_ascii_case(b"close") {
                tokens.close = true;
            } else if token.eq_ignore_ascii_case(b"upgrade") {
                tokens.upgrade = true;
            } else {
                tokens.names = true;
            }
        }
        tokens
    }

    /// Whether Connection names this field, which is then hop-by-hop. Call it only if [`names`](Self::names) is set:
    /// most heads have nothing to list.
    pub fn lists(buf: &[u8], fields: &[Field], name: &[u8]) -> bool {
        members(buf, fields).any(|token| token.eq_ignore_ascii_case(name))
    }
}

/// Whether a request's Connection may name this field, and so limit it to this connection.
///
/// RFC 9110 §7.6.1 forbids naming a field that is for all recipients of the message. A client must not be able to
/// remove in this way the fields that a proxy before weir added about it. So the fields that weir knows stay, except
/// those of one hop. The fields that weir needs to read the message stay too; no request passes them on anyway.
pub(crate) fn may_be_named(buf: &[u8], field: &Field) -> bool {
    const FORWARDED: &[u8] = b"x-forwarded-";
    match field.known {
        Some(known) => matches!(known, Known::Trailer | Known::Http2Settings | Known::ProxyAuthorization),
        None => {
            let start = field.name.of(buf).get(..FORWARDED.len());
            !start.is_some_and(|start| start.eq_ignore_ascii_case(FORWARDED))
        }
    }
}

fn members<'a>(buf: &'a [u8], fields: &'a [Field]) -> impl Iterator<Item = &'a [u8]> {
    fields
        .iter()
        .filter(|field| field.known == Some(Known::Connection))
        .flat_map(|field| field.value.of(buf).split(|&b| b == b','))
        .map(trim)
        .filter(|token| !token.is_empty())
}
