//! `gzip`: compresses response bodies (RFC 9110 §8.4.1.3).
//!
//! <https://nginx.org/en/docs/http/ngx_http_gzip_module.html>. This file neither sends files compressed beforehand nor
//! decompresses. Invariant: only the response head and the request head decide whether a response is compressed, so
//! HEAD gets the same fields.

use std::sync::Arc;

use flate2::{Compress, Compression, FlushCompress, Status};
use weir_conf::Statement;
use weir_http::build::Build;
use weir_http::directive::{Arity, Contexts, Directive, HSL, LOCATION_IF, ONE, TWO};
use weir_http::exchange::Exchange;
use weir_http::families::Family;
use weir_http::refusal::Refusal;
use weir_http::regex::Regex;
use weir_http::response_body::BodyFilter;
use weir_http::variable::{Argument, Variable};
use weir_http::{composing, media_types, value};
use weir_net::clock;
use weir_net::log::Level;
use weir_wire::{Known, Version, date};

use crate::family::cache::pack;

weir_http::settings! {
    /// `gzip`.
    enabled: bool = false,
    /// `gzip_types`, lower case; `text/html` is always among them; empty for all.
    types: Arc<Vec<String>> = Arc::new(vec![HTML.to_owned()]),
    /// `gzip_min_length`.
    min_length: u64 = 20,
    /// `gzip_comp_level`.
    level: u32 = 1,
    /// `gzip_http_version`.
    version: Version = Version::Http11,
    /// `gzip_proxied`.
    proxied: Proxied = Proxied::default(),
    /// `gzip_vary`.
    vary: bool = false,
    /// `gzip_disable`.
    disable: Disable = Disable::default(),
}

const HTML: &str = "text/html";

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// `gzip_proxied`: which answers to requests that came through a proxy (`Via`) are compressed. None by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Proxied {
    pub off: bool,
    pub expired: bool,
    pub no_cache: bool,
    pub no_store: bool,
    pub private: bool,
    pub no_last_modified: bool,
    pub no_etag: bool,
    pub auth: bool,
    pub any: bool,
}

/// `gzip_disable`: user agents that get no compressed answers.
#[derive(Clone, Default)]
pub struct Disable {
    msie6: bool,
    patterns: Vec<Arc<Regex>>,
}

const HSLI: Contexts = HSL.or(LOCATION_IF);

/// The family.
pub static FAMILY: Family = Family::new(
    "gzip",
    &[
        Directive::new("gzip", HSLI, Arity::Flag, "Compresses responses.", |b, s| {
            crate::settings(b).gzip.enabled = Some(value::flag(s)?);
            Ok(())
        })
        .default("off"),
        Directive::new(
            "gzip_types",
            HSL,
            Arity::AtLeast(1),
            "The media types besides text/html that weir compresses; * for all.",
            types,
        )
        .default("text/html")
        .many(),
        Directive::new(
            "gzip_min_length",
            HSL,
            ONE,
            "weir does not compress a body with a shorter Content-Length.",
            |b, s| {
                crate::settings(b).gzip.min_length = Some(value::size(s)?);
                Ok(())
            },
        )
        .default("20"),
        Directive::new("gzip_comp_level", HSL, ONE, "From 1, fast, to 9, small.", |b, s| {
            crate::settings(b).gzip.level = Some(value::bounded(s, 1, 9)? as u32);
            Ok(())
        })
        .default("1"),
        Directive::new(
            "gzip_http_version",
            HSL,
            ONE,
            "The lowest HTTP version of requests that get compressed answers.",
            |b, s| {
                let version = value::choice(s, &[("1.0", Version::Http10), ("1.1", Version::Http11)])?;
                crate::settings(b).gzip.version = Some(version);
                Ok(())
            },
        )
        .default("1.1"),
        Directive::new(
            "gzip_proxied",
            HSL,
            Arity::AtLeast(1),
            "Selects the answers to proxies that weir compresses.",
            proxied,
        )
        .default("off"),
        Directive::new(
            "gzip_vary",
            HSL,
            Arity::Flag,
            "Adds `Vary: Accept-Encoding`, so that caches store each encoding separately.",
            |b, s| {
                crate::settings(b).gzip.vary = Some(value::flag(s)?);
                Ok(())
            },
        )
        .default("off"),
        Directive::new("gzip_disable", HSL, Arity::AtLeast(1), "User agents that get no compressed answers.", disable),
        Directive::idle("gzip_buffers", HSL, TWO, "", "weir manages this memory itself", |_, s| {
            value::buffers(s).map(drop)
        }),
        Directive::idle("gzip_window", HSL, ONE, "", "weir manages this memory itself", |_, s| {
            value::size(s).map(drop)
        }),
        Directive::idle("gzip_hash", HSL, ONE, "", "weir manages this memory itself", |_, s| value::size(s).map(drop)),
        Directive::idle("postpone_gzipping", HSL, ONE, "", "weir manages this memory itself", |_, s| {
            value::size(s).map(drop)
        }),
        Directive::idle("gzip_no_buffer", HSL, Arity::Flag, "", "weir manages this memory itself", |_, s| {
            value::flag(s).map(drop)
        }),
    ],
)
.variables(&[Variable::without_answer("gzip_ratio", ratio)])
.filter(|location| crate::values(location).gzip.enabled, filter)
.fixed(|_, _| true);

