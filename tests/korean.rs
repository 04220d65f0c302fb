//! The Korean of weir: every Korean text in the sources keeps to the glossary, and the Korean pages are in step with the
//! English ones.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_conf::glossary::forbidden_in;
use weir_conf::said::is_korean;

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
    for page in ["README.ko.md", "docs/guide/first-hour.ko.md"] {
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
    parts.extend(links.into_iter().map(|link| format!("link {}", link.replace(".ko.md", ".md"))));
    parts
}

#[test]
fn the_korean_readme_is_in_step() {
    let is_other = |link: &str| matches!(link, "README.md" | "README.ko.md");
    assert_eq!(skeleton(&text("README.ko.md"), &is_other), skeleton(&text("README.md"), &is_other));
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
