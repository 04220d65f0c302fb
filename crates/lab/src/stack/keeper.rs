//! The process that keeps a block: it starts the other processes, measures their resource use, and ends them with
//! itself.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Map, Value, json};
use weir_net::{Instant, clock, process, worker};

use super::credits::Bucket;
use super::network;
use super::spec::{Again, Deed, LineWatch, Process, ReadyCondition, Spec};
use super::started::{self, ASK, Started, answers, start_all, tail};
use super::usage::Usage;
use crate::series::{self, Series};
use crate::wan::TELL;
use crate::watch::sink::Sink;
use crate::watch::{WatchedProcess, Watcher, edge, tap};
use crate::waterline;

/// How long to wait after a reload until no process serves the old configuration. The warm-up covers a slower reload.
const SETTLE: Duration = Duration::from_secs(1);
/// Most rounds of warming up.
const ROUNDS_MAX: u32 = 3;
/// Most bytes of a spec.
const SPEC_MAX: u64 = 16 << 20;
/// Most bytes of a client's report.
const REPORT_MAX: u64 = 64 << 20;
/// Most bytes of a process's output that are searched for its report.
const PRINTED_MAX: u64 = 1 << 20;
/// Most bytes of a file in which lines are counted.
const COUNTED_MAX: u64 = 256 << 20;
/// How often credits are updated.
const RECKON: Duration = Duration::from_millis(100);

/// Directories that the keeper made, kept globally so that it can remove them wherever it has to exit.
static MADE: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Serves one block. The spec is the first line of standard input; the answer is a line of standard output.
pub fn keep() -> u8 {
    let mut line = String::new();
    let read = std::io::stdin().lock().take(SPEC_MAX).read_line(&mut line);
    let spec = match read.map_err(|error| error.to_string().into()).and_then(|_| Spec::of_json(&line)) {
        Ok(spec) => spec,
        Err(error) => {
            eprintln!("weir lab starts weir lab block and writes orders to its standard input: {error}");
            return 2;
        }
    };
    let watching = worker::block_aside("lifeline", || {
        // The lab sends nothing more: end of input means that the lab has ended.
        let _ = std::io::stdin().lock().read(&mut [0]);
        end_all();
        std::process::exit(3);
    });
    let answer = match watching {
        Ok(()) => block(&spec).unwrap_or_else(|error| json!({"error": error})),
        Err(error) => json!({"error": format!("the lab cannot start a thread for the keeper: {error}")}),
    };
    end_all();
    let mut stdout = std::io::stdout();
    // The write fails only if the lab is gone; then the answer is not needed.
    let _ = writeln!(stdout, "{answer}").and_then(|()| stdout.flush());
    0
}

