//! The limit of open files of a process: `weir doctor --pid PID` names its source, `--fix --host` raises it there.

use std::fs;
use std::path::{Path, PathBuf};

use weir_conf::Tree;
use weir_doctor::{Facts, diff, limits, mend};
use weir_words::{Language, Said, say};

use crate::texts;

use super::args::DoctorArgs;
use super::source::{build, conf_path, read, reads_none, target};
use super::undo::Undo;

/// Shows the changes, writes them if the user asks, and prints the commands; the exit code says if something is left.
pub(super) fn run(args: &DoctorArgs, language: Language) -> Result<u8, Said> {
    let tell = |text: &Said| eprintln!("{}", text.say(language));
    let Some(pid) = args.pid else { return Err(limits::NO_PROCESS.into()) };
    let facts = Facts::of_host(&args.root, Some(pid));
    let need = match args.files {
        Some(files) => files,
        None => needed(args, &facts)?,
    };
    let at = |name: &str| args.root.join(name.trim_start_matches('/'));
    let user = user(&args.root, pid).unwrap_or_else(|| "root".to_owned());
    let plan = limits::plan(&facts, &user, need, &|name| fs::read(at(name)).ok());
    let plan = plan.ok_or_else(|| say!(texts::NO_LIMITS_OF, pid))?;
    plan.notes.iter().for_each(&tell);
    plan.files.iter().for_each(|file| print!("{}", diff::diff(file)));
    if args.write {
        let here = |file: &mend::Mended| mend::Mended { name: at(&file.name).display().to_string(), ..file.clone() };
        let files: Vec<mend::Mended> = plan.files.iter().map(here).collect();
        Undo::of(&args.root)?.write(&files)?;
        files.iter().for_each(|file| tell(&say!(texts::WRITTEN, &file.name)));
        if !files.is_empty() {
            tell(&say!(texts::UNDO_WITH));
        }
    } else if !plan.files.is_empty() {
        tell(&say!(texts::WROTE_NOTHING));
        return Ok(1);
    }
    if !plan.commands.is_empty() {
        eprintln!("{}", limits::THEN.say(language));
        plan.commands.iter().for_each(|command| eprintln!("    {command}"));
    }
    Ok(u8::from(!plan.commands.is_empty() && !args.write))
}

/// The sentence about the limit of open files of the process, and the program that set it.
pub(super) fn sentence(args: &DoctorArgs, facts: &Facts, tree: Option<&Tree>) -> Option<Said> {
    let user = user(&args.root, args.pid?).unwrap_or_else(|| "root".to_owned());
    let at = |name: &str| args.root.join(name.trim_start_matches('/'));
    limits::sentence(facts, tree, &user, &|name| fs::read(at(name)).ok())
}

/// The number of files by the configuration that the process reads.
fn needed(args: &DoctorArgs, facts: &Facts) -> Result<u64, Said> {
    if let Some(pid) = args.pid.filter(|pid| reads_none(args, *pid)) {
        return Err(say!(texts::FILES_UNKNOWN_OF, pid));
    }
    let build = build(args)?;
    let (tree, _) = read(&conf_path(args, build.as_ref())?)?;
    let version = args.nginx_version.or(build.as_ref().map(|build| build.version)).unwrap_or(weir_doctor::NEWEST);
    let target = target(args, build.as_ref(), version, &tree);
    weir_doctor::files_needed(&tree, target, facts).ok_or_else(|| say!(texts::FILES_UNKNOWN))
}

/// The user of a process, by name.
fn user(root: &Path, pid: u32) -> Option<String> {
    let status = fs::read_to_string(root.join(PathBuf::from(format!("proc/{pid}/status")))).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let id = line.split_whitespace().nth(1)?;
    let users = fs::read_to_string(root.join("etc/passwd")).unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id).then(|| name.to_owned())
    });
    name.or_else(|| (id == "0").then(|| "root".to_owned()))
}
