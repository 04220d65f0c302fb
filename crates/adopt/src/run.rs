//! The whole of `weir adopt`: finds, reads, compares.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use weir_conf::log_format::Format;
use weir_conf::{Level as Gravity, Problem, Tree};
use weir_doctor::{Build, Facts, FindingLevel, Target, Version};
use weir_edge::explain::{self, Differing};
use weir_edge::load::{self, ConfOrigin, Loaded};
use weir_http::exchange::conf::Conf;
use weir_swap::ask;
use weir_swap::doors::{self, Door};
use weir_swap::judge::{JudgeRules, Judgement};
use weir_swap::request::{ARMS, SwapRequest};
use weir_swap::run::{Judging, SwapAsked, left_out};
use weir_swap::side::{Bench, RunningDoor, ServerWish, Side, SideConf, SideProgram};
use weir_swap::traffic::plan::{Logged, PlacedRequest, Planner};
use weir_swap::traffic::recorded::{RecordedTraffic, RecordedWish};
use weir_swap::traffic::urls::{self, ADOPT_AGENT, Log, LogUrls};
use weir_swap::traffic::{NotReplayed, routes};
use weir_words::{Said, said};

use crate::elsewhere;
use crate::host::{self, Instance};
use crate::nginx::{self, Test, Unit};
use crate::switch::{self, Switch};

/// Usual places of an installed nginx.
const USUAL: &[&str] =
    &["/usr/sbin/nginx", "/usr/local/nginx/sbin/nginx", "/usr/local/sbin/nginx", "/opt/nginx/sbin/nginx"];

/// Directives with which nginx and weir keep answers, each at its own time.
const CACHES: &[&str] = &["proxy_cache", "fastcgi_cache", "uwsgi_cache", "scgi_cache"];

/// The default of a directive that this nginx has without one.
pub(crate) const NO_DEFAULT: &str = "none";

/// The wishes of the user.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The master process, if there are several.
    pub pid: Option<u32>,
    /// The program, instead of a running one.
    pub nginx: Option<PathBuf>,
    /// The configuration, instead of the one that nginx reads.
    pub conf: Option<PathBuf>,
    /// Access logs with URLs, instead of those of the configuration.
    pub logs: Vec<PathBuf>,
    /// Recordings whose requests are asked, instead of the URLs of logs.
    pub recordings: Vec<PathBuf>,
    /// Most URLs that are asked.
    pub requests: usize,
    /// Requests a second.
    pub rate: f64,
    /// URLs that begin with one of these are not asked.
    pub skip: Vec<String>,
    /// URLs are asked that announce an action.
    pub wants_actions: bool,
    /// Asks nginx and weir, and compares.
    pub compares: bool,
}

/// A finding of the doctor.
pub(crate) struct Noted {
    pub(crate) level: FindingLevel,
    pub(crate) rule: &'static str,
    pub(crate) place: String,
    pub(crate) says: Said,
}

/// The answers.
pub(crate) enum Comparison {
    /// The user did not ask for it.
    Unwanted,
    /// Why there is none.
    Impossible(Said),
    /// Both were asked.
    Done(Box<Done>),
}

/// The outcome of a comparison.
#[derive(Default)]
pub(crate) struct Done {
    pub(crate) judged: Judgement,
    /// The locations of the requests.
    pub(crate) places: Vec<PlacedRequest>,
    pub(crate) doors: Vec<Door>,
    /// Sentences about the source of the URLs.
    pub(crate) sources: Vec<Said>,
    /// Servers that no request could reach.
    pub(crate) unreached: Vec<String>,
}

impl Done {
    pub(crate) fn differing(&self) -> usize {
        self.judged.requests.iter().filter(|one| !one.differences.is_empty()).count()
    }

    fn with(mut self, judged: Judgement) -> Done {
        if judged.late > 0 {
            self.sources.push(not_asked(NotReplayed::Late.said(), judged.late));
        }
        Done { judged, ..self }
    }
}

