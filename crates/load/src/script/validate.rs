//! Artillery's own check of a script's shape, with the same wording (artillery.md §1.10). weir reports every error in
//! one run.
//!
//! weir accepts a few things that Artillery refuses: `jitter` beside `think`, `limit` beside `parallel`, lists in a
//! flow.

use weir_words::{Said, say};

use super::keys;
use super::node::{Node, NodeValue};
use super::source::Problem;
use crate::texts::script as texts;

/// Keys of requests to a target.
const VERBS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// All errors of the shape. The first is the one that Artillery reports, which stops there.
pub(crate) fn errors(script: &Node) -> Vec<Problem> {
    let mut found = Found::default();
    found.take(script.get("config").map_or(Ok(()), check_config));
    match required(script, script.get("scenarios"), "scenarios").and_then(|node| list(node, "scenarios")) {
        Err(problem) => found.take(Err(problem)),
        Ok(scenarios) => {
            for (index, scenario) in scenarios.iter().enumerate() {
                check_scenario(scenario, &format!("scenarios[{index}]"), &mut found);
            }
        }
    }
    for name in ["before", "after"] {
        if let Some(hook) = script.get(name) {
            match object(hook, name) {
                Ok(()) => check_flow(hook, name, &mut found),
                Err(problem) => found.take(Err(problem)),
            }
        }
    }
    found.problems
}

/// Most problems that are kept; for more, the first ones are reported.
const PROBLEMS_MAX: usize = 20;

#[derive(Default)]
struct Found {
    problems: Vec<Problem>,
}

impl Found {
    fn take(&mut self, checked: Checked) {
        let room = self.problems.len() < PROBLEMS_MAX;
        self.problems.extend(checked.err().filter(|_| room));
    }
}

type Checked = Result<(), Problem>;

fn check_config(config: &Node) -> Checked {
    object(config, "config")?;
    let each = |key: &str, check: fn(&Node, &str) -> Checked| optional(config, "config", key, check);
    each("environments", object)?;
    match config.get("target") {
        None if config.get("environments").is_none() => required(config, None, "config.target").map(|_| ())?,
        _ => each("target", string)?,
    }
    each("http", object)?;
    if let Some(http) = config.get("http") {
        optional(http, "config.http", "extendedMetrics", boolean)?;
        optional(http, "config.http", "maxSockets", number)?;
        optional(http, "config.http", "timeout", number_or_string)?;
    }
    each("processor", string)?;
    each("phases", |node, path| list(node, path).map(|_| ()))?;
    each("engines", object)
}

fn check_scenario(scenario: &Node, path: &str, found: &mut Found) {
    if let Err(problem) = object(scenario, path) {
        return found.take(Err(problem));
    }
    for key in ["name", "engine"] {
        found.take(optional(scenario, path, key, string));
    }
    for key in ["beforeScenario", "afterScenario"] {
        found.take(optional(scenario, path, key, strings));
    }
    check_flow(scenario, path, found);
}

fn check_flow(scenario: &Node, path: &str, found: &mut Found) {
    let path = format!("{path}.flow");
    let engine = scenario.get("engine").and_then(Node::text);
    let engine = engine.map(|name| if name == keys::SOCKETIO_V3 { "socketio" } else { name });
    if !matches!(engine, None | Some("socketio" | "ws" | "http")) {
        return found.take(scenario.get("flow").map_or(Ok(()), |flow| list(flow, &path).map(|_| ())));
    }
    match required(scenario, scenario.get("flow"), &path).and_then(|flow| list(flow, &path)) {
        Ok(steps) => check_steps(steps, &path, engine, found),
        Err(problem) => found.take(Err(problem)),
    }
}

fn check_steps(steps: &[Node], path: &str, engine: Option<&str>, found: &mut Found) {
    for (index, step) in steps.iter().enumerate() {
        let path = format!("{path}[{index}]");
        match step.list() {
            Some(steps) => check_steps(steps, &path, engine, found),
            None => found.take(check_step(step, &path, engine)),
        }
    }
}

fn check_step(step: &Node, path: &str, engine: Option<&str>) -> Checked {
    object(step, path)?;
    for key in ["function", "log"] {
        optional(step, path, key, string)?;
    }
    optional(step, path, "think", number_or_string)?;
    optional(step, path, "loop", |node, path| list(node, path).map(|_| ()))?;
    for verb in VERBS {
        optional(step, path, verb, check_request)?;
    }
    if engine == Some("ws") {
        optional(step, path, "connect", |node, path| {
            one_of(node, path, "[object, string]", |node| node.map().is_some())
        })?;
    }
    if engine == Some("socketio") {
        optional(step, path, "emit", check_emit)?;
    }
    if step.get("loop").is_some() {
        optional(step, path, "count", number_or_string)?;
        return optional(step, path, "over", |node, path| {
            one_of(node, path, "[array, string]", |node| node.list().is_some())
        });
    }
    let count = step.map().map_or(0, |members| members.len());
    let is_pair = |first: &str, second: &str| count == 2 && step.get(first).is_some() && step.get(second).is_some();
    match engine {
        Some("socketio") if count > 4 => refuse(step, path, texts::FOUR_KEYS),
        Some("socketio") => Ok(()),
        _ if count == 1 || is_pair("think", "jitter") || is_pair("parallel", "limit") => Ok(()),
        _ => refuse(step, path, texts::ONE_KEY),
    }
}

