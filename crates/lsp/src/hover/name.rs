//! The text that an editor shows about a name: its definition, and the number of its uses.

use std::collections::HashSet;

use weir_conf::Statement;
use weir_doctor::defaults::DEFAULTS;
use weir_doctor::explain::place;
use weir_doctor::{NEWEST, Target};
use weir_words::{Said, said};

use super::text::{Hovered, code, escaped};
use crate::inside::{inside, of_weir};
use crate::look::Look;
use crate::mentions::{Mention, NameScope, statement_at};
use crate::names::{MentionRole, NamedKind};
use crate::place::FilePlace;
use crate::{meanings, value, variables};

/// Most servers, definitions or places that a hover lists.
const LISTED_MAX: usize = 8;

/// The answer about the name at this offset.
pub fn hover(look: &Look<'_>, file: u32, offset: u32) -> Option<Hovered> {
    let mentions = look.mentions();
    let hits = mentions.at(file, offset);
    let hit = hits.iter().find(|hit| mentions.is_defined(&hit.key())).or(hits.first())?;
    let definitions = mentions.definitions(&hit.key());
    let meaning = (hit.kind == NamedKind::Variable).then(|| built_in(hit)).flatten();
    if definitions.is_empty() && meaning.is_none() {
        return None;
    }
    let sign = match hit.kind {
        NamedKind::Variable => "$",
        NamedKind::NamedLocation => "@",
        _ => "",
    };
    let title = format!(
        "{} {}",
        hit.kind.noun().say(look.language),
        code(&format!("{sign}{}", spelled(look, &definitions, hit)))
    );
    let mut parts = vec![title];
    parts.extend(meaning.map(|said| escaped(said.say(look.language))));
    let mut seen = HashSet::new();
    let each = definitions.iter().filter(|one| seen.insert(one.place)).take(LISTED_MAX);
    parts.extend(each.map(|one| definition(look, one)));
    parts.extend(uses(look, hit).map(|said| said.say(look.language).to_owned()));
    Some(Hovered { span: hit.place.span, markdown: parts.join("\n\n") })
}

/// The name as its definition spells it.
fn spelled(look: &Look<'_>, definitions: &[&Mention], hit: &Mention) -> String {
    let one = definitions.first().copied().unwrap_or(hit);
    String::from_utf8_lossy(one.place.span.of(look.bytes(one.place.file))).into_owned()
}

/// The meaning of a variable of nginx or weir.
fn built_in(hit: &Mention) -> Option<Said> {
    let meaning = meanings::variable(&hit.name).map(|(en, ko)| Said::of_both(en, ko));
    let is_known = || variables::is_built_in(&hit.name, hit.scope == NameScope::Stream);
    meaning.or_else(|| is_known().then(|| said!("It is a variable of nginx.", "nginx의 변수입니다.")))
}

fn definition(look: &Look<'_>, one: &Mention) -> String {
    let head = String::from_utf8_lossy(look.tree.bytes(&one.statement));
    let mut text = format!("{} ({})", code(&head), escaped(&place(look.tree, one.statement)));
    let Some(statement) = statement_at(look.tree, one.statement) else { return text };
    let more: Vec<Said> = match one.kind {
        NamedKind::Upstream => return upstream(look, statement, one.scope, &text),
        NamedKind::Variable => variable(statement),
        NamedKind::LogFormat => return text,
        kind if kind.is_zone() => zone(statement),
        _ => Vec::new(),
    };
    if !more.is_empty() {
        text.push_str(": ");
        text.push_str(Said::list(&more, ", ").say(look.language));
    }
    text
}

/// The servers of an upstream, the choice among them, and its idle connections.
fn upstream(look: &Look<'_>, statement: &Statement, scope: NameScope, head: &str) -> String {
    const METHODS: [&str; 7] = ["hash", "ip_hash", "least_conn", "least_time", "random", "fair", "sticky"];
    let servers: Vec<String> = statement.named("server").map(arguments_of).collect();
    let methods: Vec<String> = statement
        .children()
        .iter()
        .filter(|child| METHODS.contains(&child.name.text.as_str()))
        .map(|child| format!("{} {}", child.name.text, arguments_of(child)).trim_end().to_owned())
        .collect();
    let method = if methods.is_empty() { "round robin".to_owned() } else { methods.join(", ") };
    let count = match servers.len() {
        1 => said!("1 server, {}", "서버 1개, {}", code(&method)),
        count => said!("{} servers, {}", "서버 {}개, {}", count, code(&method)),
    };
    let mut text = format!("{head}: {}", count.say(look.language));
    if let Some(keepalive) = keepalive(look, statement, scope) {
        text.push_str(&format!(", keepalive: {}", code(&keepalive)));
    }
    text.push('\n');
    for server in servers.iter().take(LISTED_MAX) {
        text.push_str(&format!("\n- {}", code(server)));
    }
    if let Some(more) = servers.len().checked_sub(LISTED_MAX).filter(|more| *more > 0) {
        text.push_str(&format!("\n- {}", said!("and {} more", "외 {}개", more).say(look.language)));
    }
    text
}

