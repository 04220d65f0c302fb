//! `dash`: turns an edge's data about itself into the data of its page.
//!
//! A [`Dashboard`] gets one [`Snapshot`](weir_meter::live::Snapshot) a second. It keeps ten minutes of points,
//! compares each limit with its use and trend, says in a sentence what limits the edge, and makes the bytes for
//! viewers: first the whole document, then the changes. The page itself is in `web/`, and [`assets`] holds it.
//!
//! Not here: sockets, clocks, threads, files. Time comes with the snapshots. Every text exists in English and Korean.
//!
//! - `point`, `history`, `journal`: one second; ten minutes in memory; a month in a file
//! - `waterline`: each limit beside its use, with a trend and a level, from one table of thresholds
//! - `verdict/`, `worst`, `reason`, `alarm`: the resource that limits the edge; the locations in which requests fail; a
//!   word for each class of errors; when a verdict is worth an alert
//! - `feed`, `configuration`, `runs`, `vmstat`: what viewers get
//! - `logs/`: finds a request's lines at the end of a log
//! - `assets`, `inline`, `words`: the files of `web/` (`docs/why/dashboard.md`); reports as pages without
//!   a server; texts. In `web/`, functions describe the page as elements, and `dom.js` makes the document equal to that
//!   description
#![forbid(unsafe_code)]

pub mod alarm;
pub mod assets;
pub mod configuration;
pub mod feed;
pub mod history;
pub mod inline;
pub mod journal;
pub mod logs;
pub mod point;
pub mod reason;
pub mod runs;
pub mod verdict;
pub mod vmstat;
pub mod waterline;
pub mod words;
pub mod worst;

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};
use weir_meter::live::Snapshot;

use feed::{Feed, Frame};
use history::History;
use point::Point;
use verdict::Verdict;
use waterline::{Trends, Waterline};
use weir_words::Said;

/// Number of snapshots for a verdict: those of ten seconds, and the one before them.
pub const RECENT_MAX: usize = 11;

/// The state that is kept from second to second.
#[derive(Default)]
pub struct Dashboard {
    recent: VecDeque<Arc<Snapshot>>,
    trends: Trends,
    history: History,
    feed: Feed,
    newest: Option<Arc<Second>>,
}

/// The results of one second.
pub struct Second {
    /// The snapshot they were made from.
    pub snapshot: Arc<Snapshot>,
    /// The point for the history.
    pub point: Point,
    /// The same figures over the seconds of the verdict.
    pub recent: Point,
    /// How many seconds those are.
    pub recent_s: u64,
    /// The verdict: what limits the edge.
    pub verdict: Verdict,
    /// Each limit with its use, in the snapshot's order.
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
        let first = self.recent.front().map(|first| &**first);
        let recent = Point::between(first, &snapshot);
        let recent_s = first.map_or(0, |first| verdict::seconds(first, &snapshot));
        let second = Arc::new(Second { snapshot, point, recent, recent_s, verdict, waterlines });
        self.newest = Some(second.clone());
        second
    }

    /// The newest second for viewers: the changes since the last frame, and the whole document if `wants_whole`. Need
    /// not be called while there are no viewers. `None` before the first second.
    pub fn frame(&mut self, wants_whole: bool) -> Option<Frame> {
        let second = self.newest.as_ref()?;
        let past = wants_whole.then(|| self.history.points());
        Some(self.feed.step(document(second), past))
    }
}

/// The document for the page, without its number and the history.
fn document(second: &Second) -> Value {
    let Second { snapshot, point, recent, recent_s, verdict, waterlines: lines } = second;
    json!({
        "v": feed::VERSION,
        "at": point.at,
        "whys": reason::whys(),
        "verdict": verdict,
        "point": point,
        "recent": {
            "rps": recent.rps, "failed": recent.failed, "refused": recent.refused, "upstream": recent.upstream,
            "timeout": recent.timeout, "received": recent.received, "sent": recent.sent, "seconds": recent_s,
        },
        "waterlines": lines.iter().map(line).collect::<Vec<_>>(),
        "snapshot": feed::view(snapshot),
    })
}

fn line(line: &Waterline) -> Value {
    let mut value = serde_json::to_value(line).unwrap_or(Value::Null);
    if let Value::Object(members) = &mut value {
        let kind = words::kind(&line.kind);
        members.insert("name".to_owned(), json!(Said::of_both(kind.title.en, kind.title.ko)));
        members.insert("object".to_owned(), json!(words::object(&line.of)));
        members.insert("setter".to_owned(), json!(words::setter(&line.kind, &line.set_by)));
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
        assert_eq!(whole["waterlines"][0]["object"]["ko"], "워커 0");
        assert_eq!((&whole["recent"]["rps"], &whole["recent"]["seconds"]), (&json!(500), &json!(1)));
        assert_eq!(whole["whys"]["refused"]["ko"], "연결 거부");
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
