//! A client for tests: it plays messages against a session, without threads and without time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bad_input;
mod beside;
mod diagnostics;
mod fixes;
mod parts;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::rpc::RpcError;
use crate::session::{LspSession, Outside};
use crate::settings::{LspWish, TargetWish};
use crate::uri;

/// The client's side.
#[derive(Default)]
struct Side {
    sent: RefCell<Vec<Value>>,
    changes: Cell<u64>,
}

impl Outside for Side {
    fn send(&self, message: &Value) {
        self.sent.borrow_mut().push(message.clone());
    }

    fn changes(&self) -> u64 {
        self.changes.get()
    }
}

/// A client with a folder of its own, which goes with the test.
struct Trial {
    session: LspSession,
    side: Side,
    folder: PathBuf,
    version: i64,
}

impl Drop for Trial {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The abilities of a client such as that of VS Code.
fn abilities() -> Value {
    json!({
        "general": { "positionEncodings": ["utf-16"] },
        "workspace": { "workspaceEdit": { "documentChanges": true } },
        "textDocument": {
            "codeAction": {
                "codeActionLiteralSupport": { "codeActionKind": { "valueSet": [] } },
                "dataSupport": true,
                "resolveSupport": { "properties": ["edit"] }
            },
            "publishDiagnostics": { "relatedInformation": true, "tagSupport": { "valueSet": [1, 2] } },
            "documentSymbol": { "hierarchicalDocumentSymbolSupport": true }
        }
    })
}

impl Trial {
    /// A client whose folder has these files.
    fn of(files: &[(&str, &str)]) -> Trial {
        Trial::with(files, LspWish { target: TargetWish::Weir, ..LspWish::default() }, abilities())
    }

    fn with(files: &[(&str, &str)], wish: LspWish, abilities: Value) -> Trial {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("weir-lsp-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut trial = Trial { session: LspSession::new(wish), side: Side::default(), folder, version: 0 };
        for (name, text) in files {
            trial.file(name, text);
        }
        let root = trial.uri("");
        let params = json!({ "capabilities": abilities, "workspaceFolders": [{ "uri": root, "name": "w" }] });
        trial.request("initialize", params).unwrap();
        trial
    }

    /// Writes a file of the folder.
    fn file(&self, name: &str, text: &str) {
        let path = self.folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn uri(&self, name: &str) -> String {
        uri::of_path(self.path(name).trim_end_matches('/'))
    }

    fn request(&mut self, method: &str, params: Value) -> Result<Value, RpcError> {
        self.session.request(method, &params, &self.side, &|| false)
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.side.changes.set(self.side.changes.get() + 1);
        self.session.notify(method, &params, &self.side).unwrap();
    }

    /// Opens a file with its content on the disk.
    fn open(&mut self, name: &str) {
        let text = std::fs::read_to_string(self.folder.join(name)).unwrap();
        self.open_as(name, &text);
    }

    fn open_as(&mut self, name: &str, text: &str) {
        self.version += 1;
        let document = json!({ "uri": self.uri(name), "languageId": "nginx", "version": self.version, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document }));
    }

    fn change(&mut self, name: &str, text: &str) {
        self.version += 1;
        let document = json!({ "uri": self.uri(name), "version": self.version });
        self.notify(
            "textDocument/didChange",
            json!({ "textDocument": document, "contentChanges": [{ "text": text }] }),
        );
    }

    fn close(&mut self, name: &str) {
        let document = json!({ "uri": self.uri(name) });
        self.notify("textDocument/didClose", json!({ "textDocument": document }));
    }

    /// The diagnostics that were sent since the last call, by file; the newest list of each counts.
    fn told(&mut self) -> BTreeMap<String, Vec<Value>> {
        self.session.diagnose(&self.side);
        let mut told = BTreeMap::new();
        for message in self.side.sent.take() {
            if message["method"] == "textDocument/publishDiagnostics" {
                let path = uri::path_of(message["params"]["uri"].as_str().unwrap());
                let name =
                    Path::new(&path).strip_prefix(&self.folder).map_or(path.clone(), |name| name.display().to_string());
                told.insert(name, message["params"]["diagnostics"].as_array().unwrap().clone());
            }
        }
        told
    }

    /// The diagnostics of one file, a line each: `LINE:CHARACTER CODE MESSAGE`, with the first line of the message.
    fn lines(&mut self, name: &str) -> Vec<String> {
        self.told().remove(name).unwrap_or_default().iter().map(shown).collect()
    }

    /// The code actions for a whole file.
    fn actions(&mut self, name: &str) -> Vec<Value> {
        let end = json!({ "line": 100_000, "character": 0 });
        let range = json!({ "start": { "line": 0, "character": 0 }, "end": end });
        let document = json!({ "uri": self.uri(name) });
        let params = json!({ "textDocument": document, "range": range, "context": { "diagnostics": [] } });
        self.request("textDocument/codeAction", params).unwrap().as_array().unwrap().clone()
    }

    /// A file of the folder with the edits of an action.
    fn edited(&self, name: &str, edit: &Value) -> String {
        let text = match self.session.workspace.document(&self.uri(name)) {
            Some(document) => String::from_utf8(document.bytes.clone()).unwrap(),
            None => std::fs::read_to_string(self.folder.join(name)).unwrap(),
        };
        let lines = weir_conf::LineTable::of(text.as_bytes(), weir_conf::LineEnd::Any);
        let changes = edit["documentChanges"].as_array().unwrap();
        let own = changes.iter().filter(|change| change["textDocument"]["uri"] == self.uri(name));
        let mut edits: Vec<weir_conf::edit::Edit> = Vec::new();
        for edit in own.flat_map(|change| change["edits"].as_array().unwrap()) {
            let span = crate::answer::read_span(&edit["range"], text.as_bytes(), &lines, &self.session.client).unwrap();
            edits.push(weir_conf::edit::Edit { file: 0, span, with: edit["newText"].as_str().unwrap().into() });
        }
        let all: Vec<_> = edits.iter().collect();
        String::from_utf8(weir_conf::edit::apply(text.as_bytes(), &all).unwrap()).unwrap()
    }
}

/// A diagnostic as `LINE:CHARACTER CODE MESSAGE`, from 1.
fn shown(one: &Value) -> String {
    let start = &one["range"]["start"];
    let at = |name: &str| start[name].as_u64().unwrap() + 1;
    let message = one["message"].as_str().unwrap().lines().next().unwrap_or_default().to_owned();
    format!("{}:{} {} {message}", at("line"), at("character"), one["code"].as_str().unwrap_or_default())
}
