//! A client of quinn-proto and a server with weir's TLS, in memory: datagrams go from one endpoint to the other.

use super::super::{Chooser, Crypto, Handshake};
use crate::id::{Ids, WorkerPlace};
use crate::keys::Keys;
use crate::proved::ProvedAddress;
use bytes::BytesMut;
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    AcceptError, ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig,
    Event, Incoming, ServerConfig, Transmit,
};
use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_net::tls::{Alert, ClientHello, KeyPair, Server, ServerOptions, section};

/// Ids that a client may give.
pub const IDS: u8 = 3;

/// A certificate for a host, with its key.
pub struct Identity {
    pub pair: KeyPair,
    pub der: CertificateDer<'static>,
    pub key: PrivateKeyDer<'static>,
}

impl Identity {
    pub fn of(host: &str) -> Identity {
        let key = rcgen::KeyPair::generate().unwrap();
        let der = rcgen::CertificateParams::new(vec![host.to_owned()]).unwrap().self_signed(&key).unwrap();
        let chain = section("CERTIFICATE", der.der());
        let pair = KeyPair::read(chain.as_bytes(), section("PRIVATE KEY", &key.serialize_der()).as_bytes(), &[]);
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Identity { pair: pair.unwrap(), der: der.der().clone(), key }
    }

    /// Options for QUIC with this certificate alone; early data needs a cache besides.
    pub fn options(&self) -> ServerOptions {
        ServerOptions { identities: vec![self.pair.clone()], ..ServerOptions::default() }
    }
}

/// The settings for QUIC of these options.
pub fn server(options: &ServerOptions) -> Server {
    Server::new(&options.for_quic(&[b"h3"], b"limits")).unwrap()
}

/// A configuration of a client that trusts these certificates.
pub fn client(trusted: &[&Identity], own: Option<&Identity>) -> rustls::ClientConfig {
    let mut roots = RootCertStore::empty();
    for identity in trusted {
        roots.add(identity.der.clone()).unwrap();
    }
    let builder = rustls::ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match own {
        Some(own) => builder.with_client_auth_cert(vec![own.der.clone()], own.key.clone_key()).unwrap(),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h3".to_vec()];
    config
}

/// A connection of one endpoint, with what it reported.
pub struct Talker {
    pub handle: ConnectionHandle,
    pub connection: Connection,
    pub events: Vec<Event>,
    /// The address that the peer of the server has proved.
    pub proved: Option<ProvedAddress>,
}

impl Talker {
    fn new(handle: ConnectionHandle, connection: Connection) -> Talker {
        Talker { handle, connection, events: Vec::new(), proved: None }
    }

    pub fn is_connected(&self) -> bool {
        self.events.iter().any(|event| matches!(event, Event::Connected))
    }

    /// The code with which the connection ended.
    pub fn close_code(&self) -> Option<u64> {
        self.events.iter().find_map(|event| match event {
            Event::ConnectionLost { reason: ConnectionError::ConnectionClosed(close) } => {
                Some(u64::from(close.error_code))
            }
            _ => None,
        })
    }

    /// Sends what it has, and takes its timeouts.
    fn datagrams(&mut self, endpoint: &mut Endpoint, now: Instant) -> Vec<(SocketAddr, BytesMut)> {
        if self.connection.poll_timeout().is_some_and(|at| at <= now) {
            self.connection.handle_timeout(now);
        }
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(event) = endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(event);
            }
        }
        let mut sent = Vec::new();
        let mut bytes = Vec::new();
        while let Some(transmit) = self.connection.poll_transmit(now, 1, &mut bytes) {
            self.proved.iter().for_each(|proved| proved.sent(transmit.destination));
            sent.push((transmit.destination, datagram(&transmit, &bytes)));
            bytes.clear();
        }
        while let Some(event) = self.connection.poll() {
            self.events.push(event);
        }
        sent
    }
}

fn datagram(transmit: &Transmit, bytes: &[u8]) -> BytesMut {
    assert!(transmit.segment_size.is_none());
    BytesMut::from(&bytes[..transmit.size])
}

/// Makes an endpoint for a server at `place`.
pub fn serving(keys: &Keys, place: WorkerPlace) -> Endpoint {
    let mut config = EndpointConfig::new(keys.reset.clone());
    let id = keys.id.clone();
    config.cid_generator(move || Box::new(Ids::new(id.clone(), place)));
    config.supported_versions(vec![super::super::VERSION]);
    Endpoint::new(Arc::new(config), Some(Arc::new(base(keys))), true, None)
}

pub fn base(keys: &Keys) -> ServerConfig {
    ServerConfig::new(Arc::new(Crypto::new(IDS).unwrap()), keys.token.clone())
}

/// What a server chooses for a hello.
type Choice = Rc<dyn Fn(&ClientHello) -> Result<Server, Alert>>;

/// A client and a server that know each other.
pub struct Pair {
    pub now: Instant,
    pub keys: Keys,
    pub client: Endpoint,
    pub server: Endpoint,
    /// For each hello.
    pub choice: Choice,
    /// The client's connection.
    pub near: Option<Talker>,
    /// The server's connection.
    pub far: Option<Talker>,
    pub handshake: Option<Handshake>,
    /// The address from which the client sends.
    pub from: SocketAddr,
    /// Addresses at which the client receives.
    pub homes: Vec<SocketAddr>,
    /// The server refused the first packet.
    pub refused: Option<ConnectionError>,
}

