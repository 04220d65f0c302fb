//! `scgi_pass` and its family: passes requests to applications over SCGI.
//!
//! The settings are `bundle`'s. `protocol` composes the request.
//! <https://nginx.org/en/docs/http/ngx_http_scgi_module.html>

use std::sync::Arc;

use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Arity, Directive, HSL, LOCATION, LOCATION_IF, ONE, join};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_wire::scgi;

use crate::bundle::{self, Names, cgi_tables, own};
use crate::family::proxy::pass::Scheme;
use crate::protocol::{Protocol, Scgi};

pub use crate::bundle::{Settings, Values};

/// Nothing is declared for all of `http`.
pub type Declared = ();

cgi_tables!("scgi", scgi);

const OWN: &[Directive] = &[Directive::new(
    "scgi_pass",
    LOCATION.or(LOCATION_IF),
    ONE,
    "The SCGI server for requests of this location: HOST:PORT, unix:PATH or an upstream.",
    |b, s| bundle::pass(b, s, Scheme::Scgi, |all| &mut all.scgi.proxy),
)];

static ALL: [Directive;
    TALKING.len() + HEADS.len() + PASSING.len() + CACHING.len() + STORING.len() + PARAM.len() + OWN.len()] =
    join(&[TALKING, HEADS, PASSING, CACHING, STORING, PARAM, OWN]);

/// The family.
pub static FAMILY: Family = Family::new("scgi", &ALL)
    .finish(finish)
    .settle(|location| bundle::settle(crate::values_mut(location), |values| &mut values.scgi));

const NAMES: Names = Names { scheme: Scheme::Scgi, cache: ("scgi_cache", "scgi_cache_key"), temporary: "scgi_temp" };

fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    let mut settings = std::mem::take(&mut crate::written_mut(scope).scgi);
    bundle::finish(b, scope, &mut settings, &NAMES, protocol);
    crate::written_mut(scope).scgi = settings;
}

fn protocol(b: &mut Build<'_>, own: own::Values) -> Result<Protocol, Refusal> {
    Ok(Protocol::Scgi(Arc::new(Scgi { params: bundle::params(b, &own.params, scgi::push_param)? })))
}
