//! The statement, the word and the blocks at an offset of a file, also of a half-written one.
//!
//! Only the bytes before the offset decide, so broken text after it does no harm. Of broken text before it, three faults
//! are mended as a reader would: a lost quote ends with its line; a block that cannot stand in the open one closes it; a
//! line that is not indented more than the statement above begins a statement, even if that one lacks its `;`.
//!
//! A file that another one includes has the blocks of that one around it; they come from the tree.

use weir_conf::{PARAMETER_BYTES_MAX, PieceKind, Span, Statement, TextPiece, Tree, decode, pieces};

/// Most lost quotes that are mended in one file. After so many, the text is read as it is.
const LOST_QUOTES_MAX: usize = 32;

/// A block that is open at an offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AroundBlock {
    /// Its name and its arguments, decoded.
    pub words: Vec<String>,
}

impl AroundBlock {
    /// Its name; empty for a `{` without a name.
    pub fn name(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// Its words as one line: `location ~ \.php$`.
    pub fn line(&self) -> String {
        self.words.join(" ")
    }
}

/// The kind of text at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnderKind {
    /// The name of a statement, or a place where one may begin.
    Name,
    /// An argument, with its index from 0.
    Argument(usize),
    /// A comment.
    Comment,
    /// The text of an opaque block.
    Raw,
}

/// The statement and the word at an offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Under {
    /// The blocks around it, outermost first.
    pub blocks: Vec<AroundBlock>,
    /// The words of the statement before the one at the offset.
    pub before: Vec<Span>,
    /// The word at the offset, with its quotes; empty, at the offset, if there is none.
    pub word: Span,
    /// The kind of text.
    pub kind: UnderKind,
}

impl Under {
    /// The names of the blocks around, outermost first.
    pub fn path(&self) -> Vec<&str> {
        self.blocks.iter().map(AroundBlock::name).collect()
    }

    /// The decoded words of the statement before the one at the offset.
    pub fn words(&self, bytes: &[u8]) -> Vec<String> {
        self.before.iter().map(|span| decoded(span.of(bytes))).collect()
    }

    /// The name of the statement; empty if the offset is in its name.
    pub fn name(&self, bytes: &[u8]) -> String {
        self.before.first().map(|span| decoded(span.of(bytes))).unwrap_or_default()
    }
}

/// The text of a word as written, without its quotes and with escapes resolved.
pub fn decoded(raw: &[u8]) -> String {
    String::from_utf8_lossy(&decode(inner(raw))).into_owned()
}

/// A word as written without its quotes; the closing one may be missing.
pub fn inner(raw: &[u8]) -> &[u8] {
    match raw.first() {
        Some(quote @ (b'"' | b'\'')) => {
            let rest = raw.get(1..).unwrap_or_default();
            rest.strip_suffix(std::slice::from_ref(quote)).unwrap_or(rest)
        }
        _ => raw,
    }
}

/// Whether the block of this directive is not in nginx's syntax.
pub fn is_opaque(name: &str) -> bool {
    name.ends_with("_by_lua_block")
}

/// The statement and the word at this offset of a file of a configuration. An offset past the end counts as the end.
pub fn under(tree: &Tree, file: u32, offset: u32) -> Under {
    let bytes = tree.files.get(file as usize).map_or(&[][..], |source| source.bytes.as_slice());
    let mut found = under_bytes(bytes, offset);
    let mut blocks = around_file(tree, file);
    blocks.append(&mut found.blocks);
    Under { blocks, ..found }
}

/// The same for text alone: no block is around it.
pub fn under_bytes(bytes: &[u8], offset: u32) -> Under {
    let offset = (offset as usize).min(bytes.len());
    let mut scan = Scan { bytes, offset, ..Scan::default() };
    scan.run();
    scan.finish()
}

