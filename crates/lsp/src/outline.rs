//! The outline of a file, and the parts of it that an editor can fold.

use std::collections::HashSet;

use weir_conf::{LineTable, PieceKind, Span, Statement, Tree, pieces};

use crate::under::is_opaque;

/// Most symbols of one file.
const SYMBOLS_MAX: usize = 50_000;

/// Most bytes of a symbol's name or detail.
const LABEL_BYTES_MAX: usize = 120;

/// The kind of a symbol, for its icon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolKind {
    /// `http`, `stream`, `mail`, `events`.
    Module,
    /// `server { }`.
    Server,
    /// `location`.
    Location,
    /// `upstream`.
    Upstream,
    /// A server of an upstream.
    Peer,
    /// `map`, `geo`, `split_clients`: a variable.
    Variable,
    /// `if`, `limit_except`.
    Condition,
    /// A zone or a log format.
    Definition,
    /// Another block.
    Block,
}

/// One symbol of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Its name; never empty.
    pub name: String,
    /// A few words beside it; may be empty.
    pub detail: String,
    /// Its kind.
    pub kind: SymbolKind,
    /// The whole statement, with its block.
    pub whole: Span,
    /// The words of the statement.
    pub head: Span,
    /// The symbols inside.
    pub children: Vec<Symbol>,
}

/// The symbols of a file. A file that is included twice has them once.
pub fn symbols(tree: &Tree, file: u32) -> Vec<Symbol> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    collect(&tree.root, file, &mut seen, &mut found);
    found
}

/// Adds the symbols of a file among these statements. Statements of other files have no symbols, but their blocks may
/// hold statements of this one.
fn collect(statements: &[Statement], file: u32, seen: &mut HashSet<u32>, found: &mut Vec<Symbol>) {
    for statement in statements {
        if seen.len() >= SYMBOLS_MAX {
            return;
        }
        let start = statement.at.span.start;
        let symbol = (statement.at.file == file).then(|| symbol(statement)).flatten();
        let Some(mut symbol) = symbol else {
            // The entries of a map or of types are no symbols.
            if statement.is_block() && !is_data(statement) {
                collect(statement.children(), file, seen, found);
            }
            continue;
        };
        if !seen.insert(start) {
            continue;
        }
        if !is_data(statement) {
            collect(statement.children(), file, seen, &mut symbol.children);
        }
        found.push(symbol);
    }
}

fn is_data(statement: &Statement) -> bool {
    crate::inside::DATA_BLOCKS.contains(&statement.name.text.as_str())
}

/// The symbol of a statement; `None` for a plain directive.
fn symbol(statement: &Statement) -> Option<Symbol> {
    let name = statement.name.text.as_str();
    let first = statement.text(0);
    let rest =
        |from: usize| statement.args.iter().skip(from).map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
    let line = || format!("{name} {}", rest(0)).trim_end().to_owned();
    let (kind, title, detail) = match (name, statement.is_block()) {
        ("http" | "stream" | "mail" | "events", true) => (SymbolKind::Module, line(), String::new()),
        ("server", true) => (SymbolKind::Server, "server".to_owned(), server_detail(statement)),
        ("server", false) => (SymbolKind::Peer, first.to_owned(), rest(1)),
        ("location", true) => (SymbolKind::Location, line(), String::new()),
        ("upstream", true) => {
            let count = statement.named("server").count();
            (SymbolKind::Upstream, line(), format!("{count} × server"))
        }
        ("map" | "split_clients" | "geo", true) => {
            let variable = statement.args.last().map(|word| word.text.clone()).unwrap_or_default();
            (SymbolKind::Variable, variable, format!("{name} {first}"))
        }
        ("if" | "limit_except", true) => (SymbolKind::Condition, line(), String::new()),
        (_, true) => (SymbolKind::Block, line(), String::new()),
        ("limit_req_zone" | "limit_conn_zone" | "keyval_zone", false) => {
            (SymbolKind::Definition, zone_of(statement, "zone="), name.to_owned())
        }
        ("proxy_cache_path" | "fastcgi_cache_path" | "uwsgi_cache_path" | "scgi_cache_path", false) => {
            (SymbolKind::Definition, zone_of(statement, "keys_zone="), name.to_owned())
        }
        ("log_format", false) => (SymbolKind::Definition, first.to_owned(), name.to_owned()),
        _ if is_opaque(name) => (SymbolKind::Block, name.to_owned(), String::new()),
        _ => return None,
    };
    let title = if title.is_empty() { name.to_owned() } else { title };
    let whole = Span { start: statement.at.span.start, end: statement.end.span.end.max(statement.at.span.end) };
    // A head with a `{` or a raw text of its own is no more than the name.
    let head = if is_opaque(name) { statement.name.at.span } else { statement.at.span };
    Some(Symbol { name: cut(&title), detail: cut(&detail), kind, whole, head, children: Vec::new() })
}

/// The names and addresses of a server.
fn server_detail(statement: &Statement) -> String {
    let words = |name: &'static str| {
        statement.named(name).flat_map(|line| line.args.iter().map(|word| word.text.as_str())).collect::<Vec<_>>()
    };
    let listens: Vec<&str> = statement.named("listen").map(|listen| listen.text(0)).collect();
    let names = words("server_name").join(" ");
    [names, listens.join(" ")].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

fn zone_of(statement: &Statement, parameter: &str) -> String {
    let value = statement.args.iter().find_map(|word| word.text.strip_prefix(parameter));
    value.and_then(|value| value.split(':').next()).unwrap_or_default().to_owned()
}

/// A text on one line, cut at its most bytes.
fn cut(text: &str) -> String {
    let mut line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.len() > LABEL_BYTES_MAX {
        let end = (0..=LABEL_BYTES_MAX).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
        line.truncate(end);
        line.push('…');
    }
    line
}

