//! A block's figures, and whether they are usable.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use weir_load::engine::http::shared::TIMEOUT;
use weir_load::record::Hdr;

use crate::metric::{self, METRICS, Scale};
use crate::said::{Said, say};
use crate::schedule::ComparedSide;
use crate::series::{self, Series};

/// A load generator with a thread busier than this is not always on time.
const CLIENT_CPU_MAX: f64 = 0.80;
/// If all processes together use more than this of the CPU that the generator runs on, requests wait for the CPU.
const CLIENT_CORE_MAX: f64 = 0.95;
/// Largest share of the stack's CPUs for other work.
pub(crate) const FOREIGN_MAX: f64 = 0.05;
/// Largest share of CPU time that the hypervisor may take.
pub(crate) const STEAL_MAX: f64 = 0.02;
/// Latest start of arrivals, ms; or this part of the median latency, if that is more.
const LAG_MAX_MS: f64 = 1.0;
const LAG_PART_MAX: f64 = 0.05;
/// Most windows of a block that a report keeps for its picture.
const STRIP_MAX: usize = 120;
/// The name of the process that a command of the user starts at the addresses of the upstreams: that of the first origin.
pub(crate) const APPLICATION: &str = "origin0";
/// Failures of the load generator's own machine, by error code.
const LOCAL_ERRORS: [&str; 4] = ["EADDRNOTAVAIL", "EMFILE", "ENFILE", "ENOBUFS"];

/// The settings of a block that its judgement depends on.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockSettings {
    /// The load is constant, so its windows can judge it.
    pub is_steady: bool,
    /// Other work on this machine causes only a warning.
    pub is_noisy: bool,
    /// A rate that was not reached is a result, not a fault of the block.
    pub is_search: bool,
    /// The load is virtual users, who wait for each answer. A user that begins some milliseconds late changes no figure.
    pub has_users: bool,
    /// The origin is an application of the user, so the CPU time that it uses is a figure.
    pub has_application: bool,
    /// How long the load opened connections, s. Until then, a request that opens one is slower than one that does not.
    pub opening_s: f64,
}

/// The parts of a keeper's answer that the judgement of a block needs. Keeper and lab are the same program: a missing
/// or renamed key is an error, and never means "nothing was used".
#[derive(Deserialize)]
#[expect(dead_code, reason = "that they are there, and of their kind, is all that is asked")]
struct Answer {
    usage: Shares,
    load: Report,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "as above")]
struct Shares {
    client_core: f64,
    foreign: f64,
    steal: f64,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "as above")]
struct Report {
    weir: Own,
    aggregate: Aggregate,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "as above")]
struct Own {
    started_ms: f64,
    ended_ms: f64,
    response: Response,
    generator: Generator,
    incomplete: Vec<String>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "as above")]
struct Response {
    count: u64,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "as above")]
struct Generator {
    worker_cpu: Vec<f64>,
    limits: Vec<String>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "as above")]
struct Aggregate {
    counters: BTreeMap<String, f64>,
}

/// A block that was run.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Its pair, from 0.
    pub pair: usize,
    /// The arm that ran.
    pub arm: ComparedSide,
    /// The number of this try, from 0.
    pub attempt: u32,
    /// The time of the measurement, ms since 1970.
    pub started_ms: u64,
    /// Requests sent, or the messages of the script's engine.
    pub requests: u64,
    /// Requests that failed, by name.
    pub errors: BTreeMap<String, u64>,
    /// Figures by the keys of [`METRICS`]. A figure that needs more requests is absent.
    pub values: BTreeMap<String, f64>,
    /// Keys of the figures that are lower bounds: so many requests were never answered that the quantile lies among
    /// them.
    pub censored: Vec<String>,
    /// Answers a second in each window.
    pub strip: Vec<f64>,
    /// The mean response, ms.
    pub mean_ms: Option<f64>,
    /// Why the block is not usable, a sentence each.
    pub spoiled: Vec<String>,
    /// Cautions for its use.
    pub cautions: Vec<String>,
    /// The same sentences in every language, as far as [`Block::spoil`] and [`Block::caution`] added them.
    pub said: Reasons,
    /// The resource use of all processes, from the keeper.
    pub usage: Value,
    /// How the load generator kept up: its busiest thread as a part of a core, and the delay of arrivals.
    pub generator: Value,
}

