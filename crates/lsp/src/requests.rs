//! The answers of requests.

use serde_json::{Value, json};
use weir_words::{Said, say};

use crate::actions::Actions;
use crate::answer::{EditorAnswers, PLACES_MAX, folds, position, read_position, read_span};
use crate::changes;
use crate::document::Document;
use crate::look::Look;
use crate::rpc::RpcError;
use crate::session::{LspSession, OpenedDocument, Outside, SessionPhase};
use crate::{complete, find, hover, layout, outline, texts};

/// Most columns of one step of indentation.
const INDENT_MAX: u64 = 16;

/// A request about the word at an offset of a file.
struct WordRequest<'r> {
    look: &'r Look<'r>,
    answers: &'r EditorAnswers<'r>,
    file: u32,
    offset: u32,
    params: &'r Value,
}

/// The answer of such a request.
type WordAnswer = fn(&WordRequest<'_>) -> Result<Value, RpcError>;

/// The requests about the word at a position.
const ABOUT_WORD: [(&str, WordAnswer); 7] = [
    ("textDocument/hover", |asked| asked.hover()),
    ("textDocument/completion", |asked| asked.completion()),
    ("textDocument/definition", |asked| asked.definition()),
    ("textDocument/references", |asked| asked.references()),
    ("textDocument/documentHighlight", |asked| asked.highlights()),
    ("textDocument/prepareRename", |asked| asked.prepare_rename()),
    ("textDocument/rename", |asked| asked.rename()),
];

impl WordRequest<'_> {
    fn hover(&self) -> Result<Value, RpcError> {
        let Some(found) = hover::hover(self.look, self.file, self.offset) else { return Ok(Value::Null) };
        let contents = match self.answers.client.takes_markdown {
            true => json!({ "kind": "markdown", "value": found.markdown }),
            false => json!({ "kind": "plaintext", "value": hover::plain(&found.markdown) }),
        };
        Ok(json!({ "contents": contents, "range": self.answers.range(self.file, found.span) }))
    }

    fn completion(&self) -> Result<Value, RpcError> {
        let list = |directory: &str| self.answers.beside(self.file, directory);
        let found = complete::complete(self.look, self.file, self.offset, &list);
        Ok(self.answers.completions(self.file, &found))
    }

    fn definition(&self) -> Result<Value, RpcError> {
        Ok(self.answers.locations(&find::definitions(self.look, self.file, self.offset)))
    }

    fn references(&self) -> Result<Value, RpcError> {
        let with_definition = self.params["context"]["includeDeclaration"].as_bool() != Some(false);
        Ok(self.answers.locations(&find::references(self.look, self.file, self.offset, with_definition)))
    }

    fn highlights(&self) -> Result<Value, RpcError> {
        let all = find::references(self.look, self.file, self.offset, true);
        let own = all.iter().filter(|place| place.file == self.file).take(PLACES_MAX);
        Ok(own.map(|place| json!({ "range": self.answers.range(self.file, place.span) })).collect())
    }

    fn prepare_rename(&self) -> Result<Value, RpcError> {
        let found = find::prepare_rename(self.look, self.file, self.offset);
        let place = found.map_err(|why| self.refused(&why))?;
        Ok(self.answers.range(place.file, place.span))
    }

    fn rename(&self) -> Result<Value, RpcError> {
        let new = self.params["newName"].as_str().ok_or_else(|| RpcError::lacks("newName"))?;
        let edits = find::rename(self.look, self.file, self.offset, new).map_err(|why| self.refused(&why))?;
        Ok(self.answers.workspace_edit(&edits))
    }

    fn refused(&self, why: &Said) -> RpcError {
        RpcError::new(RpcError::REQUEST_FAILED, why.say(self.look.language))
    }
}

