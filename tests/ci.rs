//! `weir ci` from outside, on real repositories, and the files for pipelines in `package/ci`, played by a runner of ours.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/needs.rs"]
mod needs;
#[path = "ci/runner.rs"]
mod runner;
#[path = "support/schema.rs"]
mod schema;
#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};

use needs::{Need, cases};
use runner::{Runner, documents, program};
use serde_json::{Value, json};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const PYTHON: &str = "python3";

fn main() -> ExitCode {
    needs::run(cases![
        [] => the_runner_keeps_its_rules, the_guide_names_each_flag;
        [Need::Program("git")] => findings_that_a_revision_brought_are_told_in_all_forms, a_configuration_that_is_new_or_gone_is_no_riddle, what_cannot_be_measured_is_said_and_leaves_nothing, a_signal_ends_it_and_leaves_nothing, the_action_of_github_checks_and_comments_once, the_template_of_gitlab_checks_and_comments_once;
        [Need::Program("git"), Need::Program(PYTHON)] => a_slower_application_is_worse_and_the_same_one_is_not;
    ])
}

/// An application whose answers take a time.
const APPLICATION: &str = r#"
import http.server, socketserver, sys, time
WAIT = 0.0
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body leave together: the kernel waits for no acknowledgement between them.
    wbufsize = 65536
    disable_nagle_algorithm = True
    def do_GET(self):
        time.sleep(WAIT)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *words):
        pass
class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128
Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

/// A repository with a configuration and an application, and a place for the rooms of revisions.
struct Checkout {
    top: PathBuf,
    repository: PathBuf,
    edge: u16,
    app: u16,
}

impl Checkout {
    fn new(name: &str) -> Checkout {
        let top = support::scratch(&format!("ci-{name}"));
        let repository = top.join("repository");
        for folder in ["repository/deploy", "rooms", "bin", "temp"] {
            fs::create_dir_all(top.join(folder)).unwrap();
        }
        let [edge, app] = [(); 2].map(|()| support::free_port());
        let checkout = Checkout { top, repository, edge, app };
        checkout.git(&["init", "--quiet", "--initial-branch", "main"]);
        checkout.write("deploy/nginx.conf", &checkout.conf(""));
        checkout.write("app.py", APPLICATION);
        checkout.commit("first");
        checkout
    }

    fn conf(&self, more: &str) -> String {
        let Checkout { edge, app, .. } = self;
        format!(
            "events {{ worker_connections 1024; }}\nworker_rlimit_nofile 4096;\nworker_processes auto;\nhttp {{\n    server_tokens off;\n    access_log off;\n    upstream app {{ server 127.0.0.1:{app}; keepalive 32; }}\n    server {{\n        listen 127.0.0.1:{edge};\n        location / {{\n            proxy_pass http://app;\n            proxy_http_version 1.1;\n            proxy_set_header Connection \"\";\n            proxy_set_header Host $host;\n            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\n            proxy_set_header X-Forwarded-Proto $scheme;\n        }}\n{more}    }}\n}}\n"
        )
    }

