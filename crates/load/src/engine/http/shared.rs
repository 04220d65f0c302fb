//! The state of `engine: http` that all virtual users of a worker share.

use std::cell::OnceCell;
use std::rc::Rc;
use std::time::Duration;

use super::compile::Compiled;
use super::expects::Expects;
use super::metrics::{ByEndpoint, RequestMetrics};
use super::places::RunOrigins;
use super::sockets::Sockets;
use crate::client::{Origins, Resolver};
use crate::plan::{Plan, Request};
use crate::record::Recorder;
use crate::tls::Tls;

/// Time limit of one exchange if the script sets none.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// State that the requests of all virtual users of a worker share.
pub struct Http {
    pub(super) metrics: RequestMetrics,
    pub(super) by_endpoint: ByEndpoint,
    pub(super) expects: Option<Expects>,
    pub(super) places: RunOrigins,
    pub(super) resolver: Resolver,
    /// Indexed by the request's number; compiled when a virtual user first reaches the request.
    pub(super) compiled: Box<[OnceCell<Rc<Compiled>>]>,
    /// `http.pool`: connections that all virtual users share.
    pub(super) pool: Option<Rc<Sockets>>,
    pub(super) timeout: Duration,
}

impl Http {
    /// Prepares the state that requests of this plan need.
    pub fn new(plan: &Plan, recorder: &Recorder, tls: &Rc<Tls>) -> Http {
        Http {
            metrics: RequestMetrics::new(plan, recorder),
            by_endpoint: ByEndpoint::new(plan),
            expects: plan.plugins.expect.as_ref().map(|options| Expects::new(options, recorder)),
            places: RunOrigins::new(plan, Origins::new(tls.clone(), plan.proxies.clone())),
            resolver: Resolver::default(),
            compiled: (0..plan.requests.count()).map(|_| OnceCell::new()).collect(),
            pool: plan.http.pool.map(Sockets::pool),
            timeout: plan.timeout.or(plan.http.timeout).unwrap_or(TIMEOUT),
        }
    }

    /// The origins. Other engines use them too, so that a name is resolved once.
    pub fn origins(&self) -> &Origins {
        &self.places.origins
    }

    /// The resolver of the run.
    pub fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    /// The compiled request.
    pub(super) fn compiled(&self, plan: &Plan, recorder: &Recorder, request: &Request) -> Rc<Compiled> {
        let made = || Rc::new(Compiled::new(&self.places, &self.by_endpoint, plan, request, recorder));
        match self.compiled.get(request.number.index()) {
            Some(place) => place.get_or_init(made).clone(),
            None => made(),
        }
    }
}
