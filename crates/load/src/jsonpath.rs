//! JSONPath in the dialect of the npm module jsonpath-plus 10, which Artillery uses.
//!
//! Supports names, indexes, slices, `*`, `..`, unions, filters `[?(…)]` and scripts `[(…)]` in JavaScript, `^`
//! (parent), `~` (name) and types (`@number()`). Also supports unions of quoted names and spaces in unions, which
//! jsonpath-plus lacks. Does not support `@path` and assignments in a script.

use std::sync::Arc;

use crate::value::{Key, Value};

mod parse;
mod script;

use script::{Here, Script};

/// Most places that one query may visit; a query that needs more fails.
const PLACES_MAX: usize = 2_000_000;
/// Most matches of one query; a query with more matches fails.
const FOUND_MAX: usize = 200_000;

/// A compiled path.
#[derive(Clone, Debug)]
pub(crate) struct JsonPath {
    steps: Vec<Step>,
    /// The same path, if it consists of names and indexes only.
    keys: Option<Vec<Key>>,
}

#[derive(Clone, Debug)]
enum Step {
    Root,
    Name(Key),
    Any,
    Descend,
    Parent,
    NameOf,
    Slice { start: i64, end: i64, step: usize },
    Filter(Script),
    Script(Script),
    Type(Type),
    Union(Vec<Step>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Scalar,
    Boolean,
    String,
    Integer,
    Number,
    Object,
    Array,
    Null,
    /// `undefined`, `function`, `nonFinite`: they do not occur in JSON.
    Never,
}

impl JsonPath {
    pub(crate) fn parse(text: &str) -> Result<JsonPath, String> {
        let steps = parse::parse(text)?;
        let key = |step: &Step| match step {
            // The length of a list is computed and is not a member.
            Step::Name(key) if &*key.name != "length" => Some(key.clone()),
            _ => None,
        };
        let keys = steps.iter().map(key).collect();
        Ok(JsonPath { steps, keys })
    }

    /// The steps of a path that can be extracted without parsing the whole body into a tree.
    pub(crate) fn keys(&self) -> Option<&[Key]> {
        self.keys.as_deref().filter(|keys| !keys.is_empty())
    }

    /// All matches, in jsonpath-plus's order. The flag is true if the path could have several matches.
    pub(crate) fn find(&self, root: &Value) -> Result<(Vec<Value>, bool), String> {
        let mut query = Query { root, left: PLACES_MAX, found: Vec::new() };
        let place = Place { value: root.clone(), parent: Value::Null, name: Value::Null, is_many: false };
        query.trace(&self.steps, place)?;
        let mut is_many = false;
        let mut values = Vec::with_capacity(query.found.len());
        for found in query.found {
            if let Found::Value(value, many) = found {
                is_many |= many;
                values.push(value);
            }
        }
        Ok((values, is_many))
    }
}

struct Query<'v> {
    root: &'v Value,
    left: usize,
    found: Vec<Found>,
}

enum Found {
    Value(Value, bool),
    /// `^`: the calling frame continues at its own value with the last steps of this number.
    Parent(usize),
}

#[derive(Clone)]
struct Place {
    value: Value,
    parent: Value,
    name: Value,
    is_many: bool,
}

impl Place {
    fn child(&self, name: Value, value: Value, is_many: bool) -> Place {
        Place { value, parent: self.value.clone(), name, is_many: self.is_many || is_many }
    }
}

