//! Parses code into a tree, by precedence.

use super::{Binary, Method, Node, Unary, regexp};
use crate::value::{Value, text_to_number};

/// Deepest nesting of the code.
const DEPTH_MAX: usize = 100;
/// Most operators in a chain.
const CHAIN_MAX: usize = 500;

/// Binary operators with their precedence; longer signs first.
const OPERATORS: [(&str, Binary, u8); 21] = [
    ("===", Binary::Same, 6),
    ("!==", Binary::Different, 6),
    (">>>", Binary::RightUnsigned, 8),
    ("==", Binary::Equal, 6),
    ("!=", Binary::Unequal, 6),
    ("<=", Binary::LessEqual, 7),
    (">=", Binary::GreaterEqual, 7),
    ("<<", Binary::Left, 8),
    (">>", Binary::Right, 8),
    ("||", Binary::Or, 1),
    ("&&", Binary::And, 2),
    ("|", Binary::BitOr, 3),
    ("^", Binary::BitXor, 4),
    ("&", Binary::BitAnd, 5),
    ("<", Binary::Less, 7),
    (">", Binary::Greater, 7),
    ("+", Binary::Add, 9),
    ("-", Binary::Subtract, 9),
    ("*", Binary::Multiply, 10),
    ("/", Binary::Divide, 10),
    ("%", Binary::Remainder, 10),
];

pub(super) fn parse(code: &str) -> Result<Node, String> {
    let mut parser = Parser { rest: code, depth: 0 };
    let node = parser.condition()?;
    parser.skip();
    if parser.rest.is_empty() { Ok(node) } else { Err(format!("\"{}\" is not understood", parser.rest)) }
}

struct Parser<'c> {
    rest: &'c str,
    depth: usize,
}

