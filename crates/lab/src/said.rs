//! Texts of a lab in the language of the reader. A run stores them independently of the language.
//!
//! A [`Text`] is a sentence in every language, with a name in [`crate::texts`]. With the values of its holes it
//! becomes a [`Said`]. A run stores the name and the values; so an old run can be printed in either language. The
//! English text is stored beside it, for programs, and for runs that were stored before a text had its name.

use std::fmt;
use std::ops::Deref;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use weir_conf::language::{Language, particles};

use crate::texts::ALL;

/// Deepest nesting of texts in holes when a stored text is read. A text may use a hole twice, and any user may have
/// written the file.
const DEPTH_MAX: usize = 8;
/// Most bytes of a stored text.
const BYTES_MAX: usize = 64 << 10;

/// A text with holes, in every language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    /// Its name in stored runs.
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
            kept: json!({"text": self.name, "holes": holes}),
        }
    }
}

/// A text with values in its holes: `say!(PAIRS, 8)`.
macro_rules! say {
    ($text:ident $(, $hole:expr)* $(,)?) => {
        $crate::texts::$text.with(&[$($crate::said::Said::from($hole)),*])
    };
}
pub(crate) use say;

/// A sentence in every language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    en: String,
    ko: String,
    /// The stored form: the name of the text, and the values.
    kept: Value,
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

    /// A sentence from another part of weir that supplies every language, such as a rule of the doctor.
    pub fn of_both(en: impl Into<String>, ko: impl Into<String>) -> Said {
        let (en, ko) = (en.into(), ko.into());
        Said { kept: json!({"en": en, "ko": ko}), en, ko }
    }

    /// Several sentences, joined with a separator.
    pub fn list(all: &[Said], between: &str) -> Said {
        let joined = |language| all.iter().map(|one| one.say(language)).collect::<Vec<_>>().join(between);
        Said {
            en: joined(Language::English),
            ko: joined(Language::Korean),
            kept: json!({"list": all, "between": between}),
        }
    }

    /// Reads a stored sentence. `None` if it has another form, names an unknown text, or is longer than any real text.
    pub fn read(kept: &Value) -> Option<Said> {
        Said::read_within(kept, DEPTH_MAX)
    }

    fn read_within(kept: &Value, depth: usize) -> Option<Said> {
        let inner = depth.checked_sub(1)?;
        let all = |list: &Value| list.as_array()?.iter().map(|one| Said::read_within(one, inner)).collect();
        let said = match (kept.as_str(), kept["text"].as_str(), kept["between"].as_str()) {
            (Some(word), ..) => Said::from(word),
            (_, Some(name), _) => {
                let holes: Option<Vec<Said>> = all(&kept["holes"]);
                ALL.iter().find(|text| text.name == name)?.with(&holes?)
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

impl Serialize for Said {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.kept.serialize(to)
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

/// Names and values are the same in every language. Sentences are not, so a sentence is a [`Text`].
impl From<&str> for Said {
    fn from(word: &str) -> Said {
        Said { en: word.to_owned(), ko: word.to_owned(), kept: json!(word) }
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
        })*
    };
}
from_numbers!(u32, u64, usize, f64);

/// A member of a stored run in this language. Runs store it in English, and beside it as `NAME_said`. Without
/// `NAME_said`, this is the English text.
pub fn shown(json: &Value, name: &str, language: Language) -> String {
    let english = || json[name].as_str().unwrap_or_default().to_owned();
    match language {
        Language::English => english(),
        Language::Korean => Said::read(&json[said_of(name)]).map_or_else(english, |said| said.ko),
    }
}

/// As [`shown`], for a list.
pub fn shown_list(json: &Value, name: &str, language: Language) -> Vec<String> {
    let said = &json[said_of(name)];
    let one = |(number, text): (usize, &Value)| {
        let english = text.as_str()?;
        let said = Said::read(&said[number]).filter(|said| said.en == english);
        Some(said.map_or_else(|| english.to_owned(), |said| said.say(language).to_owned()))
    };
    json[name].as_array().into_iter().flatten().enumerate().filter_map(one).collect()
}

fn said_of(name: &str) -> String {
    format!("{name}_said")
}

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
fn filled<'h>(text: &str, hole: &dyn Fn(usize) -> Option<&'h str>) -> String {
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
pub(crate) mod tests {
    use super::*;
    use crate::texts;

    #[test]
    fn what_is_kept_is_said_in_both_languages() {
        let inner = say!(STOPPED);
        let said = say!(TIMES_IN_A_ROW, &inner, 3u32);
        assert_eq!(said, "stopped before its end (3 times in a row)");
        assert_eq!(said.say(Language::Korean), "끝나기 전에 중단되었습니다 (3회 연속)");
        let kept = serde_json::to_value(&said).unwrap_or_default();
        assert_eq!(kept, json!({"text": "TIMES_IN_A_ROW", "holes": [{"text": "STOPPED", "holes": []}, "3"]}));
        let both = Said::of_both("a", "가");
        for one in [said, Said::from("p95"), Said::list(&[inner, both.clone()], "; "), both] {
            assert_eq!(Said::read(&serde_json::to_value(&one).unwrap_or_default()), Some(one));
        }
        for strange in [json!(null), json!(3), json!({"text": "NO_SUCH", "holes": []}), json!({"en": "x"})] {
            assert_eq!(Said::read(&strange), None, "{strange}");
        }
        // A text that uses a hole twice doubles its content. A hostile file could repeat that many times.
        let deeper = |inner: Value| json!({"text": "WRITE_IT", "holes": [inner]});
        assert!(Said::read(&(0..6).fold(json!("x"), |inner, _| deeper(inner))).is_some());
        assert_eq!(Said::read(&(0..60).fold(json!("x"), |inner, _| deeper(inner))), None);
        assert_eq!(Said::read(&json!("x".repeat(BYTES_MAX + 1))), None);
    }

    #[test]
    fn a_run_without_names_stays_english() {
        let old = json!({"text": "a", "list": ["b", "c"], "list_said": [{"en": "b", "ko": "나"}]});
        assert_eq!(shown(&old, "text", Language::Korean), "a");
        assert_eq!(shown_list(&old, "list", Language::Korean), ["나", "c"]);
        assert_eq!(shown_list(&old, "list", Language::English), ["b", "c"]);
        // Stored names that do not match their English sentence are ignored.
        let other = json!({"list": ["x"], "list_said": [{"en": "b", "ko": "나"}]});
        assert_eq!(shown_list(&other, "list", Language::Korean), ["x"]);
    }

    #[test]
    fn what_stands_in_a_hole_is_not_a_hole() {
        assert_eq!(filled("{1} {0} {x} {", &|number| ["{1}", "b"].get(number).copied()), "b {1} {x} {");
        assert_eq!((left("풀", 4), right("풀", 4), width("p95 판정")), ("풀  ".into(), "  풀".into(), 8));
    }

    pub(crate) fn is_korean(text: &str) -> bool {
        text.chars().any(|c| ('가'..='힣').contains(&c))
    }

    /// Vocabulary of several words that stays in English.
    const KEPT: [&str; 8] = [
        "no verdict",
        "not comparable",
        "no errors",
        "as expected",
        "no difference",
        "fewer errors",
        "more errors",
        "no interaction",
    ];

    /// Three English words in a row that are neither a command nor vocabulary.
    pub(crate) fn english_in(korean: &str) -> Option<String> {
        let text = KEPT.iter().fold(korean.to_owned(), |text, kept| text.replace(kept, ";"));
        let is_word = |word: &&str| word.len() > 1 && word.chars().all(|c| c.is_ascii_lowercase() || c == '\'');
        for part in text.split([';', ':', ',', '(', ')', '\n']) {
            // A command stays as the user types it.
            let words: Vec<&str> = part.split_whitespace().collect();
            let found = words.windows(3).find(|three| !part.contains("weir ") && three.iter().all(is_word));
            if let Some(three) = found {
                return Some(three.join(" "));
            }
        }
        None
    }

    /// Texts of other programs in English, and a text with a different hole in Korean.
    const OTHER_HOLES: [Text; 3] = [texts::LOAD_LIMIT, texts::INCOMPLETE, texts::BEFORE_FIRST_LOOK];

    fn holes(text: &str) -> Vec<usize> {
        let mut found: Vec<usize> =
            text.split('{').skip(1).filter_map(|part| part.split_once('}')?.0.parse().ok()).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    #[test]
    fn every_text_is_there_once_and_in_both_languages() {
        let mut wrong = Vec::new();
        for (number, text) in ALL.iter().enumerate() {
            let (en, ko) = (text.en, text.ko);
            let without = (0..10).fold(en.to_owned(), |text, number| text.replace(&format!("{{{number}}}"), ""));
            // Korean may replace a single word between two holes by a sign.
            let words = without.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).count();
            let is_sign = words == 1 && !ko.chars().any(char::is_alphabetic);
            let is_same = OTHER_HOLES.contains(text) || holes(en) == holes(ko);
            let lacks = [
                (words > 0 && !is_sign && !is_korean(ko), "no Korean"),
                (!is_same, "other holes"),
                (english_in(ko).is_some(), "English in the Korean"),
                (ALL.iter().skip(number + 1).any(|other| other.name == text.name), "a name twice"),
                (is_korean(en), "Korean in the English"),
            ];
            wrong.extend(lacks.iter().filter(|(is, _)| *is).map(|(_, why)| format!("{}: {why}: {ko}", text.name)));
            let strange = weir_conf::language::GLOSSARY.iter().flat_map(|(_, others)| *others);
            wrong.extend(strange.filter(|other| ko.contains(**other)).map(|other| format!("{}: {other}", text.name)));
            if ko.ends_with("한다") || ko.ends_with("했다") || ko.ends_with("이다") || ko.ends_with("된다") {
                wrong.push(format!("{}: no polite ending: {ko}", text.name));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(ALL.len() > 100, "{}", ALL.len());
        assert_eq!(english_in("판정: the change has no"), Some("the change has".to_owned()));
        assert_eq!(english_in("no verdict (판정 없음): weir lab undo 7"), None);
    }
}
