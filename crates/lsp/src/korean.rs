//! The Korean of the sentences in the tables of directives.
//!
//! The tables have one English sentence or two for each directive (`Directive::doc`). `directives.ko.txt` has the same
//! texts with their Korean. The English text is the key: if it changes, a test fails until its Korean is looked at.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::blocks;

/// Each English text once, and its Korean.
const TEXTS: &str = include_str!("directives.ko.txt");

static KOREAN: LazyLock<HashMap<&str, &str>> =
    LazyLock::new(|| blocks::read(TEXTS).map(|block| (block.en, block.ko)).collect());

/// The Korean of a directive's sentence, `english`, as the tables have it. `None` if no directive has this sentence. A
/// sentence of a directive without effect has no full stop, in both languages.
pub fn doc(english: &str) -> Option<&'static str> {
    KOREAN.get(english).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use weir_edge::family::ALL;

    #[test]
    fn every_sentence_has_its_korean_and_no_korean_is_stale() {
        let docs: BTreeSet<&str> = ALL.known.directives().map(|directive| directive.doc).collect();
        let translated: Vec<&str> = blocks::read(TEXTS).map(|block| block.en).collect();
        let lacking: Vec<&&str> = docs.iter().filter(|english| doc(english).is_none()).collect();
        assert!(lacking.is_empty(), "directives.ko.txt lacks the Korean of:\n{lacking:#?}");
        let stale: Vec<&&str> = translated.iter().filter(|english| !docs.contains(*english)).collect();
        assert!(stale.is_empty(), "no directive has these sentences of directives.ko.txt:\n{stale:#?}");
        assert_eq!(translated.len(), docs.len(), "directives.ko.txt has a text twice");
    }

    #[test]
    fn the_korean_is_plain_and_keeps_names_and_numbers() {
        let faults = blocks::tests::faults(TEXTS);
        assert!(faults.is_empty(), "directives.ko.txt:\n{}", faults.join("\n"));
    }

    #[test]
    fn a_sentence_is_found_by_its_english_text() {
        assert_eq!(doc("Sets a variable."), Some("변수에 값을 넣습니다."));
        assert_eq!(doc("Sets a variable"), None);
    }
}