impl LspSession {
    /// The answer of a request. `is_stopped` says that the client does not wait any more.
    ///
    /// # Errors
    /// The error for the client.
    pub fn request(
        &mut self,
        method: &str,
        params: &Value,
        outside: &dyn Outside,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Value, RpcError> {
        if let Some(answer) = self.about_session(method, params, outside)? {
            return Ok(answer);
        }
        if let Some((_, answer)) = ABOUT_WORD.iter().find(|(name, _)| *name == method) {
            return self.about_word(params, *answer);
        }
        match method {
            "textDocument/documentSymbol" => {
                let OpenedDocument { config, file } = self.opened(uri(params)?)?;
                let answers = EditorAnswers { config: &config, workspace: &self.workspace, client: &self.client };
                Ok(answers.symbols(file, &outline::symbols(&config.tree, file)))
            }
            "textDocument/foldingRange" => {
                let document = self.document(params)?;
                Ok(folds(&outline::folds(&document.bytes, &document.lines)))
            }
            "textDocument/formatting" => self.formatting(params),
            "textDocument/codeAction" => self.code_action(params, is_stopped),
            "codeAction/resolve" => self.resolve(params, is_stopped),
            _ => {
                let text = say!(texts::NO_METHOD, method);
                Err(RpcError::new(RpcError::METHOD_NOT_FOUND, text.say(self.settings.wish.language)))
            }
        }
    }

    /// The answer of a request that begins or ends the session. `None` for other requests of an open session.
    ///
    /// # Errors
    /// The session is not open, or was opened before.
    fn about_session(
        &mut self,
        method: &str,
        params: &Value,
        outside: &dyn Outside,
    ) -> Result<Option<Value>, RpcError> {
        let language = self.settings.wish.language;
        let refused = |code, text: weir_words::Text| Err(RpcError::new(code, say!(text).say(language)));
        match (self.phase, method) {
            (SessionPhase::New, "initialize") => Ok(Some(self.initialize(params, outside))),
            (SessionPhase::New, _) => refused(RpcError::NOT_INITIALIZED, texts::NOT_INITIALIZED),
            (SessionPhase::Closing, _) => refused(RpcError::INVALID_REQUEST, texts::SHUT_DOWN),
            (SessionPhase::Open, "initialize") => refused(RpcError::INVALID_REQUEST, texts::TWICE),
            (SessionPhase::Open, "shutdown") => {
                self.phase = SessionPhase::Closing;
                Ok(Some(Value::Null))
            }
            (SessionPhase::Open, _) => Ok(None),
        }
    }

    fn document(&self, params: &Value) -> Result<&Document, RpcError> {
        let uri = uri(params)?;
        self.workspace.document(uri).ok_or_else(|| {
            let text = say!(texts::NOT_OPEN, uri);
            RpcError::new(RpcError::INVALID_PARAMS, text.say(self.settings.wish.language))
        })
    }

    /// The answer about the word at a position.
    fn about_word(&mut self, params: &Value, answer: WordAnswer) -> Result<Value, RpcError> {
        let uri = uri(params)?;
        let at = read_position(&params["position"]).ok_or_else(|| RpcError::lacks("position"))?;
        let OpenedDocument { config, file } = self.opened(uri)?;
        let look = config.look(&self.settings.wish);
        let answers = EditorAnswers { config: &config, workspace: &self.workspace, client: &self.client };
        let offset = config.lines(file).offset(config.bytes(file), at, self.client.unit);
        answer(&WordRequest { look: &look, answers: &answers, file, offset, params })
    }

    fn formatting(&self, params: &Value) -> Result<Value, RpcError> {
        let columns = params["options"]["tabSize"].as_u64().unwrap_or(4).clamp(1, INDENT_MAX);
        let indent = match params["options"]["insertSpaces"].as_bool() {
            Some(false) => "\t".to_owned(),
            _ => " ".repeat(usize::try_from(columns).unwrap_or(1)),
        };
        let document = self.document(params)?;
        let Some(after) = layout::layout(&document.bytes, &indent) else { return Ok(Value::Null) };
        let edits = changes::edits(0, &document.bytes, &after);
        let at = |offset: u32| position(document.lines.position(&document.bytes, offset, self.client.unit));
        let edit = |edit: &weir_conf::edit::Edit| {
            let range = json!({ "start": at(edit.span.start), "end": at(edit.span.end) });
            json!({ "range": range, "newText": String::from_utf8_lossy(&edit.with) })
        };
        Ok(edits.iter().map(edit).collect())
    }

    fn code_action(&mut self, params: &Value, is_stopped: &dyn Fn() -> bool) -> Result<Value, RpcError> {
        if !self.client.takes_actions {
            return Ok(json!([]));
        }
        let uri = uri(params)?.to_owned();
        let only = params["context"]["only"].as_array().into_iter().flatten();
        let only: Vec<String> = only.filter_map(|kind| kind.as_str().map(str::to_owned)).collect();
        self.with_actions(&uri, is_stopped, &|actions, config, file| {
            let lines = config.lines(file);
            let span = read_span(&params["range"], config.bytes(file), &lines, actions.answers.client);
            Ok(actions.list(&uri, file, span.ok_or_else(|| RpcError::lacks("range"))?, &only))
        })
    }

    fn resolve(&mut self, params: &Value, is_stopped: &dyn Fn() -> bool) -> Result<Value, RpcError> {
        let data = &params["data"];
        let uri = data["uri"].as_str().ok_or_else(|| RpcError::lacks("data"))?.to_owned();
        let language = self.settings.wish.language;
        self.with_actions(&uri, is_stopped, &|actions, _, _| {
            let edit = actions.resolve(data);
            let edit = edit.map_err(|why| RpcError::new(RpcError::REQUEST_FAILED, why.say(language)))?;
            let mut action = params.clone();
            action["edit"] = edit;
            Ok(action)
        })
    }

    fn with_actions(
        &mut self,
        uri: &str,
        is_stopped: &dyn Fn() -> bool,
        answer: &dyn Fn(&Actions<'_>, &crate::config::Config, u32) -> Result<Value, RpcError>,
    ) -> Result<Value, RpcError> {
        let OpenedDocument { config, file } = self.opened(uri)?;
        let Some(checked) = self.checked(&config, is_stopped) else {
            let text = say!(texts::CANCELLED);
            return Err(RpcError::new(RpcError::CANCELLED, text.say(self.settings.wish.language)));
        };
        let answers = EditorAnswers { config: &config, workspace: &self.workspace, client: &self.client };
        let wish = &self.settings.wish;
        answer(&Actions { answers: &answers, checked: &checked, wish, is_stopped }, &config, file)
    }
}

fn uri(params: &Value) -> Result<&str, RpcError> {
    params["textDocument"]["uri"].as_str().ok_or_else(|| RpcError::lacks("uri"))
}
