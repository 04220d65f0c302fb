//! The answers of requests.

use serde_json::{Value, json};
use weir_words::say;

use crate::actions::Actions;
use crate::answer::{EditorAnswers, folds, position, read_position, read_span};
use crate::changes;
use crate::document::Document;
use crate::look::Look;
use crate::rpc::RpcError;
use crate::session::{LspSession, OpenedDocument, Outside, SessionPhase};
use crate::{complete, find, hover, layout, outline, texts};

/// Most columns of one step of indentation.
const INDENT_MAX: u64 = 16;

/// A feature of the word at an offset of a file.
type WordAnswer<'a> = dyn Fn(&Look<'_>, &EditorAnswers<'_>, u32, u32) -> Result<Value, RpcError> + 'a;

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
        let language = self.settings.wish.language;
        let refused = |code, text: weir_words::Text| Err(RpcError::new(code, say!(text).say(language)));
        match (self.phase, method) {
            (SessionPhase::New, "initialize") => return Ok(self.initialize(params, outside)),
            (SessionPhase::New, _) => return refused(RpcError::NOT_INITIALIZED, texts::NOT_INITIALIZED),
            (SessionPhase::Closing, _) => return refused(RpcError::INVALID_REQUEST, texts::SHUT_DOWN),
            (SessionPhase::Open, "initialize") => return refused(RpcError::INVALID_REQUEST, texts::TWICE),
            (SessionPhase::Open, "shutdown") => {
                self.phase = SessionPhase::Closing;
                return Ok(Value::Null);
            }
            (SessionPhase::Open, _) => {}
        }
        match method {
            "textDocument/hover" => self.with_word(params, &|look, answers, file, offset| {
                let Some(found) = hover::hover(look, file, offset) else { return Ok(Value::Null) };
                let kind = if answers.client.takes_markdown { "markdown" } else { "plaintext" };
                let contents = json!({ "kind": kind, "value": found.markdown });
                Ok(json!({ "contents": contents, "range": answers.range(file, found.span) }))
            }),
            "textDocument/completion" => self.with_word(params, &|look, answers, file, offset| {
                Ok(answers.completions(file, &complete::complete(look, file, offset)))
            }),
            "textDocument/definition" => self.with_word(params, &|look, answers, file, offset| {
                Ok(answers.locations(&find::definitions(look, file, offset)))
            }),
            "textDocument/references" => {
                let with_definition = params["context"]["includeDeclaration"].as_bool() != Some(false);
                self.with_word(params, &|look, answers, file, offset| {
                    Ok(answers.locations(&find::references(look, file, offset, with_definition)))
                })
            }
            "textDocument/documentHighlight" => self.with_word(params, &|look, answers, file, offset| {
                let all = find::references(look, file, offset, true);
                let own = all.iter().filter(|place| place.file == file).take(crate::answer::PLACES_MAX);
                Ok(own.map(|place| json!({ "range": answers.range(file, place.span) })).collect())
            }),
            "textDocument/prepareRename" => {
                self.with_word(params, &|look, answers, file, offset| match find::prepare_rename(look, file, offset) {
                    Ok(place) => Ok(answers.range(place.file, place.span)),
                    Err(why) => Err(RpcError::new(RpcError::REQUEST_FAILED, why.say(language))),
                })
            }
            "textDocument/rename" => {
                let new = params["newName"].as_str().ok_or_else(|| RpcError::lacks("newName"))?;
                self.with_word(params, &|look, answers, file, offset| match find::rename(look, file, offset, new) {
                    Ok(edits) => Ok(answers.workspace_edit(&edits)),
                    Err(why) => Err(RpcError::new(RpcError::REQUEST_FAILED, why.say(language))),
                })
            }
            "textDocument/documentSymbol" => {
                let OpenedDocument { config, file } = self.opened(uri(params)?)?;
                let answers = EditorAnswers { config: &config, workspace: &self.workspace, client: &self.client };
                Ok(answers.symbols(file, &outline::symbols(&config.tree, file)))
            }
            "textDocument/foldingRange" => Ok(folds(&outline::folds(&self.document(params)?.bytes))),
            "textDocument/formatting" => self.formatting(params),
            "textDocument/codeAction" => self.code_action(params, is_stopped),
            "codeAction/resolve" => self.resolve(params, is_stopped),
            _ => {
                let text = say!(texts::NO_METHOD, method);
                Err(RpcError::new(RpcError::METHOD_NOT_FOUND, text.say(language)))
            }
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
    fn with_word(&mut self, params: &Value, answer: &WordAnswer<'_>) -> Result<Value, RpcError> {
        let uri = uri(params)?;
        let at = read_position(&params["position"]).ok_or_else(|| RpcError::lacks("position"))?;
        let OpenedDocument { config, file } = self.opened(uri)?;
        let wish = &self.settings.wish;
        let look = Look { tree: &config.tree, target: wish.target.of(config.own()), language: wish.language };
        let answers = EditorAnswers { config: &config, workspace: &self.workspace, client: &self.client };
        let offset = config.lines(file).offset(config.bytes(file), at, self.client.encoding);
        answer(&look, &answers, file, offset)
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
        let at = |offset: u32| position(document.lines.position(&document.bytes, offset, self.client.encoding));
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
