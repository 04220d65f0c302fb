//! Two kinds of state of `engine: socketio`: all virtual users of a worker share one, each virtual user has the other.

use std::cell::{Ref, RefCell};
use std::collections::HashMap;
use std::ops::Deref;
use std::rc::{Rc, Weak};
use std::time::Duration;

use weir_net::{Deadline, buffer, worker};

use super::client::SocketioClient;
use super::options::SocketioOptions;
use super::packet::{PacketType, push_head};
use super::transport;
use crate::plan::Plan;
use crate::processor::wires::{self, ConnectionActions, Wires};
use crate::record::{MetricId, Recorder};

/// Longest wait of a step for its response if the script sets none.
const WAIT: Duration = Duration::from_secs(10);

/// State that the socketio virtual users of a worker share.
pub struct SocketioShared {
    pub(super) emits: MetricId,
    pub(super) emit_rate: MetricId,
    pub(super) response_time: MetricId,
    pub(super) wait: Duration,
    /// Options that are equal for all virtual users, by scenario.
    pub(super) options: RefCell<HashMap<Option<usize>, Rc<SocketioOptions>>>,
}

impl SocketioShared {
    /// Prepares the state that does not change during a run.
    pub fn new(plan: &Plan, recorder: &Recorder) -> SocketioShared {
        SocketioShared {
            emits: recorder.metric("socketio.emit"),
            emit_rate: recorder.metric("socketio.emit_rate"),
            response_time: recorder.metric("socketio.response_time"),
            wait: plan.timeout.unwrap_or(WAIT),
            options: RefCell::default(),
        }
    }
}

/// The connections of one virtual user: usually one.
pub struct SocketioSession {
    pub(super) options: Rc<SocketioOptions>,
    pub(super) clients: Clients,
    pub(super) deadline: Deadline,
}

/// The connections of one virtual user, shared with its processor.
#[derive(Clone, Default)]
pub(super) struct Clients(Rc<All>);

#[derive(Default)]
pub(super) struct All {
    pub(super) clients: RefCell<Vec<Rc<SocketioClient>>>,
    /// The processor's listeners, if there are any.
    pub(super) heard_by: RefCell<Weak<Wires>>,
}

impl Deref for Clients {
    type Target = All;

    fn deref(&self) -> &All {
        &self.0
    }
}

impl All {
    pub(super) fn borrow(&self) -> Ref<'_, Vec<Rc<SocketioClient>>> {
        self.clients.borrow()
    }
}

/// A namespace of a client.
pub(super) struct ClientNamespace {
    pub(super) client: Rc<SocketioClient>,
    pub(super) index: usize,
}

impl ClientNamespace {
    /// The full name of the namespace.
    pub(super) fn name(&self) -> String {
        let mut name = String::new();
        self.client.with_name(self.index, |own| own.clone_into(&mut name));
        name
    }
}

impl Drop for SocketioSession {
    fn drop(&mut self) {
        self.clients.borrow().iter().for_each(|client| client.leave());
    }
}

/// The part of a session that a processor holds.
pub(super) struct Connections {
    pub(super) options: Rc<SocketioOptions>,
    pub(super) clients: Clients,
}

impl Connections {
    fn at(&self, place: &str) -> Option<ClientNamespace> {
        find(&self.clients, &self.options.full_name(place))
    }
}

impl ConnectionActions for Connections {
    fn kind(&self) -> wires::ContextMember {
        wires::ContextMember::SocketIo
    }

    fn places(&self) -> Vec<String> {
        let clients = self.clients.borrow();
        clients.iter().flat_map(|client| client.names()).map(|full| self.options.short_name(&full)).collect()
    }

    fn is_open(&self, place: &str) -> bool {
        self.at(place).is_some_and(|place| place.client.is_connected(place.index))
    }

    fn listen(&self, wires: &Rc<Wires>) {
        // Listen to later namespaces too: `add` reads this field when it makes a client.
        self.clients.heard_by.replace(Rc::downgrade(wires));
        self.clients.borrow().iter().for_each(|client| client.heard_by(Rc::downgrade(wires)));
    }

    fn emit(&self, place: &str, text: &str, wants_answer: bool) -> Option<u64> {
        let place = self.at(place)?;
        let id = wants_answer.then(|| place.client.next_id(place.index));
        let mut packet = buffer::lease(1);
        place.client.with_name(place.index, |name| push_head(&mut packet, PacketType::Event, name, id));
        packet.extend_from_slice(text.as_bytes());
        place.client.emit(place.index, &packet);
        id
    }

    fn close(&self, place: &str) {
        if let Some(place) = self.at(place) {
            place.client.close(place.index);
        }
    }
}

pub(super) fn find(clients: &All, full: &str) -> Option<ClientNamespace> {
    clients
        .borrow()
        .iter()
        .find_map(|client| Some(ClientNamespace { client: client.clone(), index: client.find(full)? }))
}

impl SocketioSession {
    pub(super) fn add(&mut self, full: &str) -> ClientNamespace {
        let mut clients = self.clients.clients.borrow_mut();
        let shared =
            clients.iter().find(|client| self.options.multiplexes && !client.leaves.get() && !client.is_over.get());
        let shared = shared.cloned();
        let client = shared.unwrap_or_else(|| {
            let client = Rc::new(SocketioClient::new(self.options.clone()));
            client.heard_by(self.clients.heard_by.borrow().clone());
            clients.push(client.clone());
            worker::spawn(transport::keep(client.clone()));
            client
        });
        let index = client.add(full);
        ClientNamespace { client, index }
    }
}
