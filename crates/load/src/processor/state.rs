//! What the functions given to JavaScript work on: the calls under way, what was emitted, when the next timer is due.
//!
//! No JavaScript value is in here: those must not outlive their runtime.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use weir_net::{Instant, clock};

use super::wires::{Heard, Wires};
use super::{Host, Kind};
use crate::engine::http::Session;
use crate::record::Recorder;
use crate::value::Value;
use crate::vars::Vars;

/// A function that runs longer without a pause is ended. An interpreter computes some thirty times slower than Node, on a
/// machine in use slower yet: what is ended must be what would not end by itself.
pub const BUSY_MAX: Duration = Duration::from_secs(30);
/// Metrics emitted and not yet counted; later ones are lost.
pub const EMITTED_MAX: usize = 100_000;
/// Large values made once for all virtual users.
pub const SHARED_MAX: usize = 64;
/// Members from which on a list or object that others hold too is made once.
const SHARED_MEMBERS_MIN: usize = 256;

/// How a call ended: what it handed back, or the name after `errors.`.
pub type Outcome = Result<Value, String>;

/// A metric from `ee.emit`.
pub struct Emitted {
    /// 0 counter, 1 histogram, 2 rate, 3 error, as in shared.js.
    pub kind: u8,
    /// Its name.
    pub name: String,
    /// What it adds.
    pub value: f64,
}

/// Takes what came over the connections of that number; nothing, when they are gone.
pub type Hear = Rc<dyn Fn(u64, Option<&Heard>)>;

/// What is kept for one virtual user, by variable.
type Kept = HashMap<Box<str>, Value>;

/// A call under way.
pub struct Call {
    pub vars: Vars,
    pub scenario: Value,
    pub session: Session,
    pub kind: Kind,
    pub outcome: Option<Outcome>,
    pub waker: Option<Waker>,
    /// Its open connections, where the scenario has some.
    pub wires: Option<Rc<Wires>>,
}

/// See the module.
pub struct State {
    pub host: Host,
    pub began: Instant,
    pub busy_max: Cell<Duration>,
    /// By id: there are few at a time, and ids only grow.
    pub calls: RefCell<BTreeMap<u64, Call>>,
    last_id: Cell<u64>,
    pub emitted: RefCell<Vec<Emitted>>,
    /// When the next timer is due, in ms since `began`.
    pub wake_at: Cell<Option<f64>>,
    busy_since: Cell<Option<Instant>>,
    pub was_interrupted: Cell<bool>,
    pub needs_node: RefCell<Option<String>>,
    pub functions: RefCell<HashSet<String>>,
    pub exit_code: Cell<Option<i32>>,
    pub shared: RefCell<Vec<Value>>,
    /// Who hears what comes over a virtual user's connections, by their number.
    pub hear: RefCell<Option<Hear>>,
    /// Connections a function has asked for, by number.
    wires: RefCell<BTreeMap<u64, Rc<Wires>>>,
    last_wires: Cell<u64>,
    /// Ended calls whose contexts listeners still hold.
    pub ended: RefCell<BTreeMap<u64, Rc<Wires>>>,
    /// What was set as something [`Value`] cannot hold, as it was taken, by virtual user and name.
    pub kept: RefCell<HashMap<Box<str>, Kept>>,
}

impl State {
    pub fn new(host: Host) -> Rc<State> {
        Rc::new(State {
            host,
            began: clock::precise(),
            busy_max: Cell::new(BUSY_MAX),
            calls: RefCell::default(),
            last_id: Cell::new(0),
            emitted: RefCell::default(),
            wake_at: Cell::new(None),
            busy_since: Cell::new(None),
            was_interrupted: Cell::new(false),
            needs_node: RefCell::default(),
            functions: RefCell::default(),
            exit_code: Cell::new(None),
            shared: RefCell::default(),
            hear: RefCell::default(),
            wires: RefCell::default(),
            last_wires: Cell::new(0),
            ended: RefCell::default(),
            kept: RefCell::default(),
        })
    }

    /// Milliseconds since the processor was loaded.
    pub fn now(&self) -> f64 {
        (clock::precise() - self.began).as_secs_f64() * 1e3
    }

    /// JavaScript is about to run.
    pub fn begin_turn(&self) {
        self.busy_since.set(None);
        self.was_interrupted.set(false);
    }

    /// Whether JavaScript has run too long without a pause; asked every so many instructions.
    pub fn is_too_busy(&self) -> bool {
        let now = clock::precise();
        let Some(since) = self.busy_since.get() else {
            self.busy_since.set(Some(now));
            return false;
        };
        let is_too_busy = now - since > self.busy_max.get();
        if is_too_busy {
            self.was_interrupted.set(true);
        }
        is_too_busy
    }