fn types(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let earlier = crate::settings(b).gzip.types.clone();
    crate::settings(b).gzip.types = Some(media_types::read(b, statement, earlier));
    Ok(())
}

fn proxied(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut set = Proxied::default();
    for word in &statement.args {
        let flag = match word.text.as_str() {
            "off" => &mut set.off,
            "expired" => &mut set.expired,
            "no-cache" => &mut set.no_cache,
            "no-store" => &mut set.no_store,
            "private" => &mut set.private,
            "no_last_modified" => &mut set.no_last_modified,
            "no_etag" => &mut set.no_etag,
            "auth" => &mut set.auth,
            "any" => &mut set.any,
            other => return Err(Refusal::whole(format!("invalid value \"{other}\""))),
        };
        if *flag {
            let word = &word.text;
            b.warn(format!("duplicate value \"{word}\""), None);
        } else {
            *flag = true;
        }
    }
    crate::settings(b).gzip.proxied = Some(set);
    Ok(())
}

fn disable(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut set = Disable::default();
    for word in &statement.args {
        match word.text.as_str() {
            "msie6" => set.msie6 = true,
            pattern => {
                let regex = b.regex(pattern, true).map_err(Refusal::whole)?;
                set.patterns.push(Arc::new(regex));
            }
        }
    }
    crate::settings(b).gzip.disable = Some(set);
    Ok(())
}

fn filter(exchange: &mut Exchange<'_>) {
    let location = exchange.location;
    let settings = &crate::values(location).gzip;
    if !is_for(exchange, settings) {
        return;
    }
    if settings.vary {
        vary(exchange);
    }
    if !client_takes_it(exchange, settings) {
        return;
    }
    let response = &mut exchange.response;
    response.fields.push_known(b"Content-Encoding", b"gzip", Some(Known::ContentEncoding));
    response.content_length = None;
    response.allows_ranges = false;
    response.fields.remove(Known::ContentLength);
    response.fields.remove(Known::AcceptRanges);
    exchange.response.weaken_etag();
    if composing::is_composed(exchange) || !pack::replace(exchange, settings.level) {
        exchange.response.body_filters.push(Box::new(Gzip::new(settings.level)));
    }
}

/// Adds, once, that the answer depends on Accept-Encoding.
pub fn vary(exchange: &mut Exchange<'_>) {
    let fields = &mut exchange.response.fields;
    let is_said = fields.iter().any(|field| field.known == Some(Known::Vary) && field.value == b"Accept-Encoding");
    if !is_said {
        fields.push_known(b"Vary", b"Accept-Encoding", Some(Known::Vary));
    }
}

