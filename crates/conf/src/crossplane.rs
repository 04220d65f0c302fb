//! The JSON format of `crossplane parse`: one payload, one entry a file, statements as `directive`, `line`, `args`,
//! with `includes`, `block` and `comment` where they apply.
//!
//! Each file is shown as written, with its `include` statements and the indices of the included files. `line` is the
//! line of the directive's name. Words are as in crossplane: without quotes but with escapes such as `\n`, and `if`
//! without its parentheses.

use serde_json::{Map, Value, json};

use crate::parse::parse;
use crate::problem::{Level, Problem};
use crate::tree::{At, Comment, Source, Statement, Tree, Word};

/// The payload for a loaded configuration and its problems, without comments.
///
/// `opaque` is the function given to [`crate::load`]. Problems of level `Warn` are left out.
pub fn crossplane(tree: &Tree, problems: &[Problem], opaque: &dyn Fn(&str) -> bool) -> Value {
    payload(tree, problems, opaque, false)
}

/// Like [`crossplane`], with comments as directives named `#`.
pub fn crossplane_with_comments(tree: &Tree, problems: &[Problem], opaque: &dyn Fn(&str) -> bool) -> Value {
    payload(tree, problems, opaque, true)
}

fn payload(tree: &Tree, problems: &[Problem], opaque: &dyn Fn(&str) -> bool, has_comments: bool) -> Value {
    let refusals: Vec<&Problem> = problems.iter().filter(|problem| problem.level == Level::Emerg).collect();
    let mut errors = Vec::new();
    let mut config = Vec::new();
    for (index, source) in tree.files.iter().enumerate() {
        let found: Vec<Problem> = refusals.iter().flat_map(|problem| of_file(problem, index)).collect();
        errors.extend(found.iter().map(|problem| error_of(problem, tree, Some(&source.name))));
        let file = u32::try_from(index).unwrap_or(u32::MAX);
        let parsed = parse(&source.bytes, file, opaque);
        let comments = if has_comments { parsed.comments.as_slice() } else { &[] };
        let mut rows = Rows { tree, source, line: Line { number: 1, offset: 0 }, comments: comments.iter().peekable() };
        let mut block = rows.block(&parsed.statements);
        block.extend(rows.comments_until(u32::MAX));
        let status = if found.is_empty() { "ok" } else { "failed" };
        let own: Vec<Value> = found.iter().map(|problem| error_of(problem, tree, None)).collect();
        config.push(json!({
            "file": source.name, "status": status, "errors": own, "parsed": block,
        }));
    }
    for problem in refusals.iter().filter(|problem| problem.at.is_none()) {
        errors.push(json!({"file": null, "error": problem.what, "line": null}));
    }
    let status = if errors.is_empty() { "ok" } else { "failed" };
    json!({"status": status, "errors": errors, "config": config})
}

/// The problem, once for each of its places in the file with this index.
fn of_file(problem: &Problem, index: usize) -> impl Iterator<Item = Problem> {
    let is_here = move |at: &&At| at.file as usize == index;
    let at_place = |at: &At| Problem { at: Some(*at), also: Vec::new(), ..problem.clone() };
    problem.at.iter().chain(&problem.also).filter(is_here).map(at_place)
}

fn error_of(problem: &Problem, tree: &Tree, file: Option<&str>) -> Value {
    let line = problem.at.map(|at| at.line);
    let mut row = Map::new();
    if let Some(file) = file {
        row.insert("file".to_owned(), json!(file));
    }
    row.insert("error".to_owned(), json!(problem.sentence(tree)));
    row.insert("line".to_owned(), json!(line));
    Value::Object(row)
}

/// The current line: statements come in rising order, so each byte is counted once.
struct Line {
    number: usize,
    offset: usize,
}

/// Turns the statements of one file into rows, and inserts its comments at their places.
struct Rows<'a> {
    tree: &'a Tree,
    source: &'a Source,
    line: Line,
    comments: std::iter::Peekable<std::slice::Iter<'a, Comment>>,
}

impl Rows<'_> {
    fn block(&mut self, statements: &[Statement]) -> Vec<Value> {
        let mut rows = Vec::new();
        for statement in statements {
            rows.extend(self.comments_until(statement.at.span.start));
            rows.push(self.row(statement));
        }
        rows
    }

    fn row(&mut self, statement: &Statement) -> Value {
        let mut args: Vec<String> = statement.args.iter().map(|word| written(word, &self.source.bytes)).collect();
        if statement.name == "if" {
            args = condition(args);
        }
        let mut row = Map::new();
        row.insert("directive".to_owned(), json!(statement.name.text));
        row.insert("line".to_owned(), json!(self.line_of(statement.at.span.start)));
        row.insert("args".to_owned(), json!(args));
        let brought_in = self.tree.includes.iter().find(|include| include.at == statement.at);
        if statement.name == "include" {
            let files = brought_in.map(|include| include.files.as_slice()).unwrap_or_default();
            row.insert("includes".to_owned(), json!(files));
        }
        if let Some(block) = &statement.block {
            let mut rows = self.block(block);
            rows.extend(self.comments_until(statement.end.span.start));
            row.insert("block".to_owned(), json!(rows));
        }
        Value::Object(row)
    }

    fn line_of(&mut self, offset: u32) -> usize {
        let offset = offset as usize;
        let passed = self.source.bytes.get(self.line.offset..offset).unwrap_or_default();
        self.line.number += passed.iter().filter(|byte| **byte == b'\n').count();
        self.line.offset = offset;
        self.line.number
    }

    /// Rows for the comments before this byte.
    fn comments_until(&mut self, end: u32) -> Vec<Value> {
        let mut rows = Vec::new();
        while let Some(comment) = self.comments.next_if(|comment| comment.at.span.start < end) {
            rows.push(json!({
                "directive": "#",
                "line": comment.at.line,
                "args": [],
                "comment": String::from_utf8_lossy(&comment.text),
            }));
        }
        rows
    }
}

/// A word in crossplane's form: without its quotes, and with escapes except of the same quote.
fn written(word: &Word, source: &[u8]) -> String {
    let raw = String::from_utf8_lossy(word.at.span.of(source));
    match word.quoted {
        Some(quote @ ('"' | '\'')) => {
            let inner = raw.strip_prefix(quote).unwrap_or(&raw);
            let inner = inner.strip_suffix(quote).unwrap_or(inner);
            unescaped(inner, quote)
        }
        _ => raw.into_owned(),
    }
}

/// The text without `\` before this quote; all other escapes stay.
fn unescaped(text: &str, quote: char) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, chars.clone().next()) {
            ('\\', Some(next)) => {
                chars.next();
                if next != quote {
                    kept.push(c);
                }
                kept.push(next);
            }
            _ => kept.push(c),
        }
    }
    kept
}

/// The arguments of an `if` without the parentheses around them.
fn condition(mut args: Vec<String>) -> Vec<String> {
    let opens = args.first().is_some_and(|arg| arg.starts_with('('));
    let closes = args.last().is_some_and(|arg| arg.ends_with(')'));
    if !(opens && closes) {
        return args;
    }
    if let Some(first) = args.first_mut() {
        first.remove(0);
    }
    if let Some(last) = args.last_mut() {
        last.pop();
    }
    let last = args.len().saturating_sub(1);
    let is_kept = |(index, arg): (usize, String)| {
        let is_edge = index == 0 || index == last;
        (!(is_edge && arg.is_empty())).then_some(arg)
    };
    args.into_iter().enumerate().filter_map(is_kept).collect()
}
