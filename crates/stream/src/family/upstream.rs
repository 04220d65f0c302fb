//! `upstream` of `stream`: groups of peers and their counts. `weir_groups` reads the directives, `weir_peers` chooses a
//! peer for a session.
//!
//! <https://nginx.org/en/docs/stream/ngx_stream_upstream_module.html>

use std::sync::Arc;

use weir_groups::{Measure, Parts, Written, block, resolver};
use weir_http::exchange::conf::Conf;
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Contexts, Directive, STREAM, STREAM_UPSTREAM};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_net::Address;

use crate::counts::PeerCounts;

weir_http::settings! {
    /// The statements that `http` has too.
    group: Written = Written::default(),
}

const ALL: [Directive; 7] = block::directives::<StreamParts>(
    "Defines an address of the group: weight= max_conns= max_fails= fail_timeout= slow_start= backup down resolve \
     service=.",
    "Prefers the peer with the fewest sessions.",
    "Prefers the peer with the shortest time until connect, first_byte or last_byte, and the fewest sessions; \
     inflight also counts sessions whose time is not over.",
    "Chooses at random; two chooses the better of two random peers, by least_conn or least_time=.",
);

/// The family.
pub static FAMILY: Family = Family::new("stream_upstream", &ALL)
    .adopt(weir_groups::adopt::<StreamParts>)
    .finish(weir_groups::finish::<StreamParts>)
    .watch(weir_groups::watch::<StreamParts>);

/// A worker's record of a group.
pub type LocalGroup = weir_groups::Local<StreamParts>;

/// A worker's records of the groups of a configuration.
pub type LocalGroups = weir_groups::Locals<StreamParts>;

/// A group of peers.
pub type StreamUpstream = weir_groups::Upstream<StreamParts>;

/// All groups.
pub type Declared = weir_groups::Declared<StreamParts>;

/// The parts of a group that only `stream` has.
#[derive(Clone, Default)]
pub struct StreamParts {
    /// The peers' counts, by the group's index.
    pub counts: Vec<Arc<PeerCounts>>,
}

impl Parts for StreamParts {
    const AROUND: Contexts = STREAM;
    const INSIDE: Contexts = STREAM_UPSTREAM;
    const PORT_DEFAULT: Option<u16> = None;
    const MEASURES: &'static [(&'static str, Measure)] =
        &[("connect", Measure::Connect), ("first_byte", Measure::FirstByte), ("last_byte", Measure::LastByte)];
    const MEASURE_DEFAULT: Option<Measure> = None;
    const IS_STICKY: bool = false;

    fn declaring<'b>(b: &'b mut Build<'_>) -> &'b mut Declared {
        &mut crate::declaring(b).upstream
    }

    fn declared(conf: &Conf) -> &Declared {
        &crate::declared(conf).upstream
    }

    fn declared_mut(conf: &mut Conf) -> &mut Declared {
        &mut crate::declared_mut(conf).upstream
    }

    fn written(scope: &mut Scope) -> &mut Written {
        crate::written_mut(scope).upstream.group.get_or_insert_default()
    }

    fn resolver(scope: &mut Scope) -> &mut resolver::Settings {
        &mut crate::written_mut(scope).resolver
    }

    fn resolvers<'b>(b: &'b mut Build<'_>) -> &'b mut resolver::Declared {
        &mut crate::declaring(b).resolver
    }

    /// Goes on with the counts of the peers that both groups have.
    fn follow(&mut self, addresses: &[Address], before: Option<&StreamUpstream>) {
        let known = |address: &Address| {
            let number = before?.addresses.iter().position(|known| known == address)?;
            before?.own.counts.get(number).cloned()
        };
        self.counts = addresses.iter().map(|address| known(address).unwrap_or_default()).collect();
    }
}

/// The number of the group that a `proxy_pass` without variables names: a block, or an address.
pub fn of_pass(b: &mut Build<'_>, text: &str) -> Result<usize, Refusal> {
    match crate::declaring(b).upstream.find(text) {
        Some(number) => Ok(number),
        None => block::implicit::<StreamParts>(b, text, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::of_text;
    use std::sync::atomic::Ordering;
    use weir_http::read::authority::literal_address;

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

    #[test]
    fn a_reload_goes_on_with_the_counts_of_the_same_addresses() {
        let upstream = |addresses: &[&str]| {
            let addresses: Vec<Address> = addresses.iter().filter_map(|text| literal_address(text)).collect();
            StreamUpstream::implicit("u", &addresses).unwrap()
        };
        let old = upstream(&["127.0.0.1:1", "127.0.0.1:2"]);
        old.own.counts[1].failed(true);
        let mut new = upstream(&["127.0.0.1:2", "127.0.0.1:3"]);
        let addresses = new.addresses.clone();
        new.frame.own.follow(&addresses, Some(&old));
        let fails = |at: usize| new.own.counts[at].fails.load(Ordering::Relaxed);
        assert_eq!((fails(0), fails(1)), (1, 0));
        assert!(Arc::ptr_eq(&new.own.counts[0], &old.own.counts[1]), "sessions of both configurations count together");
    }
}
