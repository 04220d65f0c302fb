//! The requests that remove stored answers, and the answers to those that ask by a method or by a zone and a key.

use std::sync::Arc;

use weir_cache::store::{Force, KEY_BYTES_MAX, Purge, Zone};
use weir_http::exchange::Exchange;
use weir_http::exchange::phase::Outcome;
use weir_http::exchange::response_body::Body;
use weir_http::text::cidr::{Cidr, Peer};
use weir_http::text::template::Template;
use weir_net::log::Level;
use weir_wire::escape;

/// The form of the page after a purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A page.
    Html,
    /// An object with the member `Key`.
    Json,
    /// A document with the element `Key`.
    Xml,
    /// A line.
    Text,
}

/// The requests that purge, in a location that asks an upstream.
#[derive(Clone)]
pub enum Purging {
    /// None.
    Nobody,
    /// Those for which one of these values is neither empty nor 0 (NGINX Plus).
    ByValue(Arc<Vec<Template>>),
    /// Those with a method (ngx_cache_purge).
    ByMethod(Arc<ByMethod>),
}

/// A method that purges.
#[derive(Debug, PartialEq, Eq)]
pub struct ByMethod {
    pub(in crate::family) method: Box<[u8]>,
    /// The whole zone and not the key of the request.
    pub(in crate::family) all: bool,
    /// The clients that may purge; empty for all.
    pub(in crate::family) from: Vec<Cidr>,
}

impl Purging {
    /// The values that ask for a purge; empty for other kinds.
    pub fn values(&self) -> &[Template] {
        match self {
            Purging::ByValue(values) => values,
            Purging::Nobody | Purging::ByMethod(_) => &[],
        }
    }

    /// The rule of a method, if the request has this method.
    pub fn by_method(&self, exchange: &Exchange<'_>) -> Option<&ByMethod> {
        match self {
            Purging::ByMethod(by) if *by.method == *exchange.request.method() => Some(by),
            Purging::Nobody | Purging::ByValue(_) | Purging::ByMethod(_) => None,
        }
    }
}

impl ByMethod {
    fn allows(&self, peer: Peer) -> bool {
        self.from.is_empty() || self.from.iter().any(|network| network.has(peer))
    }
}

/// Whether the client may purge; `Err` is the answer's status.
pub fn check(exchange: &mut Exchange<'_>, by: &ByMethod) -> Result<(), u16> {
    if by.allows(Peer::of(exchange.remote())) {
        return Ok(());
    }
    exchange.log(Level::Warn, format_args!("access to a purge forbidden by \"from\""));
    Err(403)
}

/// Purges as ngx_cache_purge does, and answers: 200 and a page with the key, or 412 if the key is not stored.
pub fn purge(exchange: &mut Exchange<'_>, zone: &Zone, key: &[u8], by: &ByMethod) -> Outcome {
    answer(exchange, zone, key, by.all)
}

/// Removes a key, or the whole zone, and answers.
pub fn answer(exchange: &mut Exchange<'_>, zone: &Zone, key: &[u8], all: bool) -> Outcome {
    let purge = if all { Purge::All } else { Purge::of_key(key) };
    let is_one = matches!(purge, Purge::Key(_));
    let is_removed = (all || key.len() <= KEY_BYTES_MAX) && zone.purge(purge, Force::Hard);
    if is_one && !is_removed {
        let is_not_found = crate::declared(exchange.conf).cache_purge.absent_is_not_found;
        return Outcome::Status(if is_not_found { 404 } else { 412 });
    }
    let form = crate::values(exchange.location).cache_purge.form;
    let (kind, page) = page(form, key);
    let response = &mut exchange.response;
    response.status.answer(200);
    response.content_type.clear();
    response.content_type.extend_from_slice(kind);
    response.content_length = Some(page.len() as u64);
    response.body = Body::Bytes(page);
    Outcome::Respond
}

/// The type and the text of an answer. The module writes the key as it is; a key may have a text of the client, so weir
/// escapes it.
fn page(form: Form, key: &[u8]) -> (&'static [u8], Vec<u8>) {
    let (kind, before, after): (&[u8], &[u8], &[u8]) = match form {
        Form::Html => (
            b"text/html",
            b"<html><head><title>Successful purge</title></head><body><h1>Successful purge</h1><p>Key : ",
            b"</p></body></html>\n",
        ),
        Form::Json => (b"application/json", b"{\"Key\": \"", b"\"}"),
        Form::Xml => (b"text/xml", b"<?xml version=\"1.0\" encoding=\"UTF-8\"?><status><Key>", b"</Key></status>"),
        Form::Text => (b"text/plain", b"Key:", b"\n"),
    };
    let mut page = before.to_vec();
    let key = String::from_utf8_lossy(key);
    match form {
        Form::Html | Form::Xml => escape::escape_html(key.as_bytes(), &mut page),
        Form::Json => escape::escape_json(key.as_bytes(), &mut page),
        Form::Text => page.extend_from_slice(key.as_bytes()),
    }
    page.extend_from_slice(after);
    (kind, page)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_page_shows_the_key_and_lets_it_say_nothing_else() {
        let key = b"/a\"<b>&\n";
        for (form, shown) in [
            (Form::Html, "<p>Key : /a&quot;&lt;b&gt;&amp;\n</p>"),
            (Form::Xml, "<Key>/a&quot;&lt;b&gt;&amp;\n</Key>"),
            (Form::Json, "{\"Key\": \"/a\\\"<b>&\\n\"}"),
            (Form::Text, "Key:/a\"<b>&\n\n"),
        ] {
            let text = String::from_utf8(page(form, key).1).unwrap();
            assert!(text.contains(shown), "{text}");
        }
    }
}
