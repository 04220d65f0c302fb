//! A time in the form of the API.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A time: milliseconds since 1970, written in ISO 8601 with three decimals, in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub u64);

const MS_PER_DAY: u64 = 86_400_000;

/// The last time with a four-digit year.
const LAST_MS: u64 = 253_402_300_799_999;

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.min(LAST_MS);
        let (year, month, day) = civil((ms / MS_PER_DAY) as i64);
        let (ms, of_day) = (ms % 1000, ms % MS_PER_DAY / 1000);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
    }
}

impl Timestamp {
    /// Parses the text of `Display`; `None` for any other text, also for one with an offset from UTC.
    pub fn parse(text: &str) -> Option<Timestamp> {
        let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
        let mut date = date.splitn(3, '-').map(str::parse::<u64>);
        let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
        let (clock, ms) = time.split_once('.').unwrap_or((time, "0"));
        let mut clock = clock.splitn(3, ':').map(str::parse::<u64>);
        let (hour, minute, second) = (clock.next()?.ok()?, clock.next()?.ok()?, clock.next()?.ok()?);
        let ms: u64 = ms.parse().ok()?;
        if ms >= 1000 {
            return None;
        }
        Timestamp::of_civil([year, month, day], [hour, minute, second]).map(|Timestamp(whole)| Timestamp(whole + ms))
    }

    /// The time of a date (year, month, day) and a clock (hour, minute, second), in UTC; `None` if they are invalid.
    pub fn of_civil([year, month, day]: [u64; 3], [hour, minute, second]: [u64; 3]) -> Option<Timestamp> {
        let fits = (1970..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=31).contains(&day)
            && hour < 24
            && minute < 60
            && second < 61;
        if !fits {
            return None;
        }
        let days = u64::try_from(days(year as i64, month as i64, day as i64)).ok()?;
        Some(Timestamp(days * MS_PER_DAY + ((hour * 60 + minute) * 60 + second) * 1000))
    }

    /// Year, month and day in UTC.
    pub fn date(self) -> [u64; 3] {
        let (year, month, day) = civil((self.0.min(LAST_MS) / MS_PER_DAY) as i64);
        [year, month, day].map(i64::unsigned_abs)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        let text = String::deserialize(deserializer)?;
        Timestamp::parse(&text).ok_or_else(|| de::Error::custom(format!("\"{text}\" is not a time in ISO 8601, UTC")))
    }
}

/// Year, month and day of a day counted from 1970 (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn civil(day: i64) -> (i64, i64, i64) {
    let z = day + 719_468;
    let era = z.div_euclid(146_097);
    let of_era = z.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + i64::from(month <= 2), month, of_year - (153 * shifted + 2) / 5 + 1)
}

/// The inverse of [`civil`].
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * shifted + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_and_read() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_795_363_200_250, "2026-11-22T16:00:00.250Z"),
            (LAST_MS, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp(ms).to_string(), text);
            assert_eq!(Timestamp::parse(text), Some(Timestamp(ms)));
        }
        for wrong in ["", "2026-11-22", "2026-13-22T16:00:00.250Z", "2026-11-22T16:00:00+09:00", "x-1-1T0:0:0Z"] {
            assert_eq!(Timestamp::parse(wrong), None, "{wrong}");
        }
    }
}
