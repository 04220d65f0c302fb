//! Korean help: the texts of `help.txt`, found by command and argument, in the form that clap gives its own help.

use std::fmt::Write;

use clap::{Arg, Command};

/// The texts. A block is `[COMMAND] ID`, the English text, `---` and the Korean text. The English text is there for
/// the test below, which fails when it changes, so that a translation never stays behind.
const TEXTS: &str = include_str!("help.txt");

/// The ids of the texts of a command itself.
pub const ABOUT: &str = "(about)";
/// The text after the flags.
pub const AFTER: &str = "(after)";

/// The headings of flags. Flags without a heading are first.
const HEADINGS: [(&str, &str); 9] = [
    ("Scripts", "스크립트"),
    ("URL", "URL"),
    ("Agents", "에이전트"),
    ("Stack", "스택"),
    ("Load", "부하"),
    ("Link of the client", "클라이언트의 링크"),
    ("Design", "측정 설계"),
    ("Experiments", "실험"),
    ("Output", "출력"),
];

/// A text in both languages, with its place.
struct Row {
    command: &'static str,
    id: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "the test compares it with clap's"))]
    en: &'static str,
    ko: &'static str,
}

/// Every text.
pub struct Texts(Vec<Row>);

impl Texts {
    /// Reads the file.
    pub fn read() -> Texts {
        let row = |block: &'static str| {
            let (place, texts) = block.trim_end().split_once('\n')?;
            let ((command, id), (en, ko)) = (place.split_once("] ")?, texts.split_once("\n---\n")?);
            Some(Row { command, id, en, ko })
        };
        Texts(TEXTS.trim_start_matches('[').split("\n\n[").filter_map(row).collect())
    }

    /// The Korean of a text. A flag that several commands below one command share has one text there.
    pub fn find(&self, path: &str, id: &str) -> Option<&'static str> {
        self.row(path, id).map(|row| row.ko)
    }

    fn row(&self, path: &str, id: &str) -> Option<&Row> {
        let mut scope = path;
        loop {
            if let Some(row) = self.0.iter().find(|row| row.command == scope && row.id == id) {
                return Some(row);
            }
            // The texts of a command itself belong to no other command.
            if scope.is_empty() || id == ABOUT || id == AFTER {
                return None;
            }
            scope = scope.rsplit_once(' ').map_or("", |(above, _)| above);
        }
    }
}

/// Puts Korean help into a command and all commands below it.
pub fn korean(mut command: Command) -> Command {
    // After this, the flags that clap adds and the flags of all commands are in their places.
    command.build();
    put(command, "", &Texts::read())
}

fn put(command: Command, path: &str, texts: &Texts) -> Command {
    let mut command = command.mut_subcommands(|below| {
        let path = below_of(path, below.get_name());
        put(below, &path, texts)
    });
    let page = page(&mut command, path, texts);
    command.override_help(page)
}

/// `lab ab` for `ab` below `lab`.
pub fn below_of(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path} {name}") }
}

fn page(command: &mut Command, path: &str, texts: &Texts) -> String {
    let usage = usage(&command.render_usage().to_string());
    let mut page = format!("{}\n\n{usage}\n", texts.find(path, ABOUT).unwrap_or_default());
    let below = command.get_subcommands().filter(|below| !below.is_hide_set()).map(|below| {
        let about = texts.find(&below_of(path, below.get_name()), ABOUT);
        (below.get_name().to_owned(), about.unwrap_or_default().to_owned())
    });
    section(&mut page, "명령", &below.collect::<Vec<_>>());
    let shown: Vec<&Arg> = command.get_arguments().filter(|arg| !arg.is_hide_set()).collect();
    let row = |arg: &&Arg| {
        let text = texts.find(path, arg.get_id().as_str()).unwrap_or_default();
        (signature(arg), format!("{text}{}", facts(arg)))
    };
    let of = |wanted: &dyn Fn(&&&Arg) -> bool| shown.iter().filter(wanted).map(row).collect::<Vec<_>>();
    let is_plain = |arg: &Arg| arg.get_help_heading().is_none();
    section(&mut page, "인자", &of(&|arg| is_plain(arg) && arg.is_positional()));
    section(&mut page, "옵션", &of(&|arg| is_plain(arg) && !arg.is_positional()));
    for (heading, name) in HEADINGS {
        section(&mut page, name, &of(&|arg| arg.get_help_heading() == Some(heading)));
    }
    if let Some(after) = texts.find(path, AFTER) {
        page.push('\n');
        page.push_str(after);
        page.push('\n');
    }
    page
}

fn section(page: &mut String, name: &str, rows: &[(String, String)]) {
    let width = rows.iter().map(|(left, _)| left.chars().count()).max().unwrap_or_default();
    if !rows.is_empty() {
        // Writing to a String cannot fail.
        let _ = writeln!(page, "\n{name}:");
    }
    for (left, text) in rows {
        let _ = writeln!(page, "  {left:<width$}  {text}");
    }
}

