//! The Korean of weir: every Korean text in the sources keeps to the glossary, and the Korean pages are in step with the
//! English ones.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_words::{english_in, glossary::forbidden_in, is_korean};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The files that name the forbidden words because they forbid them.
const ABOUT_THE_GLOSSARY: [&str; 2] = ["crates/words/src/glossary.rs", "crates/words/src/check.rs"];

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

/// The Korean pages for users, each with its English page.
fn pages() -> Vec<(String, String)> {
    let mut found = vec![("README.ko.md".to_owned(), "README.md".to_owned())];
    for entry in fs::read_dir(Path::new(ROOT).join("docs/guide")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if let Some(topic) = name.strip_suffix(".ko.md") {
            found.push((format!("docs/guide/{name}"), format!("docs/guide/{topic}.md")));
        }
    }
    assert!(found.len() > 9, "{found:?}");
    found
}

#[test]
fn the_korean_pages_keep_to_the_glossary() {
    let mut found = Vec::new();
    for (page, _) in pages() {
        for line in text(&page).lines() {
            // Words of commands and files are between backticks.
            let prose: String = line.split('`').step_by(2).collect();
            found.extend(forbidden_in(&prose).map(|word| format!("{page}: {word}: {line}")));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The part of a line before a mark.
fn before<'l>(mark: &str, line: &'l str) -> &'l str {
    line.split(mark).next().unwrap_or_default().trim_end()
}

/// The parts of a page that do not depend on its language, each with its kind: commands, lines of code without their
/// comments, levels of headings, first cells of tables. A filter behind a command may look for words of a language.
fn parts(page: &str) -> Vec<(&'static str, &str)> {
    let (mut parts, mut is_fenced) = (Vec::new(), false);
    for line in page.lines() {
        is_fenced ^= line.starts_with("```");
        if let Some(command) = line.strip_prefix("$ ") {
            parts.push(("command", before(" --lang ko", before(" | sed", command))));
        } else if is_fenced {
            continue;
        } else if let Some(code) = line.strip_prefix("    ") {
            parts.push(("code", before(" --lang ko", before(" # ", code))));
        } else if line.starts_with('#') {
            parts.push(("heading", line.split(' ').next().unwrap_or_default()));
        } else if line.starts_with('|') {
            parts.push(("row", line.split('|').nth(1).unwrap_or_default().trim()));
        }
    }
    parts
}

/// The first part in which a Korean page is not in step with its English page. A text may be Korean in its place.
fn out_of_step(korean: &str, english: &str) -> Option<String> {
    let (korean, english) = (parts(korean), parts(english));
    let is_same = |ko: &(&str, &str), en: &(&str, &str)| ko.0 == en.0 && (ko.1 == en.1 || is_korean(ko.1));
    let unlike = korean.iter().zip(&english).find(|(ko, en)| !is_same(ko, en));
    let lengths = (korean.len(), english.len());
    unlike.map(|unlike| format!("{unlike:?}")).or_else(|| (lengths.0 != lengths.1).then(|| format!("{lengths:?}")))
}

/// The targets of a page's links, without those to the same page in the other language.
fn targets(page: &str, own: &str) -> Vec<String> {
    let links = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let mut links: Vec<String> = links.map(|link| link.replace(".ko.", ".")).collect();
    links.retain(|link| link != own);
    links.sort_unstable();
    links
}

#[test]
fn the_korean_pages_are_in_step() {
    for (page, other) in pages() {
        let (korean, english) = (text(&page), text(&other));
        assert_eq!(out_of_step(&korean, &english), None, "{page}");
        let own = other.rsplit('/').next().unwrap_or_default();
        assert_eq!(targets(&korean, own), targets(&english, own), "{page}");
    }
    let (korean, english) = (text("README.ko.md"), text("README.md"));
    for (line, with) in
        [("    weir edge -t -c /etc/nginx/nginx.conf\n", ""), ("## 아직", "### 아직"), ("-o run.json", "-o r")]
    {
        assert!(korean.contains(line), "{line}");
        assert!(out_of_step(&korean.replace(line, with), &english).is_some(), "{line}");
    }
    let asks = |line: &&str| line.starts_with("$ weir doctor");
    assert!(text("docs/guide/first-hour.ko.md").lines().filter(asks).all(|line| line.ends_with(" --lang ko")));
}

/// The links of a Korean page that lead nowhere, past a Korean page, or to an English page without the word 영어.
fn astray(page: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let folder = Path::new(ROOT).join(page).parent().unwrap().to_owned();
    let own = page.replace(".ko.", ".");
    let is_korean_page = |path: &Path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        path.to_str().is_some_and(|path| path.ends_with(".ko.md")) || is_korean(text.lines().next().unwrap_or_default())
    };
    for (at, _) in text.match_indices("](") {
        let (target, after) = text[at + 2..].split_once(')').unwrap();
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let path = if file.is_empty() { Path::new(ROOT).join(page) } else { folder.join(file) };
        if file.contains("://") || path.ends_with(&own) {
            continue;
        }
        let has_anchor = || fs::read_to_string(&path).is_ok_and(|text| text.contains(&format!("id=\"{anchor}\"")));
        let says_english = text[..at].rsplit('[').next().unwrap().contains("영어") || after.starts_with("(영어)");
        let other = file.strip_suffix(".md").map(|topic| folder.join(format!("{topic}.ko.md")));
        let is_page = file.ends_with(".md") || path.is_dir();
        let why = match () {
            () if !path.exists() => "leads nowhere",
            () if other.is_some_and(|other| other.exists()) => "has a Korean page",
            () if !is_page => continue,
            () if !is_korean_page(&path) && !says_english => "is English",
            () if is_korean_page(&path) && !anchor.is_empty() && !has_anchor() => "has no such anchor",
            () => continue,
        };
        found.push(format!("{target} {why}"));
    }
    found
}

