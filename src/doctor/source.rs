//! The configuration to examine, and the program that reads it: from the flags, from a process, or from this machine.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_conf::{Problem, Tree};
use weir_doctor::view::View;
use weir_doctor::{Build, NEWEST, Target, Version, dump};
use weir_words::{Said, say};

use crate::files::Disk;
use crate::texts;

use super::args::{DoctorArgs, ReadingProgram};

/// Largest file read from standard input.
const STDIN_BYTES_MAX: u64 = 64 << 20;

/// The file from the command line, or the file that the running process or the binary reads.
pub(super) fn conf_path(args: &DoctorArgs, build: Option<&Build>) -> Result<PathBuf, Said> {
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
pub(crate) fn flag_of(pid: u32, flag: &str) -> Option<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    let mut words = line.split_whitespace();
    words.find(|word| *word == flag)?;
    words.next().map(str::to_owned)
}

/// A path as the process sees it: a relative one is relative to its working directory.
pub(super) fn process_path(pid: u32, path: String) -> Option<PathBuf> {
    Some(fs::read_link(format!("/proc/{pid}/cwd")).ok()?.join(path))
}

/// The tree of a file, of a dump, or of standard input.
pub(crate) fn read(path: &Path) -> Result<(Tree, Vec<Problem>), Said> {
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
pub(super) fn build(args: &DoctorArgs) -> Result<Option<Build>, Said> {
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
pub(super) fn reads_none(args: &DoctorArgs, pid: u32) -> bool {
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
pub(crate) fn ask_process(pid: u32) -> Option<Build> {
    let (name, called) = names_of(Path::new("/"), pid);
    if !is_known(&called) && !name.is_some_and(|name| is_known(&name)) {
        return None;
    }
    // This link works even after an upgrade replaced the binary. It fails if the process belongs to another user.
    let of_weir = || (called == "weir").then(|| Build { version: NEWEST, is_weir: true, arguments: Vec::new() });
    ask_binary(&PathBuf::from(format!("/proc/{pid}/exe"))).ok().or_else(of_weir)
}

/// The program that will read the file: from the flags, the binary, the process, or the only one that can read it.
pub(super) fn target(args: &DoctorArgs, build: Option<&Build>, version: Version, tree: &Tree) -> Target {
    match args.reader {
        Some(ReadingProgram::Weir) => Target::Weir,
        Some(ReadingProgram::Nginx) => Target::Nginx(version),
        None if args.nginx_version.is_some() => Target::Nginx(version),
        None if args.nginx.is_none() && Target::is_weirs_alone(&View::new(tree)) => Target::Weir,
        None => build.map_or(Target::Nginx(version), Target::of),
    }
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
