//! Runs a lab: a block for each edge and variant, or alternating blocks of two variants. Then checks the expectations.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use serde_json::{Value, json};
use weir_conf::{Files, Tree};
use weir_net::clock;

use super::facts::Judged;
use super::report::fails;
use super::{Compare, Experiment, Places, Prepare, Sent, Variant, What, edge_of};
use crate::ab::{Tell, now_ms, version};
use crate::analysis::{Question, analyse};
use crate::ask::{self, Cpus};
use crate::block::{Block, BlockSettings, thinned};
use crate::said::{Said, say};
use crate::schedule::{AGAIN_MAX, ComparedSide, Looks, blocks};
use crate::series::Series;
use crate::stack::{self, BlockFailure, HUB, LabDirectory, Process, ReadyCondition, Spec};
use crate::survey::survey;
use crate::{store, watch};

/// The name of the edge among the processes.
pub const EDGE: &str = "edge";
/// Most nested folders that are searched for a changed source.
const FROM_DEPTH: usize = 12;
/// Most bytes of a failed preparation's output that are shown.
const SAID_MAX: usize = 2000;

/// How a lab is run.
#[derive(Clone, Debug)]
pub struct How {
    /// The edges to run. Empty: all.
    pub edges: Vec<String>,
    /// When variants are compared, other work on this machine causes only a warning.
    pub is_noisy: bool,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// The blocks of one edge.
struct Ran {
    edge: String,
    version: String,
    /// Answers by variant.
    answers: HashMap<String, Value>,
    comparisons: Vec<Value>,
    /// Time that it took, s.
    seconds: f64,
}

/// Runs the lab and returns the run as it is stored. The error is for the user: a part of the lab could not run.
pub fn run(
    lab: &Experiment,
    places: &Places,
    how: &How,
    files: &dyn Files,
    stop: &AtomicBool,
    tell: &mut dyn Tell,
) -> Result<Value, Said> {
    let missing = lab.missing();
    if !missing.is_empty() {
        let list: Vec<String> = missing.iter().map(|need| format!("{} ({})", need.what, need.install)).collect();
        return Err(say!(ERR_NOT_INSTALLED, &lab.name, list.join("; ")));
    }
    if !stack::can_isolate() {
        return Err(say!(ERR_NAMESPACES, &lab.name));
    }
    prepare(lab, tell)?;
    stack::sweep().iter().for_each(|line| tell.tell(line));
    let (id, started_ms, place) = (store::new_id(), now_ms(), LabDirectory::new()?);
    let wanted = |edge: &&String| how.edges.is_empty() || how.edges.contains(edge);
    let mut all = Vec::new();
    for edge in lab.edges.iter().filter(wanted) {
        let mut bench = Bench { lab, places, how, files, place: &place, stop, edge, number: all.len() * 10_000 };
        let began = clock::precise();
        let mut ran = if lab.compare.is_empty() { bench.each(tell)? } else { bench.compared(tell)? };
        ran.seconds = (clock::precise() - began).as_secs_f64();
        all.push(ran);
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    let judged: Vec<Value> = all.iter().flat_map(|ran| judge(lab, ran, how.is_noisy)).collect();
    let broken = judged.iter().filter(|one| fails(one)).count();
    let held = judged.iter().filter(|one| one["holds"] == true).count();
    let is_interrupted = stop.load(Ordering::Relaxed);
    let (name, text) = match (is_interrupted, broken) {
        (true, _) => ("no verdict", say!(STOPPED)),
        (false, 0) if held < judged.len() => ("holds", say!(HOLD_OR_EXCUSED, held, judged.len() - held)),
        (false, 0) => ("holds", say!(ALL_HOLD, held)),
        (false, broken) => ("fails", say!(SOME_FAIL, broken, judged.len())),
    };
    let text = say!(NAMED, &lab.name, text);
    Ok(json!({
        "version": 1,
        "id": id,
        "kind": "lab",
        "name": lab.name,
        "title": lab.title,
        "prior": lab.prior,
        "started_ms": started_ms,
        "ended_ms": now_ms(),
        "seed": how.seed,
        "is_interrupted": is_interrupted,
        "edges": all.iter().map(|ran| json!({"edge": ran.edge, "version": ran.version, "seconds": ran.seconds})).collect::<Vec<_>>(),
        "environment": json!({
            "weir": env!("CARGO_PKG_VERSION"),
            "cpus": ask::allowed_cpus().len(),
            "kernel": fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
        }),
        "expected": judged,
        "comparisons": all.iter().flat_map(|ran| ran.comparisons.clone()).collect::<Vec<_>>(),
        "blocks": all.iter().flat_map(|ran| answers(lab, ran)).collect::<Vec<_>>(),
        "verdict": {"name": name, "text": text.en(), "text_said": text},
    }))
}

/// The answers of an edge's blocks, in the order of the variants. Long parts that hold no facts are removed; the
/// strip for the page is kept.
fn answers(lab: &Experiment, ran: &Ran) -> Vec<Value> {
    let one = |variant: &Variant| {
        let mut answer = ran.answers.get(&variant.name)?.clone();
        let strip = Series::of(&answer["load"]).map(|series| thinned(&series.throughput)).unwrap_or_default();
        if let Some(report) = answer["load"].as_object_mut() {
            report.remove("intermediate");
            if let Some(own) = report.get_mut("weir").and_then(Value::as_object_mut) {
                own.remove("series");
            }
        }
        let waterlines = answer.as_object_mut().and_then(|answer| answer.remove("waterlines")).unwrap_or_default();
        let strip: Vec<f64> = strip.into_iter().map(f64::round).collect();
        Some(json!({
            "edge": ran.edge, "variant": variant.name, "strip": strip, "waterlines": waterlines, "answer": answer,
        }))
    };
    lab.variants.iter().filter_map(one).collect()
}

/// Makes the things that are made once, unless they are there and up to date.
pub fn prepare(lab: &Experiment, tell: &mut dyn Tell) -> Result<(), Said> {
    for one in lab.prepare.iter().filter(|one| is_stale(one)) {
        tell.line(&format!("{}: {}", lab.name, one.run));
        let output = Command::new("sh").args(["-c", &one.run]).current_dir(&lab.dir).stdin(Stdio::null()).output();
        let output = output.map_err(|error| say!(ERR_FILE, &one.run, error.to_string()))?;
        if !output.status.success() || !one.makes.exists() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
            let said: String = said.trim().chars().rev().take(SAID_MAX).collect::<Vec<_>>().into_iter().rev().collect();
            return Err(say!(ERR_NOT_MADE, &lab.name, &one.run, one.makes.display().to_string(), said));
        }
    }
    Ok(())
}

/// Whether it has to be made: it is missing, or older than a file of its source.
fn is_stale(one: &Prepare) -> bool {
    let Ok(made) = fs::metadata(&one.makes).and_then(|made| made.modified()) else { return true };
    one.from.as_ref().is_some_and(|from| newest(from, FROM_DEPTH).is_some_and(|from| from > made))
}

/// The time of the latest change below a path.
fn newest(path: &Path, depth: usize) -> Option<SystemTime> {
    let own = fs::metadata(path).and_then(|own| own.modified()).ok();
    if depth == 0 {
        return own;
    }
    let below = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| newest(&entry.path(), depth - 1));
    below.chain([own]).flatten().max()
}

