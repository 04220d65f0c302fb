//! The possible values of a variable, and whether the client or the configuration controls them.
//!
//! Follows `set`, `map` and captures to nginx's own variables. An unknown variable has no possible values, so that a
//! rule reports only provable problems.

use std::cell::Cell;

use crate::regex::{self, ByteSet, Node};
use crate::view::{Match, Scope, Spot, matches_by};

/// The deepest chain of variables. It stops cycles of `map` and `set`.
const DEPTH_MAX: usize = 12;

/// Most variables that are followed for one question. Beyond that, a text has no further values.
const STEPS_MAX: usize = 20_000;

/// How far a question has been followed.
#[derive(Clone, Copy)]
struct Trail<'s> {
    depth: usize,
    steps: &'s Cell<usize>,
}

/// Most entries of one `map` that are followed.
const MAP_ENTRIES_MAX: usize = 4096;

/// The possible values of a text with variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Reach {
    /// Bytes that may occur anywhere in it.
    pub bytes: ByteSet,
    /// Bytes it may begin with.
    pub first: ByteSet,
    /// Whether the client chooses it freely.
    pub free: bool,
    /// Whether it may be empty.
    pub empty: bool,
}

impl Reach {
    fn or(self, other: Reach) -> Reach {
        Reach {
            bytes: self.bytes.or(other.bytes),
            first: self.first.or(other.first),
            free: self.free || other.free,
            empty: self.empty || other.empty,
        }
    }

    fn of_text(text: &str) -> Reach {
        let first = text.bytes().next().map_or(ByteSet::NONE, ByteSet::one);
        Reach { bytes: ByteSet::of(text.as_bytes()), first, free: false, empty: text.is_empty() }
    }
}

/// A part of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentPiece<'t> {
    /// Literal text.
    Text(&'t str),
    /// The name of a variable, without `$` and braces.
    Variable(&'t str),
}

/// Splits a text such as `http://$host/a${b}c`.
pub fn pieces(text: &str) -> Vec<ArgumentPiece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        let (before, after) = (rest.get(..dollar).unwrap_or_default(), rest.get(dollar + 1..).unwrap_or_default());
        let (name, next) = match after.strip_prefix('{') {
            Some(braced) => braced.split_once('}').unwrap_or((braced, "")),
            None => {
                let length = if after.starts_with(|c: char| c.is_ascii_digit()) {
                    1
                } else {
                    after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len())
                };
                after.split_at(length)
            }
        };
        if !before.is_empty() {
            pieces.push(ArgumentPiece::Text(before));
        }
        if name.is_empty() {
            pieces.push(ArgumentPiece::Text("$"));
        } else {
            pieces.push(ArgumentPiece::Variable(name));
        }
        rest = next;
    }
    if !rest.is_empty() {
        pieces.push(ArgumentPiece::Text(rest));
    }
    pieces
}

/// The variables of a text.
pub fn variables(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).into_iter().filter_map(|piece| match piece {
        ArgumentPiece::Variable(name) => Some(name),
        ArgumentPiece::Text(_) => None,
    })
}

/// The possible values of this text in a statement.
pub fn of_text(text: &str, spot: Spot<'_>) -> Reach {
    text_at(text, spot, Trail { depth: 0, steps: &Cell::new(0) })
}

/// The possible values of this variable in a statement.
pub fn of_variable(name: &str, spot: Spot<'_>) -> Reach {
    variable_at(name, spot, Trail { depth: 0, steps: &Cell::new(0) })
}

fn text_at(text: &str, spot: Spot<'_>, trail: Trail<'_>) -> Reach {
    let mut whole = Reach { empty: true, ..Reach::default() };
    for piece in pieces(text) {
        let part = match piece {
            ArgumentPiece::Text(text) => Reach::of_text(text),
            ArgumentPiece::Variable(name) => variable_at(name, spot, trail),
        };
        whole.bytes = whole.bytes.or(part.bytes);
        if whole.empty {
            whole.first = whole.first.or(part.first);
        }
        whole.free |= part.free;
        whole.empty &= part.empty;
    }
    whole
}

