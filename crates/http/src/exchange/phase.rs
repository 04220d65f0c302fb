//! The phases of nginx, in nginx's order, and the few results that a handler may return.

use std::fmt;
use std::time::Duration;

use crate::hold::own::Owned;

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
#[derive(Debug)]
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
    /// The family of this name answers: see `Family::answer`.
    Answer(&'static str),
    /// Continue with the next handler after this time (`limit_req` delay).
    Wait(Duration),
    /// Read the whole request body, then enter this handler again.
    ReadBody,
    /// Read the whole request body into a file, then enter this handler again.
    ReadBodyToFile,
    /// Do this on a thread of its own, then enter this handler again; `exchange.own` then has the result.
    Aside(Chore),
    /// Start requests to these paths of this server in the background, then continue with the next handler. Each has
    /// the query string of the exchange, and its body if it was read. Their answers are ignored.
    Background(Vec<Vec<u8>>),
    /// Send the request that the handler put into `exchange.own` as a `subrequest::Ask`, then enter this handler again.
    Ask,
}

/// The result of the walk through the phases; `drive` does the rest.
#[derive(Debug)]
pub enum Outcome {
    /// The response is in the exchange.
    Respond,
    /// A status of weir's own, not yet turned into a page.
    Status(u16),
    /// Ask the location's upstream.
    Forward,
    /// The family of this name answers: see `Family::answer`.
    Answer(&'static str),
    /// Wait, then `resume` with this.
    Wait(Duration, Resume),
    /// Read the whole request body to this place, then `resume` with this.
    ReadBody(BodyPlace, Resume),
    /// Do this on a thread of its own, then `resume` with this.
    Aside(Chore, Resume),
    /// Start these requests in the background, then `resume` with this.
    Background(Vec<Vec<u8>>, Resume),
    /// Send the request that is in `exchange.own`, then `resume` with this.
    Ask(Resume),
}

/// Where a request's body is read to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyPlace {
    /// To memory or to a file, as the directives say.
    AsConfigured,
    /// To a file.
    File,
}

/// Work that would block the worker; its result is a value that the exchange then owns.
pub struct Chore(pub Box<dyn FnOnce() -> Box<dyn Owned + Send> + Send>);

impl Chore {
    /// This work.
    pub fn new<T: Owned + Send>(work: impl FnOnce() -> T + Send + 'static) -> Chore {
        Chore(Box::new(|| Box::new(work())))
    }
}

impl fmt::Debug for Chore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chore")
    }
}

/// Where to go on in the walk of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// At this handler; the numbers of the handlers that answer follow those of the other phases. The status is the
    /// objection of an earlier check of access, under `satisfy any`.
    Handler(usize, Option<u16>),
    /// With this status: the wait slowed the client down (`auth_delay`).
    Status(u16),
    /// At the server's rewrites.
    Server,
    /// At the location's rewrites.
    Location,
}

/// Where to start.
#[derive(Debug, PartialEq, Eq)]
pub enum From {
    /// At the server's rewrites, with the URI in the exchange.
    Server,
    /// At a named location, without `@`.
    Named(String),
}
