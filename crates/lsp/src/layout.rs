//! The layout of a file: indentation, one statement a line, spaces between words. Nothing else changes: the words with
//! their quotes, the comments, and the order of all are the same before and after.
//!
//! - A block is indented once more than the block around it; its `}` stands alone, but an empty block is `{}`.
//! - One space stands between words, unless the user aligned them: a word that stands in the same column as a word of the
//!   statement above or below stays in this column.
//! - A statement of several lines keeps its line breaks. Its next lines stand under the word that they stood under, else
//!   one indentation deeper.
//! - A comment stays behind its statement, or on a line of its own.
//! - One empty line stays where the user had some, but not at the edges of a block or of the file.
//! - The text of an opaque block (Lua) stays as it is. So do CRLF line ends. The file ends with a line end.
//!
//! - `read`, `columns`: statements and comments with their places; columns of a text
//! - `aligned`: the words that stand under each other in neighbouring statements

mod aligned;
mod columns;
mod read;

use aligned::Neighbours;
use columns::width_of;
use read::{Item, ItemKind, LinePart, has_no_width, items};

/// Most bytes of a file after its layout. A hostile file can be mostly indentation.
const LAID_OUT_BYTES_MAX: usize = 64 << 20;

/// The end of a line with a comment. The comment's text has the `\r` of a CRLF.
const COMMENT_END: &[u8] = b"\n";

/// Most bytes of one indentation.
const INDENT_BYTES_MAX: usize = 16;

/// The bytes of a file in this layout; `indent` is one indentation, of blanks or of tabs. `None` for a file that is not
/// complete: an open quote or block, a `}` too many, a byte that nginx refuses. Such a file is left alone.
pub fn layout(bytes: &[u8], indent: &str) -> Option<Vec<u8>> {
    let is_of = |one: u8| indent.bytes().all(|byte| byte == one);
    let indent =
        if (is_of(b' ') || is_of(b'\t')) && (1..=INDENT_BYTES_MAX).contains(&indent.len()) { indent } else { "    " };
    let (items, eol) = items(bytes)?;
    let neighbours = Neighbours::of(&items);
    let mut writer = Writer { bytes, indent, eol, out: Vec::with_capacity(bytes.len()) };
    let mut after_open = true;
    for (index, item) in items.iter().enumerate() {
        let is_close = item.kind == ItemKind::Close;
        if item.has_blank_before && !after_open && !is_close {
            writer.out.extend_from_slice(eol);
        }
        writer.item(item, &|rel, is_wide| neighbours.aligns(index, rel, is_wide));
        after_open = item.kind == ItemKind::Open;
        if writer.out.len() > LAID_OUT_BYTES_MAX {
            return None;
        }
    }
    Some(writer.out)
}

/// Writes items.
struct Writer<'w> {
    bytes: &'w [u8],
    indent: &'w str,
    eol: &'static [u8],
    out: Vec<u8>,
}

/// Whether the words of the neighbours hold a word in its column: asked with the column, and whether the word is wide.
type Aligns<'a> = &'a dyn Fn(i64, bool) -> bool;

