//! Delivers signals to the control thread through an iterator.
//!
//! The caller gives signals nginx's meanings; this module only delivers them. Several signals of one kind may arrive
//! as one.
//!
//! The kernel lets a process signal any thread of its own user, and workers are threads of the user that `user`
//! names. So weir checks the sender of a signal. It delivers signals of the kernel (a terminal's keys), of root, of
//! the user who started this process and of the process itself. It reports other signals once and ignores them. No
//! process can check SIGKILL.

use super::privilege::starter;
use crate::sys;
use rustix::process::{Pid, kill_process};
use signal_hook::consts as c;
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::backend;
use signal_hook::iterator::exfiltrator::WithRawSiginfo;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

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
    /// A process that we started has ended.
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

    /// Its name, such as `SIGHUP`.
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

/// Catches the signals: they do not end the process any more, and this iterator returns them.
///
/// Call before any thread is started. The parent may have blocked the signals: nginx's master does, and its successor
/// inherits this.
pub fn signals() -> io::Result<Signals> {
    // Read while this thread still has the user who started it.
    starter();
    sys::unblock(&Signal::ALL.map(Signal::number))?;
    let inner = SignalsInfo::<WithRawSiginfo>::new(Signal::ALL.map(Signal::number))?;
    Ok(Signals { inner, arrived: VecDeque::new(), refused: Vec::new(), tell: |_, _| {} })
}

/// Ignores the signals that weir listens to: the keeper of this process answers them. A terminal sends its keys to both.
///
/// A program that this process starts does not inherit this. Call before any thread is started.
pub fn ignore_signals() -> io::Result<()> {
    let nobody_looks = Arc::new(AtomicBool::new(false));
    let mut all = Signal::ALL.into_iter().filter(|signal| *signal != Signal::Child);
    all.try_for_each(|signal| signal_hook::flag::register(signal.number(), nobody_looks.clone()).map(drop))
}

/// A blocking iterator; it ends when its handle says so.
pub struct Signals {
    inner: SignalsInfo<WithRawSiginfo>,
    /// At most one of each kind.
    arrived: VecDeque<Signal>,
    /// Kinds of refused signals that were already reported.
    refused: Vec<Signal>,
    tell: fn(Signal, Sender),
}

/// The sender of a signal, as the kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// `si_code`: the way it was sent.
    pub code: i32,
    /// The process; 0 for one outside this namespace of processes. Only some codes have it.
    pub pid: i32,
    /// Its real user. Only some codes have it.
    pub uid: u32,
}

/// `kill()`, `tgkill()`, the kernel (asm-generic/siginfo.h). A process may forge all other codes, including the user.
const SI_USER: i32 = 0;
const SI_TKILL: i32 = -6;
const SI_KERNEL: i32 = 0x80;

impl Sender {
    /// Whether weir acts on a signal of this sender.
    fn may(self, is_mapped: bool) -> bool {
        let is_here = u32::try_from(self.pid).is_ok_and(|pid| pid == std::process::id());
        match self.code {
            SI_KERNEL => true,
            // Inside a container, the user of a process outside has no number: this must be the user who runs the
            // container.
            SI_USER | SI_TKILL => {
                is_here || [0, starter()].contains(&self.uid) || (is_mapped && self.pid == 0 && self.uid == NOBODY)
            }
            _ => false,
        }
    }
}

/// The number for all users without a number in a user namespace (`/proc/sys/kernel/overflowuid`).
const NOBODY: u32 = 65_534;

/// Whether users have other numbers in this process than on the machine: a user namespace.
fn is_mapped() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    !map.split_ascii_whitespace().eq(["0", "0", "4294967295"])
}

impl Signals {
    /// A handle with which another thread ends the iterator.
    pub fn handle(&self) -> SignalsHandle {
        SignalsHandle(self.inner.handle())
    }

    /// Calls `tell` for the first signal of each kind that is refused because of its sender.
    #[must_use]
    pub fn telling(self, tell: fn(Signal, Sender)) -> Signals {
        Signals { tell, ..self }
    }
}

impl Iterator for Signals {
    type Item = Signal;

    fn next(&mut self) -> Option<Signal> {
        loop {
            if let Some(signal) = self.arrived.pop_front() {
                return Some(signal);
            }
            if self.inner.handle().is_closed() {
                return None;
            }
            for info in self.inner.wait() {
                let Some(signal) = Signal::from_number(info.si_signo) else { continue };
                let (pid, uid) = sys::sender(&info);
                let sender = Sender { code: info.si_code, pid, uid };
                // The kernel reports the end of a child with its own codes. A forged signal does no harm: weir only
                // checks its children then.
                if signal == Signal::Child || sender.may(is_mapped()) {
                    if !self.arrived.contains(&signal) {
                        self.arrived.push_back(signal);
                    }
                } else if !self.refused.contains(&signal) {
                    self.refused.push(signal);
                    (self.tell)(signal, sender);
                }
            }
        }
    }
}

/// Ends a [`Signals`] from another thread.
#[derive(Clone, Debug)]
pub struct SignalsHandle(backend::Handle);

impl SignalsHandle {
    /// Whether the iterator returns nothing any more.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Makes the iterator return `None` from here on.
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
    fn senders_are_root_whoever_started_us_and_we_ourselves() {
        let by = |code, pid, uid| Sender { code, pid, uid };
        let (own, starter) = (std::process::id() as i32, starter());
        let stranger = starter + 4711;
        for (sender, is_mapped, may) in [
            (by(SI_USER, 77, 0), false, true),
            (by(SI_TKILL, 77, starter), false, true),
            (by(SI_TKILL, own, stranger), false, true),
            (by(SI_KERNEL, 0, stranger), false, true),
            (by(SI_USER, 77, stranger), false, false),
            (by(SI_TKILL, 77, stranger), false, false),
            // The sender is outside this process namespace: judged by its user, and if that has no number, it is the
            // user who runs the container.
            (by(SI_USER, 0, stranger), true, false),
            (by(SI_USER, 0, NOBODY), false, starter == NOBODY),
            (by(SI_USER, 0, NOBODY), true, true),
            (by(SI_USER, 77, NOBODY), true, starter == NOBODY),
            // sigqueue(): the sender chose these values.
            (by(-1, 77, 0), false, false),
            (by(-2, 0, 0), false, false),
        ] {
            assert_eq!(sender.may(is_mapped), may, "{sender:?} {is_mapped}");
        }
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
