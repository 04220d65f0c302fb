//! Compares two answers to one request. Differences between two answers of the same server are noise and count for
//! nothing.

use std::collections::BTreeMap;

use weir_wire::date::parse_http_date;
use weir_words::{Words, words};

/// Most characters of a value that a difference shows.
const SHOWN_MAX: usize = 120;
/// Seconds by which a relative moment may differ.
const MOMENT_S: i64 = 2;
/// nginx's own pages end in this.
const OWN_PAGE: &[u8] = b"<hr><center>";
/// Fields with the moment of an answer or the server's name.
const UNCOMPARED: &[&str] = &["date", "server"];

/// An answer, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComparedAnswer {
    /// It arrived.
    Whole {
        /// The status.
        status: u16,
        /// Name, in lower case, and value.
        fields: Vec<(String, Vec<u8>)>,
        /// The body without its content coding.
        body: Vec<u8>,
    },
    /// The connection failed, under this name: `ECONNRESET`.
    Failed(String),
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// `status`, `field NAME` or `body`.
    pub part: String,
    /// The value of nginx.
    pub nginx: String,
    /// The value of weir.
    pub weir: String,
}

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// The differences.
    pub differences: Vec<Difference>,
    /// Differences that weir's documentation explains, by the index in [`EXPLAINED`].
    pub explained: Vec<usize>,
    /// The parts in which nginx differs from itself.
    pub noise: Vec<String>,
    /// The parts that the application gives another value with each fill of a cache.
    pub changing: Vec<String>,
}

/// A deliberate difference.
pub struct Explained {
    /// Its name, for JSON.
    pub name: &'static str,
    /// The reason, for the page.
    pub reason: Words,
    is_it: fn(&Difference, is_head: bool) -> bool,
}

/// The deliberate differences.
pub const EXPLAINED: &[Explained] = &[
    Explained {
        name: "ranges of a cache",
        reason: words(
            "where weir's cache asks for whole answers, weir answers ranges itself: Accept-Ranges",
            "캐시가 전체 응답을 받는 곳에서는 weir가 범위 요청에 직접 응답합니다: Accept-Ranges",
        ),
        is_it: |one, _| one.part == "field accept-ranges" && one.nginx == NONE && one.weir == "bytes",
    },
    Explained {
        name: "age",
        reason: words(
            "weir tells the age of an answer from its cache (RFC 9111 5.1)",
            "weir는 캐시에서 꺼낸 응답의 나이를 알립니다(RFC 9111 5.1)",
        ),
        is_it: |one, _| one.part == "field age" && one.nginx == NONE,
    },
    Explained {
        name: "order of Vary",
        reason: words(
            "weir adds its own Vary after the origin's; the order has no meaning (RFC 9110 12.5.5)",
            "weir는 자신의 Vary를 오리진의 것 뒤에 붙입니다. 순서에는 의미가 없습니다(RFC 9110 12.5.5)",
        ),
        is_it: |one, _| one.part == "field vary" && sorted(&one.nginx) == sorted(&one.weir),
    },
    Explained {
        name: "length of a page",
        reason: words(
            "HEAD tells the length of an error page, and the server's name is in the page",
            "HEAD는 오류 페이지의 길이를 알리는데, 페이지에 서버 이름이 있습니다",
        ),
        is_it: |one, is_head| is_head && one.part == "field content-length" && differs_by_name(one),
    },
];

/// The value of an absent field.
pub const NONE: &str = "none";
/// The most letters that two names of servers differ by: `nginx/1.22.1 (Debian)` and `weir`.
const NAME_MAX: u64 = 40;

fn sorted(values: &str) -> Vec<&str> {
    // A control character is shown as a dot between the values of several fields.
    let mut all: Vec<&str> = values.split([',', '\u{b7}']).map(str::trim).collect();
    all.sort_unstable();
    all
}

fn differs_by_name(one: &Difference) -> bool {
    match (one.nginx.parse::<u64>(), one.weir.parse::<u64>()) {
        (Ok(theirs), Ok(ours)) => theirs.abs_diff(ours) <= NAME_MAX,
        _ => false,
    }
}

/// Sets deliberate differences apart.
#[must_use]
pub fn explain(mut compared: Compared, is_head: bool) -> Compared {
    let reason = |one: &Difference| EXPLAINED.iter().position(|explained| (explained.is_it)(one, is_head));
    compared.explained = compared.differences.iter().filter_map(reason).collect();
    compared.differences.retain(|one| reason(one).is_none());
    compared
}

/// The port that stands in for another one.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    /// The port of weir.
    pub own: u16,
    /// nginx's port.
    pub of: u16,
    /// Whether URLs need nginx's port.
    pub is_default: bool,
}

