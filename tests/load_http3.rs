//! `weir load URL --http3` against aioquic (`load/http3_server.py`), against weir's edge, and against servers that only disturb:
//! the report must equal what the server saw.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/loaded.rs"]
mod loaded;
#[path = "support/needs.rs"]
mod needs;
#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use serde_json::{Value, json};

use loaded::{Server, counter, load};
use needs::{Need, cases};

/// The Python of `cargo xtask ci`.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/python/bin/python");

/// `config.http` of the scripts.
const HTTP3: &str = "{http3: true}";

fn main() -> ExitCode {
    needs::run(cases![
        [Need::Program(PYTHON)] =>
            what_is_reported_is_what_the_server_saw, a_server_allows_so_many_streams_and_no_more, what_was_refused_is_asked_again,
            a_server_that_refuses_for_good_is_an_error, a_reset_has_its_code, a_server_that_goes_away_costs_no_request,
            bodies_go_both_ways, a_connection_that_is_closed_is_opened_anew, who_does_not_speak_it_is_told_so,
            a_server_that_breaks_a_rule_is_named, a_connection_carries_so_many_requests_and_the_next_one_resumes_it,
            a_connection_moves_from_port_to_port, a_script_does_what_it_does_over_http1;
        [] =>
            the_edge_sees_what_is_reported, a_server_that_never_answers_is_a_timeout, garbage_is_no_answer,
            what_has_no_http3_is_refused, what_a_script_cannot_send_over_http3_is_refused_at_its_place
    ])
}

/// A running aioquic with these options.
fn start(room: &Path, options: &Value) -> Server {
    let (certificate, key) = support::certificate(room);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/load/http3_server.py");
    Server::start(Command::new(PYTHON).arg(script).arg(options.to_string()).args([certificate, key]))
}

/// Loads aioquic with these options; returns weir's report and the server's counts.
fn run(name: &str, options: &Value, path: &str, flags: &[&str]) -> (Value, Value) {
    run_to(0, name, options, path, flags)
}

/// The same, but weir must exit with this code.
fn run_to(code: i32, name: &str, options: &Value, path: &str, flags: &[&str]) -> (Value, Value) {
    let room = support::scratch(&format!("{name}-server"));
    let server = start(&room, options);
    let url = format!("https://127.0.0.1:{}{path}", server.port);
    let report = loaded::report(code, name, &[&[&*url, "--http3", "-k", "-d", "60s"], flags].concat());
    std::fs::remove_dir_all(room).ok();
    (report, server.saw())
}

/// The counts of errors by their names.
fn errors(report: &Value) -> Vec<(String, u64)> {
    let counters = report["aggregate"]["counters"].as_object().unwrap().iter();
    let errors = counters.filter_map(|(name, count)| Some((name.strip_prefix("errors.")?.to_owned(), count.as_u64()?)));
    errors.collect()
}

fn what_is_reported_is_what_the_server_saw() {
    for (flags, options) in [(&[][..], json!({})), (&["-R", "400"], json!({})), (&[], json!({"retry": true}))] {
        let flags = [&["-n", "300", "-c", "3", "-m", "8"], flags].concat();
        let (report, saw) = run("h3-plain", &options, "/x?size=7", &flags);
        assert_eq!((&saw["streams"], &saw["answered"]), (&json!(300), &json!(300)), "{report}");
        for (name, count) in [("http.requests", 300), ("http.codes.200", 300), ("http.downloaded_bytes", 2100)] {
            assert_eq!(counter(&report, name), count, "{name}");
        }
        let count = |key: &str| report["weir"][key]["count"].as_u64();
        assert_eq!((count("response"), count("service")), (Some(300), Some(300)));
        let connects = &report["aggregate"]["summaries"]["http.connect"]["count"];
        assert_eq!((&saw["sessions"], connects), (&json!(3), &json!(3)));
        assert_eq!((counter(&report, "http3.handshakes"), counter(&report, "http3.resumed")), (3, 0));
        // Each connection is closed in order, so the server keeps nothing.
        assert_eq!(saw["ends"], json!({"0x100": 3}));
    }
}