    fn git(&self, words: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"]);
        let output = command.args(words).current_dir(&self.repository).output().unwrap();
        assert!(output.status.success(), "{words:?} {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.repository.join(name), text).unwrap();
    }

    fn commit(&self, subject: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", subject]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(WEIR);
        command.arg("ci").args(words).current_dir(&self.repository).env("WEIR_LANG", "en").env("WEIR", WEIR);
        command.arg("--work").arg(self.top.join("rooms")).stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> (Option<i32>, String) {
        let output = self.command(words).output().unwrap();
        (output.status.code(), said(&output))
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.top.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn json(&self, schema: &str) -> Value {
        let json = serde_json::from_str(&self.read("r.json")).unwrap();
        schema::valid(schema, &json);
        json
    }

    /// The flags that write every form of a report.
    fn forms(&self) -> Vec<String> {
        let flags = ["markdown", "junit", "json"].iter().zip(["r.md", "r.xml", "r.json"]);
        flags.flat_map(|(flag, name)| [format!("--{flag}"), self.top.join(name).display().to_string()]).collect()
    }

    /// Rooms of revisions that are left, and changes of the working tree or the list of worktrees.
    fn left(&self) -> (usize, String, usize) {
        let rooms = fs::read_dir(self.top.join("rooms")).unwrap().count();
        let trees = self.git(&["worktree", "list"]).lines().count();
        (rooms, self.git(&["status", "--porcelain"]), trees)
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.top);
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn words<'w>(one: &[&'w str], more: &'w [String]) -> Vec<&'w str> {
    one.iter().copied().chain(more.iter().map(String::as_str)).collect()
}

const UNTOUCHED: (usize, String, usize) = (0, String::new(), 1);
const TRAP: &str = "        location /a { alias /srv/b/; }\n";

fn file(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name))
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn the_runner_keeps_its_rules() {
    runner::check_itself();
}

fn the_guide_names_each_flag() {
    let guide = file("docs/guide/ci.md");
    for verb in ["ab", "check"] {
        let output = Command::new(WEIR).args(["ci", verb, "--help"]).env("WEIR_LANG", "en").output().unwrap();
        let help = said(&output);
        let flags = help.split_whitespace().filter_map(|word| word.strip_prefix("--"));
        let flags = flags.map(|word| word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()));
        let own = [
            "before", "after", "conf", "build", "origin", "budget", "fail-on", "codes", "strict", "sarif", "marker",
            "work",
        ];
        let named: Vec<&str> = flags.filter(|flag| own.contains(flag)).collect();
        assert!(named.len() > 5, "{help}");
        for flag in named {
            assert!(guide.contains(&format!("--{flag}")), "the guide does not name --{flag}");
        }
    }
}

fn findings_that_a_revision_brought_are_told_in_all_forms() {
    let checkout = Checkout::new("check");
    let sarif = checkout.top.join("r.sarif").display().to_string();
    let forms = checkout.forms();
    let (code, text) = checkout.run(&["check", "--conf", "deploy/nginx.conf"]);
    assert_eq!(code, Some(0), "{text}");
    checkout.write("deploy/nginx.conf", &checkout.conf(TRAP));
    checkout.commit("a trap | `x` @team <b>");
    let check = ["check", "--conf", "deploy/nginx.conf", "--before", "HEAD~1", "--sarif", &sarif];
    let (code, text) = checkout.run(&words(&check, &forms));
    assert!(code == Some(1) && text.contains("alias_traversal"), "{code:?} {text}");
    let json = checkout.json("ci-check");
    assert_eq!((&json["verdict"]["name"], &json["baseline"]["gone"]), (&json!("failed"), &json!(0)));
    let trap = json["findings"].as_array().unwrap().iter().find(|one| one["rule"] == "alias_traversal").unwrap();
    assert_eq!((&trap["file"], &trap["level"]), (&json!("deploy/nginx.conf"), &json!("wrong")));
    let line = trap["line"].as_u64().unwrap();
    let sarif: Value = serde_json::from_str(&checkout.read("r.sarif")).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let result = results.iter().find(|one| one["ruleId"] == "alias_traversal").unwrap();
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(
        (&place["artifactLocation"]["uri"], &place["region"]["startLine"], &result["baselineState"]),
        (&json!("deploy/nginx.conf"), &json!(line), &json!("new"))
    );
    assert!(checkout.read("r.xml").contains("failures=\"1\"") || checkout.read("r.xml").contains("failures=\"2\""));
    let comment = checkout.read("r.md");
    assert!(comment.starts_with("<!-- weir ci: check -->\n### weir ci: deploy/nginx.conf\n"), "{comment}");
    assert!(comment.contains(&format!("`deploy/nginx.conf:{line}`")), "{comment}");
    // Lines that move bring nothing, and what is known does not fail the next change.
    checkout.write("deploy/nginx.conf", &format!("# a comment\n\n{}", checkout.conf(TRAP)));
    let (code, text) = checkout.run(&["check", "--conf", "deploy/nginx.conf", "--before", "HEAD"]);
    assert!(code == Some(0) && text.contains("that HEAD did not have"), "{code:?} {text}");
    let (code, _) = checkout.run(&["check", "--conf", "deploy/nginx.conf", "--fail-on", "none"]);
    assert_eq!(code, Some(0));
    // A line that weir edge -t refuses.
    checkout.write("deploy/nginx.conf", &checkout.conf("        no_such_directive 1;\n"));
    let (code, text) = checkout.run(&["check", "--conf", "deploy/nginx.conf", "--for", "weir", "--json", "-"]);
    assert_eq!(code, Some(1));
    let json: Value = serde_json::from_str(text.trim()).unwrap_or_else(|error| panic!("{error}: {text}"));
    schema::valid("ci-check", &json);
    assert!(json["findings"].as_array().unwrap().iter().any(|one| one["rule"] == "edge_test"), "{text}");
    checkout.git(&["checkout", "--quiet", "."]);
    assert_eq!(checkout.left(), UNTOUCHED);
}

fn a_configuration_that_is_new_or_gone_is_no_riddle() {
    let checkout = Checkout::new("gone");
    checkout.write("deploy/second.conf", &checkout.conf(TRAP));
    checkout.commit("a second one");
    // The revision before does not have the file: all of its findings are new.
    let (code, text) = checkout.run(&["check", "--conf", "deploy/second.conf", "--before", "HEAD~1"]);
    assert!(code == Some(1) && text.contains("alias_traversal"), "{text}");
    let (code, text) = checkout.run(&["check", "--conf", "deploy/second.conf", "--after", "HEAD~1"]);
    assert!(code == Some(2) && text.contains("revision HEAD~1 has no file deploy/second.conf"), "{text}");
    for (words, part) in [
        (&["check", "--conf", "/etc/hostname"][..], "is outside of the repository"),
        (&["check", "--conf", "deploy/nginx.conf", "--before", "no-such"], "git knows no revision no-such"),
        (&["ab", "--before", "--upload-pack=x", "--conf", "deploy/nginx.conf"], "before"),
        (&["ab", "--before", "HEAD", "--conf", "nothing.conf", "--budget", "1m"], "has no file nothing.conf"),
    ] {
        let (code, text) = checkout.run(words);
        assert!(code == Some(2) && text.contains(part), "{words:?} {code:?} {text}");
    }
    assert_eq!(checkout.left(), UNTOUCHED);
}

/// Flags for a comparison as short as possible.
const TINY: [&str; 10] =
    ["--rate", "100", "--connections", "32", "--block", "500ms", "--warmup", "500ms", "--pairs", "12"];

fn a_slower_application_is_worse_and_the_same_one_is_not() {
    let checkout = Checkout::new("ab");
    checkout.write("app.py", &APPLICATION.replace("WAIT = 0.0", "WAIT = 0.04"));
    checkout.commit("slower | `x` @team <b>");
    checkout.write("README", "no change of the service");
    checkout.commit("words");
    let origin = format!("exec {PYTHON} app.py {}", checkout.app);
    let forms = checkout.forms();
    let page = checkout.top.join("r.html").display().to_string();
    let ab = ["ab", "--conf", "deploy/nginx.conf", "--origin", &origin, "--build", "echo made > made", "--html", &page];
    let (code, text) =
        checkout.run(&words(&[&ab[..], &TINY, &["--before", "HEAD~2", "--after", "HEAD~1"]].concat(), &forms));
    assert_eq!(code, Some(1), "{text}");
    let json = checkout.json("ci-ab");
    assert_eq!((&json["verdict"]["name"], &json["code"]), (&json!("worse"), &json!(1)), "{text}");
    let figures = json["figures"].as_array().unwrap();
    let p50 = figures.iter().find(|figure| figure["key"] == "p50").unwrap();
    assert!(p50["effect"].as_f64() > Some(0.5) && p50["pairs"] == 12, "{p50}");
    assert!(figures.iter().any(|figure| figure["key"] == "app_cpu"), "{figures:?}");
    assert_eq!(json["noise"]["blocks"].as_u64().map(|blocks| blocks >= 24), Some(true));
    let comment = checkout.read("r.md");
    assert!(comment.starts_with("<!-- weir ci: ab -->\n### weir ci: worse\n\n"), "{comment}");
    assert!(comment.contains("`slower | 'x' @team <b>`") && comment.contains("| p50 \\* |"), "{comment}");
    assert!(p50["text"].as_str().unwrap().contains("(99.95 % CI)"), "{p50}");
    assert!(checkout.read("r.xml").contains("<failure message=\"slower by"), "{}", checkout.read("r.xml"));
    assert!(checkout.read("r.html").contains("</html>"));
    assert_eq!(checkout.left(), UNTOUCHED);
    // The same service twice. A run of half-second blocks may see nothing or be undecided; it may not call it worse: one
    // run in hundreds would, by chance, and then the other order of the same revisions would not.
    let same = |one: &str, other: &str| {
        let (code, text) =
            checkout.run(&words(&[&ab[..], &TINY, &["--before", one, "--after", other]].concat(), &forms));
        assert!(matches!(code, Some(0 | 1)), "{code:?} {text}");
        checkout.json("ci-ab")["verdict"]["name"].as_str().unwrap().to_owned()
    };
    let is_quiet = |name: &str| matches!(name, "no-difference" | "undecided");
    assert!(is_quiet(&same("HEAD~1", "HEAD")) || is_quiet(&same("HEAD", "HEAD~1")));
    assert_eq!(checkout.left(), UNTOUCHED);
}

fn what_cannot_be_measured_is_said_and_leaves_nothing() {
    let checkout = Checkout::new("unmeasured");
    checkout.write("README", "x");
    checkout.commit("words");
    let forms = checkout.forms();
    let ab = ["ab", "--conf", "deploy/nginx.conf", "--before", "HEAD~1"];
    let ran = |more: &[&str]| {
        let (code, text) = checkout.run(&words(&[&ab[..], more].concat(), &forms));
        let json = checkout.json("ci-ab");
        assert_eq!(checkout.left(), UNTOUCHED);
        assert!(checkout.read("r.md").starts_with("<!-- weir ci: ab -->\n"));
        (code, text, json["verdict"]["name"].as_str().unwrap().to_owned())
    };
    // Nothing that is measured has changed.
    let (code, text, name) = ran(&[]);
    assert!(code == Some(0) && name == "no-difference" && text.contains("the same in both"), "{code:?} {text}");
    let origin = format!("exec {WEIR} origin --listen 127.0.0.1:{}", checkout.app);
    // 30 s are too few, and that is known before the first block.
    let (code, text, name) = ran(&["--origin", &origin, "--rate", "50", "--budget", "30s"]);
    assert!(
        code == Some(0) && name == "undecided" && text.contains("a verdict needs 12: use --budget"),
        "{code:?} {text}"
    );
    let (code, ..) = ran(&["--origin", &origin, "--rate", "50", "--budget", "30s", "--fail-on", "worse,undecided"]);
    assert_eq!(code, Some(3));
    let (code, ..) = ran(&["--origin", &origin, "--rate", "50", "--budget", "30s", "--codes"]);
    assert_eq!(code, Some(3));
    let (code, text, _) = ran(&["--origin", &origin, "--build", "echo no compiler >&2; exit 7"]);
    assert!(
        code == Some(2)
            && text.contains("A: the build command failed (exit status: 7)")
            && text.contains("no compiler"),
        "{text}"
    );
    let (code, text, _) = ran(&["--origin", "exit 4", "--budget", "2m"]);
    assert!(code == Some(2) && text.contains("A cannot be measured"), "{code:?} {text}");
    // A build that does not end is killed with the budget, 8 s before its end.
    let (code, text, name) = ran(&["--origin", &origin, "--build", "sleep 3600 & wait", "--budget", "30s"]);
    assert!(code == Some(0) && name == "undecided" && text.contains("before the build did"), "{code:?} {text}");
    let spent = checkout.json("ci-ab")["spent_s"].as_f64().unwrap();
    assert!(spent < 30.0, "the budget is kept: {spent}");
}

fn a_signal_ends_it_and_leaves_nothing() {
    let checkout = Checkout::new("signal");
    checkout.write("deploy/nginx.conf", &checkout.conf("        client_max_body_size 2m;\n"));
    checkout.commit("a limit");
    let forms = checkout.forms();
    let ab = ["ab", "--conf", "deploy/nginx.conf", "--before", "HEAD~1", "--rate", "50", "--block", "2s", "/"];
    let mut command = checkout.command(&words(&ab, &forms));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let rooms = checkout.top.join("rooms");
    // The lab notes its run in the room once the first block is done.
    support::within("the first block", || {
        let notes = fs::read_dir(&rooms).unwrap().flatten().flat_map(|room| fs::read_dir(room.path().join("runs")));
        notes.flatten().flatten().count() > 0
    });
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert_eq!(checkout.json("ci-ab")["verdict"]["name"], "undecided");
    assert_eq!(checkout.left(), UNTOUCHED);
    // A killed one leaves its room, and the next one takes it away.
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    support::within("a room", || fs::read_dir(&rooms).unwrap().count() > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    let (code, text) = checkout.run(&["check", "--conf", "deploy/nginx.conf", "--before", "HEAD~1"]);
    assert!(code == Some(0) && text.contains("which an earlier weir ci left"), "{text}");
    assert_eq!(checkout.left(), UNTOUCHED);
}

/// A tarball as `cargo xtask package` makes it, with the program of this build.
fn tarball(top: &Path) -> String {
    let folder = top.join("weir-0.0.0-linux-amd64");
    fs::create_dir_all(folder.join("bin")).unwrap();
    // A link to the program: it is large. tar follows it.
    std::os::unix::fs::symlink(WEIR, folder.join("bin/weir")).unwrap();
    let file = top.join("weir.tar.gz");
    let mut tar = Command::new("tar");
    tar.args(["--dereference", "--use-compress-program=gzip -1", "-cf"])
        .arg(&file)
        .arg("-C")
        .arg(top)
        .arg("weir-0.0.0-linux-amd64");
    assert!(tar.status().unwrap().success());
    file.display().to_string()
}

/// A program that notes its words and the comment that it gets, and answers with `answer.txt`.
const NOTING: &str = r#"
room=$(dirname "$0")
printf '%s\n' "$*" >> "$room/calls.txt"
for word in "$@"; do
    case $word in body=@*|body@*) head -n 1 "${word#body?@}" 2>/dev/null || head -n 1 "${word#body@}" ;; esac
done >> "$room/bodies.txt"
if [ -f "$room/answer.txt" ]; then case "$*" in *--paginate*|*per_page*) cat "$room/answer.txt" ;; esac; fi
"#;

