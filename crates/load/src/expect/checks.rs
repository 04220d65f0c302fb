//! One check.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;

use super::answer::{CheckedAnswer, JSON_TYPES};
use crate::regexp;
use crate::value::{Path, Value};

/// Compiled expressions kept per thread; at this limit all are dropped.
const KEPT_MAX: usize = 256;

/// The result of a check.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckResult {
    /// True if the check passed.
    pub ok: bool,
    /// Its name in output and in `plugins.expect.ok.NAME`.
    pub kind: Cow<'static, str>,
    /// The expected value.
    pub expected: Value,
    /// The actual value.
    pub got: Value,
}

/// The names of all checks.
const KINDS: [&str; 12] = [
    "contentType",
    "statusCode",
    "notStatusCode",
    "hasHeader",
    "headerEquals",
    "hasProperty",
    "notHasProperty",
    "equals",
    "matchesRegexp",
    "cdnHit",
    "jmespath",
    "jpath",
];

/// True if a check with this name exists.
pub fn is_known(kind: &str) -> bool {
    KINDS.contains(&kind)
}

/// Runs one check; `expected` is rendered already. `None`: no check has this name.
pub fn check(kind: &str, expected: &Value, answer: &CheckedAnswer<'_>) -> Option<CheckResult> {
    Some(match kind {
        "statusCode" => status(expected, answer),
        "notStatusCode" => not_status(expected, answer),
        "contentType" => content_type(expected, answer),
        "hasHeader" => has_header(expected, answer),
        "headerEquals" => header_equals(expected, answer),
        "hasProperty" => property("hasProperty", expected, answer),
        "notHasProperty" => property("notHasProperty", expected, answer),
        "equals" => equals(expected),
        "matchesRegexp" => matches_regexp(expected, answer),
        "cdnHit" => cdn_hit(expected, answer),
        "jmespath" => jmespath("jmespath", expected, answer),
        "jpath" => jmespath("jpath", expected, answer),
        _ => return None,
    })
}

fn outcome(kind: &'static str, ok: bool, expected: Value, got: impl Into<Value>) -> CheckResult {
    CheckResult { ok, kind: Cow::Borrowed(kind), expected, got: got.into() }
}

fn is_status(expected: &Value, answer: &CheckedAnswer<'_>) -> bool {
    let same = |value: &Value| value.to_number() == f64::from(answer.status);
    match expected {
        Value::List(list) => list.iter().any(same),
        one => same(one),
    }
}

fn status(expected: &Value, answer: &CheckedAnswer<'_>) -> CheckResult {
    outcome("statusCode", is_status(expected, answer), expected.clone(), f64::from(answer.status))
}

fn not_status(expected: &Value, answer: &CheckedAnswer<'_>) -> CheckResult {
    let text = Value::from(format!("Status code different than {expected}"));
    outcome("notStatusCode", !is_status(expected, answer), text, f64::from(answer.status))
}

fn content_type(expected: &Value, answer: &CheckedAnswer<'_>) -> CheckResult {
    let found = answer.content_type();
    if expected.as_str() == Some("json") {
        let ok = answer.object().is_some();
        let got = if ok {
            Value::from("json")
        } else if answer.is_null() {
            Value::from("could not parse response body as JSON")
        } else {
            Value::from(format!("content-type is {found}"))
        };
        debug_assert!(!ok || JSON_TYPES.iter().any(|json| found.to_text().contains(json)));
        return outcome("contentType", ok, expected.clone(), got);
    }
    let ok = found.is_truthy() && found.to_text().to_lowercase() == expected.to_text().to_lowercase();
    let got = if found.is_truthy() { found.clone() } else { Value::from("content-type header not set") };
    outcome("contentType", ok, expected.clone(), got)
}

fn has_header(expected: &Value, answer: &CheckedAnswer<'_>) -> CheckResult {
    let ok = answer.message.header(&expected.to_text()).is_truthy();
    let got = if ok { expected.clone() } else { Value::from(format!("response has no {expected} header")) };
    outcome("hasHeader", ok, expected.clone(), got)
}

fn header_equals(expected: &Value, answer: &CheckedAnswer<'_>) -> CheckResult {
    let part = |at: usize| match expected {
        Value::List(list) => list.get(at).cloned().unwrap_or_default(),
        _ => Value::Undefined,
    };
    let (name, value) = (part(0), part(1));
    let kind = Cow::Owned(format!("header {name} values equals"));
    let found = answer.message.header(&name.to_text());
    if !found.is_truthy() {
        let expected = Value::from(format!("response to have {name} header"));
        return CheckResult { ok: false, kind, expected, got: Value::from(format!("response has no {name} header")) };
    }
    let wanted = if value.is_truthy() { value.to_text() } else { Cow::Borrowed("") };
    CheckResult { ok: found.to_text() == wanted, kind, expected: value.clone(), got: Value::from(&*found.to_text()) }
}