/// The sentences of [`Block::spoiled`] and [`Block::cautions`] in every language, in the same order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasons {
    spoiled: Vec<Said>,
    cautions: Vec<Said>,
}

/// The sentences in every language; a sentence without a stored text stays English.
fn all_said(english: &[String], said: &[Said]) -> Vec<Said> {
    let one = |(at, english): (usize, &String)| {
        let said = said.get(at).filter(|said| said.en() == english);
        said.map_or_else(|| Said::from(english), Said::clone)
    };
    english.iter().enumerate().map(one).collect()
}

impl Block {
    /// Adds a reason why the block is not usable.
    pub fn spoil(&mut self, why: Said) {
        self.spoiled.push(why.en().to_owned());
        self.said.spoiled.push(why);
    }

    /// Adds a caution for its use.
    pub fn caution(&mut self, what: Said) {
        self.cautions.push(what.en().to_owned());
        self.said.cautions.push(what);
    }

    /// Why the block is not usable, in every language.
    pub fn why_spoiled(&self) -> Vec<Said> {
        all_said(&self.spoiled, &self.said.spoiled)
    }

    /// The cautions for its use, in every language.
    pub fn said_cautions(&self) -> Vec<Said> {
        all_said(&self.cautions, &self.said.cautions)
    }

    /// Makes a block from a keeper's answer. An answer that cannot be read spoils the block, with the error as the
    /// reason.
    pub fn of(answer: &Value, pair: usize, arm: ComparedSide, attempt: u32, asked: BlockSettings) -> Block {
        let mut block = Block::imported(answer, pair, arm, attempt, asked);
        if let Err(error) = Answer::deserialize(answer) {
            let why = say!(ANSWER_UNREADABLE, error.to_string());
            block.spoiled.insert(0, why.en().to_owned());
            block.said.spoiled.insert(0, why);
        }
        block
    }

    /// Makes a block from a load that ran elsewhere, without the keeper's figures. A missing figure is not judged.
    pub fn imported(answer: &Value, pair: usize, arm: ComparedSide, attempt: u32, asked: BlockSettings) -> Block {
        let (report, usage) = (&answer["load"], &answer["usage"]);
        let (weir, counters) = (&report["weir"], &report["aggregate"]["counters"]);
        let count = |name: &str| counters[name].as_u64().unwrap_or(0);
        let sent = ["http.requests", "websocket.messages_sent", "socketio.emit"].map(count);
        let requests = sum(&sent);
        let errors = errors(counters);
        let mut block = Block {
            pair,
            arm,
            attempt,
            started_ms: weir["started_ms"].as_u64().unwrap_or(0),
            requests,
            errors,
            values: BTreeMap::new(),
            censored: Vec::new(),
            strip: Vec::new(),
            mean_ms: weir["response"]["mean"].as_f64(),
            spoiled: Vec::new(),
            cautions: Vec::new(),
            said: Reasons::default(),
            usage: usage.clone(),
            generator: json!({
                "cpu": numbers(&weir["generator"]["worker_cpu"]).into_iter().reduce(f64::max),
                "lag_p99_ms": weir["generator"]["lag_p99_ms"],
            }),
        };
        block.measure(weir, usage, asked);
        if let Some(series) = Series::of(report) {
            block.strip = thinned(&series.throughput);
            if asked.is_steady {
                let open = Series::from(report, asked.opening_s).unwrap_or_default();
                block.note(series::unsteady(&open), !asked.is_noisy);
            }
        }
        block.gate(answer, asked);
        block
    }

    fn measure(&mut self, weir: &Value, usage: &Value, asked: BlockSettings) {
        let answers = weir["response"]["count"].as_u64().unwrap_or(0);
        let seconds =
            weir["ended_ms"].as_f64().zip(weir["started_ms"].as_f64()).map_or(0.0, |(to, from)| (to - from) / 1000.0);
        // A request without an answer has no latency. It would be longer than any time that the client waited.
        let unanswered = self.unanswered().min(self.requests.saturating_sub(answers));
        for metric in METRICS {
            let value = match metric.key {
                "throughput" => Some(answers as f64 / seconds),
                "errors" => Some(self.failed() as f64 / self.requests.max(1) as f64),
                "cpu" => usage["edge_cpu_s"].as_f64().map(|cpu| cpu * 1e6 / answers as f64),
                "app_cpu" => application_cpu(usage, asked).map(|cpu| cpu * 1e6 / answers as f64),
                key if unanswered == 0 => weir["response"][key].as_f64(),
                key => self.censored_quantile(key, answers, unanswered, weir, asked),
            };
            let is_known = |value: &f64| value.is_finite() && (*value > 0.0 || metric.scale == Scale::Share);
            if let Some(value) = value.filter(|value| is_known(value) && answers + unanswered >= metric.requests_min) {
                self.values.insert(metric.key.to_owned(), value);
            }
        }
    }