/// Everything that the page says.
pub struct Report {
    pub(crate) instance: Instance,
    pub(crate) others: Vec<Instance>,
    pub(crate) build: Build,
    pub(crate) unit: Option<Unit>,
    pub(crate) test: Option<Result<Test, String>>,
    pub(crate) loaded_modules: Vec<String>,
    pub(crate) lacking: Vec<String>,
    pub(crate) origin: ConfOrigin,
    pub(crate) tree: Tree,
    pub(crate) problems: Vec<Problem>,
    pub(crate) listens: Vec<String>,
    /// Files that changed after nginx had read them.
    pub(crate) changed: Vec<String>,
    pub(crate) logs: Vec<Log>,
    pub(crate) defaults: Vec<Differing>,
    pub(crate) foremost: Foremost,
    pub(crate) findings: Vec<Noted>,
    pub(crate) comparison: Comparison,
    pub(crate) ways: Vec<Switch>,
}

impl Report {
    /// The problems with which weir refuses the configuration.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(|problem| matches!(problem.level, Gravity::Emerg))
    }

    /// weir accepts everything, and no answer differs.
    pub fn is_ready(&self) -> bool {
        let agrees = match &self.comparison {
            Comparison::Unwanted => true,
            // A program that does not run cannot be asked.
            Comparison::Impossible(_) => self.instance.pid.is_none(),
            Comparison::Done(done) => done.differing() == 0 && !done.judged.requests.is_empty(),
        };
        self.refusals().next().is_none() && agrees
    }
}

/// Looks at the nginx of this machine.
///
/// # Errors
/// A sentence for the user: nothing can be said about any nginx.
pub fn run(wish: &Wish, asked: &SwapAsked<'_>) -> Result<Report, Said> {
    let (instance, others) = choose(wish)?;
    let build = nginx::build(&instance).map_err(weir_words::Said::from)?;
    if build.is_weir {
        return Err(said!("{} is weir already", "이미 weir입니다: {}", instance.command()));
    }
    let unit = instance.unit.as_deref().and_then(nginx::unit);
    let origin = nginx::origin(&instance, &build, wish.conf.as_deref());
    // `-t` makes files of a configuration that nginx does not run: only a running nginx is asked.
    let test = (instance.pid.is_some() && wish.conf.is_none()).then(|| nginx::test(&instance));
    let loaded = load::load(&origin, asked.files, 1);
    let Loaded { tree, problems, conf, .. } = loaded;
    if tree.root.is_empty() {
        let all: Vec<String> = problems.iter().map(|problem| problem.sentence(&tree)).collect();
        return Err(weir_words::Said::from(all.join("; ")));
    }
    let loaded_modules = loaded_modules(&tree);
    let lacking = {
        let (linked, _) = nginx::modules(&build);
        nginx::lacking(&linked)
    };
    let default = origin.paths.access_log.clone().unwrap_or_default();
    let mut logs = urls::logs(&tree, &origin.paths.prefix, &default);
    name_logs(&mut logs, wish, &tree);
    let program = asked.weir.last().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    let mut report = Report {
        others,
        unit,
        test,
        loaded_modules,
        lacking,
        changed: changed(&instance, &tree),
        listens: listens(&instance, conf.as_ref()),
        logs,
        defaults: in_force(&tree, build.version),
        foremost: foremost(&tree, build.version),
        findings: findings(&tree),
        comparison: Comparison::Unwanted,
        ways: Vec::new(),
        instance,
        build,
        origin,
        tree,
        problems,
    };
    report.ways = match elsewhere::inside() {
        Some(_) => vec![switch::by_image(&report.build.version.to_string())],
        None => switch::ways(&report.instance, report.unit.as_ref(), &report.origin, &program),
    };
    if wish.compares {
        report.comparison = match conf {
            None => Comparison::Impossible(said!(
                "weir refuses the configuration, so it cannot answer",
                "weir가 설정을 거부하므로 응답할 수 없습니다"
            )),
            Some(_) => compare(&report, wish, asked).map_err(weir_words::Said::from)?,
        };
    }
    Ok(report)
}

/// The process of the nginx that the user means, if it has another root directory: it runs in a container.
///
/// # Errors
/// A sentence for the user: nothing can be said about any nginx.
pub fn container(wish: &Wish) -> Result<Option<u32>, Said> {
    let (instance, _) = choose(wish)?;
    Ok(instance.pid.filter(|_| instance.is_elsewhere))
}

