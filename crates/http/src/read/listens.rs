//! The addresses of servers: from the `listen` statements of all servers to the sockets of the workers.
//!
//! <https://nginx.org/en/docs/http/ngx_http_core_module.html#listen>

use weir_conf::At;
use weir_net::{Address, ListenOptions};

use crate::exchange::route::{Hosts, Listen, Name, ServerId, Socket};
use crate::text::refusal::Refusal;

/// A server's addresses and names while weir reads the file.
#[derive(Default)]
pub struct Draft {
    /// Its `listen` statements; `*:80` if there are none.
    pub listens: Vec<ListenDraft>,
    /// Its names; one empty name if there are none.
    pub names: Vec<Name>,
    /// A place in it answers CONNECT (nginx: `allow_connect`).
    pub answers_connect: bool,
}

/// One address of one `listen` statement.
#[derive(Clone)]
pub struct ListenDraft {
    /// The address.
    pub address: Address,
    /// The socket's options.
    pub options: ListenOptions,
    /// `default_server`.
    pub is_default: bool,
    /// `bind`: a socket of its own even if a wildcard address covers it.
    pub binds: bool,
    /// Socket options are set: allowed once per address.
    pub sets_options: bool,
    /// Connections begin with a PROXY protocol header.
    pub proxy_protocol: bool,
    /// `ssl`.
    pub ssl: bool,
    /// `http2`.
    pub http2: bool,
    /// `quic`: HTTP/3 over UDP.
    pub quic: bool,
    /// The place of the statement.
    pub at: At,
}

impl ListenDraft {
    /// Whether this is the address of a listen: one of TCP and one of QUIC may look alike.
    pub fn is_at(&self, listen: &Listen) -> bool {
        listen.address == self.address && listen.quic == self.quic
    }

    /// The address as nginx prints it in messages.
    pub fn shown(&self) -> String {
        match &self.address {
            Address::Tcp(tcp) => tcp.to_string(),
            Address::Unix(path) => format!("unix:{}", path.display()),
        }
    }
}

/// A server's number, its addresses and its names.
pub type Drafted = (ServerId, Vec<ListenDraft>, Vec<Name>);

/// An objection to a `listen` or `server_name` statement.
pub enum Objection {
    /// weir refuses the `listen` statement at this place.
    Refused(Refusal, At),
    /// weir warns, and ignores a name.
    Ignored(String),
}

/// The sockets of a configuration, and the servers of their addresses.
pub struct Grouped {
    /// Those of connections.
    pub sockets: Vec<Socket>,
    /// Those of QUIC: one address may have one of each.
    pub quic: Vec<Socket>,
    /// The addresses.
    pub listens: Vec<Listen>,
}

