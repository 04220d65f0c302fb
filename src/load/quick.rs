//! `weir load URL`: one request again and again, as wrk, ab and oha do it.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use weir_load::output::console::Console;
use weir_load::output::facts::fingerprint;
use weir_load::output::{PhaseFact, RunFacts, SelfCheck};
use weir_load::plan::Phase;
use weir_load::quick::{self, Protocol, QuickRun, Rate, Tuning};
use weir_load::record::{Hdr, Merger, Period};
use weir_load::run::{self, RunProgress, RunWatch};
use weir_load::{Report, Url, texts};
use weir_net::process::terminal_size;
use weir_words::{Language, Said, Text, left, say};

use super::common::{STOPPED, environment, stop_on_signal, test_run_id, time};
use super::exit::{self, usage};
use super::flags::RunArgs;
use super::report as files;
use super::teller::{Eyes, now_ms};
use super::view::has_colours;

const CONNECTIONS: usize = 64;

/// Runs the load, prints the result, and writes the reports from the flags.
pub fn run(url: &str, args: &RunArgs, language: Language) -> u8 {
    let made = of(url, args).and_then(|quick| files::has_place(args).map(|()| quick));
    let quick = match made {
        Ok(quick) => quick,
        Err(message) => return usage(&message, language),
    };
    match start(&quick, args, language) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("weir load: {}", message.say(language));
            exit::FAILED
        }
    }
}

