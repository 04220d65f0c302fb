//! `resolver` and `resolver_timeout`: the DNS servers for names at run time.
//!
//! `dns` sends the queries; `upstream::forward` resolves names in `proxy_pass`, and `upstream::live` resolves names of
//! upstreams' servers. <https://nginx.org/en/docs/http/ngx_http_core_module.html#resolver>

use std::sync::Arc;
use std::time::Duration;

use weir_conf::Statement;
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Directive, HSL, ONE, UPSTREAM};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;

use weir_http::hold::dns::{ResolverZone, Servers, TIMEOUT_DEFAULT, reading};

weir_http::settings! {
    /// `resolver`.
    servers: Option<Arc<Servers>> = None,
    /// `resolver_timeout`.
    timeout: Duration = TIMEOUT_DEFAULT,
}

/// All resolvers of a configuration.
#[derive(Default)]
pub struct Declared {
    /// By their number.
    pub all: Vec<Arc<Servers>>,
}

impl Declared {
    /// The status zones, each once, in the order of the file.
    pub fn zones(&self) -> Vec<&Arc<ResolverZone>> {
        reading::zones(&self.all)
    }
}

/// The family.
pub static FAMILY: Family = Family::new(
    "resolver",
    &[
        Directive::new(
            "resolver",
            HSL.or(UPSTREAM),
            Arity::AtLeast(1),
            "Names the DNS servers that weir asks at run time: addresses, valid= ipv4= ipv6= status_zone=.",
            resolver,
        ),
        Directive::new("resolver_timeout", HSL.or(UPSTREAM), ONE, "The longest time for resolving a name.", |b, s| {
            crate::settings(b).resolver.timeout = Some(value::time(s)?);
            Ok(())
        })
        .default("30s"),
    ],
)
.adopt(|new, old| {
    for zone in crate::declared(new).resolver.zones() {
        if let Some(old) = crate::declared(old).resolver.zones().into_iter().find(|old| old.name == zone.name) {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use crate::of_text;

    fn problems(line: &str) -> Vec<String> {
        of_text(&format!("events {{}}\nhttp {{ {line} server {{ listen 80; }} }}")).1
    }

    #[test]
    fn what_is_wrong_is_told_in_nginx_words() {
        for (line, words) in [
            ("resolver 127.0.0.1 valid=x;", "invalid parameter: valid=x"),
            ("resolver 127.0.0.1 ipv6=maybe;", "invalid parameter: ipv6=maybe"),
            ("resolver 127.0.0.1 ipv4=off ipv6=off;", "\"ipv4\" and \"ipv6\" cannot both be \"off\""),
            ("resolver valid=5s;", "no name servers defined"),
            ("resolver 127.0.0.1:0;", "invalid port in resolver \"127.0.0.1:0\""),
            ("resolver unix:/x;", "invalid address in resolver \"unix:/x\""),
            ("resolver 127.0.0.1; resolver 127.0.0.2;", "\"resolver\" directive is duplicate"),
            (
                "upstream u { zone z 1m; server a.example resolve; }",
                "no resolver defined to resolve names at run time in upstream \"u\"",
            ),
            (
                "resolver [::1]; upstream u { server a.example resolve; }",
                "resolving names at run time requires upstream \"u\" to be in shared memory",
            ),
            (
                "resolver [::1]; upstream u { zone z 1m; server a.example service=x; }",
                "service upstream \"a.example\" requires \"resolve\" parameter",
            ),
            (
                "resolver [::1]; upstream u { zone z 1m; server a.example:80 service=x resolve; }",
                "service upstream \"a.example:80\" may not have port",
            ),
            (
                "resolver [::1]; upstream u { zone z 1m; server 127.0.0.1 service=x resolve; }",
                "service upstream \"127.0.0.1\" requires domain name",
            ),
            ("resolver [::1]; upstream u { zone z 1m; server a.example service= resolve; }", "service is empty"),
        ] {
            assert_eq!(problems(line), [words], "{line}");
        }
    }

    #[test]
    fn a_zone_is_shared_and_outlives_a_reload() {
        let text = "events {}\nhttp { resolver 127.0.0.1 status_zone=z; server { listen 80; resolver 127.0.0.2 status_zone=z; \
                    location / { resolver 127.0.0.3:5353 [::1]; } } }";
        let (old, new) = (of_text(text).0.unwrap(), of_text(text).0);
        let names: Vec<_> = crate::declared(&old).resolver.zones().iter().map(|zone| zone.name.clone()).collect();
        assert_eq!(names, ["z", "127.0.0.3:5353 [::1]:53"]);
        crate::declared(&old).resolver.zones()[0].counters().asked(weir_wire::dns::Kind::A);
        let mut new = new.unwrap();
        crate::families().adopt(&mut new, &old).unwrap();
        let counted = &crate::declared(&new).resolver.zones()[0].counters().name;
        assert_eq!(counted.load(std::sync::atomic::Ordering::Relaxed), 1);
    }
}
