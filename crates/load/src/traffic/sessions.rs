//! The requests of a client, one after another, are a session.

use super::gather::LoggedRequest;
use super::routes::Routes;

/// A pause of this length ends a session, as in web analytics.
pub(super) const GAP_MS: u64 = 30 * 60_000;
/// Most requests of a session: a longer one continues as another session.
pub(super) const STEPS_MAX: usize = 50;

/// A request of a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionStep {
    pub(super) call: u32,
    pub(super) route: u16,
    /// The time between this request and the last end of a request before it.
    pub(super) think_ms: u64,
}

#[derive(Clone, Debug)]
pub(super) struct LogSession {
    pub(super) at_ms: u64,
    /// Its place in [`Sessions::steps`].
    from: u32,
    to: u32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Sessions {
    pub(super) all: Vec<LogSession>,
    steps: Vec<SessionStep>,
    /// Sessions that [`STEPS_MAX`] cut.
    pub(super) cut: u64,
}

impl Sessions {
    pub(super) fn steps(&self, session: &LogSession) -> &[SessionStep] {
        self.steps.get(session.from as usize..session.to as usize).unwrap_or_default()
    }

    pub(super) fn requests(&self) -> usize {
        self.steps.len()
    }

    /// When each session begins.
    pub(super) fn starts(&self) -> Vec<u64> {
        self.all.iter().map(|session| session.at_ms).collect()
    }
}

/// Finds the sessions of the requests, which are in the order of time.
pub(super) fn find(requests: &[LoggedRequest], routes: &Routes) -> Sessions {
    let mut by_client: Vec<&LoggedRequest> = requests.iter().collect();
    by_client.sort_by_key(|request| request.client);
    let mut sessions = Sessions::default();
    let mut last: Option<&LoggedRequest> = None;
    let mut ends = Ends::default();
    for request in by_client {
        let Some(place) = routes.place(request.call) else { continue };
        let same = last.filter(|last| last.client == request.client && request.at_ms < last.at_ms + GAP_MS);
        let length = sessions.all.last().map_or(0, |session| (session.to - session.from) as usize);
        let at = sessions.steps.len() as u32;
        let think_ms = match (same, sessions.all.last_mut()) {
            (Some(_), Some(session)) if length < STEPS_MAX => {
                session.to = at + 1;
                request.at_ms - ends.last_before(request.at_ms).unwrap_or(request.at_ms)
            }
            (same, _) => {
                sessions.cut += u64::from(same.is_some());
                sessions.all.push(LogSession { at_ms: request.at_ms, from: at, to: at + 1 });
                ends = Ends::default();
                0
            }
        };
        sessions.steps.push(SessionStep { call: request.call, route: place.route, think_ms });
        ends.open.push(request.at_ms + u64::from(request.took_ms));
        last = Some(request);
    }
    sessions
}

/// When the requests of a session ended.
#[derive(Default)]
struct Ends {
    /// Of requests that may still run.
    open: Vec<u64>,
    last: Option<u64>,
}

impl Ends {
    /// The last end before this time. A client that has several requests at a time pauses after the last of them; a
    /// request that still runs, such as a long poll, is none of them.
    fn last_before(&mut self, at_ms: u64) -> Option<u64> {
        let ended = self.open.iter().copied().filter(|end| *end <= at_ms);
        self.last = self.last.max(ended.max());
        self.open.retain(|end| *end > at_ms);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_begins_at_the_last_end_before_it() {
        let mut ends = Ends::default();
        assert_eq!(ends.last_before(5), None);
        // A page, a picture beside it, and a long poll.
        ends.open.extend([500, 60, 90_000]);
        assert_eq!(ends.last_before(40), None);
        assert_eq!(ends.last_before(2_000), Some(500));
        ends.open.push(2_010);
        assert_eq!(ends.last_before(7_000), Some(2_010));
        assert_eq!(ends.last_before(95_000), Some(90_000));
    }
}
