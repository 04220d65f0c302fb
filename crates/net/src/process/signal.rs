//! Signals, as a plain iterator for the control thread.
//!
//! nginx's meanings are the caller's business; here they are only delivered, in
//! order of arrival, several of one kind possibly as one.

use rustix::process::{Pid, kill_process};
use signal_hook::consts as c;
use signal_hook::iterator;
use std::io;

/// The signals weir listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// Quit gracefully.
    Quit,
    /// Quit at once.
    Term,
    /// Quit at once (from the terminal).
    Int,
    /// Reload the configuration.
    Hup,
    /// Open the log files again.
    Usr1,
    /// Start a new binary.
    Usr2,
    /// End the workers gracefully, stay.
    Winch,
    /// A process we started has ended.
    Child,
}

impl Signal {
    /// All of them.
    pub const ALL: [Signal; 8] = [
        Signal::Quit,
        Signal::Term,
        Signal::Int,
        Signal::Hup,
        Signal::Usr1,
        Signal::Usr2,
        Signal::Winch,
        Signal::Child,
    ];

    /// `SIGHUP` and so on.
    pub const fn name(self) -> &'static str {
        match self {
            Signal::Quit => "SIGQUIT",
            Signal::Term => "SIGTERM",
            Signal::Int => "SIGINT",
            Signal::Hup => "SIGHUP",
            Signal::Usr1 => "SIGUSR1",
            Signal::Usr2 => "SIGUSR2",
            Signal::Winch => "SIGWINCH",
            Signal::Child => "SIGCHLD",
        }
    }

    /// The kernel's number.
    pub const fn number(self) -> i32 {
        match self {
            Signal::Quit => c::SIGQUIT,
            Signal::Term => c::SIGTERM,
            Signal::Int => c::SIGINT,
            Signal::Hup => c::SIGHUP,
            Signal::Usr1 => c::SIGUSR1,
            Signal::Usr2 => c::SIGUSR2,
            Signal::Winch => c::SIGWINCH,
            Signal::Child => c::SIGCHLD,
        }
    }

    fn from_number(number: i32) -> Option<Signal> {
        Signal::ALL.into_iter().find(|s| s.number() == number)
    }

    fn to_kernel(self) -> rustix::process::Signal {
        use rustix::process::Signal as K;
        match self {
            Signal::Quit => K::QUIT,
            Signal::Term => K::TERM,
            Signal::Int => K::INT,
            Signal::Hup => K::HUP,
            Signal::Usr1 => K::USR1,
            Signal::Usr2 => K::USR2,
            Signal::Winch => K::WINCH,
            Signal::Child => K::CHILD,
        }
    }
}

/// From now on the signals do not end the process but come out here.
pub fn signals() -> io::Result<Signals> {
    let inner = iterator::Signals::new(Signal::ALL.map(Signal::number))?;
    Ok(Signals { inner })
}

/// A blocking iterator; it ends when its handle says so.
pub struct Signals {
    inner: iterator::Signals,
}

impl Signals {
    /// What another thread ends the iterator with.
    pub fn handle(&self) -> SignalsHandle {
        SignalsHandle(self.inner.handle())
    }
}

impl Iterator for Signals {
    type Item = Signal;

    fn next(&mut self) -> Option<Signal> {
        self.inner.forever().find_map(Signal::from_number)
    }
}

/// Ends a [`Signals`] from another thread.
#[derive(Clone, Debug)]
pub struct SignalsHandle(iterator::Handle);

impl SignalsHandle {
    /// The iterator returns `None` from now on.
    pub fn close(&self) {
        self.0.close();
    }
}

/// Sends a signal to a process; `ESRCH` if there is none with this id.
pub fn send_signal(pid: u32, signal: Signal) -> io::Result<()> {
    let pid = i32::try_from(pid)
        .ok()
        .filter(|&pid| pid > 0)
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    Ok(kill_process(pid, signal.to_kernel())?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_signal_sent_to_us_comes_out() {
        let mut signals = signals().unwrap();
        let handle = signals.handle();
        send_signal(std::process::id(), Signal::Usr1).unwrap();
        // Children of other tests may end meanwhile.
        let got = signals.find(|&signal| signal != Signal::Child);
        assert_eq!(got, Some(Signal::Usr1));
        handle.close();
        assert_eq!(signals.find(|&signal| signal != Signal::Child), None);
    }

    #[test]
    fn impossible_targets_are_refused() {
        assert!(send_signal(0, Signal::Hup).is_err());
        assert!(send_signal(u32::MAX, Signal::Hup).is_err());
    }

    #[test]
    fn sigpipe_is_ignored() {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = u64::from_str_radix(line.unwrap().trim(), 16).unwrap();
        assert_ne!(mask & 1 << (c::SIGPIPE - 1), 0);
    }
}
