//! The plugins `ensure` and `apdex`: the goals of a run (artillery.md §5.1, §5.4).

use std::collections::HashMap;

use weir_words::{Language, Text, say};

use super::console::{Console, GREEN, RED};
use super::number;
use crate::expression::Expression;
use crate::record::Period;
use crate::texts;
use crate::value::Value;

/// True for characters of a name: a metric is recognised only if no such character is next to it.
const fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.')
}

/// A check and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The check as the console shows it.
    pub shown: String,
    /// True if a failure of this check fails the run.
    pub is_strict: bool,
    /// True if the check passed.
    pub is_ok: bool,
    /// Why the check is invalid, if it is.
    pub mistake: Option<String>,
}

/// Evaluates the checks of `ensure`'s options for the whole run. Passed checks come first, as they are printed.
pub fn checks(options: &Value, whole: &Period, apdex: Option<&Apdex>) -> Vec<Check> {
    let vars = Vars::of(whole, apdex);
    let mut checks: Vec<Check> = wanted(options)
        .into_iter()
        .map(|(shown, expression, is_strict)| vars.ask(shown, &expression, is_strict))
        .collect();
    // Artillery's comparison function reverses the order of equal elements.
    checks.reverse();
    checks.sort_by_key(|check| !check.is_ok);
    checks
}

/// The console's lines for the checks; empty if there are none.
pub fn print(checks: &[Check], console: &Console) -> String {
    if checks.is_empty() {
        return String::new();
    }
    let mistakes = checks.iter().filter_map(|check| Some(format!("{}: {}\n", check.shown, check.mistake.as_ref()?)));
    let mut text: String = mistakes.collect();
    let say = |text: Text| text.say(console.language);
    text.push_str(&format!("\n{}\n", say(texts::CHECKS)));
    for check in checks {
        let (colour, word) = if check.is_ok { (GREEN, texts::IS_OK) } else { (RED, texts::CHECK_FAILED) };
        let word = console.paint(colour, say(word));
        let optional = if check.is_ok || check.is_strict { "" } else { say(texts::OPTIONAL) };
        text.push_str(&format!("{word}: {}{optional}\n", check.shown));
    }
    text
}

/// True if the run must end with exit code 1.
pub fn has_failed(checks: &[Check]) -> bool {
    checks.iter().any(|check| check.is_strict && !check.is_ok)
}

/// The satisfaction of users.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Apdex {
    /// 0 to 1.
    pub score: f64,
    /// `excellent` to `unacceptable`.
    pub ranking: &'static str,
}

impl Apdex {
    /// Computes the score from the counters of the plugin; `None` if they counted nothing.
    pub fn of(whole: &Period) -> Option<Apdex> {
        let [satisfied, tolerated, frustrated] =
            ["apdex.satisfied", "apdex.tolerated", "apdex.frustrated"].map(|name| whole.counter(name) as f64);
        let all = satisfied + tolerated + frustrated;
        if all == 0.0 {
            return None;
        }
        let score = (satisfied + tolerated / 2.0) / all;
        let ranking = match score {
            _ if score >= 0.94 => "excellent",
            _ if score >= 0.85 => "good",
            _ if score >= 0.7 => "fair",
            _ if score >= 0.49 => "poor",
            _ => "unacceptable",
        };
        Some(Apdex { score, ranking })
    }

    /// A blank line and the score.
    pub fn print(&self, language: Language) -> String {
        let said = say!(texts::APDEX, number::js(self.score), self.ranking);
        format!("\n{}\n", said.say(language))
    }
}

/// The shown text, the expression, and whether it is strict; in the order of the options.
fn wanted(options: &Value) -> Vec<(String, String, bool)> {
    let mut wanted = Vec::new();
    for threshold in list(options, "thresholds") {
        let Value::Map(map) = threshold else { continue };
        if let Some((metric, max)) = map.first() {
            let expression = format!("{metric} < {}", shown(max));
            wanted.push((expression.clone(), expression, true));
        }
    }
    for condition in list(options, "conditions") {
        let Value::Map(map) = condition else { continue };
        let is_strict = !matches!(map.get("strict"), Some(Value::Bool(false)));
        let expression = map.get("expression").map_or_else(|| "undefined".to_owned(), shown);
        wanted.push((expression.clone(), expression, is_strict));
    }
    let Value::Map(map) = options else { return wanted };
    for (key, max) in map.iter().filter(|(key, _)| ["min", "max", "median", "p95", "p99"].contains(&&***key)) {
        let max = number::js(parse_int(max));
        wanted.push((format!("{key} < {max}"), format!("http.response_time.{key} < {max}"), true));
    }
    if let Some(max) = map.get("maxErrorRate").filter(|max| **max != Value::Undefined) {
        let max = number::js(to_number(max));
        let rate = "((vusers.created - vusers.completed)/vusers.created * 100)";
        wanted.push((format!("maxErrorRate < {max}"), format!("{rate} <= {max}"), true));
    }
    wanted
}

