//! `weir ci check`: findings of configurations, of a working tree or a revision.

use std::path::{Path, PathBuf};

use weir_ci::check::{CheckReport, relative};
use weir_ci::checkout::RevisionRoom;
use weir_ci::finding::{CheckFinding, CheckedFiles, brought};
use weir_ci::revision::{CodeRevision, Repository};
use weir_ci::texts;
use weir_conf::Tree;
use weir_doctor::view::View;
use weir_doctor::{Facts, NEWEST, Target};
use weir_words::{Language, Said, say};

use super::flags::{CheckedProgram, CiCheckArgs};
use super::outputs::{give, is_stdout_taken};
use crate::doctor::source;
use crate::stop;

/// Blocks that only a whole configuration has.
const WHOLE: [&str; 4] = ["http", "stream", "events", "mail"];

/// Runs the check and writes the reports.
pub(super) fn run(args: &CiCheckArgs, language: Language) -> Result<u8, Said> {
    let here = std::env::current_dir().map_err(|error| say!(texts::ERR_OF_FILE, ".", error.to_string()))?;
    let stop = stop::on_signal()?;
    let is_revision_asked = args.before.is_some() || args.after.is_some();
    let repository = match Repository::around(&here) {
        Ok(repository) => Some(repository),
        // Files that are in no repository can be checked, but not compared.
        Err(why) if is_revision_asked => return Err(why),
        Err(_) => None,
    };
    let place = args.work.clone().unwrap_or_else(std::env::temp_dir);
    let tell = &mut |said: Said| eprintln!("{}", said.say(language));
    let room = if is_revision_asked { Some(RevisionRoom::new(&place, tell)?) } else { None };
    let unpacked = |asked: &str, name: &str| -> Result<Option<(CodeRevision, PathBuf)>, Said> {
        let (Some(repository), Some(room)) = (&repository, &room) else { return Ok(None) };
        let revision = repository.revision(asked)?;
        let directory = room.unpack(repository, &revision, name, &stop)?;
        Ok(Some((revision, directory)))
    };
    let before = args.before.as_deref().map(|asked| unpacked(asked, "A")).transpose()?.flatten();
    let after = args.after.as_deref().map(|asked| unpacked(asked, "B")).transpose()?.flatten();
    let top = repository.as_ref().map_or_else(|| here.clone(), |repository| repository.top.clone());
    let names = args.conf.iter().map(|conf| match &repository {
        Some(repository) => repository.inside(&here, conf),
        None => Ok(conf.clone()),
    });
    let names = names.collect::<Result<Vec<PathBuf>, Said>>()?;
    let root = after.as_ref().map_or(&top, |(_, directory)| directory);
    let mut report = CheckReport {
        confs: names.iter().map(|name| relative(name, root)).collect(),
        root: root.clone(),
        findings: findings(args, root, &names, args.after.as_deref())?,
        baseline: None,
        fails_from: args.fail_on.0,
        marker: args.outputs.marker.clone().unwrap_or_else(|| "check".to_owned()),
    };
    if let Some((revision, directory)) = &before {
        // A configuration that the revision before does not have brings all its findings.
        let is_there = |name: &&PathBuf| directory.join(name).is_file();
        let known: Vec<PathBuf> = names.iter().filter(is_there).cloned().collect();
        let old = findings(args, directory, &known, args.before.as_deref())?;
        let change = brought((&old, directory), (std::mem::take(&mut report.findings), root));
        report.compare(revision, change);
    }
    write_all(args, &report, language)?;
    Ok(u8::from(report.fails()))
}

/// The findings of the files below a root, each once even if two configurations include the same file.
fn findings(
    args: &CiCheckArgs,
    root: &Path,
    names: &[PathBuf],
    asked: Option<&str>,
) -> Result<Vec<CheckFinding>, Said> {
    let mut all: Vec<CheckFinding> = Vec::new();
    for name in names {
        let file = root.join(name);
        if let Some(revision) = asked.filter(|_| !file.is_file()) {
            return Err(say!(texts::ERR_NO_CONF, revision, name.display().to_string()));
        }
        let (tree, mut problems) = source::read(&file)?;
        if WHOLE.iter().any(|block| tree.named(block).next().is_some()) {
            problems.extend(weir_edge::load::checked(&tree));
        }
        weir_conf::sort_as_read(&mut problems, &tree);
        let target = target(args, &tree);
        let facts = Facts { version_is_told: args.nginx_version, ..Facts::default() };
        for finding in (CheckedFiles { tree: &tree, root, target }).findings(&facts, &problems) {
            let is_asked = args.only.is_empty() || args.only.contains(&finding.rule);
            if is_asked && !all.contains(&finding) {
                all.push(finding);
            }
        }
    }
    all.sort_by_key(|finding| finding.level);
    Ok(all)
}

fn target(args: &CiCheckArgs, tree: &Tree) -> Target {
    let nginx = Target::Nginx(args.nginx_version.unwrap_or(NEWEST));
    match args.reader {
        Some(CheckedProgram::Weir) => Target::Weir,
        Some(CheckedProgram::Nginx) => nginx,
        None if args.nginx_version.is_none() && Target::is_weirs_alone(&View::new(tree)) => Target::Weir,
        None => nginx,
    }
}

fn write_all(args: &CiCheckArgs, report: &CheckReport, language: Language) -> Result<(), Said> {
    let outputs = &args.outputs;
    if !is_stdout_taken(&[&args.sarif, &outputs.markdown, &outputs.junit, &outputs.json]) {
        print!("{}", report.text(language));
    }
    give(args.sarif.as_deref(), || format!("{:#}\n", report.sarif(language)))?;
    give(outputs.markdown.as_deref(), || report.markdown(language))?;
    give(outputs.junit.as_deref(), || report.junit(language))?;
    give(outputs.json.as_deref(), || format!("{:#}\n", report.json()))
}
