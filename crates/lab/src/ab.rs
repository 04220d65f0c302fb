//! Compares before and after: blocks in quartets, looks, and the verdict.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::UNIX_EPOCH;

use serde_json::{Value, json};
use weir_net::{Instant, clock};
use weir_words::Language;

use crate::analysis::{self, Analysis, Question, analyse, analyse_duets};
use crate::ask::{Ask, Design, EdgeProgram, Side, Stack};
use crate::block::Block;
use crate::change::{Difference, NoEffect};
use crate::duet;
use crate::metric::{self, Metric};
use crate::outlook;
use crate::said::{Said, say};
use crate::schedule::{AGAIN_MAX, BlockPosition as Turn, ComparedSide, QUARTET, blocks};
use crate::stack::{self, BlockFailure, HUB, LabDirectory};
use crate::store;

/// Receives the progress of a run.
pub trait Tell {
    /// A line for the user.
    fn line(&mut self, line: &str);
    /// Number of finished blocks, the most blocks there can be, and the present activity.
    fn progress(&mut self, done: usize, of: usize, what: &str);
    /// The run so far, as it will be stored but without a verdict. Only a look gives a verdict.
    fn so_far(&mut self, run: &Value);
    /// The language of the output.
    fn language(&self) -> Language {
        Language::English
    }
    /// A line for the user, in that language.
    fn tell(&mut self, said: &Said) {
        let language = self.language();
        self.line(said.say(language));
    }
    /// As [`Tell::progress`], in that language.
    fn tell_progress(&mut self, done: usize, of: usize, what: &Said) {
        let language = self.language();
        self.progress(done, of, what.say(language));
    }
}

/// A comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The present configuration. It is compared with itself if there is no other.
    pub before: Side,
    /// The changed configuration.
    pub after: Option<Side>,
    /// The name of the one factor.
    pub factor: String,
    /// The differences.
    pub changes: Vec<Difference>,
    /// Why the change can have no effect, if a lint knows.
    pub no_effect: Vec<Said>,
    /// The settings that all blocks share.
    pub ask: Ask,
    /// How the two are compared.
    pub design: Design,
    /// A quartet shares its processes: the edge is reloaded instead of restarted, and keeps its state.
    pub warm: Option<Warm>,
    /// Both blocks of a pair run at once.
    pub is_duet: bool,
}

/// The served configuration of an edge that keeps running.
#[derive(Clone, Debug)]
pub struct Warm {
    /// The file that the edge reads. Each block writes its configuration over it.
    pub served: Side,
    /// The files that are written over it: before, and after.
    pub files: (PathBuf, PathBuf),
}

impl Comparison {
    fn kind(&self) -> &'static str {
        if self.after.is_some() { "ab" } else { "aa" }
    }

    fn design_json(&self, primary: &Metric) -> Value {
        json!({
            "primary": primary.key,
            "threshold": self.design.threshold,
            "looks": self.design.looks.at,
            "alpha": self.design.looks.alpha,
        })
    }

    /// The expected time: until the first look that may decide, and until the last one. A configuration that is
    /// compared with itself always runs to its end.
    fn outlook(&self) -> Said {
        let each = if self.is_duet { 1 } else { 2 };
        let most = self.design.looks.pairs_max() * each;
        let least = if self.after.is_some() { self.design.looks.pairs_min() * each } else { most };
        outlook::duration(&self.ask, (least.min(most), most))
    }

    /// Checks, before the run, whether the change can have an effect. The lint knows defaults and limits.
    pub fn lint(&mut self, lint: &NoEffect) {
        if let Some(after) = &self.after {
            self.no_effect = lint(&self.before.tree, &after.tree, &self.changes);
        }
    }
}

/// The state of a run.
struct Lab<'a> {
    it: &'a Comparison,
    place: LabDirectory,
    stacks: (Stack, Stack),
    blocks: Vec<Block>,
    began: Instant,
    runs: usize,
    id: String,
    started_ms: u64,
    /// The compared metric.
    primary: &'static Metric,
    /// Why it is the mean instead of a quantile, if so.
    small: Option<Said>,
}

