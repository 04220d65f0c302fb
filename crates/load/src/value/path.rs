//! lodash's `get` and `set`: `a.b[0]["c-d"]`.

use std::sync::Arc;

use super::model::{Map, Value};

/// Largest gap after a list's end when an element is set; with a larger gap nothing is set.
const GAP_MAX: usize = 10_000;

/// One step of a path: the name of a member, and its index if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathStep {
    /// The name.
    pub name: Arc<str>,
    /// The name as an index of a list, if it is one (`0`, `17`, not `01`).
    pub index: Option<usize>,
}

impl From<&str> for PathStep {
    fn from(name: &str) -> PathStep {
        let is_index = name == "0" || (!name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit()));
        PathStep { name: name.into(), index: if is_index { name.parse().ok() } else { None } }
    }
}

impl PathStep {
    /// The member or element of a value. Does not compute `length` or characters.
    pub fn of<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match value {
            Value::Map(map) => map.get(&self.name),
            Value::List(list) => self.index.and_then(|index| list.get(index)),
            _ => None,
        }
    }

    /// Computed members: `length`, and characters of a text.
    fn made(&self, value: &Value) -> Option<Value> {
        match value {
            Value::List(list) if &*self.name == "length" => Some(Value::Number(list.len() as f64)),
            Value::Text(text) if &*self.name == "length" => Some(Value::Number(text.encode_utf16().count() as f64)),
            Value::Text(text) => {
                let char = text.chars().nth(self.index?)?;
                Some(Value::from(char.encode_utf8(&mut [0; 4]) as &str))
            }
            _ => None,
        }
    }
}

/// A path, parsed from a text as lodash does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The whole text: a member with exactly this name wins.
    pub whole: Arc<str>,
    /// The steps; a single step with the whole text if that is a plain name.
    pub keys: Vec<PathStep>,
}

impl Path {
    /// Parses a text.
    pub fn parse(text: &str) -> Path {
        let keys = if is_deep(text) { split(text) } else { vec![plain(text)] };
        Path { whole: text.into(), keys }
    }

    /// The value at the path.
    pub fn get(&self, value: &Value) -> Value {
        if self.keys.len() > 1
            && let Value::Map(map) = value
            && let Some(found) = map.get(&self.whole)
        {
            return found.clone();
        }
        get(value, &self.keys)
    }

    /// lodash's `has`: true if the path exists, even with the value `undefined`.
    pub fn exists(&self, value: &Value) -> bool {
        if matches!(value, Value::Map(map) if map.contains_key(&self.whole)) {
            return true;
        }
        let Some((last, way)) = self.keys.split_last() else { return false };
        let holder = get(value, way);
        match &holder {
            Value::Map(map) => map.contains_key(&last.name),
            Value::List(list) => &*last.name == "length" || last.index.is_some_and(|index| index < list.len()),
            _ => false,
        }
    }
}

/// The value at the end of the steps.
pub(crate) fn get(value: &Value, keys: &[PathStep]) -> Value {
    let mut at = value;
    let mut rest = keys.iter();
    while let Some(key) = rest.next() {
        match key.of(at) {
            Some(next) => at = next,
            None => {
                let made = key.made(at).unwrap_or_default();
                return if rest.as_slice().is_empty() { made } else { get(&made, rest.as_slice()) };
            }
        }
    }
    at.clone()
}

impl Value {
    /// lodash's `get`: the value at a path; [`UNDEFINED`](super::UNDEFINED) if there is none.
    pub fn get(&self, path: &Path) -> Value {
        path.get(self)
    }

    /// lodash's `set`: sets the value at a path, and makes missing objects and lists.
    pub fn set(&mut self, path: &[PathStep], value: Value) {
        set(self, path, value);
    }
}

fn set(place: &mut Value, keys: &[PathStep], value: Value) {
    let Some((first, rest)) = keys.split_first() else {
        *place = value;
        return;
    };
    if !place.is_object() {
        *place = if first.index.is_some() { Value::from(Vec::new()) } else { Value::from(Map::default()) };
    }
    match place {
        Value::Map(map) => set(Arc::make_mut(map).entry(first.name.clone()).or_default(), rest, value),
        Value::List(list) => {
            let Some(index) = first.index.filter(|index| *index <= list.len().saturating_add(GAP_MAX)) else { return };
            let list = Arc::make_mut(list);
            if index >= list.len() {
                list.resize(index + 1, Value::Undefined);
            }
            if let Some(place) = list.get_mut(index) {
                set(place, rest, value);
            }
        }
        _ => {}
    }
}

fn plain(text: &str) -> PathStep {
    PathStep::from(text)
}

/// True if lodash splits the text into steps.
fn is_deep(text: &str) -> bool {
    text.contains('.') || text.find('[').is_some_and(|open| text.get(open..).is_some_and(|rest| rest.contains(']')))
}

