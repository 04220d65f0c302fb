//! The programs of the machine: processes with the same name and the same parent, added up.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::process::{self, Stat};

/// Longest name of a program in characters.
const NAME_CHARS_MAX: usize = 60;
/// Most bytes of a command line that are read into a name.
const COMMAND_BYTES_MAX: usize = 4096;

/// One process at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The kernel's id.
    pub pid: u32,
    /// The parent's id.
    pub parent: u32,
    /// The program: its title, or its name and the script that it runs. Without other arguments, because those may
    /// hold secrets.
    pub program: String,
    /// CPU time so far, in steps of 10 ms.
    pub cpu: Duration,
    /// CPU time of its children that have ended and for which it has waited, in steps of 10 ms.
    pub ended_children: Duration,
    /// Resident memory in bytes. Memory that processes share counts in each of them.
    pub resident: u64,
    /// Number of threads.
    pub threads: u64,
    /// Start in ticks since the machine started: with the id, it identifies a process for ever.
    pub started: u64,
}

/// All programs below `root`; kernel threads are left out.
pub fn seen_under(root: &Path) -> Vec<Seen> {
    let proc = root.join("proc");
    let page = page_bytes(root);
    let everybody = process::everybody(&proc);
    let programs = everybody.into_iter().filter(|(_, stat)| !stat.is_kernels);
    programs.filter_map(|(pid, stat)| seen(&proc, pid, &stat, page)).collect()
}

fn seen(proc: &Path, pid: u32, stat: &Stat, page: u64) -> Option<Seen> {
    let mut command = fs::read(proc.join(format!("{pid}/cmdline"))).ok()?;
    command.truncate(COMMAND_BYTES_MAX);
    let program = program(&command).or_else(|| {
        // A process that has ended and is not collected yet has no command line.
        let name = fs::read_to_string(proc.join(format!("{pid}/comm"))).ok()?;
        Some(name.trim().to_owned())
    })?;
    Some(Seen {
        pid,
        parent: stat.parent,
        program,
        cpu: stat.cpu,
        ended_children: stat.ended_children,
        resident: stat.pages.unwrap_or(0).saturating_mul(page),
        threads: stat.threads.unwrap_or(1),
        started: stat.started.unwrap_or(0),
    })
}

/// Programs that run a script: their first argument that is not a flag tells more than their own name.
const RUNNERS: [&str; 15] = [
    "node", "nodejs", "python", "python3", "ruby", "perl", "php", "deno", "bun", "dotnet", "java", "gunicorn",
    "uvicorn", "celery", "weir",
];

/// The name of a program by its command line; `None` if the line is empty.
fn program(command: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(command);
    let words: Vec<&str> = text.split('\0').filter(|word| !word.is_empty()).collect();
    let (first, rest) = words.split_first()?;
    // A program that writes a title over its arguments leaves one text with spaces, perhaps with arguments behind it:
    // `php-fpm: pool www`.
    if first.contains(": ") {
        let title = first.split(" (").next().unwrap_or(first);
        return Some(cut(title.trim()));
    }
    // Titles without a colon, as PM2 and Node.js applications set them, keep their words.
    let own = first.split(' ').next().unwrap_or(first);
    let name = base(own).trim_start_matches('-');
    let arguments: Vec<&str> = first.split(' ').skip(1).chain(rest.iter().copied()).collect();
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let runs = (RUNNERS.contains(&name) || RUNNERS.contains(&plain)).then(|| script(&arguments)).flatten();
    Some(cut(&runs.map_or_else(|| name.to_owned(), |script| format!("{name} {script}"))))
}

/// The script among arguments: after `-jar` and `-m`, otherwise the first argument that is no flag.
fn script(arguments: &[&str]) -> Option<String> {
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match *argument {
            "-jar" | "-m" => return arguments.next().map(|name| base(name).to_owned()),
            // Flags whose value is the next argument.
            "-cp" | "-classpath" | "--class-path" | "-r" | "--require" | "--import" | "-W" | "-X" => {
                arguments.next();
            }
            // A text of code may hold anything.
            "-e" | "-c" | "--eval" | "-p" | "--print" => return None,
            flag if flag.starts_with('-') => {}
            name => return Some(base(name).to_owned()),
        }
    }
    None
}

