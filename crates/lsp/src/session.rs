//! The state of one client: what it can, what it wishes, what it has open, and which diagnostics it has.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use weir_net::Instant;

use serde_json::{Value, json};
use weir_net::clock;
use weir_words::{Language, Said, say};

use crate::actions;
use crate::answer::{EditorAnswers, read_position};
use crate::check::{self, CheckedConfig};
use crate::client::ClientAbilities;
use crate::config::{Config, Home, LoadFrom};
use crate::document::{Document, TextChange};
use crate::publish::Published;
use crate::rpc::{self, RpcError};
use crate::settings::{LspWish, Settings};
use crate::texts;
use crate::uri;
use crate::workspace::Workspace;

/// How long after the last change weir waits before it makes diagnostics: a user who types gets none for half a word.
pub const PAUSE: Duration = Duration::from_millis(150);

/// How long a loaded configuration counts if no document has changed: files of the disk may have.
const FRESH: Duration = Duration::from_secs(2);

/// How often weir asks again for the configuration of a document: a load shows that a main file does not read it any more.
const ROUNDS_MAX: usize = 4;

/// Most configurations that are kept loaded.
const CONFIGS_MAX: usize = 8;

/// The id of the request that names the files to watch.
const WATCH_ID: &str = "weir-watch";

/// The files whose changes matter. Files of `sites-enabled` have no ending.
const WATCHED: [&str; 4] = ["**/*.conf", "**/*.template", "**/*{mime.types,_params}", "**/{sites-*,snippets,*.d}/*"];

/// Where the session sends messages, and how it learns of newer ones.
pub trait Outside {
    /// Sends a message to the client.
    fn send(&self, message: &Value);

    /// The number of changes of documents that came so far.
    fn changes(&self) -> u64;
}

/// How far the session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionPhase {
    /// Before `initialize`.
    New,
    /// It answers.
    Open,
    /// After `shutdown`.
    Closing,
}

/// A configuration that is kept loaded.
struct Kept {
    config: Rc<Config>,
    checked: Option<Rc<CheckedConfig>>,
    version: u64,
    since: Instant,
}

/// The state of one client.
pub struct LspSession {
    /// How far it is.
    pub phase: SessionPhase,
    /// The abilities of the client.
    pub client: ClientAbilities,
    /// The wishes of the user.
    pub settings: Settings,
    /// The documents and the files.
    pub workspace: Workspace,
    /// When diagnostics are due; `None` if nothing has changed.
    pub due: Option<Instant>,
    /// The language of the environment.
    language: Language,
    folders: Vec<String>,
    kept: BTreeMap<Home, Kept>,
    published: Published,
    /// The documents that changed since the last diagnostics.
    dirty: BTreeSet<String>,
}

/// A document with its configuration.
pub struct OpenedDocument {
    /// The configuration.
    pub config: Rc<Config>,
    /// The number of the document among its files.
    pub file: u32,
}

impl LspSession {
    /// A session before its first message.
    pub fn new(wish: LspWish) -> LspSession {
        weir_doctor::weirs::give(&weir_edge::family::ALL.known, weir_edge::load::refused);
        LspSession {
            phase: SessionPhase::New,
            client: ClientAbilities::default(),
            language: wish.language,
            settings: Settings::of(wish),
            workspace: Workspace::default(),
            due: None,
            folders: Vec::new(),
            kept: BTreeMap::new(),
            published: Published::default(),
            dirty: BTreeSet::new(),
        }
    }

    /// The answer of `initialize`.
    pub fn initialize(&mut self, params: &Value, outside: &dyn Outside) -> Value {
        self.phase = SessionPhase::Open;
        self.client = ClientAbilities::of(params);
        self.workspace.is_told = self.client.watches_files;
        self.settings.wish.language = self.auto_language();
        self.take_settings(&params["initializationOptions"], outside);
        let named = |folder: &Value| folder["uri"].as_str().map(uri::path_of);
        let folders = params["workspaceFolders"].as_array().into_iter().flatten().filter_map(named);
        self.folders = folders.collect();
        if self.folders.is_empty() {
            let old = params["rootUri"].as_str().map(uri::path_of);
            self.folders.extend(old.or_else(|| params["rootPath"].as_str().map(str::to_owned)));
        }
        self.workspace.set_folders(&self.folders, &self.settings.wish);
        json!({
            "capabilities": self.abilities(),
            "serverInfo": { "name": "weir lsp", "version": env!("CARGO_PKG_VERSION") },
        })
    }

