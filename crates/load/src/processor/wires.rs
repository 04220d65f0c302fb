//! `context.sockets` and `context.ws`: a virtual user's open connections, for its processor.
//!
//! ```text
//!   net task ─► Wires::tell ─► queue ─► a task of its own ─► JavaScript's listeners ─► Line::emit
//! ```
//!
//! Listeners are called between the virtual user's steps and during them. So they see the variables as of the start
//! of the last step or the end of the last call; variables that they set are visible from the next step or call on. A
//! connection without a listener costs one pointer.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::Poll;

use weir_net::worker::spawn;

use super::state::ProcessorState;
use crate::engine::bell::Bell;
use crate::value::Value;
use crate::vars::Vars;

/// Most events that wait for a virtual user's listeners; later ones are dropped, and counted as `errors.`
/// [`DROPPED`].
const EVENTS_MAX: usize = 10_000;
/// The error name for dropped events.
const DROPPED: &str = "the processor is too slow for the events";
/// Number of ended calls whose contexts still reach the variables: the latest ones.
const CALLS_MAX: usize = 100;

/// The actions of a connection for a processor.
pub trait ConnectionActions {
    /// The member of `context` for this connection.
    fn kind(&self) -> ContextMember;
    /// The namespaces, by the names that steps use; one empty name if the connection has no namespaces.
    fn places(&self) -> Vec<String>;
    /// True if the namespace is connected.
    fn is_open(&self, place: &str) -> bool;
    /// From now on, passes everything received to `wires`.
    fn listen(&self, wires: &Rc<Wires>);
    /// Sends an event as JSON, or a message unchanged; returns the acknowledgement's number if one is wanted.
    fn emit(&self, place: &str, text: &str, wants_answer: bool) -> Option<u64>;
    /// Closes the namespace or the connection.
    fn close(&self, place: &str);
}

/// The two members of `context`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextMember {
    /// `context.sockets`.
    SocketIo,
    /// `context.ws`.
    Ws,
}

/// A received event; the numbers are those of wires.js.
#[derive(Debug)]
pub struct ReceivedEvent {
    /// The kind of event.
    pub kind: HeardKind,
    /// The namespace.
    pub place: String,
    /// The JSON of an event or acknowledgement; a message; or why a connection ended.
    pub text: String,
    /// The number of the acknowledgement.
    pub number: u64,
}

/// The kind of a received event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeardKind {
    /// An event of Socket.IO, as the JSON of its name and arguments.
    Event = 0,
    /// An acknowledgement, as the JSON of its arguments.
    Ack = 1,
    /// A namespace is connected, perhaps not for the first time.
    Connected = 2,
    /// A namespace is disconnected.
    Lost = 3,
    /// A text message of a WebSocket.
    Text = 4,
    /// A binary message; its bytes as JSON numbers.
    Bytes = 5,
}

/// A virtual user's connections.
pub struct Wires {
    line: Box<dyn ConnectionActions>,
    queue: RefCell<VecDeque<ReceivedEvent>>,
    bell: Bell,
    is_heard: Cell<bool>,
    is_over: Cell<bool>,
    dropped: Cell<u64>,
    left: RefCell<Left>,
    /// The processor state that knows these connections, and their number there.
    known: RefCell<Option<(Weak<ProcessorState>, u64)>>,
    ended: RefCell<VecDeque<u64>>,
    /// The numbers that a Node child uses for acknowledgements, by namespace and number.
    answers: RefCell<HashMap<(String, u64), u64>>,
}

/// Variables between calls.
#[derive(Default)]
struct Left {
    /// The variables at the last sync, with later changes.
    vars: Option<Vars>,
    /// Variables set since the last sync.
    set: HashMap<Box<str>, Value>,
}

impl Wires {
    /// Wraps an open connection.
    pub fn new(line: Box<dyn ConnectionActions>) -> Rc<Wires> {
        Rc::new(Wires {
            line,
            queue: RefCell::default(),
            bell: Bell::default(),
            is_heard: Cell::new(false),
            is_over: Cell::new(false),
            dropped: Cell::new(0),
            left: RefCell::default(),
            known: RefCell::default(),
            ended: RefCell::default(),
            answers: RefCell::default(),
        })
    }

