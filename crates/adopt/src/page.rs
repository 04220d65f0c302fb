//! The report as one page of text, and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};
use weir_conf::Level as Gravity;
use weir_doctor::FindingLevel;
use weir_swap::compare::EXPLAINED;
use weir_swap::difference::{PartDifference, part_in_korean, value_said};
use weir_swap::judge::JudgedRequest;
use weir_words::{Language, Said, said};

use crate::host::Instance;
use crate::run::{Comparison, Done, NO_DEFAULT, Report};
use crate::switch::Switch;

/// Most places of one kind of difference, and most findings, that the page shows; the JSON has all.
const SHOWN_MAX: usize = 8;
/// Width of the first column.
const COLUMN: usize = 23;

/// The page.
pub fn text(report: &Report, language: Language) -> String {
    let mut page = Page { text: String::new(), language };
    about(&mut page, report);
    refusals(&mut page, report);
    differs(&mut page, report);
    answers(&mut page, &report.comparison);
    verdict(&mut page, report);
    // A refused configuration cannot be switched to.
    if report.refusals().next().is_none() {
        report.ways.iter().for_each(|way| commands(&mut page, way));
    }
    page.text
}

struct Page {
    text: String,
    language: Language,
}

impl Page {
    fn line(&mut self, said: Said) {
        self.plain(said.say(self.language).to_owned());
    }

    fn plain(&mut self, line: String) {
        self.text.push_str(&line);
        self.text.push('\n');
    }

    fn heading(&mut self, said: Said) {
        self.text.push('\n');
        self.line(said);
    }

    /// A name and its value.
    fn row(&mut self, name: Said, value: Said) {
        let (name, value) = (name.say(self.language), value.say(self.language));
        // A Korean character is two columns wide.
        let wide = name.chars().filter(|c| !c.is_ascii()).count();
        let room = COLUMN.saturating_sub(name.chars().count() + wide);
        let written = writeln!(self.text, "  {name}{:room$} {value}", "");
        debug_assert!(written.is_ok()); // a String takes everything
    }
}

fn about(page: &mut Page, report: &Report) {
    let (one, version) = (&report.instance, report.build.version);
    match one.pid {
        Some(pid) => page.line(said!(
            "nginx {version} runs here: process {pid} of user {}",
            "실행 중인 nginx {version}: 사용자 {}의 프로세스 {pid}",
            one.user
        )),
        None => page.line(said!(
            "no nginx runs here; nginx {version} is installed",
            "실행 중인 nginx가 없습니다. 설치된 nginx의 버전: {version}"
        )),
    }
    page.row(said!("command", "명령"), Said::from(one.command()));
    if let Some((user, count)) = &one.workers {
        page.row(said!("workers", "워커"), said!("{count}, user {user}", "{count}개, 사용자 {user}"));
    }
    if let Some(unit) = &report.unit {
        let drop_ins = if unit.drop_ins.is_empty() { String::new() } else { format!(", {}", unit.drop_ins.join(", ")) };
        page.row(said!("unit", "유닛"), Said::from(format!("{} ({}{drop_ins})", unit.name, unit.file)));
    } else if let Some(name) = &one.unit {
        let said = said!("{name}; systemd does not answer here", "{name}, systemd가 응답하지 않습니다");
        page.row(said!("unit", "유닛"), said);
    }
    let (file, count) =
        (&report.origin.file, report.tree.files.iter().filter(|source| !source.is_command_line).count());
    page.row(
        said!("configuration", "설정"),
        said!("{file}; with its includes {count} files", "{file}, include를 포함해 파일 {count}개"),
    );
    if !report.changed.is_empty() {
        let changed = report.changed.join(", ");
        page.row(
            said!("changed", "바뀐 파일"),
            said!(
                "{changed}: nginx read it before the change; reload nginx first",
                "{changed}: nginx가 읽은 뒤에 바뀌었습니다. 먼저 nginx를 리로드하세요"
            ),
        );
    }
    tested(page, report);
    if !report.listens.is_empty() {
        page.row(said!("listens on", "listen"), Said::from(report.listens.join(", ")));
    }
    modules(page, report);
    for log in &report.logs {
        let path = log.path.display();
        let rotated = log.rotated.as_ref().map(|name| said!("; rotated to {name}", ", 회전된 로그: {name}"));
        page.row(
            said!("access log", "액세스 로그"),
            Said::from(format!("{path} ({})", log.format)) + rotated.unwrap_or_default(),
        );
    }
    for other in &report.others {
        let pid = other.pid.unwrap_or(0);
        page.row(said!("also runs", "다른 nginx"), Said::from(format!("{pid}: {}", other.command())));
    }
}

