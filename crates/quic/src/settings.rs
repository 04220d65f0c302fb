//! The settings of a port, and the limits that its clients learn.

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use quinn_proto::{EndpointConfig, ServerConfig, TransportConfig, ValidationTokenConfig, VarInt};

use weir_net::steer::Steering;

use crate::id::{Ids, WorkerPlace};
use crate::keys::Keys;
use crate::tls::{Crypto, VERSION};
use crate::tokens::UsedTokens;

/// Streams that a client may open before its first requests show that it uses many: all that may be open at the same time
/// have memory from the beginning.
pub const STREAMS_FIRST: u32 = 16;
/// Connection ids of a client that quinn-proto can keep.
pub const IDS_MAX: u8 = 5;
/// Unidirectional streams of a client: control, and two of QPACK (RFC 9114 §6.2).
const UNI_STREAMS: u32 = 3;
/// Bytes of all streams that a client may send before weir reads them.
const RECEIVE_WINDOW: u32 = 1 << 20;
/// Bytes on their way to a client, at most.
const SEND_WINDOW: u64 = 2 << 20;
/// Bytes of handshakes that came in the wrong order.
const CRYPTO_BYTES: usize = 16 << 10;
/// Clients whose first packet waits for the decision of the host. The host decides at once, so one would do.
const INCOMING_MAX: usize = 64;
/// A port sends no more stateless resets than one in this time (RFC 9000 §10.3.3).
const RESET_INTERVAL: Duration = Duration::from_micros(200);

/// Tokens for later connections that a client gets.
const TOKENS_SENT: u32 = 1;
/// How long a token proves an address (nginx: 7 days).
const TOKEN_LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What a configuration says of a port.
pub struct Wanted<'w> {
    /// The secret for all keys.
    pub host_key: &'w [u8],
    /// A connection on which nothing comes for this time has ended; zero for no limit.
    pub idle: Duration,
    /// Streams that a client may have open at the same time.
    pub streams: u32,
    /// Bytes of a stream that a client may send before weir reads them.
    pub stream_window: u32,
    /// Connection ids that a client may give at the same time, at least two; no more than [`IDS_MAX`] are of use.
    pub ids: u8,
    /// The kernel cuts messages into datagrams.
    pub cuts: bool,
}

/// The settings of a port.
#[derive(Clone)]
pub struct PortSettings {
    pub(crate) keys: Keys,
    pub(crate) crypto: Arc<Crypto>,
    pub(crate) server: Arc<ServerConfig>,
    pub(crate) cuts: bool,
}

impl PortSettings {
    /// The key by which the kernel chooses the socket of a connection's worker.
    pub fn steering(&self) -> &Steering {
        self.keys.id.steering()
    }
}

impl fmt::Debug for PortSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PortSettings")
    }
}

/// The tokens that clients have used, of all ports.
static USED_TOKENS: LazyLock<Arc<UsedTokens>> = LazyLock::new(Arc::default);

/// The settings of a port; `None` if the host key is empty, or the TLS library lacks the suite of Initial packets.
pub fn port_settings(wanted: &Wanted<'_>) -> Option<PortSettings> {
    let keys = Keys::of(wanted.host_key)?;
    let crypto = Arc::new(Crypto::new(wanted.ids.min(IDS_MAX))?);
    let mut transport = TransportConfig::default();
    let idle = u64::try_from(wanted.idle.as_millis()).ok().and_then(|ms| VarInt::from_u64(ms).ok());
    transport
        .max_idle_timeout(idle.filter(|ms| ms.into_inner() > 0).map(Into::into))
        .max_concurrent_bidi_streams(wanted.streams.min(STREAMS_FIRST).into())
        .max_concurrent_uni_streams(UNI_STREAMS.into())
        .stream_receive_window(wanted.stream_window.into())
        .receive_window(RECEIVE_WINDOW.max(wanted.stream_window).into())
        .send_window(SEND_WINDOW)
        .crypto_buffer_size(CRYPTO_BYTES)
        .datagram_receive_buffer_size(None)
        .enable_segmentation_offload(true);
    let mut server = ServerConfig::new(crypto.clone(), keys.token.clone());
    let mut tokens = ValidationTokenConfig::default();
    tokens.sent(TOKENS_SENT).log(USED_TOKENS.clone()).lifetime(TOKEN_LIFETIME);
    server.transport_config(Arc::new(transport)).validation_token_config(tokens).max_incoming(INCOMING_MAX);
    Some(PortSettings { keys, crypto, server: Arc::new(server), cuts: wanted.cuts })
}

/// The settings of an endpoint at a place.
pub(crate) fn endpoint_config(keys: &Keys, place: WorkerPlace) -> EndpointConfig {
    let mut config = EndpointConfig::new(keys.reset.clone());
    let id = keys.id.clone();
    config
        .cid_generator(move || Box::new(Ids::new(id.clone(), place)))
        .supported_versions(vec![VERSION])
        .min_reset_interval(RESET_INTERVAL);
    config
}