/// Ends every process and removes every directory that the keeper made.
fn end_all() {
    started::end_all();
    let made = std::mem::take(&mut *MADE.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    made.iter().for_each(|directory| network::unmake(directory));
}

fn block(spec: &Spec) -> Result<Value, String> {
    let end = clock::precise() + spec.limit();
    if spec.is_isolated {
        let mut made = |directory: &str| {
            MADE.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(directory.to_owned());
        };
        network::make(spec, &mut made)?;
    }
    free(spec)?;
    for (file, over) in &spec.overlays {
        network::lay_over(file, over)?;
    }
    let sink = sink(spec)?;
    let mut running = Running::new(spec, start_all(spec, end)?);
    if !spec.turns.is_empty() {
        running.limit()?;
        let answers = spec.turns.iter().map(|turn| running.turn(turn, end)).collect::<Result<Vec<Value>, String>>()?;
        running.ended()?;
        return Ok(json!({"turns": answers}));
    }
    let warm = running.warm_up(spec.warm.as_ref(), end)?;
    running.limit()?;
    running.is_measured = true;
    let before = Usage::now(spec, &running.started);
    running.watcher = watch(spec, &running.started, sink)?;
    let report = running.client(&spec.client, "load.json", end)?;
    let watched = running.watcher.take().map(Watcher::end);
    let after = Usage::now(spec, &running.started);
    running.afterwards(end)?;
    let ended = running.ended()?;
    let mut usage = after.since(&before, spec);
    usage["links"] = Value::Object(links(spec));
    let is_summed = spec.watch.as_ref().is_some_and(|plan| plan.is_summed);
    let waterlines = watched.as_ref().filter(|_| is_summed).map(|watched| waterline::of(watched, &usage, &spec.hosts));
    Ok(json!({
        "warm": warm,
        "usage": usage,
        "load": report,
        "edge": json!({"said": running.said(&spec.edge)}),
        "ended": ended,
        "told": running.told,
        "credits": running.credits(),
        "watched": watched.filter(|_| !is_summed),
        "waterlines": waterlines,
        "counts": spec.watches.iter().map(|watch| (watch.name.clone(), json!(count(spec, watch)))).collect::<Map<_, _>>(),
    }))
}

/// The socket that a watched nginx logs to. It has to exist before nginx starts.
fn sink(spec: &Spec) -> Result<Option<Sink>, String> {
    let is_wanted = spec.watch.as_ref().is_some_and(|plan| !plan.is_weir && !plan.at.as_os_str().is_empty());
    if !is_wanted {
        return Ok(None);
    }
    // How many lines may wait for the sink. If the kernel refuses this write, it has room for ten.
    let _ = fs::write("/proc/sys/net/unix/max_dgram_qlen", "4096");
    Sink::open(Path::new(tap::SINK)).map(Some).map_err(|error| format!("{}: {error}", tap::SINK))
}

fn watch(spec: &Spec, started: &[Started], sink: Option<Sink>) -> Result<Option<Watcher>, String> {
    let Some(plan) = &spec.watch else { return Ok(None) };
    let target = |process: &Started| WatchedProcess {
        name: process.name.clone(),
        host: process.host.clone(),
        pid: process.child.id(),
        is_edge: process.name == spec.edge,
        is_neighbour: false,
        address: spec.address_of(&process.host),
    };
    // The edge first: for a network, the first process of its host gives the figures.
    let mut targets: Vec<WatchedProcess> = started.iter().map(target).collect();
    targets.sort_by_key(|target| target.name != spec.edge);
    Watcher::start(plan, targets, edge::of_block(plan.clone(), sink))
        .map(Some)
        .map_err(|error| format!("the lab cannot start a watcher for the block: {error}"))
}

/// Load must go to the processes that this keeper started. If another process already listens at one of its
/// addresses, that is an error. New namespaces have no other processes.
fn free(spec: &Spec) -> Result<(), String> {
    if spec.is_isolated {
        return Ok(());
    }
    let waited = spec.processes.iter().flat_map(|process| match &process.ready {
        ReadyCondition::Answers(addresses) => addresses.as_slice(),
        ReadyCondition::Started | ReadyCondition::Prints(_) => &[],
    });
    let taken = waited.into_iter().find(|address| answers(**address));
    taken.map_or(Ok(()), |address| {
        Err(format!("another process already listens at {address}: end that process, or run the lab as root, so that it uses its own network namespaces"))
    })
}

/// A block that has been started.
struct Running<'a> {
    spec: &'a Spec,
    started: Vec<Started>,
    /// Processes that an action killed: their end is expected.
    killed: Vec<String>,
    /// Processes that actions run and that have not ended yet.
    errands: Vec<Started>,
    /// The output of processes that actions ran.
    told: Map<String, Value>,
    buckets: Vec<(usize, Bucket)>,
    /// When a bucket first had only its baseline, by its index.
    out: Vec<Option<Instant>>,
    /// The start of the measured load.
    began: Option<Instant>,
    reckoned: Instant,
    used: Vec<Duration>,
    watcher: Option<Watcher>,
    is_measured: bool,
}

