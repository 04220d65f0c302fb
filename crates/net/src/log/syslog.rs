//! `syslog:server=…`: lines as RFC 3164 datagrams, in nginx's form.
//!
//! Sending never waits. A line that the socket does not accept is dropped and counted; after an error, the next line
//! gets a new socket.

use std::cell::Cell;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::log::level::Level;
use crate::log::os::{Os, hostname};
use crate::log::time;
use crate::{Address, clock};

/// A syslog server, and the labels of its lines.
pub struct Syslog {
    address: Address,
    facility: usize,
    severity: usize,
    tag: String,
    has_hostname: bool,
    socket: RwLock<Option<Socket>>,
    dropped: AtomicU64,
    complained_at: AtomicU64,
}

enum Socket {
    Udp(UdpSocket),
    Unix(UnixDatagram),
}

const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "intern", "lpr", "news", "uucp", "clock", "authpriv", "ftp", "ntp",
    "audit", "alert", "cron", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
];

/// RFC 3164 §4.1.3.
const TAG_MAX: usize = 32;

/// `local7`.
const FACILITY: usize = 23;

/// `info`: the severity of access log lines.
const SEVERITY: usize = 6;

/// The port of a server written without one.
const PORT: u16 = 514;

thread_local! {
    /// A log line about a syslog server must not go to syslog.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

impl Syslog {
    /// Reads the text after `syslog:`; `resolve` turns host names into addresses. The errors have nginx's wording.
    pub fn read(text: &str, resolve: &dyn Fn(&str) -> Result<Vec<SocketAddr>, String>) -> Result<Arc<Syslog>, String> {
        let (mut address, mut facility, mut severity, mut tag) = (None, None, None, None);
        let mut has_hostname = true;
        for part in text.split(',') {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            match key {
                "server" if part.contains('=') => once(&mut address, key, || server(value, resolve))?,
                "facility" if part.contains('=') => once(&mut facility, key, || {
                    FACILITIES.iter().position(|name| *name == value).ok_or_else(|| unknown(key, value))
                })?,
                "severity" if part.contains('=') => once(&mut severity, key, || {
                    Level::of(value).map(|level| level as usize).ok_or_else(|| unknown(key, value))
                })?,
                "tag" if part.contains('=') => once(&mut tag, key, || checked_tag(value))?,
                "nohostname" if part == key => has_hostname = false,
                _ => {
                    return Err(format!("unknown syslog parameter \"{part}\""));
                }
            }
        }
        Ok(Arc::new(Syslog {
            address: address.ok_or("no syslog server specified")?,
            facility: facility.unwrap_or(FACILITY),
            severity: severity.unwrap_or(SEVERITY),
            tag: tag.unwrap_or_else(|| "nginx".to_owned()),
            has_hostname,
            socket: RwLock::new(None),
            dropped: AtomicU64::new(0),
            complained_at: AtomicU64::new(0),
        }))
    }

    /// Lines that were not sent.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Appends `<PRI>TIME HOST TAG: ` with the server's own severity, for an access log line.
    pub fn begin(&self, out: &mut Vec<u8>) {
        self.head(self.severity, out);
    }

    /// Sends a line of the error log.
    pub(crate) fn error_line(&self, level: Level, line: &[u8]) {
        if BUSY.get() {
            return;
        }
        let mut message = Vec::with_capacity(line.len() + 96);
        self.head(level as usize, &mut message);
        message.extend_from_slice(line);
        self.send(&message);
    }

    /// Sends a whole datagram; `false` when it was dropped.
    pub fn send(&self, message: &[u8]) -> bool {
        let (call, error) = match self.try_send(message) {
            Ok(()) => return true,
            Err(failed) => failed,
        };
        self.dropped.fetch_add(1, Ordering::Relaxed);
        if error.kind() != io::ErrorKind::WouldBlock {
            *self.socket.write().unwrap_or_else(PoisonError::into_inner) = None;
            self.complain(call, &error);
        }
        false
    }

    /// The error includes the name of the call that failed.
    fn try_send(&self, message: &[u8]) -> Result<(), (&'static str, io::Error)> {
        loop {
            if let Some(socket) = &*self.socket.read().unwrap_or_else(PoisonError::into_inner) {
                let sent = match socket {
                    Socket::Udp(udp) => udp.send(message),
                    Socket::Unix(unix) => unix.send(message),
                };
                return sent.map(drop).map_err(|error| ("send()", error));
            }
            let socket = self.connect().map_err(|error| ("connect()", error))?;
            *self.socket.write().unwrap_or_else(PoisonError::into_inner) = Some(socket);
        }
    }

    fn connect(&self) -> io::Result<Socket> {
        match &self.address {
            Address::Tcp(server) => {
                let any = match server {
                    SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
                    SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
                };
                let udp = UdpSocket::bind((any, 0))?;
                udp.set_nonblocking(true)?;
                udp.connect(server)?;
                Ok(Socket::Udp(udp))
            }
            Address::Unix(path) => {
                let unix = UnixDatagram::unbound()?;
                unix.set_nonblocking(true)?;
                unix.connect(path)?;
                Ok(Socket::Unix(unix))
            }
        }
    }

    fn head(&self, severity: usize, out: &mut Vec<u8>) {
        let _ = write!(out, "<{}>", self.facility * 8 + severity);
        out.extend_from_slice(&time::syslog());
        if self.has_hostname {
            out.push(b' ');
            out.extend_from_slice(hostname().as_bytes());
        }
        let _ = write!(out, " {}: ", self.tag);
    }

    /// Logs the error to the other sinks, at most once a second: every line may fail.
    fn complain(&self, call: &str, error: &io::Error) {
        let now = clock::unix_seconds();
        if self.complained_at.swap(now, Ordering::Relaxed) == now {
            return;
        }
        // nginx: a failure of the network is an error, a failure of this machine is an alert.
        let is_remote = call == "send()"
            && matches!(
                error.kind(),
                io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::NotConnected
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::TimedOut
                    | io::ErrorKind::NetworkDown
                    | io::ErrorKind::NetworkUnreachable
                    | io::ErrorKind::HostUnreachable
            );
        BUSY.set(true);
        crate::log::global(
            if is_remote { Level::Error } else { Level::Alert },
            format_args!("{call} failed {} while logging to syslog, server: {}", Os(error), self.address),
        );
        BUSY.set(false);
    }
}

fn once<T>(slot: &mut Option<T>, key: &str, value: impl FnOnce() -> Result<T, String>) -> Result<(), String> {
    if slot.is_some() {
        return Err(format!("duplicate syslog \"{key}\""));
    }
    *slot = Some(value()?);
    Ok(())
}

fn unknown(key: &str, value: &str) -> String {
    format!("unknown syslog {key} \"{value}\"")
}

fn checked_tag(value: &str) -> Result<String, String> {
    if value.len() > TAG_MAX {
        return Err("syslog tag length exceeds 32".to_owned());
    }
    if !value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err("syslog \"tag\" only allows alphanumeric characters and underscore".to_owned());
    }
    Ok(value.to_owned())
}