fn list<'a>(options: &'a Value, key: &str) -> &'a [Value] {
    match options {
        Value::Map(map) => match map.get(key) {
            Some(Value::List(items)) => items,
            _ => &[],
        },
        _ => &[],
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Number(number) => number::js(*number),
        Value::Text(text) => text.to_string(),
        Value::Bool(bool) => bool.to_string(),
        Value::Null => "null".to_owned(),
        _ => "undefined".to_owned(),
    }
}

fn to_number(value: &Value) -> f64 {
    match value {
        Value::Number(number) => *number,
        Value::Text(text) => text.trim().parse().unwrap_or(f64::NAN),
        _ => f64::NAN,
    }
}

fn parse_int(value: &Value) -> f64 {
    match value {
        Value::Text(text) => {
            let digits: String = text.trim().chars().take_while(char::is_ascii_digit).collect();
            digits.parse().unwrap_or(f64::NAN)
        }
        other => to_number(other).trunc(),
    }
}

/// All figures of a run by name.
struct Vars {
    values: HashMap<String, f64>,
    /// The longest first, so that a name is not mistaken for a shorter one at its beginning.
    names: Vec<String>,
}

impl Vars {
    fn of(whole: &Period, apdex: Option<&Apdex>) -> Vars {
        let mut values = HashMap::new();
        values.extend(apdex.map(|apdex| ("apdex".to_owned(), apdex.score)));
        values.extend(whole.counters.iter().map(|(name, count)| (name.to_string(), *count as f64)));
        values.extend(whole.rates.iter().map(|(name, rate)| (name.to_string(), *rate)));
        for (name, summary) in &whole.summaries {
            values.extend(summary.figures().into_iter().map(|(figure, value)| (format!("{name}.{figure}"), value)));
        }
        let mut names: Vec<String> = values.keys().cloned().collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        Vars { values, names }
    }

    fn ask(&self, shown: String, expression: &str, is_strict: bool) -> Check {
        let lookup = |name: &str| {
            let name = name
                .strip_prefix('#')
                .and_then(|at| self.names.get(at.parse::<usize>().ok()?))
                .map_or(name, |name| name);
            self.values.get(name).map_or(Value::Undefined, |value| Value::Number(*value))
        };
        let answer = Expression::parse(&self.quoted(expression)).and_then(|expression| expression.value(&lookup));
        let is_ok = matches!(answer, Ok(Value::Number(1.0) | Value::Bool(true)));
        Check { shown, is_strict, is_ok, mistake: answer.err() }
    }

