//! Says in one sentence what limits the edge, from counts only: errors first, then limits. It never guesses.
//!
//! "Nothing near a limit" is an answer. The thresholds of limits are in `waterline`, the others in the table below.

use std::sync::Arc;

use serde::Serialize;
use weir_meter::live::{Busiest, ErrorClass, ErrorKind, PeerState, Snapshot};

use crate::point;
use crate::reason::{self, Reason};
use crate::waterline::{NEAR, Nearness, Waterline};
use weir_words::Said;

use crate::words;
use crate::worst::{self, FailingPlace};

// The table of thresholds.
/// Below this share, the verdict does not say that a limit limits the edge.
const MENTIONED: f64 = 0.50;
/// Requests count as failing if at least this many failed in the window,
const FAILED_MIN: u64 = 5;
/// and they are at least this share of all;
const FAILED_SHARE: f64 = 0.01;
/// or, with few requests, if at least this many failed,
const FAILED_MIN_OF_FEW: u64 = 2;
/// and they are at least this share of all.
const FAILED_SHARE_OF_FEW: f64 = 0.05;
/// Keepalive counts as poor if less than this share of requests uses a kept connection.
const REUSE_POOR: f64 = 0.50;
/// A program is named if it uses at least this share of a limit of CPU time: what uses less does not explain it, and where
/// the kernel hides other programs, weir would name itself.
const BUSY: f64 = 0.10;
/// Locations that a verdict about failures tells as evidence, at most.
const PLACES_MAX: usize = 3;

/// The state of the edge, the worst last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// A single snapshot shows no changes, so there is no verdict.
    #[default]
    Waiting,
    /// No request fails, and no limit is near.
    Healthy,
    /// A limit is near, or will be reached soon.
    Near,
    /// A limit is reached, or nearly reached.
    Limited,
    /// Requests fail.
    Failing,
}

/// The name of a limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NamedLimit {
    /// As in a waterline.
    pub kind: String,
    /// As in a waterline.
    pub of: String,
    /// The share in use.
    pub ratio: f64,
}

/// The verdict and its reasons.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Verdict {
    /// The state.
    pub state: State,
    /// The sentence.
    pub words: Said,
    /// The evidence.
    pub evidence: Vec<Said>,
    /// The remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Said>,
    /// The limit in question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<NamedLimit>,
    /// The next limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NamedLimit>,
    /// How many times the current use would fit into the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom: Option<f64>,
    /// The upstream group in question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// Judges the newest of these snapshots, which are ordered from the oldest, with its waterlines.
pub fn judge(recent: &[Arc<Snapshot>], lines: &[Waterline]) -> Verdict {
    let [first, .., last] = recent else {
        return Verdict {
            words: Said::of_both("waiting for the figures of two seconds", "2초 동안의 수치를 기다리는 중입니다"),
            ..Verdict::default()
        };
    };
    let window = Window::between(first, last);
    let mut fullest: Vec<&Waterline> = lines.iter().filter(|line| words::kind(&line.kind).counts).collect();
    // The sort is stable: among equal limits, the first in the snapshot comes first.
    fullest.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    let mut verdict = met(&window, &fullest)
        .or_else(|| dead(last, &window))
        .or_else(|| failing(&window, &fullest))
        .or_else(|| close(&fullest, &window))
        .unwrap_or_else(|| healthy(&fullest));
    verdict.evidence.extend(window.said());
    verdict.evidence.extend((window.refused > 0).then(|| {
        let refused = group(window.refused as f64);
        Said::of_both(
            format!("limit_req or limit_conn refused {refused}, as configured"),
            format!("limit_req나 limit_conn이 설정대로 {refused}건을 거절했습니다"),
        )
    }));
    verdict.evidence.extend(absent(last));
    verdict
}

/// Seconds between two snapshots.
pub fn seconds(first: &Snapshot, last: &Snapshot) -> u64 {
    (last.nginx.timestamp.0.saturating_sub(first.nginx.timestamp.0) + 500) / 1000
}

/// The changes between two snapshots.
struct Window<'s> {
    first: &'s Snapshot,
    last: &'s Snapshot,
    seconds: u64,
    requests: u64,
    failed: u64,
    /// Requests that `limit_req` and `limit_conn` refused: the configuration wants that, so they are not failures.
    refused: u64,
}

