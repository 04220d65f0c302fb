//! Finds the nginx processes of this machine, from `/proc`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Most processes that are looked at.
const PROCESSES_MAX: usize = 100_000;
/// Most bytes of a process's command line.
const COMMAND_BYTES_MAX: usize = 64 << 10;
/// Time in which a process that nginx has just started takes its title.
const SETTLE: Duration = Duration::from_millis(300);
/// Ticks of a second in `/proc`: Linux shows 100 to every program.
const TICKS: u64 = 100;
/// The title that nginx gives its master process.
const MASTER: &str = "nginx: master process ";
/// The title of its workers.
const WORKER: &str = "nginx: worker process";

/// The flags of an nginx that decide which files it reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NginxFlags {
    /// `-c`.
    pub conf: Option<String>,
    /// `-p`.
    pub prefix: Option<String>,
    /// `-g`.
    pub globals: Option<String>,
    /// `-e`.
    pub error_log: Option<String>,
}

/// An nginx: a master process, or an installed program that does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The master's process id; `None` if the program does not run.
    pub pid: Option<u32>,
    /// The path that starts the same program: `/proc/PID/exe` works even after an upgrade of the package.
    pub program: PathBuf,
    /// The path as a person writes it.
    pub shown: String,
    /// Its flags.
    pub flags: NginxFlags,
    /// Its working directory: relative flags are below it.
    pub directory: PathBuf,
    /// The user of the master.
    pub user: String,
    /// The user of its workers, and their number.
    pub workers: Option<(String, usize)>,
    /// When nginx last read its files, in seconds since 1970: the start of its newest worker.
    pub read_at: Option<u64>,
    /// The systemd unit.
    pub unit: Option<String>,
    /// It has another root directory, as in a container.
    pub is_elsewhere: bool,
}

impl Instance {
    /// An installed program that does not run.
    pub fn installed(program: &Path) -> Instance {
        Instance {
            pid: None,
            program: program.to_owned(),
            shown: program.display().to_string(),
            flags: NginxFlags::default(),
            directory: PathBuf::from("/"),
            user: String::new(),
            workers: None,
            read_at: None,
            unit: None,
            is_elsewhere: false,
        }
    }

    /// The program and its flags, as a shell reads them.
    pub fn command(&self) -> String {
        let mut text = self.shown.clone();
        let NginxFlags { conf, prefix, globals, error_log } = &self.flags;
        for (flag, value) in [("-p", prefix), ("-c", conf), ("-e", error_log), ("-g", globals)] {
            if let Some(value) = value {
                text += &format!(" {flag} {}", quoted(value));
            }
        }
        text
    }
}

/// A word for a shell.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=+@%,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The masters below `root`'s `/proc`, by process id.
pub fn instances(root: &Path) -> Vec<Instance> {
    let found = masters(root);
    // A process that nginx has just forked has the title of its parent or none, and looks like a master.
    if found.iter().all(|(_, is_settled)| *is_settled) {
        return found.into_iter().map(|(one, _)| one).collect();
    }
    std::thread::sleep(SETTLE);
    masters(root).into_iter().map(|(one, _)| one).collect()
}

/// The masters, and whether each has certainly taken its title.
fn masters(root: &Path) -> Vec<(Instance, bool)> {
    let entries = fs::read_dir(root.join("proc")).into_iter().flatten().flatten().take(PROCESSES_MAX);
    let mut pids: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    let all: Vec<Process> = pids.into_iter().filter_map(|pid| Process::read(root, pid)).collect();
    let masters = all.iter().filter(|process| process.is_master(&all));
    let is_alone = |one: &Process| all.iter().all(|other| other.pid != one.parent);
    let is_settled = |one: &Process| one.title().starts_with(MASTER) && is_alone(one);
    masters.map(|master| (master.instance(root, &all), is_settled(master))).collect()
}

/// A process whose title or program is nginx's.
struct Process {
    pid: u32,
    parent: u32,
    /// The words of its command line. nginx's title is one word.
    words: Vec<String>,
    program: Option<PathBuf>,
    user: u32,
}

