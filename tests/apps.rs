//! Real applications behind the edge: Express, Socket.IO and ws, as pinned in `apps/package-lock.json`.
//!
//! Each test starts `apps/NAME.mjs`, an edge with the usual configuration for such an application, and
//! `apps/NAME.check.mjs`, which sends requests through the edge and exits with 0 only if everything is correct.
//! `WEIR_VTC_BINARY=/usr/sbin/nginx` uses nginx instead of weir.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[test]
fn express_answers_as_if_alone() {
    behind_edge("express");
}

#[test]
fn socketio_connects_by_every_transport() {
    behind_edge("socketio");
}

#[test]
fn websocket_frames_and_close_codes_pass_through() {
    behind_edge("ws");
}

fn behind_edge(app: &str) {
    let apps = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/apps");
    assert!(apps.join("node_modules").is_dir(), "the applications are not installed: npm ci --prefix tests/apps");
    let room = support::scratch(app);
    let mut origin = Running::start(
        // In test mode, Express does not print the errors that the test causes.
        Command::new("node").env("NODE_ENV", "test").arg(apps.join(format!("{app}.mjs"))).stdout(Stdio::piped()),
    );
    let port = support::free_port();
    let _edge = start_edge(&room, port, origin.first_line().trim());
    let check = Command::new("node")
        .arg(apps.join(format!("{app}.check.mjs")))
        .arg(format!("http://127.0.0.1:{port}"))
        .output()
        .expect("node runs");
    let log = std::fs::read_to_string(room.join("error.log")).unwrap_or_default();
    std::fs::remove_dir_all(&room).ok();
    assert!(
        check.status.success(),
        "{app}.check.mjs: {}\n{}{}\n--- error.log\n{log}",
        check.status,
        String::from_utf8_lossy(&check.stdout),
        String::from_utf8_lossy(&check.stderr),
    );
}

/// Starts the edge in front of the origin's port, and returns when the edge accepts connections.
fn start_edge(room: &Path, port: u16, origin_port: &str) -> Running {
    let conf = format!(
        r#"
daemon off; user root; pid nginx.pid; error_log error.log info; worker_processes 2;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_max_body_size 10m;
    client_body_temp_path body.tmp;
    proxy_temp_path proxy.tmp;
    map $http_upgrade $connection_upgrade {{ websocket upgrade; default ''; }}
    upstream app {{ server 127.0.0.1:{origin_port}; keepalive 32; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://app;
            proxy_http_version 1.1;
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection $connection_upgrade;
        }}
    }}
}}
"#
    );
    std::fs::write(room.join("nginx.conf"), conf).expect("configuration is written");
    let output = std::fs::File::create(room.join("output.log")).expect("output is kept");
    let mut edge = Running::start(
        Command::new(support::binary(room))
            .arg("-p")
            .arg(room)
            .args(["-c", "nginx.conf", "-e", "error.log"])
            .current_dir(room)
            .stderr(output),
    );
    while !room.join("nginx.pid").exists() {
        let ended = edge.0.try_wait().expect("child can be asked");
        let said = || std::fs::read_to_string(room.join("output.log")).unwrap_or_default();
        assert!(ended.is_none(), "the edge ended before it accepted: {ended:?}\n{}", said());
        std::thread::sleep(Duration::from_millis(10));
    }
    edge
}

/// A child process that is ended, and waited for, at the end of the test.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).spawn().expect("process starts"))
    }

    fn first_line(&mut self) -> String {
        let mut line = String::new();
        let output = self.0.stdout.take().expect("output is piped");
        BufReader::new(output).read_line(&mut line).expect("the application prints its port");
        line
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // TERM, not KILL: the edge itself ends its workers.
        Command::new("kill").arg(self.0.id().to_string()).status().ok();
        self.0.wait().ok();
    }
}
