//! The requests of a client, one after another, are a session. A WebSocket is a session of its own: a script has it apart.

use foldhash::{HashMap, HashSet};

use super::detail::{Details, TextId};
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
    /// The detail of the request.
    pub(super) detail: u32,
    /// The detail that has the fields of the client.
    pub(super) client: u32,
    /// Its index in [`Sessions::cookies`].
    pub(super) cookies: u32,
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
    /// Names and values of cookies that no answer of the session set before. Number 0 has none.
    cookies: Vec<Vec<(TextId, TextId)>>,
    /// Sessions that [`STEPS_MAX`] cut.
    pub(super) cut: u64,
}

impl Sessions {
    pub(super) fn steps(&self, session: &LogSession) -> &[SessionStep] {
        self.steps.get(session.from as usize..session.to as usize).unwrap_or_default()
    }

    pub(super) fn cookies(&self, step: &SessionStep) -> &[(TextId, TextId)] {
        self.cookies.get(step.cookies as usize).map_or(&[], Vec::as_slice)
    }

    pub(super) fn requests(&self) -> usize {
        self.steps.len()
    }

    /// When each session begins.
    pub(super) fn starts(&self) -> Vec<u64> {
        self.all.iter().map(|session| session.at_ms).collect()
    }
}

#[cfg(test)]
impl Sessions {
    /// Sessions with these routes.
    pub(super) fn of_orders(orders: &[Vec<u16>]) -> Sessions {
        let mut sessions = Sessions::default();
        for order in orders {
            let from = sessions.steps.len() as u32;
            let step =
                |route: &u16| SessionStep { call: 0, route: *route, think_ms: 0, detail: 0, client: 0, cookies: 0 };
            sessions.steps.extend(order.iter().map(step));
            sessions.all.push(LogSession { at_ms: 0, from, to: sessions.steps.len() as u32 });
        }
        sessions
    }
}

/// Finds the sessions of the requests, which are in the order of time.
pub(super) fn find(requests: &[LoggedRequest], routes: &Routes, details: &Details) -> Sessions {
    let mut by_client: Vec<(&LoggedRequest, u16, bool)> = requests
        .iter()
        .filter_map(|request| {
            let route = routes.place(request.call)?.route;
            Some((request, route, routes.all.get(usize::from(route))?.traits.is_websocket))
        })
        .collect();
    by_client.sort_by_key(|(request, _, is_websocket)| (request.client, *is_websocket));
    let mut sessions = Sessions::default();
    let mut last: Option<&LoggedRequest> = None;
    let mut ends = Ends::default();
    let mut cookies = SessionCookies::new();
    for (request, route, is_websocket) in by_client {
        let is_near = |last: &&LoggedRequest| last.client == request.client && request.at_ms < last.at_ms + GAP_MS;
        let same = last.filter(|last| is_near(last) && !is_websocket);
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
                cookies.begin();
                0
            }
        };
        let (call, detail) = (request.call, request.detail);
        let cookies = cookies.of(detail, details);
        sessions.steps.push(SessionStep { call, route, think_ms, detail, client: detail, cookies });
        ends.open.push(request.at_ms + u64::from(request.took_ms));
        last = Some(request);
    }
    sessions.cookies = cookies.all;
    sessions
}

/// Finds the cookies that a session brings with it.
struct SessionCookies {
    all: Vec<Vec<(TextId, TextId)>>,
    known: HashMap<Vec<(TextId, TextId)>, u32>,
    /// The names of cookies that answers of this session set.
    set: HashSet<TextId>,
    /// The cookies that this session brought with it.
    own: HashMap<TextId, TextId>,
}

impl SessionCookies {
    fn new() -> SessionCookies {
        let known = std::iter::once((Vec::new(), 0)).collect();
        SessionCookies { all: vec![Vec::new()], known, set: HashSet::default(), own: HashMap::default() }
    }

    fn begin(&mut self) {
        self.set.clear();
        self.own.clear();
    }

    /// The number of the cookies of the next request. Those that an answer set are in the jar of the virtual user.
    fn of(&mut self, detail: u32, details: &Details) -> u32 {
        let Some(detail) = details.get(detail) else { return 0 };
        let mut brought = Vec::new();
        for (name, value) in &detail.cookies {
            if !self.set.contains(name) {
                // A session keeps the value that it had first.
                brought.push((*name, *self.own.entry(*name).or_insert(*value)));
            }
        }
        self.set.extend(&detail.set_cookies);
        if let Some(known) = self.known.get(&brought) {
            return *known;
        }
        let number = self.all.len() as u32;
        self.all.push(brought.clone());
        self.known.insert(brought, number);
        number
    }
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