fn tested(page: &mut Page, report: &Report) {
    match &report.test {
        None => {}
        Some(Ok(test)) if test.is_accepted => {
            let files = test.files;
            page.row(
                Said::from("nginx -T".to_owned()),
                said!("accepts {files} files", "파일 {files}개를 받아들입니다"),
            );
        }
        Some(Ok(test)) => {
            let why = test
                .said
                .iter()
                .find(|line| line.contains("[emerg]"))
                .or(test.said.first())
                .cloned()
                .unwrap_or_default();
            page.row(Said::from("nginx -T".to_owned()), said!("fails: {why}", "실패: {why}"));
            if why.contains("Permission denied") {
                page.row(
                    Said::default(),
                    said!("run weir adopt as root to read everything", "모두 읽으려면 weir adopt를 root로 실행하세요"),
                );
            }
        }
        Some(Err(why)) => page.row(Said::from("nginx -T".to_owned()), Said::from(why.clone())),
    }
}

fn modules(page: &mut Page, report: &Report) {
    if !report.loaded_modules.is_empty() {
        page.row(said!("loads", "동적 모듈"), Said::from(report.loaded_modules.join(", ")));
    }
    if !report.lacking.is_empty() {
        let lacking = report.lacking.join(", ");
        page.row(
            said!("weir lacks", "weir에 없음"),
            said!("{lacking}; weir refuses their directives", "{lacking}. 이 모듈의 지시어는 거부합니다"),
        );
    }
}

fn refusals(page: &mut Page, report: &Report) {
    let count = report.refusals().count();
    match count {
        0 => page.heading(said!("weir refuses nothing of this configuration", "weir가 거부하는 것이 없습니다")),
        _ => page.heading(said!(
            "weir refuses this configuration; reasons: {count}",
            "weir가 설정을 거부합니다. 이유 {count}건"
        )),
    }
    for problem in report.refusals() {
        page.text.push_str(&weir_conf::render(problem, &report.tree, "nginx"));
    }
    if report.refusals().any(|problem| problem.what.contains("Permission denied")) {
        page.line(said!("run weir adopt as root to read everything", "모두 읽으려면 weir adopt를 root로 실행하세요"));
    }
}

/// The differences that a site notices first.
fn foremost(page: &mut Page, report: &Report) {
    let version = report.build.version;
    if report.foremost.opens_connections {
        page.row(
            said!("origins", "오리진"),
            said!(
                "weir asks by HTTP/1.1 and keeps the connections; nginx {version} opens a new one for each request (HTTP/1.0)",
                "HTTP/1.1로 요청하고 연결을 유지합니다. nginx {version}은 요청마다 연결을 새로 엽니다(HTTP/1.0)"
            ),
        );
    }
    if !report.foremost.caches.is_empty() {
        let folders = report.foremost.caches.join(", ");
        page.row(
            said!("caches", "캐시"),
            said!(
                "empty at first: weir cannot read nginx's files and removes them from {folders}; the origins get each page's first request again",
                "처음에는 비어 있습니다. nginx의 캐시 파일은 읽을 수 없어 {folders}에서 지웁니다. 오리진이 페이지마다 첫 요청을 다시 받습니다"
            ),
        );
    }
}

