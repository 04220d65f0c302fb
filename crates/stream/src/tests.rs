//! A worker with a `stream` block, and sessions on socket pairs, for the tests of this crate.

use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;

use weir_http::hold::conn::Shared;
use weir_http::hold::worker::{Generation, Worker};
use weir_net::{SocketAddress, Stream, Transport};

use crate::conf;
use crate::family::upstream::{LocalGroup, LocalGroups};
use crate::session::{Around, Session};

/// A worker and its configuration.
pub struct Edge {
    pub worker: Rc<Worker>,
    pub generation: Rc<Generation>,
}

impl Edge {
    /// A worker with this `stream` block.
    pub fn new(stream: &str) -> Edge {
        let (conf, problems) = crate::of_text(&format!("error_log stderr emerg; events {{}}\nstream {{ {stream} }}"));
        assert_eq!(problems, [""; 0], "{stream}");
        let conf = Arc::new(conf.unwrap());
        let worker = Worker::new(0, conf, Default::default(), Default::default(), Default::default(), 1);
        let generation = worker.main();
        Edge { worker, generation }
    }

    /// A session of the first server, without a connection, from `192.0.2.7:5555`.
    pub fn session(&self) -> Session<'_> {
        self.session_over(None)
    }

    /// The same with a connection; the other end of it belongs to the test.
    pub fn connected(&self) -> (Session<'_>, UnixStream) {
        let (transport, client) = pair();
        (self.session_over(Some(Rc::new(Shared::new(transport, None, 1)))), client)
    }

    fn session_over(&self, shared: Option<Rc<Shared>>) -> Session<'_> {
        let stream = conf::of(&self.generation.conf);
        let listen = stream.streams.listens.first().or(stream.datagrams.listens.first()).unwrap();
        let server = &stream.servers[0];
        let around = Around { worker: &self.worker, generation: &self.generation, stream, listen, server };
        Session::new(around, SocketAddress::Tcp("192.0.2.7:5555".parse().unwrap()), shared)
    }

    /// A group as this worker knows it.
    pub fn group(&self, name: &str) -> Rc<LocalGroup> {
        let declared = &crate::declared(&self.generation.conf).upstream;
        let number = declared.find(name).unwrap();
        self.generation.own.of(LocalGroups::default).get(&declared.groups, number).unwrap()
    }
}

/// A connection of the worker, and its other end, which does not wait either.
pub fn pair() -> (Transport, UnixStream) {
    let (stream, other) = Stream::with_nobody().unwrap();
    (stream.into(), other.into())
}

/// Runs this on a worker's thread.
pub fn on_worker<T: 'static>(future: impl Future<Output = T> + 'static) -> T {
    weir_net::worker::block_on(future).unwrap()
}

/// The problems of a `stream` block.
pub fn problems(stream: &str) -> Vec<String> {
    crate::of_text(&format!("events {{}}\nstream {{ {stream} }}")).1
}
