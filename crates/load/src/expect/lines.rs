//! The lines that the plugin prints after each request.

use std::fmt::Write;

use super::checks::CheckResult;
use crate::value::{Map, Value};
use crate::vars::Vars;

/// Number of UTF-16 units of a body that are shown.
const BODY_SHOWN: usize = 512;

/// The request and the answer, printed beside failed checks.
pub struct Exchange<'e> {
    /// `GET`.
    pub method: &'e str,
    /// The whole URL.
    pub url: &'e str,
    /// The request's `name`.
    pub name: Option<&'e str>,
    /// The request's `json`.
    pub json: Option<&'e Value>,
    /// The answer's headers, names in lower case.
    pub headers: &'e [(&'e str, &'e str)],
    /// The answer's body.
    pub body: &'e str,
    /// The virtual user's variables.
    pub vars: &'e Vars,
    /// True if the terminal shows colours.
    pub is_coloured: bool,
}

/// The lines of `outputFormat: pretty`, each with its line end; the empty text if there are no checks.
pub fn pretty(outcomes: &[CheckResult], exchange: &Exchange<'_>) -> String {
    let mut out = String::new();
    if outcomes.is_empty() {
        return out;
    }
    let head = exchange.paint(34, &format!("* {} {}", exchange.method, path_of(exchange.url)));
    let name = exchange.name.map(|name| format!("- {name}")).unwrap_or_default();
    // Writing to a String never fails.
    let _ = writeln!(out, "{head} {name}\n");
    for outcome in outcomes {
        let word = if outcome.ok { exchange.paint(32, "ok") } else { exchange.paint(31, "not ok") };
        let _ = writeln!(out, "  {word} {} {} ", outcome.kind, outcome.got);
        if !outcome.ok {
            let _ = writeln!(out, "  expected: {}\n       got: {}", outcome.expected, outcome.got);
        }
    }
    if outcomes.iter().any(|outcome| !outcome.ok) {
        exchange.write(&mut out);
    }
    out
}

/// The line of `outputFormat: json`.
pub fn json_line(outcomes: &[CheckResult], name: Option<&str>, url: &str) -> String {
    let result = |outcome: &CheckResult| {
        Value::from(Map::from_iter([
            ("ok".into(), Value::Bool(outcome.ok)),
            ("expected".into(), outcome.expected.clone()),
            ("type".into(), Value::from(&*outcome.kind)),
            ("got".into(), outcome.got.clone()),
        ]))
    };
    let line = Value::from(Map::from_iter([
        ("name".into(), name.map(Value::from).unwrap_or_default()),
        ("url".into(), Value::from(path_of(url))),
        ("results".into(), Value::from(outcomes.iter().map(result).collect::<Vec<Value>>())),
    ]));
    line.to_json().unwrap_or_default()
}

impl Exchange<'_> {
    fn paint(&self, colour: u8, text: &str) -> String {
        if self.is_coloured { format!("\u{1b}[{colour}m{text}\u{1b}[39m") } else { text.to_owned() }
    }

    fn write(&self, out: &mut String) {
        let indent =
            |text: &str| text.split('\n').map(|line| format!("    {line}")).collect::<Vec<String>>().join("\n");
        let json = match self.json {
            Some(json) if json.is_truthy() => json.to_json_pretty().unwrap_or_default(),
            _ => "\"\"".to_owned(),
        };
        let _ = writeln!(out, "{}\n{}\n{}", self.paint(33, "  Request params:"), indent(self.url), indent(&json));
        let _ = writeln!(out, "{}", self.paint(33, "  Headers:"));
        for (name, value) in self.headers {
            let _ = writeln!(out, "  {name}: {value}");
        }
        let _ = writeln!(out, "{}\n{}", self.paint(33, "  Body:"), beginning(self.body));
        let _ = writeln!(out, "{}", self.paint(33, "  User variables:"));
        for (name, value) in self.vars.iter().filter(|(name, _)| !matches!(&***name, "$processEnvironment" | "$env")) {
            let _ = writeln!(out, "    {name}: {value}");
        }
    }
}

fn beginning(body: &str) -> &str {
    let mut units = 0;
    let past = |(at, char): (usize, char)| {
        units += char.len_utf16();
        (units > BODY_SHOWN).then_some(at)
    };
    body.char_indices().find_map(past).and_then(|end| body.get(..end)).unwrap_or(body)
}

/// Path and query of a URL.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split('#').next().unwrap_or("");
    match rest.find(['/', '?']) {
        Some(at) => rest.get(at..).unwrap_or("/"),
        None => "/",
    }
}
