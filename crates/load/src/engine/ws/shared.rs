//! Two kinds of state of `engine: ws`: all virtual users of a worker share one, each virtual user has the other.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::time::Duration;

use weir_net::Deadline;

use crate::engine::bell::Bell;
use crate::engine::dial::UrlAddress;
use crate::engine::websocket::{IncomingMessage, ReadyState, Socket, WebSocketOptions};
use crate::plan::Plan;
use crate::processor::wires::{ConnectionActions, ContextMember, HeardKind, Wires};
use crate::record::{MetricId, Recorder};

/// Longest wait of a step for a message if the script sets none.
const WAIT: Duration = Duration::from_secs(10);

/// Messages kept for later steps; more are counted and dropped.
const KEPT_MAX: usize = 64;

/// State that the ws virtual users of a worker share.
pub struct WsShared {
    pub(super) sent: MetricId,
    pub(super) send_rate: MetricId,
    pub(super) received: MetricId,
    pub(super) receive_rate: MetricId,
    pub(super) wait: Duration,
    pub(super) places: LastUsed,
}

impl WsShared {
    /// Prepares the state that does not change during a run.
    pub fn new(plan: &Plan, recorder: &Recorder) -> WsShared {
        WsShared {
            sent: recorder.metric("websocket.messages_sent"),
            send_rate: recorder.metric("websocket.send_rate"),
            received: recorder.metric("websocket.messages_received"),
            receive_rate: recorder.metric("websocket.receive_rate"),
            wait: plan.timeout.or(plan.ws.timeout).unwrap_or(WAIT),
            places: LastUsed::default(),
        }
    }
}

/// One virtual user's connection.
pub struct WsSession {
    pub(super) link: Rc<SharedSocket>,
    pub(super) deadline: Deadline,
}

/// State that the virtual user and the reading task share.
pub(super) struct SharedSocket {
    pub(super) socket: Socket,
    /// True if the last step that ran takes data from messages: then messages are counted and kept.
    pub(super) listens: Cell<bool>,
    pub(super) kept: RefCell<VecDeque<WsMessage>>,
    pub(super) bell: Bell,
    /// The processor's listeners, if there are any.
    pub(super) wires: RefCell<Weak<Wires>>,
}

/// A received message, and whether it is text.
pub(super) struct WsMessage {
    pub(super) is_text: bool,
    pub(super) payload: Vec<u8>,
}

/// The places and options last used: usually all virtual users have the same ones.
#[derive(Default)]
pub(super) struct LastUsed {
    pub(super) place: RefCell<Option<(Box<str>, Rc<UrlAddress>)>>,
    pub(super) options: RefCell<Option<Rc<WebSocketOptions>>>,
}

impl Drop for WsSession {
    fn drop(&mut self) {
        self.link.listens.set(false);
        self.link.socket.close();
    }
}

impl ConnectionActions for Rc<SharedSocket> {
    fn kind(&self) -> ContextMember {
        ContextMember::Ws
    }

    fn places(&self) -> Vec<String> {
        vec![String::new()]
    }

    fn is_open(&self, _: &str) -> bool {
        self.socket.state() == ReadyState::Open
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

impl SharedSocket {
    pub(super) fn wires(&self) -> Option<Rc<Wires>> {
        self.wires.borrow().upgrade()
    }

    /// Passes the message to the processor's listeners.
    pub(super) fn tell(&self, message: IncomingMessage<'_>) {
        let Some(wires) = self.wires() else { return };
        match message.is_text {
            true => wires.tell(HeardKind::Text, "", &String::from_utf8_lossy(message.payload), 0),
            false => {
                let bytes: Vec<String> = message.payload.iter().map(u8::to_string).collect();
                wires.tell(HeardKind::Bytes, "", &format!("[{}]", bytes.join(",")), 0);
            }
        }
    }

    pub(super) fn keep(&self, message: IncomingMessage<'_>) {
        let mut kept = self.kept.borrow_mut();
        if kept.len() < KEPT_MAX {
            kept.push_back(WsMessage { is_text: message.is_text, payload: message.payload.to_vec() });
            self.bell.ring();
        }
    }
}
