//! Readers of directive arguments: flags, sizes, times, bounded numbers, in nginx's grammar and words.
//!
//! Each returns the `Refusal` nginx would print. See <https://nginx.org/en/docs/syntax.html>.

use std::time::Duration;

use weir_conf::Statement;

use crate::text::refusal::Refusal;

/// Whether the argument at `index` is this word; an error if it is another one.
pub fn has_word(statement: &Statement, index: usize, word: &str) -> Result<bool, Refusal> {
    match statement.args.get(index).map(|word| word.text.as_str()) {
        None => Ok(false),
        Some(found) if found == word => Ok(true),
        Some(other) => Err(Refusal::whole(format!("invalid parameter \"{other}\""))),
    }
}

/// `on` or `off`.
pub fn flag(statement: &Statement) -> Result<bool, Refusal> {
    let value = statement.text(0);
    if value.eq_ignore_ascii_case("on") {
        Ok(true)
    } else if value.eq_ignore_ascii_case("off") {
        Ok(false)
    } else {
        let name = &statement.name.text;
        Err(Refusal::whole(format!("invalid value \"{value}\" in \"{name}\" directive, it must be \"on\" or \"off\"")))
    }
}

/// A non-negative decimal number, up to nginx's limit of 2^63-1.
pub fn number(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|number| *number <= i64::MAX as u64)
}

/// The first argument as a number.
pub fn first_number(statement: &Statement) -> Result<u64, Refusal> {
    number(statement.text(0)).ok_or_else(|| Refusal::directive("invalid number"))
}

/// A number within bounds; the bounds are named in the refusal.
pub fn bounded(statement: &Statement, low: u64, high: u64) -> Result<u64, Refusal> {
    let value = first_number(statement)?;
    if (low..=high).contains(&value) {
        Ok(value)
    } else {
        Err(Refusal::whole(format!("value must be between {low} and {high}")))
    }
}

/// A number of which weir can use no more than `high`: a larger one, which nginx takes, counts as `high`.
pub fn at_most(statement: &Statement, high: u64) -> Result<u64, Refusal> {
    Ok(first_number(statement)?.min(high))
}

/// Bytes with `k` or `m` (nginx: `ngx_parse_size`).
pub fn size_of(text: &str) -> Option<u64> {
    if text.ends_with(['g', 'G']) { None } else { offset_of(text) }
}

/// Bytes with `k`, `m` or `g`, for what may be as large as a disk (nginx: `ngx_parse_offset`).
pub fn offset_of(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1 << 10),
        b'm' | b'M' => (&text[..text.len() - 1], 1 << 20),
        b'g' | b'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1u64),
    };
    number(digits)?.checked_mul(unit).filter(|bytes| *bytes <= i64::MAX as u64)
}

/// The first argument as a size in bytes.
pub fn size(statement: &Statement) -> Result<u64, Refusal> {
    size_of(statement.text(0)).ok_or_else(|| {
        let refusal = Refusal::directive("invalid value");
        match offset_of(statement.text(0)) {
            Some(bytes) => refusal.todo(format!("nginx takes k and m here: write {}m", bytes >> 20)),
            None => refusal,
        }
    })
}

/// The first argument as a size in bytes that may have gigabytes.
pub fn offset(statement: &Statement) -> Result<u64, Refusal> {
    offset_of(statement.text(0)).ok_or_else(|| Refusal::directive("invalid value"))
}

/// The size of a memory pool, which has room for nginx's own head of one and a multiple of nginx's alignment.
pub fn pool(statement: &Statement) -> Result<u64, Refusal> {
    const LEAST_BYTES: u64 = 112;
    const UNIT_BYTES: u64 = 16;
    let size = size(statement)?;
    if size < LEAST_BYTES {
        return Err(Refusal::whole(format!("the pool size must be no less than {LEAST_BYTES}")));
    }
    if size % UNIT_BYTES != 0 {
        return Err(Refusal::whole(format!("the pool size must be a multiple of {UNIT_BYTES}")));
    }
    Ok(size)
}

/// The longest time in force: 68 years. nginx takes longer ones, and files have them where they mean "for ever". No
/// client and no server lasts so long, and a sum of two such times never overflows.
const TIME_MAX: Duration = Duration::from_secs(i32::MAX as u64);