    /// The connection.
    pub fn line(&self) -> &dyn ConnectionActions {
        &*self.line
    }

    /// True if a processor listens.
    pub fn is_heard(&self) -> bool {
        self.is_heard.get()
    }

    /// Queues an event for the listeners.
    pub fn tell(&self, kind: HeardKind, place: &str, text: &str, number: u64) {
        let own = match kind {
            HeardKind::Ack => self.answers.borrow_mut().remove(&(place.to_owned(), number)),
            _ => None,
        };
        let number = own.unwrap_or(number);
        let mut queue = self.queue.borrow_mut();
        if queue.len() >= EVENTS_MAX {
            self.dropped.set(self.dropped.get() + 1);
            return;
        }
        queue.push_back(ReceivedEvent { kind, place: place.to_owned(), text: text.to_owned(), number });
        drop(queue);
        self.bell.ring();
    }

    /// Exchanges variables between the virtual user and its listeners. Cheap without listeners.
    pub fn sync(&self, vars: &mut Vars) {
        if self.is_heard.get() {
            let mut left = self.left.borrow_mut();
            for (name, value) in left.set.drain() {
                vars.set_by_name(&name, value);
            }
            left.vars = Some(vars.clone());
        }
    }

    /// Keeps the variables reachable for the context of an ended call.
    pub(super) fn call_ended(self: &Rc<Wires>, state: &ProcessorState, id: u64, vars: &mut Vars) {
        if !self.is_heard.get() {
            return;
        }
        self.sync(vars);
        state.ended.borrow_mut().insert(id, self.clone());
        let mut ended = self.ended.borrow_mut();
        ended.push_back(id);
        if ended.len() > CALLS_MAX
            && let Some(first) = ended.pop_front()
        {
            state.ended.borrow_mut().remove(&first);
        }
    }

    /// Records the processor's own number for an acknowledgement.
    pub(super) fn answers_as(&self, place: String, id: u64, own: u64) {
        let mut answers = self.answers.borrow_mut();
        if answers.len() < EVENTS_MAX {
            answers.insert((place, id), own);
        }
    }

    /// Reads variables for a listener.
    pub(super) fn with_vars<T>(&self, read: impl FnOnce(&Vars) -> T) -> Option<T> {
        self.left.borrow().vars.as_ref().map(read)
    }

    /// Sets a variable for a listener.
    pub(super) fn set(&self, name: &str, value: Value) {
        let left = &mut *self.left.borrow_mut();
        if let Some(vars) = &mut left.vars {
            vars.set_by_name(name, value.clone());
            left.set.insert(name.into(), value);
        }
    }

    /// The number by which the processor knows these connections.
    pub(super) fn number(self: &Rc<Wires>, state: &Rc<ProcessorState>) -> u64 {
        if let Some((_, number)) = &*self.known.borrow() {
            return *number;
        }
        let number = state.add_wires(self.clone());
        self.known.replace(Some((Rc::downgrade(state), number)));
        number
    }

    /// From now on, a separate task passes everything received to the processor.
    pub(super) fn listen(self: &Rc<Wires>, state: &Rc<ProcessorState>) {
        if self.is_heard.replace(true) || self.is_over.get() {
            return;
        }
        self.line.listen(self);
        spawn(pump(self.clone(), state.clone()));
    }

    /// Ends listening: the virtual user is done. Called before its connections are closed.
    pub fn over(&self) {
        self.is_over.set(true);
        self.queue.borrow_mut().clear();
        self.bell.ring();
        let Some((state, number)) = self.known.take() else { return };
        let Some(state) = state.upgrade() else { return };
        state.forget_wires(number);
        let mut all = state.ended.borrow_mut();
        self.ended.borrow_mut().drain(..).for_each(|id| drop(all.remove(&id)));
        if self.dropped.get() > 0 {
            state.emit(0, format!("errors.{DROPPED}"), self.dropped.take() as f64);
        }
    }
}

