//! Parts of a body: `Range`, `If-Range`, `max_ranges` (RFC 9110 §14).
//!
//! <https://nginx.org/en/docs/http/ngx_http_core_module.html#max_ranges>. A file or a body in memory may give several
//! ranges; an upstream's streamed body gives one.

use std::cell::Cell;
use std::io::Write;

use weir_cache::condition::{Validators, allows_range};
use weir_http::exchange::response_body::{Body, BodyFilter, Part, Whole};
use weir_http::exchange::{Exchange, Response};
use weir_http::read::directive::{Directive, HSL, ONE};
use weir_http::read::families::Family;
use weir_http::text::value;
use weir_wire::{Known, Version};

weir_http::settings! {
    /// `max_ranges`; `None` for no limit other than the sizes checked below.
    max: Option<u64> = None,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The most ranges in a request: beyond it weir ignores the field and sends the whole body.
const RANGES_MAX: usize = 1024;

/// The family.
pub static FAMILY: Family = Family::new(
    "range",
    &[Directive::new(
        "max_ranges",
        HSL,
        ONE,
        "The largest number of ranges in a request; 0 turns ranges off.",
        |b, s| {
            crate::settings(b).range.max = Some(Some(value::first_number(s)?));
            Ok(())
        },
    )],
)
.filter(|location| crate::values(location).range.max != Some(0), filter)
.fixed(|_, _| true);

/// Bytes `start..end` of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    start: u64,
    end: u64,
}

/// The result of reading a `Range` field.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    /// No range to honour: the whole body.
    Whole,
    /// No range within the body.
    Nothing,
    /// These ranges, at least one.
    Ranges(Vec<Range>),
}

fn filter(exchange: &mut Exchange<'_>) {
    let response = &exchange.response;
    let Some(length) = response.content_length.filter(|_| response.allows_ranges) else { return };
    // RFC 9110 §14.2: Range is for GET. As nginx, weir also answers HEAD as it would GET.
    let may_ask =
        matches!(exchange.request.method(), b"GET" | b"HEAD") && exchange.request.version() != Version::Http09;
    if response.status.get() != 200 || !may_ask {
        return;
    }
    match asked(exchange, length) {
        Asked::Whole => offer(exchange.response),
        Asked::Nothing => {
            content_range(exchange, |out| write!(out, "bytes */{length}"));
            exchange.response.content_length = None;
            exchange.response.refused = Some(416);
        }
        Asked::Ranges(ranges) => {
            exchange.response.status.turn(206);
            exchange.response.status_line.clear();
            exchange.response.fields.remove(Known::ContentLength);
            match ranges.as_slice() {
                [range] => single(exchange, *range, length),
                several => multiple(exchange, several, length),
            }
        }
    }
}

/// Tells the client that it may ask for ranges.
fn offer(response: &mut Response) {
    let is_upstream_s = matches!(response.body, Body::Origin | Body::Kept(_) | Body::Stream(_));
    let is_told = response.fields.get(Known::AcceptRanges) == Some(b"bytes");
    if is_upstream_s || is_told {
        // weir cuts the ranges, whatever the upstream says about its own.
        response.fields.replace(b"Accept-Ranges", b"bytes", Known::AcceptRanges);
    } else {
        // The field of an answer with `X-Accel-Redirect` stays, as in nginx.
        response.fields.push_known(b"Accept-Ranges", b"bytes", Some(Known::AcceptRanges));
    }
}

fn asked(exchange: &Exchange<'_>, length: u64) -> Asked {
    let (request, response) = (&exchange.request, &exchange.response);
    let Some(field) = request.field(Known::Range) else { return Asked::Whole };
    let Some(set) = field.get(..6).filter(|unit| unit.eq_ignore_ascii_case(b"bytes=")).and_then(|_| field.get(6..))
    else {
        return Asked::Whole;
    };
    if set.is_empty() {
        return Asked::Whole;
    }
    if let Some(condition) = request.field(Known::IfRange) {
        let current = Validators { etag: response.fields.get(Known::Etag), last_modified: response.last_modified };
        if !allows_range(condition, current) {
            return Asked::Whole;
        }
    }
    // A streamed or sliced body passes only once, so only one part of it can be cut out. A body of parts has no room
    // for more heads.
    let max = if matches!(response.body, Body::Origin | Body::Stream(_) | Body::Parts { .. }) {
        Some(1)
    } else {
        crate::values(exchange.location).range.max
    };
    parse(set, length, max)
}

