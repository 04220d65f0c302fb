//! The texts that an argument can become for one kind of request.
//!
//! Follows `set`, `if`, `map`, `geo` and `split_clients`. A question names the value of `$http_upgrade`, so that a map
//! of it gives the one text of its entry. Any other variable of nginx can have every text.

use std::cell::Cell;

use weir_http::text::regex::Regex;
use weir_http::text::slots::VariableId;

use crate::reach::{self, ArgumentPiece};
use crate::view::{Scope, Spot, View};

/// The deepest chain of variables. It stops cycles.
const DEPTH_MAX: usize = 12;
/// Most variables that are followed for one question.
const STEPS_MAX: usize = 2_000;
/// Most different texts of one argument. An argument with more can have every text.
const TEXTS_MAX: usize = 64;
/// Most entries of one `map` that are followed.
const ENTRIES_MAX: usize = 4096;

/// A request, as far as a question fixes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PossibleRequest {
    /// It has no Upgrade field.
    Plain,
    /// It asks for a WebSocket.
    WebSocket,
}

impl PossibleRequest {
    const fn upgrade(self) -> &'static str {
        match self {
            PossibleRequest::Plain => "",
            PossibleRequest::WebSocket => "websocket",
        }
    }
}

/// The texts that an argument can become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Possible {
    texts: Vec<String>,
    /// Whether it can have no other text.
    is_complete: bool,
}

impl Possible {
    fn one(text: &str) -> Possible {
        Possible { texts: vec![text.to_owned()], is_complete: true }
    }

    const fn any() -> Possible {
        Possible { texts: Vec::new(), is_complete: false }
    }

    /// Whether it certainly has such a text.
    pub fn always(&self, is_such: impl Fn(&str) -> bool) -> bool {
        self.is_complete && self.texts.iter().all(|text| is_such(text))
    }

    /// Whether one of its known texts is such a text.
    pub fn sometimes(&self, is_such: impl Fn(&str) -> bool) -> bool {
        self.texts.iter().any(|text| is_such(text))
    }

    fn or(mut self, other: Possible) -> Possible {
        self.is_complete &= other.is_complete;
        for text in other.texts {
            if !self.texts.contains(&text) {
                self.texts.push(text);
            }
        }
        self.bounded()
    }

    /// Every text of one, followed by every text of the other.
    fn then(self, other: &Possible) -> Possible {
        let is_complete = self.is_complete && other.is_complete;
        let all = self.texts.iter().flat_map(|one| other.texts.iter().map(move |next| format!("{one}{next}")));
        Possible { texts: all.take(TEXTS_MAX + 1).collect(), is_complete }.bounded()
    }

    fn bounded(self) -> Possible {
        if self.texts.len() > TEXTS_MAX { Possible::any() } else { self }
    }
}

/// How far a question has been followed.
#[derive(Clone, Copy)]
struct Trail<'s> {
    request: PossibleRequest,
    depth: usize,
    steps: &'s Cell<usize>,
}

/// The texts that this argument of a statement can become.
pub fn of_text(text: &str, spot: Spot<'_>, request: PossibleRequest) -> Possible {
    text_at(text, spot, Trail { request, depth: 0, steps: &Cell::new(0) })
}

fn text_at(text: &str, spot: Spot<'_>, trail: Trail<'_>) -> Possible {
    let mut whole = Possible::one("");
    for piece in reach::pieces(text) {
        whole = match piece {
            ArgumentPiece::Text(text) => whole.then(&Possible::one(text)),
            ArgumentPiece::Variable(name) => whole.then(&variable_at(name, spot, trail)),
        };
    }
    whole
}

fn variable_at(name: &str, spot: Spot<'_>, trail: Trail<'_>) -> Possible {
    trail.steps.set(trail.steps.get() + 1);
    if trail.depth > DEPTH_MAX || trail.steps.get() > STEPS_MAX {
        return Possible::any();
    }
    let trail = Trail { depth: trail.depth + 1, ..trail };
    if name.eq_ignore_ascii_case("http_upgrade") {
        return Possible::one(trail.request.upgrade());
    }
    assigned(name, spot, trail).or_else(|| mapped(name, spot, trail)).unwrap_or_else(Possible::any)
}

