//! `weir purge`: calls an edge's purge API and prints the result in one line.

use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgGroup, Args};
use serde_json::{Map, Value, json};
use weir_load::once::{self, Once};
use weir_net::process;
use weir_words::{Language, Said, say};

use crate::lang::wrong::within;
use crate::texts;

/// Exit codes, printed by `weir purge --help`.
mod exit {
    /// The edge refused, or did not answer.
    pub const FAILED: u8 = 1;
    /// Some edges have not confirmed the purge in time.
    pub const BEHIND: u8 = 3;
    /// Only the called edge purged: the purge log cannot be written.
    pub const NOT_LOGGED: u8 = 4;
}

const AFTER_HELP: &str = "\
URL is a location with `cache_purge_api`: http://[user:password@]HOST[:PORT]/PATH. Every user of this machine can read the
command line, so write env:NAME or file:PATH instead of a URL with a password. Without a key, prefix, tag or --all,
the command shows the progress of the edges and purges nothing.

Exit codes: 0 purged on all edges, also where nothing matched (the line says so); 1 refused, or no
answer; 2 the command line is invalid; 3 purged and logged, but some edges did not confirm in time; 4 purged on this edge only, because weir cannot write the purge log.";

/// `weir purge`.
#[derive(Args)]
#[command(after_help = AFTER_HELP, group = ArgGroup::new("what").multiple(false))]
pub struct PurgeArgs {
    /// The purge API of an edge
    #[arg(value_name = "URL")]
    url: String,
    /// Keys: the text of proxy_cache_key
    #[arg(long, value_name = "KEY", num_args = 1.., group = "what")]
    key: Vec<String>,
    /// Prefixes of keys
    #[arg(long, value_name = "PREFIX", num_args = 1.., group = "what")]
    prefix: Vec<String>,
    /// Tags: words of Surrogate-Key or Cache-Tag
    #[arg(long, value_name = "TAG", num_args = 1.., group = "what")]
    tag: Vec<String>,
    /// Everything
    #[arg(long, group = "what")]
    all: bool,
    /// In this zone only
    #[arg(long, value_name = "ZONE", requires = "what")]
    zone: Option<String>,
    /// Mark objects stale instead of removing them: still served while the origin fails
    #[arg(long, requires = "what")]
    soft: bool,
    /// On this edge only
    #[arg(long, requires = "what")]
    local: bool,
    /// Seconds to wait for the answer
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = within::<u16>(1..=600))]
    timeout: u16,
    /// Accept any certificate of an https:// URL
    #[arg(long)]
    insecure: bool,
    /// Print the answer unchanged
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn main(args: &PurgeArgs, language: Language) -> ExitCode {
    match run(args, language) {
        Ok(code) => ExitCode::from(code),
        Err((message, code)) => {
            eprintln!("weir purge: {}", message.say(language));
            ExitCode::from(code)
        }
    }
}

fn run(args: &PurgeArgs, language: Language) -> Result<u8, (Box<Said>, u8)> {
    let failed = |message: Said| (Box::new(message), exit::FAILED);
    let order = order(args);
    let once = Once {
        url: process::kept_elsewhere(&args.url, str::to_owned).map_err(|message| failed(message.into()))?,
        method: if order.is_some() { "POST" } else { "GET" },
        json: order.as_ref().map(|order| order.to_string().into_bytes()).unwrap_or_default(),
        timeout: Duration::from_secs(u64::from(args.timeout)),
        insecure: args.insecure,
        bearer: None,
    };
    let (status, bytes) = once::ask(&once).map_err(failed)?;
    let answer =
        serde_json::from_slice::<Value>(&bytes).map_err(|_| failed(say!(texts::NO_PURGE_API, u32::from(status))))?;
    if args.json {
        println!("{answer}");
    }
    let print = |line: &Said| {
        if !args.json {
            println!("{}", line.say(language));
        }
    };
    let Some(order) = order else {
        if status != 200 {
            return Err(failed(refusal(status, &answer)));
        }
        print(&state(&answer));
        return Ok(0);
    };
    match status {
        200 | 202 => {
            print(&done(&order, &answer));
            Ok(if status == 202 { exit::BEHIND } else { 0 })
        }
        503 => Err((Box::new(refusal(status, &answer)), exit::NOT_LOGGED)),
        _ => Err(failed(refusal(status, &answer))),
    }
}