fn start(quick: &QuickRun, args: &RunArgs, language: Language) -> Result<u8, Said> {
    let mut teller = Teller {
        eyes: Eyes::new(args, language)?,
        phase: String::new(),
        started_ms: now_ms(),
        connections: quick.connections,
    };
    let channel = args.channel();
    stop_on_signal(channel.stop())?;
    if !args.quiet {
        println!("{}", say!(texts::LOAD_GOES, shown(quick)).say(language));
        println!("{}\n", plan(quick).say(language));
    }
    // If stdout is closed, the summary finds out.
    let _ = std::io::stdout().flush();
    let (report, outcome) = quick::watched(quick, channel, &mut teller)?;
    let facts = facts(quick, args, &report, &outcome, &mut teller);
    let results = outcome.merger.outcome();
    if args.quiet {
        println!("{}", one_line(&report).say(language));
    } else {
        print!("{}", summary(quick, &report, &results.whole, &facts, language));
    }
    files::files(args, &results, &facts, &console(args, language))?;
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

impl RunWatch for Teller {
    fn phase_started(&mut self, _: usize, phase: &Phase) {
        self.phase.clone_from(&phase.name);
        self.started_ms = now_ms();
    }

    fn phase_completed(&mut self, _: usize, _: &Phase) {}

    fn line(&mut self, _: &str) {}

    fn period(&mut self, _: &Period) {}

    fn late(&mut self, _: u64) {}

    fn progress(&mut self, progress: &RunProgress, merger: &Merger) {
        self.eyes.look(progress, merger, self.phase.clone(), self.connections as u64);
    }
}

fn console(args: &RunArgs, language: Language) -> Console {
    let stdout = std::io::stdout();
    Console {
        columns: terminal_size(&stdout).map(|(columns, _)| columns),
        is_colour: stdout.is_terminal() && has_colours(),
        is_quiet: args.quiet,
        language,
        ..Console::default()
    }
}

fn facts(
    quick: &QuickRun,
    args: &RunArgs,
    report: &Report,
    outcome: &run::RunOutcome,
    teller: &mut Teller,
) -> RunFacts {
    let target = Url::parse(&quick.url).map(|url| format!("{}://{}:{}", url.scheme.name(), url.host, url.port));
    let mut parts = vec![quick.method.as_bytes(), quick.url.as_bytes(), &quick.body];
    parts.extend(quick.headers.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]));
    RunFacts {
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
fn incomplete(quick: &QuickRun, report: &Report, outcome: &run::RunOutcome) -> Vec<Said> {
    let dropped = (report.dropped > 0).then(|| {
        let flag = if quick.streams.is_some() { say!(texts::NEVER_SENT_RAISE) } else { "-c".into() };
        say!(texts::NEVER_SENT, report.dropped, connections(quick), flag)
    });
    outcome.is_interrupted.then(|| STOPPED.with(&[])).into_iter().chain(dropped).collect()
}

fn of(url: &str, args: &RunArgs) -> Result<QuickRun, Said> {
    let number = |text: &String| text.parse::<usize>().map_err(|_| say!(texts::BAD_CONNECTIONS, text));
    let connections = args.config.as_ref().map(number).transpose()?.unwrap_or(CONNECTIONS);
    let threads = args.workers.unwrap_or_else(weir_host::effective_cpus).min(connections);
    Ok(QuickRun {
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
        streams: protocol(args).map(|protocol| (protocol, args.streams.unwrap_or(1))),
        tuning: Tuning {
            exchanges_max: args.per_connection,
            early_data: args.early_data,
            migrate: args.migrate.as_deref().map(|text| time(text, "--migrate")).transpose()?,
        },
        rate: args.rate.map(|rate| if args.poisson { Rate::Poisson(rate) } else { Rate::Constant(rate) }),
    })
}

fn protocol(args: &RunArgs) -> Option<Protocol> {
    match (args.http2, args.http3) {
        (true, _) => Some(Protocol::Http2),
        (_, true) => Some(Protocol::Http3),
        _ => None,
    }
}

/// The URL without its password.
fn shown(quick: &QuickRun) -> String {
    Url::parse(&quick.url).map_or_else(|_| quick.url.clone(), |url| url.shown())
}

/// `64 connections`, or the connections with their streams.
fn connections(quick: &QuickRun) -> Said {
    match quick.streams {
        None => say!(texts::CONNECTIONS, quick.connections),
        Some((protocol, 1)) => say!(texts::CONNECTIONS_OF, quick.connections, protocol.name()),
        Some((protocol, streams)) => {
            say!(texts::CONNECTIONS_OF_STREAMS, quick.connections, protocol.name(), streams)
        }
    }
}

fn header(field: &str) -> Result<(String, String), Said> {
    let (name, value) = field.split_once(':').ok_or_else(|| say!(texts::BAD_HEADER, field))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn body(text: &str) -> Result<Vec<u8>, Said> {
    match text.strip_prefix('@') {
        Some(path) => std::fs::read(path).map_err(|error| say!(texts::BAD_BODY, text, error.to_string())),
        None => Ok(text.as_bytes().to_vec()),
    }
}

/// The number of requests and their schedule, in words.
fn arrivals(quick: &QuickRun) -> Said {
    let mut parts = vec![connections(quick)];
    parts.extend(quick.requests_max.map(|most| say!(texts::AT_MOST, most)));
    parts.push(match quick.rate {
        None => say!(texts::REQUESTS_CLOSED),
        Some(Rate::Constant(rate)) => say!(texts::REQUESTS_EVENLY, rate),
        Some(Rate::Poisson(rate)) => say!(texts::REQUESTS_AT_RANDOM, rate),
    });
    Said::list(&parts, ", ")
}

fn plan(quick: &QuickRun) -> Said {
    let QuickRun { method, threads, duration, .. } = quick;
    let threads = if *threads == 1 { say!(texts::ONE_THREAD) } else { say!(texts::THREADS, *threads) };
    let seconds = say!(texts::SECONDS, duration.as_secs_f64().to_string());
    let mut parts = vec![method.into(), connections(quick), threads, seconds];
    parts.extend(quick.requests_max.map(|most| say!(texts::AT_MOST, most)));
    parts.push(model(quick));
    Said::list(&parts, ", ")
}

/// The schedule of the requests.
fn model(quick: &QuickRun) -> Said {
    match quick.rate {
        None => say!(texts::CLOSED),
        Some(Rate::Constant(rate)) => say!(texts::EVENLY, rate),
        Some(Rate::Poisson(rate)) => say!(texts::AT_RANDOM, rate),
    }
}

fn summary(quick: &QuickRun, report: &Report, whole: &Period, facts: &RunFacts, language: Language) -> String {
    let mut lines = Vec::new();
    let limits = facts.self_check.limits();
    if !limits.is_empty() {
        lines.push(texts::GENERATOR_LIMIT.say(language).to_owned());
        lines.push(limits.iter().map(|limit| format!("  {}\n", limit.say(language))).collect());
    }
    if report.requests == 0 {
        lines.push(texts::NO_REQUEST_ANSWERED.say(language).to_owned());
    }
    let seconds = report.elapsed.as_secs_f64();
    let each_second = if seconds > 0.0 { report.received_bytes as f64 / seconds } else { 0.0 };
    let sum = say!(
        texts::SUMMARY,
        report.requests,
        format!("{seconds:.2}"),
        format!("{:.1}", report.rate()),
        bytes(report.received_bytes),
        bytes(each_second as u64)
    );
    lines.push(sum.say(language).to_owned());
    let statuses: Vec<String> = report.statuses.iter().map(|(status, count)| format!("{status}: {count}")).collect();
    if !statuses.is_empty() {
        lines.push(say!(texts::STATUSES, statuses.join("   ")).say(language).to_owned());
    }
    lines.extend(latencies(quick, report, language));
    if matches!(quick.streams, Some((Protocol::Http3, _))) {
        lines.push(format!("\n{}", quic(whole).say(language)));
        let count = |name: &str| whole.counter(&format!("http3.{name}"));
        if quick.tuning.early_data {
            let early = say!(texts::EARLY_DATA, count("early_data"), count("early_data_accepted"));
            lines.push(early.say(language).to_owned());
        }
        if quick.tuning.migrate.is_some() {
            lines.push(say!(texts::MIGRATIONS, count("migrations")).say(language).to_owned());
        }
    }
    // Print this line for zero too: otherwise "nothing failed" looks like "failures are not counted".
    lines.push(format!("\n{}", failed(report).say(language)));
    if report.resent > 0 {
        lines.push(format!("  {}", say!(texts::RESENT, report.resent).say(language)));
    }
    let place = Url::parse(&quick.url).map_or_else(|_| quick.url.clone(), |url| url.authority);
    for ((step, name), count) in &report.errors_at {
        let error = say!(texts::ERROR_WHILE, name.as_ref(), texts::doing(*step, &place));
        lines.push(format!("  {count:>9}  {}", error.say(language)));
    }
    if !quick.insecure && report.errors_at.keys().any(|(_, name)| weir_load::tls::is_about_certificate(name)) {
        lines.push(texts::INSECURE_HINT.say(language).to_owned());
    }
    if !facts.incomplete.is_empty() {
        let reasons = Said::list(&facts.incomplete, "; ");
        lines.push(format!("\n{}: {}", texts::INCOMPLETE.say(language), reasons.say(language)));
    }
    let verdict = if limits.is_empty() { say!(texts::IS_OK) } else { say!(texts::WAS_LIMIT) };
    let each = report.cpu.as_secs_f64() * 1e6 / report.requests as f64;
    let figures = facts.self_check.figures();
    let generator = match report.requests {
        0 => say!(texts::GENERATOR_WITH, verdict, figures),
        _ => say!(texts::GENERATOR_WITH_CPU, verdict, figures, format!("{each:.1}")),
    };
    lines.push(format!("\n{}", generator.say(language)));
    let word = texts::CAUTION.say(language);
    lines.extend(facts.self_check.cautions().iter().map(|caution| format!("{word}: {}", caution.say(language))));
    lines.join("\n") + "\n"
}

/// What the connections of QUIC have done.
fn quic(whole: &Period) -> Said {
    let count = |name: &str| whole.counter(&format!("http3.{name}"));
    say!(
        texts::QUIC,
        count("handshakes"),
        count("resumed"),
        count("lost_packets"),
        count("sent_packets"),
        bytes(count("sent_bytes")),
        bytes(count("received_bytes"))
    )
}

/// `0 failed`, with its parts.
fn failed(report: &Report) -> Said {
    let other: u64 = report.statuses.iter().filter(|(status, _)| !(200..300).contains(*status)).map(|(_, n)| n).sum();
    let errors: u64 = report.errors_at.values().sum();
    let all = report.errors();
    say!(texts::FAILED, all, errors, all.saturating_sub(errors), other)
}

/// The whole summary in one line, for `-q`.
fn one_line(report: &Report) -> Said {
    let ms = |quantile| format!("{:.3}", report.response.quantile(quantile).as_secs_f64() * 1e3);
    let latencies = match report.requests {
        0 => say!(texts::NO_LATENCIES),
        _ => say!(texts::SOME_LATENCIES, ms(0.5), ms(0.95), ms(0.99)),
    };
    let seconds = format!("{:.2}", report.elapsed.as_secs_f64());
    say!(texts::ONE_LINE, report.requests, seconds, format!("{:.1}", report.rate()), latencies, failed(report))
}

/// The table of latencies.
fn latencies(quick: &QuickRun, report: &Report, language: Language) -> Vec<String> {
    // The Korean names are wider.
    let width = if language == Language::Korean { 18 } else { 12 };
    let say = |text: Text| text.say(language);
    let start = if quick.rate.is_some() { texts::FROM_INTENDED } else { texts::FROM_PREVIOUS };
    let line = |name: Text, latency, meaning: &str| format!("{}{}  {meaning}", left(say(name), width), row(latency));
    let heads = ["min", "mean", "sd", "p50", "p90", "p95", "p99", "p99.9", "max"].map(|name| format!("{name:>9}"));
    let mut lines = vec![
        format!("\n{}{}", left(say(texts::LATENCY_MS), width), heads.concat()),
        line(texts::RESPONSE, &report.response, say(start)),
        line(texts::SERVICE, &report.service, say(texts::FROM_SEND)),
        line(texts::CONNECT, &report.connect, say!(texts::NEW_CONNECTIONS, report.connect.count()).say(language)),
    ];
    if quick.rate.is_some() {
        lines.push(line(texts::LAG, &report.lag, say(texts::HOW_LATE_REQUESTS)));
        if report.late > 0 {
            lines.push(say!(texts::BEGAN_LATE, report.late).say(language).to_owned());
        }
    }
    lines
}

fn row(latency: &Hdr) -> String {
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
    figures.iter().map(show).collect()
}

fn bytes(count: u64) -> String {
    match count {
        0..=9_999 => format!("{count} B"),
        10_000..=9_999_999 => format!("{:.1} kB", count as f64 / 1e3),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}