fn a_server_allows_so_many_streams_and_no_more() {
    let (report, saw) = run("h3-few", &json!({"max_streams": 5}), "/", &["-n", "200", "-c", "2", "-m", "20"]);
    assert_eq!((counter(&report, "http.codes.200"), &saw["answered"]), (200, &json!(200)));
    assert!(saw["at_once"].as_u64().unwrap() <= 5 && saw["sessions"] == 2, "{saw}");
}

fn what_was_refused_is_asked_again() {
    let (report, saw) = run("h3-refused", &json!({"refuse": 10}), "/", &["-n", "300", "-c", "2", "-m", "4"]);
    assert_eq!((counter(&report, "http.requests"), counter(&report, "http.codes.200")), (300, 300));
    let refused = saw["refused"].as_u64().unwrap();
    assert!(refused >= 30, "{saw}");
    assert_eq!((saw["answered"].as_u64(), saw["streams"].as_u64()), (Some(300), Some(300 + refused)));
    assert_eq!(counter(&report, "http.resent"), refused, "each repetition is counted");
}

fn a_server_that_refuses_for_good_is_an_error() {
    let (report, saw) = run_to(1, "h3-refuses", &json!({"refuse": 1}), "/", &["-n", "5", "-c", "1", "-m", "1"]);
    assert_eq!(
        (errors(&report), &saw["streams"]),
        (vec![("RESET_STREAM_H3_REQUEST_REJECTED".to_owned(), 5)], &json!(20))
    );
}

fn a_reset_has_its_code() {
    let (report, saw) = run("h3-reset", &json!({"reset": 10}), "/", &["-n", "300", "-c", "2", "-m", "4"]);
    assert_eq!(errors(&report), [("RESET_STREAM_H3_INTERNAL_ERROR".to_owned(), 30)]);
    assert_eq!((counter(&report, "http.codes.200"), &saw["answered"]), (270, &json!(270)));
}

fn a_server_that_goes_away_costs_no_request() {
    let (report, saw) = run("h3-goaway", &json!({"goaway": 50}), "/", &["-n", "300", "-c", "2", "-m", "4"]);
    assert_eq!((counter(&report, "http.codes.200"), &saw["answered"]), (300, &json!(300)), "{:?}", errors(&report));
    assert!(saw["sessions"].as_u64().unwrap() > 3, "{saw}");
}

fn bodies_go_both_ways() {
    let room = support::scratch("h3-body");
    let body = room.join("body");
    std::fs::write(&body, vec![b'b'; 1_300_000]).unwrap();
    let body = format!("@{}", body.display());
    for path in ["/?size=300000", "/?size=300000&trailers", "/?size=300000&interim"] {
        let flags = ["-n", "3", "-c", "1", "-m", "3", "--body", &body];
        let (report, saw) = run("h3-bodies", &json!({}), path, &flags);
        assert_eq!(saw["body_bytes"], 3 * 1_300_000, "{:?}", errors(&report));
        assert_eq!((counter(&report, "http.codes.200"), counter(&report, "http.downloaded_bytes")), (3, 3 * 300_000));
    }
    std::fs::remove_dir_all(room).ok();
}

fn a_connection_that_is_closed_is_opened_anew() {
    let (report, saw) = run("h3-cut", &json!({"cut": 40}), "/", &["-n", "200", "-c", "1", "-m", "4"]);
    let failed: u64 = errors(&report).iter().map(|(_, count)| count).sum();
    let good = report["weir"]["response"]["count"].as_u64().unwrap();
    assert_eq!((good + failed, good), (200, counter(&report, "http.codes.200")), "{report}");
    assert!(errors(&report).iter().all(|(name, _)| name == "CONNECTION_CLOSE_H3_INTERNAL_ERROR"), "{report}");
    assert!(failed >= 4 && saw["sessions"].as_u64().unwrap() > 1 && saw["streams"].as_u64().unwrap() <= 200, "{saw}");
}

