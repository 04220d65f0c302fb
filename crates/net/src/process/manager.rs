//! The service manager that started weir, if there is one: systemd's `sd_notify` and `sd_listen_fds`.
//!
//! weir tells the manager when it serves, reloads and ends. It gives its listening sockets to the manager's descriptor
//! store (`FileDescriptorStoreMax=`). The sockets then stay open while weir is restarted: a client that connects in that
//! time waits in the kernel's queue. The manager passes the sockets to the next weir, as it passes those of a socket unit.

use crate::Address;
use crate::listener::Listening;
use crate::log::{self, Level, Os};
use sd_notify::NotifyState;
use std::io;
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Duration;

/// The variable with the manager's own socket.
const ENV_SOCKET: &str = "NOTIFY_SOCKET";

/// Variables that the manager means for the process that it started, and not for a process that this one starts. A
/// successor has the watchdog's time (`WATCHDOG_USEC`) too.
const ENV_OWN: [&str; 4] = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_PID"];

/// Removes the manager's words to this process from the environment of a command: a successor speaks to the manager
/// itself.
pub(super) fn unaddress(command: &mut Command) {
    ENV_OWN.iter().for_each(|name| {
        command.env_remove(name);
    });
}

/// Removes all words of the manager from the environment of a command that is not a part of weir's service.
pub(super) fn keep_from_manager(command: &mut Command) {
    unaddress(command);
    command.env_remove(ENV_SOCKET).env_remove("WATCHDOG_USEC");
}

/// The way to the service manager. Without a manager, no call does anything.
///
/// A message that cannot be sent is a line of the error log: weir serves without its manager too.
#[derive(Clone, Copy, Debug)]
pub struct Manager(());

impl Manager {
    /// The manager that the environment names (`NOTIFY_SOCKET`); `None` without one.
    pub fn find() -> Option<Manager> {
        std::env::var_os(ENV_SOCKET).map(|_| Manager(()))
    }

    /// weir serves. `status` is a line for `systemctl status`.
    ///
    /// The message names this process as the main one: after an upgrade (USR2), it is not the one that the manager
    /// started.
    pub fn ready(self, status: &str) {
        told(sd_notify::notify(&[
            NotifyState::MainPid(std::process::id()),
            NotifyState::Ready,
            NotifyState::Status(status),
        ]));
    }

    /// weir reads its configuration again; `ready` says when this has ended.
    pub fn reloading(self) {
        told(NotifyState::monotonic_usec_now().and_then(|now| sd_notify::notify(&[NotifyState::Reloading, now])));
    }

    /// weir ends.
    pub fn stopping(self) {
        told(sd_notify::notify(&[NotifyState::Stopping]));
    }

    /// Another process of the service serves from now on.
    pub fn main_process(self, pid: u32) {
        told(sd_notify::notify(&[NotifyState::MainPid(pid)]));
    }

    /// weir is alive; the manager expects this message at least once in [`Manager::patience`].
    pub fn alive(self) {
        told(sd_notify::notify(&[NotifyState::Watchdog]));
    }

    /// How long the manager waits for [`Manager::alive`] before it restarts weir (`WatchdogSec=`); `None` if it does not.
    pub fn patience(self) -> Option<Duration> {
        sd_notify::watchdog_enabled().filter(|patience| !patience.is_zero())
    }

    /// Gives a socket to the descriptor store. The store keeps each socket once, however often it is given.
    ///
    /// UNIX sockets stay out: when weir ends, it removes their files, and clients find a socket by its file.
    pub fn keep(self, socket: &Listening) {
        if let Some(name) = name(socket.local_addr()) {
            told(sd_notify::notify_with_fds(&[NotifyState::FdStore, NotifyState::FdName(&name)], &[socket.as_fd()]));
        }
    }

    /// Removes the sockets of an address from the descriptor store.
    pub fn forget(self, address: &Address) {
        if let Some(name) = name(address) {
            told(sd_notify::notify(&[NotifyState::FdStoreRemove, NotifyState::FdName(&name)]));
        }
    }

    /// The listening sockets that the manager passed to this process. Only the first call returns them.
    pub fn passed(self) -> Vec<Listening> {
        match sd_notify::listen_fds() {
            Ok(numbers) => numbers.filter_map(Listening::from_number).collect(),
            Err(error) => {
                log::global(Level::Warn, format_args!("LISTEN_FDS ignored {}", Os(&error)));
                Vec::new()
            }
        }
    }
}

/// The name of an address in the store. A name has no colon (sd_notify(3)).
fn name(address: &Address) -> Option<String> {
    address.tcp().map(|address| address.to_string().replace(':', "_"))
}

fn told(result: io::Result<()>) {
    if let Err(error) = result {
        log::global(Level::Warn, format_args!("sd_notify() failed {}", Os(&error)));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_address_has_a_name_without_colons() {
        for (address, expected) in [("127.0.0.1:80", "127.0.0.1_80"), ("[::1]:443", "[__1]_443")] {
            assert_eq!(name(&Address::Tcp(address.parse().unwrap())).as_deref(), Some(expected));
        }
        assert_eq!(name(&Address::Unix("/run/a".into())), None);
    }
}
