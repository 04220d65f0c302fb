//! A script as read: JavaScript values that know where they stand.

use std::sync::Arc;

use indexmap::IndexMap;

use super::source::At;
use crate::value::{Map, Value, text_to_number};

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// Where it begins.
    pub at: At,
    /// What it is.
    pub kind: Kind,
}

/// What a [`Node`] is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A template that nobody can fill when the script is read.
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    Text(Arc<str>),
    List(Vec<Node>),
    Map(Members),
}

/// An object's members, in order.
pub(crate) type Members = IndexMap<Arc<str>, Member>;

/// A member of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    /// Where its key stands.
    pub at: At,
    /// Its value.
    pub value: Node,
}

impl Node {
    /// A node.
    pub fn new(at: At, kind: Kind) -> Node {
        Node { at, kind }
    }

    /// An empty object.
    pub fn empty(at: At) -> Node {
        Node { at, kind: Kind::Map(Members::new()) }
    }

    /// A text.
    pub fn text_at(at: At, text: &str) -> Node {
        Node { at, kind: Kind::Text(text.into()) }
    }

    /// A member; `None` too when its value is undefined.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let member = self.map()?.get(key)?;
        (member.value.kind != Kind::Undefined).then_some(&member.value)
    }

    /// A member some levels down.
    pub fn dig(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// A member to change, made an empty object if it is none.
    pub fn member_mut(&mut self, key: &str) -> &mut Node {
        let at = self.at;
        let member = || Member { at, value: Node::empty(at) };
        &mut members_mut(&mut self.kind).entry(key.into()).or_insert_with(member).value
    }

    /// Sets a member.
    pub fn set(&mut self, key: &str, value: Node) {
        *self.member_mut(key) = value;
    }

    /// Its members, if it is an object.
    pub fn map(&self) -> Option<&Members> {
        match &self.kind {
            Kind::Map(members) => Some(members),
            _ => None,
        }
    }

    /// Its elements, if it is a list.
    pub fn list(&self) -> Option<&[Node]> {
        match &self.kind {
            Kind::List(list) => Some(list),
            _ => None,
        }
    }

    /// Its elements, or itself as the only one.
    pub fn one_or_more(&self) -> &[Node] {
        match &self.kind {
            Kind::List(list) => list,
            _ => std::slice::from_ref(self),
        }
    }

    /// Its text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// JavaScript's `String(x)` of a scalar; lists and objects as JSON would be no use, so they are empty.
    pub fn shown(&self) -> String {
        match &self.kind {
            Kind::Undefined => "undefined".to_owned(),
            Kind::Null => "null".to_owned(),
            Kind::Bool(bool) => bool.to_string(),
            Kind::Number(number) => Value::Number(*number).to_text().into_owned(),
            Kind::Text(text) => text.to_string(),
            Kind::List(_) | Kind::Map(_) => String::new(),
        }
    }

    /// JavaScript's `Number(x)`; NaN for what is none.
    pub fn number(&self) -> f64 {
        match &self.kind {
            Kind::Null => 0.0,
            Kind::Bool(bool) => f64::from(u8::from(*bool)),
            Kind::Number(number) => *number,
            Kind::Text(text) => text_to_number(text),
            Kind::Undefined | Kind::List(_) | Kind::Map(_) => f64::NAN,
        }
    }

    /// Whether JavaScript takes it for true.
    pub fn is_truthy(&self) -> bool {
        match &self.kind {
            Kind::Undefined | Kind::Null => false,
            Kind::Bool(bool) => *bool,
            Kind::Number(number) => *number != 0.0 && !number.is_nan(),
            Kind::Text(text) => !text.is_empty(),
            Kind::List(_) | Kind::Map(_) => true,
        }
    }

    /// `true` or the text `true`.
    pub fn is_yes(&self) -> bool {
        self.kind == Kind::Bool(true) || self.text().is_some_and(|text| text.eq_ignore_ascii_case("true"))
    }

    /// `false` or the text `false`.
    pub fn is_no(&self) -> bool {
        self.kind == Kind::Bool(false) || self.text().is_some_and(|text| text.eq_ignore_ascii_case("false"))
    }

    /// Without places.
    pub fn value(&self) -> Value {
        match &self.kind {
            Kind::Undefined => Value::Undefined,
            Kind::Null => Value::Null,
            Kind::Bool(bool) => Value::Bool(*bool),
            Kind::Number(number) => Value::Number(*number),
            Kind::Text(text) => Value::Text(text.clone()),
            Kind::List(list) => Value::List(Arc::new(list.iter().map(Node::value).collect())),
            Kind::Map(_) => Value::Map(Arc::new(self.value_map())),
        }
    }

    /// Its members without places; empty for what is no object.
    pub fn value_map(&self) -> Map {
        let members = self.map().into_iter().flatten();
        members.map(|(key, member)| (key.clone(), member.value.value())).collect()
    }

    /// A value that stands in one place.
    pub fn of(value: &Value, at: At) -> Node {
        let kind = match value {
            Value::Undefined => Kind::Undefined,
            Value::Null => Kind::Null,
            Value::Bool(bool) => Kind::Bool(*bool),
            Value::Number(number) => Kind::Number(*number),
            Value::Text(text) => Kind::Text(text.clone()),
            Value::List(list) => Kind::List(list.iter().map(|value| Node::of(value, at)).collect()),
            Value::Map(map) => {
                let member = |value| Member { at, value: Node::of(value, at) };
                Kind::Map(map.iter().map(|(key, value)| (key.clone(), member(value))).collect())
            }
        };
        Node { at, kind }
    }
}

/// The members of an object; what is no object becomes an empty one.
fn members_mut(kind: &mut Kind) -> &mut Members {
    match kind {
        Kind::Map(members) => members,
        other => {
            *other = Kind::Map(Members::new());
            members_mut(other)
        }
    }
}
