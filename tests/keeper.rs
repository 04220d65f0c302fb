//! The keeper and its server: the server has no rights, a server that dies or hangs is replaced, and only the exchanges
//! under way are lost.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/needs.rs"]
mod needs;
#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use needs::{Need, cases};
use support::within;

/// Clients of the test that kills servers, each with one exchange at a time.
const CLIENTS: usize = 4;

fn main() -> ExitCode {
    needs::run(cases![
        [] => a_file_may_have_it_off, a_keeper_that_dies_takes_its_server_along, requests_that_have_come_are_answered_at_the_end;
        [Need::Root] => the_server_has_no_rights, secrets_reach_a_server_that_cannot_read_them,
            no_call_leads_out_of_a_server, the_keeper_opens_what_the_file_names_later,
            another_place_to_write_means_another_server, killed_servers_are_replaced, a_server_that_hangs_is_replaced,
            a_worker_that_hangs_shows_its_stack, strangers_cannot_end_a_server, another_user_means_another_server;
    ])
}

/// A running edge.
struct Edge {
    keeper: Child,
    port: u16,
    room: PathBuf,
}

impl Edge {
    /// `top` stands before `events`, `server` in the server; `ROOM` is the edge's directory.
    fn start(name: &str, top: &str, server: &str) -> Edge {
        Edge::start_as(name, top, server, |_, _| {})
    }

    /// As [`Edge::start`]; `change` sees the directory and the command before weir starts.
    fn start_as(name: &str, top: &str, server: &str, change: impl FnOnce(&Path, &mut Command)) -> Edge {
        let room = support::scratch(&format!("keeper-{name}"));
        fs::set_permissions(&room, fs::Permissions::from_mode(0o755)).unwrap();
        let port = support::free_port();
        write(&room, port, top, server);
        let mut keeper = Command::new(env!("CARGO_BIN_EXE_weir"));
        keeper.args(["edge", "-e"]).arg(room.join("error.log")).arg("-c").arg(room.join("nginx.conf"));
        keeper.stdin(Stdio::null()).stderr(Stdio::null());
        change(&room, &mut keeper);
        let keeper = keeper.spawn().unwrap();
        let edge = Edge { keeper, port, room };
        within("the edge serves", || edge.room.join("pid").exists());
        edge
    }

    fn write(&self, top: &str, server: &str) {
        write(&self.room, self.port, top, server);
    }

    /// The processes that the keeper has started.
    fn servers(&self) -> Vec<u32> {
        let children = format!("/proc/{0}/task/{0}/children", self.keeper.id());
        let all = fs::read_to_string(children).unwrap_or_default();
        all.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }

    fn server(&self) -> u32 {
        let servers = self.servers();
        assert_eq!(servers.len(), 1, "{servers:?}");
        servers[0]
    }

    fn signal(&self, name: &str) {
        signal(self.keeper.id(), name);
    }