impl<'a> Running<'a> {
    fn new(spec: &'a Spec, started: Vec<Started>) -> Running<'a> {
        let bucket = |(number, group): (usize, &super::group::Group)| {
            let host = spec.hosts.iter().find(|host| host.name == group.host)?;
            Some((number, Bucket::new(host.credits.clone()?)))
        };
        let used = spec.groups.iter().map(|group| group.used().cpu).collect();
        let buckets: Vec<_> = spec.groups.iter().enumerate().filter_map(bucket).collect();
        Running {
            out: vec![None; buckets.len()],
            began: None,
            buckets,
            reckoned: clock::precise(),
            used,
            spec,
            started,
            killed: Vec::new(),
            errands: Vec::new(),
            told: Map::new(),
            watcher: None,
            is_measured: false,
        }
    }

    /// Warms up. Repeats the round while the windows of the last round show that it is not warm.
    fn warm_up(&mut self, role: Option<&Process>, end: Instant) -> Result<Value, String> {
        let Some(role) = role else {
            return Ok(json!({"rounds": 0, "is_warm": true}));
        };
        let mut rounds = 0;
        loop {
            let report = self.client(role, "warm.json", end)?;
            rounds += 1;
            let series = Series::of(&report);
            let is_warm = !self.spec.is_warm_judged || series.as_ref().is_none_or(series::has_warmed_up);
            if is_warm || rounds >= ROUNDS_MAX {
                return Ok(json!({"rounds": rounds, "is_warm": is_warm}));
            }
        }
    }

    /// One of several measurements of the same processes: reloads another configuration and restarts nothing.
    fn turn(&mut self, turn: &Again, end: Instant) -> Result<Value, String> {
        let spec = self.spec;
        fs::copy(&turn.conf, &spec.served).map_err(|error| format!("{}: {error}", spec.served.display()))?;
        let edge = spec.processes.iter().find(|role| role.name == spec.edge);
        let edge = edge.ok_or_else(|| format!("there is no process {}", spec.edge))?;
        // If the edge refused the reload, it would go on with the old configuration unnoticed.
        let mut test = edge.clone();
        test.name = format!("{}-t", edge.name);
        test.argv.push("-t".to_owned());
        let mut tested = Started::start(spec, &test)?;
        if !tested.finish(end)? {
            return Err(format!("{} is refused{}", turn.conf.display(), tested.said(&spec.dir)));
        }
        self.act(&Deed::Reload(spec.edge.clone()))?;
        std::thread::sleep(SETTLE);
        let warm = self.warm_up(turn.warm.as_ref(), end)?;
        let before = Usage::now(spec, &self.started);
        let report = self.client(&turn.client, "load.json", end)?;
        let after = Usage::now(spec, &self.started);
        Ok(json!({"warm": warm, "usage": after.since(&before, spec), "load": report}))
    }

    /// Runs the client to its end, carries out the actions that are due, and returns its report.
    fn client(&mut self, role: &Process, report: &str, end: Instant) -> Result<Value, String> {
        let spec = self.spec;
        let mut client = Started::start(spec, role)?;
        if let Some(watcher) = &self.watcher {
            let (name, host) = (role.name.clone(), role.host.clone());
            watcher.add(WatchedProcess { name, host, pid: client.child.id(), ..WatchedProcess::default() });
        }
        let began = clock::precise();
        let mut due: Vec<(u64, &Deed)> = Vec::new();
        if self.is_measured {
            self.began = Some(began);
            due.extend(spec.actions.iter().filter_map(|action| Some((action.at_ms?, &action.deed))));
            due.sort_by_key(|(at_ms, _)| std::cmp::Reverse(*at_ms));
        }
        loop {
            while let Some((_, deed)) =
                due.pop_if(|(at_ms, _)| began + Duration::from_millis(*at_ms) <= clock::precise())
            {
                self.act(deed)?;
            }
            self.reckon();
            match client.child.try_wait() {
                Ok(None) if clock::precise() > end => {
                    return Err(format!("the load took longer than the {} s of a block", spec.limit().as_secs()));
                }
                Ok(None) => std::thread::sleep(ASK),
                Ok(Some(_)) => break,
                Err(error) => return Err(format!("the load: {error}")),
            }
        }
        let json = if spec.is_report_printed { printed(spec, &role.name) } else { written(&spec.dir.join(report)) };
        json.ok_or_else(|| format!("the load wrote no report{}", client.said(&spec.dir)))
    }

    fn act(&mut self, deed: &Deed) -> Result<(), String> {
        let failed = |name: &str, error: std::io::Error| format!("{name}: {error}");
        match deed {
            Deed::Stop(name) => process::stop_group(self.id(name)?).map_err(|error| failed(name, error)),
            Deed::Continue(name) => process::continue_group(self.id(name)?).map_err(|error| failed(name, error)),
            Deed::Reload(name) => {
                process::send_signal(self.id(name)?, process::Signal::Hup).map_err(|error| failed(name, error))
            }
            Deed::Kill(name) => {
                let killed = process::kill_group(self.id(name)?).map_err(|error| failed(name, error));
                self.killed.push(name.clone());
                killed
            }
            Deed::Restart(name) => {
                let role = self.spec.processes.iter().find(|role| role.name == *name);
                let role = role.ok_or_else(|| format!("there is no process {name}"))?;
                self.started.retain(|process| process.name != *name);
                self.killed.retain(|known| known != name);
                self.started.push(Started::start(self.spec, role)?);
                Ok(())
            }
            Deed::Run(role) => {
                self.errands.push(Started::start(self.spec, role)?);
                Ok(())
            }
        }
    }

    fn id(&self, name: &str) -> Result<u32, String> {
        let found = self.started.iter().find(|process| process.name == name);
        found.map(|process| process.child.id()).ok_or_else(|| format!("there is no process {name}"))
    }

    /// Carries out the actions after the load, one after the other. After that, their output is complete.
    fn afterwards(&mut self, end: Instant) -> Result<(), String> {
        for action in self.spec.actions.iter().filter(|action| action.at_ms.is_none()) {
            self.act(&action.deed)?;
            self.errands_end(end)?;
        }
        self.errands_end(end)
    }

    fn errands_end(&mut self, end: Instant) -> Result<(), String> {
        for mut errand in std::mem::take(&mut self.errands) {
            let is_good = errand.finish(end)?;
            let told = printed(self.spec, &errand.name);
            if told.is_none() && !is_good {
                return Err(format!("{} failed{}", errand.name, errand.said(&self.spec.dir)));
            }
            self.told.insert(errand.name.clone(), told.unwrap_or_default());
        }
        Ok(())
    }

    /// Gives every host with credits the CPUs that it has from its credits.
    fn reckon(&mut self) {
        let (now, elapsed) = (clock::precise(), clock::precise() - self.reckoned);
        if elapsed < RECKON || self.buckets.is_empty() {
            return;
        }
        self.reckoned = now;
        for ((number, bucket), out) in self.buckets.iter_mut().zip(&mut self.out) {
            let (Some(group), Some(before)) = (self.spec.groups.get(*number), self.used.get_mut(*number)) else {
                continue;
            };
            let (was, used) = (bucket.cpus(), group.used().cpu);
            let cpus = bucket.after(used.saturating_sub(*before), elapsed);
            *before = used;
            if bucket.is_out() {
                out.get_or_insert(now);
            }
            if (cpus - was).abs() > 1e-9 {
                // It was set once already, so it does not fail.
                let _ = group.set_cpus(cpus);
            }
        }
    }

    /// By host: credits left, and the seconds from the start of the measured load until they ran out.
    fn credits(&self) -> Map<String, Value> {
        let told = |((number, bucket), out): (&(usize, Bucket), &Option<Instant>)| {
            let out = out.zip(self.began).map(|(out, began)| (out - began).as_secs_f64());
            Some((self.spec.groups.get(*number)?.host.clone(), json!({"left": bucket.left(), "out": out})))
        };
        self.buckets.iter().zip(&self.out).filter_map(told).collect()
    }

    /// Puts processes that were unlimited until the measurement into the groups of their hosts.
    fn limit(&self) -> Result<(), String> {
        for role in self.spec.processes.iter().filter(|role| role.is_limited_late) {
            let pid = self.id(&role.name)?;
            let own = self.spec.groups.iter().filter(|group| group.host == role.host);
            for file in own.flat_map(super::group::Group::members) {
                fs::write(&file, pid.to_string()).map_err(|error| format!("{}: {file}: {error}", role.name))?;
            }
        }
        Ok(())
    }

    /// The processes that ended unexpectedly. That is an error unless processes may end.
    fn ended(&mut self) -> Result<Vec<String>, String> {
        let mut ended = Vec::new();
        for process in self.started.iter_mut().filter(|process| !self.killed.contains(&process.name)) {
            if let Some(how) = process.ended(&self.spec.dir) {
                let own = self.spec.groups.iter().filter(|group| group.host == process.host);
                let is_out_of_memory = own.map(|group| group.used().memory_killed).sum::<u64>() > 0;
                // In a watched block, the watcher's figures show the kill.
                let may_end = self.spec.may_end || (is_out_of_memory && self.spec.watch.is_some());
                if !may_end {
                    let why =
                        if is_out_of_memory { ", because memory ran out: raise memory_mb of its host" } else { "" };
                    return Err(format!("{} ended during the block {how}{why}", process.name));
                }
                ended.push(process.name.clone());
            }
        }
        Ok(ended)
    }

    /// The last lines that a process wrote while it ran; nginx's alerts and warnings are among them.
    fn said(&self, name: &str) -> String {
        let found = self.started.iter().find(|process| process.name == name);
        found.map(|process| process.said(&self.spec.dir)).unwrap_or_default()
    }
}

/// A report that the client wrote to a file.
fn written(path: &Path) -> Option<Value> {
    let mut text = String::new();
    fs::File::open(path).and_then(|file| file.take(REPORT_MAX).read_to_string(&mut text)).ok()?;
    serde_json::from_str(&text).ok()
}

/// A report in the last line that a process printed.
fn printed(spec: &Spec, name: &str) -> Option<Value> {
    let text = tail(&spec.dir.join(format!("{name}.out")), PRINTED_MAX);
    serde_json::from_str(text.lines().last()?).ok()
}

/// The counts of each bad link in the whole block, by host.
fn links(spec: &Spec) -> Map<String, Value> {
    let bad = || spec.hosts.iter().filter(|host| spec.is_isolated && host.link.is_some());
    if bad().next().is_some() {
        // The links tell their counts from time to time: these are complete.
        std::thread::sleep(TELL * 2);
    }
    bad().map(|host| (host.name.clone(), printed(spec, &network::middle(&host.name)).unwrap_or_default())).collect()
}

/// Number of lines of a file that contain a text.
fn count(spec: &Spec, watch: &LineWatch) -> u64 {
    let Ok(file) = fs::File::open(spec.dir.join(&watch.file)) else { return 0 };
    let lines = BufReader::new(file.take(COUNTED_MAX)).split(b'\n').map_while(Result::ok);
    let found = lines.filter(|line| String::from_utf8_lossy(line).contains(&watch.text));
    u64::try_from(found.count()).unwrap_or(u64::MAX)
}
