//! The tables of a screen: server zones, servers of upstreams, errors.

use std::cmp::Ordering;

use serde_json::Value;

use super::choice::{PANES, Pane};
use super::screen::{Screen, escaped};
use crate::figures::{percent, rate, short, time};
use crate::texts;

/// A table before it is drawn.
pub(super) struct Listing {
    /// The names of the columns; the first is the name of the table.
    pub(super) heads: Vec<&'static str>,
    pub(super) lines: Vec<TableLine>,
}

/// A row.
pub(super) struct TableLine {
    cells: Vec<Cell>,
    pub(super) is_failing: bool,
}

/// A cell, and the figure by which it is sorted; a cell without a figure is sorted by its text.
struct Cell {
    text: String,
    figure: Option<f64>,
}

fn words(text: String) -> Cell {
    Cell { text, figure: None }
}

fn figure(figure: Option<f64>, text: String) -> Cell {
    Cell { text, figure: Some(figure.unwrap_or(f64::NEG_INFINITY)) }
}

impl TableLine {
    /// The texts of the cells.
    pub(super) fn texts(self) -> impl Iterator<Item = String> {
        self.cells.into_iter().map(|cell| cell.text)
    }
}

impl Listing {
    /// Puts the rows in the chosen order: figures begin with the largest, names with the first letter.
    pub(super) fn sort(&mut self, pane: &Pane) {
        if let Some(by) = pane.by {
            self.lines.sort_by(|one, other| order(one.cells.get(by), other.cells.get(by)));
        }
        if pane.is_turned {
            self.lines.reverse();
        }
    }
}

fn order(one: Option<&Cell>, other: Option<&Cell>) -> Ordering {
    match (one, other) {
        (Some(Cell { figure: Some(one), .. }), Some(Cell { figure: Some(other), .. })) => other.total_cmp(one),
        (Some(one), Some(other)) => one.text.cmp(&other.text),
        _ => Ordering::Equal,
    }
}

/// The number of columns of each table.
pub(super) const COLUMNS: [usize; PANES] = [7, 7, 4];

/// The tables, from top to bottom.
pub(super) fn of(screen: &Screen<'_>) -> [Listing; PANES] {
    [screen.zones(), screen.peers(), screen.errors()]
}

