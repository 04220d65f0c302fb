//! Tests the whole way from the agents' recorders to the controller's report, except the socket.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::json;
use weir_net::clock::precise;

use super::conduct::{Show, heard_tick};
use super::letter::Letter;
use super::member::RunAgent;
use super::serve::Told;
use super::work::WorkReport;
use crate::event::Event;
use crate::record::{Figures, Merger, Recorder, RunResults};

const T: u64 = 1_795_186_840_000;
const AGENTS: usize = 3;
/// Size of the parts of a tick: small, so that each tick is many messages.
const PART_BYTES: usize = 700;

/// Agents and their controller. The line between them loses nothing; the tests of `stream` cover losses.
struct Stage {
    told: Vec<Told>,
    members: Vec<RunAgent>,
    show: Show,
    events: Receiver<Event>,
}

impl Stage {
    fn new() -> Stage {
        let (sender, events) = channel();
        let member = |index: usize| RunAgent::new(format!("id{index}"), format!("agent {index}"), 1, precise());
        Stage {
            told: (0..AGENTS).map(|_| Told::default()).collect(),
            members: (0..AGENTS).map(member).collect(),
            show: Show { start_us: 0, began: precise(), before: Vec::new(), events: sender, shared: Arc::default() },
            events,
        }
    }

    /// An agent sends its counts, and the controller reads the bytes.
    fn tick(&mut self, agent: usize) {
        let member = &mut self.members[agent];
        let letters = self.told[agent].tick(&member.id, PART_BYTES, precise());
        for letter in letters {
            let letter = Letter::decode(&letter.encode()).unwrap();
            if let Some(tick) = member.inbox.take(letter) {
                heard_tick(member, &tick, agent, &self.show);
            }
        }
        assert_eq!(member.notes, [""; 0], "everything could be read");
    }

    /// Merges the controller's events; returns the exit codes among them.
    fn heard(&self, merger: &mut Merger) -> Vec<i32> {
        let mut codes = Vec::new();
        for event in self.events.try_iter() {
            match event {
                Event::Taken { taken, .. } => assert_eq!(merger.add(taken), [0; 0]),
                Event::ExitCode(code) => codes.push(code),
                _ => {}
            }
        }
        codes
    }
}

/// Latencies in ns as of three kinds of server: fast, sometimes slow, frozen for a while. Each is the service time
/// and the wait before it.
fn latencies(count: usize) -> Vec<(u64, u64)> {
    let mut random = fastrand::Rng::with_seed(11);
    let one = |n: usize| match n % 100 {
        97 | 98 => (random.u64(80_000_000..400_000_000), random.u64(..1_000_000)),
        99 => (random.u64(1_000_000_000..3_000_000_000), random.u64(..2_000_000_000)),
        _ => (random.u64(90_000..2_500_000), random.u64(..300_000)),
    };
    (0..count).map(one).collect()
}

fn record(recorder: &Recorder, n: usize, (service, wait): (u64, u64)) {
    recorder.set_ms(T + n as u64 * 10);
    recorder.count(recorder.metric("http.requests"), 1);
    recorder.rate(recorder.metric("http.request_rate"));
    recorder.sample(recorder.metric("http.response_time"), (service / 1_000_000) as f64);
    recorder.latency(Duration::from_nanos(service + wait), Duration::from_nanos(service));
    recorder.lag(Duration::from_nanos(wait / 7));
    if n.is_multiple_of(61) {
        recorder.failure(weir_meter::Step::AwaitHead, "ETIMEDOUT");
    }
}

/// The latencies, recorded by one recorder, and by three agents that send theirs to a controller every second.
fn alone_and_merged(all: &[(u64, u64)]) -> (RunResults, RunResults) {
    let alone = Recorder::at(T);
    let agents: Vec<Recorder> = (0..AGENTS).map(|_| Recorder::at(T)).collect();
    let (mut stage, mut merger) = (Stage::new(), Merger::default());
    for (n, latency) in all.iter().enumerate() {
        record(&alone, n, *latency);
        record(&agents[n % AGENTS], n, *latency);
        // A worker passes its counts on four times a second, an agent sends once a second; not all at the same
        // moment.
        for (index, recorder) in agents.iter().enumerate() {
            if n % 25 == 24 {
                stage.told[index].note(WorkReport::Taken(recorder.take(u64::MAX), T + n as u64 * 10));
            }
            if n % 100 == 33 * index {
                stage.tick(index);
            }
        }
    }
    for (index, recorder) in agents.iter().enumerate() {
        stage.told[index].note(WorkReport::Taken(recorder.take(u64::MAX), u64::MAX));
        stage.told[index].note(WorkReport::Done(json!({"check": {}})));
        stage.tick(index);
    }
    stage.heard(&mut merger);
    merger.close(u64::MAX);
    let mut own = Merger::default();
    own.add(alone.take(u64::MAX));
    own.close(u64::MAX);
    (own.outcome(), merger.outcome())
}

#[test]
fn three_agents_report_what_one_recorder_would() {
    let all = latencies(9_000);
    let (alone, merged) = alone_and_merged(&all);
    // All buckets are equal, and so are all figures.
    assert_eq!(merged.own, alone.own);
    for (ours, theirs) in [
        (&merged.own.response, &alone.own.response),
        (&merged.own.service, &alone.own.service),
        (&merged.own.lag, &alone.own.lag),
    ] {
        let (ours, theirs) = (Figures::of(ours), Figures::of(theirs));
        assert_eq!((ours.count, ours), (9_000, theirs));
    }
    assert_eq!(merged.whole.summaries, alone.whole.summaries);
    assert_eq!((&merged.whole.counters, &merged.whole.rates), (&alone.whole.counters, &alone.whole.rates));
    assert_eq!((merged.periods.len(), &merged.points), (alone.periods.len(), &alone.points));
    for (ours, theirs) in merged.periods.iter().zip(&alone.periods) {
        assert_eq!((ours.response, ours.service, ours.start_ms), (theirs.response, theirs.service, theirs.start_ms));
    }
    // Both are correct, within the three digits of a histogram.
    let mut true_ms: Vec<f64> = all.iter().map(|(service, wait)| (service + wait) as f64 / 1e6).collect();
    true_ms.sort_by(f64::total_cmp);
    let Figures { p50, p95, p99, max, .. } = Figures::of(&merged.own.response);
    for (seen, quantile) in [(p50, 0.5), (p95, 0.95), (p99, 0.99), (max, 1.0)] {
        let at = ((all.len() as f64 * quantile).ceil() as usize).max(1) - 1;
        assert!((seen / true_ms[at] - 1.0).abs() <= 0.001, "{quantile}: {seen} and {}", true_ms[at]);
    }
}

#[test]
fn what_a_processor_wants_of_the_exit_code_arrives_once() {
    let (mut stage, mut merger) = (Stage::new(), Merger::default());
    stage.told[1].note(WorkReport::ExitCode(17));
    (0..AGENTS).for_each(|agent| stage.tick(agent));
    assert_eq!(stage.heard(&mut merger), [17]);
    (0..AGENTS).for_each(|agent| stage.tick(agent));
    assert_eq!(stage.heard(&mut merger), [0; 0]);
}
