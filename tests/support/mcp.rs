//! A client of `weir mcp`, and a directory with the files that the server may read.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The program under test.
pub const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// The longest wait for anything that must come.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The newest version of the protocol.
pub const MODERN: &str = "2026-07-28";

/// A directory that ends with the test.
pub struct Room(pub PathBuf);

impl Room {
    /// A directory with a directory `in`, which a server reads.
    pub fn new(name: &str) -> Room {
        let room =
            std::env::temp_dir().canonicalize().unwrap().join(format!("weir-test-mcp-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&room);
        fs::create_dir_all(room.join("in")).unwrap();
        Room(room)
    }

    /// Writes a file into `in`; returns its path.
    pub fn put(&self, name: &str, text: &str) -> String {
        let path = self.0.join("in").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server with its client.
pub struct Server {
    /// Its process.
    pub child: Child,
    /// Its standard input; `None`: it is closed.
    pub input: Option<ChildStdin>,
    /// The messages that it wrote.
    pub lines: Receiver<Value>,
    mark: String,
    id: u64,
}

impl Server {
    /// A server over the directory `in`.
    pub fn start(room: &Room, flags: &[&str]) -> Server {
        Server::start_by(room, &[WEIR], flags)
    }

    /// The same, with other words before its own, such as those of a program that starts it.
    pub fn start_by(room: &Room, by: &[&str], flags: &[&str]) -> Server {
        let mark = format!("WEIR_TEST_MCP={}", room.0.display());
        let mut child = Command::new(by[0])
            .args(&by[1..])
            .args(["mcp", "--dir"])
            .arg(room.0.join("in"))
            .args(flags)
            .env("WEIR_TEST_MCP", &room.0)
            .env("WEIR_LANG", "en")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (tell, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines() {
                let line = line.unwrap();
                tell.send(serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"))).ok();
            }
        });
        let input = child.stdin.take();
        Server { child, input, lines, mark, id: 0 }
    }

    /// Writes a line.
    pub fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
        input.flush().unwrap();
    }

    /// The next message.
    pub fn next(&self) -> Value {
        self.lines.recv_timeout(PATIENCE).expect("an answer")
    }

    /// Sends a request; returns its id.
    pub fn send(&mut self, method: &str, mut params: Value, is_modern: bool) -> u64 {
        self.id += 1;
        if is_modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        self.write(&json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}).to_string());
        self.id
    }

    /// The answer to a request.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params, true);
        loop {
            let message = self.next();
            if message["id"] == id {
                return message;
            }
        }
    }

    /// The structured answer of a tool. The text form and the flag of an error go with it.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let message = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &message["result"];
        let answer = result["structuredContent"].clone();
        assert_eq!((answer["version"].as_u64(), answer["tool"].as_str()), (Some(1), Some(tool)), "{message}");
        let is_error = matches!(answer["verdict"]["name"].as_str(), Some("refused" | "failed"));
        assert_eq!(result["isError"], is_error, "{message}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with(&format!("{}: ", answer["verdict"]["name"].as_str().unwrap())), "{text}");
        answer
    }

    /// The name of the verdict of a call.
    pub fn name(&mut self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments)["verdict"]["name"].as_str().unwrap().to_owned()
    }

    /// The name of the refusal of a call.
    pub fn refusal(&mut self, tool: &str, arguments: Value) -> String {
        let answer = self.call(tool, arguments);
        assert!(answer["refusal"]["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty()), "{answer}");
        answer["refusal"]["name"].as_str().unwrap().to_owned()
    }

    /// Processes that the server and its children started, and that run.
    pub fn others(&self) -> Vec<u32> {
        let is_ours = |pid: &u32| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            *pid != self.child.id() && environ.split(|byte| *byte == 0).any(|one| one == self.mark.as_bytes())
        };
        let all = fs::read_dir("/proc").unwrap().flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_ours).collect()
    }

    /// The directories with private copies of files, in the server's own directory.
    pub fn copies(&self) -> Vec<PathBuf> {
        let own = format!("weir-mcp-{}-", self.child.id());
        let all = |dir: &Path| fs::read_dir(dir).unwrap().flatten().map(|entry| entry.path()).collect::<Vec<_>>();
        let begins = |path: &Path, name: &str| path.file_name().unwrap().to_string_lossy().starts_with(name);
        let rooms = all(&std::env::temp_dir()).into_iter().filter(|path| begins(path, &own));
        rooms.flat_map(|room| all(&room)).filter(|path| begins(path, "copies-")).collect()
    }

    /// Waits until the processes of the server are so.
    pub fn until(&self, what: &str, is: impl Fn(&[u32]) -> bool) {
        let end = Instant::now() + PATIENCE;
        loop {
            let others = self.others();
            if is(&others) {
                return;
            }
            assert!(Instant::now() < end, "{what}: {others:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.input = None;
        let end = Instant::now() + PATIENCE;
        while self.child.try_wait().unwrap().is_none() {
            if Instant::now() > end {
                self.child.kill().unwrap();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