/// The instance that the user means, and the others that run.
fn choose(wish: &Wish) -> Result<(Instance, Vec<Instance>), Said> {
    if let Some(path) = &wish.nginx {
        let same = |one: &Instance| Path::new(&one.shown) == path;
        let (mut running, others): (Vec<_>, Vec<_>) = host::instances(Path::new("/")).into_iter().partition(same);
        return match running.len() {
            0 => Ok((Instance::installed(path), others)),
            1 => Ok((running.remove(0), others)),
            _ => several(running, wish.pid),
        };
    }
    let running = host::instances(Path::new("/"));
    match running.len() {
        0 if wish.pid.is_none() => {
            let found = USUAL.iter().map(Path::new).find(|path| path.is_file());
            let found = found.ok_or_else(|| {
                said!(
                    "no nginx runs here, and none is installed in the usual places; --nginx PATH names one",
                    "실행 중인 nginx가 없고, 일반적인 위치에 설치된 nginx도 없습니다. --nginx PATH로 지정하세요"
                )
            })?;
            Ok((Instance::installed(found), Vec::new()))
        }
        _ => several(running, wish.pid),
    }
}

fn several(mut running: Vec<Instance>, pid: Option<u32>) -> Result<(Instance, Vec<Instance>), Said> {
    let list = |running: &[Instance]| -> String {
        running.iter().map(|one| format!("\n  --pid {}  {}", one.pid.unwrap_or(0), one.command())).collect()
    };
    let number = match pid {
        Some(pid) => running.iter().position(|one| one.pid == Some(pid)),
        None if running.len() == 1 => Some(0),
        None => {
            let (count, list) = (running.len(), list(&running));
            return Err(said!(
                "{count} nginx run here; choose one:{list}",
                "nginx {count}개가 실행 중입니다. 하나를 고르세요:{list}"
            ));
        }
    };
    let Some(number) = number else {
        let pid = pid.unwrap_or(0);
        return Err(match running.is_empty() {
            true => said!(
                "process {pid} is no master process of an nginx, and none runs here",
                "프로세스 {pid}은(는) nginx의 마스터 프로세스가 아니며, 실행 중인 nginx도 없습니다"
            ),
            false => said!(
                "process {pid} is no master process of an nginx; here run:{}",
                "프로세스 {pid}은(는) nginx의 마스터 프로세스가 아닙니다. 실행 중인 nginx:{}",
                list(&running)
            ),
        });
    };
    let chosen = running.remove(number);
    Ok((chosen, running))
}

/// The modules of `load_module` lines that weir does not have.
fn loaded_modules(tree: &Tree) -> Vec<String> {
    let name = |path: &str| {
        let file = path.rsplit('/').next().unwrap_or_default();
        file.strip_suffix(".so").unwrap_or(file).to_owned()
    };
    tree.named("load_module").map(|statement| name(statement.text(0))).collect()
}

/// The logs that the user named take the place of those of the configuration.
fn name_logs(logs: &mut Vec<Log>, wish: &Wish, tree: &Tree) {
    if wish.logs.is_empty() {
        return;
    }
    let servers: Vec<usize> = (0..doors::servers(tree).count()).collect();
    let named = wish.logs.iter().take(urls::LOGS_MAX).map(|path| {
        let full = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let known = logs.iter().find(|log| log.path == full).cloned();
        known.unwrap_or_else(|| {
            let http = tree.named("http").next();
            let reads = http.and_then(|http| Format::named(http, "combined"));
            Log { path: full, format: "combined".to_owned(), reads, servers: servers.clone(), rotated: None }
        })
    });
    let named: Vec<Log> = named.collect();
    *logs = named;
}

/// The files that are newer than nginx's newest worker: nginx still serves what was there before.
fn changed(instance: &Instance, tree: &Tree) -> Vec<String> {
    let Some(read_at) = instance.read_at else { return Vec::new() };
    let is_newer = |name: &str| {
        let found = std::fs::metadata(name).and_then(|found| found.modified()).ok();
        let since = found.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        // The start of a process is known to a second.
        since.is_some_and(|since| since.as_secs() > read_at + 1)
    };
    let files = tree.files.iter().filter(|source| !source.is_command_line && is_newer(&source.name));
    files.map(|source| source.name.clone()).collect()
}

