//! The figures of all edges: each edge tells its own, and reads those of the others.

use std::sync::Arc;
use std::time::Duration;

use weir_meter::live::{FleetMember, Snapshot};
use weir_net::timer;
use weir_redis::{Commands, Value, pairs};

use crate::fleet::shared::{FleetShared, PATIENCE};

/// The time between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// Bytes of the figures of one edge; more are not read.
const MEMBER_BYTES_MAX: usize = 2 << 10;

/// Edges whose figures are kept, at most.
const MEMBERS_MAX: usize = weir_fleet::EDGES_MAX as usize;

/// The figures of an edge.
pub(super) fn member(edge: &str, snapshot: &Snapshot) -> FleetMember {
    let zones = || snapshot.weir.server_zones.values();
    FleetMember {
        edge: edge.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        generation: snapshot.nginx.generation,
        heard_ms_ago: 0,
        rate: zones().map(|zone| zone.times.rate).sum(),
        failed: zones().map(|zone| zone.failed).sum(),
        refused: zones().map(|zone| zone.refused).sum(),
        p99_us: zones()
            .filter(|zone| zone.times.recent.count > 0)
            .map(|zone| zone.times.recent.p99_us)
            .max()
            .unwrap_or(0),
        connections: snapshot.connections.active + snapshot.connections.idle,
        cpu: snapshot.weir.workers.iter().map(|worker| worker.cpu).sum(),
    }
}

/// Tells and reads again and again, as long as the thread runs.
pub(super) async fn share(shared: Arc<FleetShared>) {
    loop {
        timer::sleep(EVERY).await;
        let (key, settings) = (shared.keys.figures(), &shared.settings);
        let mut commands = Commands::one(&["TIME"]);
        let own = shared.view().own.clone();
        // The time of the figures stands before them: only Redis knows it.
        if let (Ok(text), Some(now), false) = (serde_json::to_string(&own), shared.redis_ms(), own.edge.is_empty()) {
            commands.add(&["HSET", key, &settings.edge, &format!("{now} {text}")]);
        }
        commands.add(&["HGETALL", key]);
        // Reports notice that Redis is away.
        let Ok(replies) = settings.server.ask(commands, PATIENCE).await else { continue };
        let (members, gone) = members(&replies);
        shared.view().members = members;
        if !gone.is_empty() {
            let words: Vec<&str> = ["HDEL", key].into_iter().chain(gone.iter().map(String::as_str)).collect();
            let _ = settings.server.ask(Commands::one(&words), PATIENCE).await;
        }
    }
}

/// The edges that told their figures, by name, and the names of those that are forgotten. Values that no edge has written
/// are left out.
fn members(replies: &[Value]) -> (Vec<FleetMember>, Vec<String>) {
    let time = replies.first().map(Value::list).unwrap_or_default();
    let number = |at: usize| time.get(at).and_then(Value::number).unwrap_or(0);
    let now_ms = number(0) * 1000 + number(1) / 1000;
    let (mut members, mut gone) = (Vec::new(), Vec::new());
    let all = replies.last().map(Value::list).unwrap_or_default();
    for (name, text) in pairs(all).take(MEMBERS_MAX) {
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= MEMBER_BYTES_MAX);
        let Some((at, figures)) = text.and_then(|text| text.split_once(' ')) else { continue };
        let (Ok(at), Ok(name)) = (at.parse::<i64>(), String::from_utf8(name.to_vec())) else { continue };
        let Ok(mut member) = serde_json::from_str::<FleetMember>(figures) else { continue };
        let ago = now_ms.saturating_sub(at).max(0);
        if ago > weir_fleet::FORGET_MS {
            gone.push(name);
            continue;
        }
        (member.edge, member.heard_ms_ago) = (name, ago.unsigned_abs());
        members.push(member);
    }
    members.sort_by(|one, other| one.edge.cmp(&other.edge));
    (members, gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_edges_are_read_and_all_else_is_left_out() {
        let text = |text: &str| Value::Text(text.as_bytes().to_vec());
        let huge = format!("1000000 {{\"version\":\"{}\"}}", "x".repeat(MEMBER_BYTES_MAX));
        let replies = [
            Value::List(vec![text("1000"), text("5000")]),
            Value::Number(0),
            Value::List(
                [
                    "b",
                    "999000 {\"rate\":2.5,\"later\":1}",
                    "a",
                    "1000000 {}",
                    "old",
                    "100 {}",
                    "huge",
                    &huge,
                    "odd",
                    "5",
                    "odder",
                    "5 7",
                ]
                .map(text)
                .into(),
            ),
        ];
        let (found, gone) = members(&replies);
        let shown: Vec<_> = found.iter().map(|one| (one.edge.as_str(), one.rate, one.heard_ms_ago)).collect();
        assert_eq!(shown, [("a", 0.0, 5), ("b", 2.5, 1005)]);
        assert_eq!(gone, ["old"]);
        assert_eq!(members(&[]), (Vec::new(), Vec::new()));
    }
}
