//! Requests by protocol, and QUIC.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The protocols of clients, in the order of [`Weir::protocols`](super::Weir::protocols). `HTTP/1` is each version before
/// HTTP/2.
pub const PROTOCOLS: [&str; 3] = ["HTTP/1", "HTTP/2", "HTTP/3"];

/// Requests of one protocol. The sums over all protocols are those of all servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProtocolAccount {
    /// Its name, from [`PROTOCOLS`].
    pub protocol: String,
    /// Requests begun.
    pub requests: u64,
    /// Bytes of requests that have ended.
    pub received: u64,
    /// Bytes of their answers; those of tunnels too.
    pub sent: u64,
}

/// QUIC with clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quic {
    /// Connections at this instant, those in the handshake included.
    pub active: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Clients that weir refused at their first packet: the connection table was full, or weir ends.
    pub refused: u64,
    /// Handshakes that failed: by the name of the alert that weir or the client sent, or `timeout`, `closed` (by the client),
    /// `transport` (an error of QUIC), `shutdown` (weir's own end).
    pub handshakes_failed: BTreeMap<String, u64>,
    /// Clients of a version of QUIC that weir does not speak: Version Negotiation packets sent.
    pub version_negotiations: u64,
    /// Retry packets sent.
    pub retries: u64,
    /// Connections whose early data (0-RTT) weir accepted.
    pub early_data: u64,
    /// Stateless resets sent.
    pub stateless_resets: u64,
    /// Times that a client has moved to another address, and has proved it.
    pub migrations: u64,
    /// Packets that weir sent and declared lost.
    pub lost_packets: u64,
    /// Datagrams of UDP.
    pub datagrams: Datagrams,
}

/// Datagrams of the sockets of QUIC. Those received and not dropped were for a connection of the worker, or of another worker or
/// process, or began one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Datagrams {
    /// Received from the kernel.
    pub received: u64,
    /// Sent.
    pub sent: u64,
    /// Messages of one datagram or several that the kernel refused.
    pub unsent: u64,
    /// Dropped, by reason: `garbage`, `unknown_id`, `full`.
    pub dropped: BTreeMap<String, u64>,
    /// Passed on to their connection, by the way: to another `worker`, to an older `process`.
    pub forwarded: BTreeMap<String, u64>,
}

impl Quic {
    /// The increase since `base`.
    pub fn since(&self, base: &Quic) -> Quic {
        let map = |now: &BTreeMap<String, u64>, then: &BTreeMap<String, u64>| {
            let less = |name: &str, count: u64| count.saturating_sub(then.get(name).copied().unwrap_or(0));
            now.iter().map(|(name, count)| (name.clone(), less(name, *count))).collect::<BTreeMap<_, _>>()
        };
        let (now, then) = (&self.datagrams, &base.datagrams);
        let mut handshakes_failed = map(&self.handshakes_failed, &base.handshakes_failed);
        handshakes_failed.retain(|_, count| *count > 0);
        Quic {
            active: self.active,
            accepted: self.accepted.saturating_sub(base.accepted),
            refused: self.refused.saturating_sub(base.refused),
            handshakes_failed,
            version_negotiations: self.version_negotiations.saturating_sub(base.version_negotiations),
            retries: self.retries.saturating_sub(base.retries),
            early_data: self.early_data.saturating_sub(base.early_data),
            stateless_resets: self.stateless_resets.saturating_sub(base.stateless_resets),
            migrations: self.migrations.saturating_sub(base.migrations),
            lost_packets: self.lost_packets.saturating_sub(base.lost_packets),
            datagrams: Datagrams {
                received: now.received.saturating_sub(then.received),
                sent: now.sent.saturating_sub(then.sent),
                unsent: now.unsent.saturating_sub(then.unsent),
                dropped: map(&now.dropped, &then.dropped),
                forwarded: map(&now.forwarded, &then.forwarded),
            },
        }
    }
}
