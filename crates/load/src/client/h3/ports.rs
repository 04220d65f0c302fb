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

/// Longest time that the end of a run waits for the kernel to take the last datagrams.
const LEAVE_MAX: Duration = Duration::from_millis(200);

thread_local! {
    /// The shared ports, for IPv4 and for IPv6.
    static SHARED: RefCell<[Option<Rc<ClientPort>>; 2]> = const { RefCell::new([None, None]) };
    /// Memory for arriving datagrams: a worker handles those of one socket before it reads from the next.
    static BATCH: RefCell<ReceiveBatch> = RefCell::new(ReceiveBatch::new());
}

/// The port that connections of this worker share.
pub(super) fn shared(is_v4: bool) -> io::Result<Rc<ClientPort>> {
    let index = usize::from(!is_v4);
    let known = SHARED.with_borrow(|ports| ports.get(index).cloned().flatten());
    if let Some(port) = known {
        return Ok(port);
    }
    let port = own(is_v4)?;
    SHARED.with_borrow_mut(|ports| {
        if let Some(place) = ports.get_mut(index) {
            *place = Some(port.clone());
        }
    });
    Ok(port)
}

/// Ends all connections of this worker, and waits until their servers are told, or for [`LEAVE_MAX`].
pub(in super::super) async fn leave() {
    let ports: Vec<_> = SHARED.with_borrow(|ports| ports.iter().flatten().cloned().collect());
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

/// What the connections of this worker have sent, received and lost so far.
pub(super) fn counts() -> QuicCounts {
    let add = |sum: QuicCounts, port: &Rc<ClientPort>| sum.plus(port.counts());
    SHARED.with_borrow(|ports| ports.iter().flatten().fold(QuicCounts::default(), add))
}

/// A port of its own.
pub(super) fn own(is_v4: bool) -> io::Result<Rc<ClientPort>> {
    let port = ClientPort::new(is_v4)?;
    let driven = port.clone();
    worker::spawn(poll_fn(move |_| BATCH.with_borrow_mut(|batch| driven.poll(batch))));
    Ok(port)
}
