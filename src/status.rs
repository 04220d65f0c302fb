//! `weir status`: the state of a running edge, on one screen or as JSON.

use std::fmt::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use weir_dash::words;
use weir_edge::canary::say as canary_says;
use weir_load::once::{self, Once};
use weir_meter::live::{ErrorKind, FleetMember, FleetView, Limit, OddOne, Peer, PeerState, Snapshot, Times};
use weir_words::{Language, Said, Text, left, right, say};

use crate::edges::{self, Dashboard};
use crate::figures::{amount, percent, short, time};
use crate::lang::wrong::within;
use crate::texts;

const AFTER_HELP: &str = "\
URL is a dashboard, or a location with `api`: http://[user:password@]HOST[:PORT]/PATH. Without a URL, weir asks the
first dashboard that answers on 127.0.0.1; `weir top --list` lists them.

Exit codes: 0 the edge answered; 1 no answer, or not the answer of an edge; 2 the command line is invalid.";

/// `weir status`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct StatusArgs {
    /// The dashboard or the API of an edge [default: the first dashboard that answers on 127.0.0.1]
    #[arg(value_name = "URL")]
    url: Option<String>,
    /// The file whose first line is the dashboard's token
    #[arg(long, value_name = "FILE")]
    token: Option<std::path::PathBuf>,
    /// Print everything, as the edge sends it
    #[arg(long)]
    json: bool,
    /// Print the edges of the fleet, one a line
    #[arg(long, conflicts_with = "json")]
    fleet: bool,
    /// Seconds to wait for the answer
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = within::<u16>(1..=600))]
    timeout: u16,
    /// Accept any certificate of an https:// URL
    #[arg(long)]
    insecure: bool,
}

/// Runs the verb.
pub fn main(args: &StatusArgs, language: Language) -> ExitCode {
    match ask(args, language) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("weir status: {}", message.say(language));
            ExitCode::from(1)
        }
    }
}

fn ask(args: &StatusArgs, language: Language) -> Result<String, Said> {
    let token = edges::token(args.token.as_deref())?;
    let text = match &args.url {
        Some(url) => named(args, &Dashboard::at(url, None, args.insecure).url, token.as_deref())?,
        None => {
            let here = edges::here(token.as_deref(), args.insecure);
            let first = here.first().ok_or_else(edges::none_here)?;
            if here.len() > 1 {
                let others = here.len() - 1;
                eprintln!("weir status: {}", say!(texts::ONE_OF_EDGES, &first.url, others).say(language));
            }
            first.fetch("snapshot.json")?.to_string()
        }
    };
    let url = args.url.as_deref().unwrap_or("snapshot.json");
    let snapshot = Snapshot::from_json(&text)
        .map_err(|error| say!(texts::NO_API, url, error.to_string(), say!(texts::HAS_API)))?;
    if args.fleet {
        let fleet = snapshot.weir.fleet.as_ref().ok_or_else(|| say!(texts::NO_FLEET))?;
        return Ok(fleet_page(fleet, language));
    }
    if !args.json {
        return Ok(page(&snapshot, language));
    }
    // The text itself: an edge of a later version may have members that this one does not know.
    let whole: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    Ok(format!("{}\n", crate::schema::versioned(whole)))
}

/// The snapshot at a URL, which is an API or a dashboard.
fn named(args: &StatusArgs, url: &str, token: Option<&str>) -> Result<String, Said> {
    let ask = |name: &str| {
        once::ask(&Once {
            url: format!("{url}{name}"),
            method: "GET",
            json: Vec::new(),
            timeout: Duration::from_secs(u64::from(args.timeout)),
            insecure: args.insecure,
            bearer: token.map(str::to_owned),
        })
    };
    let remedy = say!(texts::HAS_API);
    let mut answer = ask("weir").map_err(|message| say!(texts::WITH_REMEDY, message, &remedy))?;
    if answer.0 == 404 {
        answer = ask("snapshot.json").map_err(|message| say!(texts::WITH_REMEDY, message, &remedy))?;
    }
    match answer {
        (200, bytes) => String::from_utf8(bytes).map_err(|_| say!(texts::NOT_TEXT, url, &remedy)),
        (status, _) => Err(say!(texts::STATUS_FROM, u32::from(status), url, remedy)),
    }
}

/// Number of limits shown: those nearest to being reached.
const LIMITS_SHOWN: usize = 8;

/// Number of zones, of peers and of errors shown.
const ROWS_MAX: usize = 12;

/// Columns of the first column of each table, without its indentation.
const NAME: usize = 30;

fn page(snapshot: &Snapshot, language: Language) -> String {
    let mut page = Page { out: String::new(), language };
    // Writing to a String cannot fail.
    let _ = page
        .begin(snapshot)
        .and_then(|()| page.limits(snapshot))
        .and_then(|()| page.zones(snapshot))
        .and_then(|()| page.upstreams(snapshot))
        .and_then(|()| page.caches(snapshot))
        .and_then(|()| page.errors(snapshot));
    page.out
}

