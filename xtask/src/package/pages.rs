//! Man pages and completions, from the binary's own tables of commands and flags (`weir tables`).

use super::stage::{FILE, Stage, gzip};
use crate::run::output;
use clap::builder::{PossibleValue, PossibleValuesParser, ValueRange};
use clap::{Arg, ArgAction, ValueHint};
use clap_complete::Shell;
use clap_mangen::Man;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Verbs that an administrator runs as a service: their pages are in section 8.
const SERVICES: [&str; 1] = ["edge"];

/// Everything that is made from the tables.
pub struct Pages {
    /// The name of a file below `share/` of a prefix, and its content.
    pub files: Vec<(String, Vec<u8>)>,
}

impl Pages {
    /// Asks the binary.
    pub fn of(binary: &Path, epoch: &str) -> Result<Self, String> {
        let tables = |language: &str| {
            let tables = output(Command::new(binary).args(["--lang", language, "tables"]))?;
            serde_json::from_str(&tables).map_err(|error| format!("weir tables: {error}"))
        };
        let help =
            Command::new(binary).args(["edge", "-?"]).output().map_err(|error| format!("weir edge -?: {error}"))?;
        let date = output(Command::new("date").args(["-u", "+%Y-%m-%d", "-d"]).arg(format!("@{epoch}")))?;
        Self::made(&tables("en")?, &tables("ko")?, &String::from_utf8_lossy(&help.stderr), date.trim())
    }

    fn made(tables: &Value, korean: &Value, edge: &str, date: &str) -> Result<Self, String> {
        let built = |tables: &Value| {
            let mut weir = command(tables, "weir", edge);
            weir.build();
            weir
        };
        let weir = built(tables);
        let mut files = Vec::new();
        manuals(&weir, "weir", Book { date, korean: false }, &mut files)?;
        manuals(&built(korean), "weir", Book { date, korean: true }, &mut files)?;
        for (shell, place) in [
            (Shell::Bash, "bash-completion/completions/weir"),
            (Shell::Zsh, "zsh/vendor-completions/_weir"),
            (Shell::Fish, "fish/vendor_completions.d/weir.fish"),
        ] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut weir.clone(), "weir", &mut script);
            files.push((place.to_owned(), script));
        }
        Ok(Self { files })
    }

    /// Writes the files below a folder.
    pub fn put(&self, stage: &Stage, share: &str) -> Result<(), String> {
        self.files.iter().try_for_each(|(name, bytes)| stage.write(&format!("{share}/{name}"), FILE, bytes))
    }
}

/// The facts about all pages of one language.
#[derive(Clone, Copy)]
struct Book<'b> {
    date: &'b str,
    korean: bool,
}

/// clap's own words on a page, and the Korean words for them.
const KOREAN: [(&str, &str); 8] = [
    (".SH NAME\n", ".SH 이름\n"),
    (".SH SYNOPSIS\n", ".SH 사용법\n"),
    (".SH DESCRIPTION\n", ".SH 설명\n"),
    (".SH OPTIONS\n", ".SH 옵션\n"),
    (".SH SUBCOMMANDS\n", ".SH 명령\n"),
    (".SH EXTRA\n", ".SH 추가 정보\n"),
    (".SH VERSION\n", ".SH 버전\n"),
    ("Print help", "도움말을 출력합니다"),
];

/// The page of a command, and those of the commands below it. The page of a service has nginx's flags, and is in English
/// only, as nginx's own.
fn manuals(
    command: &clap::Command,
    name: &str,
    book: Book<'_>,
    files: &mut Vec<(String, Vec<u8>)>,
) -> Result<(), String> {
    let is_left_out = |below: &str| ["help", "version"].contains(&below) || book.korean && SERVICES.contains(&below);
    let below = command.get_subcommands().filter(|below| !is_left_out(below.get_name()));
    let date = book.date;
    let section = if SERVICES.contains(&command.get_name()) { "8" } else { "1" };
    // `weir-lab-ab` as the title, `weir lab ab` in the synopsis.
    let shown = command.clone().name(leaked(name)).bin_name(name.replace('-', " ")).version(env!("CARGO_PKG_VERSION"));
    let shown = shown.disable_help_subcommand(true);
    let man =
        Man::new(shown).section(section).date(date).manual("weir").source(concat!("weir ", env!("CARGO_PKG_VERSION")));
    let mut page = Vec::new();
    man.render(&mut page).map_err(|error| format!("{name}: {error}"))?;
    let folder = if book.korean { "man/ko" } else { "man" };
    if book.korean {
        let text = String::from_utf8(page).map_err(|error| format!("{name}: {error}"))?;
        page = KOREAN.iter().fold(text, |text, (en, ko)| text.replace(en, ko)).into_bytes();
    }
    files.push((format!("{folder}/man{section}/{name}.{section}.gz"), gzip(&page)?));
    for one in below {
        manuals(one, &format!("{name}-{}", one.get_name()), book, files)?;
    }
    Ok(())
}

/// A command as clap has it, from the tables; `edge` from its own help.
fn command(table: &Value, name: &str, edge: &str) -> clap::Command {
    let mut command = clap::Command::new(leaked(name)).disable_help_subcommand(true);
    let set = |key: &str| table[key].as_str().map(leaked);
    if let Some(about) = set("about") {
        command = command.about(about);
    }
    if let Some(text) = set("after_help") {
        command = command.after_help(text);
    }
    command = command.subcommand_required(table["needs_command"] == true);
    for below in list(&table["commands"]) {
        command = command.subcommand(match below["name"].as_str().unwrap_or_default() {
            "edge" => edge_command(edge),
            name => self::command(below, name, edge),
        });
    }
    command.args(list(&table["args"]).iter().map(arg))
}

