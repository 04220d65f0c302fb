//! `proxy_cache_purge` and its kin, in two grammars: that of NGINX Plus and that of the module ngx_cache_purge.
//!
//! A first word with a variable, or one that cannot begin a method, is NGINX Plus's: `string ...`. Any other first word is
//! the module's: `on|off|METHOD [purge_all] [from all|ADDRESS...]`, or with exactly two words `ZONE KEY`. The answers are
//! those of the grammar in use. <https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_cache_purge>,
//! <https://github.com/nginx-modules/ngx_cache_purge>, `docs/guide/cache.md`.

use std::sync::Arc;

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::phase::{Next, Outcome};
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Arity, Directive, HSL, HTTP, LOCATION, ONE};
use weir_http::read::families::Family;
use weir_http::text::cidr::Cidr;
use weir_http::text::refusal::Refusal;
use weir_http::text::template::Template;
use weir_http::text::value;

use crate::family::cache;
use crate::family::cache::facts::Use;
use crate::family::cache::purging::{ByMethod, Form, Purging, answer, check};

weir_http::settings! {
    /// `cache_purge_response_type`.
    form: Form = Form::Html,
    /// The purges of a location that asks no upstream.
    here: Option<Arc<Here>> = None,
}

/// The declarations for all of `http`.
#[derive(Default)]
pub struct Declared {
    /// `cache_purge_legacy_status off`.
    pub(in crate::family) absent_is_not_found: bool,
}

/// The purges of a location that asks no upstream.
#[derive(Clone)]
pub struct Here {
    /// The prefix of the directive.
    prefix: &'static str,
    directive: &'static str,
    /// The method that purges; `None` if every request does.
    method: Option<Arc<ByMethod>>,
    zone: Use,
    key: Option<Template>,
    of: cache::CacheOf,
}

const FORMS: &[(&str, Form)] = &[("html", Form::Html), ("json", Form::Json), ("xml", Form::Xml), ("text", Form::Text)];

/// `…_cache_purge` of the family with this prefix; its settings are below `Settings` at this path.
macro_rules! purge {
    ($prefix:literal, $($path:tt)+) => {
        Directive::new(concat!($prefix, "_cache_purge"), HSL, Arity::AtLeast(1),
            "If one of these values is neither empty nor 0, weir purges the key; if the key ends in *, all keys that begin with it. \
             Without a variable in the first word, as ngx_cache_purge: on|off|METHOD [purge_all] [from all|ADDRESS...], or in a \
             location of its own: ZONE KEY.",
            |b, s| read(b, s, ($prefix, concat!($prefix, "_cache_purge")), |all| &mut all.$($path)+))
    };
}

/// The family.
pub static FAMILY: Family = Family::new(
    "cache_purge",
    &[
        purge!("proxy", cache),
        purge!("fastcgi", fastcgi.cache),
        purge!("uwsgi", uwsgi.cache),
        purge!("scgi", scgi.cache),
        Directive::new(
            "cache_purge_response_type",
            HSL,
            ONE,
            "The form of the page after a purge by a method, or by a zone and a key: html, json, xml or text.",
            |b, s| {
                crate::settings(b).cache_purge.form = Some(value::choice(s, FORMS)?);
                Ok(())
            },
        )
        .default("html"),
        Directive::new(
            "cache_purge_legacy_status",
            HTTP,
            Arity::Flag,
            "Answers 412 if a purge by a method, or by a zone and a key, finds nothing; with off, weir answers 404.",
            |b, s| {
                crate::declaring(b).cache_purge.absent_is_not_found = !value::flag(s)?;
                Ok(())
            },
        )
        .default("on"),
        Directive::idle(
            "cache_purge_background_queue",
            HTTP,
            Arity::Flag,
            "off",
            "a purge of weir is complete before its answer, and reads no files",
            |_, s| value::flag(s).map(drop),
        ),
        Directive::idle("cache_purge_queue_size", HTTP, ONE, "", "weir's purges need no queue", |_, s| {
            value::first_number(s).map(drop)
        }),
        Directive::idle("cache_purge_batch_size", HTTP, ONE, "", "weir's purges need no queue", |_, s| {
            value::first_number(s).map(drop)
        }),
        Directive::idle("cache_purge_throttle_ms", HTTP, ONE, "", "weir's purges need no queue", |_, s| {
            value::time(s).map(drop)
        }),
        Directive::idle(
            "cache_purge_vary_aware",
            HTTP,
            Arity::Flag,
            "on",
            "a purge of weir always removes all variants of a key",
            |_, s| value::flag(s).map(drop),
        ),
    ],
)
.finish(finish);

