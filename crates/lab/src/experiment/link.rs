//! Reads the faults of a host's link: `delay`, `jitter`, `loss`, `reorder` and `seed`; and times.

use std::time::Duration;

use weir_load::script::DocumentEntry;

use crate::said::Said;
use crate::stack::LIMIT_MAX;
use crate::texts;
use crate::wan::{BadLink, Direction};

/// The words of a host that make its link a bad one.
const WORDS: [&str; 5] = ["delay", "jitter", "loss", "reorder", "seed"];
/// The largest seed: a number of a file has 53 bits.
const SEED_MAX: u64 = 1 << 53;

/// The link of a host. `None`: the file says nothing about it.
pub(super) fn link(host: &DocumentEntry<'_>, name: &str) -> Result<Option<BadLink>, Said> {
    if WORDS.iter().all(|word| host.get(word).is_none()) {
        return Ok(None);
    }
    let times = |word: &str| both(host.get(word), micros, texts::ERR_DELAY);
    let shares = |word: &str| both(host.get(word), share, texts::ERR_SHARE);
    let (delay, jitter, loss, reorder) = (times("delay")?, times("jitter")?, shares("loss")?, shares("reorder")?);
    let seed = host.get("seed").map(|entry| entry.whole(SEED_MAX).map(|seed| (seed, entry))).transpose()?;
    if let Some((_, entry)) = seed.filter(|_| (jitter, loss, reorder) == ((0, 0), (0, 0), (0, 0))) {
        return Err(entry.wrong(texts::ERR_LINK_SEED.with(&[name.into()])));
    }
    let path = |way: fn((u64, u64)) -> u64, share: fn((u16, u16)) -> u16| Direction {
        delay_us: way(delay),
        jitter_us: way(jitter),
        loss: share(loss),
        reorder: share(reorder),
    };
    Ok(Some(BadLink {
        to: path(|both| both.0, |both| both.0),
        from: path(|both| both.1, |both| both.1),
        seed: seed.map(|(seed, _)| seed),
    }))
}

/// One value for both directions, or to the host and from it; nothing means 0.
fn both<T: Copy + Default>(
    entry: Option<DocumentEntry<'_>>,
    one: fn(&DocumentEntry<'_>) -> Result<T, Said>,
    wrong: weir_words::Text,
) -> Result<(T, T), Said> {
    let Some(entry) = entry else { return Ok((T::default(), T::default())) };
    match entry.list().iter().map(one).collect::<Result<Vec<_>, Said>>()?.as_slice() {
        [both] => Ok((*both, *both)),
        [to, from] => Ok((*to, *from)),
        _ => Err(entry.wrong(wrong)),
    }
}

/// A time, at most that of the longest block.
pub(super) fn time(entry: &DocumentEntry<'_>) -> Result<Duration, Said> {
    let text = entry.text()?;
    let ms = weir_load::duration::ms(&text).filter(|ms| *ms >= 0.0 && *ms <= LIMIT_MAX.as_secs_f64() * 1000.0);
    ms.map(|ms| Duration::from_secs_f64(ms / 1000.0)).ok_or_else(|| entry.wrong(texts::ERR_TIME))
}

fn micros(entry: &DocumentEntry<'_>) -> Result<u64, Said> {
    Ok(u64::try_from(time(entry)?.as_micros()).unwrap_or(u64::MAX))
}

/// `0.5%` as parts of a thousand.
fn share(entry: &DocumentEntry<'_>) -> Result<u16, Said> {
    per_mille(&entry.text()?).ok_or_else(|| entry.wrong(texts::ERR_SHARE))
}

/// Reads a share in per cent, in steps of 0.1, at most 100: `0.5%`, as parts of a thousand.
pub fn per_mille(text: &str) -> Option<u16> {
    let percent = text.strip_suffix('%')?.trim_end();
    let (whole, tenth) = percent.split_once('.').unwrap_or((percent, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parts = (digits(whole) && digits(tenth) && tenth.len() == 1).then_some((whole, tenth))?;
    let (whole, tenth) = (parts.0.parse::<u16>().ok()?, parts.1.parse::<u16>().ok()?);
    whole.checked_mul(10)?.checked_add(tenth).filter(|share| *share <= 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_tenths_of_a_per_cent() {
        let table = [
            ("1%", Some(10)),
            ("0.5%", Some(5)),
            ("12.3 %", Some(123)),
            ("0%", Some(0)),
            ("100%", Some(1000)),
            ("100.1%", None),
            ("6600%", None),
            ("0.05%", None),
            ("1", None),
            ("%", None),
            ("-1%", None),
            ("1.%", None),
            ("+1%", None),
        ];
        for (text, share) in table {
            assert_eq!(per_mille(text), share, "{text}");
        }
    }
}
