//! Why a request was not answered as its client wanted, in one word. The verdict, the tiles, the charts and the samples
//! of errors use the same words.

use serde::Serialize;
use serde_json::{Value, json};
use weir_meter::live::{ErrorClass, ErrorKind, Snapshot};

use weir_words::Said;

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
            Reason::Limit => Said::of_both("limit", "제한"),
            Reason::Upstream => Said::of_both("upstream", "업스트림"),
            Reason::Timeout => Said::of_both("timeout", "시간 초과"),
            Reason::Client => Said::of_both("client", "클라이언트"),
            Reason::Weir => Said::of_both("weir", "weir"),
        }
    }
}

/// Why a try at a server failed: the words of snapshots (`meter`'s `Why`), the words in names of classes where they
/// differ, and the Korean words.
const WHYS: [(&str, &str, &str); 12] = [
    ("refused", "connection refused", "연결 거부"),
    ("unreachable", "unreachable", "서버에 닿는 경로 없음"),
    ("timeout", "timeout", "시간 초과"),
    ("reset", "reset", "연결 강제 종료(RST)"),
    ("closed", "closed", "응답 전에 연결 닫힘"),
    ("no_port", "no port", "로컬 포트 없음"),
    ("no_file", "no file", "파일 디스크립터 없음"),
    ("bad_head", "bad head", "잘못된 응답 헤더"),
    ("tls", "tls", "TLS 실패"),
    ("no_peer", "no peer", "사용할 서버 없음"),
    ("queue", "queue", "대기열 초과"),
    ("other", "other", "그 밖의 이유"),
];

/// All reasons why a try fails, with their words for people: for the page.
pub fn whys() -> Value {
    let all = WHYS.iter().map(|(name, en, ko)| ((*name).to_owned(), json!(Said::of_both(*en, *ko))));
    Value::Object(all.collect())
}

/// The name of a class of errors for people. English names are those that logs of weir and its API use.
pub fn title(class: &str) -> Said {
    let why = |words: &str| WHYS.iter().find(|(_, en, _)| *en == words).map(|(_, _, ko)| *ko);
    let is_status = |word: &str| word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    let korean = match class {
        "no answer" => Some("응답 없음".to_owned()),
        "cut short" => Some("응답이 도중에 끊김".to_owned()),
        "connections full" => Some("연결 테이블 가득 참".to_owned()),
        "accept failed" => Some("연결을 받지 못함".to_owned()),
        "other" => Some("그 밖의 오류".to_owned()),
        _ => match class.split_once(' ') {
            Some(("try", words)) => why(words).map(|why| format!("시도 실패: {why}")),
            Some((status, words)) if is_status(status) => why(words).map(|why| format!("{status} {why}")),
            _ => class.strip_prefix("no answer ").and_then(why).map(|why| format!("응답 없음: {why}")),
        },
    };
    Said::of_both(class, korean.unwrap_or_else(|| class.to_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;
    use weir_meter::live::ErrorSample;
    use weir_meter::live::cells::Why;

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
    fn each_class_has_a_name_in_both_languages() {
        for why in Why::ALL {
            let row = WHYS.iter().find(|(name, ..)| *name == why.as_str());
            assert!(row.is_some_and(|(_, words, ko)| *words == why.words() && !ko.is_ascii()), "{why:?}");
        }
        for (class, ko) in [
            ("502 connection refused", "502 연결 거부"),
            ("try connection refused", "시도 실패: 연결 거부"),
            ("no answer reset", "응답 없음: 연결 강제 종료(RST)"),
            ("no answer", "응답 없음"),
            ("cut short", "응답이 도중에 끊김"),
            // Names of statuses and directives are the same in each language, and so is an unknown one.
            ("500", "500"),
            ("limit_req", "limit_req"),
            ("llamas asleep", "llamas asleep"),
        ] {
            assert_eq!(title(class), Said::of_both(class, ko));
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
