//! Prepares runs of `weir lab` for the page, from the files that the lab keeps.
//!
//! The caller reads the files. A file may come from anywhere, so only known members are used, and their sizes are
//! limited.

use serde_json::{Map, Value, json};

/// Number of runs in the list, the newest ones.
pub const LISTED_MAX: usize = 50;
/// Largest run file that is read; the largest that labs have kept is a tenth of a MiB.
pub const RUN_BYTES_MAX: u64 = 8 << 20;
/// Longest name of a run, in bytes.
const ID_BYTES_MAX: usize = 64;
/// Most blocks of a run that are shown.
const BLOCKS_MAX: usize = 400;
/// Most windows of a block.
const WINDOWS_MAX: usize = 120;
/// Most sentences of a list.
const SENTENCES_MAX: usize = 20;
/// Most characters of a sentence.
const SENTENCE_CHARS_MAX: usize = 600;

/// True if the text may be the name of a run: it must not lead out of the folder.
pub fn is_id(text: &str) -> bool {
    (1..=ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// True if the JSON is a run of a lab.
pub fn is_run(run: &Value) -> bool {
    run["id"].as_str().is_some_and(is_id) && run["kind"].is_string()
}

/// The data of a run for the list.
pub fn summary(run: &Value) -> Value {
    let blocks = run["blocks"].as_array().map_or(0, Vec::len);
    json!({
        "id": text(&run["id"]),
        "kind": text(&run["kind"]),
        "factor": text(&run["factor"]),
        "before": text(&run["before"]["file"]),
        "after": text(&run["after"]["file"]),
        "load": text(&run["load"]),
        "started_ms": number(&run["started_ms"]),
        "ended_ms": number(&run["ended_ms"]),
        "blocks": blocks,
        "of": number(&run["blocks_max"]),
        "verdict": {"name": text(&run["verdict"]["name"]), "text": text(&run["verdict"]["text"])},
    })
}

/// The data of a run for its own view.
pub fn view(run: &Value) -> Value {
    let primary = run["design"]["primary"].as_str().unwrap_or_default();
    let all = run["blocks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut view = summary(run);
    if let Value::Object(members) = &mut view {
        members.insert("changes".to_owned(), texts(&run["changes"]));
        members.insert("no_effect".to_owned(), texts(&run["no_effect"]));
        members.insert(
            "edges".to_owned(),
            json!([text(&run["environment"]["before"]), text(&run["environment"]["after"])]),
        );
        members.insert("seed".to_owned(), number(&run["seed"]));
        members.insert("primary".to_owned(), json!(clipped(primary)));
        let metrics = run["metrics"].as_array().into_iter().flatten().take(SENTENCES_MAX).map(metric);
        members.insert("metrics".to_owned(), metrics.collect());
        members.insert("shown".to_owned(), all.iter().take(BLOCKS_MAX).map(|one| block(one, primary)).collect());
    }
    view
}

fn metric(metric: &Value) -> Value {
    let mut out = Map::new();
    for name in ["key", "verdict", "text"] {
        out.insert(name.to_owned(), text(&metric[name]));
    }
    for name in ["pairs", "before", "after", "effect", "detectable", "threshold", "confidence"] {
        out.insert(name.to_owned(), number(&metric[name]));
    }
    let (low, high) = (number(&metric["interval"][0]), number(&metric["interval"][1]));
    out.insert("interval".to_owned(), if low.is_null() || high.is_null() { Value::Null } else { json!([low, high]) });
    Value::Object(out)
}

fn block(block: &Value, primary: &str) -> Value {
    let usage = &block["usage"];
    let seconds = usage["seconds"].as_f64().filter(|seconds| *seconds > 0.0);
    let cores = |name: &str| Some(usage[name].as_f64()? / seconds?).filter(|cores| cores.is_finite());
    let errors = block["errors"].as_object();
    let failed = errors.map_or(0, |errors| errors.values().filter_map(Value::as_u64).fold(0, u64::saturating_add));
    json!({
        "pair": number(&block["pair"]),
        "arm": clipped(block["arm"].as_str().unwrap_or_default()),
        "started_ms": number(&block["started_ms"]),
        "seconds": seconds,
        "requests": number(&block["requests"]),
        "failed": failed,
        "value": number(&block["values"][primary]),
        "strip": block["strip"].as_array().into_iter().flatten().take(WINDOWS_MAX).map(number).collect::<Vec<_>>(),
        "spoiled": texts(&block["spoiled"]),
        "cautions": texts(&block["cautions"]),
        "edge_cpu": cores("edge_cpu_s"),
        "client_cpu": number(&block["generator"]["cpu"]),
        "client_core": number(&usage["client_core"]),
        "lag_ms": number(&block["generator"]["lag_p99_ms"]),
        "foreign": number(&usage["foreign"]),
        "steal": number(&usage["steal"]),
    })
}

fn number(json: &Value) -> Value {
    if json.is_number() { json.clone() } else { Value::Null }
}

fn text(json: &Value) -> Value {
    json!(clipped(json.as_str().unwrap_or_default()))
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(SENTENCE_CHARS_MAX) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn texts(json: &Value) -> Value {
    json.as_array().into_iter().flatten().take(SENTENCES_MAX).map(text).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn run() -> Value {
        json!({
            "id": "20261122-193801-105", "kind": "ab", "factor": "keepalive", "load": "/ over 32", "seed": 7,
            "before": {"file": "/a.conf", "text": ["secret"]}, "after": {"file": "/b.conf"},
            "design": {"primary": "cpu"}, "verdict": {"name": "better", "text": "cheaper by 27–43 %"},
            "metrics": [{"key": "cpu", "effect": -0.35, "interval": [-0.43, -0.27], "p": 0.03, "verdict": "better"},
                {"key": "errors", "effect": null, "interval": null}],
            "blocks": [{"pair": 0, "arm": "A", "started_ms": 5, "requests": 450, "errors": {"502": 3, "ETIMEDOUT": 2},
                "values": {"cpu": 241.4}, "strip": [300.0, 301.0], "spoiled": [], "cautions": ["x"],
                "generator": {"cpu": 0.2, "lag_p99_ms": 0.4},
                "usage": {"seconds": 2.0, "edge_cpu_s": 0.5, "client_core": 0.3, "foreign": 0.0}}],
        })
    }

    #[test]
    fn a_run_is_shown_with_its_blocks_and_who_was_busy_in_them() {
        let view = view(&run());
        assert_eq!((&view["verdict"]["name"], &view["after"]), (&json!("better"), &json!("/b.conf")));
        assert_eq!(
            (&view["metrics"][0]["interval"], &view["metrics"][1]["interval"]),
            (&json!([-0.43, -0.27]), &Value::Null)
        );
        let block = &view["shown"][0];
        assert_eq!((&block["value"], &block["failed"], &block["edge_cpu"]), (&json!(241.4), &json!(5), &json!(0.25)));
        assert_eq!((&block["client_cpu"], &block["lag_ms"], &block["steal"]), (&json!(0.2), &json!(0.4), &Value::Null));
        assert!(!view.to_string().contains("secret"));
    }

    #[test]
    fn whatever_a_file_holds_little_is_shown_of_it() {
        let mut large = run();
        large["verdict"]["text"] = json!("가".repeat(10_000));
        let block = json!({"strip": vec![1.5; 200], "spoiled": vec!["y".repeat(700); 30]});
        large["blocks"] = (0..500).map(|_| block.clone()).collect();
        let view = view(&large);
        assert_eq!((view["shown"].as_array().unwrap().len(), &view["blocks"]), (BLOCKS_MAX, &json!(500)));
        assert_eq!(view["shown"][0]["strip"].as_array().unwrap().len(), WINDOWS_MAX);
        assert_eq!(view["verdict"]["text"].as_str().unwrap().chars().count(), SENTENCE_CHARS_MAX + 1);
        for strange in [json!(null), json!([1]), json!({"id": 7, "blocks": {"a": 1}, "metrics": "x"})] {
            assert!(!is_run(&strange));
            let _ = (super::view(&strange), summary(&strange));
        }
        assert!(is_run(&run()));
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        assert!(is_id("20261122-193801-105"));
        for text in ["", "..", "../x", "a/b", "a.json", "a b", &"x".repeat(65)] {
            assert!(!is_id(text), "{text}");
        }
    }
}