    fn abilities(&self) -> Value {
        json!({
            "positionEncoding": self.client.encoding(),
            "textDocumentSync": { "openClose": true, "change": 2, "save": { "includeText": false } },
            "hoverProvider": true,
            "completionProvider": { "triggerCharacters": ["$", "@", "/", "=", " "], "resolveProvider": false },
            "definitionProvider": true,
            "referencesProvider": true,
            "documentHighlightProvider": true,
            "renameProvider": { "prepareProvider": true },
            "documentSymbolProvider": true,
            "foldingRangeProvider": true,
            "documentFormattingProvider": true,
            "codeActionProvider": { "codeActionKinds": actions::KINDS, "resolveProvider": true },
            "workspace": { "workspaceFolders": { "supported": true, "changeNotifications": true } },
        })
    }

    /// The language for the setting `auto`: that of the client, else that of the environment.
    fn auto_language(&self) -> Language {
        self.client.language.unwrap_or(self.language)
    }

    /// Takes settings, and tells the user about values that are not valid.
    fn take_settings(&mut self, settings: &Value, outside: &dyn Outside) {
        let own = if settings["weir"].is_object() { &settings["weir"] } else { settings };
        for refused in self.settings.take(own, self.auto_language()) {
            self.warn(&refused, outside);
        }
    }

    fn warn(&self, text: &Said, outside: &dyn Outside) {
        let params = json!({ "type": 2, "message": text.say(self.settings.wish.language) });
        outside.send(&rpc::notification("window/showMessage", params));
    }

    /// Acts on a notification. Unknown ones are ignored, as the protocol says.
    ///
    /// # Errors
    /// The parameters have another form; the caller writes a line about it.
    pub fn notify(&mut self, method: &str, params: &Value, outside: &dyn Outside) -> Result<(), RpcError> {
        let document = &params["textDocument"];
        let uri = document["uri"].as_str();
        match method {
            "initialized" => self.watch(outside),
            "textDocument/didOpen" => {
                let uri = uri.ok_or_else(|| RpcError::lacks("uri"))?;
                let text = document["text"].as_str().ok_or_else(|| RpcError::lacks("text"))?;
                let version = document["version"].as_i64().unwrap_or(0);
                self.workspace.open(uri, &uri::path_of(uri), version, text.to_owned());
                self.mark(uri);
            }
            "textDocument/didChange" => {
                let uri = uri.ok_or_else(|| RpcError::lacks("uri"))?;
                let version = document["version"].as_i64().unwrap_or(0);
                let changes = changes(&params["contentChanges"])?;
                let unit = self.client.unit;
                if !self.workspace.change(uri, version, changes, unit) {
                    let what = say!(texts::NOT_OPEN, uri);
                    return Err(RpcError::new(RpcError::INVALID_PARAMS, what.say(self.settings.wish.language)));
                }
                self.mark(uri);
            }
            "textDocument/didClose" => {
                let uri = uri.ok_or_else(|| RpcError::lacks("uri"))?;
                self.workspace.close(uri);
                self.mark_all();
                self.forget(outside);
            }
            "workspace/didChangeWatchedFiles" => {
                // The text of an open document counts, whatever is on the disk.
                let is_open = |change: &Value| {
                    let is_changed = change["type"].as_u64() == Some(2);
                    is_changed && change["uri"].as_str().is_some_and(|uri| self.workspace.document(uri).is_some())
                };
                let changes = params["changes"].as_array().map(Vec::as_slice).unwrap_or_default();
                if changes.is_empty() || !changes.iter().all(is_open) {
                    self.workspace.touch();
                    self.mark_all();
                }
            }
            "workspace/didChangeConfiguration" => {
                self.take_settings(&params["settings"], outside);
                self.workspace.set_folders(&self.folders, &self.settings.wish);
                self.mark_all();
            }
            "workspace/didChangeWorkspaceFolders" => {
                let of = |list: &Value| -> Vec<String> {
                    let list = list.as_array().into_iter().flatten();
                    list.filter_map(|folder| folder["uri"].as_str().map(uri::path_of)).collect()
                };
                let removed = of(&params["event"]["removed"]);
                self.folders.retain(|folder| !removed.contains(folder));
                self.folders.extend(of(&params["event"]["added"]));
                self.workspace.set_folders(&self.folders, &self.settings.wish);
                self.mark_all();
            }
            _ => {}
        }
        Ok(())
    }