/// A time such as `1h 30m`, `500ms` or `60`; a bare number is seconds. Up to nginx's limit of 2^63-1 milliseconds; weir
/// takes a time above 68 years for 68 years. As in nginx, such a time has no years and months.
pub fn time_of(text: &str) -> Option<Duration> {
    if text.contains(['y', 'M']) { None } else { long_time_of(text) }
}

/// A time of [`time_of`] that may also have years and months: for parameters that open-source nginx does not have.
pub fn long_time_of(text: &str) -> Option<Duration> {
    let millis = units_of(text, 1_000)?;
    Some(Duration::from_millis(millis).min(TIME_MAX))
}

/// A time of whole seconds such as `1h 30m`, `1y` or `60`, which nginx reads in seconds. weir takes a time above 68 years for 68
/// years.
pub fn whole_seconds_of(text: &str) -> Option<Duration> {
    let seconds = seconds_of(text).and_then(|seconds| u64::try_from(seconds).ok())?;
    Some(Duration::from_secs(seconds).min(TIME_MAX))
}

/// Seconds such as `1h 30m`, `100y` or `60`, for times that clients see. Up to nginx's limit of 2^63-1 seconds.
pub fn seconds_of(text: &str) -> Option<i64> {
    units_of(text, 1).and_then(|seconds| i64::try_from(seconds).ok())
}

/// The sum of a time in units of which a second has `per_second`; at most 2^63-1.
fn units_of(text: &str, per_second: u64) -> Option<u64> {
    // nginx: ngx_parse_time walks from the largest unit to the smallest, each at most once.
    const UNITS: [(&str, u64); 7] =
        [("y", 31_536_000), ("M", 2_592_000), ("w", 604_800), ("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
    // The places of a bare number, which is seconds, and of milliseconds.
    let (bare, thousandths) = (UNITS.len(), UNITS.len() + 1);
    let mut rest = text;
    let mut next_unit = 0;
    let mut total: u64 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let value = number(&rest[..digits])?;
        rest = &rest[digits..];
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, scale) = match &rest[..letters] {
            "" => (bare, per_second),
            "ms" if per_second == 1_000 => (thousandths, 1),
            word => {
                let found = UNITS.iter().position(|(name, _)| *name == word)?;
                (found, UNITS[found].1 * per_second)
            }
        };
        // A bare number ends the value.
        if unit < next_unit || (letters == 0 && !rest.trim_start_matches(' ').is_empty()) {
            return None;
        }
        next_unit = unit + 1;
        total = total.checked_add(value.checked_mul(scale)?)?;
        rest = rest[letters..].trim_start_matches(' ');
    }
    (total <= i64::MAX as u64).then_some(total)
}

/// The first argument as a time.
pub fn time(statement: &Statement) -> Result<Duration, Refusal> {
    let text = statement.text(0);
    time_of(text).ok_or_else(|| {
        let refusal = Refusal::directive("invalid value");
        match long_time_of(text) {
            Some(_) => refusal.todo("nginx takes no years (y) and months (M) here: write days, as in 365d"),
            None => refusal,
        }
    })
}

/// The first argument as whole seconds.
pub fn seconds(statement: &Statement) -> Result<Duration, Refusal> {
    whole_seconds_of(statement.text(0)).ok_or_else(|| Refusal::directive("invalid value"))
}

/// The value of the first argument, which must be one of a list of words.
pub fn choice<T: Copy>(statement: &Statement, choices: &[(&str, T)]) -> Result<T, Refusal> {
    choice_of(statement.text(0), choices).ok_or_else(|| {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        Refusal::whole(format!("invalid value \"{}\"", statement.text(0))).todo(format!(
            "\"{}\" takes one of: {}",
            statement.name.text,
            words.join(", ")
        ))
    })
}

/// The value of a word, in any case (nginx: `ngx_conf_set_enum_slot`, `ngx_conf_set_bitmask_slot`).
pub fn choice_of<T: Copy>(word: &str, choices: &[(&str, T)]) -> Option<T> {
    choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, value)| *value)
}