/// The addresses on which the process listens; if `/proc` does not show them, those of the file.
fn listens(instance: &Instance, conf: Option<&Conf>) -> Vec<String> {
    let own = instance.pid.map(weir_host::family).unwrap_or_default();
    let open = weir_host::listens_of(Path::new("/"), &own);
    match open.is_empty() {
        true => conf.iter().flat_map(|conf| &conf.listens).map(|listen| shown(&listen.address)).collect(),
        false => open.into_iter().collect(),
    }
}

fn shown(address: &weir_net::Address) -> String {
    match address {
        weir_net::Address::Tcp(tcp) => tcp.to_string(),
        weir_net::Address::Unix(path) => format!("unix:{}", path.display()),
    }
}

/// Defaults that differ from those of this nginx, are in force, and concern something that the file uses.
fn in_force(tree: &Tree, version: Version) -> Vec<Differing> {
    let has = |name: &str| uses(&tree.root, name);
    let has_quic = listens_by_quic(&tree.root);
    let concerns = |name: &str| {
        let protocol = ["proxy_", "fastcgi_", "uwsgi_", "scgi_", "grpc_", "memcached_"]
            .into_iter()
            .find(|prefix| name.starts_with(prefix));
        let Some(protocol) = protocol else {
            return (name != "keepalive" || has("upstream")) && (!name.starts_with("quic_") || has_quic);
        };
        has(&format!("{protocol}pass")) && (!name.contains("_cache") || has(&format!("{protocol}cache")))
    };
    let mut all = explain::differing(tree);
    all.retain(|one| one.set_in.is_none() && concerns(one.name));
    // `stream` has some of the names of `http`.
    let mut known = std::collections::HashSet::new();
    all.retain(|one| known.insert(one.name));
    for one in &mut all {
        one.theirs = of_version(one, version);
    }
    all.retain(|one| one.ours != one.theirs);
    all
}

/// The default of a directive in this version of nginx.
fn of_version(one: &Differing, version: Version) -> &'static str {
    let places: [&[&str]; 4] = [&[], &["events"], &["http"], &["http", "upstream"]];
    let known = |place: &&[&str]| {
        let path: Vec<String> = place.iter().map(|block| (*block).to_owned()).collect();
        Target::Nginx(version).known(one.name, &path)
    };
    let Some(known) = places.iter().find_map(known) else { return one.theirs };
    let default = known.default.unwrap_or(NO_DEFAULT);
    // The text may say more than the value, as "1024m for each" does.
    let says_more = one.theirs.strip_prefix(default).is_some_and(|more| more.starts_with(' '));
    if says_more { one.theirs } else { default }
}

fn uses(statements: &[weir_conf::Statement], name: &str) -> bool {
    statements.iter().any(|statement| statement.name == *name || uses(statement.children(), name))
}

fn listens_by_quic(statements: &[weir_conf::Statement]) -> bool {
    statements.iter().any(|statement| {
        let is_own = statement.name == *"listen" && statement.args.iter().any(|word| word.text == "quic");
        is_own || listens_by_quic(statement.children())
    })
}

/// The differences that matter most. The page begins with them.
pub(crate) struct Foremost {
    /// This nginx asks origins by HTTP/1.0 and opens a connection for each request, at least at some places of the file.
    pub(crate) opens_connections: bool,
    /// The folders of the caches.
    pub(crate) caches: Vec<String>,
}

fn foremost(tree: &Tree, version: Version) -> Foremost {
    let is_old = version < Version(1, 29, 7);
    let mut caches: Vec<String> = Vec::new();
    for name in CACHES {
        arguments(&tree.root, &format!("{name}_path"), &mut caches);
    }
    Foremost { opens_connections: is_old && asks_by_default(&tree.root, false), caches }
}

/// Whether there is a place with `proxy_pass` that no `proxy_http_version` is in force for.
fn asks_by_default(statements: &[weir_conf::Statement], is_set: bool) -> bool {
    let has = |name: &str| statements.iter().any(|statement| statement.name == *name);
    let is_set = is_set || has("proxy_http_version");
    let is_here = has("proxy_pass") && !is_set;
    is_here || statements.iter().any(|statement| asks_by_default(statement.children(), is_set))
}