/// `ADDRESS`, `ADDRESS:PORT`, `[IPv6]:PORT`, a host name, or `unix:PATH`.
fn server(text: &str, resolve: &dyn Fn(&str) -> Result<Vec<SocketAddr>, String>) -> Result<Address, String> {
    let refusal = |what: &str| format!("{what} in syslog server \"{text}\"");
    if let Some(path) = text.strip_prefix("unix:") {
        return Address::unix(path).map_err(refusal);
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(Address::Tcp(address));
    }
    if let Ok(ip) = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return Ok(Address::Tcp(SocketAddr::new(ip, PORT)));
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => {
            (host, port.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(|| refusal("invalid port"))?)
        }
        None => (text, PORT),
    };
    if host.is_empty() {
        return Err(refusal("no host"));
    }
    let found = resolve(host).ok().and_then(|addresses| addresses.first().copied());
    let mut address = found.ok_or_else(|| refusal("host not found"))?;
    address.set_port(port);
    Ok(Address::Tcp(address))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn nobody(_: &str) -> Result<Vec<SocketAddr>, String> {
        Err("not found".to_owned())
    }

    fn read(text: &str) -> Result<Arc<Syslog>, String> {
        Syslog::read(text, &nobody)
    }

    #[test]
    fn refusals_are_nginx_words() {
        for (text, what) in [
            ("facility=user", "no syslog server specified"),
            ("server=127.0.0.1,server=127.0.0.1", "duplicate syslog \"server\""),
            ("server=127.0.0.1,facility=none", "unknown syslog facility \"none\""),
            ("server=127.0.0.1,severity=err", "unknown syslog severity \"err\""),
            ("server=127.0.0.1,tag=a-b", "syslog \"tag\" only allows alphanumeric characters and underscore"),
            ("server=127.0.0.1,loud", "unknown syslog parameter \"loud\""),
            ("server=nowhere", "host not found in syslog server \"nowhere\""),
            ("server=127.0.0.1:0x", "invalid port in syslog server \"127.0.0.1:0x\""),
        ] {
            assert_eq!(read(text).err().as_deref(), Some(what), "{text}");
        }
        let long = format!("server=127.0.0.1,tag={}", "t".repeat(33));
        assert_eq!(read(&long).err().as_deref(), Some("syslog tag length exceeds 32"));
    }

    #[test]
    fn lines_are_labelled_and_sent() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let mut bytes = [0; 512];
        let mut receive = || {
            let count = server.recv(&mut bytes).unwrap();
            String::from_utf8_lossy(bytes.get(..count).unwrap()).into_owned()
        };

        let syslog = read(&format!("server={address},facility=user,tag=SEE,nohostname")).unwrap();
        syslog.error_line(Level::Error, b"what happened");
        let text = receive();
        assert!(text.starts_with("<11>") && text.ends_with(" SEE: what happened"), "{text}");

        let syslog = read(&format!("server={address},severity=alert")).unwrap();
        let mut line = Vec::new();
        syslog.begin(&mut line);
        line.extend_from_slice(b"GET /");
        assert!(syslog.send(&line));
        let text = receive();
        assert!(text.starts_with("<185>"), "{text}");
        assert!(text.ends_with(&format!(" {} nginx: GET /", hostname())), "{text}");
        assert_eq!(syslog.dropped(), 0);
    }

    #[test]
    fn a_missing_server_loses_lines_and_counts_them() {
        let syslog = read("server=unix:/nonexistent/log.sock").unwrap();
        assert!(!syslog.send(b"lost"));
        assert_eq!(syslog.dropped(), 1);
    }
}