#[test]
fn the_links_of_the_korean_pages_say_which_pages_are_english() {
    for (page, _) in pages() {
        assert_eq!(astray(&page, &text(&page)), Vec::<String>::new(), "{page}");
    }
    for (link, why) in [
        ("[a](lab.md)", "lab.md has a Korean page"),
        ("[a](cache.md)", "cache.md is English"),
        ("[a](none.md)(영어)", "none.md leads nowhere"),
        ("[a](lab.ko.md#none)", "lab.ko.md#none has no such anchor"),
    ] {
        assert_eq!(astray("docs/guide/doctor.ko.md", link), [why]);
    }
    for link in
        ["[a](cache.md)(영어)", "[영어 안내](cache.md)", "[English](doctor.md)", "[a](https://weir.invalid/a.md)"]
    {
        assert_eq!(astray("docs/guide/doctor.ko.md", link), Vec::<String>::new(), "{link}");
    }
}

/// What a maintainer script of a package says to the administrator: each line has its Korean, and is printed with it where
/// the language is Korean.
#[test]
fn the_packages_speak_to_the_administrator_in_korean() {
    let mut count = 0;
    for name in
        ["weir-nginx/DEBIAN/preinst", "weir-nginx/DEBIAN/postinst", "weir-nginx/DEBIAN/prerm", "weir/DEBIAN/postinst"]
    {
        let script = text(&format!("package/{name}"));
        let (before, rest) = script.split_once("say() {\n").unwrap();
        let (body, after) = rest.split_once("\n}\n").unwrap();
        let asked = after.matches("say \"").count();
        let korean: Vec<&str> = after.lines().filter(|line| is_korean(line)).collect();
        assert_eq!(korean.len(), asked, "{name}");
        assert!(korean.iter().all(|line| forbidden_in(line).is_none()), "{name}");
        assert!(![before, after].iter().any(|part| part.contains(">&2")), "{name}: say, so that it is Korean too");
        count += asked;
        let said = |variable: &str, value: &str| {
            let mut shell = Command::new("sh");
            shell.args(["-ec", &format!("say() {{\n{body}\n}}\nsay one 하나")]);
            for name in ["WEIR_LANG", "LC_ALL", "LC_MESSAGES", "LANG"] {
                shell.env_remove(name);
            }
            let out = shell.env(variable, value).output().unwrap();
            assert!(out.status.success() && out.stdout.is_empty(), "{name}");
            String::from_utf8(out.stderr).unwrap().lines().count()
        };
        for (variable, value, lines) in
            [("LANG", "ko_KR.UTF-8", 2), ("LC_ALL", "ko", 2), ("WEIR_LANG", "ko", 2), ("LANG", "C", 1)]
        {
            assert_eq!(said(variable, value), lines, "{name} {variable}={value}");
        }
    }
    assert!(count > 8, "{count}");
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
        assert!(!["이(가)", "을(를)", "은(는)", "(으)로"].iter().any(|both| line.contains(both)), "{line}");
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
    let (_, err, code) = weir(&["agent", "nats://u:secret@h"], "ko_KR.UTF-8");
    assert_korean(&err, &["NATS 대신 Redis를 씁니다"]);
    assert!(code == Some(1) && !err.contains("secret"), "{err}");
}