/// The order as the API expects it; `None` if the flags name nothing to purge.
fn order(args: &PurgeArgs) -> Option<Value> {
    let mut order = Map::new();
    for (kind, names) in [("key", &args.key), ("prefix", &args.prefix), ("tag", &args.tag)] {
        match names.as_slice() {
            [] => {}
            [one] => drop(order.insert(kind.to_owned(), json!(one))),
            several => drop(order.insert(kind.to_owned(), json!(several))),
        }
    }
    if args.all {
        order.insert("all".to_owned(), json!(true));
    }
    if order.is_empty() {
        return None;
    }
    if let Some(zone) = &args.zone {
        order.insert("zone".to_owned(), json!(zone));
    }
    for (name, _) in [("soft", args.soft), ("local", args.local)].iter().filter(|(_, is_set)| *is_set) {
        order.insert((*name).to_owned(), json!(true));
    }
    Some(Value::Object(order))
}

fn refusal(status: u16, answer: &Value) -> Said {
    match answer.get("message").and_then(Value::as_str) {
        Some(message) => message.into(),
        None => say!(texts::PURGE_REFUSED, u32::from(status)),
    }
}

/// `purged tag news: 3 of 3 edges, 41 ms`.
fn done(order: &Value, answer: &Value) -> Said {
    let kinds = [
        ("key", texts::ONE_KEY, texts::KEYS),
        ("prefix", texts::ONE_PREFIX, texts::PREFIXES),
        ("tag", texts::ONE_TAG, texts::TAGS),
    ];
    let what = match kinds.iter().find_map(|(kind, one, several)| Some((order.get(*kind)?, one, several))) {
        None => say!(texts::EVERYTHING),
        Some((Value::String(name), one, _)) => one.with(&[name.into()]),
        Some((names, _, several)) => several.with(&[strings(names).join(" ").into()]),
    };
    let zone = order.get("zone").and_then(Value::as_str);
    let zone = zone.map_or_else(Said::default, |zone| say!(texts::IN_ZONE, zone));
    let text = if order.get("soft").is_some() { texts::SOFT_PURGED } else { texts::PURGED };
    let ms = answer.get("ms").and_then(Value::as_u64).unwrap_or_default();
    let behind = answer.get("behind").map(strings).unwrap_or_default();
    let edges = match answer.get("edges").and_then(Value::as_u64) {
        None => say!(texts::HERE_ONLY),
        Some(edges) => say!(texts::EDGES_OF, edges.saturating_sub(behind.len() as u64), edges),
    };
    let late = if behind.is_empty() { Said::default() } else { say!(texts::NOT_YET, behind.join(", ")) };
    let line = text.with(&[what, zone, edges, objects(answer), ms.into(), late]);
    match hint(order, answer) {
        Some(hint) => Said::list(&[line, hint], "\n"),
        None => line,
    }
}

