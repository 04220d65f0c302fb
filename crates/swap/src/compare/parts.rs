//! The parts of an answer, in a form that does not depend on the server that gave it.

use std::collections::BTreeMap;

use weir_wire::date::parse_http_date;

use crate::difference::{DifferenceKind, NONE, NoiseKind, Port};
use crate::logs::LoggedLine;
use crate::request::{Observed, OriginRequest, SwapAnswer, WholeAnswer};

/// Most characters of a value that a difference shows.
const SHOWN_MAX: usize = 120;
/// Seconds by which two moments may differ that are relative to their answers.
const MOMENT_S: i64 = 2;
/// Seconds before its answer from which on a moment is a fixed one: `Expires: Thu, 01 Jan 1970 …`.
const PAST_S: i64 = 86_400;
/// nginx's own pages end in this.
pub(super) const OWN_PAGE: &[u8] = b"<hr><center>";
/// nginx's own pages have this six times at their end, if the client is Chrome.
pub(super) const PADDING: &[u8] = b"<!-- a padding to disable MSIE and Chrome friendly error page -->\r\n";
/// Most pieces of a value; a longer value is one piece.
const PIECES_MAX: usize = 2000;
/// The place of the number of requests to origins.
pub(super) const ORIGIN_COUNT: &str = "origin requests";
/// Fields with the moment of an answer.
const MOMENTS: &[&str] = &["date"];
/// Fields whose values are URLs.
const URLS: &[&str] = &["location", "content-location", "link", "refresh"];

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerPart {
    /// Its name for reports.
    pub name: String,
    /// Its value: words, and the bytes between them. Together they are the value.
    pub pieces: Vec<Vec<u8>>,
}

/// The parts of an answer, by their places.
pub type Parts = BTreeMap<String, AnswerPart>;

impl AnswerPart {
    /// A part whose value is cut into words.
    pub(super) fn of(name: &str, value: &[u8], separators: &[u8]) -> AnswerPart {
        AnswerPart { name: name.to_owned(), pieces: pieces(value, separators) }
    }

    /// The ways in which another value differs.
    pub(super) fn differing(&self, other: &AnswerPart) -> Vec<NoiseKind> {
        if self == other || self.is_same_moment(other) {
            return Vec::new();
        }
        let count = self.pieces.len();
        if count != other.pieces.len() || count == 1 {
            return vec![NoiseKind::Whole];
        }
        let pairs = self.pieces.iter().zip(&other.pieces).enumerate();
        pairs.filter(|(_, (one, other))| one != other).map(|(index, _)| NoiseKind::Piece(count, index)).collect()
    }

    /// The noise that another value of the same server shows.
    pub(super) fn noise(&self, other: &AnswerPart) -> Vec<NoiseKind> {
        self.differing(other)
    }

    /// The kind of the difference to another value.
    pub(super) fn kind(&self, other: &AnswerPart) -> DifferenceKind {
        let sorted = |part: &AnswerPart| {
            let value = part.pieces.concat();
            let mut words: Vec<Vec<u8>> =
                value.split(|byte| b",;\n".contains(byte)).map(|word| word.trim_ascii().to_vec()).collect();
            words.sort();
            words
        };
        if sorted(self) == sorted(other) { DifferenceKind::Order } else { DifferenceKind::Value }
    }

    /// True for two moments that are relative to their answers, and nearly the same.
    fn is_same_moment(&self, other: &AnswerPart) -> bool {
        let moment = |part: &AnswerPart| -> Option<i64> {
            let value = part.pieces.concat();
            std::str::from_utf8(value.strip_prefix(b"@")?).ok()?.parse().ok()
        };
        let is_age = self.name == "field age";
        let age = |part: &AnswerPart| std::str::from_utf8(&part.pieces.concat()).ok()?.parse::<i64>().ok();
        let both = match is_age {
            true => age(self).zip(age(other)),
            false => moment(self).zip(moment(other)),
        };
        both.is_some_and(|(one, other)| (one - other).abs() <= MOMENT_S)
    }
}

/// Cuts a value into words and the bytes between them.
fn pieces(value: &[u8], separators: &[u8]) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = Vec::new();
    let mut was_separator = None;
    for byte in value {
        let is_separator = separators.contains(byte);
        match all.last_mut().filter(|_| was_separator == Some(is_separator)) {
            Some(last) => last.push(*byte),
            None => all.push(vec![*byte]),
        }
        was_separator = Some(is_separator);
    }
    if all.is_empty() || all.len() > PIECES_MAX { vec![value.to_vec()] } else { all }
}