/// Compares two answers of nginx with one of weir.
pub fn compare(first: &ComparedAnswer, again: &ComparedAnswer, weir: &ComparedAnswer, port: Port) -> Compared {
    let (first, again) = (parts(first, None), parts(again, None));
    let weir = parts(weir, Some(port));
    let mut compared = Compared::default();
    let mut names: Vec<&String> = first.keys().chain(weir.keys()).collect();
    names.sort_by_key(|name| (*name != "status", name.as_str()));
    names.dedup();
    for name in names {
        let (theirs, ours) = (first.get(name), weir.get(name));
        if first.get(name) != again.get(name) {
            compared.noise.push(name.clone());
            // Two kinds of answers have nothing to compare.
            if name == "status" {
                break;
            }
            // Its value is noise; whether it is there may not be.
            if first.contains_key(name) != again.contains_key(name) || theirs.is_some() == ours.is_some() {
                continue;
            }
        }
        if !is_same(name, theirs, ours) {
            compared.differences.push(difference(name, theirs, ours));
            // An answer of another kind has other fields and another body.
            if name == "status" {
                break;
            }
        }
    }
    compared
}

/// Removes the differences that a second answer of weir does not have: weir differs from itself there, or has caught
/// up with a cache.
pub fn confirmed(mut compared: Compared, second: &Compared) -> Compared {
    let lasts = |one: &Difference| second.differences.iter().any(|other| other.part == one.part);
    let (lasting, passing): (Vec<_>, Vec<_>) = compared.differences.into_iter().partition(lasts);
    compared.noise.extend(passing.into_iter().map(|one| one.part));
    compared.differences = lasting;
    compared
}

/// Removes the differences in parts that weir's answer from an empty cache and another such answer do not share: the
/// application changes them, and the caches of nginx and of weir were filled at different times. A failure or an answer
/// with another status shows nothing about the parts, so it removes none.
pub fn unsteady(mut compared: Compared, ours: &ComparedAnswer, fresh: &ComparedAnswer, port: Port) -> Compared {
    let (ours, fresh) = (parts(ours, Some(port)), parts(fresh, Some(port)));
    if ours.get("status") != fresh.get("status") {
        return compared;
    }
    let (lasting, passing): (Vec<_>, Vec<_>) =
        compared.differences.into_iter().partition(|one| is_same(&one.part, ours.get(&one.part), fresh.get(&one.part)));
    compared.changing.extend(passing.into_iter().map(|one| one.part));
    compared.differences = lasting;
    compared
}

fn is_same(name: &str, theirs: Option<&Vec<u8>>, ours: Option<&Vec<u8>>) -> bool {
    let moment = |value: Option<&Vec<u8>>| std::str::from_utf8(value?).ok()?.parse::<i64>().ok();
    match (name, moment(theirs), moment(ours)) {
        ("field expires", Some(theirs), Some(ours)) => (theirs - ours).abs() <= MOMENT_S,
        _ => theirs == ours,
    }
}

/// The parts of an answer by name, in a form that does not depend on the server.
fn parts(answer: &ComparedAnswer, port: Option<Port>) -> BTreeMap<String, Vec<u8>> {
    let mut parts = BTreeMap::new();
    let (status, fields, body) = match answer {
        ComparedAnswer::Whole { status, fields, body } => (status, fields, body),
        ComparedAnswer::Failed(name) => {
            parts.insert("status".to_owned(), format!("no answer ({name})").into_bytes());
            return parts;
        }
    };
    parts.insert("status".to_owned(), status.to_string().into_bytes());
    let value = |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_slice());
    let (date, is_coded) = (value("date").and_then(parse_http_date), value("content-encoding").is_some());
    let is_page = body.windows(OWN_PAGE.len()).any(|window| window == OWN_PAGE);
    for (name, value) in fields {
        let part = format!("field {name}");
        let value = match name.as_str() {
            name if UNCOMPARED.contains(&name) => Vec::new(),
            // The length of a page with the server's name, and of the coded bytes.
            "content-length" if is_page || is_coded => Vec::new(),
            "expires" => match (parse_http_date(value), date) {
                (Some(moment), Some(date)) => (moment - date).to_string().into_bytes(),
                _ => value.clone(),
            },
            _ => as_of(value, port),
        };
        let all: &mut Vec<u8> = parts.entry(part).or_default();
        if !all.is_empty() {
            all.extend_from_slice(b"\n");
        }
        all.extend_from_slice(&value);
    }
    let of_nginx = as_of(body, port);
    // The stand-in's port has another number of digits.
    if of_nginx.len() != body.len()
        && let Some(length) = parts.get_mut("field content-length")
        && *length == body.len().to_string().into_bytes()
    {
        *length = of_nginx.len().to_string().into_bytes();
    }
    let body = of_nginx;
    parts.insert("body".to_owned(), if is_page { without_name(&body) } else { body });
    parts
}

