//! The processing of `config` between the files and the plan, in Artillery's order (artillery.md §0).

use std::path::{Path, PathBuf};

use weir_words::say;

use super::merge::{self, Lists};
use super::node::{Member, Node, NodeValue};
use super::notes::Notes;
use super::options::ScriptOptions;
use super::source::Problem;
use super::{files, render, yaml};
use crate::texts::script as texts;
use crate::value::Value;

/// A script with its final `config`.
pub(crate) struct Settled {
    /// The whole script.
    pub script: Node,
    /// The first script file.
    pub file: PathBuf,
    /// The first variables of every virtual user, except `target`.
    pub globals: Vec<(String, Value)>,
}

/// Applies the environment, the flags and the templates of `config`.
pub(crate) fn settle(
    mut script: Node,
    options: &ScriptOptions,
    environment: Value,
    notes: &mut Notes,
) -> Result<Settled, Problem> {
    let file =
        files::absolute(options.files.first().or(options.config.as_ref()).map_or(Path::new(""), PathBuf::as_path));
    let dir = file.parent().map(Path::to_owned).unwrap_or_default();
    if script.get("config").is_none_or(|config| config.kind == NodeValue::Null) {
        script.set("config", Node::empty(script.at));
    }
    let has_target = has_target(&script, options);
    apply_environment(&mut script, options, notes);
    apply_flags(script.member_mut("config"), options, notes);
    settle_payload(script.member_mut("config"), options, &dir, notes);
    settle_processor(script.member_mut("config"), options, notes);
    if let Some(text) = &options.overrides {
        merge::deep(&mut script, &json_flag("--overrides", text, notes)?, Lists::Replace);
    }
    let variables = options.variables.as_ref().map(|text| json_flag("--variables", text, notes)).transpose()?;
    let variables = variables.unwrap_or(Node::empty(script.at));
    for (name, member) in variables.map().into_iter().flatten() {
        script.member_mut("config").member_mut("variables").set(name, member.value.clone());
    }
    let config_file = options.config.as_ref().map_or(file.clone(), |path| files::absolute(path));
    let globals = globals(options, &file, &config_file, environment);
    let known: Vec<(String, Value)> = globals.iter().cloned().chain(entries(&variables)).collect();
    let config = script.member_mut("config");
    render::check(config, &known, notes);
    *config = render::render(config, &known);
    if !has_target && !config.get("target").is_some_and(Node::is_truthy) {
        return Err(Problem::artillery(None, texts::NO_TARGET));
    }
    Ok(Settled { script, file, globals })
}

