//! The data of a screen, and how texts and figures are read from it.

use serde_json::Value;
use weir_words::{Language, Said, Text, words};

use super::choice::Choice;
use crate::edges::Dashboard;
use crate::texts;

/// The data of a screen.
pub struct Screen<'s> {
    /// The newest document.
    pub doc: &'s Value,
    /// The document before it, for rates.
    pub before: Option<&'s Value>,
    /// The language of the words.
    pub language: Language,
    /// Why there is no newer document.
    pub trouble: Option<&'s str>,
    /// The reader's choices.
    pub choice: &'s Choice,
    /// The edges between which the reader can choose.
    pub edges: &'s [Dashboard],
    /// Whether the last line names the keys.
    pub has_keys: bool,
}

impl<'s> Screen<'s> {
    pub(super) fn say(&self, text: Text) -> &'static str {
        text.say(self.language)
    }

    pub(super) fn said(&self, both: &'s Value) -> &'s str {
        both[words("en", "ko").say(self.language)].as_str().unwrap_or_default()
    }

    pub(super) fn told(&self, said: &Said) -> String {
        said.say(self.language).to_owned()
    }

    /// The state of a peer. An unknown one is shown by its own name.
    pub(super) fn state(&self, name: &str) -> String {
        let known = [
            ("up", texts::PEER_UP),
            ("busy", texts::PEER_BUSY),
            ("draining", texts::PEER_DRAINING),
            ("down", texts::PEER_DOWN),
            ("unavail", texts::PEER_UNAVAIL),
            ("checking", texts::PEER_CHECKING),
            ("unhealthy", texts::PEER_UNHEALTHY),
        ];
        let text = known.iter().find(|(state, _)| *state == name);
        text.map_or_else(|| name.to_owned(), |(_, text)| self.say(*text).to_owned())
    }

    /// The kind of an error. An unknown one is shown by its own name.
    pub(super) fn kind(&self, name: &str) -> String {
        let known = [
            ("failed", texts::ERROR_FAILED),
            ("refused", texts::ERROR_REFUSED),
            ("recovered", texts::ERROR_RECOVERED),
            ("client", texts::ERROR_CLIENT),
        ];
        let text = known.iter().find(|(kind, _)| *kind == name);
        text.map_or_else(|| name.to_owned(), |(_, text)| self.say(*text).to_owned())
    }

    /// Growth of a total, per second.
    pub(super) fn grew(&self, path: &str) -> Option<f64> {
        self.between(|doc| doc.pointer(path)?.as_f64())
    }

    /// Growth of a value of the document, per second.
    pub(super) fn between(&self, read: impl Fn(&Value) -> Option<f64>) -> Option<f64> {
        let (now, before) = (read(self.doc)?, read(self.before?)?);
        let seconds = (self.doc["at"].as_f64()? - self.before?["at"].as_f64()?) / 1000.0;
        (seconds > 0.0 && now >= before).then(|| (now - before) / seconds)
    }
}

/// A name, escaped for a JSON pointer (RFC 6901).
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
