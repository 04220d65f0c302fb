//! W3C Trace Context: `traceparent` and `tracestate`. Pure, except for the source of new ids.
//! <https://www.w3.org/TR/trace-context/>

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

/// The caller asks to record the trace.
const SAMPLED: u8 = 1;
/// The trace's id is random (level 2): weir passes the flag on with such an id.
const RANDOM: u8 = 2;

/// Bytes of a `traceparent` of version 00.
pub const PARENT_BYTES: usize = 55;
/// Members of a `tracestate`, at most, as in the recommendation.
const MEMBERS_MAX: usize = 32;
/// Bytes of a `tracestate` that is passed on; the recommendation asks for at least 512.
pub const STATE_BYTES_MAX: usize = 4096;

/// The place of a span: its trace and its own id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanContext {
    /// The trace's id, not all zero.
    pub trace: [u8; 16],
    /// The span's id, not all zero.
    pub span: [u8; 8],
    /// As on the wire.
    pub flags: u8,
}

/// The trace context of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The caller's span, if weir takes it from the request.
    pub parent: Option<SpanContext>,
    /// The exchange's own.
    pub current: SpanContext,
    /// `tracestate`, passed on unchanged; empty if there is none.
    pub state: Box<[u8]>,
    /// weir sends the context to the upstream.
    pub injects: bool,
}

impl SpanContext {
    /// Reads a `traceparent`; of a later version, only the known part. `None` if it is invalid.
    pub fn parse(text: &[u8]) -> Option<SpanContext> {
        let (known, rest) = text.split_at_checked(PARENT_BYTES)?;
        let &[v1, v2, b'-', ref ids @ ..] = known else { return None };
        let (trace, rest_of_ids) = ids.split_at_checked(32)?;
        let (b'-', after) = rest_of_ids.split_first().map(|(dash, after)| (*dash, after))? else { return None };
        let (span, after) = after.split_at_checked(16)?;
        let &[b'-', f1, f2] = after else { return None };
        let version = byte(v1, v2)?;
        let is_known = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.is_empty() || rest.starts_with(b"-"),
        };
        let place = SpanContext { trace: hex(trace)?, span: hex(span)?, flags: byte(f1, f2)? };
        (is_known && place.trace != [0; 16] && place.span != [0; 8]).then_some(place)
    }

    /// The caller recorded its part.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// As a `traceparent` of version 00.
    pub fn text(&self) -> [u8; PARENT_BYTES] {
        let mut out = *b"00-00000000000000000000000000000000-0000000000000000-00";
        let digits = out.iter_mut().skip(3);
        let ids = self
            .trace
            .iter()
            .map(Some)
            .chain([None])
            .chain(self.span.iter().map(Some))
            .chain([None, Some(&self.flags)]);
        let letters = ids.flat_map(|byte| match byte {
            Some(byte) => [Some(digit(byte >> 4)), Some(digit(byte & 15))],
            None => [Some(b'-'), None],
        });
        digits.zip(letters.flatten()).for_each(|(place, letter)| *place = letter);
        out
    }
}

impl Trace {
    /// A new span below `parent`, or the first of a trace; not yet recorded.
    pub fn below(parent: Option<SpanContext>, state: Box<[u8]>) -> Trace {
        let trace = parent.map_or_else(|| id_of(&[random(), random()]), |parent| parent.trace);
        let flags = parent.map_or(0, |parent| parent.flags & RANDOM);
        Trace { parent, current: SpanContext { trace, span: span_id(), flags }, state, injects: false }
    }

    /// Sets whether it is recorded.
    pub fn record(&mut self, is_recorded: bool) {
        self.current.flags = self.current.flags & !SAMPLED | u8::from(is_recorded);
    }

    /// Whether it is recorded.
    pub fn is_recorded(&self) -> bool {
        self.current.is_sampled()
    }
}

/// The id of a new span.
pub fn span_id() -> [u8; 8] {
    id_of(&[random()])
}

fn id_of<const BYTES: usize>(words: &[u64]) -> [u8; BYTES] {
    let mut id = [0; BYTES];
    id.iter_mut().zip(words.iter().flat_map(|word| word.to_be_bytes())).for_each(|(place, byte)| *place = byte);
    id
}

/// A number that is not 0: a counter, encrypted with a random key of this thread from the system.
fn random() -> u64 {
    thread_local! {
        static SOURCE: (RandomState, Cell<u64>) = (RandomState::new(), Cell::new(0));
    }
    SOURCE.with(|(key, count)| {
        count.set(count.get().wrapping_add(1));
        key.hash_one(count.get()).max(1)
    })
}

/// Joins the values of several `tracestate` fields; empty if one breaks the rules, because then none may be passed on.
pub fn state<'f>(fields: impl Iterator<Item = &'f [u8]>) -> Box<[u8]> {
    let mut all = Vec::new();
    for field in fields {
        if all.len() + field.len() > STATE_BYTES_MAX {
            return Box::default();
        }
        if !all.is_empty() {
            all.push(b',');
        }
        all.extend_from_slice(field);
    }
    let members = || all.split(|byte| *byte == b',').map(trim).filter(|member| !member.is_empty());
    if members().count() > MEMBERS_MAX || !members().all(is_member) {
        return Box::default();
    }
    all.into_boxed_slice()
}

/// Without the spaces and tabs around it: other white space is in no list.
fn trim(member: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t');
    let start = member.iter().position(is_text).unwrap_or(member.len());
    let end = member.iter().rposition(is_text).map_or(start, |last| last + 1);
    member.get(start..end).unwrap_or_default()
}