fn differs(page: &mut Page, report: &Report) {
    page.heading(said!("Under weir, these differ:", "weir에서 다른 점:"));
    foremost(page, report);
    page.row(
        said!("processes", "프로세스"),
        said!(
            "a keeper and one server with a thread for each worker; nginx has a master and worker processes",
            "키퍼 하나와, 워커마다 스레드가 있는 서버 하나. nginx는 마스터와 워커 프로세스를 둡니다"
        ),
    );
    if let Some((user, _)) = report.instance.workers.as_ref().filter(|(user, _)| *user != report.instance.user) {
        page.row(
            said!("user", "사용자"),
            said!(
                "all of weir runs as {user}, not only the workers; a program of that user can end weir",
                "워커만이 아니라 weir 전체가 사용자 {user} 권한으로 실행됩니다. 그 사용자의 프로그램은 weir를 끝낼 수 있습니다"
            ),
        );
    }
    page.row(
        said!("dashboard", "대시보드"),
        said!(
            "none under the name nginx; \"dashboard on;\" in the file serves it",
            "nginx라는 이름으로는 없습니다. 설정에 \"dashboard on;\"을 쓰면 제공합니다"
        ),
    );
    for one in &report.defaults {
        let (ours, theirs) = (one.ours, one.theirs);
        let version = report.build.version;
        let english = format!("{ours} (nginx {version}: {theirs})");
        let korean = format!("{} (nginx {version}: {})", in_korean(ours), in_korean(theirs));
        page.row(Said::from(one.name.to_owned()), Said::of_both(english, korean));
    }
    for problem in report.problems.iter().filter(|problem| matches!(problem.level, Gravity::Warn)) {
        page.row(said!("warning", "경고"), Said::from(problem.sentence(&report.tree)));
    }
    let shown = report.findings.iter().take(SHOWN_MAX);
    for finding in shown {
        page.row(
            match finding.level {
                FindingLevel::Wrong => said!("doctor, wrong", "doctor, 오류"),
                FindingLevel::Risk => said!("doctor, risk", "doctor, 위험"),
                FindingLevel::Note => said!("doctor, note", "doctor, 참고"),
            },
            Said::from(format!("{}: ", finding.place)) + finding.says.clone(),
        );
    }
    let more = report.findings.len().saturating_sub(SHOWN_MAX);
    if more > 0 {
        page.row(
            Said::default(),
            said!("and {more} more: weir doctor --for weir", "외 {more}건: weir doctor --for weir"),
        );
    }
}

/// The words of defaults that are more than a value.
const IN_KOREAN: [(&str, &str); 10] = [
    (NO_DEFAULT, "없음"),
    ("60s, and 500 bytes a second", "60s, 그리고 초당 500바이트"),
    ("60s, and 10s at first", "60s, 처음에는 10s"),
    ("1024m for all answers together", "모든 응답을 합쳐 1024m"),
    ("1024m for each", "응답마다 1024m"),
    ("from the limit on open files", "열린 파일 수의 한도에 따름"),
    ("on, but off if the file sets it anywhere", "on. 파일 어디에든 쓰면 off"),
    ("off, but for one day if the upstream cannot be reached", "off. 오리진에 연결할 수 없으면 하루 동안 on"),
    ("empty", "빈 값"),
    (
        "1 over HTTP/2 and to clients that send Sec-Fetch-Mode, else 0",
        "HTTP/2와 Sec-Fetch-Mode를 보내는 클라이언트에는 1, 그 밖에는 0",
    ),
];

fn in_korean(value: &str) -> &str {
    IN_KOREAN.iter().find(|(english, _)| *english == value).map_or(value, |(_, korean)| korean)
}

