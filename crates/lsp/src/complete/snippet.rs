//! The text of a directive with places for its arguments, in the form of LSP's snippets.

use weir_http::read::directive::{Arity, Directive};

use crate::arguments::{ArgumentPosition, ArgumentWord, arguments, words_at};
use crate::inside::Inside;

/// Most arguments that get a place.
const PLACES_MAX: usize = 4;

/// Blocks of nginx's modules that weir lacks.
pub fn is_nginxs_block(name: &str) -> bool {
    matches!(name, "mail" | "server" | "mgmt" | "oidc_provider" | "geoip2")
}

/// The text of a directive here.
pub fn of(name: &str, ours: Option<&Directive>, here: Inside, is_block: bool) -> String {
    let block = here.nginx.rsplit(' ').next().unwrap_or_default();
    let mut places = Places { next: 1 };
    let least = match ours.map(|ours| ours.arity) {
        Some(Arity::Flag) => 1,
        Some(Arity::Between(least, _) | Arity::AtLeast(least)) => usize::from(least),
        None if is_block => 0,
        None => 1,
    };
    let positions = arguments(name, block, here.is_stream());
    let is_flag = ours.is_some_and(|ours| ours.arity == Arity::Flag);
    let mut text = name.to_owned();
    for index in 0..least.min(PLACES_MAX) {
        let words = positions.map_or(&[][..], |positions| words_at(positions, index));
        text.push(' ');
        text.push_str(&match name {
            "if" => format!("({})", places.value("condition")),
            _ if words.is_empty() && is_flag => places.choice(&["on", "off"]),
            _ => places.argument(&ArgumentPosition { words: words.to_vec(), repeats: false }),
        });
    }
    if is_block {
        text.push_str(" {\n\t$0\n}");
    } else {
        text.push(';');
    }
    text
}

/// The places of a text, numbered from 1.
struct Places {
    next: usize,
}

impl Places {
    fn argument(&mut self, position: &ArgumentPosition) -> String {
        let fixed: Vec<&str> = position
            .words
            .iter()
            .filter_map(|word| match word {
                ArgumentWord::Fixed(text) => Some(*text),
                ArgumentWord::Value(_) | ArgumentWord::Parameter(..) => None,
            })
            .collect();
        let other = position.words.iter().find(|word| !matches!(word, ArgumentWord::Fixed(_)));
        match other {
            Some(ArgumentWord::Value(kind)) => self.value(kind),
            Some(ArgumentWord::Parameter(name, kind)) if fixed.is_empty() => {
                let value = self.value(kind);
                format!("{}{value}", escaped(name))
            }
            _ if fixed.is_empty() => self.value("value"),
            _ => self.choice(&fixed),
        }
    }

    /// Places for a value: `NAME:SIZE` has two.
    fn value(&mut self, kind: &str) -> String {
        let parts = kind.split(':').map(|part| {
            let number = self.next;
            self.next += 1;
            match part.strip_prefix('$') {
                Some(name) => format!("\\$${{{number}:{}}}", name.to_ascii_lowercase()),
                None => format!("${{{number}:{}}}", escaped(&part.to_ascii_lowercase())),
            }
        });
        parts.collect::<Vec<_>>().join(":")
    }

    fn choice(&mut self, words: &[&str]) -> String {
        let number = self.next;
        self.next += 1;
        let words: Vec<String> =
            words.iter().map(|word| escaped(word).replace(',', "\\,").replace('|', "\\|")).collect();
        format!("${{{number}|{}|}}", words.join(","))
    }
}

/// A text in which nothing has a meaning for snippets.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('$', "\\$").replace('}', "\\}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inside::{inside, of_weir};

    #[test]
    fn a_directive_has_places_for_its_arguments() {
        for (name, path, expected) in [
            ("gzip", "http", "gzip ${1|on,off|};"),
            ("server", "http", "server {\n\t$0\n}"),
            ("location", "server", "location ${1:uri} {\n\t$0\n}"),
            ("upstream", "http", "upstream ${1:name} {\n\t$0\n}"),
            ("map", "http", "map ${1:text} \\$${2:variable} {\n\t$0\n}"),
            ("if", "server", "if (${1:condition}) {\n\t$0\n}"),
            ("break", "server", "break;"),
            ("proxy_read_timeout", "http", "proxy_read_timeout ${1:time};"),
            ("proxy_buffers", "http", "proxy_buffers ${1:number} ${2:size};"),
            ("limit_conn_zone", "http", "limit_conn_zone ${1:key} zone=${2:name}:${3:size};"),
            ("set", "server", "set \\$${1:variable} ${2:value};"),
            ("server", "upstream", "server ${1:address};"),
            ("root", "server", "root ${1:value};"),
        ] {
            let here = inside(&[path]);
            let ours = of_weir(name, here);
            let is_block = ours.is_some_and(|ours| ours.block);
            assert_eq!(of(name, ours, here, is_block), expected, "{name} in {path}");
        }
    }
}