/// The usage of a command with Korean words.
pub fn usage(english: &str) -> String {
    // A second line stands below the first; a Korean syllable has two columns.
    let (usage, other) = ("사용법: ", "        ");
    let lines = english.trim().trim_start_matches("Usage:").trim_start().replace("\n       ", &format!("\n{other}"));
    let words = [("[OPTIONS]", "[옵션]"), ("<COMMAND>", "<명령>"), ("[COMMAND]", "[명령]")];
    usage.to_owned() + &words.iter().fold(lines, |text, (en, ko)| text.replace(en, ko))
}

/// `-c, --connections <N>`.
fn signature(arg: &Arg) -> String {
    let whole = arg.to_string();
    match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(_)) => format!("-{short}, {whole}"),
        (None, Some(_)) => format!("    {whole}"),
        _ => whole,
    }
}

/// The default, and the values that are allowed.
fn facts(arg: &Arg) -> String {
    let mut facts = String::new();
    if !arg.get_action().takes_values() {
        return facts;
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if !defaults.is_empty() {
        let _ = write!(facts, " [기본값: {}]", defaults.join(" "));
    }
    let values = arg.get_possible_values();
    let values: Vec<&str> = values.iter().filter(|value| !value.is_hide_set()).map(|value| value.get_name()).collect();
    if !values.is_empty() && !arg.is_hide_possible_values_set() {
        let _ = write!(facts, " [가능한 값: {}]", values.join(", "));
    }
    facts
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use clap::CommandFactory;
    use clap::builder::StyledStr;
    use std::collections::BTreeSet;
    use weir_words::{glossary, is_korean};

    /// Every text of a command that help shows, with its place.
    fn shown(command: &Command, path: &str, all: &mut Vec<(String, String, String)>) {
        let mut put = |id: &str, text: Option<&StyledStr>| {
            if let Some(text) = text {
                all.push((path.to_owned(), id.to_owned(), text.to_string().trim_end().to_owned()));
            }
        };
        put(ABOUT, command.get_about());
        put(AFTER, command.get_after_help());
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            put(arg.get_id().as_str(), arg.get_help());
        }
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            shown(below, &below_of(path, below.get_name()), all);
        }
    }

    #[test]
    fn every_text_has_its_korean_and_no_korean_is_stale() {
        let mut command = crate::Cli::command();
        command.build();
        let mut all = Vec::new();
        shown(&command, "", &mut all);
        let texts = Texts::read();
        let mut used = BTreeSet::new();
        for (path, id, english) in &all {
            let Some(row) = texts.row(path, id) else { panic!("src/lang/help.txt lacks [{path}] {id}\n{english}") };
            let Row { command, en, ko, .. } = row;
            assert_eq!(en, english, "src/lang/help.txt: [{command}] {id}: the English changed; does the Korean fit?");
            assert!(is_korean(ko), "[{command}] {id}: no Korean: {ko}");
            assert!(used.insert((*command, id.as_str())) || path != command, "[{command}] {id} is there twice");
        }
        let is_stale = |row: &&Row| !used.contains(&(row.command, row.id));
        let stale: Vec<_> = texts.0.iter().filter(is_stale).map(|row| (row.command, row.id)).collect();
        assert!(stale.is_empty(), "src/lang/help.txt has texts that no help shows: {stale:?}");
    }

    #[test]
    fn the_korean_keeps_to_the_glossary_and_names_the_same_flags() {
        for Row { command, id, en, ko } in Texts::read().0 {
            assert_eq!(glossary::forbidden_in(ko), None, "[{command}] {id}: {ko}");
            let flags = |text: &str| {
                let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
                words.filter(|word| word.starts_with("--")).map(str::to_owned).collect::<BTreeSet<_>>()
            };
            assert_eq!(flags(en), flags(ko), "[{command}] {id}");
        }
    }

    #[test]
    fn a_page_has_korean_headings_defaults_and_usage() {
        let mut command = korean(crate::Cli::command());
        let load = command.find_subcommand_mut("load").unwrap();
        let page = load.render_help().to_string();
        for part in [
            "\n사용법: weir load [옵션] [SCRIPT|URL]...\n        weir load <명령>\n\n명령:\n",
            "\n인자:\n  [SCRIPT|URL]...  ",
            "\n옵션:\n  -c, --config <FILE|N>  ",
            "\n스크립트:\n",
            " [기본값: v2] [가능한 값: v1, v2]\n",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
        let top = command.render_help().to_string();
        assert!(top.contains("\n  -V, --version") && !top.contains("tables"), "{top}");
    }
}
