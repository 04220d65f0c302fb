//! The environment of the edges: an origin whose answers contain a version, a Redis, and the edges themselves.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::net::Namespaces;
use super::support::{self, PATIENCE, within};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// A directory, removed at the end.
pub struct Room(PathBuf);

impl Room {
    pub fn new(name: &str) -> Room {
        Room(support::scratch(name))
    }

    /// An edge that shares a purge log.
    pub fn edge(&self, name: &str, redis: &Redis, origin: &Origin) -> Edge {
        let state = self.0.join(name).join("state");
        let log = format!("cache_purge_log redis://{} edge={name} state={};", redis.place, state.display());
        Edge::new(&self.0, name, &log, origin)
    }

    /// An edge without a purge log.
    pub fn alone(&self, name: &str, origin: &Origin) -> Edge {
        Edge::new(&self.0, name, "", origin)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Answers every page with its version, valid for an hour. `/n/N` has the tags `news` and `page-N`.
pub struct Origin {
    place: String,
    version: Arc<AtomicU64>,
}

impl Origin {
    pub fn start(host: &str) -> Origin {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let place = listener.local_addr().unwrap().to_string();
        let version = Arc::new(AtomicU64::new(1));
        let now = version.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let now = now.clone();
                std::thread::spawn(move || answer(stream, &now));
            }
        });
        Origin { place, version }
    }

    /// Raises the version of every page; returns the new version.
    pub fn publish(&self) -> u64 {
        self.version.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }
}

fn answer(mut stream: TcpStream, version: &AtomicU64) {
    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut first = None;
    for line in lines.map_while(Result::ok) {
        if !line.is_empty() {
            first.get_or_insert(line);
            continue;
        }
        let request = first.take().unwrap_or_default();
        let page = request.split(' ').nth(1).unwrap_or_default();
        let tags = page.strip_prefix("/n/").map_or(String::new(), |page| format!("Cache-Tag: news, page-{page}\r\n"));
        let body = version.load(Ordering::SeqCst).to_string();
        let head = format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\n{tags}Content-Length: {}", body.len());
        if stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).is_err() {
            return;
        }
    }
}

/// A redis-server without files on disk.
pub struct Redis {
    server: Running,
    host: String,
    port: u16,
    dir: PathBuf,
    /// HOST:PORT.
    pub place: String,
}

impl Redis {
    /// Starts the server.
    pub fn start(host: &str, room: &Room) -> Redis {
        let port = support::free_port();
        let dir = room.0.clone();
        let server = redis(host, port, &dir);
        Redis { server, host: host.to_owned(), port, dir, place: format!("{host}:{port}") }
    }

    pub fn kill(&mut self) {
        self.server.0.kill().unwrap();
        self.server.0.wait().unwrap();
    }

    /// Starts again at the same address, and empty.
    pub fn restart(&mut self) {
        self.server = redis(&self.host, self.port, &self.dir);
    }

    /// Sends a command; returns the first line of the answer.
    pub fn say(&self, command: &str) -> String {
        let mut stream = TcpStream::connect(&self.place).unwrap();
        stream.write_all(format!("{command}\r\n").as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        assert!(!line.starts_with('-'), "{command}: {line}");
        line
    }
}

fn redis(host: &str, port: u16, dir: &Path) -> Running {
    let mut command = Command::new("redis-server");
    command.args([
        "--bind",
        host,
        "--port",
        &port.to_string(),
        "--save",
        "",
        "--appendonly",
        "no",
        "--protected-mode",
        "no",
    ]);
    command.arg("--dir").arg(dir);
    let server = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    within("redis-server answers", || TcpStream::connect((host, port)).is_ok());
    server
}

/// A process that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An edge, running or not.
pub struct Edge {
    pub name: String,
    dir: PathBuf,
    text: String,
    host: String,
    port: u16,
    namespace: Option<String>,
    running: Option<Running>,
}

impl Edge {
    fn new(room: &Path, name: &str, log: &str, origin: &Origin) -> Edge {
        let dir = room.join(name);
        std::fs::create_dir_all(&dir).unwrap();
        // Worker threads drop root, and then write there.
        let _ = Command::new("chmod").args(["-R", "a+rwx"]).arg(room).status();
        let (port, origin, shown) = (support::free_port(), &origin.place, dir.display());
        let text = format!(
            "daemon off;\nworker_processes 2;\npid {shown}/pid;\nerror_log {shown}/error.log notice;\nevents {{}}\nhttp {{
                access_log off;
                proxy_cache_path {shown}/cache keys_zone=one:1m;
                proxy_temp_path {shown}/temp;
                client_body_temp_path {shown}/body;
                {log}
                server {{
                    listen HOST:{port};
                    location / {{ proxy_pass http://{origin}; proxy_cache one; proxy_cache_key $request_uri; }}
                    location = /purge {{ cache_purge_api; allow all; }}
                }}\n}}\n"
        );
        Edge { name: name.to_owned(), dir, text, host: "127.0.0.1".to_owned(), port, namespace: None, running: None }
    }

