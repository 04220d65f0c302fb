//! `split_clients`: a variable for A/B testing, by MurmurHash2 of a text.
//!
//! <https://nginx.org/en/docs/http/ngx_http_split_clients_module.html>

use weir_conf::Statement;
use weir_http::exchange::subject::Subject;
use weir_http::family::rewrite::declarable;
use weir_http::read::build::Build;
use weir_http::read::directive::{Directive, HTTP, STREAM, TWO};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::template::{Argument, Template};
use weir_net::buffer;

weir_http::settings! {}

/// The splits, in the order of the file.
pub type Declared = Vec<Split>;

/// The family.
pub static FAMILY: Family = Family::new(
    "split_clients",
    &[Directive::new(
        "split_clients",
        HTTP.or(STREAM),
        TWO,
        "Defines a variable that splits clients by percentages.",
        split,
    )
    .many()
    .block()],
);

/// One `split_clients` block.
pub struct Split {
    source: Template,
    parts: Vec<Part>,
}

/// A hash below the bound selects the value; a part without a bound takes the rest.
struct Part {
    bound: Option<u32>,
    value: Box<[u8]>,
}

/// 100 %, in nginx's hundredths of a percent.
const WHOLE: u32 = 10_000;

fn split(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let source = b.template(statement.text(0))?;
    let name = declarable(b, statement.text(1))?;
    let mut shares = Vec::new();
    for line in statement.children() {
        match share(line) {
            Ok(share) => shares.push(share),
            Err(refusal) => b.refuse_at("split_clients", refusal, line.at),
        }
    }
    let parts = parts(shares)?;
    let argument = Argument { name, index: crate::declaring(b).split_clients.len() as u32 };
    super::define(b, argument, true, |x, a, out| get(x, a, out), |s, a, out| get(s, a, out));
    crate::declaring(b).split_clients.push(Split { source, parts });
    Ok(())
}

/// One line: hundredths of a percent (0 for `*`) and the value.
fn share(line: &Statement) -> Result<(u32, Box<[u8]>), Refusal> {
    let word = line.name.text.as_str();
    let share = match word {
        "*" => 0,
        _ => word
            .strip_suffix('%')
            .and_then(hundredths)
            .filter(|share| *share > 0)
            .ok_or_else(|| Refusal::whole(format!("invalid percent value \"{word}\"")))?,
    };
    Ok((share, line.arg(0).map(|word| word.bytes()).unwrap_or_default().into()))
}

/// A number with at most two digits after the point, times 100.
fn hundredths(text: &str) -> Option<u32> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 2 || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    format!("{whole}{fraction:0<2}").parse().ok()
}

/// Converts shares to bounds of the hash.
fn parts(shares: Vec<(u32, Box<[u8]>)>) -> Result<Vec<Part>, Refusal> {
    let (mut sum, mut bound) = (0u32, 0u32);
    let mut parts = Vec::with_capacity(shares.len());
    for (share, value) in shares {
        sum = if share == 0 { WHOLE } else { sum.saturating_add(share) };
        if sum > WHOLE {
            return Err(Refusal::whole("percent total is greater than 100%"));
        }
        if sum == WHOLE {
            parts.push(Part { bound: None, value });
        } else {
            let width = u64::from(share) * u64::from(u32::MAX) / u64::from(WHOLE);
            bound = bound.wrapping_add(width as u32);
            parts.push(Part { bound: Some(bound), value });
        }
    }
    Ok(parts)
}

fn get<'c>(subject: &mut impl Subject<'c>, argument: &Argument, out: &mut Vec<u8>) -> bool {
    let conf = subject.conf();
    let Some(split) = crate::declared(conf).split_clients.get(argument.index as usize) else { return false };
    let mut text = buffer::lease(0);
    split.source.eval(subject, &mut text);
    let hash = murmur2(&text);
    if let Some(part) = split.parts.iter().find(|part| part.bound.is_none_or(|bound| hash < bound)) {
        out.extend_from_slice(&part.value);
    }
    true
}

/// MurmurHash2, 32 bits, seed 0: Austin Appleby's function in the public domain, as nginx uses it.
pub fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = data.len() as u32;
    let mut words = data.chunks_exact(4);
    for word in &mut words {
        let mut k = word.iter().rev().fold(0u32, |k, byte| k << 8 | u32::from(*byte));
        k = k.wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        hash ^= rest.iter().rev().fold(0u32, |k, byte| k << 8 | u32::from(*byte));
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> 15
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn murmur2_gives_its_published_values() {
        // Computed with the reference implementation, seed 0.
        for (text, hash) in [("", 0), ("a", 0x9268_5f5e), ("abc", 0x1357_7c9b)] {
            assert_eq!(murmur2(text.as_bytes()), hash, "{text:?}");
        }
    }

    #[test]
    fn percentages_have_two_digits() {
        for (text, value) in [
            ("50", Some(5000)),
            ("0.5", Some(50)),
            ("33.33", Some(3333)),
            ("1.234", None),
            ("", None),
            (".", None),
            ("x", None),
            (".5", Some(50)),
        ] {
            assert_eq!(hundredths(text), value, "{text:?}");
        }
    }

    #[test]
    fn shares_add_up_to_a_whole_at_most() {
        let share = |share| (share, Box::<[u8]>::default());
        assert!(parts(vec![share(6000), share(4000)]).unwrap()[1].bound.is_none());
        assert_eq!(parts(vec![share(6000), share(5000)]).err().unwrap().what, "percent total is greater than 100%");
        assert_eq!(parts(vec![share(5000), share(0)]).unwrap()[0].bound, Some(2_147_483_647));
    }
}