/// Groups the `listen` statements of all servers into listens and sockets.
pub fn listens(drafts: &[Drafted], object: &mut dyn FnMut(Objection)) -> Grouped {
    let mut listens: Vec<Listen> = Vec::new();
    let mut wanted: Vec<Wanted> = Vec::new();
    let mut explicit_default: Vec<bool> = Vec::new();
    let mut servers: Vec<usize> = Vec::new();
    for (server, drafts, names) in drafts {
        for draft in drafts {
            let index = match listens.iter().position(|listen| draft.is_at(listen)) {
                Some(index) => {
                    if draft.is_default {
                        if explicit_default[index] {
                            let shown = draft.shown();
                            object(Objection::Refused(
                                Refusal::whole(format!("a duplicate default server for {shown}")),
                                draft.at,
                            ));
                        }
                        explicit_default[index] = true;
                        listens[index].hosts.default = *server;
                        listens[index].hosts.only_default = false;
                    }
                    if draft.sets_options {
                        if wanted[index].is_written {
                            let shown = draft.shown();
                            object(Objection::Refused(
                                Refusal::whole(format!("duplicate listen options for {shown}")),
                                draft.at,
                            ));
                        }
                        wanted[index] = Wanted::by(draft);
                    }
                    listens[index].proxy_protocol |= draft.proxy_protocol;
                    listens[index].ssl |= draft.ssl;
                    listens[index].http2 |= draft.http2;
                    index
                }
                None => {
                    listens.push(Listen {
                        address: draft.address.clone(),
                        hosts: Hosts::new(*server),
                        proxy_protocol: draft.proxy_protocol,
                        ssl: draft.ssl,
                        http2: draft.http2,
                        quic: draft.quic,
                    });
                    wanted.push(Wanted::by(draft));
                    explicit_default.push(draft.is_default);
                    servers.push(0);
                    listens.len() - 1
                }
            };
            servers[index] += 1;
            for name in names {
                for kind in &name.kinds {
                    if !listens[index].hosts.add(kind, *server) {
                        let (name, shown) = (&name.shown, draft.shown());
                        object(Objection::Ignored(format!("conflicting server name \"{name}\" on {shown}, ignored")));
                    }
                }
            }
            let hosts = &mut listens[index].hosts;
            hosts.only_default = hosts.only_default && hosts.default == *server;
        }
    }
    for (draft, names) in drafts.iter().flat_map(|(_, drafts, names)| drafts.iter().map(move |draft| (draft, names))) {
        let is_shared = |(listen, count): (&Listen, &usize)| draft.is_at(listen) && *count > 1;
        if listens.iter().zip(&servers).any(is_shared) {
            // A single server answers all hosts of its address, so nginx does not look at its names there.
            for name in names.iter().filter(|name| name.kinds.is_empty()) {
                let (name, shown) = (&name.shown, draft.shown());
                let what = format!("invalid server name or wildcard \"{name}\" on {shown}");
                object(Objection::Refused(Refusal::whole(what), draft.at));
            }
        }
    }
    let (sockets, quic) = (sockets(&listens, &wanted, false), sockets(&listens, &wanted, true));
    Grouped { sockets, quic, listens }
}

/// How a socket is to be opened.
struct Wanted {
    options: ListenOptions,
    /// `bind` asks for a socket of its own.
    binds: bool,
    /// A statement sets the options.
    is_written: bool,
    at: At,
}

impl Wanted {
    fn by(draft: &ListenDraft) -> Wanted {
        Wanted { options: draft.options.clone(), binds: draft.binds, is_written: draft.sets_options, at: draft.at }
    }

    fn socket(&self, address: &Address, fallback: usize) -> Socket {
        Socket {
            address: address.clone(),
            options: self.options.clone(),
            fallback,
            by_address: Vec::new(),
            at: self.at,
        }
    }
}

/// One socket per address; a wildcard socket also serves the specific addresses of its port (nginx: `bind`).
fn sockets(listens: &[Listen], wanted: &[Wanted], quic: bool) -> Vec<Socket> {
    let of_kind = || listens.iter().zip(wanted).enumerate().filter(|(_, (listen, _))| listen.quic == quic);
    let wildcard = |address: &Address| match address {
        Address::Tcp(tcp) if tcp.ip().is_unspecified() => Some((tcp.port(), tcp.is_ipv4())),
        Address::Tcp(_) | Address::Unix(_) => None,
    };
    let mut sockets: Vec<Socket> = Vec::new();
    for (index, (listen, wanted)) in of_kind() {
        if wildcard(&listen.address).is_some() {
            sockets.push(wanted.socket(&listen.address, index));
        }
    }
    for (index, (listen, wanted)) in of_kind() {
        if wildcard(&listen.address).is_some() {
            continue;
        }
        let shared = match &listen.address {
            Address::Tcp(tcp) if !wanted.binds => sockets
                .iter_mut()
                .find(|socket| wildcard(&socket.address) == Some((tcp.port(), tcp.is_ipv4())))
                .map(|socket| (socket, tcp.ip())),
            Address::Tcp(_) | Address::Unix(_) => None,
        };
        match shared {
            Some((socket, ip)) => socket.by_address.push((ip, index)),
            None => sockets.push(wanted.socket(&listen.address, index)),
        }
    }
    sockets
}
