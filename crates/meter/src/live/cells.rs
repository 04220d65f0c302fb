//! Counters of a worker, in memory that only this worker writes; a reader adds up the workers.

use super::histogram::{Count, Histogram, Spot, Tally};
use super::{RESPONSE_TIME_ENDS_MS, Responses, Ssl};

/// Number of statuses that are counted one by one: 100 to 599.
const CODES: usize = 500;

/// Counters of a server or a location on one worker.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct ZoneCell {
    /// Requests begun; counted at the server's own level only.
    pub begun: Count,
    /// Requests that ended without a response.
    pub discarded: Count,
    /// Requests that failed, as in [`ZoneAccount`](super::ZoneAccount).
    pub failed: Count,
    /// Requests that a policy refused, as in [`ZoneAccount`](super::ZoneAccount).
    pub refused: Count,
    /// Bytes from clients.
    pub received: Count,
    /// Bytes to clients.
    pub sent: Count,
    /// Responses by status.
    pub codes: Codes,
    /// From the first byte of a request to its end.
    pub times: Histogram,
    /// TLS handshakes; counted at the server's own level only.
    pub ssl: SslCell,
}

/// Counters by status.
#[derive(Debug)]
pub struct Codes([Count; CODES + 1]);

impl Default for Codes {
    fn default() -> Codes {
        Codes([const { Count::new() }; CODES + 1])
    }
}

impl Codes {
    /// Counts a response; statuses outside 100 to 599 share one counter.
    #[inline]
    pub fn count(&self, status: u16) {
        let index = usize::from(status).wrapping_sub(100).min(CODES);
        if let Some(count) = self.0.get(index) {
            count.one();
        }
    }

    fn add_to(&self, sums: &mut [u64]) {
        for (sum, count) in sums.iter_mut().zip(&self.0) {
            *sum += count.get();
        }
    }
}

/// TLS handshakes on one worker.
#[derive(Debug, Default)]
pub struct SslCell {
    /// Completed handshakes.
    pub handshakes: Count,
    /// Failed handshakes.
    pub failed: Count,
    /// Resumed sessions.
    pub reused: Count,
    /// Failed: no common TLS version.
    pub no_common_protocol: Count,
    /// Failed: no common cipher.
    pub no_common_cipher: Count,
    /// Failed: timeout.
    pub timeout: Count,
    /// Failed: the other side rejected the certificate.
    pub rejected: Count,
    /// Certificates that weir rejected: missing, expired, revoked, other host, other.
    pub verify: [Count; 5],
}

/// Indexes into [`SslCell::verify`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distrust {
    /// No certificate was sent although one is required.
    None,
    /// The certificate is not valid yet, or has expired.
    Expired,
    /// The certificate was revoked.
    Revoked,
    /// The certificate is for another host.
    Hostname,
    /// Any other reason.
    Other,
}

impl Distrust {
    /// Converts OpenSSL's error number (`X509_V_ERR_CERT_NOT_YET_VALID`, `_HAS_EXPIRED`, `_REVOKED`,
    /// `_HOSTNAME_MISMATCH` of x509_vfy.h).
    pub fn of(code: u32) -> Distrust {
        match code {
            9 | 10 => Distrust::Expired,
            23 => Distrust::Revoked,
            62 => Distrust::Hostname,
            _ => Distrust::Other,
        }
    }
}

impl SslCell {
    /// Counts a certificate that is not trusted.
    pub fn distrusted(&self, why: Distrust) {
        if let Some(count) = self.verify.get(why as usize) {
            count.one();
        }
    }

    fn add_to(&self, sums: &mut Ssl) {
        sums.handshakes += self.handshakes.get();
        sums.handshakes_failed += self.failed.get();
        sums.session_reuses += self.reused.get();
        sums.no_common_protocol += self.no_common_protocol.get();
        sums.no_common_cipher += self.no_common_cipher.get();
        sums.handshake_timeout += self.timeout.get();
        sums.peer_rejected_cert += self.rejected.get();
        let [no_cert, expired, revoked, host, other] = &self.verify;
        let verify = &mut sums.verify_failures;
        verify.no_cert += no_cert.get();
        verify.expired_cert += expired.get();
        verify.revoked_cert += revoked.get();
        verify.hostname_mismatch += host.get();
        verify.other += other.get();
    }
}

