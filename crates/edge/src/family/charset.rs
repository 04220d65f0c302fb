//! `charset`: adds the character set to `Content-Type` if the response has none.
//!
//! <https://nginx.org/en/docs/http/ngx_http_charset_module.html>. weir does not recode (`charset_map`,
//! `source_charset`). Invariant: bodies never change.

use std::sync::Arc;

use weir_conf::Statement;

use crate::build::{self, Build};
use crate::directive::{Arity, Contexts, Directive, HSL, LOCATION_IF, ONE};
use crate::exchange::Exchange;
use crate::family::Family;
use crate::media_types;
use crate::refusal::Refusal;
use crate::value;
use crate::variable::Template;

crate::settings! {
    /// `charset`; `None` for `off`.
    name: Option<Template> = None,
    /// `charset_types`, lower case; empty for all.
    types: Arc<Vec<String>> = Arc::new(TYPES.iter().map(|kind| (*kind).to_owned()).collect()),
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

const TYPES: &[&str] =
    &["text/html", "text/xml", "text/plain", "text/vnd.wap.wml", "application/javascript", "application/rss+xml"];

const HSLI: Contexts = HSL.or(LOCATION_IF);

/// The family.
pub static FAMILY: Family = Family::new(
    "charset",
    &[
        Directive::new("charset", HSLI, ONE, "The character set that Content-Type names; off names none.", charset)
            .default("off"),
        Directive::new(
            "charset_types",
            HSL,
            Arity::AtLeast(1),
            "The media types besides text/html that get the charset; * for all.",
            types,
        )
        .default("text/html text/xml text/plain text/vnd.wap.wml application/javascript application/rss+xml")
        .many(),
        Directive::idle("override_charset", HSLI, Arity::Flag, "off", "weir converts no character sets", |_, s| {
            value::flag(s).map(drop)
        })
        .default("off"),
    ],
)
.filter(|location| location.values.charset.name.is_some(), filter)
.fixed(|location, names| location.values.charset.name.as_ref().is_none_or(|name| build::is_same_for_hits(name, names)));

fn charset(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let word = statement.text(0);
    let name = if word == "off" { None } else { Some(b.template(word)?) };
    b.settings().charset.name = Some(name);
    Ok(())
}

fn types(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let earlier = b.settings().charset.types.clone();
    b.settings().charset.types = Some(media_types::read(b, statement, earlier));
    Ok(())
}

fn filter(exchange: &mut Exchange<'_>) {
    // nginx adds none to redirects: some browsers used it for the next page.
    if matches!(exchange.response.status, 301 | 302) {
        return;
    }
    let settings = &exchange.location.values.charset;
    let content_type = &exchange.response.content_type;
    if content_type.is_empty() || names_charset(content_type) || !media_types::is_listed(&settings.types, content_type)
    {
        return;
    }
    let Some(template) = &settings.name else { return };
    let name = template.text(exchange);
    if name.is_empty() {
        return;
    }
    let content_type = &mut exchange.response.content_type;
    content_type.extend_from_slice(b"; charset=");
    content_type.extend_from_slice(&name);
}

/// Whether a media type has a charset parameter.
fn names_charset(content_type: &[u8]) -> bool {
    content_type.split(|b| *b == b';').skip(1).any(|part| {
        let part = part.trim_ascii_start();
        part.get(..8).is_some_and(|name| name.eq_ignore_ascii_case(b"charset="))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_charset_parameter() {
        let cases: [(&[u8], bool); 5] = [
            (b"text/html", false),
            (b"text/html; charset=utf-8", true),
            (b"text/html;CHARSET=utf-8", true),
            (b"text/html; a=b; charset=utf-8", true),
            (b"multipart/form-data; boundary=charset=", false),
        ];
        for (content_type, expected) in cases {
            assert_eq!(names_charset(content_type), expected, "{content_type:?}");
        }
    }
}