    fn get(&self, path: &str) -> std::io::Result<String> {
        let mut client = TcpStream::connect(("127.0.0.1", self.port))?;
        write!(client, "GET {path} HTTP/1.0\r\nHost: a\r\n\r\n")?;
        let mut answer = String::new();
        client.read_to_string(&mut answer)?;
        match answer.split_once("\r\n\r\n") {
            Some((_, body)) => Ok(body.to_owned()),
            None => Err(std::io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Waits until the log has these words: the keeper writes after the event.
    fn logs(&self, words: &str) {
        within(words, || self.log().contains(words));
    }

    fn log(&self) -> String {
        fs::read_to_string(self.room.join("error.log")).unwrap_or_default()
    }
}

fn write(room: &Path, port: u16, top: &str, server: &str) {
    let shown = room.display();
    let text = format!(
        "daemon off; pid {shown}/pid; error_log {shown}/error.log notice; dashboard off; {top}
         events {{ }}
         http {{ access_log off; server {{ listen 127.0.0.1:{port}; {server} }} }}\n"
    );
    fs::write(room.join("nginx.conf"), text.replace("ROOM", &shown.to_string())).unwrap();
}

impl Drop for Edge {
    fn drop(&mut self) {
        let servers = self.servers();
        signal(self.keeper.id(), "TERM");
        self.keeper.wait().unwrap();
        within("the server ends", || servers.iter().all(|pid| !is_there(*pid)));
        if !std::thread::panicking() {
            fs::remove_dir_all(&self.room).unwrap();
        }
    }
}

fn signal(pid: u32, name: &str) {
    // A process that has ended gets no signal.
    Command::new("kill").args([format!("-{name}"), pid.to_string()]).stderr(Stdio::null()).status().unwrap();
}

fn is_there(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn status(pid: u32, name: &str) -> String {
    let all = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = all.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().replace('\t', " ")
}

fn a_file_may_have_it_off() {
    let edge = Edge::start("off", "master_process off;", "return 200 $pid;");
    assert_eq!(edge.servers(), [0; 0]);
    assert_eq!(edge.get("/").unwrap(), edge.keeper.id().to_string());
}

fn a_keeper_that_dies_takes_its_server_along() {
    let mut edge = Edge::start("alone", "", "return 200 $pid;");
    let server = edge.server();
    assert_eq!(edge.get("/").unwrap(), server.to_string());
    edge.signal("KILL");
    edge.keeper.wait().unwrap();
    within("the server ends", || !is_there(server));
    assert!(edge.get("/").is_err(), "nobody holds the port");
}

/// A server that quits answers the requests that its kept connections hold unread.
fn requests_that_have_come_are_answered_at_the_end() {
    let edge = Edge::start("come", "worker_processes 1;", "return 200 $pid;");
    let server = edge.server();
    let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let answered = |client: &mut TcpStream| {
        let (mut answer, mut piece) = (String::new(), [0; 1024]);
        while !answer.ends_with(&format!("\r\n\r\n{server}")) {
            let count = client.read(&mut piece).unwrap_or(0);
            if count == 0 {
                return false;
            }
            answer.push_str(std::str::from_utf8(&piece[..count]).unwrap());
        }
        true
    };
    let mut clients: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(("127.0.0.1", edge.port)).unwrap()).collect();
    for client in &mut clients {
        client.write_all(request).unwrap();
        assert!(answered(client));
    }
    signal(server, "STOP");
    clients.iter_mut().for_each(|client| client.write_all(request).unwrap());
    edge.signal("QUIT");
    edge.logs("gracefully shutting down");
    signal(server, "CONT");
    assert!(clients.iter_mut().all(answered), "each request gets its answer");
}

fn the_server_has_no_rights() {
    let edge = Edge::start("rights", "user nobody nogroup;", "return 200 $pid;");
    let server = edge.server();
    assert_eq!(edge.get("/").unwrap(), server.to_string());
    assert_eq!(status(server, "Uid"), "65534 65534 65534 65534");
    assert_eq!(status(server, "Gid"), "65534 65534 65534 65534");
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(status(server, set), "0000000000000000", "{set}");
    }
    assert_eq!(status(server, "NoNewPrivs"), "1");
    for task in fs::read_dir(format!("/proc/{server}/task")).unwrap() {
        let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        assert!(status.contains("Uid:\t65534\t65534\t65534\t65534"), "{status}");
    }
    // The keeper has no socket but the listening ones and its channel.
    let keeper = edge.keeper.id();
    let threads = fs::read_dir(format!("/proc/{keeper}/task")).unwrap().count();
    assert!(threads <= 4, "{threads} threads: the keeper has no workers");
}

/// Builds the library of `calls.c`.
fn library(room: &Path) -> PathBuf {
    let library = room.join("calls.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/calls.c");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).status();
    assert!(built.unwrap().success());
    library
}

/// A library makes the calls on a thread of the server.
fn no_call_leads_out_of_a_server() {
    let edge = Edge::start_as("calls", "user nobody nogroup;", "return 200 $pid;", |room, weir| {
        fs::write(room.join("outside"), "text").unwrap();
        weir.env("LD_PRELOAD", library(room)).env("OUTSIDE_FILE", room.join("outside"));
        weir.stderr(fs::File::create(room.join("calls")).unwrap());
    });
    let said = || fs::read_to_string(edge.room.join("calls")).unwrap();
    within("the calls end", || said().contains("call end "));
    let said = said();
    let calls: Vec<(&str, &str)> = said
        .lines()
        .filter_map(|line| line.strip_prefix("call ")?.split_once(' '))
        .filter(|(name, _)| *name != "end")
        .collect();
    assert!(calls.len() > 20, "{said}");
    for (name, number) in calls {
        // EPERM by the filter of calls, EACCES by the rules for files.
        assert!(["1", "13"].contains(&number), "{name}: {number}\n{said}");
    }
    assert_eq!(edge.get("/").unwrap(), edge.server().to_string());
}

fn the_keeper_opens_what_the_file_names_later() {
    let edge = Edge::start_as("later", "user nobody nogroup;", "root ROOM/site;", |room, _| {
        for (directory, text) in [("site", "first"), ("outside", "linked"), ("more", "second"), ("closed", "none")] {
            fs::create_dir(room.join(directory)).unwrap();
            fs::write(room.join(directory).join("file"), text).unwrap();
        }
        fs::set_permissions(room.join("closed/file"), fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink("../outside", room.join("site/way")).unwrap();
        std::os::unix::fs::symlink("/proc/self/mem", room.join("site/memory")).unwrap();
    });
    let server = edge.server();
    assert_eq!(edge.get("/file").unwrap(), "first");
    assert_eq!(edge.get("/way/file").unwrap(), "linked", "a link out of the root");
    assert!(edge.get("/memory").unwrap().contains("403"), "the keeper's own memory");
    edge.write(
        "user nobody nogroup;",
        "root ROOM/site; location /more/ { alias ROOM/more/; autoindex on; } location /closed/ { alias ROOM/closed/; }",
    );
    edge.signal("HUP");
    // Each worker takes the configuration when it has time.
    let says = |path: &str, text: &str| edge.get(path).is_ok_and(|answer| answer.contains(text));
    within("the new root is served", || says("/more/file", "second"));
    within("its files are listed", || says("/more/", ">file</a>"));
    within("the user may not read it", || says("/closed/file", "403"));
    assert_eq!(edge.server(), server, "a reload keeps the server");
}

fn another_place_to_write_means_another_server() {
    let edge = Edge::start("writes", "user nobody nogroup;", "return 200 $pid;");
    let server = edge.server();
    fs::create_dir(edge.room.join("store")).unwrap();
    fs::set_permissions(edge.room.join("store"), fs::Permissions::from_mode(0o777)).unwrap();
    edge.write("user nobody nogroup;", "location / { root ROOM/store; dav_methods PUT; }");
    edge.signal("HUP");
    within("another server", || edge.servers().iter().any(|pid| *pid != server));
    within("the other one has finished", || edge.servers().len() == 1);
    edge.logs(&format!("worker process {server} may not write to"));
    let mut put = Command::new("curl");
    put.args(["-sS", "-T"]).arg(edge.room.join("nginx.conf")).arg(format!("http://127.0.0.1:{}/new", edge.port));
    assert!(put.status().unwrap().success());
    assert!(edge.room.join("store/new").exists());
}

fn secrets_reach_a_server_that_cannot_read_them() {
    let edge = Edge::start("secrets", "user nobody nogroup;", "return 200 first;");
    let (certificate, key) = support::certificate(&edge.room);
    for file in [&certificate, &key] {
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    }
    fs::create_dir(edge.room.join("private")).unwrap();
    fs::write(edge.room.join("private/more.conf"), "location /more { return 200 secret; }").unwrap();
    fs::set_permissions(edge.room.join("private"), fs::Permissions::from_mode(0o700)).unwrap();
    let server = edge.server();
    let tls = support::free_port();
    edge.write(
        "user nobody nogroup;",
        &format!(
            "listen 127.0.0.1:{tls} ssl; ssl_certificate {}; ssl_certificate_key {}; include ROOM/private/*.conf;
             location / {{ return 200 second; }}",
            certificate.display(),
            key.display()
        ),
    );
    edge.signal("HUP");
    // The workers take the new configuration one after another.
    within("the new configuration serves", || edge.get("/").is_ok_and(|body| body == "second"));
    within("a file that only root can read", || edge.get("/more").is_ok_and(|body| body == "secret"));
    assert_eq!(edge.server(), server, "a reload keeps the server");
    within("a key that only root can read", || {
        let shown = Command::new("curl").args(["-sk", &format!("https://127.0.0.1:{tls}/more")]).output().unwrap();
        shown.stdout == b"secret"
    });
    // A server that takes the place of this one has the same files.
    signal(server, "KILL");
    within("another server serves", || {
        edge.servers() != [server] && edge.get("/more").is_ok_and(|body| body == "secret")
    });
}

fn killed_servers_are_replaced() {
    let edge = Edge::start("killed", "user nobody nogroup; worker_processes 2;", "return 200 $pid;");
    let (served, lost) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let ends = Arc::new(AtomicBool::new(false));
    let signals = ["KILL", "SEGV", "ABRT", "BUS", "ILL", "FPE", "XCPU"];
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    let count = if edge.get("/").is_ok() { &served } else { &lost };
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for name in signals {
            let before = served.load(Ordering::Relaxed);
            within("some requests", || served.load(Ordering::Relaxed) > before + 50);
            let server = edge.servers();
            within("another server", || {
                // Rust's own handler of SIGSEGV and SIGBUS lets the first one pass.
                server.iter().for_each(|pid| signal(*pid, name));
                edge.servers().len() == 1 && edge.servers() != server
            });
        }
        let before = served.load(Ordering::Relaxed);
        within("more requests", || served.load(Ordering::Relaxed) > before + 50);
        ends.store(true, Ordering::Relaxed);
    });
    let (served, lost) = (served.load(Ordering::Relaxed), lost.load(Ordering::Relaxed));
    println!("{served} requests served, {lost} lost, {} servers killed", signals.len());
    // Each client has at most one exchange under way when a server dies.
    assert!(lost <= CLIENTS * signals.len(), "{lost}");
    // KILL, SEGV, ABRT.
    [9, 11, 6].iter().for_each(|number| edge.logs(&format!("exited on signal {number}")));
}

