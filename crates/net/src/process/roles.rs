//! The processes that a keeper starts from its own file: the server, a resolver, and one that becomes a program of the user.
//!
//! They run the keeper's command line, with a marked environment and their end of a channel as standard input.

use super::channel::Channel;
use super::daemon::{ENV_ROLE, is_background, unmark};
use super::manager::keep_from_manager;
use super::privilege::{Identity, confine, drop_privileges_this_thread, is_root};
use super::sandbox::restrict_calls;
use super::upgrade::forget_sockets;
use crate::log;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::net::{SocketType, sockopt};
use rustix::stdio;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SERVER: &str = "server";
const RESOLVER: &str = "resolver";
const PROGRAM: &str = "program";

/// Begins an answer that is not an error.
const FOUND: &str = "found\n";

/// A server takes each order in this time.
const ORDER_PATIENCE: Duration = Duration::from_secs(10);

/// The system's resolver gives up earlier, unless `resolv.conf` has many servers.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);

/// The user and group of the resolver: Linux's number for nobody.
const NOBODY: u32 = 65_534;

/// Whether this program knows these roles: a test does not.
static HAS_ROLES: AtomicBool = AtomicBool::new(false);

/// This process's own file, also after another file has taken its name.
const OWN_FILE: &str = "/proc/self/exe";

/// A command that runs this process's own file again, with its arguments, and shows `title` in place of its name.
fn own_command(title: &str) -> Command {
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_default();
    let file = if Path::new(OWN_FILE).exists() { OsString::from(OWN_FILE) } else { name };
    let mut command = Command::new(file);
    command.arg0(title).args(args);
    command
}

/// Starts this program again in a role, with its end of a channel as standard input.
fn start(role: &str, title: &str) -> io::Result<(Child, Channel)> {
    start_with(role, own_command(title))
}

fn start_with(role: &str, mut command: Command) -> io::Result<(Child, Channel)> {
    let (here, there) = Channel::pair()?;
    command.stdin(Stdio::from(there.into_fd()));
    // Somebody may wait until the terminal of a process that goes into the background is closed.
    if is_background() {
        command.stdout(Stdio::null());
        if let Some(file) = log::last_words() {
            command.stderr(file.try_clone()?);
        }
    }
    unmark(&mut command);
    keep_from_manager(&mut command);
    forget_sockets(&mut command);
    command.env(ENV_ROLE, role);
    Ok((command.spawn()?, here))
}

/// Starts the server, which shows `title` as its name.
///
/// # Errors
/// The process cannot be started.
pub fn start_server(title: &str) -> io::Result<(Child, Channel)> {
    let (child, channel) = start(SERVER, title)?;
    // A server that stands still must not hold up its keeper.
    channel.set_patience(ORDER_PATIENCE, false)?;
    Ok((child, channel))
}

/// Starts a program as another user, as the leader of a process group. No thread of this process becomes that user: a process of
/// the user could signal it. `words` are the program, a full path, and its arguments.
///
/// # Errors
/// The process cannot be started; the program ends with code 127 if it cannot.
pub fn start_as(identity: &Identity, words: &[String]) -> io::Result<Child> {
    if !HAS_ROLES.load(Ordering::Relaxed) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let mut command = own_command("weir: program");
    command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
    let (child, channel) = start_with(PROGRAM, command)?;
    channel.set_patience(ORDER_PATIENCE, false)?;
    let numbers = [identity.uid, identity.gid].into_iter().chain(identity.groups.iter().copied());
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    let message = [numbers.join(" "), words.join("\0")].join("\0");
    channel.send(message.as_bytes(), &[])?;
    Ok(child)
}

/// Becomes a program of a user; returns only if that fails.
fn become_program(channel: &Channel) -> io::Result<()> {
    let bad = || io::Error::from(io::ErrorKind::InvalidData);
    let (message, _) = channel.receive_small()?.ok_or_else(bad)?;
    let message = String::from_utf8(message).map_err(|_| bad())?;
    let mut parts = message.split('\0');
    let numbers: Option<Vec<u32>> =
        parts.next().map(|numbers| numbers.split(' ').filter_map(|number| number.parse().ok()).collect());
    let (Some([uid, gid, groups @ ..]), Some(program)) = (numbers.as_deref(), parts.next()) else { return Err(bad()) };
    drop_privileges_this_thread(&Identity { uid: *uid, gid: *gid, groups: groups.to_vec(), keeps_raw: false })?;
    let mut command = Command::new(program);
    command.args(parts).stdin(Stdio::null());
    unmark(&mut command);
    Err(command.exec())
}