/// The reading of a text up to an offset.
#[derive(Default)]
struct Scan<'b> {
    bytes: &'b [u8],
    offset: usize,
    blocks: Vec<AroundBlock>,
    words: Vec<Span>,
    /// First byte of the word that the offset cuts.
    cut: Option<usize>,
    /// A comment or a raw text that the offset cuts.
    inside: Option<UnderKind>,
}

impl<'b> Scan<'b> {
    fn run(&mut self) {
        let mut base = 0;
        for turn in 0..=LOST_QUOTES_MAX {
            let is_mended = turn < LOST_QUOTES_MAX;
            match self.read(base, is_mended) {
                Some(next) if next > base && next <= self.offset => base = next,
                _ => break,
            }
        }
    }

    /// Reads from `base` to the offset. Returns the place to go on at if a quote was lost.
    fn read(&mut self, base: usize, is_mended: bool) -> Option<usize> {
        let text: &'b [u8] = self.bytes.get(base..self.offset).unwrap_or_default();
        let found = pieces(text, &is_opaque);
        let moved = |span: Span| Span { start: add(span.start, base), end: add(span.end, base) };
        for piece in &found.all {
            let piece = TextPiece { kind: piece.kind, span: moved(piece.span) };
            if piece.kind == PieceKind::Word && is_mended && self.is_lost(piece.span) {
                self.words.clear();
                return Some(self.line_end(piece.span.start as usize));
            }
            self.take(piece);
        }
        if let Some(open) = found.open_raw {
            self.inside = Some(UnderKind::Raw);
            self.words.clear();
            self.cut = Some(open as usize + base);
            return None;
        }
        if let Some(last) = found.all.last().filter(|last| last.kind == PieceKind::Comment)
            && last.span.end as usize == text.len()
        {
            self.inside = Some(UnderKind::Comment);
        }
        let cut = found.cut? as usize + base;
        let is_quoted = matches!(self.bytes.get(cut), Some(b'"' | b'\''));
        let crosses_lines = self.bytes.get(cut..self.offset).is_some_and(|cut| cut.contains(&b'\n'));
        if is_mended && is_quoted && crosses_lines && !self.closes_well(cut) {
            self.words.clear();
            return Some(self.line_end(cut));
        }
        self.cut = Some(cut);
        None
    }

    fn take(&mut self, piece: TextPiece) {
        match piece.kind {
            PieceKind::Word => self.words.push(piece.span),
            PieceKind::End => self.words.clear(),
            PieceKind::Open => self.open(),
            PieceKind::Close => {
                self.words.clear();
                self.blocks.pop();
            }
            PieceKind::Comment | PieceKind::Raw => {}
        }
    }

    fn open(&mut self) {
        let words = std::mem::take(&mut self.words);
        let first = self.head_of(&words);
        let head = words.get(first..).unwrap_or_default();
        let words: Vec<String> = head.iter().map(|span| decoded(span.of(self.bytes))).collect();
        let block = AroundBlock { words };
        if let Some(keep) = fitting(&self.blocks, block.name()) {
            self.blocks.truncate(keep);
        }
        self.blocks.push(block);
    }

    /// The index of the word that names a block: the first, or, if that is no block's name, the last that is one and
    /// begins its line. Then the statement above lacks its `;`.
    fn head_of(&self, words: &[Span]) -> usize {
        let is_block = |span: &Span| is_block_name(&decoded(span.of(self.bytes)));
        if words.first().is_none_or(is_block) {
            return 0;
        }
        words.iter().rposition(|span| is_block(span) && self.begins_line(span.start as usize)).unwrap_or(0)
    }

    /// Whether a quoted word of several lines ends where no quoted word may end: then its first quote was lost.
    fn is_lost(&self, span: Span) -> bool {
        let raw = span.of(self.bytes);
        let is_quoted = matches!(raw.first(), Some(b'"' | b'\''));
        is_quoted && raw.contains(&b'\n') && !self.may_follow_quote(span.end as usize)
    }