/// The sums of zone cells.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneSums {
    /// Requests begun.
    pub begun: u64,
    /// Requests that ended without a response.
    pub discarded: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests that a policy refused.
    pub refused: u64,
    /// Bytes from clients.
    pub received: u64,
    /// Bytes to clients.
    pub sent: u64,
    /// TLS handshakes.
    pub ssl: Ssl,
    /// Request times.
    pub times: Tally,
    codes: Box<[u64]>,
}

impl Default for ZoneSums {
    fn default() -> ZoneSums {
        ZoneSums {
            begun: 0,
            discarded: 0,
            failed: 0,
            refused: 0,
            received: 0,
            sent: 0,
            ssl: Ssl::default(),
            times: Tally::default(),
            codes: vec![0; CODES + 1].into(),
        }
    }
}

impl ZoneSums {
    /// Adds the counters of a cell.
    pub fn add(&mut self, cell: &ZoneCell) {
        // Read ends before beginnings, so that a request that begins and ends during the reading is never an end
        // without a beginning.
        self.discarded += cell.discarded.get();
        cell.codes.add_to(&mut self.codes);
        self.failed += cell.failed.get();
        self.refused += cell.refused.get();
        self.begun += cell.begun.get();
        self.received += cell.received.get();
        self.sent += cell.sent.get();
        self.times.add(&cell.times);
        cell.ssl.add_to(&mut self.ssl);
    }

    /// Adds other sums.
    pub fn merge(&mut self, other: &ZoneSums) {
        self.begun += other.begun;
        self.discarded += other.discarded;
        self.failed += other.failed;
        self.refused += other.refused;
        self.received += other.received;
        self.sent += other.sent;
        self.times.merge(&other.times);
        for (mine, theirs) in self.codes.iter_mut().zip(&other.codes) {
            *mine += theirs;
        }
        self.ssl = ssl_with(&self.ssl, &other.ssl, u64::wrapping_add);
    }

    /// The increase since `base`. Requests that were running at `base` count as begun since then.
    pub fn since(&self, base: &ZoneSums) -> ZoneSums {
        let both = self.codes.iter().zip(&base.codes);
        ZoneSums {
            begun: self.begun.saturating_sub(base.ended()),
            discarded: self.discarded.saturating_sub(base.discarded),
            failed: self.failed.saturating_sub(base.failed),
            refused: self.refused.saturating_sub(base.refused),
            received: self.received.saturating_sub(base.received),
            sent: self.sent.saturating_sub(base.sent),
            ssl: ssl_with(&self.ssl, &base.ssl, u64::saturating_sub),
            times: self.times.since(&base.times),
            codes: both.map(|(now, then)| now.saturating_sub(*then)).collect(),
        }
    }

    /// Number of requests that have ended.
    pub fn ended(&self) -> u64 {
        self.discarded + self.codes.iter().sum::<u64>()
    }

    /// Responses by status.
    pub fn responses(&self) -> Responses {
        responses(&self.codes)
    }
}

fn responses(codes: &[u64]) -> Responses {
    let mut responses = Responses::default();
    for (index, count) in codes.iter().enumerate() {
        let status = if index < CODES { index as u16 + 100 } else { 0 };
        responses.add(status, *count);
    }
    responses
}

