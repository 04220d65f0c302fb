//! One session: a client's connection or its datagrams, and the facts that weir learns about them.

use std::cell::OnceCell;
use std::fmt;
use std::rc::Rc;

use weir_http::exchange::conf::{Conf, Location};
use weir_http::exchange::route::Listen;
use weir_http::exchange::subject::Subject;
use weir_http::hold::client::{Proxied, TlsFacts};
use weir_http::hold::conn::Shared;
use weir_http::hold::own::Own;
use weir_http::hold::worker::{Generation, Worker};
use weir_http::text::slots::{SlotStore, VariableId};
use weir_http::text::template::{Argument, Definition, Reads};
use weir_meter::Step;
use weir_net::log::Level;
use weir_net::{Instant, SocketAddress, clock};
use weir_wire::client_hello::Preread;
use weir_wire::host;

use crate::attempt::Try;
use crate::conf::{Server, Stream};
use crate::counts::Counted;

/// Appends the value of a variable to `out`; `false` means "not found" and leaves `out` as it was.
pub type Get = fn(&mut Session<'_>, &Argument, &mut Vec<u8>) -> bool;

/// See the module.
pub struct Session<'c> {
    /// The configuration that it began with.
    pub conf: &'c Conf,
    /// The `stream` block of the configuration.
    pub stream: &'c Stream,
    /// The configuration with the values that the worker keeps for it.
    pub generation: &'c Rc<Generation>,
    /// The worker.
    pub worker: &'c Rc<Worker>,
    /// The server.
    pub server: &'c Server,
    /// The address that the client came to, as the file names it.
    pub listen: &'c Listen,
    /// `$connection`.
    pub number: u64,
    /// When it began.
    pub started: Instant,
    /// The client's connection; `None` for datagrams.
    pub shared: Option<Rc<Shared>>,
    /// Its protocol is UDP.
    pub is_datagram: bool,
    /// The content of a PROXY protocol header.
    pub proxied: Option<Box<Proxied>>,
    /// The facts about its TLS.
    pub facts: OnceCell<Box<TlsFacts>>,
    /// The content of the client's first TLS message.
    pub preread: Option<Box<Preread>>,
    /// Bytes of the client that were read before the session has a peer.
    pub early: Vec<u8>,
    /// Values of variables.
    pub slots: SlotStore,
    /// Values that parts keep with it.
    pub own: Own,
    /// `$status`; 0 until it ends.
    pub status: u16,
    /// Bytes from the client.
    pub received: u64,
    /// Bytes to the client.
    pub sent: u64,
    /// Bytes from the client that the relay read: a part of `received`.
    pub relayed: u64,
    /// The attempts to reach a peer.
    pub tries: Vec<Try>,
    /// The current step, for lines of the error log.
    pub step: Option<Step>,
    /// The peer, or the group while no peer is chosen, for lines of the error log.
    pub upstream: Option<Rc<str>>,
    /// How often its connection was passed on.
    pub passes: u8,
    /// The connection to the peer broke.
    pub is_cut: bool,
    /// Counts the session.
    pub counted: Option<Counted>,
    remote: SocketAddress,
    told: Option<SocketAddress>,
    local: OnceCell<SocketAddress>,
}

/// The facts about the client that a session hands on.
pub struct Known {
    /// `$connection`.
    pub number: u64,
    /// The client's address.
    pub remote: SocketAddress,
    /// The facts about its TLS.
    pub facts: Option<Box<TlsFacts>>,
    /// The content of a PROXY protocol header.
    pub proxied: Option<Box<Proxied>>,
    /// The values that parts keep with the session.
    pub own: Own,
    /// How often the connection was passed on.
    pub passes: u8,
}

/// The surroundings of a session.
#[derive(Clone, Copy)]
pub struct Around<'c> {
    /// The worker.
    pub worker: &'c Rc<Worker>,
    /// The configuration.
    pub generation: &'c Rc<Generation>,
    /// The `stream` block.
    pub stream: &'c Stream,
    /// The address that the client came to.
    pub listen: &'c Listen,
    /// The server.
    pub server: &'c Server,
}

