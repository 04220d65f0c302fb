//! One UDP socket of one worker as a client: the connections that weir opens over it.
//!
//! It works by batches, as a server's port does: the tasks of the connections read all that a batch has brought, and then all
//! that they have written is sent, so that acknowledgments and requests share packets.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use quinn_proto::{ClientConfig, Endpoint, EndpointConfig, NoneTokenStore, TransportConfig};
use weir_net::batch::ReceiveBatch;
use weir_net::clock;
use weir_net::datagrams::{DatagramOptions, Receiver, bind_client};
use weir_net::tls::{Client, Sessions};
use weir_net::worker::Task;

use crate::connection::{QuicConnection, QuicCounts, QuicEnd};
use crate::hub::{Hub, receive};
use crate::keys::{Keys, random_host_key};
use crate::proved::AddressProof;
use crate::tls::{ClientCrypto, Handshake, VERSION};

/// Unidirectional streams of a server: control, two of QPACK (RFC 9114 §6.2), and some of types without a meaning.
const UNI_STREAMS: u32 = 8;
/// Bytes of a stream that a server may send before weir reads them, as browsers allow.
const STREAM_WINDOW: u32 = 6 << 20;
/// Bytes of all streams that a server may send before weir reads them, as browsers allow.
const RECEIVE_WINDOW: u32 = 15 << 20;
/// Bytes on their way to a server, at most.
const SEND_WINDOW: u64 = 4 << 20;
/// Bytes of handshakes that came in the wrong order.
const CRYPTO_BYTES: usize = 64 << 10;
/// A connection on which nothing comes for this time has ended, as in browsers; a server may announce less.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// A client's socket. See the module.
pub struct ClientPort {
    is_v4: bool,
    hub: Hub,
    socket: RefCell<Receiver>,
    /// The socket before the last move: datagrams for its port may still come.
    before: RefCell<Option<Receiver>>,
    transport: Arc<TransportConfig>,
    is_stopped: Cell<bool>,
}

impl ClientPort {
    /// A port of the current worker, for servers with addresses of IPv4 or of IPv6.
    ///
    /// # Errors
    /// The kernel's, or the machine has no random bytes.
    pub fn new(is_v4: bool) -> io::Result<Rc<ClientPort>> {
        let keys = random_host_key().and_then(|key| Keys::of(&key)).ok_or(io::ErrorKind::Unsupported)?;
        let mut config = EndpointConfig::new(keys.reset);
        config.supported_versions(vec![VERSION]);
        let socket = bind(is_v4)?;
        Ok(Rc::new(ClientPort {
            is_v4,
            hub: Hub::new(Endpoint::new(Arc::new(config), None, true, None), socket.send_batch(true), Arc::default()),
            socket: RefCell::new(socket),
            before: RefCell::new(None),
            transport: Arc::new(transport()),
            is_stopped: Cell::new(false),
        }))
    }

    /// Begins a connection. `name` is sent and checked, or an IP address; `sessions` may be resumed, and get new ones. What
    /// the handshake agreed on is in [`Handshake`] after [`crate::connection::QuicEvent::Connected`].
    ///
    /// # Errors
    /// TLS cannot begin: [`Handshake`] may know why.
    pub fn connect(
        &self,
        to: SocketAddr,
        name: &str,
        client: &Client,
        sessions: Option<&Sessions>,
    ) -> (Result<Rc<QuicConnection>, QuicEnd>, Handshake) {
        let handshake = Handshake::default();
        let Some(crypto) = ClientCrypto::new(client, sessions, &handshake) else {
            return (Err(QuicEnd::Fault(0, "no suite for Initial packets".to_owned())), handshake);
        };
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(self.transport.clone()).token_store(Arc::new(NoneTokenStore));
        let begun = self.hub.endpoint.borrow_mut().connect(clock::now().std(), config, to, name);
        let begun = begun.map(|(handle, inner)| self.hub.add(handle, inner, Arc::<AddressProof>::default()));
        (begun.map_err(|error| QuicEnd::Fault(0, error.to_string())), handshake)
    }

    /// Moves all connections to another port of the kernel's choice (RFC 9000 §9).
    ///
    /// # Errors
    /// The kernel's; nothing has moved then.
    pub fn migrate(&self) -> io::Result<()> {
        let before = self.socket.replace(bind(self.is_v4)?);
        self.before.replace(Some(before));
        self.hub.each(|connection| connection.moved());
        Ok(())
    }

    /// Ends all connections with a code of the application.
    pub fn close_all(&self, code: u64) {
        self.hub.each(|connection| {
            if !connection.has_ended() {
                connection.close(code, b"");
                connection.wake();
            }
        });
    }

    /// Whether the kernel has taken all that connections want to send.
    pub fn is_idle(&self) -> bool {
        self.hub.is_idle()
    }

    /// What all connections have sent, received and lost so far, also those that have ended.
    pub fn counts(&self) -> QuicCounts {
        self.hub.counts()
    }

    /// Connections that have not ended.
    pub fn connections(&self) -> usize {
        self.hub.connections()
    }

    /// Opens no more connections. The port goes on until the last one has ended.
    pub fn stop(&self) {
        self.is_stopped.set(true);
        self.hub.listed.wake();
    }

    /// Drives, sends and receives; ready when the port is stopped and has no connection left.
    pub fn poll(&self, batch: &mut ReceiveBatch) -> Poll<()> {
        self.hub.listed.driven_here();
        if self.hub.is_resting() {
            Task::current().wake();
            return Poll::Pending;
        }
        self.hub.ring();
        let socket = self.socket.borrow();
        self.hub.drive_listed(&socket);
        let has_sent = self.hub.send(&socket);
        if self.is_stopped.get() && self.hub.connections() == 0 && has_sent {
            return Poll::Ready(());
        }
        let has_room = !has_sent && socket.poll_writable().is_ready();
        let mut has_received = false;
        if !self.hub.is_full() {
            let before = self.before.borrow();
            for socket in [Some(&*socket), before.as_ref()].into_iter().flatten() {
                if receive(socket, batch) {
                    has_received = true;
                    self.hub.rest();
                    // An endpoint without a server's settings has no new clients.
                    batch.datagrams().for_each(|datagram| drop(self.hub.take(&datagram)));
                }
            }
        }
        if has_received || has_room || self.hub.wait().is_ready() {
            Task::current().wake();
        }
        Poll::Pending
    }
}

fn bind(is_v4: bool) -> io::Result<Receiver> {
    let options = DatagramOptions { is_quic: true, ..DatagramOptions::default() };
    Receiver::new(&bind_client(is_v4, &options)?)
}

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(IDLE_MAX.try_into().ok())
        .max_concurrent_bidi_streams(0u32.into())
        .max_concurrent_uni_streams(UNI_STREAMS.into())
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(RECEIVE_WINDOW.into())
        .send_window(SEND_WINDOW)
        .crypto_buffer_size(CRYPTO_BYTES)
        .datagram_receive_buffer_size(None)
        .enable_segmentation_offload(true);
    transport
}