fn arg(table: &Value) -> Arg {
    let text = |key: &str| table[key].as_str().map(leaked);
    let mut arg = Arg::new(text("id").unwrap_or_default()).required(table["required"] == true);
    arg = arg
        .short(text("short").and_then(|short| short.chars().next()))
        .long(text("long").filter(|long| !long.is_empty()));
    arg = arg.help(text("help")).help_heading(text("heading")).global(table["global"] == true);
    if table["takes_value"] != true {
        return arg.action(ArgAction::SetTrue);
    }
    let bound = |at: usize| table["values"][at].as_u64().and_then(|count| usize::try_from(count).ok());
    if let (Some(least), Some(most)) = (bound(0), bound(1)) {
        arg = arg.num_args(ValueRange::new(least..=most));
    }
    let texts = |key: &str| list(&table[key]).iter().filter_map(Value::as_str).map(leaked).collect::<Vec<_>>();
    let names = texts("names");
    if !names.is_empty() {
        arg = arg.value_names(names);
    }
    arg = arg.default_values(texts("default")).value_hint(hint(table["hint"].as_str().unwrap_or_default()));
    let choices: Vec<PossibleValue> = list(&table["choices"]).iter().map(choice).collect();
    if choices.is_empty() { arg } else { arg.value_parser(PossibleValuesParser::new(choices)) }
}

fn choice(table: &Value) -> PossibleValue {
    PossibleValue::new(leaked(table["name"].as_str().unwrap_or_default())).help(table["help"].as_str().map(leaked))
}

fn hint(name: &str) -> ValueHint {
    match name {
        "AnyPath" => ValueHint::AnyPath,
        "FilePath" => ValueHint::FilePath,
        "DirPath" => ValueHint::DirPath,
        "Url" => ValueHint::Url,
        "Hostname" => ValueHint::Hostname,
        _ => ValueHint::Unknown,
    }
}

/// `weir edge`, whose flags have nginx's grammar, from its own help: the lines `  -c filename  : set configuration file`.
fn edge_command(help: &str) -> clap::Command {
    let mut edge = clap::Command::new("edge").about("Serve an nginx.conf").disable_help_flag(true).after_help(EDGE);
    for line in help.lines() {
        let Some((flags, meaning)) = line.strip_prefix("  -").and_then(|rest| rest.split_once(" : ")) else { continue };
        let (flag, value) = flags.trim().split_once(' ').unwrap_or((flags.trim(), ""));
        let mut arg = match flag.strip_prefix('-') {
            Some(long) => Arg::new(leaked(long)).long(leaked(long)),
            None => Arg::new(leaked(flag)).short(flag.chars().next()),
        };
        arg = arg.help(leaked(meaning.trim()));
        edge = edge.arg(match (flag, value) {
            (_, "") => arg.action(ArgAction::SetTrue),
            ("s", _) => arg.value_name("signal").value_parser(["stop", "quit", "reopen", "reload"]),
            ("p", _) => arg.value_name("prefix").value_hint(ValueHint::DirPath),
            (_, value) => {
                let hint = if value == "filename" { ValueHint::FilePath } else { ValueHint::Unknown };
                arg.value_name(leaked(value)).value_hint(hint)
            }
        });
    }
    edge
}

/// The part of weir-edge(8) that the help does not have.
const EDGE: &str = "\
Signals: TERM and INT stop weir at once, QUIT after the last answer, HUP reads the configuration again, USR1 opens the \
log files again, USR2 starts a new binary beside this one. weir obeys signals only from root or from the user who \
started weir.

Files: /etc/nginx/nginx.conf, /var/log/nginx/error.log, /run/nginx.pid, unless -c, -e, -p or the configuration name others. \
weir.service reads /etc/weir/nginx.conf. If a link of the name nginx points to weir, the link behaves as nginx.

/usr/share/doc/weir/guide has a guide for each feature, /usr/share/doc/weir/reference lists the directives.";

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// clap keeps texts for the whole run, and so does this program, which ends soon.
fn leaked(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn every_verb_has_a_page_and_its_flags_are_completed() {
        let tables = json!({"name": "weir", "about": "a dam", "args": [], "commands": [
            {"name": "edge", "about": "serves", "args": [], "commands": []},
            {"name": "lab", "about": "compares", "args": [], "commands": [
                {"name": "ab", "about": "two", "args": [{"id": "seed", "long": "seed", "help": "the seed", "takes_value": true, "names": ["N"], "values": [1, 1]}], "commands": []},
            ]},
        ]});
        let help = "Options:\n  -t            : test configuration and exit\n  -s signal     : send signal\n  --explain     : say more\n";
        let korean = json!({"name": "weir", "about": "둑", "args": [], "commands": [{"name": "lab", "about": "비교", "args": [], "commands": []}]});
        let pages = Pages::made(&tables, &korean, help, "2026-01-01").unwrap();
        let names: Vec<&str> = pages.files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names[..4],
            ["man/man1/weir.1.gz", "man/man8/weir-edge.8.gz", "man/man1/weir-lab.1.gz", "man/man1/weir-lab-ab.1.gz"]
        );
        assert_eq!(names[4..6], ["man/ko/man1/weir.1.gz", "man/ko/man1/weir-lab.1.gz"]);
        let bash = String::from_utf8(pages.files[6].1.clone()).unwrap();
        assert!(bash.contains("--seed") && bash.contains("stop quit reopen reload") && bash.contains("--explain"));
    }
}