/// Lines that can be folded, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fold {
    /// The line that stays.
    pub first_line: u32,
    /// The last line that is hidden.
    pub last_line: u32,
    /// Whether they are comments.
    pub is_comment: bool,
}

/// The parts of a text that can be folded: blocks, statements of several lines, runs of comments.
pub fn folds(bytes: &[u8], lines: &LineTable) -> Vec<Fold> {
    let begins = |offset: u32| begins_line(bytes, lines, offset);
    let found = pieces(bytes, &is_opaque);
    let mut folds = Vec::new();
    let mut open: Vec<u32> = Vec::new();
    let mut statement: Option<u32> = None;
    let mut comments: Option<(u32, u32)> = None;
    for piece in &found.all {
        let (first, last) = (lines.line_of(piece.span.start), lines.line_of(piece.span.end.saturating_sub(1)));
        if piece.kind == PieceKind::Comment && begins(piece.span.start) {
            comments = match comments {
                Some((from, to)) if to + 1 == first => Some((from, first)),
                before => {
                    folds.extend(before.and_then(of_comments));
                    Some((first, first))
                }
            };
            continue;
        }
        folds.extend(comments.take().and_then(of_comments));
        match piece.kind {
            PieceKind::Word => statement = statement.or(Some(first)),
            PieceKind::End => {
                folds.extend(statement.take().and_then(|from| fold(from, last, false)));
            }
            PieceKind::Open => {
                open.push(statement.take().unwrap_or(first));
            }
            PieceKind::Close => {
                statement = None;
                // The line of the `}` stays.
                let hidden = if begins(piece.span.start) { first.saturating_sub(1) } else { first };
                folds.extend(open.pop().and_then(|from| fold(from, hidden, false)));
            }
            PieceKind::Comment | PieceKind::Raw => {}
        }
    }
    folds.extend(comments.and_then(of_comments));
    folds.sort_by_key(|fold| (fold.first_line, fold.last_line));
    folds.dedup_by_key(|fold| fold.first_line);
    folds
}

fn of_comments((first, last): (u32, u32)) -> Option<Fold> {
    fold(first, last, true)
}

fn fold(first_line: u32, last_line: u32, is_comment: bool) -> Option<Fold> {
    (last_line > first_line).then_some(Fold { first_line, last_line, is_comment })
}

/// Whether only blanks stand before a byte on its line.
fn begins_line(bytes: &[u8], lines: &LineTable, offset: u32) -> bool {
    let before = Span { start: lines.start_of(lines.line_of(offset)), end: offset }.of(bytes);
    before.iter().all(|byte| matches!(byte, b' ' | b'\t'))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::mentions::tests::tree;
    use weir_conf::LineEnd;

    fn folds_of(bytes: &[u8]) -> Vec<Fold> {
        folds(bytes, &LineTable::of(bytes, LineEnd::Any))
    }

    fn shown(symbols: &[Symbol]) -> Vec<String> {
        let mut lines = Vec::new();
        for symbol in symbols {
            lines.push(format!("{:?} {} [{}]", symbol.kind, symbol.name, symbol.detail));
            lines.extend(shown(&symbol.children).iter().map(|line| format!("  {line}")));
        }
        lines
    }

    #[test]
    fn a_file_has_its_own_symbols() {
        let main = "events { }\nhttp { upstream a { server b:1 weight=2; } map $x $y { default 1; } include /s; log_format main '$uri'; }";
        let site =
            "server { listen 80; listen 443 ssl; server_name a.b c.d; location ~ \\.php$ { if ($x) { return 404; } } }";
        let tree = tree(&[("/n", main), ("/s", site)]);
        let expected = [
            "Module events []",
            "Module http []",
            "  Upstream upstream a [1 × server]",
            "    Peer b:1 [weight=2]",
            "  Variable $y [map $x]",
            "  Definition main [log_format]",
        ];
        assert_eq!(shown(&symbols(&tree, 0)), expected);
        let expected =
            ["Server server [a.b c.d · 80 443]", "  Location location ~ \\.php$ []", "    Condition if ($x) []"];
        assert_eq!(shown(&symbols(&tree, 1)), expected);
    }

    #[test]
    fn a_file_that_is_included_twice_has_its_symbols_once() {
        let tree = tree(&[("/n", "server { include /l; }\nserver { include /l; }"), ("/l", "location / { }")]);
        assert_eq!(shown(&symbols(&tree, 1)), ["Location location / []"]);
        for symbol in symbols(&tree, 0) {
            assert!(symbol.whole.start <= symbol.head.start && symbol.head.end <= symbol.whole.end);
        }
    }

    #[test]
    fn blocks_comments_and_long_statements_fold() {
        let text = "# a\n# b\nhttp {\n  log_format main '$a'\n    '$b';\n  server {\n    listen 80; }\n\n  # c\n\n  # d\n}\nevents { }\n";
        let found: Vec<(u32, u32, bool)> =
            folds_of(text.as_bytes()).iter().map(|fold| (fold.first_line, fold.last_line, fold.is_comment)).collect();
        assert_eq!(found, [(0, 1, true), (2, 10, false), (3, 4, false), (5, 6, false)]);
    }

    #[test]
    fn folds_of_any_text_are_within_its_lines() {
        proptest::proptest!(|(bytes in proptest::collection::vec(proptest::sample::select(b"a \n;{}\"'#\\".to_vec()), 0..80))| {
            let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
            for fold in folds_of(&bytes) {
                assert!(fold.first_line < fold.last_line && fold.last_line as usize <= lines);
            }
        });
    }
}
