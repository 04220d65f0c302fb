//! The JSON of answers: places, edits, and what the features found.

use serde_json::{Value, json};
use weir_conf::edit::Edit;
use weir_conf::{LineTable, Span, TextPosition};

use crate::client::ClientAbilities;
use crate::complete::{Completion, CompletionKind};
use crate::config::{Config, LoadFrom};
use crate::document::Document;
use crate::files::BesideFile;
use crate::hover;
use crate::outline::{Fold, Symbol, SymbolKind};
use crate::place::FilePlace;
use crate::uri;
use crate::workspace::Workspace;

/// Most places of one answer.
pub const PLACES_MAX: usize = 10_000;

/// Most completions of one answer; the client asks again when the user types on.
pub const COMPLETIONS_MAX: usize = 1_000;

/// Most symbols of one answer.
pub const SYMBOLS_MAX: usize = 20_000;

/// A configuration as the client sees it.
pub struct EditorAnswers<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The open documents.
    pub workspace: &'a Workspace,
    /// The abilities of the client.
    pub client: &'a ClientAbilities,
}

impl EditorAnswers<'_> {
    /// The open document of a file.
    pub fn document(&self, file: u32) -> Option<&Document> {
        let name = &self.config.tree.files.get(file as usize)?.name;
        self.workspace.open_at(name, self.config.real(name))
    }

    /// The entries of a directory that an `include` of an open document names.
    pub fn beside(&self, file: u32, directory: &str) -> Vec<BesideFile> {
        let Some(document) = self.document(file) else { return Vec::new() };
        let folders = self.workspace.folders_for(document);
        let from = LoadFrom { documents: self.workspace, folders: &folders, root: self.workspace.root() };
        from.beside(self.config, directory)
    }

    /// The URI of a file: that of its document, if it is open.
    pub fn uri(&self, file: u32) -> String {
        let name = || self.config.tree.files.get(file as usize).map_or("", |source| source.name.as_str());
        self.document(file).map_or_else(|| uri::of_path(self.path_on_disk(name())), |document| document.uri.clone())
    }

    /// The path by which the client finds a file: a file of `--root` is below it.
    fn path_on_disk<'n>(&'n self, name: &'n str) -> &'n str {
        let real = self.config.real(name).and_then(|real| real.to_str());
        if self.workspace.names_inside(name) { name } else { real.unwrap_or(name) }
    }

    /// The range of some bytes.
    pub fn range(&self, file: u32, span: Span) -> Value {
        let (bytes, lines) = (self.config.bytes(file), self.config.lines(file));
        let at = |offset: u32| position(lines.position(bytes, offset, self.client.unit));
        json!({ "start": at(span.start), "end": at(span.end.max(span.start)) })
    }

    /// A place.
    pub fn location(&self, place: FilePlace) -> Value {
        json!({ "uri": self.uri(place.file), "range": self.range(place.file, place.span) })
    }

    /// Places of the workspace.
    pub fn locations(&self, places: &[FilePlace]) -> Value {
        let real = places.iter().filter(|place| self.config.is_real(place.file));
        real.take(PLACES_MAX).map(|place| self.location(*place)).collect()
    }

    /// Edits over files, with the versions of open documents if the client takes them.
    pub fn workspace_edit(&self, edits: &[Edit]) -> Value {
        let mut files: Vec<u32> =
            edits.iter().map(|edit| edit.file).filter(|file| self.config.is_real(*file)).collect();
        files.sort_unstable();
        files.dedup();
        let of_file = |file: u32| -> Value {
            let own = edits.iter().filter(|edit| edit.file == file).take(PLACES_MAX);
            own.map(|edit| self.text_edit(edit)).collect()
        };
        if self.client.has_document_changes {
            let changes = files.iter().map(|file| {
                let version = self.document(*file).map(|document| document.version);
                json!({ "textDocument": { "uri": self.uri(*file), "version": version }, "edits": of_file(*file) })
            });
            return json!({ "documentChanges": changes.collect::<Value>() });
        }
        let changes = files.iter().map(|file| (self.uri(*file), of_file(*file)));
        json!({ "changes": changes.collect::<serde_json::Map<_, _>>() })
    }

    /// One edit.
    pub fn text_edit(&self, edit: &Edit) -> Value {
        json!({ "range": self.range(edit.file, edit.span), "newText": String::from_utf8_lossy(&edit.with) })
    }

    /// The list of completions.
    pub fn completions(&self, file: u32, found: &[Completion]) -> Value {
        let one = |(number, one): (usize, &Completion)| {
            let is_snippet = one.is_snippet && self.client.takes_snippets;
            let insert = if one.is_snippet && !is_snippet { &one.label } else { &one.insert };
            let mut item = json!({
                "label": one.label,
                "kind": completion_number(one.kind),
                // The order is that of the feature, not that of the alphabet.
                "sortText": format!("{number:05}"),
                "filterText": one.label,
                "insertTextFormat": if is_snippet { 2 } else { 1 },
                "textEdit": { "range": self.range(file, one.replaces), "newText": insert },
            });
            if !one.detail.is_empty() {
                item["detail"] = one.detail.as_str().into();
            }
            if !one.doc.is_empty() {
                item["documentation"] = match self.client.takes_markdown {
                    true => json!({ "kind": "markdown", "value": one.doc }),
                    false => json!(hover::plain(&one.doc)),
                };
            }
            item
        };
        let items: Value = found.iter().enumerate().take(COMPLETIONS_MAX).map(one).collect();
        json!({ "isIncomplete": found.len() > COMPLETIONS_MAX, "items": items })
    }

    /// The symbols of a file: as a tree, or as a list for a client that knows no tree.
    pub fn symbols(&self, file: u32, symbols: &[Symbol]) -> Value {
        let mut left = SYMBOLS_MAX;
        if self.client.nests_symbols {
            return self.nested(file, symbols, &mut left);
        }
        let mut list = Vec::new();
        self.listed(file, symbols, "", &mut list);
        list.into()
    }

    fn nested(&self, file: u32, symbols: &[Symbol], left: &mut usize) -> Value {
        let mut all = Vec::new();
        for symbol in symbols {
            if *left == 0 {
                break;
            }
            *left -= 1;
            // The protocol refuses a symbol without a name.
            let name = if symbol.name.trim().is_empty() { "?" } else { &symbol.name };
            all.push(json!({
                "name": name,
                "detail": symbol.detail,
                "kind": symbol_number(symbol.kind),
                "range": self.range(file, symbol.whole),
                "selectionRange": self.range(file, symbol.head),
                "children": self.nested(file, &symbol.children, left),
            }));
        }
        all.into()
    }

    fn listed(&self, file: u32, symbols: &[Symbol], container: &str, list: &mut Vec<Value>) {
        for symbol in symbols {
            if list.len() >= SYMBOLS_MAX {
                return;
            }
            list.push(json!({
                "name": if symbol.name.trim().is_empty() { "?" } else { &symbol.name },
                "kind": symbol_number(symbol.kind),
                "containerName": container,
                "location": { "uri": self.uri(file), "range": self.range(file, symbol.whole) },
            }));
            self.listed(file, &symbol.children, &symbol.name, list);
        }
    }
}