fn who_does_not_speak_it_is_told_so() {
    let room = support::scratch("h3-none");
    let server = start(&room, &json!({"alpn": ["hq-interop"]}));
    let url = format!("https://127.0.0.1:{}/", server.port);
    let output = load(&[&url, "--http3", "-k", "-n", "9", "-c", "3"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("does not support HTTP/3: weir offered h3 in TLS"), "{said}");
    let server = start(&room, &json!({}));
    let url = format!("https://127.0.0.1:{}/", server.port);
    let report = loaded::report(1, "h3-cert", &[&url, "--http3", "-n", "3", "-c", "1"]);
    assert_eq!(errors(&report), [("DEPTH_ZERO_SELF_SIGNED_CERT".to_owned(), 3)]);
    std::fs::remove_dir_all(room).ok();
}

fn a_server_that_breaks_a_rule_is_named() {
    for (rule, expected) in [
        ("frame", "ERR_HTTP3_FRAME_UNEXPECTED"),
        ("settings", "ERR_HTTP3_FRAME_UNEXPECTED"),
        ("stream", "ERR_QUIC_STREAM_LIMIT_ERROR"),
        ("field", "ERR_HTTP3_MESSAGE_ERROR"),
        ("length", "ERR_HTTP3_MESSAGE_ERROR"),
        ("cut body", "RESET_STREAM_H3_INTERNAL_ERROR"),
    ] {
        let options = json!({ "break": rule });
        let (report, _) = run_to(1, "h3-breaks", &options, "/?size=1000", &["-n", "4", "-c", "1", "--timeout", "5s"]);
        assert_eq!(errors(&report), [(expected.to_owned(), 4)], "{rule}");
    }
}

fn a_connection_carries_so_many_requests_and_the_next_one_resumes_it() {
    // Options of the server, the flags; sessions that are resumed, whose early data is sent, and accepted.
    for (options, flags, expected) in [
        (json!({"tickets": true}), &[][..], [0, 0, 0]),
        (json!({"tickets": true}), &["--early-data"], [9, 9, 9]),
        (json!({"tickets": true}), &["--early-data", "-X", "POST"], [9, 0, 0]),
        (json!({"tickets": true, "forget": true}), &["--tls-earlydata"], [0, 9, 0]),
        (json!({}), &["--early-data"], [0, 0, 0]),
    ] {
        let flags = [&["-n", "50", "-c", "1", "--per-connection", "5"], flags].concat();
        let (report, saw) = run("h3-early", &options, "/?size=9", &flags);
        assert_eq!((counter(&report, "http.codes.200"), &saw["answered"]), (50, &json!(50)), "{:?}", errors(&report));
        assert_eq!((&saw["sessions"], counter(&report, "http3.handshakes")), (&json!(10), 10), "{flags:?}");
        let told =
            ["resumed", "early_data", "early_data_accepted"].map(|name| counter(&report, &format!("http3.{name}")));
        assert_eq!(
            (told, &saw["resumed"], &saw["early"]),
            (expected, &json!(expected[0]), &json!(expected[2])),
            "{flags:?}"
        );
    }
    // Several streams at once share the connections too.
    let (report, saw) = run("h3-each", &json!({}), "/", &["-n", "40", "-c", "1", "-m", "4", "--per-connection", "4"]);
    assert_eq!((counter(&report, "http.codes.200"), &saw["sessions"]), (40, &json!(10)), "{:?}", errors(&report));
}

fn a_connection_moves_from_port_to_port() {
    let flags = ["-R", "100", "-c", "2", "-n", "200", "--migrate", "300ms"];
    let (report, saw) = run("h3-moves", &json!({}), "/?size=2000", &flags);
    assert_eq!((counter(&report, "http.codes.200"), errors(&report)), (200, vec![]));
    assert_eq!((&saw["sessions"], counter(&report, "http3.handshakes")), (&json!(2), 2));
    let moves = counter(&report, "http3.migrations");
    assert!((8..=14).contains(&moves), "{moves}");
    assert!(saw["paths"].as_u64().unwrap() >= 4, "{saw}");
}

/// Writes a script with this target, `config.http`, more lines of `config`, and scenarios.
fn script(room: &Path, target: &str, http: &str, config: &str, scenarios: &str) -> String {
    let file = room.join("script.yml");
    let text = format!(
        "config:\n  target: {target}\n  tls: {{rejectUnauthorized: false}}\n  http: {http}\n{config}\nscenarios:\n{scenarios}\n"
    );
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

fn a_script_does_what_it_does_over_http1() {
    let room = support::scratch("h3-script");
    let server = start(&room, &json!({}));
    let flow = r#"
  - flow:
      - post: {url: /id, json: {x: "{{ $uuid }}"}, capture: {json: $.id, as: id}}
      - think: 0.1
      - parallel:
          - get: {url: "/x?size={{ id }}", expect: [{statusCode: 200}, {hasHeader: x-long}]}
          - get: {url: "/y?size=1"}"#;
    let config = "  phases: [{duration: 1, arrivalCount: 5}]\n  plugins: {expect: {}}";
    let file = script(&room, &format!("https://127.0.0.1:{}", server.port), HTTP3, config, flow);
    let report = loaded::report(0, "h3-script-run", &[&file]);
    let saw = server.saw();
    assert_eq!((&saw["streams"], &saw["answered"], &saw["cookies"]), (&json!(15), &json!(15), &json!(10)), "{report}");
    // Each virtual user is a connection of its own.
    assert_eq!((&saw["sessions"], &saw["ends"]), (&json!(5), &json!({"0x100": 5})));
    for (name, count) in [
        ("http.requests", 15),
        ("http.codes.200", 15),
        ("http.downloaded_bytes", 5 * (10 + 42 + 1)),
        ("vusers.completed", 5),
        ("plugins.expect.ok", 10),
        ("http3.handshakes", 5),
    ] {
        assert_eq!(counter(&report, name), count, "{name} {report}");
    }
    std::fs::remove_dir_all(room).ok();
}

fn what_a_script_cannot_send_over_http3_is_refused_at_its_place() {
    let room = support::scratch("h3-refused-script");
    let get = "  - flow: [{get: {url: /}}]";
    let target = "https://127.0.0.1:1";
    for (target, http, config, scenarios, why) in [
        ("http://127.0.0.1:1", HTTP3, "", get, "2:11: HTTP/3 has no http://"),
        (target, HTTP3, "", "  - flow: [{get: {url: 'http://a/'}}]", "7:24: HTTP/3 has no http://"),
        (target, HTTP3, "", "  - engine: ws\n    flow: [{send: x}]", "7:13: the engine ws has no HTTP/3"),
        (
            target,
            HTTP3,
            "  engine: socketio",
            "  - flow: [{emit: {channel: x}}]",
            "5:11: the engine socketio has no HTTP/3",
        ),
        (target, "{http2: true, http3: true}", "", get, "HTTP/2 or HTTP/3"),
    ] {
        let file = script(&room, target, http, config, scenarios);
        let output = load(&["--check", &file]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(why), "{why}: {said}");
    }
    let file = script(&room, target, HTTP3, "", get);
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let output = command.args(["load", "--check", &file]).env("HTTPS_PROXY", "http://127.0.0.1:2").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("HTTP/3 does not go through a proxy (http://127.0.0.1:2)"), "{said}");
    std::fs::remove_dir_all(room).ok();
}

/// weir's edge with one location; ends when dropped.
struct Edge(Child, PathBuf);

impl Drop for Edge {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
        std::fs::remove_dir_all(&self.1).ok();
    }
}