/// The place without the numbers of elements: `body $.list[3].at` is `body $.list[*].at`.
pub fn mask_key(place: &str) -> String {
    let mut key = String::with_capacity(place.len());
    let mut rest = place;
    while let Some(at) = rest.find(['[', '#']) {
        let (before, after) = rest.split_at(at);
        let digits = after.bytes().skip(1).take_while(u8::is_ascii_digit).count();
        key.push_str(before);
        let end = 1 + digits;
        if after.starts_with('#') && digits > 0 {
            key.push('*');
        } else {
            key.push_str(if digits > 0 && after.starts_with('[') {
                "[*"
            } else {
                after.get(..end).unwrap_or_default()
            });
        }
        rest = after.get(end..).unwrap_or_default();
    }
    key + rest
}

/// The name of the part for a field.
pub(super) fn of_field(name: &str) -> String {
    format!("field {name}")
}

/// The log lines of an arm, each in the place of the line of another arm that it is most like: of two servers that write a
/// line for the same request, now one is first and now the other.
pub(super) fn lines_as<'l>(
    lines: &'l [LoggedLine],
    port: &Port,
    others: &[LoggedLine],
    of: &Port,
) -> Vec<&'l LoggedLine> {
    let mut left: Vec<&LoggedLine> = lines.iter().collect();
    if lines.len() != others.len() {
        return left;
    }
    // The number of values that differ; `None` for lines of two formats.
    let differing = |line: &LoggedLine, other: &LoggedLine| {
        let mut pairs = line.values.iter().zip(&other.values);
        let is_of_format = line.format == other.format && line.values.len() == other.values.len();
        is_of_format.then(|| pairs.by_ref().filter(|((_, one), (_, two))| as_of(one, port) != as_of(two, of)).count())
    };
    let mut taken: Vec<Option<&LoggedLine>> = vec![None; others.len()];
    // Lines that are the same first, so that a line that is only alike does not take the place of one of them.
    for is_alike in [false, true] {
        for (place, other) in taken.iter_mut().zip(others).filter(|(place, _)| place.is_none()) {
            let found = left.iter().enumerate().filter_map(|(at, line)| Some((differing(line, other)?, at)));
            let nearest = found.min().filter(|(count, _)| is_alike || *count == 0);
            *place = nearest.map(|(_, at)| left.remove(at));
        }
    }
    let mut left = left.into_iter();
    taken.into_iter().filter_map(|line| line.or_else(|| left.next())).collect()
}

/// The parts of all that an arm showed, with these lines of its log, but for the body of its answer.
pub(super) fn parts(seen: &Observed, lines: &[&LoggedLine], port: &Port, is_same_program: bool) -> Parts {
    let mut parts = Parts::new();
    let mut put = |place: &str, part: AnswerPart| drop(parts.insert(place.to_owned(), part));
    match &seen.answer {
        SwapAnswer::Failed(name) => put("no answer", AnswerPart::of("no answer", name.as_bytes(), b"")),
        SwapAnswer::Whole(answer) => {
            put("status", AnswerPart::of("status", answer.status.to_string().as_bytes(), b""));
            fields(&mut parts, answer, port, is_same_program);
        }
    }
    of_log(&mut parts, lines, port);
    let count = AnswerPart::of("origin request", format!("{} requests", seen.origin.len()).as_bytes(), b"");
    parts.insert(ORIGIN_COUNT.to_owned(), count);
    for (number, request) in seen.origin.iter().enumerate() {
        of_origin(&mut parts, request, number, port);
    }
    parts
}

