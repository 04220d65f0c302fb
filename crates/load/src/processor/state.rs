//! State for the functions that JavaScript gets: the current calls, the emitted metrics, the time of the next timer.
//!
//! There is no JavaScript value in here, because those must not outlive their runtime.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use weir_net::{Instant, clock};

use super::host::ProcessorHost;
use super::wires::{ReceivedEvent, Wires};
use crate::engine::http::session::HttpSession;
use crate::record::Recorder;
use crate::value::Value;
use crate::vars::Vars;

/// A function that runs longer without a pause is ended. The interpreter computes some thirty times slower than Node,
/// and slower still on a busy machine. So the limit must only hit functions that would never end.
pub const BUSY_MAX: Duration = Duration::from_secs(30);
/// Most metrics that are emitted and not yet counted; later ones are lost.
pub const EMITTED_MAX: usize = 100_000;
/// Most large values that are made once for all virtual users.
pub const SHARED_MAX: usize = 64;
/// A list or object that others hold too and that has at least this many members is made only once.
const SHARED_MEMBERS_MIN: usize = 256;

/// Virtual users for whom weir keeps values that a [`Value`] cannot hold; above this number, all of them are
/// forgotten.
pub const KEPT_MAX: usize = 50_000;

/// The result of a call: its value, or the error name after `errors.`.
pub type CallResult = Result<Value, String>;

/// The kind of function, which sets its arguments. The numbers are those of calls.js and host.js.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    Function = 0,
    BeforeRequest = 1,
    AfterResponse = 2,
    OnError = 3,
    WhileTrue = 4,
    IfTrue = 5,
    Connect = 6,
}

/// A metric from `ee.emit`.
pub struct Emitted {
    /// 0 counter, 1 histogram, 2 rate, 3 error, as in shared.js.
    pub kind: u8,
    /// Its name.
    pub name: String,
    /// The value to add.
    pub value: f64,
}

/// Called with an event of the connections with this number; `None`: the connections are gone.
pub type Hear = Rc<dyn Fn(u64, Option<&ReceivedEvent>)>;

/// The values kept for one virtual user, by variable.
type Kept = HashMap<Box<str>, Value>;

/// A current call.
pub struct FunctionCall {
    pub vars: Vars,
    pub scenario: Value,
    pub session: HttpSession,
    pub kind: FunctionKind,
    pub outcome: Option<CallResult>,
    pub waker: Option<Waker>,
    /// The virtual user's open connections, if there are any.
    pub wires: Option<Rc<Wires>>,
}

/// See the module.
pub struct ProcessorState {
    pub host: ProcessorHost,
    pub began: Instant,
    pub busy_max: Cell<Duration>,
    /// By id: there are few at a time, and ids only grow.
    pub calls: RefCell<BTreeMap<u64, FunctionCall>>,
    last_id: Cell<u64>,
    pub emitted: RefCell<Vec<Emitted>>,
    /// Time of the next timer, in ms since `began`.
    pub wake_at: Cell<Option<f64>>,
    busy_since: Cell<Option<Instant>>,
    pub was_interrupted: Cell<bool>,
    pub needs_node: RefCell<Option<String>>,
    pub functions: RefCell<HashSet<String>>,
    pub exit_code: Cell<Option<i32>>,
    pub shared: RefCell<Vec<Value>>,
    /// The handler of events on virtual users' connections.
    pub hear: RefCell<Option<Hear>>,
    /// Connections that a function has asked for, by number.
    wires: RefCell<BTreeMap<u64, Rc<Wires>>>,
    last_wires: Cell<u64>,
    /// Ended calls whose contexts listeners still hold.
    pub ended: RefCell<BTreeMap<u64, Rc<Wires>>>,
    /// The converted form of variables that hold more than a [`Value`] can, by virtual user and name.
    pub kept: RefCell<HashMap<Box<str>, Kept>>,
}

