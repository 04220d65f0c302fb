//! `gzip`: compresses response bodies (RFC 9110 §8.4.1.3).
//!
//! <https://nginx.org/en/docs/http/ngx_http_gzip_module.html>. `compression` chooses between codings.

use std::sync::Arc;

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Contexts, Directive, HSL, LOCATION_IF, ONE, TWO};
use weir_http::read::families::Family;
use weir_http::read::media_types;
use weir_http::text::refusal::Refusal;
use weir_http::text::regex::Regex;
use weir_http::text::value;
use weir_net::clock;
use weir_net::log::Level;
use weir_wire::{Known, Version, date};

weir_http::settings! {
    /// `gzip`.
    enabled: bool = false,
    /// `gzip_types`, lower case; `text/html` is always among them; empty for all.
    types: Arc<Vec<String>> = Arc::new(vec![media_types::HTML.to_owned()]),
    /// `gzip_min_length`.
    min_length: u64 = 20,
    /// `gzip_comp_level`.
    level: u32 = 1,
    /// `gzip_http_version`.
    version: Version = Version::Http11,
    /// `gzip_proxied`.
    proxied: Proxied = Proxied::default(),
    /// `gzip_vary`.
    vary: bool = false,
    /// `gzip_disable`.
    disable: Disable = Disable::default(),
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// `gzip_proxied`: which answers to requests that came through a proxy (`Via`) are compressed. None by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Proxied {
    pub off: bool,
    pub expired: bool,
    pub no_cache: bool,
    pub no_store: bool,
    pub private: bool,
    pub no_last_modified: bool,
    pub no_etag: bool,
    pub auth: bool,
    pub any: bool,
}

/// `gzip_disable`: user agents that get no compressed answers.
#[derive(Clone, Default)]
pub struct Disable {
    msie6: bool,
    patterns: Vec<Arc<Regex>>,
}

const HSLI: Contexts = HSL.or(LOCATION_IF);

/// The family.
pub static FAMILY: Family = Family::new(
    "gzip",
    &[
        Directive::new("gzip", HSLI, Arity::Flag, "Compresses responses.", |b, s| {
            crate::settings(b).gzip.enabled = Some(value::flag(s)?);
            Ok(())
        })
        .default("off"),
        Directive::new(
            "gzip_types",
            HSL,
            Arity::AtLeast(1),
            "The media types besides text/html that weir compresses; * for all.",
            types,
        )
        .default("text/html")
        .many(),
        Directive::new(
            "gzip_min_length",
            HSL,
            ONE,
            "weir does not compress a body with a shorter Content-Length.",
            |b, s| {
                crate::settings(b).gzip.min_length = Some(value::size(s)?);
                Ok(())
            },
        )
        .default("20"),
        Directive::new("gzip_comp_level", HSL, ONE, "From 1, fast, to 9, small.", |b, s| {
            crate::settings(b).gzip.level = Some(value::bounded(s, 1, 9)? as u32);
            Ok(())
        })
        .default("1"),
        Directive::new(
            "gzip_http_version",
            HSL,
            ONE,
            "The lowest HTTP version of requests that get compressed answers.",
            |b, s| {
                let version = value::choice(s, &[("1.0", Version::Http10), ("1.1", Version::Http11)])?;
                crate::settings(b).gzip.version = Some(version);
                Ok(())
            },
        )
        .default("1.1"),
        Directive::new(
            "gzip_proxied",
            HSL,
            Arity::AtLeast(1),
            "Selects the answers to proxies that weir compresses.",
            proxied,
        )
        .many()
        .default("off"),
        Directive::new(
            "gzip_vary",
            HSL,
            Arity::Flag,
            "Adds `Vary: Accept-Encoding`, so that caches store each encoding separately.",
            |b, s| {
                crate::settings(b).gzip.vary = Some(value::flag(s)?);
                Ok(())
            },
        )
        .default("off"),
        Directive::new("gzip_disable", HSL, Arity::AtLeast(1), "User agents that get no compressed answers.", disable)
            .many(),
        Directive::idle("gzip_buffers", HSL, TWO, "", "weir manages this memory itself", |_, s| {
            value::buffers(s).map(drop)
        }),
        Directive::idle("gzip_window", HSL, ONE, "", "weir manages this memory itself", |_, s| {
            power(s, 32 << 10, "must be 512, 1k, 2k, 4k, 8k, 16k, or 32k")
        }),
        Directive::idle("gzip_hash", HSL, ONE, "", "weir manages this memory itself", |_, s| {
            power(s, 128 << 10, "must be 512, 1k, 2k, 4k, 8k, 16k, 32k, 64k, or 128k")
        }),
        Directive::idle("postpone_gzipping", HSL, ONE, "", "weir manages this memory itself", |_, s| {
            value::size(s).map(drop)
        }),
        Directive::idle("gzip_no_buffer", HSL, Arity::Flag, "", "weir manages this memory itself", |_, s| {
            value::flag(s).map(drop)
        }),
    ],
);

/// Checks a size that is a power of two from 512 on.
fn power(statement: &Statement, most: u64, must: &'static str) -> Result<(), Refusal> {
    let size = value::size(statement)?;
    if size.is_power_of_two() && (512..=most).contains(&size) { Ok(()) } else { Err(Refusal::directive(must)) }
}

