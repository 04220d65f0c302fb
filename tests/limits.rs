//! Limits that a real edge reaches under real load: the verdict names each limit before its first error, and when it
//! has effect.
//!
//! Report S2's ports (in a network namespace that has 200 of them: needs root and ip(8)), S1's files, S0's connection
//! table. The test reads the dashboard's feed over a connection made before there is trouble. Times are compared with
//! each other and printed, never compared with a fixed duration.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "limits/load.rs"]
mod load;
#[path = "support/needs.rs"]
mod needs;
#[path = "limits/stage.rs"]
mod stage;
#[expect(dead_code, reason = "other tests use the rest")]
mod support;
#[path = "limits/watch.rs"]
mod watch;

use std::process::ExitCode;

use load::Load;
use needs::{Need, cases};
use stage::{Edge, Space};
use watch::Watch;

/// Ports of the namespace towards one peer.
const PORTS: u32 = 200;

fn main() -> ExitCode {
    needs::run(cases![
        [] => open_files, the_connection_table;
        [Need::Namespaces] => ports_towards_an_upstream;
    ])
}

fn ports_towards_an_upstream() {
    let space = Space::new();
    space.set("net.ipv4.ip_local_port_range", &format!("50000 {}", 50_000 + PORTS - 1));
    // With the usual value 2, loopback (only loopback) could reuse resting ports after a second.
    space.set("net.ipv4.tcp_tw_reuse", "0");
    // The edge closes the connections, and each then holds its port for a minute. A request that finds no port waits
    // for one.
    let http = "upstream app { server 127.0.0.1:ORIGIN; keepalive 0; }
        server { listen EDGE; location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection \"\";
            proxy_connect_timeout 1s; } }";
    let edge = Edge::start("ports", "worker_connections 512;", http, &[], Some(&space));
    let watch = Watch::begin(&edge);
    let load = Load::one_after_another(&edge, "/1k", 12);
    let told = judged(&watch, &load, "ports", &edge.origin);
    assert!(told.remedy.contains("keepalive"), "{told:?}");
}

fn open_files() {
    let run = |name: &str, top: &str, wrapper: &[&str]| {
        let http =
            "server { listen EDGE; location / { proxy_pass http://127.0.0.1:ORIGIN; proxy_read_timeout 300s; } }";
        let edge = Edge::start(name, top, http, wrapper, None);
        let watch = Watch::begin(&edge);
        let load = Load::held(&edge, "GET /?delay=300s HTTP/1.1\r\nHost: a\r\n\r\n", 2);
        let told = judged(&watch, &load, "fds", "worker 0");
        assert!(told.remedy.contains("LimitNOFILE"), "{told:?}");
    };
    std::thread::scope(|both| {
        both.spawn(|| run("files", "worker_rlimit_nofile 100;", &[]));
        both.spawn(|| run("files-inherited", "", &["prlimit", "--nofile=100:100"]));
    });
}

fn the_connection_table() {
    let http = "server { listen EDGE; location / { proxy_pass http://127.0.0.1:ORIGIN; proxy_http_version 1.1;
        proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; proxy_read_timeout 300s; } }";
    let edge = Edge::start("table", "worker_connections 100;", http, &[], None);
    let watch = Watch::begin(&edge);
    let upgrade = "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let load = Load::held(&edge, upgrade, 2);
    let told = judged(&watch, &load, "connections", "worker 0");
    assert!(told.remedy.contains("worker_connections"), "{told:?}");
}

/// Waits until the load meets its first error and the edge was watched for some more seconds: a verdict warned of the
/// limit before the error. Returns the verdict while the limit has effect.
fn judged(watch: &Watch, load: &Load, kind: &str, of: &str) -> watch::Second {
    // A client may fail before the edge counts it, or wait in a kernel queue.
    let failed = watch.until(&format!("{kind}: an error"), |seconds| {
        let counted = seconds.iter().find(|second| second.errors > 0).map(|second| second.at);
        counted.into_iter().chain(load.failed()).min()
    });
    let after = watch.after(failed, 4);
    let all = watch.all();
    let told: Vec<_> = all.iter().map(|second| second.said(watch.begun)).collect();
    let Some(named) = all.iter().find(|second| second.warns(kind, of)) else {
        panic!("{kind} {of} was never named: {told:#?}")
    };
    let counted = all.iter().find(|second| second.errors > 0);
    println!("{kind}: {} | first error {:.1?} after the start", named.said(watch.begun), failed - watch.begun);
    println!("{kind}: {}", counted.map_or("no error is counted".to_owned(), |second| second.said(watch.begun)));
    println!("{kind}: {}", after.said(watch.begun));
    assert!(named.at < failed, "{kind} was named after the first error at {:?}: {told:#?}", failed - watch.begun);
    assert!(counted.is_some(), "{kind}: the error is counted: {told:#?}");
    assert_eq!((after.kind.as_str(), after.of.as_str()), (kind, of), "named when it bites: {told:#?}");
    assert_eq!(after.state, "limited", "{told:#?}");
    assert!(after.ratio >= 0.95, "its waterline: {told:#?}");
    after
}