impl Query<'_> {
    fn trace(&mut self, steps: &[Step], place: Place) -> Result<(), String> {
        self.left = self.left.checked_sub(1).ok_or("it looks at too many places")?;
        if self.found.len() > FOUND_MAX {
            return Err("it finds too much".to_owned());
        }
        let Some((step, rest)) = steps.split_first() else {
            self.found.push(Found::Value(place.value, place.is_many));
            return Ok(());
        };
        let begin = self.found.len();
        match step {
            Step::Parent => {
                self.found.push(Found::Parent(rest.len()));
                return Ok(());
            }
            Step::NameOf => {
                self.found.push(Found::Value(place.name, place.is_many));
                return Ok(());
            }
            Step::Type(kind) => {
                if kind.is_of(&place.value) {
                    self.found.push(Found::Value(place.value, place.is_many));
                }
                return Ok(());
            }
            Step::Root => {
                let at = Place { parent: Value::Null, name: Value::Null, ..place.clone() };
                self.trace(rest, at)?;
            }
            Step::Name(key) => self.name(key, rest, &place, false)?,
            Step::Any => {
                for (name, value) in children(&place.value) {
                    self.trace(rest, place.child(name, value, true))?;
                }
            }
            Step::Descend => {
                self.trace(rest, place.clone())?;
                for (name, value) in children(&place.value) {
                    if value.is_object() || value == Value::Null {
                        self.trace(steps, place.child(name, value, true))?;
                    }
                }
            }
            Step::Slice { start, end, step } => self.slice((*start, *end, *step), rest, &place)?,
            Step::Filter(script) => {
                for (name, value) in children(&place.value) {
                    if self.run(script, &value, &name, &place)?.is_truthy() {
                        self.trace(rest, place.child(name, value, true))?;
                    }
                }
            }
            Step::Script(script) => {
                let name = self.run(script, &place.value, &place.name, &place)?;
                let key = Key::from(&*name.to_text());
                self.name(&key, rest, &place, false)?;
            }
            Step::Union(parts) => {
                for part in parts {
                    let mut way = vec![part.clone()];
                    way.extend_from_slice(rest);
                    self.trace(&way, Place { is_many: true, ..place.clone() })?;
                }
            }
        }
        self.go_up(begin, rest, &place)
    }

    /// Continues, from this place, all paths from here that asked for their parent.
    fn go_up(&mut self, begin: usize, rest: &[Step], place: &Place) -> Result<(), String> {
        if !self.found.iter().skip(begin).any(|found| matches!(found, Found::Parent(_))) {
            return Ok(());
        }
        for found in self.found.split_off(begin) {
            match found {
                Found::Parent(left) => {
                    let after = rest.len().checked_sub(left).and_then(|from| rest.get(from..)).unwrap_or_default();
                    self.trace(after, place.clone())?;
                }
                value => self.found.push(value),
            }
        }
        Ok(())
    }

    fn name(&mut self, key: &Key, rest: &[Step], place: &Place, is_many: bool) -> Result<(), String> {
        let value = match key.of(&place.value) {
            Some(value) => value.clone(),
            None => match crate::value::get(&place.value, std::slice::from_ref(key)) {
                Value::Undefined => return Ok(()),
                made => made,
            },
        };
        self.trace(rest, place.child(Value::Text(key.name.clone()), value, is_many))
    }

    fn slice(&mut self, (start, end, step): (i64, i64, usize), rest: &[Step], place: &Place) -> Result<(), String> {
        let Value::List(list) = &place.value else { return Ok(()) };
        let len = i64::try_from(list.len()).unwrap_or(i64::MAX);
        let bound = |at: i64| usize::try_from(if at < 0 { (at + len).max(0) } else { at.min(len) }).unwrap_or(0);
        // jsonpath-plus treats an end of 0 as no end.
        let (start, end) = (bound(start), bound(if end == 0 { len } else { end }));
        for index in (start..end).step_by(step.max(1)) {
            let value = list.get(index).cloned().unwrap_or_default();
            self.trace(rest, place.child(Value::from(index.to_string()), value, true))?;
        }
        Ok(())
    }

    fn run(&self, script: &Script, value: &Value, name: &Value, place: &Place) -> Result<Value, String> {
        script.run(&Here {
            value,
            property: name,
            parent: &place.parent,
            parent_property: &place.name,
            root: self.root,
        })
    }
}

/// The direct children, with their names (numbers in lists).
fn children(value: &Value) -> Vec<(Value, Value)> {
    match value {
        Value::List(list) => {
            list.iter().enumerate().map(|(index, value)| (Value::Number(index as f64), value.clone())).collect()
        }
        Value::Map(map) => map.iter().map(|(name, value)| (Value::Text(Arc::clone(name)), value.clone())).collect(),
        _ => Vec::new(),
    }
}

impl Type {
    fn of(name: &str) -> Option<Type> {
        Some(match name {
            "scalar" => Type::Scalar,
            "boolean" => Type::Boolean,
            "string" => Type::String,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "object" => Type::Object,
            "array" => Type::Array,
            "null" => Type::Null,
            "undefined" | "function" | "nonFinite" | "other" => Type::Never,
            _ => return None,
        })
    }

    fn is_of(self, value: &Value) -> bool {
        match self {
            Type::Scalar => !value.is_object(),
            Type::Boolean => matches!(value, Value::Bool(_)),
            Type::String => matches!(value, Value::Text(_)),
            Type::Integer => matches!(value, Value::Number(number) if number.fract() == 0.0),
            Type::Number => matches!(value, Value::Number(number) if number.is_finite()),
            Type::Object => value.is_object(),
            Type::Array => matches!(value, Value::List(_)),
            Type::Null => *value == Value::Null,
            Type::Never => false,
        }
    }
}

#[cfg(test)]
mod tests;
