//! The result of a try of a remedy.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};

use crate::said::{Said, Text};
use crate::texts;

/// The copy of the configuration. The user can read it or compare it again.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Copied {
    /// The path of the copy.
    pub file: PathBuf,
    /// The directives that differ.
    pub names: Vec<String>,
    /// The copy has to stand in the directory of the original: its relative paths begin there.
    pub is_beside: bool,
}

/// The result of a try.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tried {
    /// `helps`, `does not help`, `makes it worse`, `not shown to help`, `cannot be tried`, `not tried`.
    pub name: String,
    /// The sentence.
    pub text: Said,
    /// The figure of each pair of blocks: before, after.
    pub pairs: Vec<(f64, f64)>,
}

impl Tried {
    /// A try that did not happen, or that showed nothing, with the reason.
    pub(super) fn without(word: Word, why: impl Into<Said>) -> Tried {
        Tried { name: word.name().to_owned(), text: word.text().with(&[why.into()]), pairs: Vec::new() }
    }

    /// The result, as a run stores it.
    pub(super) fn to_json(&self) -> Value {
        json!({"name": self.name, "text": self.text.en(), "text_said": self.text, "pairs": self.pairs})
    }
}

/// The words for the result of a try.
#[derive(Clone, Copy)]
pub(super) enum Word {
    Helps,
    DoesNotHelp,
    MakesItWorse,
    NotShown,
    CannotBeTried,
    NotTried,
}

impl Word {
    /// The word.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Word::Helps => "helps",
            Word::DoesNotHelp => "does not help",
            Word::MakesItWorse => "makes it worse",
            Word::NotShown => "not shown to help",
            Word::CannotBeTried => "cannot be tried",
            Word::NotTried => "not tried",
        }
    }

    /// The sentence: the word, and its figures or its reason.
    pub(super) const fn text(self) -> Text {
        match self {
            Word::Helps => texts::HELPS,
            Word::DoesNotHelp => texts::DOES_NOT_HELP,
            Word::MakesItWorse => texts::MAKES_IT_WORSE,
            Word::NotShown => texts::NOT_SHOWN_TO_HELP,
            Word::CannotBeTried => texts::CANNOT_BE_TRIED,
            Word::NotTried => texts::NOT_TRIED,
        }
    }
}
