//! A peer of a group as it is shown: its state, and the results of its health checks.

use weir_meter::live as shown;
use weir_peers::group::PeerView;
use weir_peers::health::State;
use weir_peers::peer::Peer;

/// The name of a peer's state; failed checks rank above all states except `down`.
pub(super) fn state(peer: &Peer, view: &PeerView) -> shown::PeerState {
    match view.health.map(|health| health.state) {
        _ if peer.down => shown::PeerState::Down,
        Some(State::Unhealthy) => shown::PeerState::Unhealthy,
        Some(State::Checking) => shown::PeerState::Checking,
        _ if peer.drain => shown::PeerState::Draining,
        _ if view.ejected => shown::PeerState::Unavail,
        Some(State::Up) | None => shown::PeerState::Up,
    }
}

/// The figures of its health checks.
pub(super) fn health_checks(view: &PeerView) -> shown::HealthChecks {
    let found = view.health.unwrap_or_default();
    shown::HealthChecks {
        checks: found.checks,
        fails: found.fails,
        unhealthy: found.unhealthy,
        last_passed: found.last_passed,
    }
}