    /// Puts the edge in the namespace with its name.
    pub fn inside(mut self, net: &Namespaces) -> Edge {
        self.host = net.address(&self.name);
        self.namespace = Some(net.name(&self.name));
        self
    }

    pub fn start(mut self) -> Edge {
        self.write();
        let mut command = match &self.namespace {
            None => Command::new(WEIR),
            Some(namespace) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", namespace, WEIR]);
                command
            }
        };
        command.args(["edge", "-p"]).arg(&self.dir).arg("-c").arg(self.dir.join("nginx.conf"));
        command.arg("-e").arg(self.dir.join("early.log"));
        self.running = Some(Running(command.spawn().unwrap()));
        within("the edge listens", || TcpStream::connect((self.host.as_str(), self.port)).is_ok());
        self
    }

    /// Ends the edge gracefully.
    pub fn end(&mut self) {
        let mut running = self.running.take().unwrap();
        self.signal("QUIT");
        within("the edge ends", || running.0.try_wait().unwrap().is_some());
    }

    /// Changes the configuration file and reloads.
    pub fn reload(&mut self, change: impl Fn(&str) -> String) {
        self.text = change(&self.text);
        self.write();
        let before = self.log_lines("reconfiguring");
        self.signal("HUP");
        within("the edge reads its file again", || self.log_lines("reconfiguring") > before);
    }

    fn write(&self) {
        let listen = if self.namespace.is_some() { "0.0.0.0" } else { "127.0.0.1" };
        std::fs::write(self.dir.join("nginx.conf"), self.text.replace("HOST", listen)).unwrap();
    }

    fn signal(&self, signal: &str) {
        let pid = std::fs::read_to_string(self.dir.join("pid")).unwrap();
        assert!(Command::new("kill").args(["-s", signal, pid.trim()]).status().unwrap().success());
    }

    /// The version of a page from this edge.
    pub fn get(&self, page: &str) -> u64 {
        let (status, body) = self.talk(&format!("GET {page} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"));
        assert_eq!(status, 200, "{page} at {}: {body}", self.name);
        body.parse().unwrap()
    }

    /// The same, requested from the edge's own machine.
    pub fn get_inside(&self, page: &str) -> u64 {
        let url = format!("http://127.0.0.1:{}{page}", self.port);
        let namespace = self.namespace.as_deref().unwrap();
        let output = Command::new("ip").args(["netns", "exec", namespace, "curl", "-sf", &url]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).parse().unwrap_or_else(|_| panic!("{url}: {output:?}"))
    }

    /// Sends bytes; returns status and body of the answer.
    pub fn talk(&self, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect((self.host.as_str(), self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        // An edge that refuses a body may close the connection before the whole body was sent.
        let _ = stream.read_to_string(&mut answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        (status, body.to_owned())
    }

    fn url(&self) -> String {
        format!("http://{}:{}/purge", self.host, self.port)
    }

    /// Runs `weir purge`; returns the exit code and the printed text.
    pub fn purge(&self, args: &[&str]) -> (Option<i32>, String) {
        let output = Command::new(WEIR).args(["purge", &self.url()]).args(args).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }

    /// Purges one name over the API; returns the status.
    pub fn post(&self, what: &[&str; 2]) -> u16 {
        let order = format!("{{\"{}\":\"{}\"}}", what[0].trim_start_matches('-'), what[1]);
        let head = format!(
            "POST /purge HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}",
            order.len()
        );
        self.talk(&format!("{head}\r\n\r\n{order}")).0
    }

    pub fn state_of_api(&self) -> String {
        self.talk("GET /purge HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").1
    }

    fn edges(&self) -> Vec<serde_json::Value> {
        let state: serde_json::Value = serde_json::from_str(&self.state_of_api()).unwrap();
        state["log"]["edges"].as_array().cloned().unwrap_or_default()
    }

    /// Waits until this many edges are known, all up to date.
    pub fn until_edges(&self, count: usize) {
        within("the edges know each other", || {
            let edges = self.edges();
            edges.len() == count && edges.iter().all(|edge| edge["behind_ms"] == 0 && edge["silent"] == false)
        });
    }

    pub fn is_up_to_date(&self) -> bool {
        self.edges().iter().any(|edge| edge["edge"] == self.name.as_str() && edge["behind_ms"] == 0)
    }

    /// Waits until the cache's directory has this many files.
    pub fn until_on_disk(&self, count: usize) {
        let is_object = |entry: &std::fs::DirEntry| entry.file_name().len() == 32 && entry.path().is_file();
        within("the pages are on disk", || {
            std::fs::read_dir(self.dir.join("cache")).unwrap().flatten().filter(is_object).count() >= count
        });
    }

    pub fn state(&self) -> PathBuf {
        self.dir.join("state")
    }

    /// Number of log lines with these words.
    pub fn log_lines(&self, words: &str) -> usize {
        let log = std::fs::read_to_string(self.dir.join("error.log")).unwrap_or_default();
        log.lines()
            .filter(|line| line.contains("purge log") || line.contains("reconfiguring"))
            .filter(|line| line.contains(words))
            .count()
    }
}