/// Asks another process for the addresses of a host.
pub type HostLookup = fn(&str) -> io::Result<Vec<IpAddr>>;

static ELSEWHERE: OnceLock<HostLookup> = OnceLock::new();

/// From now on, [`resolve`] calls `ask`: this process may not read the files of the system's resolver. The first call counts.
pub fn resolve_elsewhere(ask: HostLookup) {
    let _ = ELSEWHERE.set(ask);
}

/// The addresses of a host, by the system's resolver. If this process is root, another one without root asks, because an
/// answer comes from the network.
///
/// # Errors
/// The resolver's, as a text.
pub fn resolve(host: &str) -> io::Result<Vec<IpAddr>> {
    if let Ok(ip) = host.parse() {
        return Ok(vec![ip]);
    }
    if let Some(ask) = ELSEWHERE.get() {
        return ask(host);
    }
    if !is_root() || !HAS_ROLES.load(Ordering::Relaxed) {
        return addresses(host);
    }
    let (mut child, channel) = start(RESOLVER, "weir: resolver")?;
    channel.set_patience(ANSWER_PATIENCE, true)?;
    let asked = channel.send(host.as_bytes(), &[]).and_then(|()| channel.receive_small());
    drop(channel);
    // It has answered, or has nothing to say any more.
    let _ = child.kill();
    child.wait()?;
    let answer = asked?.ok_or_else(|| io::Error::other("the resolver ended without an answer"))?;
    let answer = String::from_utf8_lossy(&answer.0).into_owned();
    match answer.strip_prefix(FOUND) {
        Some(found) => Ok(found.lines().filter_map(|line| line.parse().ok()).collect()),
        None => Err(io::Error::other(answer)),
    }
}

fn addresses(host: &str) -> io::Result<Vec<IpAddr>> {
    Ok((host, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
}

/// The role in which a keeper has started this process. A program calls this first, before it starts a thread; from then
/// on it can start itself in these roles.
#[derive(Debug)]
pub enum Role {
    /// None: somebody has started it.
    Own,
    /// The server; this is its channel to the keeper.
    Server(Channel),
    /// The resolver, which has answered: the process ends.
    Resolver,
    /// A program of the user, which could not be started: the process ends.
    Program,
}

impl Role {
    /// Finds it out. A second call says [`Role::Own`].
    ///
    /// The mark in the environment alone is no proof: a process that the server starts may inherit it.
    pub fn find() -> Role {
        HAS_ROLES.store(true, Ordering::Relaxed);
        match std::env::var(ENV_ROLE).as_deref() {
            Ok(SERVER) => channel().map_or(Role::Own, Role::Server),
            Ok(RESOLVER) => channel().map_or(Role::Own, |channel| {
                // The keeper sees that the channel is closed.
                let _ = answer(&channel);
                Role::Resolver
            }),
            Ok(PROGRAM) => channel().map_or(Role::Own, |channel| {
                // A shell's code for the same: nobody reads the reason.
                let _ = become_program(&channel);
                Role::Program
            }),
            Ok(_) | Err(_) => Role::Own,
        }
    }
}

/// Answers one question, as nobody.
fn answer(channel: &Channel) -> io::Result<()> {
    let nobody = Identity { uid: NOBODY, gid: NOBODY, groups: vec![NOBODY], keeps_raw: false };
    confine(Some(&nobody))?;
    // A kernel without seccomp has no such restriction.
    let _ = restrict_calls();
    let (host, _) = channel.receive_small()?.unwrap_or_default();
    let found = match addresses(&String::from_utf8_lossy(&host)) {
        Ok(found) => found.iter().fold(FOUND.to_owned(), |text, ip| format!("{text}{ip}\n")),
        Err(error) => error.to_string(),
    };
    channel.send(found.as_bytes(), &[])
}

/// Standard input, if it is a channel.
fn channel() -> Option<Channel> {
    if sockopt::socket_type(stdio::stdin()).ok()? != SocketType::SEQPACKET {
        return None;
    }
    let channel = fcntl_dupfd_cloexec(stdio::stdin(), 3).ok()?;
    stdio::dup2_stdin(File::open("/dev/null").ok()?).ok()?;
    Some(Channel::of(channel))
}