fn entries(node: &Node) -> Vec<(String, Value)> {
    node.value_map().into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

/// True if the script contains a target, even one that templates make undefined.
fn has_target(script: &Node, options: &ScriptOptions) -> bool {
    let chosen = options.environment.as_deref().unwrap_or("undefined");
    script.dig(&["config", "target"]).is_some() || script.dig(&["config", "environments", chosen, "target"]).is_some()
}

fn apply_environment(script: &mut Node, options: &ScriptOptions, notes: &mut Notes) {
    let Some(name) = &options.environment else { return };
    let config = script.member_mut("config");
    match config.dig(&["environments", name]).filter(|over| over.is_truthy()).cloned() {
        Some(over) => {
            for key in ["phases", "payload"] {
                warn_of_short_list(config, &over, key, notes);
            }
            merge::deep(config, &over, Lists::ByIndex);
        }
        None => {
            notes.say(say!(texts::NO_ENVIRONMENT, name));
        }
    }
}

fn warn_of_short_list(config: &Node, over: &Node, key: &str, notes: &mut Notes) {
    let count = |node: &Node| node.get(key).and_then(Node::list).map(<[Node]>::len);
    if let (Some(all), Some(some), Some(node)) = (count(config), count(over), over.get(key))
        && some < all
    {
        notes.warn(node.at, say!(texts::SHORT_LIST, key, some, all));
    }
}

fn apply_flags(config: &mut Node, options: &ScriptOptions, notes: &mut Notes) {
    if let Some(target) = &options.target {
        config.set("target", Node::text_at(config.at, target));
    }
    if options.insecure {
        let tls = config.member_mut("tls");
        if tls.get("rejectUnauthorized").is_some_and(Node::is_truthy) {
            notes.say(texts::TLS_OVERRIDDEN);
        }
        tls.set("rejectUnauthorized", Node::new(tls.at, NodeValue::Bool(false)));
    }
}

/// Makes `payload` a list with absolute paths.
fn settle_payload(config: &mut Node, options: &ScriptOptions, dir: &Path, notes: &mut Notes) {
    let Some(mut payload) = config.get("payload").filter(|payload| payload.is_truthy()).cloned() else { return };
    if payload.map().is_some() {
        let written = payload.get("path").is_some();
        match (&options.payload, written) {
            (Some(path), is_ignored) => {
                if is_ignored {
                    notes.say(texts::PAYLOAD_TWICE);
                }
                payload.set("path", Node::text_at(payload.at, &files::absolute(path).to_string_lossy()));
            }
            (None, false) => {
                notes.say(texts::NO_PAYLOAD);
            }
            (None, true) => {}
        }
        payload = Node::new(payload.at, NodeValue::List(vec![payload]));
    }
    let NodeValue::List(list) = &mut payload.kind else {
        notes.say(texts::PAYLOAD_IGNORED);
        if let NodeValue::Map(members) = &mut config.kind {
            members.shift_remove("payload");
        }
        return;
    };
    for entry in list {
        let path = entry.get("path").and_then(|path| Some((path.at, path.text()?.to_owned())));
        if let Some((at, path)) = path {
            entry.set("path", Node::text_at(at, &dir.join(path).to_string_lossy()));
        }
    }
    config.set("payload", payload);
}

/// With `-c`, looks for the processor beside the config file, then beside the script.
fn settle_processor(config: &mut Node, options: &ScriptOptions, notes: &mut Notes) {
    let Some(config_file) = &options.config else { return };
    let Some((at, name)) = config.get("processor").and_then(|node| Some((node.at, node.text()?.to_owned()))) else {
        return;
    };
    let beside = files::absolute(config_file).parent().map(|dir| dir.join(name)).unwrap_or_default();
    if beside.exists() {
        config.set("processor", Node::text_at(at, &beside.to_string_lossy()));
        return;
    }
    notes.say(texts::PROCESSOR_PLACE);
    notes.say(say!(texts::PROCESSOR_EXPECTED, beside.display().to_string()));
}

/// Parses an object given as JSON on the command line.
fn json_flag(name: &str, text: &str, notes: &mut Notes) -> Result<Node, Problem> {
    let parsed: Result<serde_json::Value, _> = serde_json::from_str(text);
    match parsed {
        Err(error) => Err(Problem::artillery(None, say!(texts::FLAG_NOT_JSON, name, error.to_string()))),
        Ok(value) if !value.is_object() => Err(Problem::artillery(None, say!(texts::FLAG_NO_OBJECT, name))),
        Ok(_) => {
            let file = notes.sources.add(name, text);
            yaml::read(text, file)
        }
    }
}

fn globals(options: &ScriptOptions, file: &Path, config_file: &Path, environment: Value) -> Vec<(String, Value)> {
    let text = |path: &Path| Value::from(path.to_string_lossy().as_ref());
    let dir = config_file.parent().unwrap_or(Path::new("/"));
    let chosen = options.environment.as_deref().map_or(Value::Undefined, Value::from);
    vec![
        ("$environment".to_owned(), chosen),
        ("$processEnvironment".to_owned(), environment.clone()),
        ("$env".to_owned(), environment),
        ("$testId".to_owned(), Value::from(options.test_id.as_str())),
        ("$dirname".to_owned(), text(dir)),
        ("$scenarioFile".to_owned(), text(file)),
    ]
}

/// The environment: `--dotenv` and the process's environment. The process's values win.
pub(crate) fn environment(options: &ScriptOptions, notes: &mut Notes) -> Value {
    let mut map = crate::value::Map::default();
    if let Some(path) = &options.dotenv {
        match files::read_text(path) {
            Ok(text) => {
                map.extend(
                    super::dotenv::read(&text).into_iter().map(|(name, value)| (name.into(), value.as_str().into())),
                );
            }
            Err(_) => notes.say(say!(texts::NO_DOTENV, path.display().to_string())),
        }
    }
    map.extend(options.env.iter().map(|(name, value)| (name.as_str().into(), value.as_str().into())));
    Value::Map(map.into())
}

/// The phases of `--solo`, and of a script without phases: one virtual user.
pub(crate) fn one_vuser(config: &mut Node) {
    let at = config.at;
    let member = |number: f64| Member { at, value: Node::new(at, NodeValue::Number(number)) };
    let phase = [("duration".into(), member(1.0)), ("arrivalCount".into(), member(1.0))].into_iter().collect();
    config.set("phases", Node::new(at, NodeValue::List(vec![Node::new(at, NodeValue::Map(phase))])));
}
