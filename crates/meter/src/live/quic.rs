//! QUIC: the counters of a worker.

use std::sync::Arc;

use super::histogram::Count;
use super::protocols::Quic;

/// Why a datagram reached no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramDrop {
    /// It is no packet of QUIC, or breaks its rules.
    Garbage,
    /// weir has no connection with its id.
    UnknownId,
    /// The worker or the process that has its connection had no room for it, or has ended.
    Full,
}

impl DatagramDrop {
    /// All reasons, in the order of their numbers.
    pub const ALL: [DatagramDrop; 3] = [DatagramDrop::Garbage, DatagramDrop::UnknownId, DatagramDrop::Full];

    /// The word in snapshots and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            DatagramDrop::Garbage => "garbage",
            DatagramDrop::UnknownId => "unknown_id",
            DatagramDrop::Full => "full",
        }
    }
}

/// Why there was no handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShakeFailure {
    /// weir or the client sent this alert of TLS.
    Alert(u8),
    /// The client was silent for too long.
    TimedOut,
    /// The client closed the connection without an alert.
    Closed,
    /// A rule of QUIC was broken.
    Transport,
    /// weir ended the connection, at its own end.
    Ours,
}

/// Names of alerts (RFC 8446 §6, RFC 7301 §3.2).
const ALERTS: [(u8, &str); 26] = [
    (0, "close_notify"),
    (10, "unexpected_message"),
    (20, "bad_record_mac"),
    (22, "record_overflow"),
    (40, "handshake_failure"),
    (42, "bad_certificate"),
    (43, "unsupported_certificate"),
    (44, "certificate_revoked"),
    (45, "certificate_expired"),
    (46, "certificate_unknown"),
    (47, "illegal_parameter"),
    (48, "unknown_ca"),
    (49, "access_denied"),
    (50, "decode_error"),
    (51, "decrypt_error"),
    (70, "protocol_version"),
    (71, "insufficient_security"),
    (80, "internal_error"),
    (86, "inappropriate_fallback"),
    (90, "user_canceled"),
    (109, "missing_extension"),
    (110, "unsupported_extension"),
    (112, "unrecognized_name"),
    (113, "bad_certificate_status_response"),
    (116, "certificate_required"),
    (120, "no_application_protocol"),
];

/// The RFC's name of an alert; `alert_7` for one that has none.
pub fn alert_name(alert: u8) -> String {
    let known = ALERTS.iter().find(|(number, _)| *number == alert);
    known.map_or_else(|| format!("alert_{alert}"), |(_, name)| (*name).to_owned())
}

/// QUIC on one worker.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct QuicCell {
    accepted: Count,
    ended: Count,
    /// Clients refused with `CONNECTION_REFUSED` or another error in the first answer.
    pub refused: Count,
    /// Version Negotiation packets sent.
    pub negotiations: Count,
    /// Retry packets sent.
    pub retries: Count,
    /// Connections whose early data weir accepted.
    pub early: Count,
    /// Stateless resets sent.
    pub resets: Count,
    /// Times that a client has proved another address.
    pub migrations: Count,
    /// Datagrams that the sockets received.
    pub received: Count,
    /// Datagrams that the kernel took.
    pub sent: Count,
    /// Messages of one datagram or several that the kernel refused, or for which there was no place.
    pub unsent: Count,
    /// Datagrams passed on to another worker.
    pub to_workers: Count,
    /// Datagrams passed on to an older process.
    pub to_processes: Count,
    /// Packets that were declared lost.
    pub lost: Count,
    dropped: [Count; DatagramDrop::ALL.len()],
    alerts: Alerts,
    timed_out: Count,
    closed: Count,
    transport: Count,
    ours: Count,
}

/// Failed handshakes by the number of the alert.
#[derive(Debug)]
struct Alerts([Count; 256]);

impl Default for Alerts {
    fn default() -> Alerts {
        Alerts([const { Count::new() }; 256])
    }
}

/// A connection that is counted as open until this is dropped, also if its task panics.
#[derive(Debug)]
pub struct QuicOpen(Arc<QuicCell>);

impl Drop for QuicOpen {
    fn drop(&mut self) {
        self.0.ended.one();
    }
}

impl QuicCell {
    /// Counts a connection that was accepted.
    pub fn open(cell: &Arc<QuicCell>) -> QuicOpen {
        cell.accepted.one();
        QuicOpen(cell.clone())
    }

