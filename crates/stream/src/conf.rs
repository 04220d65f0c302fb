//! A compiled `stream` block. It is a part of the configuration of `http`, and never changes.

use std::sync::Arc;

use weir_http::exchange::conf::{Conf, Location};
use weir_http::exchange::route::{Listen, ServerId, Socket};
use weir_http::text::template::{Definition, Template};
use weir_net::Address;

use crate::counts::ZoneCounts;
use crate::part::{Enter, Part, Phase};
use crate::session::Get;

/// The servers of all `stream` blocks, and the sockets that they listen on.
#[derive(Default)]
pub struct Stream {
    /// In the order of the file.
    pub servers: Vec<Server>,
    /// The TCP sockets and unix sockets.
    pub streams: Sockets,
    /// The UDP sockets.
    pub datagrams: Sockets,
    /// The definition of each variable.
    pub definitions: Vec<Definition<Get>>,
    /// The zones that count sessions, by name.
    pub zones: Vec<(String, Arc<ZoneCounts>)>,
    /// A server passes connections on. Then weir only looks at the first bytes of plain connections (`MSG_PEEK`).
    pub passes: bool,
    /// The parts of crates above.
    pub parts: &'static [Part],
}

/// Sockets of one kind.
#[derive(Default)]
pub struct Sockets {
    /// The sockets to bind.
    pub sockets: Vec<Socket>,
    /// Address and port to servers.
    pub listens: Vec<Listen>,
}

/// A `server` block.
pub struct Server {
    /// Its place in `Stream::servers`.
    pub id: ServerId,
    /// `$server_name`.
    pub name: String,
    /// The settings in force.
    pub place: Location,
    /// The handlers of its phases, only those that have something to do.
    pub walk: Vec<(Phase, Enter)>,
    /// Its answer to a session.
    pub content: Content,
    /// The number of its zone.
    pub zone: usize,
}

/// The answer of a server to a session.
#[derive(Clone, Default)]
pub enum Content {
    /// Nothing was written: the session ends with 500.
    #[default]
    Nothing,
    /// `proxy_pass`.
    Proxy(ProxyTarget),
    /// `return`.
    Return(Template),
    /// `pass`.
    Pass(Onward),
}

/// The target of `pass`: a listening socket of weir.
#[derive(Clone)]
pub enum Onward {
    /// This address.
    To(Address),
    /// The value of a text.
    Named(Template),
}

/// The target of `proxy_pass`.
#[derive(Clone)]
pub enum ProxyTarget {
    /// The group of this number.
    Group(usize),
    /// A text with variables: the name of a group, an address, or a host and a port.
    Named(Template),
}

impl Stream {
    /// A server.
    pub fn server(&self, id: ServerId) -> Option<&Server> {
        self.servers.get(id.0 as usize)
    }
}

/// The `stream` block of a configuration.
#[inline]
pub fn of(conf: &Conf) -> &Stream {
    &crate::declared(conf).server.stream
}