fn the_action_of_github_checks_and_comments_once() {
    let checkout = Checkout::new("github");
    let base = checkout.git(&["rev-parse", "HEAD"]);
    checkout.write("deploy/nginx.conf", &checkout.conf(TRAP));
    checkout.commit("a trap");
    let [action]: [Value; 1] = documents(&file("package/ci/action.yml")).try_into().expect("one document");
    let bin = checkout.top.join("bin");
    program(&bin, "gh", NOTING);
    let temp = checkout.top.join("temp");
    let runner = Runner { checkout: &checkout.repository, temp: &temp, bin: &bin };
    let event = json!({
        "event_name": "pull_request", "repository": "ann/shop", "token": "secret",
        "event": {"pull_request": {"number": 7, "base": {"sha": base}}},
    });
    let weir = tarball(&checkout.top);
    let given = [
        ("weir", &*weir),
        ("conf", "deploy/nginx.conf"),
        ("comment", "true"),
        ("sarif", "true"),
        ("reports", "reports"),
    ];
    let played = runner.github(&action, &given, &event);
    let code = |name: &str| played.code_of(name);
    assert_eq!((code("Install weir"), code("Check the configuration")), (Some(0), Some(0)), "{}", played.said());
    assert_eq!((code("Compare both revisions"), code("Decide")), (None, Some(1)), "{}", played.said());
    assert_eq!(played.outputs["check"], "1");
    let sarif = &played.used.iter().find(|(name, _)| name.contains("upload-sarif")).expect("the upload").1;
    assert_eq!(sarif["sarif_file"], "reports/check.sarif");
    assert!(checkout.repository.join("reports/check.sarif").exists());
    assert!(played.used.iter().any(|(name, with)| name.contains("upload-artifact") && with["path"] == "reports"));
    assert!(played.summary.contains("alias_traversal"), "{}", played.summary);
    let calls = fs::read_to_string(bin.join("calls.txt")).unwrap();
    assert!(calls.contains("--method POST repos/ann/shop/issues/7/comments"), "{calls}");
    // The comment of the earlier run is written anew.
    fs::write(bin.join("answer.txt"), "41\thello\n42\t<!-- weir ci: check -->\n").unwrap();
    fs::write(bin.join("calls.txt"), "").unwrap();
    let again = runner.github(&action, &given, &event);
    let calls = fs::read_to_string(bin.join("calls.txt")).unwrap();
    assert!(
        calls.contains("--method PATCH repos/ann/shop/issues/comments/42") && !calls.contains("POST"),
        "{calls}{}",
        again.said()
    );
    // A comparison without time is undecided, and passes.
    let budget = [
        ("weir", &*weir),
        ("conf", "deploy/nginx.conf"),
        ("check", "false"),
        ("ab", "true"),
        ("budget", "30s"),
        ("ab-args", "--rate\n50"),
        ("reports", "reports"),
    ];
    let ab = runner.github(&action, &budget, &event);
    assert_eq!((ab.code_of("Check the configuration"), ab.code_of("Decide")), (None, Some(0)), "{}", ab.said());
    assert_eq!((&*ab.outputs["ab"], &*ab.outputs["outcome"]), ("0", "undecided"), "{}", ab.said());
    let calls = fs::read_to_string(bin.join("calls.txt")).unwrap();
    assert_eq!(calls.matches("PATCH").count(), 1, "no comment unless it is asked for: {calls}");
    // Another file than the named one is refused.
    let wrong = [("weir", &*weir), ("conf", "deploy/nginx.conf"), ("sha256", "00")];
    let wrong = runner.github(&action, &wrong, &event);
    assert!(wrong.code_of("Install weir") != Some(0) && wrong.code_of("Check the configuration").is_none());
}

