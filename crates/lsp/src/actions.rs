//! Code actions: the fixes of findings, the word that was meant, and all fixes that harm nothing.
//!
//! weir tries each fix on a copy of the whole tree before the client gets it, with the other fixes that it needs
//! ([`weir_doctor::fixes`]). That takes many readings of the file, so a client that can asks for the edit of the one
//! action that the user chooses.

use serde_json::{Value, json};
use weir_conf::Span;
use weir_conf::edit::Edit;
use weir_doctor::fixes::{self, Judges};
use weir_doctor::{Finding, FindingLevel};
use weir_net::answers;
use weir_words::{Said, say};

use crate::answer::EditorAnswers;
use crate::changes;
use crate::check::{self, CheckedConfig, Diagnosis, QuickFix};
use crate::publish;
use crate::settings::LspWish;
use crate::texts;

/// The kind of an action for one diagnostic.
const QUICK_FIX: &str = "quickfix";
/// The kind of the action for all diagnostics.
const FIX_ALL: &str = "source.fixAll.weir";

/// The kinds of actions.
pub const KINDS: [&str; 2] = [QUICK_FIX, FIX_ALL];

/// Most fixes that are tried at once, for a client that takes only whole actions.
const EAGER_MAX: usize = 4;

/// Most actions of one answer.
const ACTIONS_MAX: usize = 100;

/// Most characters of a title.
const TITLE_CHARS_MAX: usize = 160;

/// The input of the actions.
pub struct Actions<'a> {
    /// The answers about the configuration.
    pub answers: &'a EditorAnswers<'a>,
    /// Its diagnostics.
    pub checked: &'a CheckedConfig,
    /// The settings.
    pub wish: &'a LspWish,
    /// Whether nobody waits for the answer any more.
    pub is_stopped: &'a dyn Fn() -> bool,
}

/// The data that a client sends back to get the edit of an action.
struct Chosen<'v> {
    rule: &'v str,
    what: &'v str,
    file: u64,
    start: u64,
}

