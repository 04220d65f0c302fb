//! The wishes of the user: from the command line, from `initializationOptions`, from `workspace/didChangeConfiguration`.

use std::path::PathBuf;

use serde_json::Value;
use weir_doctor::{NEWEST, Target, Version};
use weir_words::{Language, Said, say};

use crate::texts;

/// The program that will read the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetWish {
    /// weir, if a file has a directive that only weir has, else the newest nginx.
    #[default]
    Auto,
    /// weir.
    Weir,
    /// nginx, of this version. Without a version, the newest is assumed, and problems of older versions are told too.
    Nginx(Option<Version>),
}

impl TargetWish {
    /// Reads `auto`, `weir`, `nginx` or `nginx 1.18.0`.
    pub fn read(text: &str) -> Option<TargetWish> {
        let mut words = text.split_whitespace();
        let wish = match (words.next()?, words.next()) {
            ("auto", None) => TargetWish::Auto,
            ("weir", None) => TargetWish::Weir,
            ("nginx", None) => TargetWish::Nginx(None),
            ("nginx", Some(version)) => TargetWish::Nginx(Some(Version::read(version)?)),
            _ => return None,
        };
        words.next().is_none().then_some(wish)
    }

    /// The target of a configuration, of which one can ask whether it has a directive that only weir has.
    pub fn of(self, is_weirs_alone: impl FnOnce() -> bool) -> Target {
        match self {
            TargetWish::Auto if is_weirs_alone() => Target::Weir,
            TargetWish::Auto => Target::Nginx(NEWEST),
            TargetWish::Weir => Target::Weir,
            TargetWish::Nginx(version) => Target::Nginx(version.unwrap_or(NEWEST)),
        }
    }

    /// The version that the user has named.
    pub fn told(self) -> Option<Version> {
        match self {
            TargetWish::Nginx(version) => version,
            TargetWish::Auto | TargetWish::Weir => None,
        }
    }
}

/// The wishes of a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LspWish {
    /// The program that will read the files.
    pub target: TargetWish,
    /// The tree in which absolute includes outside of the workspace are looked up.
    pub root: Option<PathBuf>,
    /// The directory of relative includes in a file that no main file includes.
    pub prefix: Option<String>,
    /// The language of the environment.
    pub language: Language,
}

/// How severe a diagnostic is; the first is the most severe. Its number is that of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The server does not start, or does something else than the file says.
    Error = 1,
    /// It does harm under a condition.
    Warning = 2,
    /// It could be written better.
    Information = 3,
    /// It has no effect.
    #[default]
    Hint = 4,
}

impl Severity {
    /// Reads the name of a severity.
    pub fn read(text: &str) -> Option<Severity> {
        Some(match text {
            "error" => Severity::Error,
            "warning" => Severity::Warning,
            "information" => Severity::Information,
            "hint" => Severity::Hint,
            _ => return None,
        })
    }
}

/// The settings in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The wishes, those of the editor over those of the command line.
    pub wish: LspWish,
    /// Less severe diagnostics are not sent.
    pub least: Severity,
}

impl Settings {
    /// The settings before the client says anything.
    pub fn of(wish: LspWish) -> Settings {
        Settings { wish, least: Severity::Hint }
    }

    /// Takes over the settings of a JSON object. `auto` is the language for the word `auto`. Returns a sentence for each value
    /// that is not valid; such a value changes nothing.
    pub fn take(&mut self, value: &Value, auto: Language) -> Vec<Said> {
        let Some(fields) = value.as_object() else { return Vec::new() };
        let mut refused = Vec::new();
        for (name, value) in fields {
            let text = value.as_str().unwrap_or_default();
            let is_taken = match name.as_str() {
                "target" => TargetWish::read(text).map(|target| self.wish.target = target).is_some(),
                "language" => language(text, auto).map(|language| self.wish.language = language).is_some(),
                "severity" => Severity::read(text).map(|least| self.least = least).is_some(),
                "prefix" => directory(value).map(|prefix| self.wish.prefix = prefix).is_some(),
                "root" => directory(value).map(|root| self.wish.root = root.map(PathBuf::from)).is_some(),
                // Editors send their own settings of an extension along.
                _ => true,
            };
            if !is_taken {
                refused.push(say!(texts::BAD_SETTING, name.as_str(), value.to_string()));
            }
        }
        refused
    }
}

fn language(text: &str, auto: Language) -> Option<Language> {
    match text {
        "en" => Some(Language::English),
        "ko" => Some(Language::Korean),
        "auto" => Some(auto),
        _ => None,
    }
}

/// A directory; null and the empty text mean none. `None` for another value.
fn directory(value: &Value) -> Option<Option<String>> {
    match value {
        Value::Null => Some(None),
        Value::String(text) if text.is_empty() => Some(None),
        Value::String(text) if text.starts_with('/') => Some(Some(text.clone())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn targets_are_read() {
        for (text, expected) in [
            ("auto", Some(TargetWish::Auto)),
            ("weir", Some(TargetWish::Weir)),
            ("nginx", Some(TargetWish::Nginx(None))),
            ("nginx 1.18.0", Some(TargetWish::Nginx(Some(Version(1, 18, 0))))),
            ("", None),
            ("nginx x", None),
            ("apache", None),
            ("nginx 1.18.0 x", None),
        ] {
            assert_eq!(TargetWish::read(text), expected, "{text}");
        }
    }

    #[test]
    fn a_value_that_is_not_valid_is_named_and_changes_nothing() {
        let mut settings = Settings::of(LspWish::default());
        let refused = settings.take(
            &json!({"target": "weir", "language": "ko", "severity": "loud", "root": 3, "trace": "off"}),
            Language::English,
        );
        let named: Vec<&str> = refused.iter().map(Said::en).collect();
        assert_eq!(named.len(), 2, "{named:?}");
        assert!(named.iter().any(|text| text.contains("severity")) && named.iter().any(|text| text.contains("root")));
        assert_eq!((settings.wish.target, settings.wish.language), (TargetWish::Weir, Language::Korean));
        assert_eq!(
            settings.take(&json!({"language": "auto", "prefix": "", "root": "/r"}), Language::English),
            Vec::<Said>::new()
        );
        assert_eq!(settings.wish.language, Language::English);
        assert_eq!(settings.wish.root, Some(PathBuf::from("/r")));
        assert_eq!(settings.take(&json!(null), Language::English), Vec::<Said>::new());
    }
}
