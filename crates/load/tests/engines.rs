//! Tests the ws and socketio engines against npm's servers: `ws` 8 and `socket.io` 4, as pinned in `tests/apps`.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use weir_load::plan::Phase;
use weir_load::record::{Merger, Period};
use weir_load::run::{Channel, Run, RunProgress, RunWatch, run};
use weir_load::script;

/// An application of `tests/apps`, running until the end of the test.
struct App {
    child: Child,
    port: String,
}

impl App {
    fn start(name: &str) -> App {
        let apps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/apps");
        assert!(apps.join("node_modules").is_dir(), "the applications are not installed: npm ci --prefix tests/apps");
        let mut child =
            Command::new("node").arg(apps.join(name)).stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        App { child, port: port.trim().to_owned() }
    }
}

impl Drop for App {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

struct Silent;

impl RunWatch for Silent {
    fn phase_started(&mut self, _: usize, _: &Phase) {}
    fn phase_completed(&mut self, _: usize, _: &Phase) {}
    fn line(&mut self, _: &str) {}
    fn period(&mut self, _: &Period) {}
    fn late(&mut self, _: u64) {}
    fn progress(&mut self, _: &RunProgress, _: &Merger) {}
}

fn file_of(script: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let file = std::env::temp_dir().join(format!("weir-engines-{}-{number}.yml", std::process::id()));
    std::fs::write(&file, script).unwrap();
    file
}

/// Runs a script and returns its counts.
fn counted(script: &str) -> Period {
    let file = file_of(script);
    let options = script::ScriptOptions { files: vec![file.clone()], ..Default::default() };
    let plan = script::load(&options, &|_| Err("no JavaScript here".into()))
        .unwrap_or_else(|refusal| panic!("{}", refusal.text));
    std::fs::remove_file(file).ok();
    let what = Run { plan: Arc::new(plan), workers: 1, seed: 1, share: (0, 1), start: None, ahead_ms: None };
    run(&what, Channel::new(), &mut Silent).unwrap().merger.outcome().whole
}

/// Runs the flow with three virtual users and compares counters. Other counters are allowed, except `errors.`.
fn check(engine: &str, target: &str, config: &str, flow: &str, expect: &[(&str, u64)]) -> Period {
    let script = format!(
        "config:\n  target: \"{target}\"\n  phases: [{{ duration: 1, arrivalCount: 3 }}]\n  timeout: 1\n{config}\
         scenarios:\n  - engine: {engine}\n    flow:\n{flow}"
    );
    let whole = counted(&script);
    for (name, count) in expect {
        assert_eq!(whole.counter(name), *count, "{name} of {flow}: {:?}", whole.counters);
    }
    for name in whole.counters.keys().filter(|name| name.starts_with("errors.")) {
        assert!(expect.iter().any(|(expected, _)| *expected == &**name), "{name} of {flow}");
    }
    whole
}

#[test]
fn a_websocket_echoes_is_captured_from_and_waited_for() {
    let app = App::start("ws.mjs");
    let target = format!("ws://127.0.0.1:{}", app.port);
    let flow = "
      - loop:
          - send: { payload: { n: \"{{ $loopCount }}\" }, capture: { json: \"$.n\", as: n } }
        count: 5
      - send: plain
      - think: 0.3
      - send: { payload: { v: \"{{ n }}\" }, match: { json: \"$.v\", value: 4 } }
";
    let expect = [("vusers.completed", 3), ("websocket.messages_sent", 21), ("websocket.messages_received", 18)];
    let whole = check("ws", &target, "", flow, &expect);
    // Three connects, and each message that answers a request.
    assert_eq!((whole.response.count, whole.service.count), (3 + 18, 3 + 18));
    let greeted =
        format!("      - connect: \"{target}/greet\"\n      - wait: {{ match: {{ regexp: h, value: h }} }}\n");
    // The greeting may come before the waiting step begins; then no further message comes.
    let whole = counted(&format!(
        "config: {{ target: \"{target}\", phases: [{{ duration: 1, arrivalCount: 1 }}], timeout: 1 }}\n\
         scenarios:\n  - engine: ws\n    flow:\n{greeted}"
    ));
    assert_eq!(whole.counter("vusers.completed") + whole.counter("errors.response timeout"), 1);
}

#[test]
fn what_goes_wrong_with_a_websocket_has_artillerys_names() {
    let app = App::start("ws.mjs");
    let target = format!("ws://127.0.0.1:{}", app.port);
    let twice = [("errors.response timeout", 3), ("errors.undefined", 3), ("vusers.failed", 3)];
    check("ws", &target, "", "      - wait: { capture: { json: \"$.a\", as: a } }\n", &twice);
    let failed = [("errors.Failed capture or match", 3), ("vusers.failed", 3)];
    check("ws", &target, "", "      - send: { payload: x, match: { regexp: x, value: y } }\n", &failed);
    let refused = [("errors.connect ECONNREFUSED 127.0.0.1:1", 3), ("errors.ECONNREFUSED", 3)];
    check("ws", "ws://127.0.0.1:1", "", "      - send: x\n", &refused);
    let flow = "      - send: { payload: vanish }\n      - send: vanish\n      - think: 0.3\n      - send: x\n";
    let message = "WebSocket is not open: readyState 3 (CLOSED)";
    let name = (format!("errors.Error: {message}"), format!("errors.{message}"));
    check("ws", &target, "", flow, &[(&name.0, 3), (&name.1, 3), ("websocket.messages_sent", 9)]);
}

#[test]
fn socketio_speaks_by_every_transport() {
    let app = App::start("socketio.mjs");
    let target = format!("http://127.0.0.1:{}", app.port);
    let flow = "
      - emit: { channel: echo, data: hello }
        acknowledge: { match: { json: \"$.0\", value: hello } }
      - think: 0.3
      - emit: { channel: echo, data: { n: 7 } }
        acknowledge: { data: { n: 7 }, capture: { json: \"$.0.n\", as: n } }
      - emit: [shout, \"is {{ n }}\"]
        response: { channel: shouted, data: \"is 7\" }
      - emit: [nobody, listens]
        namespace: /room
";
    for transports in ["polling, websocket", "websocket", "polling"] {
        let config = format!("  socketio: {{ transports: [{transports}] }}\n");
        let whole = check("socketio", &target, &config, flow, &[("vusers.completed", 3), ("socketio.emit", 12)]);
        let times = whole.summaries.get("socketio.response_time").expect("response times");
        assert_eq!(times.count, 12, "one sample an emit: {transports}");
        // Three connects, and three emits of each user that wait for an answer; the fourth expects none.
        assert_eq!((whole.response.count, whole.service.count), (3 + 9, 3 + 9), "{transports}");
    }
}

#[test]
fn what_goes_wrong_with_socketio_has_artillerys_names() {
    let app = App::start("socketio.mjs");
    let target = format!("http://127.0.0.1:{}", app.port);
    let fails = |flow: &str, name: &str| {
        check("socketio", &target, "", flow, &[(&format!("errors.{name}"), 3), ("vusers.failed", 3)]);
    };
    fails("      - emit: [echo, a]\n        acknowledge: { data: b }\n", "data is not valid");
    fails("      - emit: [echo, a]\n        acknowledge: { match: { json: \"$.0\", value: b } }\n", "Failed match");
    fails("      - emit: [nobody, a]\n        response: { channel: never, data: b }\n", "response timeout");
    fails("      - emit: [shout, a]\n        response: { channel: shouted, data: b }\n", "data is not valid");
    fails("      - emit: [leave, a]\n        acknowledge: { data: b }\n", "Error: io server disconnect");
    fails("      - emit: [echo, a]\n        namespace: /unknown\n", "Invalid namespace");
    let nobody = "http://127.0.0.1:1";
    let flow = "      - emit: [echo, a]\n";
    check("socketio", nobody, "", flow, &[("errors.Error: xhr poll error", 3)]);
    let websocket = "  socketio: { transports: [websocket] }\n";
    check("socketio", nobody, websocket, flow, &[("errors.Error: websocket error", 3)]);
}

/// A server with two processes without sticky sessions, like PM2's cluster. engine.io-client gives such a session up
/// at the first request with an unknown session, and socket.io-client reports that to the user that waits for the
/// connection.
#[test]
fn a_session_that_another_process_does_not_know_fails_at_once() {
    let app = App::start("socketio-two.mjs");
    let target = format!("http://127.0.0.1:{}", app.port);
    let flow = "      - emit: [echo, a]\n        acknowledge: { data: a }\n";
    for (lost, error) in [("POST", "xhr post error"), ("GET", "xhr poll error")] {
        let config = format!("  socketio: {{ transports: [polling], extraHeaders: {{ lost: {lost} }} }}\n");
        let name = format!("errors.Error: {error}");
        check("socketio", &target, &config, flow, &[(&name, 3), ("vusers.failed", 3), ("socketio.emit", 0)]);
    }
    let config = "  socketio: { transports: [polling] }\n";
    check("socketio", &target, config, flow, &[("vusers.completed", 3)]);
}

/// A TLS proxy in front of a port, in Node, with a self-signed certificate for `localhost`.
struct Front {
    app: App,
    certificate: PathBuf,
}

impl Front {
    fn start(behind: &str) -> Front {
        let certificate = file_of("");
        let (key, path) = (certificate.with_extension("key"), certificate.display().to_string());
        let made = Command::new("openssl")
            .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -days 2".split(' '))
            .args(["-addext", "subjectAltName=DNS:localhost", "-out", &path, "-keyout"])
            .arg(&key)
            .stderr(Stdio::null())
            .status();
        assert!(made.unwrap().success());
        let script = "const fs = require('fs'), net = require('net'), tls = require('tls');
            const [cert, key, port] = process.argv.slice(1);
            const server = tls.createServer({ cert: fs.readFileSync(cert), key: fs.readFileSync(key) }, client => {
              const behind = net.connect(Number(port), '127.0.0.1');
              client.on('error', () => behind.destroy()).pipe(behind);
              behind.on('error', () => client.destroy()).pipe(client);
            });
            server.listen(0, '127.0.0.1', () => console.log(server.address().port));";
        let mut command = Command::new("node");
        command.args(["-e", script, &path]).arg(&key).arg(behind).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        std::fs::remove_file(key).ok();
        Front { app: App { child, port: port.trim().to_owned() }, certificate }
    }

    fn target(&self, scheme: &str) -> String {
        format!("{scheme}://localhost:{}", self.app.port)
    }

    /// `config.tls` that trusts the certificate.
    fn trusted(&self) -> String {
        let text = std::fs::read_to_string(&self.certificate).unwrap();
        format!("  tls:\n    ca: |\n      {}\n", text.trim().replace('\n', "\n      "))
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        std::fs::remove_file(&self.certificate).ok();
    }
}

const ANYONE: &str = "  tls: { rejectUnauthorized: false }\n";

#[test]
fn a_websocket_goes_over_tls() {
    let app = App::start("ws.mjs");
    let front = Front::start(&app.port);
    let flow = "      - send: { payload: { n: 4 }, match: { json: \"$.n\", value: 4 } }\n";
    let expect = [("vusers.completed", 3), ("websocket.messages_received", 3)];
    for config in [front.trusted().as_str(), ANYONE, "  ws: { rejectUnauthorized: false }\n"] {
        check("ws", &front.target("wss"), config, flow, &expect);
    }
    let refused = [("errors.self-signed certificate", 3), ("errors.DEPTH_ZERO_SELF_SIGNED_CERT", 3)];
    check("ws", &front.target("wss"), "", flow, &refused);
}

#[test]
fn socketio_goes_over_tls() {
    let app = App::start("socketio.mjs");
    let front = Front::start(&app.port);
    let flow = "      - emit: { channel: echo, data: hello }\n        acknowledge: { data: hello }\n";
    let expect = [("vusers.completed", 3), ("socketio.emit", 3)];
    for transports in ["polling, websocket", "websocket", "polling"] {
        let config = format!("{}  socketio: {{ transports: [{transports}] }}\n", front.trusted());
        check("socketio", &front.target("https"), &config, flow, &expect);
    }
    check("socketio", &front.target("https"), "", flow, &[("errors.Error: xhr poll error", 3)]);
}

#[test]
fn requests_go_over_tls() {
    let app = App::start("express.mjs");
    let front = Front::start(&app.port);
    let flow =
        "      - get: { url: / }\n      - get: { url: /, headers: { connection: close } }\n      - get: { url: / }\n";
    let extended = "  http: { extendedMetrics: true }\n";
    for config in [front.trusted().as_str(), ANYONE] {
        let config = format!("{config}{extended}");
        let whole =
            check("http", &front.target("https"), &config, flow, &[("vusers.completed", 3), ("http.responses", 9)]);
        assert_eq!(whole.summaries.get("http.tls").expect("handshakes").count, 9);
    }
    let refused = [("errors.DEPTH_ZERO_SELF_SIGNED_CERT", 3), ("vusers.failed", 3), ("http.responses", 0)];
    check("http", &front.target("https"), "", flow, &refused);
    // Plain HTTP where the client expects TLS.
    let plain = format!("https://127.0.0.1:{}", app.port);
    check("http", &plain, ANYONE, flow, &[("errors.EPROTO", 3), ("vusers.failed", 3)]);
}

#[test]
fn a_response_counts_from_the_end_of_a_think() {
    // Work that delays the send after a think is the generator's fault, but the response time includes it.
    let dawdle = file_of(
        "module.exports = { dawdle(context, ee, next) { const end = Date.now() + 60; while (Date.now() < end); next(); } };",
    );
    let processor = dawdle.with_extension("js");
    std::fs::rename(&dawdle, &processor).unwrap();
    let config = format!("  processor: \"{}\"\n", processor.display());
    for (engine, name, exchange, count) in [
        ("http", "express.mjs", "get: { url: / }", 2),
        ("ws", "ws.mjs", "send: { payload: { n: 1 }, capture: { json: \"$.n\", as: n } }", 3),
        ("socketio", "socketio.mjs", "emit: [echo, hi]\n        acknowledge: { data: hi }", 3),
    ] {
        let app = App::start(name);
        let scheme = if engine == "ws" { "ws" } else { "http" };
        let flow = format!("      - {exchange}\n      - think: 20ms\n      - function: dawdle\n      - {exchange}\n");
        let target = format!("{scheme}://127.0.0.1:{}", app.port);
        let whole = check(engine, &target, &config, &flow, &[("vusers.completed", 3)]);
        assert_eq!((whole.response.count, whole.service.count), (3 * count, 3 * count), "{engine}");
        assert!(whole.response.max >= 60.0, "{engine}: {:?}", whole.response);
    }
    std::fs::remove_file(processor).ok();
}
