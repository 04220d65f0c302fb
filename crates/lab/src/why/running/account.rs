//! The account of an edge that runs: weir's snapshots, or the logs, the `stub_status` page and the sockets of nginx.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use weir_conf::{Statement, Tree};
use weir_host as host;
use weir_meter::live::Snapshot;
use weir_net::{Address, Instant, clock};

use super::access::{AccessLog, logged};
use super::outside::{OutsideWindow, Requests};
use crate::said::Said;
use crate::watch::account::Account;
use crate::watch::edge::{self, AccountReader};
use crate::watch::logged as sums;

/// How often the edge is asked: weir makes a snapshot each second.
const EVERY: Duration = Duration::from_secs(1);
/// The longest time to wait for a page of nginx's.
const PATIENCE: Duration = Duration::from_millis(500);
/// Most bytes of that page.
const PAGE_MAX: usize = 4096;

/// Asks weir for its snapshot, as JSON.
pub type SnapshotReader = Arc<dyn Fn() -> Result<String, Said> + Send + Sync>;

/// A page of `stub_status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusPage {
    /// Where nginx listens.
    pub address: SocketAddr,
    /// The request.
    pub request: Vec<u8>,
}

/// Everything that the edge told while it was watched.
#[derive(Debug, Default)]
pub struct EdgeReport {
    /// The requests of clients.
    pub requests: Requests,
    /// The same by weir's access log.
    logged: Requests,
    is_by_log: bool,
    /// The access logs.
    pub logs: Vec<AccessLog>,
    /// The first snapshot of weir, and the last.
    pub snapshots: Option<(Snapshot, Snapshot)>,
    /// Why the last failed question got no answer.
    pub failed: Option<Said>,
    /// Whether any question was answered, or any log was read.
    pub is_there: bool,
    sums: Account,
    page: Option<Account>,
    asked: u64,
    active: u64,
}

/// Shared between the watcher's thread and the caller.
pub type SharedReport = Arc<Mutex<EdgeReport>>;

fn lock(told: &SharedReport) -> std::sync::MutexGuard<'_, EdgeReport> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads weir's account.
pub fn of_weir(told: SharedReport, ask: SnapshotReader) -> AccountReader {
    let (began, mut due, mut last) = (clock::precise(), clock::precise(), Account::default());
    lock(&told).is_by_log = true;
    Box::new(move || {
        let now = clock::precise();
        if now < due {
            lock(&told).take_logs(true);
            return last.clone();
        }
        due = now + EVERY;
        let answer = ask();
        let mut told = lock(&told);
        told.next_window(began, now);
        told.take_logs(true);
        match answer.and_then(|text| Snapshot::from_json(&text).map_err(|error| Said::from(error.to_string()))) {
            Ok(snapshot) => {
                last = edge::of_weir(&snapshot);
                told.is_there = true;
                told.follow(snapshot);
            }
            // An edge without a free connection does not answer either. Its log goes on.
            Err(why) => {
                last = if told.snapshots.is_none() { told.account() } else { Account::default() };
                told.failed = Some(why);
            }
        }
        last.clone()
    })
}

impl EdgeReport {
    /// The requests of clients: weir's own counts, or those of its log if it never answered.
    pub fn requests(&mut self) -> Requests {
        let of_log = self.is_by_log && self.snapshots.is_none();
        std::mem::take(if of_log { &mut self.logged } else { &mut self.requests })
    }

    fn follow(&mut self, snapshot: Snapshot) {
        let Some((_, last)) = &mut self.snapshots else {
            self.snapshots = Some((snapshot.clone(), snapshot));
            return;
        };
        self.requests.between(last, &snapshot);
        *last = snapshot;
    }
}

/// Reads what nginx tells. `edge` is its master process; `ports` are those at which its servers listen.
pub fn of_nginx(told: SharedReport, edge: u32, page: Option<StatusPage>, ports: BTreeSet<u16>) -> AccountReader {
    let (began, mut due) = (clock::precise(), clock::precise());
    Box::new(move || {
        let now = clock::precise();
        let is_due = now >= due;
        let answer = page.as_ref().filter(|_| is_due).map(get);
        let mut told = lock(&told);
        told.next_window(began, now);
        told.take_logs(false);
        if is_due {
            due = now + EVERY;
            told.active = open(edge, &ports);
            told.asked += u64::from(page.is_some());
            match answer {
                Some(Some(text)) => told.page = Some(edge::nginx(&text, Account::default())),
                Some(None) => told.page = None,
                None => {}
            }
        }
        told.account()
    })
}

impl EdgeReport {
    /// Begins a window for each second.
    fn next_window(&mut self, began: Instant, now: Instant) {
        let count = (now - began).as_secs() as usize + 1;
        let under_way = self.page.as_ref().map(|page| page.active.saturating_sub(page.idle));
        let windows = if self.is_by_log { &mut self.logged.windows } else { &mut self.requests.windows };
        if windows.len() < count {
            if let Some(last) = windows.last_mut() {
                last.under_way = under_way;
            }
            windows.resize_with(count, OutsideWindow::default);
        }
    }

    fn account(&mut self) -> Account {
        let mut account = Account { active: self.active, ..self.sums.clone() };
        account.requests = account.lines.unwrap_or(0);
        account.is_there = !self.logs.is_empty();
        // The lines of a log of the user's are no private log, of which some may be lost.
        account.lines = None;
        if let Some(page) = self.page.clone().filter(|page| page.is_there) {
            account.is_there = true;
            (account.active, account.idle) = (page.active, page.idle);
            (account.accepted, account.dropped) = (page.accepted.saturating_sub(self.asked), page.dropped);
            account.requests = page.requests.saturating_sub(self.asked);
        }
        self.is_there |= account.is_there;
        account
    }

