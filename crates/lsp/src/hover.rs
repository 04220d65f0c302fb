//! The text that an editor shows about a word: a directive, a name, a value.
//!
//! - `force`: the value of a directive that is in force in a block, and where it was set
//! - `text`: the form of an answer
//! - `name`: upstreams, zones, variables and other names: their definition and their uses

mod force;
mod name;
mod text;

pub use text::{Hovered, code, escaped, plain};

use weir_conf::Span;
use weir_doctor::defaults::{DEFAULTS, Default as DefaultRow};
use weir_doctor::{NEWEST, Target};
use weir_http::read::directive::Directive;
use weir_http::read::nginx_only::NginxDirective;
use weir_words::{Language, Said, said};

use crate::arguments::{arguments, kind_of};
use crate::inside::{Inside, inside, of_nginx, of_weir, of_weir_anywhere};
use crate::look::Look;
use crate::under::{Under, UnderKind, decoded, under};
use crate::{korean, meanings, value};

/// Most files of an `include` that a hover lists.
const FILES_SHOWN_MAX: usize = 8;

/// The text between weir's default and nginx's in weir's tables.
const THEIRS: &str = " (nginx: ";

/// The answer about the word at this offset. `None` if weir knows nothing about it.
pub fn hover(look: &Look<'_>, file: u32, offset: u32) -> Option<Hovered> {
    let found = under(look.tree, file, offset);
    let path = found.path();
    let here = inside(&path);
    match found.kind {
        UnderKind::Comment => None,
        UnderKind::Name if here.data.is_empty() => {
            let markdown = directive(look, &found, here, file)?;
            Some(Hovered { span: found.word, markdown })
        }
        UnderKind::Name | UnderKind::Argument(_) | UnderKind::Raw => {
            let named = || name::hover(look, file, offset);
            let valued = || {
                let markdown = argument(look, &found, here, file)?;
                Some(Hovered { span: found.word, markdown })
            };
            named().or_else(valued)
        }
    }
}

/// The answer about a directive.
fn directive(look: &Look<'_>, found: &Under, here: Inside, file: u32) -> Option<String> {
    let name = decoded(found.word.of(look.bytes(file)));
    if name == "include" {
        return Some(include(look, file, found.word));
    }
    let ours = of_weir(&name, here).or_else(|| of_weir_anywhere(&name, here));
    let theirs = of_nginx(&name);
    let contexts = match (ours, theirs) {
        (Some(ours), _) => ours.contexts.to_string(),
        (None, Some(theirs)) => theirs.contexts.to_owned(),
        (None, None) => return None,
    };
    let mut parts = vec![format!("**{name}** — {contexts}")];
    parts.extend(meaning(look, &name, ours));
    parts.extend(absence(look, ours, theirs));
    let is_here = here.context().0 == 0 || ours.is_none_or(|ours| ours.contexts.meets(here.context()));
    if !is_here {
        let said = said!("It is not allowed here, in {}.", "여기({} 안)에는 쓸 수 없습니다.", place_name(here));
        parts.push(said.say(look.language).to_owned());
    }
    parts.extend(default_line(look, &name, here, ours, theirs).map(|said| said.say(look.language).to_owned()));
    parts.extend(force::in_force(look, &name, file, found.word.start, is_inherited(&name, ours, theirs)));
    Some(parts.join("\n\n"))
}

/// The answer about an `include`: the files that it reads.
fn include(look: &Look<'_>, file: u32, name: Span) -> String {
    let doc = said!(
        "Reads another file, or all files that match a pattern, in place of this line.",
        "이 줄 대신 다른 파일 하나 또는 패턴에 맞는 파일 모두를 읽습니다."
    );
    let mut text = format!("**include**\n\n{}\n", doc.say(look.language));
    let here = look.tree.includes.iter().filter(|one| one.at.file == file && one.at.span.start == name.start);
    let mut files: Vec<u32> = here.flat_map(|include| include.files.iter().copied()).collect();
    files.sort_unstable();
    files.dedup();
    for one in files.iter().take(FILES_SHOWN_MAX) {
        text.push_str(&format!("\n- {}", code(look.name(*one))));
    }
    if let Some(more) = files.len().checked_sub(FILES_SHOWN_MAX).filter(|more| *more > 0) {
        text.push_str(&format!("\n- {}", said!("and {} more", "외 {}개", more).say(look.language)));
    }
    text.trim_end().to_owned()
}

/// nginx's name of a place.
fn place_name(here: Inside) -> String {
    if here.nginx.is_empty() { here.context().to_string() } else { here.nginx.to_owned() }
}

/// The beginnings of the sentences about directives without effect in the tables, in English and in Korean.
const NO_EFFECT: (&str, &str) = ("No effect: ", "효과가 없습니다. ");