/// Checks every expectation against the blocks of one edge.
fn judge(lab: &Experiment, ran: &Ran, is_noisy: bool) -> Vec<Value> {
    let mut judged = Vec::new();
    for expect in lab.expect.iter().filter(|expect| expect.edge.as_ref().is_none_or(|edge| *edge == ran.edge)) {
        let mut keep = |variant: &str, one: Judged| {
            judged.push(json!({
                "edge": ran.edge, "variant": variant, "says": expect.says, "place": expect.place,
                "wanted": expect.wanted().en(), "wanted_said": expect.wanted(),
                "found": one.found.en(), "found_said": one.found, "value": one.value, "holds": one.holds,
                "is_excused": is_noisy && expect.is_timed && !one.holds,
            }));
        };
        if !expect.verdicts.is_empty() {
            let is_asked = |it: &&Value| expect.variant.as_ref().is_none_or(|name| it["after"] == name.as_str());
            let verdict = ran.comparisons.iter().find(is_asked).map(|it| &it["verdict"]);
            let name = verdict.and_then(|it| it["name"].as_str());
            let found =
                verdict.and_then(|it| crate::said::read(&it["text_said"])).unwrap_or_else(|| say!(NOT_COMPARED));
            let holds = expect.verdicts.iter().any(|wanted| Some(wanted.as_str()) == name);
            keep(expect.variant.as_deref().unwrap_or_default(), Judged { holds, found, value: None });
            continue;
        }
        let wanted = |variant: &&Variant| {
            expect.variant.as_ref().is_none_or(|name| *name == variant.name)
                && expect.against.as_ref() != Some(&variant.name)
        };
        for variant in lab.variants.iter().filter(wanted) {
            let Some(answer) = ran.answers.get(&variant.name) else { continue };
            let other = expect.against.as_ref().and_then(|name| ran.answers.get(name));
            keep(&variant.name, expect.judge(answer, other));
        }
    }
    // In the order of the variants. The comparison comes last.
    let place = |one: &Value| {
        lab.variants.iter().position(|variant| one["variant"] == variant.name.as_str()).unwrap_or(usize::MAX)
    };
    judged.sort_by_key(place);
    judged
}

