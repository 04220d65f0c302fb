//! Compression: chooses the coding of a response (gzip, brotli, zstd) and adds the filter that applies it.
//!
//! `gzip`, `brotli` and `zstd` are the families with the directives; this one has the variables. `accept` reads
//! `Accept-Encoding`, `coder` has the filters of bodies, `cost` their memory. The client's weights decide; of codings with the
//! same weight, weir takes the first of [`ALL`]. Invariant: only the response head and the request head decide whether a
//! response is compressed, so HEAD gets the same fields. The one exception is a lack of memory for coders.

mod accept;
mod coder;
mod coding;
mod cost;

use weir_cache::store::Coding as Kind;
use weir_http::exchange::Exchange;
use weir_http::exchange::composing;
use weir_http::exchange::response_body::BodyFilter;
use weir_http::exchange::variable::Variable;
use weir_http::hold::bounds::BUFFERS;
use weir_http::read::families::Family;
use weir_http::read::media_types;
use weir_http::send::altered;
use weir_wire::Known;

pub use coding::Coding;
use coding::CodingPlan;

use super::cache::pack;
use super::{Values as All, gzip};

weir_http::settings! {}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new("compression", &[])
    .filter(|location| ALL.iter().any(|coding| coding.is_on(crate::values(location))), filter)
    .fixed(|_, _| true)
    .variables(&[
        Variable::without_answer("gzip_ratio", |exchange, _, out| ratio(exchange, Coding::Gzip, out)),
        Variable::without_answer("brotli_ratio", |exchange, _, out| ratio(exchange, Coding::Brotli, out)),
        Variable::without_answer("zstd_ratio", |exchange, _, out| ratio(exchange, Coding::Zstd, out)),
    ]);

/// All codings. Every client that accepts one also accepts those after it, so with another order the first would never
/// be used.
pub const ALL: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

impl Coding {
    /// Its name in `Accept-Encoding` and `Content-Encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Coding::Zstd => "zstd",
            Coding::Brotli => "br",
            Coding::Gzip => "gzip",
        }
    }

    /// Its number, and its bit in a set of codings.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The bit of this coding in a set.
    pub fn bit(self) -> u8 {
        1 << self.number()
    }

    /// Whether the location compresses with it.
    pub fn is_on(self, values: &All) -> bool {
        match self {
            Coding::Zstd => values.zstd.enabled,
            Coding::Brotli => values.brotli.enabled,
            Coding::Gzip => values.gzip.enabled,
        }
    }

    /// The coding and its level: weir does not use a stored body of another kind.
    pub fn kind(self, values: &All) -> Kind {
        let level = match self {
            Coding::Zstd => values.zstd.level,
            Coding::Brotli => values.brotli.level << 8 | values.brotli.window_bits,
            Coding::Gzip => values.gzip.level as i32,
        };
        Kind { number: self.number(), level }
    }

    /// The coder that the settings ask for, for a body of this length if the length is known.
    fn plan(self, values: &All, length: Option<u64>) -> CodingPlan {
        let (level, window_bits) = match self {
            Coding::Zstd => (values.zstd.level, None),
            Coding::Brotli => (values.brotli.level, Some(values.brotli.window_bits)),
            Coding::Gzip => (values.gzip.level as i32, None),
        };
        CodingPlan { coding: self, level, window_bits, length }
    }

    /// Whether a body of this type and length is compressed with it for clients that accept it.
    fn suits(self, values: &All, content_type: &[u8], length: Option<u64>) -> bool {
        let (types, min_length) = match self {
            Coding::Zstd => (&values.zstd.types, values.zstd.min_length),
            Coding::Brotli => (&values.brotli.types, values.brotli.min_length),
            Coding::Gzip => (&values.gzip.types, values.gzip.min_length),
        };
        self.is_on(values)
            && length.is_none_or(|length| length >= min_length)
            && media_types::is_listed(types, content_type)
    }

    /// Whether the settings let this client have it, apart from `Accept-Encoding`. `gzip_http_version`, `gzip_proxied`
    /// and `gzip_disable` are about gzip alone.
    pub fn is_allowed(self, exchange: &Exchange<'_>, values: &All) -> bool {
        self != Coding::Gzip || gzip::is_allowed(exchange, &values.gzip)
    }
}

/// The codings for which `may` is true and which the client accepts, the best first.
pub fn accepted(exchange: &Exchange<'_>, may: impl Fn(Coding) -> bool) -> impl Iterator<Item = Coding> {
    let field = exchange.request.field(Known::AcceptEncoding);
    let weight = |coding: Coding| match field {
        Some(field) if may(coding) => accept::weight(field, coding.name()),
        Some(_) | None => 0,
    };
    let mut weighed = ALL.map(|coding| (weight(coding), coding));
    weighed.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    weighed.into_iter().filter(|(weight, _)| *weight > 0).map(|(_, coding)| coding)
}

