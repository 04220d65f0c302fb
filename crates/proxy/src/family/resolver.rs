//! `resolver` and `resolver_timeout` of `http`, `upstream` and their servers and locations.
//!
//! `dns` sends the queries; `upstream::forward` resolves names in `proxy_pass`, and `weir_groups` resolves names of
//! upstreams' servers.

use weir_groups::resolver::directives;
use weir_http::read::directive::{Directive, HSL, UPSTREAM};
use weir_http::read::families::Family;

pub use weir_groups::resolver::{Declared, Settings, Values};

use crate::family::upstream::HttpParts;

const ALL: [Directive; 2] = directives::<HttpParts>(HSL.or(UPSTREAM));

/// The family.
pub static FAMILY: Family = Family::new("resolver", &ALL).adopt(|new, old| {
    crate::declared(new).resolver.adopt(&crate::declared(old).resolver);
    Ok(())
});

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
