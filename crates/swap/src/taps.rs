//! Taps: what origins see. A tap stands between a server that swap has started and one of its origins.
//!
//! ```text
//!   server ─► tap ─ RequestReader ─► origin
//!          ◄───── AnswerReader ◄────
//! ```
//!
//! Invariants: the bytes go on as they came, but for the name in `read`. Requests of HTTP/1 and FastCGI are read, those
//! of TLS, HTTP/2 and other protocols go on unread. Connections, requests and bytes that are kept have bounds.
//!
//! - `edits`: the addresses of origins in a configuration, and the copy with taps in their places
//! - `connection`: passes the bytes of one connection on
//! - `read`, `cgi`, `kept`: reads requests in the bytes, and keeps them within bounds
//! - `seen`: what the connections share with the asker

mod cgi;
mod connection;
pub mod edits;
mod kept;
pub mod read;
mod seen;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir_conf::Tree;
use weir_conf::edit::Edit;
use weir_net::worker::{self, Remote};
use weir_net::{Address, ListenOptions, Listener, Listening, listener, timer};

use self::edits::{TappedOrigin, UntappedOrigin};
use self::read::{TapNames, replaced};
use self::seen::{SeenRequests, lock};
use crate::request::{Observed, OriginRequest, SwapAnswer};

/// Most connections of one server through taps at a time. Further ones are closed at once.
pub const CONNECTIONS_MAX: usize = 1024;
/// Most taps of one server.
pub const TAPS_MAX: usize = 1000;
/// The pause in accepting when the process has no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// The taps of one server. They end when this is dropped.
pub struct Taps {
    worker: Remote,
    seen: Arc<SeenRequests>,
    /// The addresses of the taps, and the origins behind them.
    all: Mutex<Vec<(Address, TappedOrigin)>>,
    untapped: Mutex<Vec<UntappedOrigin>>,
}

impl Taps {
    /// Starts the thread of the taps. There is no tap yet.
    ///
    /// # Errors
    /// The thread cannot start.
    pub fn start() -> io::Result<Taps> {
        let worker = worker::start("taps", None, || {})?;
        Ok(Taps { worker, seen: Arc::default(), all: Mutex::default(), untapped: Mutex::default() })
    }

    /// Opens a tap for each origin of a configuration, and returns the edits that put the taps in their places. `room`
    /// is a directory for sockets, which the server may enter. `own` are the addresses of the server itself, with those
    /// at which it listens instead: it may be its own origin.
    pub fn edits(&self, tree: &Tree, room: &Path, own: &[(Address, SocketAddr)]) -> Vec<Edit> {
        let mut untapped = Vec::new();
        let mut open = |origin: &TappedOrigin| self.open(origin, room, own).ok();
        let edits = edits::edits(tree, &mut open, &mut untapped);
        *lock(&self.untapped) = untapped;
        edits
    }

    /// The origins without a tap, with the reason.
    pub fn untapped(&self) -> Vec<UntappedOrigin> {
        lock(&self.untapped).clone()
    }

    /// The requests to origins since the last call. Ask one request at a time: then they belong to it.
    pub fn take(&self) -> Vec<OriginRequest> {
        std::mem::take(&mut *lock(&self.seen.requests))
    }

    /// Gives an answer and its log lines the names of origins in the places of taps.
    pub fn restore(&self, observed: &mut Observed) {
        if let SwapAnswer::Whole(whole) = &mut observed.answer {
            for (_, value) in &mut whole.fields {
                *value = self.restored(value);
            }
        }
        for (_, value) in observed.log.iter_mut().flat_map(|line| &mut line.values) {
            *value = self.restored(value);
        }
    }

    fn restored(&self, bytes: &[u8]) -> Vec<u8> {
        let all = lock(&self.all);
        let is_there = |tap: &[u8]| memchr::memmem::find(bytes, tap).is_some();
        all.iter().fold(bytes.to_vec(), |bytes, (tap, origin)| {
            let name = edits::shown(tap).into_bytes();
            if is_there(&name) { replaced(&bytes, &name, origin.shown.as_bytes()) } else { bytes }
        })
    }

