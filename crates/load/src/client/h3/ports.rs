//! The UDP sockets of this worker, each with the task that drives it, and what their connections have done.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use weir_net::Deadline;
use weir_net::batch::ReceiveBatch;
use weir_net::worker::{self, Task};
use weir_quic::client::ClientPort;
use weir_quic::connection::QuicCounts;
use weir_wire::h3::H3Code;

/// Connections that share a port, at most. The kernel's default room for a socket holds about 180 datagrams with an answer of
/// 1 KiB each: what it drops would be a loss of the generator.
const SHARE_MAX: usize = 32;
/// Longest time that the end of a run waits for the kernel to take the last datagrams.
const LEAVE_MAX: Duration = Duration::from_millis(200);

thread_local! {
    /// The ports of single connections, and the counts of those that have ended.
    static OWN: RefCell<(Vec<Rc<ClientPort>>, QuicCounts)> = RefCell::default();
    /// The shared ports, and whether they are for IPv4.
    static SHARED: RefCell<Vec<(bool, Rc<ClientPort>)>> = const { RefCell::new(Vec::new()) };
    /// Memory for arriving datagrams: a worker handles those of one socket before it reads from the next.
    static BATCH: RefCell<ReceiveBatch> = RefCell::new(ReceiveBatch::new());
}

/// A port for one more connection of this worker.
pub(super) fn shared(is_v4: bool) -> io::Result<Rc<ClientPort>> {
    let has_room = |(v4, port): &&(bool, Rc<ClientPort>)| *v4 == is_v4 && port.connections() < SHARE_MAX;
    let known = SHARED.with_borrow(|ports| ports.iter().find(has_room).map(|(_, port)| port.clone()));
    if let Some(port) = known {
        return Ok(port);
    }
    let port = ClientPort::new(is_v4)?;
    drive(&port, || {});
    SHARED.with_borrow_mut(|ports| ports.push((is_v4, port.clone())));
    Ok(port)
}

/// Ends all connections of this worker, and waits until their servers are told, or for [`LEAVE_MAX`].
pub async fn leave() {
    let ports = all();
    ports.iter().for_each(|port| port.close_all(H3Code::NoError as u64));
    let deadline = Deadline::new();
    deadline.set(LEAVE_MAX);
    poll_fn(|_| {
        if ports.iter().all(|port| port.is_idle()) {
            return Poll::Ready(());
        }
        Task::current().wake();
        deadline.poll_expired()
    })
    .await;
}

/// Datagrams and packets that the connections of this worker have sent, received and lost so far.
pub(super) fn counts() -> QuicCounts {
    all().iter().fold(OWN.with_borrow(|(_, gone)| *gone), |sum, port| sum.plus(port.counts()))
}

fn all() -> Vec<Rc<ClientPort>> {
    let mut all: Vec<_> = SHARED.with_borrow(|ports| ports.iter().map(|(_, port)| port.clone()).collect());
    OWN.with_borrow(|(ports, _)| all.extend(ports.iter().cloned()));
    all
}

/// A port of one connection.
pub(super) fn own(is_v4: bool) -> io::Result<Rc<ClientPort>> {
    let port = ClientPort::new(is_v4)?;
    OWN.with_borrow_mut(|(ports, _)| ports.push(port.clone()));
    let ended = port.clone();
    drive(&port, move || {
        OWN.with_borrow_mut(|(ports, gone)| {
            ports.retain(|other| !Rc::ptr_eq(other, &ended));
            *gone = gone.plus(ended.counts());
        });
    });
    Ok(port)
}

fn drive(port: &Rc<ClientPort>, ended: impl FnOnce() + 'static) {
    let port = port.clone();
    worker::spawn(async move {
        poll_fn(|_| BATCH.with_borrow_mut(|batch| port.poll(batch))).await;
        ended();
    });
}