impl Window<'_> {
    fn between<'s>(first: &'s Snapshot, last: &'s Snapshot) -> Window<'s> {
        let failed = point::failed(last).saturating_sub(point::failed(first));
        Window {
            first,
            last,
            seconds: seconds(first, last),
            // A request that began before the window can fail in it.
            requests: last.http.requests.total.saturating_sub(first.http.requests.total).max(failed),
            failed,
            refused: point::refused(last).saturating_sub(point::refused(first)),
        }
    }

    fn share(&self) -> f64 {
        self.failed as f64 / self.requests.max(1) as f64
    }

    /// How often a limit was hit.
    fn hits(&self, line: &Waterline) -> u64 {
        let before = self.first.weir.limits.iter().find(|limit| limit.kind == line.kind && limit.of == line.of);
        line.hits.saturating_sub(before.map_or(0, |limit| limit.hits))
    }

    /// The class of failures that grew most, and its growth.
    fn class(&self) -> Option<(&ErrorClass, u64)> {
        let before = |class: &str| self.first.weir.errors.iter().find(|error| error.class == class);
        let failures = self.last.weir.errors.iter().filter(|error| error.kind == ErrorKind::Failed);
        let grown = failures
            .map(|error| (error, error.count.saturating_sub(before(&error.class).map_or(0, |error| error.count))));
        grown.filter(|(_, count)| *count > 0).max_by_key(|(_, count)| *count)
    }

    fn said(&self) -> Option<Said> {
        let (failed, requests, seconds) = (group(self.failed as f64), group(self.requests as f64), self.seconds);
        Some(match (self.requests, self.failed) {
            (0, 0) => Said::of_both(
                format!("No request has come in the last {seconds} s"),
                format!("최근 {seconds}초 동안 요청이 없습니다"),
            ),
            (_, 0) => Said::of_both(
                format!("{requests} requests in the last {seconds} s, none failed"),
                format!("최근 {seconds}초 동안 요청 {requests}건, 실패 없음"),
            ),
            _ => Said::of_both(
                format!("{failed} of {requests} requests in the last {seconds} s failed"),
                format!("최근 {seconds}초 동안 요청 {requests}건 중 {failed}건이 실패했습니다"),
            ),
        })
    }
}

/// A limit that was hit in the window. A limit that refuses work comes before one of CPU time, which only delays it. The
/// hits of `cpu_credits` are busy seconds, so its level tells more: a busy second is no trouble yet.
fn met(window: &Window<'_>, fullest: &[&Waterline]) -> Option<Verdict> {
    let hit = fullest.iter().filter(|line| window.hits(line) > 0 && line.kind != "cpu_credits");
    let line = hit.max_by_key(|line| (line.unit != "cores", window.hits(line)))?;
    let (hits, seconds, title) = (group(window.hits(line) as f64), window.seconds, words::title(&line.kind, &line.of));
    let (used, limit) = amounts(line);
    let words = Said::of_both(
        format!("{}: {used} of {limit}, reached {hits} times in {seconds} s", title.en()),
        format!("{}: {limit} 중 {used}, {seconds}초 동안 {hits}번 한도 도달", title.ko()),
    );
    Some(about(State::Limited, words, line, fullest, window))
}

/// A group without any available server.
fn dead(last: &Snapshot, window: &Window<'_>) -> Option<Verdict> {
    let is_up = |state: PeerState| matches!(state, PeerState::Up | PeerState::Draining | PeerState::Checking);
    let (name, group) = last
        .http
        .upstreams
        .iter()
        .find(|(_, group)| !group.peers.is_empty() && !group.peers.iter().any(|peer| is_up(peer.state)))?;
    let words = Said::of_both(
        format!("no server of upstream {name} is up"),
        format!("업스트림 {name}: 사용할 수 있는 서버가 없습니다"),
    );
    let costs = last.weir.upstreams.get(name);
    let errors = costs.into_iter().flatten().filter(|peer| !peer.last_error.is_empty());
    let mut evidence: Vec<Said> =
        errors.take(3).map(|peer| same(format!("{}: {}", peer.server, peer.last_error))).collect();
    evidence.push(same(format!(
        "{name}: {}",
        group.peers.iter().map(|peer| peer.server.as_str()).take(8).collect::<Vec<_>>().join(", ")
    )));
    evidence.extend(window.class().map(|(class, count)| {
        let class = reason::title(&class.class);
        Said::of_both(format!("{}: +{count}", class.en()), format!("{}: +{count}", class.ko()))
    }));
    Some(Verdict { state: State::Failing, words, evidence, group: Some(name.clone()), ..Verdict::default() })
}