/// One edge of a lab while it runs.
struct Bench<'a> {
    lab: &'a Experiment,
    places: &'a Places,
    how: &'a How,
    files: &'a dyn Files,
    place: &'a LabDirectory,
    stop: &'a AtomicBool,
    edge: &'a str,
    number: usize,
}

impl Bench<'_> {
    fn ran(&self) -> Ran {
        let version = version(&edge_of(self.edge, self.places));
        Ran { edge: self.edge.to_owned(), version, answers: HashMap::new(), comparisons: Vec::new(), seconds: 0.0 }
    }

    /// A block for each variant.
    fn each(&mut self, tell: &mut dyn Tell) -> Result<Ran, Said> {
        let mut ran = self.ran();
        for (done, variant) in self.lab.variants.iter().enumerate() {
            tell.progress(done, self.lab.variants.len(), &format!("{} {} {}", self.lab.name, self.edge, variant.name));
            match self.block(variant, self.how.seed) {
                Ok(answer) => ran.answers.insert(variant.name.clone(), answer),
                Err(BlockFailure::Stopped) => break,
                Err(BlockFailure::Broken(why)) => {
                    return Err(say!(ERR_BLOCK_OF, &self.lab.name, self.edge, &variant.name, why));
                }
            };
        }
        Ok(ran)
    }

    /// One comparison after the other.
    fn compared(&mut self, tell: &mut dyn Tell) -> Result<Ran, Said> {
        let (mut ran, lab) = (self.ran(), self.lab);
        for compare in &lab.compare {
            let [before, after] = sides(lab, compare)?;
            let comparison = self.comparison(compare, [before, after], &mut ran.answers, tell)?;
            ran.comparisons.push(comparison);
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(ran)
    }

    /// Alternating blocks of two variants. The last answer of each is kept.
    fn comparison(
        &mut self,
        compare: &Compare,
        [before, after]: [&Variant; 2],
        answers: &mut HashMap<String, Value>,
        tell: &mut dyn Tell,
    ) -> Result<Value, Said> {
        let looks = Looks::one(compare.pairs);
        let turns = blocks(self.how.seed, compare.pairs);
        let (mut measured, mut gate, began): (Vec<Block>, Option<Said>, _) = (Vec::new(), None, clock::precise());
        'all: for turn in &turns {
            let variant = if turn.arm == ComparedSide::Before { before } else { after };
            for attempt in 0..=AGAIN_MAX {
                let what = format!("{} {} {}", self.lab.name, self.edge, variant.name);
                let what = say!(VARIANT_PAIR, what, turn.pair + 1);
                tell.tell_progress(turn.index, turns.len(), &what);
                let answer = match self.block(variant, self.how.seed.wrapping_add(turn.pair as u64)) {
                    Ok(answer) => answer,
                    Err(BlockFailure::Stopped) => break 'all,
                    Err(BlockFailure::Broken(why)) => {
                        return Err(say!(ERR_BLOCK_OF, &self.lab.name, self.edge, &variant.name, why));
                    }
                };
                let asked = BlockSettings { is_noisy: self.how.is_noisy, is_search: false, ..BlockSettings::default() };
                let block = Block::of(&answer, turn.pair, turn.arm, attempt, asked);
                answers.insert(variant.name.clone(), answer);
                let why = block.why_spoiled().into_iter().next();
                measured.push(block);
                let Some(why) = why else { break };
                tell.tell(&say!(TURN_NOT_USED, what, &why));
                if attempt == AGAIN_MAX {
                    gate = Some(say!(TIMES_IN_A_ROW, why, AGAIN_MAX + 1));
                    break 'all;
                }
            }
        }
        let minutes_a_pair = (clock::precise() - began).as_secs_f64() / 60.0 / measured.len().max(1) as f64 * 2.0;
        let question = Question {
            primary: compare.metric,
            threshold: compare.threshold,
            looks: &looks,
            no_effect: &[],
            gate,
            minutes_a_pair,
        };
        let analysis = analyse(&measured, &question);
        Ok(json!({
            "edge": self.edge,
            "before": before.name,
            "after": after.name,
            "design": {"primary": compare.metric.key},
            "metrics": analysis.metrics,
            "blocks": measured.iter().map(Block::to_json).collect::<Vec<_>>(),
            "verdict": analysis.verdict.to_json(),
        }))
    }

    fn block(&mut self, variant: &Variant, seed: u64) -> Result<Value, BlockFailure> {
        self.number += 1;
        let dir = self.place.path().join(self.number.to_string());
        fs::create_dir_all(&dir)
            .map_err(|error| BlockFailure::Broken(say!(ERR_FILE, dir.display().to_string(), error.to_string())))?;
        let spec = self.spec(variant, &dir, seed).map_err(BlockFailure::Broken)?;
        let answer = stack::run(&spec, &self.places.weir, self.stop);
        // The answer is all that the run keeps of a block.
        let _ = fs::remove_dir_all(&dir);
        answer
    }

    fn spec(&self, variant: &Variant, dir: &Path, seed: u64) -> Result<Spec, Said> {
        let is_compared = !self.lab.compare.is_empty();
        let share = if is_compared { Cpus::of(&ask::allowed_cpus()) } else { Cpus::default() };
        let tree = tree_of(variant, self.files)?;
        let own = Own { lab: &self.lab.name, places: self.places, edge: self.edge, share: &share };
        let spec = spec_of(&own, variant, &tree, dir, seed)?;
        // Blocks that are compared are not watched.
        let watch = (!is_compared).then(|| watch::WatchPlan { is_summed: true, ..watch::WatchPlan::default() });
        Ok(Spec { watch, ..spec })
    }
}

