//! `{{ … }}` in texts and trees, compiled once (artillery.md §1.9).
//!
//! As in Artillery: functions are called first, one by one, then variables are inserted until no template is left. So
//! a value that contains `{{ x }}` is rendered too. A text that is a single variable keeps the variable's type. An
//! unknown function makes the whole text `undefined`. Unlike in Artillery, `$&` and `$1` in a value are plain text,
//! and a value that contains itself is inserted [`EXPANSIONS_MAX`] times, not for ever.

use std::borrow::Cow;
use std::sync::Arc;

use memchr::memmem;

use crate::value::{Map, Value, into_string};
use crate::vars::{VariableNames, Vars};

mod scan;

use scan::{Reference, TemplateCall, TemplateVariable};

/// Most insertions into one text, when inserted values bring new templates.
pub const EXPANSIONS_MAX: usize = 1000;

/// The functions for templates: `$randomNumber`, `$randomString`, fake data, and those that a processor added.
pub trait TemplateFunctions {
    /// The result of a function; its name has the `$`. `None`: no function has this name.
    fn call(&self, name: &str, arguments: &[Value]) -> Option<Value>;
}

/// The inputs for rendering templates.
#[derive(Clone, Copy)]
pub struct With<'w> {
    /// The variables.
    pub vars: &'w Vars,
    /// The functions.
    pub functions: &'w dyn TemplateFunctions,
}

/// A text that may hold templates.
#[derive(Clone, Debug)]
pub struct Template {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Literal(Arc<str>),
    /// One variable and nothing else.
    Variable(Box<Lone>),
    Mixed(Box<Mixed>),
}

/// A text that is one variable.
#[derive(Clone, Debug)]
struct Lone {
    source: Arc<str>,
    reference: Reference,
}

/// A text with templates in it.
#[derive(Clone, Debug)]
struct Mixed {
    source: Arc<str>,
    /// Empty if inserted values may form new templates: then the text is parsed again each time.
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
enum Piece {
    Text(Box<str>),
    Variable(Reference),
    Call(TemplateCall),
}

/// The result of writing a mixed text.
#[derive(PartialEq, Eq)]
enum Outcome {
    Text,
    Undefined,
    /// An inserted value contains braces.
    Again,
}

impl Template {
    /// Compiles a text. Never fails: anything that is not a template is text.
    pub fn parse(text: &str, names: &mut VariableNames) -> Template {
        let Some(pieces) = pieces(text, names) else {
            let mixed = Mixed { source: text.into(), pieces: Vec::new() };
            return Template { kind: Kind::Mixed(Box::new(mixed)) };
        };
        let kind = match pieces.as_slice() {
            [] | [Piece::Text(_)] => Kind::Literal(text.into()),
            [Piece::Variable(reference)] => {
                Kind::Variable(Box::new(Lone { source: text.into(), reference: reference.clone() }))
            }
            _ => Kind::Mixed(Box::new(Mixed { source: text.into(), pieces })),
        };
        Template { kind }
    }

    /// A text without templates, even if it looks like one.
    pub fn verbatim(text: &str) -> Template {
        Template { kind: Kind::Literal(text.into()) }
    }

    /// The text, if it contains no template.
    pub fn literal(&self) -> Option<&str> {
        match &self.kind {
            Kind::Literal(text) => Some(text),
            _ => None,
        }
    }

    /// The text as it was written.
    pub fn source(&self) -> Cow<'_, str> {
        match &self.kind {
            Kind::Literal(text) => Cow::Borrowed(text),
            Kind::Variable(lone) => Cow::Borrowed(&lone.source),
            Kind::Mixed(mixed) => Cow::Borrowed(&mixed.source),
        }
    }

