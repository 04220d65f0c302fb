//! The targets of the fields that decide about kept answers (`fuzz/README.md`).

use crate::cache_control::{Control, RequestControl, SECONDS_MAX, members, seconds, withholds};
use crate::condition::{self, Since, Validators};
use crate::partial::ContentRange;
use crate::validity::{ENCODED_BYTES, Validity};
use crate::{dates, personal, structured, vary};
use weir_mutate::mutate;
use weir_wire::fields::Fields;
use weir_wire::{Known, date};

const FIELDS: &[&str] = &[
    "max-age=60, s-maxage=\"5\", no-cache=\"Set-Cookie, X\", stale-while-revalidate=3, public",
    "private, no-store, must-understand, max-stale, min-fresh=0099",
    "\"abc\", W/\"d,e\", *",
    "Accept-Encoding, *, cookie , ,User-Agent",
    "gzip;q=0.5, br, *;q=0, identity ; q=1.000",
    "bytes 0-99/100",
    "bytes 5-6/*",
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "Sun, 06 Nov 1994 08:49:37 GMT",
    "Sun Nov  6 08:49:37 1994",
    "max-age=600, a=(1 2.5;x \"b\\\"\");y=?0, c=:YWJj:, d=@1, e=%\"f%c3%bc\", *g=token/*",
    "PHPSESSID=1; _ga=2; __Host-session=3; =4; a",
    "$scheme${http_authorization}$cookie_PHPSESSID$request_method",
];

const WORDS: &[&str] = &[
    ",",
    ";",
    "=",
    "\"",
    "\\",
    "\"\\\"\"",
    " ",
    "\t",
    "*",
    "-",
    "/",
    "W/",
    "q=",
    "(",
    ")",
    ":",
    "?1",
    "@",
    "%",
    "0",
    "9",
    "4294967296",
    "18446744073709551616",
    "max-age=",
    "no-cache=\"",
    "stale-if-error=",
    "bytes ",
    "GMT",
    "Feb",
    " 31 ",
    "\0",
    "é",
    "$",
    "{",
];

/// Each reader ends, its parts are parts of its text, and a value read is the same when it is written again.
#[test]
fn fields() {
    mutate(FIELDS, WORDS, |text| {
        control(text);
        conditions(text);
        selections(text);
        if let Some(range) = ContentRange::read(text) {
            assert!(range.first <= range.last && range.bytes() >= 1);
            assert!(range.length.is_none_or(|length| range.last < length));
            let length = range.length.map_or("*".to_owned(), |length| length.to_string());
            let written = format!("bytes {}-{}/{length}", range.first, range.last);
            assert_eq!(ContentRange::read(written.as_bytes()), Some(range));
        }
        let mut count = 0;
        let read = structured::dictionary(std::iter::once(text), |key, _| {
            assert!(!key.is_empty());
            count += 1;
        });
        assert!(count <= text.len() && read.is_err() | (read == Ok(count)));
        let _ = (personal::has_session(text), personal::sets_session(text), personal::is_session(text));
        let _ = personal::ToldApart::by_key(&String::from_utf8_lossy(text));
        if let Some(validity) = text.first_chunk::<ENCODED_BYTES>().and_then(Validity::decode) {
            assert_eq!(Validity::decode(&validity.encode()).map(|again| again.encode()), Some(validity.encode()));
        }
    });
}

fn control(text: &[u8]) {
    let mut parts = 0;
    for member in members(text) {
        assert!(!member.is_empty() && member.len() <= text.len());
        parts += member.len() + 1;
    }
    assert!(parts <= text.len() + 1);
    let one = Control::read(std::iter::once(text));
    let max = [one.max_age, one.shared_max_age, one.while_revalidate, one.if_error, seconds(text)];
    assert!(max.iter().flatten().all(|seconds| *seconds <= SECONDS_MAX));
    let mut request = RequestControl::default();
    request.add_line(text);
    let _ = withholds(text, b"set-cookie");
}

fn conditions(text: &[u8]) {
    let stored = Validators { etag: Some(b"\"abc\""), last_modified: Some(784_111_777) };
    for known in [Known::IfMatch, Known::IfNoneMatch, Known::IfModifiedSince, Known::IfUnmodifiedSince] {
        let mut fields = Fields::default();
        fields.push(known.name().as_bytes(), text);
        for since in [Since::Off, Since::Exact, Since::Before] {
            let _ = condition::judge(fields.iter(), stored, since);
        }
    }
    // The weak comparison finds each tag that the strong one finds.
    assert!(!condition::matches(text, stored.etag, false) || condition::matches(text, stored.etag, true));
    let _ = condition::allows_range(text, stored);
    if let Some(seconds) = dates::read(text)
        && (0..=date::SECONDS_MAX).contains(&seconds)
    {
        assert_eq!(dates::read(&date::http_date(seconds)), Some(seconds));
    }
}

/// The order of lines and of names has no meaning, and the result is bounded by its input.
fn selections(text: &[u8]) {
    let mut names = Vec::new();
    vary::names(std::iter::once(text), &mut names);
    assert!(names.len() <= text.len() + 1);
    let mut fields = Fields::default();
    fields.push(b"Accept-Encoding", text);
    fields.push(b"Cookie", text);
    let mut out = Vec::new();
    vary::selection(&names, fields.iter().collect::<Vec<_>>().iter().copied(), &mut out);
    // Each name is written once with the values of its field.
    let lines = names.iter().filter(|&&byte| byte == b'\n').count();
    assert!(out.len() <= names.len() + lines * (2 * text.len() + 4), "{} bytes", out.len());
    let mut second = Vec::new();
    vary::selection(&names, fields.iter().collect::<Vec<_>>().iter().copied(), &mut second);
    assert_eq!(out, second);
}
