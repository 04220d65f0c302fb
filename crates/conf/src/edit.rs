//! Changes a configuration in place: finds a statement by its address, and replaces bytes of one file, so that
//! comments and layout around it stay.
//!
//! An address names blocks from the outside in; `[ ]` chooses among blocks with the same name:
//! `http/server[app.example.com]/location[/]/proxy_buffering`, `http/upstream[was]/server[2]`. The brackets contain
//! one of the block's arguments, for a `server` one of its `server_name` or `listen` words, or a number from 1.

use crate::tree::{Source, Span, Statement, Tree};

/// Replaces bytes of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Index into [`Tree::files`].
    pub file: u32,
    /// The bytes to replace; empty to insert.
    pub span: Span,
    /// The new bytes.
    pub with: Vec<u8>,
}

/// Why an address or an edit is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditError {
    /// There is no block or statement for this step.
    NotFound(String),
    /// There is more than one, and the step does not choose.
    Ambiguous(String, usize),
    /// A step that is not `name` or `name[which]`.
    BadStep(String),
    /// Two edits of a file touch the same bytes.
    Overlap,
}

impl std::fmt::Display for EditError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EditError::NotFound(step) => write!(f, "there is no {step}"),
            EditError::Ambiguous(step, count) => {
                write!(f, "there are {count} of {step}: choose one, as in {step}[1]")
            }
            EditError::BadStep(step) => write!(f, "\"{step}\" is neither NAME nor NAME[ARGUMENT]"),
            EditError::Overlap => f.write_str("two changes touch the same line: apply one, then run the command again"),
        }
    }
}

/// Finds the statement of an address.
///
/// # Errors
/// The step that matches nothing or several.
pub fn find<'t>(tree: &'t Tree, address: &str) -> Result<&'t Statement, EditError> {
    let mut inside: &[Statement] = &tree.root;
    let mut found = None;
    for (name, which, step) in steps(address)? {
        let statement = choose(inside, name, which, step)?;
        inside = statement.children();
        found = Some(statement);
    }
    found.ok_or_else(|| EditError::BadStep(address.to_owned()))
}

/// The edit that sets a directive to `value`: changes the statement at the address, or adds it to the block around
/// it.
///
/// # Errors
/// As [`find`], for the block.
pub fn set(tree: &Tree, address: &str, value: &str) -> Result<Edit, EditError> {
    let (block, name) = match address.rsplit_once('/').filter(|(_, last)| !last.contains(']')) {
        Some((block, name)) => (Some(find(tree, block)?), name),
        None => (None, address),
    };
    let inside = block.map_or(tree.root.as_slice(), Statement::children);
    let line = format!("{name} {value}");
    match inside.iter().find(|statement| statement.name == *name) {
        Some(statement) => Ok(replace(statement, &line)),
        None => match block {
            Some(block) => insert_into(tree, block, &line).ok_or_else(|| EditError::NotFound(address.to_owned())),
            None => Ok(Edit { file: 0, span: Span::default(), with: format!("{line};\n").into_bytes() }),
        },
    }
}

/// The edit that replaces a statement's words by `line` (without `;`); its `;` or block stays.
pub fn replace(statement: &Statement, line: &str) -> Edit {
    Edit { file: statement.at.file, span: statement.at.span, with: line.as_bytes().to_vec() }
}

/// The edit that removes a statement, with its line and the comment there if nothing else is on the line.
pub fn remove(tree: &Tree, statement: &Statement) -> Option<Edit> {
    let source = tree.source(&statement.at)?;
    let (start, end) = (statement.at.span.start as usize, statement.end.span.end as usize);
    let line_start = line_start(source, start);
    let rest = source.bytes.get(end..)?;
    let line_rest = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |lf| lf + 1);
    let before = source.bytes.get(line_start..start)?;
    let after = rest.get(..line_rest)?.trim_ascii();
    let is_alone = before.trim_ascii().is_empty() && (after.is_empty() || after.starts_with(b"#"));
    let span = if is_alone { span(line_start, end + line_rest) } else { span(start, end) };
    Some(Edit { file: statement.at.file, span, with: Vec::new() })
}

/// The edit that adds `lines` (without `;`) after a statement, each on its own line with the same indentation.
pub fn insert_after(tree: &Tree, statement: &Statement, lines: &str) -> Option<Edit> {
    insert_block_after(tree, statement, &lines.lines().map(|line| format!("{line};\n")).collect::<String>())
}

/// The edit that adds `lines`, which are statements with their own ends (`location … { … }`), after a statement.
pub fn insert_block_after(tree: &Tree, statement: &Statement, lines: &str) -> Option<Edit> {
    let source = tree.source(&statement.at)?;
    let indent = indent(source, statement.at.span.start as usize);
    let end = statement.end.span.end as usize;
    // Insert after a comment on the same line, because it belongs to the statement.
    let rest = source.bytes.get(end..)?;
    let line_rest = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    let after = rest.get(..line_rest)?.trim_ascii();
    let at = if after.is_empty() || after.starts_with(b"#") { end + line_rest } else { end };
    let with = lines.lines().map(|line| format!("\n{indent}{line}")).collect::<String>().into_bytes();
    Some(Edit { file: statement.at.file, span: span(at, at), with })
}

