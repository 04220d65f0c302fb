//! Parses an expression into a tree, with filtrex's tokens and precedences.

use super::{Function, Node, Operator, regexp, text_to_number};
use crate::value::Value;

/// The longest expression, in bytes; this also limits the length of chains.
const TEXT_MAX: usize = 16 << 10;
/// Deepest nesting of an expression.
const DEPTH_MAX: usize = 200;
/// Most operands in a chain: each operand makes the tree one level deeper.
const CHAIN_MAX: usize = 500;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Sign(&'static str),
    Number(f64),
    Text(String),
    Symbol(String),
    End,
}

/// Precedence of operators, weakest first.
mod power {
    pub const CONDITION: u8 = 1;
    pub const OR: u8 = 2;
    pub const AND: u8 = 3;
    pub const IN: u8 = 4;
    pub const EQUAL: u8 = 5;
    pub const LESS: u8 = 6;
    pub const ADD: u8 = 7;
    pub const MULTIPLY: u8 = 8;
    pub const POWER: u8 = 9;
    pub const NOT: u8 = 10;
    pub const MINUS: u8 = 11;
    pub const OF: u8 = 12;
}

pub(super) fn parse(text: &str) -> Result<Node, String> {
    if text.len() > TEXT_MAX {
        return Err(format!("too long: an expression is at most {TEXT_MAX} bytes"));
    }
    let mut parser = Parser { tokens: tokens(text)?, at: 0, depth: 0 };
    let node = parser.expression(0)?;
    match parser.peek() {
        Token::End => Ok(node),
        _ => Err(parser.wrong("an operator or the end")),
    }
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).map_or(&Token::End, |(_, token)| token)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is_it = matches!(self.peek(), Token::Sign(found) if *found == sign);
        self.at += usize::from(is_it);
        is_it
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.takes(sign) { Ok(()) } else { Err(self.wrong(sign)) }
    }

    fn wrong(&self, expected: &str) -> String {
        let at = self.tokens.get(self.at).or(self.tokens.last()).map_or(0, |(at, _)| *at);
        let found = match self.peek() {
            Token::Sign(sign) => format!("\"{sign}\""),
            Token::Number(number) => number.to_string(),
            Token::Text(text) => format!("the text \"{text}\""),
            Token::Symbol(name) => format!("the name \"{name}\""),
            Token::End => "the end".to_owned(),
        };
        format!("at {at}: {expected} expected, {found} found")
    }

    fn expression(&mut self, min: u8) -> Result<Node, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("too deep: expressions nest at most {DEPTH_MAX} deep"));
        }
        let mut left = self.operand()?;
        for length in 0.. {
            if length > CHAIN_MAX {
                return Err(format!("too long: at most {CHAIN_MAX} operators in a row"));
            }
            match self.operator(left, min)? {
                (node, true) => left = node,
                (node, false) => {
                    self.depth -= 1;
                    return Ok(node);
                }
            }
        }
        Ok(left)
    }

    /// Parses an operator of at least this precedence and its right side; false if there is none.
    fn operator(&mut self, left: Node, min: u8) -> Result<(Node, bool), String> {
        let Token::Sign(sign) = *self.peek() else { return Ok((left, false)) };
        let Some(strength) = strength(sign).filter(|strength| *strength >= min) else { return Ok((left, false)) };
        self.at += 1;
        let left = Box::new(left);
        let node = match sign {
            "?" => {
                let yes = self.expression(0)?;
                self.expect(":")?;
                Node::If(Box::new([*left, yes, self.expression(strength + 1)?]))
            }
            "not" => {
                self.expect("in")?;
                // It is parsed like `not`, and its right side like the right side of `in`.
                Node::In { one: left, all: Box::new(self.expression(power::IN + 1)?), is_not: true }
            }
            "in" => Node::In { one: left, all: Box::new(self.expression(strength + 1)?), is_not: false },
            "and" => Node::And(left, Box::new(self.expression(strength + 1)?)),
            "or" => Node::Or(left, Box::new(self.expression(strength + 1)?)),
            "~=" => match self.expression(strength + 1)? {
                Node::Literal(Value::Text(text)) => Node::Matches(left, Box::new(regexp::compile(&text, "")?)),
                right => Node::Binary(Operator::Matches, left, Box::new(right)),
            },
            sign => {
                let right = Box::new(self.expression(strength + 1)?);
                Node::Binary(binary(sign).ok_or_else(|| self.wrong("an operator"))?, left, right)
            }
        };
        Ok((node, true))
    }

    fn operand(&mut self) -> Result<Node, String> {
        match self.peek() {
            Token::Sign("-") => {
                self.at += 1;
                Ok(Node::Minus(Box::new(self.expression(power::MINUS + 1)?)))
            }
            Token::Sign("not") => {
                self.at += 1;
                Ok(Node::Not(Box::new(self.expression(power::NOT + 1)?)))
            }
            Token::Sign("(") => {
                self.at += 1;
                let mut items = vec![self.expression(0)?];
                while self.takes(",") {
                    items.push(self.expression(0)?);
                }
                self.expect(")")?;
                Ok(if items.len() == 1 { items.swap_remove(0) } else { Node::List(items) })
            }
            Token::Number(_) | Token::Text(_) => Ok(match self.next() {
                Token::Number(number) => Node::Literal(Value::Number(number)),
                Token::Text(text) => Node::Literal(Value::from(text)),
                _ => Node::Literal(Value::Undefined),
            }),
            Token::Symbol(_) => self.named(),
            _ => Err(self.wrong("a value")),
        }
    }

    fn named(&mut self) -> Result<Node, String> {
        let begin = self.at;
        let Token::Symbol(name) = self.next() else { return Err(self.wrong("a name")) };
        if self.takes("of") {
            return Ok(Node::Of(name, Box::new(self.expression(power::OF)?)));
        }
        if !self.takes("(") {
            return Ok(Node::Variable(name));
        }
        let Some(function) = Function::of(&name) else {
            self.at = begin;
            return Err(self.wrong("a function (abs, ceil, floor, log, max, min, random, round, sqrt)"));
        };
        let mut arguments = Vec::new();
        if !self.takes(")") {
            arguments.push(self.expression(0)?);
            while self.takes(",") {
                arguments.push(self.expression(0)?);
            }
            self.expect(")")?;
        }
        Ok(Node::Call(function, arguments))
    }
}

