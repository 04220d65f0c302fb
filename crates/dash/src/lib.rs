//! `dash`: from what an edge knows of itself to what its page shows.
//!
//! A [`Dashboard`] is shown one [`Snapshot`](weir_meter::live::Snapshot) a second. It keeps ten minutes of points, sets
//! each limit beside its use with its trend, says in a sentence what limits the edge, and makes the bytes that viewers
//! get: the whole once, then what has changed. The page itself is in `web/`, and [`assets`] holds it.
//!
//! Not here: sockets, clocks, threads, files. Time comes with the snapshots.
#![forbid(unsafe_code)]

pub mod assets;
pub mod feed;
pub mod history;
pub mod journal;
pub mod logs;
pub mod point;
pub mod runs;
pub mod verdict;
pub mod waterline;
pub mod words;

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};
use weir_meter::live::Snapshot;

use feed::{Feed, Frame};
use history::History;
use point::Point;
use verdict::Verdict;
use waterline::{Trends, Waterline};
use words::Said;

/// Snapshots a verdict looks back on: those of ten seconds, and the one before them.
pub const RECENT_MAX: usize = 11;

/// Everything that is kept between two seconds.
#[derive(Default)]
pub struct Dashboard {
    recent: VecDeque<Arc<Snapshot>>,
    trends: Trends,
    history: History,
    feed: Feed,
    newest: Option<Arc<Second>>,
}

/// What one second came to.
pub struct Second {
    /// What it was made of.
    pub snapshot: Arc<Snapshot>,
    /// The point for the history.
    pub point: Point,
    /// What limits the edge.
    pub verdict: Verdict,
    /// Each limit beside its use, in the snapshot's order.
    pub waterlines: Vec<Waterline>,
}

impl Dashboard {
    /// Takes the next snapshot.
    pub fn observe(&mut self, snapshot: Arc<Snapshot>) -> Arc<Second> {
        let point = Point::between(self.recent.back().map(|before| &**before), &snapshot);
        if self.recent.len() >= RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(snapshot.clone());
        self.history.push(point);
        let waterlines = self.trends.observe(&snapshot);
        let verdict = verdict::judge(self.recent.make_contiguous(), &waterlines);
        let second = Arc::new(Second { snapshot, point, verdict, waterlines });
        self.newest = Some(second.clone());
        second
    }

    /// The newest second for viewers: what changed since the last frame, and all of it if somebody has nothing yet.
    /// While nobody watches it need not be called. `None` before the first second.
    pub fn frame(&mut self, wants_whole: bool) -> Option<Frame> {
        let second = self.newest.as_ref()?;
        let past = wants_whole.then(|| self.history.points());
        Some(self.feed.step(document(second), past))
    }
}

/// What the page is told, but for its number and the past.
fn document(second: &Second) -> Value {
    let Second { snapshot, point, verdict, waterlines: lines } = second;
    json!({
        "v": feed::VERSION,
        "at": point.at,
        "thresholds": {"near": verdict::NEAR, "limited": verdict::LIMITED},
        "verdict": verdict,
        "point": point,
        "waterlines": lines.iter().map(line).collect::<Vec<_>>(),
        "snapshot": feed::view(snapshot),
    })
}

fn line(line: &Waterline) -> Value {
    let mut value = serde_json::to_value(line).unwrap_or(Value::Null);
    if let Value::Object(members) = &mut value {
        let kind = words::kind(&line.kind);
        members.insert("name".to_owned(), json!(Said::new(kind.en, kind.ko)));
        members.insert("calm".to_owned(), json!(!kind.counts));
    }
    value
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_second_says_what_the_snapshot_says() {
        let mut dashboard = Dashboard::default();
        assert!(dashboard.frame(true).is_none());
        let mut snapshot = Snapshot::example();
        dashboard.observe(Arc::new(snapshot.clone()));
        snapshot.nginx.timestamp.0 += 1000;
        snapshot.http.requests.total += 500;
        let second = dashboard.observe(Arc::new(snapshot));
        assert_eq!(second.point.rps, 500.0);
        let frame = dashboard.frame(true).unwrap();
        let whole: Value = serde_json::from_slice(feed::data(&frame.whole.unwrap())).unwrap();
        assert_eq!(whole["seq"], 1);
        assert_eq!(whole["past"].as_array().unwrap().len(), 2);
        assert_eq!(whole["waterlines"][0]["name"]["ko"], "연결");
        assert_eq!(whole["snapshot"]["http"]["server_zones"]["shop.example"]["responses"]["codes"]["200"], 48_000);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut dashboard = Dashboard::default();
        let mut snapshot = Snapshot::example();
        for _ in 0..700 {
            snapshot.nginx.timestamp.0 += 1000;
            dashboard.observe(Arc::new(snapshot.clone()));
        }
        assert_eq!(dashboard.recent.len(), RECENT_MAX);
        assert_eq!(dashboard.history.points().len(), history::POINTS_MAX);
    }
}