fn base(path: &str) -> &str {
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
}

fn cut(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect()
}

/// The size of a page, from the values that the kernel gives to each program (getauxval(3), `AT_PAGESZ`).
fn page_bytes(root: &Path) -> u64 {
    const AT_PAGESZ: u64 = 6;
    let bytes = fs::read(root.join("proc/self/auxv")).unwrap_or_default();
    let (pairs, _) = bytes.as_chunks::<16>();
    let half = |pair: &[u8; 16], at: usize| {
        pair.get(at..at + 8).and_then(|half| half.try_into().ok()).map_or(0, u64::from_ne_bytes)
    };
    pairs.iter().find(|pair| half(pair, 0) == AT_PAGESZ).map_or(4096, |pair| half(pair, 8))
}

/// Processes of one program, added up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// The ids of its processes, ascending.
    pub pids: Vec<u32>,
    /// The id of their parent.
    pub parent: u32,
    /// CPUs used between the two readings: 1 is one CPU.
    pub cpus: f64,
    /// Resident memory in bytes.
    pub resident: u64,
    /// Number of threads.
    pub threads: u64,
    /// Start of the youngest process, in ticks since the machine started.
    pub youngest: u64,
}

/// Most parents above a process that are looked for.
const GENERATIONS_MAX: usize = 64;

