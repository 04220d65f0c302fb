//! One virtual user: its variables and its connections.

use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_net::{Instant, clock};

use crate::engine::http::session::HttpSession;
use crate::engine::socketio::shared as socketio;
use crate::engine::ws::shared as ws;
use crate::plan::{Initial, Scenario};
use crate::processor::Context;
use crate::processor::wires::Wires;
use crate::random;
use crate::value::Value;
use crate::vars::Vars;
use crate::worker::Worker;

/// A virtual user.
pub struct Vuser {
    /// The worker.
    pub worker: Rc<Worker>,
    /// Index of the scenario; `None` in `before` and `after`.
    pub scenario: Option<usize>,
    /// The variables.
    pub vars: Vars,
    /// `$uuid`.
    pub uid: Rc<str>,
    /// Intended start of the next exchange: the arrival, or the end of a `think`. `None`: its actual start.
    pub due: Option<Instant>,
    /// Connections and cookies.
    pub session: HttpSession,
    /// The WebSocket.
    pub ws: Option<Box<ws::WsSession>>,
    /// The Socket.IO connections.
    pub socketio: Option<Box<socketio::SocketioSession>>,
    /// The same connections for the processor, if there is one.
    pub wires: Option<Rc<Wires>>,
}

impl Vuser {
    /// A virtual user with its first variables.
    pub fn new(worker: &Rc<Worker>, scenario: Option<usize>, due: Instant) -> Vuser {
        let plan = &worker.plan;
        let mut vars = Vars::new(plan.names.clone());
        for (slot, value) in &plan.globals {
            vars.set(*slot, value.clone());
        }
        for (name, value) in &worker.shared.before {
            vars.set_by_name(name, value.clone());
        }
        for (index, payload) in plan.payloads.iter().enumerate() {
            if let Some((slot, rows)) = &payload.all {
                vars.set(*slot, rows.clone());
            }
            let row = match worker.shared.rows.get(index) {
                // Each agent takes every n-th row, so that together they use each row once.
                Some(next) if payload.is_sequence => {
                    let (share, shares) = worker.shared.share;
                    next.fetch_add(1, Ordering::Relaxed).wrapping_mul(shares.max(1)).wrapping_add(share)
                }
                _ => random::below(payload.rows.len()) as u64,
            };
            let Some(row) = payload.rows.get((row % payload.rows.len().max(1) as u64) as usize) else { continue };
            for (slot, value) in payload.fields.iter().zip(row) {
                vars.set(*slot, value.clone());
            }
        }
        for (slot, initial) in &plan.variables {
            let value = match initial {
                Initial::Fixed(value) => Some(value),
                Initial::OneOf(values) => random::one_of(values),
            };
            vars.set(*slot, value.cloned().unwrap_or_default());
        }
        let uid: Rc<str> = random::uuid().into();
        vars.set_by_name("$uuid", Value::from(&*uid));
        Vuser {
            worker: worker.clone(),
            scenario,
            vars,
            uid,
            due: Some(due),
            session: HttpSession::new(worker.plan.http.cookie_rules),
            ws: None,
            socketio: None,
            wires: None,
        }
    }

    /// The virtual user's scenario.
    pub fn scenario(&self) -> Option<&Scenario> {
        self.worker.plan.scenarios.get(self.scenario?)
    }

    /// The same virtual user for a parallel branch: connections and cookies are shared, variables are not.
    pub fn share(&self, vars: Vars) -> Vuser {
        Vuser {
            worker: self.worker.clone(),
            scenario: self.scenario,
            vars,
            uid: self.uid.clone(),
            due: self.due,
            session: self.session.share(),
            ws: None,
            socketio: None,
            wires: None,
        }
    }

    /// The intended start of an exchange that begins at `begin`. Later exchanges are intended to begin when they do.
    pub fn meant(&mut self, begin: Instant) -> Instant {
        self.due.take().map_or(begin, |due| due.min(begin))
    }

    /// Records both latencies of an exchange that is complete at this moment, from its intended start and from its
    /// send. Returns the second one.
    pub fn answered(&self, meant: Instant, sent: Instant) -> Duration {
        let now = clock::precise();
        let service = now.saturating_duration_since(sent);
        self.worker.recorder.latency(now.saturating_duration_since(meant), service);
        service
    }

    /// The context for a processor's function.
    pub fn context(&mut self) -> (Rc<Worker>, Context<'_>) {
        static NOTHING: Value = Value::Undefined;
        let worker = self.worker.clone();
        self.sync();
        let Vuser { vars, uid, scenario, session, worker: own, wires, .. } = self;
        let scenario =
            scenario.and_then(|index| own.plan.scenarios.get(index)).map_or(&NOTHING, |scenario| &scenario.spec);
        (worker, Context { vars, scenario, uid, session, wires: wires.as_ref(), recorder: &own.recorder })
    }

    /// Exchanges variables with the processor's listeners, in both directions.
    pub fn sync(&mut self) {
        if let Some(wires) = &self.wires {
            wires.sync(&mut self.vars);
        }
    }
}
