//! Opens a WebSocket: connects, perhaps through a proxy, and does the handshake.

use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use weir_meter::Step;
use weir_net::{Deadline, Transport, buffer};
use weir_wire::ResponseHead;
use weir_wire::websocket::{DeflateOffer, HandshakeKey, check_answer};

use super::deflate::Deflating;
use super::socket::Socket;
use crate::client::Resolver;
use crate::engine::dial::{ConnectRefused, READ_BYTES, UrlAddress, dial, read_head, secure, write_all};
use crate::tls::Tls;

/// Longest time for opening if no option sets one: about the kernel's limit for a connect.
const OPENING_MAX: Duration = Duration::from_secs(130);

/// The longest message if `maxPayload` is not set; npm's `ws` has the same limit.
const MESSAGE_BYTES_MAX: usize = 100 << 20;

/// The options for opening a WebSocket.
#[derive(Clone, Debug)]
pub(crate) struct WebSocketOptions {
    /// Fields that are sent unchanged.
    pub(crate) headers: Vec<(String, String)>,
    /// Subprotocols offered.
    pub(crate) protocols: Vec<String>,
    /// `handshakeTimeout`: for connecting and shaking hands.
    pub(crate) handshake_timeout: Option<Duration>,
    /// permessage-deflate, if it is to be offered; and the message size from which on messages are compressed.
    pub(crate) deflate: Option<(DeflateOffer, usize)>,
    /// `maxPayload`.
    pub(crate) message_bytes_max: usize,
    /// `localAddress`.
    pub(crate) bind: Option<IpAddr>,
    /// `proxy.url`: connect through this proxy by CONNECT.
    pub(crate) proxy: Option<UrlAddress>,
    /// For `wss`.
    pub(crate) tls: Rc<Tls>,
    /// The resolver of the run.
    pub(crate) resolver: Resolver,
}

impl Default for WebSocketOptions {
    fn default() -> WebSocketOptions {
        WebSocketOptions {
            headers: Vec::new(),
            protocols: Vec::new(),
            handshake_timeout: None,
            deflate: None,
            message_bytes_max: MESSAGE_BYTES_MAX,
            bind: None,
            proxy: None,
            tls: Rc::default(),
            resolver: Resolver::default(),
        }
    }
}

/// Opens a WebSocket. The error has the wording of npm's `ws`.
pub(crate) async fn open(place: &UrlAddress, options: &WebSocketOptions) -> Result<Socket, ConnectRefused> {
    let deadline = Deadline::new();
    deadline.set(options.handshake_timeout.unwrap_or(OPENING_MAX));
    let timed = |refused: ConnectRefused| {
        // The script set a limit, and it is shorter than the kernel's.
        if options.handshake_timeout.is_some() && refused.code == Some("ETIMEDOUT") {
            return ConnectRefused::new(refused.step, None, "Opening handshake has timed out");
        }
        refused
    };
    let stream = connect(place, options, &deadline).await.map_err(timed)?;
    shake_hands(stream, place, options, &deadline).await.map_err(timed)
}

async fn connect(
    place: &UrlAddress,
    options: &WebSocketOptions,
    deadline: &Deadline,
) -> Result<Transport, ConnectRefused> {
    let Some(proxy) = &options.proxy else {
        let stream = dial(&place.host, place.port, options.bind, &options.resolver, deadline).await?;
        return secure(stream, place, &options.tls, deadline).await;
    };
    let stream = dial(&proxy.host, proxy.port, options.bind, &options.resolver, deadline).await?;
    let stream = Transport::from(stream);
    // As https-proxy-agent does: always with a port, IPv6 in brackets.
    let host = if place.host.contains(':') { format!("[{}]", place.host) } else { place.host.clone() };
    let mut request = format!("CONNECT {host}:{0} HTTP/1.1\r\nHost: {host}:{0}\r\nConnection: close\r\n", place.port);
    if let Some(user) = &proxy.user {
        request.push_str(&format!("Proxy-Authorization: {}\r\n", basic(user)));
    }
    request.push_str("\r\n");
    write_all(&stream, request.as_bytes(), deadline).await?;
    let (mut buf, mut head) = (buffer::lease(READ_BYTES), ResponseHead::new());
    read_head(&stream, deadline, &mut buf, &mut head).await?;
    match head.status {
        200 => match stream {
            Transport::Plain(stream) => secure(stream, place, &options.tls, deadline).await,
            stream => Ok(stream),
        },
        // https-proxy-agent passes the proxy's answer on as the server's answer.
        status => Err(ConnectRefused::new(Step::AwaitHead, None, format!("Unexpected server response: {status}"))),
    }
}

