//! Figures as short texts.

use weir_conf::said::Said;
use weir_conf::say;

use crate::texts;

pub(super) const NOTHING: &str = "–";

pub(super) fn short(number: Option<f64>) -> String {
    let Some(mut number) = number else { return NOTHING.to_owned() };
    let mut units = ["", "k", "M", "G"].iter();
    let mut unit = units.next().copied().unwrap_or_default();
    while number >= 999.5 {
        let Some(next) = units.next() else { break };
        (number, unit) = (number / 1000.0, next);
    }
    let digits = if number.fract() == 0.0 || number >= 99.95 { 0 } else { 1 };
    format!("{number:.digits$}{unit}")
}

pub(super) fn rate(number: Option<f64>) -> Said {
    number.map_or(NOTHING.into(), |number| say!(texts::EACH_SECOND, short(Some(number))))
}

pub(super) fn percent(share: Option<f64>) -> String {
    share.map_or(NOTHING.to_owned(), |share| format!("{:.0} %", share * 100.0))
}

pub(super) fn time(ms: Option<f64>) -> Said {
    match ms {
        None => NOTHING.into(),
        Some(ms) if ms < 0.9995 => format!("{:.0} µs", ms * 1000.0).into(),
        Some(ms) if ms < 999.5 => format!("{ms:.1} ms").into(),
        Some(ms) if ms < 120_000.0 => say!(texts::SECONDS, format!("{:.1}", ms / 1000.0)),
        Some(ms) if ms < 7_200_000.0 => say!(texts::MINUTES, format!("{:.0}", ms / 60_000.0)),
        Some(ms) => say!(texts::HOURS, format!("{:.0}", ms / 3_600_000.0)),
    }
}

pub(super) fn amount(unit: Option<&str>, number: Option<f64>) -> String {
    match (unit, number) {
        (Some("bytes"), Some(bytes)) if bytes >= 1_073_741_824.0 => format!("{:.1} GiB", bytes / 1_073_741_824.0),
        (Some("bytes"), Some(bytes)) => format!("{:.1} MiB", bytes / 1_048_576.0),
        (Some("cores"), Some(cores)) => format!("{cores:.2}"),
        (_, number) => short(number),
    }
}