fn fleet_page(fleet: &FleetView, language: Language) -> String {
    let mut page = Page { out: String::new(), language };
    // Writing to a String cannot fail.
    let _ = page.fleet(fleet);
    page.out
}

/// The page while it is written.
struct Page {
    out: String,
    language: Language,
}

impl Page {
    fn say(&self, text: Text) -> &'static str {
        text.say(self.language)
    }

    /// The heads of a table's columns, each with its width; the first one, and one of width 0, begin at the left.
    fn heads(&mut self, first: Text, others: &[(&str, usize)]) -> fmt::Result {
        write!(self.out, "\n{}", left(self.say(first), NAME + 2))?;
        for (name, width) in others {
            match width {
                0 => write!(self.out, "  {name}")?,
                width => write!(self.out, " {}", right(name, *width))?,
            }
        }
        writeln!(self.out)
    }

    /// A quantile in a column of nine; without requests it is not known.
    fn quantile(&self, times: &Times, of: impl Fn(&Times) -> u64) -> String {
        let ms = (times.count > 0).then(|| of(times) as f64 / 1000.0);
        right(time(ms).say(self.language), 9)
    }

    fn begin(&mut self, snapshot: &Snapshot) -> fmt::Result {
        let (nginx, connections, requests) = (&snapshot.nginx, &snapshot.connections, &snapshot.http.requests);
        let up = time(Some(snapshot.weir.uptime_ms as f64));
        let head = say!(texts::STATUS_HEAD, &nginx.build, nginx.pid, nginx.generation, up);
        let each = snapshot.weir.workers.iter().map(|worker| percent(Some(worker.cpu)));
        let cpu = each.collect::<Vec<_>>().join(", ");
        let (active, idle) = (connections.active, connections.idle);
        let rows = [
            (
                texts::CONNECTIONS,
                say!(texts::CONNECTIONS_LINE, active, idle, connections.accepted, connections.dropped),
            ),
            (texts::REQUESTS, say!(texts::REQUESTS_LINE, requests.current, requests.total)),
            (texts::WORKERS, say!(texts::WORKERS_LINE, cpu)),
        ];
        writeln!(self.out, "{}", head.say(self.language))?;
        for (name, line) in rows {
            writeln!(self.out, "{}  {}", left(self.say(name), 11), line.say(self.language))?;
        }
        if let Some(canary) = snapshot.weir.canary.as_ref().filter(|canary| canary.phase.is_on()) {
            let (name, line) = (self.say(texts::CANARY), canary_says::sentence(canary));
            writeln!(self.out, "{}  {}", left(name, 11), line.say(self.language))?;
        }
        Ok(())
    }

    /// All edges of a fleet, their sums, and the one that differs.
    fn fleet(&mut self, fleet: &FleetView) -> fmt::Result {
        let head = match (&fleet.lost, fleet.is_alone) {
            (Some(why), _) => say!(texts::FLEET_LOST, &fleet.name, &fleet.server, why, percent(Some(fleet.share))),
            (None, true) => say!(texts::FLEET_ALONE, &fleet.name, &fleet.server, percent(Some(fleet.share))),
            (None, false) => say!(texts::FLEET_HEAD, &fleet.name, &fleet.server, fleet.edges),
        };
        writeln!(self.out, "{}", head.say(self.language))?;
        let (rate, failed) = (self.say(texts::PER_SECOND), self.say(texts::ERROR_FAILED));
        let (refused, connections) = (self.say(texts::EDGE_REFUSED), self.say(texts::CONNECTIONS));
        let heads = [(rate, 9), ("p99", 9), (failed, 9), (refused, 9), (connections, 12), ("CPU", 7), ("", 0)];
        self.heads(texts::EDGES, &heads)?;
        for member in &fleet.members {
            let odd = fleet.odd(member).map(|odd| match odd {
                OddOne::Silent => say!(texts::EDGE_SILENT, member.heard_ms_ago / 1000),
                OddOne::Version => say!(texts::EDGE_VERSION, &member.version),
                OddOne::Slower => say!(texts::EDGE_SLOWER),
            });
            let odd = odd.as_ref().map(|odd| odd.say(self.language)).unwrap_or_default();
            self.edge(&member.edge, member, odd)?;
        }
        let sum = fleet.members.iter().fold(FleetMember::default(), |mut sum, member| {
            sum.rate += member.rate;
            sum.failed += member.failed;
            sum.refused += member.refused;
            sum.p99_us = sum.p99_us.max(member.p99_us);
            sum.connections += member.connections;
            sum.cpu += member.cpu;
            sum
        });
        self.edge(self.say(texts::ALL_EDGES), &sum, "")
    }

    fn edge(&mut self, name: &str, member: &FleetMember, odd: &str) -> fmt::Result {
        let p99 = (member.p99_us > 0).then(|| member.p99_us as f64 / 1000.0);
        let line = format!(
            "  {} {:>9} {} {:>9} {:>9} {:>12} {:>7}  {odd}",
            left(&cut(name, NAME), NAME),
            short(Some(member.rate)),
            right(time(p99).say(self.language), 9),
            member.failed,
            member.refused,
            member.connections,
            percent(Some(member.cpu)),
        );
        writeln!(self.out, "{}", line.trim_end())
    }

    fn limits(&mut self, snapshot: &Snapshot) -> fmt::Result {
        let mut all: Vec<&Limit> = snapshot.weir.limits.iter().collect();
        all.sort_by(|one, other| share(other).total_cmp(&share(one)));
        if !all.is_empty() {
            let used = self.say(texts::USED);
            let (limit, most, hits) = (self.say(texts::LIMIT), self.say(texts::MOST), self.say(texts::HITS));
            let by = self.say(texts::SET_BY);
            self.heads(texts::LIMITS, &[("", 5), (used, 9), (limit, 11), (most, 11), (hits, 7), (by, 0)])?;
        }
        for limit in all.iter().take(LIMITS_SHOWN) {
            let (name, by) = match self.language {
                Language::English => (format!("{} {}", limit.kind, limit.of), limit.set_by.clone()),
                Language::Korean => {
                    let (title, setter) =
                        (words::title(&limit.kind, &limit.of), words::setter(&limit.kind, &limit.set_by));
                    (title.ko().to_owned(), setter.ko().to_owned())
                }
            };
            let [used, most, top] =
                [limit.used, limit.max, limit.limit].map(|number| amount(Some(&limit.unit), Some(number)));
            let (share, hits, name) = (share(limit) * 100.0, limit.hits, left(&cut(&name, NAME), NAME));
            writeln!(self.out, "  {name} {share:>3.0} % {used:>9} {top:>11} {most:>11} {hits:>7}  {by}")?;
        }
        Ok(())
    }

    fn zones(&mut self, snapshot: &Snapshot) -> fmt::Result {
        if !snapshot.http.server_zones.is_empty() {
            let (rate, under_way) = (self.say(texts::PER_SECOND), self.say(texts::UNDER_WAY));
            let classes = [("2xx", 8), ("4xx", 8), ("5xx", 8)];
            let heads = [(rate, 9), ("p50", 9), ("p99", 9), (under_way, 10)];
            self.heads(texts::SERVERS, &[&heads[..], &classes].concat())?;
        }
        for (name, zone) in snapshot.http.server_zones.iter().take(ROWS_MAX) {
            let times = snapshot.weir.server_zones.get(name).map(|account| account.times.clone()).unwrap_or_default();
            let (p50, p99) =
                (self.quantile(&times.recent, |all| all.p50_us), self.quantile(&times.recent, |all| all.p99_us));
            let rate = short(Some(times.rate));
            let responses = &zone.responses;
            writeln!(
                self.out,
                "  {} {rate:>9} {p50} {p99} {:>10} {:>8} {:>8} {:>8}",
                left(&cut(name, NAME), NAME),
                zone.processing,
                responses.c2xx,
                responses.c4xx,
                responses.c5xx
            )?;
        }
        Ok(())
    }

    fn upstreams(&mut self, snapshot: &Snapshot) -> fmt::Result {
        let peers = snapshot.http.upstreams.iter().flat_map(|(name, group)| {
            let times = snapshot.weir.upstreams.get(name);
            group.peers.iter().enumerate().map(move |(index, peer)| (name, peer, times.and_then(|all| all.get(index))))
        });
        for (row, (name, peer, times)) in peers.take(ROWS_MAX).enumerate() {
            if row == 0 {
                let state = left(self.say(texts::STATE), 9);
                let (active, reused, fails) =
                    (self.say(texts::ACTIVE), self.say(texts::REUSED), self.say(texts::FAILS));
                let (p50, p99) = (self.say(texts::HEAD_P50), self.say(texts::HEAD_P99));
                let heads = [(&*state, 9), (active, 6), (p50, 9), (p99, 9), (reused, 8), (fails, 8)];
                self.heads(texts::UPSTREAMS, &heads)?;
            }
            let recent = times.map(|times| times.header.recent.clone()).unwrap_or_default();
            let (p50, p99) = (self.quantile(&recent, |all| all.p50_us), self.quantile(&recent, |all| all.p99_us));
            let reused = times.filter(|times| times.reused + times.opened > 0);
            let reused = percent(reused.map(|times| times.reused as f64 / (times.reused + times.opened) as f64));
            let shown = format!("{name} {}", peer.server);
            writeln!(
                self.out,
                "  {} {} {:>6} {p50} {p99} {reused:>8} {:>8}",
                left(&cut(&shown, NAME), NAME),
                left(self.say(state(peer)), 9),
                peer.active,
                peer.fails
            )?;
        }
        Ok(())
    }

    fn caches(&mut self, snapshot: &Snapshot) -> fmt::Result {
        for (name, cache) in snapshot.weir.caches.iter().take(ROWS_MAX) {
            let given = cache.hit + cache.stale + cache.updating + cache.revalidated;
            let share = format!("{:.1}", 100.0 * given as f64 / cache.requests.max(1) as f64);
            let line = say!(
                texts::CACHE_LINE,
                name,
                cache.requests,
                cache.hit,
                cache.stale,
                cache.updating,
                cache.revalidated,
                cache.miss,
                cache.expired,
                cache.bypass,
                cache.error,
                share,
                cache.fetches
            );
            writeln!(self.out, "\n{}", line.say(self.language))?;
        }
        Ok(())
    }

    fn errors(&mut self, snapshot: &Snapshot) -> fmt::Result {
        if !snapshot.weir.errors.is_empty() {
            writeln!(self.out, "\n{}", self.say(texts::ERRORS))?;
        }
        for class in snapshot.weir.errors.iter().take(ROWS_MAX) {
            let kind = match class.kind {
                ErrorKind::Failed => texts::ERROR_FAILED,
                ErrorKind::Refused => texts::ERROR_REFUSED,
                ErrorKind::Recovered => texts::ERROR_RECOVERED,
                ErrorKind::Client => texts::ERROR_CLIENT,
            };
            let (kind, last) = (left(self.say(kind), 21), say!(texts::LAST, class.last.to_string()));
            writeln!(self.out, "  {:<24} {:>8}  {kind}  {}", class.class, class.count, last.say(self.language))?;
            if let Some(sample) = class.samples.first() {
                // The server that was asked stands near the end of a line of the log, where it is cut.
                let to = if sample.upstream.is_empty() { String::new() } else { format!(" → {}", sample.upstream) };
                let asked = format!("{}  {}", sample.server, sample.request);
                writeln!(self.out, "      {}{to}", cut(&asked, 140usize.saturating_sub(to.chars().count())))?;
                if !sample.line.is_empty() {
                    writeln!(self.out, "      {}", cut(&sample.line, 140))?;
                }
            }
        }
        Ok(())
    }
}