fn edge(port: u16) -> Edge {
    let (room, origin) = (support::scratch("h3-edge"), support::free_port());
    let (certificate, key) = support::certificate(&room);
    let conf = format!(
        "daemon off; master_process off; pid nginx.pid; error_log error.log info; worker_processes 2; events {{ }}
        http {{
            client_body_temp_path body.tmp; proxy_temp_path proxy.tmp; client_max_body_size 20m;
            log_format short '$server_protocol $status $request_length';
            access_log access.log short;
            server {{
                listen 127.0.0.1:{port} quic;
                ssl_certificate {}; ssl_certificate_key {};
                location / {{ return 200 'hello'; }}
                location /up {{ proxy_pass http://127.0.0.1:{origin}; }}
            }}
            server {{
                listen 127.0.0.1:{origin}; access_log off;
                location / {{ return 200 'hello'; }}
            }}
        }}",
        certificate.display(),
        key.display()
    );
    std::fs::write(room.join("nginx.conf"), conf).unwrap();
    let place = format!("{}/", room.display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(["edge", "-p", &place, "-c", "nginx.conf", "-e", "error.log"]).stdin(Stdio::null());
    let edge = Edge(command.spawn().unwrap(), room);
    support::within("the edge runs", || edge.1.join("nginx.pid").exists());
    edge
}

fn the_edge_sees_what_is_reported() {
    let port = support::free_port();
    let edge = edge(port);
    let url = format!("https://127.0.0.1:{port}/");
    let report = loaded::report(0, "h3-edge-run", &[&url, "--http3", "-k", "-n", "5000", "-c", "32", "-m", "8"]);
    assert_eq!((counter(&report, "http.codes.200"), errors(&report)), (5000, vec![]));
    assert_eq!(counter(&report, "http.downloaded_bytes"), 25_000);
    let log = || std::fs::read_to_string(edge.1.join("access.log")).unwrap_or_default();
    let count = || log().lines().filter(|line| line.starts_with("HTTP/3.0 200 ")).count();
    support::within("the edge has logged all", || count() >= 5000);
    assert_eq!((count(), log().lines().count()), (5000, 5000));
    let body = edge.1.join("body");
    std::fs::write(&body, vec![b'b'; 10_000_000]).unwrap();
    let (url, body) = (format!("{url}up"), format!("@{}", body.display()));
    let report =
        loaded::report(0, "h3-edge-post", &[&url, "--http3", "-k", "-n", "4", "-c", "2", "-m", "2", "--body", &body]);
    assert_eq!((counter(&report, "http.codes.200"), errors(&report)), (4, vec![]));
    let long =
        || log().lines().filter(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap() > 10_000_000).count();
    support::within("the edge has logged the bodies", || long() == 4);
}

fn a_server_that_never_answers_is_a_timeout() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let report = loaded::report(1, "h3-silent", &[&url, "--http3", "-k", "-n", "3", "-c", "1", "--timeout", "1s"]);
    assert_eq!(errors(&report), [("ETIMEDOUT".to_owned(), 3)]);
}

fn garbage_is_no_answer() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", server.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut datagram = [0; 2000];
        while let Ok((count, from)) = server.recv_from(&mut datagram) {
            for seed in 0..20u8 {
                let garbage: Vec<u8> = datagram[..count].iter().map(|byte| byte.wrapping_mul(31) ^ seed).collect();
                // Its own packet too, a part of it, an empty datagram, and a version that does not exist.
                for bytes in
                    [&garbage[..], &datagram[..count], &datagram[..count / 2], &[], &[0x80, 0, 0, 0, 0, 0, 0, seed]]
                {
                    server.send_to(bytes, from).ok();
                }
            }
        }
    });
    let report = loaded::report(1, "h3-garbage", &[&url, "--http3", "-k", "-n", "3", "-c", "1", "--timeout", "1s"]);
    let failed: u64 = errors(&report).iter().map(|(_, count)| count).sum();
    assert_eq!((failed, counter(&report, "http.requests")), (3, 3), "{report}");
}

fn what_has_no_http3_is_refused() {
    for (arguments, why) in [
        (&["http://127.0.0.1:1/", "--http3"][..], "HTTP/3 has no http://; write https://"),
        (&["https://127.0.0.1:1/", "--http3", "--http2"], "--http2"),
        (&["https://127.0.0.1:1/", "--http3", "-m", "5000"], "1 to 1000"),
        (&["script.yml", "--http3"], "write http3: true under config.http"),
    ] {
        let output = load(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(why), "{said}");
    }
}