/// Reads the text after `bytes=`, as lenient and as strict as nginx's `ngx_http_range_parse`.
fn parse(set: &[u8], length: u64, max: Option<u64>) -> Asked {
    let limit = max.map_or(RANGES_MAX, |max| usize::try_from(max).unwrap_or(RANGES_MAX).min(RANGES_MAX));
    let mut ranges = Vec::new();
    let mut size: u64 = 0;
    for part in set.split(|b| *b == b',') {
        let Some((first, last)) = bounds(part) else { return Asked::Nothing };
        let (start, end) = match (first, last) {
            (Some(first), None) => (first, length),
            (Some(first), Some(last)) => (first, last.saturating_add(1).min(length)),
            (None, Some(suffix)) => (length.saturating_sub(suffix), length),
            (None, None) => return Asked::Nothing,
        };
        if start < end {
            if ranges.len() >= limit {
                return Asked::Whole;
            }
            let Some(sum) = size.checked_add(end - start) else { return Asked::Nothing };
            size = sum;
            ranges.push(Range { start, end });
        } else if start == 0 {
            return Asked::Whole;
        }
    }
    match ranges.len() {
        0 => Asked::Nothing,
        1 => Asked::Ranges(ranges),
        // If overlapping ranges ask for more bytes than the whole body has, weir sends the whole body instead.
        _ if size > length => Asked::Whole,
        count if max.is_none() && size + count as u64 * 256 > length + 4096 => Asked::Whole,
        _ => Asked::Ranges(ranges),
    }
}

/// The two numbers of `first-last`, `first-` or `-suffix`; `None` when it is none of these.
fn bounds(part: &[u8]) -> Option<(Option<u64>, Option<u64>)> {
    let dash = memchr::memchr(b'-', part)?;
    let first = number(part.get(..dash)?)?;
    let last = number(part.get(dash + 1..)?)?;
    Some((first, last))
}

/// A number between spaces, or only spaces; `None` for any other text and for a number too large for a file.
fn number(text: &[u8]) -> Option<Option<u64>> {
    let first = text.iter().position(|b| *b != b' ').unwrap_or(text.len());
    let text = text.get(first..)?;
    let last = text.iter().rposition(|b| *b != b' ').map_or(0, |at| at + 1);
    let digits = text.get(..last)?;
    if digits.is_empty() {
        return Some(None);
    }
    let number = std::str::from_utf8(digits).ok().and_then(value::number)?;
    (number <= i64::MAX as u64).then_some(Some(number))
}

fn content_range(exchange: &mut Exchange<'_>, text: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) {
    let fields = &mut exchange.response.fields;
    fields.remove(Known::ContentRange);
    fields.push_with(b"Content-Range", Some(Known::ContentRange), |out| {
        let written = text(out);
        debug_assert!(written.is_ok());
    });
}

fn single(exchange: &mut Exchange<'_>, range: Range, length: u64) {
    content_range(exchange, |out| write!(out, "bytes {}-{}/{length}", range.start, range.end - 1));
    let response = &mut exchange.response;
    response.content_length = Some(range.end - range.start);
    match &mut response.body {
        Body::Bytes(bytes) => {
            bytes.truncate(usize::try_from(range.end).unwrap_or(usize::MAX));
            bytes.drain(..bytes.len().min(usize::try_from(range.start).unwrap_or(usize::MAX)));
        }
        Body::File { offset, length, .. } => {
            *offset += range.start;
            *length = range.end - range.start;
        }
        Body::Kept(kept) => kept.cut(range.start, range.end),
        Body::Stream(stream) => stream.cut(range.start, range.end),
        Body::Origin => {
            let (skip, take) = (range.start, range.end - range.start);
            response.body_filters.push(Box::new(Window { skip, take }));
        }
        Body::Parts { parts, end, .. } => cut_parts(parts, end, range),
        Body::Empty => {}
    }
}

