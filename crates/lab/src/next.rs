//! The last line of a lab: the next command.

use serde_json::Value;

use crate::command::CommandLine;
use crate::metric;
use crate::said::{Said, say};

/// Most pairs that `--pairs` takes.
const PAIRS_MAX: u64 = 24;
/// A lab looks for the bottleneck of a capacity a little above it: there the objective no longer holds.
const ABOVE: f64 = 1.2;

/// The next command after a run, with its reason. `None` if the run does not say enough.
pub fn next(run: &Value) -> Option<Said> {
    let next = match run["kind"].as_str()? {
        "ab" | "aa" | "factorial" => compared(run),
        "why" => cause(run),
        "capacity" => capacity(run),
        "tune" => tuned(run),
        "lab" | "elsewhere" => Some(page(run)),
        _ => None,
    }?;
    Some(say!(NEXT, next))
}

fn id(run: &Value) -> &str {
    run["id"].as_str().unwrap_or("last")
}

/// The run as a page.
fn page(run: &Value) -> Said {
    say!(NEXT_PAGE, format!("weir lab report {} --html report.html", id(run)))
}

/// The same command with another flag, or else the run as a page.
fn again(run: &Value, change: impl FnOnce(&CommandLine) -> Said) -> Said {
    CommandLine::of_run(run).map_or_else(|| page(run), |command| change(&command))
}

fn compared(run: &Value) -> Option<Said> {
    Some(match run["verdict"]["name"].as_str()? {
        "inconclusive" => again(run, |command| more_pairs(run, command)),
        "not comparable" => again(run, |command| say!(NEXT_MORE_PAIRS, command.with(&["--pairs"], "8").to_string())),
        "no verdict" if has_few(run) => {
            again(run, |command| say!(NEXT_SMALL_LOAD, command.with(&["--metric"], metric::SMALL.key).to_string()))
        }
        "no verdict" => again(run, |command| say!(NEXT_WHEN_QUIET, command.to_string())),
        _ if run["kind"] == "aa" => {
            let before = run["before"]["file"].as_str()?.to_owned();
            again(run, |command| {
                let command = command.without(&["--aa"], false);
                say!(NEXT_COMPARE, command.to_string().replacen(&before, &format!("{before} after.conf"), 1))
            })
        }
        _ => page(run),
    })
}

/// Whether the blocks have too few requests for the compared metric.
fn has_few(run: &Value) -> bool {
    let Some(metric) = run["design"]["primary"].as_str().and_then(metric::of) else { return false };
    let mut blocks = run["blocks"].as_array().into_iter().flatten().peekable();
    blocks.peek().is_some() && blocks.all(|block| block["requests"].as_u64() < Some(metric.requests_min))
}

/// As many pairs as detect the threshold; if there may not be so many, longer blocks.
fn more_pairs(run: &Value, command: &CommandLine) -> Said {
    let key = run["design"]["primary"].as_str().unwrap_or_default();
    let primary = run["metrics"].as_array().into_iter().flatten().find(|json| json["key"] == key);
    let (done, seen) = (primary.and_then(|json| json["pairs"].as_u64()), primary.map(|json| &json["detectable"]));
    let wanted = primary.and_then(|json| json["threshold"].as_f64());
    // The smallest detectable change falls with the square root of the number of pairs.
    let needed = done
        .zip(seen.and_then(Value::as_f64))
        .zip(wanted)
        .map(|((done, seen), wanted)| (done as f64 * (seen / wanted.max(1e-9)).powi(2)).ceil());
    match needed {
        Some(needed) if needed <= PAIRS_MAX as f64 && Some(needed as u64) > done => {
            say!(NEXT_MORE_PAIRS, command.with(&["--pairs"], &format!("{needed:.0}")).to_string())
        }
        _ => {
            let block = run["asked"]["block_s"].as_f64().unwrap_or(20.0) * 2.0;
            match run["asked"]["load"]["script"].is_string() {
                true => say!(NEXT_MORE_PAIRS, command.with(&["--pairs"], &PAIRS_MAX.to_string()).to_string()),
                false => say!(NEXT_LONGER, command.with(&["--block"], &format!("{}s", block.ceil())).to_string()),
            }
        }
    }
}

