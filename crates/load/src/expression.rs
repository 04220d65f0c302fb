//! filtrex 2 expressions: `ifTrue` and `ensure` (artillery.md §2.6).
//!
//! As in filtrex, a word operator consumes the character after it: `not (x)` is right, `not(x)` is an error.

use std::fmt;

use regress::Regex;

use crate::random;
use crate::regexp;
use crate::value::{Value, text_to_number};

mod parse;

/// A compiled expression.
#[derive(Clone)]
pub struct Expression {
    text: String,
    root: Node,
}

/// A part of an expression.
#[derive(Clone, Debug)]
enum Node {
    Literal(Value),
    Variable(String),
    /// `name of value`
    Of(String, Box<Node>),
    List(Vec<Node>),
    Not(Box<Node>),
    Minus(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    If(Box<[Node; 3]>),
    Binary(Operator, Box<Node>, Box<Node>),
    /// `~=` with an expression that is known in advance.
    Matches(Box<Node>, Box<Regex>),
    In {
        one: Box<Node>,
        all: Box<Node>,
        is_not: bool,
    },
    Call(Function, Vec<Node>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Matches,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Abs,
    Ceil,
    Floor,
    Log,
    Max,
    Min,
    Random,
    Round,
    Sqrt,
}

impl Expression {
    /// Compiles an expression; the error says what is wrong and where (byte offset).
    pub fn parse(text: &str) -> Result<Expression, String> {
        Ok(Expression { text: text.to_owned(), root: parse::parse(text)? })
    }

    /// The text of the expression.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Computes the value; `lookup` returns the value of a name. The error: a regular expression is invalid.
    pub fn value(&self, lookup: &dyn Fn(&str) -> Value) -> Result<Value, String> {
        self.root.value(lookup)
    }

    /// The names that the expression uses.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.root.names(&mut names);
        names
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, out)
    }
}

impl Node {
    fn value(&self, lookup: &dyn Fn(&str) -> Value) -> Result<Value, String> {
        let truth = |bool: bool| Ok(Value::Number(f64::from(bool)));
        match self {
            Node::Literal(value) => Ok(value.clone()),
            Node::Variable(name) => Ok(lookup(name)),
            Node::Of(name, value) => {
                let path = crate::value::Path { whole: name.as_str().into(), keys: vec![name.as_str().into()] };
                Ok(value.value(lookup)?.get(&path))
            }
            Node::List(items) => {
                items.iter().map(|item| item.value(lookup)).collect::<Result<Vec<Value>, String>>().map(Value::from)
            }
            Node::Not(value) => truth(!value.value(lookup)?.is_truthy()),
            Node::Minus(value) => Ok(Value::Number(-value.value(lookup)?.to_number())),
            Node::And(one, two) => {
                let value = one.value(lookup)?;
                let value = if value.is_truthy() { two.value(lookup)? } else { value };
                Ok(Value::Number(value.to_number()))
            }
            Node::Or(one, two) => {
                let value = one.value(lookup)?;
                let value = if value.is_truthy() { value } else { two.value(lookup)? };
                Ok(Value::Number(value.to_number()))
            }
            Node::If(parts) => {
                let [condition, yes, no] = parts.as_ref();
                if condition.value(lookup)?.is_truthy() { yes.value(lookup) } else { no.value(lookup) }
            }
            Node::Binary(operator, one, two) => operator.value(&one.value(lookup)?, &two.value(lookup)?),
            Node::Matches(value, regex) => truth(regex.find(&value.value(lookup)?.to_text()).is_some()),
            Node::In { one, all, is_not } => truth(is_subset(&one.value(lookup)?, &all.value(lookup)?) != *is_not),
            Node::Call(function, arguments) => {
                let numbers: Result<Vec<f64>, String> =
                    arguments.iter().map(|argument| argument.value(lookup).map(|value| value.to_number())).collect();
                Ok(Value::Number(function.value(&numbers?)))
            }
        }
    }

    fn names<'n>(&'n self, names: &mut Vec<&'n str>) {
        match self {
            Node::Literal(_) => {}
            Node::Variable(name) => names.push(name),
            Node::Of(_, node) | Node::Not(node) | Node::Minus(node) | Node::Matches(node, _) => node.names(names),
            Node::List(nodes) | Node::Call(_, nodes) => nodes.iter().for_each(|node| node.names(names)),
            Node::If(nodes) => nodes.iter().for_each(|node| node.names(names)),
            Node::And(one, two) | Node::Or(one, two) | Node::Binary(_, one, two) => {
                one.names(names);
                two.names(names);
            }
            Node::In { one, all, .. } => {
                one.names(names);
                all.names(names);
            }
        }
    }
}

