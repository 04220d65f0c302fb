//! The language of the output: `--lang`, which every verb takes, or else the environment's.

pub mod help;
pub mod wrong;

use std::ffi::OsString;

use clap::ValueEnum;
use weir_words::Language;

/// The values of `--lang`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Lang {
    /// English.
    En,
    /// Korean.
    Ko,
}

impl Lang {
    fn language(self) -> Language {
        match self {
            Lang::En => Language::English,
            Lang::Ko => Language::Korean,
        }
    }
}

/// The language of a command line, and the command line without `--lang`.
///
/// The flag is removed here because clap itself needs the language: for its help and for its errors. A value that is
/// no language stays, and clap refuses it. After `weir edge` the words are nginx's, and stay too.
pub fn taken(args: Vec<OsString>, variable: impl Fn(&str) -> Option<String>) -> (Language, Vec<OsString>) {
    let mut chosen = None;
    let mut left = Vec::with_capacity(args.len());
    let mut words = args.into_iter();
    left.extend(words.next());
    while let Some(word) = words.next() {
        let text = word.to_str().unwrap_or_default();
        let value = match text {
            "--lang" => words.next(),
            _ => text.strip_prefix("--lang=").map(OsString::from),
        };
        let read = value.as_ref().and_then(|value| Lang::from_str(value.to_str()?, false).ok());
        match (read, text) {
            (Some(lang), _) => chosen = Some(lang),
            (None, "--lang") => left.extend([Some(word), value].into_iter().flatten()),
            (None, _) => {
                let is_others = text == "--" || (text == "edge" && left.len() == 1);
                left.push(word);
                if is_others {
                    left.extend(words.by_ref());
                }
            }
        }
    }
    (chosen.map_or_else(|| Language::of_environment(variable), Lang::language), left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn language(line: &str, environment: &[(&str, &str)]) -> (Language, String) {
        let args = line.split(' ').map(OsString::from).collect();
        let (language, left) = taken(args, |name| {
            let found = environment.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        });
        let left: Vec<String> = left.into_iter().filter_map(|word| word.into_string().ok()).collect();
        (language, left.join(" "))
    }

    #[test]
    fn the_flag_may_stand_anywhere_but_among_nginx_s_flags() {
        use Language::{English, Korean};
        for (line, expect, left) in [
            ("weir --lang ko doctor a.conf", Korean, "weir doctor a.conf"),
            ("weir doctor a.conf --lang=ko", Korean, "weir doctor a.conf"),
            ("weir load --lang ko compare a b", Korean, "weir load compare a b"),
            ("weir lab ab --lang ko --lang en a b", English, "weir lab ab a b"),
            ("weir --lang ko edge -t --lang ko", Korean, "weir edge -t --lang ko"),
            ("weir lab why edge --lang ko", Korean, "weir lab why edge"),
            ("weir load -- --lang ko", English, "weir load -- --lang ko"),
            ("weir --lang fr top", English, "weir --lang fr top"),
            ("weir top --lang", English, "weir top --lang"),
        ] {
            assert_eq!(language(line, &[]), (expect, left.to_owned()), "{line}");
        }
    }

    #[test]
    fn the_environment_decides_where_the_flag_is_missing() {
        use Language::{English, Korean};
        for (environment, expect) in [
            (&[("LANG", "ko_KR.UTF-8")][..], Korean),
            (&[("LANG", "ko")], Korean),
            (&[("LANG", "kok_IN")], English),
            (&[("LANG", "ko_KR.UTF-8"), ("LC_MESSAGES", "en_US.UTF-8")], English),
            (&[("LANG", "ko_KR.UTF-8"), ("LC_MESSAGES", "en_US"), ("LC_ALL", "ko_KR.utf8")], Korean),
            (&[("LANG", "ko_KR.UTF-8"), ("LC_ALL", "C")], English),
            (&[("LANG", "ko_KR.UTF-8"), ("LC_ALL", "")], Korean),
            (&[("LC_ALL", "C"), ("WEIR_LANG", "ko")], Korean),
            (&[("LC_ALL", "ko_KR"), ("WEIR_LANG", "en")], English),
            (&[], English),
        ] {
            assert_eq!(language("weir demo", environment).0, expect, "{environment:?}");
        }
        assert_eq!(language("weir demo --lang en", &[("WEIR_LANG", "ko")]).0, English, "the flag wins");
    }
}