impl Process {
    fn read(root: &Path, pid: u32) -> Option<Process> {
        let place = root.join(format!("proc/{pid}"));
        let mut command = fs::read(place.join("cmdline")).ok()?;
        command.truncate(COMMAND_BYTES_MAX);
        let words: Vec<String> = command
            .split(|byte| *byte == 0)
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .filter(|word| !word.is_empty())
            .collect();
        let program = fs::read_link(place.join("exe")).ok();
        let named =
            |name: &str| name.rsplit('/').next().is_some_and(|name| name.trim_end_matches(" (deleted)") == "nginx");
        let is_nginx = words.first().is_some_and(|title| title.starts_with("nginx: ") || named(title))
            || program.as_ref().and_then(|path| path.to_str()).is_some_and(named);
        if !is_nginx {
            return None;
        }
        let status = fs::read_to_string(place.join("status")).unwrap_or_default();
        let number = |name: &str| -> Option<u32> {
            status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
        };
        let (parent, user) = (number("PPid:").unwrap_or(0), number("Uid:").unwrap_or(0));
        Some(Process { pid, parent, words, program, user })
    }

    fn title(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// A master process; or the only process, under `master_process off`.
    fn is_master(&self, all: &[Process]) -> bool {
        if self.title().starts_with("nginx: ") {
            return self.title().starts_with(MASTER);
        }
        // nginx answers a question and ends.
        let is_asking =
            self.words.iter().skip(1).any(|word| ["-t", "-T", "-v", "-V", "-s", "-h", "-?"].contains(&word.as_str()));
        !is_asking && all.iter().all(|other| other.pid != self.parent)
    }

    fn instance(&self, root: &Path, all: &[Process]) -> Instance {
        let place = root.join(format!("proc/{}", self.pid));
        let words: Vec<String> = match self.title().strip_prefix(MASTER) {
            // The arguments, joined by spaces; some systems show the environment's room behind them.
            Some(joined) => joined.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect(),
            None => self.words.clone(),
        };
        let called = words.first().cloned().unwrap_or_default();
        let linked = self.program.as_ref().map(|path| path.display().to_string());
        let linked = linked.map(|path| path.trim_end_matches(" (deleted)").to_owned());
        let shown =
            linked.or_else(|| called.starts_with('/').then(|| called.clone())).unwrap_or_else(|| "nginx".to_owned());
        let program = if self.program.is_some() { place.join("exe") } else { PathBuf::from(&shown) };
        let workers: Vec<&Process> =
            all.iter().filter(|process| process.parent == self.pid && process.title().starts_with(WORKER)).collect();
        let inode = |path: PathBuf| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
        let (theirs, ours) = (inode(place.join("root/")), inode(root.to_owned()));
        Instance {
            pid: Some(self.pid),
            program,
            shown,
            flags: flags(words.get(1..).unwrap_or_default()),
            directory: fs::read_link(place.join("cwd")).unwrap_or_else(|_| PathBuf::from("/")),
            user: user_name(root, self.user),
            workers: workers.first().map(|first| (user_name(root, first.user), workers.len())),
            read_at: workers.iter().filter_map(|worker| started(root, worker.pid)).max(),
            unit: unit(&fs::read_to_string(place.join("cgroup")).unwrap_or_default()),
            is_elsewhere: theirs.is_some() && theirs != ours
                || depth(root, &self.pid.to_string()) > depth(root, "self"),
        }
    }
}

/// The namespaces of processes around a process, which everybody may know (proc_pid_status(5), `NSpid`).
fn depth(root: &Path, process: &str) -> usize {
    let status = fs::read_to_string(root.join(format!("proc/{process}/status"))).unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("NSpid:")).map_or(0, |numbers| numbers.split_whitespace().count())
}

/// Reads nginx's flags. A title has lost the borders of words: `-g` takes everything up to the next flag.
fn flags(words: &[String]) -> NginxFlags {
    let mut flags = NginxFlags::default();
    let mut rest = words.iter().peekable();
    while let Some(word) = rest.next() {
        let Some((letter, own)) = word.strip_prefix('-').and_then(|word| Some((word.get(..1)?, word.get(1..)?))) else {
            continue;
        };
        if !["c", "p", "g", "e"].contains(&letter) {
            continue;
        }
        let mut value = if own.is_empty() { rest.next().cloned().unwrap_or_default() } else { own.to_owned() };
        while letter == "g" && rest.peek().is_some_and(|next| !is_flag(next)) {
            value = format!("{value} {}", rest.next().map_or("", String::as_str));
        }
        match letter {
            "c" => flags.conf = Some(value),
            "p" => flags.prefix = Some(value),
            "e" => flags.error_log = Some(value),
            _ => flags.globals = Some(value),
        }
    }
    flags
}

