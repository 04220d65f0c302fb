//! Finds the time in a line of a log, in the formats of servers and frameworks.

use weir_meter::live::Timestamp;

/// Number of bytes of a line that are searched for a time.
const HEAD_BYTES: usize = 256;
/// Most bytes before a time without a date.
const CLOCK_BEFORE_MAX: usize = 24;
const DAY_MS: i64 = 86_400_000;

/// A time from a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since 1970; computed as UTC if the line contains no zone.
    pub ms: i64,
    /// Resolution: 1 or 1000 ms.
    pub grain_ms: i64,
    /// True if the line contains the zone.
    pub has_zone: bool,
    /// True if the line contains the date.
    pub has_date: bool,
}

/// The time in a line of a file whose last change was at `modified_ms`.
pub fn find(line: &[u8], modified_ms: i64) -> Option<Moment> {
    let head = line.get(..line.len().min(HEAD_BYTES))?;
    let starts =
        (0..head.len()).filter(|at| *at == 0 || head.get(at - 1).is_none_or(|byte| !byte.is_ascii_alphanumeric()));
    starts.clone().find_map(|at| dated(head.get(at..)?, modified_ms)).or_else(|| epoch(head)).or_else(|| {
        starts.take_while(|at| *at <= CLOCK_BEFORE_MAX).find_map(|at| undated(head.get(at..)?, modified_ms))
    })
}

/// The unread rest of a text.
#[derive(Clone, Copy)]
struct Rest<'l>(&'l [u8]);

