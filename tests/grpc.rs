//! gRPC with other implementations: grpcio's server and client with an edge between them, in cleartext and over TLS.
//!
//! `grpc_peers.py` is both of them. It runs in its own Python environment; `INSTALL` below creates it, as `cargo
//! xtask ci` does.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod support;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const INSTALL: &str = "python3 -m venv target/python && target/python/bin/pip install -r tests/grpc_peers.txt";

#[test]
fn calls_of_every_kind_pass_in_the_clear() {
    through_edge("grpc-plain", false);
}

#[test]
fn calls_of_every_kind_pass_over_tls() {
    through_edge("grpc-tls", true);
}

fn through_edge(name: &str, is_tls: bool) {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/python/bin/python");
    assert!(python.exists(), "grpcio is not installed: {INSTALL}");
    let room = support::scratch(name);
    let (port, origin) = (support::free_port(), support::free_port());
    let text = |(certificate, key): (PathBuf, PathBuf)| (certificate.display().to_string(), key.display().to_string());
    let pair = is_tls.then(|| text(support::certificate(&room)));
    let peers = |words: &[&str]| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/grpc_peers.py");
        let mut command = Command::new(&python);
        command.arg(script).args(words);
        command
    };
    let mut words = vec!["server".to_owned(), origin.to_string()];
    words.extend(pair.iter().flat_map(|(certificate, key)| [certificate.clone(), key.clone()]));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut server = Running(peers(&words).stdout(Stdio::piped()).spawn().expect("python starts"));
    let out = server.0.stdout.take().expect("it was asked for");
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line).expect("it can be read");
    assert_eq!(line.trim(), "ready", "grpc_peers.py did not start: {INSTALL}");
    let _edge = edge(&room, port, origin, is_tls);
    let target = format!("localhost:{port}");
    let mut words = vec!["client", target.as_str()];
    words.extend(pair.iter().map(|(certificate, _)| certificate.as_str()));
    let check = peers(&words).output().expect("python runs");
    let log = std::fs::read_to_string(room.join("error.log")).unwrap_or_default();
    std::fs::remove_dir_all(&room).ok();
    let said = String::from_utf8_lossy(&check.stdout);
    assert!(
        check.status.success() && said.contains("200 at once") && !log.contains("[alert]") && !log.contains("[crit]"),
        "{}\n{said}{}\n--- error.log\n{log}",
        check.status,
        String::from_utf8_lossy(&check.stderr),
    );
}

/// Starts the edge and returns when it accepts connections.
fn edge(room: &Path, port: u16, origin: u16, is_tls: bool) -> Running {
    let (ssl, scheme) = if is_tls { (" ssl", "grpcs") } else { ("", "grpc") };
    let files = if is_tls { "ssl_certificate localhost.crt; ssl_certificate_key localhost.key;" } else { "" };
    let verify = "grpc_ssl_verify on; grpc_ssl_trusted_certificate localhost.crt; grpc_ssl_name localhost; grpc_ssl_server_name on;";
    let verify = if is_tls { verify } else { "" };
    let conf = format!(
        r#"
daemon off; user root; pid nginx.pid; error_log error.log info; worker_processes 1;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_max_body_size 10m;
    upstream app {{ zone app 64k; server 127.0.0.1:{origin}; keepalive 4; }}
    upstream sick {{ zone sick 64k; server 127.0.0.1:{origin}; }}
    upstream unknown {{ zone unknown 64k; server 127.0.0.1:{origin}; }}
    upstream excused {{ zone excused 64k; server 127.0.0.1:{origin}; }}
    server {{
        listen 127.0.0.1:{port}{ssl};
        server_name localhost;
        http2 on;
        {files}
        {verify}
        location / {{
            grpc_pass {scheme}://app;
            health_check interval=100ms mandatory type=grpc;
            health_check mandatory type=grpc grpc_service=weir.Test;
        }}
        location /sick {{ grpc_pass {scheme}://sick; health_check type=grpc grpc_service=weir.Sick; }}
        location /unknown {{ grpc_pass {scheme}://unknown; health_check type=grpc grpc_service=weir.Unknown; }}
        location /excused {{ grpc_pass {scheme}://excused; health_check mandatory type=grpc grpc_service=weir.Unknown grpc_status=5; }}
    }}
}}
"#
    );
    std::fs::write(room.join("nginx.conf"), conf).expect("the room can be written to");
    let child = Command::new(support::binary(room))
        .arg("-p")
        .arg(room)
        .args(["-c", "nginx.conf", "-e", "error.log"])
        .current_dir(room)
        .spawn()
        .expect("the edge starts");
    let mut edge = Running(child);
    while !room.join("nginx.pid").exists() {
        let ended = edge.0.try_wait().expect("a child can be asked");
        assert!(ended.is_none(), "the edge ended before it accepted: {ended:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
    let peer = format!("health check \"\" of peer 127.0.0.1:{origin} in upstream");
    for line in [
        format!("peer is healthy while health checking, {peer} \"app\""),
        format!("the service is not serving while checking gRPC status, {peer} \"sick\""),
        format!("the gRPC status 5 does not pass while checking gRPC status, {peer} \"unknown\""),
        format!("peer is healthy while health checking, {peer} \"excused\""),
    ] {
        let log = || std::fs::read_to_string(room.join("error.log")).unwrap_or_default();
        support::within(&line, || log().contains(&line));
    }
    edge
}

/// A process that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // TERM, not KILL: the edge itself ends its workers.
        Command::new("kill").arg(self.0.id().to_string()).status().ok();
        self.0.wait().ok();
    }
}