/// The parts that can be folded.
pub fn folds(folds: &[Fold]) -> Value {
    let one = |fold: &Fold| {
        let kind = if fold.is_comment { "comment" } else { "region" };
        json!({ "startLine": fold.first_line, "endLine": fold.last_line, "kind": kind })
    };
    folds.iter().take(PLACES_MAX).map(one).collect()
}

/// A position as JSON.
pub fn position(at: TextPosition) -> Value {
    json!({ "line": at.line, "character": at.column })
}

/// Reads a position.
pub fn read_position(value: &Value) -> Option<TextPosition> {
    let number = |name: &str| Some(u32::try_from(value[name].as_u64()?).unwrap_or(u32::MAX));
    Some(TextPosition { line: number("line")?, column: number("character")? })
}

/// Reads a range as bytes of a document.
pub fn read_span(value: &Value, bytes: &[u8], lines: &LineTable, client: &ClientAbilities) -> Option<Span> {
    let at = |name: &str| Some(lines.offset(bytes, read_position(&value[name])?, client.unit));
    let (start, end) = (at("start")?, at("end")?);
    Some(Span { start, end: end.max(start) })
}

/// The protocol's number of a kind of completion.
fn completion_number(kind: CompletionKind) -> u32 {
    match kind {
        CompletionKind::Directive => 10,
        CompletionKind::Block => 9,
        CompletionKind::Word => 12,
        CompletionKind::Parameter => 5,
        CompletionKind::Variable => 6,
        CompletionKind::Name => 18,
        CompletionKind::File => 17,
        CompletionKind::Folder => 19,
    }
}

/// The protocol's number of a kind of symbol.
fn symbol_number(kind: SymbolKind) -> u32 {
    match kind {
        SymbolKind::Module => 2,
        SymbolKind::Server => 5,
        SymbolKind::Location => 6,
        SymbolKind::Upstream => 19,
        SymbolKind::Peer => 8,
        SymbolKind::Variable => 13,
        SymbolKind::Condition => 24,
        SymbolKind::Definition => 14,
        SymbolKind::Block => 3,
    }
}
