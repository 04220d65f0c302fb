//! `weir doctor`: reads a configuration, the host and a status page, and prints its findings. Writes only with
//! `--write`.

mod args;
mod certificates;
mod error_logs;
mod fixing;
mod limits;
mod nginx;
mod owners;
pub(crate) mod source;
mod undo;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use weir_conf::{Problem, Tree};
use weir_doctor::asked::AskedSymptom;
use weir_doctor::error_log::CountedLogs;
use weir_doctor::facts::StubStatus;
use weir_doctor::report::{self, Subject};
use weir_doctor::symptom::Symptom;
use weir_doctor::{Build, Facts, Finding, FindingLevel, NEWEST, Target};
use weir_doctor::{explain, reference, rules};
use weir_load::once::{self, Once};
use weir_words::{Language, Said, said, say};

use crate::texts;

pub use args::DoctorArgs;
use fixing::Fixing;
use nginx::Nginx;
use source::{ask_process, build, conf_path, flag_of, process_path, read, reads_none, target};

/// Runs the verb.
pub fn main(args: &DoctorArgs, language: Language) -> ExitCode {
    let code = sorted(args.clone()).and_then(|(args, symptom)| run(&args, symptom, language));
    match code {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            eprintln!("weir doctor: {}", message.say(language));
            ExitCode::from(2)
        }
    }
}

/// Sorts the words of the command line into a symptom and a file. The first may be either.
fn sorted(mut args: DoctorArgs) -> Result<(DoctorArgs, Option<Symptom>), Said> {
    let Some(first) = args.symptom.take() else { return Ok((args, None)) };
    let word = first.to_str().unwrap_or_default();
    let symptom = Symptom::of(word);
    // A word that could be a symptom and is no file: its user means a symptom.
    let is_word = args.conf.is_some() || word != "-" && !word.contains(['/', '.']) && !first.exists();
    if symptom.is_none() && is_word {
        let all = Symptom::ALL.map(Symptom::name);
        // 503 is not a mistyped 502.
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        let near = weir_conf::did_you_mean(word, all).filter(|_| !is_number);
        let word = first.display().to_string();
        return Err(match near {
            Some(near) => say!(texts::NO_SYMPTOM_BUT, word, near, all.join(", ")),
            None => say!(texts::NO_SYMPTOM, word, all.join(", ")),
        });
    }
    if symptom.is_none() {
        args.conf = Some(first);
    }
    let other = [("--explain", args.explain.is_some()), ("--against", args.against.is_some()), ("--fix", args.fix)];
    match (symptom, other.iter().find(|(_, is_given)| *is_given)) {
        (Some(symptom), Some((flag, _))) => Err(say!(texts::SYMPTOM_WITHOUT, symptom.name(), *flag)),
        (None, _) if args.error_log.is_some() => {
            Err(say!(texts::ERROR_LOG_NEEDS, Symptom::ALL.map(Symptom::name).join(", ")))
        }
        _ => Ok((args, symptom)),
    }
}

fn run(args: &DoctorArgs, symptom: Option<Symptom>, language: Language) -> Result<u8, Said> {
    if args.reference {
        print!("{}", reference::page());
        return Ok(0);
    }
    if args.undo {
        return undo::run(&args.root, language);
    }
    if let Some(unknown) = args.only.iter().find(|name| rules::lookup(name).is_none()) {
        let near = weir_conf::did_you_mean(unknown, rules::RULES.iter().map(|rule| rule.id));
        return Err(match near {
            Some(near) => say!(texts::NO_RULE_BUT, unknown, near),
            None => say!(texts::NO_RULE, unknown),
        });
    }
    if args.host {
        return limits::run(args, language);
    }
    if let Some(pid) = args.pid.filter(|pid| reads_none(args, *pid)) {
        // Its limits count all the same.
        return match args.against.is_some() || args.explain.is_some() || args.fix || symptom.is_some() {
            true => Err(say!(texts::READS_NO_CONF, pid)),
            false => process_alone(args, language),
        };
    }
    let build = build(args)?;
    let told = args.nginx_version.or(build.as_ref().map(|build| build.version));
    let version = told.unwrap_or(NEWEST);
    let (tree, problems) = read(&conf_path(args, build.as_ref())?)?;
    let target = target(args, build.as_ref(), version, &tree);
    if let Some(before) = &args.against {
        return against(before, &tree, target, args.json, language);
    }
    if let Some(directive) = &args.explain {
        let directive = Some(directive.as_str()).filter(|name| !name.is_empty());
        print!("{}", explain::explain(&tree, target, directive, language));
        return Ok(0);
    }
    let mut facts = facts(args)?;
    if !args.no_host {
        facts.now_s = i64::try_from(weir_net::clock::unix_seconds()).ok();
        facts.certificates = certificates::of(&tree);
    }
    facts.version_is_told = told;
    if args.fix {
        let nginx = nginx_here(args, build.as_ref(), target, &tree);
        let (only, root, write) = (args.only.as_slice(), args.root.as_path(), args.write);
        return Fixing { tree: &tree, target, facts: &facts, only, nginx, root, write, language }.run();
    }
    let here = std::env::current_dir().ok().and_then(|path| path.to_str().map(|path| format!("{path}/")));
    let directory = here.as_deref().unwrap_or_default();
    let subject = Subject { tree: &tree, target, version_is_told: told.is_some(), facts: &facts, directory };
    Ok(examined(args, symptom, &subject, &problems, build.as_ref(), language))
}

