//! Parses YAML, and therefore JSON, into [`Node`]s.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use weir_words::say;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};

use super::node::{Member, Members, Node, NodeValue};
use super::source::{Problem, SourcePlace};
use super::{merge, scalar};
use crate::texts::script as texts;

/// Most values of a script with its aliases expanded; more count as an alias bomb.
pub(crate) const NODES_MAX: usize = 1_000_000;

/// Deepest nesting of lists and objects.
pub(crate) const DEPTH_MAX: usize = 100;

/// Parses one document.
pub(crate) fn read(text: &str, file: u16) -> Result<Node, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = pairs(text);
    let first = document(&text, file);
    // js-yaml accepts a tab after `:`; this parser does not before a word. JSON files often have such tabs.
    let is_tab = first.as_ref().is_err_and(|problem| problem.what.contains("':' must be followed"));
    let read = if is_tab { document(&text.replace(":\t", ": "), file) } else { first };
    read.map_err(|problem| at_the_tab(problem, &text))
}

/// The parser reports the start of the value before a tab; this moves the place to the tab, which is the error.
fn at_the_tab(problem: Problem, text: &str) -> Problem {
    let Some(at) = problem.at.filter(|_| problem.what.contains("tab")) else { return problem };
    let from = at.line.saturating_sub(1) as usize;
    let indent = |line: &str| line.find(|c: char| c != ' ').filter(|at| line[*at..].starts_with('\t'));
    let found = text.lines().enumerate().skip(from).find_map(|(line, text)| Some((line, indent(text)?)));
    let Some((line, column)) = found else { return problem };
    let number = |number: usize| u32::try_from(number + 1).unwrap_or(u32::MAX);
    let at = SourcePlace { line: number(line), column: number(column), ..at };
    Problem::new(at, texts::TAB)
}

fn document(text: &str, file: u16) -> Result<Node, Problem> {
    let mut reader = Reader { parser: Parser::new_from_str(text), file, anchors: HashMap::new(), nodes: 0 };
    let mut document = None;
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamEnd => break,
            Event::Nothing | Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd => {}
            _ if document.is_some() => {
                return Err(Problem::new(reader.at(&span), texts::SECOND_DOCUMENT));
            }
            event => document = Some(reader.node(event, span, 0)?),
        }
    }
    Ok(document.unwrap_or(Node::new(SourcePlace { file, line: 1, column: 1 }, NodeValue::Undefined)))
}

/// JSON writes a character above U+FFFF as two `\u` escapes, YAML as one `\U`.
fn pairs(text: &str) -> Cow<'_, str> {
    let lower = |c: u8| c.to_ascii_lowercase();
    let is_candidate =
        text.as_bytes().windows(4).any(|w| w.starts_with(b"\\u") && w.get(2).map(|c| lower(*c)) == Some(b'd'));
    if !is_candidate {
        return text.into();
    }
    let unit = |at: usize| {
        let escape = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(escape, 16).ok()
    };
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        match (unit(at), unit(at + 6)) {
            (Some(high @ 0xd800..0xdc00), Some(low @ 0xdc00..0xe000)) => {
                out.push_str(&format!("\\U{:08X}", 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)));
                at += 12;
            }
            _ => {
                out.push(c);
                at += c.len_utf8();
                // An escaped backslash: the next character is not part of an escape.
                if c == '\\' && text.get(at..).is_some_and(|rest| rest.starts_with('\\')) {
                    out.push('\\');
                    at += 1;
                }
            }
        }
    }
    out.into()
}

