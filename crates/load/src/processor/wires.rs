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
        if self.dropped.get() > 0 {
            state.emit(0, format!("errors.{DROPPED}"), self.dropped.take() as f64);
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use super::super::Host;
    use super::*;
    use crate::engine::http::Session;
    use crate::processor::Kind as Called;
    use crate::vars::Names;

    /// A connection that keeps silent.
    struct Silent;

    impl Line for Silent {
        fn kind(&self) -> Kind {
            Kind::Ws
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
        let mut vars = Vars::new(Arc::new(Names::default()));
        vars.set_by_name("a", Value::from(1.0));
        vars
    }

    /// A state, and connections that listeners have, within a worker.
    fn heard(then: impl FnOnce(&Rc<State>, &Rc<Wires>) + 'static) {
        weir_net::worker::block_on(async move {
            let (state, wires) = (State::new(Host::default()), Wires::new(Box::new(Silent)));
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
            let session = Session::new(Default::default());
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
            assert_eq!((&*emitted[0].name, emitted[0].value), ("errors.processor does not keep up with events", 3.0));
        });
    }
}
