//! The place of the edge and its origin: on this machine, or in a network namespace behind a single link.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::support;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// Timeout of the test: far longer than anything here takes.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Number of log lines that a failing test shows.
const LINES_SHOWN: usize = 20;

/// A network namespace, removed at the end.
pub struct Space {
    name: String,
    link: String,
    address: String,
}

impl Space {
    /// Makes the namespace; needs root.
    pub fn new() -> Space {
        let id = std::process::id() % 10_000;
        // Link-local addresses do not collide with other networks; other tests use other parts of them.
        let (here, address) = (format!("169.254.{}.97", 1 + id % 250), format!("169.254.{}.98", 1 + id % 250));
        let space = Space { name: format!("wlm{id}"), link: format!("wlmv{id}"), address };
        let Space { name, link, address } = &space;
        let is_made = ip(&format!("netns add {name}"))
            && ip(&format!("link add {link} type veth peer name eth0 netns {name}"))
            && ip(&format!("addr add {here}/30 dev {link}"))
            && ip(&format!("link set {link} up"))
            && ip(&format!("-n {name} addr add {address}/30 dev eth0"))
            && ip(&format!("-n {name} link set eth0 up"))
            && ip(&format!("-n {name} link set lo up"));
        assert!(is_made, "no namespace {name}");
        space
    }

    /// Sets a kernel parameter in the namespace.
    pub fn set(&self, name: &str, value: &str) {
        let setting = format!("{name}={value}");
        let done = Command::new("ip").args(["netns", "exec", &self.name, "sysctl", "-qw", &setting]).output();
        assert!(done.is_ok_and(|done| done.status.success()), "{setting}");
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        ip(&format!("link del {}", self.link));
        ip(&format!("netns del {}", self.name));
    }
}

fn ip(line: &str) -> bool {
    Command::new("ip").args(line.split(' ')).output().is_ok_and(|out| out.status.success())
}

/// An edge with one worker, and its origin; ended with the test.
pub struct Edge {
    /// The edge's address.
    pub address: SocketAddr,
    /// The dashboard's address.
    pub dashboard: SocketAddr,
    /// HOST:PORT of the origin, as the edge names it.
    pub origin: String,
    dir: PathBuf,
    children: Vec<Child>,
}

impl Edge {
    /// Starts both. `limit` goes into `events` if it is about connections, otherwise to the top of the file; in
    /// `http`, EDGE and ORIGIN are replaced; `wrapper` is a command that starts the edge.
    pub fn start(name: &str, limit: &str, http: &str, wrapper: &[&str], space: Option<&Space>) -> Edge {
        let dir = support::scratch(&format!("limits-{name}"));
        let host = space.map_or("127.0.0.1", |space| space.address.as_str());
        let [edge, dashboard, origin] = [(); 3].map(|()| support::free_port());
        let (top, events) = if limit.contains("connections") { ("", limit) } else { (limit, "") };
        let http = http.replace("EDGE", &format!("{host}:{edge}")).replace("ORIGIN", &origin.to_string());
        let shown = dir.display();
        let text = format!(
            "daemon off; user root; worker_processes 1; pid {shown}/pid; error_log {shown}/error.log notice; {top}
            events {{ {events} }}
            http {{ access_log off; {http}
                server {{ listen {host}:{dashboard}; location / {{ dashboard; dashboard_token token; }} }} }}"
        );
        std::fs::write(dir.join("nginx.conf"), text).unwrap();
        std::fs::write(dir.join("token"), "a token for tests only\n").unwrap();
        std::fs::create_dir_all(dir.join("logs")).unwrap();
        let inside = space.map_or(Vec::new(), |space| vec!["ip", "netns", "exec", &space.name]);
        let start = |words: Vec<&str>| {
            let words: Vec<_> = inside.iter().copied().chain(words).collect();
            let (program, args) = words.split_first().unwrap();
            Command::new(program).args(args).current_dir(&dir).stdout(Stdio::null()).spawn().unwrap()
        };
        let listen = format!("127.0.0.1:{origin}");
        let prefix = format!("{shown}/");
        let edge_words = wrapper.iter().copied().chain([WEIR, "edge", "-p", &prefix, "-c", "nginx.conf"]).collect();
        let children = vec![start(vec![WEIR, "origin", "--listen", &listen]), start(edge_words)];
        let at = |port: u16| format!("{host}:{port}").parse().unwrap();
        let edge = Edge { address: at(edge), dashboard: at(dashboard), origin: listen, dir, children };
        edge.until_it_serves();
        edge
    }

    fn until_it_serves(&self) {
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < PATIENCE, "the edge does not serve: {}", self.log());
            if TcpStream::connect(self.address).is_ok_and(|mut stream| {
                let asked = stream.write_all(b"GET /1k HTTP/1.0\r\n\r\n");
                let mut answer = String::new();
                asked.is_ok()
                    && std::io::Read::read_to_string(&mut stream, &mut answer).is_ok()
                    && answer.contains(" 200 ")
            }) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The edge's error log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("error.log")).unwrap_or_default()
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            let log = self.log();
            log.lines().take(LINES_SHOWN).for_each(|line| eprintln!("{line}"));
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
