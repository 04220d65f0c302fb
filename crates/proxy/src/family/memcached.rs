//! `memcached_pass` and its family: answers with values from memcached, under the key in `$memcached_key`.
//!
//! The settings are `bundle`'s, and nginx fixes many of them. `upstream::heads` and `records` read the answer.
//! <https://nginx.org/en/docs/http/ngx_http_memcached_module.html>

use std::sync::Arc;

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::conf::Location;
use weir_http::exchange::phase::Next;
use weir_http::exchange::special;
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Arity, Directive, HSL, LOCATION, LOCATION_IF, ONE, join};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
use weir_peers::retry::Conditions;

use crate::bundle::{self, Names, own};
use crate::family::cache::facts::Use;
use crate::family::proxy::pass::Scheme;
use crate::family::proxy::shared::talking;
use crate::family::proxy::{self};
use crate::family::store::Store;
use crate::protocol::{Memcached, Protocol};

pub use crate::bundle::{Settings, Values};

/// Nothing is declared for all of `http`.
pub type Declared = ();

const TALKING: &[Directive] = talking!("memcached", memcached.proxy);

const OWN: &[Directive] = &[
    Directive::new(
        "memcached_pass",
        LOCATION.or(LOCATION_IF),
        ONE,
        "The memcached server for requests of this location: HOST:PORT, unix:PATH or an upstream.",
        pass,
    ),
    Directive::new("memcached_buffer_size", HSL, ONE, "The buffer size for the first line of an answer.", |b, s| {
        crate::settings(b).memcached.proxy.buffer_size = Some(value::size(s)?);
        Ok(())
    })
    .default("16k (nginx: 4k|8k)"),
    Directive::new(
        "memcached_next_upstream",
        HSL,
        Arity::AtLeast(1),
        "The failures after which weir tries another peer: error timeout invalid_response not_found off.",
        next_upstream,
    )
    .many()
    .default("error timeout"),
    Directive::new(
        "memcached_gzip_flag",
        HSL,
        ONE,
        "The flag of values that are compressed: their answers get Content-Encoding: gzip.",
        |b, s| {
            crate::settings(b).memcached.own.gzip_flag = Some(value::first_number(s)?);
            Ok(())
        },
    ),
];

static ALL: [Directive; TALKING.len() + OWN.len()] = join(&[TALKING, OWN]);

/// The family.
pub static FAMILY: Family = Family::new("memcached", &ALL).finish(finish).settle(settle);

const NAMES: Names = Names {
    scheme: Scheme::Memcached,
    // No directive sets a cache here.
    cache: ("memcached_cache", "memcached_cache_key"),
    temporary: "memcached_temp",
};

fn pass(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    // nginx evaluates no variables here.
    let pass = proxy::pass::Pass::parse(Scheme::Memcached, statement.text(0))?;
    b.scope().pass(enter);
    // nginx: files answer the methods of a `limit_except`.
    b.scope().answers_limit_except = false;
    proxy::claim(b, |all| &mut all.memcached.proxy, pass);
    Ok(())
}

/// Only GET and HEAD have a meaning here.
fn enter(exchange: &mut Exchange<'_>) -> Next {
    match exchange.request.method() {
        b"GET" | b"HEAD" => Next::Forward,
        _ => special::not_allowed(exchange, special::READS),
    }
}

fn next_upstream(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut conditions = crate::settings(b).memcached.proxy.next_upstream.unwrap_or(Conditions::NONE);
    for word in &statement.args {
        conditions = conditions
            | match word.text.to_ascii_lowercase().as_str() {
                "error" => Conditions::ERROR,
                "timeout" => Conditions::TIMEOUT,
                "invalid_response" => Conditions::INVALID_HEADER,
                "not_found" => Conditions::HTTP_404,
                "off" => Conditions::OFF,
                other => return Err(Refusal::whole(format!("invalid value \"{other}\""))),
            };
    }
    crate::settings(b).memcached.proxy.next_upstream = Some(conditions);
    Ok(())
}

fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    let mut settings = std::mem::take(&mut crate::written_mut(scope).memcached);
    bundle::finish(b, scope, &mut settings, &NAMES, protocol);
    crate::written_mut(scope).memcached = settings;
}

fn protocol(b: &mut Build<'_>, own: own::Values) -> Result<Protocol, Refusal> {
    let key = b.template("$memcached_key")?;
    Ok(Protocol::Memcached(Arc::new(Memcached { key, gzip_flag: own.gzip_flag })))
}

/// Where memcached answers, its settings replace `proxy`'s, with the values that nginx fixes.
fn settle(location: &mut Location) {
    let values = crate::values_mut(location);
    bundle::settle(values, |values| &mut values.memcached);
    if matches!(values.proxy.protocol, Protocol::Memcached(_)) {
        let fixed = &mut values.proxy;
        (fixed.buffering, fixed.request_buffering, fixed.pass_body) = (false, false, false);
        (fixed.intercept_errors, fixed.force_ranges) = (true, true);
        fixed.max_temp_file = Some(0);
        values.cache.zone = Use::Off;
        values.store.store = Store::Off;
        values.slice.size = 0;
    }
}
