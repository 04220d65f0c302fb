//! `weir status`: the state of a running edge, on one screen or as JSON.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use weir_load::once::{self, Once};
use weir_meter::live::{ErrorKind, Limit, Peer, PeerState, Snapshot};

/// Default URL of an edge's API.
const URL_DEFAULT: &str = "http://127.0.0.1:9144/api";

const AFTER_HELP: &str = "\
URL is a location with `api`: http://[user:password@]HOST[:PORT]/PATH. In the configuration of the edge:
server { listen 127.0.0.1:9144; location /api { api; } }

Exit codes: 0 the edge answered; 1 no answer, or not the answer of an edge; 2 the command line is invalid.";

/// `weir status`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct StatusArgs {
    /// The API of an edge
    #[arg(value_name = "URL", default_value = URL_DEFAULT)]
    url: String,
    /// Print everything, as the edge sends it
    #[arg(long)]
    json: bool,
    /// Seconds to wait for the answer
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=600))]
    timeout: u16,
    /// Accept any certificate of an https:// URL
    #[arg(long)]
    insecure: bool,
}

/// Runs the verb.
pub fn main(args: &StatusArgs) -> ExitCode {
    match ask(args) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("weir status: {message}");
            ExitCode::from(1)
        }
    }
}

fn ask(args: &StatusArgs) -> Result<String, String> {
    let url = args.url.trim_end_matches('/');
    let once = Once {
        url: format!("{url}/weir"),
        method: "GET",
        json: Vec::new(),
        timeout: Duration::from_secs(u64::from(args.timeout)),
        insecure: args.insecure,
        bearer: None,
    };
    let remedy = "does the edge have a location with `api`, and is this its URL?";
    let (status, bytes) = once::ask(&once).map_err(|message| format!("{message}; {remedy}"))?;
    if status != 200 {
        return Err(format!("{status} from {url}: {remedy}"));
    }
    let text = String::from_utf8(bytes).map_err(|_| format!("the answer of {url} is not text: {remedy}"))?;
    let snapshot =
        Snapshot::from_json(&text).map_err(|error| format!("{url} is not an API of weir ({error}): {remedy}"))?;
    Ok(if args.json { format!("{text}\n") } else { page(&snapshot) })
}

/// Number of limits shown: those nearest to being reached.
const LIMITS_SHOWN: usize = 8;

/// Number of zones, of peers and of errors shown.
const ROWS_MAX: usize = 12;

fn page(snapshot: &Snapshot) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = begin(&mut out, snapshot)
        .and_then(|()| limits(&mut out, snapshot))
        .and_then(|()| zones(&mut out, snapshot))
        .and_then(|()| upstreams(&mut out, snapshot))
        .and_then(|()| caches(&mut out, snapshot))
        .and_then(|()| errors(&mut out, snapshot));
    out
}

fn begin(out: &mut String, snapshot: &Snapshot) -> std::fmt::Result {
    let (nginx, connections, requests) = (&snapshot.nginx, &snapshot.connections, &snapshot.http.requests);
    let (pid, generation, up) = (nginx.pid, nginx.generation, time(snapshot.weir.uptime_ms * 1000));
    writeln!(out, "{}, pid {pid}, configuration {generation}, up {up}", nginx.build)?;
    writeln!(
        out,
        "connections  {} active, {} idle, {} accepted, {} dropped",
        connections.active, connections.idle, connections.accepted, connections.dropped
    )?;
    writeln!(out, "requests     {} under way, {} in all", requests.current, requests.total)?;
    let cpu: Vec<String> = snapshot.weir.workers.iter().map(|worker| format!("{:.0} %", worker.cpu * 100.0)).collect();
    writeln!(out, "workers      {} of a CPU each", cpu.join(", "))
}

fn limits(out: &mut String, snapshot: &Snapshot) -> std::fmt::Result {
    let mut all: Vec<&Limit> = snapshot.weir.limits.iter().collect();
    all.sort_by(|one, other| share(other).total_cmp(&share(one)));
    if !all.is_empty() {
        writeln!(out, "\nlimits, nearest first                      used       limit        most    hits  set by")?;
    }
    for limit in all.iter().take(LIMITS_SHOWN) {
        let name = format!("{} {}", limit.kind, limit.of);
        let (used, most, top) = (figure(limit.used), figure(limit.max), figure(limit.limit));
        let (share, hits, by) = (share(limit) * 100.0, limit.hits, &limit.set_by);
        writeln!(out, "  {:<30} {share:>3.0} % {used:>9} {top:>11} {most:>11} {hits:>7}  {by}", cut(&name, 30))?;
    }
    Ok(())
}

fn zones(out: &mut String, snapshot: &Snapshot) -> std::fmt::Result {
    if !snapshot.http.server_zones.is_empty() {
        writeln!(
            out,
            "\nservers                            req/s       p50       p99  under way      2xx      4xx      5xx"
        )?;
    }
    for (name, zone) in snapshot.http.server_zones.iter().take(ROWS_MAX) {
        let times = snapshot.weir.server_zones.get(name).map(|account| account.times.clone()).unwrap_or_default();
        let (p50, p99) = (time(times.recent.p50_us), time(times.recent.p99_us));
        let responses = &zone.responses;
        writeln!(
            out,
            "  {:<30} {:>7.1} {p50:>9} {p99:>9} {:>10} {:>8} {:>8} {:>8}",
            cut(name, 30),
            times.rate,
            zone.processing,
            responses.c2xx,
            responses.c4xx,
            responses.c5xx
        )?;
    }
    Ok(())
}