    /// Asks the client to tell changes of files.
    fn watch(&self, outside: &dyn Outside) {
        if self.client.watches_files {
            let watchers: Vec<Value> = WATCHED.iter().map(|glob| json!({ "globPattern": glob })).collect();
            let registration = json!({
                "id": WATCH_ID,
                "method": "workspace/didChangeWatchedFiles",
                "registerOptions": { "watchers": watchers },
            });
            let params = json!({ "registrations": [registration] });
            outside.send(&rpc::request(WATCH_ID, "client/registerCapability", params));
        }
    }

    /// Notes a change of a document.
    fn mark(&mut self, uri: &str) {
        self.dirty.insert(uri.to_owned());
        self.due = Some(clock::now() + PAUSE);
    }

    fn mark_all(&mut self) {
        self.dirty.extend(self.workspace.documents().map(|document| document.uri.clone()));
        self.due = Some(clock::now() + PAUSE);
    }

    /// The configuration of an open document, and the document's number in it.
    ///
    /// # Errors
    /// The document is not open, or weir does not read it.
    pub fn opened(&mut self, uri: &str) -> Result<OpenedDocument, RpcError> {
        let language = self.settings.wish.language;
        let failed = |said: Said| RpcError::new(RpcError::REQUEST_FAILED, said.say(language));
        let document = self.workspace.document(uri).ok_or_else(|| failed(say!(texts::NOT_OPEN, uri)))?;
        if let Some(why) = &document.refusal {
            return Err(failed(why.clone()));
        }
        let real = std::fs::canonicalize(&document.path).ok();
        for _ in 0..ROUNDS_MAX {
            let home = self.home(uri).unwrap_or_else(|| Home::Part(uri.to_owned()));
            let config = self.config(&home);
            let document = self.workspace.document(uri);
            let file = document.and_then(|document| config.file_of(document, real.as_deref()));
            if let Some(file) = file {
                return Ok(OpenedDocument { config, file });
            }
            // Its main file does not read it any more, and the workspace knows now.
        }
        Err(failed(say!(texts::STALE)))
    }

    fn home(&mut self, uri: &str) -> Option<Home> {
        self.workspace.home(uri, clock::now(), &of_main)
    }

    /// A configuration as it is: kept, or loaded anew.
    fn config(&mut self, home: &Home) -> Rc<Config> {
        let (version, now) = (self.workspace.version(), clock::now());
        if let Some(kept) = self.kept.get(home)
            && kept.version == version
            && now.saturating_duration_since(kept.since) < FRESH
        {
            return kept.config.clone();
        }
        let config = Rc::new(self.load(home));
        self.workspace.remember(&config);
        if self.kept.len() >= CONFIGS_MAX {
            self.kept.clear();
        }
        self.kept.insert(home.clone(), Kept { config: config.clone(), checked: None, version, since: now });
        config
    }

    fn load(&self, home: &Home) -> Config {
        let workspace = &self.workspace;
        match home {
            Home::Main(main) => of_main(workspace, main),
            Home::Part(uri) => match workspace.document(uri) {
                Some(document) => {
                    let folders = workspace.folders_for(document);
                    let from = LoadFrom { documents: workspace, folders: &folders, root: workspace.root() };
                    Config::of_part(&from, document, &workspace.prefix_of(document, &self.settings.wish))
                }
                None => of_main(workspace, uri),
            },
        }
    }

    /// The diagnostics of a configuration. `None` if `is_stale` says that nobody wants them any more.
    pub fn checked(&mut self, config: &Rc<Config>, is_stale: &dyn Fn() -> bool) -> Option<Rc<CheckedConfig>> {
        let kept = self.kept.get(&config.home).filter(|kept| Rc::ptr_eq(&kept.config, config));
        if let Some(checked) = kept.and_then(|kept| kept.checked.clone()) {
            return Some(checked);
        }
        let checked = Rc::new(check::check(config, &self.settings.wish, is_stale)?);
        if let Some(kept) = self.kept.get_mut(&config.home)
            && Rc::ptr_eq(&kept.config, config)
        {
            kept.checked = Some(checked.clone());
        }
        Some(checked)
    }

