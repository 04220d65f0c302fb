//! `weir lab why` from outside: it names an obvious fault by its rule, with the stack of a configuration and with
//! that of an experiment; it gives no verdict if the load generator is at its limit. Needs root and `unshare`;
//! without them, the tests are not run.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/needs.rs"]
mod needs;
#[path = "support/schema.rs"]
mod schema;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use needs::{Need, cases};
use serde_json::{Value, json};

/// The nginx to compare with.
const NGINX: &str = "/usr/sbin/nginx";
const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// Other work of the machine spoils blocks, so the test tries this many times.
const TRIES: usize = 4;
/// Slots for fewer than half of sixty clients, each of which waits a third of a second: this is true at any machine's
/// speed.
const FULL_TABLE: &str = "worker_processes 1;\nevents { worker_connections 32; }\nhttp {\n    access_log off;\n    upstream app { server app:3000; }\n    server { listen 8080; location / { proxy_pass http://app; } }\n}\n";

struct Bench(PathBuf);

impl Bench {
    fn new(name: &str) -> Bench {
        let dir = std::env::temp_dir().join(format!("weir-test-why-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("nginx.conf"), FULL_TABLE).unwrap();
        Bench(dir)
    }

    /// The stored run and the printed text; tries again while the machine spoils the run, unless the test wants a
    /// spoiled run.
    fn why(&self, args: &[&str], is_spoiled: bool) -> (Value, String) {
        let mut last = (Value::Null, String::new());
        for number in 0..TRIES {
            let store = self.0.join(format!("runs-{number}"));
            let mut command = Command::new(WEIR);
            command
                .args(["lab", "why"])
                .args(args)
                .args(["--block", "1500ms", "--warmup", "0", "--noisy", "--seed", "1"]);
            if !args.contains(&"--try") {
                command.args(["--try-budget", "0"]);
            }
            command.arg("--store").arg(&store).current_dir(&self.0).stdin(Stdio::null());
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
            // A copy of the configuration and earlier runs of this test may lie beside the run; a run's name is its
            // time.
            let files = fs::read_dir(&store).into_iter().flatten().flatten().map(|file| file.path());
            let run = files.filter(|path| path.extension().is_some_and(|kind| kind == "json")).max();
            let Some(path) = run else { panic!("nothing was kept: {said}") };
            let run: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
            schema::valid("lab", &run);
            let is_done = is_spoiled || run["verdict"]["name"] != "no verdict";
            last = (run, said);
            if is_done {
                break;
            }
        }
        last
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn main() -> ExitCode {
    needs::run(cases![
        [Need::Namespaces] => a_table_that_is_full_is_named_with_its_knob, of_a_load_generator_that_is_held_back_nothing_is_said, the_stack_of_an_experiment_is_loaded_and_watched, a_script_that_overloads_is_not_answered, a_remedy_is_tried_in_a_copy_and_the_copy_is_named;
        [] => what_its_blocks_cannot_answer_is_refused_beforehand;
        [Need::Namespaces, Need::Program(NGINX)] => a_policy_that_refuses_is_the_verdict_with_its_line_and_its_number;
    ])
}

fn a_table_that_is_full_is_named_with_its_knob() {
    let bench = Bench::new("table");
    let (run, said) = bench.why(&["nginx.conf", "/1k?delay=300ms", "-c", "60", "--probe", "redis=127.0.0.1:1"], false);
    assert_eq!(run["verdict"]["rule"], "B05", "{said}");
    assert_eq!(run["verdict"]["name"], "SUSPECTED", "nothing was squeezed: {said}");
    assert!(said.contains("worker_connections 1024;"), "{said}");
    // The report names a probe that the user set and that could not be read.
    assert!(said.contains("not read    redis: 127.0.0.1:1:"), "{said}");
    let roles: Vec<(&str, &str)> = run["signals"]["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].as_str().unwrap(), one["role"].as_str().unwrap()))
        .collect();
    assert!(roles.contains(&("origin0", "App")) && roles.contains(&("edge", "Edge")), "{roles:?}");
}

fn a_remedy_is_tried_in_a_copy_and_the_copy_is_named() {
    let bench = Bench::new("try");
    let args = ["nginx.conf", "/1k?delay=300ms", "-c", "60", "-H", "X-Of: a test", "--try", "--try-budget", "1s"];
    let (run, said) = bench.why(&args, false);
    assert_eq!((&run["verdict"]["rule"], &run["tried"]["name"]), (&json!("B05"), &json!("helps")), "{said}");
    assert_eq!(run["tried"]["pairs"].as_array().map(Vec::len), Some(6), "{said}");
    let copy = run["copied"]["file"].as_str().unwrap();
    assert!(fs::read_to_string(copy).unwrap().contains("worker_connections 1024;"), "{said}");
    assert_eq!(fs::read_to_string(bench.0.join("nginx.conf")).unwrap(), FULL_TABLE, "the file stays as it is");
    assert!(said.contains(&format!("{copy} -c 60 '/1k?delay=300ms' -H 'X-Of: a test'")), "{said}");
    // The duration is printed before the first block.
    let (outlook, first) = (said.find("6 pairs of blocks: about").unwrap(), said.find("the load as asked").unwrap());
    assert!(outlook < first && said.contains("X-Of") && run["asked"]["headers"] == json!(["X-Of: a test"]), "{said}");
}

fn what_its_blocks_cannot_answer_is_refused_beforehand() {
    let bench = Bench::new("few");
    let args = ["lab", "why", "nginx.conf", "/", "--rate", "60", "--block", "2s", "--slo", "p95=50ms"];
    let output = Command::new(WEIR).args(args).current_dir(&bench.0).output().unwrap();
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && why.contains("p95 needs 2000 requests in a block"), "{why}");
}

/// Twenty connections where five are allowed: three quarters are refused at any machine's speed.
const LIMITED: &str = "worker_processes 1;\nevents { worker_connections 512; }\nhttp {\n    access_log off;\n    limit_conn_zone $binary_remote_addr zone=addr:1m;\n    limit_conn addr 5;\n    error_log /dev/null crit;\n    upstream app { server app:3000; }\n    server { listen 8080; location / { proxy_pass http://app; } }\n}\n";

/// The edge's own error log goes elsewhere and has fewer messages: the policy is still recognised.
fn a_policy_that_refuses_is_the_verdict_with_its_line_and_its_number() {
    for edge in ["weir", NGINX] {
        let bench = Bench::new(if edge == "weir" { "policy" } else { "policy-nginx" });
        fs::write(bench.0.join("nginx.conf"), LIMITED).unwrap();
        let args = ["nginx.conf", "/1k?delay=200ms", "--edge", edge, "--rate", "100", "-c", "100"];
        let (run, said) = bench.why(&args, false);
        assert_eq!(run["verdict"]["name"], "POLICY", "{edge}: {said}");
        assert_eq!(run["verdict"]["rule"], "P02", "{edge}: {said}");
        assert!(said.contains("POLICY  limit_conn addr 5 at nginx.conf:6 refused "), "{edge}: {said}");
        assert!(said.contains("503 × ") && said.contains("good (2xx, 3xx)"), "{edge}: {said}");
        assert_eq!(run["unread"], json!([]), "{edge}: {said}");
        let load = &run["signals"]["load"];
        let (well, refused) = (load["statuses"]["200"].as_u64().unwrap(), load["statuses"]["503"].as_u64().unwrap());
        assert_eq!(
            (load["well"].as_u64(), load["errors"]["503"].as_u64()),
            (Some(well), Some(refused)),
            "{edge}: {said}"
        );
    }
}

/// A script with ten times the load that a single sleeping worker can answer: answers are late, and the report does
/// not call that capacity.
fn a_script_that_overloads_is_not_answered() {
    let bench = Bench::new("script");
    let conf = FULL_TABLE.replace("worker_connections 32", "worker_connections 2048");
    fs::write(bench.0.join("nginx.conf"), conf).unwrap();
    fs::write(bench.0.join("app.py"), SLEEPER).unwrap();
    let script = "config:\n  target: http://127.0.0.1:1\n  phases: [{duration: 3, arrivalRate: 60}]\nscenarios:\n  - flow: [{get: {url: /}}]\n";
    fs::write(bench.0.join("load.yml"), script).unwrap();
    let (run, said) = bench.why(
        &[
            "nginx.conf",
            "--load",
            "load.yml",
            "--origin",
            &format!("exec python3 {}", bench.0.join("app.py").display()),
        ],
        false,
    );
    assert_ne!(run["verdict"]["name"], "NOT SATURATED", "{said}");
    assert!(said.contains("not quiet   ") && said.contains("within the block"), "{said}");
    // The same script, with an application that answers at once.
    let (run, said) = bench.why(&["nginx.conf", "--load", "load.yml"], false);
    assert_eq!(run["verdict"]["name"], "NOT SATURATED", "{said}");
}

/// One request at a time, each for a twentieth of a second.
const SLEEPER: &str = "import http.server, time\nclass H(http.server.BaseHTTPRequestHandler):\n    def log_message(self, *_): pass\n    def do_GET(self):\n        time.sleep(0.05)\n        self.send_response(200); self.send_header('Content-Length', '1'); self.end_headers(); self.wfile.write(b'x')\nclass S(http.server.HTTPServer): request_queue_size = 512\nS(('0.0.0.0', 3000), H).serve_forever()\n";

fn of_a_load_generator_that_is_held_back_nothing_is_said() {
    let bench = Bench::new("client");
    let inject = json!({"hosts": [{"name": "client", "cpus": 0.03}], "client": {"is_unlimited": false}});
    fs::write(bench.0.join("inject.json"), inject.to_string()).unwrap();
    let (run, said) = bench.why(&["nginx.conf", "/1k", "-c", "32", "--inject", "inject.json"], true);
    assert_eq!(run["verdict"]["name"], "no verdict", "{said}");
    assert!(said.contains("load generator"), "{said}");
    assert_eq!(run["findings"], json!([]), "{said}");
}

fn the_stack_of_an_experiment_is_loaded_and_watched() {
    let bench = Bench::new("stack");
    let lab = bench.0.join("labs/full");
    fs::create_dir_all(&lab).unwrap();
    fs::write(lab.join("nginx.conf"), FULL_TABLE).unwrap();
    let text = format!(
        "title: a table that is full\nhosts: {{client: {{}}, app: {{}}}}\nprocesses:\n  \
         app: {{host: app, run: [\"{WEIR}\", origin, --listen, \"0.0.0.0:3000\"], ready: 3000}}\n  \
         batch: {{run: [sleep, \"600\"]}}\n\
         edge: {{conf: nginx.conf}}\nload: {{path: \"/1k?delay=300ms\", host: client, flags: [-c, \"60\"]}}\n\
         expect:\n  - {{that: requests, least: 1, says: it is loaded}}\n"
    );
    fs::write(lab.join("lab.yml"), text).unwrap();
    let (run, said) = bench.why(&["--stack", "labs/full"], false);
    assert_eq!((&run["verdict"]["rule"], &run["stack"]["lab"]), (&json!("B05"), &json!("full")), "{said}");
    assert_eq!(run["asked"]["load"]["connections"], 60, "the experiment's own load: {said}");
    let role = |name: &str| {
        let all = run["signals"]["processes"].as_array().unwrap();
        all.iter().find(|one| one["name"] == name).map(|one| one["role"].clone())
    };
    assert_eq!((role("app"), role("batch")), (Some(json!("App")), Some(json!("Beside"))), "{said}");
    // Errors in a stack are reported before anything is started.
    let refused = |args: &[&str]| {
        let output = Command::new(WEIR).args(["lab", "why"]).args(args).current_dir(&bench.0).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, why) = refused(&["--stack", "labs/full", "--variant", "x"]);
    assert!(code == Some(2) && why.contains("--variant: lab full has"), "{why}");
    let (code, why) = refused(&["--stack", "labs/full", "--pool", "db:POOL=5"]);
    assert!(code == Some(2) && why.contains("--pool: there is no process db"), "{why}");
    let (code, why) = refused(&["--stack", "labs/none"]);
    assert!(code == Some(2) && why.contains("labs/none"), "{why}");
}