/// Leaves only a range of all parts together.
fn cut_parts(parts: &mut [Part], end: &mut Vec<u8>, range: Range) {
    let mut at = 0;
    let mut overlap = |length: u64| {
        let from = range.start.saturating_sub(at).min(length);
        let to = range.end.saturating_sub(at).min(length).max(from);
        at += length;
        (from, to)
    };
    let cut = |bytes: &mut Vec<u8>, (from, to): (u64, u64)| {
        bytes.truncate(to as usize);
        bytes.drain(..from as usize);
    };
    for part in parts {
        let head = overlap(part.head.len() as u64);
        cut(&mut part.head, head);
        let (from, to) = overlap(part.length);
        part.offset += from;
        part.length = to - from;
    }
    let last = overlap(end.len() as u64);
    cut(end, last);
}

thread_local! {
    /// Numbers the boundaries; nginx numbers them too, and pads them to twenty digits.
    static BOUNDARY: Cell<u64> = const { Cell::new(0) };
}

fn multiple(exchange: &mut Exchange<'_>, ranges: &[Range], length: u64) {
    let number = BOUNDARY.get().wrapping_add(1);
    BOUNDARY.set(number);
    let response = &mut exchange.response;
    response.fields.remove(Known::ContentRange);
    let kind = match response.content_type.as_slice() {
        [] => String::new(),
        kind => format!("Content-Type: {}\r\n", String::from_utf8_lossy(kind)),
    };
    let heads: Vec<Vec<u8>> = ranges
        .iter()
        .map(|Range { start, end }| {
            format!("\r\n--{number:020}\r\n{kind}Content-Range: bytes {start}-{}/{length}\r\n\r\n", end - 1)
                .into_bytes()
        })
        .collect();
    let end = format!("\r\n--{number:020}--\r\n").into_bytes();
    let bodies: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    let extra: usize = heads.iter().map(Vec::len).sum();
    response.content_length = Some(bodies + extra as u64 + end.len() as u64);
    response.content_type = format!("multipart/byteranges; boundary={number:020}").into_bytes();
    match std::mem::take(&mut response.body) {
        Body::Bytes(whole) => {
            let mut bytes = Vec::with_capacity(usize::try_from(bodies).unwrap_or(0) + extra + end.len());
            for (head, range) in heads.iter().zip(ranges) {
                bytes.extend_from_slice(head);
                let part = usize::try_from(range.start).unwrap_or(usize::MAX)
                    ..usize::try_from(range.end).unwrap_or(usize::MAX);
                bytes.extend_from_slice(whole.get(part).unwrap_or_default());
            }
            bytes.extend_from_slice(&end);
            response.body = Body::Bytes(bytes);
        }
        Body::File { file, offset, .. } => {
            let parts = heads
                .into_iter()
                .zip(ranges)
                .map(|(head, range)| Part { head, offset: offset + range.start, length: range.end - range.start })
                .collect();
            response.body = Body::Parts { whole: Whole::File(file), parts, end };
        }
        Body::Kept(kept) => {
            let parts = heads
                .into_iter()
                .zip(ranges)
                .map(|(head, range)| Part { head, offset: kept.offset + range.start, length: range.end - range.start })
                .collect();
            response.body = Body::Parts { whole: Whole::Kept(kept.object), parts, end };
        }
        other => response.body = other,
    }
}

/// Lets one part of a stream through.
struct Window {
    skip: u64,
    take: u64,
}