    /// Makes the diagnostics that are due, and sends them. If a document changes meanwhile, they stay due.
    pub fn diagnose(&mut self, outside: &dyn Outside) {
        let seen = outside.changes();
        let is_stale = || outside.changes() != seen;
        let dirty = std::mem::take(&mut self.dirty);
        self.due = None;
        let mut done = BTreeSet::new();
        for _ in 0..ROUNDS_MAX {
            let mut homes = self.homes_of(&dirty);
            homes.retain(|home| !done.contains(home));
            if homes.is_empty() || !self.tell(&homes, outside, &is_stale) {
                break;
            }
            // A load may show that a document belongs to another configuration.
            done.extend(homes);
        }
        if is_stale() {
            self.dirty.extend(dirty);
            self.due = Some(clock::now() + PAUSE);
            return;
        }
        self.forget(outside);
    }

    /// Makes and sends the diagnostics of these configurations; false if a document changed meanwhile.
    fn tell(&mut self, homes: &BTreeSet<Home>, outside: &dyn Outside, is_stale: &dyn Fn() -> bool) -> bool {
        for home in homes {
            let config = self.config(home);
            let checked = if is_stale() { None } else { self.checked(&config, is_stale) };
            let Some(checked) = checked.filter(|_| !is_stale()) else { return false };
            let answers = EditorAnswers { config: &config, workspace: &self.workspace, client: &self.client };
            let (language, least) = (self.settings.wish.language, self.settings.least);
            let messages = self.published.put(&answers, &checked, language, least);
            messages.iter().for_each(|message| outside.send(message));
        }
        true
    }

    /// The configurations that these documents are in: each document's own one, and those of open documents that read it.
    fn homes_of(&mut self, dirty: &BTreeSet<String>) -> BTreeSet<Home> {
        let mut homes = BTreeSet::new();
        let open: Vec<String> = self.workspace.documents().map(|document| document.uri.clone()).collect();
        for uri in open {
            let Some(home) = self.home(&uri) else { continue };
            let reads = match &home {
                Home::Main(main) => {
                    let changed = dirty.iter().filter_map(|uri| self.workspace.document(uri));
                    changed.into_iter().any(|document| self.workspace.is_read_by(main, document))
                }
                Home::Part(_) => false,
            };
            if reads || dirty.contains(&uri) {
                homes.insert(home);
            }
        }
        homes
    }

    /// Takes the diagnostics back that no open document has any more.
    fn forget(&mut self, outside: &dyn Outside) {
        let open: Vec<String> = self.workspace.documents().map(|document| document.uri.clone()).collect();
        let homes: BTreeSet<Home> = open.iter().filter_map(|uri| self.home(uri)).collect();
        self.kept.retain(|home, _| homes.contains(home));
        let messages = self.published.keep(&homes, &self.workspace);
        messages.iter().for_each(|message| outside.send(message));
    }
}

/// The configuration of a main file.
fn of_main(workspace: &Workspace, main: &str) -> Config {
    let open = workspace.open_at(main, None);
    let made;
    let document = match open {
        Some(document) => document,
        None => {
            made = Document::new(uri::of_path(main), main.to_owned(), 0, String::new());
            &made
        }
    };
    let folders = workspace.folders_for(document);
    let from = LoadFrom { documents: workspace, folders: &folders, root: workspace.root() };
    Config::of_main(&from, main)
}

/// Reads the changes of a message.
fn changes(list: &Value) -> Result<Vec<TextChange>, RpcError> {
    let one = |change: &Value| {
        let text = change["text"].as_str()?.to_owned();
        let range = match &change["range"] {
            Value::Null => None,
            range => Some((read_position(&range["start"])?, read_position(&range["end"])?)),
        };
        Some(TextChange { range, text })
    };
    let list = list.as_array().ok_or_else(|| RpcError::lacks("contentChanges"))?;
    let changes: Option<Vec<TextChange>> = list.iter().map(one).collect();
    changes.ok_or_else(|| RpcError::lacks("contentChanges"))
}