/// The edit that adds `line` (without `;`) as the first statement of a block.
pub fn insert_into(tree: &Tree, block: &Statement, line: &str) -> Option<Edit> {
    insert_block_into(tree, block, &format!("{line};"))
}

/// The edit that adds a statement with its own end (`map … { … }`) as the first statement of a block.
pub fn insert_block_into(tree: &Tree, block: &Statement, line: &str) -> Option<Edit> {
    let source = tree.source(&block.at)?;
    let from = block.at.span.end as usize;
    let brace = from + source.bytes.get(from..)?.iter().position(|byte| *byte == b'{')? + 1;
    let outer = indent(source, block.at.span.start as usize);
    let own_file = |child: &&Statement| child.at.file == block.at.file;
    let on_other_line = |child: &&Statement| line_start(source, child.at.span.start as usize) > brace;
    let inner = match block.children().iter().filter(own_file).find(on_other_line) {
        Some(child) => indent(source, child.at.span.start as usize),
        None => format!("{outer}    "),
    };
    let with = format!("\n{inner}{line}");
    let closes_here = source.line_of(block.end.span.start) == source.line_of(block.at.span.start);
    let with = if closes_here { format!(" {line}") } else { with };
    Some(Edit { file: block.at.file, span: span(brace, brace), with: with.into_bytes() })
}

/// A file's bytes with the edits applied.
///
/// # Errors
/// Two edits touch the same bytes. Insertions at one place are applied in their order.
pub fn apply(bytes: &[u8], edits: &[&Edit]) -> Result<Vec<u8>, EditError> {
    let mut sorted: Vec<&&Edit> = edits.iter().collect();
    sorted.sort_by_key(|edit| (edit.span.start, edit.span.end));
    let mut out = Vec::with_capacity(bytes.len());
    let mut copied = 0;
    for edit in sorted {
        let (start, end) = (edit.span.start as usize, edit.span.end as usize);
        let between = bytes.get(copied..start).ok_or(EditError::Overlap)?;
        if end < start || end > bytes.len() {
            return Err(EditError::Overlap);
        }
        out.extend_from_slice(between);
        out.extend_from_slice(&edit.with);
        copied = end;
    }
    out.extend_from_slice(bytes.get(copied..).unwrap_or_default());
    Ok(out)
}

/// The name, the text in brackets, and the whole step for messages.
type Step<'a> = (&'a str, Option<&'a str>, &'a str);

/// The steps of an address; a `/` in brackets does not end a step.
fn steps(address: &str) -> Result<Vec<Step<'_>>, EditError> {
    let mut steps = Vec::new();
    let mut rest = address;
    while !rest.is_empty() {
        let bad = || EditError::BadStep(rest.to_owned());
        let name_length = rest.find(['[', '/']).unwrap_or(rest.len());
        let name = rest.get(..name_length).filter(|name| !name.is_empty()).ok_or_else(bad)?;
        let after = rest.get(name_length..).unwrap_or_default();
        let (which, length) = match after.strip_prefix('[') {
            Some(inner) => {
                let end = closing(inner).ok_or_else(bad)?;
                (inner.get(..end), name_length + end + 2)
            }
            None => (None, name_length),
        };
        steps.push((name, which, rest.get(..length).ok_or_else(bad)?));
        rest = rest.get(length..).unwrap_or_default();
        rest = rest.strip_prefix('/').unwrap_or(rest);
    }
    Ok(steps)
}

/// The end of a bracket that was opened before this text; a pattern may contain brackets.
fn closing(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => open += 1,
            b']' if open == 0 => return Some(index),
            b']' => open -= 1,
            _ => {}
        }
    }
    None
}

fn choose<'t>(
    inside: &'t [Statement],
    name: &str,
    which: Option<&str>,
    step: &str,
) -> Result<&'t Statement, EditError> {
    let of_name: Vec<&Statement> = inside.iter().filter(|statement| statement.name == *name).collect();
    let not_found = || EditError::NotFound(step.to_owned());
    let Some(which) = which else {
        return match of_name.as_slice() {
            [one] => Ok(one),
            [] => Err(not_found()),
            many => Err(EditError::Ambiguous(step.to_owned(), many.len())),
        };
    };
    let by_words: Vec<&&Statement> = of_name.iter().filter(|statement| answers_to(statement, which)).collect();
    match by_words.as_slice() {
        [one] => Ok(one),
        [] => {
            let number = which.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            number.and_then(|number| of_name.get(number).copied()).ok_or_else(not_found)
        }
        many => Err(EditError::Ambiguous(step.to_owned(), many.len())),
    }
}

