//! The counters of a resolver's status zone, for `/api/9/resolvers`. All workers add to them.

use std::sync::atomic::{AtomicU64, Ordering};

use weir_wire::dns::{Code, Kind};

use super::trouble::Trouble;

/// The counts of one status zone. A name asked for in two kinds (IPv4, IPv6) counts as two requests with two responses.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct ResolverCounters {
    pub name: AtomicU64,
    pub srv: AtomicU64,
    /// Questions for the name of an address: weir sends none.
    pub addr: AtomicU64,
    pub noerror: AtomicU64,
    pub formerr: AtomicU64,
    pub servfail: AtomicU64,
    pub nxdomain: AtomicU64,
    pub notimp: AtomicU64,
    pub refused: AtomicU64,
    pub timedout: AtomicU64,
    pub unknown: AtomicU64,
}

impl ResolverCounters {
    /// A question is asked.
    pub fn asked(&self, kind: Kind) {
        let counter = match kind {
            Kind::A | Kind::Aaaa => &self.name,
            Kind::Srv => &self.srv,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the answer, or that no answer arrived.
    pub fn answered(&self, outcome: Result<Code, Trouble>) {
        let counter = match outcome {
            Ok(code) | Err(Trouble::Code(code)) => match code.0 {
                0 => &self.noerror,
                1 => &self.formerr,
                2 => &self.servfail,
                3 => &self.nxdomain,
                4 => &self.notimp,
                5 => &self.refused,
                _ => &self.unknown,
            },
            Err(Trouble::TimedOut) => &self.timedout,
            Err(Trouble::Busy) => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
