//! Header fields of an authority's answers: `Retry-After`, `Link`, `Replay-Nonce`.

use std::time::Duration;

use weir_wire::date::parse_http_date;

/// The most alternatives of one answer that weir reads.
const LINKS_MAX: usize = 32;

/// Reads `Retry-After` (RFC 9110 §10.2.3): seconds, or a date.
pub fn retry_after(value: &str, now: i64) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return value.parse().ok().map(Duration::from_secs);
    }
    let at = parse_http_date(value.as_bytes())?;
    Some(Duration::from_secs(u64::try_from(at.saturating_sub(now)).unwrap_or(0)))
}

/// The targets of the links of a field with this relation (RFC 8288), as written.
pub fn links<'v>(value: &'v str, relation: &str) -> Vec<&'v str> {
    let mut found = Vec::new();
    let mut rest = value;
    while found.len() < LINKS_MAX {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let Some((target, parameters)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) else { break };
        let end = end_of(parameters, b',');
        let (own, after) = parameters.split_at(end);
        if parameter(own, "rel")
            .is_some_and(|value| value.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case(relation)))
        {
            found.push(target);
        }
        rest = after;
    }
    found
}

/// Where a part of a field ends: at this byte outside quotes, or at the end.
fn end_of(text: &str, stop: u8) -> usize {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ if byte == stop && !is_quoted => return at,
            _ => {}
        }
    }
    text.len()
}

/// The value of the first parameter of this name, without quotes around it.
fn parameter<'t>(mut text: &'t str, name: &str) -> Option<&'t str> {
    while !text.is_empty() {
        let (own, rest) = text.split_at(end_of(text, b';'));
        if let Some((key, value)) = own.split_once('=')
            && key.trim().eq_ignore_ascii_case(name)
        {
            return Some(value.trim().trim_matches('"'));
        }
        text = rest.get(1..).unwrap_or_default();
    }
    None
}

/// Whether a nonce has only characters of base64url; others must not be used (RFC 8555 §6.5.1).
pub fn is_nonce(text: &str) -> bool {
    crate::answer::is_token(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pauses_are_seconds_or_dates() {
        assert_eq!(retry_after("120", 0), Some(Duration::from_secs(120)));
        assert_eq!(retry_after("Thu, 01 Jan 1970 00:01:00 GMT", 10), Some(Duration::from_secs(50)));
        assert_eq!(retry_after("Thu, 01 Jan 1970 00:01:00 GMT", 100), Some(Duration::ZERO));
        assert_eq!(retry_after("99999999999999999999", 0), None);
        assert_eq!(retry_after("soon", 0), None);
    }

    #[test]
    fn links_are_found_by_their_relation() {
        let value = "<https://ca/1>;rel=\"alternate\", </2>; title=\"a, <b>\"; rel=\"up alternate\" , <3>;rel=index,<4>; REL=Alternate";
        assert_eq!(links(value, "alternate"), ["https://ca/1", "/2", "4"]);
        assert!(links("https://ca/1;rel=alternate", "alternate").is_empty());
        assert!(links("<a>;title=\"x\\\", <b>;rel=alternate", "alternate").is_empty());
        assert_eq!(links(&"<a>;rel=x,".repeat(100), "x").len(), LINKS_MAX);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,80}") {
            links(&text, "alternate");
            retry_after(&text, 0);
        }
    }
}
