//! `words`: the texts of weir's messages, in English and in Korean.
//!
//! A crate that writes for people has its sentences in tables ([`texts!`]) or beside the code that fills them
//! ([`said!`]). Both become a [`Said`], which has the sentence in every language. Not here: the texts themselves, and
//! the page's (`dash/web/i18n.js`).
//!
//! - `language`: the languages, and Korean particles; `glossary`: the Korean words that all texts share
//! - `said`: texts with holes: `texts!` declares a table, `say!` fills a text and stores its name and values
//! - `check`: the test of a table (`check_texts`), which each crate with a table runs
#![forbid(unsafe_code)]

mod check;
pub mod glossary;
mod language;
mod said;

pub use check::{check_texts, english_in, is_korean};
pub use language::{Language, Words, particles, words};
pub use said::{Said, Text, filled, left, right, width};