    /// Counts datagrams that reached no connection.
    pub fn dropped(&self, why: DatagramDrop, count: u64) {
        if let Some(dropped) = self.dropped.get(why as usize) {
            dropped.add(count);
        }
    }

    /// Adds the counters to sums.
    pub fn add_to(&self, sums: &mut Quic) {
        // The end is read before the beginning: a connection that begins and ends meanwhile is no end without a beginning.
        let ended = self.ended.get();
        let accepted = self.accepted.get();
        sums.accepted += accepted;
        sums.active += accepted.saturating_sub(ended);
        sums.refused += self.refused.get();
        sums.version_negotiations += self.negotiations.get();
        sums.retries += self.retries.get();
        sums.early_data += self.early.get();
        sums.stateless_resets += self.resets.get();
        sums.migrations += self.migrations.get();
        sums.lost_packets += self.lost.get();
        let of = &mut sums.datagrams;
        of.received += self.received.get();
        of.sent += self.sent.get();
        of.unsent += self.unsent.get();
        for (why, count) in DatagramDrop::ALL.iter().zip(&self.dropped) {
            *of.dropped.entry(why.as_str().to_owned()).or_default() += count.get();
        }
        for (way, count) in [("worker", &self.to_workers), ("process", &self.to_processes)] {
            *of.forwarded.entry(way.to_owned()).or_default() += count.get();
        }
        let alerts = (0..=u8::MAX).zip(&self.alerts.0).filter(|(_, count)| count.get() > 0);
        let others = [
            ("timeout", &self.timed_out),
            ("closed", &self.closed),
            ("transport", &self.transport),
            ("shutdown", &self.ours),
        ];
        let others =
            others.into_iter().filter(|(_, count)| count.get() > 0).map(|(name, count)| (name.to_owned(), count));
        for (name, count) in alerts.map(|(alert, count)| (alert_name(alert), count)).chain(others) {
            *sums.handshakes_failed.entry(name).or_default() += count.get();
        }
    }

    /// Counts a handshake that failed.
    pub fn failed(&self, why: ShakeFailure) {
        match why {
            ShakeFailure::Alert(alert) => self.alerts.0.get(usize::from(alert)).into_iter().for_each(Count::one),
            ShakeFailure::TimedOut => self.timed_out.one(),
            ShakeFailure::Closed => self.closed.one(),
            ShakeFailure::Transport => self.transport.one(),
            ShakeFailure::Ours => self.ours.one(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_add_up_and_a_reset_keeps_the_connections_of_now() {
        let (one, other) = (Arc::<QuicCell>::default(), Arc::<QuicCell>::default());
        let mut open: Vec<_> = [&one, &one, &one, &one, &one, &other].map(QuicCell::open).into();
        open.drain(..2);
        one.failed(ShakeFailure::Alert(120));
        other.failed(ShakeFailure::Alert(120));
        other.failed(ShakeFailure::Alert(7));
        other.failed(ShakeFailure::TimedOut);
        other.dropped(DatagramDrop::UnknownId, 3);
        let sum = || {
            let mut sum = Quic::default();
            [&one, &other].into_iter().for_each(|cell| cell.add_to(&mut sum));
            sum
        };
        let base = sum();
        assert_eq!((base.accepted, base.active, base.datagrams.dropped["unknown_id"]), (6, 4, 3));
        let failed: Vec<_> = base.handshakes_failed.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        assert_eq!(failed, [("alert_7", 1), ("no_application_protocol", 2), ("timeout", 1)]);
        open.push(QuicCell::open(&one));
        other.failed(ShakeFailure::Alert(7));
        let since = sum().since(&base);
        assert_eq!((since.accepted, since.active, since.datagrams.dropped["unknown_id"]), (1, 5, 0));
        assert_eq!(since.handshakes_failed.into_iter().collect::<Vec<_>>(), [("alert_7".to_owned(), 1)]);
    }

    #[test]
    fn alerts_have_their_own_names() {
        let mut names: Vec<_> = (0..=u8::MAX).map(alert_name).collect();
        assert_eq!((names[42].as_str(), names[255].as_str()), ("bad_certificate", "alert_255"));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 256);
        assert!(DatagramDrop::ALL.iter().enumerate().all(|(number, why)| *why as usize == number));
    }
}