    /// Begins a call; its id is never used again.
    pub fn begin(&self, vars: Vars, scenario: Value, session: &Session, kind: Kind, wires: Option<&Rc<Wires>>) -> u64 {
        let id = self.last_id.get() + 1;
        self.last_id.set(id);
        let call =
            Call { vars, scenario, session: session.share(), kind, outcome: None, waker: None, wires: wires.cloned() };
        self.calls.borrow_mut().insert(id, call);
        id
    }

    /// Ends a call, unless it has ended.
    pub fn finish(&self, id: u64, outcome: Outcome) {
        let waker = match self.calls.borrow_mut().get_mut(&id) {
            Some(call) if call.outcome.is_none() => {
                call.outcome = Some(outcome);
                call.waker.take()
            }
            _ => None,
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// A variable of a call, or of one that has ended and whose context a listener holds.
    pub fn with_vars<T>(&self, id: u64, read: impl FnOnce(&Vars) -> T) -> Option<T> {
        match self.calls.borrow().get(&id) {
            Some(call) => Some(read(&call.vars)),
            None => self.ended.borrow().get(&id)?.with_vars(read),
        }
    }

    /// The connections of a call's virtual user, and the number JavaScript knows them by.
    pub fn wires_of(self: &Rc<State>, id: u64) -> Option<u64> {
        let wires = self.calls.borrow().get(&id).and_then(|call| call.wires.clone());
        let wires = wires.or_else(|| self.ended.borrow().get(&id).cloned())?;
        Some(wires.number(self))
    }

    /// A listener in a child sets a variable: of the call under way, if there is one.
    pub fn set_left(&self, wires: &Rc<Wires>, name: &str, value: Value) {
        let mut calls = self.calls.borrow_mut();
        let is_its = |call: &&mut Call| call.wires.as_ref().is_some_and(|own| Rc::ptr_eq(own, wires));
        match calls.values_mut().find(is_its) {
            Some(call) => call.vars.set_by_name(name, value),
            None => wires.set(name, value),
        }
    }

    /// Connections by their number.
    pub fn wires(&self, number: u64) -> Option<Rc<Wires>> {
        self.wires.borrow().get(&number).cloned()
    }

    /// A number for connections.
    pub fn add_wires(&self, wires: Rc<Wires>) -> u64 {
        let number = self.last_wires.get() + 1;
        self.last_wires.set(number);
        self.wires.borrow_mut().insert(number, wires);
        number
    }

    /// Forgets connections that are no more, here and in JavaScript.
    pub fn forget_wires(&self, number: u64) {
        self.wires.borrow_mut().remove(&number);
        let hear = self.hear.borrow().clone();
        hear.iter().for_each(|hear| hear(number, None));
    }

    /// A call's outcome, once.
    pub fn outcome(&self, id: u64) -> Option<Outcome> {
        self.calls.borrow_mut().get_mut(&id)?.outcome.take()
    }

    /// Notes a metric.
    pub fn emit(&self, kind: u8, name: String, value: f64) {
        let mut emitted = self.emitted.borrow_mut();
        if emitted.len() < EMITTED_MAX {
            emitted.push(Emitted { kind, name, value });
        }
    }

    /// Counts what was emitted.
    pub fn record(&self, recorder: &Recorder) {
        // Taken and put back, so that the room stays.
        let mut emitted = self.emitted.take();
        for Emitted { kind, name, value } in emitted.drain(..) {
            match kind {
                0 if value.is_finite() => recorder.count(recorder.metric(&name), value.max(0.0) as u64),
                1 => recorder.sample(recorder.metric(&name), value),
                2 => recorder.rate(recorder.metric(&name)),
                3 => recorder.count(recorder.metric(&format!("errors.{name}")), 1),
                _ => {}
            }
        }
        self.emitted.replace(emitted);
    }

    /// Where a large value of the plan is kept for all, if it is one and there is room; `is_always` takes small ones.
    pub fn share(&self, value: &Value, is_always: bool) -> Option<usize> {
        let is_large = match value {
            Value::List(list) => list.len() >= SHARED_MEMBERS_MIN && Arc::strong_count(list) > 1,
            Value::Map(map) => map.len() >= SHARED_MEMBERS_MIN && Arc::strong_count(map) > 1,
            _ => false,
        };
        if !(is_large || is_always && value.is_object()) {
            return None;
        }
        let mut shared = self.shared.borrow_mut();
        if let Some(index) = shared.iter().position(|known| known.is_same(value)) {
            return Some(index);
        }
        (shared.len() < SHARED_MAX).then(|| {
            shared.push(value.clone());
            shared.len() - 1
        })
    }
}

/// A virtual user's variables while a call has them; they go back however the call ends.
pub struct Lent<'q> {
    pub state: &'q State,
    pub id: u64,
    pub vars: &'q mut Vars,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let call = self.state.calls.borrow_mut().remove(&self.id);
        if let Some(mut call) = call {
            if let Some(wires) = &call.wires {
                wires.call_ended(self.state, self.id, &mut call.vars);
            }
            *self.vars = call.vars;
        }
    }
}