/// The sentence of a directive in its table, as Markdown.
pub fn meaning(look: &Look<'_>, name: &str, ours: Option<&Directive>) -> Option<String> {
    let Some(ours) = ours else {
        let (en, ko) = meanings::nginx_only(name)?;
        return Some(escaped(Said::of_both(en, ko).say(look.language)));
    };
    let (en, ko) = (ours.doc, korean::doc(ours.doc).unwrap_or(ours.doc));
    let reason = (en.strip_prefix(NO_EFFECT.0), ko.strip_prefix(NO_EFFECT.1).unwrap_or(ko));
    let said = match reason {
        // The reader may use nginx, where the directive has an effect.
        (Some(en), ko) => Said::of_both(format!("weir ignores it: {en}"), format!("weir는 무시합니다: {ko}")),
        (None, _) if ours.idle => Said::of_both(format!("weir ignores it: {en}."), format!("weir는 무시합니다: {ko}.")),
        (None, _) => Said::of_both(en, ko),
    };
    Some(escaped(said.say(look.language))).filter(|text| !text.is_empty())
}

/// For a directive that weir lacks: its origin, and the remedy.
fn absence(look: &Look<'_>, ours: Option<&Directive>, theirs: Option<&NginxDirective>) -> Option<String> {
    let theirs = theirs.filter(|_| ours.is_none())?;
    let module = theirs.modules;
    let origin = match look.language {
        Language::English => format!("It is {} ({module}).", theirs.origin().phrase()),
        Language::Korean => format!("{module}의 지시어입니다."),
    };
    let refused = match look.target {
        Target::Weir => said!(" weir refuses it: {}.", " weir는 거부합니다: {}.", theirs.remedy()),
        Target::Nginx(_) => Said::default(),
    };
    Some(escaped(&format!("{origin}{}", refused.say(look.language))))
}

/// The defaults of a directive in weir and in nginx.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BothDefaults {
    ours: Option<&'static str>,
    theirs: Option<&'static str>,
}

/// nginx's row of a directive in `http`, or in an upstream.
fn nginxs_default(name: &str, here: Inside) -> Option<&'static DefaultRow> {
    let is_upstream = here.nginx == "upstream";
    DEFAULTS.iter().find(|one| one.name == name && (one.place == "upstream") == is_upstream && !here.is_stream())
}

fn both_defaults(look: &Look<'_>, name: &str, here: Inside, ours: Option<&Directive>, is_nginxs: bool) -> BothDefaults {
    let version = match look.target {
        Target::Nginx(version) => version,
        Target::Weir => NEWEST,
    };
    let table = ours.map_or("", |ours| ours.default);
    let (weirs, nginxs) = match table.split_once(THEIRS) {
        Some((ours, theirs)) => (ours, theirs.trim_end_matches(')')),
        None => (table, if is_nginxs { table } else { "" }),
    };
    let known = |text: &'static str| Some(text).filter(|text| !text.is_empty());
    let theirs = match nginxs_default(name, here) {
        Some(row) => row.at(version),
        None => known(nginxs),
    };
    BothDefaults { ours: known(weirs), theirs }
}

fn default_line(
    look: &Look<'_>,
    name: &str,
    here: Inside,
    ours: Option<&Directive>,
    theirs: Option<&NginxDirective>,
) -> Option<Said> {
    let both = both_defaults(look, name, here, ours, theirs.is_some());
    let row = nginxs_default(name, here);
    let is_idle = ours.is_some_and(|ours| ours.idle);
    let mut line = match (both.ours.filter(|_| !is_idle), both.theirs) {
        (None, None) => Said::default(),
        (Some(ours), Some(theirs)) if ours == theirs || row.is_some_and(|row| row.is_same(ours, theirs)) => {
            said!("Default: {}.", "기본값: {}", code(ours))
        }
        (ours, theirs) => {
            let of_nginx = theirs.map(|theirs| format!("{} (nginx)", code(theirs)));
            let of_weir = ours.map(|ours| format!("{} (weir)", code(ours)));
            let all = match look.target {
                Target::Nginx(_) => [of_nginx, of_weir],
                Target::Weir => [of_weir, of_nginx],
            };
            let all: Vec<String> = all.into_iter().flatten().collect();
            said!("Default: {}.", "기본값: {}", all.join(", "))
        }
    };
    if let Some(row) = row.filter(|row| !row.note.en.is_empty()) {
        let [en, ko] = [row.note.en, row.note.ko].map(escaped);
        let note = Said::of_both(format!(" Note: {en}."), format!(" 참고: {ko}"));
        line += note;
    }
    let line = line.trimmed();
    (!line.en().is_empty()).then_some(line)
}

