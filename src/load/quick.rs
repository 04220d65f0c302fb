//! `weir load URL`: one request again and again, as wrk, ab and oha do it.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use weir_conf::said::Text;
use weir_load::output::console::Console;
use weir_load::output::facts::fingerprint;
use weir_load::output::{Facts, PhaseFact, SelfCheck};
use weir_load::plan::Phase;
use weir_load::quick::{self, Quick, Rate};
use weir_load::record::{Hdr, Merger, Period};
use weir_load::run::{self, Progress, Watch};
use weir_load::{Report, Url, duration};
use weir_net::process::terminal_size;

use super::flags::RunArgs;
use super::script::{STOPPED, environment, stop_on_signal, test_run_id};
use super::teller::{Eyes, now_ms};
use super::view::has_colours;
use super::{exit, report as files, usage};

const CONNECTIONS: usize = 64;

/// The hint after an error of the target's certificate.
const INSECURE_HINT: Text = Text {
    name: "LOAD_INSECURE_HINT",
    en: "The certificate of the target was not accepted. To load it all the same, add -k (--insecure).",
    ko: "대상의 인증서를 검증하지 못했습니다. 그래도 부하를 보내려면 -k(--insecure)를 추가하세요.",
};

/// Runs the load, prints the result, and writes the reports from the flags.
pub fn run(url: &str, args: &RunArgs) -> u8 {
    let made = of(url, args).and_then(|quick| files::has_place(args).map(|()| quick));
    let quick = match made {
        Ok(quick) => quick,
        Err(message) => return usage(&message),
    };
    match start(&quick, args) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("weir load: {message}");
            exit::FAILED
        }
    }
}

fn start(quick: &Quick, args: &RunArgs) -> Result<u8, String> {
    let mut teller =
        Teller { eyes: Eyes::new(args)?, phase: String::new(), started_ms: now_ms(), connections: quick.connections };
    let channel = args.channel();
    stop_on_signal(channel.stop())?;
    if !args.quiet {
        println!("Load goes to: {}", shown(quick));
        println!("{}", plan(quick));
    }
    // If stdout is closed, the summary finds out.
    let _ = std::io::stdout().flush();
    let (report, outcome) = quick::watched(quick, channel, &mut teller)?;
    let facts = facts(quick, args, &report, &outcome, &mut teller);
    if args.quiet {
        println!("{}", one_line(&report));
    } else {
        print!("{}", summary(quick, &report, &facts));
    }
    files::files(args, &outcome.merger.outcome(), &facts, &console(args))?;
    let is_limited = !facts.self_check.limits().is_empty();
    Ok(match () {
        () if outcome.is_interrupted => exit::INTERRUPTED,
        () if is_limited && args.fail_if_limited => exit::LIMITED,
        () if report.requests == 0 => exit::FAILED,
        () => 0,
    })
}

/// Shows the progress on a terminal and serves the metrics to scrapers; this kind of load has no log lines.
struct Teller {
    eyes: Eyes,
    phase: String,
    started_ms: u64,
    connections: usize,
}

impl Watch for Teller {
    fn phase_started(&mut self, _: usize, phase: &Phase) {
        self.phase.clone_from(&phase.name);
        self.started_ms = now_ms();
    }

    fn phase_completed(&mut self, _: usize, _: &Phase) {}

    fn line(&mut self, _: &str) {}

    fn period(&mut self, _: &Period) {}

    fn late(&mut self, _: u64) {}

    fn progress(&mut self, progress: &Progress, merger: &Merger) {
        self.eyes.look(progress, merger, self.phase.clone(), self.connections as u64);
    }
}

fn console(args: &RunArgs) -> Console {
    let stdout = std::io::stdout();
    Console {
        columns: terminal_size(&stdout).map(|(columns, _)| columns),
        is_colour: stdout.is_terminal() && has_colours(),
        is_quiet: args.quiet,
        ..Console::default()
    }
}

fn facts(quick: &Quick, args: &RunArgs, report: &Report, outcome: &run::Outcome, teller: &mut Teller) -> Facts {
    let target = Url::parse(&quick.url).map(|url| format!("{}://{}:{}", url.scheme.name(), url.host, url.port));
    let mut parts = vec![quick.method.as_bytes(), quick.url.as_bytes(), &quick.body];
    parts.extend(quick.headers.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]));
    Facts {
        targets: target.into_iter().collect(),
        script: format!("weir load {}", shown(quick)),
        script_id: fingerprint(&parts),
        test_run_id: test_run_id(),
        phases: vec![PhaseFact {
            name: teller.phase.clone(),
            shown: format!("{}s", quick.duration.as_secs_f64()),
            duration_ms: u64::try_from(quick.duration.as_millis()).unwrap_or(u64::MAX),
            arrivals: arrivals(quick),
        }],
        started_ms: teller.started_ms,
        ended_ms: now_ms(),
        environment: environment(args, quick.threads, None),
        self_check: SelfCheck {
            // This figure is exact, even for the shortest run.
            worker_cpu: report.busy.clone(),
            // A request may also wait for a free connection. So a late or missing request does not prove that the
            // generator was slow.
            lag_p99_ms: None,
            lag_p99_least_ms: None,
            lag_max_ms: None,
            dropped: 0,
            ..teller.eyes.fared().finish(outcome.merger.own())
        },
        checks: Vec::new(),
        incomplete: incomplete(quick, report, outcome),
    }
}