    /// A quantile over all requests if some were never answered: from the answers, or else the time that the client
    /// waited, as a lower bound. The mean is a lower bound too.
    fn censored_quantile(
        &mut self,
        key: &str,
        answers: u64,
        unanswered: u64,
        weir: &Value,
        asked: BlockSettings,
    ) -> Option<f64> {
        // A script may set its own timeout. Then the longest answer is the only known waiting time.
        let is_default = asked.is_steady || asked.is_search;
        let waited = if is_default { Some(TIMEOUT.as_secs_f64() * 1000.0) } else { weir["response"]["max"].as_f64() };
        let waited = waited.filter(|ms| *ms > 0.0);
        if key == metric::SMALL.key {
            self.censored.push(key.to_owned());
            let answered = weir["response"]["mean"].as_f64().unwrap_or(0.0) * answers as f64;
            return waited.map(|ms| (answered + ms * unanswered as f64) / (answers + unanswered).max(1) as f64);
        }
        let part = key.strip_prefix('p')?.parse::<f64>().ok()? / 100.0;
        let of_answers = part * (answers + unanswered) as f64 / answers.max(1) as f64;
        let answered = weir["response"]["hdr_ns"].as_str().and_then(Hdr::decode);
        if of_answers <= 1.0 {
            let exact = answered.map(|hdr| hdr.quantile(of_answers).as_secs_f64() * 1000.0);
            return exact.or_else(|| weir["response"][key].as_f64());
        }
        self.censored.push(key.to_owned());
        waited
    }

    /// Requests that failed without an answer.
    fn unanswered(&self) -> u64 {
        let is_status = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
        // These requests were answered, but not with the expected answer.
        let is_judgement = |name: &str| name.starts_with("Failed capture or match") || name.contains("Expectation");
        let without = self.errors.iter().filter(|(name, _)| !is_status(name) && !is_judgement(name));
        sum(without.map(|(_, count)| count))
    }

    /// Number of failed requests.
    pub fn failed(&self) -> u64 {
        sum(self.errors.values()).min(self.requests)
    }

    /// Checks whether the block is usable: the load generator kept up, there was no other work, and the block was
    /// warm and steady.
    fn gate(&mut self, answer: &Value, asked: BlockSettings) {
        let (report, usage) = (&answer["load"], &answer["usage"]);
        let (weir, generator) = (&report["weir"], &report["weir"]["generator"]);
        let busiest = numbers(&generator["worker_cpu"]).into_iter().fold(0.0, f64::max);
        if busiest >= CLIENT_CPU_MAX {
            self.spoil(say!(SATURATED, format!("{:.0}", busiest * 100.0)));
        } else {
            // The load generator's own sentence is in English. Its figures are the same in every language.
            let lag = generator["lag_p99_ms"].as_f64().map_or("?".to_owned(), |lag| format!("{lag:.1}"));
            // A noisy machine makes the load late. A caution says how late it was.
            for limit in texts(&generator["limits"]).into_iter().filter(|limit| !(asked.is_noisy && is_lateness(limit)))
            {
                self.spoil(say!(LOAD_LIMIT, limit, format!("{:.0}", busiest * 100.0), &lag));
            }
        }
        let core = usage["client_core"].as_f64().unwrap_or(0.0);
        for name in LOCAL_ERRORS {
            if self.errors.keys().any(|known| known.ends_with(name)) {
                self.spoil(say!(RAN_OUT, name));
            }
        }
        // Of a few hundred arrivals, two or three may be late by chance. An older report has one figure alone.
        let lag = ["lag_p99_least_ms", "lag_p99_ms"].iter().find_map(|name| generator[name].as_f64());
        let late = (lag, weir["response"]["p50"].as_f64().unwrap_or(0.0));
        let mut others = Vec::new();
        if core >= CLIENT_CORE_MAX && busiest < CLIENT_CPU_MAX {
            others.push(say!(CORE_BUSY, format!("{:.0}", core * 100.0)));
        }
        if let (Some(lag), median) = late
            && lag > LAG_MAX_MS.max(LAG_PART_MAX * median)
            && !asked.has_users
        {
            others.push(say!(LATE, format!("{lag:.1}")));
        }
        let shares = [("foreign", FOREIGN_MAX, crate::texts::FOREIGN), ("steal", STEAL_MAX, crate::texts::STEAL)];
        for (key, most, what) in shares {
            let share = usage[key].as_f64().unwrap_or(0.0);
            if share > most {
                others.push(what.with(&[share, most].map(|part| Said::from(format!("{:.0}", part * 100.0)))));
            }
        }
        for (host, link) in usage["links"].as_object().into_iter().flatten() {
            let full: u64 = ["to", "from"].iter().filter_map(|way| link[way]["full"].as_u64()).sum();
            if full > 0 {
                others.push(say!(LINK_DROPPED, host, full));
            }
        }
        if answer["warm"]["is_warm"] == false {
            let rounds = answer["warm"]["rounds"].as_u64().unwrap_or(0);
            others.push(say!(NOT_WARM, rounds));
        }
        self.note(others, !asked.is_noisy);
        let incomplete = texts(&weir["incomplete"]).into_iter().map(|why| say!(INCOMPLETE, why)).collect();
        self.note(incomplete, !asked.is_search);
        if self.values.is_empty() {
            self.spoil(say!(TOO_FEW_TO_SAY, self.requests));
        }
    }

