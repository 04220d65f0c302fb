//! The form of `directives.ko.txt`, `variables.txt` and `nginx_only.txt`: blocks with an empty line between them.
//!
//! A block is the English text, a line `---`, and the Korean text. A line `[NAME …]` before it gives the names that the
//! texts belong to.

/// One text in both languages.
pub struct TextPair {
    /// The names that the text belongs to, spaces between them; empty if the English text is the key.
    pub names: &'static str,
    /// The English text.
    pub en: &'static str,
    /// The Korean text.
    pub ko: &'static str,
}

/// The blocks of a file. A part that has not the form of a block is left out; the tests find it.
pub fn read(file: &'static str) -> impl Iterator<Item = TextPair> {
    parts(file).filter_map(block)
}

fn parts(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.trim_end().split("\n\n")
}

fn block(part: &'static str) -> Option<TextPair> {
    let (names, texts) = match part.strip_prefix('[') {
        Some(rest) => rest.split_once("]\n")?,
        None => ("", part),
    };
    let (en, ko) = texts.split_once("\n---\n")?;
    (!en.is_empty() && !ko.is_empty()).then_some(TextPair { names, en, ko })
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeSet;
    use weir_words::{english_in, glossary, is_korean};

    /// The parts of a file that are not blocks.
    fn malformed(file: &'static str) -> Vec<&'static str> {
        parts(file).filter(|part| block(part).is_none()).collect()
    }

    /// Everything that is wrong with the texts of a file, one line each.
    pub fn faults(file: &'static str) -> Vec<String> {
        let mut faults: Vec<String> = malformed(file).iter().map(|part| format!("no block: {part}")).collect();
        for TextPair { en, ko, .. } in read(file) {
            let lacking: Vec<String> = kept_words(en).difference(&kept_words(ko)).cloned().collect();
            let invented: Vec<String> =
                kept_words(ko).difference(&kept_words(en)).filter(|word| word.contains(['_', '$'])).cloned().collect();
            let found = [
                (is_korean(en), "Korean in the English".to_owned()),
                (!is_korean(ko), "no Korean".to_owned()),
                (english_in(ko).is_some(), format!("English in the Korean: {:?}", english_in(ko))),
                (
                    glossary::forbidden_in(ko).is_some(),
                    format!("not in the glossary: {:?}", glossary::forbidden_in(ko)),
                ),
                (!lacking.is_empty(), format!("lacks {lacking:?}")),
                (!invented.is_empty(), format!("names {invented:?}, which the English does not")),
                (quoted(en) != quoted(ko), format!("quotes {:?}, not {:?}", quoted(ko), quoted(en))),
                (en.ends_with('.') != ko.ends_with('.'), "only one of the texts ends with a full stop".to_owned()),
                (impolite(ko).is_some(), format!("no polite ending: {:?}", impolite(ko))),
            ];
            faults.extend(found.into_iter().filter(|(is, _)| *is).map(|(_, fault)| format!("{fault}: {en}\n    {ko}")));
        }
        faults
    }

    /// The words of a text that no language translates: names with `_` or `$`, numbers, and abbreviations, without the `s`
    /// of an English plural.
    fn kept_words(text: &str) -> BTreeSet<String> {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$'));
        let is_kept = |word: &&str| {
            word.contains(|c: char| c == '_' || c == '$' || c.is_ascii_digit())
                || word.chars().filter(char::is_ascii_uppercase).count() >= 2
        };
        let without_plural = |word: &str| match word.strip_suffix('s') {
            Some(one) if one.ends_with(|c: char| c.is_ascii_uppercase()) => one.to_owned(),
            _ => word.to_owned(),
        };
        words.filter(is_kept).map(without_plural).collect()
    }

    /// The texts in backquotes and in double quotes, sorted.
    fn quoted(text: &str) -> Vec<&str> {
        let inside = |mark: char| text.split(mark).skip(1).step_by(2);
        let mut all: Vec<&str> = inside('`').chain(inside('"')).collect();
        all.sort_unstable();
        all
    }

    /// A Korean predicate at the end of a sentence that is not polite.
    fn impolite(korean: &str) -> Option<&str> {
        let mut ends = korean.split(['.', '\n']).map(|sentence| sentence.rsplit(' ').next().unwrap_or_default());
        ends.find(|word| word.ends_with('다') && !word.ends_with("니다"))
    }

    #[test]
    fn a_block_has_names_or_none() {
        let file = "[a b_]\nOne.\n---\n하나입니다.\n\nTwo\nlines.\n---\n두 줄입니다.\n";
        let read: Vec<TextPair> = read(file).collect();
        assert_eq!(read.iter().map(|block| block.names).collect::<Vec<_>>(), ["a b_", ""]);
        assert_eq!((read[1].en, read[1].ko), ("Two\nlines.", "두 줄입니다."));
        assert_eq!(faults(file), [""; 0]);
    }

    #[test]
    fn every_fault_of_a_text_is_found() {
        for (file, fault) in [
            ("One.\n하나입니다.\n", "no block"),
            ("[a\nOne.\n---\n하나입니다.\n", "no block"),
            ("하나.\n---\n하나입니다.\n", "Korean in the English"),
            ("One.\n---\nOne.\n", "no Korean"),
            ("One.\n---\n하나: this is one here.\n", "English in the Korean"),
            ("For $uri.\n---\n변수입니다.\n", "lacks [\"$uri\"]"),
            ("Two URLs and 3.\n---\nURL입니다.\n", "lacks [\"3\"]"),
            ("A path.\n---\n$uri입니다.\n", "names [\"$uri\"]"),
            ("The `a`.\n---\na입니다.\n", "quotes [], not [\"a\"]"),
            ("One\n---\n하나입니다.\n", "only one of the texts"),
            ("It runs.\n---\n실행한다. 끝납니다.\n", "no polite ending"),
        ] {
            let found = faults(file);
            assert!(found.iter().any(|line| line.starts_with(fault)), "{fault}: {found:?}");
        }
        let word = glossary::GLOSSARY.iter().find_map(|term| term.not.first()).unwrap();
        let file: &'static str = format!("One.\n---\n하나: {word}.\n").leak();
        assert!(faults(file).iter().any(|line| line.starts_with("not in the glossary")), "{word}");
    }
}
