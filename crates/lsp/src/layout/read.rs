//! Reads the pieces of a file as statements and comments with their places.

use weir_conf::{BLOCK_DEPTH_MAX, PieceKind, Span, pieces};

use super::columns::Columns;
use crate::under::is_opaque;

/// A word of a statement, or a comment between its words.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinePart {
    pub(super) span: Span,
    pub(super) is_comment: bool,
    /// Whether it is the first on its line.
    pub(super) begins_line: bool,
    /// Whether nothing is between it and the part before.
    pub(super) is_joined: bool,
    /// Its column, counted from that of the statement's first word.
    pub(super) rel: i64,
    /// Whether it stands further right than one space after the part before.
    pub(super) is_wide: bool,
    /// Whether its column can be compared: a space is before it, no word without a width stands before it on its line, and
    /// it is on the first line of its statement or begins a line.
    pub(super) is_placed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    /// A comment on a line of its own.
    Comment,
    /// A statement that ends with `;`.
    Plain,
    /// A statement that opens a block.
    Open,
    /// A statement with an empty block.
    Empty,
    /// A statement with an opaque block.
    Raw(Span),
    /// The end of a block.
    Close,
}

/// A thing that stands on a line of its own, or on several.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) kind: ItemKind,
    pub(super) depth: usize,
    pub(super) has_blank_before: bool,
    pub(super) parts: Vec<LinePart>,
    /// The comment behind it on its line.
    pub(super) trailing: Option<LinePart>,
    /// Whether it is on one line, with its end.
    pub(super) is_one_line: bool,
}

/// Whether a word has no width of its own: it spans lines, or its tabs depend on its column.
pub(super) fn has_no_width(text: &[u8]) -> bool {
    text.iter().any(|byte| matches!(byte, b'\n' | b'\t'))
}

/// The items of a file and its line end. `None` if the file is not complete.
pub(super) fn items(bytes: &[u8]) -> Option<(Vec<Item>, &'static [u8])> {
    let found = pieces(bytes, &is_opaque);
    if found.has_problems || found.cut.is_some() {
        return None;
    }
    let mut reader = Reading::new(bytes);
    for piece in &found.all {
        reader.take(piece.kind, piece.span)?;
    }
    reader.end()
}

/// The pieces read so far.
struct Reading<'b> {
    bytes: &'b [u8],
    columns: Columns<'b>,
    items: Vec<Item>,
    parts: Vec<LinePart>,
    depth: usize,
    /// One past the last byte of the piece before.
    last_end: u32,
    /// The column at `last_end`.
    last_column: i64,
    /// The column of the statement's first word.
    base: i64,
    /// Whether the line has a word without a width.
    is_unplaced: bool,
    /// Whether the statement goes on on another line.
    is_continued: bool,
    /// Whether the `;` of the statement is on another line than its last word.
    ends_elsewhere: bool,
    /// Whether an empty line stands before the statement that is being read.
    has_blank_before: bool,
    after_comment: bool,
    /// Whether the next `}` ends an opaque block.
    is_in_raw: bool,
    eol: Option<&'static [u8]>,
}

