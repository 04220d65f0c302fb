//! The largest rate at which an objective holds, with its interval.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use weir_load::plan::{Arrivals, Phase};
use weir_net::clock;

use crate::ab::{Tell, environment_of, side_json};
use crate::ask::{Ask, Load, Side};
use crate::block::{Block, BlockSettings};
use crate::metric::{self, digits};
use crate::said::{Said, say};
use crate::schedule::{AGAIN_MAX, ComparedSide};
use crate::search::{Axis, BY_RATE, CONFIRMATIONS, SearchNext, SearchTry, TRIES_MAX, next, passes};
use crate::series;
use crate::stack::{self, BlockFailure, LabDirectory};
use crate::stats;
use crate::store;
use crate::texts;

/// If fewer of the offered requests than this part are answered, the rate was not reached.
const REACHED_MIN: f64 = 0.99;
/// How many times longer than its setting a block may be, so that a low rate gives enough answers for the quantile.
const LONGER_MAX: u32 = 10;
/// A fitted law is quoted up to this many times the measured range.
const BEYOND_MAX: f64 = 1.5;

/// The condition that has to hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective {
    /// A quantile of the response latency: `p50`, `p95`, `p99`.
    pub quantile: &'static str,
    /// Its limit, ms.
    pub limit_ms: f64,
    /// The largest share of requests that may fail.
    pub errors: f64,
}

impl Objective {
    /// The objective in words.
    pub fn in_words(&self) -> String {
        self.said().en().to_owned()
    }

    /// As [`Objective::in_words`], in every language.
    pub fn said(&self) -> Said {
        say!(OBJECTIVE, self.quantile, digits(self.limit_ms), digits(self.errors * 100.0))
    }

    /// Whether a block met the objective. The error says why not.
    fn judge(&self, block: &Block, offered: f64) -> Result<(), Said> {
        let value = |key: &str| block.values.get(key).copied();
        let answered = value("throughput").unwrap_or(0.0);
        if answered < offered * REACHED_MIN {
            return Err(say!(FEW_ANSWERED, digits(answered), digits(offered)));
        }
        let share = value("errors").unwrap_or(1.0);
        if share > self.errors {
            return Err(say!(SHARE_FAILED, digits(share * 100.0)));
        }
        match value(self.quantile) {
            Some(ms) if ms <= self.limit_ms => Ok(()),
            Some(ms) => Err(Said::from(format!("{} {} ms", self.quantile, digits(ms)))),
            None => Err(say!(FEW_ANSWERS_FOR, self.quantile)),
        }
    }
}

/// A search for a capacity.
#[derive(Clone, Debug)]
pub struct Capacity {
    /// The configuration that is loaded.
    pub side: Side,
    /// The settings that blocks share. The load is a path or a script.
    pub ask: Ask,
    /// The condition that has to hold.
    pub objective: Objective,
    /// Virtual users as the axis, instead of requests a second.
    pub users: Option<Users>,
    /// The phases of the script, if the load is one: a rate gives all of them as many times the arrivals.
    pub phases: Vec<Phase>,
    /// The rate, or the number of users, to start with.
    pub from: f64,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// Virtual users: each asks, waits for the answer, thinks, and asks again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Users {
    /// The time between an answer and the next request.
    pub think: Duration,
    /// The most users that are tried.
    pub most: f64,
}

impl Users {
    /// Requests a second that this many users send, if the answers take no time.
    fn rate(self, users: f64) -> f64 {
        users / self.think.as_secs_f64().max(1e-3)
    }

    /// The time within which all users begin: one time of thinking, so that they do not ask all at once.
    fn begin(self) -> f64 {
        self.think.max(Duration::from_secs(1)).as_secs_f64().ceil()
    }