/// True if the word chooses this block.
fn answers_to(statement: &Statement, word: &str) -> bool {
    let has = |statement: &Statement| statement.args.iter().any(|arg| arg.text == word);
    let all = statement.args.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(" ");
    has(statement)
        || all == word
        || (statement.name == "server" && statement.named("server_name").chain(statement.named("listen")).any(has))
}

fn span(start: usize, end: usize) -> Span {
    // A source has at most 2^30 bytes.
    Span { start: u32::try_from(start).unwrap_or(u32::MAX), end: u32::try_from(end).unwrap_or(u32::MAX) }
}

fn line_start(source: &Source, at: usize) -> usize {
    let before = source.bytes.get(..at).unwrap_or(&source.bytes);
    before.iter().rposition(|byte| *byte == b'\n').map_or(0, |lf| lf + 1)
}

/// The white space at the start of a line.
fn indent(source: &Source, at: usize) -> String {
    let line = source.bytes.get(line_start(source, at)..at).unwrap_or_default();
    let blanks = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
    blanks.map(|byte| char::from(*byte)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{MemoryFiles, load};

    const TEXT: &str = "events {}\nhttp {\n  # kept\n  server { listen 80; }\n  server {\n    listen 81; # why\n    server_name a.b;\n    location / {\n      proxy_buffering on; # x\n    }\n    location ~ ^/[ab]/ { }\n  }\n}\n";

    fn tree() -> Tree {
        load(&MemoryFiles::new().with("/f", TEXT), "/f", "/", &|_| false).0
    }

    fn done(edit: &Edit) -> String {
        String::from_utf8(apply(TEXT.as_bytes(), &[edit]).unwrap()).unwrap()
    }

    #[test]
    fn addresses_lead_to_statements() {
        let tree = tree();
        let found = |address: &str| find(&tree, address).map(|statement| statement.at.line);
        assert_eq!(found("http/server[a.b]/location[/]/proxy_buffering"), Ok(9));
        assert_eq!(found("http/server[2]/listen"), Ok(6));
        assert_eq!(found("http/server[80]"), Ok(4));
        assert_eq!(found("http/server[a.b]/location[~ ^/[ab]/]"), Ok(11));
        assert_eq!(found("http/server"), Err(EditError::Ambiguous("server".to_owned(), 2)));
        assert_eq!(found("http/server[9]"), Err(EditError::NotFound("server[9]".to_owned())));
        assert_eq!(found("http/stream"), Err(EditError::NotFound("stream".to_owned())));
        assert_eq!(found("http/server[1"), Err(EditError::BadStep("server[1".to_owned())));
        assert!(found("").is_err() && found("/").is_err());
    }

    #[test]
    fn a_change_keeps_what_is_around_it() {
        let tree = tree();
        let edit = set(&tree, "http/server[a.b]/location[/]/proxy_buffering", "off").unwrap();
        assert_eq!(done(&edit), TEXT.replace("proxy_buffering on;", "proxy_buffering off;"));
        let edit = set(&tree, "http/server[a.b]/server_tokens", "off").unwrap();
        assert_eq!(
            done(&edit),
            TEXT.replace("server {\n    listen 81", "server {\n    server_tokens off;\n    listen 81")
        );
        let edit = set(&tree, "http/server[1]/root", "/x").unwrap();
        assert_eq!(done(&edit), TEXT.replace("server { listen 80;", "server { root /x; listen 80;"));
        let edit = set(&tree, "worker_processes", "auto").unwrap();
        assert_eq!(done(&edit), format!("worker_processes auto;\n{TEXT}"));
    }

    #[test]
    fn lines_come_and_go() {
        let tree = tree();
        let listen = find(&tree, "http/server[2]/listen").unwrap();
        assert_eq!(done(&remove(&tree, listen).unwrap()), TEXT.replace("    listen 81; # why\n", ""));
        let after = insert_after(&tree, listen, "http2 on").unwrap();
        assert_eq!(done(&after), TEXT.replace("# why\n", "# why\n    http2 on;\n"));
        let first = find(&tree, "http/server[1]/listen").unwrap();
        assert_eq!(done(&remove(&tree, first).unwrap()), TEXT.replace("listen 80;", ""));
    }

    #[test]
    fn overlapping_edits_are_refused() {
        let edit = |start, end| Edit { file: 0, span: Span { start, end }, with: b"-".to_vec() };
        let (a, b, c) = (edit(1, 3), edit(2, 4), edit(9, 99));
        assert_eq!(apply(b"abcdef", &[&a, &b]), Err(EditError::Overlap));
        assert_eq!(apply(b"abcdef", &[&c]), Err(EditError::Overlap));
        assert_eq!(apply(b"abcdef", &[&edit(4, 5), &a]).unwrap(), b"a-d-f");
    }
}
