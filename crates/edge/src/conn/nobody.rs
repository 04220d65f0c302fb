//! Connections of nobody's: for exchanges that no client waits for.

use std::cell::{Cell, OnceCell};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use weir_net::{Address, Deadline, Stream, clock};

use super::{Conn, Shared};
use crate::exchange::Client;
use crate::worker::Worker;

impl Conn {
    /// A connection of nobody's, for an exchange that goes on behind the back of `client`; it keeps the facts that
    /// exchanges read of a client. The socket's other end is to be kept as long as it.
    pub fn of_nobody(worker: &Worker, client: &Client, generation: u32) -> io::Result<Option<(Conn, OwnedFd)>> {
        let Some((shared, other)) = shared(worker, generation)? else { return Ok(None) };
        // Asked of the client's socket: its new one has no address.
        let socket = Rc::new(client.local().clone());
        Ok(Some((over(client.over(shared.clone()), shared, socket), other)))
    }

    /// The same for an exchange of the edge's own: the client is a unix-domain socket without a name.
    pub fn of_the_edge(worker: &Worker, generation: u32) -> io::Result<Option<(Conn, OwnedFd)>> {
        let Some((shared, other)) = shared(worker, generation)? else { return Ok(None) };
        let client = Rc::new(Client {
            number: worker.next_connection_number(),
            accepted: clock::now(),
            remote: Address::Unix(PathBuf::new()),
            local: OnceCell::new(),
            listen: Cell::new(0),
            proxied: OnceCell::new(),
            secured: OnceCell::new(),
            shared: shared.clone(),
        });
        let socket = Rc::new(client.local().clone());
        Ok(Some((over(client, shared, socket), other)))
    }
}

fn shared(worker: &Worker, generation: u32) -> io::Result<Option<(Rc<Shared>, OwnedFd)>> {
    let Some(place) = worker.take_place() else { return Ok(None) };
    let (stream, other) = Stream::with_nobody()?;
    Ok(Some((Rc::new(Shared::new(stream.into(), Some(place), generation)), other)))
}

fn over(client: Rc<Client>, shared: Rc<Shared>, socket: Rc<Address>) -> Conn {
    let (deadline, left) = (Deadline::new(), Cell::new(Duration::ZERO));
    Conn { shared, deadline, client, socket, carried: None, left, served: 0 }
}
