//! The words of mdBook's own buttons in the language of the book.

use super::pages::Language;
use std::collections::BTreeSet;

/// English, as mdBook writes it, and Korean.
const KOREAN: [(&str, &str); 19] = [
    ("Keyboard shortcuts", "단축키"),
    (
        "<p>Press <kbd>←</kbd> or <kbd>→</kbd> to navigate between chapters</p>",
        "<p><kbd>←</kbd> <kbd>→</kbd> 이전 쪽, 다음 쪽</p>",
    ),
    ("<p>Press <kbd>S</kbd> or <kbd>/</kbd> to search in the book</p>", "<p><kbd>S</kbd> <kbd>/</kbd> 검색</p>"),
    ("<p>Press <kbd>?</kbd> to show this help</p>", "<p><kbd>?</kbd> 이 도움말</p>"),
    ("<p>Press <kbd>Esc</kbd> to hide this help</p>", "<p><kbd>Esc</kbd> 도움말 닫기</p>"),
    ("Toggle Table of Contents", "차례 열기와 닫기"),
    ("\"Table of contents\"", "\"차례\""),
    ("Change theme", "색 바꾸기"),
    ("\"Themes\"", "\"색\""),
    (">Auto</button>", ">자동</button>"),
    (">Light</button>", ">밝게</button>"),
    ("Search (`/`)", "검색 (`/`)"),
    ("Toggle Searchbar", "검색창 열기와 닫기"),
    ("Search this book ...", "이 책에서 찾기"),
    ("Page navigation", "앞뒤 쪽"),
    ("Previous chapter", "이전 쪽"),
    ("Next chapter", "다음 쪽"),
    ("Copy to clipboard", "복사"),
    ("Copied!", "복사했습니다"),
];

/// Puts the words of a language in place of mdBook's, and remembers the ones that it met.
pub struct Words {
    waiting: BTreeSet<&'static str>,
    is_korean: bool,
}

impl Words {
    /// The words of a language.
    pub fn of(language: Language) -> Self {
        let is_korean = language == Language::Korean;
        Self { waiting: KOREAN.iter().filter(|_| is_korean).map(|(english, _)| *english).collect(), is_korean }
    }

    /// A text of mdBook's in the language.
    pub fn put(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (english, korean) in KOREAN.iter().filter(|_| self.is_korean) {
            if text.contains(english) {
                self.waiting.remove(english);
                text = text.replace(english, korean);
            }
        }
        text
    }

    /// An error names the words that mdBook wrote nowhere: another version has other words.
    pub fn all_used(&self) -> Result<(), String> {
        let missing: Vec<&str> = self.waiting.iter().copied().collect();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(format!("mdBook did not write these words: {}", missing.join("; ")))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_word_that_never_comes_is_told() {
        let mut words = Words::of(Language::Korean);
        assert_eq!(words.put("<b title=\"Next chapter\">"), "<b title=\"다음 쪽\">");
        let told = words.all_used().unwrap_err();
        assert!(told.contains("Previous chapter") && !told.contains("Next chapter"), "{told}");
        let mut english = Words::of(Language::English);
        assert_eq!((english.put("Next chapter").as_str(), english.all_used()), ("Next chapter", Ok(())));
    }
}