fn is_flag(word: &str) -> bool {
    ["-c", "-p", "-g", "-e", "-q"].iter().any(|flag| word.starts_with(flag))
}

/// When a process started, in seconds since 1970 (proc_pid_stat(5), field 22).
fn started(root: &Path, pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(root.join(format!("proc/{pid}/stat"))).ok()?;
    // The name in brackets may contain anything.
    let ticks: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let machine = fs::read_to_string(root.join("proc/stat")).ok()?;
    let boot: u64 = machine.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    Some(boot + ticks / TICKS)
}

/// The service in a `cgroup` file.
fn unit(text: &str) -> Option<String> {
    let path = text.lines().find_map(|line| line.splitn(3, ':').nth(2).filter(|path| path.contains(".service")))?;
    path.split('/').rev().find(|part| part.ends_with(".service")).map(str::to_owned)
}

/// The name of a user, or the number.
fn user_name(root: &Path, user: u32) -> String {
    let list = fs::read_to_string(root.join("etc/passwd")).unwrap_or_default();
    let named = list.lines().find_map(|line| {
        let mut parts = line.split(':');
        let name = parts.next()?;
        (parts.nth(1)?.parse() == Ok(user)).then(|| name.to_owned())
    });
    named.unwrap_or_else(|| user.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn flags_are_read_from_a_title() {
        let read = flags(&words("-g daemon on; master_process on; -c /a/b.conf -p/srv/"));
        assert_eq!(read.globals.as_deref(), Some("daemon on; master_process on;"));
        assert_eq!((read.conf.as_deref(), read.prefix.as_deref()), (Some("/a/b.conf"), Some("/srv/")));
        assert_eq!(flags(&words("-q -c")), NginxFlags { conf: Some(String::new()), ..NginxFlags::default() });
    }

    #[test]
    fn a_unit_is_the_last_service_of_a_group() {
        assert_eq!(unit("0::/system.slice/nginx.service\n").as_deref(), Some("nginx.service"));
        assert_eq!(
            unit("1:name=systemd:/system.slice/system-web.slice/web@a.service/payload\n0::/\n").as_deref(),
            Some("web@a.service")
        );
        assert_eq!(unit("0::/user.slice\n"), None);
    }

    #[test]
    fn masters_are_found_with_their_workers() {
        let root = std::env::temp_dir().join(format!("weir-adopt-host-{}", std::process::id()));
        let process = |pid: u32, parent: u32, user: u32, title: &str| {
            let place = root.join(format!("proc/{pid}"));
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join("cmdline"), title).unwrap();
            fs::write(place.join("status"), format!("Name:\tnginx\nPPid:\t{parent}\nUid:\t{user}\t0\t0\t0\n")).unwrap();
        };
        fs::create_dir_all(root.join("etc")).unwrap();
        fs::create_dir_all(root.join("proc/12")).unwrap();
        fs::write(root.join("proc/stat"), "cpu 1 2\nbtime 1000\n").unwrap();
        fs::write(root.join("proc/12/stat"), format!("12 (a ) b) S {}250 0\n", "0 ".repeat(18))).unwrap();
        fs::write(root.join("etc/passwd"), "root:x:0:0::/:/bin/sh\nwww-data:x:33:33::/:/bin/sh\nbroken\n").unwrap();
        process(10, 1, 0, "nginx: master process /usr/sbin/nginx -c /a.conf");
        process(11, 10, 33, "nginx: worker process");
        process(12, 10, 33, "nginx: worker process");
        process(20, 1, 1000, "nginx\0-p\0/home/me/\0");
        process(30, 1, 0, "/usr/sbin/nginx\0-t\0");
        process(40, 1, 0, "vi\0nginx.conf\0");
        let found = instances(&root);
        let seen: Vec<_> =
            found.iter().map(|one| (one.pid, one.command(), one.user.as_str(), one.workers.clone())).collect();
        assert_eq!(
            seen,
            [
                (Some(10), "/usr/sbin/nginx -c /a.conf".to_owned(), "root", Some(("www-data".to_owned(), 2))),
                (Some(20), "nginx -p /home/me/".to_owned(), "1000", None),
            ]
        );
        assert_eq!((found[0].read_at, found[1].read_at), (Some(1002), None));
        fs::remove_dir_all(root).unwrap();
    }
}
