//! Texts of a lab in the language of the reader. A run stores them independently of the language.
//!
//! A run stores the name of a text and its values ([`Said`]); so an old run can be printed in either language. The
//! English text is stored beside it, for programs, and for runs that were stored before a text had its name.

use serde::{Deserialize, Deserializer, Serializer};
use serde_json::Value;
use weir_words::Language;
pub use weir_words::{Said, Text, left, right, width};

use crate::texts::TABLES;

/// A text of [`crate::texts`] with values in its holes: `say!(PAIRS, 8)`.
macro_rules! say {
    ($text:ident $(, $hole:expr)* $(,)?) => {
        $crate::texts::$text.with(&[$($crate::said::Said::from($hole)),*])
    };
}
pub(crate) use say;

/// Reads a stored sentence. `None` if it is none, or names an unknown text.
pub fn read(kept: &Value) -> Option<Said> {
    Said::read(kept, TABLES)
}

/// Reads a list of stored sentences. An unknown text is an error: the reader is the program that wrote it.
pub(crate) fn read_list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Said>, D::Error> {
    let read = |kept: &Value| read(kept).ok_or_else(|| serde::de::Error::custom(format!("no text: {kept}")));
    Vec::<Value>::deserialize(from)?.iter().map(read).collect()
}

/// Stores sentences in English, for programs.
pub(crate) fn in_english<'s, S: Serializer>(all: impl IntoIterator<Item = &'s Said>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(all.into_iter().map(Said::en))
}

/// Stores a sentence in English, for programs.
pub(crate) fn one_in_english<S: Serializer>(said: &Said, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(said.en())
}

/// Sets a member of a stored run: the English text as `NAME`, and the text in every language as `NAME_said`.
pub(crate) fn keep(json: &mut Value, name: &str, said: Option<&Said>) {
    json[name] = said.map(Said::en).into();
    json[said_of(name)] = said.map_or(Value::Null, |said| serde_json::json!(said));
}

/// As [`keep`], for a list.
pub(crate) fn keep_list(json: &mut Value, name: &str, all: &[Said]) {
    json[name] = all.iter().map(Said::en).collect();
    json[said_of(name)] = serde_json::json!(all);
}

/// A member of a stored run in this language. Runs store it in English, and beside it as `NAME_said`. Without
/// `NAME_said`, this is the English text.
pub fn shown(json: &Value, name: &str, language: Language) -> String {
    let english = || json[name].as_str().unwrap_or_default().to_owned();
    match language {
        Language::English => english(),
        Language::Korean => read(&json[said_of(name)]).map_or_else(english, |said| said.say(language).to_owned()),
    }
}

/// As [`shown`], for a list.
pub fn shown_list(json: &Value, name: &str, language: Language) -> Vec<String> {
    let said = &json[said_of(name)];
    let one = |(number, text): (usize, &Value)| {
        let english = text.as_str()?;
        let said = read(&said[number]).filter(|said| said.en() == english);
        Some(said.map_or_else(|| english.to_owned(), |said| said.say(language).to_owned()))
    };
    json[name].as_array().into_iter().flatten().enumerate().filter_map(one).collect()
}

fn said_of(name: &str) -> String {
    format!("{name}_said")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texts;
    use serde_json::json;
    use weir_words::check_texts;

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

    /// Texts of other programs in English, and a text with a different hole in Korean.
    const OTHER_HOLES: [Text; 3] = [texts::LOAD_LIMIT, texts::INCOMPLETE, texts::BEFORE_FIRST_LOOK];

    #[test]
    fn every_text_is_there_once_and_in_both_languages() {
        let all: Vec<Text> = TABLES.iter().copied().flatten().copied().collect();
        let is_meant =
            |line: &String| OTHER_HOLES.iter().any(|text| line.starts_with(&format!("{}: other holes", text.name)));
        let wrong: Vec<String> = check_texts(&all).into_iter().filter(|line| !is_meant(line)).collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(all.len() > 100, "{}", all.len());
    }
}
