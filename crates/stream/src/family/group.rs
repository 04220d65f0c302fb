//! The groups of `stream`: their counts, and the differences from those of `http`.

use std::sync::Arc;

use weir_groups::resolver;
use weir_groups::{Measure, Parts, Written};
use weir_http::exchange::conf::Conf;
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Contexts, STREAM, STREAM_UPSTREAM};
use weir_net::Address;

use crate::counts::PeerCounts;

/// A worker's record of a group.
pub type Local = weir_groups::Local<StreamParts>;

/// A worker's records of the groups of a configuration.
pub type Locals = weir_groups::Locals<StreamParts>;

/// A group of peers.
pub type Upstream = weir_groups::Upstream<StreamParts>;

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
    fn follow(&mut self, addresses: &[Address], before: Option<&Upstream>) {
        let known = |address: &Address| {
            let number = before?.addresses.iter().position(|known| known == address)?;
            before?.own.counts.get(number).cloned()
        };
        self.counts = addresses.iter().map(|address| known(address).unwrap_or_default()).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;
    use weir_http::read::authority::literal_address;

    #[test]
    fn a_reload_goes_on_with_the_counts_of_the_same_addresses() {
        let upstream = |addresses: &[&str]| {
            let addresses: Vec<Address> = addresses.iter().filter_map(|text| literal_address(text)).collect();
            Upstream::implicit("u", &addresses).unwrap()
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
