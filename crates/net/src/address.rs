//! The address of a socket: a TCP address or a path.

use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Bytes of a unix socket's path, at most; the kernel's form has a zero byte behind it (unix(7)).
const UNIX_PATH_BYTES_MAX: usize = 107;

/// The address of a listener, a peer or an origin.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// IPv4 or IPv6 with a port.
    Tcp(SocketAddr),
    /// A unix-domain socket; an empty path is an unnamed peer.
    Unix(PathBuf),
}

/// The same type, by the name that streams use.
pub type SocketAddress = Address;

impl Address {
    /// A unix-domain peer without a name.
    pub(crate) fn unnamed() -> Address {
        Address::Unix(PathBuf::new())
    }

    /// The unix socket with this path, which a file names.
    ///
    /// # Errors
    /// The path is empty or too long for the kernel, in nginx's words.
    pub fn unix(path: &str) -> Result<Address, &'static str> {
        match path.len() {
            0 => Err("no path in the unix domain socket"),
            1..=UNIX_PATH_BYTES_MAX => Ok(Address::Unix(path.into())),
            _ => Err("too long path in the unix domain socket"),
        }
    }

    /// The TCP address, if it is one.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Address::Tcp(address) => Some(*address),
            Address::Unix(_) => None,
        }
    }

    /// True for a unix-domain socket.
    pub fn is_unix(&self) -> bool {
        matches!(self, Address::Unix(_))
    }

    pub(crate) fn family(&self) -> AddressFamily {
        match self {
            Address::Tcp(SocketAddr::V4(_)) => AddressFamily::INET,
            Address::Tcp(SocketAddr::V6(_)) => AddressFamily::INET6,
            Address::Unix(_) => AddressFamily::UNIX,
        }
    }

    /// The kernel's form of the address; a path that does not fit it is an error.
    pub(crate) fn to_kernel(&self) -> io::Result<SocketAddrAny> {
        Ok(match self {
            Address::Tcp(address) => (*address).into(),
            Address::Unix(path) => SocketAddrUnix::new(path.as_path())?.into(),
        })
    }

    pub(crate) fn from_kernel(any: SocketAddrAny) -> Address {
        match SocketAddr::try_from(any.clone()) {
            Ok(address) => Address::Tcp(address),
            Err(_) => Address::Unix(unix_path(any)),
        }
    }
}

fn unix_path(any: SocketAddrAny) -> PathBuf {
    SocketAddrUnix::try_from(any)
        .ok()
        .and_then(|unix| {
            let bytes = unix.path_bytes()?;
            // The longest path comes back with the zero byte behind it.
            let end = bytes.len().min(UNIX_PATH_BYTES_MAX);
            Some(PathBuf::from(std::ffi::OsStr::from_bytes(bytes.get(..end)?)))
        })
        .unwrap_or_default()
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        Address::Tcp(address)
    }
}

/// `127.0.0.1:80`, `[::1]:80`, `unix:/run/app.sock`, as nginx writes them.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn check(address: Address, text: &str) {
        assert_eq!(address.to_string(), text);
        let back = Address::from_kernel(address.to_kernel().unwrap());
        assert_eq!(back, address);
    }

    #[test]
    fn to_the_kernel_and_back() {
        check(Address::Tcp("127.0.0.1:80".parse().unwrap()), "127.0.0.1:80");
        check(Address::Tcp("[::1]:443".parse().unwrap()), "[::1]:443");
        check(Address::Unix("/run/app.sock".into()), "unix:/run/app.sock");
    }

    #[test]
    fn a_path_is_as_long_as_the_kernel_takes() {
        let longest = "x".repeat(UNIX_PATH_BYTES_MAX);
        check(Address::unix(&longest).unwrap(), &format!("unix:{longest}"));
        let too_long = format!("{longest}x");
        assert_eq!(Address::unix(&too_long), Err("too long path in the unix domain socket"));
        assert!(Address::Unix("x".repeat(200).into()).to_kernel().is_err());
        assert_eq!(Address::unix(""), Err("no path in the unix domain socket"));
    }
}
