//! Effective values, each with its origin: the program's default, a distribution's file, or a line.

use std::fmt::Write;

use weir_conf::{At, Tree};

use crate::defaults::{DEFAULTS, Default, SHIPPED};
use crate::target::Target;
use crate::version::Version;
use crate::view::{Spot, View};
use weir_words::Language;

/// The values of one directive. With `None`: of every directive that is written, or matters although it is not
/// written. One line each: name, value, origin.
pub fn explain(tree: &Tree, target: impl Into<Target>, directive: Option<&str>, language: Language) -> String {
    let target = target.into();
    let view = View::new(tree);
    let mut rows: Vec<[String; 3]> = Vec::new();
    for default in DEFAULTS.iter().filter(|default| directive.is_none_or(|name| default.name == name)) {
        let written: Vec<Spot<'_>> =
            view.all().filter(|spot| spot.name() == default.name && default.is_for(*spot)).collect();
        // The default, unless a line outside of all servers replaces it everywhere.
        let outermost = written.iter().any(|spot| matches!(spot.scope().name(), "main" | "events" | "http"));
        let says = |value: &str| (directive.is_some() || !default.note.en.is_empty()) && !value.is_empty();
        if let Some(value) = value_of(default, target).filter(|value| !outermost && says(value)) {
            rows.push([default.name.to_owned(), value.to_owned(), compiled(default, target, language)]);
        }
        rows.extend(
            written
                .iter()
                .map(|spot| [default.name.to_owned(), spot.text(), origin(tree, *spot, default, target, language)]),
        );
    }
    if let Some(name) = directive.filter(|name| !DEFAULTS.iter().any(|default| default.name == *name)) {
        rows.extend(view.named(name).map(|spot| [name.to_owned(), spot.text(), place(tree, spot.at())]));
    }
    let mut text = String::new();
    let width = |column: usize, most: usize| {
        rows.iter().map(|row| row.get(column).map_or(0, |cell| cell.chars().count())).max().unwrap_or(0).min(most)
    };
    let (names, values) = (width(0, 32), width(1, 30));
    for [name, value, origin] in &rows {
        // Writing to a String never fails.
        let _ = writeln!(text, "{name:names$}  {value:values$}  {origin}");
    }
    let notes = DEFAULTS.iter().filter(|default| directive == Some(default.name) && !default.note.en.is_empty());
    for default in notes {
        let _ = writeln!(
            text,
            "  {}{}",
            if default.place == "upstream" { "upstream: " } else { "" },
            default.note.say(language)
        );
    }
    text
}

/// `FILE:LINE`.
pub fn place(tree: &Tree, at: At) -> String {
    match tree.source(&at) {
        Some(source) if source.is_command_line => "command line".to_owned(),
        Some(source) => format!("{}:{}", source.name, source.line_of(at.span.start)),
        None => String::new(),
    }
}

/// The value if nothing is written.
fn value_of(default: &Default, target: Target) -> Option<&'static str> {
    match target {
        Target::Nginx(version) => default.at(version),
        Target::Weir => target.known(default.name, &place_of(default)).and_then(|known| known.default),
    }
}

/// The blocks in which a directive belongs, in the form that [`Target::known`] needs.
fn place_of(default: &Default) -> Vec<String> {
    let path: &[&str] = match default.place {
        "main" => &[],
        "upstream" => &["http", "upstream"],
        outermost => &[outermost],
    };
    path.iter().map(|block| (*block).to_owned()).collect()
}

fn compiled(default: &Default, target: Target, language: Language) -> String {
    if language == Language::Korean {
        return compiled_korean(default, target);
    }
    let Target::Nginx(version) = target else {
        let scope = if default.place == "upstream" { " in upstreams" } else { "" };
        let theirs = default.at(crate::version::NEWEST).unwrap_or("nothing");
        let same = value_of(default, target).is_some_and(|ours| default.is_same(ours, theirs));
        return if same {
            format!("weir's default{scope}, the same as nginx's")
        } else {
            format!("weir's default{scope}; nginx's default is {theirs}")
        };
    };
    let since = default.history.iter().rev().find(|(since, _)| version >= *since);
    let (scope, since) =
        (if default.place == "upstream" { " in upstreams" } else { "" }, since.map(|(since, _)| *since));
    match since.filter(|since| *since > Version(0, 0, 0)) {
        Some(since) => format!("nginx {version}'s default{scope} (since {since})"),
        None => format!("nginx {version}'s default{scope}"),
    }
}

