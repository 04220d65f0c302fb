//! `charset`: names the character set in `Content-Type` where the response does not.
//!
//! <https://nginx.org/en/docs/http/ngx_http_charset_module.html>. Not here: recoding (`charset_map`, `source_charset`).
//! Invariant: bodies are never changed.

use std::sync::Arc;

use weir_conf::Statement;

use crate::build::Build;
use crate::directive::{Arity, Contexts, Directive, HSL, LOCATION_IF, ONE, Refusal};
use crate::exchange::Exchange;
use crate::family::Family;
use crate::value;
use crate::variable::Template;

crate::settings! {
    /// `charset`; `None` for `off`.
    name: Option<Template> = None,
    /// `charset_types`, lower case; empty for all.
    types: Arc<Vec<String>> = Arc::new(TYPES.iter().map(|kind| (*kind).to_owned()).collect()),
    /// `override_charset`.
    overrides: bool = false,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

const TYPES: &[&str] =
    &["text/html", "text/xml", "text/plain", "text/vnd.wap.wml", "application/javascript", "application/rss+xml"];

const HSLI: Contexts = HSL.or(LOCATION_IF);

/// The family.
pub static FAMILY: Family = Family::new("charset", &[
    Directive::new("charset", HSLI, ONE, "The character set named in Content-Type; off names none.", charset).default("off"),
    Directive::new("charset_types", HSL, Arity::AtLeast(1), "The media types that get one besides text/html; * for all.", types)
        .default("text/html text/xml text/plain text/vnd.wap.wml application/javascript application/rss+xml").many(),
    Directive::new("override_charset", HSLI, Arity::Flag, "Whether an upstream's own charset is replaced.",
        |b, s| { b.settings().charset.overrides = Some(value::flag(s)?); Ok(()) }).default("off"),
])
.filter(|location| location.values.charset.name.is_some(), filter);

fn charset(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let word = statement.text(0);
    let name = if word == "off" { None } else { Some(b.template(word)?) };
    b.settings().charset.name = Some(name);
    Ok(())
}

fn types(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut types = match &b.settings().charset.types {
        Some(earlier) if earlier.is_empty() => return Ok(()),
        Some(earlier) => earlier.to_vec(),
        None => vec!["text/html".to_owned()],
    };
    for word in &statement.args {
        let kind = word.text.to_ascii_lowercase();
        if kind == "*" {
            types.clear();
            break;
        }
        if types.contains(&kind) {
            b.warn(format!("duplicate MIME type \"{kind}\""), None);
        } else {
            types.push(kind);
        }
    }
    b.settings().charset.types = Some(Arc::new(types));
    Ok(())
}

fn filter(exchange: &mut Exchange<'_>) {
    // nginx: none on redirects, for the sake of browsers that kept it for the next page.
    if matches!(exchange.response.status, 301 | 302) {
        return;
    }
    let settings = &exchange.location.values.charset;
    let Some(own) = without_charset(&exchange.response.content_type) else { return };
    let is_named = own < exchange.response.content_type.len();
    if if is_named { !settings.overrides } else { !is_listed(&settings.types, &exchange.response.content_type) } {
        return;
    }
    let Some(template) = &settings.name else { return };
    let name = template.text(exchange);
    if name.is_empty() {
        return;
    }
    let content_type = &mut exchange.response.content_type;
    content_type.truncate(own);
    content_type.extend_from_slice(b"; charset=");
    content_type.extend_from_slice(&name);
}

/// The length of a media type up to its charset parameter: all of it where there is none; `None` for no type.
fn without_charset(content_type: &[u8]) -> Option<usize> {
    if content_type.is_empty() {
        return None;
    }
    let is_charset = |part: &[u8]| {
        let part = part.trim_ascii_start();
        part.get(..8).is_some_and(|name| name.eq_ignore_ascii_case(b"charset="))
    };
    let mut at = 0;
    for part in content_type.split(|b| *b == b';') {
        if at > 0 && is_charset(part) {
            return Some(at - 1);
        }
        at += part.len() + 1;
    }
    Some(content_type.len())
}

/// Whether the media type, parameters aside, is among those named.
fn is_listed(types: &[String], content_type: &[u8]) -> bool {
    let bare = content_type.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
    types.is_empty() || types.iter().any(|kind| kind.as_bytes().eq_ignore_ascii_case(bare))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_charset_parameter() {
        let cases: [(&[u8], Option<usize>); 6] = [
            (b"", None),
            (b"text/html", Some(9)),
            (b"text/html; charset=utf-8", Some(9)),
            (b"text/html;CHARSET=utf-8", Some(9)),
            (b"text/html; a=b; charset=utf-8", Some(14)),
            (b"multipart/form-data; boundary=charset=", Some(38)),
        ];
        for (content_type, expected) in cases {
            assert_eq!(without_charset(content_type), expected, "{content_type:?}");
        }
    }
}