impl Operator {
    fn value(self, one: &Value, two: &Value) -> Result<Value, String> {
        let number = |compute: fn(f64, f64) -> f64| Ok(Value::Number(compute(one.to_number(), two.to_number())));
        let truth = |bool: bool| Ok(Value::Number(f64::from(bool)));
        match self {
            Operator::Add => Ok(add(one, two)),
            Operator::Subtract => number(|one, two| one - two),
            Operator::Multiply => number(|one, two| one * two),
            Operator::Divide => number(|one, two| one / two),
            Operator::Remainder => number(|one, two| one % two),
            Operator::Power => number(power),
            Operator::Equal => truth(one.is_loosely(two)),
            Operator::Unequal => truth(!one.is_loosely(two)),
            Operator::Less => truth(is_less(one, two, false)),
            Operator::LessEqual => truth(is_less(one, two, true)),
            Operator::Greater => truth(is_less(two, one, false)),
            Operator::GreaterEqual => truth(is_less(two, one, true)),
            Operator::Matches => truth(regexp::compile(&two.to_text(), "")?.find(&one.to_text()).is_some()),
        }
    }
}

impl Function {
    fn of(name: &str) -> Option<Function> {
        Some(match name {
            "abs" => Function::Abs,
            "ceil" => Function::Ceil,
            "floor" => Function::Floor,
            "log" => Function::Log,
            "max" => Function::Max,
            "min" => Function::Min,
            "random" => Function::Random,
            "round" => Function::Round,
            "sqrt" => Function::Sqrt,
            _ => return None,
        })
    }

    fn value(self, numbers: &[f64]) -> f64 {
        let first = numbers.first().copied().unwrap_or(f64::NAN);
        let fold = |start: f64, choose: fn(f64, f64) -> f64| {
            numbers.iter().fold(start, |sum, &number| if number.is_nan() { number } else { choose(sum, number) })
        };
        match self {
            Function::Abs => first.abs(),
            Function::Ceil => first.ceil(),
            Function::Floor => first.floor(),
            Function::Log => first.ln(),
            Function::Max => fold(f64::NEG_INFINITY, |one, two| if one.is_nan() || one > two { one } else { two }),
            Function::Min => fold(f64::INFINITY, |one, two| if one.is_nan() || one < two { one } else { two }),
            Function::Random => random::unit(),
            // Halves are rounded up, also below zero.
            Function::Round => (first + 0.5).floor(),
            Function::Sqrt => first.sqrt(),
        }
    }
}

/// JavaScript's `+`: joins texts if one side is a text.
pub(crate) fn add(one: &Value, two: &Value) -> Value {
    let is_text = |value: &Value| matches!(value, Value::Text(_)) || value.is_object();
    if is_text(one) || is_text(two) {
        return Value::from(format!("{}{}", one.to_text(), two.to_text()));
    }
    Value::Number(one.to_number() + two.to_number())
}

/// JavaScript's `<` (or `<=`): compares as texts if both are texts.
pub(crate) fn is_less(one: &Value, two: &Value, or_equal: bool) -> bool {
    let text =
        |value: &Value| (matches!(value, Value::Text(_)) || value.is_object()).then(|| value.to_text().into_owned());
    if let (Some(one), Some(two)) = (text(one), text(two)) {
        let order = one.encode_utf16().cmp(two.encode_utf16());
        return order.is_lt() || (or_equal && order.is_eq());
    }
    let (one, two) = (one.to_number(), two.to_number());
    if or_equal { one <= two } else { one < two }
}

/// `Math.pow`: unlike in C, 1 to the power of NaN or infinity is NaN.
fn power(base: f64, exponent: f64) -> f64 {
    if exponent.is_nan() || (base.abs() == 1.0 && exponent.is_infinite()) { f64::NAN } else { base.powf(exponent) }
}

