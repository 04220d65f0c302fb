//! The cost of one exchange for the edge in syscalls and allocations, compared with `counts.txt`.
//!
//! An edge with one worker runs in this process, on loopback, between a client and an origin that take strict turns.
//! Each case is warmed up, then `EXCHANGES` are counted on the worker's own thread. A count above the file's fails
//! the test; a count below it is printed, so that the file can be updated. The memory of an idle connection is
//! measured in the same way.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

#[allow(dead_code)]
mod support;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc;

use weir_edge::control::Running;
use weir_edge::load::{ConfOrigin, load};
use weir_net::counts::{self, Counts};

#[global_allocator]
static ALLOCATOR: counts::Allocator = counts::Allocator;

/// Exchanges before counting begins; they fill pools and tables.
const WARM_UP: u64 = 50;
/// Number of exchanges that are counted.
const EXCHANGES: u64 = 200;
/// Number of idle connections for the memory measurement.
const IDLE: u64 = 200;
/// Counts that the measurement itself, timers and early wake-ups may add to a sum of `EXCHANGES`.
const NOISE: u64 = EXCHANGES / 8;

/// A client's frame with 32 bytes of payload: no side of the edge reads the content.
const FRAME: &[u8] = &[0x55; 38];

#[test]
fn exchanges_cost_what_counts_txt_says() {
    let room = support::scratch("counts");
    std::fs::write(room.join("file.txt"), [b'f'; 1024]).unwrap();
    let edge = Edge::start(&room, origin());
    let measured = [
        ("proxied", edge.measure("GET /proxied HTTP/1.1\r\nHost: a\r\n\r\n")),
        ("two-servers", edge.measure("GET /two HTTP/1.1\r\nHost: a\r\n\r\n")),
        ("proxied-20k", edge.measure("GET /proxied/20k HTTP/1.1\r\nHost: a\r\n\r\n")),
        ("return", edge.measure("GET /return HTTP/1.1\r\nHost: a\r\n\r\n")),
        ("hit", edge.measure("GET /kept HTTP/1.1\r\nHost: a\r\n\r\n")),
        ("hit-gzip", {
            // First fetched, then compressed: both bodies have unknown length.
            edge.ask_alone("GET /packed HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n");
            edge.ask_alone("GET /packed HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n");
            edge.measure("GET /packed HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
        }),
        ("file", edge.measure("GET /file.txt HTTP/1.1\r\nHost: a\r\n\r\n")),
        ("websocket", edge.measure_websocket()),
    ];
    drop(edge);
    std::fs::remove_dir_all(&room).ok();

    let allowed = read_allowed();
    let mut report = String::new();
    let mut fails = false;
    for (case, sums) in &measured {
        for (kind, sum) in sums {
            let limit = allowed.get(&(*case, *kind)).copied().unwrap_or(0);
            if *sum == 0 && limit == 0 {
                continue;
            }
            let verdict = if *sum > limit * EXCHANGES + NOISE {
                fails = true;
                "ABOVE counts.txt"
            } else if sum + NOISE < limit * EXCHANGES {
                "below counts.txt: lower it there"
            } else {
                ""
            };
            let average = *sum as f64 / EXCHANGES as f64;
            writeln!(report, "{case:12} {kind:12} {average:6.2}  counts.txt {limit}  {verdict}").unwrap();
        }
    }
    println!("{report}");
    assert!(!fails, "an exchange costs more than counts.txt allows\n{report}");
}

#[test]
fn what_stands_idle_holds_what_counts_txt_says() {
    let room = support::scratch("counts-idle");
    let edge = Edge::start(&room, origin());
    let measured = [("idle", edge.held(Edge::used_once)), ("idle-websocket", edge.held(Edge::websocket))];
    drop(edge);
    std::fs::remove_dir_all(&room).ok();

    let allowed = read_allowed();
    for (case, bytes) in measured {
        let limit = allowed.get(&(case, "bytes")).copied().unwrap_or(0);
        println!("{case:14} bytes {bytes}  counts.txt {limit}");
        assert!(bytes <= limit, "{case}: {bytes} bytes a connection, counts.txt allows {limit}");
    }
}

/// A client may name thousands of new directories. Another thread makes them, so the worker goes on with other clients.
#[test]
fn the_directories_of_a_put_are_not_the_worker_s_work() {
    let room = support::scratch("counts-put");
    // The threads of the edge have another user, if root runs the test.
    std::fs::create_dir(room.join("put")).unwrap();
    std::fs::set_permissions(room.join("put"), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let edge = Edge::start(&room, origin());
    let mut client = edge.connect();
    let path = "/part".repeat(300);
    let before = edge.counts();
    for (name, status) in [("one", "201"), ("two", "201"), ("one", "204")] {
        let head = format!("PUT /put{path}/{name} HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody");
        client.write_all(head.as_bytes()).unwrap();
        let answer = read_head(&mut client).expect("an answer");
        assert!(answer.starts_with(format!("HTTP/1.1 {status} ").as_bytes()), "{}", String::from_utf8_lossy(&answer));
        let kept = room.join(format!("put{path}/{name}"));
        assert_eq!(std::fs::read_to_string(kept).expect("the file is there when the answer comes"), "body");
    }
    let counted = edge.counts().since(&before);
    assert_eq!(counted.mkdir, 0, "the worker itself made directories");
    // The same work on this thread: the count is able to show it.
    let here = counts::snapshot();
    weir_net::path::make_way(&room.join(format!("here{path}/file")), 0o755).unwrap();
    assert!(counts::snapshot().since(&here).mkdir >= 300);
    drop(edge);
    std::fs::remove_dir_all(&room).ok();
}

/// One line is `CASE KIND NUMBER`; a kind that is not listed is 0.
fn read_allowed() -> BTreeMap<(&'static str, &'static str), u64> {
    include_str!("counts.txt")
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [case, kind, number] = words[..] else { panic!("counts.txt: {line}") };
            ((case, kind), number.parse().unwrap_or_else(|_| panic!("counts.txt: {line}")))
        })
        .collect()
}

