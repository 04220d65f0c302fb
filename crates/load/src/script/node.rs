//! A parsed script: JavaScript values with their places.

use std::sync::Arc;

use indexmap::IndexMap;

use super::source::At;
use crate::value::{Map, Value, text_to_number};

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// The place where it begins.
    pub at: At,
    /// The value.
    pub kind: Kind,
}

/// The value of a [`Node`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A template without a value when the script is read.
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
    /// The place of the key.
    pub at: At,
    /// The value.
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

    /// A member; `None` also if its value is undefined.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let member = self.map()?.get(key)?;
        (member.value.kind != Kind::Undefined).then_some(&member.value)
    }

    /// A member several levels down.
    pub fn dig(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// A member to change; made an empty object if it is missing.
    pub fn member_mut(&mut self, key: &str) -> &mut Node {
        let at = self.at;
        let member = || Member { at, value: Node::empty(at) };
        &mut members_mut(&mut self.kind).entry(key.into()).or_insert_with(member).value
    }

    /// Sets a member.
    pub fn set(&mut self, key: &str, value: Node) {
        *self.member_mut(key) = value;
    }

    /// The members, if it is an object.
    pub fn map(&self) -> Option<&Members> {
        match &self.kind {
            Kind::Map(members) => Some(members),
            _ => None,
        }
    }

    /// The elements, if it is a list.
    pub fn list(&self) -> Option<&[Node]> {
        match &self.kind {
            Kind::List(list) => Some(list),
            _ => None,
        }
    }

    /// The elements of a list; any other value counts as a list of one.
    pub fn one_or_more(&self) -> &[Node] {
        match &self.kind {
            Kind::List(list) => list,
            _ => std::slice::from_ref(self),
        }
    }

    /// The text, if it is a text.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// JavaScript's `String(x)` of a scalar; empty for lists and objects, because their JSON would be useless.
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

    /// JavaScript's `Number(x)`; NaN if it is not a number.
    pub fn number(&self) -> f64 {
        match &self.kind {
            Kind::Null => 0.0,
            Kind::Bool(bool) => f64::from(u8::from(*bool)),
            Kind::Number(number) => *number,
            Kind::Text(text) => text_to_number(text),
            Kind::Undefined | Kind::List(_) | Kind::Map(_) => f64::NAN,
        }
    }

    /// True if the value is truthy in JavaScript.
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

    /// The value without places.
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

    /// The members without places; empty if it is not an object.
    pub fn value_map(&self) -> Map {
        let members = self.map().into_iter().flatten();
        members.map(|(key, member)| (key.clone(), member.value.value())).collect()
    }

    /// A value; all its parts have the same place.
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

/// The members of an object; any other value is first replaced by an empty object.
fn members_mut(kind: &mut Kind) -> &mut Members {
    match kind {
        Kind::Map(members) => members,
        other => {
            *other = Kind::Map(Members::new());
            members_mut(other)
        }
    }
}
