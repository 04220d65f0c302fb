//! `capture` and `match`: values taken from a message (artillery.md §2.1, "capture").

use std::fmt;
use std::sync::Arc;

use crate::html::{self, Selector};
use crate::jsonpath::{JsonPath, one_value};
use crate::npm::{self, Nothing};
use crate::regexp;
use crate::template::{Template, TemplateFunctions, Tree};
use crate::value::{self, PathStep, Value};
use crate::vars::{VariableSlot, Vars};
use crate::xpath::XPath;

mod message;

pub use crate::html::Index;
pub use message::{CapturedMessage, Headers, NotJson};

/// Error for a path into a body that is not JSON.
const NOT_JSON: &str = "the body is no JSON";

/// A capture: the value to take, and the variable that it is stored in.
#[derive(Debug)]
pub struct Capture {
    /// The value to take.
    pub what: Extract,
    /// `as`: the variable, and the path inside it (`as: a.b`).
    pub slot: VariableSlot,
    /// The path inside the variable, empty as a rule.
    pub path: Vec<PathStep>,
    /// `strict`: true if an empty capture fails the virtual user; unset: `defaults.strictCapture` applies.
    pub strict: Option<bool>,
}

/// A `match`: the value to take and the expected value.
#[derive(Debug)]
pub struct CaptureMatch {
    /// The value to take.
    pub what: Extract,
    /// `value`.
    pub value: Tree,
    /// `strict`.
    pub strict: Option<bool>,
}

/// How to find a value in a message. Without a template it is compiled in advance.
#[derive(Debug)]
pub struct Extract(Way);

#[derive(Debug)]
enum Way {
    Json { path: Pattern<JsonPath>, mistake: Option<String>, all: bool },
    Regexp { regex: Pattern<Regexp>, group: Option<String>, flags: String },
    Header(Template),
    Selector { selector: Pattern<Selector>, attr: Option<Template>, index: Index },
    Xpath(Pattern<XPath>),
    None,
}

/// A regular expression; shown as the script wrote it.
struct Regexp(regress::Regex);

impl fmt::Debug for Regexp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Regexp")
    }
}

/// A template, and its compiled text if it is known in advance.
#[derive(Debug)]
struct Pattern<T> {
    template: Template,
    known: Option<Result<Arc<T>, String>>,
}

/// Takes all captures and checks all matches; false if the virtual user fails. Variables are set only if nothing
/// failed.
///
/// `strict` is `defaults.strictCapture`. If several captures have the same `as`, the last one counts.
pub fn take(
    (captures, matches): (&[Capture], &[CaptureMatch]),
    message: &CapturedMessage<'_>,
    vars: &mut Vars,
    functions: &dyn TemplateFunctions,
    strict: Option<bool>,
) -> bool {
    if let ([capture], []) = (captures, matches) {
        let taken = capture.what.value(message, vars, functions);
        return if capture.fails(&taken, strict) { false } else { capture.store(taken, vars) };
    }
    let taken: Vec<_> = captures.iter().map(|capture| capture.what.value(message, vars, functions)).collect();
    let is_last = |at: usize, capture: &Capture| {
        !captures.iter().skip(at + 1).any(|later| later.slot == capture.slot && later.path == capture.path)
    };
    let mut pairs = captures.iter().zip(&taken).enumerate();
    if pairs.any(|(at, (capture, taken))| is_last(at, capture) && capture.fails(taken, strict)) {
        return false;
    }
    if !matches.iter().all(|one| one.strict == Some(false) || one.holds(message, vars, functions)) {
        return false;
    }
    for (at, (capture, taken)) in captures.iter().zip(taken).enumerate() {
        if is_last(at, capture) {
            capture.store(taken, vars);
        }
    }
    true
}

impl Capture {
    /// True if the captured value fails the virtual user: nothing or the empty text, unless `strict` allows that.
    fn fails(&self, taken: &Result<Value, String>, default: Option<bool>) -> bool {
        let is_empty = match taken {
            Err(_) | Ok(Value::Undefined) => true,
            Ok(Value::Text(text)) => text.is_empty(),
            Ok(_) => false,
        };
        is_empty
            && match default {
                None | Some(true) => self.strict != Some(false),
                Some(false) => self.strict == Some(true),
            }
    }

    fn store(&self, taken: Result<Value, String>, vars: &mut Vars) -> bool {
        let value = taken.unwrap_or_default();
        if self.path.is_empty() {
            vars.set(self.slot, value);
        } else {
            vars.set_path(self.slot, &self.path, value);
        }
        true
    }
}

impl CaptureMatch {
    /// True if the value found equals (`===`) the expected value.
    pub fn holds(&self, message: &CapturedMessage<'_>, vars: &Vars, functions: &dyn TemplateFunctions) -> bool {
        let taken = self.what.value(message, vars, functions);
        taken.is_ok_and(|taken| taken.is_same(&self.value.value(vars, functions)))
    }
}

impl Extract {
    /// `json`: a JSONPath. Of several matches it takes one at random, or all of them with `multiple: false`.
    pub fn json(path: Template, multiple: bool) -> Extract {
        let path = Pattern::new(path, |text| Ok(JsonPath::new(text)));
        let mistake = path.known.as_ref().and_then(|known| known.as_ref().ok()?.mistake());
        Extract(Way::Json { path, mistake, all: !multiple })
    }