    /// The functions that it calls; names have the `$`.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        let pieces = match &self.kind {
            Kind::Mixed(mixed) => mixed.pieces.as_slice(),
            _ => &[],
        };
        pieces.iter().filter_map(|piece| match piece {
            Piece::Call(call) => Some(&*call.name),
            _ => None,
        })
    }

    /// The value. A text that is a single template keeps the variable's type.
    pub fn value(&self, vars: &Vars, functions: &dyn TemplateFunctions) -> Value {
        match &self.kind {
            Kind::Literal(text) => Value::Text(text.clone()),
            Kind::Variable(only) => lone(only.reference.value(vars)),
            Kind::Mixed(mixed) => {
                let mut out = Vec::new();
                match mixed.write(vars, functions, &mut out) {
                    Outcome::Text => Value::from(into_string(out)),
                    Outcome::Undefined => Value::Undefined,
                    Outcome::Again => render(&mixed.source, vars, functions),
                }
            }
        }
    }

    /// Appends the value as text: objects and lists as JSON, `undefined` as that word.
    ///
    /// Returns false if the value is `undefined`, so that the caller can leave it out.
    pub fn write(&self, vars: &Vars, functions: &dyn TemplateFunctions, out: &mut Vec<u8>) -> bool {
        let begin = out.len();
        match &self.kind {
            Kind::Literal(text) => out.extend_from_slice(text.as_bytes()),
            Kind::Variable(only) => return write_value(&lone(only.reference.value(vars)), out),
            Kind::Mixed(mixed) => match mixed.write(vars, functions, out) {
                Outcome::Text => {}
                Outcome::Undefined => {
                    out.truncate(begin);
                    return write_value(&Value::Undefined, out);
                }
                Outcome::Again => {
                    out.truncate(begin);
                    return write_value(&render(&mixed.source, vars, functions), out);
                }
            },
        }
        true
    }

    /// The value as text; borrowed if there is no template.
    pub fn text(&self, vars: &Vars, functions: &dyn TemplateFunctions) -> Cow<'_, str> {
        if let Some(text) = self.literal() {
            return Cow::Borrowed(text);
        }
        let mut out = Vec::new();
        self.write(vars, functions, &mut out);
        Cow::Owned(into_string(out))
    }
}

/// Renders a text that is known only at run time: a URL that a hook changed, a value that contains a template.
pub fn render(text: &str, vars: &Vars, functions: &dyn TemplateFunctions) -> Value {
    let mut text = text.to_owned();
    let mut left = EXPANSIONS_MAX;
    while left > 0
        && let Some((from, to, call)) = scan::call(&text)
    {
        let Some(value) = functions.call(&call.name, &call.arguments) else { return Value::Undefined };
        text.replace_range(from..to, &value.to_text());
        left -= 1;
    }
    if let Some(name) = scan::only_variable(&text) {
        return lone(Cow::Owned(vars.by_path(&name)));
    }
    while left > 0
        && let Some(TemplateVariable { from, to, name }) = scan::variable(&text, 0)
    {
        let mut value = Vec::new();
        write_value(&vars.by_path(&name), &mut value);
        text.replace_range(from..to, &into_string(value));
        left -= 1;
    }
    Value::from(text)
}

/// As [`render`], for a whole value with its keys.
pub fn render_value(value: &Value, vars: &Vars, functions: &dyn TemplateFunctions) -> Value {
    match value {
        Value::Text(text) if has_braces(text.as_bytes()) => render(text, vars, functions),
        Value::List(list) => {
            Value::from(list.iter().map(|item| render_value(item, vars, functions)).collect::<Vec<Value>>())
        }
        Value::Map(map) => {
            let members = map.iter().map(|(key, value)| {
                let key = if has_braces(key.as_bytes()) { Err(render(key, vars, functions)) } else { Ok(key) };
                (key, render_value(value, vars, functions))
            });
            make_map(members)
        }
        other => other.clone(),
    }
}