impl<'c> Parser<'c> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn takes(&mut self, sign: &str) -> bool {
        self.skip();
        let after = self.rest.strip_prefix(sign);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.takes(sign) { Ok(()) } else { Err(format!("{sign} is missing before \"{}\"", self.rest)) }
    }

    fn condition(&mut self) -> Result<Node, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("code nests at most {DEPTH_MAX} deep"));
        }
        let node = self.binary(1)?;
        let node = if self.takes("?") {
            let yes = self.condition()?;
            self.expect(":")?;
            Node::If(Box::new([node, yes, self.condition()?]))
        } else {
            node
        };
        self.depth -= 1;
        Ok(node)
    }

    fn binary(&mut self, min: u8) -> Result<Node, String> {
        let mut left = self.unary()?;
        for length in 0.. {
            if length > CHAIN_MAX {
                return Err(format!("at most {CHAIN_MAX} operators follow each other"));
            }
            self.skip();
            let Some((sign, operator, strength)) = OPERATORS.iter().find(|(sign, ..)| self.rest.starts_with(sign))
            else {
                break;
            };
            if *strength < min {
                break;
            }
            self.rest = self.rest.get(sign.len()..).unwrap_or("");
            left = Node::Binary(*operator, Box::new(left), Box::new(self.binary(strength + 1)?));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Node, String> {
        self.skip();
        let word = self.word();
        let (operator, len) = match self.rest.as_bytes().first() {
            _ if word == "typeof" => (Unary::TypeOf, word.len()),
            _ if word == "void" => (Unary::Void, word.len()),
            Some(b'!') => (Unary::Not, 1),
            Some(b'-') => (Unary::Minus, 1),
            Some(b'+') => (Unary::Plus, 1),
            Some(b'~') => (Unary::BitNot, 1),
            _ => return self.with_members(),
        };
        self.rest = self.rest.get(len..).unwrap_or("");
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("code nests at most {DEPTH_MAX} deep"));
        }
        let node = Node::Unary(operator, Box::new(self.unary()?));
        self.depth -= 1;
        Ok(node)
    }

    fn with_members(&mut self) -> Result<Node, String> {
        let mut node = self.value()?;
        for length in 0.. {
            if length > CHAIN_MAX {
                return Err(format!("at most {CHAIN_MAX} members follow each other"));
            }
            if self.rest.starts_with('.') || self.rest.trim_start().starts_with('.') {
                self.expect(".")?;
                self.skip();
                let name = self.take_word()?;
                if self.takes("(") {
                    let arguments = self.list(")")?;
                    let method = Method::of(name).ok_or_else(|| format!("no method {name}() here"))?;
                    node = Node::Call(Box::new(node), method, arguments);
                } else {
                    node = Node::Member(Box::new(node), Box::new(Node::Literal(Value::from(name))));
                }
            } else if self.takes("[") {
                let name = self.condition()?;
                self.expect("]")?;
                node = Node::Member(Box::new(node), Box::new(name));
            } else {
                break;
            }
        }
        Ok(node)
    }

    fn value(&mut self) -> Result<Node, String> {
        self.skip();
        let Some(first) = self.rest.chars().next() else { return Err("a value is missing".to_owned()) };
        match first {
            '(' => {
                self.expect("(")?;
                let node = self.condition()?;
                self.expect(")")?;
                Ok(node)
            }
            '[' => {
                self.expect("[")?;
                Ok(Node::List(self.list("]")?))
            }
            '@' => {
                self.rest = self.rest.get(1..).unwrap_or("");
                let (node, word) = match self.word() {
                    "" => (Node::Current, ""),
                    "property" => (Node::Property, "property"),
                    "parent" => (Node::Parent, "parent"),
                    "parentProperty" => (Node::ParentProperty, "parentProperty"),
                    "root" => (Node::Root, "root"),
                    other => return Err(format!("no @{other} here")),
                };
                self.rest = self.rest.get(word.len()..).unwrap_or("");
                Ok(node)
            }
            '\'' | '"' => self.text(first),
            '/' => self.regex(),
            '0'..='9' | '.' => {
                let is_part = |char: char| char.is_ascii_alphanumeric() || char == '.';
                let end = self.rest.find(|char| !is_part(char)).unwrap_or(self.rest.len());
                let (number, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
                self.rest = rest;
                match text_to_number(number) {
                    wrong if wrong.is_nan() => Err(format!("{number} is no number")),
                    right => Ok(Node::Literal(Value::Number(right))),
                }
            }
            _ => {
                let literal = match self.take_word()? {
                    "true" => Value::Bool(true),
                    "false" => Value::Bool(false),
                    "null" => Value::Null,
                    "undefined" => Value::Undefined,
                    other => return Err(format!("{other} is not defined")),
                };
                Ok(Node::Literal(literal))
            }
        }
    }

    fn list(&mut self, close: &str) -> Result<Vec<Node>, String> {
        let mut items = Vec::new();
        if self.takes(close) {
            return Ok(items);
        }
        loop {
            items.push(self.condition()?);
            if !self.takes(",") {
                self.expect(close)?;
                return Ok(items);
            }
        }
    }

    fn word(&self) -> &'c str {
        let is_part = |char: char| char.is_alphanumeric() || char == '_' || char == '$';
        let end = self.rest.find(|char| !is_part(char)).unwrap_or(self.rest.len());
        self.rest.get(..end).unwrap_or("")
    }

    fn take_word(&mut self) -> Result<&'c str, String> {
        let word = self.word();
        if word.is_empty() {
            return Err(format!("\"{}\" is not understood", self.rest));
        }
        self.rest = self.rest.get(word.len()..).unwrap_or("");
        Ok(word)
    }

    fn text(&mut self, quote: char) -> Result<Node, String> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, char)) = chars.next() {
            match char {
                '\\' => match chars.next().map(|(_, escaped)| escaped) {
                    Some('n') => text.push('\n'),
                    Some('r') => text.push('\r'),
                    Some('t') => text.push('\t'),
                    Some(other) => text.push(other),
                    None => break,
                },
                char if char == quote => {
                    self.rest = self.rest.get(at + 1..).unwrap_or("");
                    return Ok(Node::Literal(Value::from(text)));
                }
                char => text.push(char),
            }
        }
        Err(format!("the closing {quote} is missing"))
    }

    fn regex(&mut self) -> Result<Node, String> {
        let mut in_class = false;
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, char)) = chars.next() {
            match char {
                '\\' => drop(chars.next()),
                '[' => in_class = true,
                ']' => in_class = false,
                '/' if !in_class => {
                    let pattern = self.rest.get(1..at).unwrap_or("");
                    self.rest = self.rest.get(at + 1..).unwrap_or("");
                    let flags = self.word();
                    self.rest = self.rest.get(flags.len()..).unwrap_or("");
                    return Ok(Node::Regex(Box::new(regexp::compile(pattern, flags)?)));
                }
                _ => {}
            }
        }
        Err("the closing / is missing".to_owned())
    }
}

impl Method {
    fn of(name: &str) -> Option<Method> {
        Some(match name {
            "test" => Method::Test,
            "match" => Method::Match,
            "includes" => Method::Includes,
            "startsWith" => Method::StartsWith,
            "endsWith" => Method::EndsWith,
            "indexOf" => Method::IndexOf,
            "toLowerCase" => Method::ToLowerCase,
            "toUpperCase" => Method::ToUpperCase,
            "trim" => Method::Trim,
            "substring" => Method::Substring,
            "slice" => Method::Slice,
            "charAt" => Method::CharAt,
            "toString" => Method::ToString,
            "hasOwnProperty" => Method::HasOwnProperty,
            _ => return None,
        })
    }
}
