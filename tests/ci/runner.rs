//! Plays a runner of GitHub Actions and one of GitLab, for the files in `package/ci`: it reads the YAML, sets inputs and
//! environment as both document them, and runs the scripts with bash in a checkout. A `uses:` step is not run; its inputs
//! are kept.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use saphyr_parser::{Event, Parser, StrInput};
use serde_json::{Map, Value};

/// The documents of a YAML text. Each scalar is a text, as inputs and variables are.
pub fn documents(yaml: &str) -> Vec<Value> {
    let mut events = Parser::new(StrInput::new(yaml)).map(|event| event.expect("YAML").0);
    let mut documents = Vec::new();
    while let Some(event) = events.next() {
        if matches!(event, Event::DocumentStart(..)) {
            let first = events.next().expect("a document");
            documents.push(node(first, &mut events));
        }
    }
    documents
}

fn node<'e>(event: Event<'e>, events: &mut impl Iterator<Item = Event<'e>>) -> Value {
    match event {
        Event::Scalar(text, ..) => Value::String(text.into_owned()),
        Event::SequenceStart(..) => {
            let mut list = Vec::new();
            loop {
                match events.next().expect("the end of a list") {
                    Event::SequenceEnd => return Value::Array(list),
                    event => list.push(node(event, events)),
                }
            }
        }
        Event::MappingStart(..) => {
            let mut members = Map::new();
            loop {
                let key = match events.next().expect("the end of a mapping") {
                    Event::MappingEnd => return Value::Object(members),
                    Event::Scalar(text, ..) => text.into_owned(),
                    event => panic!("a key is a text: {event:?}"),
                };
                let value = events.next().expect("a value");
                assert!(members.insert(key.clone(), node(value, events)).is_none(), "{key} twice");
            }
        }
        event => panic!("{event:?} is not supported"),
    }
}

/// A step of an action that ran.
#[derive(Debug)]
pub struct PlayedStep {
    pub name: String,
    /// The exit code. `None`: its condition was false.
    pub code: Option<i32>,
    pub said: String,
}

/// An action that was played.
#[derive(Debug, Default)]
pub struct Played {
    pub steps: Vec<PlayedStep>,
    /// The inputs of each `uses:` step that would have run.
    pub used: Vec<(String, BTreeMap<String, String>)>,
    pub outputs: BTreeMap<String, String>,
    pub summary: String,
}

impl Played {
    pub fn code_of(&self, name: &str) -> Option<i32> {
        self.steps.iter().find(|step| step.name == name).unwrap_or_else(|| panic!("no step {name}")).code
    }

    pub fn said(&self) -> String {
        self.steps.iter().map(|step| format!("== {} {:?}\n{}", step.name, step.code, step.said)).collect()
    }
}

/// A runner's directories and the beginning of its PATH.
pub struct Runner<'r> {
    pub checkout: &'r Path,
    pub temp: &'r Path,
    pub bin: &'r Path,
}

