//! `weir load URL --http2` against Node's HTTP/2 server (`load/http2_server.mjs`): the report must equal the server's
//! counts.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/loaded.rs"]
mod loaded;
#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use loaded::{Server, counter, load};

fn start(options: &Value, tls: Option<&(PathBuf, PathBuf)>) -> Server {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/load/http2_server.mjs");
    let mut command = Command::new("node");
    command.arg(script).arg(options.to_string());
    if let Some((certificate, key)) = tls {
        command.env("CERT", certificate).env("KEY", key);
    }
    Server::start(&mut command)
}

/// Loads a server with these options; returns weir's report and the server's counts.
fn run(name: &str, options: &Value, path: &str, flags: &[&str]) -> (Value, Value) {
    run_to(0, name, options, path, flags)
}

/// The same, but weir must exit with this code.
fn run_to(code: i32, name: &str, options: &Value, path: &str, flags: &[&str]) -> (Value, Value) {
    let server = start(options, None);
    let url = format!("http://127.0.0.1:{}{path}", server.port);
    let report = loaded::report(code, name, &[&[&*url, "--http2", "-d", "60s"], flags].concat());
    (report, server.saw())
}

#[test]
fn what_is_reported_is_what_the_server_saw() {
    for rate in [&[][..], &["-R", "400"]] {
        let flags = [&["-n", "300", "-c", "3", "-m", "8"], rate].concat();
        let (report, saw) = run("h2-plain", &json!({}), "/x?size=7", &flags);
        assert_eq!((&saw["streams"], &saw["answered"]), (&json!(300), &json!(300)));
        for (name, count) in [("http.requests", 300), ("http.codes.200", 300), ("http.downloaded_bytes", 2100)] {
            assert_eq!(counter(&report, name), count, "{name}");
        }
        let count = |key: &str| report["weir"][key]["count"].as_u64();
        assert_eq!((count("response"), count("service")), (Some(300), Some(300)));
        assert!(saw["sessions"].as_u64().unwrap() <= 3);
    }
}

#[test]
fn a_server_allows_so_many_streams_and_no_more() {
    let (report, saw) =
        run("h2-few", &json!({"settings": {"maxConcurrentStreams": 5}}), "/", &["-n", "200", "-c", "2", "-m", "20"]);
    assert_eq!((counter(&report, "http.codes.200"), &saw["answered"]), (200, &json!(200)));
    assert_eq!((&saw["at_once"], &saw["sessions"]), (&json!(5), &json!(2)));
}

#[test]
fn what_was_refused_is_asked_again() {
    let (report, saw) = run("h2-refused", &json!({"refuse": 10}), "/", &["-n", "300", "-c", "2", "-m", "4"]);
    assert_eq!((counter(&report, "http.requests"), counter(&report, "http.codes.200")), (300, 300));
    let refused = saw["refused"].as_u64().unwrap();
    assert!(refused >= 30, "{saw}");
    assert_eq!((saw["answered"].as_u64(), saw["streams"].as_u64()), (Some(300), Some(300 + refused)));
    assert_eq!(counter(&report, "http.resent"), refused, "each repetition is counted");
}

#[test]
fn a_server_that_refuses_for_good_is_an_error() {
    let (report, saw) = run_to(1, "h2-refuses", &json!({"refuse": 1}), "/", &["-n", "5", "-c", "1", "-m", "1"]);
    assert_eq!((counter(&report, "errors.RST_STREAM_REFUSED_STREAM"), &saw["streams"]), (5, &json!(20)), "{report}");
}

#[test]
fn a_reset_has_its_code() {
    let (report, saw) = run("h2-reset", &json!({"reset": 10}), "/", &["-n", "300", "-c", "2", "-m", "4"]);
    assert_eq!(counter(&report, "errors.RST_STREAM_INTERNAL_ERROR"), 30);
    assert_eq!((counter(&report, "http.codes.200"), &saw["answered"]), (270, &json!(270)));
}