impl Screen<'_> {
    /// Server zones, the busiest first.
    fn zones(&self) -> Listing {
        let zones = self.doc.pointer("/snapshot/http/server_zones").and_then(Value::as_object);
        let times = self.doc.pointer("/snapshot/weir/server_zones");
        let lines = zones.into_iter().flatten().map(|(name, _)| {
            let times = times.and_then(|times| times.get(name)).unwrap_or(&Value::Null);
            let recent = &times["recent"];
            let quantile = |name: &str| {
                let ms = recent[name].as_f64().map(|us| us / 1000.0);
                figure(ms, self.told(&time(ms)))
            };
            let codes = format!("/snapshot/http/server_zones/{}/responses/codes", escaped(name));
            let class = |class: char| self.between(|doc| class_of(doc.pointer(&codes)?, class));
            let grown = |class: Option<f64>| figure(class, self.told(&rate(class)));
            let (now, failed) = (times["rate"].as_f64(), class('5'));
            let cells = vec![
                words(name.clone()),
                figure(now, self.told(&rate(now))),
                quantile("p50_us"),
                quantile("p95_us"),
                quantile("p99_us"),
                grown(class('4')),
                grown(failed),
            ];
            TableLine { cells, is_failing: failed.is_some_and(|failed| failed > 0.0) }
        });
        let mut lines: Vec<TableLine> = lines.collect();
        lines.sort_by(|one, other| order(one.cells.get(1), other.cells.get(1)));
        Listing {
            heads: vec![self.say(texts::TOP_ZONE), self.say(texts::TOP_RATE), "p50", "p95", "p99", "4xx", "5xx"],
            lines,
        }
    }

    /// Servers of upstreams, group by group.
    fn peers(&self) -> Listing {
        let groups = self.doc.pointer("/snapshot/http/upstreams").and_then(Value::as_object);
        let mut lines = Vec::new();
        for (name, group) in groups.into_iter().flatten() {
            for (place, peer) in group["peers"].as_array().into_iter().flatten().enumerate() {
                let path = format!("/snapshot/weir/upstreams/{}/{place}", escaped(name));
                let cost = self.doc.pointer(&path).unwrap_or(&Value::Null);
                let number = |name: &str| cost[name].as_f64().unwrap_or_default();
                let all = number("opened") + number("reused");
                let ms = cost["header"]["recent"]["p95_us"].as_f64().map(|us| us / 1000.0);
                let total = |member: &str| {
                    self.grew(&format!("/snapshot/http/upstreams/{}/peers/{place}/{member}", escaped(name)))
                };
                let (requests, failing) = (total("requests"), total("fails"));
                let reused = (all > 0.0).then(|| number("reused") / all);
                let state = peer["state"].as_str().unwrap_or_default();
                let cells = vec![
                    words(format!("{name}  {}", peer["server"].as_str().unwrap_or_default())),
                    figure(requests, self.told(&rate(requests))),
                    figure(peer["active"].as_f64(), short(peer["active"].as_f64())),
                    figure(reused, percent(reused)),
                    figure(ms, self.told(&time(ms))),
                    figure(peer["fails"].as_f64(), short(peer["fails"].as_f64())),
                    words(self.state(state)),
                ];
                let is_out = !matches!(state, "up" | "draining" | "checking" | "");
                lines.push(TableLine { cells, is_failing: is_out || failing.is_some_and(|fails| fails > 0.0) });
            }
        }
        let heads = [
            texts::TOP_PEER,
            texts::TOP_RATE,
            texts::TOP_IN_FLIGHT,
            texts::REUSED,
            texts::HEAD_P95,
            texts::FAILS,
            texts::STATE,
        ];
        Listing { heads: heads.map(|text| self.say(text)).to_vec(), lines }
    }

    /// Classes of errors, in the order of the dashboard: failed requests first.
    fn errors(&self) -> Listing {
        let classes = self.doc.pointer("/snapshot/weir/errors").and_then(Value::as_array);
        let lines = classes.into_iter().flatten().map(|error| {
            let class = error["class"].as_str().unwrap_or_default();
            let kind = error["kind"].as_str().unwrap_or_default();
            let count = |doc: &Value| {
                let all = doc.pointer("/snapshot/weir/errors")?.as_array()?;
                all.iter().find(|error| error["class"] == class)?["count"].as_f64()
            };
            // A class that has no count before has just begun.
            let grown =
                self.between(count).or_else(|| self.before.is_some().then(|| error["count"].as_f64()).flatten());
            let last = error["last"].as_str().unwrap_or_default();
            let clock = last.split(['T', '.']).nth(1).unwrap_or_default();
            let cells = vec![
                words(format!("{} · {}", self.said(&error["title"]), self.kind(kind))),
                figure(grown, self.told(&rate(grown))),
                figure(error["count"].as_f64(), short(error["count"].as_f64())),
                words(clock.to_owned()),
            ];
            TableLine { cells, is_failing: kind == "failed" }
        });
        let heads = [texts::TOP_ERROR, texts::TOP_NOW, texts::TOP_COUNT, texts::TOP_LAST];
        let lines = lines.collect();
        Listing { heads: heads.map(|text| self.say(text)).to_vec(), lines }
    }
}

/// The number of statuses in a list that begin with this digit; `None` if there is no list.
fn class_of(codes: &Value, class: char) -> Option<f64> {
    let of_class = codes.as_object()?.iter().filter(|(code, _)| code.starts_with(class));
    Some(of_class.filter_map(|(_, count)| count.as_f64()).sum())
}