/// Refuses, before the run, a load that has too few requests for an answer.
pub(crate) fn refuse_too_few(ask: &Ask, primary: &Metric, design: &Design) -> Result<(), Said> {
    outlook::too_few(ask, primary, &design.command).map_or(Ok(()), Err)
}

/// The metric to compare. If the user named none, a load that is known to be too small for a quantile is compared by
/// its mean. This depends on the number of requests alone, never on their results.
fn primary_of(ask: &Ask, design: &Design) -> (&'static Metric, Option<Said>) {
    let requests = outlook::requests(ask).filter(|requests| *requests < design.primary.requests_min as f64);
    match requests {
        Some(requests) if !design.is_chosen => (&metric::SMALL, Some(outlook::small(design.primary, requests))),
        _ => (design.primary, None),
    }
}

/// Runs the comparison and returns the run as it is stored. The error is for the user: nothing could be measured.
pub fn run(it: &Comparison, stop: &AtomicBool, tell: &mut dyn Tell) -> Result<Value, Said> {
    stack::sweep().iter().for_each(|line| tell.tell(line));
    let (primary, small) = primary_of(&it.ask, &it.design);
    refuse_too_few(&it.ask, primary, &it.design)?;
    small.iter().for_each(|said| tell.tell(said));
    if let Some((rate, raised)) = it.ask.raised_warm_up() {
        tell.tell(&say!(WARM_UP_RAISED, raised, rate));
    }
    let after = it.after.as_ref().unwrap_or(&it.before);
    tell.tell(&it.outlook());
    // In a duet, each configuration has all of its parts on its own host.
    let near = Ask { is_isolated: it.ask.is_isolated && !it.is_duet, ..it.ask.clone() };
    let stacks = (near.stack(&it.before)?, near.stack(after)?);
    let mut lab = Lab {
        it,
        place: LabDirectory::new()?,
        stacks,
        blocks: Vec::new(),
        began: clock::precise(),
        runs: 0,
        id: store::new_id(),
        started_ms: now_ms(),
        primary,
        small,
    };
    let gate = lab.all_blocks(stop, tell)?;
    let analysis = lab.analyse(gate.clone());
    let throttled = it.ask.quota.map(|_| throttled(&lab.blocks));
    Ok(json!({
        "version": 1,
        "id": lab.id,
        "kind": it.kind(),
        "started_ms": lab.started_ms,
        "ended_ms": now_ms(),
        "seed": it.design.seed,
        "asked": it.ask.to_json(),
        "load": it.ask.load_in_words(),
        "load_said": it.ask.load_said(),
        "before": side_json(&it.before),
        "after": side_json(after),
        "factor": it.factor,
        "is_kept_warm": it.warm.is_some(),
        "is_duet": it.is_duet,
        "changes": it.changes.iter().map(Difference::sentence).collect::<Vec<_>>(),
        "changes_said": it.changes.iter().map(Difference::said).collect::<Vec<_>>(),
        "no_effect": it.no_effect.iter().map(Said::en).collect::<Vec<_>>(),
        "no_effect_said": it.no_effect,
        "design": it.design_json(lab.primary),
        "small": lab.small.as_ref().map(Said::en),
        "small_said": lab.small,
        "environment": environment_of(&it.before, after),
        "is_interrupted": stop.load(Ordering::Relaxed),
        "throttled": throttled.map(|(periods, throttled)| json!({"periods": periods, "throttled": throttled})),
        "minutes_a_pair": lab.minutes_a_pair(),
        "blocks": lab.blocks.iter().map(Block::to_json).collect::<Vec<_>>(),
        "metrics": analysis.metrics,
        "gate": gate.as_ref().map(Said::en),
        "gate_said": gate,
        "verdict": analysis.verdict.to_json(),
    }))
}

