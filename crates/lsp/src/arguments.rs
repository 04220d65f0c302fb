//! The arguments of directives as far as their words are known: fixed words, parameters, times, sizes, numbers.
//!
//! `arguments.txt` is the table. Names that a configuration defines itself (upstreams, zones) are in `names`.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The table as text.
const TABLE: &str = include_str!("arguments.txt");

/// One word that may stand at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentWord {
    /// This word.
    Fixed(&'static str),
    /// A word of this kind: `TIME`, `SIZE`, or a text that only its name explains.
    Value(&'static str),
    /// A parameter: its name with the `=` or the last `:`, and the kind of its value.
    Parameter(&'static str, &'static str),
}

impl ArgumentWord {
    fn read(text: &'static str) -> ArgumentWord {
        let is_kind = |text: &str| {
            text.starts_with(|c: char| c.is_ascii_uppercase() || c == '$')
                && text.chars().all(|c| c.is_ascii_uppercase() || matches!(c, '$' | ':' | '_'))
        };
        // Methods of HTTP and protocols are written in capitals, too.
        if !KINDS.contains(&text) && !text.contains('=') && !text.contains(':') {
            return ArgumentWord::Fixed(text);
        }
        if KINDS.contains(&text) {
            return ArgumentWord::Value(text);
        }
        let split = text.find('=').or_else(|| text.find(':')).map(|at| text.split_at(at + 1));
        match split {
            Some((name, value)) if is_kind(value) => ArgumentWord::Parameter(name, value),
            _ => ArgumentWord::Fixed(text),
        }
    }
}

/// The kinds of values that stand alone at a position.
const KINDS: [&str; 34] = [
    "ADDRESS",
    "CHARSET",
    "CODE",
    "COOKIE",
    "CPUMASK",
    "DOMAIN",
    "FILE",
    "FORMAT",
    "GROUP",
    "HEADER",
    "HOST",
    "ISSUER",
    "KEY",
    "NAME",
    "NUMBER",
    "PARAMETER",
    "PATH",
    "PORT",
    "RATE",
    "REDIRECT",
    "REGEX",
    "REPLACEMENT",
    "SIZE",
    "TEXT",
    "TIME",
    "URI",
    "URL",
    "USER",
    "VALUE",
    "$VARIABLE",
    "POOL",
    "PART",
    "CONDITION",
    "LEVEL",
];

/// The words that may stand at one position.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ArgumentPosition {
    /// The alternatives.
    pub words: Vec<ArgumentWord>,
    /// Whether the position repeats to the end of the statement.
    pub repeats: bool,
}

/// The positions of a directive's arguments.
pub type ArgumentPositions = Vec<ArgumentPosition>;

static DIRECTIVES: LazyLock<HashMap<&'static str, &'static ArgumentPositions>> = LazyLock::new(|| {
    let mut found = HashMap::new();
    for (positions, names) in lines() {
        let positions: ArgumentPositions = positions.split(' ').map(position).collect();
        let positions: &'static ArgumentPositions = Box::leak(Box::new(positions));
        for name in names.split_whitespace() {
            found.entry(name).or_insert(positions);
        }
    }
    found
});

fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.lines().filter(|line| is_entry(line)).filter_map(|line| line.rsplit_once(": "))
}

fn is_entry(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('#')
}

fn position(text: &'static str) -> ArgumentPosition {
    // "~*" is a word of location.
    let (text, repeats) = match text.strip_suffix('*').filter(|rest| !rest.ends_with('~')) {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    ArgumentPosition { words: text.split('|').map(ArgumentWord::read).collect(), repeats }
}

/// The arguments of a directive in a block (`upstream`, `server`), in `stream` or not. `None` if the table has none.
pub fn arguments(name: &str, block: &str, in_stream: bool) -> Option<&'static ArgumentPositions> {
    let find = |key: String| DIRECTIVES.get(key.as_str()).copied();
    let of_stream =
        in_stream.then(|| find(format!("stream/{block}/{name}")).or_else(|| find(format!("stream/{name}"))));
    let of_block = || find(format!("{block}/{name}"));
    // The `server` of an upstream and the block of that name share nothing.
    let anywhere = || DIRECTIVES.get(name).copied();
    of_stream.flatten().or_else(of_block).or_else(anywhere)
}

/// The words that may stand at an argument, from 0.
pub fn words_at(positions: &ArgumentPositions, index: usize) -> &[ArgumentWord] {
    let exact = positions.get(index);
    let repeated = || positions.last().filter(|last| last.repeats);
    exact.or_else(repeated).map_or(&[], |position| position.words.as_slice())
}

