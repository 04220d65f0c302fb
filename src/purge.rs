//! `weir purge`: calls an edge's purge API and prints the result in one line.

use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgGroup, Args};
use serde_json::{Map, Value, json};
use weir_load::once::{self, Once};
use weir_net::process;

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
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=600))]
    timeout: u16,
    /// Accept any certificate of an https:// URL
    #[arg(long)]
    insecure: bool,
    /// Print the answer unchanged
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn main(args: &PurgeArgs) -> ExitCode {
    let order = order(args);
    let once = Once {
        url: match process::kept_elsewhere(&args.url, str::to_owned) {
            Ok(url) => url,
            Err(message) => return fail(&message),
        },
        method: if order.is_some() { "POST" } else { "GET" },
        json: order.as_ref().map(|order| order.to_string().into_bytes()).unwrap_or_default(),
        timeout: Duration::from_secs(u64::from(args.timeout)),
        insecure: args.insecure,
        bearer: None,
    };
    let (status, bytes) = match once::ask(&once) {
        Ok(answer) => answer,
        Err(message) => return fail(&message),
    };
    let Ok(answer) = serde_json::from_slice::<Value>(&bytes) else {
        return fail(&format!("{status}: this URL is not a purge API: does its location have cache_purge_api?"));
    };
    if args.json {
        println!("{answer}");
    }
    let Some(order) = order else {
        if status != 200 {
            return fail(&refusal(status, &answer));
        }
        print(args, &state(&answer));
        return ExitCode::SUCCESS;
    };
    match status {
        200 => print(args, &done(&order, &answer)),
        202 => {
            print(args, &done(&order, &answer));
            return ExitCode::from(exit::BEHIND);
        }
        503 => {
            fail(&refusal(status, &answer));
            return ExitCode::from(exit::NOT_LOGGED);
        }
        _ => return fail(&refusal(status, &answer)),
    }
    ExitCode::SUCCESS
}

fn print(args: &PurgeArgs, line: &str) {
    if !args.json {
        println!("{line}");
    }
}

fn fail(message: &str) -> ExitCode {
    eprintln!("weir purge: {message}");
    ExitCode::from(exit::FAILED)
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

fn refusal(status: u16, answer: &Value) -> String {
    match answer.get("message").and_then(Value::as_str) {
        Some(message) => message.to_owned(),
        None => format!("the edge refused the purge with status {status}"),
    }
}

/// `purged tag news: 3 of 3 edges, 41 ms`.
fn done(order: &Value, answer: &Value) -> String {
    let what = ["key", "prefix", "tag"].iter().find_map(|kind| Some((*kind, order.get(*kind)?)));
    let what = match what {
        None => "everything".to_owned(),
        Some((kind, Value::String(name))) => format!("{kind} {name}"),
        Some((kind, names)) => {
            let names: Vec<&str> = names.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let plural = if kind == "prefix" { "prefixes".to_owned() } else { format!("{kind}s") };
            format!("{plural} {}", names.join(" "))
        }
    };
    let zone = order.get("zone").and_then(Value::as_str).map_or(String::new(), |zone| format!(" in zone {zone}"));
    let soft = if order.get("soft").is_some() { "soft-purged" } else { "purged" };
    let ms = answer.get("ms").and_then(Value::as_u64).unwrap_or_default();
    let behind: Vec<&str> =
        answer.get("behind").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let edges = match answer.get("edges").and_then(Value::as_u64) {
        None => "on this edge only".to_owned(),
        Some(edges) => format!("{} of {edges} edges", edges.saturating_sub(behind.len() as u64)),
    };
    let late = if behind.is_empty() { String::new() } else { format!("; not yet: {}", behind.join(", ")) };
    let (objects, hint) = (objects(answer), hint(order, answer));
    format!("{soft} {what}{zone}: {edges}, {objects}{ms} ms{late}{hint}")
}

/// `5 objects, `. If there are other edges, it names the called edge: the other edges do not report their number.
fn objects(answer: &Value) -> String {
    let is_alone = answer.get("edges").is_none_or(|edges| edges == 1);
    let place = if is_alone { "" } else { " on this edge (the number on the other edges is unknown)" };
    match answer.get("objects") {
        None => String::new(),
        Some(Value::Number(one)) if one.as_u64() == Some(1) => format!("1 object{place}, "),
        Some(Value::Number(count)) => format!("{count} objects{place}, "),
        Some(_) => "number of objects unknown (the zone is still reading its directory), ".to_owned(),
    }
}

/// If a key or a prefix matched nothing: explains how keys are written.
fn hint(order: &Value, answer: &Value) -> String {
    let named = ["key", "prefix"].into_iter().find(|kind| order.get(kind).is_some());
    let (Some(kind), Some(0)) = (named, answer.get("objects").and_then(Value::as_u64)) else { return String::new() };
    let rule = match kind {
        "key" => "a key is the whole text of proxy_cache_key",
        _ => "a prefix is the beginning of a key, and a key is the whole text of proxy_cache_key",
    };
    let example = match answer.get("example_key").and_then(Value::as_str) {
        Some(key) => format!("; a stored key: {key}"),
        None => "; the zone stores nothing else".to_owned(),
    };
    format!("\nNothing matched: {rule}{example}")
}

/// One line for each edge, after one line about the log.
fn state(answer: &Value) -> String {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let number = |value: &Value, name: &str| value.get(name).and_then(Value::as_u64).unwrap_or_default();
    let zones: Vec<&str> =
        answer.get("zones").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let mut lines = vec![format!("zones: {}", zones.join(", "))];
    match answer.get("log").filter(|log| !log.is_null()) {
        None => lines.push("there is no purge log: purges stay on this edge".to_owned()),
        Some(log) => {
            let reached = if log.get("connected") == Some(&json!(true)) { "reached" } else { "NOT reached" };
            let (stream, server, newest) = (text(log, "stream"), text(log, "server"), text(log, "newest"));
            lines.push(format!("log {stream} at {server}: {reached}, newest entry {newest}"));
            for edge in log.get("edges").and_then(Value::as_array).into_iter().flatten() {
                let behind = match number(edge, "behind_ms") {
                    0 => "up to date".to_owned(),
                    ms => format!("{ms} ms behind"),
                };
                let (name, heard) = (text(edge, "edge"), number(edge, "heard_ms_ago"));
                lines.push(format!("edge {name}: {behind}, last message {heard} ms ago"));
            }
        }
    }
    lines.join("\n")
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
