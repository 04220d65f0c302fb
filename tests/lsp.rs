//! `weir lsp` from outside: its messages in bytes, its end, requests that are cancelled, and what it touches.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/needs.rs"]
mod needs;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

use needs::{Need, cases};
use serde_json::{Value, json};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

fn main() -> ExitCode {
    needs::run(cases![
        [] => an_editor_gets_diagnostics_and_the_server_ends, the_server_ends_with_its_client, wrong_messages_get_their_errors,
            a_cancelled_request_ends, wrong_flags_are_refused, an_editor_in_korean, a_message_that_is_too_large_is_skipped;
        [Need::Program("strace")] => it_opens_no_socket_and_starts_no_process;
    ])
}

/// A folder; it goes with the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Folder {
        let folder = std::env::temp_dir().join(format!("weir-test-lsp-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Folder(folder)
    }

    fn uri(&self, name: &str) -> String {
        format!("file://{}", self.0.join(name).display()).trim_end_matches('/').to_owned()
    }
}

/// A running server, and its client's end of the pipes.
struct Server {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    fn start(words: &[&str]) -> Server {
        Server::of(Command::new(WEIR).arg("lsp").args(words))
    }

    fn of(command: &mut Command) -> Server {
        let command = command.env("WEIR_LANG", "en").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let (input, output) = (process.stdin.take(), process.stdout.take().unwrap());
        Server { process, input, output: BufReader::new(output), next: 0 }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        self.bytes(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request; returns its id.
    fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }));
        self.next
    }

    fn read(&mut self) -> Option<Value> {
        let mut length = None;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("Content-Length", value)) => length = value.parse().ok(),
                _ => break,
            }
        }
        let mut body = vec![0; length.unwrap()];
        self.output.read_exact(&mut body).unwrap();
        Some(serde_json::from_slice(&body).unwrap())
    }

    /// The first message for which this holds.
    fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.read().expect("the server still writes");
            if is_it(&message) {
                return message;
            }
        }
    }

    fn answer(&mut self, id: u64) -> Value {
        self.until(|message| message["id"] == id)
    }

    fn initialize(&mut self, folder: &Folder) -> Value {
        let params = json!({ "capabilities": {}, "workspaceFolders": [{ "uri": folder.uri(""), "name": "w" }] });
        let id = self.ask("initialize", params);
        let answer = self.answer(id);
        self.notify("initialized", json!({}));
        answer
    }

    fn open(&mut self, folder: &Folder, name: &str) {
        let text = fs::read_to_string(folder.0.join(name)).unwrap();
        let document = json!({ "uri": folder.uri(name), "languageId": "nginx", "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document }));
    }

    fn diagnostics(&mut self) -> Vec<Value> {
        let message = self.until(|message| message["method"] == "textDocument/publishDiagnostics");
        message["params"]["diagnostics"].as_array().unwrap().clone()
    }

    fn code(mut self) -> Option<i32> {
        self.input = None;
        self.process.wait().unwrap().code()
    }
}

const BROKEN: &str = "events { }\nhttp {\n    server { lsiten 80; }\n}\n";

fn an_editor_gets_diagnostics_and_the_server_ends() {
    let folder = Folder::new("plain", &[("nginx.conf", BROKEN)]);
    let mut server = Server::start(&["--stdio", "--target", "weir"]);
    let answer = server.initialize(&folder);
    assert_eq!(answer["result"]["capabilities"]["positionEncoding"], "utf-16");
    server.open(&folder, "nginx.conf");
    let told = server.diagnostics();
    assert_eq!(told[0]["message"], "unknown directive \"lsiten\"\ndid you mean \"listen\"?");
    assert_eq!(told[0]["range"]["start"], json!({ "line": 2, "character": 13 }));
    let id = server.ask("shutdown", Value::Null);
    assert_eq!(server.answer(id)["result"], Value::Null);
    server.notify("exit", Value::Null);
    assert_eq!(server.code(), Some(0));
}

fn the_server_ends_with_its_client() {
    let folder = Folder::new("ends", &[("nginx.conf", BROKEN)]);
    let mut server = Server::start(&[]);
    server.initialize(&folder);
    assert_eq!(server.code(), Some(0), "the input ended");
    let mut server = Server::start(&[]);
    server.notify("exit", Value::Null);
    assert_eq!(server.code(), Some(1), "exit without shutdown");
    let mut server = Server::start(&[]);
    server.bytes(b"Content-Length: 100\r\n\r\n{");
    assert_eq!(server.code(), Some(0), "the input ended within a message");
}

fn wrong_messages_get_their_errors() {
    let folder = Folder::new("wrong", &[("nginx.conf", BROKEN)]);
    let mut server = Server::start(&[]);
    let id = server.ask("textDocument/hover", json!({}));
    assert_eq!(server.answer(id)["error"]["code"], -32002, "before initialize");
    server.bytes(b"Content-Length: 3\r\n\r\n{x}");
    assert_eq!(server.read().unwrap()["error"]["code"], -32700);
    server.bytes(b"Content-Length: 2\r\n\r\n[]");
    assert_eq!(server.read().unwrap()["error"]["code"], -32600);
    server.bytes(b"Content-Type: x\r\n\r\n");
    assert_eq!(server.read().unwrap()["error"]["code"], -32700);
    server.notify("no/such/notification", json!(3));
    server.initialize(&folder);
    let id = server.ask("no/such/request", json!({}));
    let error = server.answer(id)["error"].clone();
    assert_eq!(error, json!({ "code": -32601, "message": "weir lsp has no method no/such/request" }));
    assert_eq!(server.code(), Some(0));
}

fn a_message_that_is_too_large_is_skipped() {
    let mut server = Server::start(&[]);
    server.bytes(format!("Content-Length: {}\r\n\r\n", 20 << 20).as_bytes());
    for _ in 0..20 {
        server.bytes(&vec![b'x'; 1 << 20]);
    }
    let error = server.read().unwrap()["error"].clone();
    assert_eq!(error["message"], "a message of 20971520 bytes is too large: weir lsp reads 16777216");
    let id = server.ask("shutdown", Value::Null);
    assert_eq!(server.answer(id)["error"]["code"], -32002);
}

/// The answer comes at once, even if the work goes on: nothing of the file's size is in it.
fn a_cancelled_request_ends() {
    let many = "    server { listen 80; location / { proxy_pass http://a; } }\n".repeat(3_000);
    let folder = Folder::new("cancel", &[("nginx.conf", &format!("events {{ }}\nhttp {{\n{many}}}\n"))]);
    let mut server = Server::start(&["--target", "nginx 1.22.1"]);
    server.initialize(&folder);
    server.open(&folder, "nginx.conf");
    let document = json!({ "uri": folder.uri("nginx.conf") });
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 9_999, "character": 0 } });
    let params =
        json!({ "textDocument": document, "range": range, "context": { "diagnostics": [], "only": ["source"] } });
    let id = server.ask("textDocument/documentSymbol", json!({ "textDocument": document }));
    let other = server.ask("textDocument/codeAction", params);
    server.notify("$/cancelRequest", json!({ "id": other }));
    server.notify("$/cancelRequest", json!({ "id": 4711 }));
    let (mut symbols, mut cancelled) = (0, 0);
    while symbols + cancelled < 2 {
        let message = server.until(|message| message["id"] == id || message["id"] == other);
        match message["id"] == other {
            true => {
                // It may have been faster than the notification.
                assert!(message["error"]["code"] == -32800 || message["result"].is_array(), "{message}");
                cancelled += 1;
            }
            false => symbols += 1,
        }
    }
    let id = server.ask("shutdown", Value::Null);
    assert_eq!(server.answer(id)["result"], Value::Null, "each request had one answer, and the server goes on");
}