/// Sums by kind.
type Sums = Vec<(&'static str, u64)>;

struct Edge {
    running: Running,
    port: u16,
}

impl Edge {
    fn start(room: &Path, origin_port: u16) -> Edge {
        let port = support::free_port();
        let text = format!(
            "worker_processes 1; error_log {root}/error.log; events {{ }}
             http {{
                 access_log off;
                 proxy_cache_path {root}/cache keys_zone=one:1m;
                 upstream two {{ server 127.0.0.1:{origin_port}; server 127.0.0.1:{origin_port}; keepalive 8; }}
                 server {{
                     listen 127.0.0.1:{port};
                     keepalive_requests 100000;
                     root {root};
                     location /return {{ return 200 hello; }}
                     location /put {{ dav_methods PUT; create_full_put_path on; client_body_temp_path {root}/bodies; }}
                     location /kept {{
                         proxy_pass http://127.0.0.1:{origin_port};
                         proxy_cache one;
                         proxy_cache_valid 200 1h;
                     }}
                     location /packed {{
                         proxy_pass http://127.0.0.1:{origin_port};
                         proxy_cache one;
                         proxy_cache_valid 200 1h;
                         gzip on;
                         gzip_types text/plain;
                     }}
                     location /two {{ proxy_pass http://two; }}
                     location /proxied {{ proxy_pass http://127.0.0.1:{origin_port}; }}
                     location /socket {{
                         proxy_pass http://127.0.0.1:{origin_port};
                         proxy_http_version 1.1;
                         proxy_set_header Upgrade $http_upgrade;
                         proxy_set_header Connection upgrade;
                     }}
                 }}
             }}",
            root = room.display()
        );
        let origin =
            ConfOrigin { file: "/nginx.conf".to_owned(), error_log: "stderr".to_owned(), ..ConfOrigin::default() };
        let loaded = load(&origin, &OneFile(text), 1);
        assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
        let running =
            Running::alone(loaded.conf.expect("a configuration"), &loaded.tree, None).expect("the edge starts");
        Edge { running, port }
    }

    /// The worker's counts so far.
    fn counts(&self) -> Counts {
        self.ask(counts::snapshot)
    }

    /// Runs a function on the worker's thread, and returns the result.
    fn ask<T: Send + 'static>(&self, question: fn() -> T) -> T {
        let (tell, told) = mpsc::sync_channel(1);
        let worker = self.running.workers().next().expect("one worker");
        assert!(worker.run(move || {
            let _ = tell.send(question());
        }));
        told.recv().expect("the worker answers")
    }

    fn connect(&self) -> TcpStream {
        let client = TcpStream::connect(("127.0.0.1", self.port)).expect("the edge accepts");
        client.set_nodelay(true).unwrap();
        client
    }

    /// A request on a new connection; reads to its end.
    fn ask_alone(&self, request: &str) {
        let mut client = self.connect();
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
    }

    /// Repeats the same request on one connection.
    fn measure(&self, request: &str) -> Sums {
        let mut client = self.connect();
        self.sum(|| {
            client.write_all(request.as_bytes()).unwrap();
            let answer = read_answer(&mut client).expect("an answer");
            assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
        })
    }

    /// Repeats one message to the origin, and its echo.
    fn measure_websocket(&self) -> Sums {
        let mut client = self.websocket();
        self.sum(|| echo(&mut client))
    }

    /// A connection after its first request.
    fn used_once(&self) -> TcpStream {
        let mut client = self.connect();
        client.write_all(b"GET /proxied HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        read_answer(&mut client).expect("an answer");
        client
    }

    /// A WebSocket after its first message.
    fn websocket(&self) -> TcpStream {
        let mut client = self.connect();
        client
            .write_all(b"GET /socket HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
            .unwrap();
        let answer = read_head(&mut client).expect("an answer");
        assert!(answer.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&answer));
        echo(&mut client);
        client
    }

    /// Growth of the worker's memory for each of `IDLE` connections from `connect`, including tables.
    fn held(&self, connect: impl Fn(&Edge) -> TcpStream) -> u64 {
        let warm: Vec<TcpStream> = (0..WARM_UP).map(|_| connect(self)).collect();
        let before = self.held_bytes();
        let idle: Vec<TcpStream> = (0..IDLE).map(|_| connect(self)).collect();
        let after = self.held_bytes();
        // The worker frees all of it before anything else is measured: the next connections use the same rows of tables.
        warm.into_iter().chain(idle).for_each(end);
        (after - before).max(0) as u64 / IDLE
    }

    fn held_bytes(&self) -> i64 {
        self.ask(counts::held_bytes)
    }

    fn sum(&self, mut exchange: impl FnMut()) -> Sums {
        (0..WARM_UP).for_each(|_| exchange());
        let before = self.counts();
        (0..EXCHANGES).for_each(|_| exchange());
        let counted = self.counts().since(&before);
        // A poll is not a syscall; its cost shows in the other counts.
        counted.named().into_iter().filter(|(kind, _)| *kind != "polls").collect()
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        for worker in self.running.workers() {
            worker.stop();
            worker.join();
        }
    }
}

struct OneFile(String);

impl weir_conf::Files for OneFile {
    fn read(&self, _: &str) -> io::Result<Vec<u8>> {
        Ok(self.0.clone().into_bytes())
    }

    fn glob(&self, _: &str) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }
}

/// An origin on a new port: 1 KiB for every request, 20 KiB for one path, an echo after an upgrade.
fn origin() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().unwrap().port();
    start("origin", move || {
        for client in listener.incoming() {
            let client = client.expect("a connection");
            start("origin connection", move || {
                // The edge closes the connection at the end of the test.
                let _ = answer_all(client);
            });
        }
    });
    port
}

/// Ends a connection, and returns when the edge has closed it too.
fn end(mut client: TcpStream) {
    client.shutdown(Shutdown::Write).expect("the connection is open");
    client.read_to_end(&mut Vec::new()).expect("the edge closes it");
}

/// Sends a message to the origin and reads the echo.
fn echo(client: &mut TcpStream) {
    let mut echo = [0; FRAME.len()];
    client.write_all(FRAME).unwrap();
    client.read_exact(&mut echo).unwrap();
    assert_eq!(echo, FRAME);
}

fn start(name: &str, job: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().name(name.to_owned()).spawn(job).expect("a thread");
}

fn answer_all(mut client: TcpStream) -> io::Result<()> {
    client.set_nodelay(true)?;
    loop {
        let head = read_head(&mut client)?;
        if head.is_empty() {
            return Ok(());
        }
        if head.starts_with(b"GET /socket ") {
            client
                .write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")?;
            let mut bytes = [0; FRAME.len()];
            loop {
                client.read_exact(&mut bytes)?;
                client.write_all(&bytes)?;
            }
        }
        let length = if head.starts_with(b"GET /proxied/20k ") { 20 << 10 } else { 1 << 10 };
        let mut answer =
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n").into_bytes();
        answer.resize(answer.len() + length, b'o');
        client.write_all(&answer)?;
    }
}

/// A head with its empty line; empty if the connection ended.
fn read_head(from: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if from.read(&mut byte)? == 0 {
            return Ok(Vec::new());
        }
        head.push(byte[0]);
    }
    Ok(head)
}

/// Reads an answer to its end, by its Content-Length.
fn read_answer(from: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut answer = read_head(from)?;
    let head = String::from_utf8_lossy(&answer).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    let body = answer.len();
    answer.resize(body + length.parse::<usize>().expect("a number"), 0);
    from.read_exact(&mut answer[body..])?;
    Ok(answer)
}