/// `set $name value` before this statement: the last one that certainly runs, and those after it that may run.
fn assigned(name: &str, spot: Spot<'_>, trail: Trail<'_>) -> Option<Possible> {
    let all: Vec<Spot<'_>> = spot.view().sets(name).take(ENTRIES_MAX).filter(|set| is_before(*set, spot)).collect();
    all.first()?;
    let mut found: Option<Possible> = None;
    let mut add = |set: Spot<'_>| {
        let value = text_at(set.arg(1), set, trail);
        let sum = match found.take() {
            Some(found) => found.or(value),
            None => value,
        };
        found = Some(sum.clone());
        sum
    };
    for block in running(spot.scope()) {
        for set in all.iter().rev().copied() {
            match runs(set, block, spot, trail) {
                Some(true) => return Some(add(set)),
                Some(false) => {}
                None => {
                    add(set);
                }
            }
        }
    }
    // Another location may have set it before a redirect; otherwise it is empty.
    Some(found.map_or_else(Possible::any, |found| found.or(Possible::any())))
}

/// Whether a `set` of the same location or server comes before a statement. nginx runs the statements of the rewrite
/// module in the order of the file: first those of the server, then those of the location, and then it asks the origin.
fn is_before(set: Spot<'_>, spot: Spot<'_>) -> bool {
    let is_in_order = matches!(spot.name(), "set" | "if" | "return" | "rewrite");
    let is_of_server = spot.is_in("location") && !set.is_in("location");
    !set.is(spot) && (!is_in_order || spot.is_after(set) || is_of_server)
}

/// The blocks whose `set` statements run for a request of this block, the last ones first: its location and the server.
/// nginx runs none of an outer location, and none of the location around `limit_except`.
fn running(scope: Scope<'_>) -> impl Iterator<Item = Scope<'_>> {
    let mut has_location = false;
    scope.outwards().filter(move |block| match block.name() {
        "if" => false,
        "location" | "limit_except" => !std::mem::replace(&mut has_location, true),
        _ => true,
    })
}

/// Whether a `set` runs before this statement in each request of the block. `None` if it depends on the request.
fn runs(set: Spot<'_>, block: Scope<'_>, spot: Spot<'_>, trail: Trail<'_>) -> Option<bool> {
    let is_in_if = set.scope().opener().is_some_and(|opener| opener.name() == "if" && opener.scope().is(block));
    if !is_in_if {
        return Some(set.scope().is(block));
    }
    if set.scope().is(spot.scope()) {
        return Some(true);
    }
    let opener = set.scope().opener()?;
    let (subject, operator, value) = reach::condition(opener)?;
    // `-f` and its like ask the disk, and a variable in the value is of the request.
    let is_of_disk = !subject.starts_with('$');
    if is_of_disk || matches!(operator, "=" | "!=") && reach::variables(value).next().is_some() {
        return None;
    }
    let subject = text_at(subject, opener, trail);
    let value = value.trim_matches(['"', '\'']);
    let holds = |text: &str| match operator {
        "" => !text.is_empty() && text != "0",
        "=" => text == value,
        "!=" => text != value,
        "~" | "~*" => matches(value, operator == "~*", text),
        "!~" | "!~*" => !matches(value, operator == "!~*", text),
        _ => false,
    };
    if subject.always(holds) {
        return Some(true);
    }
    subject.always(|text| !holds(text)).then_some(false)
}

fn matches(pattern: &str, caseless: bool, text: &str) -> bool {
    let regex = Regex::new(pattern, caseless, false, |_| VariableId(0));
    regex.is_ok_and(|regex| regex.is_match(text.as_bytes()).unwrap_or(false))
}

/// The `map`, `geo` or `split_clients` that gives a variable its value; the name has no `$`.
pub fn definition<'v>(view: &'v View<'v>, name: &str) -> Option<Spot<'v>> {
    let is_it = |block: &Spot<'_>| {
        let to = block.args().last().and_then(|last| last.strip_prefix('$'));
        block.is_block() && to.is_some_and(|to| to.eq_ignore_ascii_case(name))
    };
    ["map", "geo", "split_clients"].into_iter().flat_map(|kind| view.named(kind)).find(is_it)
}