    /// Whether the quoted word that begins here ends where one may end.
    fn closes_well(&self, start: usize) -> bool {
        let Some(quote) = self.bytes.get(start) else { return false };
        let most = self.bytes.len().min(start + PARAMETER_BYTES_MAX);
        let mut at = start + 1;
        while let Some(byte) = self.bytes.get(at).filter(|_| at < most) {
            match byte {
                b'\\' => at += 2,
                byte if byte == quote => return self.may_follow_quote(at + 1),
                _ => at += 1,
            }
        }
        false
    }

    fn may_follow_quote(&self, at: usize) -> bool {
        self.bytes.get(at).is_none_or(|byte| b" \t\r\n;{)".contains(byte))
    }

    fn line_end(&self, at: usize) -> usize {
        let rest = self.bytes.get(at..).unwrap_or_default();
        at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
    }

    fn line_start(&self, at: usize) -> usize {
        let before = self.bytes.get(..at).unwrap_or(self.bytes);
        before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1)
    }

    /// Whether only blanks stand before it on its line.
    fn begins_line(&self, at: usize) -> bool {
        self.bytes.get(self.line_start(at)..at).unwrap_or_default().iter().all(|byte| matches!(byte, b' ' | b'\t'))
    }

    fn finish(self) -> Under {
        let here = Span { start: narrow(self.offset), end: narrow(self.offset) };
        if let Some(kind) = self.inside {
            let start = if kind == UnderKind::Raw { self.cut.map_or(here.start, narrow) } else { here.start };
            let word = Span { start, end: here.end };
            return Under { blocks: self.blocks, before: self.words, word, kind };
        }
        let mut before = self.words.clone();
        let word = match self.cut {
            Some(start) => Span { start: narrow(start), end: narrow(self.word_end(start)) },
            // Right behind a word that a quote has closed, the word is meant.
            None => match before.last().copied() {
                Some(last) if last.end == here.end && self.starts_nothing() => {
                    before.pop();
                    last
                }
                _ if self.starts_nothing() => here,
                _ => Span { start: here.start, end: narrow(self.word_end(self.offset)) },
            },
        };
        let at = word.start as usize;
        if let Some(first) = before.first().map(|first| first.start as usize)
            && self.begins_line(at)
            && self.line_start(at) > first
            && at - self.line_start(at) <= first - self.line_start(first)
        {
            before.clear();
        }
        let kind = before.len().checked_sub(1).map_or(UnderKind::Name, UnderKind::Argument);
        Under { blocks: self.blocks, before, word, kind }
    }

    /// Whether no word starts at the offset.
    fn starts_nothing(&self) -> bool {
        self.bytes.get(self.offset).is_none_or(|byte| b" \t\r\n;{}#".contains(byte))
    }

    /// The end of the word that begins here, behind the offset. A `}` ends it: it closes a block on the same line.
    fn word_end(&self, start: usize) -> usize {
        let rest = self.bytes.get(start..).unwrap_or_default();
        let quote = rest.first().copied().filter(|byte| matches!(byte, b'"' | b'\''));
        let (mut at, mut after_dollar, mut in_braces) = (usize::from(quote.is_some()), false, false);
        while let Some(byte) = rest.get(at).copied() {
            let is_behind = start + at >= self.offset;
            match (byte, quote) {
                (b'\\', _) => at += 1,
                (byte, Some(quote)) if byte == quote => return start + at + 1,
                (b'\n', Some(_)) if is_behind => return start + at,
                (_, Some(_)) => {}
                (b'{', None) if after_dollar => in_braces = true,
                (b'}', None) if in_braces => in_braces = false,
                (b' ' | b'\t' | b'\r' | b'\n' | b';' | b'{' | b'}', None) if is_behind => return start + at,
                (_, None) => {}
            }
            after_dollar = byte == b'$';
            at += 1;
        }
        (start + at).min(self.bytes.len())
    }
}