/// The bytes with nginx's port in the place of weir's.
fn as_of(bytes: &[u8], port: Option<Port>) -> Vec<u8> {
    let Some(port) = port else { return bytes.to_vec() };
    let own = port.own.to_string().into_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut from = 0;
    for at in memchr::memmem::find_iter(bytes, &own) {
        let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        if is_digit(before) || is_digit(bytes.get(at + own.len())) {
            continue;
        }
        out.extend_from_slice(bytes.get(from..at).unwrap_or_default());
        if before == Some(&b':') && port.is_default {
            out.pop();
        } else {
            out.extend_from_slice(port.of.to_string().as_bytes());
        }
        from = at + own.len();
    }
    out.extend_from_slice(bytes.get(from..).unwrap_or_default());
    out
}

/// A page of the server itself without the server's name and version.
fn without_name(page: &[u8]) -> Vec<u8> {
    let Some(at) = memchr::memmem::rfind(page, OWN_PAGE) else { return page.to_vec() };
    let from = at + OWN_PAGE.len();
    let rest = page.get(from..).unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == b'<').unwrap_or(rest.len());
    [page.get(..from).unwrap_or_default(), rest.get(end..).unwrap_or_default()].concat()
}

fn difference(name: &str, theirs: Option<&Vec<u8>>, ours: Option<&Vec<u8>>) -> Difference {
    let (nginx, weir) = match (name, theirs, ours) {
        ("body", Some(theirs), Some(ours)) => {
            let at = theirs.iter().zip(ours).take_while(|(one, other)| one == other).count();
            let around =
                |body: &[u8]| format!("{} bytes, at {at}: {}", body.len(), shown(body.get(at..).unwrap_or_default()));
            (around(theirs), around(ours))
        }
        _ => {
            let value = |value: Option<&Vec<u8>>| value.map_or(NONE.to_owned(), |value| shown(value));
            (value(theirs), value(ours))
        }
    };
    Difference { part: name.to_owned(), nginx, weir }
}

