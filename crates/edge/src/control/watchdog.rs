//! The service manager's watchdog (`WatchdogSec=`): weir says that it is alive only while every worker answers.
//!
//! A worker that hangs serves nobody, and its clients wait. The manager then ends weir and starts it again.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use weir_http::colleagues::Colleagues;
use weir_net::log::{self, Level};
use weir_net::process::Manager;
use weir_net::worker;

/// weir asks this often in the time that the manager waits: one late answer is no reason to restart.
const ROUNDS: u32 = 4;

/// Starts a thread that asks the workers and answers the manager, if the manager wants to know.
pub fn start(manager: Manager, colleagues: Colleagues) -> io::Result<()> {
    let Some(patience) = manager.patience() else { return Ok(()) };
    worker::block_aside("watchdog", move || {
        loop {
            let silent = ask(&colleagues, patience / ROUNDS);
            if silent.is_empty() {
                manager.alive();
            }
            for seat in silent {
                log::global(
                    Level::Alert,
                    format_args!(
                        "worker {seat} has not answered for {} ms; the service manager restarts weir after {} ms \
                         without an answer",
                        (patience / ROUNDS).as_millis(),
                        patience.as_millis()
                    ),
                );
            }
        }
    })
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
