//! The configuration in force, the one before it, and the last reload that weir refused.
//!
//! The page shows the files line by line, without secrets, and the difference as a diff.

use serde_json::{Value, json};
use similar::TextDiff;

use crate::logs::plain;

/// Most bytes of all files of one configuration; the rest of a larger one is not shown.
pub const BYTES_MAX: usize = 1 << 20;
/// Most files of one configuration.
pub const FILES_MAX: usize = 1000;
/// Most sentences of a refused reload.
const SENTENCES_MAX: usize = 50;

/// The directive whose argument is the URL of a webhook.
const WEBHOOK: &str = "dashboard_alert";

/// A file of a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// Its path.
    pub name: String,
    /// Its text as it was read.
    pub text: String,
    /// True if every user of the machine may read the file.
    pub is_public: bool,
}

/// A configuration that came into force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Its number: 1 is that of the start.
    pub generation: u32,
    /// When it came into force, Unix milliseconds.
    pub loaded_ms: u64,
    /// Its files, in the order of reading.
    pub files: Vec<File>,
    /// True if files are missing here because of [`BYTES_MAX`] or [`FILES_MAX`].
    pub is_cut: bool,
}

impl Configuration {
    /// Takes a configuration's files, as far as they fit.
    pub fn new(generation: u32, loaded_ms: u64, files: impl Iterator<Item = File>) -> Configuration {
        let mut all = Configuration { generation, loaded_ms, ..Configuration::default() };
        let mut bytes = 0;
        for file in files {
            bytes += file.text.len();
            if bytes > BYTES_MAX || all.files.len() >= FILES_MAX {
                all.is_cut = true;
                break;
            }
            all.files.push(file);
        }
        all
    }

    fn file(&self, name: &str) -> Option<&File> {
        self.files.iter().find(|file| file.name == name)
    }
}

/// A reload that changed nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedReload {
    /// When, Unix milliseconds.
    pub at_ms: u64,
    /// The reasons, as in the error log.
    pub why: Vec<String>,
}

/// The configurations that the page shows.
#[derive(Debug, Default)]
pub struct Configurations {
    now: Option<Configuration>,
    before: Option<Configuration>,
    refused: Option<RefusedReload>,
}

impl Configurations {
    /// A configuration comes into force.
    pub fn load(&mut self, configuration: Configuration) {
        self.before = self.now.replace(configuration);
        self.refused = None;
    }

    /// weir refused a reload. The configuration in force stays.
    pub fn refuse(&mut self, at_ms: u64, mut why: Vec<String>) {
        why.truncate(SENTENCES_MAX);
        self.refused = Some(RefusedReload { at_ms, why });
    }

    /// The page's data. Without `shows_private`, files that not every user of the machine may read have no text.
    pub fn json(&self, shows_private: bool) -> Value {
        let Some(now) = &self.now else { return json!({"files": []}) };
        let is_shown = |file: &File| file.is_public || shows_private;
        let files = now.files.iter().map(|file| {
            let text = is_shown(file).then(|| without_secrets(&file.text));
            json!({"name": file.name, "text": text})
        });
        // A reason quotes words of the files.
        let is_told = now.files.iter().all(is_shown);
        let why = |refused: &RefusedReload| {
            is_told.then(|| refused.why.iter().map(|line| plain::without_secrets(line)).collect::<Vec<_>>())
        };
        let refused = self.refused.as_ref().map(|refused| json!({"at": refused.at_ms, "why": why(refused)}));
        json!({
            "generation": now.generation,
            "loaded": now.loaded_ms,
            "is_cut": now.is_cut,
            "files": files.collect::<Vec<_>>(),
            "before": self.before.as_ref().map(|before| before.loaded_ms),
            "diff": self.before.as_ref().map(|before| diff(before, now, &is_shown)),
            "refused": refused,
        })
    }
}

/// The difference of two configurations as a unified diff; empty if they are equal.
fn diff(before: &Configuration, now: &Configuration, is_shown: &dyn Fn(&File) -> bool) -> String {
    let gone = before.files.iter().filter(|file| now.file(&file.name).is_none()).map(|file| (Some(file), None));
    let kept = now.files.iter().map(|file| (before.file(&file.name), Some(file)));
    let mut out = String::new();
    for (old, new) in kept.chain(gone) {
        let Some(either) = new.or(old) else { continue };
        let text = |file: Option<&File>| file.map_or("", |file| file.text.as_str()).to_owned();
        let (old_text, new_text) = (text(old), text(new));
        if old_text == new_text {
            continue;
        }
        if ![old, new].into_iter().flatten().all(is_shown) {
            out.push_str(&format!("--- {0}\n+++ {0}\n", either.name));
            continue;
        }
        let head = |file: Option<&File>| file.map_or("/dev/null", |file| file.name.as_str()).to_owned();
        // Secrets are removed first: the diff then says nothing about them.
        let (old_text, new_text) = (without_secrets(&old_text), without_secrets(&new_text));
        let changes = TextDiff::from_lines(&old_text, &new_text);
        out.push_str(&changes.unified_diff().context_radius(3).header(&head(old), &head(new)).to_string());
    }
    out
}

/// The text without secrets, line by line, so that line numbers stay.
fn without_secrets(text: &str) -> String {
    text.split_inclusive('\n').map(|line| plain::without_secrets(&without_values(line))).collect()
}

