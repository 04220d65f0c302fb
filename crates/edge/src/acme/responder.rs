//! weir's own DNS server for challenges (`acme_dns_port`), over UDP and TCP, on the thread of the agent.
//!
//! Bounded: a datagram gets at most one answer, which is not much longer; a connection gets a few seconds.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use weir_net::datagrams::{self, DatagramOptions, Receiver, Receiving};
use weir_net::log::{self, Level, Os};
use weir_net::{Address, Deadline, ListenOptions, Listener, Listening, Stream, Transport, listener, timer, worker};
use weir_wire::dns::serve;

use super::challenges::Challenges;

/// Bytes of a question, at most: a name has 255.
const QUESTION_BYTES_MAX: usize = 1232;

/// Connections at a time, and how long one may stay.
const CONNECTIONS_MAX: usize = 32;
const CONNECTION_TIME: Duration = Duration::from_secs(5);

/// The pause after a failure to receive or to accept.
const PAUSE: Duration = Duration::from_millis(500);

/// The sockets, bound by root.
#[derive(Clone)]
pub struct ResponderSockets {
    /// As the file names it.
    pub address: SocketAddr,
    /// Over UDP.
    pub datagrams: Receiving,
    /// Over TCP.
    pub connections: Listening,
}

impl ResponderSockets {
    /// Binds both.
    ///
    /// # Errors
    /// One cannot be bound.
    pub fn bind(address: SocketAddr) -> io::Result<ResponderSockets> {
        let datagrams = datagrams::bind(address, &DatagramOptions::default())?;
        let connections = listener::bind(&Address::Tcp(address), &ListenOptions::default())?;
        Ok(ResponderSockets { address, datagrams, connections })
    }
}

/// Answers until the thread ends.
pub fn start(sockets: &ResponderSockets, ttl_s: u32, challenges: &Arc<Challenges>) {
    let (own, texts) = (sockets.datagrams.clone(), challenges.clone());
    worker::spawn(async move {
        if let Err(error) = over_udp(own, ttl_s, &texts).await {
            log::global(Level::Alert, format_args!("acme_dns_port: recvmsg() failed {}", Os(&error)));
        }
    });
    let (own, texts) = (sockets.connections.clone(), challenges.clone());
    worker::spawn(async move {
        if let Err(error) = over_tcp(own, ttl_s, texts).await {
            log::global(Level::Alert, format_args!("acme_dns_port: accept() failed {}", Os(&error)));
        }
    });
}

async fn over_udp(socket: Receiving, ttl_s: u32, challenges: &Challenges) -> io::Result<()> {
    let receiver = Receiver::new(&socket)?;
    let mut buf = [0; QUESTION_BYTES_MAX];
    loop {
        match receiver.try_receive(&mut buf) {
            Ok(arrived) => {
                let asked = buf.get(..arrived.length).unwrap_or_default();
                if let Some(answer) = serve::answer(asked, ttl_s, |name| challenges.record(name)) {
                    // A lost answer is asked for again.
                    let _ = receiver.try_send(&answer, arrived.from, arrived.to);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => poll_fn(|_| receiver.poll_readable()).await,
            // A client's port was closed when an answer came (ICMP), or memory was short: the next datagram may arrive.
            Err(_) => timer::sleep(PAUSE).await,
        }
    }
}

async fn over_tcp(socket: Listening, ttl_s: u32, challenges: Arc<Challenges>) -> io::Result<()> {
    let listener = Listener::new(&socket)?;
    let open = Rc::new(Cell::new(0));
    loop {
        match listener.try_accept() {
            Ok((stream, _)) if open.get() < CONNECTIONS_MAX => {
                open.set(open.get() + 1);
                let (texts, open) = (challenges.clone(), open.clone());
                worker::spawn(async move {
                    // A client that goes away is no error.
                    let _ = one_connection(stream, ttl_s, &texts).await;
                    open.set(open.get() - 1);
                });
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => poll_fn(|_| listener.poll_acceptable()).await,
            Err(_) => timer::sleep(PAUSE).await,
        }
    }
}

async fn one_connection(stream: Stream, ttl_s: u32, challenges: &Challenges) -> io::Result<()> {
    let deadline = Deadline::new();
    deadline.set(CONNECTION_TIME);
    let transport = Transport::from(stream);
    let mut bytes = Vec::new();
    loop {
        while let Some(length) = whole(&bytes) {
            let asked = bytes.get(2..length).unwrap_or_default();
            let Some(answer) = serve::answer(asked, ttl_s, |name| challenges.record(name)) else { return Ok(()) };
            let framed = [&(answer.len() as u16).to_be_bytes()[..], &answer].concat();
            transport.write_all(&framed, &deadline).await?;
            bytes.drain(..length);
        }
        if bytes.len() > QUESTION_BYTES_MAX + 2 {
            return Ok(());
        }
        if transport.read_more(&mut bytes, QUESTION_BYTES_MAX, &deadline).await? == 0 {
            return Ok(());
        }
    }
}

/// The length of the first message with its prefix, if it is complete.
fn whole(bytes: &[u8]) -> Option<usize> {
    let [high, low, ..] = bytes else { return None };
    let length = 2 + usize::from(u16::from_be_bytes([*high, *low]));
    (bytes.len() >= length).then_some(length)
}