    /// Writes the script of this many users that ask for `length` after the last of them has begun.
    fn script(self, users: f64, path: &str, length: Duration, file: &Path) -> std::io::Result<Load> {
        let begin = self.begin();
        let turns = ((begin + length.as_secs_f64()) / self.think.as_secs_f64().max(1e-3)).ceil().max(1.0);
        let script = json!({
            "config": {"target": "http://127.0.0.1", "phases": [{"duration": begin, "arrivalCount": users}]},
            "scenarios": [{"flow": [{
                "loop": [{"get": {"url": path}}, {"think": self.think.as_secs_f64()}],
                "count": turns,
            }]}],
        });
        // JSON is YAML too.
        std::fs::write(file, script.to_string())?;
        // The last user begins at the end of `begin`, and ends so much later than the first.
        let length = length + 2 * Duration::from_secs_f64(begin);
        Ok(Load::Script { file: file.to_owned(), over: None, length, requests: Some(users * turns) })
    }
}

/// Writes the `config` that gives each phase so many times its arrivals.
fn paced(phases: &[Phase], times: f64, file: &Path) -> std::io::Result<()> {
    let (mut sum, mut given) = (0.0, 0.0);
    let phase = |phase: &Phase| match phase.arrivals {
        Arrivals::Pause => json!({}),
        Arrivals::Count(count) => {
            // The remainders add up, so that no arrival is lost by rounding.
            sum += count as f64 * times;
            let own = f64::round(sum) - given;
            given += own;
            json!({"arrivalCount": own})
        }
        Arrivals::Rate(rate) | Arrivals::Poisson(rate) => json!({"arrivalRate": rate * times}),
        Arrivals::Ramp(from, to) => json!({"arrivalRate": from * times, "rampTo": to * times}),
    };
    let phases: Vec<Value> = phases.iter().map(phase).collect();
    // JSON is YAML too.
    std::fs::write(file, json!({"config": {"phases": phases}}).to_string())
}

impl Capacity {
    fn axis(&self) -> Axis {
        self.users.map_or(BY_RATE, |users| Axis { most: users.most, is_whole: true })
    }

    /// Why a search ends at a level that gives no block. If no level held, the reason is what happened at the lowest
    /// one that was measured.
    fn no_block(&self, level: f64, why: Said, lowest: Option<(f64, Said)>) -> Said {
        match lowest {
            Some((measured, failure)) => {
                say!(NO_LEVEL_DOWN_TO, self.level(measured), self.objective.said(), failure, why)
            }
            None => say!(AT_LEVEL, why, self.level(level)),
        }
    }

    /// `500/s`, or `1200 users`.
    fn level(&self, level: f64) -> Said {
        if self.users.is_some() { say!(USERS, format!("{level:.0}")) } else { say!(RATE, digits(level)) }
    }
}

/// The lowest level, and why it failed. `None` if a level held.
fn lowest(tries: &[SearchTry], failures: &[Option<Said>]) -> Option<(f64, Said)> {
    let failed: Vec<(f64, Said)> =
        tries.iter().zip(failures).filter_map(|(one, why)| Some((one.rate, why.clone()?))).collect();
    let all_failed = failed.len() == tries.len();
    failed.into_iter().min_by(|one, other| one.0.total_cmp(&other.0)).filter(|_| all_failed)
}