    /// Adds the new lines of the logs. Of weir's, only the paths and the sessions count if its snapshots have the rest.
    fn take_logs(&mut self, is_weir: bool) {
        let EdgeReport { requests, logged: by_log, logs, sums, .. } = self;
        for log in logs {
            log.take(&mut |entry| {
                if is_weir {
                    requests.note(entry);
                    by_log.add(entry);
                } else {
                    requests.add(entry);
                }
                sums::sum(sums, &logged(entry));
            });
        }
    }
}

fn get(page: &StatusPage) -> Option<String> {
    let answer =
        weir_fetch::ask_and_block(Address::Tcp(page.address), page.request.clone(), PAGE_MAX, PATIENCE).ok()?;
    (answer.status == 200).then(|| String::from_utf8(answer.body).ok())?
}

/// Connections that clients have open to the edge, by the kernel's table.
fn open(edge: u32, ports: &BTreeSet<u16>) -> u64 {
    let all = host::ends_of(Path::new("/"), edge);
    all.values().filter(|ends| !ends.is_listening && ports.contains(&ends.local.port())).count() as u64
}

/// The page of `stub_status` that a configuration has, if it can be asked without TLS.
pub fn status_page(tree: &Tree) -> Option<StatusPage> {
    let (server, address, path) = found(tree, "stub_status")?;
    let name = server.named("server_name").next().map_or("localhost", |name| name.text(0));
    let name = if name.is_empty() || name.contains(['*', '~', '$', '_']) { "localhost" } else { name };
    let request = format!("GET {path} HTTP/1.0\r\nHost: {name}\r\nUser-Agent: weir-why\r\n\r\n").into_bytes();
    Some(StatusPage { address, request })
}

/// The address and the path of a location that has a directive, if it can be asked without TLS.
pub fn place_of(tree: &Tree, directive: &str) -> Option<(SocketAddr, String)> {
    found(tree, directive).map(|(_, address, path)| (address, path))
}

fn found<'a>(tree: &'a Tree, directive: &str) -> Option<(&'a Statement, SocketAddr, String)> {
    let mut servers = tree.named("http").flat_map(|http| http.named("server"));
    servers.find_map(|server| {
        let location = server.named("location").find(|location| location.named(directive).next().is_some())?;
        let path = match (location.text(0), location.args.len()) {
            ("=" | "^~", _) => location.text(1),
            (path, 1) if !path.starts_with('@') => path,
            _ => return None,
        };
        Some((server, address_of(server)?, path.to_owned()))
    })
}

/// An address at which a server listens without TLS.
fn address_of(server: &Statement) -> Option<SocketAddr> {
    let is_plain = |listen: &&Statement| {
        !listen.words().any(|word| matches!(word.text.as_str(), "ssl" | "quic")) && !listen.text(0).starts_with("unix:")
    };
    let text = match (server.named("listen").find(is_plain), server.named("listen").next()) {
        (Some(listen), _) => listen.text(0),
        (None, None) => "80",
        (None, Some(_)) => return None,
    };
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
        _ => text.parse::<u16>().map_or((text, 80), |port| ("*", port)),
    };
    let ip = match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(ip) if !ip.is_unspecified() => ip,
        _ => Ipv4Addr::LOCALHOST.into(),
    };
    Some(SocketAddr::new(ip, port))
}

/// Adds the lines of an error log to the counts, by their kind.
pub fn counted(lines: &[u8], counts: &mut BTreeMap<String, u64>) {
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        crate::watch::errors::add(counts, line);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use weir_conf::MemoryFiles;

    use super::*;

    fn page(server: &str) -> Option<(String, String)> {
        let text = format!("http {{ server {{ {server} }} }}");
        let (tree, _) = weir_conf::load(&MemoryFiles::new().with("/n.conf", text), "/n.conf", "/", &|_| false);
        let page = status_page(&tree)?;
        let line = String::from_utf8(page.request).unwrap();
        Some((page.address.to_string(), line.lines().take(2).collect::<Vec<_>>().join(" ")))
    }

    #[test]
    fn a_page_is_asked_where_it_is() {
        let of = |address: &str, line: &str| Some((address.to_owned(), line.to_owned()));
        let status = "location = /s { stub_status; }";
        assert_eq!(page(&format!("listen 8080; {status}")), of("127.0.0.1:8080", "GET /s HTTP/1.0 Host: localhost"));
        let named = format!("listen 443 ssl; listen 10.0.0.1:81; server_name a.b *.c; {status}");
        assert_eq!(page(&named), of("10.0.0.1:81", "GET /s HTTP/1.0 Host: a.b"));
        assert_eq!(page(&format!("listen [::]:82; {status}")), of("127.0.0.1:82", "GET /s HTTP/1.0 Host: localhost"));
        assert_eq!(page("listen 80; location ~ /s { stub_status; }"), None);
        assert_eq!(page("listen unix:/x; location /s { stub_status; }"), None);
        assert_eq!(page("listen 80; location / { }"), None);
    }

    #[test]
    fn weirs_snapshots_are_asked_for_once_a_second() {
        let told = SharedReport::default();
        let asked = Arc::new(Mutex::new(0));
        let count = asked.clone();
        let ask: SnapshotReader = Arc::new(move || {
            *count.lock().unwrap() += 1;
            Ok(Snapshot::example().to_json())
        });
        let mut read = of_weir(told.clone(), ask);
        let accounts = [read(), read(), read()];
        assert!(accounts.iter().all(|account| account.is_there && account.requests > 0));
        assert_eq!(*asked.lock().unwrap(), 1);
        let mut torn = of_weir(told.clone(), Arc::new(|| Ok("[".to_owned())));
        assert!(!torn().is_there && lock(&told).failed.is_some());
    }
}