/// The two variants of a comparison.
fn sides<'a>(lab: &'a Experiment, compare: &Compare) -> Result<[&'a Variant; 2], Said> {
    let found: Vec<&Variant> = match &compare.sides {
        Some(names) => names.iter().filter_map(|name| lab.variants.iter().find(|it| it.name == *name)).collect(),
        None => lab.variants.iter().collect(),
    };
    found.try_into().map_err(|_| say!(ERR_TWO_VARIANTS, &lab.name))
}

/// Settings that all blocks of a lab share.
pub struct Own<'a> {
    /// The lab's name, for messages.
    pub lab: &'a str,
    /// The paths of the lab.
    pub places: &'a Places,
    /// `nginx` or `weir`.
    pub edge: &'a str,
    /// The CPUs of processes that name none. Empty: all CPUs.
    pub share: &'a Cpus,
}

/// A variant's configuration.
pub fn tree_of(variant: &Variant, files: &dyn Files) -> Result<Tree, Said> {
    let conf = variant.front.conf.display().to_string();
    let prefix = variant.front.conf.parent().map(|parent| format!("{}/", parent.display())).unwrap_or_default();
    if !variant.front.conf.is_file() {
        return Err(say!(ERR_NO_CONF, conf));
    }
    Ok(weir_conf::load(files, &conf, &prefix, &|name| name.ends_with("_by_lua_block")).0)
}

