//! Templates in `config` are filled in once, when the script is read (artillery.md §0.9).

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use super::node::{Kind, Member, Members, Node};
use super::notes::Notes;
use super::number;
use crate::template::{Functions, Template};
use crate::value::Value;
use crate::vars::{Names, Vars};

/// Fills in every template below a node; keys too.
pub(crate) fn render(node: &Node, known: &[(String, Value)]) -> Node {
    let mut names = Names::default();
    let mut templates = Vec::new();
    each_text(node, &mut |text| templates.push(Template::parse(text, &mut names)));
    let mut vars = Vars::new(Arc::new(names));
    for (name, value) in known {
        vars.set_by_name(name, value.clone());
    }
    let mut rendered = templates.iter().map(|template| template.value(&vars, &Builtin));
    filled(node, &mut || rendered.next().unwrap_or_default())
}

/// Warns of templates in `config` that mean nothing when the script is read.
pub(crate) fn check(config: &Node, known: &[(String, Value)], notes: &mut Notes) {
    for (key, member) in config.map().into_iter().flatten() {
        // Environments not chosen are not used.
        if &**key != "environments" {
            check_node(&member.value, known, notes);
        }
    }
}

fn check_node(node: &Node, known: &[(String, Value)], notes: &mut Notes) {
    match &node.kind {
        Kind::Text(text) => {
            for name in names(text) {
                let is_call = name.ends_with('(');
                let is_known = match is_call {
                    true => ["$randomNumber(", "$randomString("].contains(&name),
                    false => known.iter().any(|(known, _)| known == name),
                };
                if !is_known {
                    let name = name.trim_end_matches('(');
                    let what = format!(
                        "`{name}` is not known yet when `config` is read, so it becomes undefined here (as in Artillery): \
                         write it in the scenario, or give it with -v"
                    );
                    notes.warn(node.at, &what);
                }
            }
        }
        Kind::List(list) => list.iter().for_each(|node| check_node(node, known, notes)),
        Kind::Map(members) => members.values().for_each(|member| check_node(&member.value, known, notes)),
        _ => {}
    }
}

/// The names templates of a text begin with; of a call with `(`.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split("{{").skip(1).filter(|rest| rest.contains("}}")).filter_map(|rest| {
        let rest = rest.trim_start_matches(['{', ' ', '\t', '\n']);
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').unwrap_or(rest.len());
        let end = if rest.get(end..).is_some_and(|rest| rest.starts_with('(')) { end + 1 } else { end };
        rest.get(..end).filter(|name| !name.is_empty())
    })
}

fn each_text(node: &Node, take: &mut dyn FnMut(&str)) {
    match &node.kind {
        Kind::Text(text) if text.contains("{{") => take(text),
        Kind::List(list) => list.iter().for_each(|node| each_text(node, take)),
        Kind::Map(members) => {
            for (key, member) in members {
                if key.contains("{{") {
                    take(key);
                }
                each_text(&member.value, take);
            }
        }
        _ => {}
    }
}

/// The same node with each text of [`each_text`] replaced, in the same order.
fn filled(node: &Node, next: &mut dyn FnMut() -> Value) -> Node {
    match &node.kind {
        Kind::Text(text) if text.contains("{{") => Node::of(&next(), node.at),
        Kind::List(list) => Node::new(node.at, Kind::List(list.iter().map(|node| filled(node, next)).collect())),
        Kind::Map(members) => {
            let mut done = Members::with_capacity(members.len());
            for (key, member) in members {
                let key = if key.contains("{{") { Node::of(&next(), member.at).shown().into() } else { key.clone() };
                done.insert(key, Member { at: member.at, value: filled(&member.value, next) });
            }
            Node::new(node.at, Kind::Map(done))
        }
        _ => node.clone(),
    }
}

/// `$randomNumber` and `$randomString`: all that a template may call before there is a virtual user.
pub(crate) struct Builtin;

/// The longest random text.
const RANDOM_TEXT_MAX: usize = 1_000_000;

impl Functions for Builtin {
    fn call(&self, name: &str, arguments: &[Value]) -> Option<Value> {
        let argument = |index: usize| match arguments.get(index) {
            Some(Value::Number(number)) => Some(*number),
            Some(Value::Text(text)) => Some(number::read(text)).filter(|number| !number.is_nan()),
            _ => None,
        };
        match name.trim_start_matches('$') {
            "randomNumber" => {
                let (low, high) = (argument(0)?, argument(1)?);
                let span = (high - low).max(0.0) + 1.0;
                Some(Value::Number(low + (random() * span).floor()))
            }
            "randomString" => {
                let length = argument(0).map_or(10, |number| (number.max(0.0) as usize).min(RANDOM_TEXT_MAX));
                let letters = ('a'..='z').chain('A'..='Z').chain('0'..='9').collect::<Vec<char>>();
                let letter = |_| letters.get((random() * letters.len() as f64) as usize).unwrap_or(&'a');
                Some(Value::from((0..length).map(letter).collect::<String>().as_str()))
            }
            _ => None,
        }
    }
}

/// 0 to 1: a new `RandomState` differs from the last one.
pub(crate) fn random() -> f64 {
    (RandomState::new().hash_one(0_u8) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_templates_are_found() {
        let found = |text| names(text).collect::<Vec<&str>>();
        assert_eq!(found("{{ a }}x{{{b.c[0]}}}{{ $f(1) }}{{"), ["a", "b", "$f("]);
        assert_eq!(found("plain {{ }}"), Vec::<&str>::new());
    }

    #[test]
    fn random_numbers_stay_between() {
        for _ in 0..100 {
            let value = Builtin.call("$randomNumber", &[Value::from(3.0), Value::from(5.0)]);
            assert!(matches!(value, Some(Value::Number(n)) if (3.0..=5.0).contains(&n) && n.fract() == 0.0));
        }
        let value = Builtin.call("$randomString", &[]);
        assert!(matches!(value, Some(Value::Text(text)) if text.len() == 10));
        assert_eq!(Builtin.call("$other", &[]), None);
    }
}
