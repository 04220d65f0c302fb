//! `fastcgi_pass` and its family: passes requests to applications over FastCGI, such as PHP-FPM.
//!
//! The settings are `bundle`'s. `protocol` composes the request, `upstream::heads` and `records` read the answer.
//! <https://nginx.org/en/docs/http/ngx_http_fastcgi_module.html>

use std::sync::Arc;

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::variable::Variable;
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Arity, Directive, HSL, LOCATION, LOCATION_IF, ONE, join};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::slots::Captures;
use weir_http::text::value;
use weir_net::log::Level;
use weir_wire::fastcgi;

use crate::bundle::{self, Names, cgi_tables, own};
use crate::family::proxy::pass::Scheme;
use crate::protocol::{FastCgi, Protocol};

pub use crate::bundle::{Settings, Values};

/// Nothing is declared for all of `http`.
pub type Declared = ();

cgi_tables!("fastcgi", fastcgi);

const OWN: &[Directive] = &[
    Directive::new(
        "fastcgi_pass",
        LOCATION.or(LOCATION_IF),
        ONE,
        "The FastCGI server for requests of this location: HOST:PORT, unix:PATH or an upstream.",
        |b, s| bundle::pass(b, s, Scheme::FastCgi, |all| &mut all.fastcgi.proxy),
    ),
    Directive::new(
        "fastcgi_index",
        HSL,
        ONE,
        "The file for paths that end with /, in $fastcgi_script_name.",
        |b, s| {
            crate::settings(b).fastcgi.own.index = Some(s.text(0).to_owned());
            Ok(())
        },
    ),
    Directive::new(
        "fastcgi_split_path_info",
        HSL,
        ONE,
        "A pattern with two groups: $fastcgi_script_name and $fastcgi_path_info.",
        split_path_info,
    )
    .many(),
    Directive::new(
        "fastcgi_catch_stderr",
        HSL,
        ONE,
        "A text in the application's standard error that makes its answer invalid.",
        |b, s| {
            let text = s.text(0).to_owned();
            crate::settings(b).fastcgi.own.catch_stderr.get_or_insert_default().push(text);
            Ok(())
        },
    )
    .many(),
    Directive::new(
        "fastcgi_keep_conn",
        HSL,
        Arity::Flag,
        "Asks the FastCGI server to keep connections open.",
        |b, s| {
            crate::settings(b).fastcgi.own.keep_conn = Some(value::flag(s)?);
            Ok(())
        },
    )
    .default("off"),
    Directive::idle("fastcgi_send_lowat", HSL, ONE, "", "Linux has no such limit", |_, s| {
        weir_http::text::value::size(s).map(drop)
    }),
];

static ALL: [Directive;
    TALKING.len() + HEADS.len() + PASSING.len() + CACHING.len() + STORING.len() + PARAM.len() + OWN.len()] =
    join(&[TALKING, HEADS, PASSING, CACHING, STORING, PARAM, OWN]);

/// The family.
pub static FAMILY: Family = Family::new("fastcgi", &ALL)
    .variables(&[
        Variable::without_answer("fastcgi_script_name", |exchange, _, out| {
            script_name(exchange, out);
            true
        }),
        Variable::without_answer("fastcgi_path_info", |exchange, _, out| {
            let captures = split(exchange);
            out.extend_from_slice(captures.get(2).unwrap_or_default());
            true
        }),
    ])
    .finish(finish)
    .settle(|location| bundle::settle(crate::values_mut(location), |values| &mut values.fastcgi));

/// Appends the name of the script: of a directory, its index.
fn script_name(exchange: &mut Exchange<'_>, out: &mut Vec<u8>) {
    let captures = split(exchange);
    let name = captures.get(1).unwrap_or(exchange.uri);
    out.extend_from_slice(name);
    if name.ends_with(b"/")
        && let Some(split) = &crate::values(exchange.location).fastcgi.split
    {
        out.extend_from_slice(split.index.as_bytes());
    }
}

/// The groups of `fastcgi_split_path_info`; none if there is no pattern or it does not match.
fn split(exchange: &mut Exchange<'_>) -> Captures {
    let mut captures = Captures::default();
    let location = exchange.location;
    let Some(regex) = crate::values(location).fastcgi.split.as_ref().and_then(|split| split.regex.as_ref()) else {
        return captures;
    };
    match regex.capture(exchange.uri, &mut captures) {
        Ok(true) => {}
        Ok(false) => captures.clear(),
        Err(failed) => {
            captures.clear();
            exchange.log(Level::Alert, format_args!("{failed}"));
        }
    }
    captures
}

fn split_path_info(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let pattern = statement.text(0);
    let regex = b.regex(pattern, false).map_err(Refusal::whole)?;
    if regex.groups() != 2 {
        return Err(Refusal::whole(format!("pattern \"{pattern}\" must have 2 captures")));
    }
    crate::settings(b).fastcgi.own.split = Some(Some(Arc::new(regex)));
    Ok(())
}

const NAMES: Names =
    Names { scheme: Scheme::FastCgi, cache: ("fastcgi_cache", "fastcgi_cache_key"), temporary: "fastcgi_temp" };

fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    let mut settings = std::mem::take(&mut crate::written_mut(scope).fastcgi);
    bundle::finish(b, scope, &mut settings, &NAMES, protocol);
    crate::written_mut(scope).fastcgi = settings;
}

fn protocol(b: &mut Build<'_>, own: own::Values) -> Result<Protocol, Refusal> {
    let params = bundle::params(b, &own.params, fastcgi::push_param)?;
    let caught = own.catch_stderr.iter().map(|text| text.as_bytes().into()).collect();
    Ok(Protocol::FastCgi(Arc::new(FastCgi { params, keeps: own.keep_conn, caught })))
}