impl Lab<'_> {
    /// Runs blocks until the last look, or until a look decides. Returns why no conclusion is allowed, if so.
    fn all_blocks(&mut self, stop: &AtomicBool, tell: &mut dyn Tell) -> Result<Option<Said>, Said> {
        let design = &self.it.design;
        let turns = blocks(design.seed, design.looks.pairs_max());
        // Blocks that share their processes are measured, and repeated, together.
        let together = match self.it.is_duet {
            true => 2,
            false if self.it.warm.is_some() => QUARTET,
            false => 1,
        };
        for group in turns.chunks(together) {
            let Some(turn) = group.last() else { continue };
            match self.turn(group, turns.len(), stop, tell)? {
                Turned::Good => {}
                Turned::Stopped => return Ok(None),
                Turned::Spoiled(why) => return Ok(Some(why)),
            }
            // For a closed loop, the first blocks show how many requests a block has.
            if turn.index < QUARTET
                && let Some(why) = analysis::none_is_enough(&self.blocks, self.primary)
            {
                let requests = self.blocks.iter().map(|block| block.requests).max().unwrap_or(0);
                if design.is_chosen || requests < metric::SMALL.requests_min || self.small.is_some() {
                    return Ok(Some(why));
                }
                let small = outlook::small(self.primary, requests as f64);
                tell.tell(&small);
                (self.primary, self.small) = (&metric::SMALL, Some(small));
            }
            let pairs = turn.pair + 1;
            let is_look = turn.index % 2 == 1 && design.looks.at.contains(&pairs);
            // A configuration that is compared with itself runs to its end: its spread is the result.
            if is_look && pairs < design.looks.pairs_max() && self.it.after.is_some() {
                let analysis = self.analyse(None);
                tell.tell(&say!(LOOK, pairs, &analysis.verdict.text));
                if analysis.is_decided {
                    return Ok(None);
                }
            }
        }
        Ok(None)
    }

    /// Runs a block, and again while it is spoiled.
    fn turn(&mut self, group: &[Turn], of: usize, stop: &AtomicBool, tell: &mut dyn Tell) -> Result<Turned, Said> {
        let Some(turn) = group.first() else { return Ok(Turned::Good) };
        let letters: String = group.iter().map(|turn| turn.arm.letter()).collect();
        let what = say!(PAIR, turn.pair + 1, letters);
        tell.tell_progress(turn.index, of, &what);
        let mut tried = Vec::new();
        let warm = self.it.warm.as_ref();
        let turned = again(&what, stop, tell, &mut tried, &mut |attempt| match warm {
            Some(warm) => self.quartet(warm, group, attempt, stop),
            None if self.it.is_duet => self.duet(turn, attempt, stop),
            None => self.block(turn, attempt, stop),
        })?;
        // If a quartet is run again, none of its earlier blocks counts, even a good one.
        if warm.is_some() {
            let last = tried.iter().map(|block| block.attempt).max();
            tried.iter_mut().filter(|block| Some(block.attempt) != last && block.spoiled.is_empty()).for_each(
                |block| {
                    block.spoil(say!(QUARTET_AGAIN));
                },
            );
        }
        self.blocks.extend(tried);
        tell.so_far(&self.so_far(of));
        tell.tell_progress(turn.index + if matches!(turned, Turned::Good) { group.len() } else { 0 }, of, &what);
        Ok(turned)
    }

    /// Runs both blocks of a pair at once. Chance decides which of them is on the hub.
    fn duet(&mut self, turn: &Turn, attempt: u32, stop: &AtomicBool) -> Result<Vec<Block>, BlockFailure> {
        let it = self.it;
        let dir = self.place.path().join(format!("{}-{attempt}", turn.index));
        fs::create_dir_all(dir.join("twin"))
            .map_err(|error| BlockFailure::Broken(say!(ERR_FILE, dir.display().to_string(), error.to_string())))?;
        let after = it.after.as_ref().unwrap_or(&it.before);
        let (before, after) = ((&it.before, &self.stacks.0), (after, &self.stacks.1));
        let (one, other, arms) = match turn.arm {
            ComparedSide::Before => (before, after, (ComparedSide::Before, ComparedSide::After)),
            ComparedSide::After => (after, before, (ComparedSide::After, ComparedSide::Before)),
        };
        let seed = it.design.seed.wrapping_add(turn.pair as u64 * 0x9E37_79B9);
        let spec = duet::spec(&it.ask, one, other, &dir, seed).map_err(BlockFailure::Broken)?;
        self.runs += 2;
        let answer = stack::run(&spec, &it.ask.weir, stop)?;
        let _ = fs::remove_dir_all(&dir);
        Ok(duet::blocks(&answer, &it.ask, turn.pair, arms, attempt))
    }

    /// Runs the blocks of one stack, with a reload before each.
    fn quartet(
        &mut self,
        warm: &Warm,
        group: &[Turn],
        attempt: u32,
        stop: &AtomicBool,
    ) -> Result<Vec<Block>, BlockFailure> {
        let it = self.it;
        let dir = self.place.path().join(format!("{}-{attempt}", group.first().map_or(0, |turn| turn.index)));
        fs::create_dir_all(&dir)
            .map_err(|error| BlockFailure::Broken(say!(ERR_FILE, dir.display().to_string(), error.to_string())))?;
        let turn = |turn: &Turn| {
            let file = if turn.arm == ComparedSide::Before { &warm.files.0 } else { &warm.files.1 };
            (file.clone(), it.design.seed.wrapping_add(turn.pair as u64 * 0x9E37_79B9))
        };
        let turns: Vec<(PathBuf, u64)> = group.iter().map(turn).collect();
        self.runs += group.len();
        let answer = stack::run(&it.ask.spec_of_turns(&warm.served, &self.stacks.0, &dir, &turns), &it.ask.weir, stop)?;
        let _ = fs::remove_dir_all(&dir);
        let answers = answer["turns"].as_array().cloned().unwrap_or_default();
        let block = |(turn, answer): (&Turn, &Value)| Block::of(answer, turn.pair, turn.arm, attempt, it.ask.asked());
        Ok(group.iter().zip(&answers).map(block).collect())
    }

    fn block(&mut self, turn: &Turn, attempt: u32, stop: &AtomicBool) -> Result<Vec<Block>, BlockFailure> {
        let it = self.it;
        let (side, stack) = match turn.arm {
            ComparedSide::Before => (&it.before, &self.stacks.0),
            ComparedSide::After => (it.after.as_ref().unwrap_or(&it.before), &self.stacks.1),
        };
        let seed = it.design.seed.wrapping_add(turn.pair as u64 * 0x9E37_79B9);
        self.runs += 1;
        let name = format!("{}-{attempt}", turn.index);
        let answer = measured(&it.ask, side, stack, &self.place, &name, seed, stop)?;
        Ok(vec![Block::of(&answer, turn.pair, turn.arm, attempt, it.ask.asked())])
    }

    /// The run so far.
    fn so_far(&self, blocks_max: usize) -> Value {
        let it = self.it;
        json!({
            "version": 1,
            "id": self.id,
            "kind": it.kind(),
            "started_ms": self.started_ms,
            "seed": it.design.seed,
            "load": it.ask.load_in_words(),
            "before": {"file": it.before.file.display().to_string()},
            "after": {"file": it.after.as_ref().unwrap_or(&it.before).file.display().to_string()},
            "factor": it.factor,
            "changes": it.changes.iter().map(Difference::sentence).collect::<Vec<_>>(),
            "no_effect": it.no_effect.iter().map(Said::en).collect::<Vec<_>>(),
            "design": it.design_json(self.primary),
            "blocks_max": blocks_max,
            "blocks": self.blocks.iter().map(Block::to_json).collect::<Vec<_>>(),
        })
    }

    fn minutes_a_pair(&self) -> f64 {
        (clock::precise() - self.began).as_secs_f64() / 60.0 / self.runs.max(1) as f64 * 2.0
    }

    fn analyse(&self, gate: Option<Said>) -> Analysis {
        let question = Question {
            primary: self.primary,
            threshold: self.it.design.threshold,
            looks: &self.it.design.looks,
            no_effect: &self.it.no_effect,
            gate,
            minutes_a_pair: self.minutes_a_pair(),
        };
        if self.it.is_duet { analyse_duets(&self.blocks, &question) } else { analyse(&self.blocks, &question) }
    }
}

