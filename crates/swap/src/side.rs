//! A or B: a server that swap starts on loopback ports of its own, or an address.

pub mod beside;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use weir_conf::Tree;
use weir_conf::edit::Edit;
use weir_net::Address;

/// A or B, as the user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideWish {
    /// A file, and the program that runs it. `None`: this weir.
    Conf {
        /// The main file.
        file: PathBuf,
        /// An nginx, or another weir.
        binary: Option<PathBuf>,
    },
    /// A server that runs already.
    Address {
        /// Where it listens.
        at: SocketAddr,
        /// Its clients speak TLS.
        tls: bool,
    },
}

/// Further changes to a configuration before a server starts with it: edits of the tree's files. The path is that of the
/// server's own directory, in which it may write.
pub type Changes<'c> = &'c dyn Fn(&Tree, &Path) -> Vec<Edit>;

/// An address of A, and the places where A and B answer for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwapDoor {
    /// As A's file says it: `0.0.0.0:80`.
    pub address: Address,
    /// Where A answers. `None`: nobody reaches it over TCP.
    pub a: Option<SocketAddr>,
    /// Where B answers. `None`: B has no such address.
    pub b: Option<SocketAddr>,
    /// The clients speak TLS.
    pub tls: bool,
}