/// `NUMBER SIZE`, for `proxy_buffers` and `large_client_header_buffers`.
pub fn buffers(statement: &Statement) -> Result<(u32, u64), Refusal> {
    let count = number(statement.text(0)).filter(|n| *n > 0).map(|n| n.min(u64::from(u32::MAX)));
    let size = size_of(statement.text(1)).filter(|n| *n > 0);
    match (count, size) {
        (Some(count), Some(size)) => Ok((count as u32, size)),
        (None, _) | (_, None) => Err(Refusal::directive("invalid value")),
    }
}

/// `PATH [LEVEL [LEVEL [LEVEL]]]`: the path. The levels are numbers of letters, 10 at most together (nginx:
/// `ngx_conf_set_path_slot`); weir's temporary files need none.
pub fn leveled_path(statement: &Statement) -> Result<&str, Refusal> {
    const LETTERS_MAX: u64 = 10;
    let mut letters = 0;
    for level in statement.args.iter().skip(1) {
        let level = number(&level.text).filter(|level| *level > 0).unwrap_or(u64::MAX);
        letters = level.saturating_add(letters);
    }
    if letters > LETTERS_MAX { Err(Refusal::directive("invalid value")) } else { Ok(statement.text(0)) }
}

/// Permissions such as `user:rw group:r`; the owner may always read and write (nginx: `ngx_conf_set_access_slot`).
pub fn access(statement: &Statement) -> Result<u32, Refusal> {
    let mut mode = 0o600;
    for word in statement.args.iter().map(|word| word.text.as_str()) {
        let bits = |rights: &str| match rights {
            "r" => Some(4),
            "rw" => Some(6),
            _ => None,
        };
        let read = word.split_once(':').and_then(|(who, rights)| match who {
            "user" => Some(bits(rights)? << 6),
            "group" => Some(bits(rights)? << 3),
            "all" => bits(rights),
            _ => None,
        });
        mode |= read.ok_or_else(|| Refusal::whole(format!("invalid value \"{word}\"")))?;
    }
    Ok(mode)
}

/// The permissions of the directories on the way to a file with these: search where reading is allowed (nginx: `ngx_dir_access`).
pub fn directory_access(access: u32) -> u32 {
    access | (access & 0o444) >> 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_nginx_reads_them() {
        for (text, millis) in [
            ("60", Some(60_000)),
            ("1h30m", Some(5_400_000)),
            ("1h 30m", Some(5_400_000)),
            ("500ms", Some(500)),
            ("1m", Some(60_000)),
            ("1M", None),
            ("1y", None),
            ("1d", Some(86_400_000)),
            ("0", Some(0)),
            ("", None),
            ("1x", None),
            ("1s1h", None),
            ("-1", None),
            ("1.5s", None),
            ("1s ", Some(1_000)),
            ("60 ", Some(60_000)),
            ("1 s", None),
            ("1071906480m", Some(2_147_483_647_000)),
            ("99999d", Some(2_147_483_647_000)),
            ("9223372036854775807ms", Some(2_147_483_647_000)),
            ("9223372036854775808ms", None),
            ("9223372036854776s", None),
        ] {
            assert_eq!(time_of(text).map(|d| d.as_millis() as u64), millis, "{text:?}");
        }
    }

    #[test]
    fn seconds_for_clients_are_exact() {
        for (text, seconds) in [
            ("100y", Some(3_153_600_000)),
            ("1h 30m", Some(5_400)),
            ("60", Some(60)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("292471208678y", None),
            ("500ms", None),
            ("", None),
        ] {
            assert_eq!(seconds_of(text), seconds, "{text:?}");
        }
    }

    #[test]
    fn sizes_are_read_as_nginx_reads_them() {
        for (text, bytes) in [
            ("1k", Some(1024)),
            ("2M", Some(2 << 20)),
            ("7", Some(7)),
            ("k", None),
            ("", None),
            ("9007199254740992k", None),
        ] {
            assert_eq!((size_of(text), offset_of(text)), (bytes, bytes), "{text:?}");
        }
        for (text, bytes) in [("1g", Some(1 << 30)), ("4G", Some(4 << 30)), ("99999999999g", None)] {
            assert_eq!((size_of(text), offset_of(text)), (None, bytes), "{text:?}");
        }
    }
}
