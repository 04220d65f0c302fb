//! Finds captures that nothing uses and conditions that nothing sets: for `--check`.
//!
//! It compares words. A variable may be named in a template, in an expression, or as an argument, so any other
//! occurrence of the word counts as a use. With a processor, whose functions see all variables, nothing is sure.

use foldhash::HashMap;
use weir_words::say;

use super::node::Node;
use super::notes::Notes;
use super::source::SourcePlace;
use crate::texts::script as texts;

/// Words of expressions that are no variables.
const WORDS: [&str; 9] = ["and", "or", "not", "in", "if", "then", "else", "true", "false"];

/// A name with its place.
type Named = (String, SourcePlace);

#[derive(Default)]
struct Found {
    /// How often each word occurs in keys and texts.
    words: HashMap<String, u32>,
    captures: Vec<Named>,
    conditions: Vec<Named>,
}

/// Warns about captures and conditions without effect.
pub(crate) fn check(script: &Node, notes: &mut Notes) {
    if script.get("config").is_some_and(|config| config.get("processor").is_some()) {
        return;
    }
    let mut found = Found::default();
    found.look(script);
    let count = |name: &str| found.words.get(name).copied().unwrap_or(0);
    for (name, at) in &found.captures {
        let captures = found.captures.iter().filter(|(other, _)| other == name).count() as u32;
        if count(name) <= captures {
            notes.warn(*at, say!(texts::UNUSED_CAPTURE, name));
        }
    }
    for (condition, at) in &found.conditions {
        let names =
            words(condition).filter(|word| !WORDS.contains(word) && !word.starts_with(|c: char| c.is_ascii_digit()));
        for name in names {
            let conditions =
                found.conditions.iter().map(|(other, _)| words(other).filter(|word| *word == name).count());
            if count(name) as usize <= conditions.sum() {
                notes.warn(*at, say!(texts::NEVER_TRUE, name, condition));
            }
        }
    }
}

impl Found {
    /// The parser limits the depth of a script.
    fn look(&mut self, node: &Node) {
        if let Some(text) = node.text() {
            self.count(text);
        }
        node.list().unwrap_or_default().iter().for_each(|inner| self.look(inner));
        for (name, member) in node.map().into_iter().flatten() {
            self.count(name);
            let own = || member.value.text().map(|text| (text.to_owned(), member.at));
            match &**name {
                "capture" => {
                    for one in member.value.one_or_more() {
                        let named = one.get("as").and_then(Node::text).map(|text| (text.to_owned(), one.at));
                        self.captures.extend(named);
                    }
                }
                "ifTrue" => self.conditions.extend(own()),
                _ => {}
            }
            self.look(&member.value);
        }
    }

    fn count(&mut self, text: &str) {
        for word in words(text) {
            *self.words.entry(word.to_owned()).or_default() += 1;
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn warned(text: &str) -> Vec<String> {
        let mut notes = Notes::default();
        check(&super::super::yaml::read(text, 0).ok().unwrap(), &mut notes);
        notes.into_warnings().iter().map(|warning| warning.en().to_owned()).collect()
    }

    #[test]
    fn what_nothing_uses_and_what_nothing_sets_is_named() {
        let used = "scenarios: [{flow: [{get: {url: /a, capture: {json: $.id, as: id}}}, {get: {url: '/{{ id }}'}}]}]";
        assert_eq!(warned(used), Vec::<String>::new());
        let unused = "scenarios: [{flow: [{get: {url: /a, capture: [{json: $.x, as: token}]}}]}]";
        assert!(warned(unused)[0].contains("uses the captured `token`"));
        let unset = "scenarios: [{flow: [{get: {url: /a, ifTrue: 'level > 3 and ready'}}]}]";
        let said = warned(unset);
        assert!(said.len() == 2 && said[0].contains("nothing sets `level`") && said[1].contains("`ready`"), "{said:?}");
        let set = "config: {variables: {level: [1]}}\nscenarios: [{flow: [{get: {url: /a, ifTrue: 'level > 3'}}]}]";
        assert_eq!(warned(set), Vec::<String>::new());
        assert_eq!(warned(&format!("config: {{processor: ./x.js}}\n{unused}")), Vec::<String>::new());
    }
}
