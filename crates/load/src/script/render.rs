//! Fills in templates in `config` once, when the script is read (artillery.md §0.9).

use std::sync::Arc;

use weir_words::say;

use super::node::{Member, Members, Node, NodeValue};
use super::notes::Notes;
use crate::random::Builtins;
use crate::template::Template;
use crate::texts::script as texts;
use crate::value::Value;
use crate::vars::{VariableNames, Vars};

/// Fills in every template below a node, also in keys.
pub(crate) fn render(node: &Node, known: &[(String, Value)]) -> Node {
    let mut names = VariableNames::default();
    let mut templates = Vec::new();
    each_text(node, &mut |text| templates.push(Template::parse(text, &mut names)));
    let mut vars = Vars::new(Arc::new(names));
    for (name, value) in known {
        vars.set_by_name(name, value.clone());
    }
    let mut rendered = templates.iter().map(|template| template.value(&vars, &Builtins));
    filled(node, &mut || rendered.next().unwrap_or_default())
}

/// Warns about templates in `config` that have no value when the script is read.
pub(crate) fn check(config: &Node, known: &[(String, Value)], notes: &mut Notes) {
    for (key, member) in config.map().into_iter().flatten() {
        // Environments that were not chosen are not used.
        if &**key != "environments" {
            check_node(&member.value, known, notes);
        }
    }
}

fn check_node(node: &Node, known: &[(String, Value)], notes: &mut Notes) {
    match &node.kind {
        NodeValue::Text(text) => {
            for name in names(text) {
                let is_call = name.ends_with('(');
                let is_known = match is_call {
                    true => ["$randomNumber(", "$randomString("].contains(&name),
                    false => known.iter().any(|(known, _)| known == name),
                };
                if !is_known {
                    let name = name.trim_end_matches('(');
                    notes.warn(node.at, say!(texts::NO_VALUE_YET, name));
                }
            }
        }
        NodeValue::List(list) => list.iter().for_each(|node| check_node(node, known, notes)),
        NodeValue::Map(members) => members.values().for_each(|member| check_node(&member.value, known, notes)),
        _ => {}
    }
}

/// The first name in each template of a text; for a call, with `(`.
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
        NodeValue::Text(text) if text.contains("{{") => take(text),
        NodeValue::List(list) => list.iter().for_each(|node| each_text(node, take)),
        NodeValue::Map(members) => {
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
        NodeValue::Text(text) if text.contains("{{") => Node::of(&next(), node.at),
        NodeValue::List(list) => {
            Node::new(node.at, NodeValue::List(list.iter().map(|node| filled(node, next)).collect()))
        }
        NodeValue::Map(members) => {
            let mut done = Members::with_capacity(members.len());
            for (key, member) in members {
                let key = if key.contains("{{") { Node::of(&next(), member.at).shown().into() } else { key.clone() };
                done.insert(key, Member { at: member.at, value: filled(&member.value, next) });
            }
            Node::new(node.at, NodeValue::Map(done))
        }
        _ => node.clone(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::yaml;
    use super::*;

    #[test]
    fn names_of_templates_are_found() {
        let found = |text| names(text).collect::<Vec<&str>>();
        assert_eq!(found("{{ a }}x{{{b.c[0]}}}{{ $f(1) }}{{"), ["a", "b", "$f("]);
        assert_eq!(found("plain {{ }}"), Vec::<&str>::new());
    }

    #[test]
    fn templates_are_filled_in_with_their_types() {
        let known = [
            ("$env".to_owned(), Value::Map(Arc::new([("N".into(), "5".into())].into_iter().collect()))),
            ("n".to_owned(), Value::from(7.0)),
        ];
        let config = yaml::read(
            "{a: '{{ n }}', b: 'x{{ $env.N }}y', '{{ n }}': 1, c: '{{ missing }}', d: ['{{ $randomNumber(3, 3) }}']}",
            0,
        );
        let config = render(&config.unwrap(), &known);
        assert_eq!(config.get("a").unwrap().kind, NodeValue::Number(7.0));
        assert_eq!(config.get("b").unwrap().text(), Some("x5y"));
        assert_eq!(config.get("7").unwrap().kind, NodeValue::Number(1.0));
        assert!(config.get("c").is_none());
        assert_eq!(config.get("d").unwrap().list().unwrap()[0].shown(), "3");
    }

    #[test]
    fn what_cannot_be_known_is_said_once_per_place() {
        let mut notes = Notes::default();
        let config =
            yaml::read("{a: '{{ token }}', b: 'x{{ $env.N }}', c: '{{ $f() }}', environments: {x: '{{ y }}'}}", 0);
        check(&config.unwrap(), &[("$env".to_owned(), Value::Undefined)], &mut notes);
        let said = notes.into_warnings();
        assert!(said.len() == 2 && said[0].contains("`token`") && said[1].contains("`$f`"), "{said:?}");
    }
}
