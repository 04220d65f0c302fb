//! The form of an answer.

use weir_conf::Span;

/// Most bytes of one text of a file that a hover shows; the rest is cut.
const SHOWN_BYTES_MAX: usize = 160;

/// An answer about a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hovered {
    /// The bytes that the answer is about.
    pub span: Span,
    /// The answer, as Markdown.
    pub markdown: String,
}

/// A text of a file as code of Markdown. It cannot end the code: a file is data.
pub fn code(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut clean = clean.split_whitespace().collect::<Vec<_>>().join(" ").replace('`', "'");
    if clean.len() > SHOWN_BYTES_MAX {
        let end = (0..=SHOWN_BYTES_MAX).rev().find(|at| clean.is_char_boundary(*at)).unwrap_or(0);
        clean.truncate(end);
        clean.push('…');
    }
    if clean.is_empty() { "` `".to_owned() } else { format!("`{clean}`") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_a_file_cannot_end_its_code() {
        assert_eq!(code("a`b\n\n# c\u{7}"), "`a'b # c`");
        assert_eq!(code(&"가".repeat(100)).chars().count(), 160 / 3 + 3);
    }
}