/// Requests fail.
fn failing(window: &Window<'_>, fullest: &[&Waterline]) -> Option<Verdict> {
    let is_part = |least: u64, share: f64| window.failed >= least && window.share() >= share;
    if !is_part(FAILED_MIN, FAILED_SHARE) && !is_part(FAILED_MIN_OF_FEW, FAILED_SHARE_OF_FEW) {
        return None;
    }
    let (share, seconds) = (percent(window.share()), window.seconds);
    let places = worst::places(window.first, window.last);
    let worst = places.first();
    let class = worst.and_then(|place| place.class).or(window.class().map(|(class, _)| class));
    let mut words = Said::of_both(
        format!("{share} of requests failed in {seconds} s"),
        format!("{seconds}초 동안 요청의 {share}가 실패했습니다"),
    );
    let mut add = |en: String, ko: String| {
        words += Said::of_both(en, ko);
    };
    if let Some(place) = worst {
        let (name, times) = (place.name, times(place));
        add(format!(": {name} {times}"), format!(": {name} {times}"));
    }
    if let Some(class) = class {
        let (reason, peer) = (reason::of(class).word(), worst.map_or("", |place| place.peer));
        let peer = if peer.is_empty() { String::new() } else { format!(" {peer}") };
        add(format!(" · {}{peer}", reason.en()), format!(" · {}{peer}", reason.ko()));
    }
    let evidence = places.iter().take(PLACES_MAX).map(told_place).collect();
    let remedy = class.map(|class| next_step(class, worst));
    let mut verdict = Verdict { state: State::Failing, words, evidence, remedy, ..Verdict::default() };
    if let Some(line) = fullest.iter().find(|line| line.level != Nearness::Fine) {
        let beside = about(State::Failing, Said::default(), line, fullest, window);
        // How full it is, and who uses it or how fast it grows.
        verdict.evidence.extend(beside.evidence.into_iter().take(2));
        // A limit that is reached may be the reason, so it comes first. CPU time that is short only makes answers late.
        let is_late = class.is_some_and(|class| reason::of(class) == Reason::Timeout);
        if line.level == Nearness::Full && (line.unit != "cores" || is_late) {
            verdict.remedy = beside.remedy;
        }
        (verdict.limit, verdict.next, verdict.headroom) = (beside.limit, beside.next, beside.headroom);
    }
    Some(verdict)
}

/// The status of most failures of a place, and how many there were: `500 ×16`.
fn times(place: &FailingPlace<'_>) -> String {
    match place.status {
        Some((status, count)) => format!("{status} ×{}", group(count as f64)),
        None => format!("×{}", group(place.failed as f64)),
    }
}

/// How many requests of a place failed, and why.
fn told_place(place: &FailingPlace<'_>) -> Said {
    let (name, failed) = (place.name, group(place.failed as f64));
    let all = group(place.requests.max(place.failed) as f64);
    let class = place.class.map(|class| reason::title(&class.class)).unwrap_or_default();
    let why =
        |class: &str| match [class, place.peer].iter().filter(|text| !text.is_empty()).copied().collect::<Vec<_>>() {
            texts if texts.is_empty() => String::new(),
            texts => format!(" ({})", texts.join(", ")),
        };
    Said::of_both(
        format!("{name}: {failed} of {all} requests failed{}", why(class.en())),
        format!("{name}: 요청 {all}건 중 {failed}건 실패{}", why(class.ko())),
    )
}

