//! Texts with holes, in the language of the reader.
//!
//! A [`Text`] is a sentence in every language, with a name. A crate has its texts in one or more tables
//! ([`texts!`](crate::texts)). With the values of its holes a text becomes a [`Said`] ([`say!`](crate::say)). A file
//! stores the name and the values; so a stored sentence can be printed in either language.

use std::fmt;
use std::ops::{Add, AddAssign, Deref};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::language::{Language, Words, particles};

/// Deepest nesting of texts in holes when a stored text is read. A text may use a hole twice, and any user may have
/// written the file.
const DEPTH_MAX: usize = 8;
/// Most bytes of a stored text.
const BYTES_MAX: usize = 64 << 10;

/// A text with holes, in every language.
///
/// Never change the meaning of a name: stored files use the names. A text with another meaning gets another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    /// Its name in stored files.
    pub name: &'static str,
    /// The English text. `{0}`, `{1}` … are its holes.
    pub en: &'static str,
    /// The Korean text, with the same holes in its own order.
    pub ko: &'static str,
}

impl Text {
    /// The text in this language, for a text without holes.
    pub fn say(&self, language: Language) -> &'static str {
        match language {
            Language::English => self.en,
            Language::Korean => self.ko,
        }
    }

    /// The text with its holes filled.
    pub fn with(&self, holes: &[Said]) -> Said {
        Said {
            en: filled(self.en, &|number| holes.get(number).map(|hole| hole.en.as_str())),
            ko: particles(&filled(self.ko, &|number| holes.get(number).map(|hole| hole.ko.as_str()))),
            kept: Some(Box::new(json!({"text": self.name, "holes": holes}))),
        }
    }
}

/// A table of texts: `texts! { PAIRS: "{0} pairs", "{0}쌍"; }`. It makes a constant of each text, and `ALL`.
#[macro_export]
macro_rules! texts {
    ($($name:ident: $en:literal, $ko:literal;)*) => {
        $(
            #[doc = $en]
            pub const $name: $crate::Text =
                $crate::Text { name: stringify!($name), en: $en, ko: $ko };
        )*
        /// All texts of this table.
        pub const ALL: &[$crate::Text] = &[$($name),*];
    };
}

/// A text with values in its holes: `say!(texts::PAIRS, 8)`.
#[macro_export]
macro_rules! say {
    ($text:path $(, $hole:expr)* $(,)?) => {
        $text.with(&[$($crate::Said::from($hole)),*])
    };
}

/// A sentence that stands beside the code that fills it: `said!("{} workers", "워커 {}개", count)`.
#[macro_export]
macro_rules! said {
    ($en:literal, $ko:literal $(, $value:expr)* $(,)?) => {
        $crate::Said::of_both(format!($en $(, $value)*), $crate::particles(&format!($ko $(, $value)*)))
    };
}

/// A sentence in every language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    en: String,
    ko: String,
    /// The stored form, if it is not both sentences: the name of the text, and the values. In a box, so that an error
    /// with a sentence stays small.
    kept: Option<Box<Value>>,
}

impl Said {
    /// The sentence in this language.
    pub fn say(&self, language: Language) -> &str {
        match language {
            Language::English => &self.en,
            Language::Korean => &self.ko,
        }
    }

    /// The sentence in English, as programs read it.
    pub fn en(&self) -> &str {
        &self.en
    }

    /// The sentence in Korean.
    pub fn ko(&self) -> &str {
        &self.ko
    }