/// Periods of the edge's quota in all blocks, and the number of throttled periods.
fn throttled(blocks: &[Block]) -> (u64, u64) {
    let sum = |name: &str| blocks.iter().filter_map(|block| block.usage["hosts"][HUB][name].as_u64()).sum();
    (sum("periods"), sum("throttled"))
}

/// The result of a turn.
pub(crate) enum Turned {
    /// Its last try is usable.
    Good,
    /// The user stopped the lab.
    Stopped,
    /// No try is usable, for this reason.
    Spoiled(Said),
}

/// Runs the measurement `run`, and again while it is spoiled. Puts every try into `tried`.
pub(crate) fn again(
    what: &Said,
    stop: &AtomicBool,
    tell: &mut dyn Tell,
    tried: &mut Vec<Block>,
    run: &mut dyn FnMut(u32) -> Result<Vec<Block>, BlockFailure>,
) -> Result<Turned, Said> {
    let mut last = Said::default();
    for attempt in 0..=AGAIN_MAX {
        if stop.load(Ordering::Relaxed) {
            return Ok(Turned::Stopped);
        }
        let blocks = match run(attempt) {
            Ok(blocks) => blocks,
            Err(BlockFailure::Stopped) => return Ok(Turned::Stopped),
            Err(BlockFailure::Broken(error)) => return Err(error),
        };
        let spoiled: Vec<Said> = blocks.iter().flat_map(Block::why_spoiled).collect();
        for why in &spoiled {
            let line = if attempt > 0 { say!(AGAIN_NOT_USED, what, why) } else { say!(TURN_NOT_USED, what, why) };
            tell.tell(&line);
        }
        tried.extend(blocks);
        match spoiled.into_iter().next() {
            None => return Ok(Turned::Good),
            Some(why) => last = why,
        }
    }
    Ok(Turned::Spoiled(say!(TIMES_IN_A_ROW, last, AGAIN_MAX + 1)))
}