/// The number of open blocks that stay open if a block of this name begins: all but the inner ones in which it cannot
/// stand. `None` if it can stand in none of them, or in the innermost.
fn fitting(open: &[AroundBlock], name: &str) -> Option<usize> {
    let parents: &[&str] = match name {
        "http" | "events" | "stream" | "mail" => return (!open.is_empty()).then_some(0),
        "server" => &["http", "stream", "mail"],
        "upstream" | "map" | "geo" | "split_clients" | "charset_map" | "match" | "otel_exporter" | "acme_issuer" => {
            &["http", "stream"]
        }
        "location" => &["server", "location"],
        "if" => &["server", "location"],
        "limit_except" => &["location"],
        _ => return None,
    };
    let at = open.iter().rposition(|block| parents.contains(&block.name()))?;
    (at + 1 < open.len()).then_some(at + 1)
}

/// The blocks of nginx and weir.
const BLOCKS: [&str; 19] = [
    "http",
    "events",
    "stream",
    "mail",
    "server",
    "location",
    "upstream",
    "if",
    "limit_except",
    "map",
    "geo",
    "split_clients",
    "types",
    "match",
    "charset_map",
    "otel_exporter",
    "acme_issuer",
    "geoip2",
    "oidc_provider",
];

fn is_block_name(name: &str) -> bool {
    BLOCKS.contains(&name) || is_opaque(name)
}

/// The blocks of other files around a file, outermost first; none if no `include` names the file. If several do, the
/// first one decides.
pub fn around_file(tree: &Tree, file: u32) -> Vec<AroundBlock> {
    let mut file = file;
    // A file inside a file, at most as deep as includes are nested.
    for _ in 0..weir_conf::INCLUDE_DEPTH_MAX {
        let Some(include) = tree.includes.iter().find(|include| include.files.contains(&file)) else { break };
        let mut path = Vec::new();
        if holding(&tree.root, include.at.file, include.at.span.start, &mut path) {
            return path.iter().map(|block| around_block(block)).collect();
        }
        if include.at.file == file {
            break;
        }
        file = include.at.file;
    }
    Vec::new()
}

/// A block as the blocks around an offset show it.
fn around_block(block: &Statement) -> AroundBlock {
    AroundBlock { words: block.words().map(|word| word.text.clone()).collect() }
}

/// Finds the innermost block of a file that holds this byte; `path` gets the blocks down to it.
fn holding<'t>(statements: &'t [Statement], file: u32, offset: u32, path: &mut Vec<&'t Statement>) -> bool {
    for block in statements.iter().filter(|statement| statement.is_block()) {
        path.push(block);
        if holding(block.children(), file, offset, path) {
            return true;
        }
        let is_around = block.at.file == file && block.at.span.end <= offset && offset < block.end.span.end.max(1);
        if is_around {
            return true;
        }
        path.pop();
    }
    false
}

fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