impl Writer<'_> {
    fn item(&mut self, item: &Item, aligns: Aligns<'_>) {
        self.indentation(item.depth);
        match item.kind {
            ItemKind::Comment => {
                let text = item.parts.first().map_or(&[][..], |part| part.span.of(self.bytes));
                self.comment(text);
                return;
            }
            ItemKind::Close => self.out.push(b'}'),
            ItemKind::Plain | ItemKind::Open | ItemKind::Empty | ItemKind::Raw(_) => {}
        }
        // Only statements that end with `;` have columns.
        let is_plain = item.kind == ItemKind::Plain;
        let is_aligned = |part: &LinePart| is_plain && part.is_placed && part.rel > 0 && aligns(part.rel, part.is_wide);
        let (column, ends_in_comment) = self.parts(item, &is_aligned);
        if ends_in_comment {
            self.out.extend_from_slice(COMMENT_END);
            self.indentation(item.depth + 1);
        }
        let space: &[u8] = if ends_in_comment { b"" } else { b" " };
        match item.kind {
            ItemKind::Plain => self.out.push(b';'),
            ItemKind::Open => self.out.extend_from_slice(&[space, b"{"].concat()),
            ItemKind::Empty => self.out.extend_from_slice(&[space, b"{}"].concat()),
            ItemKind::Raw(text) => self.out.extend_from_slice(&[space, b"{", text.of(self.bytes), b"}"].concat()),
            ItemKind::Comment | ItemKind::Close => {}
        }
        match &item.trailing {
            Some(comment) => {
                let is_column = item.is_one_line && is_aligned(comment);
                let to = column.map(|column| column + 1).filter(|_| is_column);
                self.space(to, comment);
                self.comment(comment.span.of(self.bytes));
            }
            None => self.out.extend_from_slice(self.eol),
        }
    }

    /// Writes the words of a statement. Returns the column behind the last one, `None` if it is not known, and whether the last is
    /// a comment.
    fn parts(&mut self, item: &Item, is_aligned: &dyn Fn(&LinePart) -> bool) -> (Option<i64>, bool) {
        let mut column: Option<i64> = Some(0);
        // The columns of the words on the first line, as they were and as they are.
        let mut first_line: Vec<(i64, i64)> = Vec::new();
        let mut is_first_line = true;
        let mut after_comment = false;
        for (index, part) in item.parts.iter().enumerate() {
            if index > 0 && (part.begins_line || after_comment) {
                let eol = if after_comment { COMMENT_END } else { self.eol };
                self.out.extend_from_slice(eol);
                is_first_line = false;
                self.indentation(item.depth);
                let under = first_line.binary_search_by_key(&part.rel, |(before, _)| *before).ok();
                let under = under.and_then(|at| first_line.get(at)).map(|(_, after)| *after).filter(|after| *after > 0);
                let to = if is_aligned(part) { Some(part.rel) } else { under };
                let deeper = width_of(self.indent.as_bytes());
                let to = to.unwrap_or(deeper);
                if to == deeper {
                    self.out.extend_from_slice(self.indent.as_bytes());
                } else {
                    self.blanks(to);
                }
                column = Some(to);
            } else if index > 0 && !part.is_joined {
                column = self.space(column.filter(|_| is_aligned(part)), part).or(column.map(|column| column + 1));
            }
            if is_first_line
                && let Some(column) = column
                && part.is_placed
            {
                first_line.push((part.rel, column));
            }
            let text = part.span.of(self.bytes);
            self.out.extend_from_slice(text);
            column = column.filter(|_| !has_no_width(text)).map(|column| column + width_of(text));
            is_first_line &= column.is_some();
            after_comment = part.is_comment;
        }
        (column, after_comment)
    }

    /// Writes one space, or as many as lead from this column to that of an aligned word. Returns the column of the word if
    /// it is aligned.
    fn space(&mut self, from: Option<i64>, part: &LinePart) -> Option<i64> {
        let to = from.filter(|from| part.rel > *from).map(|from| (from, part.rel));
        match to {
            Some((from, to)) => {
                self.blanks(to - from);
                Some(to)
            }
            None => {
                self.out.push(b' ');
                None
            }
        }
    }

    fn blanks(&mut self, count: i64) {
        let count = usize::try_from(count).unwrap_or_default().min(LAID_OUT_BYTES_MAX);
        self.out.extend(std::iter::repeat_n(b' ', count));
    }

    fn indentation(&mut self, depth: usize) {
        for _ in 0..depth {
            self.out.extend_from_slice(self.indent.as_bytes());
        }
    }

    /// Writes a comment and the end of its line.
    fn comment(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(COMMENT_END);
    }
}

#[cfg(test)]
mod tests;