fn share(limit: &Limit) -> f64 {
    if limit.limit > 0.0 { limit.used / limit.limit } else { 0.0 }
}

fn state(peer: &Peer) -> Text {
    match peer.state {
        PeerState::Up => texts::PEER_UP,
        PeerState::Draining => texts::PEER_DRAINING,
        PeerState::Down => texts::PEER_DOWN,
        PeerState::Unavail => texts::PEER_UNAVAIL,
        PeerState::Checking => texts::PEER_CHECKING,
        PeerState::Unhealthy => texts::PEER_UNHEALTHY,
    }
}

/// The text, cut after this number of letters.
fn cut(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    text.chars().take(letters.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_leads_with_what_is_nearest_its_limit() {
        let page = page(&Snapshot::example(), Language::English);
        let limits: Vec<&str> = page.lines().skip_while(|line| !line.starts_with("limits")).skip(1).collect();
        assert!(limits[0].starts_with("  worker_cpu worker 0             93 %"), "{page}");
        assert!(page.contains("\ncanary       /etc/nginx/new.conf has 10.0 % of the clients; 402 clients"), "{page}");
        assert!(page.contains("18032 requests = 17400 hit + 20 stale + 510 updating + 3 revalidated + 60 miss"));
        assert!(page.contains("shop.example  GET /api/cart → 10.0.0.12:3000\n"), "{page}");
        assert!(page.contains("app 10.0.0.12:3000") && page.contains("unavail") && page.contains("  502 "));
        assert!(page.lines().all(|line| line.starts_with("canary") || line.chars().count() <= 180), "{page}");
    }

    #[test]
    fn the_korean_page_has_the_same_lines() {
        let (english, korean) =
            (page(&Snapshot::example(), Language::English), page(&Snapshot::example(), Language::Korean));
        assert_eq!(korean.lines().count(), english.lines().count());
        for part in ["\n한도 (사용률이 높은 순)  ", "\n  CPU 워커 0 ", "\n서버  ", "제외됨", "캐시로 응답", "마지막 "]
        {
            assert!(korean.contains(part), "{part}\n{korean}");
        }
    }

    #[test]
    fn a_long_name_is_cut() {
        assert_eq!((cut("short", 5), cut("longer", 5)), ("short".to_owned(), "long…".to_owned()));
    }
}