fn property(kind: &'static str, expected: &Value, answer: &CheckedAnswer<'_>) -> CheckResult {
    let Some(body) = answer.object() else {
        return outcome(kind, false, expected.clone(), "response body is not an object");
    };
    let wanted = kind == "hasProperty";
    let ok = Path::parse(&expected.to_text()).exists(body) == wanted;
    let got = match (ok, wanted) {
        (true, _) => expected.clone(),
        (false, true) => Value::from(format!("response body has no {expected} property")),
        (false, false) => Value::from(format!("response body has {expected} property")),
    };
    outcome(kind, ok, expected.clone(), got)
}

fn equals(expected: &Value) -> CheckResult {
    let texts: Vec<Cow<'_, str>> = match expected {
        Value::List(list) => list.iter().map(Value::to_text).collect(),
        Value::Map(map) => map.values().map(Value::to_text).collect(),
        Value::Text(text) => text.chars().map(|char| Cow::Owned(char.to_string())).collect(),
        _ => Vec::new(),
    };
    let ok = texts.split_first().is_some_and(|(first, rest)| rest.iter().all(|text| text == first));
    outcome("equals", ok, Value::from("all values to be equal"), texts.join(", "))
}

fn matches_regexp(expected: &Value, answer: &CheckedAnswer<'_>) -> CheckResult {
    let subject = match answer.json() {
        None => Cow::Borrowed(answer.message.text()),
        Some(Ok(value)) => value.to_text(),
        Some(Err(_)) => Cow::Borrowed("null"),
    };
    let found = with_regex(&expected.to_text(), |regex| regex.find(&subject).is_some());
    match found {
        Ok(ok) => outcome("matchesRegexp", ok, Value::Bool(true), ok),
        Err(error) => outcome(
            "matchesRegexp",
            false,
            Value::Bool(true),
            format!("SyntaxError: Invalid regular expression: {error}"),
        ),
    }
}

fn cdn_hit(expected: &Value, answer: &CheckedAnswer<'_>) -> CheckResult {
    let (text, wanted): (_, &[&str]) = if expected.is_truthy() {
        ("a cache header indicating a cache hit", &["hit", "stale"])
    } else {
        ("a cache header indicating a cache miss", &["miss"])
    };
    let mut result = outcome("cdnHit", false, Value::from(text), "cache status header not found");
    for name in ["cf-cache-status", "x-cache", "x-vercel-cache"] {
        let found = answer.message.header(name);
        let lower = found.to_text().to_lowercase();
        if found.is_truthy() && wanted.iter().any(|wanted| lower.starts_with(wanted)) {
            result.ok = true;
            result.got = Value::from(format!("{name} is {found}"));
        }
    }
    result
}

fn jmespath(kind: &'static str, expected: &Value, answer: &CheckedAnswer<'_>) -> CheckResult {
    let Some(body) = answer.object() else {
        return outcome(kind, false, expected.clone(), "response body is not an object");
    };
    let body = body.to_json().unwrap_or_default();
    let data = jmespath::Variable::from_json(&body);
    let found = data.and_then(|data| {
        with_jmespath(&expected.to_text(), |path| path.search(data).map_err(|error| error.to_string()))?
    });
    match found {
        Ok(found) => outcome(kind, is_truthy(&found), expected.clone(), expected.clone()),
        Err(error) => outcome(kind, false, expected.clone(), error),
    }
}

/// True if the value is truthy in JavaScript; JMESPath differs for empty lists.
fn is_truthy(value: &jmespath::Variable) -> bool {
    use jmespath::Variable;
    match value {
        Variable::Null => false,
        Variable::Bool(bool) => *bool,
        Variable::Number(_) => value.as_number().is_some_and(|number| number != 0.0),
        Variable::String(text) => !text.is_empty(),
        Variable::Array(_) | Variable::Object(_) | Variable::Expref(_) => true,
    }
}

fn with_regex<R>(text: &str, then: impl FnOnce(&regress::Regex) -> R) -> Result<R, String> {
    thread_local!(static KEPT: RefCell<HashMap<String, regress::Regex>> = RefCell::default());
    KEPT.with_borrow_mut(|kept| kept_in(kept, text, |text| regexp::compile(text, "")).map(then))
}

fn with_jmespath<R>(text: &str, then: impl FnOnce(&jmespath::Expression<'static>) -> R) -> Result<R, String> {
    thread_local!(static KEPT: RefCell<HashMap<String, jmespath::Expression<'static>>> = RefCell::default());
    let compile = |text: &str| jmespath::compile(text).map_err(|error| error.to_string());
    KEPT.with_borrow_mut(|kept| kept_in(kept, text, compile).map(then))
}

fn kept_in<'k, T>(
    kept: &'k mut HashMap<String, T>,
    text: &str,
    make: impl FnOnce(&str) -> Result<T, String>,
) -> Result<&'k T, String> {
    if !kept.contains_key(text) {
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(text.to_owned(), make(text)?);
    }
    kept.get(text).ok_or_else(|| "it was not kept".to_owned())
}