/// Whether this response is compressed for clients that accept it.
pub fn is_for(exchange: &Exchange<'_>, settings: &Values) -> bool {
    let response = &exchange.response;
    matches!(response.status, 200 | 403 | 404)
        && !response.header_only
        && response.fields.get(Known::ContentEncoding).is_none_or(<[u8]>::is_empty)
        && response.content_length.is_none_or(|length| length >= settings.min_length)
        && media_types::is_listed(&settings.types, &response.content_type)
}

/// nginx: `ngx_http_gzip_ok`.
pub fn client_takes_it(exchange: &Exchange<'_>, settings: &Values) -> bool {
    let came_by_proxy = exchange.request.field(Known::Via).is_some();
    client_accepts(exchange, settings) && (!came_by_proxy || proxy_takes_it(exchange, settings.proxied))
}

/// Whether the client itself accepts gzip, apart from any proxy it came through.
pub fn client_accepts(exchange: &Exchange<'_>, settings: &Values) -> bool {
    let request = &exchange.request;
    let Some(accepted) = request.field(Known::AcceptEncoding) else { return false };
    if !accepts_gzip(accepted) || request.version() < settings.version {
        return false;
    }
    let agent = request.field(Known::UserAgent);
    if settings.disable.msie6 && agent.is_some_and(is_msie6) {
        return false;
    }
    let is_disabled = |agent| settings.disable.patterns.iter().any(|pattern| is_disabled_by(exchange, pattern, agent));
    !agent.is_some_and(is_disabled)
}

/// nginx: an error of the regular expression engine also disables compression.
fn is_disabled_by(exchange: &Exchange<'_>, pattern: &Regex, agent: &[u8]) -> bool {
    pattern.is_match(agent).unwrap_or_else(|failed| {
        weir_http::line::exchange_line(exchange, Level::Alert, format_args!("{failed}"));
        true
    })
}

fn proxy_takes_it(exchange: &Exchange<'_>, proxied: Proxied) -> bool {
    if proxied == Proxied::default() || proxied.off {
        return false;
    }
    if proxied.any || (proxied.auth && exchange.request.field(Known::Authorization).is_some()) {
        return true;
    }
    let response = &exchange.response;
    let fields = &response.fields;
    if let Some(expires) = fields.get(Known::Expires) {
        let date = match fields.get(Known::Date) {
            Some(text) => date::parse_http_date(text),
            None => Some(clock::unix_seconds() as i64),
        };
        return match (proxied.expired, date::parse_http_date(expires), date) {
            (true, Some(expires), Some(date)) => expires < date,
            _ => false,
        };
    }
    if fields.has(Known::CacheControl) {
        let says = |word: &[u8]| {
            fields
                .iter()
                .filter(|field| field.known == Some(Known::CacheControl))
                .any(|field| field.value.split(|b| *b == b',').any(|part| names(part, word)))
        };
        return (proxied.no_cache && says(b"no-cache"))
            || (proxied.no_store && says(b"no-store"))
            || (proxied.private && says(b"private"));
    }
    let has_time = response.last_modified.is_some() || fields.has(Known::LastModified);
    !(proxied.no_last_modified && has_time || proxied.no_etag && fields.has(Known::Etag))
}

/// Whether one directive of Cache-Control is `word`, with or without a value.
fn names(part: &[u8], word: &[u8]) -> bool {
    let part = part.trim_ascii();
    let name = part.split(|b| *b == b'=').next().unwrap_or_default();
    name.trim_ascii().eq_ignore_ascii_case(word)
}

/// Internet Explorer 4 to 6 without its service pack 2, as nginx knows it.
fn is_msie6(agent: &[u8]) -> bool {
    let Some(at) = memchr::memmem::find(agent, b"MSIE ") else { return false };
    if memchr::memmem::find(agent, b"Opera").is_some() {
        return false;
    }
    match agent.get(at + 5..at + 7) {
        Some(b"4." | b"5.") => true,
        Some(b"6.") => memchr::memmem::find(agent, b"SV1").is_none(),
        Some(_) | None => false,
    }
}