/// The value of `map`, `geo` or `split_clients`.
fn mapped(name: &str, spot: Spot<'_>, trail: Trail<'_>) -> Option<Possible> {
    let block = definition(spot.view(), name)?;
    let all: Vec<Spot<'_>> = entries(block).collect();
    let value = |entry: Spot<'_>| text_at(entry.arg(0), block, trail);
    let none = || Possible::one("");
    let has_hostnames = block.inside().get("hostnames").is_some();
    let is_partial = spot.view().tree().is_partial || all.len() >= ENTRIES_MAX;
    if block.name() == "map" && !has_hostnames && !is_partial {
        let source = text_at(block.arg(0), block, trail);
        if source.is_complete {
            let chosen = source.texts.iter().map(|text| chosen(block, &all, text).map_or_else(none, value));
            return chosen.reduce(Possible::or);
        }
    }
    let has_default = all.iter().any(|entry| entry.name() == "default" || entry.name() == "*");
    let values = all.iter().copied().map(value).reduce(Possible::or).unwrap_or_else(none);
    let values = if has_default { values } else { values.or(none()) };
    Some(if is_partial { values.or(Possible::any()) } else { values })
}

/// The entries of a `map` and its like.
pub fn entries(block: Spot<'_>) -> impl Iterator<Item = Spot<'_>> {
    let words = ["hostnames", "volatile", "include", "ranges", "proxy", "proxy_recursive", "delete"];
    let is_entry = move |entry: &Spot<'_>| entry.args().next().is_some() && !words.contains(&entry.name());
    block.inside().statements().filter(is_entry).take(ENTRIES_MAX)
}

/// The entry of a `map` for this text: the text itself in any case, the first pattern, or the default.
fn chosen<'v>(block: Spot<'v>, all: &[Spot<'v>], text: &str) -> Option<Spot<'v>> {
    let literal = |entry: &Spot<'v>| {
        let name = entry.name();
        let is_special = name == "default" || name.starts_with('~');
        !is_special && name.strip_prefix('\\').unwrap_or(name).eq_ignore_ascii_case(text)
    };
    let pattern = |entry: &Spot<'v>| {
        reach::entry_pattern(block, *entry).is_some_and(|pattern| matches(pattern.text, pattern.caseless, text))
    };
    let find = |is_it: &dyn Fn(&Spot<'v>) -> bool| all.iter().copied().find(|entry| is_it(entry));
    find(&literal).or_else(|| find(&pattern)).or_else(|| find(&|entry| entry.name() == "default"))
}

/// The entry that a `map` of `$http_upgrade` has for a request.
pub fn entry_for(map: Spot<'_>, request: PossibleRequest) -> Option<Spot<'_>> {
    let all: Vec<Spot<'_>> = entries(map).collect();
    let is_of_upgrade = map.name() == "map" && map.arg(0).eq_ignore_ascii_case("$http_upgrade");
    is_of_upgrade.then(|| chosen(map, &all, request.upgrade())).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::View;

    /// The texts of the last word of `return` or `proxy_pass`, sorted; `?` where it can have others.
    fn texts(conf: &str, request: PossibleRequest) -> String {
        let (tree, problems) = crate::load(&weir_conf::MemoryFiles::new().with("/f", conf), "/f", "/");
        assert_eq!(problems, [], "{conf}");
        let view = View::new(&tree);
        let spots = view.named("return").chain(view.named("proxy_pass")).next();
        let Some((spot, text)) = spots.and_then(|spot| Some((spot, spot.args().last()?))) else { return String::new() };
        let mut found = of_text(text, spot, request);
        found.texts.sort();
        let mut words: Vec<String> = found.texts.iter().map(|text| format!("'{text}'")).collect();
        if !found.is_complete {
            words.push("?".to_owned());
        }
        words.join(" ")
    }

    #[test]
    fn the_texts_of_an_argument_are_followed() {
        let rows = [
            // configuration, for a plain request, for a WebSocket
            ("server { return 200 close; }", "'close'", "'close'"),
            ("server { return 200 $http_connection; }", "?", "?"),
            ("map $http_upgrade $c { default upgrade; '' close; } server { return 200 $c; }", "'close'", "'upgrade'"),
            ("map $http_upgrade $c { default close; WebSocket up; } server { return 200 $c; }", "'close'", "'up'"),
            ("map $http_upgrade $c { ~. upgrade; } server { return 200 a$c; }", "'a'", "'aupgrade'"),
            ("map $http_x $c { default close; b keep; } server { return 200 $c; }", "'close' 'keep'", "'close' 'keep'"),
            (
                "map $http_upgrade $a { '' x; default y; } map $a $c { x close; y $a; } server { return 200 $C; }",
                "'close'",
                "'y'",
            ),
            ("server { set $c close; location / { return 200 $c; } }", "'close'", "'close'"),
            ("server { set $c close; location / { set $c up; return 200 $c; } }", "'up'", "'up'"),
            ("server { set $c ''; if ($http_upgrade) { set $c up; } return 200 $c; }", "''", "'up'"),
            ("server { set $c up; if ($http_upgrade = '') { set $c close; } return 200 $c; }", "'close'", "'up'"),
            ("server { set $c up; if ($http_upgrade !~* ^web) { set $c close; } return 200 $c; }", "'close'", "'up'"),
            ("server { set $c a; if ($arg_x) { set $c b; } return 200 $c; }", "'a' 'b'", "'a' 'b'"),
            ("server { location /b { set $c close; } location / { return 200 $c; } }", "?", "?"),
            ("server { location / { proxy_pass $c; set $c a; } set $c b; }", "'a'", "'a'"),
            ("server { location / { return 200 $c; set $c a; } set $c b; }", "'b'", "'b'"),
            ("server { location / { set $c $a; proxy_pass $c; } set $a close; }", "'close'", "'close'"),
            // nginx runs no codes of an outer location, and those of no location in `limit_except`.
            ("server { set $c a; location /o { set $c b; location /o/i { return 200 $c; } } }", "'a'", "'a'"),
            ("server { set $c a; location / { set $c b; limit_except GET { proxy_pass $c; } } }", "'a'", "'a'"),
            ("server { set $c a; location / { if ($arg_x) { proxy_pass $c; } set $c b; } }", "'b'", "'b'"),
            ("server { set $c a; location / { if ($arg_x) { proxy_pass $c; set $c b; } } }", "'b'", "'b'"),
            ("server { set $c a; location / { if ($c = a) { set $c b; } proxy_pass $c; } }", "'b'", "'b'"),
            ("server { set $c a; if (!-f $uri) { set $c b; } return 200 $c; }", "'a' 'b'", "'a' 'b'"),
            ("server { set $c a; if (-f $uri) { set $c b; } return 200 $c; }", "'a' 'b'", "'a' 'b'"),
            ("server { set $c a; set $a x; if ($a = $http_x) { set $c b; } return 200 $c; }", "'a' 'b'", "'a' 'b'"),
            ("server { set $a close; set $c $a; return 200 $c; }", "'close'", "'close'"),
            ("server { set $a $b; set $b $a; return 200 $a$b; }", "?", "?"),
            ("geo $c { default close; } server { return 200 $c; }", "'close'", "'close'"),
            ("split_clients $uri $c { 50% close; * ''; } server { return 200 $c; }", "'' 'close'", "'' 'close'"),
        ];
        for (conf, plain, websocket) in rows {
            assert_eq!(texts(conf, PossibleRequest::Plain), plain, "{conf}");
            assert_eq!(texts(conf, PossibleRequest::WebSocket), websocket, "{conf}");
        }
    }

    #[test]
    fn circles_and_towers_of_variables_end() {
        let wide: String = (0..9).map(|n| format!("set $v{n} \"{}\";", format!("$v{}", n + 1).repeat(50))).collect();
        let text = format!(
            "map $a $b {{ default $a; }} map $b $a {{ default $b; }} server {{ set $v9 x; {wide} return 200 $v0$a; }}"
        );
        assert_eq!(texts(&text, PossibleRequest::Plain), "?");
    }
}