/// Examines, and prints the report; the exit code.
fn examined(
    args: &DoctorArgs,
    symptom: Option<Symptom>,
    subject: &Subject<'_>,
    problems: &[Problem],
    build: Option<&Build>,
    language: Language,
) -> u8 {
    let Subject { tree, target, facts, .. } = *subject;
    let mut findings = weir_doctor::examine(tree, target, facts);
    findings.retain(|finding| args.only.is_empty() || args.only.iter().any(|name| name == finding.rule));
    let limit = limits::sentence(args, facts, Some(tree));
    let (log, read) = match symptom {
        Some(_) => logs(args, build, tree),
        None => Default::default(),
    };
    let asked = symptom.map(|symptom| AskedSymptom { symptom, log: &log, read: &read });
    if let Some(asked) = &asked {
        asked.choose(&mut findings);
    }
    if args.json {
        let mut value = report::json(subject, &findings);
        value["open_files"] = open_files(limit.as_ref(), facts);
        let syntax: Vec<String> = problems.iter().map(|problem| problem.sentence(tree)).collect();
        value["problems"] = syntax.into();
        if let Some(asked) = &asked {
            value["symptom"] = asked.symptom.name().into();
            value["error_log"] = asked.json();
        }
        println!("{value:#}");
    } else {
        let is_short = args.brief || asked.is_some();
        for problem in problems {
            match is_short {
                true => println!("{}", problem.sentence(tree)),
                false => println!("{}", weir_conf::render(problem, tree, "weir")),
            }
        }
        print!("{}", shown(args, subject, &findings, asked.as_ref(), limit.as_ref(), language));
    }
    let is_wrong = findings.iter().any(|finding| finding.level < FindingLevel::Note);
    let is_logged = asked.is_some_and(|asked| asked.is_explained());
    u8::from(!problems.is_empty() || is_wrong || is_logged)
}

/// The report for people: in full, a line for each finding, or for a symptom.
fn shown(
    args: &DoctorArgs,
    subject: &Subject<'_>,
    findings: &[Finding],
    asked: Option<&AskedSymptom<'_>>,
    limit: Option<&Said>,
    language: Language,
) -> String {
    let limit_line = || limit.map_or(String::new(), |limit| format!("{}\n", limit.say(language)));
    if args.brief {
        let log = asked.map_or(String::new(), AskedSymptom::brief);
        return log + &report::brief(subject, findings, language) + &limit_line();
    }
    if let Some(asked) = asked {
        return asked.text(subject, findings, language) + &limit_line();
    }
    let processes = report::processes(subject.facts, limit, language);
    let names = if args.only.is_empty() { report::about_names(findings, language) } else { "" };
    let text = report::text(subject, findings, language) + names;
    // Without --pid these are other programs of the machine: the file comes first.
    match args.pid {
        Some(_) => processes + &text,
        None if processes.is_empty() => text,
        None => format!("{text}\n{processes}"),
    }
}

/// The ends of the error logs: of the named one, or of those that the configuration names.
fn logs(args: &DoctorArgs, build: Option<&Build>, tree: &Tree) -> (CountedLogs, Vec<(String, Said)>) {
    if let Some(named) = &args.error_log {
        return error_logs::read(std::slice::from_ref(named), tree);
    }
    if args.no_host {
        return Default::default();
    }
    let of_process = args.pid.and_then(|pid| process_path(pid, flag_of(pid, "-p")?));
    let of_file = tree.files.first().and_then(|source| Path::new(&source.name).parent()).map(PathBuf::from);
    let of_program = build.and_then(Build::prefix).map(PathBuf::from);
    let prefixes: Vec<PathBuf> = [of_process, of_program, of_file].into_iter().flatten().collect();
    let (files, others) = error_logs::of(tree, build, &prefixes);
    let (log, mut read) = error_logs::read(&files, tree);
    read.extend(others);
    (log, read)
}