    fn open(&self, origin: &TappedOrigin, room: &Path, own: &[(Address, SocketAddr)]) -> io::Result<Address> {
        let mut all = lock(&self.all);
        if let Some((tap, _)) = all.iter().find(|(_, known)| known == origin) {
            return Ok(tap.clone());
        }
        if all.len() >= TAPS_MAX {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let wish = match origin.to.first() {
            Some(Address::Unix(_)) => Address::Unix(room.join(format!("tap-{}.sock", all.len()))),
            _ => Address::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0)),
        };
        let socket = listener::bind(&wish, &ListenOptions::default())?;
        let tap = socket.local_addr().clone();
        all.push((tap.clone(), origin.clone()));
        let moved = |to: &Address| {
            let found = own.iter().find(|(address, _)| is_at(address, to));
            found.map_or_else(|| to.clone(), |(_, at)| Address::Tcp(*at))
        };
        let (names, seen) = (origin.names(&tap), self.seen.clone());
        let origin = TappedOrigin { to: origin.to.iter().map(moved).collect(), ..origin.clone() };
        self.worker.run(move || worker::spawn(accept(socket, names, origin, seen)));
        Ok(tap)
    }
}

impl Drop for Taps {
    fn drop(&mut self) {
        self.worker.stop();
        self.worker.join();
    }
}

/// True if a server that listens at `listens` gets the connections to `to`.
fn is_at(listens: &Address, to: &Address) -> bool {
    match (listens.tcp(), to.tcp()) {
        (Some(listens), Some(to)) => {
            let is_any = listens.ip().is_unspecified() && to.ip().is_loopback();
            listens.port() == to.port() && (listens.ip() == to.ip() || is_any)
        }
        _ => listens == to,
    }
}

