//! Replaces the binary without closing a listening socket.
//!
//! It uses nginx's protocol, so that nginx and weir can replace each other. The new binary starts with the listening
//! sockets open. Their numbers, each followed by a semicolon, are in the environment variable `NGINX`.

use super::daemon::unmark;
use super::manager::{keep_from_manager, unaddress};
use crate::listener::Listening;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};

/// The environment variable that lists inherited sockets.
pub const ENV_SOCKETS: &str = "NGINX";

/// Starts a new binary that inherits the sockets, with `more` variables in its environment.
///
/// Returns at once; the caller must wait for the child when SIGCHLD reports its end.
pub fn exec_new_binary(
    program: &OsStr,
    args: &[OsString],
    sockets: &[Listening],
    more: &[(&str, String)],
) -> io::Result<Child> {
    // Our own descriptors are close-on-exec; a dup is not. The copies live until the spawn.
    let copies = sockets.iter().map(|socket| rustix::io::dup(socket.as_fd())).collect::<Result<Vec<OwnedFd>, _>>()?;
    let mut list = String::new();
    for copy in &copies {
        list.push_str(&format!("{};", copy.as_raw_fd()));
    }
    let mut command = Command::new(program);
    command.args(args).env(ENV_SOCKETS, list).envs(more.iter().map(|(name, value)| (name, value)));
    unmark(&mut command);
    unaddress(&mut command);
    command.spawn()
}

/// Prepares a command that is neither weir's successor nor a part of its service: a program of the user, or a weir beside
/// another server. It inherits no variable about sockets or about the service manager.
pub fn detach(command: &mut Command) {
    keep_from_manager(command);
    unmark(command);
    command.env_remove(ENV_SOCKETS);
}

/// Whether an old binary started us as its replacement: it is already in the background, and so are we.
pub fn is_successor() -> bool {
    std::env::var_os(ENV_SOCKETS).is_some()
}

/// The listening sockets that the old binary left us; empty after a normal start.
///
/// Works once per process: a second call returns none. A number that is not an open listening socket ends the list,
/// as nginx does ("ignoring the rest").
pub fn inherited() -> Vec<Listening> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Ordering::SeqCst) {
        return Vec::new();
    }
    match std::env::var(ENV_SOCKETS) {
        Ok(list) => parse(&list).into_iter().map_while(Listening::from_number).collect(),
        Err(_) => Vec::new(),
    }
}

/// More sockets than any configuration listens on.
const SOCKETS_MAX: usize = 65_536;

fn parse(list: &str) -> Vec<RawFd> {
    list.split_terminator([';', ':'])
        .map_while(|number| number.parse().ok().filter(|&fd| fd > 2))
        .take(SOCKETS_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{Address, ListenOptions, listener};

    #[test]
    fn the_list_ends_at_nonsense() {
        assert_eq!(parse("3;4;17;"), [3, 4, 17]);
        assert_eq!(parse("3;4"), [3, 4]);
        assert_eq!(parse("3;x;4;"), [3]);
        assert_eq!(parse("2;3;"), [0i32; 0]);
        assert_eq!(parse(""), [0i32; 0]);
        assert_eq!(parse("-1;"), [0i32; 0]);
    }

    #[test]
    fn a_number_that_is_no_listening_socket_is_not_taken() {
        assert!(Listening::from_number(999_999).is_none());
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(Listening::from_number(file.as_raw_fd()).is_none());
        assert!(rustix::fs::fstat(&file).is_ok(), "still ours and open");
    }

    #[test]
    fn a_detached_command_knows_nothing_of_the_service() {
        let mut command = Command::new("env");
        for name in
            ["NGINX", "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "WATCHDOG_PID", "WATCHDOG_USEC"]
        {
            command.env(name, "1");
        }
        detach(&mut command);
        let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert!(["NGINX=", "NOTIFY_", "LISTEN_", "WATCHDOG_"].iter().all(|name| !said.contains(name)), "{said}");
    }

    #[test]
    fn the_new_binary_sees_the_sockets() {
        let address = Address::Tcp("127.0.0.1:0".parse().unwrap());
        let socket = listener::bind(&address, &ListenOptions::default()).unwrap();
        // Every number in $NGINX must be an open socket in the child.
        let script = r#"
            test -n "$NGINX" || exit 2
            IFS=';'
            for fd in $NGINX; do
                case $(readlink /proc/self/fd/$fd) in socket:*) ;; *) exit 3 ;; esac
            done"#;
        let args = ["-c".into(), script.into()];
        let mut child = exec_new_binary("/bin/sh".as_ref(), &args, &[socket.clone(), socket], &[]).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}
