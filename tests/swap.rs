//! `weir swap` from outside: nginx and weir with one file, traffic from logs, the application's state, and bad input.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/needs.rs"]
mod needs;
#[path = "support/schema.rs"]
mod schema;

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use needs::{Need, cases};
use serde_json::{Value, json};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const NGINX: &str = "/usr/sbin/nginx";

fn main() -> ExitCode {
    needs::run(cases![
        [] => the_requests_of_a_log_keep_their_clients, a_difference_may_need_another_client_s_request,
            a_route_without_answers_is_left_out, a_server_behind_a_balancer_gets_its_header, wrong_words_are_refused,
            a_url_without_a_server_is_undecided;
        [Need::Program("python3")] => methods_that_change_something_start_from_the_same_state;
        [Need::Root, Need::Program(NGINX)] => nginx_and_weir_with_one_file_are_the_same, a_run_that_is_killed_leaves_no_server;
    ])
}

/// A folder with a site; it goes with the test, and so do the programs that the test started.
struct Site {
    folder: PathBuf,
    started: Vec<Child>,
}

impl Drop for Site {
    fn drop(&mut self) {
        for child in &mut self.started {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Site {
    fn new(name: &str) -> Site {
        let folder = std::env::temp_dir().join(format!("weir-test-swap-{}-{name}", std::process::id()));
        for below in ["html", "room"] {
            fs::create_dir_all(folder.join(below)).unwrap();
        }
        // Workers of nginx are another user's.
        for open in [folder.clone(), folder.join("html")] {
            Command::new("chmod").arg("755").arg(open).status().unwrap();
        }
        let site = Site { folder, started: Vec::new() };
        site.file("html/index.html", "<html><title>hello</title></html>\n");
        site.file("html/style.css", &"a { }\n".repeat(100));
        site
    }

    fn file(&self, name: &str, text: &str) {
        fs::write(self.folder.join(name), text).unwrap();
    }

    /// Writes a configuration with this content of its server.
    fn conf(&self, name: &str, server: &str) {
        let text = format!(
            "events {{ }}\nhttp {{\ntypes {{ text/html html; text/css css; }}\nserver {{\nlisten 8080;\nserver_name a.test;\nroot html;\n{server}\n}}\n}}\n"
        );
        self.file(name, &text);
    }

    /// `weir origin` at a free port.
    fn origin(&mut self) -> u16 {
        let port = free_port();
        let mut command = Command::new(WEIR);
        command.args(["origin", "--listen", &format!("127.0.0.1:{port}")]).stdout(Stdio::null());
        self.start(command, port);
        port
    }

    fn start(&mut self, mut command: Command, port: u16) {
        self.started.push(command.current_dir(&self.folder).spawn().unwrap());
        let is_open = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
        assert!(
            (0..200).any(|_| is_open() || {
                sleep(Duration::from_millis(50));
                false
            }),
            "port {port}"
        );
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(WEIR);
        let room = self.folder.join("room");
        command.arg("swap").args(words).args(["--rate", "2000"]).current_dir(&self.folder).env("TMPDIR", room);
        command
    }

    /// Runs `weir swap`; returns its exit code and its JSON.
    fn swap(&self, words: &[&str]) -> (Option<i32>, Value) {
        let output = self.command(words).args(["--json", "-", "-p", "."]).output().unwrap();
        let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
        schema::valid("swap", &report);
        (output.status.code(), report)
    }

    /// The directories of servers that are left.
    fn rooms(&self) -> usize {
        fs::read_dir(self.folder.join("room")).unwrap().count()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn parts(report: &Value) -> Vec<&str> {
    report["differences"].as_array().unwrap().iter().map(|one| one["part"].as_str().unwrap()).collect()
}

fn nginx_and_weir_with_one_file_are_the_same() {
    let mut site = Site::new("same");
    let port = site.origin();
    site.conf(
        "a.conf",
        &format!(
            "gzip on; gzip_types text/css; location / {{ add_header X-Site a; }}
location /app/ {{ proxy_pass http://127.0.0.1:{port}; proxy_set_header Host $host; }}
location /id {{ add_header X-Id $request_id; add_header Set-Cookie \"id=$request_id; HttpOnly\"; return 200 $request_id; }}
location /old/ {{ rewrite ^/old/(.*)$ /new/$1 permanent; }}
location ~ \\.php$ {{ return 403; }}
location = /style.css {{ expires 1h; }}
location /gone {{ return 444; }}"
        ),
    );
    let (code, report) = site.swap(&["a.conf", "a.conf", "--binary-a", NGINX, "--html", "page.html"]);
    assert_eq!((code, &report["verdict"]), (Some(0), &json!("same")), "{report:#}");
    assert_eq!(report["differences"], json!([]), "{report:#}");
    let noise = report["noise"].to_string();
    assert!(noise.contains("field x-id") && noise.contains("field set-cookie id"), "{noise}");
    // Each location was asked in several ways, and each statement was reached.
    assert!(report["requests"]["asked"].as_u64().unwrap() > 60, "{report:#}");
    let never: Vec<&Value> =
        report["exercised"].as_array().unwrap().iter().filter(|one| one["requests"] == json!(0)).collect();
    assert!(never.is_empty(), "{never:?}");
    let upper = report["bound"]["upper"].as_f64().unwrap();
    assert!(upper > 0.0 && upper < 0.05, "{upper}");
    let page = fs::read_to_string(site.folder.join("page.html")).unwrap();
    assert!(page.contains("0 of") && page.contains("add_header X-Site a;") && !page.contains("src="), "{page}");
    assert_eq!(site.rooms(), 0);
}

const LOG: &str = r#"10.0.0.1 - - [26/Nov/2026:04:00:03 +0000] "GET /c HTTP/1.1" 200 5 "-" "curl"
10.0.0.1 - - [26/Nov/2026:04:00:01 +0000] "GET /a HTTP/1.1" 200 5 "-" "curl"
10.0.0.2 - - [26/Nov/2026:04:00:02 +0000] "GET /b HTTP/1.1" 200 5 "-" "curl"
10.0.0.2 - - [26/Nov/2026:04:00:02 +0000] "POST /b HTTP/1.1" 200 5 "-" "curl"
10.0.0.2 - - [26/Nov/2026:04:00:02 +0000] "GET /logout HTTP/1.1" 200 5 "-" "curl"
no line of a log
"#;

fn the_requests_of_a_log_keep_their_clients() {
    let site = Site::new("log");
    site.file("access.log", LOG);
    // B shows the order in which the client's cookie was set.
    let server = |more: &str| {
        format!(
            "location /a {{ add_header Set-Cookie s=$request_id; return 200 a; }}\nlocation /b {{ return 200 b; }}\nlocation /c {{ {more} }}"
        )
    };
    site.conf("a.conf", &server("return 200 c;"));
    site.conf("b.conf", &server("if ($http_cookie) { return 403; }\nreturn 200 c;"));
    let (code, report) = site.swap(&["a.conf", "b.conf", "--traffic", "access.log"]);
    assert_eq!((code, &report["verdict"]), (Some(1), &json!("differs")), "{report:#}");
    assert_eq!(report["requests"]["asked"], json!(3), "{report:#}");
    let left = report["requests"]["not_replayed"].to_string();
    for why in ["POST may change something", "announces an action", "cannot be read"] {
        assert!(left.contains(why), "{why}: {left}");
    }
    let status = report["differences"].as_array().unwrap().iter().find(|one| one["part"] == "status").unwrap();
    assert_eq!(
        (&status["a"], &status["b"], &status["request"]["target"]),
        (&json!("200"), &json!("403"), &json!("/c"))
    );
    let before = status["request"]["before"].to_string();
    assert!(before.contains("/a") && !before.contains("/b"), "only the request that gives the cookie: {before}");
    assert_eq!(report["bound"]["clients"], json!(2));
    // A word that nothing is planted in is the same.
    let (code, report) = site.swap(&["a.conf", "a.conf", "--traffic", "access.log", "--lang", "ko"]);
    assert_eq!(code, Some(0), "{report:#}");
}

/// A load balancer in front of both sends the header, also to a B that does not expect it.
fn a_server_behind_a_balancer_gets_its_header() {
    let site = Site::new("balancer");
    let conf = |name: &str, flags: &str| {
        let server = format!("listen 8080{flags}; return 200 $proxy_protocol_addr;");
        site.file(name, &format!("events {{ }}\nhttp {{\nserver {{\n{server}\n}}\n}}\n"));
    };
    conf("a.conf", " proxy_protocol");
    conf("b.conf", "");
    let (code, report) = site.swap(&["a.conf", "a.conf"]);
    assert_eq!((code, &report["verdict"]), (Some(0), &json!("same")), "{report:#}");
    let (code, report) = site.swap(&["a.conf", "b.conf"]);
    assert_eq!(code, Some(1), "{report:#}");
    assert!(parts(&report).contains(&"status"), "{report:#}");
    let status = report["differences"].as_array().unwrap().iter().find(|one| one["part"] == "status").unwrap();
    assert_eq!((&status["a"], &status["b"]), (&json!("200"), &json!("400")), "{status}");
}

fn a_route_without_answers_is_left_out() {
    let mut site = Site::new("late");
    let port = site.origin();
    let line = |path: &str, number: u32| {
        let moment = format!("26/Nov/2026:04:00:0{number} +0000");
        format!("192.0.2.{number} - - [{moment}] \"GET {path} HTTP/1.1\" 200 2 \"-\" \"-\"\n")
    };
    let of = |path: &'static str| (1..6).map(move |number| line(path, number));
    let lines: String = of("/").chain(of("/poll")).collect();
    site.file("access.log", &lines);
    site.conf("a.conf", &format!("location /poll {{ proxy_pass http://127.0.0.1:{port}/?fail=stall; }}"));
    let (code, report) = site.swap(&["a.conf", "a.conf", "--traffic", "access.log", "--timeout", "1"]);
    assert_eq!((code, &report["requests"]["asked"]), (Some(0), &json!(7)), "{report:#}");
    let left = &report["requests"]["not_replayed"];
    assert_eq!((left.as_array().map(Vec::len), &left[0]["count"]), (Some(1), &json!(3)), "{left}");
    assert!(left[0]["why"].as_str().unwrap().contains("--timeout"), "{left}");
}

fn a_difference_may_need_another_client_s_request() {
    let mut site = Site::new("others");
    let port = site.origin();
    let conf = |name: &str, key: &str| {
        let text = format!(
            "events {{ }}
http {{
proxy_cache_path room/cache keys_zone=z:1m;
server {{ listen 8080; location / {{
proxy_pass http://127.0.0.1:{port}; proxy_set_header Host $host; proxy_cache z; proxy_cache_valid 200 1h;
proxy_cache_key {key};
}} }} }}\n"
        );
        site.file(name, &text);
    };
    conf("a.conf", "$uri$is_args$args");
    conf("b.conf", "$uri");
    let line = |client: u32, page: u32| {
        let second = 10 * page + client;
        format!(
            "10.0.0.{client} - - [26/Nov/2026:04:00:{second} +0000] \"GET /echo?page={page} HTTP/1.1\" 200 5 \"-\" \"-\"\n"
        )
    };
    // Each client asks for one page.
    site.file("access.log", &[line(1, 1), line(2, 2), line(3, 2)].concat());
    let (code, report) = site.swap(&["a.conf", "b.conf", "--traffic", "access.log"]);
    assert_eq!(code, Some(1), "{report:#}");
    let differences = report["differences"].as_array().unwrap();
    let body = differences.iter().find(|one| one["part"] == "body").unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!((&body["request"]["target"], &body["causes"][0]["line"]), (&json!("/echo"), &json!(6)), "{body:#}");
    let before = body["request"]["before"].as_array().unwrap();
    assert_eq!((before.len(), &before[0]["target"]), (1, &json!("/echo?page=1")), "{body:#}");
}

/// An application with a number: POST adds one, GET shows it.
const APP: &str = r#"
import http.server, sys
class App(http.server.BaseHTTPRequestHandler):
    def answer(self, text):
        body = text.encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def do_GET(self): self.answer(open("number").read())
    def do_DELETE(self):
        number = int(open("number").read()) + 1
        open("number", "w").write(str(number)); self.answer("ok")
    def log_message(self, *words): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), App).serve_forever()
"#;

fn methods_that_change_something_start_from_the_same_state() {
    let mut site = Site::new("state");
    site.file("app.py", APP);
    site.file("number", "7");
    let port = free_port();
    let mut app = Command::new("python3");
    app.arg("app.py").arg(port.to_string());
    site.start(app, port);
    let line = |method: &str| {
        format!("10.0.0.1 - - [26/Nov/2026:04:00:01 +0000] \"{method} /n HTTP/1.1\" 200 5 \"-\" \"curl\"\n")
    };
    site.file("access.log", &["GET", "DELETE", "GET", "DELETE", "GET"].map(line).concat());
    site.conf("a.conf", &format!("location / {{ proxy_pass http://127.0.0.1:{port}; }}"));
    let more = ["--all-methods", "--snapshot", "cp number kept", "--restore", "cp kept number", "--no-cause"];
    let words = [&["a.conf", "a.conf", "--traffic", "access.log"][..], &more].concat();
    let (code, report) = site.swap(&words);
    assert_eq!((code, &report["verdict"]), (Some(0), &json!("same")), "{report:#}");
    assert_eq!((&report["requests"]["asked"], &report["noise"]), (&json!(5), &json!([])), "{report:#}");
    assert_eq!(fs::read_to_string(site.folder.join("number")).unwrap(), "7");
    site.conf(
        "b.conf",
        &format!(
            "location / {{ if ($request_method = DELETE) {{ return 200 ok; }} proxy_pass http://127.0.0.1:{port}; }}"
        ),
    );
    let (code, report) = site.swap(&[&["a.conf", "b.conf", "--traffic", "access.log"][..], &more].concat());
    assert!(code == Some(1) && parts(&report).contains(&"body"), "B lost what DELETE did: {report:#}");
    let output = site.command(&["a.conf", "a.conf", "--traffic", "access.log", "--all-methods"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}

fn a_url_without_a_server_is_undecided() {
    let site = Site::new("away");
    site.file("access.log", LOG);
    let url = format!("http://127.0.0.1:{}", free_port());
    let (code, report) = site.swap(&[&url, &url, "--traffic", "access.log"]);
    assert_eq!((code, &report["verdict"]), (Some(3), &json!("undecided")), "{report:#}");
}

fn a_run_that_is_killed_leaves_no_server() {
    let site = Site::new("killed");
    site.conf("a.conf", "location / { return 200 a; }");
    let log: String = LOG.lines().take(1).map(|line| format!("{line}\n").repeat(5000)).collect();
    site.file("access.log", &log);
    let mut command = site.command(&["a.conf", "a.conf", "-p", ".", "--binary-a", NGINX, "--traffic", "access.log"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let room = site.folder.join("room").display().to_string();
    let servers = || {
        let output = Command::new("pgrep").args(["-f", &room]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).lines().count()
    };
    let waits = |is: &dyn Fn() -> bool| {
        (0..400).any(|_| {
            is() || {
                sleep(Duration::from_millis(50));
                false
            }
        })
    };
    assert!(waits(&|| servers() >= 4), "the servers have started");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(waits(&|| servers() == 0), "{} are left", servers());
}

fn wrong_words_are_refused() {
    let site = Site::new("words");
    site.conf("a.conf", "location / { return 200 a; }");
    site.file("bad.conf", "events { } http { server { listen 8080; nonsense on; } }");
    site.file("empty.log", "");
    let cut = site.folder.join("cut.rec");
    fs::write(&cut, b"weir-rec\x63\0\0\0").unwrap();
    for (words, expected) in [
        (&["a.conf"][..], "<B>"),
        (&["a.conf", "none.conf"], "none.conf"),
        (&["a.conf", "bad.conf"], "nonsense"),
        (&["http://192.0.2.1/", "a.conf"], "--remote"),
        (&["http://127.0.0.1:1/", "http://127.0.0.1:1/"], "--traffic"),
        (&["a.conf", "a.conf", "--binary-b", "/bin/true"], "is not nginx's"),
        (&["a.conf", "a.conf", "--traffic", "none.log"], "none.log"),
        (&["a.conf", "a.conf", "--traffic", "empty.log"], "--format"),
        (&["a.conf", "a.conf", "--traffic", "cut.rec"], "cut.rec"),
        (&["a.conf", "a.conf", "--rate", "0"], "--rate"),
    ] {
        let output = site.command(words).output().unwrap();
        let text = said(&output);
        assert!(output.status.code() == Some(2) && text.contains(expected), "{words:?}: {text}");
    }
    assert_eq!(site.rooms(), 0);
}
