//! A swap from its wishes to its report.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Cursor, Read};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_conf::Files;
use weir_load::url::{Scheme, Url};
use weir_net::{Address, worker};
use weir_words::{Said, said};

use crate::ask::Asker;
use crate::cause;
use crate::cause::find::SearchBounds;
use crate::doors::Door;
use crate::exercised;
use crate::judge::{Judge, JudgeRules, Judgement, RoutedRequest};
use crate::report::SwapReport;
use crate::request::{ARMS, Arm};
use crate::side::{self, Bench, OtherProgram, RunningDoor, ServerWish, Side, SideConf, SideProgram, StartedServer};
use crate::state::ApplicationState;
use crate::taps::edits::UntappedOrigin;
use crate::traffic::logs::{LogWish, TrafficLogs};
use crate::traffic::plan::{PlacedRequest, Planner};
use crate::traffic::recorded::{RecordedTraffic, RecordedWish};
use crate::traffic::{NotReplayed, Traffic, generated, routes};

/// Requests a second to servers that swap starts.
const RATE: f64 = 200.0;
/// Requests a second if a server runs already: others use it too.
const RATE_OF_RUNNING: f64 = 20.0;
/// Bytes by which the kind of a file is found.
const FIRST_BYTES: usize = 512;

/// A or B, as the user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideWish {
    /// A file, and the program that runs it. `None`: this weir.
    Conf {
        /// The main file.
        file: PathBuf,
        /// An nginx, or another weir.
        binary: Option<PathBuf>,
    },
    /// The URL of a server that runs already.
    Url(String),
}

impl SideWish {
    /// Reads the word of the command line.
    pub fn read(word: &str, binary: Option<PathBuf>) -> SideWish {
        match word.starts_with("http://") || word.starts_with("https://") {
            true => SideWish::Url(word.to_owned()),
            false => SideWish::Conf { file: PathBuf::from(word), binary },
        }
    }

    fn name(&self) -> String {
        match self {
            SideWish::Conf { file, binary: None } => file.display().to_string(),
            SideWish::Conf { file, binary: Some(binary) } => format!("{} ({})", file.display(), binary.display()),
            SideWish::Url(url) => url.clone(),
        }
    }
}

/// The wishes of the user.
#[derive(Clone, Debug)]
pub struct SwapWish {
    /// A and B.
    pub sides: [SideWish; 2],
    /// The directory of relative names, as nginx's `-p`.
    pub prefix: Option<String>,
    /// Recordings and access logs. Empty: requests are made of A's file.
    pub traffic: Vec<PathBuf>,
    /// How log lines become requests.
    pub logs: LogWish,
    /// Most requests.
    pub requests: usize,
    /// Requests a second, to all arms together. `None`: a default for the kind of the sides.
    pub rate: Option<f64>,
    /// The longest time of one exchange.
    pub timeout: Duration,
    /// The commands that keep and bring back the state of the application.
    pub state: Option<ApplicationState>,
    /// Requests go to addresses that are not loopback.
    pub is_remote_allowed: bool,
    /// The lines that make differences are searched for.
    pub finds_causes: bool,
    /// Chooses which A is asked first, and the clients if there are too many.
    pub seed: u64,
}

/// The parts that the binary gives.
pub struct SwapAsked<'a> {
    /// The command that starts this program.
    pub weir: &'a [OsString],
    /// The disk.
    pub files: &'a dyn Files,
    /// Becomes true when the user ends the run.
    pub stop: &'a Arc<AtomicBool>,
    /// Says what is being done, for a person who waits.
    pub tell: &'a dyn Fn(Said),
}

/// How requests are asked and judged.
#[derive(Clone, Debug)]
pub struct Judging {
    /// The programs.
    pub rules: JudgeRules,
    /// Requests a second, to all arms together.
    pub rate: f64,
    /// The longest time of one exchange.
    pub timeout: Duration,
    /// Chooses which A is asked first.
    pub seed: u64,
    /// Becomes true when the user ends the run.
    pub stop: Arc<AtomicBool>,
}

impl Judging {
    fn asker(&self, bench: &Bench) -> Asker {
        let asker = Asker::new(bench.doors.clone(), self.rate, self.seed);
        asker.waiting(self.timeout).watching(bench.watches())
    }