fn cause(run: &Value) -> Option<Said> {
    let file = run["before"]["file"].as_str()?;
    if let Some(verify) = run["verify"].as_str() {
        return Some(say!(NEXT_VERIFY, verify));
    }
    Some(match run["verdict"]["name"].as_str()? {
        "no verdict" => again(run, |command| say!(NEXT_WHEN_QUIET, command.to_string())),
        "NOT SATURATED" => {
            let command = match run["asked"]["load"]["script"].as_str() {
                Some(script) => on_this_stack(run, &["capacity", file, "--load", script]),
                None => on_this_stack(run, &["capacity", file, run["asked"]["load"]["path"].as_str().unwrap_or("/")]),
            };
            say!(NEXT_CAPACITY, command)
        }
        "UNATTRIBUTED" if run["signals"]["inside"].is_null() => {
            again(run, |command| say!(NEXT_INSIDE, command.and("--inside").to_string()))
        }
        "SUSPECTED" if run["elasticities"].as_array().is_none_or(Vec::is_empty) => {
            again(run, |command| say!(NEXT_PROVE, command.and("--prove").to_string()))
        }
        _ => again(run, |command| say!(NEXT_CHANGED, command.to_string())),
    })
}

/// A command of another lab with the edge and the application of this run.
fn on_this_stack(run: &Value, words: &[&str]) -> String {
    let edge = run["before"]["edge"].as_str().filter(|edge| *edge != "weir");
    let quota = run["asked"]["edge_quota"].as_f64().map(|quota| quota.to_string());
    let flags = [("--edge", edge), ("--origin", run["asked"]["origin"].as_str()), ("--edge-quota", quota.as_deref())];
    let flags = flags.into_iter().filter_map(|(name, value)| Some([name, value?])).flatten();
    CommandLine::new(["weir", "lab"].into_iter().chain(words.iter().copied()).chain(flags).map(str::to_owned))
        .to_string()
}

fn capacity(run: &Value) -> Option<Said> {
    if run["asked"]["load"]["script"].is_string() {
        // `why` has no rate for a script, and a block is as long as the script.
        return Some(page(run));
    }
    let (file, path) = (run["before"]["file"].as_str()?, run["asked"]["load"]["path"].as_str().unwrap_or("/"));
    let why = |rate: f64| {
        say!(NEXT_WHY, on_this_stack(run, &["why", file, path, "--rate", &(rate * ABOVE).ceil().to_string()]))
    };
    Some(match run["verdict"]["name"].as_str()? {
        "capacity" if run["axis"] == "users" => {
            let level = run["verdict"]["rate"].as_f64()?;
            let steps = run["steps"].as_array()?.iter().filter(|step| step["rate"].as_f64() == Some(level));
            why(steps.filter_map(|step| step["answered"].as_f64()).fold(1.0, f64::max))
        }
        "capacity" => why(run["verdict"]["rate"].as_f64()?),
        "everything" if run["axis"] == "users" => again(run, |command| {
            let most = run["steps"].as_array().into_iter().flatten().filter_map(|step| step["rate"].as_f64());
            let most = most.fold(1.0, f64::max);
            say!(NEXT_USERS, command.with(&["--users"], &format!("{most:.0}..{:.0}", most * 4.0)).to_string())
        }),
        "nothing" => why(1.0),
        "everything" => again(run, |command| {
            let connections = run["asked"]["load"]["connections"].as_u64().unwrap_or(256) * 4;
            say!(NEXT_CONNECTIONS, command.with(&["--connections", "-c"], &connections.to_string()).to_string())
        }),
        _ => again(run, |command| {
            let block = run["asked"]["block_s"].as_f64().unwrap_or(10.0) * 2.0;
            say!(NEXT_LONGER, command.with(&["--block"], &format!("{}s", block.ceil())).to_string())
        }),
    })
}

