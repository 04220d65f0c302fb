//! Before and after: blocks in quartets, looks, and what they end in.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::UNIX_EPOCH;

use serde_json::{Value, json};
use weir_net::{Instant, clock};

use crate::analysis::{Analysis, Question, analyse};
use crate::ask::{Ask, Design, Edge, Load, Side, Stack};
use crate::block::{Asked, Block};
use crate::change::{Change, NoEffect};
use crate::schedule::{AGAIN_MAX, Arm, Place as Turn, blocks};
use crate::stack::{self, Failed, HUB, Place};
use crate::store;

/// Who is told how it goes.
pub trait Tell {
    /// Something that is to be read.
    fn line(&mut self, line: &str);
    /// Blocks done, of how many at most, and what is going on.
    fn progress(&mut self, done: usize, of: usize, what: &str);
}

/// A comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What is there; with itself if there is no other.
    pub before: Side,
    /// What is tried.
    pub after: Option<Side>,
    /// The name of the one factor.
    pub factor: String,
    /// What differs.
    pub changes: Vec<Change>,
    /// Why that can have no effect, if a lint knows.
    pub no_effect: Vec<String>,
    /// Everything the blocks share.
    pub ask: Ask,
    /// How the two are compared.
    pub design: Design,
}

impl Comparison {
    /// Asks somebody who knows defaults and limits whether the change can have an effect, before it is run.
    pub fn lint(&mut self, lint: &NoEffect) {
        if let Some(after) = &self.after {
            self.no_effect = lint(&self.before.tree, &after.tree, &self.changes);
        }
    }
}

/// What is known while it runs.
struct Lab<'a> {
    it: &'a Comparison,
    place: Place,
    stacks: (Stack, Stack),
    blocks: Vec<Block>,
    began: Instant,
    runs: usize,
}

/// Runs it, and gives the run as it is kept. The error is for the user: nothing could be measured.
pub fn run(it: &Comparison, stop: &AtomicBool, tell: &mut dyn Tell) -> Result<Value, String> {
    stack::sweep().iter().for_each(|line| tell.line(line));
    let after = it.after.as_ref().unwrap_or(&it.before);
    let stacks = (it.ask.stack(&it.before)?, it.ask.stack(after)?);
    let started_ms = now_ms();
    let mut lab = Lab { it, place: Place::new()?, stacks, blocks: Vec::new(), began: clock::precise(), runs: 0 };
    let id = store::new_id();
    let gate = lab.all_blocks(stop, tell)?;
    let analysis = lab.analyse(gate.clone());
    let throttled = it.ask.quota.map(|_| throttled(&lab.blocks));
    Ok(json!({
        "version": 1,
        "id": id,
        "kind": if it.after.is_some() { "ab" } else { "aa" },
        "started_ms": started_ms,
        "ended_ms": now_ms(),
        "seed": it.design.seed,
        "asked": it.ask.to_json(),
        "load": it.ask.load_in_words(),
        "before": side_json(&it.before),
        "after": side_json(after),
        "factor": it.factor,
        "changes": it.changes.iter().map(Change::sentence).collect::<Vec<_>>(),
        "no_effect": it.no_effect,
        "design": {
            "primary": it.design.primary.key,
            "threshold": it.design.threshold,
            "looks": it.design.looks.at,
            "alpha": it.design.looks.alpha,
        },
        "environment": environment_of(&it.before, after),
        "is_interrupted": stop.load(Ordering::Relaxed),
        "throttled": throttled.map(|(periods, throttled)| json!({"periods": periods, "throttled": throttled})),
        "minutes_a_pair": lab.minutes_a_pair(),
        "blocks": lab.blocks.iter().map(Block::to_json).collect::<Vec<_>>(),
        "metrics": analysis.metrics,
        "gate": gate,
        "verdict": {"name": analysis.verdict.name, "text": analysis.verdict.text, "is_regression": analysis.verdict.is_regression},
    }))
}

