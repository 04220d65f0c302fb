//! The command line of a run, to be printed again with other flags.

use std::fmt;

use serde_json::Value;

/// The words of a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine(Vec<String>);

impl CommandLine {
    /// A command line from its words. The first word is the program; only its name counts.
    pub fn new(words: impl IntoIterator<Item = String>) -> CommandLine {
        let mut words: Vec<String> = words.into_iter().collect();
        if let Some(program) = words.first_mut() {
            *program = program.rsplit('/').next().unwrap_or_default().to_owned();
        }
        CommandLine(words)
    }

    /// The command line of a stored run. `None` if the run is from before runs stored it.
    pub fn of_run(run: &Value) -> Option<CommandLine> {
        let words: Option<Vec<String>> =
            run["command"].as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect();
        words.filter(|words| !words.is_empty()).map(CommandLine)
    }

    /// The words, as a run stores them.
    pub fn words(&self) -> &[String] {
        &self.0
    }

    /// The command line with this value of a flag. `names` are the long and the short name of the flag, the long one
    /// first.
    #[must_use]
    pub fn with(&self, names: &[&str], value: &str) -> CommandLine {
        let mut words = self.without(names, true).0;
        words.extend(names.first().map(|name| (*name).to_owned()));
        words.push(value.to_owned());
        CommandLine(words)
    }

    /// The command line with a flag that has no value.
    #[must_use]
    pub fn and(&self, name: &str) -> CommandLine {
        let mut words = self.without(&[name], false).0;
        words.push(name.to_owned());
        CommandLine(words)
    }

    /// The command line without a flag. `has_value`: the word after the flag belongs to it.
    #[must_use]
    pub fn without(&self, names: &[&str], has_value: bool) -> CommandLine {
        let mut words = Vec::new();
        let mut is_value = false;
        for word in &self.0 {
            if std::mem::take(&mut is_value) {
                continue;
            }
            let is_joined = |name: &&&str| {
                let rest = word.strip_prefix(**name);
                rest.is_some_and(|rest| rest.starts_with('=') || (!name.starts_with("--") && !rest.is_empty()))
            };
            if names.contains(&word.as_str()) {
                is_value = has_value;
            } else if !(has_value && names.iter().any(|name| is_joined(&name))) {
                words.push(word.clone());
            }
        }
        CommandLine(words)
    }
}

/// The words, quoted for a shell.
impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
    }
}

/// A word, quoted for a shell if it has a character with a meaning there.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> CommandLine {
        CommandLine::new(text.split(' ').map(str::to_owned))
    }

    #[test]
    fn a_flag_is_replaced_wherever_and_however_it_stands() {
        let of = |text: &str| line(text).with(&["--rate", "-R"], "90").to_string();
        for text in ["/opt/bin/weir lab ab a b --rate 60", "weir lab ab --rate=60 a b", "weir lab ab a b"] {
            assert_eq!(of(text), "weir lab ab a b --rate 90", "{text}");
        }
        assert_eq!(of("weir lab ab a -R 60 b"), "weir lab ab a b --rate 90");
        assert_eq!(of("weir lab ab a -R60 b"), "weir lab ab a b --rate 90");
        assert_eq!(line("weir lab why n --prove").and("--prove").to_string(), "weir lab why n --prove");
        // A longer name with the same beginning is another flag.
        assert_eq!(line("weir --block-size 3").without(&["--block"], true).to_string(), "weir --block-size 3");
    }

    #[test]
    fn a_word_is_quoted_where_a_shell_would_split_it() {
        let words = ["weir", "-H", "a: b", "it's"].map(str::to_owned);
        let command = CommandLine::new(words.clone());
        assert_eq!(command.to_string(), "weir -H 'a: b' 'it'\\''s'");
        let run = serde_json::json!({"command": command.words()});
        assert_eq!(CommandLine::of_run(&run), Some(CommandLine::new(words)));
        assert_eq!(CommandLine::of_run(&Value::Null), None);
    }
}