impl Mixed {
    fn write(&self, vars: &Vars, functions: &dyn TemplateFunctions, out: &mut Vec<u8>) -> Outcome {
        if self.pieces.is_empty() {
            return Outcome::Again;
        }
        let begin = out.len();
        let mut is_suspect = false;
        for piece in &self.pieces {
            let from = out.len();
            match piece {
                Piece::Text(text) => {
                    out.extend_from_slice(text.as_bytes());
                    continue;
                }
                Piece::Variable(reference) => {
                    write_value(&reference.value(vars), out);
                }
                Piece::Call(call) => match functions.call(&call.name, &call.arguments) {
                    Some(value) => value.write_text(out),
                    None => return Outcome::Undefined,
                },
            }
            let put_in = out.get(from..).unwrap_or_default();
            if put_in.ends_with(b"{") {
                return Outcome::Again;
            }
            is_suspect |= memchr::memchr(b'{', put_in).is_some();
        }
        // Single braces are harmless, as in JSON; two together may begin a template.
        if is_suspect && has_braces(out.get(begin..).unwrap_or_default()) { Outcome::Again } else { Outcome::Text }
    }
}

fn has_braces(text: &[u8]) -> bool {
    memmem::find(text, b"{{").is_some()
}

/// Artillery's result for a text that is a single variable.
fn lone(value: Cow<'_, Value>) -> Value {
    match &*value {
        Value::Number(number) if number.is_nan() => Value::from(""),
        _ => value.into_owned(),
    }
}

fn write_value(value: &Value, out: &mut Vec<u8>) -> bool {
    if value.is_object() {
        value.write_json(out);
    } else {
        value.write_text(out);
    }
    *value != Value::Undefined
}

/// The pieces of a text; `None` if inserted values may form a template together with the text.
fn pieces(text: &str, names: &mut VariableNames) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((from, to, call)) = scan::call(rest) {
        variables(rest.get(..from)?, names, &mut pieces)?;
        pieces.push(Piece::Call(call));
        rest = rest.get(to..)?;
    }
    variables(rest, names, &mut pieces)?;
    let is_text = pieces.iter().all(|piece| matches!(piece, Piece::Text(_)));
    if is_text && !text.is_empty() {
        return Some(vec![Piece::Text(text.into())]);
    }
    let is_loose = |piece: &Piece| matches!(piece, Piece::Text(text) if has_braces(text.as_bytes()));
    (!pieces.iter().any(is_loose)).then_some(pieces)
}

/// Appends the pieces of a text without calls.
fn variables(text: &str, names: &mut VariableNames, pieces: &mut Vec<Piece>) -> Option<()> {
    let mut at = 0;
    while let Some(TemplateVariable { from, to, name }) = scan::variable(text, at) {
        if from > at {
            pieces.push(Piece::Text(text.get(at..from)?.into()));
        }
        pieces.push(Piece::Variable(Reference::new(&name, names)));
        at = to;
    }
    if at < text.len() {
        pieces.push(Piece::Text(text.get(at..)?.into()));
    }
    Some(())
}

/// A value with templates anywhere inside it, keys included.
#[derive(Clone, Debug)]
pub struct Tree {
    node: Node,
}

#[derive(Clone, Debug)]
enum Node {
    Literal(Value),
    Text(Template),
    List(Vec<Tree>),
    Map(Vec<(Label, Tree)>),
}

/// The name of a member.
#[derive(Clone, Debug)]
enum Label {
    Plain(Arc<str>),
    Rendered(Template),
}

impl Tree {
    /// Compiles a value.
    pub fn parse(value: &Value, names: &mut VariableNames) -> Tree {
        let literal = Tree { node: Node::Literal(value.clone()) };
        let node = match value {
            Value::Text(text) if has_braces(text.as_bytes()) => Node::Text(Template::parse(text, names)),
            Value::List(list) => {
                let items: Vec<Tree> = list.iter().map(|item| Tree::parse(item, names)).collect();
                if items.iter().all(|item| item.literal().is_some()) {
                    return literal;
                }
                Node::List(items)
            }
            Value::Map(map) => {
                let mut members = Vec::with_capacity(map.len());
                for (key, value) in map.iter() {
                    let label = Template::parse(key, names);
                    let label =
                        if label.literal().is_some() { Label::Plain(key.clone()) } else { Label::Rendered(label) };
                    members.push((label, Tree::parse(value, names)));
                }
                let is_literal =
                    |(label, tree): &(Label, Tree)| matches!(label, Label::Plain(_)) && tree.literal().is_some();
                if members.iter().all(is_literal) {
                    return literal;
                }
                Node::Map(members)
            }
            _ => return literal,
        };
        match node {
            Node::Text(template) if template.literal().is_some() => literal,
            node => Tree { node },
        }
    }