    /// Adds sentences as reasons why the block is not usable, or as cautions.
    fn note(&mut self, all: Vec<Said>, is_spoiled: bool) {
        all.into_iter().for_each(|one| if is_spoiled { self.spoil(one) } else { self.caution(one) });
    }

    /// The block, as a run stores it.
    pub fn to_json(&self) -> Value {
        json!({
            "pair": self.pair,
            "arm": self.arm.letter().to_string(),
            "attempt": self.attempt,
            "started_ms": self.started_ms,
            "requests": self.requests,
            "errors": self.errors,
            "values": self.values,
            "censored": self.censored,
            "strip": self.strip.iter().map(|value| value.round()).collect::<Vec<_>>(),
            "spoiled": self.spoiled,
            "cautions": self.cautions,
            "spoiled_said": self.said.spoiled,
            "cautions_said": self.said.cautions,
            "usage": self.usage,
            "generator": self.generator,
        })
    }
}

/// CPU seconds of the user's application, with its children.
fn application_cpu(usage: &Value, asked: BlockSettings) -> Option<f64> {
    usage["processes"][APPLICATION].as_f64().filter(|_| asked.has_application)
}

/// Failures by name: requests that the client could not finish, and answers with status 500 or higher.
fn errors(counters: &Value) -> BTreeMap<String, u64> {
    let named = |(name, count): (&String, &Value)| {
        let name = name
            .strip_prefix("errors.")
            .or_else(|| name.strip_prefix("http.codes.").filter(|code| code.starts_with('5')))?;
        count.as_u64().filter(|count| *count > 0).map(|count| (name.to_owned(), count))
    };
    counters.as_object().into_iter().flatten().filter_map(named).collect()
}

/// Adds up counts, which may come from a file that someone else wrote. An overflow gives the largest number.
pub(crate) fn sum<'c>(counts: impl IntoIterator<Item = &'c u64>) -> u64 {
    counts.into_iter().fold(0, |sum, count| sum.saturating_add(*count))
}

pub(crate) fn thinned(values: &[f64]) -> Vec<f64> {
    let step = values.len().div_ceil(STRIP_MAX).max(1);
    values.chunks(step).map(|chunk| chunk.iter().sum::<f64>() / chunk.len() as f64).collect()
}

