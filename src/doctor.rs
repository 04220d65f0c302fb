//! `weir doctor`: reads a configuration, the host and a status page, and prints its findings. Writes only with
//! `--write`.

mod certificates;
mod error_logs;
mod fixing;
mod limits;
mod nginx;
mod owners;
mod undo;

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::{Args, ValueEnum};
use weir_conf::{Problem, Tree};
use weir_doctor::asked::Asked;
use weir_doctor::error_log::Log;
use weir_doctor::facts::Live;
use weir_doctor::report::{self, Subject};
use weir_doctor::symptom::Symptom;
use weir_doctor::view::View;
use weir_doctor::{Build, Facts, Finding, Level, NEWEST, Target, Version};
use weir_doctor::{dump, explain, reference, rules};
use weir_load::once::{self, Once};
use weir_words::{Language, Said, said, say};

use crate::files::Disk;
use crate::texts;

use fixing::Fixing;
use nginx::Nginx;

const AFTER_HELP: &str = "\
CONF is an nginx.conf, a file that an nginx.conf includes, or the output of `nginx -T` (`-` reads standard input).
A file with the name of a symptom is ./502.
The doctor changes a file only with --write. With --fix it lets the nginx found here read a copy of the files (`nginx -t`).

Exit codes: 0 no finding is wrong or at risk; 1 a finding is; 2 the doctor could not read the configuration.";

/// Largest file read from standard input.
const STDIN_BYTES_MAX: u64 = 64 << 20;

/// `weir doctor`.
#[derive(Args, Clone)]
#[command(after_help = AFTER_HELP)]
pub struct DoctorArgs {
    /// What is wrong: 502, 504, 500, websocket, slow or limit. Shows what can cause it, the most likely first, and what the
    /// error log says
    #[arg(value_name = "SYMPTOM")]
    symptom: Option<PathBuf>,
    /// The configuration file
    #[arg(value_name = "CONF")]
    conf: Option<PathBuf>,
    /// With a symptom: nginx's error log [default: those of the configuration]; `-` reads standard input
    #[arg(long, value_name = "FILE", requires = "symptom")]
    error_log: Option<PathBuf>,
    /// Process id of a running nginx or weir: read its limits, its children, and where its limits were set
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// The nginx that will read the file: gives its version, its modules and the path of its file
    #[arg(long, value_name = "PATH")]
    nginx: Option<PathBuf>,
    /// The nginx version, if no binary is at hand
    #[arg(long, value_name = "VERSION", value_parser = version, conflicts_with = "nginx")]
    nginx_version: Option<Version>,
    /// URL of a stub_status page; read twice, one second apart
    #[arg(long, value_name = "URL")]
    live: Option<String>,
    /// Do not look at this machine: the file is for another one
    #[arg(long, conflicts_with_all = ["pid", "live"])]
    no_host: bool,
    /// Clients at the same time, at the peak
    #[arg(long, value_name = "N")]
    clients: Option<f64>,
    /// Requests (or sessions) a second, at the peak
    #[arg(long, value_name = "R")]
    rate: Option<f64>,
    /// Seconds that one of them takes, or stays
    #[arg(long, value_name = "S", requires = "rate")]
    seconds: Option<f64>,
    /// Print the values in force and where each comes from, of one directive or of all important ones
    #[arg(long, value_name = "DIRECTIVE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    explain: Option<String>,
    /// Print which changes between BEFORE and this file cannot make a difference
    #[arg(long, value_name = "BEFORE", conflicts_with_all = ["explain", "fix"])]
    against: Option<PathBuf>,
    /// The program that will read the file; its defaults and rules apply [default: the program of --nginx or --pid,
    /// or weir if only weir can read the file, or nginx]
    #[arg(long = "for", value_name = "nginx|weir", value_enum)]
    reader: Option<Reader>,
    /// Apply these rules only; a finding has the name of its rule in brackets
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    only: Vec<String>,
    /// Print one line for each finding: its level, its place, its rule, and what is wrong
    #[arg(long, conflicts_with_all = ["explain", "fix", "undo", "json"])]
    brief: bool,
    /// Show the fixes as a diff
    #[arg(long)]
    fix: bool,
    /// Write the fixes; the files as they were are kept for --undo
    #[arg(long, requires = "fix")]
    write: bool,
    /// Take the last --write back
    #[arg(long, conflicts_with_all = ["symptom", "conf", "fix", "explain", "against", "json"])]
    undo: bool,
    /// With --fix and --pid: raise the limit of open files at its source, in files of this machine
    #[arg(long, requires = "fix", conflicts_with_all = ["no_host", "json"])]
    host: bool,
    /// With --host: files that the process must be able to open [default: by worker_connections]
    #[arg(long, value_name = "N", requires = "host")]
    files: Option<u64>,
    /// With --pid: a folder that has the machine's files
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print the page of all rules
    #[arg(long, hide = true)]
    reference: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Reader {
    Nginx,
    Weir,
}

fn version(text: &str) -> Result<Version, Said> {
    Version::read(text).ok_or_else(|| Said::of_both("write three numbers, as in 1.22.1", "1.22.1처럼 세 수를 쓰세요"))
}

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
    let asked = symptom.map(|symptom| Asked { symptom, log: &log, read: &read });
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
    let is_wrong = findings.iter().any(|finding| finding.level < Level::Note);
    let is_logged = asked.is_some_and(|asked| asked.is_explained());
    u8::from(!problems.is_empty() || is_wrong || is_logged)
}