/// As [`compiled`], in Korean.
fn compiled_korean(default: &Default, target: Target) -> String {
    let scope = if default.place == "upstream" { "upstream에서 " } else { "" };
    let Target::Nginx(version) = target else {
        let theirs = default.at(crate::version::NEWEST).unwrap_or("없음");
        let same = value_of(default, target).is_some_and(|ours| default.is_same(ours, theirs));
        return if same {
            format!("{scope}weir 기본값, nginx와 같음")
        } else {
            format!("{scope}weir 기본값, nginx 기본값은 {theirs}")
        };
    };
    let since = default.history.iter().rev().find(|(since, _)| version >= *since).map(|(since, _)| *since);
    match since.filter(|since| *since > Version(0, 0, 0)) {
        Some(since) => format!("{scope}nginx {version} 기본값({since}부터)"),
        None => format!("{scope}nginx {version} 기본값"),
    }
}

fn origin(tree: &Tree, spot: Spot<'_>, default: &Default, target: Target, language: Language) -> String {
    let is_korean = language == Language::Korean;
    let mut origin = place(tree, spot.at());
    let blocks: Vec<String> =
        spot.around().map(|block| block.line()).filter(|line| line != "http" && line != "events").collect();
    if let Some(nearest) = blocks.first() {
        origin.push_str(&if is_korean { format!(" ({nearest} 안)") } else { format!(" in {nearest}") });
    }
    let shipped = SHIPPED.iter().find(|(name, value, _)| *name == spot.name() && default.is_same(value, &spot.text()));
    match value_of(default, target) {
        Some(value) if default.is_same(value, &spot.text()) => {
            origin.push_str(if is_korean { ", 기본값과 같음" } else { ", which is the default" });
        }
        Some(value) if is_korean => origin.push_str(&format!(", 기본값은 {value}")),
        Some(value) => origin.push_str(&format!(", default {value}")),
        None => {}
    }
    if let Some((_, _, whose)) = shipped {
        let whose = whose.say(language);
        origin.push_str(&if is_korean { format!("; {whose}와 같음") } else { format!("; as in {whose}") });
    }
    origin
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, version: Version, directive: Option<&str>) -> String {
        let files = weir_conf::MemoryFiles::new().with("/n", text);
        explain(&crate::load(&files, "/n", "/").0, version, directive, Language::English)
    }

    #[test]
    fn each_value_has_its_origin() {
        let text = "worker_processes auto;\nevents { worker_connections 768; }\nhttp { server { location / {\n proxy_read_timeout 60; } } }";
        let shown = of(text, Version(1, 22, 1), None);
        for expected in [
            "worker_processes       auto  /n:1, default 1; as in Debian's and nginx.org's packages",
            "worker_connections     768   /n:2, default 512; as in Debian's package",
            "keepalive_requests     1000  nginx 1.22.1's default (since 1.19.10)",
            "proxy_read_timeout     60    /n:4 in location /, which is the default",
        ] {
            let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(squeeze(&shown).contains(&squeeze(expected)), "{shown}");
        }
        let weirs = {
            let files = weir_conf::MemoryFiles::new().with("/n", text);
            explain(&crate::load(&files, "/n", "/").0, Target::Weir, Some("worker_processes"), Language::English)
        };
        assert!(weirs.contains("/n:1, which is the default"), "{weirs}");
        assert!(of(text, Version(1, 18, 0), Some("keepalive_requests")).contains("100  nginx 1.18.0's default\n"));
    }
}
