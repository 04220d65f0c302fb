//! Two kinds of state of `engine: ws`: all virtual users of a worker share one, each virtual user has the other.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::time::Duration;

use weir_net::Deadline;

use crate::engine::bell::Bell;
use crate::engine::dial::Place;
use crate::engine::websocket::{Incoming, Options, Socket, State};
use crate::plan::Plan;
use crate::processor::wires::{HeardKind, Kind, Line, Wires};
use crate::record::{Metric, Recorder};

/// Longest wait of a step for a message if the script sets none.
const WAIT: Duration = Duration::from_secs(10);

/// Messages kept for later steps; more are counted and dropped.
const KEPT_MAX: usize = 64;

/// State that the ws virtual users of a worker share.
pub struct Shared {
    pub(super) sent: Metric,
    pub(super) send_rate: Metric,
    pub(super) received: Metric,
    pub(super) receive_rate: Metric,
    pub(super) wait: Duration,
    pub(super) places: Places,
}

impl Shared {
    /// Prepares the state that does not change during a run.
    pub fn new(plan: &Plan, recorder: &Recorder) -> Shared {
        Shared {
            sent: recorder.metric("websocket.messages_sent"),
            send_rate: recorder.metric("websocket.send_rate"),
            received: recorder.metric("websocket.messages_received"),
            receive_rate: recorder.metric("websocket.receive_rate"),
            wait: plan.timeout.or(plan.ws.timeout).unwrap_or(WAIT),
            places: Places::default(),
        }
    }
}

/// One virtual user's connection.
pub struct Session {
    pub(super) link: Rc<Link>,
    pub(super) deadline: Deadline,
}

/// State that the virtual user and the reading task share.
pub(super) struct Link {
    pub(super) socket: Socket,
    /// True if the last step that ran takes data from messages: then messages are counted and kept.
    pub(super) listens: Cell<bool>,
    pub(super) kept: RefCell<VecDeque<Message>>,
    pub(super) bell: Bell,
    /// The processor's listeners, if there are any.
    pub(super) wires: RefCell<Weak<Wires>>,
}

/// A received message, and whether it is text.
pub(super) struct Message {
    pub(super) is_text: bool,
    pub(super) payload: Vec<u8>,
}

/// The places and options last used: usually all virtual users have the same ones.
#[derive(Default)]
pub(super) struct Places {
    pub(super) place: RefCell<Option<(Box<str>, Rc<Place>)>>,
    pub(super) options: RefCell<Option<Rc<Options>>>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.link.listens.set(false);
        self.link.socket.close();
    }
}

impl Line for Rc<Link> {
    fn kind(&self) -> Kind {
        Kind::Ws
    }

    fn places(&self) -> Vec<String> {
        vec![String::new()]
    }

    fn is_open(&self, _: &str) -> bool {
        self.socket.state() == State::Open
    }

    fn listen(&self, wires: &Rc<Wires>) {
        self.wires.replace(Rc::downgrade(wires));
    }

    fn emit(&self, _: &str, text: &str, _: bool) -> Option<u64> {
        self.socket.send_text(text.as_bytes());
        None
    }

    fn close(&self, _: &str) {
        self.socket.close();
    }
}

impl Link {
    pub(super) fn wires(&self) -> Option<Rc<Wires>> {
        self.wires.borrow().upgrade()
    }

    /// Passes the message to the processor's listeners.
    pub(super) fn tell(&self, message: Incoming<'_>) {
        let Some(wires) = self.wires() else { return };
        match message.is_text {
            true => wires.tell(HeardKind::Text, "", &String::from_utf8_lossy(message.payload), 0),
            false => {
                let bytes: Vec<String> = message.payload.iter().map(u8::to_string).collect();
                wires.tell(HeardKind::Bytes, "", &format!("[{}]", bytes.join(",")), 0);
            }
        }
    }

    pub(super) fn keep(&self, message: Incoming<'_>) {
        let mut kept = self.kept.borrow_mut();
        if kept.len() < KEPT_MAX {
            kept.push_back(Message { is_text: message.is_text, payload: message.payload.to_vec() });
            self.bell.ring();
        }
    }
}
