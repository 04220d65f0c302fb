//! Connections without a client, for exchanges that no client waits for.

use std::cell::{Cell, OnceCell};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;

use weir_net::{Address, Deadline, Stream, clock};

use super::{Conn, Shared};
use crate::hold::client::Client;
use crate::hold::worker::Worker;

impl Conn {
    /// A connection without a client, for an exchange that weir makes on its own after a request of `client`. It
    /// keeps the facts about the client that exchanges read. The caller must keep the other end of the socket as long
    /// as the connection.
    pub fn of_nobody(worker: &Worker, client: &Client, generation: u32) -> io::Result<Option<(Conn, OwnedFd)>> {
        let Some((shared, other)) = shared(worker, generation)? else { return Ok(None) };
        // The address of the client's socket, because the new socket has none.
        let socket = Rc::new(client.local().clone());
        Ok(Some((over(client.over(shared.clone()), shared, socket), other)))
    }

    /// The same for an exchange that weir starts itself: its client is a unix-domain socket without a name.
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
            before: OnceCell::new(),
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
    let (deadline, left_ms) = (Deadline::new(), Cell::new(0));
    Conn { shared, deadline, client, socket, carried: None, left_ms, served: 0 }
}