    /// Whether the sentence is this text.
    pub fn is(&self, text: Text) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept["text"] == text.name)
    }

    /// A sentence of no table.
    pub fn of_both(en: impl Into<String>, ko: impl Into<String>) -> Said {
        Said { kept: None, en: en.into(), ko: ko.into() }
    }

    /// The sentence without white space at its ends.
    pub fn trimmed(&self) -> Said {
        let trimmed = Said::of_both(self.en.trim(), self.ko.trim());
        // A text without such ends keeps its name.
        if trimmed.en == self.en && trimmed.ko == self.ko { self.clone() } else { trimmed }
    }

    /// Several sentences, joined with a separator.
    pub fn list(all: &[Said], between: &str) -> Said {
        let joined = |language| all.iter().map(|one| one.say(language)).collect::<Vec<_>>().join(between);
        Said {
            en: joined(Language::English),
            ko: joined(Language::Korean),
            kept: Some(Box::new(json!({"list": all, "between": between}))),
        }
    }

    /// Reads a stored sentence; `tables` has the texts that it may name. `None` if it has another form, names an unknown
    /// text, or is longer than any real text.
    pub fn read(kept: &Value, tables: &[&[Text]]) -> Option<Said> {
        Said::read_within(kept, tables, DEPTH_MAX)
    }

    fn read_within(kept: &Value, tables: &[&[Text]], depth: usize) -> Option<Said> {
        let inner = depth.checked_sub(1)?;
        let all = |list: &Value| list.as_array()?.iter().map(|one| Said::read_within(one, tables, inner)).collect();
        let said = match (kept.as_str(), kept["text"].as_str(), kept["between"].as_str()) {
            (Some(word), ..) => Said::from(word),
            (_, Some(name), _) => {
                let holes: Option<Vec<Said>> = all(&kept["holes"]);
                tables.iter().copied().flatten().find(|text| text.name == name)?.with(&holes?)
            }
            (.., Some(between)) => {
                let list: Option<Vec<Said>> = all(&kept["list"]);
                Said::list(&list?, between)
            }
            _ => Said::of_both(kept["en"].as_str()?, kept["ko"].as_str()?),
        };
        (said.en.len() <= BYTES_MAX && said.ko.len() <= BYTES_MAX).then_some(said)
    }
}

/// The empty text.
impl Default for Said {
    fn default() -> Said {
        Said::from("")
    }
}

/// Code that searches for words searches the English text.
impl Deref for Said {
    type Target = str;

    fn deref(&self) -> &str {
        &self.en
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.en)
    }
}

/// So that it can be the reason why clap refuses a value.
impl std::error::Error for Said {}

impl Serialize for Said {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &self.kept {
            Some(kept) => kept.serialize(to),
            None => json!({"en": self.en, "ko": self.ko}).serialize(to),
        }
    }
}

/// Reads a sentence that names no text.
impl<'de> Deserialize<'de> for Said {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Said, D::Error> {
        let kept = Value::deserialize(from)?;
        Said::read(&kept, &[]).ok_or_else(|| D::Error::custom("no sentence"))
    }
}

/// Joins two sentences.
impl Add<Said> for Said {
    type Output = Said;

    fn add(mut self, more: Said) -> Said {
        self += more;
        self
    }
}

impl AddAssign<Said> for Said {
    fn add_assign(&mut self, more: Said) {
        self.en.push_str(&more.en);
        self.ko.push_str(&more.ko);
        self.kept = None;
    }
}

impl PartialEq<&str> for Said {
    fn eq(&self, other: &&str) -> bool {
        self.en == *other
    }
}

impl PartialEq<str> for Said {
    fn eq(&self, other: &str) -> bool {
        self.en == other
    }
}

impl PartialEq<String> for Said {
    fn eq(&self, other: &String) -> bool {
        self.en == *other
    }
}

/// Names and values are the same in every language. Sentences are not, so a sentence is a [`Text`].
impl From<&str> for Said {
    fn from(word: &str) -> Said {
        Said { en: word.to_owned(), ko: word.to_owned(), kept: Some(Box::new(json!(word))) }
    }
}

impl From<&&str> for Said {
    fn from(word: &&str) -> Said {
        Said::from(*word)
    }
}

impl From<String> for Said {
    fn from(word: String) -> Said {
        Said::from(word.as_str())
    }
}

impl From<&String> for Said {
    fn from(word: &String) -> Said {
        Said::from(word.as_str())
    }
}

impl From<Text> for Said {
    fn from(text: Text) -> Said {
        text.with(&[])
    }
}

impl From<Words> for Said {
    fn from(words: Words) -> Said {
        Said::of_both(words.en, words.ko)
    }
}

impl From<&Said> for Said {
    fn from(said: &Said) -> Said {
        said.clone()
    }
}