fn check_request(request: &Node, path: &str) -> Checked {
    object(request, path)?;
    let url = format!("{path}.url");
    string(required(request, request.get("url"), &url)?, &url)?;
    let each = |key: &str, check: fn(&Node, &str) -> Checked| optional(request, path, key, check);
    each("headers", object)?;
    each("cookie", object)?;
    each("followRedirect", boolean)?;
    each("qs", object)?;
    each("gzip", boolean)?;
    each("auth", |auth, path| {
        object(auth, path)?;
        optional(auth, path, "user", string)?;
        optional(auth, path, "pass", string)
    })?;
    each("beforeRequest", strings)?;
    each("afterResponse", strings)?;
    each("capture", |capture, path| each_of(capture, path, check_capture))
}

fn check_capture(capture: &Node, path: &str) -> Checked {
    object(capture, path)?;
    let path = format!("{path}.as");
    string(required(capture, capture.get("as"), &path)?, &path)
}

fn check_emit(emit: &Node, path: &str) -> Checked {
    if let Some(list) = emit.list() {
        return list.iter().enumerate().try_for_each(|(index, node)| string(node, &format!("{path}[{index}]")));
    }
    if emit.map().is_none() {
        return refuse(emit, path, say!(texts::ONE_OF, "[object, array]"));
    }
    optional(emit, path, "channel", string)?;
    optional(emit, path, "concat", boolean)
}

fn refuse<T>(node: &Node, path: &str, what: impl Into<Said>) -> Result<T, Problem> {
    Err(Problem::artillery(Some(node.at), say!(texts::INVALID, path, what.into())))
}

fn required<'n>(parent: &Node, node: Option<&'n Node>, path: &str) -> Result<&'n Node, Problem> {
    node.map_or_else(|| refuse(parent, path, texts::IS_REQUIRED), Ok)
}

fn optional(parent: &Node, path: &str, key: &str, check: fn(&Node, &str) -> Checked) -> Checked {
    parent.get(key).map_or(Ok(()), |node| check(node, &format!("{path}.{key}")))
}

fn object(node: &Node, path: &str) -> Checked {
    if node.map().is_some() { Ok(()) } else { refuse(node, path, texts::MUST_BE_OBJECT) }
}

fn list<'n>(node: &'n Node, path: &str) -> Result<&'n [Node], Problem> {
    node.list().map_or_else(|| refuse(node, path, texts::MUST_BE_LIST), Ok)
}

fn string(node: &Node, path: &str) -> Checked {
    match node.text() {
        Some("") => refuse(node, path, texts::NOT_EMPTY),
        Some(_) => Ok(()),
        None => refuse(node, path, texts::MUST_BE_TEXT),
    }
}

fn strings(node: &Node, path: &str) -> Checked {
    each_of(node, path, string)
}

/// A list of values, or a single value.
fn each_of(node: &Node, path: &str, check: fn(&Node, &str) -> Checked) -> Checked {
    match node.list() {
        Some(list) => list.iter().enumerate().try_for_each(|(index, node)| check(node, &format!("{path}[{index}]"))),
        None => check(node, path),
    }
}

fn boolean(node: &Node, path: &str) -> Checked {
    if node.is_yes() || node.is_no() { Ok(()) } else { refuse(node, path, texts::MUST_BE_FLAG) }
}

fn number(node: &Node, path: &str) -> Checked {
    let is_number = match &node.kind {
        NodeValue::Number(number) => !number.is_nan(),
        NodeValue::Text(text) => !text.trim().is_empty() && !node.number().is_nan(),
        _ => false,
    };
    if is_number { Ok(()) } else { refuse(node, path, texts::MUST_BE_NUMBER) }
}

fn number_or_string(node: &Node, path: &str) -> Checked {
    one_of(node, path, "[number, string]", |node| matches!(node.kind, NodeValue::Number(_)))
}