/// What to do first about a class of failures.
fn next_step(class: &ErrorClass, worst: Option<&FailingPlace<'_>>) -> Said {
    let name = &class.class;
    let peer = worst.map_or("", |place| place.peer);
    let (app, app_ko) = match peer {
        "" => ("the application".to_owned(), "앱".to_owned()),
        peer => (format!("the application behind {peer}"), format!("{peer}의 앱")),
    };
    let full = |kind: &str| Said::from(words::kind(kind).remedy);
    match reason::of(class) {
        _ if name.contains("no port") => full("ports"),
        _ if name.contains("no file") => full("fds"),
        Reason::Timeout => Said::of_both(
            format!("find what {app} waits for; raise proxy_read_timeout only if its answers may take that long"),
            format!(
                "{app_ko}에서 무엇을 기다리는지 찾으세요. 원래 오래 걸리는 응답일 때만 proxy_read_timeout을 늘리세요"
            ),
        ),
        Reason::Upstream if name.contains("connection refused") => Said::of_both(
            format!("start {app}, or correct its address: nothing listens there"),
            format!("{app_ko} 프로세스를 시작하거나 주소를 고치세요: 그 주소를 리슨하는 프로세스가 없습니다"),
        ),
        Reason::Upstream if name.bytes().all(|byte| byte.is_ascii_digit()) => Said::of_both(
            format!("read the log of {app}: it answered {name} itself"),
            format!("{app_ko} 로그를 보세요: {name} 응답은 weir가 아니라 앱이 보냈습니다"),
        ),
        Reason::Upstream if ["reset", "closed", "cut short"].iter().any(|word| name.contains(word)) => Said::of_both(
            format!("look for crashes and restarts of {app}: it closed the connection before its answer was complete"),
            format!("{app_ko} 프로세스가 죽거나 다시 시작했는지 보세요: 응답이 끝나기 전에 연결을 닫았습니다"),
        ),
        _ => Said::of_both(
            "read the line of the error log beside a request in the view Errors",
            "오류 화면에서 요청 옆에 있는 오류 로그의 줄을 보세요",
        ),
    }
}

/// A limit that is full, near, or soon reached.
fn close(fullest: &[&Waterline], window: &Window<'_>) -> Option<Verdict> {
    // A limit that refuses work, or soon will, comes before one of CPU time, which only delays it.
    let full = |is_cpu| fullest.iter().find(|line| line.level == Nearness::Full && (line.unit == "cores") == is_cpu);
    let near = || fullest.iter().filter(|line| line.level == Nearness::Near);
    let soonest = || near().filter(|line| line.soon().is_some()).min_by(|a, b| left(a).total_cmp(&left(b)));
    let line = full(false).or_else(soonest).or_else(|| full(true)).or_else(|| near().next())?;
    let (title, ratio) = (words::title(&line.kind, &line.of), two(line.ratio));
    let (state, words) = match line.soon() {
        _ if line.level == Nearness::Full => (
            State::Limited,
            Said::of_both(format!("limited by {} ({ratio})", title.en()), format!("{} ({ratio})", title.ko())),
        ),
        Some(eta) => {
            let eta = eta.max(1.0);
            let words = Said::of_both(
                format!("{} ({ratio}) will be used up in {eta:.0} s", title.en()),
                format!("{} ({ratio}) · {eta:.0}초 뒤 한도 도달", title.ko()),
            );
            (State::Near, words)
        }
        None => {
            let headroom = 1.0 / line.ratio;
            let words = Said::of_both(
                format!("{} ({ratio}) · headroom ×{headroom:.1}", title.en()),
                format!("{} ({ratio}) · 여유 ×{headroom:.1}", title.ko()),
            );
            (State::Near, words)
        }
    };
    Some(about(state, words, line, fullest, window))
}

/// Seconds until a limit is reached.
fn left(line: &Waterline) -> f64 {
    line.eta_s.unwrap_or(f64::MAX)
}

/// The program that uses most of a limit of CPU time.
fn busy<'s>(line: &Waterline, snapshot: &'s Snapshot) -> Option<&'s Busiest> {
    let host = &snapshot.weir.host;
    let one = match line.kind.as_str() {
        "machine_cpu" | "cpu_credits" => host.busiest.as_ref(),
        "cpu_quota" => host.busiest_of_group.as_ref(),
        _ => None,
    };
    one.filter(|one| one.cpus >= BUSY * line.limit)
}

/// That program in words.
fn busiest(line: &Waterline, snapshot: &Snapshot) -> Option<Said> {
    let one = busy(line, snapshot)?;
    let (en, ko) = if one.is_own { ("this edge", "이 엣지") } else { (one.name.as_str(), one.name.as_str()) };
    let (used, all) = (cpus(one.cpus), cpus(line.limit));
    Some(Said::of_both(format!("{en} uses {used} of {all} CPUs"), format!("{ko}: CPU {all}개 중 {used}개 사용")))
}