fn strength(sign: &str) -> Option<u8> {
    Some(match sign {
        "?" => power::CONDITION,
        "or" => power::OR,
        "and" => power::AND,
        "in" => power::IN,
        "not" => power::NOT,
        "==" | "!=" | "~=" => power::EQUAL,
        "<" | "<=" | ">" | ">=" => power::LESS,
        "+" | "-" => power::ADD,
        "*" | "/" | "%" => power::MULTIPLY,
        "^" => power::POWER,
        _ => return None,
    })
}

fn binary(sign: &str) -> Option<Operator> {
    Some(match sign {
        "+" => Operator::Add,
        "-" => Operator::Subtract,
        "*" => Operator::Multiply,
        "/" => Operator::Divide,
        "%" => Operator::Remainder,
        "^" => Operator::Power,
        "==" => Operator::Equal,
        "!=" => Operator::Unequal,
        "<" => Operator::Less,
        "<=" => Operator::LessEqual,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterEqual,
        _ => return None,
    })
}

/// Signs, longer ones first.
const SIGNS: [&str; 18] =
    ["==", "!=", "~=", ">=", "<=", "*", "/", "-", "+", "^", "%", "(", ")", ",", "<", ">", "?", ":"];
/// Words that are operators if the next character is not a letter, digit or `_`; the operator includes that
/// character.
const WORDS: [&str; 5] = ["and", "or", "not", "in", "of"];

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, String> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = text.get(at..).unwrap_or("");
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (token, len) = token(rest, first).map_err(|why| format!("at {at}: {why}"))?;
        tokens.push((at, token));
        at += len;
    }
    tokens.push((text.len(), Token::End));
    Ok(tokens)
}

fn token(rest: &str, first: char) -> Result<(Token, usize), String> {
    if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
        return Ok((Token::Sign(sign), sign.len()));
    }
    let is_word = |char: char| char.is_ascii_alphanumeric() || char == '_';
    for word in WORDS {
        let after = rest.strip_prefix(word).and_then(|after| after.chars().next());
        match after.filter(|after| !is_word(*after)) {
            Some('(') => return Err(format!("a space is needed after \"{word}\"")),
            Some(after) => return Ok((Token::Sign(word), word.len() + after.len_utf8())),
            None => {}
        }
    }
    match first {
        '0'..='9' => number(rest),
        '"' => quoted(rest, '"').map(|(text, len)| (Token::Text(text), len)),
        '\'' => quoted(rest, '\'').map(|(name, len)| (Token::Symbol(name), len)),
        'a'..='z' | 'A'..='Z' | '$' | '_' => {
            let is_of_name = |char: char| is_word(char) || char == '.' || char == '$';
            let len = rest.find(|char| !is_of_name(char)).unwrap_or(rest.len());
            Ok((Token::Symbol(rest.get(..len).unwrap_or("").to_owned()), len))
        }
        other => Err(format!("\"{other}\" means nothing here{}", hint(rest))),
    }
}

fn hint(rest: &str) -> &'static str {
    match rest.get(..1) {
        Some("&") => "; write \"and\"",
        Some("|") => "; write \"or\"",
        Some("!") => "; write \"not\"",
        Some("=") => "; write \"==\"",
        _ => "",
    }
}

/// `12`, `1.5`; a letter may not follow.
fn number(rest: &str) -> Result<(Token, usize), String> {
    let digits = |text: &str| text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let whole = digits(rest);
    let part = rest.get(whole..).and_then(|rest| rest.strip_prefix('.')).map_or(0, digits);
    let len = if part > 0 { whole + 1 + part } else { whole };
    let (number, after) = rest.split_at_checked(len).unwrap_or((rest, ""));
    if after.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_') {
        return Err(format!("no letter may follow the number {number}"));
    }
    Ok((Token::Number(text_to_number(number)), len))
}

fn quoted(rest: &str, quote: char) -> Result<(String, usize), String> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some((_, escaped)) if escaped == quote || escaped == '\\' => text.push(escaped),
                _ => return Err(format!("\\ may only stand before {quote} and \\ here")),
            },
            char if char == quote => return Ok((text, at + 1)),
            char => text.push(char),
        }
    }
    Err(format!("the closing {quote} is missing"))
}
