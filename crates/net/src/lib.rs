//! `net`: worker threads, and the sockets and timers they hold.
//!
//! ```text
//!   control thread                    worker thread (one per CPU)
//!   process, signals  --Remote-->     tasks . streams . listeners . deadlines
//!                     (mailbox)       one epoll, one run queue, one clock
//! ```
//!
//! Our own single-threaded async runtime (docs/why/001-runtime.md): everything above is plain `async fn`, and nothing
//! above names a reactor. `log` is the error log of the process. Not here: HTTP, configuration. Invariants: a socket
//! never leaves its worker; the only `unsafe`, the only clock and the only syscalls of weir are in this crate.
#![deny(unsafe_code)]

pub mod address;
mod alarm;
pub mod answers;
pub mod aside;
mod bell;
pub mod buffer;
pub mod clock;
mod core;
pub mod counts;
pub mod datagram;
pub mod datagrams;
pub mod diag;
pub mod frames;
pub mod identity;
mod instant;
pub mod listener;
pub mod log;
mod mailbox;
pub mod opening;
pub mod path;
pub mod process;
pub mod random;
pub mod reply;
pub mod slots;
pub mod splice;
pub mod stream;
mod sync;
mod sys;
pub mod timer;
pub mod tls;
mod transport;
mod wheel;
pub mod whole_file;
pub mod worker;

pub use address::{Address, SocketAddress};
pub use buffer::Lease;
pub use datagram::Datagram;
pub use frames::Frames;
pub use instant::Instant;
pub use listener::{ListenOptions, Listener, Listening, Watched};
pub use process::is_out_of_files;
pub use slots::Slots;
pub use stream::{ConnectOptions, Keepalive, Local, Stream};
pub use timer::{Deadline, TimedOut};
pub use tls::TlsStream;
pub use transport::{Carried, Transport};