/// The texts of a JSON array.
fn strings(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// `5 objects, `. If there are other edges, it names the called edge: the other edges do not report their number.
fn objects(answer: &Value) -> Said {
    let is_alone = answer.get("edges").is_none_or(|edges| edges == 1);
    match (answer.get("objects"), is_alone) {
        (None, _) => Said::default(),
        (Some(Value::Number(one)), true) if one.as_u64() == Some(1) => say!(texts::ONE_OBJECT),
        (Some(Value::Number(one)), false) if one.as_u64() == Some(1) => say!(texts::ONE_OBJECT_HERE),
        (Some(Value::Number(count)), true) => say!(texts::OBJECTS, count.to_string()),
        (Some(Value::Number(count)), false) => say!(texts::OBJECTS_HERE, count.to_string()),
        (Some(_), _) => say!(texts::OBJECTS_UNKNOWN),
    }
}

/// If a key or a prefix matched nothing: explains how keys are written.
fn hint(order: &Value, answer: &Value) -> Option<Said> {
    let named = ["key", "prefix"].into_iter().find(|kind| order.get(kind).is_some())?;
    if answer.get("objects").and_then(Value::as_u64) != Some(0) {
        return None;
    }
    let example = answer.get("example_key").and_then(Value::as_str);
    Some(match (named, example) {
        ("key", Some(key)) => say!(texts::NO_KEY_MATCHED, key),
        ("key", None) => say!(texts::NO_KEY_MATCHED_ALONE),
        (_, Some(key)) => say!(texts::NO_PREFIX_MATCHED, key),
        (_, None) => say!(texts::NO_PREFIX_MATCHED_ALONE),
    })
}

/// One line for each edge, after one line about the log.
fn state(answer: &Value) -> Said {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let number = |value: &Value, name: &str| value.get(name).and_then(Value::as_u64).unwrap_or_default();
    let zones = answer.get("zones").map(strings).unwrap_or_default();
    let mut lines = vec![say!(texts::ZONES, zones.join(", "))];
    match answer.get("log").filter(|log| !log.is_null()) {
        None => lines.push(say!(texts::NO_LOG)),
        Some(log) => {
            let is_reached = log.get("connected") == Some(&json!(true));
            let line = if is_reached { texts::LOG_REACHED } else { texts::LOG_NOT_REACHED };
            lines.push(line.with(&["stream", "server", "newest"].map(|name| text(log, name).into())));
            for edge in log.get("edges").and_then(Value::as_array).into_iter().flatten() {
                let (name, heard) = (text(edge, "edge"), number(edge, "heard_ms_ago"));
                lines.push(match number(edge, "behind_ms") {
                    0 => say!(texts::EDGE_CURRENT, name, heard),
                    ms => say!(texts::EDGE_BEHIND, name, ms, heard),
                });
            }
        }
    }
    Said::list(&lines, "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_where_and_how_long() {
        for (order, answer, line) in [
            (
                json!({"tag": "news"}),
                json!({"applied": "everywhere", "edges": 3, "behind": [], "ms": 41}),
                "purged tag news: 3 of 3 edges, 41 ms",
            ),
            (
                json!({"tag": ["a", "b"], "zone": "one", "soft": true}),
                json!({"applied": "here", "edges": 3, "behind": ["c"], "ms": 1000}),
                "soft-purged tags a b in zone one: 2 of 3 edges, 1000 ms; not yet: c",
            ),
            (
                json!({"tag": "news"}),
                json!({"applied": "everywhere", "edges": 2, "behind": [], "ms": 1, "objects": 5}),
                "purged tag news: 2 of 2 edges, 5 objects on this edge (the number on the other edges is unknown), 1 ms",
            ),
            (
                json!({"prefix": "/blog"}),
                json!({"edges": 1, "behind": [], "ms": 0, "objects": 0, "example_key": "http://o:80/blog/1"}),
                "purged prefix /blog: 1 of 1 edges, 0 objects, 0 ms\nNothing matched: a prefix is the beginning of a key, and a key is the whole text of proxy_cache_key; a stored key: http://o:80/blog/1",
            ),
            (
                json!({"key": "k"}),
                json!({"edges": 1, "behind": [], "ms": 0, "objects": null}),
                "purged key k: 1 of 1 edges, number of objects unknown (the zone is still reading its directory), 0 ms",
            ),
            (
                json!({"all": true, "local": true}),
                json!({"applied": "here", "ms": 0}),
                "purged everything: on this edge only, 0 ms",
            ),
        ] {
            assert_eq!(done(&order, &answer), line);
        }
    }

    #[test]
    fn the_line_is_told_in_korean() {
        let order = json!({"tag": ["a", "b"], "zone": "one", "soft": true});
        let answer = json!({"edges": 3, "behind": ["c"], "ms": 1000, "objects": 5});
        assert_eq!(
            done(&order, &answer).say(Language::Korean),
            "soft 퍼지했습니다: 태그 a b (one zone에서). 엣지 3곳 중 2곳, 이 엣지의 객체 5개 (다른 엣지의 객체 수는 알 수 없음), 1000 ms; \
             아직 퍼지하지 않은 엣지: c"
        );
    }

    #[test]
    fn the_state_has_a_line_an_edge() {
        let edge = |name: &str, behind: u64| json!({"edge": name, "behind_ms": behind, "heard_ms_ago": 5});
        let log = json!({"stream": "s", "server": "h:1", "connected": true, "newest": "9-0", "edges": [edge("a", 0), edge("b", 7)]});
        assert_eq!(
            state(&json!({"zones": ["one", "two"], "log": log})),
            "zones: one, two\nlog s at h:1: reached, newest entry 9-0\nedge a: up to date, last message 5 ms ago\n\
             edge b: 7 ms behind, last message 5 ms ago"
        );
        assert_eq!(
            state(&json!({"zones": ["one"], "log": null})),
            "zones: one\nthere is no purge log: purges stay on this edge"
        );
    }
}
