//! The figures of HTTP/3 in reports, from all connections of this worker.

use std::cell::RefCell;
use std::time::Duration;

use weir_quic::connection::QuicCounts;

use super::ports;
use crate::record::Recorder;

thread_local! {
    static FIGURES: RefCell<Figures> = RefCell::default();
}

/// What has happened since the last report.
#[derive(Default)]
struct Figures {
    handshakes: Vec<Duration>,
    resumed: u64,
    mtus: Vec<u16>,
    /// The counts in the last report.
    told: QuicCounts,
}

/// A handshake is complete.
pub(super) fn shaken(time: Duration, is_resumed: bool) {
    FIGURES.with_borrow_mut(|figures| {
        figures.handshakes.push(time);
        figures.resumed += u64::from(is_resumed);
    });
}

/// A connection has ended, whose path carried datagrams of this length.
pub(super) fn ended(mtu: u16) {
    FIGURES.with_borrow_mut(|figures| figures.mtus.push(mtu));
}

/// Records what has happened since the last call; nothing if there was no HTTP/3.
pub(in super::super) fn record(recorder: &Recorder) {
    FIGURES.with_borrow_mut(|figures| {
        let all = ports::counts();
        let counts = all.since(std::mem::replace(&mut figures.told, all));
        for (name, count) in [
            ("handshakes", figures.handshakes.len() as u64),
            ("resumed", std::mem::take(&mut figures.resumed)),
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
