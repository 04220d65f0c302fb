//! New bytes of a file as edits: the lines that differ.

use similar::DiffOp;
use similar::algorithms::{Capture, Compact, Replace, myers};
use weir_conf::Span;
use weir_conf::edit::Edit;

/// Most lines that are compared; more differing lines become one edit.
const LINES_MAX: usize = 4_000;

/// The edits that turn a file into other bytes, in rising order. They do not touch each other.
pub fn edits(file: u32, before: &[u8], after: &[u8]) -> Vec<Edit> {
    let (old, new): (Vec<&[u8]>, Vec<&[u8]>) = (lines(before), lines(after));
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let rest = old.len().min(new.len()) - same;
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(old, new)| old == new).count();
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    let ops = match old_end - same + new_end - same {
        0 => Vec::new(),
        lines if lines > LINES_MAX => {
            vec![DiffOp::Replace { old_index: same, old_len: old_end - same, new_index: same, new_len: new_end - same }]
        }
        _ => {
            let mut steps = Compact::new(Replace::new(Capture::new()), old.as_slice(), new.as_slice());
            let Ok(()) = myers::diff(&mut steps, old.as_slice(), same..old_end, new.as_slice(), same..new_end);
            steps.into_inner().into_inner().into_ops()
        }
    };
    let starts = starts(&old);
    let start = |line: usize| starts.get(line).copied().unwrap_or(u32::MAX);
    let changed = ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. }));
    let edit = |op: &DiffOp| {
        let (from, to) = (op.old_range(), op.new_range());
        let with = new.get(to).unwrap_or_default().concat();
        Edit { file, span: Span { start: start(from.start), end: start(from.end) }, with }
    };
    changed.map(edit).collect()
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

/// The first byte of each line, and the end.
fn starts(lines: &[&[u8]]) -> Vec<u32> {
    let mut starts = vec![0_u32];
    let mut sum = 0_usize;
    for line in lines {
        sum += line.len();
        starts.push(u32::try_from(sum).unwrap_or(u32::MAX));
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_changed_place_is_an_edit_of_its_own() {
        let edits = edits(3, b"a\nb\nc\nd\n", b"a\nB\nc\nd\ne\n");
        let spans: Vec<_> = edits.iter().map(|edit| (edit.span.start, edit.span.end, edit.with.as_slice())).collect();
        assert_eq!(spans, [(2, 4, &b"B\n"[..]), (8, 8, b"e\n")]);
        assert!(edits.iter().all(|edit| edit.file == 3));
        assert_eq!(super::edits(0, b"same", b"same"), []);
    }

    proptest::proptest! {
        #[test]
        fn edits_make_the_other_bytes(before in "([ab]{0,2}(\n|\r\n)){0,40}[ab]?", after in "([ab]{0,2}(\n|\r\n)){0,40}[ab]?") {
            let edits = edits(0, before.as_bytes(), after.as_bytes());
            let all: Vec<&Edit> = edits.iter().collect();
            let made = weir_conf::edit::apply(before.as_bytes(), &all);
            proptest::prop_assert_eq!(made, Ok(after.into_bytes()));
        }
    }
}
