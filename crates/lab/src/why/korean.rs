//! What is said, in Korean: sentences are found again by their English, so that rules say each once, and a run that was kept can be
//! printed in either language. What is not in the table stays as it is: names, numbers, directives, what other programs said.

mod phrases;

use phrases::{LABELS, PHRASES};

/// Longer texts are not looked up.
const TEXT_MAX: usize = 4096;

/// In Korean, if the table has it. Holes, which are `{}` in English, are `{1}`, `{2}` … in Korean, in the order of the English; what
/// stands in them is looked up as well. Of several that fit, the one
/// with most words of its own at the text's beginning; of those, the one that says most by itself.
pub fn say(text: &str) -> Option<String> {
    if text.len() > TEXT_MAX {
        return None;
    }
    let fits = PHRASES.iter().filter_map(|(en, ko)| Some((begins(en), en.len(), ko, holes(en, text)?)));
    // A sentence is told by how it begins: what begins with a hole would take any beginning for a name.
    let (_, _, ko, holes) = fits.max_by_key(|(begins, length, _, holes)| (*begins, length - 2 * holes.len()))?;
    let mut said = (*ko).to_owned();
    for (number, hole) in holes.iter().enumerate() {
        // A hole is shorter than what it is in: this ends.
        let inner = say(hole).unwrap_or_else(|| (*hole).to_owned());
        said = said.replace(&format!("{{{}}}", number + 1), &inner);
    }
    Some(said)
}

/// As [`say`]; what the table lacks stays as it is.
pub fn or_as_it_is(text: &str) -> String {
    say(text).unwrap_or_else(|| text.to_owned())
}

/// The label of a line.
pub fn label(label: &str) -> &str {
    LABELS.iter().find(|(en, _)| *en == label).map_or(label, |(_, ko)| ko)
}

/// A label with spaces up to a number of columns: a syllable takes two.
pub fn padded(label: &str, columns: usize) -> String {
    let width: usize = label.chars().map(|c| if ('가'..='힣').contains(&c) { 2 } else { 1 }).sum();
    format!("{label}{}", " ".repeat(columns.saturating_sub(width)))
}

/// Letters before the first hole.
fn begins(phrase: &str) -> usize {
    phrase.find("{}").unwrap_or(phrase.len())
}

/// What stands in the holes of a phrase, if a text is of its form.
fn holes<'a>(phrase: &str, text: &'a str) -> Option<Vec<&'a str>> {
    let Some((first, rest)) = phrase.split_once("{}") else { return (phrase == text).then(Vec::new) };
    let mut found = Vec::new();
    let mut left = text.strip_prefix(first)?;
    let mut parts = rest.split("{}").peekable();
    while let Some(part) = parts.next() {
        let at = match (parts.peek(), part) {
            (None, "") => left.len(),
            (None, part) => left.strip_suffix(part)?.len(),
            (Some(_), part) => left.find(part)?,
        };
        let (hole, after) = left.split_at(at);
        if hole.is_empty() {
            return None;
        }
        found.push(hole);
        left = after.strip_prefix(part)?;
    }
    left.is_empty().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::rule::Segment;
    use crate::why::rules;
    use crate::why::say::WORDS;
    use crate::why::signals::Signals;

    fn is_korean(text: &str) -> bool {
        text.chars().any(|c| ('가'..='힣').contains(&c))
    }

    #[test]
    fn every_rule_speaks_korean() {
        let mut lacking = Vec::new();
        for rule in rules::all() {
            let mut signals = Signals::quiet();
            (rule.fires)(&mut signals);
            let found = (rule.check)(&signals).unwrap_or_default();
            let mut texts = vec![rule.says.to_owned(), found.subject, found.knob, found.expect];
            for (name, text) in found.evidence {
                texts.push(text);
                if name != "cpu" && !is_korean(label(name)) {
                    lacking.push(format!("{}: label {name}", rule.id));
                }
            }
            let is_lacking = |text: &String| !say(text).is_some_and(|ko| is_korean(&ko) && !ko.contains("{1}"));
            lacking.extend(texts.into_iter().filter(is_lacking).map(|text| format!("{}: {text}", rule.id)));
        }
        for segment in Segment::ALL {
            lacking.extend(say(segment.name()).is_none().then(|| segment.name().to_owned()));
        }
        assert!(lacking.is_empty(), "no Korean for:\n{}", lacking.join("\n"));
    }

    /// Every sentence is found again as itself, alone and within each of the verdicts.
    #[test]
    fn a_sentence_is_never_taken_for_another() {
        let filled = |text: &str, hole: &dyn Fn(usize) -> String, from: usize| -> String {
            let count = text.matches("{}").count().max(from);
            (0..count).fold(text.to_owned(), |text, number| {
                let text = text.replacen("{}", &hole(number), 1);
                text.replace(&format!("{{{}}}", number + 1), &hole(number))
            })
        };
        let value = |number: usize| format!("{}", 70 + number);
        let mut wrong = Vec::new();
        for (en, ko) in PHRASES.iter().filter(|(en, _)| *en != "{}") {
            let holes = en.matches("{}").count();
            let (english, korean) = (filled(en, &value, 0), filled(ko, &value, holes));
            if say(&english).as_deref() != Some(&korean) {
                wrong.push(format!("{english}\n  said {:?}\n  not  {korean}", say(&english)));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        let offered = "NOT SATURATED  100/s offered and 101/s answered: capacity unknown (weir lab capacity finds it)";
        let said = say(offered).unwrap_or_default();
        assert!(said.starts_with("NOT SATURATED (포화되지 않음)"), "{said}");
        assert!(
            say(&format!("{offered}; noticed: edge: local ports   (rule B01)"))
                .is_some_and(|ko| ko.starts_with("NOT SATURATED ("))
        );
    }

    #[test]
    fn each_phrase_is_there_once_and_fills_its_holes() {
        for (number, (en, ko)) in PHRASES.iter().enumerate() {
            assert!(PHRASES.iter().skip(number + 1).all(|(other, _)| other != en), "twice: {en}");
            let count = en.matches("{}").count();
            assert!((1..=count).all(|hole| ko.contains(&format!("{{{hole}}}"))), "{ko}");
            assert!(!ko.contains(&format!("{{{}}}", count + 1)), "{ko}");
        }
    }

    #[test]
    fn the_words_stay_and_what_is_unknown_does() {
        for (word, _) in WORDS {
            let sentence = if *word == "no verdict" { format!("{word}: x") } else { format!("{word}  x") };
            assert!(say(&sentence).is_some_and(|ko| ko.starts_with(word) && is_korean(&ko)), "{word}");
        }
        let text = "PROVED  edge → 10.0.0.2:3000: local ports   (rule B01), elasticity 0.97 [0.91, 1.03]";
        let ko = "PROVED (증명됨)  엣지 → 10.0.0.2:3000: 로컬 포트   (규칙 B01), 탄력도 0.97 [0.91, 1.03]";
        assert_eq!(say(text).as_deref(), Some(ko));
        assert_eq!(or_as_it_is("mysql: no client"), "mysql: no client");
        assert_eq!((padded("풀", 4), padded("pool", 5)), ("풀  ".to_owned(), "pool ".to_owned()));
    }
}