fn a_server_that_hangs_is_replaced() {
    let edge = Edge::start("hangs", "user nobody nogroup;", "return 200 $pid;");
    let server = edge.server();
    signal(server, "STOP");
    within("another server serves", || edge.servers().iter().any(|pid| *pid != server));
    let fresh = edge.servers().into_iter().find(|pid| *pid != server).unwrap();
    assert_eq!(edge.get("/").unwrap(), fresh.to_string());
    within("the other one is killed", || edge.servers() == [fresh]);
    edge.logs(&format!("worker 0 of worker process {server}: state T (stopped)"));
    edge.logs(&format!("worker process {server} exited on signal 9"));
}

fn a_worker_that_hangs_shows_its_stack() {
    let edge =
        Edge::start_as("stack", "user nobody nogroup;", "location /hang { return 200 $time_local; }", |room, weir| {
            weir.env("LD_PRELOAD", library(room)).env("HANG_FILE", room.join("hang"));
        });
    fs::write(edge.room.join("hang"), "").unwrap();
    let mut client = TcpStream::connect(("127.0.0.1", edge.port)).unwrap();
    write!(client, "GET /hang HTTP/1.0\r\n\r\n").unwrap();
    edge.logs("does not answer; its stack: ");
    let log = edge.log();
    let stack = log.lines().find_map(|line| line.split_once("its stack: ")).unwrap().1;
    assert!(stack.contains("calls.so+0x") && stack.matches("weir+0x").count() > 3, "{stack}");
    fs::remove_file(edge.room.join("hang")).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "the worker goes on: {answer}");
}

