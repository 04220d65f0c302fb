//! Finds the name that a mistyped name most likely means.

/// Longer names are not typing errors; comparing them would take too long.
const NAME_CHARS_MAX: usize = 64;

/// The nearest name, if it is near enough to suggest: at most one edit per three letters.
pub(crate) fn nearest<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let length = name.chars().count();
    if length > NAME_CHARS_MAX {
        return None;
    }
    let allowed = (length / 3).max(1);
    names
        .into_iter()
        .filter(|other| other.chars().count().abs_diff(length) <= allowed && other.len() > 1)
        .map(|other| (edits(&name.to_ascii_lowercase(), &other.to_ascii_lowercase()), other))
        .filter(|(edits, _)| *edits <= allowed)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, other)| other)
}

/// Number of inserted, dropped, changed or swapped letters between two words.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let from: Vec<char> = from.chars().collect();
    let mut rows: [Vec<usize>; 3] = [Vec::new(), Vec::new(), (0..=to.len()).collect()];
    let of = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
    for (i, a) in from.iter().enumerate() {
        rows.rotate_left(1);
        let [older, old, new] = &mut rows;
        new.clear();
        new.push(i + 1);
        for (j, b) in to.iter().enumerate() {
            let change = of(old, j) + usize::from(a != b);
            let mut best = change.min(of(old, j + 1) + 1).min(of(new, j) + 1);
            let swaps = i > 0 && j > 0 && from.get(i - 1) == Some(b) && to.get(j - 1) == Some(a);
            if swaps {
                best = best.min(of(older, j - 1) + 1);
            }
            new.push(best);
        }
    }
    rows.last().and_then(|row| row.last()).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_near_name_is_meant() {
        let names = ["think", "loop", "log", "parallel", "function", "get", "followRedirect"];
        let cases = [
            ("thnik", Some("think")),
            ("lop", Some("loop")),
            ("functon", Some("function")),
            ("Get", Some("get")),
            ("followRedirects", Some("followRedirect")),
            ("followredirect", Some("followRedirect")),
            ("wait_for_it", None),
            ("zzz", None),
        ];
        for (name, expected) in cases {
            assert_eq!(nearest(name, names), expected, "{name}");
        }
        assert_eq!((edits("ab", "ba"), edits("kitten", "sitting"), edits("", "abc")), (1, 3, 3));
    }
}
