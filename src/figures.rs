//! Figures as short texts, for `weir top` and `weir status`.

use weir_words::{Said, say};

use crate::texts;

/// A figure that is not known.
pub const NOTHING: &str = "–";

/// A number with few digits, and no zeros after the point: `2`, `2.4`, `28.2k`.
pub fn short(number: Option<f64>) -> String {
    let Some(mut number) = number else { return NOTHING.to_owned() };
    let mut units = ["", "k", "M", "G"].iter();
    let mut unit = units.next().copied().unwrap_or_default();
    while number >= 999.5 {
        let Some(next) = units.next() else { break };
        (number, unit) = (number / 1000.0, next);
    }
    let digits = if number >= 99.95 { 0 } else { 1 };
    let text = format!("{number:.digits$}");
    format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// A number each second.
pub fn rate(number: Option<f64>) -> Said {
    number.map_or(NOTHING.into(), |number| say!(texts::EACH_SECOND, short(Some(number))))
}

/// A share of one as per cent.
pub fn percent(share: Option<f64>) -> String {
    share.map_or(NOTHING.to_owned(), |share| format!("{:.0} %", share * 100.0))
}

/// Milliseconds in the unit that suits; a minute and more in two units.
pub fn time(ms: Option<f64>) -> Said {
    let two = |ms: f64, unit: u64, of: u64| {
        let units = (ms / 1000.0).round() as u64 / unit;
        (units / of, units % of)
    };
    match ms {
        None => NOTHING.into(),
        Some(ms) if ms < 0.9995 => format!("{:.0} µs", ms * 1000.0).into(),
        Some(ms) if ms < 999.5 => format!("{ms:.1} ms").into(),
        Some(ms) if ms < 59_950.0 => say!(texts::SECONDS, format!("{:.1}", ms / 1000.0)),
        Some(ms) => match (two(ms, 1, 60), two(ms, 60, 60), two(ms, 3600, 24)) {
            ((minutes, seconds), ..) if minutes < 60 => say!(texts::MINUTES, minutes, seconds),
            (_, (hours, minutes), _) if hours < 24 => say!(texts::HOURS, hours, minutes),
            (.., (days, hours)) => say!(texts::DAYS, days, hours),
        },
    }
}

/// An amount of a limit in its unit: bytes, cores, or a count.
pub fn amount(unit: Option<&str>, number: Option<f64>) -> String {
    match (unit, number) {
        (Some("bytes"), Some(bytes)) if bytes >= 1_073_741_824.0 => format!("{:.1} GiB", bytes / 1_073_741_824.0),
        (Some("bytes"), Some(bytes)) => format!("{:.1} MiB", bytes / 1_048_576.0),
        (Some("cores"), Some(cores)) => format!("{cores:.2}"),
        (_, number) => short(number),
    }
}