async fn accept(socket: Listening, names: TapNames, origin: TappedOrigin, seen: Arc<SeenRequests>) {
    let Ok(listener) = Listener::new(&socket) else { return };
    loop {
        match listener.accept().await {
            Ok(_) if seen.connections.load(Ordering::Relaxed) >= CONNECTIONS_MAX => {}
            Ok((server, _)) => {
                let (names, origin, seen) = (names.clone(), origin.clone(), seen.clone());
                worker::spawn(async move {
                    seen.connections.fetch_add(1, Ordering::Relaxed);
                    connection::pass(server, &names, &origin, &seen).await;
                    seen.connections.fetch_sub(1, Ordering::Relaxed);
                });
            }
            Err(_) => timer::sleep(ACCEPT_PAUSE).await,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};

    use super::*;
    use crate::cause::edits::tests::tree;
    use crate::logs::LoggedLine;
    use crate::request::WholeAnswer;

    /// An origin that answers each connection once, and tells what it got. It ends with the test's process.
    fn origin(answer: &'static [u8]) -> (SocketAddr, std::sync::mpsc::Receiver<Vec<u8>>) {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let serve = move || {
            for stream in socket.incoming() {
                let (mut stream, mut got) = (stream.unwrap(), Vec::new());
                stream.read_to_end(&mut got).unwrap();
                stream.write_all(answer).unwrap();
                let _ = tell.send(got);
            }
        };
        worker::block_aside("origin", serve).unwrap();
        (address, told)
    }

    fn exchange(tap: &str, request: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(tap).unwrap();
        stream.write_all(request).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    }

    /// The address of the only tap of a configuration.
    fn tap(taps: &Taps, text: &str) -> String {
        let edits = taps.edits(&tree(text), &std::env::temp_dir(), &[]);
        let with = String::from_utf8(edits.first().unwrap().with.clone()).unwrap();
        with.trim_start_matches("http://").trim_end_matches('/').to_owned()
    }

    #[test]
    fn a_tap_passes_bytes_on_and_keeps_the_request() {
        let (address, told) = origin(b"HTTP/1.1 302 x\r\nLocation: /x\r\n\r\nbody");
        let taps = Taps::start().unwrap();
        let tap = tap(&taps, &format!("http {{ server {{ location / {{ proxy_pass http://{address}/; }} }} }}"));
        assert_ne!(tap, address.to_string());
        let answer = exchange(&tap, format!("GET /a HTTP/1.1\r\nHost: {tap}\r\n\r\n").as_bytes());
        assert_eq!(answer, b"HTTP/1.1 302 x\r\nLocation: /x\r\n\r\nbody");
        assert_eq!(told.recv().unwrap(), format!("GET /a HTTP/1.1\r\nHost: {address}\r\n\r\n").into_bytes());
        let seen = taps.take();
        let host = (b"Host".to_vec(), address.to_string().into_bytes());
        assert_eq!(
            seen.iter().map(|one| (&one.line[..], &one.fields[..])).collect::<Vec<_>>(),
            [(&b"GET /a"[..], &[host][..])]
        );
        assert_eq!(seen[0].to, address.to_string());
        assert_eq!(taps.take(), []);
        let whole = WholeAnswer {
            fields: vec![(b"Location".to_vec(), format!("http://{tap}/l").into_bytes())],
            ..WholeAnswer::default()
        };
        let mut observed = Observed::of(SwapAnswer::Whole(whole));
        let value = ("$upstream_addr".to_owned(), tap.into_bytes());
        observed.log.push(LoggedLine { format: String::new(), values: vec![value] });
        taps.restore(&mut observed);
        assert_eq!(observed.log[0].values[0].1, address.to_string().into_bytes());
        let SwapAnswer::Whole(whole) = observed.answer else { panic!() };
        assert_eq!(whole.fields[0].1, format!("http://{address}/l").into_bytes());
    }

    #[test]
    fn a_large_answer_arrives_whole_and_a_dead_origin_is_a_reset() {
        static LARGE: [u8; 1 << 20] = [b'x'; 1 << 20];
        let (address, _told) = origin(&LARGE);
        let taps = Taps::start().unwrap();
        let tap = tap(&taps, &format!("http {{ upstream u {{ server {address}; }} }}"));
        assert!(exchange(&tap, b"GET / HTTP/1.0\r\n\r\n") == LARGE);
        assert_eq!(taps.take().len(), 1);
        let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let dead =
            taps.edits(&tree(&format!("http {{ upstream u {{ server {dead}; }} }}")), &std::env::temp_dir(), &[]);
        let mut stream = TcpStream::connect(std::str::from_utf8(&dead[0].with).unwrap()).unwrap();
        assert!(stream.read(&mut [0; 9]).is_err());
        assert_eq!(taps.untapped(), []);
    }

    #[test]
    fn a_server_may_be_its_own_origin() {
        let (address, told) = origin(b"HTTP/1.1 200 x\r\n\r\n");
        let taps = Taps::start().unwrap();
        let tree = tree("http { server { location / { proxy_pass http://127.0.0.1:81; } } }");
        let own = [(Address::Tcp("0.0.0.0:81".parse().unwrap()), address)];
        let edits = taps.edits(&tree, &std::env::temp_dir(), &own);
        let with = String::from_utf8(edits[0].with.clone()).unwrap();
        exchange(with.trim_start_matches("http://"), b"GET / HTTP/1.0\r\n\r\n");
        assert_eq!(told.recv().unwrap(), b"GET / HTTP/1.0\r\n\r\n");
        let is_own = |listens: &str| {
            let address = |text: &str| Address::Tcp(text.parse().unwrap());
            is_at(&address(listens), &address("127.0.0.1:81"))
        };
        assert!(is_own("127.0.0.1:81") && !is_own("10.0.0.1:81") && !is_own("0.0.0.0:80"));
    }
}