impl<'c> Session<'c> {
    /// A session that begins now.
    pub fn new(around: Around<'c>, remote: SocketAddress, shared: Option<Rc<Shared>>) -> Session<'c> {
        let counted = around.stream.zones.get(around.server.zone).map(|(_, counts)| Counted::new(counts));
        Session { counted, ..Session::of_check(around, remote, shared) }
    }

    /// A session that weir makes itself to check a peer: no zone counts it.
    pub fn of_check(around: Around<'c>, remote: SocketAddress, shared: Option<Rc<Shared>>) -> Session<'c> {
        let Around { worker, generation, stream, listen, server } = around;
        Session {
            conf: &generation.conf,
            stream,
            generation,
            worker,
            server,
            listen,
            number: 0,
            started: clock::now(),
            is_datagram: shared.is_none(),
            shared,
            proxied: None,
            facts: OnceCell::new(),
            preread: None,
            early: Vec::new(),
            slots: SlotStore::default(),
            own: Own::default(),
            status: 0,
            received: 0,
            sent: 0,
            relayed: 0,
            tries: Vec::new(),
            step: Some(Step::StartSession),
            upstream: None,
            passes: 0,
            is_cut: false,
            counted: None,
            remote,
            told: None,
            local: OnceCell::new(),
        }
    }

    /// The client's address, as a trusted proxy reports it if there is one.
    pub fn remote(&self) -> &SocketAddress {
        self.told.as_ref().unwrap_or(&self.remote)
    }

    /// The address of the connection's other end.
    pub fn peer(&self) -> &SocketAddress {
        &self.remote
    }

    /// Takes the address that a trusted proxy reports.
    pub fn tell_remote(&mut self, address: SocketAddress) {
        self.told = Some(address);
    }

    /// Our end's address, read from the kernel when it is first needed.
    pub fn local(&self) -> SocketAddress {
        let read = || self.shared.as_ref().and_then(|shared| shared.stream.socket()?.local_addr().ok());
        self.local.get_or_init(|| read().unwrap_or_else(|| self.listen.address.clone())).clone()
    }

    /// Takes over what an earlier session of the connection knew, and the address that `pass` named.
    pub fn follow(&mut self, known: Known, local: Option<SocketAddress>) {
        let Known { number, remote: _, facts, proxied, own, passes } = known;
        (self.number, self.proxied, self.own, self.passes) = (number, proxied, own, passes);
        // The session is new, so nothing was set before.
        if let Some(facts) = facts {
            let _ = self.facts.set(facts);
        }
        if let Some(local) = local {
            let _ = self.local.set(local);
        }
    }

    /// Ends the session without a line in the log: its connection goes to another socket.
    pub fn leave(self) -> Known {
        let Session { number, told, remote, facts, proxied, own, passes, .. } = self;
        Known { number, remote: told.unwrap_or(remote), facts: facts.into_inner(), proxied, own, passes }
    }

    /// Ends the session with its line in the log.
    pub fn finish(&mut self, status: u16) {
        self.status = status;
        let (received, sent) = (self.received, self.sent);
        if let Some(counted) = &mut self.counted {
            counted.end(status, received, sent);
        }
        if self.logs(Level::Debug) {
            let ms = clock::now().ms_since(self.started);
            self.log(Level::Debug, format_args!("session end: {status} in {ms} ms"));
        }
        for log in self.stream.parts.iter().filter_map(|part| part.log) {
            log(self);
        }
    }

    /// Tells the parts that the peer has answered.
    pub fn answered(&mut self) {
        for answered in self.stream.parts.iter().filter_map(|part| part.answered) {
            answered(self);
        }
    }

    /// Sets our end's address: a datagram knows the address that it was sent to.
    pub fn came_to(&self, address: SocketAddress) {
        // A session has one address, so nothing was set before.
        let _ = self.local.set(address);
    }

    /// Serves the session by the server of this name, if the socket has one. A name that is no host changes nothing.
    pub fn serve_host(&mut self, host: &[u8]) {
        let Some(host) = host::normal(host) else { return };
        match self.listen.hosts.find(&host, &mut self.slots) {
            Ok(found) => self.server = self.stream.server(found).unwrap_or(self.server),
            Err(failed) => self.log(Level::Alert, format_args!("{failed}")),
        }
    }

    /// The last attempt.
    pub fn last_try(&mut self) -> Option<&mut Try> {
        self.tries.last_mut()
    }
}

impl Reads for Session<'_> {
    fn variable(&mut self, id: VariableId, out: &mut Vec<u8>) -> bool {
        let stream = self.stream;
        match stream.definitions.get(id.0 as usize) {
            Some(Definition::Slot) => self.slots.get(id).map(|value| out.extend_from_slice(value)).is_some(),
            Some(Definition::Computed(get, argument)) => get(self, argument, out),
            Some(Definition::Cached(get, argument)) => {
                if let Some(value) = self.slots.get(id) {
                    out.extend_from_slice(value);
                    return true;
                }
                let start = out.len();
                let found = get(self, argument, out);
                if found {
                    self.slots.set(id, out.get(start..).unwrap_or_default());
                }
                found
            }
            None => false,
        }
    }

    fn slots(&mut self) -> &mut SlotStore {
        &mut self.slots
    }
}

impl<'c> Subject<'c> for Session<'c> {
    fn conf(&self) -> &'c Conf {
        self.conf
    }

    fn place(&self) -> &'c Location {
        &self.server.place
    }

    fn worker(&self) -> &'c Rc<Worker> {
        self.worker
    }

    fn remote(&self) -> &SocketAddress {
        Session::remote(self)
    }

    fn own(&mut self) -> &mut Own {
        &mut self.own
    }

    fn note(&mut self, level: Level, message: fmt::Arguments<'_>) {
        self.log(level, message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Edge, on_worker};
    use weir_net::Address;

    const SERVERS: &str = "server { listen 127.0.0.1:1; return a; } \
        server { listen 127.0.0.1:1; server_name b.test *.b.test; return b; } \
        server { listen 127.0.0.1:2; server_name c.test; return c; }";

    #[test]
    fn a_name_finds_a_server_of_the_same_socket() {
        for (host, expected) in [
            ("b.test", "b.test"),
            ("B.TEST.", "b.test"),
            ("x.b.test", "b.test"),
            ("c.test", ""),
            ("", ""),
            ("no host", ""),
            ("other.test", ""),
        ] {
            on_worker(async move {
                let edge = Edge::new(SERVERS);
                let mut session = edge.session();
                session.serve_host(host.as_bytes());
                assert_eq!(session.server.name, expected, "{host}");
            });
        }
    }

    #[test]
    fn a_session_that_is_passed_on_takes_what_it_knows_with_it() {
        on_worker(async {
            let edge = Edge::new(SERVERS);
            let mut first = edge.session();
            (first.number, first.passes) = (42, 3);
            first.tell_remote(Address::Tcp("198.51.100.1:7".parse().unwrap()));
            first.slots.set(VariableId(0), b"x");
            let known = first.leave();
            assert_eq!(known.remote.to_string(), "198.51.100.1:7", "the address that a trusted proxy reported");
            let mut second = edge.session();
            second.follow(known, Some(Address::Tcp("203.0.113.9:80".parse().unwrap())));
            assert_eq!(
                (second.number, second.passes, second.local().to_string()),
                (42, 3, "203.0.113.9:80".to_owned())
            );
            assert!(second.slots.get(VariableId(0)).is_none(), "variables belong to one session");
        });
    }

    #[test]
    fn only_a_session_that_ends_in_order_has_a_status_in_its_zone() {
        on_worker(async {
            let edge = Edge::new(SERVERS);
            let counts = &crate::conf::of(&edge.generation.conf).zones[0].1;
            let mut ended = edge.session();
            (ended.received, ended.sent) = (5, 6);
            ended.finish(502);
            drop(ended);
            drop(edge.session().leave());
            let sums = counts.sums();
            assert_eq!((sums.begun, sums.current, sums.ended, sums.discarded), (2, 0, [0, 0, 1], 1));
            assert_eq!((sums.received, sums.sent), (5, 6));
            let around = |session: &Session<'_>| session.counted.is_some();
            let check = {
                let like = edge.session();
                let Session { worker, generation, stream, listen, server, .. } = like;
                let around = Around { worker, generation, stream, listen, server };
                Session::of_check(around, Address::unix("/a").unwrap(), None)
            };
            assert!(around(&edge.session()) && !around(&check), "a check of weir's own is no session of the zone");
        });
    }
}
