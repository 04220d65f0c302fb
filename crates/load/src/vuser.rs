//! One virtual user: its variables, and the walk through its flow.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use crate::engine::http;
use crate::plan::{Plan, Scenario};
use crate::processor::Processor;
use crate::record::Recorder;
use crate::vars::Vars;

/// What all virtual users of a worker thread share.
pub struct Worker {
    /// The plan.
    pub plan: Arc<Plan>,
    /// Counts.
    pub recorder: Recorder,
    /// The processor, if the script names one.
    pub processor: Option<Processor>,
    /// What requests need: connections kept for everybody, names resolved, metrics looked up.
    pub http: http::Http,
}

/// A virtual user.
pub struct Vuser {
    /// Its worker.
    pub worker: Rc<Worker>,
    /// Which scenario of the plan; `None` in `before` and `after`.
    pub scenario: Option<usize>,
    /// Its variables.
    pub vars: Vars,
    /// `$uuid`.
    pub uid: String,
    /// Its connections and cookies.
    pub session: http::Session,
}

impl Vuser {
    /// The scenario it walks.
    pub fn scenario(&self) -> Option<&Scenario> {
        self.worker.plan.scenarios.get(self.scenario?)
    }
}

/// Why a virtual user ends early: `errors.` and this name are counted once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed(pub Cow<'static, str>);