/// A text, or a value that `is_other` accepts.
fn one_of(node: &Node, path: &str, kinds: &str, is_other: fn(&Node) -> bool) -> Checked {
    match node.text() {
        Some(_) => string(node, path),
        None if is_other(node) => Ok(()),
        None => refuse(node, path, say!(texts::ONE_OF, kinds)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::yaml;
    use super::*;

    fn error(script: &str) -> Option<String> {
        let problem = errors(&yaml::read(script, 0).unwrap()).into_iter().next()?;
        Some(problem.what.strip_prefix("Scenario validation error: ").unwrap().to_owned())
    }

    fn flow(step: &str) -> Option<String> {
        error(&format!("{{config: {{target: x}}, scenarios: [{{flow: [{step}]}}]}}"))
    }

    fn of_engine(engine: &str, step: &str) -> Option<String> {
        error(&format!("{{config: {{target: x}}, scenarios: [{{engine: {engine}, flow: [{step}]}}]}}"))
    }

    #[test]
    fn scripts() {
        let cases = [
            ("config: {target: x}", "\"scenarios\" is required"),
            ("config: {}\nscenarios: []", "\"config.target\" is required"),
            ("config: {target: 5}\nscenarios: []", "\"config.target\" must be a string"),
            ("config: {target: x, phases: {}}\nscenarios: []", "\"config.phases\" must be an array"),
            ("config: {target: x, http: {timeout: []}}", "\"config.http.timeout\" must be one of [number, string]"),
            ("config: {target: x}\nscenarios: [{}]", "\"scenarios[0].flow\" is required"),
            ("config: {target: x}\nscenarios: [{name: 5, flow: []}]", "\"scenarios[0].name\" must be a string"),
            ("config: {target: x}\nscenarios: []\nbefore: {}", "\"before.flow\" is required"),
            (
                "config: {target: x}\nscenarios: [{flow: [], beforeScenario: [a, 5]}]",
                "\"scenarios[0].beforeScenario[1]\" must be a string",
            ),
        ];
        for (script, expected) in cases {
            assert_eq!(error(script).as_deref(), Some(expected), "{script}");
        }
        for script in [
            "config: {environments: {}}\nscenarios: []",
            "config: {target: x, http: {extendedMetrics: 'true', maxSockets: '5', timeout: 1}}\nscenarios: []",
            "config: {target: x}\nscenarios: [{engine: playwright}]",
            "config: {target: x}\nscenarios: [{beforeScenario: a, flow: []}]",
        ] {
            assert_eq!(error(script), None, "{script}");
        }
    }

    #[test]
    fn every_error_is_told_in_one_run() {
        let script = "config: {target: 5}\nscenarios: [{flow: [{get: {}}, {think: true}]}, {flow: x}]\nbefore: {}";
        let said: Vec<Said> = errors(&yaml::read(script, 0).unwrap()).into_iter().map(|problem| problem.what).collect();
        let ends = [
            "config.target\" must be a string",
            "flow[0].get.url\" is required",
            "[1].think\" must be one of [number, string]",
            "scenarios[1].flow\" must be an array",
            "before.flow\" is required",
        ];
        assert_eq!(said.len(), ends.len(), "{said:?}");
        assert!(said.iter().zip(ends).all(|(said, end)| said.ends_with(end)), "{said:?}");
    }

    #[test]
    fn steps() {
        let cases = [
            ("{get: {url: /}, name: x}", "must have 1 key"),
            ("{}", "must have 1 key"),
            ("text", "must be of type object"),
            ("{get: {uri: /}}", ".get.url\" is required"),
            ("{get: {url: ''}}", ".get.url\" is not allowed to be empty"),
            ("{get: {url: /, capture: {json: $.a}}}", ".get.capture.as\" is required"),
            ("{get: {url: /, capture: [{json: $.a}]}}", ".get.capture[0].as\" is required"),
            ("{think: true}", ".think\" must be one of [number, string]"),
            ("{think: ''}", ".think\" is not allowed to be empty"),
            ("{log: 5}", ".log\" must be a string"),
            ("{get: {url: /, gzip: maybe}}", ".get.gzip\" must be a boolean"),
            ("{loop: {}}", ".loop\" must be an array"),
            ("{loop: [], over: 5}", ".over\" must be one of [array, string]"),
        ];
        for (step, end) in cases {
            let error = flow(step).unwrap_or_default();
            assert!(error.starts_with("\"scenarios[0].flow[0]") && error.ends_with(end), "{step}: {error}");
        }
        for step in [
            "{head: {}}",
            "{think: 1, jitter: 10%}",
            "{parallel: [], limit: 2}",
            "[{think: 1}, {log: x}]",
            "{loop: [], count: 2, over: x, whileTrue: f, more: 1}",
            "{get: {url: /, gzip: 'False'}}",
        ] {
            assert_eq!(flow(step), None, "{step}");
        }
        assert!(of_engine("socketio", "{emit: [a, 5]}").unwrap().ends_with(".emit[1]\" must be a string"));
        assert!(of_engine("socketio", "{emit: 5}").unwrap().ends_with("must be one of [object, array]"));
        let five = "{a: 1, b: 1, c: 1, d: 1, e: 1}";
        assert!(of_engine("socketio", five).unwrap().ends_with("must have less than or equal to 4 keys"));
        assert_eq!(of_engine("socketio", "{emit: {channel: a}, response: {}}"), None);
        assert!(of_engine("ws", "{connect: 5}").unwrap().ends_with("must be one of [object, string]"));
    }
}
