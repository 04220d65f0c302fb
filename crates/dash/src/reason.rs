//! Why a request was not answered as its client wanted, in one word. The verdict, the tiles, the charts and the samples
//! of errors use the same words.

use serde::Serialize;
use weir_meter::live::{ErrorClass, ErrorKind, Snapshot};

use crate::words::Said;

/// The reason of a class of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// `limit_req` or `limit_conn` refused the request: as configured, so it has not failed.
    Limit,
    /// The origin answered 5xx, refused, or ended its answer early.
    Upstream,
    /// The origin did not answer in time.
    Timeout,
    /// The request was at fault, or the client left: it has not failed.
    Client,
    /// weir answered 5xx without an origin.
    Weir,
}

/// All reasons, in the order in which the page tells them.
pub const ALL: [Reason; 5] = [Reason::Limit, Reason::Upstream, Reason::Timeout, Reason::Client, Reason::Weir];

/// The reason of a class. A class of 5xx does not say where its answers come from; its newest sample does.
pub fn of(error: &ErrorClass) -> Reason {
    match error.kind {
        ErrorKind::Refused => Reason::Limit,
        ErrorKind::Client => Reason::Client,
        _ if error.class.contains("timeout") => Reason::Timeout,
        _ if error.class.contains(' ') && error.class.starts_with(|c: char| c.is_ascii_digit()) => Reason::Upstream,
        _ if error.samples.first().is_some_and(|sample| !sample.upstream.is_empty()) => Reason::Upstream,
        _ if error.class == "cut short" || error.class.starts_with("no answer ") => Reason::Upstream,
        _ if error.kind == ErrorKind::Recovered => Reason::Upstream,
        _ => Reason::Weir,
    }
}

/// New errors with this reason, without tries of requests that were answered. A class may change its reason, so its
/// growth counts, not its sum.
pub fn grown(before: &Snapshot, now: &Snapshot, reason: Reason) -> u64 {
    let old = |class: &str| before.weir.errors.iter().find(|error| error.class == class).map_or(0, |error| error.count);
    let of_it = now.weir.errors.iter().filter(|error| error.kind != ErrorKind::Recovered && of(error) == reason);
    of_it.fold(0, |sum, error| sum.saturating_add(error.count.saturating_sub(old(&error.class))))
}

impl Reason {
    /// The word of the reason.
    pub fn word(self) -> Said {
        match self {
            Reason::Limit => Said::new("limit", "제한"),
            Reason::Upstream => Said::new("upstream", "업스트림"),
            Reason::Timeout => Said::new("timeout", "시간 초과"),
            Reason::Client => Said::new("client", "클라이언트"),
            Reason::Weir => Said::new("weir", "weir"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;
    use weir_meter::live::ErrorSample;

    fn class(class: &str, kind: ErrorKind, upstream: &str) -> ErrorClass {
        let sample = ErrorSample { upstream: upstream.to_owned(), ..ErrorSample::default() };
        ErrorClass { class: class.to_owned(), kind, count: 2, samples: vec![sample], ..ErrorClass::default() }
    }

    #[test]
    fn each_class_has_one_reason() {
        for (name, kind, upstream, reason) in [
            ("limit_req", ErrorKind::Refused, "", Reason::Limit),
            ("502 connection refused", ErrorKind::Failed, "", Reason::Upstream),
            ("504 timeout", ErrorKind::Failed, "10.0.0.1:80", Reason::Timeout),
            ("500", ErrorKind::Failed, "10.0.0.1:80", Reason::Upstream),
            ("500", ErrorKind::Failed, "", Reason::Weir),
            ("connections full", ErrorKind::Failed, "", Reason::Weir),
            ("no answer reset", ErrorKind::Failed, "", Reason::Upstream),
            ("cut short", ErrorKind::Failed, "", Reason::Upstream),
            ("try connection refused", ErrorKind::Recovered, "", Reason::Upstream),
            ("408", ErrorKind::Client, "", Reason::Client),
        ] {
            assert_eq!(of(&class(name, kind, upstream)), reason, "{name}");
        }
    }

    #[test]
    fn growth_is_counted_without_tries_of_answered_requests() {
        let of_them = |upstream: &str| {
            let mut snapshot = Snapshot::default();
            snapshot.weir.errors = vec![
                class("500", ErrorKind::Failed, upstream),
                class("502 connection refused", ErrorKind::Failed, "a"),
                class("try connection refused", ErrorKind::Recovered, "a"),
                class("limit_req", ErrorKind::Refused, ""),
            ];
            snapshot
        };
        let (nothing, before) = (Snapshot::default(), of_them("a"));
        assert_eq!(ALL.map(|reason| grown(&nothing, &before, reason)), [2, 4, 0, 0, 0]);
        // The class 500 now comes from weir itself. Its earlier errors are not counted again.
        let mut now = of_them("");
        now.weir.errors[0].count += 3;
        assert_eq!(ALL.map(|reason| grown(&before, &now, reason)), [0, 0, 0, 0, 3]);
    }
}
