//! A recording beside the own account of the load generator: over HTTP/1.1, HTTP/2 and HTTP/3, with gRPC behind the edge. Each
//! loss is counted, when the file is full and when the queue is.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/loaded.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod loaded;
mod support;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use loaded::{counter, report};
use weir_recording::model::{Ending, Losses, RecordedExchange, RecordedMessage, RecordedVersion, RecordingPart};
use weir_recording::read::Reader;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// An edge in a room of its own.
struct Edge {
    room: PathBuf,
    process: Running,
}

impl Edge {
    /// Starts an edge with two workers and these servers; returns when it accepts connections.
    fn start(name: &str, servers: &str) -> Edge {
        let room = support::scratch(name);
        support::certificate(&room);
        Edge::start_in(room, servers)
    }

    fn start_in(room: PathBuf, servers: &str) -> Edge {
        let conf = format!(
            "daemon off; user root; pid nginx.pid; error_log error.log info; worker_processes 2;
             events {{ worker_connections 1024; }}
             http {{ access_log off; ssl_certificate localhost.crt; ssl_certificate_key localhost.key;
             client_body_temp_path body.tmp; {servers} }}"
        );
        std::fs::write(room.join("nginx.conf"), conf).unwrap();
        let mut command = Command::new(support::binary(&room));
        command.arg("-p").arg(&room).args(["-c", "nginx.conf", "-e", "error.log"]).current_dir(&room);
        let mut process = Running(command.spawn().unwrap());
        support::within("the edge accepts", || {
            assert!(process.0.try_wait().unwrap().is_none(), "the edge ended before it accepted");
            room.join("nginx.pid").exists()
        });
        Edge { room, process }
    }

    /// Ends the edge in order, and reads its recording.
    fn ended(mut self) -> Parts {
        let pid = self.process.0.id().to_string();
        assert!(Command::new("kill").args(["-QUIT", &pid]).status().unwrap().success());
        support::within("the edge ends", || self.process.0.try_wait().unwrap().is_some());
        let log = std::fs::read_to_string(self.room.join("error.log")).unwrap_or_default();
        assert!(!log.contains("[alert]") && !log.contains("panicked"), "{log}");
        let parts = Parts::read(&self.room.join("traffic.weir"));
        std::fs::remove_dir_all(&self.room).ok();
        parts
    }
}

/// The parts of a recording with one beginning and one ending.
struct Parts {
    exchanges: Vec<RecordedExchange>,
    messages: Vec<RecordedMessage>,
    lost: Losses,
    ending: Ending,
    /// The size of the file.
    bytes: u64,
}

impl Parts {
    fn read(path: &Path) -> Parts {
        let reader = Reader::new(BufReader::new(File::open(path).unwrap())).unwrap();
        let all: Vec<RecordingPart> = reader.map(Result::unwrap).collect();
        let Some(RecordingPart::Ending(ending)) = all.last() else { panic!("no ending: {:?}", all.last()) };
        let mut parts = Parts {
            exchanges: Vec::new(),
            messages: Vec::new(),
            lost: Losses::default(),
            ending: *ending,
            bytes: std::fs::metadata(path).unwrap().len(),
        };
        for part in &all {
            match part {
                RecordingPart::Exchange(exchange) => parts.exchanges.push((**exchange).clone()),
                RecordingPart::Message(message) => parts.messages.push(message.clone()),
                RecordingPart::Lost(lost) => {
                    parts.lost.queue += lost.queue;
                    parts.lost.size += lost.size;
                    parts.lost.writing += lost.writing;
                    parts.lost.large += lost.large;
                }
                RecordingPart::Beginning(_) | RecordingPart::Configuration(_) | RecordingPart::Ending(_) => {}
            }
        }
        let beginnings = all.iter().filter(|part| matches!(part, RecordingPart::Beginning(_))).count();
        assert_eq!(beginnings, 1);
        parts.adds_up();
        parts
    }

    /// The file, its losses and its ending agree.
    fn adds_up(&self) {
        assert_eq!(self.ending.recorded, self.exchanges.len() as u64, "{:?}", self.ending);
        assert_eq!(self.ending.lost, self.lost, "{:?}", self.ending);
        if self.messages.is_empty() {
            assert_eq!(self.ending.exchanges, self.ending.recorded + self.lost.all(), "{:?}", self.ending);
        }
    }

    fn count(&self, is_one: impl Fn(&RecordedExchange) -> bool) -> u64 {
        self.exchanges.iter().filter(|exchange| is_one(exchange)).count() as u64
    }
}

