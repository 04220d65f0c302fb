//! Runs steps against a small server made with the standard library; the server records its requests.
#![allow(clippy::unwrap_used, clippy::expect_used)]
// The server must not depend on the tested code.
#![allow(clippy::disallowed_methods)]

use std::time::Duration;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::*;
use crate::capture::{Capture, CaptureMatch, Extract};
use crate::plan::{Engine, HttpConfig, Plugins, RequestBody, Requests, Scenario, WsConfig};
use crate::template::{Template, Tree};
use crate::value::{Map, Value};
use crate::vars::{VariableNames, Vars};

/// The recorded requests of a server: head and body of each.
type Heard = Arc<Mutex<Vec<String>>>;

/// A server that answers as the path requests; connections are kept.
fn serve() -> (String, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("http://{}", listener.local_addr().unwrap());
    let heard = Heard::default();
    let ear = heard.clone();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let (stream, ear) = (stream.unwrap(), ear.clone());
            std::thread::spawn(move || talk(stream, number, &ear));
        }
    });
    (target, heard)
}

fn talk(mut stream: TcpStream, number: usize, heard: &Heard) {
    while let Some((head, body)) = read(&mut stream) {
        let path = head.split([' ', '?']).nth(1).unwrap_or_default().to_owned();
        heard.lock().unwrap().push(format!("{head}{body}"));
        let json = "{\"token\":\"abc\",\"n\":1}";
        let numbered = format!("{{\"n\":{number}}}");
        let (status, fields, text) = match path.as_str() {
            "/json" => ("200 OK", "Content-Type: application/json; charset=utf-8\r\n", json),
            "/cookie" => ("200 OK", "Set-Cookie: sid=42; Path=/\r\nSet-Cookie: bad\r\n", ""),
            "/see" => ("303 See Other", "Location: /end\r\n", ""),
            "/found" => ("302 Found", "Location: end?x\r\n", ""),
            "/round" => ("302 Found", "Location: /round\r\n", ""),
            "/missing" => ("404 Not Found", "", ""),
            "/short" => {
                return stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc").unwrap();
            }
            "/gone" => return,
            // The server says that it closes, and does not close.
            "/once" => ("200 OK", "Keep-Alive: timeout=0\r\n", &*numbered),
            "/bare" => ("302 ", "Location: /end\r\n", ""),
            "/hang" => return drop(stream.read(&mut [0])),
            "/rubbish" => return stream.write_all(b"rubbish\r\n\r\n").unwrap(),
            "/close" => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
                drop(stream);
                return heard.lock().unwrap().push("closed".to_owned());
            }
            _ => ("200 OK", "", "ok"),
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\n{fields}X-Connection: {number}\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        );
        stream.write_all(answer.as_bytes()).unwrap();
    }
}

fn read(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8(body).unwrap()))
}

/// A plan of one scenario, and the names in it.
struct Script {
    plan: Plan,
    names: VariableNames,
    steps: Vec<Request>,
    /// The `think` after the steps.
    think: Duration,
}

impl Script {
    fn new(target: &str) -> Script {
        let spec = Value::Undefined;
        let scenario = Scenario {
            name: "0".into(),
            weight: 1,
            engine: Engine::Http,
            flow: Vec::new(),
            before_request: Vec::new(),
            after_response: Vec::new(),
            on_error: Vec::new(),
            socketio: None,
            spec: spec.clone(),
        };
        let mut names = VariableNames::default();
        let plan = Plan {
            proxies: client::Proxies::default(),
            file: "/s.yml".into(),
            dir: "/".into(),
            target: target.into(),
            phases: Vec::new(),
            scenarios: vec![scenario],
            before: None,
            after: None,
            requests: Requests::default(),
            names: Arc::default(),
            globals: Vec::new(),
            payloads: Vec::new(),
            variables: Vec::new(),
            http: HttpConfig::default(),
            ws: WsConfig::default(),
            socketio: Tree::parse(&spec, &mut names),
            tls: Map::default(),
            timeout: None,
            processor: None,
            plugins: Plugins::default(),
            files: Vec::new(),
            warnings: Vec::new(),
        };
        Script { plan, names, steps: Vec::new(), think: Duration::ZERO }
    }

    fn text(&mut self, text: &str) -> Template {
        Template::parse(text, &mut self.names)
    }

    fn tree(&mut self, value: Value) -> Tree {
        Tree::parse(&value, &mut self.names)
    }

