//! Replaces the binary without closing a socket.
//!
//! It uses nginx's protocol, so that nginx and weir can replace each other. The new binary starts with the listening
//! sockets open. Their numbers, each followed by a semicolon, are in the environment variable `NGINX`. Two more variables
//! have the UDP sockets of QUIC, and the ways back to the workers of the old binary. A third one has the secret of QUIC: other
//! users cannot read the environment of a process, as they can its command line.

use super::daemon::unmark;
use super::manager::{keep_from_manager, unaddress};
use crate::datagrams::Receiving;
use crate::forward::ForwardEnd;
use crate::listener::Listening;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};

/// The environment variable that lists inherited listening sockets.
pub const ENV_SOCKETS: &str = "NGINX";
/// The one that lists UDP sockets; those of one address are in the order in which they were bound.
pub const ENV_DATAGRAMS: &str = "WEIR_DATAGRAMS";
/// The one that lists an end for each worker of the old binary, which takes the datagrams of its connections.
pub const ENV_FORWARDS: &str = "WEIR_FORWARDS";

/// The one that has a secret of the old binary.
pub const ENV_SECRET: &str = "WEIR_QUIC_SECRET";

/// Starts a new binary that inherits descriptors, by the environment variables that list them, with `more` variables in its
/// environment.
///
/// Returns at once; the caller must wait for the child when SIGCHLD reports its end.
pub fn exec_new_binary(
    program: &OsStr,
    args: &[OsString],
    lists: &[(&str, Vec<BorrowedFd<'_>>)],
    more: &[(&str, String)],
) -> io::Result<Child> {
    let mut command = Command::new(program);
    forget_sockets(&mut command);
    // Our own descriptors are close-on-exec; a dup is not. The copies live until the spawn.
    let mut copies = Vec::new();
    for (name, sockets) in lists {
        let some = sockets.iter().map(rustix::io::dup).collect::<Result<Vec<OwnedFd>, _>>()?;
        let list: String = some.iter().map(|copy| format!("{};", copy.as_raw_fd())).collect();
        command.env(name, list);
        copies.extend(some);
    }
    command.args(args).envs(more.iter().map(|(name, value)| (name, value)));
    unmark(&mut command);
    unaddress(&mut command);
    command.spawn()
}

/// Prepares a command that is neither weir's successor nor a part of its service: a program of the user, or a weir beside
/// another server. It inherits no variable about sockets or about the service manager.
pub fn detach(command: &mut Command) {
    keep_from_manager(command);
    unmark(command);
    forget_sockets(command);
}

/// Keeps from a command that its parent has inherited sockets and a secret.
pub(super) fn forget_sockets(command: &mut Command) {
    for name in [ENV_SOCKETS, ENV_DATAGRAMS, ENV_FORWARDS, ENV_SECRET] {
        command.env_remove(name);
    }
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
    static IS_TAKEN: AtomicBool = AtomicBool::new(false);
    take(&IS_TAKEN, ENV_SOCKETS, Listening::from_number)
}

/// The UDP sockets that the old binary left us; as [`inherited`].
pub fn inherited_datagrams() -> Vec<Receiving> {
    static IS_TAKEN: AtomicBool = AtomicBool::new(false);
    take(&IS_TAKEN, ENV_DATAGRAMS, Receiving::from_number)
}

/// The ways back to the workers of the old binary, by their numbers; as [`inherited`].
pub fn inherited_forwards() -> Vec<ForwardEnd> {
    static IS_TAKEN: AtomicBool = AtomicBool::new(false);
    take(&IS_TAKEN, ENV_FORWARDS, ForwardEnd::from_number)
}

/// The secret that the old binary left us.
pub fn inherited_secret() -> Option<String> {
    std::env::var(ENV_SECRET).ok()
}

fn take<T>(is_taken: &AtomicBool, name: &str, of_number: fn(RawFd) -> Option<T>) -> Vec<T> {
    if is_taken.swap(true, Ordering::SeqCst) {
        return Vec::new();
    }
    std::env::var(name).map_or_else(|_| Vec::new(), |list| parse(&list).into_iter().map_while(of_number).collect())
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
    use crate::datagrams::{self, DatagramOptions};
    use crate::{Address, ListenOptions, listener};
    use std::net::UdpSocket;
    use std::os::fd::{AsFd, IntoRawFd};

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
        for name in [
            "NGINX",
            "WEIR_DATAGRAMS",
            "WEIR_FORWARDS",
            "WEIR_QUIC_SECRET",
            "NOTIFY_SOCKET",
            "LISTEN_FDS",
            "LISTEN_PID",
            "LISTEN_FDNAMES",
            "WATCHDOG_PID",
            "WATCHDOG_USEC",
        ] {
            command.env(name, "1");
        }
        detach(&mut command);
        let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert!(
            ["NGINX=", "WEIR_DATAGRAMS", "WEIR_FORWARDS", "WEIR_QUIC_SECRET", "NOTIFY_", "LISTEN_", "WATCHDOG_"]
                .iter()
                .all(|name| !said.contains(name)),
            "{said}"
        );
    }

    #[test]
    fn a_number_of_another_kind_is_not_taken() {
        let (end, _other) = ForwardEnd::pair().unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (unix, _other) = std::os::unix::net::UnixDatagram::pair().unwrap();
        for number in [end.as_fd().as_raw_fd(), unix.as_raw_fd()] {
            assert!(Receiving::from_number(number).is_none());
        }
        for number in [udp.as_raw_fd(), unix.as_raw_fd()] {
            assert!(ForwardEnd::from_number(number).is_none());
        }
        assert!(udp.local_addr().is_ok() && end.send(b"a").is_ok(), "still ours and open");
        let taken = Receiving::from_number(rustix::io::dup(&udp).unwrap().into_raw_fd()).unwrap();
        assert_eq!(taken.local_addr(), udp.local_addr().unwrap());
        assert!(ForwardEnd::from_number(rustix::io::dup(&end).unwrap().into_raw_fd()).is_some());
    }

    #[test]
    fn the_new_binary_sees_the_sockets() {
        let address = Address::Tcp("127.0.0.1:0".parse().unwrap());
        let socket = listener::bind(&address, &ListenOptions::default()).unwrap();
        let datagrams = datagrams::bind("127.0.0.1:0".parse().unwrap(), &DatagramOptions::default()).unwrap();
        let (end, _other) = ForwardEnd::pair().unwrap();
        // Every number must be an open socket in the child, and no number stands twice.
        let script = r#"
            test -n "$NGINX" -a -n "$WEIR_DATAGRAMS" -a -n "$WEIR_FORWARDS" || exit 2
            IFS=';'
            for fd in $NGINX $WEIR_DATAGRAMS $WEIR_FORWARDS; do
                case $(readlink /proc/self/fd/$fd) in socket:*) ;; *) exit 3 ;; esac
                case ";$seen" in *";$fd;"*) exit 4 ;; esac
                seen="$seen$fd;"
            done
            test "$seen" = "$NGINX$WEIR_DATAGRAMS$WEIR_FORWARDS" || exit 5"#;
        let args = ["-c".into(), script.into()];
        let lists = [
            (ENV_SOCKETS, vec![socket.as_fd(), socket.as_fd()]),
            (ENV_DATAGRAMS, vec![datagrams.as_fd()]),
            (ENV_FORWARDS, vec![end.as_fd()]),
        ];
        let mut child = exec_new_binary("/bin/sh".as_ref(), &args, &lists, &[]).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}
