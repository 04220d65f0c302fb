//! The Korean of weir: every Korean text in the sources keeps to the glossary, and the Korean pages are in step with the
//! English ones.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_conf::glossary::forbidden_in;
use weir_conf::said::{english_in, is_korean};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The files that name the forbidden words because they forbid them.
const ABOUT_THE_GLOSSARY: [&str; 2] = ["crates/conf/src/glossary.rs", "crates/conf/src/said/check.rs"];

fn text(name: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Every file below a folder whose name ends with one of these.
fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, endings, found);
        } else if endings.iter().any(|ending| path.to_str().is_some_and(|name| name.ends_with(ending))) {
            found.push(path);
        }
    }
}

/// The Korean string literals of a source.
fn literals(source: &str) -> Vec<&str> {
    let pieces = source.split('"').collect::<Vec<_>>();
    pieces.into_iter().filter(|piece| is_korean(piece)).collect()
}

#[test]
fn every_korean_text_keeps_to_the_glossary() {
    let mut sources = Vec::new();
    for folder in ["src", "crates", "tests"] {
        files(&Path::new(ROOT).join(folder), &[".rs", "i18n.js", "/help.txt"], &mut sources);
    }
    let (mut wrong, mut count) = (Vec::new(), 0);
    for path in sources {
        let name = path.strip_prefix(ROOT).unwrap().to_str().unwrap().to_owned();
        let source = fs::read_to_string(&path).unwrap_or_default();
        if ABOUT_THE_GLOSSARY.contains(&name.as_str()) || name.contains("node_modules") {
            continue;
        }
        let korean = if name.ends_with(".txt") { source.lines().collect() } else { literals(&source) };
        for text in korean.into_iter().filter(|text| is_korean(text)) {
            count += 1;
            wrong.extend(forbidden_in(text).map(|word| format!("{name}: {word}: {text}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 2000, "only {count} Korean texts were found");
}

#[test]
fn the_korean_pages_keep_to_the_glossary() {
    for page in ["README.ko.md", "docs/guide/README.ko.md", "docs/guide/first-hour.ko.md"] {
        for line in text(page).lines() {
            assert_eq!(forbidden_in(line), None, "{page}: {line}");
        }
    }
}

/// The parts of a page that do not depend on its language: levels of headings, rows of tables, the lines of code without
/// their comments, and the targets of links.
fn skeleton(page: &str, is_link_of_language: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut parts = Vec::new();
    for line in page.lines() {
        if let Some(code) = line.strip_prefix("    ") {
            let code = code.split(" # ").next().unwrap_or_default();
            parts.push(format!("code {}", code.trim_end()));
        } else if line.starts_with('#') {
            parts.push(format!("heading {}", line.split(' ').next().unwrap_or_default()));
        } else if line.starts_with('|') {
            parts.push(format!("row {}", line.split('|').nth(1).unwrap_or_default().trim()));
        }
    }
    let mut links: Vec<&str> = page.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    links.retain(|link| !is_link_of_language(link));
    links.sort_unstable();
    parts.extend(links.into_iter().map(|link| format!("link {}", link.replace(".ko.", "."))));
    parts
}

#[test]
fn the_korean_readme_and_index_are_in_step() {
    let is_other = |link: &str| matches!(link, "README.md" | "README.ko.md");
    for (korean, english) in [("README.ko.md", "README.md"), ("docs/guide/README.ko.md", "docs/guide/README.md")] {
        assert_eq!(skeleton(&text(korean), &is_other), skeleton(&text(english), &is_other), "{korean}");
    }
    let fewer = text("README.ko.md").replace("    weir edge -t -c /etc/nginx/nginx.conf\n", "");
    assert_ne!(skeleton(&fewer, &is_other), skeleton(&text("README.md"), &is_other));
}

/// The commands of a guide, without the language.
fn commands(page: &str) -> Vec<String> {
    page.lines().filter_map(|line| Some(line.strip_prefix("$ ")?.replace(" --lang ko", ""))).collect()
}

#[test]
fn the_korean_first_hour_is_in_step() {
    let (english, korean) = (text("docs/guide/first-hour.md"), text("docs/guide/first-hour.ko.md"));
    assert_eq!(commands(&korean), commands(&english));
    let headings = |page: &str| page.lines().filter(|line| line.starts_with("## ")).count();
    assert_eq!(headings(&korean), headings(&english));
    let asks = |line: &&str| line.starts_with("$ weir doctor");
    assert!(korean.lines().filter(asks).all(|line| line.ends_with(" --lang ko")));
}

/// Runs weir with a language of the environment.
fn weir(args: &[&str], language: &str) -> (String, String, Option<i32>) {
    let out = Command::new(WEIR).args(args).env_remove("WEIR_LANG").env("LC_ALL", language).output().unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (said(&out.stdout), said(&out.stderr), out.status.code())
}

#[test]
fn the_environment_or_the_flag_chooses_the_language() {
    for (args, language, part) in [
        (&["help", "lab", "ab"][..], "ko_KR.UTF-8", "\n사용법: weir lab ab [옵션]"),
        (&["--lang", "en", "help", "lab", "ab"], "ko_KR.UTF-8", "\nUsage: weir lab ab [OPTIONS]"),
        (&["lab", "ab", "--help", "--lang=ko"], "C", "\n사용법: weir lab ab [옵션]"),
        (&["lab", "words"], "ko_KR.UTF-8", "판정"),
        (&["version"], "ko_KR.UTF-8", "weir 0."),
    ] {
        let (out, err, code) = weir(args, language);
        assert!(out.contains(part) && code == Some(0), "{args:?}: {out}{err}");
    }
    let (_, err, code) = weir(&["purge"], "ko_KR.UTF-8");
    assert!(err.starts_with("오류: 필요한 인자를 지정하세요: <URL>\n") && code == Some(2), "{err}");
    let (_, err, code) = weir(&["status", "http://127.0.0.1:1/api"], "ko_KR.UTF-8");
    assert!(err.starts_with("weir status: ") && err.contains("응답하지 않았습니다") && code == Some(1), "{err}");
}

#[test]
fn the_messages_of_nginx_stay_as_they_are() {
    let (_, err, code) = weir(&["--lang", "ko", "edge", "-t", "-c", "/nonexistent/nginx.conf"], "ko_KR.UTF-8");
    assert!(err.starts_with("nginx: [emerg] open() \"/nonexistent/nginx.conf\" failed") && code == Some(1), "{err}");
    let (_, err, _) = weir(&["help", "edge"], "ko_KR.UTF-8");
    assert!(err.contains("Usage: nginx [-?hvVtTq]"), "{err}");
}

/// A folder of this test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Folder {
        let path = std::env::temp_dir().join(format!("weir-korean-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        for (name, text) in files {
            let file = path.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        Folder(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Asserts that a Korean text has these parts, and no line with three English words in a row.
fn assert_korean(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part}\n{text}");
    }
    for line in text.lines() {
        // A command stays as the user types it, and so does an excerpt of a script.
        let is_excerpt = line.contains(" | ");
        assert!(is_excerpt || english_in(line).is_none(), "{:?} in {line}\n{text}", english_in(line));
        assert_eq!(forbidden_in(line), None, "{line}");
    }
}

/// The texts of a page, a line each, without its style, its script and its tags.
fn visible(page: &str) -> String {
    let (_, body) = page.split_once("<body>").unwrap();
    let (body, _) = body.split_once("<script type=\"module\">").unwrap();
    body.split('<').filter_map(|piece| Some(piece.split_once('>')?.1.trim())).collect::<Vec<_>>().join("\n")
}

#[test]
fn mistakes_in_a_script_are_told_in_korean() {
    let script = "config:\n  targt: http://127.0.0.1:1\n  statsInterval: 5\n  phases:\n    - {duration: 1, arrivalRate: many}\nscenarios:\n  - flow:\n      - gett: {url: /}\n      - lop: [{get: {url: /}}]\n";
    let yaml = "config:\n  target: http://x\n\tphases: []\n";
    let warned = "config:\n  target: http://127.0.0.1:1\n  statsInterval: 5\n  phases: [{duration: 2, arrivalRate: 5, maxVusers: 3}]\nscenarios:\n  - flow: [{get: {url: /, capture: {json: $.shop, as: shopid}}}, {loop: [{get: {url: /}}]}]\n";
    let folder = Folder::new("script", &[("a.yml", script), ("tab.yml", yaml), ("warned.yml", warned)]);
    for (name, parts, code) in [
        ("a.yml", &["오류: target을 지정하지 않았고", "`targt`", "비슷한 이름: `target`", "`gett`"][..], 1),
        ("tab.yml", &["tab.yml:3:1: YAML이 아닙니다: 이 줄을 탭으로"], 1),
        ("no.yml", &["오류: ENOENT: 파일이 없습니다"], 1),
        ("warned.yml", &["보고서의 구간은 항상 10초입니다", "캡처한 `shopid`", "Ctrl-C로 실행을 멈추세요"], 0),
    ] {
        let (out, err, status) = weir(&["load", "--check", &folder.file(name)], "ko_KR.UTF-8");
        assert_korean(&err, parts);
        assert_eq!(status, Some(code), "{name}: {out}{err}");
    }
    // The plan of --check.
    let (out, ..) = weir(&["load", "--check", &folder.file("warned.yml")], "ko_KR.UTF-8");
    let plan = [
        "대상 http://127.0.0.1:1",
        "단계 1개, 2초",
        "2초, 초당 5명",
        "동시에 최대 3명",
        "스텝 3개",
        "모두 약 가상 사용자 10명",
    ];
    assert_korean(&out, &plan);
    let (out, ..) = weir(&["load", "--check", &folder.file("warned.yml")], "C");
    assert!(out.contains("1 phase, 2 s\n  unnamed: 2 s, 5 a second, 10 virtual users, at most 3 at once\n"), "{out}");
    assert!(out.ends_with("about 10 virtual users in all\n"), "{out}");
}

#[test]
fn the_page_and_the_comparison_of_reports_are_korean() {
    let folder = Folder::new("report", &[]);
    let (json, page) = (folder.file("a.json"), folder.file("a.html"));
    // Nothing listens on port 1.
    let args = ["load", "http://127.0.0.1:1/", "-R", "40", "-d", "3s", "-c", "4", "-o", &json, "--html", &page];
    let (out, err, code) = weir(&args, "ko_KR.UTF-8");
    assert_eq!(code, Some(1), "{out}{err}");
    let first = fs::read_to_string(&page).unwrap();
    let parts = [
        "부하 대상:",
        "연결 4개, 초당 40건, 균등한 간격, 3초 동안",
        "시간에 따른 변화",
        "점 하나가 1초의 값",
        "오류",
        "전체 데이터",
    ];
    assert!(first.contains("<html lang=\"ko\">"));
    assert_korean(&visible(&first), &parts);
    // A stored report gives the same page, in either language.
    for (language, lang) in [("ko_KR.UTF-8", "ko"), ("C", "en")] {
        let (out, err, code) = weir(&["load", "report", &json, "-o", &page], language);
        assert_eq!(code, Some(0), "{out}{err}");
        assert_eq!(fs::read_to_string(&page).unwrap() == first, lang == "ko", "{lang}");
    }
    let english = fs::read_to_string(&page).unwrap();
    assert!(english.contains("4 connections, 40 a second, evenly spread for 3s"), "{}", visible(&english));
    let other = fs::read_to_string(&json).unwrap().replace("\"cpus\": \"", "\"cpus\": \"9");
    fs::write(folder.file("b.json"), other).unwrap();
    let (out, err, code) = weir(&["load", "compare", &json, &folder.file("b.json")], "ko_KR.UTF-8");
    assert_eq!(code, Some(0), "{err}");
    assert_korean(&out, &["두 실행에서 다음도 다릅니다:", "초당 요청", "초당 오류", "필요", "건 중", "%포인트"]);
    let (_, err, code) = weir(&["load", "compare", &json, &folder.file("none.json")], "ko_KR.UTF-8");
    assert!(err.starts_with("weir load: ") && code == Some(2), "{err}");
    fs::write(folder.file("b.json"), "{}").unwrap();
    let (_, err, _) = weir(&["load", "compare", &json, &folder.file("b.json")], "ko_KR.UTF-8");
    assert_korean(&err, &["보고서가 아닙니다"]);
}

#[test]
fn messages_of_a_lab_about_files_and_flags_are_korean() {
    let lab = "title: t\nprior: p\nedge: {conf: a.conf}\nhosts:\n  app: {cpu: 1}\n";
    let folder = Folder::new("lab", &[("a.conf", "events {}\nhttp {}\n"), ("labs/x/lab.yml", lab)]);
    let (conf, labs) = (folder.file("a.conf"), folder.file("labs"));
    for (args, part) in [
        (&["lab", "ab", &conf, &conf][..], "두 설정이 같아"),
        (&["lab", "ab", &conf], "설정을 BEFORE, AFTER 순서로 둘 지정하거나"),
        (&["lab", "ab", "--aa", &conf, "--metric", "p42"], "다음 중 하나를 쓰세요: throughput"),
        (&["lab", "ab", "--aa", &conf, "-H", "x"], "\"Name: value\" 형식으로"),
        (&["lab", "capacity", &conf, "x", "--slo", "p95=10ms"], "부하의 경로는 /로 시작해야"),
        (&["lab", "tune", &conf, "/", "--only", "inert_upstream_keepaliv"], "비슷한 규칙: inert_upstream_keepalive"),
        (&["lab", "report", "7", "--store", &folder.file("labs")], "실행 7이 없습니다"),
        (&["lab", "run", "none", "--labs", &labs], "그런 파일이 없습니다"),
        (&["lab", "run", "x", "--labs", &labs], "\"cpu\": 여기에 쓸 수 없는 이름입니다. 비슷한 이름: cpus"),
        (&["lab", "list", "--labs", &folder.file("none")], "실험(NAME/lab.yml)이 없습니다"),
        (&["lab", "list", "--labs", &labs], "\"cpu\": 여기에 쓸 수 없는 이름입니다"),
    ] {
        let (out, err, code) = weir(args, "ko_KR.UTF-8");
        assert_korean(&err, &[part]);
        assert_eq!(code, Some(2), "{args:?}: {out}{err}");
    }
    let (_, err, code) = weir(&["agent", "tls://u:secret@h"], "ko_KR.UTF-8");
    assert_korean(&err, &["NATS로의 TLS는 지원하지 않습니다"]);
    assert!(code == Some(1) && !err.contains("secret"), "{err}");
}