/// Adds up processes with the same name and the same parent. `before` was read `elapsed` earlier; a process that it
/// lacks counts from its start. The time of a process that has ended counts for the program of its
/// parent, without the part that `before` has. The process `apart` is never added to others: another edge of this machine may have its
/// name and its parent.
pub fn programs(before: &[Seen], now: &[Seen], elapsed: Duration, apart: u32) -> Vec<Program> {
    let known: BTreeMap<(u32, u64), &Seen> = before.iter().map(|one| ((one.pid, one.started), one)).collect();
    let live: BTreeSet<(u32, u64)> = now.iter().map(|one| (one.pid, one.started)).collect();
    // The time of ended processes that was told before, by the processes that got it.
    let ended: BTreeMap<u32, &Seen> =
        before.iter().filter(|one| !live.contains(&(one.pid, one.started))).map(|one| (one.pid, one)).collect();
    let mut told: BTreeMap<u32, Duration> = BTreeMap::new();
    for one in ended.values() {
        let above = std::iter::successors(Some(one.parent), |parent| ended.get(parent).map(|parent| parent.parent));
        let heir = above.take(GENERATIONS_MAX).last().unwrap_or_default();
        let own = told.entry(heir).or_default();
        *own = own.saturating_add(one.cpu).saturating_add(one.ended_children);
    }
    let mut all: BTreeMap<(&str, u32, bool), Program> = BTreeMap::new();
    for one in now {
        let program = all.entry((&one.program, one.parent, one.pid == apart)).or_default();
        let (cpu, children) = match known.get(&(one.pid, one.started)) {
            Some(then) => {
                (then.cpu, then.ended_children.saturating_add(told.get(&one.pid).copied().unwrap_or_default()))
            }
            None => (Duration::ZERO, Duration::ZERO),
        };
        let used = one.cpu.saturating_sub(cpu).saturating_add(one.ended_children.saturating_sub(children));
        program.name.clone_from(&one.program);
        program.parent = one.parent;
        program.pids.push(one.pid);
        if !before.is_empty() && !elapsed.is_zero() {
            program.cpus += used.as_secs_f64() / elapsed.as_secs_f64();
        }
        program.resident += one.resident;
        program.threads += one.threads;
        program.youngest = program.youngest.max(one.started);
    }
    all.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    #[test]
    fn a_name_shows_the_script_and_no_secret() {
        for (command, name) in [
            ("/usr/bin/node\0--max-old-space-size=1\0/srv/app/server.js\0--password=x\0", "node server.js"),
            ("node /srv/app/dist/main.js", "node main.js"),
            ("php-fpm: pool www                     ", "php-fpm: pool www"),
            ("PM2 v5.3.0: God Daemon (/root/.pm2)", "PM2 v5.3.0: God Daemon"),
            ("weir: worker process\0edge\0-c\0nginx.conf\0", "weir: worker process"),
            ("nginx: master process\0-c\0nginx.conf\0", "nginx: master process"),
            ("/usr/lib/jvm/bin/java\0-Xmx1g\0-cp\0/a.jar\0-jar\0/srv/shop.jar\0--db=pw\0", "java shop.jar"),
            ("python3.11\0-m\0gunicorn.app.wsgiapp\0", "python3.11 gunicorn.app.wsgiapp"),
            ("node\0-e\0secret()\0", "node"),
            ("/usr/sbin/mariadbd\0--user=mysql\0", "mariadbd"),
            ("redis-server 127.0.0.1:6379", "redis-server"),
            ("target/debug/weir\0edge\0-c\0x\0", "weir edge"),
            ("-bash\0", "bash"),
        ] {
            assert_eq!(program(command.as_bytes()).as_deref(), Some(name), "{command:?}");
        }
        assert_eq!(program(b""), None);
    }

    #[test]
    fn processes_of_one_parent_are_added_up() {
        let stat = |pid: u32, parent: u32, ticks: u32, started: u32, pages: u32| {
            let text = format!("{pid} (a) S {parent} 1 1 0 -1 0 9 9 9 9 {ticks} 0 0 0 20 0 2 0 {started} 1 {pages}\n");
            (format!("proc/{pid}/stat"), text)
        };
        let line = |pid: u32, text: &str| (format!("proc/{pid}/cmdline"), text.to_owned());
        let read = |ticks: u32| {
            let files = [
                stat(10, 1, ticks, 5, 3),
                stat(11, 1, ticks, 9, 4),
                stat(12, 1, ticks, 7, 1),
                line(10, "node\0a.js\0"),
                line(11, "node\0a.js\0"),
                line(12, "redis-server *:6379"),
            ];
            let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            seen_under(tree::made_up(&files).path())
        };
        let all = programs(&read(100), &read(150), Duration::from_secs(1), 99);
        let node = all.iter().find(|program| program.name == "node a.js").expect("it runs");
        assert_eq!((node.pids.as_slice(), node.cpus, node.resident), ([10, 11].as_slice(), 1.0, 7 * 4096));
        assert_eq!((node.threads, node.youngest, all.len()), (4, 9, 2));
        assert!(programs(&[], &read(150), Duration::ZERO, 99).iter().all(|program| program.cpus == 0.0));
        let all = programs(&[], &read(150), Duration::ZERO, 11);
        assert_eq!(all.iter().map(|program| program.pids.as_slice()).collect::<Vec<_>>(), [[10], [11], [12]]);
    }

    #[test]
    fn processes_that_have_ended_count_for_the_program_that_waited_for_them() {
        let one = |pid: u32, parent: u32, cpu_ms: u64, ended_ms: u64| Seen {
            pid,
            parent,
            program: format!("p{pid}"),
            cpu: Duration::from_millis(cpu_ms),
            ended_children: Duration::from_millis(ended_ms),
            resident: 0,
            threads: 1,
            started: 7,
        };
        // 10 forks for each request; 20 and its child 21 have ended since, after another 100 and 50 ms.
        let before = [one(10, 1, 1_000, 3_000), one(20, 10, 400, 0), one(21, 20, 200, 0)];
        let now = [one(10, 1, 1_100, 3_750), one(30, 10, 250, 0)];
        let all = programs(&before, &now, Duration::from_secs(1), 0);
        let cpus = |name: &str| all.iter().find(|program| program.name == name).expect("it runs").cpus;
        assert!((cpus("p10") - 0.25).abs() < 1e-9 && (cpus("p30") - 0.25).abs() < 1e-9, "{all:?}");
    }

    #[test]
    fn this_machine_is_read() {
        let own = std::process::id();
        let all = seen_under(Path::new("/"));
        let me = all.iter().find(|one| one.pid == own).expect("this process runs");
        assert!(me.resident > 1 << 20 && me.threads > 0 && me.started > 0, "{me:?}");
    }
}
