//! A table whose keys may be host names with wildcards, for `map` with `hostnames` and for `valid_referers`.
//!
//! nginx's order: exact, then the longest `*.suffix`, then the longest `prefix.*`. Keys and the names looked up are
//! lower case.

use std::collections::HashMap;

/// Names, exact and with wildcards, to values.
pub struct HostTable<T> {
    exact: HashMap<Box<[u8]>, T>,
    /// By the part that starts at the dot: `.example.com`.
    suffixes: HashMap<Box<[u8]>, T>,
    /// By the part up to the dot: `www.example.`.
    prefixes: HashMap<Box<[u8]>, T>,
}

/// Why a key was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// Not a name, or its wildcards are not allowed: at most one, at the beginning or the end.
    Invalid,
    /// The table has it already.
    Conflict,
}

impl Misfit {
    /// nginx's message about the key.
    pub fn words(self, key: &str) -> String {
        match self {
            Misfit::Invalid => format!("invalid hostname or wildcard \"{key}\""),
            Misfit::Conflict => format!("conflicting parameter \"{key}\""),
        }
    }
}

impl<T> Default for HostTable<T> {
    fn default() -> Self {
        HostTable { exact: HashMap::new(), suffixes: HashMap::new(), prefixes: HashMap::new() }
    }
}

impl<T: Clone> HostTable<T> {
    /// Adds a key; `wildcards` says whether `*.a`, `.a` and `a.*` have their meaning.
    pub fn add(&mut self, key: &[u8], wildcards: bool, value: T) -> Result<(), Misfit> {
        let key = key.to_ascii_lowercase();
        if wildcards {
            let stars = key.iter().filter(|byte| **byte == b'*').count();
            if stars > 1 || key.windows(2).any(|pair| pair == b"..") || key.contains(&0) {
                return Err(Misfit::Invalid);
            }
            match key.as_slice() {
                [b'.', rest @ ..] if !rest.is_empty() => {
                    insert(&mut self.exact, rest, value.clone())?;
                    return insert(&mut self.suffixes, &key, value);
                }
                [b'*', dotted @ ..] if dotted.len() > 1 && dotted.starts_with(b".") => {
                    return insert(&mut self.suffixes, dotted, value);
                }
                [dotted @ .., b'*'] if dotted.len() > 1 && dotted.ends_with(b".") => {
                    return insert(&mut self.prefixes, dotted, value);
                }
                _ if stars > 0 => return Err(Misfit::Invalid),
                _ => {}
            }
        }
        insert(&mut self.exact, &key, value)
    }

    /// The value of a lower-case name.
    pub fn find(&self, name: &[u8]) -> Option<&T> {
        if let Some(value) = self.exact.get(name) {
            return Some(value);
        }
        if !self.suffixes.is_empty() {
            let found = dots(name).find_map(|at| self.suffixes.get(name.get(at..)?));
            if found.is_some() {
                return found;
            }
        }
        if self.prefixes.is_empty() {
            return None;
        }
        dots(name).rev().find_map(|at| self.prefixes.get(name.get(..=at)?))
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.suffixes.is_empty() && self.prefixes.is_empty()
    }
}

fn insert<T>(map: &mut HashMap<Box<[u8]>, T>, key: &[u8], value: T) -> Result<(), Misfit> {
    if map.contains_key(key) {
        return Err(Misfit::Conflict);
    }
    map.insert(key.into(), value);
    Ok(())
}

/// The positions of dots that have something before them.
fn dots(name: &[u8]) -> impl DoubleEndedIterator<Item = usize> {
    name.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'.').map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wildcard_of_the_first_kind_wins() {
        let mut table = HostTable::default();
        for (value, key) in
            ["www.example.com", "*.example.com", "*.com", ".dot.org", "www.*", "www.example.*"].iter().enumerate()
        {
            assert_eq!(table.add(key.as_bytes(), true, value), Ok(()), "{key}");
        }
        for (name, value) in [
            ("www.example.com", Some(0)),
            ("a.b.example.com", Some(1)),
            ("example.com", Some(2)),
            ("com", None),
            ("dot.org", Some(3)),
            ("a.dot.org", Some(3)),
            ("www.net", Some(4)),
            ("www.example.net", Some(5)),
            ("", None),
        ] {
            assert_eq!(table.find(name.as_bytes()).copied(), value, "{name}");
        }
    }

    #[test]
    fn keys_are_checked_as_in_nginx() {
        let mut table = HostTable::default();
        for (key, result) in [
            ("a.com", Ok(())),
            ("A.com", Err(Misfit::Conflict)),
            (".a.com", Err(Misfit::Conflict)),
            ("*.*", Err(Misfit::Invalid)),
            ("a*b", Err(Misfit::Invalid)),
            ("a..b", Err(Misfit::Invalid)),
        ] {
            assert_eq!(table.add(key.as_bytes(), true, ()), result, "{key}");
        }
        assert_eq!(table.add(b"*.*", false, ()), Ok(()));
        assert!(table.find(b"*.*").is_some());
    }
}
