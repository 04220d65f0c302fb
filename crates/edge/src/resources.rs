//! The parts of a configuration that only root may open: sockets, directories, log files.
//!
//! The keeper opens them and passes them to the server.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::sync::Arc;
use std::time::Duration;

use weir_http::exchange::conf::Conf;
use weir_http::exchange::file_path::errno;
use weir_net::datagrams::{self, DatagramOptions, Receiving};
use weir_net::log::file::LogFile;
use weir_net::log::{self, Level};
use weir_net::process::{self, Identity};
use weir_net::{Address, ListenOptions, Listening, listener, path};

use crate::acme::responder;
use crate::family::{acme, dashboard};
use crate::load::{datagram_sockets, stream_sockets, worker_count};
use crate::{log_files, recorder};

/// The UDP sockets: one for each worker, so that the kernel gives all datagrams of a client to one worker.
pub type Datagrams = HashMap<SocketAddr, Vec<Receiving>>;

/// The listening sockets.
pub type Sockets = HashMap<Address, Vec<Listening>>;

/// What a configuration has opened.
#[derive(Clone, Default)]
pub struct Resources {
    /// The listening sockets, by the address in the file.
    pub sockets: Sockets,
    /// The UDP sockets of `stream`, and those for QUIC.
    pub datagrams: Datagrams,
    /// The sockets of `acme_dns_port`.
    pub dns: Option<responder::ResponderSockets>,
    /// The log files.
    pub logs: Vec<Arc<LogFile>>,
}

impl Resources {
    /// Opens everything that a configuration needs and that is not among the `known`. Files and directories go to
    /// `identity`, the user of the workers. Errors have nginx's words; after an error, the known ones are unchanged.
    ///
    /// # Errors
    /// A socket cannot be bound, or a file or a directory cannot be made.
    pub fn open(conf: &Conf, known: &Resources, identity: Option<&Identity>) -> Result<Resources, String> {
        let workers = worker_count(conf);
        let sockets = open_sockets(conf, known.sockets.clone(), workers)?;
        let datagrams = open_datagrams(conf, &known.datagrams, workers)?;
        make_directories(conf, identity)?;
        log_files::open_all(conf)?;
        dashboard::prepare(conf, identity)?;
        recorder::prepare(conf, identity)?;
        let dns = acme::prepare(conf, known.dns.as_ref(), identity);
        Ok(Resources { sockets, datagrams, dns, logs: log_files::of(conf).cloned().collect() })
    }

    /// Adds listening sockets that are bound already.
    pub fn add(&mut self, sockets: impl IntoIterator<Item = Listening>) {
        for listening in sockets {
            self.sockets.entry(listening.local_addr().clone()).or_default().push(listening);
        }
    }

    /// Closes the sockets, and removes the files of UNIX sockets unless another process `serves` them on.
    pub fn close(&mut self, is_succeeded: bool) {
        self.datagrams.clear();
        self.dns = None;
        for (address, _) in self.sockets.drain() {
            if !is_succeeded {
                remove_file(&address);
            }
        }
    }

    /// Removes the files of UNIX sockets that `next` does not have. Clients then learn from the kernel that nothing is
    /// there (nginx: "deleting socket").
    pub fn remove_left_out(&self, next: &Resources) {
        for address in self.sockets.keys().filter(|address| !next.sockets.contains_key(*address)) {
            if remove_file(address) {
                log::global(Level::Warn, format_args!("deleting socket {address}"));
            }
        }
    }
}

/// Removes the file of a UNIX socket; `false` if there is none.
fn remove_file(address: &Address) -> bool {
    match address {
        Address::Unix(path) => std::fs::remove_file(path).is_ok(),
        Address::Tcp(_) => false,
    }
}

/// How long weir retries binding an address that is in use (nginx: five times half a second).
const BIND_TRIES: u32 = 5;
const BIND_PAUSE: Duration = Duration::from_millis(500);