impl<'b> Reading<'b> {
    fn new(bytes: &'b [u8]) -> Reading<'b> {
        Reading {
            bytes,
            columns: Columns::new(bytes),
            items: Vec::new(),
            parts: Vec::new(),
            depth: 0,
            last_end: 0,
            last_column: 0,
            base: 0,
            is_unplaced: false,
            is_continued: false,
            ends_elsewhere: false,
            has_blank_before: false,
            after_comment: false,
            is_in_raw: false,
            eol: None,
        }
    }

    fn take(&mut self, kind: PieceKind, span: Span) -> Option<()> {
        let newlines = self.newlines(span);
        if newlines > 0 {
            self.is_unplaced = false;
        }
        let part = self.part(kind, span, newlines > 0);
        match kind {
            PieceKind::Word => self.push(part, newlines),
            PieceKind::Comment if self.parts.is_empty() => self.comment(part, newlines),
            PieceKind::Comment => self.push(part, newlines),
            PieceKind::End => {
                self.ends_elsewhere = newlines > 0;
                self.statement(ItemKind::Plain);
            }
            PieceKind::Open => {
                self.statement(ItemKind::Open);
                self.depth += 1;
                if self.depth > BLOCK_DEPTH_MAX {
                    return None;
                }
            }
            PieceKind::Raw => {
                self.items.last_mut()?.kind = ItemKind::Raw(span);
                self.is_in_raw = true;
            }
            PieceKind::Close => self.close()?,
        }
        self.last_column = self.columns.to(span.end);
        self.last_end = span.end;
        self.after_comment = kind == PieceKind::Comment;
        self.is_unplaced |= has_no_width(span.of(self.bytes));
        Some(())
    }

    /// The number of line ends between the last piece and this one; learns the line end of the file.
    fn newlines(&mut self, next: Span) -> usize {
        let gap = Span { start: self.last_end, end: next.start }.of(self.bytes);
        let count = gap.iter().filter(|byte| **byte == b'\n').count();
        // The first line end after a comment ends the comment, which has its `\r` in its own text.
        let mut own = gap.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
        if self.eol.is_none()
            && let Some(at) = own.nth(usize::from(self.after_comment))
        {
            let has_return = at.checked_sub(1).and_then(|before| gap.get(before)) == Some(&b'\r');
            self.eol = Some(if has_return { &b"\r\n"[..] } else { &b"\n"[..] });
        }
        count
    }

    fn part(&mut self, kind: PieceKind, span: Span, begins_line: bool) -> LinePart {
        let column = self.columns.to(span.start);
        if self.parts.is_empty() && kind == PieceKind::Word {
            self.base = column;
        }
        let is_joined = span.start == self.last_end;
        LinePart {
            span,
            is_comment: kind == PieceKind::Comment,
            begins_line,
            is_joined,
            rel: column - self.base,
            is_wide: begins_line || column - self.last_column > 1,
            is_placed: !self.is_unplaced && !is_joined && (begins_line || !self.is_continued),
        }
    }

    fn push(&mut self, part: LinePart, newlines: usize) {
        if self.parts.is_empty() {
            self.has_blank_before = newlines > 1 && !self.items.is_empty();
            self.parts.push(LinePart { begins_line: false, is_wide: false, is_placed: !self.is_unplaced, ..part });
        } else {
            self.is_continued |= part.begins_line;
            self.parts.push(part);
        }
    }

    /// A comment between statements: behind the last one, or on a line of its own.
    fn comment(&mut self, part: LinePart, newlines: usize) {
        if newlines == 0
            && let Some(last) = self.items.last_mut()
            && last.trailing.is_none()
            && last.kind != ItemKind::Comment
        {
            last.trailing = Some(part);
            return;
        }
        let has_blank_before = newlines > 1 && !self.items.is_empty();
        self.items.push(Item {
            kind: ItemKind::Comment,
            depth: self.depth,
            has_blank_before,
            parts: vec![part],
            trailing: None,
            is_one_line: true,
        });
    }

    fn statement(&mut self, kind: ItemKind) {
        let parts = std::mem::take(&mut self.parts);
        self.is_continued = false;
        let has_blank_before = std::mem::take(&mut self.has_blank_before);
        let is_one_line =
            !std::mem::take(&mut self.ends_elsewhere) && parts.iter().all(|part| !part.begins_line && part.is_placed);
        self.items.push(Item { kind, depth: self.depth, has_blank_before, parts, trailing: None, is_one_line });
    }

    fn close(&mut self) -> Option<()> {
        self.depth = self.depth.checked_sub(1)?;
        if std::mem::take(&mut self.is_in_raw) {
            return Some(());
        }
        match self.items.last_mut() {
            Some(last) if last.kind == ItemKind::Open && last.trailing.is_none() => last.kind = ItemKind::Empty,
            _ => self.statement(ItemKind::Close),
        }
        Some(())
    }

    fn end(mut self) -> Option<(Vec<Item>, &'static [u8])> {
        let end = u32::try_from(self.bytes.len()).ok()?;
        self.newlines(Span { start: end, end });
        (self.depth == 0 && self.parts.is_empty()).then_some((self.items, self.eol.unwrap_or(b"\n")))
    }
}
