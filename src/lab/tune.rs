//! `weir lab tune`: the doctor recommends, the lab compares, and the changes that help become a diff. `apply` writes
//! the diff, `undo` takes it back.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use weir_conf::{Files, MemoryFiles, Problem, Tree, edit};
use weir_doctor::diff;
use weir_doctor::mend::{self, Mended};
use weir_doctor::rule::Group;
use weir_doctor::{Facts, Finding, NEWEST, Target, Version, rules};
use weir_lab::ab::{self, Comparison, Tell};
use weir_lab::ask::{Ask, Design, EdgeProgram, Side};
use weir_lab::change::changes;
use weir_lab::said::Said;
use weir_lab::tune::{self, Bench, Compared, Draft, Knob};
use weir_lab::{store, texts};
use weir_words::{Language, say};

use super::ab::no_effect;
use super::asked::{ask, design, edge_of, load, side};
use super::flags::TuneArgs;
use super::kept::experiment;
use super::progress::ProgressPrinter;
use super::sheet::Sheet;

/// Longest chain of changes of which each makes the next necessary; the chain counts as one change.
const CALLED_FOR_MAX: usize = 3;
/// Largest configuration file that is written or restored, in bytes.
const CONF_BYTES_MAX: u64 = 64 << 20;

/// Runs the search, prints the report and stores the run.
pub(super) fn run(args: &TuneArgs, language: Language) -> Result<u8, Said> {
    let beginning = side(&args.conf, edge_of(&args.stack.edge)?)?;
    let unknown = args.only.iter().find(|name| rules::lookup(name).is_none());
    if let Some(unknown) = unknown {
        let near = weir_conf::did_you_mean(unknown, rules::RULES.iter().map(|rule| rule.id));
        let near = near.map(|near| say!(texts::ERR_NEAR, near)).unwrap_or_default();
        return Err(say!(texts::ERR_NO_RULE, unknown, near));
    }
    let load = load(&args.load.sent, (args.load.block, args.load.warmup), args.path.clone())?;
    let design = design(&args.design, &args.stack, &load, false)?;
    let ask = ask(&args.stack, &args.load, load, &[&beginning])?;
    let own = args.knobs.iter().map(|text| address_and_value(text)).collect::<Result<Vec<_>, _>>()?;
    let seed = design.seed;
    let files = files_of_tree(&beginning.tree);
    let version = version_of(&beginning.edge);
    let mut facts = Facts::of_host(Path::new("/"), None);
    facts.version_is_told = Some(version);
    let (_, code) = experiment(&args.stack, seed, language, |stop, progress| {
        let mut lab = Lab {
            beginning: &beginning,
            files: &files,
            version,
            facts,
            ask,
            design,
            args,
            own,
            store: &args.stack.store,
            stop,
            progress,
            number: 0,
        };
        let tuned = tune::tune(&mut lab, args.tries)?;
        let load = lab.ask.load_said();
        let mut run = tuned.to_json(&|name| files.read(name).unwrap_or_default());
        run["version"] = json!(1);
        run["id"] = json!(store::new_id());
        run["seed"] = json!(seed);
        run["load"] = json!(load.en());
        run["load_said"] = json!(load);
        run["before"] = json!({"file": beginning.file.display().to_string(), "edge": beginning.edge.name()});
        run["environment"] = json!({"before": ab::version(&beginning.edge)});
        run["diff"] = json!(files_of(&run).iter().map(diff::diff).collect::<String>());
        Ok(run)
    })?;
    Ok(code)
}

/// Everything that a comparison needs.
struct Lab<'a> {
    beginning: &'a Side,
    /// The files as they were read. A draft changes these bytes and not the files on disk, so that `apply` refuses to
    /// overwrite a file that another program or user changed in the meantime.
    files: &'a MemoryFiles,
    version: Version,
    facts: Facts,
    ask: Ask,
    design: Design,
    args: &'a TuneArgs,
    own: Vec<(String, String)>,
    store: &'a Path,
    stop: &'a AtomicBool,
    progress: &'a mut ProgressPrinter,
    number: u64,
}