/// Directives that inner blocks do not inherit, although they may stand in several kinds of blocks.
const NOT_INHERITED: [&str; 18] = [
    "break",
    "if",
    "include",
    "listen",
    "location",
    "map",
    "match",
    "proxy_pass",
    "return",
    "rewrite",
    "server",
    "server_name",
    "set",
    "status_zone",
    "stub_status",
    "try_files",
    "upstream",
    "zone",
];

/// Whether inner blocks inherit a directive.
fn is_inherited(name: &str, ours: Option<&Directive>, theirs: Option<&NginxDirective>) -> bool {
    let levels = |contexts: &str| {
        let has = |level: &str| contexts.split(", ").any(|one| one == level);
        let of_http = ["http", "server", "location"].iter().filter(|level| has(level)).count();
        of_http >= 2 || (has("stream") && has("stream server"))
    };
    let goes = match (ours, theirs) {
        (Some(ours), _) => !ours.block && levels(&ours.contexts.to_string()),
        (None, Some(theirs)) => levels(theirs.contexts),
        (None, None) => false,
    };
    (goes || name == "types")
        && !NOT_INHERITED.contains(&name)
        && !(name.starts_with("set_") && name != "set_real_ip_from")
}

/// The answer about an argument that is no name: its value in words, or how a location matches.
fn argument(look: &Look<'_>, found: &Under, here: Inside, file: u32) -> Option<String> {
    let UnderKind::Argument(index) = found.kind else { return None };
    let bytes = look.bytes(file);
    let name = found.name(bytes);
    let word = decoded(found.word.of(bytes));
    if name == "location" {
        return location(look, &found.words(bytes), &word);
    }
    let block = found.blocks.last().map_or("", |block| block.name());
    let positions = arguments(&name, block, here.is_stream())?;
    let (kind, text) = kind_of(positions, index, &word)?;
    let said = value::in_words(kind, text)?;
    Some(format!("{} = {}", code(&word), said.say(look.language)))
}