/// A number of CPUs with one decimal, if it needs one.
fn cpus(number: f64) -> String {
    let text = told(number, 1);
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn healthy(fullest: &[&Waterline]) -> Verdict {
    // What is so full and not near is CPU time in a burst, which says nothing yet.
    let fullest: Vec<&Waterline> = fullest.iter().copied().filter(|line| line.ratio < NEAR).collect();
    let Some(line) = fullest.first() else {
        let words = Said::of_both("weir knows no limit here", "weir가 아는 한도가 없습니다");
        return Verdict { state: State::Healthy, words, ..Verdict::default() };
    };
    let (title, ratio) = (words::title(&line.kind, &line.of), two(line.ratio));
    let next = fullest.get(1).copied();
    if line.ratio < MENTIONED {
        let words = Said::of_both(
            format!("no resource is near its limit · fullest: {} ({ratio})", title.en()),
            format!("한도에 가까운 자원이 없습니다 · 사용률 최고: {} ({ratio})", title.ko()),
        );
        let mut verdict = Verdict { state: State::Healthy, words, ..Verdict::default() };
        (verdict.limit, verdict.next) = (Some(named(line)), next.map(named));
        verdict.evidence.push(stands(line));
        return verdict;
    }
    let headroom = 1.0 / line.ratio;
    let mut words = Said::of_both(
        format!("limited by {} ({ratio}) · headroom ×{headroom:.1}", title.en()),
        format!("가장 먼저 도달할 한도: {} ({ratio}) · 여유 ×{headroom:.1}", title.ko()),
    );
    if let Some(next) = next {
        let title = words::title(&next.kind, &next.of);
        words += Said::of_both(
            format!(" · next: {} ({})", title.en(), two(next.ratio)),
            format!(" · 다음: {} ({})", title.ko(), two(next.ratio)),
        );
    }
    Verdict {
        state: State::Healthy,
        words,
        evidence: fullest.iter().take(3).map(|line| stands(line)).collect(),
        remedy: None,
        limit: Some(named(line)),
        next: next.map(named),
        headroom: Some(headroom),
        group: None,
    }
}

/// A verdict about one limit, with its evidence. The words get the program that uses most of it.
fn about(state: State, mut words: Said, line: &Waterline, fullest: &[&Waterline], window: &Window<'_>) -> Verdict {
    let kind = words::kind(&line.kind);
    let mut evidence = vec![stands(line)];
    if let Some(program) = busiest(line, window.last) {
        words += Said::of_both(format!(" · {}", program.en()), format!(" · {}", program.ko()));
        evidence.push(program);
    }
    evidence.extend(line.growth.map(|growth| {
        let (growth, unit) = (group(growth.max(1.0)), if line.unit == "bytes" { " B" } else { "" });
        Said::of_both(format!("It grows by {growth}{unit} each second"), format!("초당 {growth}{unit}씩 늘어납니다"))
    }));
    let reuse = (line.kind == "ports").then(|| reuse(window.last, &line.of)).flatten();
    evidence.extend(reuse.filter(|reuse| *reuse < REUSE_POOR).map(|reuse| {
        if reuse <= 0.0 {
            return Said::of_both(
                "No request to it uses a kept connection: each request takes a port for a minute",
                "keepalive 연결을 쓰는 요청이 없습니다: 요청마다 포트 하나를 1분 동안 차지합니다",
            );
        }
        let share = percent(reuse);
        Said::of_both(
            format!(
                "Only {share} of requests to it use a kept connection: each other request takes a port for a minute"
            ),
            format!("요청의 {share}만 keepalive 연결을 씁니다: 나머지 요청은 각각 포트 하나를 1분 동안 차지합니다"),
        )
    }));
    let pressure = window.last.weir.host.psi_cpu.filter(|_| line.kind == "machine_cpu");
    evidence.extend(pressure.map(|share| {
        let share = percent(share);
        Said::of_both(
            format!("In {share} of the last 10 s, some task waited for a CPU (PSI)"),
            format!("최근 10초의 {share} 동안 CPU를 기다린 태스크가 있었습니다 (PSI)"),
        )
    }));
    evidence.push(Said::of_both(format!("When it is full: {}", kind.full.en), format!("가득 차면: {}", kind.full.ko)));
    let remedy = match (line.kind.as_str(), reuse) {
        ("ports", Some(reuse)) if reuse >= REUSE_POOR => Said::of_both(
            "add peers, or source addresses with proxy_bind: connections are already kept",
            "피어를 추가하거나 proxy_bind로 출발지 주소를 추가하세요: 연결은 이미 keepalive로 유지되고 있습니다",
        ),
        _ => match busy(line, window.last).filter(|program| !program.is_own) {
            Some(Busiest { name, .. }) => Said::of_both(
                format!("give {name} less CPU (CPUQuota= in its unit), move it to another machine, or use more CPUs"),
                format!("{name}의 CPU를 제한하거나(유닛의 CPUQuota=) 다른 머신으로 옮기거나, CPU를 늘리세요"),
            ),
            None => kind.remedy.into(),
        },
    };
    let next = fullest.iter().find(|other| (&other.kind, &other.of) != (&line.kind, &line.of));
    Verdict {
        state,
        words,
        evidence,
        remedy: (!remedy.en().is_empty()).then_some(remedy),
        limit: Some(named(line)),
        next: next.map(|line| named(line)),
        headroom: (line.ratio > 0.0).then(|| 1.0 / line.ratio),
        group: None,
    }
}

/// The share of requests to a peer over kept connections.
fn reuse(snapshot: &Snapshot, server: &str) -> Option<f64> {
    let peer = snapshot.weir.upstreams.values().flatten().find(|peer| peer.server == server)?;
    let all = peer.opened + peer.reused;
    (all > 0).then(|| peer.reused as f64 / all as f64)
}

fn named(line: &Waterline) -> NamedLimit {
    NamedLimit { kind: line.kind.clone(), of: line.of.clone(), ratio: line.ratio }
}

/// A limit with its numbers.
fn stands(line: &Waterline) -> Said {
    let title = words::title(&line.kind, &line.of);
    let ((used, limit), highest) = (amounts(line), amount(line, line.max));
    let setter = words::setter(&line.kind, &line.set_by);
    let by = |words: &str, by: &str| if by.is_empty() { String::new() } else { format!(" ({words}{by})") };
    Said::of_both(
        format!("{}: {used} of {limit}, highest {highest}{}", title.en(), by("set by ", setter.en())),
        format!("{}: {limit} 중 {used}, 최고 {highest}{}", title.ko(), by("기준: ", setter.ko())),
    )
}

/// Peers that are not available.
fn absent(snapshot: &Snapshot) -> Vec<Said> {
    let peers =
        snapshot.http.upstreams.iter().flat_map(|(name, group)| group.peers.iter().map(move |peer| (name, peer)));
    let absent = peers.filter(|(_, peer)| matches!(peer.state, PeerState::Unavail | PeerState::Unhealthy));
    let said = absent.take(3).map(|(name, peer)| {
        let server = &peer.server;
        Said::of_both(
            format!("{server} of {name} is unavailable after failures"),
            format!("{name}의 {server}: 실패해서 제외되었습니다"),
        )
    });
    said.collect()
}

fn same(text: String) -> Said {
    Said::of_both(text.clone(), text)
}

fn amounts(line: &Waterline) -> (String, String) {
    (amount(line, line.used), amount(line, line.limit))
}

fn amount(line: &Waterline, number: f64) -> String {
    match line.unit.as_str() {
        "bytes" => format!("{} MiB", told(number / 1_048_576.0, 1)),
        "cores" => two(number),
        _ => group(number),
    }
}

/// A number with its thousands separated.
fn group(number: f64) -> String {
    let digits = format!("{:.0}", number.max(0.0));
    let mut text = String::with_capacity(digits.len() + 4);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with this many decimals; a positive number that would be rounded to 0 is shown as less than the smallest
/// such number.
fn told(number: f64, decimals: usize) -> String {
    let least = 10f64.powi(-i32::try_from(decimals).unwrap_or(0));
    match number {
        n if n <= 0.0 => "0".to_owned(),
        n if n < least / 2.0 => format!("<{least:.decimals$}"),
        n => format!("{n:.decimals$}"),
    }
}

/// A share with two decimals.
fn two(share: f64) -> String {
    told(share, 2)
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    // Never round up to 100 %.
    let text = match percent {
        n if n > 99.5 && n < 100.0 => format!("{:.1}", n.min(99.9)),
        n if n < 9.95 => told(n, 1),
        n => told(n, 0),
    };
    format!("{text}\u{202f}%")
}

#[cfg(test)]
mod tests;