/// True if each element of `one` (or `one` itself) is in `all`.
fn is_subset(one: &Value, all: &Value) -> bool {
    let list = |value: &Value| match value {
        Value::List(list) => list.to_vec(),
        other => vec![other.clone()],
    };
    let all = list(all);
    let both_nan = |one: &Value, two: &Value| matches!((one, two), (Value::Number(one), Value::Number(two)) if one.is_nan() && two.is_nan());
    list(one).iter().all(|one| all.iter().any(|two| one.is_same(two) || both_nan(one, two)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::value::parse_json;

    fn value(text: &str) -> Result<Value, String> {
        let vars = br#"{"a":1,"b":2,"name":"bob","role":"admin","yes":true,"user.id":7,"x y":9,"nul":null,
            "list":[1,2],"obj":{"len":3,"in":{"deep":4}},"empty":"","order":5,"android":6}"#;
        let vars = parse_json(vars).unwrap();
        Expression::parse(text)?.value(&|name| match &vars {
            Value::Map(map) => map.get(name).cloned().unwrap_or_default(),
            _ => Value::Undefined,
        })
    }

    /// Each result agrees with filtrex 2.2.3 under Node 20.
    #[test]
    fn as_filtrex() {
        for (text, expected) in [
            ("1 + 2 * 3", "7"),
            ("(1 + 2) * 3", "9"),
            ("2 ^ 3 ^ 2", "64"),
            ("-2 ^ 2", "4"),
            ("10 - 4 - 3", "3"),
            ("7 % 4", "3"),
            ("a < b and b < 3", "1"),
            ("a > b or yes", "1"),
            ("not a == b", "0"),
            ("not empty", "1"),
            ("not nosuch and a", "1"),
            ("name == \"bob\"", "1"),
            ("'name' == \"bob\"", "1"),
            ("role in (\"user\", \"admin\")", "1"),
            ("role not in (\"user\", \"guest\")", "1"),
            ("list in (1, 2, 3)", "1"),
            ("(1, 9) in list", "0"),
            ("a == 1 in (1, 2)", "1"),
            ("a + b not in (2, 3)", "1"),
            ("name ~= \"^b.b$\"", "1"),
            ("a ? \"x\" : \"y\"", "\"x\""),
            ("0 ? 1 : 0 ? 2 : 3", "3"),
            ("1 ? 0 ? 1 : 2 : 3", "2"),
            ("user.id", "7"),
            ("'x y' + 1", "10"),
            ("len of obj", "3"),
            ("deep of in of obj + 1", "error"),
            ("deep of 'in' of obj + 1", "5"),
            ("nosuch of nosuch", "undefined"),
            ("name + 1", "\"bob1\""),
            ("nul == nosuch", "1"),
            ("\"2\" == 2", "1"),
            ("name and yes", "1"),
            ("order + android", "11"),
            ("max(1, b, 1.5)", "2"),
            ("min(3, a)", "1"),
            ("round(2.5) + floor(-1.5) + ceil(0.2) + abs(-3) + sqrt(16)", "9"),
            ("log(1)", "0"),
            ("a in 1", "1"),
            ("\"a\\\"b\\\\\"", "\"a\\\"b\\\\\""),
            ("nosuch < 1", "0"),
        ] {
            let expected = match expected {
                "undefined" => Ok(Value::Undefined),
                "error" => Err(()),
                json => Ok(parse_json(json.as_bytes()).unwrap()),
            };
            assert_eq!(value(text).map_err(drop), expected, "{text}");
        }
    }

    #[test]
    fn mistakes_say_where() {
        for (text, at) in [
            ("a === 1", "at 4"),
            ("a && b", "at 2"),
            ("a || b", "at 2"),
            ("!a", "at 0"),
            ("", "at 0"),
            ("(a", "at 2"),
            ("a b", "at 2"),
            ("nosuch(1)", "at 0"),
            ("\"open", "at 0"),
            ("not(a)", "at 0"),
            ("5a", "at 0"),
            ("a ? b", "at 5"),
            ("1,2", "at 1"),
        ] {
            let error = value(text).unwrap_err();
            assert!(error.contains(at), "{text}: {error}");
        }
        assert!(value("name ~= \"(\"").is_err());
        assert!(value("name ~= name + \"(\"").is_err());
        assert!(value(&"(".repeat(10_000)).is_err_and(|error| error.contains("deep")));
        assert!(value(&"- ".repeat(1000)).is_err_and(|error| error.contains("deep")));
        assert!(value(&"1 + ".repeat(100_000)).is_err_and(|error| error.contains("long")));
    }

    #[test]
    fn names_are_known() {
        let expression = Expression::parse("a.b > 1 and 'c d' in (e, f of g)").unwrap();
        assert_eq!(expression.names(), ["a.b", "c d", "e", "g"]);
    }
}