/// The `keepalive` of an upstream, or its default.
fn keepalive(look: &Look<'_>, upstream: &Statement, scope: NameScope) -> Option<String> {
    if scope != NameScope::Http {
        return None;
    }
    if let Some(written) = upstream.named("keepalive").last() {
        return Some(arguments_of(written));
    }
    match look.target {
        Target::Weir => {
            let default = of_weir("keepalive", inside(&["http", "upstream"]))?.default;
            Some(default.split(" (nginx: ").next().unwrap_or(default).to_owned())
        }
        Target::Nginx(version) => {
            let row = DEFAULTS.iter().find(|row| row.name == "keepalive" && row.place == "upstream")?;
            Some(row.at(version.min(NEWEST)).unwrap_or("-").to_owned())
        }
    }
}

fn arguments_of(statement: &Statement) -> String {
    statement.args.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// For a `map` and its like: the number of entries and the default.
fn variable(statement: &Statement) -> Vec<Said> {
    if !statement.is_block() || !matches!(statement.name.text.as_str(), "map" | "geo" | "split_clients") {
        return Vec::new();
    }
    const SETTINGS: [&str; 6] = ["hostnames", "volatile", "ranges", "proxy", "proxy_recursive", "delete"];
    let is_entry = |entry: &&Statement| !SETTINGS.contains(&entry.name.text.as_str());
    let entries: Vec<&Statement> = statement.children().iter().filter(is_entry).collect();
    let mut said = vec![match entries.len() {
        1 => said!("1 entry", "항목 1개"),
        count => said!("{} entries", "항목 {}개", count),
    }];
    let default = entries.iter().find(|entry| matches!(entry.name.text.as_str(), "default" | "*"));
    match default {
        Some(default) => said.push(said!("default {}", "기본값 {}", code(default.text(0)))),
        None => said.push(said!("no default: otherwise it is empty", "기본값 없음: 그 밖에는 빈 값")),
    }
    said
}

/// The size and the rate of a zone.
fn zone(statement: &Statement) -> Vec<Said> {
    let sized = |word: &str| {
        let value = ["keys_zone=", "zone=", "shared:"].iter().find_map(|name| word.strip_prefix(name))?;
        value::in_words("NAME:SIZE", value)
    };
    let other = |word: &str| {
        let (name, kind) = [("rate=", "RATE"), ("max_size=", "SIZE"), ("inactive=", "TIME"), ("timeout=", "TIME")]
            .into_iter()
            .find(|(name, _)| word.starts_with(name))?;
        let said = value::in_words(kind, word.strip_prefix(name)?)?;
        let name = name.trim_end_matches('=');
        // "rate" needs no name: its words have "requests".
        Some(if kind == "RATE" { said } else { Said::from(name) + Said::from(" ") + said })
    };
    let words = || statement.args.iter().map(|word| word.text.as_str());
    let in_upstream = (statement.name.text == "zone").then(|| value::in_words("SIZE", statement.text(1))).flatten();
    words().find_map(sized).or(in_upstream).into_iter().chain(words().filter_map(other)).collect()
}

/// The places that use a name, but for its definition.
fn uses(look: &Look<'_>, hit: &Mention) -> Option<Said> {
    let mentions = look.mentions();
    let mut seen: HashSet<FilePlace> = HashSet::new();
    let is_use = |one: &&Mention| one.role == MentionRole::Uses;
    let places: Vec<String> = mentions
        .of(&hit.key())
        .filter(is_use)
        .filter(|one| seen.insert(one.place))
        .map(|one| weir_conf::At { file: one.place.file, line: 0, span: one.place.span })
        .map(|at| escaped(&place(look.tree, at)))
        .take(LISTED_MAX)
        .collect();
    let shown = places.join(", ");
    let all = mentions.of(&hit.key()).filter(is_use).map(|one| one.place).collect::<HashSet<_>>().len();
    Some(match all {
        0 => said!("Nothing uses it.", "사용하는 곳이 없습니다."),
        1 => said!("Used in 1 place: {}.", "1곳에서 사용: {}", shown),
        all if all <= LISTED_MAX => said!("Used in {} places: {}.", "{}곳에서 사용: {}", all, shown),
        all => said!("Used in {} places: {} and others.", "{}곳에서 사용: {} 등", all, shown),
    })
    // A zone that only blocks with its name share, and a zone that Lua uses, have no uses here.
    .filter(|_| all > 0 || (hit.role != MentionRole::Shares && hit.kind != NamedKind::SharedDict))
}
