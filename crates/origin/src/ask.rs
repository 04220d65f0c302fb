//! A request's wishes, read from its target and nothing else.
//!
//! In `/64k?delay=20ms&status=503`, the last segment of the path may be a size, and the query has the rest. Other
//! paths and unknown keys have no effect, so that an application's own URLs work. A known key with a bad value is
//! refused by name.

use std::time::Duration;

use weir_wire::escape::{Unescape, unescape_uri};

/// The default body size, bytes.
pub const SIZE_DEFAULT: u64 = 1024;
/// The largest body, in bytes.
pub const SIZE_MAX: u64 = 16 << 30;
/// The longest delay.
pub const DELAY_MAX: Duration = Duration::from_secs(600);
/// Most extra header fields of one answer.
pub const FIELDS_MAX: usize = 32;
/// Most keys that are read from one query.
pub const KEYS_MAX: usize = 128;

/// How to spoil an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedFailure {
    /// `reset`: RST instead of an answer.
    Reset,
    /// `close`: FIN instead of an answer.
    Close,
    /// `truncate`: a whole head, half of the body, then FIN.
    Truncate,
    /// `half`: half of the head, then FIN.
    Half,
    /// `garbage`: bytes that are not HTTP, then FIN.
    Garbage,
    /// `endless-head`: header fields without end.
    EndlessHead,
    /// `lying-length`: more bytes than Content-Length says, on a connection kept alive.
    LyingLength,
    /// `stall`: a whole head, half of the body, then silence.
    Stall,
}

impl AskedFailure {
    /// Each failure with its word in the query.
    pub const WORDS: [(&'static str, AskedFailure); 8] = [
        ("reset", AskedFailure::Reset),
        ("close", AskedFailure::Close),
        ("truncate", AskedFailure::Truncate),
        ("half", AskedFailure::Half),
        ("garbage", AskedFailure::Garbage),
        ("endless-head", AskedFailure::EndlessHead),
        ("lying-length", AskedFailure::LyingLength),
        ("stall", AskedFailure::Stall),
    ];
}

/// The answer that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Bytes of body.
    pub size: u64,
    /// Delay before the answer.
    pub delay: Duration,
    /// Status code, 200 to 599.
    pub status: u16,
    /// The failure, if any.
    pub fail: Option<AskedFailure>,
    /// Chunked transfer coding.
    pub chunked: bool,
    /// A trailer section; makes the answer chunked.
    pub trailers: bool,
    /// `keepalive=off`: close after the answer.
    pub close: bool,
    /// Extra fields, including `Cache-Control` from `cache=`: name and value.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// Path `/echo`: the body of the answer is the request.
    pub echo: bool,
}

impl Default for Ask {
    fn default() -> Ask {
        Ask {
            size: SIZE_DEFAULT,
            delay: Duration::ZERO,
            status: 200,
            fail: None,
            chunked: false,
            trailers: false,
            close: false,
            fields: Vec::new(),
            echo: false,
        }
    }
}

impl Ask {
    /// Reads a target's origin form, `/path?query`.
    ///
    /// The error names the key and its allowed values. It is the body of a 400.
    pub fn of(target: &[u8]) -> Result<Ask, String> {
        let (path, query) = split_once(target, b'?').unwrap_or((target, b""));
        let mut ask = Ask::default();
        let last = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        ask.echo = last == b"echo";
        if last.first().is_some_and(u8::is_ascii_digit)
            && let Some(size) = size(last)
        {
            ask.size = size;
        }
        if query.is_empty() {
            return Ok(ask);
        }
        for pair in query.split(|&byte| byte == b'&').take(KEYS_MAX) {
            let (key, value) = split_once(pair, b'=').unwrap_or((pair, b""));
            let mut plain = Vec::new();
            unescape_uri(value, Unescape::All, &mut plain);
            ask.set(key, &plain)?;
        }
        Ok(ask)
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        let bad = |wanted: &str| {
            let (key, value) = (String::from_utf8_lossy(key), String::from_utf8_lossy(value));
            format!("{key}={value}: {wanted}")
        };
        match key {
            b"size" => {
                self.size = size(value).ok_or_else(|| bad("a size up to 16g, as 4096, 64k or 1m"))?;
            }
            b"delay" => {
                self.delay = delay(value).ok_or_else(|| bad("a time up to 600s, as 20ms, 1.5s or 20 (ms)"))?;
            }
            b"status" => {
                self.status = status(value).ok_or_else(|| bad("a status from 200 to 599"))?;
            }
            b"fail" => {
                let found = AskedFailure::WORDS.iter().find(|(word, _)| word.as_bytes() == value);
                let Some((_, fail)) = found else {
                    let words = AskedFailure::WORDS.map(|(word, _)| word).join(", ");
                    return Err(bad(&format!("one of {words}")));
                };
                self.fail = Some(*fail);
            }
            b"chunked" => self.chunked = flag(value).ok_or_else(|| bad("1 or 0"))?,
            b"trailers" => self.trailers = flag(value).ok_or_else(|| bad("1 or 0"))?,
            b"keepalive" => self.close = !flag(value).ok_or_else(|| bad("on or off"))?,
            b"cache" => self.push(b"Cache-Control", value).ok_or_else(|| bad("a Cache-Control value"))?,
            b"header" => {
                let field = split_once(value, b':').and_then(|(name, value)| self.push(name, value));
                field.ok_or_else(|| bad("Name:Value, at most 32 of them, not of the framing"))?;
            }
            _ => {}
        }
        self.chunked |= self.trailers;
        Ok(())
    }