/// Combines each counter of one with the same counter of the other.
fn ssl_with(one: &Ssl, other: &Ssl, with: fn(u64, u64) -> u64) -> Ssl {
    let (mine, theirs) = (&one.verify_failures, &other.verify_failures);
    Ssl {
        handshakes: with(one.handshakes, other.handshakes),
        handshakes_failed: with(one.handshakes_failed, other.handshakes_failed),
        session_reuses: with(one.session_reuses, other.session_reuses),
        no_common_protocol: with(one.no_common_protocol, other.no_common_protocol),
        no_common_cipher: with(one.no_common_cipher, other.no_common_cipher),
        handshake_timeout: with(one.handshake_timeout, other.handshake_timeout),
        peer_rejected_cert: with(one.peer_rejected_cert, other.peer_rejected_cert),
        verify_failures: super::VerifyFailures {
            no_cert: with(mine.no_cert, theirs.no_cert),
            expired_cert: with(mine.expired_cert, theirs.expired_cert),
            revoked_cert: with(mine.revoked_cert, theirs.revoked_cert),
            hostname_mismatch: with(mine.hostname_mismatch, theirs.hostname_mismatch),
            other: with(mine.other, theirs.other),
        },
    }
}

/// Why a try at a peer failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The peer refused the connection.
    Refused,
    /// There is no route to the peer.
    Unreachable,
    /// A step took longer than its timeout.
    TimedOut,
    /// The peer reset the connection, or a write found it closed.
    Reset,
    /// The peer closed the connection before its head was complete.
    Closed,
    /// All local ports towards the peer are in use.
    NoPort,
    /// No file descriptor was left for a connection.
    NoFile,
    /// The peer's head is not HTTP, or is too large.
    BadHead,
    /// TLS with the peer failed.
    Tls,
    /// No peer of the group was available.
    NoPeer,
    /// The queue of the group was full, or the exchange waited in it for too long.
    Queue,
    /// Any other reason.
    Other,
}

impl Why {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Why; 12] = [
        Why::Refused,
        Why::Unreachable,
        Why::TimedOut,
        Why::Reset,
        Why::Closed,
        Why::NoPort,
        Why::NoFile,
        Why::BadHead,
        Why::Tls,
        Why::NoPeer,
        Why::Queue,
        Why::Other,
    ];

    /// The reason's word in snapshots and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Why::Refused => "refused",
            Why::Unreachable => "unreachable",
            Why::TimedOut => "timeout",
            Why::Reset => "reset",
            Why::Closed => "closed",
            Why::NoPort => "no_port",
            Why::NoFile => "no_file",
            Why::BadHead => "bad_head",
            Why::Tls => "tls",
            Why::NoPeer => "no_peer",
            Why::Queue => "queue",
            Why::Other => "other",
        }
    }

    /// The words in the name of a class of errors. `refused` gets different words, because `limit_req` refuses
    /// requests too.
    pub const fn words(self) -> &'static str {
        match self {
            Why::Refused => "connection refused",
            Why::NoPort => "no port",
            Why::NoFile => "no file",
            Why::BadHead => "bad head",
            Why::NoPeer => "no peer",
            other => other.as_str(),
        }
    }
}

/// A policy of the configuration that refuses requests on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitPolicy {
    /// More requests than `limit_req` allows.
    LimitReq,
    /// More connections than `limit_conn` allows.
    LimitConn,
}

impl LimitPolicy {
    /// All policies, in the order of their numbers.
    pub const ALL: [LimitPolicy; 2] = [LimitPolicy::LimitReq, LimitPolicy::LimitConn];

    /// The directive.
    pub const fn as_str(self) -> &'static str {
        match self {
            LimitPolicy::LimitReq => "limit_req",
            LimitPolicy::LimitConn => "limit_conn",
        }
    }
}

/// Responses that take at least this long are beyond the first of Plus' buckets, which includes all milliseconds up
/// to its end.
const FAST_US: u64 = (RESPONSE_TIME_ENDS_MS[0] + 1) * 1000;

