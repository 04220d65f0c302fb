//! `weir tables`: the commands and flags as JSON. `cargo xtask package` makes man pages and completions from them.
//!
//! The makers of pages and completions would be a part of the binary for every user; this list costs a few kilobytes.

use clap::builder::{PossibleValue, StyledStr};
use clap::{Arg, Command};
use serde_json::{Map, Value, json};
use weir_words::Language;

use crate::lang::help::{self, Texts};

/// A command, its flags and its own commands, without those that the help hides.
pub fn of(command: &Command, language: Language) -> Value {
    let texts = (language == Language::Korean).then(Texts::read);
    table(command, "", &|path, id| texts.as_ref()?.find(path, id))
}

/// Finds the translation of a text by command and id, where there is one.
type Translation<'t> = &'t dyn Fn(&str, &str) -> Option<&'static str>;

fn table(command: &Command, path: &str, told: Translation<'_>) -> Value {
    let shown = command.get_subcommands().filter(|below| !below.is_hide_set());
    let below = shown.map(|below| table(below, &help::below_of(path, below.get_name()), told));
    let args = command.get_arguments().filter(|arg| !arg.is_hide_set() && !is_everywhere(arg));
    let args = args.map(|one| arg(one, told(path, one.get_id().as_str())));
    let text = |id: &str, english| told(path, id).map(str::to_owned).or_else(|| text(english));
    without_null(json!({
        "name": command.get_name(),
        "about": text(help::ABOUT, command.get_about()),
        "after_help": text(help::AFTER, command.get_after_help()),
        "needs_command": command.is_subcommand_required_set(),
        "args": args.collect::<Vec<_>>(),
        "commands": below.collect::<Vec<_>>(),
    }))
}

/// `--help` and `--version` are in every command, and their makers add them.
fn is_everywhere(arg: &Arg) -> bool {
    matches!(arg.get_id().as_str(), "help" | "version")
}

fn arg(arg: &Arg, told: Option<&str>) -> Value {
    let takes_value = arg.get_action().takes_values();
    let values = arg.get_num_args().map(|count| [count.min_values(), count.max_values()]);
    without_null(json!({
        "id": arg.get_id().as_str(),
        "short": arg.get_short(),
        "long": arg.get_long(),
        "help": told.map(str::to_owned).or_else(|| text(arg.get_help())),
        "global": arg.is_global_set(),
        "heading": arg.get_help_heading(),
        "required": arg.is_required_set(),
        "takes_value": takes_value,
        "values": values.filter(|_| takes_value),
        "names": arg.get_value_names().map(|names| names.iter().map(|name| name.as_str()).collect::<Vec<_>>()),
        "default": arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect::<Vec<_>>(),
        "hint": takes_value.then(|| format!("{:?}", arg.get_value_hint())),
        "choices": arg.get_possible_values().iter().filter(|choice| takes_value && !choice.is_hide_set()).map(choice).collect::<Vec<_>>(),
    }))
}

fn choice(choice: &PossibleValue) -> Value {
    json!({"name": choice.get_name(), "help": text(choice.get_help())})
}

fn text(text: Option<&StyledStr>) -> Option<String> {
    text.map(ToString::to_string)
}

fn without_null(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>().into(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn hidden_parts_are_left_out_and_values_are_told() {
        let command = Command::new("a")
            .about("does a")
            .subcommand(Command::new("seen").arg(Arg::new("FILE").required(true)))
            .subcommand(Command::new("unseen").hide(true))
            .arg(Arg::new("to").long("to").value_name("DIR").default_value("x").help("where to"))
            .arg(Arg::new("secret").long("secret").hide(true));
        let told = of(&command, Language::English);
        assert_eq!(told["about"], "does a");
        assert_eq!(told["commands"].as_array().unwrap().len(), 1);
        assert_eq!(told["commands"][0]["args"][0]["required"], true);
        assert_eq!(told["args"].as_array().unwrap().len(), 1);
        assert_eq!(told["args"][0]["names"], json!(["DIR"]));
        assert_eq!(told["args"][0]["default"], json!(["x"]));
    }
}