impl Bench for Lab<'_> {
    fn knobs(&mut self, draft: &Draft) -> Result<Vec<Knob>, Said> {
        let mut knobs = Vec::new();
        for (address, value) in &self.own {
            let tree = self.tree(draft);
            let edit =
                edit::set(&tree, address, value).map_err(|error| say!(texts::ERR_KNOB, address, error.to_string()))?;
            // Exactly the user's change. Changes that it makes necessary are the user's business.
            let asked = self.mended(draft, &[Finding::nowhere(Said::default()).fix(Some(edit))]);
            let name = format!("{address}={value}");
            knobs.extend(asked.map(|draft| Knob { name, says: texts::ASKED_FOR.with(&[]), draft }));
        }
        if !self.args.only_knobs {
            let findings = self.findings(&self.tree(draft));
            let mut seen = BTreeSet::new();
            for first in findings.iter().filter(|finding| self.is_wanted(finding) && seen.insert(finding.rule)) {
                // The same finding at several places is one knob.
                let all: Vec<Finding> = findings.iter().filter(|finding| finding.rule == first.rule).cloned().collect();
                knobs.extend(self.knob(first.rule.to_owned(), draft, &all));
            }
        }
        Ok(knobs)
    }

    fn compare(&mut self, before: &Draft, after: &Draft, name: &str) -> Result<Option<Compared>, Said> {
        let (before, after) = (self.tree(before), self.tree(after));
        let is_asked = self.own.iter().any(|(address, value)| format!("{address}={value}") == name);
        let no_effect = self.no_effect(&before, &after);
        if let Some(why) = no_effect.first().filter(|_| !is_asked) {
            return Ok(Some(Compared::Pointless(why.clone())));
        }
        let everything = texts::EVERYTHING_KEPT;
        let said = if name == everything.en { everything.with(&[]) } else { name.into() };
        self.progress.tell(&texts::KNOB.with(&[said]));
        let (before, after) = (Sheet::write(self.beginning, before)?, Sheet::write(self.beginning, after)?);
        // Each comparison has its own order of blocks.
        self.number += 1;
        let design = Design { seed: self.design.seed.wrapping_add(self.number), ..self.design.clone() };
        let it = Comparison {
            changes: changes(&before.side.tree, &after.side.tree),
            before: before.side.clone(),
            after: Some(after.side.clone()),
            factor: name.to_owned(),
            no_effect,
            ask: self.ask.clone(),
            design,
            warm: None,
            is_duet: false,
        };
        let run = ab::run(&it, self.stop, self.progress)?;
        store::keep(self.store, run["id"].as_str().unwrap_or("run"), &run)?;
        Ok((!self.stop.load(Ordering::Relaxed)).then(|| Compared::Run(Box::new(run))))
    }
}

impl Lab<'_> {
    /// The configuration with the draft's changes, and its problems.
    fn load(&self, draft: &Draft) -> (Tree, Vec<Problem>) {
        let main = self.beginning.file.display().to_string();
        let directory = self.beginning.file.parent().map(|parent| format!("{}/", parent.display())).unwrap_or_default();
        weir_doctor::load(&draft.over(self.files), &main, &directory)
    }

    fn tree(&self, draft: &Draft) -> Tree {
        self.load(draft).0
    }

    /// The program that reads the configuration: weir's defaults differ from nginx's.
    fn target(&self) -> Target {
        match &self.beginning.edge {
            EdgeProgram::Weir => Target::Weir,
            EdgeProgram::Nginx(_) => Target::Nginx(self.version),
        }
    }

    fn findings(&self, tree: &Tree) -> Vec<Finding> {
        weir_doctor::examine(tree, self.target(), &self.facts)
    }

    /// True if a finding is about speed or limits, brings a fix, and passes `--only`.
    fn is_wanted(&self, finding: &Finding) -> bool {
        let group = rules::lookup(finding.rule).map(|rule| rule.group);
        let is_named = self.args.only.is_empty() || self.args.only.iter().any(|name| name == finding.rule);
        !finding.fix.is_empty() && is_named && matches!(group, Some(Group::Speed | Group::Limits))
    }

    /// The changes of these findings, with the changes that they make necessary: `keepalive` in an upstream needs
    /// HTTP/1.1 in the location. `None` if the changes cannot be made together.
    fn knob(&self, name: String, draft: &Draft, findings: &[Finding]) -> Option<Knob> {
        let says = findings.first().map(|finding| finding.what.clone()).unwrap_or_default();
        let known = self.findings(&self.tree(draft));
        let is_new = |finding: &Finding| known.iter().all(|other| other.rule != finding.rule);
        let mut result = self.mended(draft, findings)?;
        for _ in 0..CALLED_FOR_MAX {
            let called_for: Vec<Finding> = self
                .findings(&self.tree(&result))
                .into_iter()
                .filter(|finding| is_new(finding) && !finding.fix.is_empty() && finding.rule != name)
                .collect();
            match self.mended(&result, &called_for) {
                Some(next) if next != result => result = next,
                _ => break,
            }
        }
        (result != *draft).then_some(Knob { name, says, draft: result })
    }

    /// The draft with the changes of these findings; `None` if there is no change, or if the result is invalid.
    fn mended(&self, draft: &Draft, findings: &[Finding]) -> Option<Draft> {
        let tree = self.tree(draft);
        let files = mend::mend(&tree, findings);
        let next = draft.with(files.into_iter().map(|file| (file.name, file.after)));
        (next != *draft && self.load(&next).1.is_empty()).then_some(next)
    }

    fn no_effect(&self, before: &Tree, after: &Tree) -> Vec<Said> {
        no_effect(before, after, self.target())
    }
}

