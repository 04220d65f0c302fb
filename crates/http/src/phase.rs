//! The phases of nginx, in nginx's order, and the few results that a handler may return.

use std::time::Duration;

/// Where a handler runs. Rewrites are rules of a location and run before all of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Limits: `limit_req`, `limit_conn`, `realip`.
    Preaccess,
    /// Checks the access of the client: `allow`, `auth_basic`. Under `satisfy any`, one check that passes is enough.
    Access,
    /// `try_files`, `mirror`.
    Precontent,
    /// The handlers that answer if the location names none: index, static files.
    Content,
}

/// The results a handler may return.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing to do for this handler, or no objection: go on.
    Continue,
    /// Grants access (this matters under `satisfy any`), then goes on.
    Allow,
    /// End with this status; `error_page` may turn it into something else.
    Status(u16),
    /// The response is in the exchange; send it.
    Respond,
    /// Start again with another URI; `None` keeps `args` (nginx: internal redirect).
    Redirect {
        /// The new path, normalised.
        uri: Vec<u8>,
        /// The new query string.
        args: Option<Vec<u8>>,
    },
    /// Go on in a named location, `@` included.
    Named(String),
    /// Ask the location's upstream.
    Forward,
    /// Answer as the purge API does.
    Purge,
    /// Answer with counters: the API or the metrics.
    Observe,
    /// Answer as the dashboard does.
    Dashboard,
    /// Continue with the next handler after this time (`limit_req` delay).
    Wait(Duration),
    /// Read the whole request body, then enter this handler again.
    ReadBody,
    /// Start requests to these paths of this server in the background, then continue with the next handler. Each has
    /// the query string of the exchange, and its body if it was read. Their answers are ignored.
    Background(Vec<Vec<u8>>),
    /// Send the request that the handler put into `exchange.own` as a `subrequest::Ask`, then enter this handler again.
    Ask,
}

/// The result of the walk through the phases; `drive` does the rest.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The response is in the exchange.
    Respond,
    /// A status of weir's own, not yet turned into a page.
    Status(u16),
    /// Ask the location's upstream.
    Forward,
    /// Answer as the purge API does.
    Purge,
    /// Answer with counters: the API or the metrics.
    Observe,
    /// Answer as the dashboard does.
    Dashboard,
    /// Wait, then `resume` with this.
    Wait(Duration, Resume),
    /// Read the whole request body, then `resume` with this.
    ReadBody(Resume),
    /// Start these requests in the background, then `resume` with this.
    Background(Vec<Vec<u8>>, Resume),
    /// Send the request that is in `exchange.own`, then `resume` with this.
    Ask(Resume),
}

/// Where to go on in the walk of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// At this handler. The status is the objection of an earlier check of access, under `satisfy any`.
    Handler(usize, Option<u16>),
    /// With this status: the wait slowed the client down (`auth_delay`).
    Status(u16),
}

/// Where to start.
#[derive(Debug, PartialEq, Eq)]
pub enum From {
    /// At the server's rewrites, with the URI in the exchange.
    Server,
    /// At a named location, without `@`.
    Named(String),
}
