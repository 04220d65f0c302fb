//! Dates, as JavaScript shows them: `Sat Nov 21 2026 20:07:19 GMT+0000 (Coordinated Universal Time)`.

use weir_net::clock;

use super::draw::pick;
use super::numbers;
use super::options::{FakeOptions, Make};
use crate::value::Value;

pub(super) const FUNCTIONS: &[(&str, Make)] = &[
    ("dateAnytime", |_| around(-YEAR, YEAR)),
    ("datePast", |options| around(-span(options, "years", YEAR, 1.0), 0.0)),
    ("dateFuture", |options| around(0.0, span(options, "years", YEAR, 1.0))),
    ("dateRecent", |options| around(-span(options, "days", DAY, 1.0), 0.0)),
    ("dateSoon", |options| around(0.0, span(options, "days", DAY, 1.0))),
    ("dateBetween", |options| {
        let bound = |name: &str, default: f64| options.number(name).map_or(now() + default, |millis| millis / 1000.0);
        shown(numbers::float(bound("from", -YEAR), bound("to", YEAR)))
    }),
    ("dateBirthdate", |_| around(-80.0 * YEAR, -18.0 * YEAR)),
    ("dateMonth", |_| pick(&MONTHS).into()),
    ("dateWeekday", |_| pick(&DAYS).into()),
    ("dateTimeZone", |_| pick(<fake::locales::EN as fake::locales::Data>::ADDRESS_TIME_ZONE).into()),
];

const DAY: f64 = 86_400.0;
const YEAR: f64 = 365.25 * DAY;
/// Seconds from the year 1 to 1970.
const EPOCH: f64 = 719_162.0 * DAY;
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

fn now() -> f64 {
    clock::unix_seconds() as f64
}

fn span(options: &FakeOptions<'_>, name: &str, unit: f64, default: f64) -> f64 {
    options.number(name).unwrap_or(default).clamp(0.0, 1000.0) * unit
}

fn around(from: f64, to: f64) -> Value {
    shown(now() + numbers::float(from, to))
}

/// Formats Unix seconds as `String(date)` does in UTC.
fn shown(seconds: f64) -> Value {
    // Only the years 1 to 9999.
    let seconds = seconds.clamp(-EPOCH, 253_402_300_799.0).floor() as i64;
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let name = |list: &[&'static str], at: i64| {
        usize::try_from(at).ok().and_then(|at| list.get(at)).and_then(|name| name.get(..3)).unwrap_or("")
    };
    Value::from(format!(
        "{} {} {day:02} {year:04} {:02}:{:02}:{:02} GMT+0000 (Coordinated Universal Time)",
        name(&DAYS, (days + 4).rem_euclid(7)),
        name(&MONTHS, month - 1),
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    ))
}

/// Year, month and day of a day since 1970 (Howard Hinnant's `civil_from_days`).
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + i64::from(month <= 2), month, of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_javascript_shows_them() {
        for (seconds, text) in [
            (0.0, "Thu Jan 01 1970 00:00:00"),
            (951_782_400.0, "Tue Feb 29 2000 00:00:00"),
            (1_795_295_239.0, "Sat Nov 21 2026 21:07:19"),
            (-1.0, "Wed Dec 31 1969 23:59:59"),
            (-1e300, "Mon Jan 01 0001 00:00:00"),
        ] {
            assert_eq!(shown(seconds).to_text(), format!("{text} GMT+0000 (Coordinated Universal Time)"));
        }
    }
}