/// The spec of one block of a variant.
pub fn spec_of(own: &Own<'_>, variant: &Variant, tree: &Tree, dir: &Path, seed: u64) -> Result<Spec, Said> {
    let (places, share) = (own.places, own.share);
    let conf = variant.front.conf.display().to_string();
    let survey = survey(tree);
    let listens = survey.listens.iter().filter(|at| variant.front.port.is_none_or(|port| at.port() == port));
    let at = listens.min_by_key(|at| !at.ip().is_unspecified()).copied();
    let at = at.ok_or_else(|| say!(ERR_NO_PORT, &conf))?;
    let mut spec = Spec { hosts: variant.hosts.clone(), ..Spec::default() };
    for link in spec.hosts.iter_mut().filter_map(|host| host.link.as_mut()) {
        link.seed = link.seed.or(Some(seed));
    }
    let hub = spec.address_of(HUB).ok_or("a stack without a hub")?;
    let target = if at.ip().is_unspecified() { (hub, at.port()).into() } else { at };
    let globals = ask::globals(&survey, true)?.join(" ").replace("@DIR@", &dir.display().to_string());
    let mut argv = match own.edge {
        "weir" => vec![places.weir.display().to_string(), "edge".to_owned()],
        _ => vec![places.nginx.display().to_string()],
    };
    argv.extend(["-c".to_owned(), conf, "-g".to_owned(), format!("{globals} {}", variant.front.globals)]);
    let edge = Process {
        name: EDGE.to_owned(),
        host: HUB.to_owned(),
        argv,
        files: variant.front.files,
        cpus: if variant.front.cpus.is_empty() { share.edge.clone() } else { variant.front.cpus.clone() },
        ready: ReadyCondition::Answers(vec![target]),
        ..Process::default()
    };
    spec.processes = variant.processes.clone();
    spec.processes
        .iter_mut()
        .filter(|process| process.cpus.is_empty())
        .for_each(|process| process.cpus = share.origin.clone());
    let before = spec.processes.len().saturating_sub(variant.after_edge);
    spec.processes.insert(before, edge);
    let program = if own.edge == "weir" { &places.weir } else { &places.nginx };
    let to = |sent: &Sent, name: &str, out: &str| {
        let at = sent.to.unwrap_or(target);
        let url = format!("{}://{at}", variant.front.scheme);
        Process {
            name: name.to_owned(),
            host: sent.host.clone(),
            argv: client_argv(sent, &places.weir, &url, &dir.join(out), seed),
            env: [("TARGET".to_owned(), at.to_string())].into_iter().chain(env_of(sent)).collect(),
            cpus: if sent.cpus.is_empty() { share.client.clone() } else { sent.cpus.clone() },
            ..Process::default()
        }
    };
    let load = variant.load.as_ref().ok_or_else(|| say!(ERR_NO_LOAD, own.lab))?;
    spec.client = to(load, "load", "load.json");
    spec.warm = variant.warm.as_ref().map(|warm| to(warm, "warm", "warm.json"));
    spec.is_report_printed = matches!(load.what, What::Command(..));
    let fresh = survey.caches.iter().chain(&variant.fresh).cloned().chain([ask::LOGS.to_owned()]);
    let mut spec = Spec {
        dir: dir.to_owned(),
        is_isolated: true,
        edge: EDGE.to_owned(),
        actions: variant.actions.clone(),
        watches: variant.watches.clone(),
        fresh: fresh.filter(|path| path.starts_with('/') && path.len() > 1).collect(),
        overlaid: variant.overlaid.clone(),
        may_end: variant.may_end,
        limit_ms: u64::try_from(variant.limit.as_millis()).unwrap_or(u64::MAX),
        ..spec
    };
    let program = program.display().to_string();
    fill_in(&mut spec, &dir.display().to_string(), &program, &variant.front.conf.display().to_string());
    Ok(spec)
}

/// Fills in the values that are known only when a block is made: `${dir}`, its directory; `${edge}`, the program of
/// its edge; `${conf}`, its configuration file.
fn fill_in(spec: &mut Spec, dir: &str, edge: &str, conf: &str) {
    let fill = |text: &mut String| {
        if text.contains("${") {
            *text = text.replace("${dir}", dir).replace("${edge}", edge).replace("${conf}", conf);
        }
    };
    let errands = spec.actions.iter_mut().filter_map(|action| match &mut action.deed {
        stack::Deed::Run(process) => Some(process),
        _ => None,
    });
    for process in spec.processes.iter_mut().chain([&mut spec.client]).chain(&mut spec.warm).chain(errands) {
        process.argv.iter_mut().for_each(fill);
        process.env.iter_mut().for_each(|(_, value)| fill(value));
    }
}

fn env_of(sent: &Sent) -> Vec<(String, String)> {
    match &sent.what {
        What::Command(_, env) => env.clone(),
        What::Path(..) | What::Script(..) => Vec::new(),
    }
}

fn client_argv(sent: &Sent, weir: &Path, target: &str, out: &Path, seed: u64) -> Vec<String> {
    let mut argv = vec![weir.display().to_string(), "load".to_owned()];
    let flags = match &sent.what {
        What::Command(argv, _) => return argv.clone(),
        What::Path(path, flags) => {
            argv.push(format!("{target}{path}"));
            flags
        }
        What::Script(file, flags) => {
            argv.extend([file.display().to_string(), "-t".to_owned(), target.to_owned()]);
            argv.extend(["--seed".to_owned(), seed.to_string()]);
            flags
        }
    };
    argv.extend(flags.iter().cloned());
    argv.extend(["--interval", "250ms", "-q", "-o"].map(str::to_owned));
    argv.push(out.display().to_string());
    argv
}