fn numbers(json: &Value) -> Vec<f64> {
    json.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

fn texts(json: &Value) -> Vec<String> {
    json.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Whether the load generator says that it was late, and not that it was full.
fn is_lateness(limit: &str) -> bool {
    let texts = [weir_load::texts::LATE_HUNDREDTH, weir_load::texts::LATE_FEW];
    texts.iter().filter_map(|text| text.en.split('{').next()).any(|begin| limit.starts_with(begin))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A block without figures.
    pub(crate) fn empty() -> Block {
        Block {
            pair: 0,
            arm: ComparedSide::Before,
            attempt: 0,
            started_ms: 0,
            requests: 0,
            errors: BTreeMap::new(),
            values: BTreeMap::new(),
            censored: Vec::new(),
            strip: Vec::new(),
            mean_ms: None,
            spoiled: Vec::new(),
            cautions: Vec::new(),
            said: Reasons::default(),
            usage: Value::Null,
            generator: Value::Null,
        }
    }

    fn answer(change: fn(&mut Value)) -> Value {
        let mut answer = json!({
            "warm": {"rounds": 1, "is_warm": true},
            "usage": {"edge_cpu_s": 1.5, "foreign": 0.01, "steal": 0.0, "client_core": 0.4, "seconds": 10.0},
            "load": {
                "aggregate": {"counters": {"http.requests": 10_000, "http.codes.200": 9_900, "http.codes.502": 90, "errors.ETIMEDOUT": 10}},
                "weir": {
                    "started_ms": 1_000_000, "ended_ms": 1_010_000, "incomplete": [],
                    "response": {"count": 9_990, "p50": 1.0, "p95": 2.0, "p99": 3.0},
                    "generator": {"worker_cpu": [0.3], "limits": [], "lag_p99_ms": 0.2},
                    "series": null,
                },
            },
        });
        change(&mut answer);
        answer
    }

    fn block(change: fn(&mut Value)) -> Block {
        Block::of(
            &answer(change),
            0,
            ComparedSide::After,
            0,
            BlockSettings { is_steady: true, is_noisy: false, is_search: false, ..BlockSettings::default() },
        )
    }

    #[test]
    fn an_answer_with_another_name_for_something_is_not_nothing_used() {
        for (path, name) in [
            ("/usage", "foreign"),
            ("/usage", "steal"),
            ("/usage", "client_core"),
            ("/load/weir", "response"),
            ("/load/weir/response", "count"),
            ("/load/weir/generator", "worker_cpu"),
            ("/load/weir/generator", "limits"),
            ("/load/weir", "incomplete"),
            ("/load/aggregate", "counters"),
        ] {
            let mut answer = answer(|_| {});
            let members = answer.pointer_mut(path).and_then(Value::as_object_mut).unwrap();
            let value = members.remove(name).unwrap();
            members.insert(format!("{name}_renamed"), value);
            let asked = BlockSettings { is_steady: true, is_noisy: true, is_search: false, ..BlockSettings::default() };
            let said = Block::of(&answer, 0, ComparedSide::After, 0, asked).spoiled;
            assert!(said[0].contains("cannot read") && said[0].contains(name), "{name}: {said:?}");
        }
    }

    #[test]
    fn figures_of_a_block() {
        let block = block(|_| {});
        assert_eq!(block.spoiled, Vec::<String>::new());
        assert_eq!((block.values.get("throughput"), block.values.get("p95")), (Some(&999.0), Some(&2.0)));
        assert_eq!(
            block.values.get("p99"),
            Some(&3.0),
            "of 10 000 requests, ten without an answer, a hundred are beyond"
        );
        let fewer = self::block(|answer| answer["load"]["weir"]["response"]["count"] = json!(9_980));
        assert_eq!(fewer.values.get("p99"), None, "9 990 requests have no hundred beyond p99");
        assert!((block.values["errors"] - 0.01).abs() < 1e-12 && (block.values["cpu"] - 150.15).abs() < 0.1);
        assert_eq!(block.to_json()["generator"], json!({"cpu": 0.3, "lag_p99_ms": 0.2}));
        assert_eq!(block.errors.keys().collect::<Vec<_>>(), ["502", "ETIMEDOUT"]);
    }

    #[test]
    fn what_spoils_a_block_is_named() {
        type Spoil = (fn(&mut Value), &'static str);
        let table: &[Spoil] = &[
            (
                |a| a["load"]["weir"]["generator"]["worker_cpu"] = json!([0.1, 0.97]),
                "load generator saturated (core 97 %)",
            ),
            (|a| a["usage"]["client_core"] = json!(0.99), "the load generator's CPU was 99 % busy"),
            (|a| a["usage"]["foreign"] = json!(0.2), "other work used 20 % of the CPUs"),
            (|a| a["usage"]["steal"] = json!(0.05), "the hypervisor took 5 %"),
            (|a| a["load"]["weir"]["generator"]["lag_p99_ms"] = json!(4.0), "the load generator was late"),
            (
                |a| a["load"]["aggregate"]["counters"]["errors.EADDRNOTAVAIL"] = json!(3),
                "the load generator ran out of a resource: EADDRNOTAVAIL",
            ),
            (|a| a["warm"] = json!({"rounds": 3, "is_warm": false}), "not warmed up after 3 rounds"),
            (|a| a["load"]["weir"]["incomplete"] = json!(["stopped"]), "stopped"),
            (|a| a["load"]["weir"]["generator"]["limits"] = json!(["no ports"]), "load generator: no ports"),
            (|a| a["load"]["weir"]["response"]["count"] = json!(3), "too few"),
        ];
        for (change, words) in table {
            let block = block(*change);
            assert!(block.spoiled.iter().any(|why| why.contains(words)), "{words}: {:?}", block.spoiled);
        }
    }

    /// A request that was never answered waited longer than every answered one. Without it, an outage would look fast.
    #[test]
    fn a_quantile_counts_those_who_were_never_answered() {
        let of = |timeouts: u64| {
            let mut answer = answer(|_| {});
            answer["load"]["aggregate"]["counters"] = json!({"http.requests": 10_000, "errors.ETIMEDOUT": timeouts});
            answer["load"]["weir"]["response"]["count"] = json!(10_000 - timeouts);
            let mut hdr = Hdr::default();
            (0..10_000 - timeouts).for_each(|at| hdr.add(std::time::Duration::from_micros(at)));
            answer["load"]["weir"]["response"]["hdr_ns"] = json!(hdr.encoded());
            Block::of(&answer, 0, ComparedSide::After, 0, BlockSettings { is_steady: true, ..BlockSettings::default() })
        };
        let few = of(100);
        assert!((few.values["p95"] - 9.5).abs() < 0.1 && few.censored == ["mean"], "{:?}", few.values);
        let many = of(800);
        assert_eq!(
            (many.values["p95"], &many.censored[..]),
            (10_000.0, &["mean", "p95", "p99"].map(str::to_owned)[..])
        );
        assert!((many.values["p50"] - 5.0).abs() < 0.1, "{:?}", many.values);
        assert_eq!(of(10_000).values["p50"], 10_000.0);
    }

    #[test]
    fn users_that_begin_late_change_nothing() {
        let of = |has_users| {
            let late = answer(|a| a["load"]["weir"]["generator"]["lag_p99_ms"] = json!(4.0));
            let asked = BlockSettings { is_search: true, has_users, ..BlockSettings::default() };
            Block::of(&late, 0, ComparedSide::Before, 0, asked).spoiled
        };
        assert_eq!((of(true).len(), of(false).len()), (0, 1));
    }

    #[test]
    fn a_noisy_machine_may_be_asked_for_and_is_said() {
        let noisy = BlockSettings { is_steady: true, is_noisy: true, is_search: false, ..BlockSettings::default() };
        let block = Block::of(&answer(|a| a["usage"]["foreign"] = json!(0.2)), 0, ComparedSide::Before, 0, noisy);
        assert_eq!((block.spoiled.len(), block.cautions.len()), (0, 1));
        // The generator of a script calls its own lateness a limit.
        let late = |a: &mut Value| {
            a["load"]["weir"]["generator"]["limits"] = json!(["one arrival in a hundred began 15.7 ms late or more"]);
            a["load"]["weir"]["generator"]["lag_p99_ms"] = json!(15.7);
        };
        let block = Block::of(&answer(late), 0, ComparedSide::Before, 0, noisy);
        assert_eq!((block.spoiled.len(), block.cautions.len()), (0, 1));
        let quiet = BlockSettings { is_noisy: false, ..noisy };
        assert_eq!(Block::of(&answer(late), 0, ComparedSide::Before, 0, quiet).spoiled.len(), 2);
        let full = |a: &mut Value| a["load"]["weir"]["generator"]["worker_cpu"] = json!([0.97]);
        assert_eq!(
            Block::of(&answer(full), 0, ComparedSide::Before, 0, noisy).spoiled.len(),
            1,
            "its own limit is never allowed"
        );
    }
}