fn types(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let earlier = crate::settings(b).gzip.types.clone();
    crate::settings(b).gzip.types = Some(media_types::read(b, statement, earlier));
    Ok(())
}

fn proxied(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    // nginx: repeated in one block, the lists add up.
    let mut set = crate::settings(b).gzip.proxied.unwrap_or_default();
    for word in &statement.args {
        let flag = match word.text.to_ascii_lowercase().as_str() {
            "off" => &mut set.off,
            "expired" => &mut set.expired,
            "no-cache" => &mut set.no_cache,
            "no-store" => &mut set.no_store,
            "private" => &mut set.private,
            "no_last_modified" => &mut set.no_last_modified,
            "no_etag" => &mut set.no_etag,
            "auth" => &mut set.auth,
            "any" => &mut set.any,
            _ => return Err(Refusal::whole(format!("invalid value \"{}\"", word.text))),
        };
        if *flag {
            let word = &word.text;
            b.warn(format!("duplicate value \"{word}\""), None);
        } else {
            *flag = true;
        }
    }
    crate::settings(b).gzip.proxied = Some(set);
    Ok(())
}

fn disable(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut set = crate::settings(b).gzip.disable.clone().unwrap_or_default();
    for word in &statement.args {
        match word.text.as_str() {
            "msie6" => set.msie6 = true,
            pattern => {
                let regex = b.regex(pattern, true).map_err(Refusal::whole)?;
                set.patterns.push(Arc::new(regex));
            }
        }
    }
    crate::settings(b).gzip.disable = Some(set);
    Ok(())
}

/// Whether the settings let this client have gzip, if it accepts gzip (nginx: `ngx_http_gzip_ok`).
pub fn is_allowed(exchange: &Exchange<'_>, settings: &Values) -> bool {
    let came_by_proxy = exchange.request.field(Known::Via).is_some();
    is_allowed_without_proxy(exchange, settings) && (!came_by_proxy || proxy_takes_it(exchange, settings.proxied))
}

/// The same apart from any proxy that the request came through: what `gzip_proxied` allows depends on the answer.
pub fn is_allowed_without_proxy(exchange: &Exchange<'_>, settings: &Values) -> bool {
    let request = &exchange.request;
    if request.version() < settings.version {
        return false;
    }
    let agent = request.field(Known::UserAgent);
    if settings.disable.msie6 && agent.is_some_and(is_msie6) {
        return false;
    }
    let is_disabled = |agent| settings.disable.patterns.iter().any(|pattern| is_disabled_by(exchange, pattern, agent));
    !agent.is_some_and(is_disabled)
}

/// nginx: an error of the regular expression engine also disables compression.
fn is_disabled_by(exchange: &Exchange<'_>, pattern: &Regex, agent: &[u8]) -> bool {
    pattern.is_match(agent).unwrap_or_else(|failed| {
        weir_http::exchange::line::exchange_line(exchange, Level::Alert, format_args!("{failed}"));
        true
    })
}

fn proxy_takes_it(exchange: &Exchange<'_>, proxied: Proxied) -> bool {
    if proxied == Proxied::default() || proxied.off {
        return false;
    }
    if proxied.any || (proxied.auth && exchange.request.field(Known::Authorization).is_some()) {
        return true;
    }
    let response = &exchange.response;
    let fields = &response.fields;
    if let Some(expires) = fields.get(Known::Expires) {
        let date = match fields.get(Known::Date) {
            Some(text) => date::parse_http_date(text),
            None => Some(clock::unix_seconds() as i64),
        };
        return match (proxied.expired, date::parse_http_date(expires), date) {
            (true, Some(expires), Some(date)) => expires < date,
            _ => false,
        };
    }
    if fields.has(Known::CacheControl) {
        let says = |word: &[u8]| {
            fields
                .iter()
                .filter(|field| field.known == Some(Known::CacheControl))
                .any(|field| field.value.split(|b| *b == b',').any(|part| names(part, word)))
        };
        return (proxied.no_cache && says(b"no-cache"))
            || (proxied.no_store && says(b"no-store"))
            || (proxied.private && says(b"private"));
    }
    let has_time = response.last_modified.is_some() || fields.has(Known::LastModified);
    !(proxied.no_last_modified && has_time || proxied.no_etag && fields.has(Known::Etag))
}

/// Whether one directive of Cache-Control is `word`, with or without a value.
fn names(part: &[u8], word: &[u8]) -> bool {
    let part = part.trim_ascii();
    let name = part.split(|b| *b == b'=').next().unwrap_or_default();
    name.trim_ascii().eq_ignore_ascii_case(word)
}

/// Internet Explorer 4 to 6 without its service pack 2, as nginx knows it.
fn is_msie6(agent: &[u8]) -> bool {
    let Some(at) = memchr::memmem::find(agent, b"MSIE ") else { return false };
    if memchr::memmem::find(agent, b"Opera").is_some() {
        return false;
    }
    match agent.get(at + 5..at + 7) {
        Some(b"4." | b"5.") => true,
        Some(b"6.") => memchr::memmem::find(agent, b"SV1").is_none(),
        Some(_) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_browsers_are_told_by_their_names() {
        assert!(is_msie6(b"Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)"));
        assert!(!is_msie6(b"Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; SV1)"));
        assert!(!is_msie6(b"Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 5.1)"));
        assert!(!is_msie6(b"Mozilla/4.0 (compatible; MSIE 6.0; Windows NT) Opera 7"));
    }
}
