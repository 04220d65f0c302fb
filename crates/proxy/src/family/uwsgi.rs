//! `uwsgi_pass` and its family: passes requests to applications over uwsgi, the protocol of the uWSGI server.
//!
//! The settings are `bundle`'s, and `proxy_ssl`'s for `suwsgi://`. `protocol` composes the request.
//! <https://nginx.org/en/docs/http/ngx_http_uwsgi_module.html>

use std::sync::Arc;

use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Arity, Directive, HSL, LOCATION, LOCATION_IF, ONE, join};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
use weir_wire::uwsgi;

use crate::bundle::{self, Names, cgi_tables, own};
use crate::family::proxy::pass::Scheme;
use crate::family::proxy_ssl::towards_origins;
use crate::protocol::{Protocol, Uwsgi};

pub use crate::bundle::{Settings, Values};

/// Nothing is declared for all of `http`.
pub type Declared = ();

cgi_tables!("uwsgi", uwsgi);

const SSL: &[Directive] = towards_origins!("uwsgi_ssl", HSL, [uwsgi.ssl]);

const OWN: &[Directive] = &[
    Directive::new(
        "uwsgi_pass",
        LOCATION.or(LOCATION_IF),
        ONE,
        "The uwsgi server for requests of this location: [uwsgi://]HOST:PORT, unix:PATH or an upstream; suwsgi:// uses \
         TLS.",
        |b, s| bundle::pass(b, s, Scheme::Uwsgi, |all| &mut all.uwsgi.proxy),
    ),
    Directive::new(
        "uwsgi_modifier1",
        HSL,
        ONE,
        "The first modifier of the packet: the kind of application.",
        |b, s| {
            crate::settings(b).uwsgi.own.modifier1 = Some(value::bounded(s, 0, 255)? as u8);
            Ok(())
        },
    )
    .default("0"),
    Directive::new("uwsgi_modifier2", HSL, ONE, "The second modifier of the packet.", |b, s| {
        crate::settings(b).uwsgi.own.modifier2 = Some(value::bounded(s, 0, 255)? as u8);
        Ok(())
    })
    .default("0"),
    Directive::new("uwsgi_string", HSL, ONE, "Bytes that follow the parameters of the packet, unchanged.", |b, s| {
        crate::settings(b).uwsgi.own.string = Some(s.text(0).to_owned());
        Ok(())
    }),
];

static ALL: [Directive;
    TALKING.len() + HEADS.len() + PASSING.len() + CACHING.len() + STORING.len() + PARAM.len() + SSL.len() + OWN.len()] =
    join(&[TALKING, HEADS, PASSING, CACHING, STORING, PARAM, SSL, OWN]);

/// The family.
pub static FAMILY: Family = Family::new("uwsgi", &ALL)
    .finish(finish)
    .settle(|location| bundle::settle(crate::values_mut(location), |values| &mut values.uwsgi));

const NAMES: Names =
    Names { scheme: Scheme::Uwsgi, cache: ("uwsgi_cache", "uwsgi_cache_key"), temporary: "uwsgi_temp" };

fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    let mut settings = std::mem::take(&mut crate::written_mut(scope).uwsgi);
    bundle::finish(b, scope, &mut settings, &NAMES, protocol);
    crate::written_mut(scope).uwsgi = settings;
}

fn protocol(b: &mut Build<'_>, own: own::Values) -> Result<Protocol, Refusal> {
    let params = bundle::params(b, &own.params, uwsgi::push_param)?;
    let string = own.string.into_bytes().into();
    Ok(Protocol::Uwsgi(Arc::new(Uwsgi { params, modifiers: (own.modifier1, own.modifier2), string })))
}
