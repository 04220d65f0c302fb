//! `weir doctor`: reads a configuration, the host and a status page, prints what they say; writes only with `--write`.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::{Args, ValueEnum};
use weir_conf::{Files, Problem, Tree};
use weir_doctor::facts::Live;
use weir_doctor::mend::{self, Mended};
use weir_doctor::report::{self, Subject};
use weir_doctor::view::View;
use weir_doctor::{Build, Facts, Finding, Language, Level, NEWEST, Target, Version, dump, explain, reference, rules};
use weir_load::once::{self, Once};

use crate::files::Disk;

const AFTER_HELP: &str = "\
CONF is an nginx.conf, a file that one includes, or the output of `nginx -T` (`-` reads standard input). Nothing is
started and nothing is changed unless --write says so.

Exit codes: 0 nothing wrong or at risk; 1 something is; 2 it could not be looked at.";

/// Changes of a file that can be taken back, one after the other.
const UNDOS_MAX: usize = 99;
/// Longest file taken from standard input.
const STDIN_BYTES_MAX: u64 = 64 << 20;

/// `weir doctor`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct DoctorArgs {
    /// The configuration
    #[arg(value_name = "CONF")]
    conf: Option<PathBuf>,
    /// A running nginx or weir: its limits, its children, who set them
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// The nginx that will read the file: its version, modules, and where its file is
    #[arg(long, value_name = "PATH")]
    nginx: Option<PathBuf>,
    /// The version, where no binary is at hand
    #[arg(long, value_name = "VERSION", value_parser = version, conflicts_with = "nginx")]
    nginx_version: Option<Version>,
    /// A page of stub_status; it is asked twice, a second apart
    #[arg(long, value_name = "URL")]
    live: Option<String>,
    /// Do not look at this machine: the file is for another one
    #[arg(long, conflicts_with_all = ["pid", "live"])]
    no_host: bool,
    /// Clients at once, at the peak
    #[arg(long, value_name = "N")]
    clients: Option<f64>,
    /// Requests (or sessions) a second, at the peak
    #[arg(long, value_name = "R")]
    rate: Option<f64>,
    /// How long one of them takes, or stays
    #[arg(long, value_name = "S", requires = "rate")]
    seconds: Option<f64>,
    /// Values in force and where each comes from, of one directive or of all that matter
    #[arg(long, value_name = "DIRECTIVE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    explain: Option<String>,
    /// What of the change from that file to this one cannot make a difference
    #[arg(long, value_name = "BEFORE", conflicts_with_all = ["explain", "fix"])]
    against: Option<PathBuf>,
    /// Whose defaults --against and --explain go by; else the --nginx's or --pid's own, weir's where only weir reads the
    /// file, and nginx's
    #[arg(long = "for", value_name = "nginx|weir", value_enum)]
    reader: Option<Reader>,
    /// These rules only
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    only: Vec<String>,
    /// Show the changes that mend it, as a diff
    #[arg(long)]
    fix: bool,
    /// Write them, after leaving a diff that takes them back beside each file
    #[arg(long, requires = "fix")]
    write: bool,
    /// For programs
    #[arg(long)]
    json: bool,
    /// Language of the report
    #[arg(long, value_enum, default_value_t = Lang::En)]
    lang: Lang,
    /// Print the page of all rules
    #[arg(long, hide = true)]
    reference: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Reader {
    Nginx,
    Weir,
}

/// A language of what is said; also of `weir lab why`.
#[derive(Clone, Copy, ValueEnum)]
pub enum Lang {
    En,
    Ko,
}

fn version(text: &str) -> Result<Version, String> {
    Version::read(text).ok_or_else(|| "want three numbers, as in 1.22.1".to_owned())
}

