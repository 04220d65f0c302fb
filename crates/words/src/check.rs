//! Checks of a table of texts, for the tests of the crates that have one.

use crate::glossary::GLOSSARY;
use crate::said::Text;

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

/// Sentence endings that are not polite.
const IMPOLITE: [&str; 4] = ["한다", "했다", "이다", "된다"];

/// Everything that is wrong with a table of texts, one line each, beginning with the name of the text: a text without
/// Korean, other holes in the Korean, English in the Korean and Korean in the English, a name that occurs twice, a
/// word that the glossary replaces, an impolite ending.
pub fn check_texts(texts: &[Text]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        let (en, ko) = (text.en, text.ko);
        let without = (0..10).fold(en.to_owned(), |text, number| text.replace(&format!("{{{number}}}"), ""));
        // Korean may replace a single word between two holes by a sign.
        let words = without.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).count();
        let is_sign = words == 1 && !ko.chars().any(char::is_alphabetic);
        let lacks = [
            (words > 0 && !is_sign && !is_korean(ko) && !is_of_capitals(ko), "no Korean"),
            (holes(en) != holes(ko), "other holes"),
            (english_in(ko).is_some(), "English in the Korean"),
            (texts.iter().skip(number + 1).any(|other| other.name == text.name), "a name twice"),
            (is_korean(en), "Korean in the English"),
            (IMPOLITE.iter().any(|ending| ko.ends_with(ending)), "no polite ending"),
        ];
        wrong.extend(lacks.iter().filter(|(is, _)| *is).map(|(_, why)| format!("{}: {why}: {ko}", text.name)));
        let strange = GLOSSARY.iter().flat_map(|term| term.not.iter().map(|other| (term.ko, other)));
        let found = strange.filter(|(_, other)| ko.contains(**other));
        wrong.extend(found.map(|(word, other)| format!("{}: {other}, not {word}: {ko}", text.name)));
    }
    wrong
}

/// Whether the words of a text are abbreviations alone, such as `CPU`, which Korean keeps.
fn is_of_capitals(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).peekable();
    words.peek().is_some() && words.all(|word| word.len() >= 2 && word.chars().all(|c| c.is_ascii_uppercase()))
}

/// True if a text has a Korean syllable.
pub fn is_korean(text: &str) -> bool {
    text.chars().any(|c| ('가'..='힣').contains(&c))
}

/// Three English words in a row that are neither a command of weir nor vocabulary. `None` if there are none.
pub fn english_in(korean: &str) -> Option<String> {
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

/// The numbers of the holes of a text, each once.
fn holes(text: &str) -> Vec<usize> {
    let mut found: Vec<usize> =
        text.split('{').skip(1).filter_map(|part| part.split_once('}')?.0.parse().ok()).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_of_a_text_is_found() {
        let text = |name, en, ko| Text { name, en, ko };
        let good = [
            text("A", "{0} and {1}", "{1} 및 {0}"),
            text("B", "{0} to {1}", "{0} ~ {1}"),
            text("C", "{0}", "{0}"),
            text("D", "{0} on CPU {1}", "{0}: CPU {1}"),
        ];
        assert_eq!(check_texts(&good), Vec::<String>::new());
        for (en, ko, wrong) in [
            ("a sentence", "a sentence", "A: no Korean"),
            ("{0} runs", "{1}회 실행", "A: other holes"),
            ("x", "판정: the change has no", "A: English in the Korean"),
            ("가", "가", "A: Korean in the English"),
            ("the origin", "원본 서버", "A: 원본 서버, not 오리진"),
            ("it runs", "실행한다", "A: no polite ending"),
        ] {
            let found = check_texts(&[text("A", en, ko)]);
            assert!(found.iter().any(|line| line.starts_with(wrong)), "{wrong}: {found:?}");
        }
        assert_eq!(check_texts(&[text("A", "a b", "가"), text("A", "b", "나")]), ["A: a name twice: 가"]);
        assert_eq!(english_in("판정: the change has no"), Some("the change has".to_owned()));
        assert_eq!(english_in("no verdict (판정 없음): weir lab undo 7"), None);
    }
}