fn wrong_flags_are_refused() {
    let output = Command::new(WEIR).args(["lsp", "--target", "apache"]).env("WEIR_LANG", "en").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is neither auto nor weir nor nginx"), "{output:?}");
}

fn an_editor_in_korean() {
    let folder = Folder::new("korean", &[("nginx.conf", "events { multi_accept on; }\nhttp { }\n")]);
    let mut server = Server::start(&["--target", "nginx"]);
    let params = json!({ "capabilities": {}, "locale": "ko", "rootUri": folder.uri("") });
    let id = server.ask("initialize", params);
    server.answer(id);
    server.open(&folder, "nginx.conf");
    let told = server.diagnostics();
    let is_korean = |one: &Value| one["message"].as_str().unwrap().chars().any(|c| ('가'..='힣').contains(&c));
    assert!(!told.is_empty() && told.iter().all(is_korean), "{told:?}");
}

/// Each system call that could start a process, open a socket or write a file.
fn it_opens_no_socket_and_starts_no_process() {
    let conf = "events { }\nhttp {\n    include /etc/passwd;\n    server { listen 443 ssl; ssl_certificate /etc/hostname; ssl_certificate_key /etc/hostname; access_log logs/a; location / { proxy_pass http://no.such.host.invalid; } }\n}\n";
    let folder = Folder::new("strace", &[("nginx.conf", conf)]);
    let trace = folder.0.join("trace.txt");
    let calls = "trace=socket,connect,execve,execveat,openat,open,creat,unlink,rename,mkdir";
    let mut command = Command::new("strace");
    command.args(["-f", "-o"]).arg(&trace).args(["-e", calls, WEIR, "lsp", "--target", "weir"]);
    let mut server = Server::of(&mut command);
    server.initialize(&folder);
    server.open(&folder, "nginx.conf");
    assert!(!server.diagnostics().is_empty());
    let id = server.ask("shutdown", Value::Null);
    server.answer(id);
    server.notify("exit", Value::Null);
    assert_eq!(server.code(), Some(0));
    let text = fs::read_to_string(&trace).unwrap();
    let is_bad = |line: &&str| {
        let writes =
            ["O_WRONLY", "O_RDWR", "O_CREAT", "unlink", "rename", "mkdir"].iter().any(|word| line.contains(word));
        line.contains("socket(")
            || line.contains("connect(")
            || writes
            || line.contains("/etc/passwd")
            || line.contains("/etc/hostname")
    };
    let bad: Vec<&str> = text.lines().filter(is_bad).collect();
    assert_eq!(bad, [""; 0]);
    let started = text.lines().filter(|line| line.contains("execve")).count();
    assert_eq!(started, 1, "its own start: {text}");
}