/// Whether it is `KEY=VALUE` with the allowed characters in each.
fn is_member(member: &[u8]) -> bool {
    let Some(equals) = member.iter().position(|byte| *byte == b'=') else { return false };
    let (key, value) = (member.get(..equals).unwrap_or_default(), member.get(equals + 1..).unwrap_or_default());
    let is_letter = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/' | b'@');
    let is_key = key.len() <= 256 && key.first().is_some_and(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9'));
    let is_value = |byte: &u8| matches!(byte, 0x20..=0x7e) && *byte != b'=';
    is_key && key.iter().all(is_letter) && (1..=256).contains(&value.len()) && value.iter().all(is_value)
}

fn hex<const BYTES: usize>(text: &[u8]) -> Option<[u8; BYTES]> {
    let mut out = [0; BYTES];
    for (place, pair) in out.iter_mut().zip(text.chunks_exact(2)) {
        let &[high, low] = pair else { return None };
        *place = byte(high, low)?;
    }
    Some(out)
}

fn byte(high: u8, low: u8) -> Option<u8> {
    Some(value_of(high)? << 4 | value_of(low)?)
}

/// Upper case is not allowed (§3.2.2.2).
fn value_of(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// A hexadecimal digit of a number below 16.
pub fn digit(value: u8) -> u8 {
    if value < 10 { b'0' + value } else { b'a' + value - 10 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b9c7c989f97918e1-01";

    #[test]
    fn what_is_read_is_written_again() {
        let place = SpanContext::parse(GOOD.as_bytes()).unwrap();
        assert_eq!((place.trace[0], place.span[7], place.is_sampled()), (0x0a, 0xe1, true));
        assert_eq!(place.text(), GOOD.as_bytes());
    }

    #[test]
    fn later_versions_are_read_and_others_ignored() {
        let of = |from: &str, to: &str| SpanContext::parse(GOOD.replacen(from, to, 1).as_bytes());
        for (from, to) in [("00-", "01-"), ("-01", "-01-more"), ("-01", "-00"), ("-01", "-ff")] {
            let text = if to == "-01-more" { format!("cc{}-more", &GOOD[2..]) } else { GOOD.replacen(from, to, 1) };
            assert!(SpanContext::parse(text.as_bytes()).is_some(), "{text}");
        }
        for (from, to) in [
            ("00-", "ff-"),
            ("-01", "-01-"),
            ("-01", "-1"),
            ("-01", "-0G"),
            ("-01", "-01."),
            ("0af7", "0AF7"),
            ("0af7651916cd43dd8448eb211c80319c", "00000000000000000000000000000000"),
            ("b9c7c989f97918e1", "0000000000000000"),
            ("-b9", "_b9"),
            (GOOD, ""),
        ] {
            assert_eq!(of(from, to), None, "{from} {to}");
        }
        assert_eq!(SpanContext::parse(format!("01{}.", &GOOD[2..]).as_bytes()), None);
    }

    #[test]
    fn a_span_goes_on_in_its_parents_trace_and_decides_for_itself() {
        let parent = SpanContext { flags: SAMPLED | RANDOM | 0x80, ..SpanContext::parse(GOOD.as_bytes()).unwrap() };
        let mut trace = Trace::below(Some(parent), Box::default());
        assert!(trace.current.trace == parent.trace && trace.current.span != parent.span && !trace.is_recorded());
        trace.record(true);
        assert_eq!(trace.current.flags, SAMPLED | RANDOM);
        let (one, other) = (Trace::below(None, Box::default()), Trace::below(None, Box::default()));
        assert!(one.current.trace != other.current.trace && one.current.span != other.current.span);
        assert_eq!(one.current.flags, 0);
    }

    #[test]
    fn a_state_is_whole_or_none() {
        let of =
            |fields: &[&str]| String::from_utf8(state(fields.iter().map(|field| field.as_bytes())).to_vec()).unwrap();
        assert_eq!(of(&["congo=ucfJifl5GOE,rojo=00f067aa0ba902b7"]), "congo=ucfJifl5GOE,rojo=00f067aa0ba902b7");
        assert_eq!(of(&["a=1", " b@c=2 ,, "]), "a=1, b@c=2 ,, ");
        assert_eq!(of(&[]), "");
        let many = vec!["a=1"; MEMBERS_MAX + 1].join(",");
        let long = format!("a={}", "1".repeat(257));
        for bad in ["a", "=1", "A=1", "a=", "a=1,b", "a=\u{7f}", "a=b=c", "a=1\u{c}", many.as_str(), long.as_str()] {
            assert_eq!(of(&[bad]), "", "{bad}");
        }
        assert_eq!(of(&vec!["a=1"; 2000]), "");
    }

    mod mutate {
        use super::*;
        /// weir writes a parsed field and reads the same again; the text that weir joins has a bound.
        #[test]
        fn fields() {
            let seeds = [
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more",
                "rojo=00f067aa0ba902b7, congo=t61rcWkgMzE",
            ];
            weir_mutate::mutate(&seeds, &["-", "0", "F", "=", ",", "@", " ", "\0", "\r\n", "ff"], |bytes| {
                if let Some(place) = SpanContext::parse(bytes) {
                    assert_eq!(SpanContext::parse(&place.text()), Some(place));
                }
                let joined = state([bytes, bytes].into_iter());
                assert!(joined.len() <= STATE_BYTES_MAX + 1);
                assert!(
                    joined.iter().all(|byte| (0x20..0x7f).contains(byte) || *byte == b'\t'),
                    "{}",
                    joined.escape_ascii()
                );
            });
        }
    }
}