    /// Replaces the names of metrics by quoted names of an expression, since a metric's name may contain any
    /// character.
    fn quoted(&self, text: &str) -> String {
        let (mut out, mut at, mut quote) = (String::new(), 0, None);
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let first = rest.chars().next().unwrap_or_default();
            let name = if quote.is_none() { self.name_at(text, at) } else { None };
            if let Some((index, length)) = name {
                out.push_str(&format!("'#{index}'"));
                at += length;
                continue;
            }
            quote = match quote {
                None if first == '"' || first == '\'' => Some(first),
                Some(open) if open == first => None,
                other => other,
            };
            out.push(first);
            at += first.len_utf8();
        }
        out
    }

    /// The longest metric name at a position that is not part of a longer word: its index and length.
    fn name_at(&self, text: &str, at: usize) -> Option<(usize, usize)> {
        let (before, rest) = (text.as_bytes().get(..at)?.last(), text.get(at..)?);
        let stands_alone = |name: &str| {
            let joins = |a: Option<&u8>, b: Option<&u8>| a.zip(b).is_some_and(|(a, b)| is_name(*a) && is_name(*b));
            let bytes = name.as_bytes();
            !joins(before, bytes.first()) && !joins(bytes.last(), rest.as_bytes().get(name.len()))
        };
        let found = self.names.iter().enumerate().find(|(_, name)| rest.starts_with(&***name) && stands_alone(name));
        found.map(|(index, name)| (index, name.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Merger, Recorder};
    use crate::value::Map;
    use std::sync::Arc;

    fn whole() -> Period {
        let recorder = Recorder::at(1_795_186_840_000);
        let counts = [
            ("vusers.created", 100),
            ("vusers.completed", 98),
            ("http.codes.200", 90),
            ("http.codes.2", 1),
            ("plugins.metrics-by-endpoint./a b.codes.200", 7),
            ("apdex.satisfied", 60),
            ("apdex.tolerated", 30),
            ("apdex.frustrated", 10),
        ];
        counts.iter().for_each(|(name, count)| recorder.count(recorder.metric(name), *count));
        (0..5).for_each(|_| recorder.rate(recorder.metric("http.request_rate")));
        (1..=100).for_each(|ms| recorder.sample(recorder.metric("http.response_time"), f64::from(ms)));
        let mut merger = Merger::default();
        merger.add(recorder.take(u64::MAX));
        merger.close(u64::MAX);
        merger.outcome().whole
    }

    fn map(members: &[(&str, Value)]) -> Value {
        Value::Map(Arc::new(members.iter().map(|(key, value)| (Arc::from(*key), value.clone())).collect::<Map>()))
    }

    fn list_of(items: Vec<Value>) -> Value {
        Value::List(Arc::new(items))
    }

    fn ask(options: &Value) -> Vec<(String, bool)> {
        let whole = whole();
        let apdex = Apdex::of(&whole);
        checks(options, &whole, apdex.as_ref()).into_iter().map(|check| (check.shown, check.is_ok)).collect()
    }

    #[test]
    fn met_ones_come_first_each_in_reverse_order() {
        let options = map(&[
            (
                "thresholds",
                list_of(vec![
                    map(&[("http.response_time.p99", Value::Number(200.0))]),
                    map(&[("http.response_time.p95", Value::Number(50.0))]),
                ]),
            ),
            (
                "conditions",
                list_of(vec![map(&[("expression", "http.response_time.p99 < 250 and http.request_rate > 1".into())])]),
            ),
            ("p95", Value::Text("100".into())),
            ("maxErrorRate", Value::Number(1.0)),
        ]);
        let expected = [
            ("p95 < 100", true),
            ("http.response_time.p99 < 250 and http.request_rate > 1", true),
            ("http.response_time.p99 < 200", true),
            ("maxErrorRate < 1", false),
            ("http.response_time.p95 < 50", false),
        ];
        assert_eq!(ask(&options), expected.map(|(shown, is_ok)| (shown.to_owned(), is_ok)));
    }

    #[test]
    fn names_are_whole_and_may_hold_anything() {
        let table = [
            ("http.codes.200 == 90", true),
            ("http.codes.2 == 1", true),
            ("plugins.metrics-by-endpoint./a b.codes.200 == 7", true),
            ("vusers.created - vusers.completed == 2", true),
            ("apdex == 0.75", true),
            ("http.codes.500 < 1", false),
            ("\"vusers.created\" == 100", false),
            ("'vusers.created' == 100", true),
        ];
        for (expression, is_ok) in table {
            let options = map(&[("conditions", list_of(vec![map(&[("expression", expression.into())])]))]);
            assert_eq!(ask(&options), [(expression.to_owned(), is_ok)]);
        }
    }

    #[test]
    fn printed_with_their_weight() {
        let check = |shown: &str, is_strict, is_ok| Check { shown: shown.to_owned(), is_strict, is_ok, mistake: None };
        let checks =
            [check("a", true, true), check("b", false, true), check("c", true, false), check("d", false, false)];
        assert_eq!(print(&checks, &Console::default()), "\nChecks:\nok: a\nok: b\nfail: c\nfail: d (optional)\n");
        assert!(has_failed(&checks));
        assert!(!has_failed(&[check("d", false, false)]));
        assert_eq!(print(&[], &Console::default()), "");
        let colour = Console { is_colour: true, ..Console::default() };
        assert!(print(&checks, &colour).contains("\x1b[31mfail\x1b[39m: c\n"));
    }

    #[test]
    fn scores() {
        let apdex = Apdex::of(&whole()).unwrap();
        assert_eq!((apdex.score, apdex.ranking), (0.75, "fair"));
        assert_eq!(apdex.print(Language::English), "\nApdex score: 0.75 (fair)\n");
        assert_eq!(Apdex::of(&Period::default()), None);
    }
}