struct Reader<'t> {
    parser: Parser<'t, StrInput<'t>>,
    file: u16,
    /// Anchored values, each with its number of nodes.
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<(Event<'t>, Span), Problem> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(self.broken(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn broken(&self, error: &ScanError) -> Problem {
        let at = Span::empty(*error.marker());
        Problem::new(self.at(&at), say!(texts::NOT_YAML, error.info()))
    }

    fn at(&self, span: &Span) -> SourcePlace {
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        SourcePlace { file: self.file, line: number(span.start.line()), column: number(span.start.col() + 1) }
    }

    fn spend(&mut self, nodes: usize, at: SourcePlace) -> Result<(), Problem> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > NODES_MAX {
            return Err(Problem::new(at, say!(texts::TOO_MANY_VALUES, NODES_MAX)));
        }
        Ok(())
    }

    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Node, Problem> {
        let at = self.at(&span);
        if depth > DEPTH_MAX {
            return Err(Problem::new(at, say!(texts::TOO_DEEP, DEPTH_MAX)));
        }
        let before = self.nodes;
        self.spend(1, at)?;
        let (kind, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => (scalar_kind(&text, style, tag.as_deref(), at)?, anchor),
            Event::SequenceStart(anchor, tag) => {
                only(tag.as_deref(), "seq", at)?;
                (NodeValue::List(self.list(depth)?), anchor)
            }
            Event::MappingStart(anchor, tag) => {
                only(tag.as_deref(), "map", at)?;
                (NodeValue::Map(self.map(depth)?), anchor)
            }
            Event::Alias(anchor) => return self.alias(anchor, at),
            _ => return Err(Problem::new(at, texts::NEEDS_VALUE)),
        };
        let node = Node { at, kind };
        if anchor != 0 {
            let size = self.nodes - before;
            self.spend(size, at)?;
            self.anchors.insert(anchor, (node.clone(), size));
        }
        Ok(node)
    }

    fn alias(&mut self, anchor: usize, at: SourcePlace) -> Result<Node, Problem> {
        let Some(size) = self.anchors.get(&anchor).map(|(_, size)| *size) else {
            return Err(Problem::new(at, texts::ALIAS_INSIDE));
        };
        self.spend(size, at)?;
        match self.anchors.get(&anchor) {
            Some((node, _)) => Ok(node.clone()),
            None => Err(Problem::new(at, texts::NO_ANCHOR)),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, Problem> {
        let mut list = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                return Ok(list);
            }
            list.push(self.node(event, span, depth + 1)?);
        }
    }

    fn map(&mut self, depth: usize) -> Result<Members, Problem> {
        let mut members = Members::new();
        // Keys that came from `<<`: a key in this object replaces them.
        let mut merged: HashSet<Arc<str>> = HashSet::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(members);
            }
            let at = self.at(&span);
            let is_merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<");
            let key = self.node(event, span, depth + 1)?;
            let (event, span) = self.next()?;
            let value = self.node(event, span, depth + 1)?;
            if is_merge {
                merge::into_members(&mut members, &mut merged, &value)?;
                continue;
            }
            let name: Arc<str> = match &key.kind {
                NodeValue::Map(_) => "[object Object]".into(),
                _ => key.shown().into(),
            };
            if !merged.remove(&name) && members.contains_key(&name) {
                return Err(Problem::new(at, say!(texts::TWICE, name.as_ref())));
            }
            members.insert(name, Member { at, value });
        }
    }
}

/// A scalar's value: by its tag, or by its form if it is unquoted.
fn scalar_kind(text: &str, style: ScalarStyle, tag: Option<&Tag>, at: SourcePlace) -> Result<NodeValue, Problem> {
    let Some(tag) = tag else {
        return Ok(if style == ScalarStyle::Plain { scalar::plain(text) } else { NodeValue::Text(text.into()) });
    };
    let number = |number: Option<f64>| number.map(NodeValue::Number);
    let kind = match (tag.is_yaml_core_schema(), tag.suffix.as_str()) {
        (true, "str") => Some(NodeValue::Text(text.into())),
        (false, "" | "!") if tag.handle.is_empty() || tag.suffix.is_empty() => Some(NodeValue::Text(text.into())),
        (true, "int") => number(scalar::int(text)),
        (true, "float") => number(scalar::float(text).or_else(|| scalar::int(text))),
        (true, "bool" | "null" | "timestamp") => Some(scalar::plain(text)),
        _ => return Err(unknown_tag(tag, at)),
    };
    kind.ok_or_else(|| Problem::new(at, say!(texts::IS_NO, text, &tag.suffix)))
}

fn only(tag: Option<&Tag>, suffix: &str, at: SourcePlace) -> Result<(), Problem> {
    match tag {
        Some(tag) if !(tag.is_yaml_core_schema() && tag.suffix == suffix) => Err(unknown_tag(tag, at)),
        _ => Ok(()),
    }
}