    /// A judge who asks at this bench.
    pub fn judge(&self, bench: &Bench) -> Judge {
        Judge::new(self.asker(bench), self.rules, self.stop.clone())
    }

    /// Learns the noise of each route from some of its requests.
    ///
    /// # Errors
    /// The thread that asks cannot run.
    pub fn first_pass(&self, mut judge: Judge, requests: &[RoutedRequest]) -> Result<Judge, String> {
        let requests = requests.to_vec();
        asked(async move {
            judge.first_pass(&requests).await;
            judge
        })
    }

    /// Asks all requests, each of all arms.
    ///
    /// # Errors
    /// The thread that asks cannot run.
    pub fn each(&self, bench: &Bench, mut judge: Judge, requests: Vec<RoutedRequest>) -> Result<Judge, String> {
        judge.asking(self.asker(bench));
        asked(async move {
            judge.each(requests).await;
            judge
        })
    }

    /// Removes the differences in parts that a B with empty caches gives another value.
    ///
    /// # Errors
    /// The thread that asks cannot run.
    pub fn unsteady(&self, bench: &Bench, mut judge: Judge) -> Result<Judge, String> {
        judge.asking(self.asker(bench));
        asked(async move {
            judge.unsteady().await;
            judge
        })
    }

    /// Asks one arm after another for all requests, with the same state of the application before each.
    ///
    /// # Errors
    /// A sentence for the user: a command for the state failed.
    fn arms(
        &self,
        bench: &Bench,
        mut judge: Judge,
        requests: Vec<RoutedRequest>,
        state: &ApplicationState,
    ) -> Result<Judge, Said> {
        state.keep()?;
        let mut seen = Vec::new();
        for arm in Arm::ALL {
            judge.asking(self.asker(bench));
            let own = requests.clone();
            let done = asked(async move {
                let answers = judge.arm(&own, arm).await;
                (judge, answers)
            });
            // Also after a failure, the application gets its state back.
            state.restore()?;
            let (back, answers) = done?;
            judge = back;
            seen.push(answers);
        }
        if let Ok(seen) = <[_; ARMS]>::try_from(seen) {
            judge.arms(requests, seen);
        }
        Ok(judge)
    }
}

fn asked<T: 'static>(asking: impl Future<Output = T> + 'static) -> Result<T, String> {
    worker::block_on(asking).map_err(|error| format!("weir could not send requests: {error}"))
}

/// Asks A, A again and B, and compares.
///
/// # Errors
/// A sentence for the user: a side cannot be used, or the traffic cannot be read.
pub fn run(wish: &SwapWish, asked: &SwapAsked<'_>) -> Result<SwapReport, Said> {
    let [a, b] = sides(wish, asked)?;
    // Between a server that is watched and one that is not, everything would be a difference.
    let is_watched = a.conf().is_some() && b.conf().is_some();
    let server = ServerWish { is_watched, ..ServerWish::default() };
    let bench = || Bench::start(&a, &b, [&server; ARMS]);
    let mut running = bench()?;
    let untapped = running.server(Arm::First).map(StartedServer::untapped).unwrap_or_default();
    let doors = running.doors.clone();
    let planning = [&a, &b].into_iter().filter_map(Side::conf);
    let planner = planning.filter_map(|side| Some(Planner::new(side.conf.as_ref()?, &side.tree, &doors))).next();
    let mut traffic = traffic(wish, planner.as_ref(), &doors)?;
    traffic.order(wish.requests, wish.seed);
    let routed = routes::find(std::mem::take(&mut traffic.requests), planner.as_ref());
    let (requests, places) = (routed.requests, routed.places);
    let is_running = [&a, &b].iter().any(|side| side.conf().is_none());
    let rate = wish.rate.unwrap_or(if is_running { RATE_OF_RUNNING } else { RATE });
    let (count, seconds) = (requests.len(), (3.0 * requests.len() as f64 / rate).ceil());
    (asked.tell)(said!(
        "weir swap asks A, A again and B for {count} requests, {rate} a second: about {seconds} s",
        "요청 {count}건을 A, 다시 A, B에 보냅니다. 초당 {rate}건, 약 {seconds}초"
    ));
    let rules = JudgeRules { is_same_program: is_same(&a, &b), is_nginx_and_weir: is_nginx(&a) && b.is_weir() };
    let judging = Judging { rules, rate, timeout: wish.timeout, seed: wish.seed, stop: asked.stop.clone() };
    let mut judge = judging.judge(&running);
    let judge = match &wish.state {
        Some(state) => judging.arms(&running, judge, requests, state)?,
        None => {
            judge = judging.first_pass(judge, &requests)?;
            if !is_running && !asked.stop.load(Ordering::Relaxed) {
                // Caches are empty again, as they were for the first request.
                drop(running);
                running = bench()?;
            }
            judging.each(&running, judge, requests)?
        }
    };
    drop(running);
    traffic.sources.extend(untapped.iter().map(UntappedOrigin::said));
    let mut report = report(wish, asked, &judge.finish(), &a, &places, traffic);
    if wish.finds_causes && !report.differences.is_empty() {
        (asked.tell)(said!("weir swap searches the lines that make the differences", "차이를 만드는 줄을 찾습니다"));
        cause::find::find(&mut report.differences, [&a, &b], rules, SearchBounds::default(), asked.stop);
    }
    Ok(report)
}