/// The nginx that can check a change: the one that the advice is for, if the files are this machine's.
fn nginx_here(args: &DoctorArgs, build: Option<&Build>, target: Target, tree: &Tree) -> Option<Nginx> {
    let is_here = !args.no_host && build.is_some_and(|build| !build.is_weir) && target != Target::Weir;
    let is_on_disk = |name: &str| fs::metadata(name).is_ok_and(|file| file.is_file());
    let are_files = tree.files.iter().all(|source| is_on_disk(&source.name));
    let program = || match (&args.nginx, args.pid) {
        (Some(path), _) => path.clone(),
        (None, Some(pid)) if ask_process(pid).is_some() => PathBuf::from(format!("/proc/{pid}/exe")),
        _ => PathBuf::from("nginx"),
    };
    (is_here && are_files).then(|| Nginx::new(program()))
}

/// Prints the limits of a process that reads no configuration, and their source.
fn process_alone(args: &DoctorArgs, language: Language) -> Result<u8, Said> {
    let facts = facts(args)?;
    let limit = limits::sentence(args, &facts, None);
    match args.json {
        true => println!(
            "{:#}",
            serde_json::json!({ "version": 1, "weir_doctor": 1, "findings": [], "open_files": open_files(limit.as_ref(), &facts) })
        ),
        false if args.brief => limit.iter().for_each(|limit| println!("{}", limit.say(language))),
        false => print!("{}", report::processes(&Facts { neighbours: Vec::new(), ..facts }, limit.as_ref(), language)),
    }
    Ok(0)
}

/// The limit of open files of the process, and its source, for programs.
fn open_files(limit: Option<&Said>, facts: &Facts) -> serde_json::Value {
    let Some((limit, worker)) = limit.zip(weir_doctor::limits::worker(facts)) else { return serde_json::Value::Null };
    serde_json::json!({
        "pid": worker.id, "soft": worker.files.map(|files| files.soft), "hard": worker.files.map(|files| files.hard),
        "open": worker.open_files, "what": limit.en(),
    })
}

/// Lists every change and says if it can have an effect; the exit code says if one change has none.
fn against(before: &Path, after: &Tree, target: Target, json: bool, language: Language) -> Result<u8, Said> {
    let (before, _) = read(before)?;
    let findings = weir_doctor::compare(&before, after, target);
    let changes = weir_doctor::changes(&before, after, target);
    if json {
        let list: Vec<serde_json::Value> = findings
            .iter()
            .map(|finding| serde_json::json!({ "rule": finding.rule, "at": finding.at.map(|at| explain::place(after, at)), "what": finding.what.en() }))
            .collect();
        let all: Vec<serde_json::Value> = changes
            .iter()
            .map(|change| serde_json::json!({ "at": change.at.map(|at| explain::place(after, at)), "acts": change.acts, "what": change.what.en() }))
            .collect();
        println!(
            "{:#}",
            serde_json::json!({ "version": 1, "weir_doctor": 1, "target": target.to_string(), "findings": list, "changes": all })
        );
    } else {
        for change in &changes {
            let place = change.at.map_or(String::new(), |at| format!("{}  ", explain::place(after, at)));
            println!("{place}{}", change.what.say(language));
        }
        let acting = changes.iter().filter(|change| change.acts).count();
        let summary = weir_doctor::compare::summary(&changes).unwrap_or_else(|| {
            said!(
                "{acting} of {} changes can have an effect in {target}",
                "변경 {}건 중 {acting}건이 {target}에서 효과가 있을 수 있습니다",
                changes.len()
            )
        });
        println!("{}", summary.say(language));
    }
    Ok(u8::from(!findings.is_empty()))
}

fn facts(args: &DoctorArgs) -> Result<Facts, Said> {
    let mut facts = if args.no_host { Facts::default() } else { Facts::of_host(&args.root, args.pid) };
    if let Some(pid) = args.pid.filter(|_| facts.processes.is_empty()) {
        return Err(say!(texts::NO_PROCESS, pid));
    }
    for (name, value) in [("--clients", args.clients), ("--rate", args.rate), ("--seconds", args.seconds)] {
        if value.is_some_and(|value| !value.is_finite() || value < 0.0) {
            return Err(say!(texts::NOT_NEGATIVE, name));
        }
    }
    facts.load.clients = args.clients;
    facts.load.rate = args.rate;
    facts.load.seconds = args.seconds;
    if let Some(url) = &args.live {
        let first = status(url)?;
        std::thread::sleep(Duration::from_secs(1));
        facts.live = Some(status(url)?.since(first, 1.0));
    }
    Ok(facts)
}

fn status(url: &str) -> Result<StubStatus, Said> {
    let once = Once {
        url: url.to_owned(),
        method: "GET",
        json: Vec::new(),
        timeout: Duration::from_secs(5),
        insecure: false,
        bearer: None,
    };
    let (status, bytes) = once::ask(&once)?;
    let page = String::from_utf8_lossy(&bytes);
    StubStatus::read(&page).ok_or_else(|| say!(texts::NO_STUB_STATUS, url, u32::from(status)))
}