    /// `regexp`, `group` and `flags`.
    pub fn regexp(regexp: Template, group: Option<String>, flags: String) -> Extract {
        let regex = Pattern::new(regexp, |text| regexp::compile(text, &flags).map(Regexp));
        Extract(Way::Regexp { regex, group, flags })
    }

    /// `header`: a name in lower case.
    pub fn header(name: Template) -> Extract {
        Extract(Way::Header(name))
    }

    /// `selector`, `attr` and `index`.
    pub fn selector(selector: Template, attr: Option<Template>, index: Index) -> Extract {
        Extract(Way::Selector { selector: Pattern::new(selector, Selector::parse), attr, index })
    }

    /// `xpath`.
    pub fn xpath(path: Template) -> Extract {
        Extract(Way::Xpath(Pattern::new(path, XPath::parse)))
    }

    /// No method of extraction: it takes the empty text, and so fails.
    pub fn none() -> Extract {
        Extract(Way::None)
    }

    /// The problem of this extraction that is known before the run, if any.
    pub fn problem(&self) -> Option<&str> {
        match &self.0 {
            Way::Json { mistake, .. } => mistake.as_deref(),
            Way::Regexp { regex, .. } => regex.problem(),
            Way::Selector { selector, .. } => selector.problem(),
            Way::Xpath(path) => path.problem(),
            Way::Header(_) | Way::None => None,
        }
    }

    /// The value found. An error: the message cannot be read that way, or the expression is invalid.
    pub fn value(
        &self,
        message: &CapturedMessage<'_>,
        vars: &Vars,
        functions: &dyn TemplateFunctions,
    ) -> Result<Value, String> {
        match &self.0 {
            Way::Json { path, all, .. } => {
                let path = path.known(vars, functions, |text| Ok(JsonPath::new(text)))?;
                json(message, &path, *all)
            }
            Way::Regexp { regex, group, flags } => {
                let regex = regex.known(vars, functions, |text| regexp::compile(text, flags).map(Regexp))?;
                Ok(regexp_value(&regex.0, group.as_deref(), message.text()))
            }
            Way::Header(name) => Ok(match message.header(&name.text(vars, functions)) {
                Value::Undefined => Value::from(""),
                value => value,
            }),
            Way::Selector { selector, attr, index } => {
                let selector = selector.known(vars, functions, Selector::parse)?;
                let attr = attr.as_ref().map(|attr| attr.text(vars, functions));
                Ok(html::attribute(message.html(), &selector, attr.as_deref(), *index))
            }
            Way::Xpath(path) => path.known(vars, functions, XPath::parse)?.value(message.text()),
            Way::None => Ok(Value::from("")),
        }
    }
}

impl<T> Pattern<T> {
    fn new(template: Template, parse: impl Fn(&str) -> Result<T, String>) -> Pattern<T> {
        let known = template.literal().map(|text| parse(text).map(Arc::new));
        Pattern { template, known }
    }

    fn problem(&self) -> Option<&str> {
        self.known.as_ref()?.as_ref().err().map(String::as_str)
    }

    fn known(
        &self,
        vars: &Vars,
        functions: &dyn TemplateFunctions,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Arc<T>, String> {
        match &self.known {
            Some(known) => known.clone(),
            None => parse(&self.template.text(vars, functions)).map(Arc::new),
        }
    }
}

/// A failing path finds the empty text; a body that is not JSON is an error.
fn json(message: &CapturedMessage<'_>, path: &JsonPath, all: bool) -> Result<Value, String> {
    let not_json = || NOT_JSON.to_owned();
    if let (Some(bytes), Some(keys)) = (message.unparsed(), path.keys()) {
        // `Ok(None)`: nothing is there, or only the full tree can answer.
        if let Ok(Some(value)) = value::extract(bytes, keys) {
            return Ok(one_value(value, all));
        }
    }
    if !message.may_be_json() {
        return Err(not_json());
    }
    if path.is_plain()
        && let Ok(root) = message.json()
    {
        if !root.is_object() {
            return Ok("".into());
        }
        if let Some(found) = path.find(root) {
            return Ok(found.taken(all));
        }
    }
    match npm::query(message.document(), path.text(), all) {
        Ok(value) => Ok(value),
        Err(Nothing::Failed) => Ok("".into()),
        Err(Nothing::NotJson) => Err(not_json()),
    }
}

fn regexp_value(regex: &regress::Regex, group: Option<&str>, text: &str) -> Value {
    let Some(found) = regex.find(text) else { return Value::from("") };
    let part = |range: Option<std::ops::Range<usize>>| range.and_then(|range| text.get(range)).map(Value::from);
    if let Some(group) = group.filter(|group| !group.is_empty() && *group != "0") {
        // If groups have names, only the named groups count.
        if found.named_groups().next().is_some() {
            return part(found.named_group(group)).unwrap_or_default();
        }
        let number = group.parse::<usize>().ok().filter(|number| *number < found.captures.len() + 1);
        if let Some(value) = part(number.and_then(|number| found.group(number))).filter(Value::is_truthy) {
            return value;
        }
    }
    part(Some(found.range())).unwrap_or_default()
}

#[cfg(test)]
mod tests;
