//! `capture` and `match`: values taken from a message (artillery.md §2.1, "capture").

use crate::template::{Template, Tree};
use crate::vars::Slot;

/// What is taken, and where it goes.
#[derive(Debug)]
pub struct Capture {
    /// What is taken.
    pub what: Extract,
    /// `as`: the variable, and the path inside it (`as: a.b`).
    pub slot: Slot,
    /// The path inside the variable, empty as a rule.
    pub path: Vec<String>,
    /// `strict`: whether nothing found fails the virtual user; unset follows `defaults.strictCapture`.
    pub strict: Option<bool>,
}

/// What is compared.
#[derive(Debug)]
pub struct Match {
    /// What is taken.
    pub what: Extract,
    /// `value`.
    pub value: Tree,
    /// `strict`.
    pub strict: Option<bool>,
}

/// How a value is found in a message.
#[derive(Debug)]
pub enum Extract {
    /// `json`: a JSONPath; with `multiple: false` all matches instead of one at random.
    Json(Template, bool),
    /// `regexp`, `group`, `flags`.
    Regexp(Template, Option<String>, String),
    /// `header`.
    Header(Template),
    /// `selector`, `attr`, `index`.
    Selector(Template, Option<Template>, Index),
    /// `xpath`.
    Xpath(Template),
    /// None of these.
    None,
}

/// Which of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// This one.
    At(usize),
    /// The last.
    Last,
    /// Any.
    Random,
}
