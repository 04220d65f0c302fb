//! `weir load URL`: one request again and again, as wrk, ab and oha do it.

use std::io::Write;
use std::time::Duration;

use weir_load::duration;
use weir_load::quick::{self, Quick, Rate};
use weir_load::{Latency, Report};

use super::flags::RunArgs;
use super::{exit, usage};

const CONNECTIONS: usize = 64;

/// Runs the load and prints what came of it.
pub fn run(url: &str, args: &RunArgs) -> u8 {
    let quick = match of(url, args) {
        Ok(quick) => quick,
        Err(message) => return usage(&message),
    };
    println!("Load goes to: {url}");
    println!("{}", plan(&quick));
    // A closed stdout is noticed with the summary.
    let _ = std::io::stdout().flush();
    match quick::run(&quick) {
        Err(message) => {
            eprintln!("weir load: {message}");
            exit::FAILED
        }
        Ok(report) => {
            let is_limited = report.saturation() >= LIMIT;
            print!("{}", summary(&quick, &report, is_limited));
            if is_limited && args.fail_if_limited { exit::LIMITED } else { 0 }
        }
    }
}

/// A generator this busy has no time to be on time, 0 to 1 of its threads' cores.
const LIMIT: f64 = 0.9;

fn of(url: &str, args: &RunArgs) -> Result<Quick, String> {
    let not_here =
        [("-o", args.output.is_some()), ("--html", args.html.is_some()), ("--prometheus", args.prometheus.is_some())];
    if let Some((flag, _)) = not_here.iter().find(|(_, is_asked)| *is_asked) {
        return Err(format!("{flag} takes a script: a URL alone has its summary on the console and no report"));
    }
    let number = |text: &String| text.parse::<usize>().map_err(|_| format!("-c {text}: how many connections?"));
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
        rate: args.rate.map(|rate| if args.poisson { Rate::Poisson(rate) } else { Rate::Constant(rate) }),
    })
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

fn plan(quick: &Quick) -> String {
    let Quick { method, connections, threads, duration, rate, .. } = quick;
    let model = match rate {
        None => "as fast as they are answered (closed loop)".to_owned(),
        Some(Rate::Constant(rate)) => format!("{rate} a second, evenly spread (open model)"),
        Some(Rate::Poisson(rate)) => format!("{rate} a second, at random (open model)"),
    };
    let most = quick.requests_max.map_or_else(String::new, |most| format!(", at most {most} requests"));
    let threads = if *threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
    format!("{method}, {connections} connections, {threads}, {}s{most}, {model}\n", duration.as_secs_f64())
}

fn summary(quick: &Quick, report: &Report, is_limited: bool) -> String {
    let mut lines = Vec::new();
    if is_limited {
        let percent = report.saturation() * 100.0;
        lines.push(format!(
            "The generator was the limit ({percent:.0} % of its threads): these figures tell of it, not of the target.\n"
        ));
    }
    lines.push(format!(
        "{} requests in {:.2} s, {:.1} a second, {} received",
        report.requests,
        report.elapsed.as_secs_f64(),
        report.rate(),
        bytes(report.received_bytes)
    ));
    let statuses: Vec<String> = report.statuses.iter().map(|(status, count)| format!("{status}: {count}")).collect();
    if !statuses.is_empty() {
        lines.push(format!("Statuses   {}", statuses.join("   ")));
    }
    lines.push(format!(
        "\n{:<12}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}",
        "Latency, ms", "mean", "p50", "p90", "p99", "p99.9", "max"
    ));
    if quick.rate.is_some() {
        lines.push(format!("{}  from the intended start", row("response", &report.latency)));
        lines.push(format!("{}  from the send", row("service", &report.service)));
        lines.push(format!("{}  how late requests began", row("lag", &report.lag)));
        if report.late + report.dropped > 0 {
            lines.push(format!("{} began late, {} were never sent", report.late, report.dropped));
        }
    } else {
        lines.push(row("service", &report.latency));
    }
    if report.errors() > 0 {
        lines.push(format!("\n{} errors", report.errors()));
        for ((step, name), count) in &report.errors_at {
            lines.push(format!("  {count:>9}  {name}, while {}", step.doing()));
        }
    }
    let micros = report.cpu.as_secs_f64() * 1e6 / report.requests.max(1) as f64;
    lines.push(format!(
        "\nGenerator: {} ({:.0} % of its threads, {micros:.1} µs of CPU a request)",
        if is_limited { "was the limit" } else { "ok" },
        report.saturation() * 100.0
    ));
    lines.join("\n") + "\n"
}

fn row(name: &str, latency: &Latency) -> String {
    let figures = [
        latency.mean(),
        latency.percentile(50.0),
        latency.percentile(90.0),
        latency.percentile(99.0),
        latency.percentile(99.9),
        latency.max(),
    ];
    let figures: String = figures.iter().map(|time| format!("{:>9.3}", time.as_secs_f64() * 1e3)).collect();
    format!("{name:<12}{figures}")
}

fn bytes(count: u64) -> String {
    match count {
        0..=9_999 => format!("{count} B"),
        10_000..=9_999_999 => format!("{:.1} kB", count as f64 / 1e3),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}