    fn step(&mut self, method: &str, url: &str) -> &mut Request {
        let url = self.text(url);
        self.steps.push(Request {
            number: self.plan.requests.number(),
            method: method.to_owned(),
            url: Some(url),
            name: None,
            headers: Vec::new(),
            body: RequestBody::None,
            query: None,
            cookies: Vec::new(),
            auth: None,
            http2: None,
            gzip: None,
            follows: true,
            allow_get_body: false,
            captures: Vec::new(),
            matches: Vec::new(),
            expect: Vec::new(),
            before_request: Vec::new(),
            after_response: Vec::new(),
            if_true: None,
            probability: None,
            spec: Value::Undefined,
        });
        self.steps.last_mut().unwrap()
    }

    /// Runs the steps as one virtual user; returns the outcome, the counters, and the variable `token`.
    fn run(mut self) -> (Result<(), String>, BTreeMap<String, u64>, Value) {
        self.names.slot("token");
        self.plan.names = Arc::new(self.names);
        let (plan, steps) = (Arc::new(self.plan), self.steps);
        weir_net::worker::block_on(async move {
            let worker = Rc::new(worker(plan));
            let mut vuser = Vuser {
                worker: worker.clone(),
                scenario: Some(0),
                vars: Vars::new(worker.plan.names.clone()),
                uid: "u".into(),
                due: Some(clock::precise()),
                session: super::session::HttpSession::new(Default::default()),
                ws: None,
                socketio: None,
                wires: None,
            };
            let mut outcome = Ok(());
            for request in &steps {
                if let Err(Failed(name)) = step(&mut vuser, request).await {
                    outcome = Err(name.into_owned());
                    break;
                }
            }
            think(&vuser, clock::precise() + self.think).await;
            let taken = worker.recorder.take(u64::MAX);
            let mut counters = BTreeMap::new();
            for window in taken.windows {
                for (name, count) in window.counters {
                    *counters.entry(name.to_string()).or_default() += count;
                }
            }
            (outcome, counters, vuser.vars.by_name("token").clone())
        })
        .unwrap()
    }
}

fn worker(plan: Arc<Plan>) -> Worker {
    Worker::new(plan, Arc::default(), std::sync::mpsc::channel().0, 1).unwrap_or_else(|_| unreachable!())
}

fn counted(counters: &BTreeMap<String, u64>, name: &str) -> u64 {
    counters.get(name).copied().unwrap_or(0)
}

#[test]
fn a_plain_request_is_what_artillery_sends() {
    let (target, heard) = serve();
    let mut script = Script::new(&target);
    script.step("GET", "/x");
    script.step("GET", "/missing?q=1");
    let (outcome, counters, _) = script.run();
    assert_eq!(outcome, Ok(()));
    let host = target.trim_start_matches("http://");
    let head = |path: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nuser-agent: Artillery (https://artillery.io)\r\n\
             accept-encoding: gzip, deflate, br, zstd\r\nHost: {host}\r\nConnection: keep-alive\r\n\r\n"
        )
    };
    assert_eq!(*heard.lock().unwrap(), [head("/x"), head("/missing?q=1")]);
    for (name, count) in [
        ("http.requests", 2),
        ("http.responses", 2),
        ("http.codes.200", 1),
        ("http.codes.404", 1),
        ("http.downloaded_bytes", 2),
        ("plugins.metrics-by-endpoint./x.codes.200", 1),
        ("plugins.metrics-by-endpoint./missing.codes.404", 1),
    ] {
        assert_eq!(counted(&counters, name), count, "{name}: {counters:?}");
    }
}

#[test]
fn what_is_captured_is_there_for_the_next_step() {
    let (target, heard) = serve();
    let mut script = Script::new(&target);
    let json = Extract::json(script.text("$.token"), true);
    let same = CaptureMatch {
        what: Extract::json(script.text("$.n"), true),
        value: script.tree(Value::Number(1.0)),
        strict: None,
    };
    let slot = script.names.slot("token");
    let status = script.tree(Value::Number(200.0));
    let step = script.step("GET", "/json");
    step.captures = vec![Capture { what: json, slot, path: Vec::new(), strict: None }];
    step.matches = vec![same];
    step.expect = vec![("statusCode".to_owned(), status)];
    let agent = script.text("{{ token }}");
    let nothing = script.text("{{ nobody }}");
    let name = script.text("item");
    let body = Value::from(Map::from_iter([("t".into(), Value::from("{{ token }}"))]));
    let body = script.tree(body);
    let step = script.step("POST", "/item?t={{ token }} b");
    step.headers = vec![("x-token".to_owned(), agent), ("x-none".to_owned(), nothing)];
    step.body = RequestBody::Json(body);
    step.name = Some(name);
    script.plan.plugins.expect = Some(Value::from(Map::from_iter([("formatter".into(), Value::from("silent"))])));
    let (outcome, counters, token) = script.run();
    assert_eq!((outcome, token), (Ok(()), Value::from("abc")));
    let heard = heard.lock().unwrap();
    let (head, body) = heard.get(1).unwrap().split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /item?t=abc%20b HTTP/1.1\r\nuser-agent: Artillery"), "{head}");
    assert!(head.contains("\r\nx-token: abc\r\ncontent-type: application/json\r\ncontent-length: 11\r\n"), "{head}");
    assert!(!head.contains("x-none"), "{head}");
    assert_eq!(body, "{\"t\":\"abc\"}");
    for name in ["plugins.expect.ok.statusCode", "plugins.metrics-by-endpoint./item (item).codes.200"] {
        assert_eq!(counted(&counters, name), 1, "{name}: {counters:?}");
    }
}