/// Counters of a peer on one worker.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct PeerCell {
    /// Tries at this peer.
    pub requests: Count,
    /// Responses by status.
    pub codes: Codes,
    /// Bytes sent to the peer.
    pub sent: Count,
    /// Bytes received from the peer.
    pub received: Count,
    /// Failed tries by reason, in the order of [`Why::ALL`].
    pub fails: [Count; Why::ALL.len()],
    /// How often failures made the peer unavailable.
    pub unavail: Count,
    /// Connections opened.
    pub opened: Count,
    /// Tries over a kept connection.
    pub reused: Count,
    /// Tries that followed a failed one.
    pub retries: Count,
    /// Idle kept connections, as of the last second.
    pub idle: Count,
    /// Time of the last selection, Unix milliseconds.
    pub selected_ms: Count,
    /// Time to connect, for new connections.
    pub connect: Histogram,
    /// Time to the peer's response head.
    pub header: Histogram,
    /// Time to the end of the peer's response.
    pub response: Histogram,
    /// TLS handshakes with the peer.
    pub ssl: SslCell,
    /// Responses by Plus' buckets. The first bucket is not counted here: it has the other responses.
    spread: [Count; RESPONSE_TIME_ENDS_MS.len() + 1],
}

impl PeerCell {
    /// Counts the time of a response to its end.
    #[inline]
    pub fn responded(&self, us: u64, spot: Spot) {
        self.response.put(spot);
        if us >= FAST_US {
            self.slow(us / 1000);
        }
    }

    #[inline(never)]
    fn slow(&self, ms: u64) {
        let bucket = RESPONSE_TIME_ENDS_MS.iter().position(|end| ms <= *end).unwrap_or(RESPONSE_TIME_ENDS_MS.len());
        if let Some(count) = self.spread.get(bucket) {
            count.one();
        }
    }

    /// Counts a failed try.
    pub fn failed(&self, why: Why) {
        if let Some(count) = self.fails.get(why as usize) {
            count.one();
        }
    }
}

/// The sums of a peer's cells.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerSums {
    /// As in [`PeerCell`].
    pub requests: u64,
    /// As in [`PeerCell`].
    pub sent: u64,
    /// As in [`PeerCell`].
    pub received: u64,
    /// As in [`PeerCell`].
    pub fails: [u64; Why::ALL.len()],
    /// As in [`PeerCell`].
    pub unavail: u64,
    /// As in [`PeerCell`].
    pub opened: u64,
    /// As in [`PeerCell`].
    pub reused: u64,
    /// As in [`PeerCell`].
    pub retries: u64,
    /// As in [`PeerCell`].
    pub idle: u64,
    /// The latest of all.
    pub selected_ms: u64,
    /// As in [`PeerCell`].
    pub connect: Tally,
    /// As in [`PeerCell`].
    pub header: Tally,
    /// As in [`PeerCell`].
    pub response: Tally,
    /// As in [`PeerCell`].
    pub ssl: Ssl,
    spread: [u64; RESPONSE_TIME_ENDS_MS.len() + 1],
    codes: Box<[u64]>,
}

impl Default for PeerSums {
    fn default() -> PeerSums {
        PeerSums {
            requests: 0,
            sent: 0,
            received: 0,
            fails: Default::default(),
            unavail: 0,
            opened: 0,
            reused: 0,
            retries: 0,
            idle: 0,
            selected_ms: 0,
            connect: Tally::default(),
            header: Tally::default(),
            response: Tally::default(),
            ssl: Ssl::default(),
            spread: Default::default(),
            codes: vec![0; CODES + 1].into(),
        }
    }
}

impl PeerSums {
    /// Adds the counters of a cell.
    pub fn add(&mut self, cell: &PeerCell) {
        self.requests += cell.requests.get();
        self.sent += cell.sent.get();
        self.received += cell.received.get();
        add_counts(&mut self.fails, &cell.fails);
        self.unavail += cell.unavail.get();
        self.opened += cell.opened.get();
        self.reused += cell.reused.get();
        self.retries += cell.retries.get();
        self.idle += cell.idle.get();
        self.selected_ms = self.selected_ms.max(cell.selected_ms.get());
        self.connect.add(&cell.connect);
        self.header.add(&cell.header);
        self.response.add(&cell.response);
        cell.ssl.add_to(&mut self.ssl);
        add_counts(&mut self.spread, &cell.spread);
        cell.codes.add_to(&mut self.codes);
    }

