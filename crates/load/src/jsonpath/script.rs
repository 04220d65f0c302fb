//! JavaScript of a filter: `@.price < 10 && /^a/.test(@.name)`.
//!
//! Supports the operators and methods that make sense on JSON; parsing the path reports any others.

use regress::Regex;

use crate::expression::{add, is_less};
use crate::regexp;
use crate::value::{Key, Value};

mod parse;

/// A compiled script.
#[derive(Clone)]
pub(super) struct Script {
    code: String,
    root: Node,
}

/// The values of `@` and its relations.
pub(super) struct Here<'v> {
    pub(super) value: &'v Value,
    pub(super) property: &'v Value,
    pub(super) parent: &'v Value,
    pub(super) parent_property: &'v Value,
    pub(super) root: &'v Value,
}

#[derive(Clone)]
enum Node {
    Literal(Value),
    Regex(Box<Regex>),
    Current,
    Property,
    Parent,
    ParentProperty,
    Root,
    List(Vec<Node>),
    Member(Box<Node>, Box<Node>),
    Call(Box<Node>, Method, Vec<Node>),
    Unary(Unary, Box<Node>),
    Binary(Binary, Box<Node>, Box<Node>),
    If(Box<[Node; 3]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unary {
    Minus,
    Plus,
    Not,
    BitNot,
    TypeOf,
    Void,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binary {
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equal,
    Unequal,
    Same,
    Different,
    Less,
    Greater,
    LessEqual,
    GreaterEqual,
    Left,
    Right,
    RightUnsigned,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Test,
    Match,
    Includes,
    StartsWith,
    EndsWith,
    IndexOf,
    ToLowerCase,
    ToUpperCase,
    Trim,
    Substring,
    Slice,
    CharAt,
    ToString,
    HasOwnProperty,
}

impl Script {
    pub(super) fn parse(code: &str) -> Result<Script, String> {
        Ok(Script { code: code.to_owned(), root: parse::parse(code)? })
    }

    /// Computes the value; an error ends the whole query, as an exception does in JavaScript.
    pub(super) fn run(&self, here: &Here<'_>) -> Result<Value, String> {
        self.root.run(here)
    }
}

impl std::fmt::Debug for Script {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&self.code, out)
    }
}

impl Node {
    fn run(&self, here: &Here<'_>) -> Result<Value, String> {
        Ok(match self {
            Node::Literal(value) => value.clone(),
            Node::Regex(_) => return Err("a regular expression is no value".to_owned()),
            Node::Current => here.value.clone(),
            Node::Property => here.property.clone(),
            Node::Parent => here.parent.clone(),
            Node::ParentProperty => here.parent_property.clone(),
            Node::Root => here.root.clone(),
            Node::List(items) => {
                Value::from(items.iter().map(|item| item.run(here)).collect::<Result<Vec<Value>, String>>()?)
            }
            Node::Member(object, name) => {
                let name = name.run(here)?;
                let object = object.run(here)?;
                if matches!(object, Value::Undefined | Value::Null) {
                    return Err(format!("no property {name} of {object}"));
                }
                crate::value::get(&object, &[Key::from(&*name.to_text())])
            }
            Node::Call(object, method, arguments) => return call(object, *method, arguments, here),
            Node::Unary(operator, value) => operator.run(&value.run(here)?),
            Node::Binary(Binary::And, one, two) => {
                let one = one.run(here)?;
                if one.is_truthy() { two.run(here)? } else { one }
            }
            Node::Binary(Binary::Or, one, two) => {
                let one = one.run(here)?;
                if one.is_truthy() { one } else { two.run(here)? }
            }
            Node::Binary(operator, one, two) => operator.run(&one.run(here)?, &two.run(here)?),
            Node::If(parts) => {
                let [condition, yes, no] = parts.as_ref();
                if condition.run(here)?.is_truthy() { yes.run(here)? } else { no.run(here)? }
            }
        })
    }
}

impl Unary {
    fn run(self, value: &Value) -> Value {
        match self {
            Unary::Minus => Value::Number(-value.to_number()),
            Unary::Plus => Value::Number(value.to_number()),
            Unary::Not => Value::Bool(!value.is_truthy()),
            Unary::BitNot => Value::Number(f64::from(!to_int(value))),
            Unary::Void => Value::Undefined,
            Unary::TypeOf => Value::from(match value {
                Value::Undefined => "undefined",
                Value::Bool(_) => "boolean",
                Value::Number(_) => "number",
                Value::Text(_) => "string",
                Value::Null | Value::List(_) | Value::Map(_) => "object",
            }),
        }
    }
}

impl Binary {
    fn run(self, one: &Value, two: &Value) -> Value {
        let number = |compute: fn(f64, f64) -> f64| Value::Number(compute(one.to_number(), two.to_number()));
        let bits = |compute: fn(i32, i32) -> i32| Value::Number(f64::from(compute(to_int(one), to_int(two))));
        let shift = (to_int(two) as u32) & 31;
        match self {
            // Both are handled before this match, because their right side may not be evaluated.
            Binary::Or | Binary::And => Value::Undefined,
            Binary::BitOr => bits(|one, two| one | two),
            Binary::BitXor => bits(|one, two| one ^ two),
            Binary::BitAnd => bits(|one, two| one & two),
            Binary::Equal => Value::Bool(one.is_loosely(two)),
            Binary::Unequal => Value::Bool(!one.is_loosely(two)),
            Binary::Same => Value::Bool(one.is_same(two)),
            Binary::Different => Value::Bool(!one.is_same(two)),
            Binary::Less => Value::Bool(is_less(one, two, false)),
            Binary::LessEqual => Value::Bool(is_less(one, two, true)),
            Binary::Greater => Value::Bool(is_less(two, one, false)),
            Binary::GreaterEqual => Value::Bool(is_less(two, one, true)),
            Binary::Left => Value::Number(f64::from(to_int(one).wrapping_shl(shift))),
            Binary::Right => Value::Number(f64::from(to_int(one).wrapping_shr(shift))),
            Binary::RightUnsigned => Value::Number(f64::from((to_int(one) as u32).wrapping_shr(shift))),
            Binary::Add => add(one, two),
            Binary::Subtract => number(|one, two| one - two),
            Binary::Multiply => number(|one, two| one * two),
            Binary::Divide => number(|one, two| one / two),
            Binary::Remainder => number(|one, two| one % two),
        }
    }
}

/// JavaScript's ToInt32.
fn to_int(value: &Value) -> i32 {
    let number = value.to_number().trunc();
    if !number.is_finite() {
        return 0;
    }
    // The remainder fits into 33 bits.
    (number % 4_294_967_296.0) as i64 as i32
}

fn call(object: &Node, method: Method, arguments: &[Node], here: &Here<'_>) -> Result<Value, String> {
    if let Node::Regex(regex) = object {
        let subject = arguments.first().map_or(Ok(Value::Undefined), |argument| argument.run(here))?;
        return match method {
            Method::Test => Ok(Value::Bool(regex.find(&subject.to_text()).is_some())),
            _ => Err("a regular expression has no such method".to_owned()),
        };
    }
    let object = object.run(here)?;
    if let (Method::Match, Value::Text(text)) = (method, &object) {
        let found = match arguments.first() {
            Some(Node::Regex(regex)) => regex.find(text),
            Some(argument) => regexp::compile(&argument.run(here)?.to_text(), "")?.find(text),
            None => None,
        };
        return Ok(found.map_or(Value::Null, |found| Value::from(vec![Value::from(found.as_str(text))])));
    }
    let arguments = arguments.iter().map(|argument| argument.run(here)).collect::<Result<Vec<Value>, String>>()?;
    let first = arguments.first().cloned().unwrap_or_default();
    let found = match (&object, method) {
        (Value::Undefined | Value::Null, _) => None,
        (_, Method::ToString) => Some(Value::from(&*object.to_text())),
        (_, Method::HasOwnProperty) => Some(Value::Bool(
            crate::value::Path { whole: "".into(), keys: vec![Key::from(&*first.to_text())] }.exists(&object),
        )),
        (Value::List(list), Method::Includes) => Some(Value::Bool(list.iter().any(|item| item.is_same(&first)))),
        (Value::List(list), Method::IndexOf) => {
            let at = list.iter().position(|item| item.is_same(&first));
            Some(Value::Number(at.map_or(-1.0, |at| at as f64)))
        }
        (Value::Text(text), method) => of_text(text, method, &first, arguments.get(1)),
        _ => None,
    };
    found.ok_or_else(|| format!("{object} has no such method"))
}

fn of_text(text: &str, method: Method, first: &Value, second: Option<&Value>) -> Option<Value> {
    let other = first.to_text();
    Some(match method {
        Method::Includes => Value::Bool(text.contains(&*other)),
        Method::StartsWith => Value::Bool(text.starts_with(&*other)),
        Method::EndsWith => Value::Bool(text.ends_with(&*other)),
        Method::IndexOf => {
            let at = text.find(&*other).map(|at| text.get(..at).unwrap_or("").encode_utf16().count());
            Value::Number(at.map_or(-1.0, |at| at as f64))
        }
        Method::ToLowerCase => Value::from(text.to_lowercase()),
        Method::ToUpperCase => Value::from(text.to_uppercase()),
        Method::Trim => Value::from(text.trim()),
        Method::CharAt => {
            let at = first.to_number().max(0.0) as usize;
            Value::from(text.chars().skip(at).take(1).collect::<String>())
        }
        Method::Substring | Method::Slice => Value::from(part(text, method, first, second)),
        _ => return None,
    })
}

fn part(text: &str, method: Method, first: &Value, second: Option<&Value>) -> String {
    let len = text.chars().count();
    let bound = |value: &Value| {
        let number = value.to_number();
        let from_end = method == Method::Slice && number < 0.0;
        // `as` turns NaN and negative numbers into 0.
        (if from_end { len as f64 + number } else { number }).min(len as f64) as usize
    };
    let (mut start, mut end) = (bound(first), second.filter(|end| **end != Value::Undefined).map_or(len, bound));
    if method == Method::Substring && start > end {
        std::mem::swap(&mut start, &mut end);
    }
    text.chars().skip(start).take(end.saturating_sub(start)).collect()
}