/// The kind of an argument's value (`TIME`, `SIZE` …) and the value's text: the whole word, or what follows `name=`.
pub fn kind_of<'w>(positions: &ArgumentPositions, index: usize, word: &'w str) -> Option<(&'static str, &'w str)> {
    let words = words_at(positions, index);
    let parameter = words.iter().find_map(|one| match one {
        ArgumentWord::Parameter(name, kind) => word.strip_prefix(*name).map(|value| (*kind, value)),
        ArgumentWord::Fixed(_) | ArgumentWord::Value(_) => None,
    });
    let is_fixed = words.iter().any(|one| matches!(one, ArgumentWord::Fixed(text) if *text == word));
    let whole = || {
        words.iter().find_map(|one| match one {
            ArgumentWord::Value(kind) if !is_fixed => Some((*kind, word)),
            ArgumentWord::Value(_) | ArgumentWord::Fixed(_) | ArgumentWord::Parameter(..) => None,
        })
    };
    parameter.or_else(whole)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::inside;
    use std::collections::HashSet;

    #[test]
    fn each_line_is_about_known_directives_and_kinds() {
        let mut seen = HashSet::new();
        for (positions, names) in lines() {
            assert!(!positions.is_empty() && !positions.contains("||"), "{positions}");
            for name in names.split_whitespace() {
                assert!(seen.insert(name), "{name} has two lines");
                let bare = name.rsplit('/').next().unwrap();
                let is_known = inside::of_nginx(bare).is_some() || weir_edge::family::ALL.known.has(bare);
                assert!(is_known, "{name}");
            }
        }
        assert_eq!(lines().count(), TABLE.lines().filter(|line| is_entry(line)).count());
    }

    /// A word in capitals that is no kind would be offered as it is.
    #[test]
    fn words_in_capitals_are_kinds_or_meant() {
        let meant = [
            "GET",
            "HEAD",
            "POST",
            "PUT",
            "DELETE",
            "MKCOL",
            "COPY",
            "MOVE",
            "OPTIONS",
            "PROPFIND",
            "PROPPATCH",
            "LOCK",
            "UNLOCK",
            "PATCH",
        ];
        for (name, positions) in DIRECTIVES.iter() {
            for word in positions.iter().flat_map(|position| &position.words) {
                if let ArgumentWord::Fixed(text) = word {
                    let is_capital = text.chars().all(|c| c.is_ascii_uppercase());
                    assert!(!is_capital || meant.contains(text), "{name}: {text}");
                }
            }
        }
    }

    #[test]
    fn the_place_chooses_the_line() {
        let first =
            |name: &str, block: &str, in_stream| words_at(arguments(name, block, in_stream).unwrap(), 0).to_vec();
        assert_eq!(first("gzip", "server", false), [ArgumentWord::Fixed("on"), ArgumentWord::Fixed("off")]);
        assert_eq!(first("proxy_read_timeout", "location", false), [ArgumentWord::Value("TIME")]);
        assert!(first("proxy_next_upstream", "server", true).contains(&ArgumentWord::Fixed("on")));
        assert!(first("proxy_next_upstream", "server", false).contains(&ArgumentWord::Fixed("http_502")));
        let server = arguments("server", "upstream", false).unwrap();
        assert!(words_at(server, 7).contains(&ArgumentWord::Parameter("fail_timeout=", "TIME")));
        assert!(words_at(arguments("location", "server", false).unwrap(), 0).contains(&ArgumentWord::Fixed("~*")));
        assert_eq!(arguments("server", "http", false), None);
    }

    #[test]
    fn the_kind_of_a_value_is_found() {
        let kind = |name: &str, index, word| kind_of(arguments(name, "", false).unwrap(), index, word);
        assert_eq!(kind("keepalive_timeout", 1, "60"), Some(("TIME", "60")));
        assert_eq!(kind("proxy_cache_path", 4, "inactive=10m"), Some(("TIME", "10m")));
        assert_eq!(kind("proxy_cache_path", 1, "keys_zone=a:10m"), Some(("NAME:SIZE", "a:10m")));
        assert_eq!(kind("open_file_cache", 0, "off"), None);
        assert_eq!(kind("proxy_buffers", 1, "8k"), Some(("SIZE", "8k")));
        assert_eq!(kind("gzip", 0, "on"), None);
    }
}