#[test]
fn failures_have_nodes_names_and_end_the_flow() {
    for (method, url, name, is_counted) in [
        ("GET", "/rubbish", "HPE_INVALID_CONSTANT", true),
        ("GET", "ok", "Invalid URL - ok", false),
        ("GET", "http://127.0.0.1:1/", "ECONNREFUSED", true),
        ("GET", "http://a b/", "ERR_INVALID_URL", false),
        ("GET", "/round", "ERR_TOO_MANY_REDIRECTS", true),
        ("GET", "/hang", "ETIMEDOUT", true),
    ] {
        let (target, _) = serve();
        let mut script = Script::new(&target);
        script.plan.http.timeout = Some(Duration::from_millis(300));
        script.step(method, url);
        script.step("GET", "/never");
        let (outcome, counters, _) = script.run();
        assert_eq!(outcome, Err(name.to_owned()));
        let requests = counted(&counters, "http.requests");
        assert_eq!(requests, if url == "/round" { 11 } else { u64::from(is_counted) }, "{url}");
        let by_endpoint = counters.keys().any(|key| key.ends_with(&format!(".errors.{name}")));
        assert_eq!(by_endpoint, url != "ok", "{counters:?}");
    }
}

#[test]
fn an_answer_cut_short_is_counted_and_fails() {
    let (target, _) = serve();
    let mut script = Script::new(&target);
    script.step("GET", "/short");
    let (outcome, counters, _) = script.run();
    assert_eq!(outcome, Err("ECONNRESET".to_owned()));
    assert_eq!(counted(&counters, "http.codes.200"), 1);
    assert_eq!(counted(&counters, "http.downloaded_bytes"), 0);
}

#[test]
fn a_body_in_a_get_is_refused_unless_allowed() {
    for (allows, expect) in [(false, Err("ERR_GOT_REQUEST_ERROR".to_owned())), (true, Ok(()))] {
        let (target, _) = serve();
        let mut script = Script::new(&target);
        let body = script.text("x");
        let step = script.step("GET", "/x");
        (step.body, step.allow_get_body) = (RequestBody::Raw(body), allows);
        let (outcome, counters, _) = script.run();
        assert_eq!(outcome, expect);
        assert_eq!(counted(&counters, "http.requests"), u64::from(allows));
    }
}

#[test]
fn redirects_are_followed_and_counted() {
    let (target, heard) = serve();
    let mut script = Script::new(&target);
    let body = script.text("abc");
    script.step("POST", "/see").body = RequestBody::Raw(body);
    script.step("GET", "/found");
    script.step("GET", "/found").follows = false;
    let (outcome, counters, _) = script.run();
    assert_eq!(outcome, Ok(()));
    let heard = heard.lock().unwrap();
    let lines: Vec<&str> = heard.iter().filter_map(|text| text.lines().next()).collect();
    let expect = ["POST /see", "GET /end", "GET /found", "GET /end?x", "GET /found"];
    assert_eq!(lines, expect.map(|line| format!("{line} HTTP/1.1")));
    assert_eq!((counted(&counters, "http.codes.302"), counted(&counters, "http.codes.303")), (2, 1));
    assert_eq!(counted(&counters, "http.codes.200"), 2);
}

#[test]
fn plugins_name_the_url_that_a_step_asked_for() {
    let (target, _) = serve();
    let mut script = Script::new(&target);
    let plugin = |name: &str, is_on: bool| Some(Value::from(Map::from_iter([(name.into(), Value::Bool(is_on))])));
    script.plan.plugins.by_endpoint = plugin("groupDynamicURLs", false);
    script.plan.plugins.expect = plugin("reportFailuresAsErrors", true);
    let status = script.tree(Value::Number(404.0));
    script.step("GET", "/found");
    script.step("GET", "/found").expect = vec![("statusCode".to_owned(), status)];
    let (outcome, counters, _) = script.run();
    assert_eq!(outcome, Err(format!("Failed expectations for request {target}/found")));
    assert_eq!(counted(&counters, "plugins.metrics-by-endpoint./found.codes.200"), 1, "{counters:?}");
}