/// A value for a terminal.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes.get(..bytes.len().min(4 * SHOWN_MAX)).unwrap_or_default()).into_owned();
    let safe = text.chars().take(SHOWN_MAX).map(|c| if c.is_control() { '\u{b7}' } else { c });
    safe.collect::<String>() + if text.chars().count() > SHOWN_MAX { "…" } else { "" }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn answer(status: u16, fields: &[(&str, &str)], body: &str) -> ComparedAnswer {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
        ComparedAnswer::Whole { status, fields, body: body.into() }
    }

    const PORT: Port = Port { own: 40001, of: 80, is_default: true };

    fn found(first: &ComparedAnswer, again: &ComparedAnswer, weir: &ComparedAnswer) -> (Vec<String>, Vec<String>) {
        let compared = compare(first, again, weir, PORT);
        (compared.differences.into_iter().map(|one| one.part).collect(), compared.noise)
    }

    #[test]
    fn the_server_s_name_its_port_and_the_moment_do_not_count() {
        let date = "Thu, 26 Nov 2026 04:00:00 GMT";
        let one = answer(
            301,
            &[
                ("date", date),
                ("server", "nginx/1.22.1"),
                ("location", "http://h/a/"),
                ("expires", "Thu, 26 Nov 2026 05:00:00 GMT"),
                ("content-length", "169"),
            ],
            "x<hr><center>nginx/1.22.1</center>",
        );
        let other = answer(
            301,
            &[
                ("date", "Thu, 26 Nov 2026 04:00:09 GMT"),
                ("server", "nginx"),
                ("location", "http://h:40001/a/"),
                ("expires", "Thu, 26 Nov 2026 05:00:09 GMT"),
                ("content-length", "162"),
            ],
            "x<hr><center>nginx</center>",
        );
        assert_eq!(found(&one, &one, &other), (vec![], vec![]));
        let later = answer(
            301,
            &[
                ("date", date),
                ("server", "nginx"),
                ("location", "http://h:40001/a/"),
                ("expires", "Thu, 26 Nov 2026 06:00:00 GMT"),
                ("content-length", "162"),
            ],
            "x<hr><center>nginx</center>",
        );
        assert_eq!(found(&one, &one, &later).0, ["field expires"]);
        let long = answer(200, &[("content-length", "7")], "p 40001");
        assert_eq!(
            found(
                &answer(200, &[("content-length", "4")], "p 80"),
                &answer(200, &[("content-length", "4")], "p 80"),
                &long
            )
            .0,
            [""; 0]
        );
        let port = Port { of: 8080, is_default: false, ..PORT };
        assert_eq!(as_of(b"http://h:40001/ 140001 40001", Some(port)), b"http://h:8080/ 140001 8080");
    }

    #[test]
    fn noise_of_nginx_is_no_difference_but_an_absent_field_is() {
        let one = answer(200, &[("x-id", "1"), ("set-cookie", "a=1")], "token 1");
        let two = answer(200, &[("x-id", "2"), ("set-cookie", "a=2")], "token 2");
        let weir = answer(200, &[("x-id", "3")], "token 3");
        let (differences, noise) = found(&one, &two, &weir);
        assert_eq!(differences, ["field set-cookie"]);
        assert_eq!(noise, ["body", "field set-cookie", "field x-id"]);
    }

    #[test]
    fn every_part_is_compared() {
        let one = answer(200, &[("etag", "\"a\""), ("vary", "x"), ("vary", "y")], "same then a");
        let body = answer(200, &[("etag", "\"b\""), ("vary", "x")], "same then b");
        assert_eq!(found(&one, &one, &body).0, ["body", "field etag", "field vary"]);
        // The status comes first, and hides the rest.
        assert_eq!(found(&one, &one, &answer(404, &[], "")).0, ["status"]);
        assert_eq!(found(&one, &one, &ComparedAnswer::Failed("ECONNRESET".to_owned())).0, ["status"]);
        // An answer of another kind at the second time: a limit, for example.
        assert_eq!(found(&one, &answer(503, &[], ""), &body), (vec![], vec!["status".to_owned()]));
        let failed = ComparedAnswer::Failed("ECONNRESET".to_owned());
        assert_eq!(found(&failed, &failed, &failed).0, [""; 0]);
        let shown = compare(&one, &one, &body, PORT).differences;
        assert_eq!((shown[0].nginx.as_str(), shown[0].weir.as_str()), ("11 bytes, at 10: a", "11 bytes, at 10: b"));
    }

    #[test]
    fn deliberate_differences_are_set_apart() {
        let one = answer(404, &[("vary", "x"), ("vary", "y"), ("content-length", "153")], "");
        let other =
            answer(404, &[("vary", "y, x"), ("content-length", "145"), ("age", "1"), ("accept-ranges", "bytes")], "");
        let compared = compare(&one, &one, &other, PORT);
        let head = explain(compared.clone(), true);
        let names: Vec<&str> = head.explained.iter().map(|index| EXPLAINED[*index].name).collect();
        assert_eq!(names, ["ranges of a cache", "age", "length of a page", "order of Vary"]);
        assert!(head.differences.is_empty(), "{head:?}");
        // In a GET, the body shows the length.
        assert_eq!(explain(compared, false).differences.len(), 1);
    }

    #[test]
    fn a_difference_has_to_last() {
        let (miss, hit) = (answer(200, &[("x-cache", "MISS")], ""), answer(200, &[("x-cache", "HIT")], ""));
        let first = compare(&hit, &hit, &miss, PORT);
        let lasting = confirmed(first.clone(), &compare(&hit, &hit, &hit, PORT));
        assert_eq!((lasting.differences, lasting.noise), (vec![], vec!["field x-cache".to_owned()]));
        assert_eq!(confirmed(first.clone(), &first).differences.len(), 1);
    }

    #[test]
    fn a_part_that_changes_with_each_fill_is_not_compared() {
        let answer =
            |body: &str| ComparedAnswer::Whole { status: 200, fields: Vec::new(), body: body.as_bytes().to_vec() };
        let port = Port { own: 1, of: 2, is_default: false };
        let (nginx, ours) = (answer("a"), answer("b"));
        let compared = compare(&nginx, &nginx, &ours, port);
        let same = unsteady(compared.clone(), &ours, &answer("b"), port);
        assert_eq!((same.differences.len(), same.changing.len()), (1, 0));
        let other = unsteady(compared.clone(), &ours, &answer("c"), port);
        assert_eq!((other.differences, other.changing), (vec![], vec!["body".to_owned()]));
        let failed = ComparedAnswer::Failed("ECONNREFUSED".to_owned());
        let limited = ComparedAnswer::Whole { status: 503, fields: Vec::new(), body: Vec::new() };
        for fresh in [&failed, &limited] {
            let kept = unsteady(compared.clone(), &ours, fresh, port);
            assert_eq!((kept.differences.len(), kept.changing.len()), (1, 0), "{fresh:?}");
        }
    }
}