/// The files that a configuration was read from.
fn files_of_tree(tree: &Tree) -> MemoryFiles {
    let read = tree.files.iter().filter(|source| !source.is_command_line);
    read.fold(MemoryFiles::new(), |files, source| files.with(&source.name, &source.bytes))
}

/// The version whose defaults apply. For weir, the newest nginx is the nearest.
fn version_of(edge: &EdgeProgram) -> Version {
    match edge {
        EdgeProgram::Weir => NEWEST,
        EdgeProgram::Nginx(_) => ab::version(edge).strip_prefix("nginx/").and_then(Version::read).unwrap_or(NEWEST),
    }
}

/// `ADDRESS=VALUE`; an address may hold `=` in brackets, as of `location[= /x]`.
fn address_and_value(text: &str) -> Result<(String, String), Said> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            '=' if depth == 0 => return Ok((text[..at].trim().to_owned(), text[at + 1..].trim().to_owned())),
            _ => {}
        }
    }
    Err(say!(texts::ERR_KNOB_FORM, text))
}

/// The files of a run, before and after its changes.
fn files_of(run: &Value) -> Vec<Mended> {
    let bytes = |value: &Value| value.as_str().unwrap_or_default().as_bytes().to_vec();
    let file = |file: &Value| {
        Some(Mended {
            name: file["name"].as_str()?.to_owned(),
            before: bytes(&file["before"]),
            after: bytes(&file["after"]),
        })
    };
    run["files"].as_array().into_iter().flatten().filter_map(file).collect()
}

/// Writes the changes that a run found to help, or undoes them. Refuses if the files differ from the run's files.
pub(super) fn write(store: &Path, id: &str, is_undo: bool, language: Language) -> Result<u8, Said> {
    let run = store::read(store, id)?;
    if run["kind"] != "tune" {
        return Err(say!(texts::ERR_NOT_TUNE, id));
    }
    let files: Vec<Mended> = files_of(&run)
        .into_iter()
        .map(|file| if is_undo { Mended { name: file.name, before: file.after, after: file.before } } else { file })
        .collect();
    if files.is_empty() {
        return Err(say!(texts::ERR_NO_KNOB, id));
    }
    for file in &files {
        let now = read(Path::new(&file.name))?;
        if now != file.before {
            return Err(say!(texts::ERR_CHANGED, &file.name));
        }
    }
    for file in &files {
        print!("{}", diff::diff(file));
        fs::write(&file.name, &file.after).map_err(|error| say!(texts::ERR_FILE, &file.name, error.to_string()))?;
    }
    let (back, id) = (if is_undo { "apply" } else { "undo" }, run["id"].as_str().unwrap_or(id));
    println!("{}", texts::WRITTEN.with(&[back.into(), id.into()]).say(language));
    Ok(0)
}

fn read(path: &Path) -> Result<Vec<u8>, Said> {
    let size =
        fs::metadata(path).map_err(|error| say!(texts::ERR_FILE, path.display().to_string(), error.to_string()))?.len();
    if size > CONF_BYTES_MAX {
        return Err(say!(texts::ERR_NO_CONFIGURATION, path.display().to_string(), size));
    }
    fs::read(path).map_err(|error| say!(texts::ERR_FILE, path.display().to_string(), error.to_string()))
}