fn tuned(run: &Value) -> Option<Said> {
    let is_kept = run["tries"].as_array().into_iter().flatten().any(|tried| tried["is_kept"] == true);
    Some(if is_kept { say!(NEXT_APPLY, format!("weir lab apply {}", id(run))) } else { page(run) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use weir_words::{Language, english_in, is_korean};

    use super::*;

    fn said(run: &Value) -> String {
        let next = next(run).unwrap_or_default();
        let korean = next.say(Language::Korean);
        assert!(korean.starts_with("다음: ") && is_korean(korean) && english_in(korean).is_none(), "{korean}");
        next.en().to_owned()
    }

    fn ab(verdict: &str) -> Value {
        json!({
            "id": "7", "kind": "ab", "command": ["weir", "lab", "ab", "a", "b", "--rate", "60"],
            "design": {"primary": "p95"}, "verdict": {"name": verdict}, "before": {"file": "a"},
            "metrics": [{"key": "p95", "pairs": 8, "detectable": 0.07, "threshold": 0.05}],
            "blocks": [{"requests": 120}], "asked": {"block_s": 2.0, "load": {"path": "/", "connections": 8}},
        })
    }

    #[test]
    fn every_verdict_has_a_next_command() {
        for row in crate::verdict::ROWS {
            assert!(said(&ab(row.name)).starts_with("Next: weir lab "), "{}", row.name);
        }
        assert!(said(&ab("better")).starts_with("Next: weir lab report 7 --html report.html   ("));
        assert!(said(&ab("inconclusive")).starts_with("Next: weir lab ab a b --rate 60 --pairs 16   ("));
        assert!(said(&ab("no verdict")).starts_with("Next: weir lab ab a b --rate 60 --metric mean   ("));
        let mut far = ab("inconclusive");
        far["metrics"][0]["detectable"] = json!(0.5);
        assert!(said(&far).starts_with("Next: weir lab ab a b --rate 60 --block 4s   ("));
        far["blocks"][0]["requests"] = json!(5000);
        far["verdict"]["name"] = json!("no verdict");
        assert!(said(&far).starts_with("Next: weir lab ab a b --rate 60   ("), "{}", said(&far));
        // A run from before commands were stored.
        far["command"] = Value::Null;
        assert!(said(&far).contains("weir lab report 7"));
    }

    #[test]
    fn a_cause_a_capacity_and_a_setting_lead_on() {
        let of = |kind: &str, verdict: &str| {
            json!({
                "id": "7", "kind": kind, "verdict": {"name": verdict, "rate": 1000.0}, "before": {"file": "n.conf"},
                "command": ["weir", "lab", kind, "n.conf"], "asked": {"block_s": 8.0, "load": {"path": "/x", "connections": 256}},
            })
        };
        for (word, _) in crate::verdict::WHY_WORDS {
            assert!(said(&of("why", word)).contains("weir lab "), "{word}");
        }
        assert!(said(&of("why", "NOT SATURATED")).starts_with("Next: weir lab capacity n.conf /x   ("));
        let mut of_script = of("why", "NOT SATURATED");
        of_script["asked"]["load"] = json!({"script": "my mix.yml"});
        assert!(said(&of_script).starts_with("Next: weir lab capacity n.conf --load 'my mix.yml'   ("));
        for verdict in ["capacity", "everything", "nothing", "no verdict"] {
            let mut of_script = of("capacity", verdict);
            of_script["asked"]["load"] = json!({"script": "mix.yml"});
            assert!(said(&of_script).contains("weir lab report 7"), "{verdict}");
        }
        assert!(said(&of("why", "SUSPECTED")).starts_with("Next: weir lab why n.conf --prove   ("));
        let mut found = of("why", "PROVED");
        found["verify"] = json!("weir lab ab n.conf after.conf -c 8 /x");
        assert!(said(&found).starts_with("Next: weir lab ab n.conf after.conf -c 8 /x   ("));
        assert!(said(&of("capacity", "capacity")).starts_with("Next: weir lab why n.conf /x --rate 1200   ("));
        let mut nginx = of("capacity", "capacity");
        nginx["before"]["edge"] = json!("/usr/sbin/nginx");
        nginx["asked"]["origin"] = json!("PORT=3000 node app.mjs");
        let same = " --edge /usr/sbin/nginx --origin 'PORT=3000 node app.mjs'   (";
        assert!(said(&nginx).contains(&format!("weir lab why n.conf /x --rate 1200{same}")), "{}", said(&nginx));
        assert!(said(&of("capacity", "everything")).contains("--connections 1024"));
        assert!(said(&of("capacity", "no verdict")).contains("--block 16s"));
        let mut tune = of("tune", "tuned");
        assert!(said(&tune).contains("weir lab report 7"));
        tune["tries"] = json!([{"is_kept": true}]);
        assert!(said(&tune).starts_with("Next: weir lab apply 7   ("));
        assert_eq!(next(&json!({"kind": "other"})), None);
    }
}
