//! Sentences of a stored report, in the language of its reader.
//!
//! A report has each sentence twice: in English as `KEY`, for programs, and by its identifier as `KEY_said`. Reports of
//! others, and of older versions, have the English alone.

use serde_json::Value;
use weir_words::{Language, Said};

use crate::texts::TABLES;

/// The sentence with this key.
pub fn said(of: &Value, key: &str) -> Said {
    told(&of[key], &of[format!("{key}_said")])
}

/// The list of sentences with this key.
pub fn said_list(of: &Value, key: &str) -> Vec<Said> {
    let (english, kept) = (of[key].as_array(), &of[format!("{key}_said")]);
    let english = english.into_iter().flatten().enumerate().filter(|(_, one)| one.is_string());
    english.map(|(at, one)| told(one, &kept[at])).collect()
}

/// The English of a report is what it says; an identifier adds the other languages.
fn told(english: &Value, kept: &Value) -> Said {
    let english = english.as_str().unwrap_or_default();
    let korean = Said::read(kept, TABLES).filter(|said| !said.is_empty());
    korean.map_or_else(|| english.into(), |said| Said::of_both(english, said.say(Language::Korean)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texts;
    use serde_json::json;
    use weir_words::say;

    #[test]
    fn a_stored_sentence_has_both_languages_and_one_of_others_has_english() {
        let kept = [say!(texts::STOPPED), say!(texts::CUT, 30_u64)];
        let report = json!({
            "incomplete": [kept[0].en(), kept[1].en()], "incomplete_said": kept,
            "old": ["an agent was lost", 5, "x"], "odd": ["e"], "odd_said": {"text": "no such text"},
        });
        assert_eq!(said_list(&report, "incomplete")[1].say(Language::Korean), kept[1].say(Language::Korean));
        assert_eq!(said_list(&report, "incomplete")[0].en(), texts::STOPPED.en);
        let old: Vec<String> =
            said_list(&report, "old").iter().map(|said| said.say(Language::Korean).to_owned()).collect();
        assert_eq!(old, ["an agent was lost", "x"]);
        assert_eq!(said_list(&report, "odd")[0].say(Language::Korean), "e");
        assert_eq!(said(&report, "none"), "");
    }
}