/// `…_cache_purge` of the family with this prefix.
fn read(
    b: &mut Build<'_>,
    statement: &Statement,
    (prefix, directive): (&'static str, &'static str),
    of: cache::CacheOf,
) -> Result<(), Refusal> {
    let first = statement.text(0);
    let is_word = first.starts_with(|c: char| c.is_ascii_alphabetic());
    let purging = match statement.args.len() {
        // No method begins with a digit, and `""` is the value of an unset switch.
        1 if !is_word => Purging::ByValue(cache::templates(b, statement)?),
        _ if first.contains('$') => Purging::ByValue(cache::templates(b, statement)?),
        1 if first == "off" => Purging::Nobody,
        2 => return zone_and_key(b, statement, (prefix, directive), of),
        _ => Purging::ByMethod(Arc::new(method(b, statement)?)),
    };
    if let Purging::ByMethod(method) = &purging
        && b.context() == LOCATION
        && b.scope().handler.is_none()
    {
        // A `…_pass` that follows takes the place of this handler.
        let here = Here { prefix, directive, method: Some(method.clone()), zone: Use::Off, key: None, of };
        crate::settings(b).cache_purge.here = Some(Some(Arc::new(here)));
        b.scope().handler = Some(enter);
    }
    of(crate::settings(b)).purge = Some(purging);
    Ok(())
}

/// `ZONE KEY`: every request to the location purges this key.
fn zone_and_key(
    b: &mut Build<'_>,
    statement: &Statement,
    (prefix, directive): (&'static str, &'static str),
    of: cache::CacheOf,
) -> Result<(), Refusal> {
    if b.context() != LOCATION {
        return Err(Refusal::directive("(separate location syntax) is not allowed here")
            .todo("write a method, then from: PURGE from 127.0.0.1; or ZONE and KEY in a location of its own"));
    }
    let not_beside = |other: &str| {
        Refusal::directive(format!("is incompatible with \"{prefix}_{other}\""))
            .todo("write ZONE and KEY in a location of its own; beside an upstream, a method: PURGE from 127.0.0.1")
    };
    if matches!(of(crate::settings(b)).zone, Some(Use::Zone(..) | Use::Named(_))) {
        return Err(not_beside("cache"));
    }
    if b.scope().handler.is_some() {
        return Err(not_beside("pass"));
    }
    let key = Some(b.template(statement.text(1))?);
    let zone = Use::Zone(statement.text(0).to_owned(), None);
    crate::settings(b).cache_purge.here = Some(Some(Arc::new(Here { prefix, directive, method: None, zone, key, of })));
    b.scope().handler = Some(enter);
    Ok(())
}

/// `on|METHOD [purge_all] [from all|ADDRESS...]`.
fn method(b: &mut Build<'_>, statement: &Statement) -> Result<ByMethod, Refusal> {
    let method = match statement.text(0) {
        "on" => "PURGE",
        method => method,
    };
    let mut read = ByMethod { method: method.as_bytes().into(), all: false, from: Vec::new() };
    let mut words = statement.args.iter().skip(1).map(|word| word.text.as_str()).peekable();
    read.all = words.next_if_eq(&"purge_all").is_some();
    match words.next() {
        None if !read.all => return Ok(read),
        Some("from") => {}
        other => {
            let other = other.unwrap_or_default();
            return Err(Refusal::whole(format!("invalid parameter \"{other}\", expected \"from\" keyword"))
                .todo("write on, off or a method, then perhaps purge_all, then from all or from addresses"));
        }
    }
    if words.next_if_eq(&"all").is_some() {
        return Ok(read);
    }
    if words.peek().is_none() {
        return Err(Refusal::whole("invalid parameter \"from\"").todo("write all or addresses after from"));
    }
    for word in words {
        let (network, has_low_bits) =
            Cidr::parse(word).ok_or_else(|| Refusal::whole(format!("invalid parameter \"{word}\"")))?;
        if has_low_bits {
            b.warn(format!("low address bits of {word} are meaningless"), None);
        }
        read.from.push(network);
    }
    Ok(read)
}