/// Whether `Accept-Encoding` names gzip with a weight above zero, read as nginx reads it.
fn accepts_gzip(field: &[u8]) -> bool {
    let mut from = 0;
    while let Some(rest) = field.get(from..) {
        let Some(at) = rest.windows(4).position(|window| window.eq_ignore_ascii_case(b"gzip")) else { return false };
        let start = from + at;
        let before = start.checked_sub(1).and_then(|before| field.get(before));
        if matches!(before, None | Some(b',' | b' ')) {
            return weight_admits(field.get(start + 4..).unwrap_or_default());
        }
        from = start + 4;
    }
    false
}

/// The text after the coding: nothing, the next coding, or `;q=` and a weight.
fn weight_admits(after: &[u8]) -> bool {
    let after = after.trim_ascii_start();
    let parameter = match after.split_first() {
        None | Some((b',', _)) => return true,
        Some((b';', rest)) => rest.trim_ascii_start(),
        Some(_) => return false,
    };
    match parameter.split_first() {
        None => true,
        Some((b'q' | b'Q', [b'=', weight @ ..])) => is_positive(weight),
        Some(_) => false,
    }
}

/// `0.001` to `1.000`: at most three digits, not all zero, not above one.
fn is_positive(weight: &[u8]) -> bool {
    let end = weight.iter().position(|b| matches!(b, b',' | b' ')).unwrap_or(weight.len());
    match weight.get(..end) {
        Some(b"1") => true,
        Some([b'1', b'.', digits @ ..]) => digits.len() <= 3 && digits.iter().all(|b| *b == b'0'),
        Some([b'0', b'.', digits @ ..]) => {
            digits.len() <= 3 && digits.iter().all(u8::is_ascii_digit) && digits.iter().any(|b| *b != b'0')
        }
        Some(_) | None => false,
    }
}

/// Compresses a body as it passes through.
struct Gzip {
    stream: Compress,
}

/// Output grows by this much at a time.
const STEP_BYTES: usize = 8 << 10;

/// The 32k window that every decoder has.
const WINDOW_BITS: u8 = 15;

/// zlib-rs's level 1 uses one fixed code for all texts: C source shrinks to 1/3.87 at 357 MB/s. zlib's level 1, which
/// is nginx's default, gives 1/4.72 at 171 MB/s. Level 2 gives 1/4.96 at 247 MB/s: fewer bytes, less time.
const LEVEL_MIN: u32 = 2;

impl Gzip {
    fn new(level: u32) -> Gzip {
        Gzip { stream: Compress::new_gzip(Compression::new(level.max(LEVEL_MIN)), WINDOW_BITS) }
    }
}

impl BodyFilter for Gzip {
    fn is_outer(&self) -> bool {
        true
    }

    fn write(&mut self, input: &[u8], flush: bool, last: bool, out: &mut Vec<u8>) {
        let how = match (last, flush) {
            (true, _) => FlushCompress::Finish,
            (false, true) => FlushCompress::Sync,
            (false, false) => FlushCompress::None,
        };
        let mut rest = input;
        loop {
            out.reserve(STEP_BYTES);
            let (taken, given) = (self.stream.total_in(), self.stream.total_out());
            let status = self.stream.compress_vec(rest, out, how);
            let taken = self.stream.total_in() - taken;
            let has_given = self.stream.total_out() > given;
            rest = rest.get(taken as usize..).unwrap_or_default();
            match status {
                Ok(Status::StreamEnd) | Err(_) => return,
                // Room is left: the compressor has no more output for now.
                Ok(_) if !last && rest.is_empty() && out.len() < out.capacity() => return,
                Ok(_) if taken == 0 && !has_given => return,
                Ok(_) => {}
            }
        }
    }

    fn bytes(&self) -> Option<(u64, u64)> {
        Some((self.stream.total_in(), self.stream.total_out()))
    }
}

