//! `resolver` and `resolver_timeout`: the DNS servers for names at run time.
//!
//! <https://nginx.org/en/docs/http/ngx_http_core_module.html#resolver>

use std::sync::Arc;
use std::time::Duration;

use weir_conf::Statement;
use weir_http::hold::dns::{ResolverZone, Servers, TIMEOUT_DEFAULT, reading};
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Contexts, Directive, ONE};
use weir_http::text::refusal::Refusal;
use weir_http::text::value;

use crate::Parts;

weir_http::settings! {
    /// `resolver`.
    servers: Option<Arc<Servers>> = None,
    /// `resolver_timeout`.
    timeout: Duration = TIMEOUT_DEFAULT,
}

/// All resolvers of `http`, or all of `stream`.
#[derive(Default)]
pub struct Declared {
    /// In the order of the file.
    pub all: Vec<Arc<Servers>>,
}

impl Declared {
    /// The status zones, each once, in the order of the file.
    pub fn zones(&self) -> Vec<&Arc<ResolverZone>> {
        reading::zones(&self.all)
    }

    /// Goes on with the counts of the older configuration.
    pub fn adopt(&self, old: &Declared) {
        for zone in self.zones() {
            if let Some(old) = old.zones().into_iter().find(|old| old.name == zone.name) {
                zone.adopt(old);
            }
        }
    }
}

/// The directives, in these blocks.
pub const fn directives<P: Parts>(contexts: Contexts) -> [Directive; 2] {
    let servers = "Names the DNS servers that weir asks at run time: addresses, valid= ipv4= ipv6= status_zone=.";
    let timeout = "The longest time for resolving a name.";
    [
        Directive::new("resolver", contexts, Arity::AtLeast(1), servers, resolver::<P>),
        Directive::new("resolver_timeout", contexts, ONE, timeout, resolver_timeout::<P>).default("30s"),
    ]
}

fn resolver<P: Parts>(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut all = std::mem::take(&mut P::resolvers(b).all);
    let read = reading::read(b, statement, &mut all);
    P::resolvers(b).all = all;
    P::resolver(b.scope()).servers = Some(Some(read?));
    Ok(())
}

fn resolver_timeout<P: Parts>(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    P::resolver(b.scope()).timeout = Some(value::time(statement)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::tests::{declared, of_text};
    use std::sync::atomic::Ordering;
    use weir_wire::dns::Kind;

    #[test]
    fn what_is_wrong_is_told_in_nginx_words() {
        for (words, told) in [
            ("127.0.0.1 valid=x", "invalid parameter: valid=x"),
            ("127.0.0.1 ipv6=maybe", "invalid parameter: ipv6=maybe"),
            ("127.0.0.1 ipv4=off ipv6=off", "\"ipv4\" and \"ipv6\" cannot both be \"off\""),
            ("valid=5s", "no name servers defined"),
            ("127.0.0.1:0", "invalid port in resolver \"127.0.0.1:0\""),
            ("unix:/x", "invalid address in resolver \"unix:/x\""),
            ("127.0.0.1; resolver 127.0.0.2", "\"resolver\" directive is duplicate"),
        ] {
            assert_eq!(of_text(&format!("resolver {words};")).1, [told], "{words}");
        }
    }

    #[test]
    fn a_zone_is_shared_and_outlives_a_reload() {
        let text = "resolver 127.0.0.1 status_zone=z; upstream u { zone u; server a.test resolve; resolver 127.0.0.2 status_zone=z; }
                    upstream v { zone v; server a.test resolve; resolver 127.0.0.3:5353 [::1]; }";
        let [old, new] = [(); 2].map(|()| of_text(text).0.unwrap());
        let zones = declared(&old).resolver.zones();
        assert_eq!(zones.iter().map(|zone| zone.name.as_str()).collect::<Vec<_>>(), ["z", "127.0.0.3:5353 [::1]:53"]);
        zones[0].counters().asked(Kind::A);
        declared(&new).resolver.adopt(&declared(&old).resolver);
        assert_eq!(declared(&new).resolver.zones()[0].counters().name.load(Ordering::Relaxed), 1);
    }
}