fn variable_at(name: &str, spot: Spot<'_>, trail: Trail<'_>) -> Reach {
    trail.steps.set(trail.steps.get() + 1);
    if trail.depth > DEPTH_MAX || trail.steps.get() > STEPS_MAX {
        return Reach::default();
    }
    let trail = Trail { depth: trail.depth + 1, ..trail };
    let name = name.to_ascii_lowercase();
    capture(&name, spot, trail)
        .or_else(|| assigned(&name, spot, trail))
        .or_else(|| mapped(&name, spot, trail))
        .unwrap_or_else(|| built_in(&name))
}

/// nginx's own variables (nginx.org/en/docs/varindex.html) that a client influences.
fn built_in(name: &str) -> Reach {
    let header = ByteSet::of(b"\r\n\0").others();
    let free = |bytes: ByteSet, first: ByteSet, empty| Reach { bytes, first, free: true, empty };
    match name {
        // Decoded: %0d%0a has become CR and LF.
        "uri" | "document_uri" => free(ByteSet::one(0).others(), ByteSet::one(b'/'), false),
        // As received, not decoded: it contains no line break.
        "request_uri" => free(header.and(ByteSet::one(b' ').others()), ByteSet::one(b'/'), false),
        "args" | "query_string" => free(header.and(ByteSet::one(b' ').others()), header, true),
        "host" => free(ByteSet::of(b"/\\ \r\n\0@").others(), ByteSet::of(b"/\\ \r\n\0@").others(), false),
        "request_body" => free(ByteSet::ALL, ByteSet::ALL, true),
        "remote_user" => free(header, header, true),
        _ if ["http_", "arg_", "cookie_"].iter().any(|start| name.starts_with(start)) => free(header, header, true),
        _ => Reach::default(),
    }
}

/// A pattern of the configuration, and the text that it is matched against.
pub struct Pattern<'v> {
    /// The statement that contains it.
    pub spot: Spot<'v>,
    /// The PCRE source.
    pub text: &'v str,
    /// Whether case is ignored.
    pub caseless: bool,
    /// The text that it is matched against, with variables.
    pub subject: &'v str,
}

impl Pattern<'_> {
    /// The pattern's syntax tree.
    pub fn tree(&self) -> Option<Node> {
        regex::parse(self.text, self.caseless)
    }
}

