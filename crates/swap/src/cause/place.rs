//! The line of a statement, as a report names it.

use weir_conf::{Statement, Tree};

use super::{CauseSide, CausingLine};

/// Most characters of a statement that a cause shows.
const TEXT_MAX: usize = 200;

/// The place of a statement of this tree. If the statement was changed, it is the line of the first word that differs.
pub fn cause(side: CauseSide, tree: &Tree, statement: &Statement, before: Option<&Statement>) -> CausingLine {
    let differs = before.and_then(|before| {
        let mut others = before.words();
        statement.words().find(|word| others.next().is_none_or(|other| other.bytes() != word.bytes()))
    });
    let at = differs.map_or(statement.at, |word| word.at);
    let source = tree.source(&at);
    CausingLine {
        side,
        file: source.map_or_else(String::new, |source| source.name.clone()),
        line: source.map_or(at.line, |source| source.line_of(at.span.start)),
        text: text(statement),
    }
}

/// A statement on one line, without the content of its block.
fn text(statement: &Statement) -> String {
    let mut text = String::new();
    let mut is_raw = false;
    for word in statement.words() {
        if !text.is_empty() {
            text.push(' ');
        }
        is_raw = word.quoted == Some('{');
        text.push_str(&match is_raw {
            true => "{…}".to_owned(),
            false => String::from_utf8_lossy(&weir_conf::quote(word.bytes())).into_owned(),
        });
    }
    text.push_str(if statement.is_block() { " {" } else { ";" }.get(usize::from(is_raw)..).unwrap_or_default());
    let safe = text.chars().map(|c| if c.is_control() { '\u{b7}' } else { c });
    match text.chars().count() > TEXT_MAX {
        true => safe.take(TEXT_MAX).chain(['…']).collect(),
        false => safe.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::edits::tests::tree;

    #[test]
    fn a_changed_word_on_a_later_line_is_named() {
        let before = tree("log_format x\n  'a'\n  'b';");
        let after = tree("log_format x\n  'a'\n  'c $d';");
        let found = cause(CauseSide::B, &after, &after.root[0], Some(&before.root[0]));
        assert_eq!((found.line, found.text.as_str()), (3, "log_format x a \"c $d\";"));
        assert_eq!(cause(CauseSide::A, &after, &after.root[0], None).line, 1);
    }

    #[test]
    fn a_long_statement_is_cut() {
        let long = tree(&format!("x {};", "y".repeat(500)));
        let found = cause(CauseSide::A, &long, &long.root[0], None);
        assert_eq!(found.text.chars().count(), TEXT_MAX + 1);
    }
}
