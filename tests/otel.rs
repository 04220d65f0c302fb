//! Traces at a collector: grpcio and OpenTelemetry's own protobuf classes receive them, over gRPC and HTTP, in
//! cleartext and over TLS.
//!
//! `otel_peer.py` is the collector. It runs in its own Python environment; `INSTALL` below creates it, as `cargo
//! xtask ci` does.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const INSTALL: &str = "python3 -m venv target/python && target/python/bin/pip install -r tests/grpc_peers.txt";

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b9c7c989f97918e1-01";

#[test]
fn a_request_is_a_span_with_what_the_module_says() {
    let room = Room::new("otel-span");
    let collector = room.collect(false);
    let edge = room.edge(
        &format!("endpoint 127.0.0.1:{}; interval 20ms; header X-Key \"s e\";", room.port),
        "otel_trace on; otel_service_name shop; otel_resource_attr deployment.environment test;",
        "location /a/ { otel_span_attr my.arg $arg_x; otel_span_attr http.request.header.x $http_x; return 201 hello; }
         location /bad { otel_span_name \"bad $request_method\"; return 503; }
         location /off { otel_trace off; return 204; }",
    );
    edge.get("/off", "");
    edge.get("/a/b?x=%ff", "X: y\r\nUser-Agent: me\r\n");
    let export = collector.next();
    assert_eq!(export["resource"], json!({"deployment.environment": "test", "service.name": "shop"}));
    assert_eq!(
        (&export["by"], &export["scope"], &export["fields"]["x-key"]),
        (&json!("grpc"), &json!("weir"), &json!("s e"))
    );
    let span = only_span(&export);
    assert_eq!(
        (&span["name"], &span["kind"], &span["status"], &span["parent"]),
        (&json!("/a/"), &json!(2), &json!(0), &json!(""))
    );
    let port = span["attributes"]["net.sock.peer.port"].as_u64().unwrap();
    assert!(port > 1023 && span["end"].as_u64() >= span["start"].as_u64());
    let expected = json!({
        "http.method": "GET", "http.target": "/a/b?x=%ff", "http.route": "/a/", "http.scheme": "http", "http.flavor": "1.1",
        "http.user_agent": "me", "http.request_content_length": 0, "http.response_content_length": 5,
        "http.status_code": 201, "net.host.name": "shop.example", "net.host.port": edge.port,
        "net.sock.peer.addr": "127.0.0.1", "net.sock.peer.port": port,
        "my.arg": "%ff", "http.request.header.x": ["y"],
    });
    assert_eq!(span["attributes"], expected);
    edge.get("/bad", "");
    let export = collector.next();
    let span = only_span(&export);
    assert_eq!((&span["name"], &span["status"]), (&json!("bad GET"), &json!(2)));
}

#[test]
fn a_trace_goes_on_through_the_upstream_and_each_try_is_told() {
    let room = Room::new("otel-tries");
    let collector = room.collect(false);
    let (origin, heads) = origin();
    let dead = support::free_port();
    let edge = room.edge(
        &format!("endpoint http://127.0.0.1:{}; interval 20ms;", room.port),
        &format!("otel_trace on; upstream app {{ server 127.0.0.1:{dead}; server 127.0.0.1:{origin} backup; }}"),
        "location /events { otel_trace_context propagate; proxy_pass http://app; }
         location /spans { otel_trace_context propagate; otel_upstream_spans on; proxy_pass http://app; }
         location /extract { otel_trace_context extract; proxy_pass http://app; }
         location /own { otel_trace_context inject; proxy_set_header tracestate mine=1; proxy_pass http://app; }",
    );
    let asked = format!("traceparent: {PARENT}\r\ntracestate: congo=t61\r\n");
    edge.get("/events", &asked);
    let (export, head) = (collector.next(), heads.recv_timeout(PATIENCE).unwrap());
    let span = only_span(&export);
    let (trace, id) = (text(&span["trace"]), text(&span["span"]));
    assert_eq!((trace, text(&span["parent"]), text(&span["state"])), (&PARENT[3..35], &PARENT[36..52], "congo=t61"));
    assert!(
        head.contains(&format!("traceparent: 00-{trace}-{id}-01\r\n")) && head.contains("tracestate: congo=t61\r\n"),
        "{head}"
    );
    assert_eq!(head.matches("traceparent").count(), 1);
    let events = span["events"].as_array().unwrap();
    let (first, last) = (&events[0]["attributes"], &events[1]["attributes"]);
    assert_eq!(
        (events.len(), &first["error.type"], &last["http.response.status_code"]),
        (2, &json!("refused"), &json!(200))
    );
    assert!(last["weir.upstream.connect_us"].is_u64() && last["weir.upstream.header_us"].is_u64());

    edge.get("/spans", &asked);
    let export = collector.next();
    let spans = export["spans"].as_array().unwrap();
    let server = spans.iter().find(|span| span["kind"] == 2).unwrap();
    let tries: Vec<&Value> = spans.iter().filter(|span| span["kind"] == 3).collect();
    assert!(!tries.is_empty() && server["events"] == json!([]), "{spans:?}");
    for attempt in &tries {
        assert_eq!((&attempt["parent"], &attempt["trace"]), (&server["span"], &server["trace"]));
        assert!(
            attempt["start"].as_u64() >= server["start"].as_u64() && attempt["end"].as_u64() <= server["end"].as_u64()
        );
    }
    let last = tries.last().unwrap();
    assert_eq!(last["attributes"]["server.address"], json!(format!("127.0.0.1:{origin}")));
    assert!(last["events"].as_array().unwrap().iter().any(|event| event["name"] == "head"));
    heads.recv_timeout(PATIENCE).unwrap();

    edge.get("/extract", &asked);
    let (export, head) = (collector.next(), heads.recv_timeout(PATIENCE).unwrap());
    assert!(
        text(&only_span(&export)["trace"]) == &PARENT[3..35] && head.contains(&format!("traceparent: {PARENT}\r\n")),
        "{head}"
    );

    edge.get("/own", &asked);
    let (export, head) = (collector.next(), heads.recv_timeout(PATIENCE).unwrap());
    let span = only_span(&export);
    assert!(text(&span["trace"]) != &PARENT[3..35] && span["parent"] == "" && span["state"] == "");
    assert!(
        head.contains(&format!("00-{}-", text(&span["trace"]))) && head.contains("tracestate: mine=1\r\n"),
        "{head}"
    );
}

#[test]
fn what_the_cache_fetches_behind_a_client_is_a_span_below_the_requests() {
    let room = Room::new("otel-refresh");
    let collector = room.collect(false);
    // The origin answers the first fetch and one refresh; the next refresh finds no origin.
    let (origin, heads) = origin_of(2);
    let edge = room.edge(
        &format!("endpoint http://127.0.0.1:{}; interval 20ms;", room.port),
        &format!("otel_trace on; proxy_cache_path {}/cache keys_zone=z:1m;", room.path.display()),
        &format!(
            "location /kept {{ otel_trace_context propagate; proxy_pass http://127.0.0.1:{origin}; proxy_cache z;
             proxy_cache_valid 200 1s; proxy_cache_use_stale updating error; proxy_cache_background_update on; }}"
        ),
    );
    let asked = format!("traceparent: {PARENT}\r\ntracestate: congo=t61\r\n");
    edge.get("/kept", &asked);
    heads.recv_timeout(PATIENCE).unwrap();
    for (how, status, code) in [("stored", 0, 200), ("failed", 2, 502)] {
        let (cause, refresh) = refreshed(&edge, &collector, &asked);
        assert_eq!(
            (&refresh["parent"], &refresh["trace"], &refresh["state"], &refresh["kind"], &refresh["name"]),
            (&cause["span"], &cause["trace"], &json!("congo=t61"), &json!(1), &json!("/kept"))
        );
        assert_eq!(
            (text(&cause["trace"]), text(&cause["parent"]), &cause["kind"]),
            (&PARENT[3..35], &PARENT[36..52], &json!(2))
        );
        let said = &refresh["attributes"];
        assert_eq!(
            (&said["weir.cache.refresh"], &said["http.status_code"], &refresh["status"]),
            (&json!(how), &json!(code), &json!(status))
        );
        assert_eq!((&refresh["events"][0]["name"], &cause["events"]), (&json!("upstream"), &json!([])));
        if how == "stored" {
            let head = heads.recv_timeout(PATIENCE).unwrap();
            let parent = format!("traceparent: 00-{}-{}-01\r\n", &PARENT[3..35], text(&refresh["span"]));
            assert!(head.contains(&parent) && head.matches("traceparent").count() == 1, "{head}");
        }
    }
}

/// Sends requests until the cache refreshes its object; returns the span of the request that caused it, and the
/// refresh's span.
fn refreshed(edge: &Edge, collector: &Collector, asked: &str) -> (Value, Value) {
    let (until, mut spans) = (Instant::now() + PATIENCE, Vec::new());
    while Instant::now() < until {
        edge.get("/kept", asked);
        spans.extend(collector.next()["spans"].as_array().unwrap().iter().cloned());
        let is_refresh = |span: &&Value| span["attributes"]["weir.cache.refresh"].is_string();
        let refresh = spans.iter().find(is_refresh);
        let cause = refresh.and_then(|refresh| spans.iter().find(|span| span["span"] == refresh["parent"]));
        if let (Some(cause), Some(refresh)) = (cause, refresh) {
            return (cause.clone(), refresh.clone());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("no refresh, or none with its cause: {spans:?}");
}

#[test]
fn an_export_goes_over_tls_and_over_http() {
    let room = Room::new("otel-ways");
    let pair = certificate(&room.path);
    let collector = room.collect(true);
    let (port, http) = (room.port, room.http_port);
    for (endpoint, by) in
        [(format!("https://localhost:{port}"), "grpc"), (format!("https://localhost:{http}/v1/traces"), "/v1/traces")]
    {
        let edge = room.edge(
            &format!("endpoint {endpoint}; interval 20ms; trusted_certificate {pair};"),
            "otel_trace on;",
            "location / { return 200; }",
        );
        for _ in 0..2 {
            edge.get("/", "");
            assert_eq!(collector.next()["by"], by);
        }
    }
    let edge = room.edge(
        &format!("endpoint https://localhost:{port}; interval 20ms;"),
        "otel_trace on;",
        "location / { return 200; }",
    );
    edge.get("/", "");
    edge.await_log("OTel export failure: ");
}

#[test]
fn what_the_collector_says_decides_what_becomes_of_a_batch() {
    let room = Room::new("otel-says");
    let collector = room.collect(false);
    let http = room.http_port;
    let over = |path: &str| {
        room.edge(
            &format!("endpoint http://127.0.0.1:{http}{path}; interval 20ms;"),
            "otel_trace on;",
            "location / { return 200; } location /api { otel_trace off; api; }",
        )
    };
    let edge = over("/busy/");
    edge.get("/again", "");
    assert_eq!(only_span(&collector.next())["attributes"]["http.target"], "/again");
    edge.until("exported", 1);
    drop(edge);
    let edge = over("/no/");
    edge.get("/", "");
    edge.until("failed", 1);
    edge.await_log("answered 400; 1 spans are lost");
}

#[test]
fn spans_wait_for_a_collector_until_there_is_no_room() {
    let room = Room::new("otel-waits");
    let mut edge = room.edge(
        &format!("endpoint 127.0.0.1:{}; interval 20ms; batch_size 2; batch_count 2;", room.port),
        "otel_trace on;",
        "location / { return 200; } location /api { otel_trace off; api; }",
    );
    for number in 0..20 {
        edge.get(&format!("/{number}"), "");
    }
    edge.await_log("OTel export failure: ");
    // One worker: four spans wait, and up to two may be in transit.
    let dropped = edge.traces()["dropped"].as_u64().unwrap();
    assert!((14..=16).contains(&dropped), "{dropped}");
    edge.await_log(&format!("OTel dropped records: {dropped}"));
    let collector = room.collect(false);
    let mut spans = 0;
    while spans < 20 - dropped {
        let export = collector.next();
        let count = export["spans"].as_array().unwrap().len() as u64;
        assert!((1..=2).contains(&count));
        spans += count;
    }
    edge.until("exported", 20 - dropped);
    // Counts and exporter survive a reload, and waiting spans are sent before the end.
    room.write(
        edge.port,
        &format!("endpoint 127.0.0.1:{}; interval 1h; batch_size 2; batch_count 2;", room.port),
        "otel_trace on;",
        "location / { return 200; } location /api { otel_trace off; api; }",
    );
    edge.signal("HUP");
    edge.await_log("reconfiguring");
    let until = Instant::now() + PATIENCE;
    while edge.api("9/nginx")["generation"] != 2 {
        assert!(Instant::now() < until, "no reload");
    }
    assert_eq!(edge.traces()["dropped"], dropped);
    edge.get("/last", "");
    edge.signal("QUIT");
    assert_eq!(only_span(&collector.next())["attributes"]["http.target"], "/last");
    edge.process.wait().unwrap();
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn only_span(export: &Value) -> &Value {
    let spans = export["spans"].as_array().unwrap();
    assert_eq!(spans.len(), 1, "{export}");
    &spans[0]
}

/// An origin that answers each request, and returns the request heads.
fn origin() -> (u16, Receiver<String>) {
    origin_of(usize::MAX)
}

/// An origin that ends after this many answers.
fn origin_of(answers: usize) -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (send, heads) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(answers) {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() > 0 {
                head.push(byte[0]);
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok").unwrap();
            if send.send(String::from_utf8(head).unwrap()).is_err() {
                return;
            }
        }
    });
    (port, heads)
}

/// A self-signed certificate for `localhost`, with its key.
fn certificate(room: &Path) -> String {
    let file = |name: &str| room.join(name).display().to_string();
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
        .args(["-keyout", &file("localhost.key"), "-out", &file("localhost.crt")])
        .output()
        .expect("openssl runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    file("localhost.crt")
}

/// A folder, with the ports of its collector.
struct Room {
    path: PathBuf,
    port: u16,
    http_port: u16,
}

impl Drop for Room {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.path).ok();
    }
}

impl Room {
    fn new(name: &str) -> Room {
        Room { path: support::scratch(name), port: support::free_port(), http_port: support::free_port() }
    }

    fn collect(&self, is_tls: bool) -> Collector {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = root.join("target/python/bin/python");
        assert!(python.exists(), "grpcio is not installed: {INSTALL}");
        let mut command = Command::new(python);
        command.arg(root.join("tests/otel_peer.py")).args([self.port, self.http_port].map(|port| port.to_string()));
        if is_tls {
            command.args(["localhost.crt", "localhost.key"].map(|name| self.path.join(name)));
        }
        let mut child = command.stdout(Stdio::piped()).spawn().expect("python starts");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready", "otel_peer.py did not start: {INSTALL}");
        let (send, exports) = channel();
        std::thread::spawn(move || {
            lines.map_while(Result::ok).all(|line| send.send(serde_json::from_str(&line).unwrap()).is_ok())
        });
        Collector { _process: Running(child), exports }
    }

    fn write(&self, port: u16, exporter: &str, http: &str, server: &str) {
        let conf = format!(
            "daemon off; user root; pid nginx.pid; error_log error.log notice; worker_processes 1; events {{ }}
             http {{ access_log off; otel_exporter {{ {exporter} }} {http}
                 server {{ listen 127.0.0.1:{port}; server_name shop.example; {server} }} }}"
        );
        std::fs::write(self.path.join("nginx.conf"), conf).unwrap();
    }

    /// Starts an edge and returns when it accepts connections.
    fn edge(&self, exporter: &str, http: &str, server: &str) -> Edge {
        let port = support::free_port();
        self.write(port, exporter, http, server);
        for old in ["nginx", "nginx.pid", "error.log"] {
            std::fs::remove_file(self.path.join(old)).ok();
        }
        let child = Command::new(support::binary(&self.path))
            .arg("-p")
            .arg(&self.path)
            .args(["-c", "nginx.conf", "-e", "error.log"])
            .spawn()
            .expect("the edge starts");
        let mut process = Running(child);
        while !self.path.join("nginx.pid").exists() {
            assert!(process.0.try_wait().unwrap().is_none(), "the edge ended before it accepted");
            std::thread::sleep(Duration::from_millis(10));
        }
        Edge { process, port, log: self.path.join("error.log") }
    }
}

struct Collector {
    _process: Running,
    exports: Receiver<Value>,
}

impl Collector {
    fn next(&self) -> Value {
        self.exports.recv_timeout(PATIENCE).expect("an export comes")
    }
}

struct Edge {
    process: Running,
    port: u16,
    log: PathBuf,
}

impl Edge {
    /// Sends a request and returns the body.
    fn get(&self, path: &str, fields: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n{fields}\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default()
    }

    fn api(&self, path: &str) -> Value {
        serde_json::from_str(&self.get(&format!("/api/{path}"), "")).unwrap()
    }

    fn traces(&self) -> Value {
        self.api("weir")["weir"]["traces"].clone()
    }

    fn until(&self, name: &str, count: u64) {
        let until = Instant::now() + PATIENCE;
        while self.traces()[name] != count {
            assert!(Instant::now() < until, "{name} {count}: {}", self.traces());
        }
    }

    fn await_log(&self, line: &str) {
        let until = Instant::now() + PATIENCE;
        while !std::fs::read_to_string(&self.log).unwrap_or_default().contains(line) {
            assert!(
                Instant::now() < until,
                "no \"{line}\" in:\n{}",
                std::fs::read_to_string(&self.log).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.process.0.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

/// A process that is ended with the test.
struct Running(Child);

impl Running {
    fn wait(&mut self) -> std::io::Result<std::process::ExitStatus> {
        self.0.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.0.try_wait().ok().flatten().is_none() {
            // TERM, not KILL: the edge itself ends its workers.
            Command::new("kill").arg(self.0.id().to_string()).status().ok();
            self.0.wait().ok();
        }
    }
}