#[test]
fn a_response_has_the_method_that_was_sent_last_and_a_phrase() {
    let file = std::env::temp_dir().join(format!("weir-response-{}.js", std::process::id()));
    let source = "exports.look = (params, response, context, ee, next) => {
        const { req, request, statusMessage } = response;
        const seen = [params.method, req.method, request.method, request.options.method, statusMessage].join(' ');
        context.vars.token = [context.vars.token, seen].filter(Boolean).join(', ');
        next();
    };";
    std::fs::write(&file, source).unwrap();
    let (target, _) = serve();
    let mut script = Script::new(&target);
    script.plan.processor = Some(file.clone());
    for (path, follows) in [("/see", true), ("/bare", false)] {
        let look = script.text("look");
        let step = script.step("POST", path);
        (step.after_response, step.follows) = (vec![look], follows);
    }
    let (outcome, _, seen) = script.run();
    std::fs::remove_file(file).unwrap();
    assert_eq!((outcome, seen), (Ok(()), Value::from("POST GET GET GET OK, POST POST POST POST Found")));
}

#[test]
fn cookies_come_back_from_the_first_on() {
    let (target, heard) = serve();
    let mut script = Script::new(&target);
    script.step("GET", "/cookie");
    script.step("GET", "/x");
    let value = script.text("1");
    script.step("GET", "/x").cookies = vec![("own".to_owned(), value)];
    // The jar is open: the bad cookie is passed over.
    script.step("GET", "/cookie");
    let (outcome, counters, _) = script.run();
    assert_eq!(outcome, Ok(()));
    assert_eq!(counted(&counters, "errors.cookie_parse_error_invalid_cookie"), 1);
    let heard = heard.lock().unwrap();
    assert!(!heard[0].contains("cookie:"));
    assert!(heard[1].contains("\r\ncookie: sid=42\r\nHost"), "{}", heard[1]);
    assert!(heard[2].contains("\r\ncookie: sid=42; own=1\r\nHost"), "{}", heard[2]);
}

#[test]
fn the_jar_replaces_a_cookie_field_of_the_script() {
    let (target, heard) = serve();
    let mut script = Script::new(&target);
    for path in ["/x", "/cookie", "/x"] {
        let (own, other) = (script.text("sid=1; theirs=2"), script.text("b"));
        script.step("GET", path).headers = vec![("cookie".to_owned(), own), ("x-a".to_owned(), other)];
    }
    assert_eq!(script.run().0, Ok(()));
    let heard = heard.lock().unwrap();
    let cookies = |head: &str| -> Vec<String> {
        let lines = head.lines().filter(|line| line.to_ascii_lowercase().starts_with("cookie:"));
        lines.map(|line| line.split_once(": ").unwrap().1.to_owned()).collect()
    };
    let (own, jar) = (["sid=1; theirs=2"], ["sid=42"]);
    assert_eq!([cookies(&heard[0]), cookies(&heard[1]), cookies(&heard[2])], [own, own, jar]);
    assert!(heard[2].contains("x-a: b\r\n"), "{}", heard[2]);
}

/// A server that answers once another one has closed a connection.
fn serve_after(other: Heard) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        while read(&mut stream).is_some() {
            while other.lock().unwrap().last().is_none_or(|last| last != "closed") {
                std::thread::yield_now();
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        }
    });
    target
}

#[test]
fn a_connection_that_was_closed_while_idle_is_replaced_before_a_request() {
    let (target, heard) = serve();
    let after = serve_after(heard.clone());
    let mut script = Script::new(&target);
    for _ in 0..3 {
        script.step("GET", "/close");
        script.step("GET", &after);
    }
    let (outcome, counters, _) = script.run();
    assert_eq!(outcome, Ok(()));
    assert_eq!(counted(&counters, "http.codes.200"), 6);
    assert_eq!(heard.lock().unwrap().iter().filter(|text| *text != "closed").count(), 3);
}

#[test]
fn a_connection_that_its_server_does_not_keep_is_replaced_before_a_request() {
    let (target, _) = serve();
    let mut script = Script::new(&target);
    let (first, second) = (script.names.slot("first"), script.names.slot("token"));
    for slot in [first, second] {
        let number = Extract::json(script.text("$.n"), true);
        script.step("GET", "/once").captures = vec![Capture { what: number, slot, path: Vec::new(), strict: None }];
    }
    let (outcome, _, second) = script.run();
    assert_eq!((outcome, second), (Ok(()), Value::Number(1.0)));
}