/// Makes the directories of the server and gives them to the workers' user: a worker without root could not
/// make them.
fn make_directories(conf: &Conf, identity: Option<&Identity>) -> Result<(), String> {
    for directory in conf.reach.makes() {
        let name = directory.display();
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        match (made, identity) {
            (Ok(()), Some(identity)) => path::give(directory, identity.uid).map_err(|error| {
                let remedy = match error.raw_os_error() {
                    Some(errno::ELOOP) => ": a link leads to a directory of another user, name that directory itself",
                    Some(_) | None => "",
                };
                format!("chown(\"{name}\", {}) failed {}{remedy}", identity.uid, log::Os(&error))
            })?,
            (Ok(()), None) => {}
            // Without root, the directory may belong to another user. A worker that needs a file there logs the error
            // then.
            (Err(_), None) => {}
            (Err(error), Some(_)) => return Err(format!("mkdir() \"{name}\" failed {}", log::Os(&error))),
        }
    }
    Ok(())
}

/// Raises this process's limit on open files to `worker_rlimit_nofile`, or as far as allowed.
pub fn limits(conf: &Conf) {
    let result = match conf.main.process.nofile {
        Some(files) => process::set_nofile(files),
        None => process::raise_nofile().map(drop),
    };
    if let Err(error) = result {
        log::global(Level::Alert, format_args!("setrlimit(RLIMIT_NOFILE) failed {}", log::Os(&error)));
    }
}

/// Binds the sockets that are not bound yet. Sockets that the file no longer names are left out, which closes them.
fn open_sockets(
    conf: &Conf,
    mut known: HashMap<Address, Vec<Listening>>,
    workers: usize,
) -> Result<HashMap<Address, Vec<Listening>>, String> {
    let mut open = HashMap::new();
    for socket in stream_sockets(conf) {
        let wanted = if socket.options.reuseport { workers.max(1) } else { 1 };
        let mut set = known.remove(&socket.address).unwrap_or_default();
        for listening in &set {
            if let Err(error) = listening.reconfigure(&socket.options) {
                log::global(Level::Alert, format_args!("listen() options failed {}", log::Os(&error)));
            }
        }
        set.truncate(wanted);
        while set.len() < wanted {
            set.push(bind(&socket.address, &socket.options)?);
        }
        open.insert(socket.address.clone(), set);
    }
    Ok(open)
}

/// Binds the UDP sockets that are not bound yet.
fn open_datagrams(conf: &Conf, known: &Datagrams, workers: usize) -> Result<Datagrams, String> {
    let mut open = Datagrams::new();
    for (socket, is_quic) in datagram_sockets(conf) {
        let Some(address) = socket.address.tcp() else { continue };
        let options = DatagramOptions { is_quic, ..datagram_options(&socket.options) };
        let mut set = known.get(&address).cloned().unwrap_or_default();
        // A socket of QUIC stays for as long as the file names its address: a connection id may name it.
        if !is_quic {
            set.truncate(workers);
        }
        let bound = datagrams::bind_more(&mut set, address, &options, workers);
        bound.map_err(|error| format!("bind() to {address} failed {}", log::Os(&error)))?;
        open.insert(address, set);
    }
    Ok(open)
}

/// The options of a UDP socket.
pub fn datagram_options(options: &ListenOptions) -> DatagramOptions {
    DatagramOptions {
        receive_buffer_bytes: options.receive_buffer_bytes,
        send_buffer_bytes: options.send_buffer_bytes,
        ipv6only: options.ipv6only,
        is_quic: false,
    }
}

fn bind(address: &Address, options: &ListenOptions) -> Result<Listening, String> {
    let mut tries = 0;
    loop {
        match listener::bind(address, options) {
            Ok(listening) => return Ok(listening),
            Err(error) => {
                let message = format!("bind() to {address} failed {}", log::Os(&error));
                tries += 1;
                if error.kind() != io::ErrorKind::AddrInUse || tries >= BIND_TRIES {
                    return Err(message);
                }
                log::global(Level::Emerg, format_args!("{message}"));
                std::thread::sleep(BIND_PAUSE);
            }
        }
    }
}