fn fields(parts: &mut Parts, answer: &WholeAnswer, port: &Port, is_same_program: bool) {
    let date = answer.field("date").and_then(parse_http_date);
    let is_coded = answer.field("content-encoding").is_some();
    let is_page = !is_same_program && is_own_page(&answer.body);
    for (name, value) in &answer.fields {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        let part = of_field(&name);
        if name == "set-cookie" {
            cookie(parts, value, date, port);
            continue;
        }
        let value = match name.as_str() {
            name if MOMENTS.contains(&name) => Vec::new(),
            "server" if !is_same_program => Vec::new(),
            // The length of a page with the server's name, and of the coded bytes.
            "content-length" if is_page || (is_coded && !is_same_program) => Vec::new(),
            "expires" => relative(value, date),
            "content-length" => length(answer, value, port),
            _ => as_of(value, port),
        };
        let separators: &[u8] = if URLS.contains(&name.as_str()) { b" ,;=&?/" } else { b" ,;=&?\"" };
        let own = AnswerPart::of(&part, &value, separators);
        match parts.get_mut(&part) {
            Some(known) => {
                known.pieces.push(b"\n".to_vec());
                known.pieces.extend(own.pieces);
            }
            None => drop(parts.insert(part, own)),
        }
    }
}

/// True for a page of the server itself, which has the server's name.
pub(super) fn is_own_page(body: &[u8]) -> bool {
    memchr::memmem::rfind(body, OWN_PAGE).is_some()
}

/// The length that the body would have with the port that clients know.
fn length(answer: &WholeAnswer, value: &[u8], port: &Port) -> Vec<u8> {
    let is_own = value == answer.body.len().to_string().as_bytes();
    match is_own {
        true => as_of(&answer.body, port).len().to_string().into_bytes(),
        false => value.to_vec(),
    }
}

/// A moment, as seconds after that of the answer. One that is long past stays as it is.
fn relative(value: &[u8], date: Option<i64>) -> Vec<u8> {
    match (parse_http_date(value), date) {
        (Some(moment), Some(date)) if moment >= date - PAST_S => format!("@{}", moment - date).into_bytes(),
        _ => value.to_vec(),
    }
}

/// The value of a cookie and its attributes are parts of their own, so that a value that is noise hides no attribute.
fn cookie(parts: &mut Parts, value: &[u8], date: Option<i64>, port: &Port) {
    let mut words = value.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let first = words.next().unwrap_or_default();
    let at = first.iter().position(|byte| *byte == b'=').unwrap_or(first.len());
    let (name, value) = first.split_at(at);
    let name = String::from_utf8_lossy(name).into_owned();
    let mut put = |place: String, value: &[u8]| {
        let mut place = place;
        while parts.contains_key(&place) {
            place.push('\'');
        }
        parts.insert(place, AnswerPart { name: of_field("set-cookie"), pieces: vec![value.to_vec()] });
    };
    put(format!("field set-cookie {name}"), value);
    for word in words.filter(|word| !word.is_empty()) {
        let at = word.iter().position(|byte| *byte == b'=').unwrap_or(word.len());
        let (attribute, value) = word.split_at(at);
        let attribute = String::from_utf8_lossy(attribute).to_ascii_lowercase();
        let value = value.strip_prefix(b"=").unwrap_or_default();
        let value = if attribute == "expires" { relative(&plain_date(value), date) } else { as_of(value, port) };
        put(format!("field set-cookie {name}; {attribute}"), &value);
    }
}

/// A cookie's date in HTTP's form: some servers write `-` between day, month and year.
fn plain_date(value: &[u8]) -> Vec<u8> {
    let text: Vec<u8> = value.iter().map(|byte| if *byte == b'-' { b' ' } else { *byte }).collect();
    if parse_http_date(&text).is_some() { text } else { value.to_vec() }
}

/// The formats of the lines, and their values by variable.
fn of_log(parts: &mut Parts, lines: &[&LoggedLine], port: &Port) {
    if lines.is_empty() {
        return;
    }
    let formats: Vec<&str> = lines.iter().map(|line| line.format.as_str()).collect();
    parts.insert("log".to_owned(), AnswerPart::of("log", formats.join("\n").as_bytes(), b""));
    for (number, line) in lines.iter().enumerate() {
        for (name, value) in &line.values {
            let name = format!("log {name}").trim_end().to_owned();
            add(parts, numbered(&format!("{name} value"), number), &name, &as_of(value, port), b" []\"");
        }
    }
}

fn of_origin(parts: &mut Parts, request: &OriginRequest, number: usize, port: &Port) {
    let mut put = |place: &str, name: &str, value: &[u8]| {
        add(parts, numbered(place, number), name, &as_of(value, port), b" ,;=&?\"/");
    };
    let line = [request.line.as_slice(), &request.version, b"to", request.to.as_bytes()].join(&b' ');
    put("origin request", "origin request", &line);
    for (name, value) in &request.fields {
        let name = format!("origin field {}", String::from_utf8_lossy(name).to_ascii_lowercase());
        put(&name, &name, value);
    }
    if !request.body.is_empty() {
        put("origin body", "origin body", &request.body);
    }
}