impl BodyFilter for Window {
    fn write(&mut self, input: &[u8], _flush: bool, _last: bool, out: &mut Vec<u8>) {
        let skipped = self.skip.min(input.len() as u64);
        self.skip -= skipped;
        let rest = input.get(skipped as usize..).unwrap_or_default();
        let taken = self.take.min(rest.len() as u64);
        self.take -= taken;
        out.extend_from_slice(rest.get(..taken as usize).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn ranges(list: &[(u64, u64)]) -> Asked {
        Asked::Ranges(list.iter().map(|(start, end)| Range { start: *start, end: *end }).collect())
    }

    #[test]
    fn range_fields_are_read_as_nginx_reads_them() {
        for (set, max, expected) in [
            ("0-9", None, ranges(&[(0, 10)])),
            ("0-", None, ranges(&[(0, 1000)])),
            ("-1", None, ranges(&[(999, 1000)])),
            ("-2000", None, ranges(&[(0, 1000)])),
            ("5-5000", None, ranges(&[(5, 1000)])),
            (" 0 - 9 , 20 - ", None, ranges(&[(0, 10), (20, 1000)])),
            ("0-1,2000-3000", None, ranges(&[(0, 2)])),
            ("1000-", None, Asked::Nothing),
            ("a-b", None, Asked::Nothing),
            ("1", None, Asked::Nothing),
            ("-", None, Asked::Nothing),
            ("0-9,", None, Asked::Nothing),
            ("99999999999999999999-", None, Asked::Nothing),
            ("-0", None, Asked::Nothing),
            ("0-1,2-3", Some(1), Asked::Whole),
            ("0-999,0-999", None, Asked::Whole),
        ] {
            assert_eq!(parse(set.as_bytes(), 1000, max), expected, "{set:?}");
        }
        assert_eq!(parse(b"0-0", 0, None), Asked::Whole);
    }

    #[test]
    fn a_range_of_parts_cuts_heads_and_bodies() {
        let all = b"HEADabcdefMORExyzEND";
        let file = b"..abcdef..xyz..";
        for start in 0..all.len() {
            for stop in start + 1..=all.len() {
                let mut parts = vec![
                    Part { head: b"HEAD".to_vec(), offset: 2, length: 6 },
                    Part { head: b"MORE".to_vec(), offset: 10, length: 3 },
                ];
                let mut end = b"END".to_vec();
                cut_parts(&mut parts, &mut end, Range { start: start as u64, end: stop as u64 });
                let mut out = Vec::new();
                for part in &parts {
                    out.extend_from_slice(&part.head);
                    out.extend_from_slice(&file[part.offset as usize..(part.offset + part.length) as usize]);
                }
                out.extend_from_slice(&end);
                assert_eq!(out, all[start..stop]);
            }
        }
    }

    #[test]
    fn a_window_cuts_its_part_out_of_a_stream_however_it_is_cut() {
        let text: Vec<u8> = (0..100).collect();
        for piece in [1, 7, 30, 100] {
            let mut window = Window { skip: 13, take: 40 };
            let mut out = Vec::new();
            for input in text.chunks(piece) {
                window.write(input, false, false, &mut out);
            }
            assert_eq!(out, text[13..53], "pieces of {piece}");
        }
    }

    mod mutate {
        use super::*;
        use weir_mutate::mutate;

        /// Ranges lie in the body, there are no more than allowed, and together they are not longer than the body.
        #[test]
        fn ranges_of_clients() {
            let seeds =
                ["0-9", "0-0,5-9,-3", " 1 - 2 , 7-", "9223372036854775807-", "0-18446744073709551615", "-5,-6,-7"];
            let words =
                ["-", ",", " ", "0", "9", "9223372036854775807", "18446744073709551615", "0-,", "-1,", "bytes="];
            mutate(&seeds, &words, |set| {
                for length in [0, 1, 10, 100_000, i64::MAX as u64] {
                    for max in [None, Some(0), Some(2), Some(u64::MAX)] {
                        let Asked::Ranges(ranges) = parse(set, length, max) else { continue };
                        assert!(!ranges.is_empty() && ranges.len() <= RANGES_MAX);
                        assert!(ranges.iter().all(|range| range.start < range.end && range.end <= length));
                        let size: u64 = ranges.iter().map(|range| range.end - range.start).sum();
                        assert!(size <= length, "{size} of {length}");
                    }
                }
            });
        }
    }
}
