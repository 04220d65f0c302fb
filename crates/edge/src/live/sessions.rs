//! The counts of `stream`, for the snapshot.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_http::exchange::conf::Conf;
use weir_meter::live::{SessionPeer, SessionStatuses, SessionUpstream, SessionZone, StreamObjects, Timestamp};
use weir_stream::counts::{PeerCounts, ZoneCounts};
use weir_stream::family::upstream::StreamUpstream;

use super::peers;
use super::trends::Trends;

/// The name of a peer's outages.
pub fn outage_name(group: &str, address: &str) -> String {
    format!("stream\0{group}\0{address}")
}

/// Zones and groups; the limits are not among them.
pub fn stream(conf: &Conf, trends: &Trends, now_ms: u64) -> StreamObjects {
    let zones = weir_stream::conf::of(conf).zones.iter();
    let groups = weir_stream::declared(conf).upstream.groups.iter();
    StreamObjects {
        server_zones: zones.map(|(name, counts)| (name.clone(), zone(counts))).collect(),
        upstreams: groups.map(|upstream| (upstream.name.clone(), group(upstream, trends, now_ms))).collect(),
        ..StreamObjects::default()
    }
}

fn zone(counts: &ZoneCounts) -> SessionZone {
    let sums = counts.sums();
    let [c2xx, c4xx, c5xx] = sums.ended;
    SessionZone {
        processing: sums.current,
        connections: sums.begun,
        sessions: SessionStatuses { c2xx, c4xx, c5xx, total: c2xx + c4xx + c5xx },
        discarded: sums.discarded,
        received: sums.received,
        sent: sums.sent,
    }
}

fn group(declared: &Arc<StreamUpstream>, trends: &Trends, now_ms: u64) -> SessionUpstream {
    let zombies = declared.live.as_ref().map_or(0, |live| live.zombies() as u64);
    let upstream = &declared.now();
    let views = upstream.group.view(now_ms);
    let none = PeerCounts::default();
    let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let peers = upstream.group.peers().zip(&views).enumerate().map(|(number, (peer, view))| {
        let counts = upstream.own.counts.get(number).map_or(&none, |counts| counts);
        let selected = read(&counts.selected_ms);
        let outage = trends.outage(&outage_name(&upstream.name, &peer.address));
        SessionPeer {
            id: peer.id.into(),
            server: peer.address.clone(),
            name: peer.server.clone(),
            backup: peer.backup,
            weight: peer.weight.into(),
            state: peers::state(peer, view),
            active: view.conns.into(),
            max_conns: (peer.max_conns > 0).then_some(peer.max_conns.into()),
            connections: read(&counts.sessions),
            connect_time: counts.connect.ms(),
            first_byte_time: counts.first_byte.ms(),
            response_time: counts.session.ms(),
            sent: read(&counts.sent),
            received: read(&counts.received),
            fails: read(&counts.fails),
            unavail: read(&counts.ejected),
            health_checks: peers::health_checks(view),
            downtime: outage.total_ms(now_ms),
            downstart: outage.since_ms.filter(|_| view.is_out()).map(Timestamp),
            selected: (selected > 0).then_some(Timestamp(selected)),
        }
    });
    SessionUpstream {
        peers: peers.collect(),
        zombies,
        zone: upstream.zone.clone().unwrap_or_else(|| upstream.name.clone()),
    }
}
