//! A peer of a group as it is shown: its state, and what its health checks came to.

use weir_meter::live as shown;

use weir_peers::health::State;
use weir_peers::group::PeerView;
use weir_peers::peer::Peer;

/// What a peer's state is called; checks that fail are worse than anything but `down`.
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

/// What is told of its health checks.
pub(super) fn health_checks(view: &PeerView) -> shown::HealthChecks {
    let found = view.health.unwrap_or_default();
    shown::HealthChecks {
        checks: found.checks,
        fails: found.fails,
        unhealthy: found.unhealthy,
        last_passed: found.last_passed,
    }
}