/// Passes events on until the virtual user is done.
async fn pump(wires: Rc<Wires>, state: Rc<ProcessorState>) {
    loop {
        let heard = poll_fn(|context| {
            if wires.is_over.get() {
                return Poll::Ready(None);
            }
            if let Some(heard) = wires.queue.borrow_mut().pop_front() {
                return Poll::Ready(Some(heard));
            }
            wires.bell.listen(context);
            Poll::Pending
        })
        .await;
        let Some(heard) = heard else { return };
        let number = wires.known.borrow().as_ref().map(|(_, number)| *number);
        let hear = state.hear.borrow().clone();
        if let (Some(number), Some(hear)) = (number, hear) {
            hear(number, Some(&heard));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use super::super::ProcessorHost;
    use super::*;
    use crate::engine::http::session::HttpSession;
    use crate::processor::state::FunctionKind as Called;
    use crate::vars::VariableNames;

    /// A connection that never receives anything.
    struct Silent;

    impl ConnectionActions for Silent {
        fn kind(&self) -> ContextMember {
            ContextMember::Ws
        }
        fn places(&self) -> Vec<String> {
            vec![String::new()]
        }
        fn is_open(&self, _: &str) -> bool {
            true
        }
        fn listen(&self, _: &Rc<Wires>) {}
        fn emit(&self, _: &str, _: &str, _: bool) -> Option<u64> {
            None
        }
        fn close(&self, _: &str) {}
    }

    fn vars() -> Vars {
        let mut vars = Vars::new(Arc::new(VariableNames::default()));
        vars.set_by_name("a", Value::from(1.0));
        vars
    }

    /// Runs a test with a state and with connections that have listeners, in a worker.
    fn heard(then: impl FnOnce(&Rc<ProcessorState>, &Rc<Wires>) + 'static) {
        weir_net::worker::block_on(async move {
            let (state, wires) = (ProcessorState::new(ProcessorHost::default()), Wires::new(Box::new(Silent)));
            assert_eq!((wires.number(&state), wires.number(&state)), (1, 1));
            wires.listen(&state);
            then(&state, &wires);
            wires.over();
        })
        .unwrap();
    }

    #[test]
    fn variables_go_both_ways_between_steps() {
        heard(|_, wires| {
            let mut vars = vars();
            wires.set("lost", Value::Null);
            wires.sync(&mut vars);
            assert_eq!(*vars.by_name("lost"), Value::Undefined, "nothing was left here yet");
            wires.set("b", Value::from(2.0));
            assert_eq!(
                wires.with_vars(|vars| (vars.by_name("a").clone(), vars.by_name("b").clone())).unwrap(),
                (1.0.into(), 2.0.into())
            );
            vars.set_by_name("a", Value::from(7.0));
            wires.sync(&mut vars);
            assert_eq!(
                (vars.by_name("b").clone(), wires.with_vars(|vars| vars.by_name("a").clone())),
                (2.0.into(), Some(7.0.into()))
            );
        });
    }

    #[test]
    fn contexts_of_ended_calls_reach_variables_the_last_of_them() {
        heard(|state, wires| {
            let session = HttpSession::new(Default::default());
            let mut ids = Vec::new();
            for _ in 0..CALLS_MAX + 2 {
                let mut own = vars();
                let id = state.begin(own.take(), Value::Undefined, &session, Called::Function, Some(wires));
                drop(super::super::state::Lent { state, id, vars: &mut own });
                ids.push(id);
            }
            let reaches = |id: &u64| state.with_vars(*id, |vars| vars.by_name("a").clone()) == Some(1.0.into());
            assert_eq!(ids.iter().filter(|id| reaches(id)).count(), CALLS_MAX);
            assert!(!reaches(&ids[1]) && reaches(&ids[2]));
            wires.over();
            assert!(!ids.iter().any(reaches) && state.wires(1).is_none());
        });
    }

    #[test]
    fn events_have_a_bound_and_the_rest_is_counted() {
        heard(|state, wires| {
            for _ in 0..EVENTS_MAX + 3 {
                wires.tell(HeardKind::Event, "", "[]", 0);
            }
            wires.over();
            let emitted = state.emitted.borrow();
            assert_eq!((&*emitted[0].name, emitted[0].value), ("errors.the processor is too slow for the events", 3.0));
        });
    }
}