/// Runs one block of a side in a temporary directory. Returns the keeper's answer.
pub(crate) fn measured(
    ask: &Ask,
    side: &Side,
    stack: &Stack,
    place: &LabDirectory,
    name: &str,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Value, BlockFailure> {
    let dir = place.path().join(name);
    fs::create_dir_all(&dir)
        .map_err(|error| BlockFailure::Broken(say!(ERR_FILE, dir.display().to_string(), error.to_string())))?;
    let answer = stack::run(&ask.spec(side, stack, &dir, seed), &ask.weir, stop)?;
    // The report is all that the run keeps of a block.
    let _ = fs::remove_dir_all(&dir);
    Ok(answer)
}

/// A side, as a run stores it.
pub(crate) fn side_json(side: &Side) -> Value {
    let text = side.tree.files.iter().map(|file| String::from_utf8_lossy(&file.bytes)).collect::<Vec<_>>();
    json!({
        "file": side.file.display().to_string(), "edge": side.edge.name(), "text": text, "protocol": side.protocol.name(),
        "application": side.application.as_ref().map(|own| own.command.as_str()),
    })
}

/// Facts that identify the machine and the build.
pub(crate) fn environment_of(before: &Side, after: &Side) -> Value {
    let read = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
    json!({
        "weir": env!("CARGO_PKG_VERSION"),
        "before": version(&before.edge),
        "after": version(&after.edge),
        "kernel": read("/proc/sys/kernel/osrelease"),
        "host": read("/proc/sys/kernel/hostname"),
        "cpus": crate::ask::allowed_cpus().len(),
    })
}

/// The edge's version, `nginx/1.22.1` or `weir/0.1.0`. The defaults of directives depend on it.
pub fn version(edge: &EdgeProgram) -> String {
    match edge {
        EdgeProgram::Weir => concat!("weir/", env!("CARGO_PKG_VERSION")).to_owned(),
        EdgeProgram::Nginx(path) => {
            let output = Command::new(path).arg("-v").stdin(Stdio::null()).output();
            let text = output.map(|output| String::from_utf8_lossy(&output.stderr).into_owned()).unwrap_or_default();
            text.trim().trim_start_matches("nginx version: ").to_owned()
        }
    }
}

pub(crate) fn now_ms() -> u64 {
    u64::try_from(clock::precise_wall().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}