fn upstreams(out: &mut String, snapshot: &Snapshot) -> std::fmt::Result {
    let peers = snapshot.http.upstreams.iter().flat_map(|(name, group)| {
        let times = snapshot.weir.upstreams.get(name);
        group.peers.iter().enumerate().map(move |(index, peer)| (name, peer, times.and_then(|all| all.get(index))))
    });
    for (row, (name, peer, times)) in peers.take(ROWS_MAX).enumerate() {
        if row == 0 {
            writeln!(out, "\nupstreams                        state     active  head p50  head p99   reused    fails")?;
        }
        let recent = times.map(|times| times.header.recent.clone()).unwrap_or_default();
        let reused =
            times.map_or(0.0, |times| 100.0 * times.reused as f64 / (times.reused + times.opened).max(1) as f64);
        let shown = format!("{name} {}", peer.server);
        writeln!(
            out,
            "  {:<30} {:<9} {:>6} {:>9} {:>9} {reused:>6.0} % {:>8}",
            cut(&shown, 30),
            state(peer),
            peer.active,
            time(recent.p50_us),
            time(recent.p99_us),
            peer.fails
        )?;
    }
    Ok(())
}

fn caches(out: &mut String, snapshot: &Snapshot) -> std::fmt::Result {
    for (name, cache) in snapshot.weir.caches.iter().take(ROWS_MAX) {
        let given = cache.hit + cache.stale + cache.updating + cache.revalidated;
        let share = 100.0 * given as f64 / cache.requests.max(1) as f64;
        writeln!(
            out,
            "\ncache {name}: {} requests = {} hit + {} stale + {} updating + {} revalidated + {} miss + {} expired + {} \
             bypass + {} error; {share:.1} % given, {} fetched",
            cache.requests,
            cache.hit,
            cache.stale,
            cache.updating,
            cache.revalidated,
            cache.miss,
            cache.expired,
            cache.bypass,
            cache.error,
            cache.fetches
        )?;
    }
    Ok(())
}

fn errors(out: &mut String, snapshot: &Snapshot) -> std::fmt::Result {
    if !snapshot.weir.errors.is_empty() {
        writeln!(out, "\nerrors")?;
    }
    for class in snapshot.weir.errors.iter().take(ROWS_MAX) {
        let kind = match class.kind {
            ErrorKind::Failed => "failed",
            ErrorKind::Refused => "refused as configured",
            ErrorKind::Recovered => "answered nevertheless",
            ErrorKind::Client => "client",
        };
        writeln!(out, "  {:<24} {:>8}  {kind:<21}  last {}", class.class, class.count, class.last)?;
        if let Some(sample) = class.samples.first() {
            let line = if sample.line.is_empty() { &sample.request } else { &sample.line };
            writeln!(out, "      {}", cut(line, 140))?;
        }
    }
    Ok(())
}

fn share(limit: &Limit) -> f64 {
    if limit.limit > 0.0 { limit.used / limit.limit } else { 0.0 }
}

fn state(peer: &Peer) -> &'static str {
    match peer.state {
        PeerState::Up => "up",
        PeerState::Draining => "draining",
        PeerState::Down => "down",
        PeerState::Unavail => "unavail",
        PeerState::Checking => "checking",
        PeerState::Unhealthy => "unhealthy",
    }
}

/// The text, cut after this number of letters.
fn cut(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    text.chars().take(letters.saturating_sub(1)).chain(['…']).collect()
}

/// A number with few digits.
fn figure(number: f64) -> String {
    match number {
        n if n >= 1e9 => format!("{:.1}G", n / 1e9),
        n if n >= 1e6 => format!("{:.1}M", n / 1e6),
        n if n >= 1e5 => format!("{:.0}k", n / 1e3),
        n if n.fract() == 0.0 => format!("{n:.0}"),
        n => format!("{n:.2}"),
    }
}

/// Microseconds in a readable unit.
fn time(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} us"),
        1_000..1_000_000 => format!("{:.1} ms", us as f64 / 1e3),
        1_000_000..60_000_000 => format!("{:.1} s", us as f64 / 1e6),
        60_000_000..3_600_000_000 => format!("{} min", us / 60_000_000),
        _ => format!("{} h", us / 3_600_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_leads_with_what_is_nearest_its_limit() {
        let page = page(&Snapshot::example());
        let limits: Vec<&str> = page.lines().skip_while(|line| !line.starts_with("limits")).skip(1).collect();
        assert!(limits[0].starts_with("  worker_cpu worker 0             93 %"), "{page}");
        assert!(page.contains("18032 requests = 17400 hit + 20 stale + 510 updating + 3 revalidated + 60 miss"));
        assert!(page.contains("app 10.0.0.12:3000") && page.contains("unavail") && page.contains("  502 "));
        assert!(page.lines().all(|line| line.starts_with("\ncache") || line.chars().count() <= 180), "{page}");
    }

    #[test]
    fn figures_are_short() {
        for (us, text) in [(0, "0 us"), (1_500, "1.5 ms"), (2_000_000, "2.0 s"), (120_000_000, "2 min")] {
            assert_eq!(time(us), text);
        }
        for (number, text) in [(0.93, "0.93"), (512.0, "512"), (123_456.0, "123k"), (67_108_864.0, "67.1M")] {
            assert_eq!(figure(number), text);
        }
        assert_eq!((cut("short", 5), cut("longer", 5)), ("short".to_owned(), "long…".to_owned()));
    }
}