fn answers(page: &mut Page, comparison: &Comparison) {
    let done = match comparison {
        Comparison::Unwanted => return,
        Comparison::Impossible(why) => {
            page.heading(said!("No answers were compared:", "응답을 비교하지 않았습니다:"));
            page.row(Said::default(), why.clone());
            return;
        }
        Comparison::Done(done) => done,
    };
    let (count, differing) = (done.judged.requests.len(), done.differing());
    page.heading(match differing {
        0 => said!("Answers: {differing} of {count} differ", "응답: {count}건 모두 같습니다"),
        _ => said!("Answers: {differing} of {count} differ", "응답: {count}건 중 {differing}건이 다릅니다"),
    });
    for source in &done.sources {
        page.row(said!("from", "출처"), source.clone());
    }
    asked(page, done);
    for (part, places) in grouped(done) {
        let (en, ko) = (part, part_in_korean(part));
        page.line(said!("  {en} differs; URLs: {}", "  다른 부분: {ko}, URL {}개", places.len()));
        for (url, place, one) in places.iter().take(SHOWN_MAX) {
            page.plain(format!("    {url}  {place}"));
            page.line(Said::from("      nginx: ".to_owned()) + value_said(&one.a));
            page.line(Said::from("      weir:  ".to_owned()) + value_said(&one.b));
        }
        let more = places.len().saturating_sub(SHOWN_MAX);
        if more > 0 {
            page.line(said!("    and {more} more (--json has all)", "    외 {more}개(--json에 모두 있습니다)"));
        }
    }
}

/// The requests by location and by status, and the noise.
fn asked(page: &mut Page, done: &Done) {
    let (mut places, mut statuses, mut noise) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut changing = BTreeMap::new();
    for outcome in &done.judged.requests {
        *places.entry(place(done, outcome)).or_insert(0_usize) += 1;
        *statuses.entry(outcome.status).or_insert(0_usize) += 1;
        for part in &outcome.noise {
            *noise.entry(part.as_str()).or_insert(0_usize) += 1;
        }
        for part in &outcome.changing {
            *changing.entry(part.as_str()).or_insert(0_usize) += 1;
        }
    }
    let list = |all: &[(String, usize)]| {
        all.iter().map(|(name, count)| format!("{name} \u{d7} {count}")).collect::<Vec<_>>().join(", ")
    };
    let parts = |all: BTreeMap<&str, usize>| {
        let named =
            |name: fn(&str) -> String| list(&all.iter().map(|(part, count)| (name(part), *count)).collect::<Vec<_>>());
        Said::of_both(named(str::to_owned), named(part_in_korean))
    };
    let statuses: Vec<_> = statuses.into_iter().map(|(status, count)| (status.to_string(), count)).collect();
    let statuses = list(&statuses);
    let count = places.len();
    page.row(
        said!("asked", "요청한 곳"),
        said!("locations: {count}; nginx answered {statuses}", "location {count}곳. nginx의 응답: {statuses}"),
    );
    for (index, one) in EXPLAINED.iter().enumerate() {
        let count = done.judged.explained.get(&index).copied().unwrap_or(0);
        if count > 0 {
            let (en, ko) = (one.reason.en, one.reason.ko);
            page.row(said!("explained", "설명된 차이"), said!("{count} \u{d7} {en}", "{count} \u{d7} {ko}"));
        }
    }
    if !noise.is_empty() {
        page.row(
            said!("not compared", "비교하지 않음"),
            said!("nginx itself gave two values: ", "nginx의 두 응답이 서로 다름: ") + parts(noise),
        );
    }
    if !changing.is_empty() {
        let what = said!(
            "the application gives another value with each fill of a cache: ",
            "캐시를 채울 때마다 앱의 값이 달라짐: "
        );
        page.row(said!("not compared", "비교하지 않음"), what + parts(changing));
    }
    if !done.unreached.is_empty() {
        let shown: Vec<&str> = done.unreached.iter().take(SHOWN_MAX).map(String::as_str).collect();
        let (shown, count) = (shown.join("; "), done.unreached.len());
        page.row(
            said!("not asked", "요청하지 않음"),
            said!(
                "servers that no request reaches, {count}: {shown}",
                "어떤 요청도 받지 않는 server {count}개: {shown}"
            ),
        );
    }
}