/// The pattern of a `location`, `if`, `rewrite` or `server_name`. For a `map`, see [`entry_pattern`].
pub fn pattern(spot: Spot<'_>) -> Option<Pattern<'_>> {
    match spot.name() {
        "location" => match matches_by(spot) {
            Match::Pattern(text, caseless) => Some(Pattern { spot, text, caseless, subject: "$uri" }),
            _ => None,
        },
        "rewrite" => Some(Pattern { spot, text: spot.arg(0), caseless: false, subject: "$uri" }),
        "server_name" => {
            let text = spot.args().find_map(|name| name.strip_prefix('~'))?;
            Some(Pattern { spot, text, caseless: true, subject: "$host" })
        }
        "if" => condition(spot).and_then(|(subject, operator, text)| match operator {
            "~" | "!~" => Some(Pattern { spot, text, caseless: false, subject }),
            "~*" | "!~*" => Some(Pattern { spot, text, caseless: true, subject }),
            _ => None,
        }),
        _ => None,
    }
}

/// The pattern of an entry of a `map`.
pub fn entry_pattern<'v>(map: Spot<'v>, entry: Spot<'v>) -> Option<Pattern<'v>> {
    let text = entry.name().strip_prefix('~')?;
    let (text, caseless) = text.strip_prefix('*').map_or((text, false), |text| (text, true));
    Some(Pattern { spot: entry, text, caseless, subject: map.arg(0) })
}

/// Every pattern of the configuration.
pub fn patterns<'v>(view: &'v crate::view::View<'v>) -> Vec<Pattern<'v>> {
    let mut patterns: Vec<Pattern<'v>> = view.all().filter_map(pattern).collect();
    for map in view.named("map") {
        patterns.extend(map.inside().statements().filter_map(|entry| entry_pattern(map, entry)));
    }
    patterns
}

/// `if ($a ~ b)`: left side, operator, right side. The last two are empty for `if ($a)`.
pub fn condition(spot: Spot<'_>) -> Option<(&str, &str, &str)> {
    let mut words: Vec<&str> = spot.args().collect();
    if words.last() == Some(&")") {
        words.pop();
    } else if let Some(last) = words.last_mut() {
        *last = last.strip_suffix(')').unwrap_or(last);
    }
    if words.first() == Some(&"(") {
        words.remove(0);
    } else if let Some(first) = words.first_mut() {
        *first = first.strip_prefix('(').unwrap_or(first);
    }
    let word = |index: usize| words.get(index).copied().unwrap_or_default();
    (!words.is_empty()).then(|| (word(0), word(1), word(2)))
}

/// The possible values of `$1` or a named group. `None` if no pattern has the group.
fn capture(name: &str, spot: Spot<'_>, trail: Trail<'_>) -> Option<Reach> {
    let number = name.parse::<usize>().ok();
    for pattern in patterns_before(spot) {
        // A numbered capture belongs to the last pattern, even if that pattern has fewer groups.
        let Some(tree) = pattern.tree() else { continue };
        let group = match number {
            Some(number) => tree.group(number),
            None => tree.group_named(name),
        };
        match group {
            Some((group, _)) => return Some(matched(group, &pattern, trail)),
            None if number.is_some() && tree.groups() > 0 => return None,
            None => {}
        }
    }
    None
}

/// The possible matches of a group.
fn matched(group: &Node, pattern: &Pattern<'_>, trail: Trail<'_>) -> Reach {
    // The trail stops a subject that is its own capture.
    let subject = text_at(pattern.subject, pattern.spot, trail);
    Reach {
        bytes: group.bytes().and(subject.bytes),
        first: group.first().and(subject.bytes),
        free: group.is_free() && subject.free,
        empty: group.may_be_empty(),
    }
}

/// The patterns that may have set the captures before this statement, latest first: earlier `rewrite`s and `if`s of
/// its block, then the block's own pattern, then the same for the outer blocks.
fn patterns_before(spot: Spot<'_>) -> Vec<Pattern<'_>> {
    let mut found = Vec::new();
    let mut here = spot;
    loop {
        let scope = here.scope();
        let earlier = scope.statements().rev().filter(|other| here.is_after(*other));
        found.extend(
            earlier.filter(|other| matches!(other.name(), "rewrite" | "if" | "server_name")).filter_map(pattern),
        );
        let Some(opener) = scope.opener() else { break };
        found.extend(pattern(opener));
        // Captures belong to a request, and a request is in one server.
        if matches!(opener.name(), "server" | "http") {
            break;
        }
        here = opener;
    }
    found
}

/// `set $name value`: the values in the nearest block that sets it.
fn assigned(name: &str, spot: Spot<'_>, trail: Trail<'_>) -> Option<Reach> {
    // `set $a $a/b` uses the value before.
    let is_other = |set: &Spot<'_>| !set.is(spot);
    let all: Vec<Spot<'_>> = spot.view().sets(name).filter(is_other).collect();
    let inside = |scope: &Scope<'_>| {
        let holds = |set: &&Spot<'_>| set.scope().outwards().any(|around| around.is(*scope));
        all.iter().filter(holds).copied().collect::<Vec<_>>()
    };
    let sets = spot.scope().outwards().map(|scope| inside(&scope)).find(|sets| !sets.is_empty())?;
    sets.into_iter().take(MAP_ENTRIES_MAX).map(|set| text_at(set.arg(1), set, trail)).reduce(Reach::or)
}

/// `map source $name { }`: every possible value.
fn mapped(name: &str, spot: Spot<'_>, trail: Trail<'_>) -> Option<Reach> {
    let map = spot
        .view()
        .named("map")
        .find(|map| map.is_block() && map.arg(1).strip_prefix('$').is_some_and(|to| to.eq_ignore_ascii_case(name)))?;
    let entries = map.inside().statements().take(MAP_ENTRIES_MAX);
    let values = entries.filter(|entry| !matches!(entry.name(), "hostnames" | "volatile" | "include")).map(|entry| {
        let value = entry.arg(0);
        let Some(pattern) = entry_pattern(map, entry) else { return text_at(value, map, trail) };
        let tree = pattern.tree();
        let mut whole = Reach { empty: true, ..Reach::default() };
        for piece in pieces(value) {
            let part = match piece {
                ArgumentPiece::Text(text) => Reach::of_text(text),
                ArgumentPiece::Variable(name) => {
                    let group = tree.as_ref().and_then(|tree| match name.parse() {
                        Ok(number) => tree.group(number),
                        Err(_) => tree.group_named(name),
                    });
                    match group {
                        Some((group, _)) => matched(group, &Pattern { spot: map, ..pattern_of(&pattern) }, trail),
                        None => variable_at(name, map, trail),
                    }
                }
            };
            whole.bytes = whole.bytes.or(part.bytes);
            if whole.empty {
                whole.first = whole.first.or(part.first);
            }
            whole.free |= part.free;
            whole.empty &= part.empty;
        }
        whole
    });
    values.reduce(Reach::or)
}

fn pattern_of<'v>(pattern: &Pattern<'v>) -> Pattern<'v> {
    Pattern { spot: pattern.spot, text: pattern.text, caseless: pattern.caseless, subject: pattern.subject }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_into_pieces() {
        use ArgumentPiece::{Text, Variable};
        assert_eq!(
            pieces("http://$host/a${b}c$1x$"),
            [
                Text("http://"),
                Variable("host"),
                Text("/a"),
                Variable("b"),
                Text("c"),
                Variable("1"),
                Text("x"),
                Text("$"),
            ]
        );
        assert_eq!(pieces(""), []);
    }

    #[test]
    fn circles_and_towers_of_variables_end() {
        let wide: String = (0..9).map(|n| format!("set $v{n} {};", format!("$v{}", n + 1).repeat(50))).collect();
        let text = format!("server {{ {wide} set $v9 $arg_x; set $c $d; set $d $c; return 302 $v0$c; }}");
        let files = weir_conf::MemoryFiles::new().with("/f", text);
        let (tree, _) = weir_conf::load(&files, "/f", "/", &|_| false);
        let view = crate::view::View::new(&tree);
        let spot = view.named("return").next();
        assert!(spot.is_some_and(|spot| of_text(spot.arg(1), spot).free));
    }

    #[test]
    fn variables_are_followed_to_the_client() {
        let text = "map $uri $m { ~^/a/(?<n>.*)$ x$n; default 1; }
            server { location ~ ^/(a|b)/(.*)$ { set $p $2; return 200 $1; return 201 $p; return 202 $m; return 203 $q; } }
            map $q $q { default $q; }";
        let files = weir_conf::MemoryFiles::new().with("/f", text);
        let (tree, _) = weir_conf::load(&files, "/f", "/", &|_| false);
        let view = crate::view::View::new(&tree);
        let reach = |code: &str| {
            let spot = view.named("return").find(|spot| spot.arg(0) == code);
            spot.map(|spot| of_text(spot.arg(1), spot)).unwrap_or_default()
        };
        assert_eq!((reach("200").bytes, reach("200").free), (ByteSet::of(b"ab"), false));
        assert!(reach("201").free && reach("201").bytes.has(b'\r') && !reach("201").bytes.has(b'\n'));
        assert!(reach("202").free && reach("202").first == ByteSet::of(b"x1"));
        assert_eq!(reach("203"), Reach::default());
    }
}
