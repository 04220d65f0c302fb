//! File name patterns as in `glob(3)`, with any function that lists a directory.
//!
//! `*` and `?` stay in one path component and do not match a leading dot; `[a-z]`, `[!a]` and `\` are supported.
//! Results are sorted by bytes, as in the C locale.

use std::io;

/// Most paths for one pattern; further ones are left out.
pub const PATHS_MAX: usize = 10_000;

/// True if nginx treats this `include` argument as a pattern.
pub fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '['])
}

/// The existing paths that match an absolute pattern, sorted.
///
/// `list` returns the names in a directory (its argument ends in `/`), `exists` returns true if a path exists. A
/// directory that cannot be listed has no names, as in `glob(3)`.
pub fn expand(
    pattern: &str,
    list: &dyn Fn(&str) -> io::Result<Vec<String>>,
    exists: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    let mut bases = vec![String::new()];
    let mut components = pattern.split('/').peekable();
    while let Some(component) = components.next() {
        let tail = if components.peek().is_some() { "/" } else { "" };
        let mut found = Vec::new();
        for base in bases {
            if !is_pattern(component) {
                let path = format!("{base}{}{tail}", unescaped(component));
                if path.ends_with('/') || exists(&path) {
                    found.push(path);
                }
                continue;
            }
            let dir = if base.is_empty() { "./" } else { &base };
            let names = list(dir).unwrap_or_default();
            let matching = names.iter().filter(|name| matches(component, name));
            found.extend(matching.map(|name| format!("{base}{name}{tail}")));
            found.truncate(PATHS_MAX);
        }
        bases = found;
    }
    bases.sort_unstable();
    bases
}

/// True if a file name matches a pattern without `/`.
pub fn matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with(['.', '\\']) {
        return false;
    }
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    // The position for the next attempt when a character does not match: after the last `*`, one character later.
    let mut retry = None;
    while n < name.len() {
        if pattern.get(p) == Some(&'*') {
            retry = Some((p + 1, n + 1));
            p += 1;
            continue;
        }
        match (one(&pattern, p, name.get(n)), retry) {
            (Some(length), _) => {
                p += length;
                n += 1;
            }
            (None, Some((star, next))) => {
                p = star;
                n = next;
                retry = Some((star, next + 1));
            }
            (None, None) => return false,
        }
    }
    pattern.iter().skip(p).all(|c| *c == '*')
}

/// Length of the pattern element at `p`, if it matches this character.
fn one(pattern: &[char], p: usize, c: Option<&char>) -> Option<usize> {
    let c = *c?;
    match *pattern.get(p)? {
        '?' => Some(1),
        '[' => match set(pattern.get(p + 1..).unwrap_or_default(), c) {
            Some((true, length)) => Some(length + 1),
            Some((false, _)) => None,
            None => (c == '[').then_some(1),
        },
        '\\' => match pattern.get(p + 1) {
            Some(next) => (*next == c).then_some(2),
            None => (c == '\\').then_some(1),
        },
        literal => (literal == c).then_some(1),
    }
}

/// True if a bracket set (its text after `[`) contains a character; and its length with the `]`. `None` if it is
/// never closed: then it is not a set.
fn set(text: &[char], c: char) -> Option<(bool, usize)> {
    let is_negated = matches!(text.first(), Some('!' | '^'));
    let first = usize::from(is_negated);
    let mut pos = first;
    let mut is_in = false;
    loop {
        let low = *text.get(pos)?;
        if low == ']' && pos > first {
            return Some((is_in != is_negated, pos + 1));
        }
        match (text.get(pos + 1), text.get(pos + 2)) {
            (Some('-'), Some(high)) if *high != ']' => {
                is_in |= (low..=*high).contains(&c);
                pos += 3;
            }
            _ => {
                is_in |= low == c;
                pos += 1;
            }
        }
    }
}

/// A component without wildcards, its `\` resolved.
fn unescaped(component: &str) -> String {
    let mut text = String::with_capacity(component.len());
    let mut chars = component.chars();
    while let Some(c) = chars.next() {
        text.push(if c == '\\' { chars.next().unwrap_or(c) } else { c });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_matches_as_in_glob_3() {
        let yes = [("*.conf", "a.conf"), ("*", "x"), ("a?c", "abc"), ("[a-c]x", "bx")];
        let also = [("[!a]x", "bx"), ("a*b*c", "aXbYbZc"), ("\\*", "*"), (".*", ".x"), ("[", "[")];
        for (pattern, name) in yes.iter().chain(&also) {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        let no = [("*.conf", "a.con"), ("*", ".hidden"), ("?x", ".x"), ("[!b]x", "bx")];
        for (pattern, name) in no.iter().chain(&[("a*b", "ac"), ("\\*", "x"), ("abc", "ab")]) {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn directories_may_be_patterns_too() {
        let list = |dir: &str| -> io::Result<Vec<String>> {
            Ok(match dir {
                "/etc/" => vec!["b".into(), "a".into()],
                "/etc/a/" => vec!["2.conf".into(), "1.conf".into(), ".0.conf".into()],
                "/etc/b/" => vec!["x.conf".into(), "readme".into()],
                _ => return Err(io::ErrorKind::NotFound.into()),
            })
        };
        let found = expand("/etc/*/*.conf", &list, &|_| true);
        assert_eq!(found, ["/etc/a/1.conf", "/etc/a/2.conf", "/etc/b/x.conf"]);
        assert!(expand("/none/*", &list, &|_| true).is_empty());
        assert!(expand("/etc/*/only", &list, &|path| path == "/etc/b/only").len() == 1);
    }
}