/// Starts the dummy application.
fn origin() -> (Running, u16) {
    let port = support::free_port();
    let mut command = Command::new(WEIR);
    command.args(["origin", "--listen", &format!("127.0.0.1:{port}")]).stdout(Stdio::null()).stderr(Stdio::null());
    let process = Running(command.spawn().unwrap());
    support::within("the origin accepts", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    (process, port)
}

#[test]
fn a_recording_has_what_the_generator_sent_and_got() {
    let (_origin, app) = origin();
    let (plain, secure, inner) = (support::free_port(), support::free_port(), support::free_port());
    let edge = Edge::start(
        "record-account",
        &format!(
            "server {{
                listen 127.0.0.1:{plain}; listen 127.0.0.1:{secure} ssl; listen 127.0.0.1:{secure} quic; http2 on;
                record traffic.weir;
                location / {{ return 200 own; }}
                location /app {{ proxy_pass http://127.0.0.1:{app}/; }}
                location /missing {{ return 404; }}
                location /grpc {{ grpc_pass grpc://127.0.0.1:{inner}; }}
            }}
            server {{
                listen 127.0.0.1:{inner}; http2 on;
                location / {{ add_trailer grpc-status 0; default_type application/grpc; return 200 message; }}
            }}"
        ),
    );
    let (plain, secure) = (format!("http://127.0.0.1:{plain}"), format!("https://127.0.0.1:{secure}"));
    let mut told: BTreeMap<(u8, u16), u64> = BTreeMap::new();
    for (name, version, flags) in [
        ("own", 11, vec![format!("{plain}/a?b=c"), "-n2000".into(), "-c4".into()]),
        ("app", 11, vec![format!("{plain}/app"), "-n500".into(), "-c4".into()]),
        ("missing", 11, vec![format!("{plain}/missing"), "-n300".into(), "-c2".into()]),
        ("secure", 2, vec![format!("{secure}/s"), "-n1000".into(), "-c2".into(), "-m8".into(), "--http2".into()]),
        (
            "grpc",
            2,
            vec![
                format!("{plain}/grpc/S/M"),
                "-n400".into(),
                "-c2".into(),
                "-m4".into(),
                "--http2".into(),
                "-XPOST".into(),
                "--body=x".into(),
                "-Hcontent-type: application/grpc".into(),
                "-Hte: trailers".into(),
            ],
        ),
        ("quic", 3, vec![format!("{secure}/q"), "-n1000".into(), "-c2".into(), "-m8".into(), "--http3".into()]),
    ] {
        let mut flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        flags.extend(["-k", "-d", "60s"]);
        let report = report(0, &format!("record-{name}"), &flags);
        for status in [200, 404] {
            *told.entry((version, status)).or_default() += counter(&report, &format!("http.codes.{status}"));
        }
    }
    let parts = edge.ended();
    for ((version, status), count) in told {
        let version = match version {
            11 => RecordedVersion::Http11,
            2 => RecordedVersion::Http2,
            _ => RecordedVersion::Http3,
        };
        let is_one = |exchange: &RecordedExchange| {
            exchange.version == version && exchange.answer.as_ref().is_some_and(|answer| answer.status == status)
        };
        assert_eq!(parts.count(is_one), count, "{version:?} {status}");
    }
    assert_eq!((parts.ending.exchanges, parts.lost.all()), (5200, 0));
    assert!(parts.exchanges.iter().all(|exchange| !exchange.is_cut));
    assert_eq!(parts.count(|exchange| exchange.is_tls), 2000);
    let field = |exchange: &RecordedExchange, name: &str| {
        let answer = exchange.answer.as_ref().unwrap();
        answer.fields.iter().find(|field| field.name == name.as_bytes()).map(|field| field.value.bytes.clone())
    };
    let grpc = |exchange: &RecordedExchange| {
        exchange.method == b"POST"
            && exchange.body.length == 1
            && exchange.answer.as_ref().is_some_and(|answer| answer.body.length == 7)
            && field(exchange, "grpc-status").as_deref() == Some(b"0")
            && exchange.tries.len() == 1
    };
    assert_eq!(parts.count(grpc), 400);
    assert_eq!(parts.count(|exchange| exchange.tries.first().is_some_and(|tried| tried.status == 200)), 900);
}

#[test]
fn what_a_full_file_lacks_is_counted() {
    let port = support::free_port();
    let edge = Edge::start(
        "record-size",
        &format!(
            "server {{ listen 127.0.0.1:{port}; location / {{ record traffic.weir max=256k; add_header X-Id $request_id; return 200 x; }} }}"
        ),
    );
    let url = format!("http://127.0.0.1:{port}/");
    let report = report(0, "record-size-load", &[&url, "-n", "40000", "-c", "8", "-d", "60s"]);
    assert_eq!(counter(&report, "http.codes.200"), 40_000);
    let parts = edge.ended();
    assert!(parts.bytes <= 256 << 10, "{}", parts.bytes);
    assert_eq!(parts.ending.exchanges, 40_000);
    assert!(parts.lost.size > 0 && parts.ending.recorded > 0, "{:?}", parts.ending);
}

#[test]
fn what_finds_the_queue_full_is_counted_and_nobody_waits() {
    let room = support::scratch("record-queue");
    support::certificate(&room);
    let file = room.join("traffic.weir");
    File::create(&file).unwrap();
    // Another process has the file, so the thread waits, and its queue fills.
    let holder = "import fcntl, sys, time\nf = open(sys.argv[1], 'r+')\nfcntl.lockf(f, fcntl.LOCK_EX)\nprint(1, flush=True)\ntime.sleep(600)";
    let mut holder =
        Running(Command::new("python3").args(["-c", holder]).arg(&file).stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut BufReader::new(holder.0.stdout.take().unwrap()), &mut line).unwrap();
    let port = support::free_port();
    let edge = Edge::start_in(
        room,
        &format!(
            "server {{ listen 127.0.0.1:{port}; location / {{ record traffic.weir; add_header X-Id {id}; return 200 x; }} }}",
            id = "$request_id".repeat(40)
        ),
    );
    let url = format!("http://127.0.0.1:{port}/");
    let report = report(0, "record-queue-load", &[&url, "-n", "20000", "-c", "8", "-d", "60s"]);
    assert_eq!(counter(&report, "http.codes.200"), 20_000);
    drop(holder);
    let parts = edge.ended();
    assert_eq!(parts.ending.exchanges, 20_000);
    assert!(parts.lost.queue > 0 && parts.ending.recorded > 0, "{:?}", parts.ending);
}