/// How a location matches.
fn location(look: &Look<'_>, before: &[String], word: &str) -> Option<String> {
    let modifier = before.get(1).map_or(word, String::as_str);
    let said = if modifier.starts_with("~*") {
        said!("a regular expression that ignores the case of letters", "대소문자를 가리지 않는 정규식")
    } else if modifier.starts_with('~') {
        said!("a regular expression", "정규식")
    } else if modifier.starts_with("^~") {
        said!(
            "a prefix: if it is the longest that matches, nginx tries no regular expression",
            "접두사: 가장 긴 접두사로 일치하면 정규식은 확인하지 않습니다"
        )
    } else if modifier.starts_with('=') {
        said!("exactly this URI", "정확히 이 URI")
    } else {
        said!(
            "a prefix: the longest that matches wins, unless a regular expression matches, too",
            "접두사: 가장 긴 접두사가 선택되지만, 일치하는 정규식이 있으면 정규식이 우선합니다"
        )
    };
    Some(format!("{}: {}", code(word), said.say(look.language)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::mentions::tests::tree;
    use weir_doctor::Version;

    fn shown_for(text: &str, target: Target, language: Language) -> String {
        let offset = u32::try_from(text.find('|').expect("a |")).unwrap();
        let tree = tree(&[("/n", &text.replacen('|', "", 1))]);
        let look = Look::new(&tree, target, language);
        hover(&look, 0, offset).map(|found| found.markdown).unwrap_or_default()
    }

    fn shown(text: &str) -> String {
        shown_for(text, Target::Weir, Language::English)
    }

    fn holds(text: &str, parts: &[&str]) {
        let found = shown(text);
        for part in parts {
            assert!(found.contains(part), "{text}: {part:?} is not in\n{found}");
        }
    }

    #[test]
    fn a_directive_has_its_meaning_contexts_and_defaults() {
        holds(
            "http { client_header|_timeout 5s; }",
            &["**client_header_timeout** — http, server\n", "Default: `10s` (weir), `60s` (nginx)."],
        );
        holds("http { proxy_|read_timeout 5s; }", &["http, server, location", "Default: `60s`."]);
        holds("http { loca|tion / { } }", &["not allowed here, in http"]);
        holds("events { accept|_mutex on; }", &["weir ignores it: the kernel"]);
        holds("http { perl_|modules x; }", &["an nginx directive (ngx_http_perl_module)", "weir refuses it"]);
        let old = Target::Nginx(Version(1, 18, 0));
        let found = shown_for("http { keepalive_|requests 5; }", old, Language::English);
        assert!(found.contains("Default: `100` (nginx), `1000` (weir)."), "{found}");
        assert_eq!(shown("http { nothing_|such 5; }"), "");
    }

    /// A sentence of the tables has signs that mean something in Markdown.
    #[test]
    fn sentences_of_tables_are_shown_as_they_are() {
        holds("http { gzip_ty|pes a; }", &["\\* for all"]);
        holds("http { types_hash_max_|size 1; }", &["weir ignores it: weir sizes its tables itself."]);
        for directive in weir_edge::family::ALL.known.directives() {
            for language in [Language::English, Language::Korean] {
                let tree = tree(&[("/n", "")]);
                let shown = meaning(&Look::new(&tree, Target::Weir, language), directive.name, Some(directive));
                let shown = shown.unwrap_or_default();
                let is_twice = shown.contains("No effect") || shown.contains("..") && !shown.contains("...");
                assert!(!shown.is_empty() && !is_twice, "{}: {shown}", directive.name);
                // Outside of code, no sign is left that could begin markup.
                let text: String = shown.split('`').step_by(2).collect();
                let bare = text.replace("\\*", "").replace("\\<", "").replace("\\[", "").replace("\\|", "");
                assert!(!bare.contains(['*', '<', '[', '|']), "{}: {shown}", directive.name);
            }
        }
    }

    #[test]
    fn names_of_blocks_and_files_are_shown_as_they_are() {
        let text = "server {\n location ~ ^/<a>*$ {\n gzip on;\n if ($x) { gz|ip off; } } }";
        holds(text, &["replaces `gzip on` of location ~ ^/\\<a\\>\\*$ (/n:3)"]);
    }

    #[test]
    fn an_include_names_its_files() {
        let tree = tree(&[("/n", "http { include /a; }"), ("/a", "gzip on;")]);
        let look = Look::new(&tree, Target::Weir, Language::English);
        let found = hover(&look, 0, 9).expect("an answer");
        assert!(found.markdown.contains("**include**") && found.markdown.ends_with("- `/a`"), "{}", found.markdown);
    }

    #[test]
    fn the_value_in_force_is_said_with_its_place() {
        let text = "http {\n gzip on;\n server {\n  gz|ip off;\n  location /a {\n   gzip on;\n } } }";
        holds(text, &["replaces `gzip on` of http (/n:2)", "`location /a` (/n:6)"]);
        let text = "http {\n add_header A b;\n server {\n  add_|header C d;\n  add_header E f;\n } }";
        holds(text, &["lines of this block (2) replace those of http (1, /n:2)"]);
        let text = "http {\n add_header_inherit merge;\n add_header A b;\n server {\n  add_|header C d;\n } }";
        holds(text, &["are added to"]);
    }

    #[test]
    fn names_are_explained() {
        let text = "upstream app { least_conn; server a:1 weight=2; server b:1; keepalive 8; }\nserver { location / { proxy_pass http://a|pp; } }";
        holds(text, &["upstream `app`", "/n:1", "2 servers", "least_conn", "`a:1 weight=2`", "keepalive: `8`"]);
        let text = "limit_req_zone $remote_addr zone=one:10m rate=5r/s;\nserver { limit_req zone=o|ne; }";
        holds(text, &["zone `one`", "10 megabytes", "5 requests a second", "1 place"]);
        let text = "map $http_upgrade $conn { default upgrade; '' close; }\nserver { location / { proxy_set_header Connection $c|onn; } }";
        holds(text, &["variable `$conn`", "map", "2 entries", "default `upgrade`"]);
        holds("server { error_page 404 @|a;\n location @a { } }", &["named location `@a`", "/n:2"]);
        holds("log_format main '$uri';\nserver { access_log /l ma|in; }", &["log format `main`", "'$uri'`"]);
        assert_eq!(shown("server { location / { proxy_pass http://oth|er; } }"), "");
    }

    #[test]
    fn values_and_locations_are_said_in_words() {
        holds("http { proxy_read_timeout 1|0m; }", &["`10m` = 10 minutes"]);
        holds("http { client_max_body_size 1|0m; }", &["`10m` = 10 megabytes"]);
        holds("proxy_cache_path /c keys_zone=a:1m inactive=1|h;", &["= 1 hour"]);
        holds("server { location ~* \\.p|hp$ { } }", &["ignores the case"]);
        holds("server { location /|a { } }", &["the longest that matches"]);
        assert_eq!(shown("http { gzip o|n; }"), "");
        assert_eq!(shown("http { # gz|ip\n }"), "");
    }

    #[test]
    fn korean_is_there_too() {
        let found = shown_for("http { gzip on; server { gz|ip off; } }", Target::Weir, Language::Korean);
        assert!(found.contains("기본값") && found.contains("대신"), "{found}");
    }
}
