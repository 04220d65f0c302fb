//! The environment of the cache: an origin that counts and can pause its answers, and an edge that can be killed.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex};

use super::support::{self, PATIENCE, within};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// Size in bytes of a page whose name begins with `/short`.
pub const SHORT: usize = 8 << 10;

/// Size in bytes of a page whose name begins with `/middle`.
pub const MIDDLE: usize = 64 << 10;

/// Size in bytes of any other page: larger than the largest object of the memory tier.
pub const LONG: usize = 3 << 20;

/// A directory, removed at the end.
pub struct Room(pub PathBuf);

impl Room {
    pub fn new(name: &str) -> Room {
        let path = support::scratch(name);
        // The edge drops root, and then writes there.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
        Room(path)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The body of a page: its name and version repeated, so that no other page or version has the same bytes.
pub fn body_of(page: &str, version: usize) -> Vec<u8> {
    let len = match page {
        page if page.starts_with("/short") => SHORT,
        page if page.starts_with("/middle") => MIDDLE,
        _ => LONG,
    };
    format!("{page} version {version}\n").into_bytes().into_iter().cycle().take(len).collect()
}

/// Answers each page with the number of times that it was requested. The words in a page's name change the answer.
/// `held`: sends half of the body and waits; with `early`, a quarter. `locked`: from the second request on, waits
/// before the head. `chunked`: sends no length. `brief`: valid for a second, otherwise for an hour.
#[derive(Clone)]
pub struct Origin {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    asked: Mutex<HashMap<String, usize>>,
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Origin {
    pub fn start() -> Origin {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let origin = Origin { port: listener.local_addr().unwrap().port(), shared: Arc::default() };
        let answering = origin.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let origin = answering.clone();
                // It does not matter if a client disconnects early.
                std::thread::spawn(move || origin.serve(stream));
            }
        });
        origin
    }

    /// Number of requests for a page.
    pub fn asked(&self, page: &str) -> usize {
        self.shared.asked.lock().unwrap().get(page).copied().unwrap_or_default()
    }

    /// From now on no answer is paused.
    pub fn open(&self) {
        *self.shared.is_open.lock().unwrap() = true;
        self.shared.opened.notify_all();
    }

    fn wait_until_open(&self) {
        let is_open = self.shared.is_open.lock().unwrap();
        drop(self.shared.opened.wait_while(is_open, |is_open| !*is_open).unwrap());
    }

    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut first = None;
        for line in BufReader::new(stream.try_clone()?).lines() {
            let line = line?;
            if !line.is_empty() {
                first.get_or_insert(line);
            } else if let Some(request) = first.take() {
                self.answer(&mut stream, request.split(' ').nth(1).unwrap_or_default())?;
            }
        }
        Ok(())
    }

    fn answer(&self, stream: &mut TcpStream, page: &str) -> std::io::Result<()> {
        let version = {
            let mut asked = self.shared.asked.lock().unwrap();
            let count = asked.entry(page.to_owned()).or_default();
            *count += 1;
            *count
        };
        if page.contains("locked") && version > 1 {
            self.wait_until_open();
        }
        let body = body_of(page, version);
        let life = if page.contains("brief") { 1 } else { 3600 };
        write!(stream, "HTTP/1.1 200 OK\r\nCache-Control: max-age={life}\r\n")?;
        if page.contains("chunked") {
            write!(stream, "Transfer-Encoding: chunked\r\n\r\n")?;
            for piece in body.chunks(32 << 10) {
                write!(stream, "{:x}\r\n", piece.len())?;
                stream.write_all(piece)?;
                stream.write_all(b"\r\n")?;
            }
            return stream.write_all(b"0\r\n\r\n");
        }
        write!(stream, "Content-Length: {}\r\n\r\n", body.len())?;
        let (half, rest) = body.split_at(body.len() / if page.contains("early") { 4 } else { 2 });
        stream.write_all(half)?;
        if page.contains("held") {
            self.wait_until_open();
        }
        stream.write_all(rest)
    }
}

/// An edge with one cache, running or not. A process that still runs is killed at the end.
pub struct Edge {
    pub dir: PathBuf,
    pub port: u16,
    running: Option<Child>,
}

