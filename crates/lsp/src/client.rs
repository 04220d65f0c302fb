//! The abilities of the client, from the parameters of `initialize`.

use serde_json::Value;
use weir_conf::ColumnUnit;
use weir_words::Language;

/// The abilities that change answers of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientAbilities {
    /// The unit of places in lines.
    pub unit: ColumnUnit,
    /// It takes changes of documents with their versions.
    pub has_document_changes: bool,
    /// It asks for the edit of a code action when the user chooses it.
    pub resolves_actions: bool,
    /// It shows code actions that cannot be made, with the reason.
    pub shows_disabled: bool,
    /// It takes code actions; else only commands, which weir has none of.
    pub takes_actions: bool,
    /// It takes places of further problems with a diagnostic.
    pub takes_related: bool,
    /// It takes tags of diagnostics.
    pub takes_tags: bool,
    /// It takes completions with places for further text.
    pub takes_snippets: bool,
    /// It takes symbols in symbols.
    pub nests_symbols: bool,
    /// It takes Markdown in hovers; weir believes that it then takes it beside completions, too.
    pub takes_markdown: bool,
    /// It tells changes of files that the server names.
    pub watches_files: bool,
    /// Its language.
    pub language: Option<Language>,
}

impl ClientAbilities {
    /// The protocol's name of the unit.
    pub fn encoding(&self) -> &'static str {
        match self.unit {
            ColumnUnit::Character => "utf-32",
            ColumnUnit::Utf16 => "utf-16",
            ColumnUnit::Byte => "utf-8",
        }
    }

    /// Reads the parameters of `initialize`; what is missing is an ability that the client lacks.
    pub fn of(params: &Value) -> ClientAbilities {
        let can = &params["capabilities"];
        let text = &can["textDocument"];
        let is = |value: &Value| value.as_bool() == Some(true);
        let has = |list: &Value, word: &str| {
            list.as_array().is_some_and(|list| list.iter().any(|one| one.as_str() == Some(word)))
        };
        let action = &text["codeAction"];
        let diagnostics = &text["publishDiagnostics"];
        ClientAbilities {
            unit: match has(&can["general"]["positionEncodings"], "utf-8") {
                true => ColumnUnit::Byte,
                false => ColumnUnit::Utf16,
            },
            has_document_changes: is(&can["workspace"]["workspaceEdit"]["documentChanges"]),
            resolves_actions: has(&action["resolveSupport"]["properties"], "edit") && is(&action["dataSupport"]),
            shows_disabled: is(&action["disabledSupport"]),
            takes_actions: action["codeActionLiteralSupport"].is_object(),
            takes_related: is(&diagnostics["relatedInformation"]),
            takes_tags: diagnostics["tagSupport"].is_object() || is(&diagnostics["tagSupport"]),
            takes_snippets: is(&text["completion"]["completionItem"]["snippetSupport"]),
            nests_symbols: is(&text["documentSymbol"]["hierarchicalDocumentSymbolSupport"]),
            takes_markdown: has(&text["hover"]["contentFormat"], "markdown"),
            watches_files: is(&can["workspace"]["didChangeWatchedFiles"]["dynamicRegistration"]),
            language: params["locale"].as_str().map(|locale| Language::of_environment(|_| Some(locale.to_owned()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_client_that_says_nothing_can_nothing() {
        assert_eq!(ClientAbilities::of(&Value::Null), ClientAbilities::default());
        assert_eq!(
            ClientAbilities::of(&json!({"capabilities": {"general": {"positionEncodings": "utf-8"}}})),
            ClientAbilities::default()
        );
    }

    #[test]
    fn abilities_are_read() {
        let client = ClientAbilities::of(&json!({
            "locale": "ko-kr",
            "capabilities": {
                "general": {"positionEncodings": ["utf-16", "utf-8"]},
                "workspace": {"workspaceEdit": {"documentChanges": true}},
                "textDocument": {
                    "codeAction": {"dataSupport": true, "resolveSupport": {"properties": ["edit"]}},
                    "publishDiagnostics": {"relatedInformation": true, "tagSupport": {"valueSet": [1, 2]}}
                }
            }
        }));
        assert!(client.has_document_changes && client.resolves_actions && client.takes_related && client.takes_tags);
        assert!(!client.takes_snippets && client.unit == ColumnUnit::Byte);
        assert_eq!(client.language, Some(Language::Korean));
    }
}