#[test]
fn a_long_think_closes_a_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut script = Script::new(&format!("http://{}", listener.local_addr().unwrap()));
    script.step("GET", "/");
    script.think = Duration::from_secs(60);
    std::thread::spawn(move || script.run());
    let mut stream = listener.accept().unwrap().0;
    read(&mut stream).unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    assert_eq!(stream.read(&mut [0]).ok(), Some(0));
}

#[test]
fn a_request_on_a_kept_connection_that_ends_is_an_error_and_is_not_sent_twice() {
    for method in ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "POST", "PATCH"] {
        let (target, heard) = serve();
        let mut script = Script::new(&target);
        script.step("GET", "/x");
        script.step(method, "/gone");
        script.step("GET", "/never");
        let (outcome, counters, _) = script.run();
        assert_eq!(outcome, Err("ECONNRESET".to_owned()), "{method}");
        assert_eq!(counted(&counters, "http.requests"), 2, "{method}");
        assert_eq!(heard.lock().unwrap().len(), 2, "{method}");
    }
}

#[test]
fn a_failed_capture_ends_the_flow_and_sets_nothing() {
    let (target, _) = serve();
    let mut script = Script::new(&target);
    let (good, bad) = (Extract::json(script.text("$.token"), true), Extract::json(script.text("$.nosuch"), true));
    let (token, other) = (script.names.slot("token"), script.names.slot("other"));
    let capture = |what, slot| Capture { what, slot, path: Vec::new(), strict: None };
    script.step("GET", "/json").captures = vec![capture(good, token), capture(bad, other)];
    let (outcome, counters, token) = script.run();
    assert_eq!((outcome, token), (Err("Failed capture or match".to_owned()), Value::Undefined));
    assert_eq!(counted(&counters, "plugins.metrics-by-endpoint./json.codes.200"), 1);
}

/// A forward proxy that supports only CONNECT, and accepts one user.
fn proxy() -> (String, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let heard = Heard::default();
    let ear = heard.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let Some((head, _)) = read(&mut stream) else { continue };
            let to = head.split(' ').nth(1).unwrap().to_owned();
            let knows = head.contains("\r\nProxy-Authorization: Basic bWU6cHc=\r\n");
            ear.lock().unwrap().push(head);
            if !knows {
                stream.write_all(b"HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n").unwrap();
                continue;
            }
            let mut origin = TcpStream::connect(to).unwrap();
            stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
            let (mut back, mut forth) = (origin.try_clone().unwrap(), stream.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut back, &mut forth));
            std::thread::spawn(move || std::io::copy(&mut stream, &mut origin));
        }
    });
    (address, heard)
}

fn through(proxy: &str, none: &str) -> client::Proxies {
    let variable = |name: &str| match name {
        "HTTP_PROXY" => Some(format!("http://{proxy}")),
        "NO_PROXY" => Some(none.to_owned()),
        _ => None,
    };
    client::Proxies::read(&variable).unwrap()
}

#[test]
fn a_proxy_of_the_environment_is_asked_for_a_tunnel_once_a_connection() {
    let ((target, heard), (address, asked)) = (serve(), proxy());
    let mut script = Script::new(&target);
    script.plan.proxies = through(&format!("me:pw@{address}"), "");
    script.step("GET", "/a");
    script.step("GET", "/b");
    let (outcome, counters, _) = script.run();
    assert_eq!((outcome, counters["http.codes.200"]), (Ok(()), 2));
    let asked = asked.lock().unwrap();
    let authority = target.trim_start_matches("http://");
    assert_eq!(asked.len(), 1);
    assert!(asked[0].starts_with(&format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n")), "{}", asked[0]);
    assert!(heard.lock().unwrap()[0].starts_with("GET /a HTTP/1.1\r\n"));
}

#[test]
fn a_proxy_that_refuses_is_named_and_one_that_is_not_wanted_is_not_asked() {
    let ((target, _), (address, asked)) = (serve(), proxy());
    let mut script = Script::new(&target);
    script.plan.proxies = through(&address, "");
    script.step("GET", "/a");
    assert_eq!(script.run().0, Err("Bad response: 407".to_owned()));
    let mut script = Script::new(&target);
    script.plan.proxies = through(&address, "127.0.0.1");
    script.step("GET", "/a");
    assert_eq!(script.run().0, Ok(()));
    assert_eq!(asked.lock().unwrap().len(), 1);
}
