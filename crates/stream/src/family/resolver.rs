//! `resolver` and `resolver_timeout` of `stream`.
//!
//! <https://nginx.org/en/docs/stream/ngx_stream_core_module.html#resolver>

use std::sync::Arc;
use std::time::Duration;

use weir_conf::Statement;
use weir_http::hold::dns::{Servers, TIMEOUT_DEFAULT, reading};
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Directive, ONE, SS, STREAM_UPSTREAM};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;

weir_http::settings! {
    /// `resolver`.
    servers: Option<Arc<Servers>> = None,
    /// `resolver_timeout`.
    timeout: Duration = TIMEOUT_DEFAULT,
}

/// All resolvers of `stream`.
#[derive(Default)]
pub struct Declared {
    /// In the order of the file.
    pub all: Vec<Arc<Servers>>,
}

/// The family.
pub static FAMILY: Family = Family::new(
    "stream_resolver",
    &[
        Directive::new(
            "resolver",
            SS.or(STREAM_UPSTREAM),
            Arity::AtLeast(1),
            "Names the DNS servers that weir asks at run time: addresses, valid= ipv4= ipv6= status_zone=.",
            resolver,
        ),
        Directive::new(
            "resolver_timeout",
            SS.or(STREAM_UPSTREAM),
            ONE,
            "The longest time for resolving a name.",
            |b, s| {
                crate::settings(b).resolver.timeout = Some(value::time(s)?);
                Ok(())
            },
        )
        .default("30s"),
    ],
)
.adopt(|new, old| {
    for zone in reading::zones(&crate::declared(new).resolver.all) {
        let before = reading::zones(&crate::declared(old).resolver.all);
        if let Some(old) = before.into_iter().find(|old| old.name == zone.name) {
            zone.adopt(old);
        }
    }
    Ok(())
});

fn resolver(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut all = std::mem::take(&mut crate::declaring(b).resolver.all);
    let read = reading::read(b, statement, &mut all);
    crate::declaring(b).resolver.all = all;
    crate::settings(b).resolver.servers = Some(Some(read?));
    Ok(())
}