/// The first argument of each statement of this name.
fn arguments(statements: &[weir_conf::Statement], name: &str, found: &mut Vec<String>) {
    for statement in statements {
        if statement.name == *name && !statement.text(0).is_empty() {
            found.push(statement.text(0).to_owned());
        }
        arguments(statement.children(), name, found);
    }
}

/// The doctor's findings for weir that are more than notes. The page has the refused lines by themselves.
fn findings(tree: &Tree) -> Vec<Noted> {
    let all = weir_doctor::examine(tree, Target::Weir, &Facts::default());
    let is_more =
        |finding: &weir_doctor::Finding| finding.level < FindingLevel::Note && !weir_doctor::rules::refuses(finding);
    let noted = all.into_iter().filter(is_more).map(|finding| Noted {
        level: finding.level,
        rule: finding.rule,
        place: finding.at.map(|at| weir_conf::places(&[at], tree)).unwrap_or_default(),
        says: finding.what,
    });
    noted.collect()
}

/// Starts weir beside nginx and asks both.
fn compare(report: &Report, wish: &Wish, asked: &SwapAsked<'_>) -> Result<Comparison, String> {
    if report.instance.pid.is_none() {
        return Ok(Comparison::Impossible(said!(
            "nginx does not run, so nobody can ask it",
            "nginx가 실행 중이 아니므로 요청할 수 없습니다"
        )));
    }
    match swap(report, wish, asked) {
        Ok(done) => Ok(Comparison::Done(Box::new(done?))),
        Err(why) => Ok(Comparison::Impossible(why)),
    }
}

/// The swap of this nginx for weir. The outer error says why it is impossible.
fn swap(report: &Report, wish: &Wish, asked: &SwapAsked<'_>) -> Result<Result<Done, String>, Said> {
    let nginx = Side::Running(running(&doors::of(&report.tree)?));
    let program = SideProgram { own: asked.weir.to_vec(), other: None };
    let weir = Side::Conf(Box::new(SideConf::of(report.origin.clone(), program, asked.files)?));
    let bench = || Bench::start(&nginx, &weir, [&ServerWish::default(); ARMS]);
    let mut running = bench()?;
    let doors = running.doors.clone();
    let planner = weir.conf().and_then(|side| Some(Planner::new(side.conf.as_ref()?, &side.tree, &doors)));
    let Some(planner) = planner else { return Ok(Ok(Done::default())) };
    let mut done = Done { unreached: planner.unreached(), doors: doors.clone(), ..Done::default() };
    let requests = match wish.recordings.is_empty() {
        true => logged(report, wish, &planner, &mut done),
        false => recorded(wish, &doors, &mut done)?,
    };
    let (count, rate) = (requests.len(), wish.rate);
    let seconds = (3.0 * count as f64 / rate).ceil();
    (asked.tell)(said!(
        "weir adopt asks nginx twice and weir once for {count} URLs, {rate} requests a second: about {seconds} s",
        "URL {count}개를 nginx에 두 번, weir에 한 번 요청합니다. 초당 {rate}건, 약 {seconds}초"
    ));
    let routed = routes::find(requests, Some(&planner));
    done.places = routed.places;
    let rules = JudgeRules { is_same_program: false, is_nginx_and_weir: true };
    let judging = Judging { rules, rate: wish.rate, timeout: ask::TIMEOUT, seed: 0, stop: asked.stop.clone() };
    let judge = judging.each(&running, judging.judge(&running), routed.requests);
    drop(running);
    let judge = match judge {
        Ok(judge) => judge,
        Err(why) => return Ok(Err(why)),
    };
    let differing = judge.differing();
    let has_caches = CACHES.iter().any(|name| uses(&report.tree.root, name));
    if differing == 0 || !has_caches {
        return Ok(Ok(done.with(judge.finish())));
    }
    (asked.tell)(said!(
        "weir adopt starts weir with empty caches, and asks it again for the {differing} URLs whose answers differ",
        "weir adopt가 weir를 빈 캐시로 시작해 응답이 서로 다른 URL {differing}개를 다시 요청합니다"
    ));
    // If weir does not start again, the page keeps the differences.
    let judge = match bench() {
        Ok(again) => {
            running = again;
            judging.unsteady(&running, judge)
        }
        Err(_) => Ok(judge),
    };
    Ok(judge.map(|judge| done.with(judge.finish())))
}