fn report(
    wish: &SwapWish,
    asked: &SwapAsked<'_>,
    judged: &Judgement,
    a: &Side,
    places: &[PlacedRequest],
    traffic: Traffic,
) -> SwapReport {
    let mut report = SwapReport::of(judged, wish.sides.each_ref().map(SideWish::name));
    if let Some(side) = a.conf().filter(|side| side.conf.is_some()) {
        report.exercised = exercised::statements(&side.tree, places, &judged.requests);
    }
    report.not_replayed = traffic.not_replayed;
    if judged.late > 0 {
        report.not_replayed.insert(NotReplayed::Late, judged.late);
    }
    report.sources = traffic.sources;
    report.is_stopped = asked.stop.load(Ordering::Relaxed);
    report
}

/// Reads both sides.
fn sides(wish: &SwapWish, asked: &SwapAsked<'_>) -> Result<[Side; 2], Said> {
    let mut programs = Vec::new();
    for side in &wish.sides {
        programs.push(match side {
            SideWish::Conf { binary, .. } => Some(program(binary.as_deref(), asked.weir)?),
            SideWish::Url(_) => None,
        });
    }
    // weir has no prefix of its own: it takes that of the other program.
    let others = programs.iter().flatten().filter_map(|program| program.other.as_ref());
    let of_other = others.filter(|other| !other.build.is_weir).find_map(|other| other.build.prefix());
    let of_other = of_other.map(str::to_owned);
    let mut sides = Vec::new();
    for (side, program) in wish.sides.iter().zip(programs) {
        sides.push(match (side, program) {
            (SideWish::Conf { file, .. }, Some(program)) => {
                let absolute = std::path::absolute(file).unwrap_or_else(|_| file.clone());
                let is_weir = program.is_weir();
                let prefix = wish.prefix.as_deref().or(of_other.as_deref().filter(|_| is_weir));
                Side::Conf(Box::new(SideConf::read(&absolute, program, prefix, asked.files)?))
            }
            (SideWish::Url(url), _) => Side::Running(vec![at_url(url, wish.is_remote_allowed)?]),
            (SideWish::Conf { .. }, None) => continue,
        });
    }
    <[Side; 2]>::try_from(sides).map_err(|_| Said::default())
}

fn program(binary: Option<&Path>, own: &[OsString]) -> Result<SideProgram, Said> {
    let other = match binary {
        None => None,
        Some(path) => {
            let build = side::build(path, &path.display().to_string()).map_err(Said::from)?;
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            Some(OtherProgram { path, build })
        }
    };
    Ok(SideProgram { own: own.to_vec(), other })
}