/// A URL, its place and the difference.
type Example<'d> = (String, &'d str, &'d PartDifference);

/// The differences by part, the most frequent first.
fn grouped(done: &Done) -> Vec<(&str, Vec<Example<'_>>)> {
    let mut groups: BTreeMap<&str, Vec<Example<'_>>> = BTreeMap::new();
    for outcome in &done.judged.requests {
        for one in differences(done, outcome) {
            groups.entry(&one.part).or_default().push((url(done, outcome), place(done, outcome), one));
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, places)| std::cmp::Reverse(places.len()));
    groups
}

/// The differences of a request.
fn differences<'d>(done: &'d Done, outcome: &'d JudgedRequest) -> impl Iterator<Item = &'d PartDifference> {
    outcome.differences.iter().filter_map(|number| Some(&done.judged.found.get(*number)?.difference))
}

/// The location of a request.
fn place<'d>(done: &'d Done, outcome: &JudgedRequest) -> &'d str {
    let found = outcome.routed.place.and_then(|place| done.places.get(place));
    found.map_or("", |place| place.shown.as_str())
}

fn url(done: &Done, outcome: &JudgedRequest) -> String {
    let request = &outcome.routed.request;
    let scheme = done.doors.get(request.door).map_or("http", |door| door.scheme());
    let target = String::from_utf8_lossy(&request.target);
    let target: String = target.chars().map(|c| if c.is_control() { '\u{b7}' } else { c }).collect();
    format!("{} {scheme}://{}{target}", request.method, request.host)
}

fn verdict(page: &mut Page, report: &Report) {
    page.text.push('\n');
    let compared = matches!(report.comparison, Comparison::Done(_));
    page.line(match (report.is_ready(), compared) {
        (true, true) => {
            said!("Ready: weir can take the place of this nginx", "준비됨: weir가 이 nginx를 대신할 수 있습니다")
        }
        (true, false) => said!(
            "weir accepts the configuration; its answers were not compared",
            "weir가 설정을 받아들입니다. 응답은 비교하지 않았습니다"
        ),
        (false, _) => said!("Not ready: see above", "준비되지 않음: 위를 보세요"),
    });
}

fn commands(page: &mut Page, way: &Switch) {
    let name = match way.name {
        "packages" => said!("To switch with the package weir-nginx:", "weir-nginx 패키지로 바꾸려면:"),
        "unit" => {
            said!("To switch without packages, by a drop-in of the unit:", "패키지 없이 유닛의 드롭인으로 바꾸려면:")
        }
        "image" => said!("To switch the container to weir's image:", "컨테이너를 weir의 이미지로 바꾸려면:"),
        _ => said!("To switch without packages:", "패키지 없이 바꾸려면:"),
    };
    page.heading(name);
    way.there.iter().for_each(|line| page.plain(format!("    {line}")));
    page.line(said!("and back:", "되돌리려면:"));
    way.back.iter().for_each(|line| page.plain(format!("    {line}")));
}