    /// The value, if it contains no template.
    pub fn literal(&self) -> Option<&Value> {
        match &self.node {
            Node::Literal(value) => Some(value),
            _ => None,
        }
    }

    /// All templates in it, keys included.
    pub fn templates<'t>(&'t self, each: &mut dyn FnMut(&'t Template)) {
        match &self.node {
            Node::Literal(_) => {}
            Node::Text(template) => each(template),
            Node::List(items) => items.iter().for_each(|item| item.templates(each)),
            Node::Map(members) => {
                for (label, tree) in members {
                    if let Label::Rendered(template) = label {
                        each(template);
                    }
                    tree.templates(each);
                }
            }
        }
    }

    /// The value with all templates rendered. Members with a template as name come last, as in Artillery.
    pub fn value(&self, vars: &Vars, functions: &dyn TemplateFunctions) -> Value {
        match &self.node {
            Node::Literal(value) => value.clone(),
            Node::Text(template) => template.value(vars, functions),
            Node::List(items) => {
                Value::from(items.iter().map(|item| item.value(vars, functions)).collect::<Vec<Value>>())
            }
            Node::Map(members) => make_map(members.iter().map(|(label, tree)| {
                let label = match label {
                    Label::Plain(key) => Ok(key),
                    Label::Rendered(template) => Err(template.value(vars, functions)),
                };
                (label, tree.value(vars, functions))
            })),
        }
    }

    /// Appends `JSON.stringify` of the value; builds no value if no key is a template. Returns false if the result is
    /// `undefined`.
    pub fn write_json(&self, vars: &Vars, functions: &dyn TemplateFunctions, out: &mut Vec<u8>) -> bool {
        match &self.node {
            Node::Literal(value) => return value.write_json(out),
            Node::Text(template) => return template.value(vars, functions).write_json(out),
            Node::List(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    if !item.write_json(vars, functions, out) {
                        out.extend_from_slice(b"null");
                    }
                }
                out.push(b']');
            }
            Node::Map(members) => {
                if members.iter().any(|(label, _)| matches!(label, Label::Rendered(_))) {
                    return self.value(vars, functions).write_json(out);
                }
                out.push(b'{');
                let mut is_first = true;
                for (label, tree) in members {
                    let Label::Plain(key) = label else { continue };
                    let begin = out.len();
                    if !is_first {
                        out.push(b',');
                    }
                    crate::value::write_json_text(key, out);
                    out.push(b':');
                    if tree.write_json(vars, functions, out) {
                        is_first = false;
                    } else {
                        out.truncate(begin);
                    }
                }
                out.push(b'}');
            }
        }
        true
    }
}

/// An object of members, rendered names last. lodash treats such a name as a path (`a.b` nests).
fn make_map<'k>(members: impl Iterator<Item = (Result<&'k Arc<str>, Value>, Value)>) -> Value {
    let mut map = Map::default();
    let mut rendered = Vec::new();
    for (label, value) in members {
        match label {
            Ok(key) => {
                map.insert(key.clone(), value);
            }
            Err(key) => rendered.push((key, value)),
        }
    }
    let mut whole = Value::from(map);
    for (key, value) in rendered {
        whole.set(&crate::value::Path::parse(&key.to_text()).keys, value);
    }
    whole
}

#[cfg(test)]
mod tests;