/// The report for people: in full, a line for each finding, or for a symptom.
fn shown(
    args: &DoctorArgs,
    subject: &Subject<'_>,
    findings: &[Finding],
    asked: Option<&Asked<'_>>,
    limit: Option<&Said>,
    language: Language,
) -> String {
    let limit_line = || limit.map_or(String::new(), |limit| format!("{}\n", limit.say(language)));
    if args.brief {
        let log = asked.map_or(String::new(), Asked::brief);
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
fn logs(args: &DoctorArgs, build: Option<&Build>, tree: &Tree) -> (Log, Vec<(String, Said)>) {
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
            serde_json::json!({ "weir_doctor": 1, "findings": [], "open_files": open_files(limit.as_ref(), &facts) })
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

/// The file from the command line, or the file that the running process or the binary reads.
fn conf_path(args: &DoctorArgs, build: Option<&Build>) -> Result<PathBuf, Said> {
    if let Some(conf) = &args.conf {
        return Ok(conf.clone());
    }
    if let Some(pid) = args.pid {
        fs::read(format!("/proc/{pid}/cmdline")).map_err(|error| say!(texts::NO_PROCESS_AS, pid, error.to_string()))?;
        if let Some(path) = flag_of(pid, "-c") {
            // A relative path is relative to the prefix.
            let prefix = process_path(pid, flag_of(pid, "-p").unwrap_or_default()).unwrap_or_default();
            return Ok(prefix.join(path));
        }
    }
    if let Some(path) = build.and_then(Build::conf_path) {
        return Ok(PathBuf::from(path));
    }
    let usual = ["/etc/nginx/nginx.conf", "/usr/local/nginx/conf/nginx.conf", "/usr/local/etc/nginx/nginx.conf"];
    let found = usual.into_iter().find(|path| Path::new(path).exists());
    found.map(PathBuf::from).ok_or_else(|| say!(texts::NO_CONF))
}

/// The word after a flag of a process's command line. nginx's title has the words of the command line, too.
fn flag_of(pid: u32, flag: &str) -> Option<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    let mut words = line.split_whitespace();
    words.find(|word| *word == flag)?;
    words.next().map(str::to_owned)
}

/// A path as the process sees it: a relative one is relative to its working directory.
fn process_path(pid: u32, path: String) -> Option<PathBuf> {
    Some(fs::read_link(format!("/proc/{pid}/cwd")).ok()?.join(path))
}

/// The tree of a file, of a dump, or of standard input.
fn read(path: &Path) -> Result<(Tree, Vec<Problem>), Said> {
    let failed = |error: io::Error| say!(texts::OF_FILE, path.display().to_string(), error.to_string());
    let is_stdin = path == Path::new("-");
    let text = if is_stdin {
        let mut text = String::new();
        let mut input = io::Read::take(io::stdin(), STDIN_BYTES_MAX);
        io::Read::read_to_string(&mut input, &mut text).map_err(|error| say!(texts::STDIN, error.to_string()))?;
        text
    } else {
        let bytes = fs::read(path).map_err(failed)?;
        String::from_utf8_lossy(&bytes).into_owned()
    };
    if let Some((files, main)) = dump::read(&text) {
        let directory = main.rsplit_once('/').map_or("/", |(directory, _)| directory).to_owned() + "/";
        return Ok(weir_doctor::load(&files, &main, &directory));
    }
    if is_stdin {
        let files = weir_conf::MemoryFiles::new().with("/-", &text);
        return Ok(weir_doctor::load(&files, "/-", "/"));
    }
    let full = std::path::absolute(path).map_err(failed)?;
    let main = full.to_str().ok_or_else(|| say!(texts::PATH_NOT_UTF8, full.display().to_string()))?;
    let directory = main.rsplit_once('/').map_or("/", |(directory, _)| directory);
    Ok(weir_doctor::load(&Disk, main, &format!("{directory}/")))
}

/// The `-V` output of the named binary, of the process's binary, or of this machine's nginx, in this order.
fn build(args: &DoctorArgs) -> Result<Option<Build>, Said> {
    match (&args.nginx, args.pid) {
        (Some(path), _) => ask_binary(path).map(Some),
        (None, _) if args.nginx_version.is_some() => Ok(None),
        (None, Some(pid)) => Ok(ask_process(pid).or_else(|| ask_binary(Path::new("nginx")).ok())),
        // `--no-host` says that the file is for another machine, so this machine's nginx does not matter.
        (None, None) if args.no_host => Ok(None),
        (None, None) => Ok(ask_binary(Path::new("nginx")).ok()),
    }
}

/// Whether the process is a program such as Node, which reads no nginx.conf, and the user names no file.
fn reads_none(args: &DoctorArgs, pid: u32) -> bool {
    args.conf.is_none() && args.nginx.is_none() && !is_reader(&args.root, pid)
}

/// The name of a process's program, and the name that its command line begins with.
fn names_of(root: &Path, pid: u32) -> (Option<String>, String) {
    let directory = root.join(format!("proc/{pid}"));
    let exe = fs::read_link(directory.join("exe")).ok();
    let command = fs::read(directory.join("cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).split(['\0', ' ']).next().unwrap_or_default().to_owned();
    let called = command.rsplit('/').next().unwrap_or_default().trim_end_matches(':').to_owned();
    (exe.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned())), called)
}

/// Whether a process is an nginx or a weir, by its names. A fork of nginx with another name has nginx's titles.
fn is_reader(root: &Path, pid: u32) -> bool {
    let (name, called) = names_of(root, pid);
    let has_title = |command: Vec<u8>| String::from_utf8_lossy(&command).contains("master process");
    name.is_some_and(|name| is_known(&name))
        || is_known(&called)
        || fs::read(root.join(format!("proc/{pid}/cmdline"))).is_ok_and(has_title)
}

fn is_known(name: &str) -> bool {
    ["nginx", "weir"].iter().any(|known| name.starts_with(known))
}

/// The `-V` output of a process's program. Only a program with the name nginx or weir is run.
fn ask_process(pid: u32) -> Option<Build> {
    let (name, called) = names_of(Path::new("/"), pid);
    if !is_known(&called) && !name.is_some_and(|name| is_known(&name)) {
        return None;
    }
    // This link works even after an upgrade replaced the binary. It fails if the process belongs to another user.
    let of_weir = || (called == "weir").then(|| Build { version: NEWEST, is_weir: true, arguments: Vec::new() });
    ask_binary(&PathBuf::from(format!("/proc/{pid}/exe"))).ok().or_else(of_weir)
}

/// The program that will read the file: from the flags, the binary, the process, or the only one that can read it.
fn target(args: &DoctorArgs, build: Option<&Build>, version: Version, tree: &Tree) -> Target {
    match args.reader {
        Some(Reader::Weir) => Target::Weir,
        Some(Reader::Nginx) => Target::Nginx(version),
        None if args.nginx_version.is_some() => Target::Nginx(version),
        None if args.nginx.is_none() && Target::is_weirs_alone(&View::new(tree)) => Target::Weir,
        None => build.map_or(Target::Nginx(version), Target::of),
    }
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
            serde_json::json!({ "weir_doctor": 1, "target": target.to_string(), "findings": list, "changes": all })
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

/// The output of `PATH -V`.
fn ask_binary(path: &Path) -> Result<Build, Said> {
    // weir answers as nginx does if its `argv[0]` is `nginx`.
    let output = Command::new(path)
        .arg0("nginx")
        .arg("-V")
        .output()
        .map_err(|error| say!(texts::OF_FILE, format!("{} -V", path.display()), error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stderr);
    Build::read(&text).ok_or_else(|| say!(texts::NOT_NGINX, path.display().to_string()))
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

fn status(url: &str) -> Result<Live, Said> {
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
    Live::read(&page).ok_or_else(|| say!(texts::NO_STUB_STATUS, url, u32::from(status)))
}