fn strangers_cannot_end_a_server() {
    let edge = Edge::start("strangers", "user nobody nogroup;", "return 200 $pid;");
    let server = edge.server();
    for name in ["TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "WINCH"] {
        let mut send = Command::new("setpriv");
        send.args(["--reuid=65534", "--regid=65534", "--clear-groups", "kill", &format!("-{name}")]);
        assert!(send.arg(server.to_string()).status().unwrap().success(), "{name}");
    }
    assert_eq!(edge.get("/").unwrap(), server.to_string());
    let log = edge.log();
    assert!(!log.contains("reconfiguring") && !log.contains("shutting down"), "{log}");
}

fn another_user_means_another_server() {
    let edge = Edge::start("user", "user nobody nogroup;", "return 200 $pid;");
    let server = edge.server();
    // The other server has accepted this connection before it hears that it is replaced.
    let mut early = TcpStream::connect(("127.0.0.1", edge.port)).unwrap();
    assert_eq!(edge.get("/").unwrap(), server.to_string());
    edge.write("user daemon;", "return 200 $pid;");
    edge.signal("HUP");
    within("another server", || edge.servers().iter().any(|pid| *pid != server));
    within("it serves", || edge.get("/").is_ok_and(|pid| pid != server.to_string()));
    early.write_all(b"GET / HTTP/1.0\r\nHost: a\r\n\r\n").unwrap();
    let mut answer = String::new();
    early.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with(&server.to_string()), "a client that had connected before gets its answer: {answer:?}");
    within("the other one has finished", || edge.servers().len() == 1);
    assert_eq!(edge.get("/").unwrap(), edge.server().to_string());
    assert_eq!(status(edge.server(), "Uid").split(' ').next(), Some("1"));
}
