//! JSONPaths: plain ones are followed here, all others by jsonpath-plus (see [`npm`]).
//!
//! A plain path has names, indexes, `[*]` and one `..` only, such as `$.a.b[0]`, `$.a['b c']`, `$.a[*].b` and `$..a`.
//! These are the usual paths, and jsonpath-plus needs up to ten times longer. Where the body does not have the shape
//! that makes a plain path simple, jsonpath-plus decides too: a member of a text, the length of a list, `[*]` on an
//! object.

use crate::npm;
use crate::random;
use crate::value::{PathStep, Value};

/// Most steps of a plain path.
const STEPS_MAX: usize = 200;
/// Deepest level that `..` of a plain path looks at.
const DEPTH_MAX: usize = 200;
/// A path that is nothing but one of these names finds nothing, because jsonpath-plus finds JavaScript's own member
/// instead of a parsed path.
const OWN: [&str; 12] = [
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toLocaleString",
    "toString",
    "valueOf",
    "__proto__",
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
];

/// A path.
#[derive(Clone, Debug)]
pub(crate) struct JsonPath {
    text: String,
    /// The steps of a plain path.
    steps: Option<Vec<Step>>,
    /// The steps, if all of them are names and indexes.
    keys: Option<Vec<PathStep>>,
}

/// The matches of a plain path. The flag is true if the way to the match could have led to several matches.
#[derive(Debug)]
pub(crate) struct JsonMatches<'v>(Vec<(&'v Value, bool)>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(PathStep),
    /// `[*]`.
    Any,
    /// `..` before a name.
    Descend,
}

impl JsonPath {
    pub(crate) fn new(text: &str) -> JsonPath {
        let steps = plain(text);
        let key = |step: &Step| match step {
            // The length of a list is computed and is not a member.
            Step::Key(key) if &*key.name != "length" => Some(key.clone()),
            _ => None,
        };
        let keys = steps.as_ref().and_then(|steps| steps.iter().map(key).collect());
        JsonPath { text: text.to_owned(), steps, keys }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The mistake that shows before there is a body.
    pub(crate) fn mistake(&self) -> Option<String> {
        if self.steps.is_some() { None } else { npm::mistake(&self.text) }
    }

    /// True if the path is plain: then [`JsonPath::find`] may find its matches.
    pub(crate) fn is_plain(&self) -> bool {
        self.steps.is_some()
    }

    /// The steps of a path that can be extracted without parsing the whole body into a tree.
    pub(crate) fn keys(&self) -> Option<&[PathStep]> {
        self.keys.as_deref()
    }

    /// All matches in an object or list; `None` if only jsonpath-plus can tell.
    pub(crate) fn find<'v>(&self, root: &'v Value) -> Option<JsonMatches<'v>> {
        let mut found = vec![(root, false)];
        for step in self.steps.as_ref()? {
            let mut next = Vec::new();
            for (place, is_many) in found {
                match (step, place) {
                    (Step::Key(key), Value::Map(_)) => next.extend(key.of(place).map(|value| (value, is_many))),
                    (Step::Key(key), Value::List(_)) if &*key.name != "length" => {
                        next.extend(key.of(place).map(|value| (value, is_many)));
                    }
                    (Step::Any, Value::List(list)) => next.extend(list.iter().map(|value| (value, true))),
                    (Step::Descend, _) => descend(place, is_many, 0, &mut next)?,
                    (Step::Any, Value::Text(_)) => {}
                    (_, Value::Map(_) | Value::List(_) | Value::Text(_)) => return None,
                    // These have no members.
                    (_, Value::Undefined | Value::Null | Value::Bool(_) | Value::Number(_)) => {}
                }
            }
            found = next;
        }
        Some(JsonMatches(found))
    }
}

/// The value and all objects and lists in it, in jsonpath-plus' order.
fn descend<'v>(value: &'v Value, is_many: bool, depth: usize, all: &mut Vec<(&'v Value, bool)>) -> Option<()> {
    if depth > DEPTH_MAX {
        return None;
    }
    all.push((value, is_many));
    let mut child = |value: &'v Value| if value.is_object() { descend(value, true, depth + 1, all) } else { Some(()) };
    match value {
        Value::List(list) => list.iter().try_for_each(child),
        // JavaScript puts numbers first. jsonpath-plus takes a member with the name `..` for the step.
        Value::Map(map) if map.keys().any(|key| &**key == ".." || PathStep::from(&**key).index.is_some()) => None,
        Value::Map(map) => map.values().try_for_each(&mut child),
        _ => Some(()),
    }
}

impl JsonMatches<'_> {
    /// The captured value: of several matches a random one, or all of them, as with `multiple: false`.
    pub(crate) fn taken(&self, all: bool) -> Value {
        match (all, self.0.as_slice()) {
            (true, []) => "".into(),
            (true, [(value, false)]) => one_value((*value).clone(), true),
            (true, values) => Value::from(values.iter().map(|(value, _)| (*value).clone()).collect::<Vec<Value>>()),
            (false, values) => random::one_of(values).map_or(Value::Undefined, |(value, _)| (*value).clone()),
        }
    }
}

/// The captured value for a single match. With `multiple: false` Artillery treats a falsy JavaScript value as not
/// found.
pub(crate) fn one_value(value: Value, all: bool) -> Value {
    if all && !value.is_truthy() { Value::from("") } else { value }
}

/// The steps of a plain path.
fn plain(text: &str) -> Option<Vec<Step>> {
    if OWN.contains(&text) {
        return None;
    }
    let mut steps = Vec::new();
    let mut rest = match text.strip_prefix('$') {
        Some(after) if after.starts_with(['.', '[']) => after,
        // A path may begin with a name.
        _ => {
            let (step, rest) = name(text)?;
            steps.push(step);
            rest
        }
    };
    while !rest.is_empty() {
        let (step, after) = if let Some(rest) = rest.strip_prefix("..") {
            // A second `..` would multiply the places.
            if steps.contains(&Step::Descend) {
                return None;
            }
            steps.push(Step::Descend);
            name(rest)?
        } else if let Some(rest) = rest.strip_prefix('.') {
            name(rest)?
        } else {
            bracket(rest.strip_prefix('[')?)?
        };
        steps.push(step);
        rest = after;
        if steps.len() > STEPS_MAX {
            return None;
        }
    }
    Some(steps)
}

/// A name at the start of a text.
fn name(text: &str) -> Option<(Step, &str)> {
    let is_of_name = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '$' | '-');
    let end = text.find(|char| !is_of_name(char)).unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(end)?;
    let is_name = !name.is_empty() && name != "$";
    is_name.then(|| (Step::Key(PathStep::from(name)), rest))
}

/// An index, a quoted name or `*`, after the opening bracket.
fn bracket(text: &str) -> Option<(Step, &str)> {
    let (inner, rest) = text.split_once(']')?;
    let quoted = ['\'', '"'].iter().find_map(|quote| inner.strip_prefix(*quote)?.strip_suffix(*quote));
    let step = match quoted {
        Some(inner) => {
            let is_of_name = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | ' ');
            let is_name = !inner.is_empty() && inner.chars().all(is_of_name);
            is_name.then(|| Step::Key(PathStep::from(inner)))?
        }
        None if inner == "*" => Step::Any,
        None => (!inner.is_empty() && inner.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| Step::Key(PathStep::from(inner)))?,
    };
    Some((step, rest))
}

#[cfg(test)]
mod tests;
