//! Times, sizes and rates of a configuration, in words.

use weir_http::text::value::{long_time_of, offset_of};
use weir_words::{Said, said};

/// The meaning of a value of this kind (`TIME`, `SIZE`, `RATE`). `None` if it is no such value, or if its words add nothing.
pub fn in_words(kind: &str, text: &str) -> Option<Said> {
    match kind {
        "TIME" => time(text),
        "SIZE" => size(text),
        "NAME:SIZE" => size(text.rsplit_once(':')?.1),
        "RATE" => rate(text),
        _ => None,
    }
}

/// `90s` as "1 minute 30 seconds".
fn time(text: &str) -> Option<Said> {
    const UNITS: [(u128, &str, &str); 5] = [
        (86_400_000, "day", "일"),
        (3_600_000, "hour", "시간"),
        (60_000, "minute", "분"),
        (1_000, "second", "초"),
        (1, "millisecond", "밀리초"),
    ];
    let mut rest = long_time_of(text)?.as_millis();
    if rest == 0 {
        return Some(Said::of_both("0 seconds", "0초"));
    }
    let (mut english, mut korean) = (Vec::new(), Vec::new());
    for (millis, en, ko) in UNITS {
        let count = rest / millis;
        rest %= millis;
        if count > 0 {
            english.push(format!("{count} {en}{}", if count == 1 { "" } else { "s" }));
            korean.push(format!("{count}{ko}"));
        }
    }
    Some(Said::of_both(english.join(" "), korean.join(" ")))
}

/// `10m` as "10 megabytes (10,485,760 bytes)".
fn size(text: &str) -> Option<Said> {
    const UNITS: [(u64, &str, &str); 3] =
        [(1 << 30, "gigabyte", "기가바이트"), (1 << 20, "megabyte", "메가바이트"), (1 << 10, "kilobyte", "킬로바이트")];
    let bytes = offset_of(text)?;
    let exact = grouped(bytes);
    let unit = UNITS.iter().find(|(unit, ..)| bytes >= *unit && bytes.is_multiple_of(*unit));
    Some(match unit {
        Some((unit, en, ko)) => {
            let count = bytes / unit;
            let plural = if count == 1 { "" } else { "s" };
            Said::of_both(
                format!("{} {en}{plural} ({exact} bytes)", grouped(count)),
                format!("{}{ko}({exact}바이트)", grouped(count)),
            )
        }
        None => said!("{} bytes", "{}바이트", exact),
    })
}

/// `10r/s` as "10 requests a second", `1m` as bytes a second.
fn rate(text: &str) -> Option<Said> {
    let count = |text: &str| text.parse::<u64>().ok().map(grouped);
    if let Some(requests) = text.strip_suffix("r/s") {
        return Some(said!("{} requests a second", "초당 요청 {}개", count(requests)?));
    }
    if let Some(requests) = text.strip_suffix("r/m") {
        return Some(said!("{} requests a minute", "분당 요청 {}개", count(requests)?));
    }
    let size = size(text)?;
    Some(Said::of_both(format!("{} a second", size.en()), format!("초당 {}", size.ko())))
}

/// A number with a comma after each three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_said_in_plain_units() {
        for (kind, text, en, ko) in [
            ("TIME", "10m", "10 minutes", "10분"),
            ("TIME", "60", "1 minute", "1분"),
            ("TIME", "90s", "1 minute 30 seconds", "1분 30초"),
            ("TIME", "500ms", "500 milliseconds", "500밀리초"),
            ("TIME", "0", "0 seconds", "0초"),
            ("TIME", "1d", "1 day", "1일"),
            ("SIZE", "10m", "10 megabytes (10,485,760 bytes)", "10메가바이트(10,485,760바이트)"),
            ("SIZE", "1k", "1 kilobyte (1,024 bytes)", "1킬로바이트(1,024바이트)"),
            ("SIZE", "1500", "1,500 bytes", "1,500바이트"),
            ("NAME:SIZE", "one:1m", "1 megabyte (1,048,576 bytes)", "1메가바이트(1,048,576바이트)"),
            ("RATE", "10r/s", "10 requests a second", "초당 요청 10개"),
            ("RATE", "1m", "1 megabyte (1,048,576 bytes) a second", "초당 1메가바이트(1,048,576바이트)"),
        ] {
            let said = in_words(kind, text);
            assert_eq!(said.as_ref().map(|said| (said.en(), said.ko())), Some((en, ko)), "{kind} {text}");
        }
        for (kind, text) in
            [("TIME", "x"), ("SIZE", ""), ("SIZE", "$a"), ("RATE", "r/s"), ("NAME", "10m"), ("NAME:SIZE", "one")]
        {
            assert_eq!(in_words(kind, text), None, "{kind} {text}");
        }
    }
}