/// Finds the zone of a location that asks no upstream.
fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    let Some(Some(here)) = crate::written(scope).cache_purge.here.clone() else { return };
    let mut here = Arc::unwrap_or_clone(here);
    match &here.method {
        None => cache::find_zone(b, scope, &mut here.zone, (here.prefix, here.directive)),
        // The family of the cache reports a zone that is missing.
        Some(_) => {
            let settings = (here.of)(crate::written_mut(scope));
            (here.zone, here.key) = (settings.zone.clone().unwrap_or(Use::Off), settings.key.clone().flatten());
        }
    }
    crate::written_mut(scope).cache_purge.here = Some(Some(Arc::new(here)));
}

/// A request to a location that asks no upstream.
fn enter(exchange: &mut Exchange<'_>) -> Next {
    let Some(here) = &crate::values(exchange.location).cache_purge.here else { return Next::Continue };
    let all = match &here.method {
        Some(by) if *by.method != *exchange.request.method() => return Next::Continue,
        Some(by) => match check(exchange, by) {
            Ok(()) => by.all,
            Err(status) => return Next::Status(status),
        },
        None => false,
    };
    let zone = match cache::zone_of(exchange, &here.zone) {
        Ok(Some(zone)) => zone,
        Ok(None) => return Next::Status(404),
        Err(status) => return Next::Status(status),
    };
    let mut key = weir_net::buffer::lease(0);
    if let Some(template) = &here.key {
        template.eval(exchange, &mut key);
    }
    match answer(exchange, zone, &key, all) {
        Outcome::Respond => Next::Respond,
        Outcome::Status(status) => Next::Status(status),
        _ => Next::Status(500),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use crate::of_text;

    fn said(prefix: &str, place: &str, words: &str) -> Vec<String> {
        let statement = format!("{prefix}_cache_purge {words};");
        let scheme = if prefix == "proxy" { "http://" } else { "" };
        let pass = format!("{prefix}_pass {scheme}127.0.0.1:2; {prefix}_cache z; {prefix}_cache_key $uri;");
        let (http, location) = match place {
            "http" => (statement, String::new()),
            "pass" => (String::new(), format!("{pass} {statement}")),
            _ => (String::new(), statement),
        };
        of_text(&format!(
            "events {{}} http {{ {prefix}_cache_path /c keys_zone=z:1m; {http} server {{ listen 127.0.0.1:1; location / {{ {location} }} }} }}"
        ))
        .1
    }

    #[test]
    fn both_grammars_are_read_under_every_prefix() {
        for prefix in ["proxy", "fastcgi", "uwsgi", "scgi"] {
            for (place, words, refusal) in [
                ("pass", "$purge_it", "unknown \"purge_it\" variable"),
                ("pass", "$arg_a $arg_b", ""),
                ("pass", "$arg_a from 127.0.0.1", ""),
                ("pass", "1", ""),
                ("pass", "on", ""),
                ("pass", "off", ""),
                ("pass", "PURGE", ""),
                ("pass", "PURGE from 127.0.0.1 10.0.0.0/8 ::1", ""),
                ("pass", "PURGE from all", ""),
                ("pass", "DELETE purge_all from all", ""),
                ("pass", "PURGE for all", "invalid parameter \"for\", expected \"from\" keyword"),
                ("pass", "PURGE purge_all to all", "invalid parameter \"to\", expected \"from\" keyword"),
                ("pass", "PURGE from somewhere", "invalid parameter \"somewhere\""),
                ("pass", "PURGE from 10.0.0.1/8", "low address bits of 10.0.0.1/8 are meaningless"),
                ("pass", "z $uri", "is incompatible with"),
                ("alone", "z $uri", ""),
                ("alone", "y $uri", "zone \"y\" is unknown"),
                ("alone", "GET purge_all from all", ""),
                ("http", "z $uri", "(separate location syntax) is not allowed here"),
                ("http", "PURGE from 127.0.0.1", ""),
            ] {
                let said = said(prefix, place, words);
                let is_said =
                    if refusal.is_empty() { said.is_empty() } else { said.iter().any(|one| one.contains(refusal)) };
                assert!(is_said, "{prefix} {place} {words}: {said:?}");
            }
        }
    }
}