impl Pair {
    #[allow(clippy::disallowed_methods)]
    pub fn new(choice: impl Fn(&ClientHello) -> Result<Server, Alert> + 'static) -> Pair {
        let keys = Keys::of(&[7; 32]).unwrap();
        let server = serving(&keys, WorkerPlace { generation: 1, worker: 2, socket: 0 });
        let client = Endpoint::new(Arc::new(EndpointConfig::new(keys.reset.clone())), None, true, None);
        let choice = Rc::new(choice);
        let (now, [from, _]) = (Instant::now(), Pair::addresses());
        let (near, far, handshake, refused, homes) = (None, None, None, None, vec![from]);
        Pair { now, keys, client, server, choice, near, far, handshake, from, homes, refused }
    }

    fn addresses() -> [SocketAddr; 2] {
        [SocketAddr::from(([127, 0, 0, 1], 1000)), SocketAddr::from(([127, 0, 0, 1], 443))]
    }

    /// Begins a connection of the client, in the place of the one before.
    pub fn connect(&mut self, config: &Arc<rustls::ClientConfig>, host: &str) {
        let crypto = QuicClientConfig::try_from(config.clone()).unwrap();
        let [_, server] = Pair::addresses();
        let config = ClientConfig::new(Arc::new(crypto));
        let (handle, connection) = self.client.connect(self.now, config, server, host).unwrap();
        self.near = Some(Talker::new(handle, connection));
        (self.far, self.handshake, self.refused) = (None, None, None);
    }

    /// Passes datagrams until nobody has more to send for a second.
    pub fn pass(&mut self) {
        for _ in 0..100 {
            self.now += Duration::from_millis(10);
            let sent = self.sends();
            self.receives(sent);
            if let Some(far) = &mut self.far {
                for (to, datagram) in far.datagrams(&mut self.server, self.now) {
                    if self.homes.contains(&to) {
                        self.answers(datagram);
                    }
                }
            }
        }
    }

    /// The datagrams that the client sends at this moment.
    pub fn sends(&mut self) -> Vec<BytesMut> {
        let Pair { client, near, now, .. } = self;
        let sent = near.as_mut().map(|near| near.datagrams(client, *now)).unwrap_or_default();
        sent.into_iter().map(|(_, datagram)| datagram).collect()
    }

    /// The server receives datagrams of the client.
    pub fn receives(&mut self, datagrams: Vec<BytesMut>) {
        for datagram in datagrams {
            match self.hears(datagram) {
                Some(DatagramEvent::NewConnection(incoming)) => self.accepts(incoming),
                Some(DatagramEvent::ConnectionEvent(_, event)) => {
                    if let Some(far) = &mut self.far {
                        far.connection.handle_event(event);
                        let used = far.connection.remote_address();
                        if let Some(proved) = &far.proved {
                            proved.heard(self.from, used);
                        }
                    }
                }
                Some(DatagramEvent::Response(_)) | None => {}
            }
        }
    }

    /// The server's endpoint looks at a datagram of the client.
    pub fn hears(&mut self, datagram: BytesMut) -> Option<DatagramEvent> {
        self.server.handle(self.now, self.from, None, None, datagram, &mut Vec::new())
    }

    /// The server accepts a connection.
    pub fn accepts(&mut self, incoming: Incoming) {
        let choice = self.choice.clone();
        let chooser: Chooser = Box::new(move |hello| choice(hello));
        let crypto = Crypto::new(IDS).unwrap();
        let (config, handshake, proof) = crypto.hearing(&base(&self.keys), chooser);
        self.handshake = Some(handshake);
        let mut bytes = Vec::new();
        match self.server.accept(incoming, self.now, &mut bytes, Some(config)) {
            Ok((handle, connection)) => {
                let proved = Some(ProvedAddress::new(connection.remote_address(), proof));
                self.far = Some(Talker { proved, ..Talker::new(handle, connection) });
            }
            Err(AcceptError { cause, response }) => {
                self.refused = Some(cause);
                if let Some(response) = response {
                    self.answers(datagram(&response, &bytes));
                }
            }
        }
    }

    /// The server asks the client to prove its address, with a Retry packet.
    pub fn retries(&mut self, incoming: Incoming) {
        let mut bytes = Vec::new();
        let retry = self.server.retry(incoming, &mut bytes).unwrap();
        self.answers(datagram(&retry, &bytes));
    }

    /// The client receives a datagram of the server.
    pub fn answers(&mut self, datagram: BytesMut) {
        let [_, server] = Pair::addresses();
        let event = self.client.handle(self.now, server, None, None, datagram, &mut Vec::new());
        if let Some(DatagramEvent::ConnectionEvent(_, event)) = event
            && let Some(near) = &mut self.near
        {
            near.connection.handle_event(event);
        }
    }

    /// Both sides, after a handshake that succeeded.
    pub fn connected(&mut self) -> (&mut Talker, &mut Talker) {
        let (near, far) = (self.near.as_mut().unwrap(), self.far.as_mut().unwrap());
        assert!(near.is_connected() && far.is_connected());
        (near, far)
    }
}
