//! `upstream` of `stream`: groups of peers. `weir_groups` reads the directives, `weir_peers` chooses a peer for a session.
//!
//! <https://nginx.org/en/docs/stream/ngx_stream_upstream_module.html>

use weir_groups::{Written, block};
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Directive, NONE, ONE, STREAM, STREAM_UPSTREAM};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;

pub use super::group::Declared;
use super::group::StreamParts;

weir_http::settings! {
    /// The statements that `http` has too.
    group: Written = Written::default(),
}

/// The family.
pub static FAMILY: Family = Family::new(
    "stream_upstream",
    &[
        Directive::new("upstream", STREAM, ONE, "Defines a group of servers.", block::upstream::<StreamParts>).many().block(),
        Directive::new(
            "server",
            STREAM_UPSTREAM,
            Arity::AtLeast(1),
            "Defines an address of the group: weight= max_conns= max_fails= fail_timeout= slow_start= backup down resolve \
             service=.",
            block::server::<StreamParts>,
        )
        .many(),
        Directive::new(
            "zone",
            STREAM_UPSTREAM,
            Arity::Between(1, 2),
            "Names the group's state: all workers take its servers in one turn, and the API can change them.",
            block::zone::<StreamParts>,
        )
        .many(),
        Directive::new(
            "least_conn",
            STREAM_UPSTREAM,
            NONE,
            "Prefers the peer with the fewest sessions.",
            block::least_conn::<StreamParts>,
        )
        .many(),
        Directive::new(
            "hash",
            STREAM_UPSTREAM,
            Arity::Between(1, 2),
            "Chooses by a key; consistent moves few keys when peers change.",
            block::hash::<StreamParts>,
        )
        .many(),
        Directive::new(
            "random",
            STREAM_UPSTREAM,
            Arity::Between(0, 2),
            "Chooses at random; two chooses the better of two random peers, by least_conn or least_time=.",
            block::random::<StreamParts>,
        )
        .many(),
        Directive::new(
            "least_time",
            STREAM_UPSTREAM,
            Arity::Between(1, 2),
            "Prefers the peer with the shortest time until connect, first_byte or last_byte, and the fewest sessions; \
             inflight also counts sessions whose time is not over.",
            block::least_time::<StreamParts>,
        ),
    ],
)
.adopt(weir_groups::adopt::<StreamParts>)
.finish(weir_groups::finish::<StreamParts>)
.watch(weir_groups::watch::<StreamParts>);

/// The number of the group that a `proxy_pass` without variables names: a block, or an address.
pub fn of_pass(b: &mut Build<'_>, text: &str) -> Result<usize, Refusal> {
    match crate::declaring(b).upstream.find(text) {
        Some(number) => Ok(number),
        None => block::implicit::<StreamParts>(b, text, text),
    }
}

#[cfg(test)]
mod tests {
    use crate::of_text;
    use weir_groups::Measure;
    use weir_http::exchange::conf::Conf;

    #[test]
    fn a_server_needs_a_port_and_has_no_parameters_of_sticky() {
        for (upstream, words) in [
            ("server 127.0.0.1;", "no port in upstream \"127.0.0.1\""),
            ("server 127.0.0.1:1 drain;", "invalid parameter \"drain\""),
            ("server 127.0.0.1 resolve;", "no port in upstream \"127.0.0.1\""),
            ("server a.example resolve; zone z 1m;", "no port in upstream \"a.example\""),
            (
                "server a.example:1 resolve; zone z 1m;",
                "no resolver defined to resolve names at run time in upstream \"u\"",
            ),
            ("server a.example:1 service=x resolve; zone z 1m;", "service upstream \"a.example:1\" may not have port"),
            ("server 127.0.0.1:1; least_time header;", "invalid value \"header\""),
            ("server 127.0.0.1:1; random two least_time;", "invalid parameter \"least_time\""),
        ] {
            assert_eq!(groups(&format!("upstream u {{ {upstream} }}")).1, [words], "{upstream}");
        }
    }

    fn groups(upstreams: &str) -> (Option<Conf>, Vec<String>) {
        of_text(&format!("events {{}}\nstream {{ {upstreams} }}"))
    }

    #[test]
    fn a_time_ends_with_the_connection_the_first_or_the_last_byte() {
        for (method, measure) in [
            ("", None),
            ("random two least_time=connect;", Some(Measure::Connect)),
            ("least_time first_byte;", Some(Measure::FirstByte)),
            ("least_time last_byte inflight;", Some(Measure::LastByte)),
        ] {
            let (conf, told) = groups(&format!("upstream u {{ {method} server 127.0.0.1:1; }}"));
            assert_eq!(told, [""; 0], "{method}");
            assert_eq!(crate::declared(&conf.unwrap()).upstream.groups[0].measure, measure, "{method}");
        }
    }

    #[test]
    fn an_address_in_a_proxy_pass_is_one_group_and_a_block_goes_before_it() {
        let block = "upstream A.test { server 127.0.0.1:1; }";
        let servers: String = ["a.test", "127.0.0.1:2", "127.0.0.1:2", "twice.test:3"]
            .iter()
            .zip(10..)
            .map(|(to, port)| format!("server {{ listen {port}; proxy_pass {to}; }}"))
            .collect();
        // The block may stand after its use.
        let (conf, told) = groups(&format!("{servers} {block}"));
        assert_eq!(told, [""; 0]);
        let conf = conf.unwrap();
        let declared = &crate::declared(&conf).upstream;
        let shown: Vec<_> = declared.groups.iter().map(|group| (&*group.name, group.addresses.len())).collect();
        assert_eq!(shown, [("A.test", 1), ("127.0.0.1:2", 1), ("twice.test:3", 1)]);
        assert_eq!((declared.find("a.TEST"), declared.find("127.0.0.1:2")), (Some(0), None));
        let told = groups("upstream u { server 127.0.0.1:1; } upstream U { server 127.0.0.1:2; }").1;
        assert_eq!(told, ["duplicate upstream \"U\""]);
    }
}
