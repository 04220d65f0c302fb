//! The Connection field of requests to an origin, and variables that are right for WebSockets and plain requests.

use weir_conf::edit::{self, Edit};

use crate::possible::{self, Possible, Request};
use crate::view::{Spot, View};

/// The name that a new map gets, unless the file has a variable of that name.
const NAMES: [&str; 3] = ["connection_upgrade", "connection_or_empty", "connection_of_websocket"];

/// The `proxy_set_header Connection` in force at this `proxy_pass`.
pub fn connection<'v>(pass: Spot<'v>) -> Option<Spot<'v>> {
    let headers = pass.scope().effective_all("proxy_set_header");
    headers.into_iter().find(|spot| spot.arg(0).eq_ignore_ascii_case("connection"))
}

/// The values that a Connection field of a `proxy_set_header` can have.
pub fn values(connection: Spot<'_>, request: Request) -> Possible {
    possible::of_text(connection.arg(1), connection, request)
}

/// Whether a value of Connection has this option (RFC 9110 §7.6.1).
pub fn names(value: &str, option: &str) -> bool {
    value.split(',').any(|one| one.trim().eq_ignore_ascii_case(option))
}

/// Whether an origin ends the connection after a request with this Connection field.
pub fn ends(value: &str) -> bool {
    names(value, "close")
}

/// The edits that give a `proxy_pass` these lines. `None` if a new `proxy_set_header` would drop those of the outer
/// block.
pub fn lines(pass: Spot<'_>, missing: &[String]) -> Option<Vec<Edit>> {
    let (scope, tree) = (pass.scope(), pass.view().tree());
    let headers = scope.effective_all("proxy_set_header");
    let drops = headers.first().is_some_and(|spot| !spot.scope().is(scope));
    if drops && missing.iter().any(|line| line.starts_with("proxy_set_header ")) {
        return None;
    }
    let mut edits = Vec::new();
    let mut new: Vec<&str> = Vec::new();
    for line in missing {
        let mut words = line.split(' ');
        let (name, first) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        // A second line would be a duplicate, or a second field.
        let mut own = scope.statements().filter(|spot| spot.name() == name);
        let old = own.find(|spot| name != "proxy_set_header" || spot.arg(0).eq_ignore_ascii_case(first));
        match old {
            Some(old) => edits.push(edit::replace(old.statement(), line)),
            None => new.push(line),
        }
    }
    if !new.is_empty() {
        edits.push(edit::insert_after(tree, pass.statement(), &new.join("\n"))?);
    }
    Some(edits)
}

/// A variable that names the upgrade for a WebSocket and is empty for a plain request.
pub struct Right {
    /// The variable, with its `$`.
    pub variable: String,
    /// The edit that adds its map; `None` if the file has the map.
    pub map: Option<Edit>,
    /// The line of its map.
    pub line: String,
}

/// The best such variable: one that the file has, or the variable of a new map. `None` if this is a part of a
/// configuration without such a map, and no block here can hold one.
pub fn right(view: &View<'_>) -> Option<Right> {
    let is_right = |map: &Spot<'_>| {
        let of = |request| {
            let entry = possible::entry_for(*map, request)?;
            Some(possible::of_text(entry.arg(0), *map, request))
        };
        let plain = of(Request::Plain).is_none_or(|value| value.always(str::is_empty));
        plain && of(Request::WebSocket).is_some_and(|value| value.always(|value| names(value, "upgrade")))
    };
    let is_map = |map: &Spot<'_>| map.is_block() && map.arg(0).eq_ignore_ascii_case("$http_upgrade");
    let known = view.named("map").filter(is_map).find(is_right);
    let line = |name: &str| format!("map $http_upgrade ${name} {{ websocket upgrade; default ''; }}");
    if let Some(map) = known {
        return Some(Right { variable: map.arg(1).to_owned(), map: None, line: map.line() });
    }
    let name = free_name(view)?;
    let http = view.root().get("http").filter(|http| http.is_block())?;
    let map = edit::insert_block_into(view.tree(), http.statement(), &line(name))?;
    Some(Right { variable: format!("${name}"), map: Some(map), line: line(name) })
}

/// A name of [`NAMES`] that no variable of the file has.
fn free_name(view: &View<'_>) -> Option<&'static str> {
    let is_taken = |name: &str| {
        let is_it = |spot: Spot<'_>| {
            spot.args().last().and_then(|to| to.strip_prefix('$')).is_some_and(|to| to.eq_ignore_ascii_case(name))
        };
        let mut blocks = ["map", "geo", "split_clients"].into_iter().flat_map(|kind| view.named(kind));
        blocks.any(is_it) || view.sets(name).next().is_some()
    };
    NAMES.into_iter().find(|name| !is_taken(name))
}