impl ProcessorState {
    pub fn new(host: ProcessorHost) -> Rc<ProcessorState> {
        Rc::new(ProcessorState {
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

    /// Called before JavaScript runs.
    pub fn begin_turn(&self) {
        self.busy_since.set(None);
        self.was_interrupted.set(false);
    }

    /// True if JavaScript has run too long without a pause; the runtime asks after a number of instructions.
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

    /// Begins a call; its id is never reused.
    pub fn begin(
        &self,
        vars: Vars,
        scenario: Value,
        session: &HttpSession,
        kind: FunctionKind,
        wires: Option<&Rc<Wires>>,
    ) -> u64 {
        let id = self.last_id.get() + 1;
        self.last_id.set(id);
        let call = FunctionCall {
            vars,
            scenario,
            session: session.share(),
            kind,
            outcome: None,
            waker: None,
            wires: wires.cloned(),
        };
        self.calls.borrow_mut().insert(id, call);
        id
    }

    /// Ends a call if it has not ended yet.
    pub fn finish(&self, id: u64, outcome: CallResult) {
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

    /// Reads variables of a call, or of an ended call whose context a listener holds.
    pub fn with_vars<T>(&self, id: u64, read: impl FnOnce(&Vars) -> T) -> Option<T> {
        match self.calls.borrow().get(&id) {
            Some(call) => Some(read(&call.vars)),
            None => self.ended.borrow().get(&id)?.with_vars(read),
        }
    }

    /// The number of the connections of a call's virtual user.
    pub fn wires_of(self: &Rc<ProcessorState>, id: u64) -> Option<u64> {
        let wires = self.calls.borrow().get(&id).and_then(|call| call.wires.clone());
        let wires = wires.or_else(|| self.ended.borrow().get(&id).cloned())?;
        Some(wires.number(self))
    }

    /// A listener in a child sets a variable: in the current call, if there is one.
    pub fn set_left(&self, wires: &Rc<Wires>, name: &str, value: Value) {
        let mut calls = self.calls.borrow_mut();
        let is_its = |call: &&mut FunctionCall| call.wires.as_ref().is_some_and(|own| Rc::ptr_eq(own, wires));
        match calls.values_mut().find(is_its) {
            Some(call) => call.vars.set_by_name(name, value),
            None => wires.set(name, value),
        }
    }

    /// The connections with this number.
    pub fn wires(&self, number: u64) -> Option<Rc<Wires>> {
        self.wires.borrow().get(&number).cloned()
    }

    /// Gives connections a number.
    pub fn add_wires(&self, wires: Rc<Wires>) -> u64 {
        let number = self.last_wires.get() + 1;
        self.last_wires.set(number);
        self.wires.borrow_mut().insert(number, wires);
        number
    }

    /// Forgets closed connections, here and in JavaScript.
    pub fn forget_wires(&self, number: u64) {
        self.wires.borrow_mut().remove(&number);
        let hear = self.hear.borrow().clone();
        hear.iter().for_each(|hear| hear(number, None));
    }

    /// Takes the outcome of a call.
    pub fn outcome(&self, id: u64) -> Option<CallResult> {
        self.calls.borrow_mut().get_mut(&id)?.outcome.take()
    }

    /// Stores a metric.
    pub fn emit(&self, kind: u8, name: String, value: f64) {
        let mut emitted = self.emitted.borrow_mut();
        if emitted.len() < EMITTED_MAX {
            emitted.push(Emitted { kind, name, value });
        }
    }

    /// Counts the stored metrics.
    pub fn record(&self, recorder: &Recorder) {
        // Take the list and put it back, so that it keeps its capacity.
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

    /// The index of a shared value: for a large value of the plan, if there is room. `is_always` also shares small
    /// objects.
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

/// A virtual user's variables while a call has them; they are given back however the call ends.
pub struct Lent<'q> {
    pub state: &'q ProcessorState,
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
