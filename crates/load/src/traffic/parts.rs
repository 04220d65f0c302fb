//! The parts from which weir makes a script, and the forms of its values.

use std::net::IpAddr;

use super::detail::TextId;
use super::gather::AccessLogs;
use super::phases::LogWindow;
use super::routes::Routes;
use super::sessions::Sessions;
use super::wish::Wish;
use crate::url::Url;

/// Everything that the script is made from.
pub(super) struct ScriptParts<'l> {
    pub(super) wish: &'l Wish,
    pub(super) log: &'l AccessLogs,
    pub(super) window: &'l LogWindow,
    pub(super) routes: &'l Routes,
    pub(super) sessions: &'l Sessions,
    /// Stretches of time in which arrivals come in bursts.
    pub(super) bursts: u64,
}

/// The values of a scenario that differ from session to session.
#[derive(Default)]
pub(super) struct Columns {
    pub(super) rows: usize,
    pub(super) all: Vec<(String, Vec<String>)>,
}

impl Columns {
    /// The text of the value in the script: the value itself if all rows have the same, or its template.
    pub(super) fn place(&mut self, name: &str, values: Vec<String>, template: impl Fn(&str) -> String) -> String {
        if values.iter().all(|value| Some(value) == values.first()) {
            return values.into_iter().next().unwrap_or_default();
        }
        // A session that has the same id in each request has it in one column.
        if let Some((known, _)) = self.all.iter().find(|(_, known)| *known == values) {
            return template(known);
        }
        let is_taken = |name: &str| self.all.iter().any(|(known, _)| known == name);
        let numbered = (2..).map(|number| format!("{name}{number}"));
        let name = std::iter::once(name.to_owned()).chain(numbered).find(|name| !is_taken(name)).unwrap_or_default();
        let shown = template(&name);
        self.all.push((name, values));
        shown
    }
}

impl ScriptParts<'_> {
    /// A pause of the traffic at the speed of the script.
    pub(super) fn scaled(&self, ms: u64) -> u64 {
        (ms as f64 / self.wish.speed).round() as u64
    }

    /// The value of `Host`. A target that is an address would lead to the default server of the edge, and the lab's target
    /// always is one. `None`: the traffic has no name, or the target has another one.
    pub(super) fn host(&self) -> Option<&str> {
        let host = self.log.host.as_deref().filter(|host| is_name(host))?;
        let own = Url::parse(&self.wish.target).ok()?.host;
        (!is_name(&own) || own == host).then_some(host)
    }

    /// A text, or nothing.
    pub(super) fn text(&self, text: Option<TextId>) -> &str {
        text.map_or("", |text| self.log.details.texts.get(text))
    }
}

/// True for a name of a server, not an address. A log has it from the client: it may be anything.
fn is_name(host: &str) -> bool {
    let is_plain = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    is_plain && !host.is_empty() && host != "localhost" && host.parse::<IpAddr>().is_err()
}

/// The index of a row when `rows` are taken from `all`: one at random from each stretch of equal length. Every n-th would
/// follow a period of the log.
pub(super) fn spread(row: usize, rows: usize, all: usize, random: &mut fastrand::Rng) -> usize {
    let (from, to) = (row * all / rows.max(1), (row + 1) * all / rows.max(1));
    if to > from { random.usize(from..to) } else { from.min(all.saturating_sub(1)) }
}

/// A pause as Artillery reads it: a fraction without a unit would be milliseconds.
pub(super) fn time(ms: u64) -> String {
    if ms.is_multiple_of(1000) && ms > 0 { format!("{}s", ms / 1000) } else { format!("{ms}ms") }
}

pub(super) fn tenth(value: f64) -> String {
    format!("{value:.1}")
}

/// A text in quotes; JSON's strings are YAML's.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