fn split(text: &str) -> Vec<PathStep> {
    let mut keys = Vec::new();
    let mut rest = text;
    if rest.starts_with('.') {
        keys.push(PathStep::from(""));
    }
    while !rest.is_empty() {
        let run = rest.find(['.', '[', ']']).unwrap_or(rest.len());
        if run > 0 {
            let (name, after) = rest.split_at_checked(run).unwrap_or((rest, ""));
            keys.push(PathStep::from(name));
            rest = after;
            continue;
        }
        if let Some((key, after)) = bracketed(rest) {
            keys.push(key);
            rest = after;
            continue;
        }
        if is_empty_step(rest) {
            keys.push(PathStep::from(""));
        }
        rest = rest.get(1..).unwrap_or("");
    }
    keys
}

/// `[12]`, `[-1.5]`, `["name"]` or `['name']` at the beginning, and the text after it.
fn bracketed(text: &str) -> Option<(PathStep, &str)> {
    let inner = text.strip_prefix('[')?;
    let quote = inner.chars().next().filter(|quote| matches!(quote, '"' | '\''));
    let Some(quote) = quote else {
        let (number, after) = inner.split_once(']')?;
        let digits = number.strip_prefix('-').unwrap_or(number);
        let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        return (is_digits(whole) && is_digits(part)).then(|| (PathStep::from(number), after));
    };
    let mut name = String::new();
    let mut chars = inner.char_indices().skip(1);
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => name.push(chars.next()?.1),
            char if char == quote => {
                let after = inner.get(at + 1..)?.strip_prefix(']')?;
                return Some((PathStep::from(name.as_str()), after));
            }
            char => name.push(char),
        }
    }
    None
}

/// `..`, `.[]`, `[]` twice, or one of `.` and `[]` at the end: there is an empty name in between.
fn is_empty_step(text: &str) -> bool {
    let after = text.strip_prefix("[]").or_else(|| text.strip_prefix('.'));
    after.is_some_and(|after| after.is_empty() || after.starts_with('.') || after.starts_with("[]"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::parse_json;
    use super::*;

    fn json(text: &str) -> Value {
        parse_json(text.as_bytes()).unwrap()
    }

    #[test]
    fn texts_become_steps() {
        for (text, steps) in [
            ("a", &["a"] as &[&str]),
            ("my var", &["my var"]),
            ("a.b[0][\"c-d\"]", &["a", "b", "0", "c-d"]),
            ("a['x.y'].z", &["a", "x.y", "z"]),
            ("[0].a", &["0", "a"]),
            ("a[b]", &["a", "b"]),
            (".a", &["", "a"]),
            ("a..b", &["a", "", "b"]),
            ("a.", &["a", ""]),
            ("a[-1]", &["a", "-1"]),
            ("a[", &["a["]),
        ] {
            let keys: Vec<String> = Path::parse(text).keys.iter().map(|key| key.name.to_string()).collect();
            assert_eq!(keys, steps, "{text}");
        }
    }

    #[test]
    fn values_are_found() {
        let value = json(r#"{"a":{"b":[{"c-d":7},"xyz"]},"p.q":1,"p":{"q":2}}"#);
        for (path, found) in [
            ("a.b[0][\"c-d\"]", json("7")),
            ("a.b.length", json("2")),
            ("a.b[1].length", json("3")),
            ("a.b[1][0]", "x".into()),
            ("a.b[1].length.x", Value::Undefined),
            ("a.nosuch.deep", Value::Undefined),
            ("p.q", json("1")),
        ] {
            assert_eq!(Path::parse(path).get(&value), found, "{path}");
        }
    }

    #[test]
    fn has_is_not_get() {
        let value = json(r#"{"a":{"b":null,"c":[1]},"x.y":0}"#);
        for (path, has) in
            [("a.b", true), ("a.c[0]", true), ("a.c[1]", false), ("a.c.length", true), ("x.y", true), ("a.d", false)]
        {
            assert_eq!(Path::parse(path).exists(&value), has, "{path}");
        }
    }

    #[test]
    fn setting_makes_the_way() {
        for (before, path, after) in [
            ("{}", "a.b", r#"{"a":{"b":1}}"#),
            ("{}", "a[0].b", r#"{"a":[{"b":1}]}"#),
            (r#"{"a":[5]}"#, "a[2]", r#"{"a":[5,null,1]}"#),
            (r#"{"a":"text"}"#, "a.b", r#"{"a":{"b":1}}"#),
            (r#"{"a":[5]}"#, "a[4000000000]", r#"{"a":[5]}"#),
        ] {
            let mut value = json(before);
            value.set(&Path::parse(path).keys, Value::Number(1.0));
            assert_eq!(value.to_json().unwrap(), after, "{path}");
        }
    }
}
