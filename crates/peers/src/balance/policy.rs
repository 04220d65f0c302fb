//! The names of the policies, and the data of an exchange that they use.

use std::net::IpAddr;

/// How a group spreads exchanges over its peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Smooth weighted round robin, the default.
    #[default]
    RoundRobin,
    /// `least_conn`: the fewest exchanges in progress, relative to the weight.
    LeastConn,
    /// `ip_hash`: by the client's network: three octets of IPv4, or all of IPv6.
    IpHash,
    /// `hash key [consistent]`: by a key that the configuration composes.
    Hash {
        /// On a ketama ring instead of modulo the weights.
        consistent: bool,
    },
    /// `least_time`: the shortest answers and the fewest exchanges in progress, relative to the weight.
    LeastTime {
        /// The time that counts.
        until: Until,
        /// The times of exchanges without an answer count as well.
        inflight: bool,
    },
    /// `random [two [METHOD]]`.
    Random {
        /// Draws two peers and takes the better one.
        two: Option<Better>,
    },
}

/// The end of the time that `least_time` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The head of the answer.
    Header,
    /// Its last byte.
    LastByte,
}

/// How `random two` compares two peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// By their exchanges in progress.
    LeastConn,
    /// By the time of their answers.
    LeastTime(Until),
}

impl Policy {
    /// Whether the policy compares the times of answers.
    #[must_use]
    pub fn measures(self) -> bool {
        matches!(self, Self::LeastTime { .. } | Self::Random { two: Some(Better::LeastTime(_)) })
    }

    /// Whether the policy compares the exchanges or the times of peers, those of all workers.
    #[must_use]
    pub fn compares(self) -> bool {
        matches!(self, Self::LeastConn | Self::LeastTime { .. } | Self::Random { two: Some(_) })
    }

    /// Whether the policy chooses among the primaries only, and ignores each peer's recovery (`backup` and
    /// `slow_start`).
    #[must_use]
    pub fn is_plain(self) -> bool {
        matches!(self, Self::IpHash | Self::Hash { .. } | Self::Random { .. })
    }
}

/// The data of an exchange that a policy may use.
#[derive(Clone, Copy, Debug, Default)]
pub struct Affinity<'a> {
    /// The composed key of `hash`; empty if there is none.
    pub key: &'a [u8],
    /// The client's address for `ip_hash`; `None` for a unix socket client.
    pub client: Option<IpAddr>,
    /// The name of the exchange's peer, from `sticky`.
    pub bound: Option<&'a [u8]>,
}