/// The codings in which clients that accept them get this response, as a set of bits.
pub fn suited(exchange: &Exchange<'_>, values: &All) -> u8 {
    let response = &exchange.response;
    let may = matches!(response.status.get(), 200 | 403 | 404)
        && !response.header_only
        && response.fields.get(Known::ContentEncoding).is_none_or(<[u8]>::is_empty);
    if may { suited_by(values, &response.content_type, response.content_length) } else { 0 }
}

/// The codings in which clients that accept them get a body of this type and length, as a set of bits.
pub fn suited_by(values: &All, content_type: &[u8], length: Option<u64>) -> u8 {
    let suits = |coding: &&Coding| coding.suits(values, content_type, length);
    ALL.iter().filter(suits).fold(0, |set, coding| set | coding.bit())
}

fn filter(exchange: &mut Exchange<'_>) {
    let location = exchange.location;
    let values = crate::values(location);
    let suited = suited(exchange, values);
    if suited == 0 {
        return;
    }
    if values.gzip.vary {
        vary(exchange);
    }
    let may = |coding: Coding| suited & coding.bit() != 0 && coding.is_allowed(exchange, values);
    let codings: [Option<Coding>; ALL.len()] = {
        let mut best_first = accepted(exchange, may);
        std::array::from_fn(|_| best_first.next())
    };
    let Some(first) = codings[0] else { return };
    // The stored body is the original, before any other filter and without the answers of subrequests.
    let is_changed = composing::is_composed(exchange) || !exchange.response.body_filters.is_empty();
    let (coding, filter) = if !is_changed && let Some(packed) = pack::stored(exchange, first.kind(values)) {
        altered::forget_length(exchange.response);
        pack::replace(exchange, first.number(), packed);
        (first, None)
    } else {
        let length = exchange.response.content_length;
        let Some((plan, filter)) = affordable(exchange, codings, values, length) else {
            return;
        };
        if !is_changed && plan == plan.coding.plan(values, length) {
            pack::begin(exchange, plan.coding.kind(values));
        }
        altered::forget_length(exchange.response);
        (plan.coding, Some(filter))
    };
    let response = &mut exchange.response;
    response.fields.push_known(b"Content-Encoding", coding.name().as_bytes(), Some(Known::ContentEncoding));
    altered::forget_ranges(response);
    altered::weaken_etag(response);
    response.body_filters.extend(filter);
}

/// The filter for the best coding whose memory is free, and its plan. While the half of all memory for coders is taken, weir
/// plans with small windows. `None` leaves the answer as it is: nothing is refused for lack of this memory.
fn affordable(
    exchange: &Exchange<'_>,
    codings: [Option<Coding>; ALL.len()],
    values: &All,
    length: Option<u64>,
) -> Option<(CodingPlan, Box<dyn BodyFilter>)> {
    let mut share = BUFFERS.share();
    // No body, no coder.
    let is_free = exchange.request.is_head();
    for coding in codings.into_iter().flatten() {
        let full = coding.plan(values, length);
        let small = cost::small(full);
        let half = BUFFERS.most() / 2;
        let plan = match BUFFERS.room().checked_sub(half) {
            Some(room) if room >= cost::bytes(full) || BUFFERS.most() == u64::MAX => full,
            Some(_) | None => small,
        };
        if is_free || share.try_grow(cost::bytes(plan)) {
            return Some((plan, coder::filter(plan, share)));
        }
    }
    BUFFERS.refuse();
    None
}

/// Adds, once, that the answer depends on Accept-Encoding.
pub fn vary(exchange: &mut Exchange<'_>) {
    let fields = &mut exchange.response.fields;
    let is_said = fields.iter().any(|field| field.known == Some(Known::Vary) && field.value == b"Accept-Encoding");
    if !is_said {
        fields.push_known(b"Vary", b"Accept-Encoding", Some(Known::Vary));
    }
}

/// The original size divided by the compressed size, with two digits: `$gzip_ratio` and its kin.
fn ratio(exchange: &Exchange<'_>, coding: Coding, out: &mut Vec<u8>) -> bool {
    use std::io::Write;
    let response = &exchange.response;
    let stored = exchange.cache.packed.filter(|(number, _)| *number == coding.number()).map(|(_, bytes)| bytes);
    // A head that was copied has no fields here, and its body no filters.
    let is_coded = response.fields.get(Known::ContentEncoding) == Some(coding.name().as_bytes());
    let made = response.body_filters.iter().find_map(|filter| filter.bytes()).filter(|_| is_coded);
    let Some((before, after)) = stored.or(made).filter(|(_, after)| *after > 0) else { return false };
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
    use super::*;

    #[test]
    fn the_ratio_is_rounded_to_hundredths() {
        assert_eq!(hundredths(1000, 300), (3, 33));
        assert_eq!(hundredths(1999, 1000), (2, 0));
        assert_eq!(hundredths(5, 10), (0, 50));
    }
}