fn at_url(text: &str, is_remote_allowed: bool) -> Result<RunningDoor, Said> {
    let url = Url::parse(text).map_err(|why| Said::from(format!("{text}: ")) + why)?;
    let found = (url.host.as_str(), url.port).to_socket_addrs();
    let mut all = found.map_err(|error| Said::from(format!("{text}: {error}")))?;
    let at: SocketAddr = all.next().ok_or_else(|| Said::from(format!("{text}: no address")))?;
    if !at.ip().is_loopback() && !is_remote_allowed {
        return Err(said!(
            "{text} is not on this machine: weir swap sends requests there only with --remote",
            "{text}은(는) 이 머신의 주소가 아닙니다. --remote를 지정해야 요청을 보냅니다"
        ));
    }
    Ok(RunningDoor { address: Address::Tcp(at), at, tls: url.scheme == Scheme::Https, proxy_protocol: false })
}

/// Both are weir, or both are nginx of the same version.
fn is_same(a: &Side, b: &Side) -> bool {
    let version = |side: &Side| {
        let other = side.conf()?.program.other.as_ref();
        Some(other.filter(|other| !other.build.is_weir).map(|other| other.build.version))
    };
    version(a).is_some_and(|a| version(b) == Some(a))
}

fn is_nginx(side: &Side) -> bool {
    side.conf().is_some_and(|conf| !conf.program.is_weir())
}

/// The requests of all files; without a file, those that are made of A's configuration.
fn traffic(wish: &SwapWish, planner: Option<&Planner<'_>>, doors: &[Door]) -> Result<Traffic, Said> {
    if wish.traffic.is_empty() {
        return match planner {
            Some(planner) => Ok(generated::requests(planner, wish.requests)),
            None => Err(said!(
                "without a configuration that weir understands, weir swap needs --traffic FILE",
                "weir가 이해하는 설정이 없으면 --traffic FILE이 필요합니다"
            )),
        };
    }
    let host = wish.sides.iter().find_map(|side| match side {
        SideWish::Url(url) => Url::parse(url).ok().map(|url| url.authority),
        SideWish::Conf { .. } => None,
    });
    let host = host.unwrap_or_else(|| "localhost".to_owned());
    let mut logs = TrafficLogs::new(&wish.logs, planner, doors, &host);
    let LogWish { wants_actions, wants_all_methods, .. } = wish.logs;
    let mut recordings = RecordedTraffic::new(RecordedWish { wants_actions, wants_all_methods }, doors);
    for path in &wish.traffic {
        let (name, first, rest) = opened(path)?;
        let is_recording = weir_recording::is_recording(&first);
        let whole = Cursor::new(first).chain(rest);
        match is_recording {
            true => recordings.recording(&name, whole)?,
            false => logs.log(&name, Box::new(whole))?,
        }
    }
    let mut traffic = logs.finish();
    traffic.add(recordings.finish());
    Ok(traffic)
}

/// A file's name, its first bytes, and the rest.
type Opened = (String, Vec<u8>, Box<dyn Read>);

fn opened(path: &Path) -> Result<Opened, Said> {
    let name = path.display().to_string();
    let failed = |error: std::io::Error| Said::from(format!("{name}: {error}"));
    let mut rest: Box<dyn Read> = match name.as_str() {
        "-" => Box::new(std::io::stdin()),
        _ => Box::new(File::open(path).map_err(failed)?),
    };
    let mut first = Vec::new();
    rest.by_ref().take(FIRST_BYTES as u64).read_to_end(&mut first).map_err(failed)?;
    Ok((name, first, rest))
}

/// Requests that were left out, as sentences.
pub fn left_out(not_replayed: &BTreeMap<NotReplayed, u64>) -> Vec<(Said, u64)> {
    not_replayed.iter().map(|(why, count)| (why.said(), *count)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_word_is_a_file_or_a_url() {
        assert_eq!(SideWish::read("http://127.0.0.1:1", None), SideWish::Url("http://127.0.0.1:1".to_owned()));
        let file = SideWish::read("a.conf", Some("nginx".into()));
        assert_eq!(file.name(), "a.conf (nginx)");
    }

    #[test]
    fn an_address_of_another_machine_has_to_be_allowed() {
        assert!(at_url("http://192.0.2.1/", false).unwrap_err().contains("--remote"));
        assert_eq!(at_url("https://192.0.2.1/", true).unwrap().at, "192.0.2.1:443".parse().unwrap());
        assert!(!at_url("http://127.0.0.1:81", false).unwrap().tls);
        assert!(at_url("http://", false).is_err());
    }
}