fn the_template_of_gitlab_checks_and_comments_once() {
    let checkout = Checkout::new("gitlab");
    let base = checkout.git(&["rev-parse", "HEAD"]);
    checkout.write("deploy/nginx.conf", &checkout.conf(TRAP));
    checkout.commit("a trap");
    let template = file("package/ci/gitlab.yml");
    let (bin, temp) = (checkout.top.join("bin"), checkout.top.join("temp"));
    program(&bin, "curl", NOTING);
    let runner = Runner { checkout: &checkout.repository, temp: &temp, bin: &bin };
    let weir = tarball(&checkout.top);
    let predefined = [
        ("CI_MERGE_REQUEST_IID", "7"),
        ("CI_MERGE_REQUEST_DIFF_BASE_SHA", &*base),
        ("CI_PROJECT_ID", "3"),
        ("CI_API_V4_URL", "https://gitlab.test/api/v4"),
        ("WEIR_TOKEN", "secret"),
    ];
    let given = [("weir", &*weir), ("conf", "deploy/nginx.conf"), ("comment", "true")];
    let notes = "https://gitlab.test/api/v4/projects/3/merge_requests/7/notes";
    fs::write(bin.join("answer.txt"), "[]").unwrap();
    let (code, text, job) = runner.gitlab(&template, "weir-check", &given, &predefined);
    assert!(code == Some(1) && text.contains("alias_traversal"), "{code:?} {text}");
    assert_eq!((&job["artifacts"]["reports"]["junit"], &job["stage"]), (&json!("weir-report/*.xml"), &json!("test")));
    assert!(checkout.repository.join("weir-report/check.xml").exists());
    let calls = fs::read_to_string(bin.join("calls.txt")).unwrap();
    assert!(calls.contains("--request POST") && calls.contains(notes), "{calls}");
    let body = "<!-- weir ci: check -->\\n### x";
    fs::write(bin.join("answer.txt"), format!("[{{\"id\":41,\"type\":null,\"body\":\"hello\",\"author\":{{\"id\":1,\"name\":\"Ann\"}}}},{{\"id\":42,\"type\":null,\"body\":\"{body}\"}}]")).unwrap();
    fs::write(bin.join("calls.txt"), "").unwrap();
    let (_, text, _) = runner.gitlab(&template, "weir-check", &given, &predefined);
    let calls = fs::read_to_string(bin.join("calls.txt")).unwrap();
    assert!(
        calls.contains("--request PUT") && calls.contains(&format!("{notes}/42")) && !calls.contains("POST"),
        "{calls}{text}"
    );
    // The comparison, without time: undecided, and it passes.
    let short = [
        ("weir", &*weir),
        ("conf", "deploy/nginx.conf"),
        ("budget", "30s"),
        ("ab-args", "--rate 50"),
        ("language", "ko"),
    ];
    let (code, text, _) = runner.gitlab(&template, "weir-ab", &short, &predefined);
    assert!(code == Some(0) && text.contains("undecided"), "{code:?} {text}");
    let never = [("weir", &*weir), ("conf", "x"), ("ab", "never")];
    assert_eq!(runner.gitlab(&template, "weir-ab", &never, &[]).0, None);
}