    /// Adds a field. Refuses a field that could split the answer, or that the origin writes itself.
    fn push(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        const OURS: [&[u8]; 3] = [b"content-length", b"transfer-encoding", b"connection"];
        let name_fits = !name.is_empty() && name.iter().all(|&b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
        let value = value.trim_ascii();
        let value_fits = value.iter().all(|&b| b == b'\t' || (b >= b' ' && b != 0x7f));
        let ours = OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours));
        if !name_fits || !value_fits || ours || self.fields.len() >= FIELDS_MAX {
            return None;
        }
        self.fields.push((name.to_vec(), value.to_vec()));
        Some(())
    }
}

fn split_once(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = text.iter().position(|&byte| byte == at)?;
    Some((text.get(..place)?, text.get(place + 1..)?))
}

/// Leading digits and what follows them.
fn number(text: &[u8]) -> Option<(u64, &str)> {
    let text = std::str::from_utf8(text).ok()?;
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits)?;
    Some((number.parse().ok()?, unit))
}

/// `4096`, `64k`, `1m`, `2g`; powers of 1024.
fn size(text: &[u8]) -> Option<u64> {
    let (number, unit) = number(text)?;
    let scale = match unit {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(scale).filter(|&size| size <= SIZE_MAX)
}

/// `20ms`, `1.5s`, `20`; milliseconds without a unit.
fn delay(text: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(text).ok()?;
    let (number, ms) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1.0),
        (None, Some(number)) => (number, 1000.0),
        (None, None) => (text, 1.0),
    };
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = number.parse().ok().filter(|_| plain)?;
    let delay = Duration::try_from_secs_f64(number * ms / 1000.0).ok()?;
    (delay <= DELAY_MAX).then_some(delay)
}

fn status(text: &[u8]) -> Option<u16> {
    let (number, unit) = number(text)?;
    let status = u16::try_from(number).ok()?;
    (unit.is_empty() && (200..600).contains(&status)).then_some(status)
}

fn flag(value: &[u8]) -> Option<bool> {
    match value {
        b"" | b"1" | b"on" | b"true" => Some(true),
        b"0" | b"off" | b"false" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn check(target: &str, change: impl FnOnce(&mut Ask)) {
        let mut expect = Ask::default();
        change(&mut expect);
        assert_eq!(Ask::of(target.as_bytes()), Ok(expect), "{target}");
    }

    #[test]
    fn an_applications_own_urls_mean_nothing() {
        for target in ["/", "", "/api/users?id=5&_=1699", "/users/12x", "?a&&=", "*"] {
            check(target, |_| {});
        }
    }

    #[test]
    fn sizes() {
        check("/1k", |ask| ask.size = 1024);
        check("/app/64K", |ask| ask.size = 64 << 10);
        check("/1k?size=2m", |ask| ask.size = 2 << 20);
        check("/x?size=0", |ask| ask.size = 0);
        check("/17g", |_| {});
        check("/99999999999999999999g", |_| {});
    }

    #[test]
    fn times_and_status() {
        check("/?delay=20ms", |ask| ask.delay = Duration::from_millis(20));
        check("/?delay=20", |ask| ask.delay = Duration::from_millis(20));
        check("/?delay=1.5s&status=503", |ask| {
            ask.delay = Duration::from_millis(1500);
            ask.status = 503;
        });
    }

    #[test]
    fn flags_and_fields() {
        check("/echo?chunked=1&keepalive=off", |ask| (ask.echo, ask.chunked, ask.close) = (true, true, true));
        check("/?trailers", |ask| (ask.trailers, ask.chunked) = (true, true));
        check("/?cache=max-age%3d5&header=X-A:%20b", |ask| {
            ask.fields = vec![(b"Cache-Control".to_vec(), b"max-age=5".to_vec()), (b"X-A".to_vec(), b"b".to_vec())];
        });
        for (word, fail) in AskedFailure::WORDS {
            check(&format!("/?fail={word}"), |ask| ask.fail = Some(fail));
        }
    }

    #[test]
    fn bad_values_are_refused_by_name() {
        for (target, names) in [
            ("/?size=1x", "size=1x"),
            ("/?size=17g", "16g"),
            ("/?delay=-1", "delay=-1"),
            ("/?delay=1e9s", "delay=1e9s"),
            ("/?delay=601s", "600s"),
            ("/?delay=", "delay="),
            ("/?status=99", "200 to 599"),
            ("/?status=101", "200 to 599"),
            ("/?fail=no", "endless-head"),
            ("/?chunked=2", "chunked=2"),
            ("/?header=X", "Name:Value"),
            ("/?header=X:a%0d%0aY:b", "Name:Value"),
            ("/?header=Content-Length:5", "Name:Value"),
            ("/?cache=%00", "Cache-Control"),
        ] {
            let refusal = Ask::of(target.as_bytes()).expect_err(target);
            assert!(refusal.contains(names), "{target}: {refusal}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_target_is_a_wish_or_a_refusal(target: Vec<u8>, value: Vec<u8>) {
            let _ = Ask::of(&target);
            for key in ["size", "delay", "status", "fail", "header", "cache"] {
                let query = [b"/?", key.as_bytes(), b"=", value.as_slice()].concat();
                if let Ok(ask) = Ask::of(&query) {
                    assert!(ask.size <= SIZE_MAX && ask.delay <= DELAY_MAX);
                    let lines = ask.fields.iter().flat_map(|(name, value)| name.iter().chain(value));
                    assert!(!lines.into_iter().any(|&byte| byte == b'\r' || byte == b'\n'));
                }
            }
        }
    }
}