/// The requests of the logs; without any, those of the locations.
fn logged(report: &Report, wish: &Wish, planner: &Planner<'_>, done: &mut Done) -> Vec<SwapRequest> {
    let found = read_logs(report, wish, done);
    let logged: Vec<Logged<'_>> = found
        .iter()
        .flat_map(|(log, found)| found.entries.iter().map(|entry| Logged { entry, servers: &log.servers }))
        .collect();
    let mut requests = planner.requests(&logged, wish.requests);
    if requests.is_empty() {
        requests = planner.of_file(wish.requests);
        done.sources.push(said!(
            "no log has a URL to ask: weir adopt asks the paths of the locations",
            "로그에 요청할 URL이 없어 location의 경로를 요청합니다"
        ));
    }
    for request in &mut requests {
        request.set("User-Agent", ADOPT_AGENT.as_bytes());
        request.set("Accept", b"*/*");
        request.set("Accept-Encoding", b"gzip");
    }
    requests
}

/// The requests of the recordings, with their own fields.
fn recorded(wish: &Wish, doors: &[Door], done: &mut Done) -> Result<Vec<SwapRequest>, Said> {
    let wanted = RecordedWish { wants_actions: wish.wants_actions, wants_all_methods: false };
    let mut all = RecordedTraffic::new(wanted, doors);
    for path in &wish.recordings {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| Said::from(format!("{name}: {error}")))?;
        all.recording(&name, BufReader::new(file))?;
    }
    let mut traffic = all.finish();
    let is_skipped =
        |request: &SwapRequest| wish.skip.iter().any(|prefix| request.target.starts_with(prefix.as_bytes()));
    traffic.requests.retain(|request| !is_skipped(request));
    traffic.order(wish.requests, 0);
    done.sources.extend(traffic.sources);
    done.sources.extend(left_out(&traffic.not_replayed).into_iter().map(|(why, count)| not_asked(why, count)));
    Ok(traffic.requests)
}

fn not_asked(why: Said, count: u64) -> Said {
    said!("not asked: {count}: ", "요청하지 않은 {count}건: ") + why
}

/// The addresses at which this nginx can be asked.
fn running(doors: &[Door]) -> Vec<RunningDoor> {
    let one = |door: &Door| {
        let at = doors::reachable(door.address.tcp()?);
        Some(RunningDoor { address: door.address.clone(), at, tls: door.tls, proxy_protocol: door.proxy_protocol })
    };
    doors.iter().filter_map(one).collect()
}

/// Reads the logs, and says what it found in each.
fn read_logs<'r>(report: &'r Report, wish: &Wish, done: &mut Done) -> Vec<(&'r Log, LogUrls)> {
    let mut all = Vec::new();
    for log in &report.logs {
        match urls::read(log, wish.wants_actions, &wish.skip) {
            Err(why) => done.sources.push(why),
            Ok(found) => {
                done.sources.push(source(log, &found));
                all.push((log, found));
            }
        }
    }
    all
}

/// The URLs of a log, and the lines that were left out.
fn source(log: &Log, found: &LogUrls) -> Said {
    let (shown, urls, lines) = (log.path.display(), found.entries.len(), found.lines);
    let (unread, others, actions) = (found.unread, found.other_methods, found.actions);
    let mut said = said!(
        "{shown}: lines at its end: {lines}; different URLs: {urls}",
        "{shown}: 마지막 {lines}줄, 서로 다른 URL {urls}개"
    );
    if unread > 0 {
        said += said!("; lines that cannot be sent again: {unread}", ", 다시 보낼 수 없는 줄 {unread}개");
    }
    if others > 0 {
        said += said!("; neither GET nor HEAD: {others}", ", GET도 HEAD도 아닌 요청 {others}건");
    }
    if actions > 0 {
        said += said!(
            "; left out, because they announce an action: {actions} (--ask-all asks them)",
            ", 동작을 뜻해 제외한 URL {actions}개(--ask-all로 포함)"
        );
    }
    said
}