impl Lab<'_> {
    /// Runs blocks until the looks are over or one of them decides; why nothing may be said, if so.
    fn all_blocks(&mut self, stop: &AtomicBool, tell: &mut dyn Tell) -> Result<Option<String>, String> {
        let design = &self.it.design;
        let turns = blocks(design.seed, design.looks.pairs_max());
        for turn in &turns {
            match self.turn(turn, turns.len(), stop, tell)? {
                Turned::Good => {}
                Turned::Stopped => return Ok(None),
                Turned::Spoiled(why) => return Ok(Some(why)),
            }
            let pairs = turn.pair + 1;
            let is_look = turn.index % 2 == 1 && design.looks.at.contains(&pairs);
            // A configuration beside itself is measured to its end: its spread is what is wanted.
            if is_look && pairs < design.looks.pairs_max() && self.it.after.is_some() {
                let analysis = self.analyse(None);
                tell.line(&format!("look at {pairs} pairs: {}", analysis.verdict.text));
                if analysis.is_decided {
                    return Ok(None);
                }
            }
        }
        Ok(None)
    }

    /// Runs a block, again while it is spoiled.
    fn turn(&mut self, turn: &Turn, of: usize, stop: &AtomicBool, tell: &mut dyn Tell) -> Result<Turned, String> {
        for attempt in 0..=AGAIN_MAX {
            let what =
                format!("pair {} {}{}", turn.pair + 1, turn.arm.letter(), if attempt > 0 { ", again" } else { "" });
            tell.progress(turn.index, of, &what);
            if stop.load(Ordering::Relaxed) {
                return Ok(Turned::Stopped);
            }
            let block = match self.block(turn, attempt, stop) {
                Ok(block) => block,
                Err(Failed::Stopped) => return Ok(Turned::Stopped),
                Err(Failed::Broken(error)) => return Err(error),
            };
            let spoiled = block.spoiled.clone();
            for why in &spoiled {
                tell.line(&format!("{what}: not used: {why}"));
            }
            self.blocks.push(block);
            if spoiled.is_empty() {
                tell.progress(turn.index + 1, of, &what);
                return Ok(Turned::Good);
            }
        }
        let why = self.blocks.last().and_then(|block| block.spoiled.first()).cloned().unwrap_or_default();
        Ok(Turned::Spoiled(format!("{why} ({} times in a row)", AGAIN_MAX + 1)))
    }

    fn block(&mut self, turn: &Turn, attempt: u32, stop: &AtomicBool) -> Result<Block, Failed> {
        let dir = self.place.path().join(format!("{}-{attempt}", turn.index));
        fs::create_dir_all(&dir).map_err(|error| Failed::Broken(format!("{}: {error}", dir.display())))?;
        let it = self.it;
        let (side, stack) = match turn.arm {
            Arm::Before => (&it.before, &self.stacks.0),
            Arm::After => (it.after.as_ref().unwrap_or(&it.before), &self.stacks.1),
        };
        let seed = it.design.seed.wrapping_add(turn.pair as u64 * 0x9E37_79B9);
        let spec = it.ask.spec(side, stack, &dir, seed);
        self.runs += 1;
        let answer = stack::run(&spec, &it.ask.weir, stop)?;
        // What is left of a block is its report, which the run keeps.
        let _ = fs::remove_dir_all(&dir);
        let asked =
            Asked { is_steady: matches!(it.ask.load, Load::Path { .. }), is_noisy: it.ask.is_noisy, is_search: false };
        Ok(Block::of(&answer, turn.pair, turn.arm, attempt, asked))
    }

    fn minutes_a_pair(&self) -> f64 {
        (clock::precise() - self.began).as_secs_f64() / 60.0 / self.runs.max(1) as f64 * 2.0
    }

    fn analyse(&self, gate: Option<String>) -> Analysis {
        let question = Question {
            primary: self.it.design.primary,
            threshold: self.it.design.threshold,
            looks: &self.it.design.looks,
            no_effect: &self.it.no_effect,
            gate,
            minutes_a_pair: self.minutes_a_pair(),
        };
        analyse(&self.blocks, &question)
    }
}

/// Periods of the edge's quota in all blocks, and in how many of them it had to wait.
fn throttled(blocks: &[Block]) -> (u64, u64) {
    let sum = |name: &str| blocks.iter().filter_map(|block| block.usage["hosts"][HUB][name].as_u64()).sum();
    (sum("periods"), sum("throttled"))
}

/// How a turn ended.
enum Turned {
    Good,
    Stopped,
    Spoiled(String),
}

/// A side as a run keeps it.
pub(crate) fn side_json(side: &Side) -> Value {
    let text = side.tree.files.iter().map(|file| String::from_utf8_lossy(&file.bytes)).collect::<Vec<_>>();
    json!({"file": side.file.display().to_string(), "edge": side.edge.name(), "text": text})
}

/// What tells one machine, and one build, from another.
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

/// What the edge says it is, `nginx/1.22.1` or `weir/0.1.0`: the defaults of a directive depend on it.
pub fn version(edge: &Edge) -> String {
    match edge {
        Edge::Weir => concat!("weir/", env!("CARGO_PKG_VERSION")).to_owned(),
        Edge::Nginx(path) => {
            let output = Command::new(path).arg("-v").stdin(Stdio::null()).output();
            let text = output.map(|output| String::from_utf8_lossy(&output.stderr).into_owned()).unwrap_or_default();
            text.trim().trim_start_matches("nginx version: ").to_owned()
        }
    }
}

pub(crate) fn now_ms() -> u64 {
    u64::try_from(clock::precise_wall().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}
