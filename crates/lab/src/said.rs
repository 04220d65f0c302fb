//! Texts of a lab in the language of the reader. A run stores them independently of the language.
//!
//! A run stores the name of a text and its values ([`Said`]); so an old run can be printed in either language. The
//! English text is stored beside it, for programs, and for runs that were stored before a text had its name.

use serde_json::Value;
use weir_conf::language::Language;
pub use weir_conf::said::{Said, Text, left, right, width};

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
    use weir_conf::said::check_texts;

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