#[test]
fn a_server_that_goes_away_costs_no_request() {
    let (report, saw) = run("h2-goaway", &json!({"goaway": 50}), "/", &["-n", "300", "-c", "2", "-m", "4"]);
    assert_eq!((counter(&report, "http.codes.200"), &saw["answered"]), (300, &json!(300)));
    assert!(saw["sessions"].as_u64().unwrap() > 3, "{saw}");
}

#[test]
fn bodies_go_through_small_windows() {
    let options = json!({"settings": {"initialWindowSize": 1000}});
    let room = support::scratch("h2-body");
    let body = room.join("body");
    std::fs::write(&body, vec![b'b'; 200_000]).unwrap();
    let body = format!("@{}", body.display());
    let flags = ["-n", "12", "-c", "2", "-m", "3", "--body", &body];
    let (report, saw) = run("h2-windows", &options, "/?size=300000", &flags);
    assert_eq!(saw["body_bytes"], 12 * 200_000);
    assert_eq!((counter(&report, "http.codes.200"), counter(&report, "http.downloaded_bytes")), (12, 12 * 300_000));
    std::fs::remove_dir_all(room).ok();
}

#[test]
fn over_tls_by_alpn_and_with_a_user() {
    let room = support::scratch("h2-tls");
    let pair = support::certificate(&room);
    let server = start(&json!({}), Some(&pair));
    let url = format!("https://leo:se%20cret@127.0.0.1:{}/", server.port);
    let output = load(&[&url, "--http2", "-k", "-n", "100", "-c", "2", "-m", "10"]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("Statuses   200: 100"), "{printed}");
    assert!(!printed.contains("cret"), "a password is nobody's business: {printed}");
    let saw = server.saw();
    assert_eq!((&saw["answered"], &saw["sessions"]), (&json!(100), &json!(2)));
    assert_eq!(saw["authorization"], "Basic bGVvOnNlIGNyZXQ=");
    std::fs::remove_dir_all(room).ok();
}

#[test]
fn who_does_not_speak_it_is_told_so() {
    let room = support::scratch("h2-none");
    let pair = support::certificate(&room);
    // One server refuses the offered protocol, the other ignores it.
    for alpn in [json!(["http/1.1"]), json!([])] {
        let server = start(&json!({ "alpn": alpn }), Some(&pair));
        let output = load(&[&format!("https://127.0.0.1:{}/", server.port), "--http2", "-k", "-n", "9", "-c", "3"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("does not support HTTP/2: weir offered h2 in TLS"), "{said}");
    }
    let plain = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", plain.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in plain.incoming().flatten() {
            std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n").ok();
        }
    });
    let output = load(&[&url, "--http2", "-n", "9"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1) && said.contains("the server's answer to the HTTP/2 preface was not HTTP/2"),
        "{said}"
    );
    for (flags, why) in [
        (&["-m", "3"][..], "--http2"),
        (&["--http2", "-m", "0"], "1 to 1000"),
        (&["--http2", "-m", "5000"], "1 to 1000"),
    ] {
        let output = load(&[&[&*url], flags].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(why), "{said}");
    }
    std::fs::remove_dir_all(room).ok();
}

#[test]
fn a_connection_that_is_cut_fails_its_requests_and_is_opened_anew() {
    let (report, saw) = run("h2-cut", &json!({"cut": 40}), "/", &["-n", "200", "-c", "1", "-m", "4"]);
    let counters = report["aggregate"]["counters"].as_object().unwrap();
    let errors = counters.iter().filter(|(name, _)| name.starts_with("errors."));
    let failed: u64 = errors.map(|(_, count)| count.as_u64().unwrap()).sum();
    // An answer that was cut off in its body counts as a status and as an error.
    let good = report["weir"]["response"]["count"].as_u64().unwrap();
    assert_eq!(good + failed, 200, "{report}");
    assert!(good >= 160 && saw["sessions"].as_u64().unwrap() > 1, "{saw}");
    // A request that the server may have begun is not sent again; one beyond its GOAWAY is (RFC 9113 §8.7).
    assert!(failed >= 5 && saw["streams"].as_u64().unwrap() <= 200, "{saw} {report}");
}