/// Runs the search and returns the run as it is stored. The error is for the user.
pub fn run(it: &Capacity, stop: &AtomicBool, tell: &mut dyn Tell) -> Result<Value, Said> {
    stack::sweep().iter().for_each(|line| tell.tell(line));
    // The search ends as soon as the largest rate that holds is confirmed.
    tell.tell(&crate::outlook::duration(&it.ask, (CONFIRMATIONS + 2, TRIES_MAX)));
    let place = LabDirectory::new()?;
    let (id, started_ms) = (store::new_id(), now_ms());
    let (mut tries, mut blocks, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    let mut failures: Vec<Option<Said>> = Vec::new();
    let end = loop {
        let (rate, is_confirmation) = match next(&tries, it.from, it.axis()) {
            SearchNext::Try(rate) => (rate, false),
            SearchNext::Confirm(rate) => (rate, true),
            end => break Ok(end),
        };
        let level = it.level(rate);
        let what = if is_confirmation { say!(TO_CONFIRM, level) } else { level };
        tell.tell_progress(tries.len(), TRIES_MAX, &what);
        let block = match step(it, rate, &place, blocks.len(), stop, tell) {
            Ok(block) => block,
            Err(Ended::Broken(error)) => return Err(error),
            Err(Ended::Stopped) => break Err(say!(STOPPED)),
            Err(Ended::Spoiled(why)) => break Err(it.no_block(rate, why, lowest(&tries, &failures))),
        };
        let has_path = matches!(it.ask.load, Load::Path { .. });
        // Users never send more than is answered, and those of a script end some time after its last phase.
        let offered = if it.users.is_some() || !has_path { 0.0 } else { rate };
        let judged = it.objective.judge(&block, offered);
        let passed = judged.is_ok();
        let line = match &judged {
            Ok(()) => say!(STEP_HOLDS, &what),
            Err(why) => say!(STEP_FAILS, &what, why),
        };
        tell.tell(&line);
        tries.push(SearchTry { rate, passed, is_confirmation });
        let why = judged.err();
        failures.push(why.clone());
        steps.push(json!({
            "rate": rate, "passed": passed, "answered": block.values.get("throughput"), "is_confirmation": is_confirmation,
            "why": why.as_ref().map(Said::en), "why_said": why,
        }));
        blocks.push(block);
    };
    let made = |level: f64| {
        let of = tries.iter().zip(&blocks).filter(|(one, _)| one.rate == level && one.passed);
        stats::median(&of.filter_map(|(_, block)| block.values.get("throughput").copied()).collect::<Vec<_>>())
    };
    let verdict = verdict(it, &tries, end, &made);
    Ok(json!({
        "version": 1,
        "id": id,
        "kind": "capacity",
        "axis": if it.users.is_some() { "users" } else { "rate" },
        "think_s": it.users.map(|users| users.think.as_secs_f64()),
        "started_ms": started_ms,
        "ended_ms": now_ms(),
        "seed": it.seed,
        "asked": it.ask.to_json(),
        "load": it.ask.load_in_words(),
        "load_said": it.ask.load_said(),
        "before": side_json(&it.side),
        "objective": it.objective.in_words(),
        "objective_said": it.objective.said(),
        "environment": environment_of(&it.side, &it.side),
        "is_interrupted": stop.load(Ordering::Relaxed),
        "steps": steps,
        "usl": law(&tries, &blocks, it.seed),
        "blocks": blocks.iter().map(Block::to_json).collect::<Vec<_>>(),
        "verdict": verdict,
    }))
}

/// Why a step gave no block.
enum Ended {
    Stopped,
    Broken(Said),
    Spoiled(Said),
}

/// Runs one rate in a block of its own, and again while it is spoiled.
fn step(
    it: &Capacity,
    rate: f64,
    place: &LabDirectory,
    number: usize,
    stop: &AtomicBool,
    tell: &mut dyn Tell,
) -> Result<Block, Ended> {
    let mut ask = it.ask.clone();
    let level = rate;
    let rate = it.users.map_or(level, |users| users.rate(level));
    if let Load::Path { rate: asked, .. } = &mut ask.load {
        *asked = Some(rate);
    }
    let needed = metric::of(it.objective.quantile).map_or(0, |metric| metric.requests_min) as f64 * 1.05 / rate;
    // A script is as long as it is.
    let (longest, words) = match it.ask.load {
        Load::Path { .. } => ((ask.block * LONGER_MAX).as_secs_f64(), texts::LONGEST_TOO_FEW),
        Load::Script { length, .. } => (length.as_secs_f64(), texts::SCRIPT_TOO_FEW),
    };
    if needed > longest {
        return Err(Ended::Spoiled(words.with(&[format!("{longest:.0}").into(), it.objective.quantile.into()])));
    }
    ask.block = ask.block.max(Duration::from_secs_f64(needed));
    if let (Some(users), Load::Path { path, .. }) = (it.users, &it.ask.load) {
        let file = place.path().join(format!("{number}.yml"));
        let script = users.script(level, path, ask.block, &file);
        ask.load =
            script.map_err(|error| Ended::Broken(say!(ERR_FILE, file.display().to_string(), error.to_string())))?;
    }
    if let (None, Load::Script { over, length, requests: Some(requests), .. }) = (it.users, &mut ask.load) {
        let file = place.path().join(format!("{number}.yml"));
        let times = rate * length.as_secs_f64() / requests.max(1e-9);
        paced(&it.phases, times, &file)
            .map_err(|error| Ended::Broken(say!(ERR_FILE, file.display().to_string(), error.to_string())))?;
        (*over, *requests) = (Some(file), *requests * times);
    }
    let stack = ask.stack(&it.side).map_err(Ended::Broken)?;
    let mut why = Said::default();
    for attempt in 0..=AGAIN_MAX {
        let dir = place.path().join(format!("{number}-{attempt}"));
        std::fs::create_dir_all(&dir)
            .map_err(|error| Ended::Broken(say!(ERR_FILE, dir.display().to_string(), error.to_string())))?;
        let mut spec = ask.spec(&it.side, &stack, &dir, it.seed);
        // Beyond its capacity a stack never becomes warm, so the warm-up is not judged.
        spec.is_warm_judged = false;
        let answer = match stack::run(&spec, &ask.weir, stop) {
            Ok(answer) => answer,
            Err(BlockFailure::Stopped) => return Err(Ended::Stopped),
            Err(BlockFailure::Broken(error)) => return Err(Ended::Broken(error)),
        };
        let _ = std::fs::remove_dir_all(&dir);
        let asked = BlockSettings {
            is_noisy: ask.is_noisy,
            is_search: true,
            has_users: it.users.is_some(),
            ..BlockSettings::default()
        };
        let mut block = Block::of(&answer, number, ComparedSide::Before, attempt, asked);
        // Before the last user has begun, and after the first has ended, the users make less than their rate.
        let all_are_there = it.users.and_then(|users| {
            let from = users.begin();
            series::throughput_between(&answer["load"], from, from + ask.block.as_secs_f64())
        });
        // The answers to a fixed rate may come after its last request.
        let to_rate = match ask.load {
            Load::Path { .. } if it.users.is_none() => series::answered_rate(&answer["load"], level, ask.block),
            Load::Path { .. } | Load::Script { .. } => None,
        };
        if let Some(rate) = all_are_there.or(to_rate) {
            block.values.insert("throughput".to_owned(), rate);
        }
        match block.why_spoiled().into_iter().next() {
            None => return Ok(block),
            Some(spoiled) => {
                tell.tell(&say!(TURN_NOT_USED, it.level(level), &spoiled));
                why = spoiled;
            }
        }
    }
    Err(Ended::Spoiled(why))
}

/// The verdict of a search.
fn verdict(it: &Capacity, tries: &[SearchTry], end: Result<SearchNext, Said>, made: &dyn Fn(f64) -> f64) -> Value {
    let held = tries.iter().filter(|one| one.passed).map(|one| one.rate).fold(0.0, f64::max);
    let at_least = if held > 0.0 { say!(HELD_AT, it.level(held)) } else { Said::default() };
    let words = it.objective.said();
    let (name, text, rate) = match end {
        Err(why) => ("no verdict", say!(NO_VERDICT_BUT, why, at_least), None),
        Ok(SearchNext::Found(rate)) => {
            let passed = passes(tries, rate);
            let half = half(tries)
                .map_or_else(Said::default, |fit| say!(HALF, digits(fit.half), digits(fit.low), digits(fit.high)));
            let text = match it.users {
                None => say!(CAPACITY, digits(rate), words, passed, CONFIRMATIONS, half),
                Some(users) => {
                    let (think, made) = (digits(users.think.as_secs_f64()), digits(made(rate)));
                    say!(CAPACITY_USERS, format!("{rate:.0}"), words, passed, CONFIRMATIONS, made, think)
                }
            };
            ("capacity", text, Some(rate))
        }
        Ok(SearchNext::Nothing) => ("nothing", say!(NO_LEVEL, it.level(1.0), words), None),
        Ok(SearchNext::Everything(rate)) => ("everything", say!(NO_LIMIT_AT, it.level(rate), words), None),
        Ok(_) => ("no verdict", say!(MIXED, tries.len(), at_least), None),
    };
    let fit = half(tries);
    json!({
        "name": name, "text": text.en(), "text_said": text, "rate": rate, "half": fit.map(|fit| fit.half),
        "interval": fit.map(|fit| [fit.low, fit.high]), "is_regression": false,
    })
}

/// The rate at which half of the tries pass, with its interval. It fits a logistic curve to all tries, over the
/// logarithm of the rate.
fn half(tries: &[SearchTry]) -> Option<stats::Logistic> {
    let points: Vec<(f64, bool)> = tries.iter().map(|one| (one.rate, one.passed)).collect();
    stats::logistic(&points)
}

/// Fits the scalability law to the answers, if there are enough levels. The load is the number of requests in flight:
/// answers a second times response time (Little's law). A peak far beyond the measured range is not reported.
fn law(tries: &[SearchTry], blocks: &[Block], seed: u64) -> Value {
    let points: Vec<(f64, f64)> = tries
        .iter()
        .zip(blocks)
        .filter_map(|(_, block)| {
            let (answers, ms) = (block.values.get("throughput")?, block.mean_ms?);
            Some((answers * ms / 1000.0, *answers)).filter(|(flight, _)| *flight > 0.0)
        })
        .collect();
    // Requests in flight differ between tries of one rate. So the rates count as levels.
    let mut rates: Vec<u64> = tries.iter().map(|one| one.rate.to_bits()).collect();
    rates.sort_unstable();
    rates.dedup();
    let Some(fit) = stats::usl(&points, seed).filter(|_| rates.len() >= stats::LEVELS_MIN) else { return Value::Null };
    let most = points.iter().map(|(flight, _)| *flight).fold(0.0, f64::max);
    let is_told = |at: &f64| *at <= most * BEYOND_MAX;
    let peak = fit.peak.filter(is_told);
    json!({
        "lambda": fit.lambda,
        "sigma": fit.sigma,
        "kappa": fit.kappa,
        "peak_in_flight": peak,
        "peak_interval": peak.and(fit.peak_interval).map(|(low, high)| [Some(low), Some(high).filter(is_told)]),
        "measured_to": most,
    })
}

fn now_ms() -> u64 {
    u64::try_from(clock::precise_wall().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn users_ask_wait_and_think() {
        let users = Users { think: Duration::from_millis(500), most: 100.0 };
        let file = std::env::temp_dir().join(format!("weir-lab-users-{}.yml", std::process::id()));
        let load = users.script(20.0, "/x", Duration::from_secs(10), &file);
        let written = std::fs::read_to_string(&file).unwrap_or_default();
        let _ = std::fs::remove_file(&file);
        assert!(load.is_ok_and(
            |load| matches!(load, Load::Script { requests: Some(440.0), length, .. } if length.as_secs() == 12)
        ));
        let script: Value = serde_json::from_str(&written).unwrap_or_default();
        assert_eq!(script["config"]["phases"][0]["arrivalCount"], 20.0);
        assert_eq!(script["scenarios"][0]["flow"][0]["count"], 22.0, "ten seconds after the last has begun");
        assert!((users.rate(20.0) - 40.0).abs() < 1e-9);
    }

    #[test]
    fn a_rate_gives_all_phases_of_a_script_as_many_times_the_arrivals() {
        let phase = |arrivals| Phase {
            name: "p".into(),
            shown: "1s".into(),
            duration: Duration::from_secs(1),
            arrivals,
            vusers_max: None,
        };
        let counts =
            [Arrivals::Count(3), Arrivals::Pause, Arrivals::Count(3), Arrivals::Ramp(1.0, 4.0), Arrivals::Rate(2.0)];
        let file = std::env::temp_dir().join(format!("weir-lab-paced-{}.yml", std::process::id()));
        let written = paced(&counts.map(phase), 1.5, &file).and_then(|()| std::fs::read_to_string(&file));
        let _ = std::fs::remove_file(&file);
        let script: Value = serde_json::from_str(&written.unwrap_or_default()).unwrap_or_default();
        let wanted = json!([{"arrivalCount": 5.0}, {}, {"arrivalCount": 4.0}, {"arrivalRate": 1.5, "rampTo": 6.0}, {"arrivalRate": 3.0}]);
        assert_eq!(script["config"]["phases"], wanted);
    }

    fn block(answered: f64, p95: f64, errors: f64) -> Block {
        let values =
            [("throughput", answered), ("p95", p95), ("errors", errors)].map(|(key, value)| (key.to_owned(), value));
        Block {
            pair: 0,
            arm: ComparedSide::Before,
            attempt: 0,
            started_ms: 0,
            requests: 1000,
            errors: BTreeMap::new(),
            values: values.into(),
            mean_ms: Some(p95 / 2.0),
            censored: Vec::new(),
            strip: Vec::new(),
            spoiled: Vec::new(),
            cautions: Vec::new(),
            said: crate::block::Reasons::default(),
            usage: Value::Null,
            generator: Value::Null,
        }
    }

    const SLO: Objective = Objective { quantile: "p95", limit_ms: 20.0, errors: 0.001 };

    #[test]
    fn an_objective_says_why_it_does_not_hold() {
        assert_eq!(SLO.judge(&block(1000.0, 19.0, 0.0), 1000.0), Ok(()));
        let table = [
            (block(980.0, 1.0, 0.0), "1000/s sent, 980/s answered"),
            (block(1000.0, 1.0, 0.01), "1.00 % failed"),
            (block(1000.0, 25.0, 0.0), "p95 25.0 ms"),
        ];
        for (block, words) in table {
            assert!(SLO.judge(&block, 1000.0).is_err_and(|why| why.contains(words)), "{words}");
        }
        let mut few = block(1000.0, 1.0, 0.0);
        few.values.remove("p95");
        assert!(SLO.judge(&few, 1000.0).is_err_and(|why| why.contains("too few")));
    }

    /// Beside heavy work no rate held, down to one of which a block has too few answers: that is not the reason.
    #[test]
    fn a_search_without_a_rate_that_held_says_why_the_lowest_failed() {
        let one = |rate, passed| SearchTry { rate, passed, is_confirmation: false };
        let why = |ms: &str| Some(Said::from(format!("p95 {ms} ms")));
        let tries = [one(40.0, false), one(2.6, false), one(26.7, false)];
        assert_eq!(lowest(&tries, &[why("900"), why("512"), why("700")]), Some((2.6, Said::from("p95 512 ms"))));
        let tries = [one(40.0, false), one(26.7, true)];
        assert_eq!(lowest(&tries, &[why("900"), None]), None);
        assert_eq!(lowest(&[], &[]), None);
    }

    #[test]
    fn a_law_needs_levels_and_is_not_drawn_far_beyond_them() {
        let law_of = |count: usize| {
            let rates: Vec<f64> = (1..=count).map(|n| 100.0 * 1.5f64.powi(n as i32)).collect();
            let tries: Vec<SearchTry> =
                rates.iter().map(|rate| SearchTry { rate: *rate, passed: true, is_confirmation: false }).collect();
            // Almost linear: a peak, if there is one, is far away.
            let blocks: Vec<Block> = rates.iter().map(|rate| block(*rate, 2.0 + rate / 1e5, 0.0)).collect();
            law(&tries, &blocks, 1)
        };
        assert_eq!(law_of(4), Value::Null);
        // Twelve tries of two rates are two levels.
        let tries: Vec<SearchTry> = (0..12)
            .map(|n| SearchTry { rate: 100.0 + f64::from(n % 2), passed: true, is_confirmation: true })
            .collect();
        let blocks: Vec<Block> = (0..12).map(|n| block(100.0, 2.0 + 0.1 * f64::from(n), 0.0)).collect();
        assert_eq!(law(&tries, &blocks, 1), Value::Null);
        assert_eq!(law_of(9)["peak_in_flight"], Value::Null);
        assert!(law_of(9)["lambda"].as_f64().is_some());
    }
}
