//! Prints a made-up run in each kind of output, for viewing: `report html|json|console`, or `report html FILE.json`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::time::Duration;

use weir_load::output::console::Console;
use weir_load::output::{PhaseFact, RunFacts, SelfCheck, honest, html, json};
use weir_load::record::{Merger, Recorder, RunResults};
use weir_meter::Step;
use weir_words::Language;

const START_MS: u64 = 1_795_186_842_300;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (outcome, facts) = made_up();
    let what = arguments.first().map(String::as_str);
    match (what, arguments.get(1)) {
        (Some("html"), Some(file)) => {
            let text = std::fs::read_to_string(file).expect("a readable report");
            println!("{}", html::render(&serde_json::from_str(&text).expect("a report"), Language::English));
        }
        (Some("html"), None) => println!("{}", html::render(&json::document(&outcome, &facts), Language::English)),
        (Some("json"), _) => println!("{}", json::write(&outcome, &facts)),
        _ => console(&outcome, &facts),
    }
}

fn console(outcome: &RunResults, facts: &RunFacts) {
    let console = Console { is_colour: std::env::var_os("NO_COLOR").is_none(), ..Console::default() };
    print!("{}", honest::first_line(&facts.targets, Language::English));
    for period in &outcome.periods {
        print!("{}", console.period(period));
    }
    print!("{}", honest::verdict_first(&facts.self_check, &console));
    print!("{}", console.summary(&outcome.whole, Some(facts.started_ms), facts.ended_ms));
    print!("{}", honest::block(outcome, facts, &console));
}

/// A warm-up, a ramp, a target that freezes for three seconds, then errors.
fn made_up() -> (RunResults, RunFacts) {
    let recorder = Recorder::at(START_MS);
    let mut noise = 12_345_u64;
    let mut random = || {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (noise >> 33) as f64 / f64::from(1_u32 << 31)
    };
    for tick in 0..900_u64 {
        recorder.set_ms(START_MS + tick * 100);
        let second = tick / 10;
        let arriving = if second < 15 { 2 } else { 2 + (second.min(60) - 15) / 4 };
        let is_frozen = (50..53).contains(&second);
        for n in 0..arriving {
            recorder.count(recorder.metric("vusers.created_by_name.browse"), 1);
            recorder.count(recorder.metric("vusers.created"), 1);
            recorder.lag(Duration::from_micros((random() * 200.0) as u64));
            for (path, weight) in [("/login", 1.0), ("/item?id={{ id }} (item)", 2.5), ("/cart", 1.6)] {
                let service_ms = weight * (1.0 - random()).powf(-0.35) * 1.4;
                let waited_ms =
                    if is_frozen { f64::from(53 - second as u32) * 1000.0 - random() * 300.0 } else { random() * 0.2 };
                exchange(
                    &recorder,
                    path,
                    service_ms,
                    waited_ms,
                    if second > 53 && random() < 0.03 { 503 } else { 200 },
                );
            }
            let is_lost = is_frozen && n == 0;
            recorder.count(recorder.metric("vusers.failed"), u64::from(is_lost));
            if is_lost {
                recorder.count(recorder.metric("errors.ETIMEDOUT"), 1);
                recorder.failure(Step::AwaitHead, "ETIMEDOUT");
            } else {
                recorder.count(recorder.metric("vusers.completed"), 1);
                recorder.sample(recorder.metric("vusers.session_length"), 12.0 + random() * 9.0);
            }
            if second > 53 && random() < 0.01 {
                recorder.count(recorder.metric("errors.ECONNRESET"), 1);
                recorder.failure(Step::ReadResponse, "ECONNRESET");
            }
        }
    }
    let mut merger = Merger::default();
    merger.add(recorder.take(u64::MAX));
    merger.close(u64::MAX);
    (merger.outcome(), facts())
}

fn exchange(recorder: &Recorder, path: &str, service_ms: f64, waited_ms: f64, status: u16) {
    recorder.count(recorder.metric("http.requests"), 1);
    recorder.rate(recorder.metric("http.request_rate"));
    recorder.count(recorder.metric(&format!("http.codes.{status}")), 1);
    recorder.count(recorder.metric("http.responses"), 1);
    recorder.sample(recorder.metric("http.response_time"), service_ms.floor());
    recorder.sample(recorder.metric(&format!("http.response_time.{}xx", status / 100)), service_ms.floor());
    recorder.count(recorder.metric(&format!("plugins.metrics-by-endpoint.{path}.codes.{status}")), 1);
    recorder.sample(recorder.metric(&format!("plugins.metrics-by-endpoint.response_time.{path}")), service_ms.floor());
    let service = Duration::from_secs_f64(service_ms / 1000.0);
    recorder.latency(service + Duration::from_secs_f64(waited_ms / 1000.0), service);
}

fn facts() -> RunFacts {
    let phase = |name: &str, shown: &str, seconds: u64, arrivals: &str| PhaseFact {
        name: name.to_owned(),
        shown: shown.to_owned(),
        duration_ms: seconds * 1000,
        arrivals: arrivals.into(),
    };
    RunFacts {
        targets: vec!["http://127.0.0.1:8080".to_owned()],
        script: "shop.yml".to_owned(),
        script_id: "6f1d0c2b8a914e57".to_owned(),
        test_run_id: "t658q_95f8nmmkw5pf5cqqa3zxkccxkaewf_4rq9".to_owned(),
        phases: vec![
            phase("warm up", "15s", 15, "20/s"),
            phase("ramp", "45s", 45, "20/s to 130/s"),
            phase("hold", "30s", 30, "130/s"),
        ],
        started_ms: START_MS,
        ended_ms: START_MS + 90_000,
        environment: vec![
            ("weir".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ("host".to_owned(), "bench-1".to_owned()),
            ("cpus".to_owned(), "2".to_owned()),
        ],
        self_check: SelfCheck {
            worker_cpu: vec![0.31, 0.28],
            machine_cpu: Some(0.44),
            lag_p99_ms: Some(0.21),
            lag_p99_least_ms: Some(0.19),
            ports: Some((412, 28_232)),
            descriptors: Some((430, 524_288)),
            ..SelfCheck::default()
        },
        ..RunFacts::default()
    }
}
