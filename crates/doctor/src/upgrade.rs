//! The Connection field of requests to an origin, and variables that are right for WebSockets and plain requests.

use weir_conf::edit::{self, Edit};

use crate::possible::{self, Possible, PossibleRequest};
use crate::view::{Spot, View};

/// The `proxy_set_header Connection` in force at this `proxy_pass`.
pub fn connection<'v>(pass: Spot<'v>) -> Option<Spot<'v>> {
    let headers = pass.scope().effective_all("proxy_set_header");
    headers.into_iter().find(|spot| spot.arg(0).eq_ignore_ascii_case("connection"))
}

/// The values that a `proxy_set_header` gives its field in the requests of this `proxy_pass`.
pub fn values(field: Spot<'_>, pass: Spot<'_>, request: PossibleRequest) -> Possible {
    possible::of_text(field.arg(1), pass, request)
}

/// Whether a value of Connection has this option (RFC 9110 §7.6.1).
pub fn has_option(value: &str, option: &str) -> bool {
    value.split(',').any(|one| one.trim().eq_ignore_ascii_case(option))
}

/// Whether an origin ends the connection after a request with this Connection field.
pub fn ends(value: &str) -> bool {
    has_option(value, "close")
}

/// A variable that names the upgrade for a WebSocket and is empty for a plain request.
pub struct UpgradeVariable {
    /// The variable, with its `$`.
    pub name: String,
    /// The line of its map, if the file does not have the map.
    new_map: Option<String>,
    /// The edit that adds this map; `None` if no block of the file can hold it.
    edit: Option<Edit>,
}

impl UpgradeVariable {
    /// The text to write for a line (without `;`) that uses the variable: the line, after the map if the file does not
    /// have it.
    pub fn to_write(&self, line: &str) -> String {
        match &self.new_map {
            Some(map) => format!("{map} {line};"),
            None => format!("{line};"),
        }
    }

    /// The edits of a line that uses the variable, and the edit of its map. `None` if the file does not have the map
    /// and no block of the file can hold it.
    pub fn with_map(&self, mut edits: Vec<Edit>) -> Option<Vec<Edit>> {
        if self.new_map.is_some() {
            edits.push(self.edit.clone()?);
        }
        Some(edits)
    }
}

/// The best such variable: one that the file has, or the variable of a new map.
pub fn upgrade_variable(view: &View<'_>) -> UpgradeVariable {
    let is_right = |map: &Spot<'_>| {
        let of = |request| {
            let entry = possible::entry_for(*map, request)?;
            Some(possible::of_text(entry.arg(0), *map, request))
        };
        let plain = of(PossibleRequest::Plain).is_none_or(|value| value.always(str::is_empty));
        plain && of(PossibleRequest::WebSocket).is_some_and(|value| value.always(|value| has_option(value, "upgrade")))
    };
    let is_map = |map: &Spot<'_>| map.is_block() && map.arg(0).eq_ignore_ascii_case("$http_upgrade");
    if let Some(map) = view.named("map").filter(is_map).find(is_right) {
        return UpgradeVariable { name: map.arg(1).to_owned(), new_map: None, edit: None };
    }
    let name = format!("${}", free_name(view));
    let line = format!("map $http_upgrade {name} {{ websocket upgrade; default ''; }}");
    let http = view.root().get("http").filter(|http| http.is_block());
    let edit = http.and_then(|http| edit::insert_block_into(view.tree(), http.statement(), &line));
    UpgradeVariable { name, new_map: Some(line), edit }
}

/// A name that no variable of the file has: `connection_upgrade`, or this name with a number.
fn free_name(view: &View<'_>) -> String {
    let is_free = |name: &String| possible::definition(view, name).is_none() && view.sets(name).next().is_none();
    let numbered = (2_usize..).map(|number| format!("connection_upgrade_{number}"));
    std::iter::once("connection_upgrade".to_owned()).chain(numbered).find(is_free).unwrap_or_default()
}
