//! `weir lab` from outside, with tiny counts: it runs, refuses, stores its data, and leaves nothing behind. The tests
//! claim no figure: blocks of half a second on a busy machine prove nothing, and `--noisy` accepts that.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/needs.rs"]
mod needs;
#[path = "support/schema.rs"]
mod schema;
#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use needs::{Need, cases};
use serde_json::Value;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const NGINX: &str = "/usr/sbin/nginx";

/// A directory with two configurations, `off.conf` and `on.conf`, that differ by one directive.
struct Bench {
    dir: PathBuf,
    port: u16,
}

impl Bench {
    fn new() -> Bench {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // The name differs from a lab's own names, because other labs look for those.
        let dir = std::env::temp_dir().join(format!("weir-test-lab-{}-{number}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let port = 20_000 + (std::process::id() % 300) as u16 * 32 + number as u16 % 16 * 2;
        let bench = Bench { dir, port };
        bench.conf("off.conf", "");
        bench.conf("on.conf", "keepalive 64;");
        bench
    }

    fn conf(&self, name: &str, upstream: &str) {
        let (port, origin) = (self.port, self.port + 1);
        let text = format!(
            "worker_processes 1;\nevents {{ worker_connections 512; }}\nhttp {{\n    access_log off;\n    upstream app {{ server 127.0.0.1:{origin}; {upstream} }}\n    server {{ listen 127.0.0.1:{port};\n        location / {{ proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection \"\"; }} }}\n}}\n"
        );
        fs::write(self.dir.join(name), text).unwrap();
    }

    fn lab(&self, args: &[&str]) -> Command {
        let mut command = Command::new(WEIR);
        command.arg("lab").args(args).current_dir(&self.dir).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.lab(args).output().unwrap()
    }

    fn stored(&self) -> Value {
        let store = self.dir.join(".weir/runs");
        let path = fs::read_dir(store).unwrap().next().unwrap().unwrap().path();
        let run = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        schema::valid("lab", &run);
        run
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

const TINY: [&str; 11] =
    ["--rate", "400", "-c", "8", "--block", "500ms", "--warmup", "500ms", "--noisy", "--metric", "p50"];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn main() -> ExitCode {
    needs::run(cases![
        [] => two_configurations_of_weir_are_compared_kept_and_shown, whoever_watches_the_store_sees_blocks_before_the_end_and_no_verdict, a_lab_speaks_the_language_that_it_is_asked_in_and_keeps_none, a_language_that_is_none_is_named_and_so_is_a_flag, several_changes_are_told_apart_and_leave_no_draft, an_edge_that_is_kept_warm_keeps_what_it_holds, knobs_are_tried_one_at_a_time_and_leave_no_draft, what_was_found_to_help_is_written_and_taken_back_and_never_over_something_else, a_script_is_a_load, a_capacity_is_searched_until_there_is_none, a_capacity_is_searched_with_a_script, runs_made_elsewhere_are_compared_when_there_are_enough, what_cannot_be_answered_is_refused_before_anything_runs, an_edge_that_does_not_start_is_said_in_its_own_words, load_goes_to_nobody_who_was_there_before, ctrl_c_ends_everything_and_keeps_what_there_is, a_killed_lab_takes_everything_with_it_and_its_directory_is_found;
        [Need::Program(NGINX)] => nginx_is_compared_with_itself_as_plain_processes;
        [Need::Namespaces] => two_at_once_are_compared_by_what_they_cost, two_protocols_are_compared_over_the_same_bad_path;
        [Need::Root] => notes_that_another_user_wrote_are_not_believed;
    ])
}

fn two_configurations_of_weir_are_compared_kept_and_shown() {
    let bench = Bench::new();
    let output =
        bench.run(&[&["ab", "off.conf", "on.conf", "/1k", "--pairs", "2", "--html", "r.html"], &TINY[..]].concat());
    let said = text(&output.stdout);
    // Two pairs give no result, and the report says so. On a busy machine the generator may be its own limit, and the
    // report says that instead.
    let is_quiet = said.contains("not comparable: 2 pairs");
    assert!(is_quiet || said.contains("Verdict: no verdict: load generator"), "{said}{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(3));
    let run = bench.stored();
    assert_eq!((&run["kind"], &run["factor"]), (&"ab".into(), &"keepalive".into()));
    let blocks = run["blocks"].as_array().unwrap();
    let used = blocks.iter().filter(|block| block["spoiled"].as_array().unwrap().is_empty());
    let arms: String = used.filter_map(|block| block["arm"].as_str()).collect();
    assert!(arms == "ABBA" || arms == "BAAB" || !is_quiet, "{arms}");
    for block in blocks {
        // All requests were answered through the edge, and the edge's own CPU time was measured.
        assert!(block["requests"].as_u64() > Some(100) && block["errors"].as_object().unwrap().is_empty(), "{block}");
        assert!(block["values"]["cpu"].as_f64() > Some(0.0), "{block}");
    }
    assert!(fs::read_to_string(bench.dir.join("r.html")).unwrap().contains("</html>"));
    let shown = text(&bench.run(&["report", "last"]).stdout);
    assert!(shown.contains("keepalive (in http/upstream app): none → 64"), "{shown}");
    assert!(text(&bench.run(&["runs"]).stdout).contains("  ab  "));
}

fn has_korean(text: &str) -> bool {
    text.chars().any(|c| ('가'..='힣').contains(&c))
}

fn a_lab_speaks_the_language_that_it_is_asked_in_and_keeps_none() {
    let bench = Bench::new();
    let output =
        bench.run(&[&["ab", "off.conf", "on.conf", "/1k", "--pairs", "2", "--lang", "ko"], &TINY[..]].concat());
    let (said, told) = (text(&output.stdout), text(&output.stderr));
    for part in [
        "부하 대상: ",
        "초당 400건, 연결 8개",
        "keepalive (http/upstream app 안): 없음 → 64",
        "변경 전",
        "판정: ",
        "저장: ",
    ] {
        assert!(said.contains(part), "{part}: {said}{told}");
    }
    assert!(told.contains("예상 소요 시간: 약 4초") && told.contains("1번째 쌍"), "{told}");
    for part in ["Verdict", "Blocks of", "Kept", "Takes", " pairs", "of at most", "Next"] {
        assert!(!said.contains(part) && !told.contains(part), "{part}: {said}{told}");
    }
    assert!(!has_korean(&bench.stored().to_string()), "what is kept has no language");
    // The stored run can be printed in both languages.
    let report = |args: &[&str]| text(&bench.run(&[&["report", "last"], args].concat()).stdout);
    let (english, korean) = (report(&[]), report(&["--lang", "ko", "--html", "r.html"]));
    assert!(english.contains("Verdict: ") && !has_korean(&english), "{english}");
    assert!(said.contains(&korean) && korean.contains("판정: "), "{korean}");
    let page = fs::read_to_string(bench.dir.join("r.html")).unwrap();
    assert!(page.contains("<html lang=\"ko\">") && page.contains("변경 전과 후"), "{page}");
    assert!(has_korean(&text(&bench.run(&["runs", "--lang", "ko"]).stdout)));
    assert!(text(&bench.run(&["words", "--lang", "ko"]).stdout).contains("| PROVED | 원인 후보의"));
}

fn a_language_that_is_none_is_named_and_so_is_a_flag() {
    let bench = Bench::new();
    for verb in ["ab", "tune", "capacity", "run", "compare", "report", "runs", "words", "why"] {
        let refused = bench.run(&[verb, "--lang", "fr"]);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2));
        assert!(said.contains("'fr'") && said.contains("--lang") && said.contains("en, ko"), "{said}");
    }
    let said = text(&bench.run(&["ab", "off.conf", "on.conf", "--sprache", "ko"]).stderr);
    assert!(said.contains("unexpected argument '--sprache'") && !said.contains("as a value"), "{said}");
    // An error before the run is also printed in the chosen language.
    let args = ["ab", "off.conf", "on.conf", "/", "--rate", "60", "--block", "2s", "--metric", "p95", "--lang", "ko"];
    let said = text(&bench.run(&args).stderr);
    assert!(said.contains("p95에는 블록마다 요청 2000건이 필요한데"), "{said}");
}

fn whoever_watches_the_store_sees_blocks_before_the_end_and_no_verdict() {
    let bench = Bench::new();
    let mut lab = bench.lab(&[&["ab", "--aa", "on.conf", "/1k", "--pairs", "2"], &TINY[..]].concat()).spawn().unwrap();
    let store = bench.dir.join(".weir/runs");
    let (until, mut seen) = (Instant::now() + Duration::from_secs(60), Vec::new());
    while lab.try_wait().unwrap().is_none() && Instant::now() < until {
        let files = fs::read_dir(&store).into_iter().flatten().flatten().map(|entry| entry.path());
        for file in files.filter(|path| path.extension().is_some_and(|end| end == "running")) {
            // The run may have ended meanwhile; an existing file is always complete.
            let Ok(text) = fs::read_to_string(&file) else { continue };
            seen.push(serde_json::from_str::<Value>(&text).unwrap());
        }
        sleep(Duration::from_millis(20));
    }
    assert!(lab.wait().unwrap().code().is_some());
    let last = seen.last().expect("blocks are told while it runs");
    assert!(last["verdict"].is_null() && last["metrics"].is_null() && last["blocks_max"] == 4, "{last}");
    assert!(seen.first().unwrap()["blocks"].as_array().unwrap().len() < 4);
    // At the end there is the run, and nothing else.
    let run = bench.stored();
    assert_eq!((&run["id"], fs::read_dir(&store).unwrap().count()), (&last["id"], 1));
    assert!(run["blocks"][0]["generator"]["cpu"].as_f64().is_some(), "{}", run["blocks"][0]);
}

/// The names in a directory, except runs.
fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok()).collect();
    names.retain(|name| name != ".weir");
    names.sort();
    names
}

fn several_changes_are_told_apart_and_leave_no_draft() {
    let bench = Bench::new();
    bench.conf("two.conf", "keepalive 64; keepalive_requests 5;");
    let output =
        bench.run(&[&["ab", "off.conf", "two.conf", "/1k", "--factorial", "--pairs", "1"], &TINY[..]].concat());
    let said = text(&output.stdout);
    let is_spoiled = said.contains("no verdict");
    for part in
        ["p50 with nothing", "p50 with keepalive with keepalive_requests", "keepalive: not comparable: 1 rounds"]
    {
        assert!(is_spoiled || said.contains(part), "{part}: {said}{}", text(&output.stderr));
    }
    assert_eq!(output.status.code(), Some(3));
    let run = bench.stored();
    let cells: Vec<&str> = run["blocks"].as_array().unwrap().iter().filter_map(|block| block["arm"].as_str()).collect();
    assert!(is_spoiled || cells.len() >= 4, "{cells:?}");
    assert_eq!(names(&bench.dir), ["off.conf", "on.conf", "two.conf"]);
    bench.conf("four.conf", "keepalive 64; keepalive_requests 5; keepalive_timeout 5s; zone x 64k;");
    let refused = bench.run(&["ab", "off.conf", "four.conf", "--factorial"]);
    assert!(text(&refused.stderr).contains("4 factors give 16 combinations"), "{}", text(&refused.stderr));
}

/// A cache that is kept over reloads is filled once; a cache that starts empty in each block is filled in each.
fn an_edge_that_is_kept_warm_keeps_what_it_holds() {
    let bench = Bench::new();
    let (port, origin) = (bench.port, bench.port + 1);
    for (name, tokens) in [("one.conf", "on"), ("other.conf", "off")] {
        let text = format!(
            "worker_processes 1;\nevents {{ }}\nhttp {{ access_log off; server_tokens {tokens};\n proxy_cache_path {}/cache keys_zone=a:1m;\n server {{ listen 127.0.0.1:{port}; location / {{ proxy_cache a; proxy_cache_valid 200 1h; proxy_pass http://127.0.0.1:{origin}; }} }} }}\n",
            bench.dir.display()
        );
        fs::write(bench.dir.join(name), text).unwrap();
    }
    // The first answer takes a second; an answer from the cache does not wait. There is no warm-up.
    let args = ["ab", "one.conf", "other.conf", "/1k?delay=1s", "--keep-warm", "--pairs", "2", "--plain", "--noisy"];
    let load = ["--rate", "400", "-c", "8", "--block", "500ms", "--warmup", "0", "--metric", "p50"];
    let output = bench.run(&[&args[..], &load].concat());
    let said = text(&output.stdout) + &text(&output.stderr);
    let run = bench.stored();
    let blocks = run["blocks"].as_array().unwrap();
    let last: Vec<&Value> =
        blocks.iter().filter(|block| block["attempt"] == blocks.last().unwrap()["attempt"]).collect();
    assert!(said.contains("kept warm: each quartet") && last.len() == 4, "{said}");
    for block in &last[1..] {
        assert!(block["values"]["p50"].as_f64().unwrap() < 500.0, "{block}");
    }
    assert!(!names(&bench.dir).iter().any(|name| name.starts_with(".weir-lab")));
    let elsewhere = bench.dir.join("elsewhere.conf");
    fs::write(
        &elsewhere,
        fs::read_to_string(bench.dir.join("one.conf"))
            .unwrap()
            .replace("keys_zone", "use_temp_path=off keys_zone")
            .replace("/cache ", "/cache2 "),
    )
    .unwrap();
    let refused = bench.run(&["ab", "one.conf", "elsewhere.conf", "--keep-warm"]);
    assert!(text(&refused.stderr).contains("a reload cannot change these"), "{}", text(&refused.stderr));
}

fn two_protocols_are_compared_over_the_same_bad_path() {
    let bench = Bench::new();
    let (certificate, key) = support::certificate(&bench.dir);
    let (certificate, key, port) = (certificate.display(), key.display(), bench.port);
    let conf = format!(
        "worker_processes 1;\nevents {{ }}\nhttp {{ access_log off; server {{ listen {port} ssl; listen {port} quic; http2 on;\n ssl_certificate {certificate}; ssl_certificate_key {key}; location / {{ return 200 ok; }} }} }}\n"
    );
    fs::write(bench.dir.join("quic.conf"), conf).unwrap();
    let protocols = ["ab", "quic.conf", "--protocol", "http2", "--protocol-after", "http3"];
    let path = ["--delay", "5ms", "--loss", "2%", "--pairs", "1", "/"];
    let output = bench.run(&[&protocols[..], &path, &TINY].concat());
    let said = text_of(&output);
    for part in ["quic.conf (weir/", "), HTTP/2\n", "), HTTP/3\n", "The client's link: delay 5ms, loss 2%\n"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let run = bench.stored();
    assert_eq!(run["factor"], "protocol: HTTP/2 → HTTP/3");
    let mut lost = 0;
    for block in run["blocks"].as_array().unwrap() {
        let link = &block["usage"]["links"]["client"];
        // One lost segment may hold all requests of HTTP/2 for a good part of the block.
        assert!(block["requests"].as_u64() > Some(20) && block["errors"].as_object().unwrap().is_empty(), "{block}");
        lost += ["to", "from"].iter().filter_map(|way| link[way]["lost"].as_u64()).sum::<u64>();
        assert!(link["to"]["long"] == 0 && link["from"]["long"] == 0, "{link}");
        // A request takes the path there, and its answer back.
        assert!(block["values"]["p50"].as_f64() >= Some(10.0), "{block}");
    }
    assert!(lost > 0, "{run}");
    let refused = |more: &[&str]| text(&bench.run(&[&["ab"], more].concat()).stderr);
    assert!(
        refused(&["quic.conf", "--protocol-after", "http3", "--plain", "--loss", "1%"]).contains("a host of its own")
    );
    assert!(refused(&["off.conf", "--protocol-after", "http3"]).contains("HTTP/3 needs TLS"));
    assert!(refused(&["off.conf", "on.conf", "--protocol-after", "http2"]).contains("two factors change"));
    assert!(refused(&["off.conf", "on.conf", "--loss", "51%"]).contains("a share of at most 50 %"));
    assert!(refused(&["off.conf", "on.conf", "--delay", "11s"]).contains("a time of at most 10 s"));
    assert!(refused(&["off.conf", "--protocol-after", "http2", "--load", "x.yml"]).contains("config.http.http3: true"));
}

/// Both outputs of a command.
fn text_of(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

fn two_at_once_are_compared_by_what_they_cost() {
    let bench = Bench::new();
    let refused = |args: &[&str]| {
        let output = bench.run(&[&["ab", "off.conf", "on.conf", "/1k", "--duet"], args].concat());
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    assert!(refused(&["--rate", "100", "--metric", "p95"]).contains("only cpu"));
    assert!(refused(&[]).contains("--duet needs a --rate"));
    assert!(refused(&["--rate", "100", "--plain"]).contains("needs root"));
    // On a busy machine answers wait: so many connections that every request still has one.
    let load = ["--rate", "150", "-c", "150", "--block", "1s", "--warmup", "1s", "--noisy", "--pairs", "1"];
    let output = bench.run(&[&["ab", "off.conf", "on.conf", "/1k", "--duet"], &load[..]].concat());
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(said.contains("duet: A and B at once"), "{said}");
    let run = bench.stored();
    let blocks = run["blocks"].as_array().unwrap();
    for two in blocks.chunks(2) {
        // The same load at the same time, each through its own edge and origin.
        assert_ne!(two[0]["arm"], two[1]["arm"]);
        assert!(
            two.iter().all(|block| block["requests"] == 150 && block["values"]["cpu"].as_f64() > Some(0.0)),
            "{two:?}"
        );
        assert!(two.iter().all(|block| block["errors"].as_object().unwrap().is_empty()), "{two:?}");
    }
}

fn knobs_are_tried_one_at_a_time_and_leave_no_draft() {
    let bench = Bench::new();
    let knobs = ["--only-knobs", "--knob", "http/upstream[app]/keepalive=64", "--knob", "http/keepalive_requests=10"];
    let output = bench.run(&[&["tune", "off.conf", "/1k", "--pairs", "1"], &knobs[..], &TINY[..]].concat());
    let said = text(&output.stdout);
    // One pair proves nothing, so no knob is kept. If the generator is its own limit, the search ends at the first
    // knob.
    let is_hopeless = said.contains("Verdict: nothing kept: ");
    assert!(is_hopeless || said.contains("0 of 2 knobs kept: none is shown to help"), "{said}{}", text(&output.stderr));
    assert!(said.contains("keepalive (in http/upstream app): none → 64"), "{said}");
    assert!(is_hopeless || said.contains("keepalive_requests (in http): none → 10"), "{said}");
    assert_eq!(names(&bench.dir), ["off.conf", "on.conf"]);
    let refused = bench.run(&["tune", "off.conf", "--only-knobs", "--knob", "http/upstream[nobody]/keepalive=1"]);
    assert!(text(&refused.stderr).contains("there is no upstream[nobody]"), "{}", text(&refused.stderr));
    assert_eq!(refused.status.code(), Some(2));
}

fn what_was_found_to_help_is_written_and_taken_back_and_never_over_something_else() {
    let bench = Bench::new();
    let file = bench.dir.join("off.conf");
    let before = fs::read_to_string(&file).unwrap();
    let after = before.replace("events", "worker_rlimit_nofile 4096;\nevents");
    let run = serde_json::json!({
        "id": "7", "kind": "tune", "verdict": {"text": "x"},
        "files": [{"name": file.display().to_string(), "before": before, "after": after}],
    });
    fs::create_dir_all(bench.dir.join(".weir/runs")).unwrap();
    fs::write(bench.dir.join(".weir/runs/7.json"), run.to_string()).unwrap();
    let refusal = |args: &[&str]| {
        let output = bench.run(args);
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    assert!(refusal(&["undo", "7"]).contains("the file has changed"));
    let applied = bench.run(&["apply", "7"]);
    assert!(text(&applied.stdout).contains("+worker_rlimit_nofile 4096;"), "{}", text(&applied.stderr));
    assert_eq!(fs::read_to_string(&file).unwrap(), after);
    assert!(refusal(&["apply", "7"]).contains("the file has changed"));
    assert_eq!(bench.run(&["undo", "7"]).status.code(), Some(0));
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
}

fn nginx_is_compared_with_itself_as_plain_processes() {
    let bench = Bench::new();
    let args = ["ab", "--aa", "on.conf", "/1k", "--pairs", "1", "--plain", "--edge", NGINX];
    let output = bench.run(&[&args, &TINY[..]].concat());
    assert!(text(&output.stdout).contains("Calibration:"), "{}{}", text(&output.stdout), text(&output.stderr));
    let run = bench.stored();
    assert!(run["environment"]["before"].as_str().unwrap().starts_with("nginx/"), "{}", run["environment"]);
    assert_eq!(run["asked"]["is_isolated"], false);
}

fn a_script_is_a_load() {
    let bench = Bench::new();
    let script = "config: { target: \"http://x\", phases: [{ duration: 1, arrivalRate: 20 }] }\nscenarios: [{ flow: [{ loop: [{ get: { url: /1k } }], count: 10 }] }]\n";
    fs::write(bench.dir.join("load.yml"), script).unwrap();
    let args = ["ab", "--aa", "on.conf", "--load", "load.yml", "--pairs", "1", "--noisy", "--metric", "p50"];
    let output = bench.run(&args);
    let run = bench.stored();
    assert_eq!(run["blocks"][0]["requests"], 200, "{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(run["blocks"][1]["requests"], 200, "the same arrivals in both");
}

fn a_capacity_is_searched_until_there_is_none() {
    let bench = Bench::new();
    // No answer is fast enough at any rate; and at low rates, five seconds have fewer answers than a p50 needs.
    let args = ["capacity", "on.conf", "/1k?delay=5ms", "--from", "60", "--slo", "p50=1ms", "--block", "500ms"];
    let output = bench.run(&[&args[..], &["--warmup", "0", "--noisy"]].concat());
    let said = text(&output.stdout);
    // The last rate that was measured is named, and why no lower one is.
    let is_told = said.contains("no verdict: not even ") && said.contains("Below it, 5 s have too few answers for p50");
    assert!(is_told, "{said}{}", text(&output.stderr));
    let run = bench.stored();
    assert_eq!((&run["kind"], output.status.code()), (&"capacity".into(), Some(3)));
    // No machine is faster than the origin: no step holds, and each failure makes the next rate lower by a third. A busy machine may
    // not reach the rate, and the step says so.
    let (steps, blocks) = (run["steps"].as_array().unwrap(), run["blocks"].as_array().unwrap());
    let rates: Vec<f64> = steps.iter().filter_map(|step| step["rate"].as_f64()).collect();
    let is_lower = |pair: &[f64]| (pair[0] / pair[1] - 1.5).abs() < 0.01;
    assert!(rates.len() > 1 && rates[0] == 60.0 && rates.windows(2).all(is_lower), "{rates:?}");
    assert_eq!((steps.len(), blocks.len()), (rates.len(), rates.len()));
    for ((step, block), rate) in steps.iter().zip(blocks).zip(&rates) {
        let values = &block["values"];
        assert!(step["passed"] == false && values["p50"].as_f64().is_none_or(|ms| ms >= 5.0), "{step} {values}");
        let why = step["why"].as_str().unwrap();
        let says_why = match (step["answered"].as_f64().unwrap(), values["errors"].as_f64().unwrap()) {
            (answered, _) if answered < 0.99 * rate => why.ends_with("/s answered"),
            (_, failed) if failed > 0.001 => why.ends_with(" % failed"),
            _ => why.starts_with("p50 ") && why.ends_with(" ms"),
        };
        assert!(says_why, "{step} {values}");
    }
    let korean = text(&bench.run(&["report", "last", "--lang", "ko"]).stdout);
    let verdict = "그보다 낮으면 5초 동안의 응답으로는 p50에 부족합니다: 블록을 늘리세요 (--block)";
    let is_told = korean.contains("판정: no verdict (판정 없음): ") && korean.contains(verdict);
    assert!(is_told && korean.matches("  실패: ").count() == rates.len(), "{korean}");
    let refused = text(&bench.run(&["capacity", "on.conf", "--slo", "p98=1ms"]).stderr);
    assert!(refused.contains("p50, p95 or p99"), "{refused}");
}

fn a_capacity_is_searched_with_a_script() {
    let bench = Bench::new();
    let write = |phase: &str| {
        let script = format!(
            "config: {{ phases: [{phase}] }}\nscenarios: [{{ flow: [{{ get: {{ url: \"/1k?delay=5ms\" }} }}, {{ get: {{ url: \"/1k?delay=5ms\" }} }}] }}]\n"
        );
        fs::write(bench.dir.join("mix.yml"), script).unwrap();
    };
    // 20 requests in two seconds; no answer is fast enough at any rate.
    write("{ duration: 1, arrivalCount: 7 }, { duration: 1, arrivalCount: 3 }");
    let args = ["capacity", "on.conf", "--load", "mix.yml", "--from", "100", "--slo", "p50=1ms", "--noisy"];
    let output = bench.run(&args);
    let said = text(&output.stdout);
    assert!(
        said.contains("no verdict: not even ")
            && said.contains("Below it, 2 s of the script have too few answers for p50"),
        "{said}{}",
        text(&output.stderr)
    );
    let run = bench.stored();
    // Ten times the script's rate: ten times its arrivals.
    assert_eq!((&run["steps"][0]["rate"], &run["blocks"][0]["requests"]), (&100.0.into(), &200.into()));
    write("{ duration: 1, arrivalRate: 7, mode: poisson }");
    let refused = text(&bench.run(&args).stderr);
    assert!(refused.contains("mix.yml: its plan does not show the number of its requests"), "{refused}");
}

/// Reports of `weir load` against the dummy origin, one in each file.
fn reports(bench: &Bench, name: &str, count: usize, path: &str) {
    let dir = bench.dir.join(name);
    fs::create_dir_all(&dir).unwrap();
    let at = format!("127.0.0.1:{}", bench.port);
    let mut origin = Command::new(WEIR).args(["origin", "--listen", &at]).stdout(Stdio::null()).spawn().unwrap();
    support::within("the origin listens", || std::net::TcpStream::connect(&at).is_ok());
    for number in 0..count {
        let out = dir.join(format!("{number}.json"));
        let url = format!("http://{at}{path}");
        let load = ["load", &url, "-c", "16", "-R", "450", "-d", "500ms", "-q", "-o", out.to_str().unwrap()];
        assert!(Command::new(WEIR).args(load).stdout(Stdio::null()).status().unwrap().success());
    }
    origin.kill().unwrap();
    origin.wait().unwrap();
}

fn runs_made_elsewhere_are_compared_when_there_are_enough() {
    let bench = Bench::new();
    reports(&bench, "quick", 6, "/1k");
    reports(&bench, "slow", 6, "/1k?delay=3ms");
    let compare = |args: &[&str]| {
        let output = bench.run(&[&["compare"], args].concat());
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    // If the generator had no CPU on a busy machine, the report says so instead of giving figures.
    let (code, said) = compare(&["quick", "slow", "--metric", "p50", "--html", "c.html"]);
    let is_spoiled = said.contains("Not used: ")
        && ["no verdict", "an interval needs 6 of each", "one run per arm"].iter().any(|words| said.contains(words));
    assert!(is_spoiled || (said.contains("Verdict: slower by") && code == Some(1)), "{said}");
    assert!(is_spoiled || said.contains("6 and 6 runs"), "{said}");
    assert!(fs::read_to_string(bench.dir.join("c.html")).unwrap().contains("</html>"));
    let (_, said) = compare(&["quick", "slow", "--metric", "p50", "--lang", "ko"]);
    assert!(said.contains("weir load 실행 6회") && said.contains("판정: ") && !said.contains("Verdict"), "{said}");
    let (code, said) = compare(&["quick/0.json", "slow/0.json", "--metric", "p50"]);
    assert!(said.contains("not comparable: one run per arm") || said.contains("no verdict"), "{said}");
    assert_eq!(code, Some(3));
    let refused = [
        (&["quick", "nowhere"][..], "nowhere"),
        (&["quick", "slow", "--metric", "cpu"], "a report does not contain the edge's CPU"),
        (&["off.conf", "slow"], "off.conf: expected"),
    ];
    for (args, words) in refused {
        let (code, said) = compare(args);
        assert!(said.contains(words) && code == Some(2), "{args:?}: {said}");
    }
}

fn what_cannot_be_answered_is_refused_before_anything_runs() {
    let bench = Bench::new();
    bench.conf("two.conf", "keepalive 64; zone app 64k;");
    fs::write(bench.dir.join("daemon.conf"), "daemon on; events {} http { server { listen 127.0.0.1:1; } }").unwrap();
    fs::write(bench.dir.join("broken.conf"), "http {").unwrap();
    let table: &[(&[&str], &str)] = &[
        (&["off.conf", "two.conf"], "2 factors change"),
        (&["off.conf", "off.conf"], "are equal"),
        (&["off.conf"], "name two configurations"),
        (&["--aa", "off.conf", "on.conf"], "--aa needs exactly one configuration"),
        (&["--aa", "daemon.conf"], "remove the directive"),
        (&["--aa", "broken.conf"], "unexpected end of file"),
        (&["--aa", "missing.conf"], "missing.conf"),
        (&["--aa", "off.conf", "--metric", "p98"], "--metric p98: write one of throughput"),
        (&["--aa", "off.conf", "--edge", "/nowhere"], "no such program"),
        (&["--aa", "off.conf", "--port", "9"], "does not listen on port 9"),
        (&["off.conf", "on.conf", "--edge-after", "/bin/true"], "two factors change"),
        (&["--aa", "off.conf", "--threshold", "0"], "--threshold 0"),
        (&["--aa", "off.conf", "--rate", "0"], "--rate"),
        (&["--aa", "off.conf", "--load", "missing.yml"], "missing.yml"),
    ];
    for (args, words) in table {
        let output = bench.run(&[&["ab"], *args].concat());
        let said = text(&output.stderr);
        assert!(said.contains(words) && output.status.code() == Some(2), "{args:?}: {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
    assert!(!bench.dir.join(".weir").exists(), "nothing was run");
}

fn an_edge_that_does_not_start_is_said_in_its_own_words() {
    let bench = Bench::new();
    bench.conf("bad.conf", "keepalive no;");
    let output = bench.run(&["ab", "--aa", "bad.conf", "/1k", "--pairs", "1"]);
    let said = text(&output.stderr);
    assert!(said.contains("edge did not start") && said.contains("keepalive"), "{said}");
    assert_eq!(output.status.code(), Some(2));
}

fn load_goes_to_nobody_who_was_there_before() {
    let bench = Bench::new();
    let somebody = std::net::TcpListener::bind(("127.0.0.1", bench.port)).unwrap();
    let output = bench.run(&[&["ab", "--aa", "on.conf", "/1k", "--pairs", "1", "--plain"], &TINY[..]].concat());
    let said = text(&output.stderr);
    assert!(said.contains("another process already listens at 127.0.0.1"), "{said}");
    drop(somebody);
}

/// Processes of this binary that a lab started: the load in a bench's block.
fn children(bench: &Bench) -> usize {
    let port = format!("127.0.0.1:{}", bench.port);
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let dir = bench.dir.display().to_string();
    lines.filter(|line| [&port, &dir].iter().any(|word| text(line).contains(word.as_str()))).count()
}

fn started(bench: &Bench, plain: bool) -> Child {
    let mut args = vec!["ab", "--aa", "on.conf", "/1k", "--rate", "100", "--block", "60s", "--warmup", "0s"];
    args.extend(plain.then_some("--plain"));
    let lab = bench.lab(&args).spawn().unwrap();
    // The edge and the load, besides the lab itself and its keeper.
    support::within("a block begins", || children(bench) >= 2);
    lab
}

fn ctrl_c_ends_everything_and_keeps_what_there_is() {
    for plain in [true, false] {
        let bench = Bench::new();
        let lab = started(&bench, plain);
        Command::new("kill").args(["-INT", &lab.id().to_string()]).status().unwrap();
        let output = lab.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        support::within("everything has ended", || children(&bench) == 0);
        assert_eq!(bench.stored()["is_interrupted"], true);
    }
}

fn a_killed_lab_takes_everything_with_it_and_its_directory_is_found() {
    for plain in [true, false] {
        let bench = Bench::new();
        let mut lab = started(&bench, plain);
        let place = std::env::temp_dir().join(format!("weir-lab-{}", lab.id()));
        assert!(place.is_dir());
        lab.kill().unwrap();
        lab.wait().unwrap();
        support::within("everything has ended", || children(&bench) == 0);
        // The next lab, of any kind, finds the leftover directory by its name.
        bench.run(&[&["ab", "--aa", "on.conf", "/1k", "--pairs", "1", "--plain"], &TINY[..]].concat());
        assert!(!place.exists());
    }
}

/// Needs root, to act as another user: a user who writes files that look like a lab's notes must not make the lab
/// kill anything.
fn notes_that_another_user_wrote_are_not_believed() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    let shared = bench.dir.join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let mut victim = Command::new("setsid").args(["sleep", "300"]).spawn().unwrap();
    // After the name, which may contain blanks, the 20th number of the line is the start time.
    let started = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", victim.id())).unwrap();
        stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap().to_owned()
    };
    support::within("it leads its group", || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", victim.id())).unwrap();
        stat.contains("(sleep)")
            && stat.rsplit_once(") ").unwrap().1.split(' ').nth(2) == Some(&victim.id().to_string())
    });
    let note = format!("{} {}", victim.id(), started());
    let script = format!(
        "mkdir -p weir-lab-4194000 weir-lab-of-0 && echo '{note}' > weir-lab-4194000/processes && \
         echo '{note}' > weir-lab-of-0/weir-lab-4194000"
    );
    let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c", &script];
    assert!(Command::new("setpriv").args(nobody).current_dir(&shared).status().unwrap().success());
    let args = [&["ab", "--aa", "on.conf", "/1k", "--pairs", "1", "--plain"], &TINY[..]].concat();
    let output = bench.lab(&args).env("TMPDIR", &shared).output().unwrap();
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(!said.contains("ended process group"), "{said}");
    assert!(victim.try_wait().unwrap().is_none(), "the other user had it killed: {said}");
    assert!(shared.join("weir-lab-4194000/processes").exists(), "what is another user's is left alone");
    victim.kill().unwrap();
    victim.wait().unwrap();
}