impl Runner<'_> {
    fn shell(&self, script: &str, flags: &[&str], path: &str, env: &[(String, String)]) -> (i32, String) {
        let file = self.temp.join("step.sh");
        fs::write(&file, script).unwrap();
        let mut command = Command::new("bash");
        command.args(flags).arg(&file).current_dir(self.checkout).stdin(Stdio::null()).env("PATH", path);
        command.envs(env.iter().map(|(name, value)| (name, value)));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code().unwrap_or(-1), said)
    }

    fn path(&self) -> String {
        format!("{}:{}", self.bin.display(), std::env::var("PATH").unwrap())
    }

    /// Plays a composite action of GitHub with these inputs and this `github` context.
    pub fn github(&self, action: &Value, given: &[(&str, &str)], github: &Value) -> Played {
        let mut context =
            serde_json::json!({"github": github, "inputs": {}, "steps": {}, "runner": {"temp": self.temp}});
        for (name, input) in action["inputs"].as_object().unwrap() {
            let given = given.iter().find(|(known, _)| known == name).map(|(_, value)| (*value).to_owned());
            assert!(given.is_some() || input["required"] != "true", "the input {name} is required");
            let value = given.unwrap_or_else(|| filled(input["default"].as_str().unwrap_or_default(), &context));
            context["inputs"][name] = value.into();
        }
        let unknown = given.iter().find(|(name, _)| action["inputs"].get(*name).is_none());
        assert_eq!(unknown, None, "an input that the action does not have");
        assert_eq!(action["runs"]["using"], "composite");
        let mut played = Played::default();
        let (mut path, mut is_failed) = (self.path(), false);
        for step in action["runs"]["steps"].as_array().unwrap() {
            let name = step["name"].as_str().expect("each step has a name").to_owned();
            let condition = step["if"].as_str().unwrap_or("success()");
            let has_status = ["always()", "success()", "failure()"].iter().any(|word| condition.contains(word));
            let runs =
                is_true(&Expression::value(inside(condition), &context, is_failed)) && (has_status || !is_failed);
            if !runs {
                played.steps.push(PlayedStep { name, code: None, said: String::new() });
                continue;
            }
            if let Some(uses) = step["uses"].as_str() {
                let with = step["with"].as_object().into_iter().flatten();
                let with = with.map(|(name, value)| (name.clone(), filled(value.as_str().unwrap(), &context)));
                played.used.push((uses.to_owned(), with.collect()));
                continue;
            }
            assert_eq!(step["shell"], "bash", "a composite step names its shell");
            let script = step["run"].as_str().unwrap();
            assert!(!script.contains("${{"), "{name}: a value inside of a script could be code");
            let files = ["GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY"].map(|name| {
                let file = self.temp.join(name);
                fs::write(&file, "").unwrap();
                (name.to_owned(), file.display().to_string())
            });
            let own = step["env"].as_object().into_iter().flatten();
            let own = own.map(|(name, value)| (name.clone(), filled(value.as_str().unwrap(), &context)));
            let mut env: Vec<(String, String)> = files.iter().cloned().chain(own).collect();
            env.push(("RUNNER_TEMP".to_owned(), self.temp.display().to_string()));
            env.push(("GITHUB_WORKSPACE".to_owned(), self.checkout.display().to_string()));
            let (code, said) = self.shell(script, &["--noprofile", "--norc", "-eo", "pipefail"], &path, &env);
            is_failed |= code != 0;
            let read = |at: usize| fs::read_to_string(&files[at].1).unwrap();
            for line in read(1).lines() {
                path = format!("{line}:{path}");
            }
            played.summary += &read(2);
            if let Some(id) = step["id"].as_str() {
                let outputs = read(0);
                let outputs = outputs.lines().filter_map(|line| line.split_once('='));
                let outputs: Map<String, Value> =
                    outputs.map(|(name, value)| (name.to_owned(), value.into())).collect();
                context["steps"][id] = serde_json::json!({"outputs": outputs});
            }
            played.steps.push(PlayedStep { name, code: Some(code), said });
        }
        let outputs = action["outputs"].as_object().cloned().unwrap_or_default();
        for (name, output) in outputs {
            let value = filled(output["value"].as_str().unwrap_or_default(), &context);
            played.outputs.insert(name, value);
        }
        played
    }

    /// Plays one job of a template of GitLab with these inputs and predefined variables. Returns its exit code, its output
    /// and the job. `None` for the code: its rules leave it out.
    pub fn gitlab(
        &self,
        template: &str,
        job: &str,
        given: &[(&str, &str)],
        predefined: &[(&str, &str)],
    ) -> (Option<i32>, String, Value) {
        let documents = documents(template);
        let [header, jobs] = documents.as_slice() else { panic!("a header and the jobs") };
        let specified = header["spec"]["inputs"].as_object().unwrap();
        let unknown = given.iter().find(|(name, _)| !specified.contains_key(*name));
        assert_eq!(unknown, None, "an input that the template does not have");
        let mut inputs = BTreeMap::new();
        for (name, input) in specified {
            let given = given.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
            let value = given.or(input["default"].as_str()).unwrap_or_else(|| panic!("the input {name} is required"));
            if let Some(options) = input["options"].as_array() {
                assert!(options.iter().any(|option| option == value), "{name}: {value} is no option");
            }
            inputs.insert(name.clone(), value.to_owned());
        }
        let jobs = interpolated(jobs, &inputs);
        let own = &jobs[job];
        let whole = own["extends"].as_str().map_or_else(|| own.clone(), |base| merged(&jobs[base], own));
        if whole["rules"].as_array().is_some_and(|rules| rules.iter().any(|rule| rule["when"] == "never")) {
            return (None, String::new(), whole);
        }
        let lines = |key: &str| {
            let list = whole[key].as_array().cloned().unwrap_or_default();
            list.iter().map(|line| format!("{}\n", line.as_str().unwrap())).collect::<String>()
        };
        let variables = whole["variables"].as_object().cloned().unwrap_or_default();
        let variables = variables.iter().map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()));
        let predefined = predefined.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let env: Vec<(String, String)> = predefined.chain(variables).collect();
        // Both run in one shell, as GitLab's runner runs them.
        let script = format!("set -eo pipefail\n{}{}", lines("before_script"), lines("script"));
        let (code, said) = self.shell(&script, &[], &self.path(), &env);
        (Some(code), said, whole)
    }
}

/// The job over its base: mappings are merged, and everything else is replaced.
fn merged(base: &Value, own: &Value) -> Value {
    let (Value::Object(base), Value::Object(own)) = (base, own) else { return own.clone() };
    let mut whole = base.clone();
    for (name, value) in own {
        let value = whole.get(name).map_or_else(|| value.clone(), |base| merged(base, value));
        whole.insert(name.clone(), value);
    }
    Value::Object(whole)
}