/// Runs the verb.
pub fn main(args: &DoctorArgs) -> ExitCode {
    match run(args) {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            eprintln!("weir doctor: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &DoctorArgs) -> Result<u8, String> {
    if args.reference {
        print!("{}", reference::page());
        return Ok(0);
    }
    if let Some(unknown) = args.only.iter().find(|name| rules::lookup(name).is_none()) {
        let near = weir_conf::did_you_mean(unknown, rules::RULES.iter().map(|rule| rule.id));
        let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        return Err(format!("--only {unknown}: there is no such rule{near}"));
    }
    let build = match &args.nginx {
        Some(path) => Some(ask_binary(path)?),
        // A file for this machine is for the nginx of this machine.
        None if args.no_host || args.nginx_version.is_some() => None,
        None => ask_binary(Path::new("nginx")).ok(),
    };
    let told = args.nginx_version.or(build.as_ref().map(|build| build.version));
    let version = told.unwrap_or(NEWEST);
    let (tree, problems) = read(&conf_path(args, build.as_ref())?)?;
    if let Some(before) = &args.against {
        return against(before, &tree, target(args, build.as_ref(), version, &tree), args.json);
    }
    if let Some(directive) = &args.explain {
        let directive = Some(directive.as_str()).filter(|name| !name.is_empty());
        print!("{}", explain::explain(&tree, target(args, build.as_ref(), version, &tree), directive));
        return Ok(0);
    }
    if args.reader.is_some() {
        return Err("--for goes with --against or --explain: rules are about nginx, and what they say of a written directive holds in weir too".to_owned());
    }
    let mut facts = facts(args)?;
    facts.version_is_told = told;
    let mut findings = weir_doctor::examine(&tree, version, &facts);
    if !args.only.is_empty() {
        findings.retain(|finding| args.only.iter().any(|name| name == finding.rule));
    }
    if args.fix {
        return fix(&tree, &findings, args.write);
    }
    let here = std::env::current_dir().ok().and_then(|path| path.to_str().map(|path| format!("{path}/")));
    let directory = here.as_deref().unwrap_or_default();
    let subject = Subject { tree: &tree, version, version_is_told: told.is_some(), facts: &facts, directory };
    let language = match args.lang {
        Lang::En => Language::English,
        Lang::Ko => Language::Korean,
    };
    if args.json {
        let mut value = report::json(&subject, &findings);
        let syntax: Vec<String> = problems.iter().map(|problem| problem.sentence(&tree)).collect();
        value["problems"] = syntax.into();
        println!("{value:#}");
    } else {
        for problem in &problems {
            println!("{}", weir_conf::render(problem, &tree, "weir"));
        }
        print!("{}{}", report::processes(&facts, language), report::text(&subject, &findings, language));
    }
    let bad = !problems.is_empty() || findings.iter().any(|finding| finding.level < Level::Note);
    Ok(u8::from(bad))
}

/// The file that was named, or the one the running process or the binary reads.
fn conf_path(args: &DoctorArgs, build: Option<&Build>) -> Result<PathBuf, String> {
    if let Some(conf) = &args.conf {
        return Ok(conf.clone());
    }
    if let Some(pid) = args.pid {
        let line = fs::read(format!("/proc/{pid}/cmdline")).map_err(|error| format!("no process {pid}: {error}"))?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let mut words = line.split_whitespace();
        if words.any(|word| word == "-c")
            && let Some(path) = words.next()
        {
            return Ok(PathBuf::from(path));
        }
    }
    if let Some(path) = build.and_then(Build::conf_path) {
        return Ok(PathBuf::from(path));
    }
    let usual = ["/etc/nginx/nginx.conf", "/usr/local/nginx/conf/nginx.conf", "/usr/local/etc/nginx/nginx.conf"];
    let found = usual.into_iter().find(|path| Path::new(path).exists());
    found.map(PathBuf::from).ok_or_else(|| "no file was named, and there is no /etc/nginx/nginx.conf".to_owned())
}

/// The tree of a file, of a dump, or of standard input.
fn read(path: &Path) -> Result<(Tree, Vec<Problem>), String> {
    let is_stdin = path == Path::new("-");
    let text = if is_stdin {
        let mut text = String::new();
        let mut input = io::Read::take(io::stdin(), STDIN_BYTES_MAX);
        io::Read::read_to_string(&mut input, &mut text).map_err(|error| format!("standard input: {error}"))?;
        text
    } else {
        let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
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
    let full = std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let main = full.to_str().ok_or_else(|| format!("{}: the path is not UTF-8", full.display()))?;
    let directory = main.rsplit_once('/').map_or("/", |(directory, _)| directory);
    Ok(weir_doctor::load(&Disk, main, &format!("{directory}/")))
}

/// Who will read the file: as told, or what the binary or the process is, or the only one who could.
fn target(args: &DoctorArgs, build: Option<&Build>, version: Version, tree: &Tree) -> Target {
    let is_weirs_process = || {
        let exe = args.pid.and_then(|pid| fs::read_link(format!("/proc/{pid}/exe")).ok());
        // Called as nginx it is weir all the same, and says so.
        exe.is_some_and(|exe| ask_binary(&exe).is_ok_and(|build| Target::of(&build) == Target::Weir))
    };
    match args.reader {
        Some(Reader::Weir) => Target::Weir,
        Some(Reader::Nginx) => Target::Nginx(version),
        None if args.nginx.is_some() => build.map_or(Target::Nginx(version), Target::of),
        None if args.nginx_version.is_some() => Target::Nginx(version),
        None if is_weirs_process() || Target::is_weirs_alone(&View::new(tree)) => Target::Weir,
        None => build.map_or(Target::Nginx(version), Target::of),
    }
}

fn against(before: &Path, after: &Tree, target: Target, json: bool) -> Result<u8, String> {
    let (before, _) = read(before)?;
    let findings = weir_doctor::compare(&before, after, target);
    if json {
        let list: Vec<serde_json::Value> = findings
            .iter()
            .map(|finding| serde_json::json!({ "rule": finding.rule, "at": finding.at.map(|at| explain::place(after, at)), "what": finding.what }))
            .collect();
        println!("{:#}", serde_json::json!({ "weir_doctor": 1, "target": target.to_string(), "findings": list }));
    } else {
        for finding in &findings {
            match finding.at {
                Some(at) => println!("{}  {}", explain::place(after, at), finding.what),
                None => println!("{}", finding.what),
            }
        }
    }
    Ok(u8::from(!findings.is_empty()))
}

/// What `PATH -V` says.
fn ask_binary(path: &Path) -> Result<Build, String> {
    // weir answers as nginx when it is called so.
    let output = Command::new(path)
        .arg0("nginx")
        .arg("-V")
        .output()
        .map_err(|error| format!("{} -V: {error}", path.display()))?;
    let text = String::from_utf8_lossy(&output.stderr);
    Build::read(&text).ok_or_else(|| format!("{} -V does not answer as nginx does", path.display()))
}

fn facts(args: &DoctorArgs) -> Result<Facts, String> {
    let mut facts = if args.no_host { Facts::default() } else { Facts::of_host(Path::new("/"), args.pid) };
    if let Some(pid) = args.pid.filter(|_| facts.processes.is_empty()) {
        return Err(format!("no process {pid}"));
    }
    for (name, value) in [("--clients", args.clients), ("--rate", args.rate), ("--seconds", args.seconds)] {
        if value.is_some_and(|value| !value.is_finite() || value < 0.0) {
            return Err(format!("{name} wants a number that is not negative"));
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

fn status(url: &str) -> Result<Live, String> {
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
    Live::read(&page).ok_or_else(|| format!("{url}: status {status} and no page of stub_status"))
}

/// Shows the changes; writes them where that is asked for.
fn fix(tree: &Tree, findings: &[Finding], write: bool) -> Result<u8, String> {
    let (mended, left_out) = mend::mend(tree, findings);
    for file in &mended {
        print!("{}", mend::diff(file));
    }
    if left_out > 0 {
        eprintln!("{left_out} more change lines that are changed here: look again once this is written");
    }
    if mended.is_empty() {
        eprintln!("there is nothing that can be mended by itself");
        return Ok(0);
    }
    if !write {
        eprintln!("nothing was written; --fix --write does");
        return Ok(1);
    }
    still_reads(tree, &mended)?;
    let mut undos = Vec::new();
    for file in &mended {
        if std::str::from_utf8(&file.before).is_err() {
            return Err(format!(
                "{} is not UTF-8, and its diff would not bring it back: nothing was written",
                file.name
            ));
        }
        undos.push(free_undo(&file.name)?);
    }
    for (file, undo) in mended.iter().zip(&undos) {
        fs::write(undo, mend::undo(file)).map_err(|error| format!("{undo}: {error}"))?;
        fs::write(&file.name, &file.after).map_err(|error| format!("{}: {error}", file.name))?;
        eprintln!("{} written; patch -d / -p1 < {undo} takes it back", file.name);
    }
    eprintln!("nginx -t, then a reload, makes it so");
    Ok(0)
}

/// A name for what takes a change back: those of earlier changes stay, the latest has the largest number.
fn free_undo(file: &str) -> Result<String, String> {
    let names =
        std::iter::once(format!("{file}.undo.diff")).chain((2..=UNDOS_MAX).map(|n| format!("{file}.undo.{n}.diff")));
    let mut free = names.skip_while(|name| Path::new(name).exists());
    free.next().ok_or_else(|| {
        format!("{UNDOS_MAX} changes of {file} can be taken back: remove some of their diffs; nothing was written")
    })
}

/// The files with their changes, to see that they can still be read.
struct Changed<'m>(&'m [Mended]);

impl Files for Changed<'_> {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        match self.0.iter().find(|file| file.name == path) {
            Some(file) => Ok(file.after.clone()),
            None => Disk.read(path),
        }
    }

    fn glob(&self, pattern: &str) -> io::Result<Vec<String>> {
        Disk.glob(pattern)
    }
}

fn still_reads(tree: &Tree, mended: &[Mended]) -> Result<(), String> {
    let Some(main) = tree.files.first() else { return Ok(()) };
    let directory = main.name.rsplit_once('/').map_or("/", |(directory, _)| directory);
    let directory = format!("{directory}/");
    let (_, before) = weir_doctor::load(&Disk, &main.name, &directory);
    let (changed, after) = weir_doctor::load(&Changed(mended), &main.name, &directory);
    match after.iter().find(|problem| !before.iter().any(|old| old.what == problem.what)) {
        Some(problem) => {
            Err(format!("the changes would break it ({}): nothing was written", problem.sentence(&changed)))
        }
        None => Ok(()),
    }
}