/// The place of a part of the first line or request, or of a later one.
pub(super) fn numbered(place: &str, number: usize) -> String {
    if number == 0 { place.to_owned() } else { format!("{place} #{number}") }
}

/// Adds a value to the part of a place.
fn add(parts: &mut Parts, place: String, name: &str, value: &[u8], separators: &[u8]) {
    let own = AnswerPart::of(name, value, separators);
    match parts.get_mut(&place) {
        Some(known) => {
            known.pieces.push(b"\n".to_vec());
            known.pieces.extend(own.pieces);
        }
        None => drop(parts.insert(place, own)),
    }
}

/// The bytes with the port that clients know in the place of the arm's own.
pub(super) fn as_of(bytes: &[u8], port: &Port) -> Vec<u8> {
    let own = port.own.to_string().into_bytes();
    if port.own == port.of {
        return bytes.to_vec();
    }
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

/// The values of two parts, for a person. Of long ones the places where they differ.
pub(super) fn shown(place: &str, a: Option<&AnswerPart>, b: Option<&AnswerPart>) -> (String, String) {
    if let (Some(a), Some(b)) = (a, b)
        && place == "body"
    {
        let (a, b) = (a.pieces.concat(), b.pieces.concat());
        let at = a.iter().zip(&b).take_while(|(one, other)| one == other).count();
        let around =
            |body: &[u8]| format!("{} bytes, at {at}: {}", body.len(), safe(body.get(at..).unwrap_or_default()));
        return (around(&a), around(&b));
    }
    // A page has many texts: the place says which one it is.
    let before =
        if place.starts_with("body <") { place.trim_start_matches("body ").to_owned() + ": " } else { String::new() };
    let value =
        |part: Option<&AnswerPart>| part.map_or(NONE.to_owned(), |part| before.clone() + &safe(&part.pieces.concat()));
    (value(a), value(b))
}

/// A value for a terminal.
fn safe(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes.get(..bytes.len().min(4 * SHOWN_MAX)).unwrap_or_default()).into_owned();
    let safe = text.chars().take(SHOWN_MAX).map(|c| if c.is_control() { '\u{b7}' } else { c });
    safe.collect::<String>() + if text.chars().count() > SHOWN_MAX { "…" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_known_without_the_numbers_of_elements() {
        for (place, key) in [
            ("body $.a[3].b[10]", "body $.a[*].b[*]"),
            ("body <li> text #12", "body <li> text *"),
            ("field etag", "field etag"),
            ("body $[\"x\"]", "body $[\"x\"]"),
            ("body <a href=#> text #2", "body <a href=#> text *"),
        ] {
            assert_eq!(mask_key(place), key);
        }
    }

    #[test]
    fn the_own_port_becomes_the_one_that_clients_know() {
        let port = Port { own: 40001, of: 8080, is_default: false };
        assert_eq!(as_of(b"http://h:40001/ 140001 40001", &port), b"http://h:8080/ 140001 8080");
        let port = Port { of: 80, is_default: true, ..port };
        assert_eq!(as_of(b"http://h:40001/", &port), b"http://h/");
    }

    #[test]
    fn a_moment_counts_from_its_answer_unless_it_is_long_past() {
        let date = parse_http_date(b"Thu, 26 Nov 2026 04:00:00 GMT");
        assert_eq!(relative(b"Thu, 26 Nov 2026 05:00:00 GMT", date), b"@3600");
        assert_eq!(relative(b"Thu, 26 Nov 2026 03:59:59 GMT", date), b"@-1");
        let past = b"Wed, 11 Jan 1984 05:00:00 GMT";
        assert_eq!(relative(past, date), past);
    }

    #[test]
    fn a_value_is_cut_into_words() {
        let shown = |value: &str| -> Vec<String> {
            pieces(value.as_bytes(), b" ;=").iter().map(|piece| String::from_utf8_lossy(piece).into_owned()).collect()
        };
        assert_eq!(shown("a=b; c"), ["a", "=", "b", "; ", "c"]);
        assert_eq!(shown(""), [""]);
    }
}
