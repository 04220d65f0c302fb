//! Asks the workers whether they answer. The keeper replaces a server whose worker hangs: such a worker serves nobody, and
//! its clients wait. systemd's watchdog (`WatchdogSec=`) hears of each round in which all have answered.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use weir_http::hold::colleagues::Colleagues;
use weir_net::log::{self, Level};
use weir_net::{process, worker};

/// Starts a thread that asks the workers, waits, and tells the seats of those that have not answered. It ends with the
/// process.
pub fn start(
    colleagues: Colleagues,
    wait: Duration,
    mut tell: impl FnMut(Vec<usize>) + Send + 'static,
) -> io::Result<()> {
    worker::block_aside("watchdog", move || {
        let mut known = Vec::new();
        loop {
            let silent = ask(&colleagues, wait);
            silent.iter().filter(|seat| !known.contains(*seat)).for_each(|seat| log_stack(*seat));
            tell(silent.clone());
            known = silent;
        }
    })
}

/// Logs the stack of a worker that has just become silent.
fn log_stack(seat: usize) {
    let name = format!("worker {seat}");
    match process::stack_of(&name) {
        Some(stack) => {
            log::global(Level::Alert, format_args!("{name} does not answer; its stack: {}", stack.join(" ")))
        }
        None => log::global(Level::Alert, format_args!("{name} does not answer, and does not run")),
    }
}

/// Asks every worker and waits: the seats of the workers that have not answered and whose threads still run.
fn ask(colleagues: &Colleagues, wait: Duration) -> Vec<usize> {
    let answered = Arc::new(Mutex::new(Vec::new()));
    let asked = colleagues.seats();
    for seat in asked.iter().copied() {
        let answered = answered.clone();
        colleagues.run(seat, move || answered.lock().unwrap_or_else(PoisonError::into_inner).push(seat));
    }
    std::thread::sleep(wait);
    let answered = answered.lock().unwrap_or_else(PoisonError::into_inner);
    let running = colleagues.seats();
    asked.into_iter().filter(|seat| !answered.contains(seat) && running.contains(seat)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_worker_that_hangs_is_named_until_it_goes_on_or_ends() {
        let (colleagues, wait) = (Colleagues::default(), Duration::from_millis(200));
        let workers: Vec<_> =
            (0..2).map(|seat| (seat, worker::start(&format!("w{seat}"), None, || {}).unwrap())).collect();
        workers.iter().for_each(|(seat, remote)| colleagues.add(*seat, remote.clone()));
        assert!(ask(&colleagues, wait).is_empty());
        let (go, gate) = mpsc::channel::<()>();
        workers[1].1.run(move || {
            let _ = gate.recv();
        });
        assert_eq!(ask(&colleagues, wait), [1]);
        drop(go);
        assert!(ask(&colleagues, wait).is_empty());
        for (_, remote) in &workers {
            remote.stop();
            remote.join();
        }
        assert!(ask(&colleagues, wait).is_empty());
    }
}