async fn shake_hands(
    stream: Transport,
    place: &UrlAddress,
    options: &WebSocketOptions,
    deadline: &Deadline,
) -> Result<Socket, ConnectRefused> {
    let key = HandshakeKey::new(fastrand::u128(..).to_ne_bytes());
    let mut buf = buffer::lease(READ_BYTES);
    request(&mut buf, place, options, &key);
    write_all(&stream, &buf, deadline).await?;
    buf.clear();
    let mut head = ResponseHead::new();
    read_head(&stream, deadline, &mut buf, &mut head).await?;
    let offer = options.deflate.as_ref();
    let agreed = check_answer(&buf, &head, &key, &options.protocols, offer.map(|(offer, _)| offer))
        .map_err(|fault| ConnectRefused::new(Step::AwaitHead, None, fault.to_string()))?;
    let deflating = match (agreed.deflate, offer) {
        (Some(agreed), Some((_, threshold_bytes))) => Some(Deflating::new(agreed, *threshold_bytes)),
        _ => None,
    };
    buf.drain(..head.len);
    let first = (!buf.is_empty()).then_some(buf);
    Ok(Socket::new(stream, deflating, options.message_bytes_max, first))
}

/// The value of Authorization for `user:password` (RFC 7617).
pub(crate) fn basic(user: &str) -> String {
    format!("Basic {}", STANDARD.encode(user))
}

fn request(out: &mut Vec<u8>, place: &UrlAddress, options: &WebSocketOptions, key: &HandshakeKey) {
    let mut push = |parts: &[&[u8]]| parts.iter().for_each(|part| out.extend_from_slice(part));
    push(&[b"GET ", place.target.as_bytes(), b" HTTP/1.1\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "]);
    push(&[key.as_bytes(), b"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"]);
    let mut has_host = false;
    for (name, value) in &options.headers {
        // This field is sent with the offered subprotocols.
        if !name.eq_ignore_ascii_case("sec-websocket-protocol") {
            has_host |= name.eq_ignore_ascii_case("host");
            push(&[name.as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
        }
    }
    if let Some((offer, _)) = &options.deflate {
        push(&[b"Sec-WebSocket-Extensions: ", offer.value().as_bytes(), b"\r\n"]);
    }
    if !options.protocols.is_empty() {
        push(&[b"Sec-WebSocket-Protocol: ", options.protocols.join(",").as_bytes(), b"\r\n"]);
    }
    if let Some(user) = &place.user {
        push(&[b"Authorization: ", basic(user).as_bytes(), b"\r\n"]);
    }
    if !has_host {
        push(&[b"Host: ", place.authority.as_bytes(), b"\r\n"]);
    }
    push(&[b"\r\n"]);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_request_says_what_was_asked_for() {
        let mut out = Vec::new();
        let options = WebSocketOptions {
            headers: vec![("X-A".into(), "b".into()), ("sec-websocket-protocol".into(), "p".into())],
            protocols: vec!["q".into(), "p".into()],
            deflate: Some((DeflateOffer::default(), 0)),
            ..WebSocketOptions::default()
        };
        let place = UrlAddress::parse("ws://u:p@127.0.0.1:81/x?y").unwrap();
        request(&mut out, &place, &options, &HandshakeKey::new([0; 16]));
        let expect = "GET /x?y HTTP/1.1\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\
            Connection: Upgrade\r\nUpgrade: websocket\r\nX-A: b\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\
            Sec-WebSocket-Protocol: q,p\r\nAuthorization: Basic dTpw\r\nHost: 127.0.0.1:81\r\n\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expect);
    }
}