macro_rules! from_numbers {
    ($($number:ty),*) => {
        $(impl From<$number> for Said {
            fn from(number: $number) -> Said {
                Said::from(number.to_string())
            }
        }

        impl From<&$number> for Said {
            fn from(number: &$number) -> Said {
                Said::from(number.to_string())
            }
        })*
    };
}
from_numbers!(u16, u32, u64, usize, i64, f64);

/// A text padded with spaces on its right. A Korean syllable takes two columns.
pub fn left(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// As [`left`], but padded on its left.
pub fn right(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// The number of columns of a text.
pub fn width(text: &str) -> usize {
    text.chars().map(|c| if ('가'..='힣').contains(&c) { 2 } else { 1 }).sum()
}

/// A text with its holes filled. Holes in the inserted values are not filled.
pub fn filled<'h>(text: &str, hole: &dyn Fn(usize) -> Option<&'h str>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let numbered = after.split_once('}').and_then(|(number, after)| Some((number.parse().ok()?, after)));
        match numbered {
            Some((number, after)) => {
                out.push_str(hole(number).unwrap_or_default());
                rest = after;
            }
            None => {
                out.push('{');
                rest = after;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    texts! {
        STOPPED: "stopped before its end", "끝나기 전에 중단되었습니다";
        IN_A_ROW: "{0} ({1} times in a row)", "{0} ({1}회 연속)";
        TWICE: "to write: {0}; to undo: {0}", "쓰려면: {0}; 되돌리려면: {0}";
    }

    fn read(kept: &Value) -> Option<Said> {
        Said::read(kept, &[&[TWICE], ALL])
    }

    #[test]
    fn what_is_kept_is_said_in_both_languages() {
        let inner = say!(STOPPED);
        let said = say!(IN_A_ROW, &inner, 3u32);
        assert_eq!(said, "stopped before its end (3 times in a row)");
        assert_eq!(said.say(Language::Korean), "끝나기 전에 중단되었습니다 (3회 연속)");
        let kept = serde_json::to_value(&said).unwrap_or_default();
        assert_eq!(kept, json!({"text": "IN_A_ROW", "holes": [{"text": "STOPPED", "holes": []}, "3"]}));
        let both = Said::of_both("a", "가");
        for one in [said, Said::from("p95"), Said::list(&[inner, both.clone()], "; "), both] {
            assert_eq!(read(&serde_json::to_value(&one).unwrap_or_default()), Some(one));
        }
        for strange in [json!(null), json!(3), json!({"text": "NO_SUCH", "holes": []}), json!({"en": "x"})] {
            assert_eq!(read(&strange), None, "{strange}");
        }
        // A text that uses a hole twice doubles its content. A hostile file could repeat that many times.
        let deeper = |inner: Value| json!({"text": "TWICE", "holes": [inner]});
        assert!(read(&(0..6).fold(json!("x"), |inner, _| deeper(inner))).is_some());
        assert_eq!(read(&(0..60).fold(json!("x"), |inner, _| deeper(inner))), None);
        assert_eq!(read(&json!("x".repeat(BYTES_MAX + 1))), None);
    }

    #[test]
    fn a_sentence_of_no_table_goes_to_another_program_and_comes_back() {
        let sum = said!("{} workers", "워커 {}개", 2) + Said::of_both("!", ".");
        let text = serde_json::to_string(&sum).unwrap_or_default();
        assert_eq!(text, r#"{"en":"2 workers!","ko":"워커 2개."}"#);
        assert_eq!(serde_json::from_str::<Said>(&text).ok(), Some(sum));
        // A text of a table, and no text at all.
        for strange in [r#"{"text": "STOPPED", "holes": []}"#, r#"{"en": "x"}"#, "3"] {
            assert!(serde_json::from_str::<Said>(strange).is_err(), "{strange}");
        }
    }

    #[test]
    fn what_stands_in_a_hole_is_not_a_hole() {
        assert_eq!(filled("{1} {0} {x} {", &|number| ["{1}", "b"].get(number).copied()), "b {1} {x} {");
        assert_eq!((left("풀", 4), right("풀", 4), width("p95 판정")), ("풀  ".into(), "  풀".into(), 8));
    }
}
