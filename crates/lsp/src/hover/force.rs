//! The value of a directive that is in force in a block, and where it was set.

use weir_conf::{Statement, Word};
use weir_doctor::explain::place;
use weir_words::{Said, said};

use super::text::{code, escaped};
use crate::inside::{inside, of_weir_anywhere};
use crate::look::Look;

/// Most blocks that a hover names.
const NAMED_MAX: usize = 3;

/// Directives that may be repeated in a block, of nginx's modules that weir lacks.
const REPEATED: [&str; 4] = ["js_import", "xslt_param", "perl_require", "image_filter"];

/// Directives of which the lines of an outer block stay in force beside those of an inner one.
const ADDED: [&str; 4] =
    ["more_set_headers", "more_clear_headers", "more_set_input_headers", "more_clear_input_headers"];

/// The changes by the statement of this directive at this byte: the lines of outer blocks that it replaces, and the inner
/// blocks that have lines of their own. Nothing if inner blocks do not inherit the directive.
pub fn in_force(look: &Look<'_>, name: &str, file: u32, start: u32, is_inherited: bool) -> Option<String> {
    if !is_inherited {
        return None;
    }
    let is_it = |one: &Statement| one.name.at.file == file && one.name.at.span.start == start && one.name == *name;
    let mut path = Vec::new();
    if !path_to(&look.tree.root, &is_it, &mut path) {
        return None;
    }
    let around = Around { root: &look.tree.root, path };
    let parts = [outer(look, name, &around), inner(look, name, &around)];
    let parts: Vec<&str> = parts.iter().flatten().map(|said| said.say(look.language)).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// Finds a statement; `path` gets the blocks around it, outermost first.
fn path_to<'t>(statements: &'t [Statement], is_it: &dyn Fn(&Statement) -> bool, path: &mut Vec<&'t Statement>) -> bool {
    for statement in statements {
        if is_it(statement) {
            return true;
        }
        if statement.is_block() {
            path.push(statement);
            if path_to(statement.children(), is_it, path) {
                return true;
            }
            path.pop();
        }
    }
    false
}

/// The blocks around a statement.
struct Around<'t> {
    root: &'t [Statement],
    /// Outermost first.
    path: Vec<&'t Statement>,
}

impl<'t> Around<'t> {
    /// The statements of the innermost block.
    fn own(&self) -> &'t [Statement] {
        self.level(self.path.len())
    }

    /// The statements in so many blocks of the path; those of the top level for 0.
    fn level(&self, depth: usize) -> &'t [Statement] {
        let block = depth.checked_sub(1).and_then(|index| self.path.get(index));
        block.map_or(self.root, |block| block.children())
    }

    /// The line of a directive that is in force in the innermost block.
    fn nearest(&self, name: &str) -> Option<&'t Statement> {
        (0..=self.path.len()).rev().find_map(|depth| lines_of(self.level(depth), name).next_back())
    }

    /// The name of the block at a depth, for a sentence.
    fn block_at(&self, depth: usize) -> String {
        let block = depth.checked_sub(1).and_then(|index| self.path.get(index));
        block.map_or_else(|| "main".to_owned(), |block| named(block))
    }
}

/// The lines of a directive among statements.
fn lines_of<'t>(statements: &'t [Statement], name: &str) -> impl DoubleEndedIterator<Item = &'t Statement> {
    statements.iter().filter(move |one| one.name == *name)
}

/// A statement on one line; a server by its names.
fn named(block: &Statement) -> String {
    let names = block.named("server_name").next().map(|names| joined(names.args.iter()));
    match names {
        Some(names) if block.name == *"server" && !names.is_empty() => format!("server {names}"),
        _ => joined(block.words()),
    }
}

fn joined<'t>(words: impl Iterator<Item = &'t Word>) -> String {
    words.map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

fn outer(look: &Look<'_>, name: &str, around: &Around<'_>) -> Option<Said> {
    let has_lines = |depth: &usize| lines_of(around.level(*depth), name).next().is_some();
    let depth = (0..around.path.len()).rev().find(has_lines)?;
    let before: Vec<&Statement> = lines_of(around.level(depth), name).collect();
    let first = before.first()?;
    let (of, at) = (escaped(&around.block_at(depth)), escaped(&place(look.tree, first.at)));
    let path: Vec<&str> = around.path.iter().map(|block| block.name.text.as_str()).collect();
    let is_many = of_weir_anywhere(name, inside(&path)).is_some_and(|ours| ours.many) || REPEATED.contains(&name);
    if !is_many {
        let text = code(&String::from_utf8_lossy(look.tree.bytes(&first.at)));
        return Some(said!(
            "This line replaces {} of {} ({}).",
            "이 줄은 {1}의 {0} ({2}) 대신 적용됩니다.",
            text,
            of,
            at
        ));
    }
    let mode = match name {
        "add_header" => around.nearest("add_header_inherit"),
        "add_trailer" => around.nearest("add_trailer_inherit"),
        _ => None,
    };
    let lines = lines_of(around.own(), name).count();
    if mode.is_some_and(|mode| mode.text(0) == "merge") || ADDED.contains(&name) {
        return Some(said!(
            "The lines of this block ({}) are added to those of {2} ({1}, {3}).",
            "이 블록의 줄({0}개)은 {2}의 줄({1}개, {3})에 더해집니다.",
            lines,
            before.len(),
            of,
            at
        ));
    }
    Some(said!(
        "The lines of this block ({}) replace those of {2} ({1}, {3}): a block inherits them only if it has none of its own.",
        "이 블록의 줄({0}개)이 {2}의 줄({1}개, {3}) 대신 적용됩니다. 블록에 하나도 없을 때만 상속됩니다.",
        lines,
        before.len(),
        of,
        at
    ))
}

/// The blocks inside that have lines of their own.
fn inner(look: &Look<'_>, name: &str, around: &Around<'_>) -> Option<Said> {
    let mut blocks = Vec::new();
    blocks_with(around.own(), name, &mut blocks);
    if blocks.is_empty() {
        return None;
    }
    let shown: Vec<String> = blocks
        .iter()
        .take(NAMED_MAX)
        .map(|(block, line)| format!("{} ({})", code(&named(block)), escaped(&place(look.tree, line.at))))
        .collect();
    let shown = shown.join(", ");
    Some(match blocks.len().saturating_sub(NAMED_MAX) {
        0 => said!("Inside, these blocks set it themselves: {}.", "안쪽에서 따로 정하는 블록: {}", shown),
        more => said!(
            "Inside, these blocks set it themselves: {} and {} more.",
            "안쪽에서 따로 정하는 블록: {} 외 {}개",
            shown,
            more
        ),
    })
}

/// Adds the blocks at any depth that have a line of this directive, each with its first one.
fn blocks_with<'t>(statements: &'t [Statement], name: &str, found: &mut Vec<(&'t Statement, &'t Statement)>) {
    for block in statements.iter().filter(|one| one.is_block()) {
        found.extend(lines_of(block.children(), name).next().map(|line| (block, line)));
        blocks_with(block.children(), name, found);
    }
}
