//! `net`: worker threads, and the sockets and timers they hold.
//!
//! ```text
//!   control thread                    worker thread (one per CPU)
//!   process, signals  --Remote-->     tasks . streams . listeners . deadlines
//!                     (mailbox)       one epoll, one run queue, one clock
//! ```
//!
//! Our own single-threaded async runtime (docs/why/001-runtime.md): everything above is plain `async fn`, and nothing
//! above names a reactor. Not here: HTTP, configuration.
//!
//! Invariants: a socket has one worker; only an idle connection to an origin may move to another worker. Only this crate has
//! `unsafe`, reads a clock, and makes system calls that the standard library does not have; `lab` loads eBPF by a library.
//!
//! - `worker`, `core/`, `mailbox`, `bell`, `timer`, `wheel`, `alarm`, `slots`: a worker, its loop on epoll, its tasks
//!   and deadlines; `aside` and `reply` let a task wait for work on another thread
//! - `clock`, `instant`, `random`: the only clock; random numbers
//! - `listener`, `stream`, `transport`, `splice`, `pump/`, `frames`, `diag`, `address`: sockets; `datagram`, `datagrams`,
//!   `batch`, `control`, `steer`, `forward`: those of UDP
//! - `buffer`, `whole_file`, `path`, `opening`, `open_files`: memory on loan; files, and those that stay open
//! - `tls/`: handshakes and records by rustls, certificates, OCSP, tickets
//! - `process/`: pid file, users, signals, upgrade, systemd; the roles in which a keeper starts itself again (`roles`)
//!   and the channel to them (`channel`); the system calls and files of a server (`sandbox`, `places`); the stack of a
//!   thread (`stack`)
//! - `answers`: the machine's answers with which a configuration is read
//! - `log/`: the error log; `identity`: the user of a thread
//! - `sys`: all `unsafe`
#![deny(unsafe_code)]

pub mod address;
mod alarm;
pub mod answers;
pub mod aside;
pub mod batch;
mod bell;
pub mod buffer;
pub mod clock;
mod control;
mod core;
pub mod counts;
pub mod datagram;
pub mod datagrams;
pub mod diag;
pub mod forward;
pub mod frames;
pub mod identity;
mod instant;
pub mod listener;
pub mod log;
mod mailbox;
pub mod open_files;
pub mod opening;
pub mod path;
pub mod process;
pub mod pump;
pub mod random;
pub mod reply;
pub mod slots;
pub mod splice;
pub mod steer;
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
