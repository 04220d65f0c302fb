//! The times that access logs have, as milliseconds since 1970.

/// The names of months in nginx's and Apache's logs.
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `26/Nov/2026:03:00:00 +0000`, with or without a fraction. A time without a zone, as HAProxy writes it, counts as UTC.
pub(super) fn local(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    let (time, zone) = text.split_once(' ').unwrap_or((text, ""));
    let mut parts = time.splitn(3, '/');
    let (day, month, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let (year, clock) = rest.split_once(':')?;
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    of(year.parse().ok()?, i64::try_from(month).ok()?, day.parse().ok()?, clock, zone)
}

/// `2026-11-26T03:00:00+00:00`, with or without a fraction.
pub(super) fn iso8601(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    let (date, rest) = text.split_once(['T', ' '])?;
    let mut parts = date.splitn(3, '-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let zone_at = rest.find(['+', '-', 'Z']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(zone_at);
    of(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?, clock, zone)
}

/// `1795629600.250`: seconds with a fraction.
pub(super) fn seconds(value: &[u8]) -> Option<u64> {
    let seconds: f64 = std::str::from_utf8(value).ok()?.parse().ok()?;
    (0.0..=1e12).contains(&seconds).then(|| (seconds * 1000.0).round() as u64)
}

/// A number since 1970: seconds, or milliseconds, microseconds or nanoseconds. No log has seconds after the year 5000
/// or milliseconds before 1974.
pub(super) fn number(value: &[u8]) -> Option<u64> {
    let number: f64 = std::str::from_utf8(value).ok()?.parse().ok()?;
    let ms = match number {
        0.0..1e11 => number * 1e3,
        1e11..1e14 => number,
        1e14..1e17 => number / 1e3,
        1e17..1e20 => number / 1e6,
        _ => return None,
    };
    Some(ms.round() as u64)
}

/// The time of a clock such as `03:00:00.25` on a day, in a zone such as `+0900`, `+09:00`, `Z` or nothing.
fn of(year: i64, month: i64, day: i64, clock: &str, zone: &str) -> Option<u64> {
    let mut parts = clock.splitn(3, ':');
    let (hour, minute): (i64, i64) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let second: f64 = parts.next()?.parse().ok()?;
    let fits = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0.0..61.0).contains(&second);
    let away = offset_minutes(zone)?;
    if !fits {
        return None;
    }
    let minutes = (days(year, month, day) * 24 + hour) * 60 + minute - away;
    u64::try_from(minutes * 60_000 + (second * 1000.0).round() as i64).ok()
}

fn offset_minutes(zone: &str) -> Option<i64> {
    let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
    if digits.is_empty() {
        return Some(0);
    }
    let (hours, minutes) = digits.split_at_checked(2)?;
    let minutes = if minutes.is_empty() { 0 } else { minutes.parse::<i64>().ok().filter(|minutes| *minutes < 60)? };
    let away = hours.parse::<i64>().ok()? * 60 + minutes;
    Some(if zone.starts_with('-') { -away } else { away })
}

/// Days since 1970 of a date of the Gregorian calendar: <https://howardhinnant.github.io/date_algorithms.html>.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_gives_the_same_moment() {
        assert_eq!(local(b"01/Mar/2024:00:00:01 +0000"), Some(1_709_251_201_000));
        assert_eq!(local(b"29/Feb/2024:14:30:01 -0930"), Some(1_709_251_201_000));
        assert_eq!(iso8601(b"2024-03-01T00:00:01Z"), Some(1_709_251_201_000));
        assert_eq!(iso8601(b"2024-03-01T09:00:01.5+09:00"), Some(1_709_251_201_500));
        assert_eq!(seconds(b"1709251201.500"), Some(1_709_251_201_500));
        assert_eq!(local(b"01/Mar/2024:00:00:01.5"), Some(1_709_251_201_500));
        assert_eq!(
            (number(b"1709251201.5"), number(b"1709251201500")),
            (Some(1_709_251_201_500), Some(1_709_251_201_500))
        );
        for bad in [
            "",
            "32/Mar/2024:00:00:01 +0000",
            "01/Mrz/2024:00:00:01 +0000",
            "01/Mar/2024:24:00:01 +0000",
            "01/Mar/9223372036854775807:00:00:01 +0000",
            "01/Mar/2024:9223372036854775807:00:01 +0000",
            "01/Mar/2024:00:00:01 +009223372036854775807",
        ] {
            assert_eq!(local(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!((seconds(b"-"), seconds(b"-1"), seconds(b"NaN"), iso8601(b"T")), (None, None, None, None));
    }
}