impl Edge {
    /// `path`: more parameters of `proxy_cache_path`; `more`: more directives of the location.
    pub fn new(room: &Room, origin: &Origin, path: &str, more: &str) -> Edge {
        let (dir, port) = (room.0.clone(), support::free_port());
        let shown = dir.display();
        let text = format!(
            "daemon off;\nworker_processes 2;\npid {shown}/pid;\nerror_log {shown}/error.log notice;
events {{ worker_connections 4096; }}\nhttp {{
    access_log off;
    proxy_cache_path {shown}/cache keys_zone=one:1m {path};
    proxy_temp_path {shown}/temp;
    client_body_temp_path {shown}/body;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{
            proxy_pass http://127.0.0.1:{};
            proxy_cache one;
            proxy_cache_key $request_uri;
            {more}
        }}
        location = /status {{ stub_status; }}
    }}\n}}\n",
            origin.port
        );
        std::fs::write(dir.join("nginx.conf"), text).unwrap();
        Edge { dir, port, running: None }
    }

    pub fn start(&mut self) {
        self.start_as(Command::new(WEIR));
    }

    /// Starts with a small, separate disk as the cache's directory, mounted for this edge only.
    pub fn start_on_small_disk(&mut self) {
        std::fs::create_dir_all(self.cache()).unwrap();
        let mount = "mount -t tmpfs -o size=1m,mode=777 none \"$0\"";
        let unshare = |script: &str| {
            let mut command = Command::new("unshare");
            command.args(["--mount", "sh", "-c", script]).arg(self.cache());
            command
        };
        let mut command = unshare(&format!("{mount} && exec \"$@\""));
        command.arg(WEIR);
        self.start_as(command);
    }

    fn start_as(&mut self, mut command: Command) {
        command.args(["edge", "-p"]).arg(&self.dir).arg("-c").arg(self.dir.join("nginx.conf"));
        command.arg("-e").arg(self.dir.join("early.log"));
        self.running = Some(command.spawn().unwrap());
        within("the edge listens", || TcpStream::connect(("127.0.0.1", self.port)).is_ok());
    }

    /// Ends the edge gracefully.
    pub fn end(&mut self) {
        let mut running = self.running.take().unwrap();
        assert!(Command::new("kill").args(["-s", "QUIT", &running.id().to_string()]).status().unwrap().success());
        within("the edge ends", || running.try_wait().unwrap().is_some());
    }

    /// Kills the edge.
    pub fn kill(&mut self) {
        let mut running = self.running.take().unwrap();
        // The keeper starts no other server, and the server sees no keeper that ends.
        let keeper = running.id();
        let children = std::fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children")).unwrap();
        let signal = |name: &str, pid: &str| Command::new("kill").args(["-s", name, pid]).status().unwrap().success();
        assert!(signal("STOP", &keeper.to_string()));
        assert!(children.split_whitespace().all(|server| signal("KILL", server)));
        running.kill().unwrap();
        running.wait().unwrap();
        // The server is no child of the test: until the kernel has closed its sockets, it gets the clients of the next
        // edge and resets them.
        within("nobody listens", || {
            let refused = TcpStream::connect(("127.0.0.1", self.port)).err();
            refused.is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
        });
    }

    pub fn cache(&self) -> PathBuf {
        self.dir.join("cache")
    }

    /// The cache's directory in the mount namespace of the running edge.
    pub fn cache_inside(&self) -> PathBuf {
        let pid = self.running.as_ref().unwrap().id();
        Path::new(&format!("/proc/{pid}/root")).join(self.cache().strip_prefix("/").unwrap())
    }

    /// A connection on which a page was requested.
    pub fn ask(&self, page: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET {page} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").unwrap();
        stream
    }

    /// Checks that the edge sends the whole page in this version.
    pub fn has(&self, page: &str, version: usize) {
        let body = answer(self.ask(page)).unwrap_or_else(|said| panic!("{page}: {said}"));
        assert!(body == body_of(page, version), "{page} is not version {version}: {}", shown(&body));
    }

    /// Requests read so far.
    pub fn requests(&self) -> usize {
        let text = answer(self.ask("/status")).unwrap();
        let text = String::from_utf8_lossy(&text).into_owned();
        text.lines().nth(2).unwrap().split_whitespace().nth(2).unwrap().parse().unwrap()
    }

    /// Number of log lines with these words.
    pub fn log_lines(&self, words: &str) -> usize {
        self.log().lines().filter(|line| line.contains(words)).count()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("error.log")).unwrap_or_default()
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.take() {
            let _ = running.kill();
            let _ = running.wait();
        }
    }
}

/// The body of a complete answer with status 200, with its chunks joined; the error says what was wrong.
pub fn answer(mut stream: TcpStream) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").ok_or_else(|| shown(&bytes))?;
    let (head, body) = bytes.split_at(end + 4);
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    if !head.starts_with("http/1.1 200 ") {
        return Err(head);
    }
    if head.contains("transfer-encoding: chunked") {
        return joined(body).ok_or_else(|| format!("cut after {} bytes", body.len()));
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    match length.and_then(|length| length.parse::<usize>().ok()) {
        Some(length) if length != body.len() => Err(format!("{} bytes of {length}", body.len())),
        _ => Ok(body.to_vec()),
    }
}

fn joined(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let count = usize::from_str_radix(std::str::from_utf8(&rest[..end]).ok()?, 16).ok()?;
        if count == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(end + 2..end + 2 + count)?);
        rest = rest.get(end + 4 + count..)?;
    }
}

fn shown(bytes: &[u8]) -> String {
    format!("{} bytes, {:?}", bytes.len(), String::from_utf8_lossy(&bytes[..bytes.len().min(60)]))
}

/// The files below a directory, except the record of purges.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(path) = open.pop() {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            match entry.path() {
                path if path.is_dir() => open.push(path),
                path if path.to_string_lossy().contains(".weir-purges") => {}
                path => found.push(path),
            }
        }
    }
    found
}

/// The files that hold a whole object, by name.
pub fn objects(dir: &Path) -> Vec<PathBuf> {
    files(dir).into_iter().filter(|path| path.file_name().unwrap().len() == 32).collect()
}
