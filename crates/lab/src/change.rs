//! The differences of two configurations, and whether they are a single change.
//!
//! A lab compares one factor. With two factors at once, the effect could not be assigned to either of them.

use std::collections::BTreeMap;

use weir_conf::{Statement, Tree};

use crate::said::{Said, say};

/// Most differences that a refusal shows.
const SHOWN_MAX: usize = 12;

/// A directive that differs between both configurations, at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The blocks around it: `http/server 1/location /api`. Empty at the top level.
    pub place: String,
    /// The directive.
    pub name: String,
    /// Its arguments before, one entry for each occurrence.
    pub before: Vec<String>,
    /// Its arguments after, one entry for each occurrence.
    pub after: Vec<String>,
}

impl Difference {
    /// `keepalive (in http/upstream app): none → 64`.
    pub fn sentence(&self) -> String {
        self.said().en().to_owned()
    }

    /// As [`Difference::sentence`], in every language.
    pub fn said(&self) -> Said {
        let shown = |values: &[String]| match values {
            [] => say!(NONE),
            values => {
                let shown = values.iter().map(|value| if value.is_empty() { "{}" } else { value });
                Said::from(shown.collect::<Vec<_>>().join(", "))
            }
        };
        let (before, after) = (shown(&self.before), shown(&self.after));
        if self.place.is_empty() {
            return say!(CHANGE_AT_TOP, &self.name, before, after);
        }
        say!(CHANGE, &self.name, &self.place, before, after)
    }
}

/// Says why changes can have no effect, from a doctor's knowledge of defaults and headroom. An empty list is no
/// opinion.
///
/// This is the interface of the no-op lint. It gets both trees and their differences, and names each change that
/// does nothing.
pub type NoEffect = dyn Fn(&Tree, &Tree, &[Difference]) -> Vec<Said>;

/// Every difference, in the order of places.
pub fn changes(before: &Tree, after: &Tree) -> Vec<Difference> {
    let (mut before, mut after) = (flat(before), flat(after));
    let mut keys: Vec<_> = before.keys().chain(after.keys()).cloned().collect();
    keys.sort();
    keys.dedup();
    let change = |key: (String, String)| {
        let (before, after) = (before.remove(&key).unwrap_or_default(), after.remove(&key).unwrap_or_default());
        (before != after).then_some(Difference { place: key.0, name: key.1, before, after })
    };
    keys.into_iter().filter_map(change).collect()
}

/// Directives that count as one change together. Each inner list is one change.
pub type Together = Vec<Vec<String>>;

/// The name of the single factor that changes. The error names the factors if there are several.
pub fn one_factor(changes: &[Difference], together: &Together) -> Result<String, Said> {
    let factor = |name: &str| {
        together
            .iter()
            .find(|list| list.iter().any(|one| one == name))
            .map_or_else(|| name.to_owned(), |list| list.join("+"))
    };
    let mut factors: Vec<String> = changes.iter().map(|change| factor(&change.name)).collect();
    factors.sort();
    factors.dedup();
    match factors.as_slice() {
        [] => Err(say!(ERR_EQUAL)),
        [one] => Ok(one.clone()),
        several => {
            let shown = changes.iter().take(SHOWN_MAX);
            let mut lines: Vec<Said> = shown.map(|change| Said::list(&["  ".into(), change.said()], "")).collect();
            if changes.len() > SHOWN_MAX {
                lines.push(say!(ERR_AND_MORE, changes.len() - SHOWN_MAX));
            }
            let mut names: Vec<&str> = changes.iter().map(|change| change.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            Err(say!(ERR_SEVERAL_FACTORS, several.len(), several.join(", "), Said::list(&lines, "\n"), names.join(",")))
        }
    }
}

/// Directives by place and name. A block is a place, and its own arguments are part of the place. So a renamed
/// location counts as one removed and one added.
fn flat(tree: &Tree) -> BTreeMap<(String, String), Vec<String>> {
    let mut found = BTreeMap::new();
    // A list, not recursion: a configuration may be nested as deep as the parser allows.
    let mut open: Vec<(String, &[Statement])> = vec![(String::new(), &tree.root)];
    while let Some((place, statements)) = open.pop() {
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        for statement in statements {
            let args: Vec<String> = statement.args.iter().map(|word| word.text.clone()).collect();
            let args = args.join(" ");
            found.entry((place.clone(), statement.name.text.clone())).or_insert_with(Vec::new).push(args.clone());
            if statement.is_block() {
                let title = format!("{} {args}", statement.name.text).trim_end().to_owned();
                let number = numbers.entry(title.clone()).or_default();
                *number += 1;
                let title = if *number > 1 || title == "server" { format!("{title} {number}") } else { title };
                let inner = if place.is_empty() { title } else { format!("{place}/{title}") };
                open.push((inner, statement.children()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use weir_conf::MemoryFiles;

    fn tree(text: &str) -> Tree {
        let files = MemoryFiles::new().with("/nginx.conf", text);
        let (tree, problems) = weir_conf::load(&files, "/nginx.conf", "/", &|_| false);
        assert!(problems.is_empty(), "{problems:?}");
        tree
    }

    fn conf(upstream: &str, location: &str) -> Tree {
        tree(&format!(
            "events {{}} http {{ upstream app {{ server 127.0.0.1:1; {upstream} }} server {{ listen 80; location / {{ proxy_pass http://app; {location} }} }} }}"
        ))
    }

    #[test]
    fn one_directive_is_one_factor_wherever_it_stands() {
        let found = changes(&conf("", ""), &conf("keepalive 64;", ""));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].sentence(), "keepalive (in http/upstream app): none → 64");
        assert_eq!(one_factor(&found, &Vec::new()).unwrap(), "keepalive");
        let inner = changes(&conf("", "proxy_buffering off;"), &conf("", "proxy_buffering on;"));
        assert_eq!(inner[0].sentence(), "proxy_buffering (in http/server 1/location /): off → on");
    }

    #[test]
    fn two_are_refused_by_name_and_may_be_called_one() {
        let after = conf("keepalive 64;", "proxy_http_version 1.1; proxy_set_header Connection \"\";");
        let found = changes(&conf("", ""), &after);
        let refusal = one_factor(&found, &Vec::new()).unwrap_err();
        assert!(
            refusal.starts_with("3 factors change") && refusal.contains("keepalive (in http/upstream app): none → 64"),
            "{refusal}"
        );
        let together = vec![vec!["keepalive".to_owned(), "proxy_http_version".into(), "proxy_set_header".into()]];
        assert_eq!(one_factor(&found, &together).unwrap(), "keepalive+proxy_http_version+proxy_set_header");
    }

    #[test]
    fn layout_and_comments_are_no_change() {
        let one = tree("events { } # here\nhttp { server { listen 80; } }");
        let other = tree("events {}\nhttp {\n    server {\n        listen 80; # there\n    }\n}\n");
        assert_eq!(changes(&one, &other), []);
        assert!(one_factor(&[], &Vec::new()).unwrap_err().contains("--aa"));
        // The order of equal blocks matters: the first server is the default server.
        let swapped = changes(
            &tree("http { server { listen 80; } server { listen 81; } }"),
            &tree("http { server { listen 81; } server { listen 80; } }"),
        );
        assert_eq!(swapped.len(), 2);
    }
}
