//! The words, ends and comments of a source, one after the other, without a tree: for tools that read half-written text
//! or change the layout.
//!
//! The pieces of a source without problems are exactly the words of its statements, their `;`, `{` and `}`, and its
//! comments.

use crate::lex::{Lexer, Turn};
use crate::tree::Span;

/// The kind of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieceKind {
    /// A word, with its quotes.
    Word,
    /// `;`
    End,
    /// `{`
    Open,
    /// `}`
    Close,
    /// A comment, with its `#`, up to the end of the line.
    Comment,
    /// The text of an opaque block, between its `{` and its `}`. The `}` follows as a piece of its own.
    Raw,
}

/// One piece and its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextPiece {
    /// Its kind.
    pub kind: PieceKind,
    /// Its bytes.
    pub span: Span,
}

/// The pieces of a source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextPieces {
    /// All complete pieces, in the order of the text.
    pub all: Vec<TextPiece>,
    /// The first byte of a word that the end of the text cuts off, its quote if it has one.
    pub cut: Option<u32>,
    /// The first byte after the `{` of an opaque block that has no end; the rest of the text is not read.
    pub open_raw: Option<u32>,
    /// Whether reading met a problem, such as a missing quote or a `;` without a statement.
    pub has_problems: bool,
}

/// Splits a source into its pieces. `opaque` as for [`crate::parse`].
pub fn pieces(bytes: &[u8], opaque: &dyn Fn(&str) -> bool) -> TextPieces {
    let mut lexer = Lexer::new(bytes, 0, false);
    let mut found = TextPieces::default();
    let mut words = Vec::new();
    loop {
        let (turn, at) = lexer.next(&mut words);
        let before = found.all.len();
        found.all.extend(words.iter().map(|word| TextPiece { kind: PieceKind::Word, span: word.at.span }));
        let comments = lexer.comments.drain(..);
        found.all.extend(comments.map(|comment| TextPiece { kind: PieceKind::Comment, span: comment.at.span }));
        if let Some(read) = found.all.get_mut(before..) {
            read.sort_by_key(|piece| piece.span.start);
        }
        let kind = match turn {
            Turn::End => PieceKind::End,
            Turn::Open => PieceKind::Open,
            Turn::Close => PieceKind::Close,
            Turn::Eof => break,
        };
        found.all.push(TextPiece { kind, span: at.span });
        if turn == Turn::Open && words.first().is_some_and(|name| opaque(&name.text)) {
            let Some(text) = lexer.raw_block() else {
                found.open_raw = Some(at.span.end);
                break;
            };
            let end = text.at.span.end;
            found.all.push(TextPiece { kind: PieceKind::Raw, span: text.at.span });
            found.all.push(TextPiece { kind: PieceKind::Close, span: Span { start: end, end: end.saturating_add(1) } });
        }
    }
    found.cut = lexer.cut();
    found.has_problems = !lexer.problems.is_empty() || found.open_raw.is_some();
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn shown(text: &str) -> (Vec<String>, TextPieces) {
        let found = pieces(text.as_bytes(), &|name| name.ends_with("_by_lua_block"));
        let texts = found
            .all
            .iter()
            .map(|piece| format!("{:?} {}", piece.kind, String::from_utf8_lossy(piece.span.of(text.as_bytes()))));
        (texts.collect(), found)
    }

    #[test]
    fn pieces_are_in_the_order_of_the_text() {
        let (texts, found) = shown("a 'b;' # c\n d; if (x) {e_by_lua_block { {} }}#z");
        let expected = [
            "Word a",
            "Word 'b;'",
            "Comment # c",
            "Word d",
            "End ;",
            "Word if",
            "Word (x)",
            "Open {",
            "Word e_by_lua_block",
            "Open {",
            "Raw  {} ",
            "Close }",
            "Close }",
            "Comment #z",
        ];
        assert_eq!(texts, expected);
        assert!(!found.has_problems && found.cut.is_none() && found.open_raw.is_none());
    }

    #[test]
    fn a_cut_text_says_where_its_last_word_begins() {
        for (text, cut, count) in
            [("a; pro", Some(3), 2), ("a \"b c", Some(2), 1), ("a b ", None, 2), ("a 'b'", None, 2)]
        {
            let (_, found) = shown(text);
            assert_eq!((found.cut, found.all.len()), (cut, count), "{text}");
            assert!(found.has_problems, "{text}");
        }
        let lost = format!("a \"{}", "x".repeat(crate::PARAMETER_BYTES_MAX + 9));
        assert_eq!(shown(&lost).1.cut, Some(2));
        assert_eq!(shown("x_by_lua_block { if").1.open_raw, Some(16));
    }
}