impl Rest<'_> {
    fn byte(&mut self, any_of: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        let found = any_of.contains(first).then_some(*first)?;
        self.0 = rest;
        Some(found)
    }

    /// A number of `least` to `most` digits, not followed by another digit.
    fn number(&mut self, least: usize, most: usize) -> Option<u64> {
        let count = self.0.iter().take(most + 1).take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at_checked(count).filter(|_| (least..=most).contains(&count))?;
        self.0 = rest;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    fn month(&mut self) -> Option<u64> {
        const NAMES: [&[u8]; 12] =
            [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
        let (name, rest) = self.0.split_at_checked(3)?;
        let index = NAMES.iter().position(|known| *known == name)?;
        self.0 = rest;
        Some(index as u64 + 1)
    }

    fn clock(&mut self) -> Option<[u64; 3]> {
        let hour = self.number(2, 2)?;
        self.byte(b":")?;
        let minute = self.number(2, 2)?;
        self.byte(b":")?;
        Some([hour, minute, self.number(2, 2)?])
    }

    /// The milliseconds after a point or comma, if there are any.
    fn fraction(&mut self) -> Option<i64> {
        let mut rest = *self;
        rest.byte(b".,")?;
        let count = rest.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let digits = rest.0.get(..count).filter(|digits| !digits.is_empty())?;
        let ms = digits.iter().chain(b"00").take(3).fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
        self.0 = rest.0.get(count..).unwrap_or_default();
        Some(ms)
    }

    /// Milliseconds by which the zone is ahead of UTC, if there is a zone.
    fn zone(&mut self) -> Option<i64> {
        let mut rest = *self;
        while rest.byte(b" ").is_some() {}
        if rest.byte(b"Z").is_some() || rest.0.starts_with(b"GMT") || rest.0.starts_with(b"UTC") {
            return Some(0);
        }
        let sign = if rest.byte(b"+-")? == b'-' { -1 } else { 1 };
        let hours = rest.number(2, 4)?;
        let minutes = match rest.byte(b":") {
            Some(_) => hours * 60 + rest.number(2, 2)?,
            None if hours >= 100 => hours / 100 * 60 + hours % 100,
            None => hours * 60,
        };
        Some(sign * i64::try_from(minutes).ok().filter(|minutes| *minutes <= 18 * 60)? * 60_000)
    }
}

/// A date and a clock, with a fraction and a zone if they follow.
fn dated(text: &[u8], modified_ms: i64) -> Option<Moment> {
    let mut rest = Rest(text);
    let (date, clock) =
        year_first(&mut rest).or_else(|| day_first(&mut rest)).or_else(|| month_first(&mut rest, modified_ms))?;
    let fraction = rest.fraction();
    let zone = rest.zone();
    moment(date, clock, fraction, zone)
}

fn moment(date: [u64; 3], clock: [u64; 3], fraction: Option<i64>, zone: Option<i64>) -> Option<Moment> {
    let Timestamp(ms) = Timestamp::of_civil(date, clock)?;
    let ms = i64::try_from(ms).ok()? + fraction.unwrap_or(0) - zone.unwrap_or(0);
    let grain_ms = if fraction.is_some() { 1 } else { 1000 };
    Some(Moment { ms, grain_ms, has_zone: zone.is_some(), has_date: true })
}

/// `2026-11-22T20:09:17`, `2026-11-22 20:09:17`, `2026/11/22 20:09:17`.
fn year_first(rest: &mut Rest<'_>) -> Option<([u64; 3], [u64; 3])> {
    let mut own = *rest;
    let year = own.number(4, 4)?;
    let between = own.byte(b"-/")?;
    let month = own.number(2, 2)?;
    own.byte(&[between])?;
    let day = own.number(2, 2)?;
    own.byte(b"T ")?;
    let clock = own.clock()?;
    *rest = own;
    Some(([year, month, day], clock))
}

/// `22/Nov/2026:20:09:17`, `22 Nov 2026 20:09:17`.
fn day_first(rest: &mut Rest<'_>) -> Option<([u64; 3], [u64; 3])> {
    let mut own = *rest;
    let day = own.number(1, 2)?;
    let between = own.byte(b"/ -")?;
    let month = own.month()?;
    own.byte(&[between])?;
    let year = own.number(4, 4)?;
    own.byte(b": ")?;
    let clock = own.clock()?;
    *rest = own;
    Some(([year, month, day], clock))
}

/// `Nov 22 20:09:17`, `Nov 22 20:09:17.123456 2026`; without a year, the year nearest to the file's last change.
fn month_first(rest: &mut Rest<'_>, modified_ms: i64) -> Option<([u64; 3], [u64; 3])> {
    let mut own = *rest;
    let month = own.month()?;
    own.byte(b" ")?;
    while own.byte(b" ").is_some() {}
    let day = own.number(1, 2)?;
    own.byte(b" ")?;
    let clock = own.clock()?;
    let mut after = own;
    after.fraction();
    let said = after.byte(b" ").and_then(|_| after.number(4, 4));
    let [near, ..] = Timestamp(u64::try_from(modified_ms).unwrap_or(0)).date();
    let of_year = |year: u64| Some((year, i64::try_from(Timestamp::of_civil([year, month, day], clock)?.0).ok()?));
    let guessed = || {
        let years = [near.saturating_sub(1), near, near + 1].into_iter().filter_map(of_year);
        years.min_by_key(|(_, ms)| (ms - modified_ms).abs()).map(|(year, _)| year)
    };
    let year = said.or_else(guessed)?;
    *rest = own;
    Some(([year, month, day], clock))
}

/// Names of JSON members with seconds or milliseconds since 1970.
const EPOCH_NAMES: [&[u8]; 3] = [b"\"time\":", b"\"ts\":", b"\"timestamp\":"];

/// A number of seconds (10 digits) or milliseconds (13) since 1970: after such a name, or at the start of the line.
fn epoch(head: &[u8]) -> Option<Moment> {
    let named = EPOCH_NAMES.iter().find_map(|name| {
        let at = head.windows(name.len()).position(|window| window == *name)?;
        head.get(at + name.len()..)
    });
    let mut rest = Rest(named.unwrap_or(head));
    while rest.byte(b" \"[").is_some() {}
    let number = i64::try_from(rest.number(10, 13)?).ok()?;
    let (ms, grain_ms) = match number {
        1_000_000_000..10_000_000_000 => match rest.fraction() {
            Some(ms) => (number * 1000 + ms, 1),
            None => (number * 1000, 1000),
        },
        1_000_000_000_000.. => (number, 1),
        _ => return None,
    };
    Some(Moment { ms, grain_ms, has_zone: true, has_date: true })
}

/// `20:09:17.123`: on the day nearest to the file's last change.
fn undated(text: &[u8], modified_ms: i64) -> Option<Moment> {
    let mut rest = Rest(text);
    let [hour, minute, second] =
        rest.clock().filter(|[hour, minute, second]| *hour < 24 && *minute < 60 && *second < 61)?;
    let fraction = rest.fraction()?;
    let of_day = i64::try_from(((hour * 60 + minute) * 60 + second) * 1000).ok()? + fraction;
    let days = [-1, 0, 1].map(|by| (modified_ms.div_euclid(DAY_MS) + by) * DAY_MS + of_day);
    let ms = days.into_iter().min_by_key(|ms| (ms - modified_ms).abs())?;
    Some(Moment { ms, grain_ms: 1, has_zone: false, has_date: false })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// 2026-11-22T20:09:17Z.
    const AT: i64 = 1_795_378_157_000;

    #[test]
    fn lines_say_when_in_many_ways() {
        for (line, after_ms, grain_ms, has_zone) in [
            ("2026-11-22T20:09:17.250Z INFO x", 250, 1, true),
            ("2026-11-23 05:09:17,250+09:00 x", 250, 1, true),
            ("{\"level\":30,\"@timestamp\":\"2026-11-22T15:09:17.25-0500\",\"msg\":\"x\"}", 250, 1, true),
            ("2026-11-22 20:09:17.250  INFO 1 --- [nio-8080-exec-1] c.e.Shop : x", 250, 1, false),
            ("2026/11/22 20:09:17 [error] 20#3: *51 connect() failed", 0, 1000, false),
            ("10.0.0.1 - - [22/Nov/2026:20:09:17 +0000] \"GET / HTTP/1.1\" 502 0", 0, 1000, true),
            ("[Sun Nov 22 20:09:17.250000 2026] [core:error] [pid 7] x", 250, 1, false),
            ("Nov 22 20:09:17 host app[7]: x", 0, 1000, false),
            ("Sun, 22 Nov 2026 20:09:17 GMT x", 0, 1000, true),
            ("{\"level\":50,\"time\":1795378157250,\"msg\":\"x\"}", 250, 1, true),
            ("{\"ts\":1795378157.25,\"msg\":\"x\"}", 250, 1, true),
            ("1795378157 x", 0, 1000, true),
            ("20:09:17.250 [main] DEBUG x", 250, 1, false),
            ("0|app | 2026-11-22T20:09:17: x", 0, 1000, false),
        ] {
            let found = find(line.as_bytes(), AT + 5000);
            let found = found.unwrap_or(Moment { ms: 0, grain_ms: 0, has_zone: false, has_date: false });
            assert_eq!((found.ms - AT, found.grain_ms, found.has_zone), (after_ms, grain_ms, has_zone), "{line}");
        }
        for line in [
            "",
            "x",
            "    at Shop.cart (shop.js:20:09)",
            "2026-13-22 20:09:17",
            "12345678901234567890",
            "Nov",
            "2026-11-22",
        ] {
            assert_eq!(find(line.as_bytes(), AT), None, "{line}");
        }
    }

    #[test]
    fn a_line_without_a_year_is_of_the_nearest() {
        let january = AT + 50 * DAY_MS;
        assert_eq!(find(b"Nov 22 20:09:17 x", january).unwrap().ms, AT);
    }

    #[test]
    fn any_bytes_are_no_trouble() {
        let mut bytes = Vec::new();
        for seed in 0..4000u32 {
            bytes.clear();
            let mut state = seed.wrapping_mul(2_654_435_761) | 1;
            for _ in 0..40 {
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                bytes.push(b"0123456789-/:.,+ TZ\"{Nov\xff"[state as usize % 25]);
            }
            let _ = find(&bytes, i64::from(seed));
        }
    }
}
