//! The process as a whole: the work of the control thread before the workers start, while they run, and after they end.
//!
//! Nothing here is on the data path. We never fork: a daemon and a new binary are started by exec (threads do not
//! survive a fork). SIGPIPE is ignored by Rust's own start-up, so a write to a closed connection returns an error and
//! does not kill the process.

mod channel;
mod child;
mod daemon;
mod enter;
mod limits;
mod manager;
mod pid;
mod places;
mod privilege;
mod roles;
mod sandbox;
mod secret;
mod signal;
mod stack;
mod terminal;
mod upgrade;

pub use channel::{Channel, ChannelMessage, Life};
pub use child::{continue_group, end_group, kill_group, spawn_on, stop_group};
pub use daemon::{Daemon, Ready, daemonise, is_background, redirect_stderr};
pub use enter::{enter, mount_empty};
pub use limits::{nofile, nofile_hard, raise_nofile, set_nofile, share_nofile};
pub use manager::Manager;
pub use pid::{read_pid_file, remove_pid_file, rename_pid_file, try_pid_file, write_pid_file};
pub use places::restrict_files;
pub use privilege::{
    Identity, confine, drop_privileges_this_thread, effective_user, forbid_more_rights, is_confined, is_root, look_up,
    look_up_under, open_files_as, starter,
};
pub use roles::{Role, resolve, resolve_elsewhere, start_as, start_server};
pub use sandbox::restrict_calls;
pub use secret::kept_elsewhere;
pub use signal::{Sender, Signal, Signals, SignalsHandle, ignore_signals, send_signal, signals};
pub use stack::stack_of;
pub use terminal::terminal_size;
pub use upgrade::{
    ENV_DATAGRAMS, ENV_FORWARDS, ENV_SECRET, ENV_SOCKETS, detach, exec_new_binary, inherited, inherited_datagrams,
    inherited_forwards, inherited_secret, is_successor,
};

/// Whether an error means that the process or the machine has no free file descriptor.
pub fn is_out_of_files(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}
