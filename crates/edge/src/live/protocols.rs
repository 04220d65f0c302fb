//! Requests by protocol, and QUIC: the sums of all workers.

use std::sync::atomic::Ordering;

use weir_meter::live::{PROTOCOLS, ProtocolAccount, Quic, Snapshot};

use super::Live;
use super::books::MetricBook;

/// The totals, and the counts where they begin.
#[derive(Default)]
pub(super) struct ProtocolBooks {
    traffic: MetricBook<Vec<u64>>,
    quic: MetricBook<Quic>,
}

impl ProtocolBooks {
    /// Fills in the totals.
    pub(super) fn fill(&self, live: &Live, snapshot: &mut Snapshot) {
        snapshot.weir.protocols = accounts(&self.traffic.net("", traffic(live)));
        snapshot.weir.quic = self.quic.net("", quic(live));
    }

    /// Begins the totals of requests again at zero.
    pub(super) fn reset_traffic(&mut self, live: &Live) {
        self.traffic.reset("", traffic(live));
    }

    /// Begins the totals of QUIC again at zero.
    pub(super) fn reset_quic(&mut self, live: &Live) {
        self.quic.reset("", quic(live));
    }
}

/// Requests, bytes received and bytes sent of each protocol.
fn traffic(live: &Live) -> Vec<u64> {
    let mut sums = vec![0; 3 * PROTOCOLS.len()];
    for counters in live.counters.iter() {
        let all = counters.traffic.iter().flat_map(|of| [&of.requests, &of.received, &of.sent]);
        for (sum, count) in sums.iter_mut().zip(all) {
            *sum += count.load(Ordering::Relaxed);
        }
    }
    sums
}

/// The sums of [`traffic`] with their names.
fn accounts(sums: &[u64]) -> Vec<ProtocolAccount> {
    let named = PROTOCOLS.iter().zip(sums.chunks_exact(3));
    let account = |(name, sums): (&&str, &[u64])| {
        let [requests, received, sent] = *sums.first_chunk()?;
        Some(ProtocolAccount { protocol: (*name).to_owned(), requests, received, sent })
    };
    named.filter_map(account).collect()
}

fn quic(live: &Live) -> Quic {
    let mut sums = Quic::default();
    live.boards.taken().for_each(|(_, board)| board.quic.add_to(&mut sums));
    sums
}
