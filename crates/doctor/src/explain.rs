//! Effective values, each with its origin: the program's default, a distribution's file, or a line.

use std::fmt::Write;

use weir_conf::{At, Tree};

use crate::defaults::{DEFAULTS, Default, SHIPPED};
use crate::target::Target;
use crate::version::Version;
use crate::view::{Spot, View};
use weir_words::{Language, Said, say, texts};

/// The values of one directive. With `None`: of every directive that is written, or matters although it is not
/// written. One line each: name, value, origin.
pub fn explain(tree: &Tree, target: impl Into<Target>, directive: Option<&str>, language: Language) -> String {
    let rows = rows(tree, target, directive, language);
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

/// The rows of [`explain`]: name, value, origin.
pub fn rows(tree: &Tree, target: impl Into<Target>, directive: Option<&str>, language: Language) -> Vec<[String; 3]> {
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
            rows.push([default.name.to_owned(), value.to_owned(), compiled(default, target).say(language).to_owned()]);
        }
        let origin = |spot: &Spot<'_>| origin(tree, *spot, default, target).say(language).to_owned();
        rows.extend(written.iter().map(|spot| [default.name.to_owned(), spot.text(), origin(spot)]));
    }
    if let Some(name) = directive.filter(|name| !DEFAULTS.iter().any(|default| default.name == *name)) {
        rows.extend(view.named(name).map(|spot| [name.to_owned(), spot.text(), place(tree, spot.at())]));
    }
    rows
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

texts! {
    IN_UPSTREAMS: " in upstreams", "upstream에서 ";
    NOTHING: "nothing", "없음";
    SAME: "weir's default{0}, the same as nginx's", "{0}weir 기본값, nginx와 같음";
    OTHER: "weir's default{0}; nginx's default is {1}", "{0}weir 기본값, nginx 기본값은 {1}";
    OF_NGINX: "nginx {1}'s default{0}", "{0}nginx {1} 기본값";
    OF_NGINX_SINCE: "nginx {1}'s default{0} (since {2})", "{0}nginx {1} 기본값({2}부터)";
    INSIDE: " in {0}", " ({0} 안)";
    IS_DEFAULT: ", which is the default", ", 기본값과 같음";
    DEFAULT_IS: ", default {0}", ", 기본값은 {0}";
    AS_IN: "; as in {0}", "; {0}와 같음";
}

fn compiled(default: &Default, target: Target) -> Said {
    let scope = if default.place == "upstream" { say!(IN_UPSTREAMS) } else { Said::default() };
    let Target::Nginx(version) = target else {
        let theirs = default.at(crate::version::NEWEST);
        let same = value_of(default, target).is_some_and(|ours| default.is_same(ours, theirs.unwrap_or_default()));
        let theirs = theirs.map_or_else(|| say!(NOTHING), Said::from);
        return if same { say!(SAME, scope) } else { say!(OTHER, scope, theirs) };
    };
    let since = default.history.iter().rev().find(|(since, _)| version >= *since).map(|(since, _)| *since);
    match since.filter(|since| *since > Version(0, 0, 0)) {
        Some(since) => say!(OF_NGINX_SINCE, scope, version.to_string(), since.to_string()),
        None => say!(OF_NGINX, scope, version.to_string()),
    }
}

fn origin(tree: &Tree, spot: Spot<'_>, default: &Default, target: Target) -> Said {
    let mut origin = Said::from(place(tree, spot.at()));
    let blocks: Vec<String> =
        spot.around().map(|block| block.line()).filter(|line| line != "http" && line != "events").collect();
    if let Some(nearest) = blocks.first() {
        origin += say!(INSIDE, nearest);
    }
    let shipped = SHIPPED.iter().find(|(name, value, _)| *name == spot.name() && default.is_same(value, &spot.text()));
    match value_of(default, target) {
        Some(value) if default.is_same(value, &spot.text()) => origin += say!(IS_DEFAULT),
        Some(value) => origin += say!(DEFAULT_IS, value),
        None => {}
    }
    if let Some((_, _, whose)) = shipped {
        origin += say!(AS_IN, *whose);
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

    #[test]
    fn every_text_is_there_in_both_languages() {
        assert_eq!(weir_words::check_texts(ALL), Vec::<String>::new());
    }
}