    /// The increase since `base`.
    pub fn since(&self, base: &PeerSums) -> PeerSums {
        let both = self.codes.iter().zip(&base.codes);
        PeerSums {
            requests: self.requests.saturating_sub(base.requests),
            sent: self.sent.saturating_sub(base.sent),
            received: self.received.saturating_sub(base.received),
            fails: less(self.fails, base.fails),
            unavail: self.unavail.saturating_sub(base.unavail),
            opened: self.opened.saturating_sub(base.opened),
            reused: self.reused.saturating_sub(base.reused),
            retries: self.retries.saturating_sub(base.retries),
            idle: self.idle,
            selected_ms: self.selected_ms,
            connect: self.connect.since(&base.connect),
            header: self.header.since(&base.header),
            response: self.response.since(&base.response),
            ssl: ssl_with(&self.ssl, &base.ssl, u64::saturating_sub),
            spread: less(self.spread, base.spread),
            codes: both.map(|(now, then)| now.saturating_sub(*then)).collect(),
        }
    }

    /// Responses by Plus' buckets, including those beyond the last end.
    pub fn spread(&self) -> [u64; RESPONSE_TIME_ENDS_MS.len() + 1] {
        let mut all = self.spread;
        all[0] = self.response.count().saturating_sub(all.iter().skip(1).sum());
        all
    }

    /// Responses by status.
    pub fn responses(&self) -> Responses {
        responses(&self.codes)
    }
}

fn add_counts(sums: &mut [u64], counts: &[Count]) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum += count.get();
    }
}

fn less<const N: usize>(mut now: [u64; N], then: [u64; N]) -> [u64; N] {
    for (now, then) in now.iter_mut().zip(then) {
        *now = now.saturating_sub(then);
    }
    now
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn books_balance_over_a_reset_with_requests_under_way() {
        let (one, other) = (ZoneCell::default(), ZoneCell::default());
        one.begun.add(3);
        one.codes.count(200);
        other.begun.add(2);
        other.discarded.one();
        let sums = |cells: [&ZoneCell; 2]| {
            let mut sums = ZoneSums::default();
            cells.iter().for_each(|cell| sums.add(cell));
            sums
        };
        let base = sums([&one, &other]);
        assert_eq!((base.begun, base.ended()), (5, 2));
        one.codes.count(502);
        other.begun.one();
        let since = sums([&one, &other]).since(&base);
        // Three were running and one began; one of them has ended.
        assert_eq!((since.begun, since.ended(), since.responses().total), (4, 1, 1));
        assert_eq!(since.responses().codes.get(&502), Some(&1));
    }

    #[test]
    fn strange_statuses_share_a_place() {
        let codes = Codes::default();
        for status in [0, 99, 600, 999, 599, 100] {
            codes.count(status);
        }
        let mut sums = vec![0; CODES + 1];
        codes.add_to(&mut sums);
        let responses = responses(&sums);
        assert_eq!((responses.total, responses.c1xx, responses.c5xx, responses.codes[&0]), (6, 1, 1, 4));
    }

    #[test]
    fn reasons_have_their_numbers_and_words() {
        let mut words: Vec<_> = Why::ALL.iter().map(|why| why.as_str()).collect();
        assert!(Why::ALL.iter().enumerate().all(|(number, why)| *why as usize == number));
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Why::ALL.len());
    }

    #[test]
    fn response_times_fall_into_plus_buckets() {
        let cell = PeerCell::default();
        for us in [0, 5_999, 6_000, 10_000_999, 10_001_000] {
            cell.responded(us, Spot::of(us));
        }
        let mut sums = PeerSums::default();
        sums.add(&cell);
        let spread = sums.spread();
        assert_eq!((spread[0], spread[1], spread[13], spread[14]), (2, 1, 1, 1));
    }
}
