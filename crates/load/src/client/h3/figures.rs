//! The figures of HTTP/3 in reports, from all connections of this worker.

use std::cell::RefCell;
use std::time::Duration;

use weir_quic::connection::QuicCounts;

use super::ports;
use crate::record::Recorder;

thread_local! {
    static FIGURES: RefCell<Figures> = RefCell::default();
}

/// The counts since the last report.
#[derive(Default)]
struct Figures {
    handshakes: Vec<Duration>,
    resumed: u64,
    early: u64,
    early_accepted: u64,
    migrations: u64,
    mtus: Vec<u16>,
    /// The counts in the last report.
    told: QuicCounts,
}

/// A handshake.
pub(super) struct Shaken {
    pub time: Duration,
    pub is_resumed: bool,
    /// Whether the server accepted early data; `None` if none was sent.
    pub early: Option<bool>,
}

/// A handshake is complete.
pub(super) fn shaken(shaken: &Shaken) {
    FIGURES.with_borrow_mut(|figures| {
        figures.handshakes.push(shaken.time);
        figures.resumed += u64::from(shaken.is_resumed);
        figures.early += u64::from(shaken.early.is_some());
        figures.early_accepted += u64::from(shaken.early == Some(true));
    });
}

/// A connection has moved to another port.
pub(super) fn migrated() {
    FIGURES.with_borrow_mut(|figures| figures.migrations += 1);
}

/// A connection has ended, whose path carried datagrams of this length.
pub(super) fn ended(mtu: u16) {
    FIGURES.with_borrow_mut(|figures| figures.mtus.push(mtu));
}

/// Records what has happened since the last call; nothing if there was no HTTP/3.
pub fn record(recorder: &Recorder) {
    FIGURES.with_borrow_mut(|figures| {
        let all = ports::counts();
        let counts = all.since(std::mem::replace(&mut figures.told, all));
        for (name, count) in [
            ("handshakes", figures.handshakes.len() as u64),
            ("resumed", std::mem::take(&mut figures.resumed)),
            ("early_data", std::mem::take(&mut figures.early)),
            ("early_data_accepted", std::mem::take(&mut figures.early_accepted)),
            ("migrations", std::mem::take(&mut figures.migrations)),
            ("sent_datagrams", counts.sent_datagrams),
            ("sent_bytes", counts.sent_bytes),
            ("received_datagrams", counts.received_datagrams),
            ("received_bytes", counts.received_bytes),
            ("sent_packets", counts.sent_packets),
            ("lost_packets", counts.lost_packets),
            ("congestion_events", counts.congestion_events),
        ] {
            if count > 0 {
                recorder.count(recorder.metric(&format!("http3.{name}")), count);
            }
        }
        for time in figures.handshakes.drain(..) {
            recorder.sample(recorder.metric("http3.handshake"), time.as_secs_f64() * 1e3);
        }
        for mtu in figures.mtus.drain(..) {
            recorder.sample(recorder.metric("http3.path_mtu"), f64::from(mtu));
        }
    });
}