fn unknown_tag(tag: &Tag, at: SourcePlace) -> Problem {
    Problem::new(at, say!(texts::UNKNOWN_TAG, &tag.handle, &tag.suffix))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::value::Value;

    /// The value as JSON-like text.
    fn shown(value: &Value) -> String {
        match value {
            Value::List(list) => format!("[{}]", list.iter().map(shown).collect::<Vec<_>>().join(",")),
            Value::Map(map) => {
                let members = map.iter().map(|(key, value)| format!("{key}:{}", shown(value)));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }
            Value::Text(text) => format!("{text:?}"),
            other => Node::of(other, SourcePlace::default()).shown(),
        }
    }

    #[test]
    fn documents() {
        let cases = [
            ("a: 1\nb: [x, 'y', \"z\\n\"]\n", "{a:1,b:[\"x\",\"y\",\"z\\n\"]}"),
            ("{\"a\": {\"b\": null, \"c\": true}}", "{a:{b:null,c:true}}"),
            ("\u{feff}{\n\t\"a\":\t1\n}", "{a:1}"),
            ("{\"a\": \"\\ud83d\\ude00 \\\\ud83d \\/\"}", "{a:\"😀 \\\\ud83d /\"}"),
            ("a: |\n  x\n  y\nb: >-\n  x\n  y\n", "{a:\"x\\ny\\n\",b:\"x y\"}"),
            ("a: &x {p: 1}\nb: *x\n", "{a:{p:1},b:{p:1}}"),
            ("d: &d {p: 1, q: 2}\ne:\n  q: 3\n  <<: *d\n", "{d:{p:1,q:2},e:{q:3,p:1}}"),
            ("d: &d {p: 1, q: 2}\ne:\n  <<: *d\n  q: 3\n", "{d:{p:1,q:2},e:{p:1,q:3}}"),
            ("- &a {p: 1}\n- &b {p: 2, q: 2}\n- <<: [*a, *b]\n", "[{p:1},{p:2,q:2},{p:1,q:2}]"),
            ("'<<': 1", "{<<:1}"),
            ("1: a\ntrue: b\n~: c\n", "{1:\"a\",true:\"b\",null:\"c\"}"),
            ("a: !!str 5\nb: !!int '7'\nc: !!float 1\nd: ! 5", "{a:\"5\",b:7,c:1,d:\"5\"}"),
            ("? {a: 1}\n: b", "{[object Object]:\"b\"}"),
            ("a:\t1\nb: {\"c\":\t1}\n", "{a:1,b:{c:1}}"),
            ("# nothing\n", "undefined"),
            ("--- {a: 1}\n...\n", "{a:1}"),
        ];
        for (text, expected) in cases {
            let node = read(text, 0).unwrap_or_else(|problem| panic!("{text}: {}", problem.what));
            assert_eq!(shown(&node.value()), expected, "{text}");
        }
    }

    #[test]
    fn places_are_known() {
        let node = read("a:\n  - b: 1\n    ccc: 2\n", 3).unwrap();
        let step = &node.get("a").unwrap().list().unwrap()[0];
        let member = &step.map().unwrap()["ccc"];
        assert_eq!((member.at, member.value.at.column), (SourcePlace { file: 3, line: 3, column: 5 }, 10));
    }

    #[test]
    fn refusals_say_where() {
        let bomb = (1..12).fold("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, level| {
            let below = vec![format!("*a{}", level - 1); 10].join(", ");
            format!("{text}a{level}: &a{level} [{below}]\n")
        });
        let deep = format!("{}{}", "[".repeat(150), "]".repeat(150));
        let cases = [
            ("a: 1\na: 2", 2, "stands here twice"),
            ("a: [1", 1, "not YAML"),
            ("a: 1\n--- \nb: 1", 3, "a second document"),
            ("a: &x [*x]", 1, "inside the value that it names"),
            ("a: *x", 1, "not YAML"),
            ("a: !!binary aGk=", 1, "unknown tag !<tag:yaml.org,2002:binary>"),
            ("a: !mine x", 1, "unknown tag !<!mine>"),
            ("a: !!int x", 1, "is no int"),
            ("<<: 5", 1, "unacceptable"),
            (bomb.as_str(), 0, "more than 1000000 values"),
            (deep.as_str(), 1, "nested more than"),
        ];
        for (text, line, why) in cases {
            let problem = read(text, 0).expect_err(text);
            assert!(problem.what.contains(why), "{text}: {}", problem.what);
            let at = problem.at.unwrap();
            assert!(line == 0 || at.line.abs_diff(line) <= 1, "{text}: {at:?}");
        }
    }

    mod mutate {
        use super::*;
        /// A script of any bytes is a document, or a problem with a place.
        #[test]
        fn documents() {
            let seeds = [
                "config:\n  target: &a http://a\n  phases: [{duration: 1, arrivalRate: 2}]\nscenarios:\n- flow: *a\n",
                "a: !!str 1\nb: |\n  x\n   y\nc: >-\n  z\n<<: {d: ~}\n",
                "{\"a\":\t[\"\\ud83d\\ude00\", 0o7, .inf, 1_000, 2026-01-01]}",
            ];
            let words = [
                "\n", "  ", "\t", ": ", "- ", "&a ", "*a", "!!", "[", "]", "{", "}", "|", ">", "'", "\"", "#",
                "<<: *a", "---\n", "...", "? ", "%YAML", "\0", "é", "\u{feff}",
            ];
            weir_mutate::mutate(&seeds, &words, |bytes| {
                if let Err(problem) = read(&String::from_utf8_lossy(bytes), 0) {
                    assert!(!problem.what.en().is_empty());
                }
            });
        }
    }
}
