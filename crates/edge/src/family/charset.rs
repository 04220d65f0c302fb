//! `charset`: adds the character set to `Content-Type` if the response has none.
//!
//! <https://nginx.org/en/docs/http/ngx_http_charset_module.html>. weir does not recode (`charset_map`,
//! `source_charset`). Invariant: bodies never change.

use std::sync::Arc;

use weir_conf::Statement;
use weir_http::build::Build;
use weir_http::directive::{Arity, Contexts, Directive, HSL, LOCATION_IF, ONE};
use weir_http::exchange::Exchange;
use weir_http::families::Family;
use weir_http::refusal::Refusal;
use weir_http::variable::Template;
use weir_http::{media_types, value};

weir_http::settings! {
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
.filter(|location| crate::values(location).charset.name.is_some(), filter)
.fixed(|location, reading| {
    crate::values(location).charset.name.as_ref().is_none_or(|name| reading.is_same_for_hits(name))
});

fn charset(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let word = statement.text(0);
    let name = if word == "off" { None } else { Some(b.template(word)?) };
    crate::settings(b).charset.name = Some(name);
    Ok(())
}

fn types(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let earlier = crate::settings(b).charset.types.clone();
    crate::settings(b).charset.types = Some(media_types::read(b, statement, earlier));
    Ok(())
}

fn filter(exchange: &mut Exchange<'_>) {
    // nginx adds none to redirects: some browsers used it for the next page.
    if matches!(exchange.response.status, 301 | 302) {
        return;
    }
    let settings = &crate::values(exchange.location).charset;
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