/// `$gzip_ratio`: the original size divided by the compressed size, with two digits.
fn ratio(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    use std::io::Write;
    let mut filters = exchange.response.body_filters.iter();
    let bytes = filters.find_map(|filter| filter.bytes()).or(exchange.cache.packed);
    let Some((before, after)) = bytes.filter(|(_, after)| *after > 0) else { return false };
    let (whole, hundredths) = hundredths(before, after);
    let written = write!(out, "{whole}.{hundredths:02}");
    debug_assert!(written.is_ok());
    true
}

/// A quotient rounded to hundredths.
fn hundredths(before: u64, after: u64) -> (u64, u64) {
    let thousandths = before.saturating_mul(1000) / after.max(1);
    let rounded = thousandths / 10 + u64::from(thousandths % 10 > 4);
    (rounded / 100, rounded % 100)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::io::Read;

    #[test]
    fn accept_encoding_is_read_as_nginx_reads_it() {
        for (field, expected) in [
            ("gzip", true),
            ("gzip, deflate", true),
            ("deflate, GZip", true),
            ("deflate,gzip;q=0.001", true),
            ("gzip; q=1.000", true),
            ("gzip;q=1", true),
            ("gzip;q=0", false),
            ("gzip;q=0.000", false),
            ("gzip;q=1.001", false),
            ("gzip;q=0.0001", false),
            ("gzip;q=", false),
            ("gzip;x=1", false),
            ("x-gzip", false),
            ("x-gzip, gzip", true),
            ("gzipped", false),
            ("identity", false),
            ("", false),
        ] {
            assert_eq!(accepts_gzip(field.as_bytes()), expected, "{field:?}");
        }
    }

    #[test]
    fn what_is_compressed_comes_back_however_it_is_cut() {
        let text: Vec<u8> = (0..200_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 27) as u8).collect();
        for (piece, flush) in [(1 << 20, false), (7000, false), (7000, true), (100, false)] {
            let mut filter = Gzip::new(1);
            let mut out = Vec::new();
            for part in text.chunks(piece) {
                filter.write(part, flush, false, &mut out);
            }
            filter.write(b"", false, true, &mut out);
            let mut back = Vec::new();
            flate2::read::GzDecoder::new(out.as_slice()).read_to_end(&mut back).unwrap();
            assert!(back == text, "pieces of {piece}, flush {flush}");
            assert_eq!(filter.bytes().map(|(before, _)| before), Some(text.len() as u64));
        }
    }

    #[test]
    fn the_lowest_level_still_codes_by_frequency() {
        let mut seed = 1u32;
        let hex: Vec<u8> = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            b"0123456789abcdef"[(seed >> 28) as usize]
        })
        .take(50_000)
        .collect();
        let mut out = Vec::new();
        Gzip::new(1).write(&hex, false, true, &mut out);
        assert!(out.len() * 10 < hex.len() * 6, "four bits of eight are noise, but {} bytes came out", out.len());
    }

    #[test]
    fn a_flush_gives_everything_that_went_in() {
        let mut filter = Gzip::new(6);
        let mut out = Vec::new();
        filter.write(b"the first event", true, false, &mut out);
        let mut decoder = flate2::Decompress::new_gzip(15);
        let mut back = Vec::with_capacity(100);
        decoder.decompress_vec(&out, &mut back, flate2::FlushDecompress::Sync).unwrap();
        assert_eq!(back, b"the first event");
    }

    #[test]
    fn old_browsers_are_told_by_their_names() {
        assert!(is_msie6(b"Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)"));
        assert!(!is_msie6(b"Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; SV1)"));
        assert!(!is_msie6(b"Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 5.1)"));
        assert!(!is_msie6(b"Mozilla/4.0 (compatible; MSIE 6.0; Windows NT) Opera 7"));
    }

    #[test]
    fn the_ratio_is_rounded_to_hundredths() {
        assert_eq!(hundredths(1000, 300), (3, 33));
        assert_eq!(hundredths(1999, 1000), (2, 0));
        assert_eq!(hundredths(5, 10), (0, 50));
    }
}