fn interpolated(value: &Value, inputs: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => {
            let text = inputs
                .iter()
                .fold(text.clone(), |text, (name, value)| text.replace(&format!("$[[ inputs.{name} ]]"), value));
            assert!(!text.contains("$[["), "an unknown input: {text}");
            Value::String(text)
        }
        Value::Array(list) => list.iter().map(|one| interpolated(one, inputs)).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, one)| (name.clone(), interpolated(one, inputs))).collect())
        }
        other => other.clone(),
    }
}

/// A text with the values of its `${{ }}`.
fn filled(text: &str, context: &Value) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${{") {
        let (expression, after) = after.split_once("}}").expect("the end of an expression");
        out += before;
        out += &shown(&Expression::value(expression, context, false));
        rest = after;
    }
    out + rest
}

/// The expression of a condition, with or without `${{ }}`.
fn inside(condition: &str) -> &str {
    let bare = condition.trim().strip_prefix("${{").and_then(|rest| rest.strip_suffix("}}"));
    bare.unwrap_or(condition)
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn is_true(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false)) && *value != Value::String(String::new())
}

/// An expression of GitHub: `||`, `&&`, `!`, `==`, `!=`, texts, paths and the functions of a step's status.
struct Expression<'e> {
    rest: &'e str,
    context: &'e Value,
    is_failed: bool,
}

impl Expression<'_> {
    fn value(text: &str, context: &Value, is_failed: bool) -> Value {
        let mut expression = Expression { rest: text, context, is_failed };
        let value = expression.either();
        assert_eq!(expression.rest.trim(), "", "the rest of {text}");
        value
    }

    fn takes(&mut self, word: &str) -> bool {
        let rest = self.rest.trim_start();
        let Some(rest) = rest.strip_prefix(word) else { return false };
        self.rest = rest;
        true
    }

    fn either(&mut self) -> Value {
        let mut value = self.both();
        while self.takes("||") {
            let other = self.both();
            value = if is_true(&value) { value } else { other };
        }
        value
    }

    fn both(&mut self) -> Value {
        let mut value = self.compared();
        while self.takes("&&") {
            let other = self.compared();
            value = if is_true(&value) { other } else { value };
        }
        value
    }

    fn compared(&mut self) -> Value {
        let value = self.one();
        let is_equal = if self.takes("==") {
            true
        } else if self.takes("!=") {
            false
        } else {
            return value;
        };
        let other = self.one();
        Value::Bool((shown(&value) == shown(&other)) == is_equal)
    }

    fn one(&mut self) -> Value {
        if self.takes("!") {
            return Value::Bool(!is_true(&self.one()));
        }
        if self.takes("(") {
            let value = self.either();
            assert!(self.takes(")"), "a bracket is open: {}", self.rest);
            return value;
        }
        if self.takes("'") {
            let (text, rest) = self.rest.split_once('\'').expect("the end of a text");
            self.rest = rest;
            return Value::String(text.to_owned());
        }
        for (function, value) in [("always()", true), ("success()", !self.is_failed), ("failure()", self.is_failed)] {
            if self.takes(function) {
                return Value::Bool(value);
            }
        }
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c)).unwrap_or(rest.len());
        assert!(end > 0, "no value: {rest}");
        self.rest = &rest[end..];
        rest[..end].split('.').fold(self.context.clone(), |value, name| value.get(name).cloned().unwrap_or(Value::Null))
    }
}

/// Writes an executable script.
pub fn program(folder: &Path, name: &str, script: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/bash\n{script}")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// The runner's own rules, on small files.
pub fn check_itself() {
    let context = serde_json::json!({"inputs": {"a": "true", "b": ""}, "github": {"n": 7, "event_name": "push"}});
    let value = |text: &str| Expression::value(text, &context, true);
    for (text, is) in [
        ("inputs.a == 'true' && inputs.b != ''", false),
        ("always() && (inputs.b == '' || github.n == 8)", true),
        ("!inputs.b", true),
        ("success()", false),
        ("github.event.pull_request.number == ''", true),
    ] {
        assert_eq!(is_true(&value(text)), is, "{text}");
    }
    assert_eq!(filled("x ${{ github.n }} ${{ inputs.b }}y", &context), "x 7 y");
    let all = documents("a: {b: [c, 'd']}\n---\ne: |\n  f\n  g\n");
    assert_eq!(all, [serde_json::json!({"a": {"b": ["c", "d"]}}), serde_json::json!({"e": "f\ng\n"})]);
    let over = merged(
        &serde_json::json!({"v": {"a": "1", "b": "2"}, "s": ["x"]}),
        &serde_json::json!({"v": {"b": "3"}, "s": ["y"]}),
    );
    assert_eq!(over, serde_json::json!({"v": {"a": "1", "b": "3"}, "s": ["y"]}));
}
