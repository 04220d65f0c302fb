//! A parsed script: JavaScript values with their places.

use std::sync::Arc;

use indexmap::IndexMap;

use super::source::SourcePlace;
use crate::value::{Map, Value, text_to_number};

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// The place where it begins.
    pub at: SourcePlace,
    /// The value.
    pub kind: NodeValue,
}

/// The value of a [`Node`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NodeValue {
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
    pub at: SourcePlace,
    /// The value.
    pub value: Node,
}

impl Node {
    /// A node.
    pub fn new(at: SourcePlace, kind: NodeValue) -> Node {
        Node { at, kind }
    }

    /// An empty object.
    pub fn empty(at: SourcePlace) -> Node {
        Node { at, kind: NodeValue::Map(Members::new()) }
    }

    /// A text.
    pub fn text_at(at: SourcePlace, text: &str) -> Node {
        Node { at, kind: NodeValue::Text(text.into()) }
    }

    /// A member; `None` also if its value is undefined.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let member = self.map()?.get(key)?;
        (member.value.kind != NodeValue::Undefined).then_some(&member.value)
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
            NodeValue::Map(members) => Some(members),
            _ => None,
        }
    }

    /// The elements, if it is a list.
    pub fn list(&self) -> Option<&[Node]> {
        match &self.kind {
            NodeValue::List(list) => Some(list),
            _ => None,
        }
    }

    /// The elements of a list; any other value counts as a list of one.
    pub fn one_or_more(&self) -> &[Node] {
        match &self.kind {
            NodeValue::List(list) => list,
            _ => std::slice::from_ref(self),
        }
    }

    /// The text, if it is a text.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            NodeValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// JavaScript's `String(x)` of a scalar; empty for lists and objects, because their JSON would be useless.
    pub fn shown(&self) -> String {
        match &self.kind {
            NodeValue::Undefined => "undefined".to_owned(),
            NodeValue::Null => "null".to_owned(),
            NodeValue::Bool(bool) => bool.to_string(),
            NodeValue::Number(number) => Value::Number(*number).to_text().into_owned(),
            NodeValue::Text(text) => text.to_string(),
            NodeValue::List(_) | NodeValue::Map(_) => String::new(),
        }
    }

    /// JavaScript's `Number(x)`; NaN if it is not a number.
    pub fn number(&self) -> f64 {
        match &self.kind {
            NodeValue::Null => 0.0,
            NodeValue::Bool(bool) => f64::from(u8::from(*bool)),
            NodeValue::Number(number) => *number,
            NodeValue::Text(text) => text_to_number(text),
            NodeValue::Undefined | NodeValue::List(_) | NodeValue::Map(_) => f64::NAN,
        }
    }

    /// True if the value is truthy in JavaScript.
    pub fn is_truthy(&self) -> bool {
        match &self.kind {
            NodeValue::Undefined | NodeValue::Null => false,
            NodeValue::Bool(bool) => *bool,
            NodeValue::Number(number) => *number != 0.0 && !number.is_nan(),
            NodeValue::Text(text) => !text.is_empty(),
            NodeValue::List(_) | NodeValue::Map(_) => true,
        }
    }

    /// `true` or the text `true`.
    pub fn is_yes(&self) -> bool {
        self.kind == NodeValue::Bool(true) || self.text().is_some_and(|text| text.eq_ignore_ascii_case("true"))
    }

    /// `false` or the text `false`.
    pub fn is_no(&self) -> bool {
        self.kind == NodeValue::Bool(false) || self.text().is_some_and(|text| text.eq_ignore_ascii_case("false"))
    }

    /// The value without places.
    pub fn value(&self) -> Value {
        match &self.kind {
            NodeValue::Undefined => Value::Undefined,
            NodeValue::Null => Value::Null,
            NodeValue::Bool(bool) => Value::Bool(*bool),
            NodeValue::Number(number) => Value::Number(*number),
            NodeValue::Text(text) => Value::Text(text.clone()),
            NodeValue::List(list) => Value::List(Arc::new(list.iter().map(Node::value).collect())),
            NodeValue::Map(_) => Value::Map(Arc::new(self.value_map())),
        }
    }

    /// The members without places; empty if it is not an object.
    pub fn value_map(&self) -> Map {
        let members = self.map().into_iter().flatten();
        members.map(|(key, member)| (key.clone(), member.value.value())).collect()
    }

    /// A value; all its parts have the same place.
    pub fn of(value: &Value, at: SourcePlace) -> Node {
        let kind = match value {
            Value::Undefined => NodeValue::Undefined,
            Value::Null => NodeValue::Null,
            Value::Bool(bool) => NodeValue::Bool(*bool),
            Value::Number(number) => NodeValue::Number(*number),
            Value::Text(text) => NodeValue::Text(text.clone()),
            Value::List(list) => NodeValue::List(list.iter().map(|value| Node::of(value, at)).collect()),
            Value::Map(map) => {
                let member = |value| Member { at, value: Node::of(value, at) };
                NodeValue::Map(map.iter().map(|(key, value)| (key.clone(), member(value))).collect())
            }
        };
        Node { at, kind }
    }
}

/// The members of an object; any other value is first replaced by an empty object.
fn members_mut(kind: &mut NodeValue) -> &mut Members {
    match kind {
        NodeValue::Map(members) => members,
        other => {
            *other = NodeValue::Map(Members::new());
            members_mut(other)
        }
    }
}