impl Actions<'_> {
    /// The actions for a part of a file. `only` has the kinds that the client wants; empty means all.
    pub fn list(&self, uri: &str, file: u32, span: Span, only: &[String]) -> Value {
        let is_wanted = |kind: &str| {
            let fits = |wanted: &String| {
                kind == wanted || kind.strip_prefix(wanted.as_str()).is_some_and(|rest| rest.starts_with('.'))
            };
            only.is_empty() || only.iter().any(fits)
        };
        let mut actions = Vec::new();
        if is_wanted(QUICK_FIX) {
            let touches =
                |one: &&Diagnosis| one.file == file && one.span.start <= span.end && span.start <= one.span.end;
            let mut eager = 0;
            for one in self.checked.diagnoses.iter().filter(touches).take(ACTIONS_MAX) {
                actions.extend(self.action(uri, one, &mut eager));
            }
        }
        let has_fix = self.checked.findings.iter().any(is_for_all);
        // A client that takes only whole actions must ask for this one: it is the dearest.
        if has_fix && is_wanted(FIX_ALL) && (self.answers.client.resolves_actions || !only.is_empty()) {
            actions.extend(self.all(uri));
        }
        actions.into()
    }

    fn action(&self, uri: &str, one: &Diagnosis, eager: &mut usize) -> Option<Value> {
        let diagnostic = publish::diagnostic(self.answers, one);
        let language = self.wish.language;
        match one.fix.as_ref()? {
            QuickFix::Word { span, with } => {
                let edit = Edit { file: one.file, span: *span, with: with.as_bytes().to_vec() };
                Some(json!({
                    "title": say!(texts::CHANGE_TO, with.as_str()).say(language),
                    "kind": QUICK_FIX,
                    "isPreferred": true,
                    "diagnostics": [diagnostic],
                    "edit": self.answers.workspace_edit(&[edit]),
                }))
            }
            QuickFix::Finding(number) => {
                let finding = self.checked.findings.get(*number)?;
                let title = say!(texts::FIX, finding.what.clone());
                let mut action = json!({
                    "title": shortened(title.say(language)),
                    "kind": QUICK_FIX,
                    "diagnostics": [diagnostic],
                });
                if self.answers.client.resolves_actions {
                    let at = finding.at.unwrap_or_default();
                    action["data"] = json!({
                        "uri": uri, "rule": finding.rule, "what": finding.what.en(), "file": at.file, "start": at.span.start,
                    });
                    return Some(action);
                }
                *eager += 1;
                if *eager > EAGER_MAX {
                    return None;
                }
                self.made(action, self.one(finding))
            }
        }
    }

    fn all(&self, uri: &str) -> Option<Value> {
        let title = say!(texts::FIX_ALL);
        let mut action = json!({ "title": title.say(self.wish.language), "kind": FIX_ALL });
        if self.answers.client.resolves_actions {
            action["data"] = json!({ "uri": uri, "all": true });
            return Some(action);
        }
        self.made(action, self.choose(&is_for_all))
    }

    /// The action with its edit; without one, with the reason if the client shows it.
    fn made(&self, mut action: Value, edits: Result<Vec<Edit>, Said>) -> Option<Value> {
        match edits {
            Ok(edits) => action["edit"] = self.answers.workspace_edit(&edits),
            Err(why) if self.answers.client.shows_disabled => {
                action["disabled"] = json!({ "reason": why.say(self.wish.language) });
            }
            Err(_) => return None,
        }
        Some(action)
    }

    /// The edit of an action that the user chose, by its `data`.
    ///
    /// # Errors
    /// The reason why weir does not make it.
    pub fn resolve(&self, data: &Value) -> Result<Value, Said> {
        let edits = match data["all"].as_bool() {
            Some(true) => self.choose(&is_for_all),
            _ => {
                let chosen = Chosen {
                    rule: data["rule"].as_str().unwrap_or_default(),
                    what: data["what"].as_str().unwrap_or_default(),
                    file: data["file"].as_u64().unwrap_or(u64::MAX),
                    start: data["start"].as_u64().unwrap_or(u64::MAX),
                };
                let found = self.checked.findings.iter().find(|finding| chosen.is(finding));
                self.one(found.ok_or_else(|| say!(texts::STALE))?)
            }
        };
        Ok(self.answers.workspace_edit(&edits?))
    }

    fn one(&self, finding: &Finding) -> Result<Vec<Edit>, Said> {
        let is_it =
            |other: &Finding| other.rule == finding.rule && other.what == finding.what && other.at == finding.at;
        self.choose(&is_it)
    }

    /// The edits that fix the wanted findings without harm.
    fn choose(&self, is_wanted: &dyn Fn(&Finding) -> bool) -> Result<Vec<Edit>, Said> {
        let config = self.answers.config;
        let is_wanted = |finding: &Finding| !(self.is_stopped)() && is_wanted(finding);
        // After a fix, weir reads the files without the mark that some of them are not known. So does it before.
        let mut tree = config.own().clone();
        tree.is_partial = config.is_unreadable && config.alone.is_none();
        let (target, facts) = (self.checked.target, check::facts(self.wish));
        let whole = answers::unasked(|| fixes::choose(&tree, target, &facts, &Judges::lenient(&is_wanted)));
        let mut edits = Vec::new();
        for file in &whole.files {
            let number = tree.files.iter().position(|source| source.name == file.name);
            let number = number.and_then(|number| u32::try_from(number).ok()).map(|number| number + config.shift);
            edits.extend(number.into_iter().flat_map(|number| changes::edits(number, &file.before, &file.after)));
        }
        match (edits.is_empty(), whole.dropped.into_iter().next()) {
            (false, _) => Ok(edits),
            (true, Some(dropped)) => Err(say!(texts::NOT_FIXED, dropped.why)),
            (true, None) => Err(say!(texts::NO_FIX)),
        }
    }
}

impl Chosen<'_> {
    fn is(&self, finding: &Finding) -> bool {
        let at = finding.at.unwrap_or_default();
        let is_there = u64::from(at.file) == self.file && u64::from(at.span.start) == self.start;
        finding.rule == self.rule && finding.what.en() == self.what && is_there && !finding.fix.is_empty()
    }
}

/// Whether a finding is among those that are fixed together: as `weir doctor --fix` does it, not a note.
fn is_for_all(finding: &Finding) -> bool {
    finding.level < FindingLevel::Note && !finding.fix.is_empty()
}

/// A title that fits into a menu.
fn shortened(title: &str) -> String {
    match title.char_indices().nth(TITLE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", title.get(..end).unwrap_or_default()),
        None => title.to_owned(),
    }
}
