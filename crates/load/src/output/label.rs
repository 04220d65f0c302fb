//! Heads of rows and columns.

use weir_words::{Language, Text};

/// The head of a row or column.
pub enum Label {
    /// A text with a word for each language.
    Text(Text),
    /// A name that is the same in every language, such as a metric's.
    Name(&'static str),
}

impl Label {
    /// The head in this language.
    pub fn say(&self, language: Language) -> &'static str {
        match self {
            Label::Text(text) => text.say(language),
            Label::Name(name) => name,
        }
    }
}