/// A line of nginx.conf in which the word after the name of a secret is replaced by `…`, as in
/// `proxy_set_header Authorization "Basic …"`. Variables and paths stay: they are not secrets themselves.
fn without_values(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    let mut hides = false;
    let mut before = "";
    while !rest.is_empty() {
        let blank = rest.len() - rest.trim_start().len();
        let (space, after) = rest.split_at(blank);
        out.push_str(space);
        let word = after.get(..word_length(after)).unwrap_or(after);
        let bare = word.trim_matches(['"', '\'', ';']);
        let end = if word.ends_with(';') { ";" } else { "" };
        // The URL of a webhook is a secret: everybody who knows it can write to the webhook.
        let is_webhook = before == WEBHOOK && bare.contains("://");
        let is_named = hides && !bare.is_empty() && !bare.starts_with(['$', '/']) && !bare.contains('=');
        let is_hidden = is_named || is_webhook;
        before = bare;
        match is_hidden {
            true => out.extend(["…", end]),
            false => out.push_str(word),
        }
        hides = !is_hidden && end.is_empty() && plain::is_secret(bare.trim_start_matches('$'));
        rest = after.get(word.len()..).unwrap_or_default();
    }
    out
}

/// The bytes of the word at the beginning: up to a blank outside quotes.
fn word_length(text: &str) -> usize {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, c) if c.is_whitespace() => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(generation: u32, files: &[(&str, &str, bool)]) -> Configuration {
        let file = |(name, text, is_public): &(&str, &str, bool)| File {
            name: (*name).to_owned(),
            text: (*text).to_owned(),
            is_public: *is_public,
        };
        Configuration::new(generation, 1000 * u64::from(generation), files.iter().map(file))
    }

    #[test]
    fn the_difference_to_the_one_before_is_a_diff() {
        let mut all = Configurations::default();
        all.load(of(1, &[("/n.conf", "a;\nb;\n", true), ("/old.conf", "x;\n", true)]));
        assert_eq!(all.json(false)["diff"], Value::Null);
        all.refuse(7, vec!["unknown directive".to_owned()]);
        assert_eq!(all.json(false)["refused"], json!({"at": 7, "why": ["unknown directive"]}));
        all.load(of(2, &[("/n.conf", "a;\nc;\n", true)]));
        let json = all.json(false);
        let expected = "--- /n.conf\n+++ /n.conf\n@@ -1,2 +1,2 @@\n a;\n-b;\n+c;\n\
                        --- /old.conf\n+++ /dev/null\n@@ -1 +0,0 @@\n-x;\n";
        assert_eq!(json["diff"], expected);
        assert_eq!((&json["generation"], &json["before"], &json["refused"]), (&json!(2), &json!(1000), &Value::Null));
    }

    #[test]
    fn files_of_others_and_secrets_are_not_shown() {
        let mut all = Configurations::default();
        let with = |token: &str| format!("proxy_set_header Authorization \"Basic {token}\";\nset $x 1;\n");
        all.load(of(1, &[("/a", &with("abc"), true), ("/b", "1;\n", false)]));
        all.load(of(2, &[("/a", &with("def"), true), ("/b", "2;\n", false)]));
        let json = all.json(false);
        assert_eq!(json["files"][1], json!({"name": "/b", "text": null}));
        let text = json["files"][0]["text"].as_str().unwrap_or_default();
        assert!(!text.contains("def") && text.ends_with("set $x 1;\n"), "{text}");
        assert_eq!(json["diff"], "--- /b\n+++ /b\n");
        assert!(all.json(true)["diff"].as_str().is_some_and(|diff| diff.ends_with("-1;\n+2;\n")), "{}", all.json(true));
    }

    #[test]
    fn the_reasons_of_a_refusal_are_as_private_as_the_files() {
        let mut all = Configurations::default();
        all.load(of(1, &[("/a", "1;\n", true), ("/b", "2;\n", false)]));
        all.refuse(7, vec!["invalid value \"x\" in /b:1, token=abc".to_owned()]);
        assert_eq!(all.json(false)["refused"], json!({"at": 7, "why": null}));
        assert_eq!(all.json(true)["refused"]["why"], json!(["invalid value \"x\" in /b:1, token=…"]));
    }

    #[test]
    fn the_word_after_the_name_of_a_secret_is_not_shown() {
        for (line, shown) in [
            ("  set $api_token abc;\n", "  set $api_token …;\n"),
            ("{ dashboard_token token; }\n", "{ dashboard_token …; }\n"),
            ("proxy_set_header Cookie 'a b';", "proxy_set_header Cookie …;"),
            ("proxy_set_header Cookie $http_cookie;", "proxy_set_header Cookie $http_cookie;"),
            ("dashboard_token /etc/weir/token;", "dashboard_token /etc/weir/token;"),
            ("limit_req_zone $cookie_session zone=one:1m;", "limit_req_zone $cookie_session zone=one:1m;"),
            ("dashboard_alert https://a.test/x?k=v format=slack;", "dashboard_alert … format=slack;"),
            ("dashboard_alert env:HOOK;", "dashboard_alert env:HOOK;"),
            ("proxy_pass http://ann:pw@10.0.0.1;", "proxy_pass http://…@10.0.0.1;"),
            ("map $a $b { \"x\" 1; } # it's", "map $a $b { \"x\" 1; } # it's"),
        ] {
            assert_eq!(without_secrets(line), shown);
        }
    }

    #[test]
    fn a_huge_configuration_is_cut() {
        let text = "x".repeat(BYTES_MAX);
        let all = of(1, &[("/a", "1", true), ("/b", &text, true), ("/c", "2", true)]);
        assert!(all.is_cut && all.files.len() == 1);
    }
}