/// The report as JSON. The keys are stable; new keys may be added.
pub fn json(report: &Report) -> Value {
    let problem = |problem: &weir_conf::Problem| {
        json!({
            "message": problem.sentence(&report.tree),
            "at": problem.at.map(|at| weir_conf::places(&[at], &report.tree)),
            "also": problem.also.iter().map(|at| weir_conf::places(&[*at], &report.tree)).collect::<Vec<_>>(),
            "remedies": problem.todo.as_deref().unwrap_or_default().lines().collect::<Vec<_>>(),
        })
    };
    let warnings = report.problems.iter().filter(|problem| matches!(problem.level, Gravity::Warn));
    json!({
        "version": 1,
        "weir_adopt": 1,
        "ready": report.is_ready(),
        "nginx": nginx(report),
        "refusals": report.refusals().map(problem).collect::<Vec<_>>(),
        "warnings": warnings.map(problem).collect::<Vec<_>>(),
        "defaults": report.defaults.iter().map(|one| json!({"directive": one.name, "weir": one.ours, "nginx": one.theirs})).collect::<Vec<_>>(),
        "findings": report.findings.iter().map(|one| json!({"level": one.level.name(), "rule": one.rule, "at": one.place, "what": one.says.en(), "what_ko": one.says.ko()})).collect::<Vec<_>>(),
        "comparison": comparison(&report.comparison),
        "ways": report.ways.iter().map(|way| json!({"name": way.name, "there": way.there, "back": way.back})).collect::<Vec<_>>(),
    })
}

fn nginx(report: &Report) -> Value {
    let one = &report.instance;
    let instance = |one: &Instance| json!({"pid": one.pid, "command": one.command()});
    let test = report.test.as_ref().map(|test| match test {
        Ok(test) => json!({"accepted": test.is_accepted, "files": test.files, "said": test.said}),
        Err(why) => json!({"accepted": false, "files": 0, "said": [why]}),
    });
    json!({
        "pid": one.pid,
        "command": one.command(),
        "version": report.build.version.to_string(),
        "user": one.user,
        "workers": one.workers.as_ref().map(|(user, count)| json!({"user": user, "count": count})),
        "unit": report.unit.as_ref().map(|unit| json!({"name": unit.name, "file": unit.file, "drop_ins": unit.drop_ins, "type": unit.kind})),
        "configuration": report.origin.file,
        "files": report.tree.files.iter().filter(|source| !source.is_command_line).map(|source| &source.name).collect::<Vec<_>>(),
        "changed": report.changed,
        "test": test,
        "listens": report.listens,
        "modules": {"loaded": report.loaded_modules, "lacking": report.lacking},
        "logs": report.logs.iter().map(|log| json!({"path": log.path, "format": log.format, "rotated": log.rotated})).collect::<Vec<_>>(),
        "others": report.others.iter().map(instance).collect::<Vec<_>>(),
    })
}

fn comparison(comparison: &Comparison) -> Value {
    let done = match comparison {
        Comparison::Unwanted => return Value::Null,
        Comparison::Impossible(why) => return json!({"impossible": why.en(), "impossible_ko": why.ko()}),
        Comparison::Done(done) => done,
    };
    let one = |outcome: &JudgedRequest| {
        json!({
            "url": url(done, outcome),
            "place": place(done, outcome),
            "status": outcome.status,
            "noise": outcome.noise,
            "changing": outcome.changing,
            "explained": outcome.explained.iter().filter_map(|index| Some(EXPLAINED.get(*index)?.name)).collect::<Vec<_>>(),
            "differences": differences(done, outcome).map(|one| json!({"part": one.part, "nginx": one.a, "weir": one.b})).collect::<Vec<_>>(),
        })
    };
    json!({
        "asked": done.judged.requests.len(),
        "differ": done.differing(),
        "sources": done.sources.iter().map(Said::en).collect::<Vec<_>>(),
        "unreached": done.unreached,
        "answers": done.judged.requests.iter().map(one).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new default with English words needs its Korean words.
    #[test]
    fn defaults_with_words_have_korean_words() {
        let tree = weir_conf::load(&weir_conf::MemoryFiles::new().with("/f", "events { }"), "/f", "/", &|_| false).0;
        for one in weir_edge::explain::differing(&tree) {
            for value in [one.ours, one.theirs] {
                let has_words =
                    value.split([' ', ',']).any(|word| word.len() > 3 && word.chars().all(|c| c.is_ascii_lowercase()));
                assert!(!has_words || value == "auto" || in_korean(value) != value, "{}: {value}", one.name);
            }
        }
    }
}