fn add(offset: u32, base: usize) -> u32 {
    offset.saturating_add(narrow(base))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;

    /// The statement and the word at the `|` of a text, as one line.
    fn at(text: &str) -> String {
        let offset = text.find('|').expect("a |");
        let bytes = text.replacen('|', "", 1).into_bytes();
        let found = under_bytes(&bytes, u32::try_from(offset).unwrap());
        let word = String::from_utf8_lossy(found.word.of(&bytes)).into_owned();
        format!("{} > {:?} {:?} \"{word}\"", found.path().join("/"), found.kind, found.words(&bytes))
    }

    #[test]
    fn the_statement_and_its_blocks_are_found() {
        for (text, expected) in [
            ("|", " > Name [] \"\""),
            ("http { ser|ver {} }", "http > Name [] \"server\""),
            ("http { server { listen 80 ssl|; } }", "http/server > Argument(1) [\"listen\", \"80\"] \"ssl\""),
            ("http { server { listen |; } }", "http/server > Argument(0) [\"listen\"] \"\""),
            (
                "http { server { add_header A \"b c|d\"; } }",
                "http/server > Argument(1) [\"add_header\", \"A\"] \"\"b cd\"\"",
            ),
            ("http { server { add_header A \"b\"|; } }", "http/server > Argument(1) [\"add_header\", \"A\"] \"\"b\"\""),
            ("a { } |b", " > Name [] \"b\""),
            ("a { # x|y\n}", "a > Comment [] \"\""),
            ("location ~ ^/a${x}|b { }", " > Argument(1) [\"location\", \"~\"] \"^/a${x}b\""),
            ("location / { pro|}", "location > Name [] \"pro\""),
            ("location / { return 200 $a|}", "location > Argument(1) [\"return\", \"200\"] \"$a\""),
            (
                "location / { content_by_lua_block { local x = \"}\" | } }",
                "location/content_by_lua_block > Raw [] \" local x = \"}\" \"",
            ),
            ("location / { content_by_lua_block { x } ro|ot }", "location > Name [] \"root\""),
        ] {
            assert_eq!(at(text), expected, "{text}");
        }
    }

    #[test]
    fn half_written_text_before_is_mended() {
        for (text, expected) in [
            // A `;` is missing above.
            ("server {\n  listen 80\n  serv|\n}", "server > Name [] \"serv\""),
            ("server {\n  server_name a\n     b|;\n}", "server > Argument(1) [\"server_name\", \"a\"] \"b\""),
            ("server {\n  listen 80\n  location / {\n    ro|", "server/location > Name [] \"ro\""),
            // A `}` is missing above.
            ("http {\n server {\n  location / {\n  root x;\n server {\n  li|", "http/server > Name [] \"li\""),
            ("http {\n server {\n  location / {\n upstream a {\n  ser|", "http/upstream > Name [] \"ser\""),
            ("server {\n location / {\n location /b {\n  |", "server/location/location > Name [] \"\""),
            // A quote is missing above.
            (
                "server {\n add_header A \"b;\n add_header C \"d\";\n location / {\n  ro|",
                "server/location > Name [] \"ro\"",
            ),
            ("server {\n add_header A \"b;\n location / {\n  ro|\n}", "server/location > Name [] \"ro\""),
            (
                "server {\n add_header A \"|\n location / {\n }\n}",
                "server > Argument(1) [\"add_header\", \"A\"] \"\"\"",
            ),
            // A real text of several lines.
            (
                "http {\n log_format a '{\n \"b\": \"$c|\"\n}';\n",
                "http > Argument(1) [\"log_format\", \"a\"] \"'{\n \"b\": \"$c\"\"",
            ),
            ("http {\n log_format a '{\n }';\n ma|p", "http > Name [] \"map\""),
        ] {
            assert_eq!(at(text), expected, "{text}");
        }
    }

    #[test]
    fn the_blocks_of_the_including_files_are_around() {
        let files = weir_conf::MemoryFiles::new()
            .with("/n", "http { include /s; server { location /x { include /l; } } }")
            .with("/s", "include /t;")
            .with("/t", "upstream a { serv }")
            .with("/l", "");
        let (tree, _) = weir_conf::load(&files, "/n", "/", &is_opaque);
        let index = |name: &str| u32::try_from(tree.files.iter().position(|file| file.name == name).unwrap()).unwrap();
        assert_eq!(under(&tree, index("/t"), 17).path(), ["http", "upstream"]);
        assert_eq!(under(&tree, index("/s"), 0).path(), ["http"]);
        assert_eq!(under(&tree, index("/l"), 0).path(), ["http", "server", "location"]);
        assert_eq!(under(&tree, 0, 9).path(), ["http"]);
        assert_eq!(under(&tree, 99, 9).path(), Vec::<&str>::new());
    }

    #[test]
    fn every_offset_of_any_bytes_has_an_answer() {
        proptest::proptest!(|(bytes in proptest::collection::vec(proptest::sample::select(b"a \n;{}\"'#\\$(".to_vec()), 0..60), offset in 0u32..64)| {
            let found = under_bytes(&bytes, offset);
            assert!(found.word.start <= found.word.end && found.word.end as usize <= bytes.len());
        });
    }
}
