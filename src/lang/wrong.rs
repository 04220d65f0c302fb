//! Korean errors of the command line, from the parts of clap's errors.

use std::error::Error;
use std::fmt;
use std::net::AddrParseError;
use std::num::{ParseFloatError, ParseIntError};
use std::ops::{Bound, RangeBounds};
use std::str::FromStr;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use weir_words::{Said, particles, said};

use super::help;

/// Reads a whole number of this range.
pub fn within<T: FromStr + fmt::Display + PartialOrd>(
    range: impl RangeBounds<T> + Clone,
) -> impl Fn(&str) -> Result<T, Said> + Clone {
    move |text| {
        let end = |bound: Bound<&T>| match bound {
            Bound::Included(end) | Bound::Excluded(end) => end.to_string(),
            Bound::Unbounded => String::new(),
        };
        let (least, most) = (end(range.start_bound()), end(range.end_bound()));
        text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| {
            said!("write a whole number from {least} to {most}", "{least}부터 {most}까지의 정수를 쓰세요")
        })
    }
}

/// The Korean text of an error. `None` if it is no error: help, or the version.
pub fn korean(error: &clap::Error) -> Option<String> {
    let sentence = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            return None;
        }
        ErrorKind::UnknownArgument => format!("'{}' 옵션은 없습니다", text(error, ContextKind::InvalidArg)),
        ErrorKind::InvalidSubcommand => format!("'{}' 명령은 없습니다", text(error, ContextKind::InvalidSubcommand)),
        ErrorKind::MissingSubcommand => {
            format!("명령을 지정하세요: {}", text(error, ContextKind::ValidSubcommand))
        }
        ErrorKind::MissingRequiredArgument => {
            format!("필요한 인자를 지정하세요: {}", text(error, ContextKind::InvalidArg))
        }
        ErrorKind::ArgumentConflict => conflict(error),
        ErrorKind::NoEquals => format!("{} 뒤에는 =와 값을 쓰세요", flag(error)),
        ErrorKind::TooManyValues => format!("{}에 쓸 수 있는 값보다 많습니다", flag(error)),
        ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues => {
            format!("{}의 값의 개수가 맞지 않습니다", flag(error))
        }
        ErrorKind::InvalidUtf8 => "인자가 UTF-8이 아닙니다".to_owned(),
        _ if text(error, ContextKind::InvalidValue).is_empty() => format!("{}에 값을 지정하세요", flag(error)),
        _ => value(error),
    };
    let mut lines = format!("오류: {}\n", particles(&sentence));
    for (kind, name) in [
        (ContextKind::SuggestedArg, "비슷한 옵션"),
        (ContextKind::SuggestedSubcommand, "비슷한 명령"),
        (ContextKind::SuggestedValue, "비슷한 값"),
        (ContextKind::ValidValue, "가능한 값"),
    ] {
        let found = text(error, kind);
        if !found.is_empty() {
            lines.push_str(&format!("  {name}: {found}\n"));
        }
    }
    if let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) {
        lines.push_str(&format!("\n{}\n", help::usage(&usage.to_string())));
    }
    Some(lines + "\n자세한 내용은 '--help'로 볼 수 있습니다.\n")
}

fn conflict(error: &clap::Error) -> String {
    let (this, other) = (text(error, ContextKind::InvalidArg), text(error, ContextKind::PriorArg));
    if this == other || other.is_empty() {
        return format!("'{this}'은(는) 한 번만 쓸 수 있습니다");
    }
    format!("'{this}'은(는) 다음과 함께 쓸 수 없습니다: {other}")
}

/// A value that is refused, and the reason.
fn value(error: &clap::Error) -> String {
    let what = format!("{}에 쓸 수 없는 값입니다: '{}'", flag(error), text(error, ContextKind::InvalidValue));
    let Some(source) = error.source() else { return what };
    let reason = match source.downcast_ref::<Said>() {
        Some(wrong) => wrong.ko().to_owned(),
        None if source.is::<ParseIntError>() => "정수를 쓰세요".to_owned(),
        None if source.is::<ParseFloatError>() => "수를 쓰세요".to_owned(),
        None if source.is::<AddrParseError>() => "IP:포트 형식으로 쓰세요".to_owned(),
        None => source.to_string(),
    };
    format!("{what} ({reason})")
}

fn flag(error: &clap::Error) -> String {
    format!("'{}'", text(error, ContextKind::InvalidArg))
}

/// A part of the error; a list is joined.
fn text(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(list)) => list.join(", "),
        Some(ContextValue::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Cli;
    use clap::{CommandFactory, FromArgMatches};

    fn said(line: &str) -> String {
        let command = help::korean(Cli::command());
        let outcome = command.try_get_matches_from(line.split(' ')).and_then(|found| Cli::from_arg_matches(&found));
        korean(&outcome.err().unwrap()).unwrap()
    }

    #[test]
    fn each_kind_of_error_is_told_in_korean() {
        for (line, parts) in [
            (
                "weir doctor --onyl x",
                &["오류: '--onyl' 옵션은 없습니다", "비슷한 옵션: --only", "사용법: weir doctor"][..],
            ),
            (
                "weir docter",
                &["오류: 'docter' 명령은 없습니다", "비슷한 명령: adopt, doctor", "사용법: weir [옵션] [명령]"],
            ),
            ("weir purge", &["오류: 필요한 인자를 지정하세요: <URL>"]),
            (
                "weir purge u --timeout 601",
                &["'--timeout <S>'에 쓸 수 없는 값입니다: '601' (1부터 600까지의 정수를 쓰세요)"],
            ),
            ("weir load u -R much", &["'--rate <N>'에 쓸 수 없는 값입니다: 'much' (수를 쓰세요)"]),
            ("weir load u --summary v3", &["'--summary <FORM>'에 쓸 수 없는 값입니다: 'v3'", "가능한 값: v1, v2"]),
            (
                "weir lab why a --good ok",
                &[
                    "'--good <LIST>'에 쓸 수 없는 값입니다: 'ok' (ok: 2xx,3xx,404처럼 종류(2xx)나 상태 코드(404)를 쓰세요)",
                ],
            ),
            ("weir lab why a --probe ftp=x", &["--probe ftp=x: KIND=WHERE 형식으로 쓰세요"]),
            ("weir load u --rate", &["'--rate <N>'에 값을 지정하세요"]),
            ("weir load u --poisson", &["필요한 인자를 지정하세요: --rate <N>"]),
            ("weir purge u --all --tag a", &["'--all'은 다음과 함께 쓸 수 없습니다: --tag <TAG>..."]),
            (
                "weir lab ab a b --block soon",
                &["'--block <TIME>'에 쓸 수 없는 값입니다: 'soon' (20s, 5m처럼 시간을 쓰세요)"],
            ),
        ] {
            let said = said(line);
            for part in parts {
                assert!(said.contains(part), "{line}: {part}\n{said}");
            }
            assert!(!said.contains("Usage") && !said.contains("error"), "{said}");
        }
    }

    #[test]
    fn help_is_no_error() {
        let command = help::korean(Cli::command());
        assert_eq!(korean(&command.try_get_matches_from(["weir", "lab", "--help"]).err().unwrap()), None);
    }
}
