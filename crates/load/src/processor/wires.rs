//! `context.sockets` and `context.ws`: a virtual user's open connections in the hands of its processor.
//!
//! ```text
//!   net task ─► Wires::tell ─► queue ─► a task of its own ─► JavaScript's listeners ─► Line::emit
//! ```
//!
//! What listens is called between the virtual user's steps and in the middle of them, so it has the variables as they
//! were when the last step began or the last call ended; what it sets is there from the next step or call on. A
//! connection nobody listens on costs one pointer.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::Poll;

use weir_net::worker::spawn;

use super::state::State;
use crate::engine::bell::Bell;
use crate::value::Value;
use crate::vars::Vars;

/// Events that wait for a virtual user's listeners; later ones are dropped, and counted as `errors.` [`DROPPED`].
const EVENTS_MAX: usize = 10_000;
/// What is counted of events that found no room.
const DROPPED: &str = "processor does not keep up with events";
/// Ended calls whose contexts still reach the variables: the last ones.
const CALLS_MAX: usize = 100;

/// What a connection can do for a processor.
pub trait Line {
    /// Which member of `context` it is.
    fn kind(&self) -> Kind;
    /// The namespaces there are, by the names that steps call them; one without a name, if there are none.
    fn places(&self) -> Vec<String>;
    /// Whether one is connected.
    fn is_open(&self, place: &str) -> bool;
    /// From now on everything that comes is told to whom.
    fn listen(&self, wires: &Rc<Wires>);
    /// Sends an event as JSON, or a message as it is; the number of the acknowledgement if one is wanted.
    fn emit(&self, place: &str, text: &str, wants_answer: bool) -> Option<u64>;
    /// Says goodbye.
    fn close(&self, place: &str);
}

/// The two members of `context`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `context.sockets`.
    SocketIo,
    /// `context.ws`.
    Ws,
}

/// Something that came; the numbers are those of wires.js.
#[derive(Debug)]
pub struct Heard {
    /// What it is.
    pub kind: HeardKind,
    /// Of which namespace.
    pub place: String,
    /// JSON of an event or acknowledgement; a message; why a connection ended.
    pub text: String,
    /// The acknowledgement's number.
    pub number: u64,
}

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeardKind {
    /// An event of Socket.IO, as the JSON of its name and arguments.
    Event = 0,
    /// An acknowledgement, as the JSON of its arguments.
    Ack = 1,
    /// A namespace is connected, again perhaps.
    Connected = 2,
    /// It is not any more.
    Lost = 3,
    /// A message of a WebSocket, text.
    Text = 4,
    /// One that was not text; its bytes as JSON's numbers.
    Bytes = 5,
}

/// A virtual user's connections.
pub struct Wires {
    line: Box<dyn Line>,
    queue: RefCell<VecDeque<Heard>>,
    bell: Bell,
    is_heard: Cell<bool>,
    is_over: Cell<bool>,
    dropped: Cell<u64>,
    left: RefCell<Left>,
    /// Who knows it by which number, once a processor has asked for it.
    known: RefCell<Option<(Weak<State>, u64)>>,
    ended: RefCell<VecDeque<u64>>,
    /// What a child in Node calls acknowledgements, by namespace and number.
    answers: RefCell<HashMap<(String, u64), u64>>,
}

/// Variables between calls.
#[derive(Default)]
struct Left {
    /// As they were last seen, with what was set since.
    vars: Option<Vars>,
    /// What was set since.
    set: HashMap<Box<str>, Value>,
}

impl Wires {
    /// Around a connection that is open.
    pub fn new(line: Box<dyn Line>) -> Rc<Wires> {
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
    pub fn line(&self) -> &dyn Line {
        &*self.line
    }

    /// Whether a processor listens.
    pub fn is_heard(&self) -> bool {
        self.is_heard.get()
    }

    /// Something came, for who listens.
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
        queue.push_back(Heard { kind, place: place.to_owned(), text: text.to_owned(), number });
        drop(queue);
        self.bell.ring();
    }

    /// Lets what listeners set be seen, and listeners see what is set here. Cheap while nobody listens.
    pub fn sync(&self, vars: &mut Vars) {
        if self.is_heard.get() {
            let mut left = self.left.borrow_mut();
            for (name, value) in left.set.drain() {
                vars.set_by_name(&name, value);
            }
            left.vars = Some(vars.clone());
        }
    }

    /// A call has ended: its context still reaches these variables.
    pub(super) fn call_ended(self: &Rc<Wires>, state: &State, id: u64, vars: &mut Vars) {
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

    /// An acknowledgement has a number of the processor's own.
    pub(super) fn answers_as(&self, place: String, id: u64, own: u64) {
        let mut answers = self.answers.borrow_mut();
        if answers.len() < EVENTS_MAX {
            answers.insert((place, id), own);
        }
    }

    /// A variable for a listener.
    pub(super) fn with_vars<T>(&self, read: impl FnOnce(&Vars) -> T) -> Option<T> {
        self.left.borrow().vars.as_ref().map(read)
    }

    /// A listener sets a variable.
    pub(super) fn set(&self, name: &str, value: Value) {
        let left = &mut *self.left.borrow_mut();
        if let Some(vars) = &mut left.vars {
            vars.set_by_name(name, value.clone());
            left.set.insert(name.into(), value);
        }
    }

    /// The number a processor knows it by.
    pub(super) fn number(self: &Rc<Wires>, state: &Rc<State>) -> u64 {
        if let Some((_, number)) = &*self.known.borrow() {
            return *number;
        }
        let number = state.add_wires(self.clone());
        self.known.replace(Some((Rc::downgrade(state), number)));
        number
    }

    /// Everything that comes goes to the processor from now on, by a task of its own.
    pub(super) fn listen(self: &Rc<Wires>, state: &Rc<State>) {
        if self.is_heard.replace(true) || self.is_over.get() {
            return;
        }
        self.line.listen(self);
        spawn(pump(self.clone(), state.clone()));
    }

    /// The virtual user is done: nothing more is heard. Called before its connections are closed.
    pub fn over(&self) {
        self.is_over.set(true);
        self.queue.borrow_mut().clear();
        self.bell.ring();
        let Some((state, number)) = self.known.take() else { return };
        let Some(state) = state.upgrade() else { return };
        state.forget_wires(number);
        let mut all = state.ended.borrow_mut();
        self.ended.borrow_mut().drain(..).for_each(|id| drop(all.remove(&id)));
        for _ in 0..self.dropped.take() {
            state.emit(3, DROPPED.to_owned(), 1.0);
        }
    }
}

/// Hands over what comes, until the virtual user is done.
async fn pump(wires: Rc<Wires>, state: Rc<State>) {
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
