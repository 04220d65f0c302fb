//! Which diagnostics the client has, by file and by configuration.
//!
//! A file may belong to several configurations. The client gets one list for each file: the union.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use weir_words::{Language, say};

use crate::answer::EditorAnswers;
use crate::check::{CheckedConfig, Diagnosis};
use crate::config::Home;
use crate::rpc;
use crate::settings::Severity;
use crate::texts;
use crate::workspace::Workspace;

/// Most diagnostics of one file of one configuration.
pub const DIAGNOSTICS_MAX: usize = 500;

/// Most diagnostics of one configuration.
const CONFIG_DIAGNOSTICS_MAX: usize = 5_000;

/// Most further places of one diagnostic.
const ALSO_MAX: usize = 50;

/// The diagnostics that the client has, by URI and by configuration.
#[derive(Default)]
pub struct Published {
    told: BTreeMap<String, BTreeMap<Home, Vec<Value>>>,
}

impl Published {
    /// Takes over the diagnostics of a configuration; returns the messages for the client.
    pub fn put(
        &mut self,
        answers: &EditorAnswers<'_>,
        checked: &CheckedConfig,
        language: Language,
        least: Severity,
    ) -> Vec<Value> {
        let home = &answers.config.home;
        let mut new = by_file(answers, checked, language, least);
        let mut changed = BTreeSet::new();
        for (uri, homes) in &mut self.told {
            let own = new.remove(uri);
            let before = homes.get(home);
            if before != own.as_ref() {
                changed.insert(uri.clone());
            }
            match own {
                Some(own) => drop(homes.insert(home.clone(), own)),
                None => drop(homes.remove(home)),
            }
        }
        for (uri, own) in new {
            changed.insert(uri.clone());
            self.told.entry(uri).or_default().insert(home.clone(), own);
        }
        // A new version of an open document has the same diagnostics for another text.
        let files = 0..u32::try_from(answers.config.tree.files.len()).unwrap_or(u32::MAX);
        changed.extend(files.filter_map(|file| answers.document(file)).map(|document| document.uri.clone()));
        self.messages(changed, answers.workspace)
    }

    /// Forgets all configurations but these; returns the messages for the client.
    pub fn keep(&mut self, homes: &BTreeSet<Home>, workspace: &Workspace) -> Vec<Value> {
        let mut changed = BTreeSet::new();
        for (uri, told) in &mut self.told {
            let before = told.len();
            told.retain(|home, _| homes.contains(home));
            if told.len() < before {
                changed.insert(uri.clone());
            }
        }
        self.messages(changed, workspace)
    }

    fn messages(&mut self, changed: BTreeSet<String>, workspace: &Workspace) -> Vec<Value> {
        let one = |uri: String| {
            let mut all: Vec<&Value> = Vec::new();
            for diagnostic in self.told.get(&uri).into_iter().flat_map(BTreeMap::values).flatten() {
                if !all.contains(&diagnostic) {
                    all.push(diagnostic);
                }
            }
            let mut params = json!({ "uri": uri, "diagnostics": all });
            if let Some(document) = workspace.document(&uri) {
                params["version"] = document.version.into();
            }
            rpc::notification("textDocument/publishDiagnostics", params)
        };
        let messages = changed.into_iter().map(one).collect();
        self.told.retain(|_, homes| !homes.is_empty());
        messages
    }
}

/// The diagnostics of each file that has some, or that is open.
fn by_file(
    answers: &EditorAnswers<'_>,
    checked: &CheckedConfig,
    language: Language,
    least: Severity,
) -> BTreeMap<String, Vec<Value>> {
    let mut files: BTreeMap<u32, Vec<&Diagnosis>> = BTreeMap::new();
    let told = checked.diagnoses.iter().filter(|one| one.severity <= least);
    for one in told.take(CONFIG_DIAGNOSTICS_MAX) {
        files.entry(one.file).or_default().push(one);
    }
    let of_file = |(file, all): (u32, Vec<&Diagnosis>)| {
        let mut shown: Vec<Value> = all.iter().take(DIAGNOSTICS_MAX).map(|one| diagnostic(answers, one)).collect();
        if let Some(more) = all.len().checked_sub(DIAGNOSTICS_MAX).filter(|more| *more > 0) {
            let text = say!(texts::MORE_PROBLEMS, DIAGNOSTICS_MAX, more);
            shown.push(json!({
                "range": answers.range(file, weir_conf::Span::default()),
                "severity": Severity::Information as u32,
                "source": "weir lsp",
                "message": text.say(language),
            }));
        }
        (answers.uri(file), shown)
    };
    let mut by_uri: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (uri, shown) in files.into_iter().map(of_file) {
        by_uri.entry(uri).or_default().extend(shown);
    }
    for file in 0..u32::try_from(answers.config.tree.files.len()).unwrap_or(u32::MAX) {
        let refused = answers.document(file).and_then(|document| Some((document, document.refusal.as_ref()?)));
        let Some((document, why)) = refused else { continue };
        by_uri.entry(document.uri.clone()).or_default().push(json!({
            "range": answers.range(file, weir_conf::Span::default()),
            "severity": Severity::Warning as u32,
            "code": "refused_file",
            "source": "weir lsp",
            "message": why.say(language),
        }));
    }
    by_uri
}

/// A diagnostic as JSON.
pub fn diagnostic(answers: &EditorAnswers<'_>, one: &Diagnosis) -> Value {
    let mut value = json!({
        "range": answers.range(one.file, one.span),
        "severity": one.severity as u32,
        "code": one.code,
        "source": one.source,
        "message": one.message,
    });
    if let Some(tag) = one.tag.filter(|_| answers.client.takes_tags) {
        value["tags"] = json!([tag as u32]);
    }
    if answers.client.takes_related && !one.also.is_empty() {
        let real = one.also.iter().filter(|at| answers.config.is_real(at.file)).take(ALSO_MAX);
        let first = one.message.lines().next().unwrap_or_default();
        let places = real.map(|at| {
            let place = crate::place::FilePlace { file: at.file, span: at.span };
            json!({ "location": answers.location(place), "message": first })
        });
        value["relatedInformation"] = places.collect();
    }
    value
}