/// Why the figures do not cover the whole requested load, one sentence each.
fn incomplete(quick: &Quick, report: &Report, outcome: &run::Outcome) -> Vec<String> {
    let dropped = (report.dropped > 0).then(|| {
        format!(
            "{} requests were due, but weir never sent them: all {} were waiting for answers (raise {})",
            report.dropped,
            connections(quick),
            if quick.streams.is_some() { "-m or -c" } else { "-c" }
        )
    });
    outcome.is_interrupted.then(|| STOPPED.to_owned()).into_iter().chain(dropped).collect()
}

fn of(url: &str, args: &RunArgs) -> Result<Quick, String> {
    let number =
        |text: &String| text.parse::<usize>().map_err(|_| format!("-c {text}: write the number of connections"));
    let connections = args.config.as_ref().map(number).transpose()?.unwrap_or(CONNECTIONS);
    let threads = args.workers.unwrap_or_else(weir_meter::host::effective_cpus).min(connections);
    Ok(Quick {
        url: url.to_owned(),
        method: args.method.clone().unwrap_or_else(|| if args.body.is_some() { "POST" } else { "GET" }.to_owned()),
        headers: args.header.iter().map(|field| header(field)).collect::<Result<_, _>>()?,
        body: args.body.as_deref().map(body).transpose()?.unwrap_or_default(),
        connections,
        threads,
        duration: time(&args.duration, "-d")?,
        requests_max: args.requests,
        timeout: time(&args.timeout, "--timeout")?,
        insecure: args.insecure,
        streams: args.http2.then_some(args.streams.unwrap_or(1)),
        rate: args.rate.map(|rate| if args.poisson { Rate::Poisson(rate) } else { Rate::Constant(rate) }),
    })
}

/// The URL without its password.
fn shown(quick: &Quick) -> String {
    Url::parse(&quick.url).map_or_else(|_| quick.url.clone(), |url| url.shown())
}

/// `64 connections`, or the connections with their streams.
fn connections(quick: &Quick) -> String {
    match quick.streams {
        None => format!("{} connections", quick.connections),
        Some(1) => format!("{} connections of HTTP/2 with one stream at once", quick.connections),
        Some(streams) => format!("{} connections of HTTP/2 with {streams} streams at once", quick.connections),
    }
}

fn header(field: &str) -> Result<(String, String), String> {
    let (name, value) = field.split_once(':').ok_or_else(|| format!("-H {field}: write \"Name: value\""))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn body(text: &str) -> Result<Vec<u8>, String> {
    match text.strip_prefix('@') {
        Some(path) => std::fs::read(path).map_err(|error| format!("--body {text}: {error}")),
        None => Ok(text.as_bytes().to_vec()),
    }
}

pub(super) fn time(text: &str, flag: &str) -> Result<Duration, String> {
    duration::phase(&text.into())
        .map(|time| time.time)
        .ok_or_else(|| format!("{flag} {text}: write seconds (30), or a number with a unit (30s, 5m)"))
}

/// The number of requests and their schedule, in words.
fn arrivals(quick: &Quick) -> String {
    let how = match quick.rate {
        None => "as fast as the answers come".to_owned(),
        Some(Rate::Constant(rate)) => format!("{rate} a second, evenly spread"),
        Some(Rate::Poisson(rate)) => format!("{rate} a second, at random"),
    };
    let most = quick.requests_max.map_or_else(String::new, |most| format!("at most {most} requests, "));
    format!("{}, {most}{how}", connections(quick))
}

fn plan(quick: &Quick) -> String {
    let Quick { method, threads, duration, rate, .. } = quick;
    let connections = connections(quick);
    let model = match rate {
        None => "as fast as the answers come (closed loop)".to_owned(),
        Some(Rate::Constant(rate)) => format!("{rate} a second, evenly spread (open model)"),
        Some(Rate::Poisson(rate)) => format!("{rate} a second, at random (open model)"),
    };
    let most = quick.requests_max.map_or_else(String::new, |most| format!(", at most {most} requests"));
    let threads = if *threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
    format!("{method}, {connections}, {threads}, {}s{most}, {model}\n", duration.as_secs_f64())
}

fn summary(quick: &Quick, report: &Report, facts: &Facts) -> String {
    let mut lines = Vec::new();
    let limits = facts.self_check.limits();
    if !limits.is_empty() {
        lines.push("The generator was the limit: these figures measure the generator, not the target.".to_owned());
        lines.push(limits.iter().map(|limit| format!("  {limit}\n")).collect());
    }
    if report.requests == 0 {
        lines.push("No request got an answer: there are no latencies to print, and the exit code is 1.".to_owned());
    }
    let seconds = report.elapsed.as_secs_f64();
    let each_second = if seconds > 0.0 { report.received_bytes as f64 / seconds } else { 0.0 };
    lines.push(format!(
        "{} requests in {seconds:.2} s, {:.1} a second, {} received, {} a second",
        report.requests,
        report.rate(),
        bytes(report.received_bytes),
        bytes(each_second as u64)
    ));
    let statuses: Vec<String> = report.statuses.iter().map(|(status, count)| format!("{status}: {count}")).collect();
    if !statuses.is_empty() {
        lines.push(format!("Statuses   {}", statuses.join("   ")));
    }
    lines.push(format!(
        "\n{:<12}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}",
        "Latency, ms", "min", "mean", "sd", "p50", "p90", "p95", "p99", "p99.9", "max"
    ));
    let start = if quick.rate.is_some() {
        "from the intended start"
    } else {
        "from the previous answer, or from the start of the connection"
    };
    lines.push(format!("{}  {start}", row("response", &report.response)));
    lines.push(format!("{}  from the send", row("service", &report.service)));
    lines.push(format!("{}  {} new connections", row("connect", &report.connect), report.connect.count()));
    if quick.rate.is_some() {
        lines.push(format!("{}  how late requests began", row("lag", &report.lag)));
        if report.late > 0 {
            lines.push(format!("{} began late", report.late));
        }
    }
    // Print this line for zero too: otherwise "nothing failed" looks like "failures are not counted".
    lines.push(format!("\n{}", failed(report)));
    let place = Url::parse(&quick.url).map_or_else(|_| quick.url.clone(), |url| url.authority);
    for ((step, name), count) in &report.errors_at {
        lines.push(format!("  {count:>9}  {name}, while {}", step.doing_to(&place)));
    }
    if !quick.insecure && report.errors_at.keys().any(|(_, name)| weir_load::tls::is_about_certificate(name)) {
        lines.push(INSECURE_HINT.say(super::language()).to_owned());
    }
    if !facts.incomplete.is_empty() {
        lines.push(format!("\nIncomplete: {}", facts.incomplete.join("; ")));
    }
    let each = report.cpu.as_secs_f64() * 1e6 / report.requests as f64;
    let each = if report.requests > 0 { format!(", {each:.1} µs of CPU a request") } else { String::new() };
    let verdict = if limits.is_empty() { "ok" } else { "was the limit" };
    lines.push(format!("\nGenerator: {verdict} ({}{each})", facts.self_check.figures()));
    lines.extend(facts.self_check.cautions().into_iter().map(|caution| format!("Caution: {caution}")));
    lines.join("\n") + "\n"
}

/// `0 failed`, with its parts.
fn failed(report: &Report) -> String {
    let other: u64 = report.statuses.iter().filter(|(status, _)| !(200..300).contains(*status)).map(|(_, n)| n).sum();
    let errors: u64 = report.errors_at.values().sum();
    let all = report.errors();
    format!(
        "{all} failed: {errors} errors, {} answers of 400 or more; {other} answers other than 2xx",
        all.saturating_sub(errors)
    )
}

/// The whole summary in one line, for `-q`.
fn one_line(report: &Report) -> String {
    let ms = |quantile| report.response.quantile(quantile).as_secs_f64() * 1e3;
    let latencies = match report.requests {
        0 => "no latencies".to_owned(),
        _ => format!("response p50 {:.3} ms, p95 {:.3} ms, p99 {:.3} ms", ms(0.5), ms(0.95), ms(0.99)),
    };
    let seconds = report.elapsed.as_secs_f64();
    format!(
        "{} requests in {seconds:.2} s, {:.1} a second, {latencies}, {}",
        report.requests,
        report.rate(),
        failed(report)
    )
}

fn row(name: &str, latency: &Hdr) -> String {
    let figures = [
        latency.min(),
        latency.mean(),
        latency.deviation(),
        latency.quantile(0.5),
        latency.quantile(0.9),
        latency.quantile(0.95),
        latency.quantile(0.99),
        latency.quantile(0.999),
        latency.max(),
    ];
    let show = |time: &Duration| match latency.count() {
        0 => format!("{:>9}", "-"),
        _ => format!("{:>9.3}", time.as_secs_f64() * 1e3),
    };
    let figures: String = figures.iter().map(show).collect();
    format!("{name:<12}{figures}")
}

fn bytes(count: u64) -> String {
    match count {
        0..=9_999 => format!("{count} B"),
        10_000..=9_999_999 => format!("{:.1} kB", count as f64 / 1e3),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}
