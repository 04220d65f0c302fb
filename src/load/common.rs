//! The parts that every kind of run has: its id, its environment, a time from a flag, and the end by a signal.

use std::time::Duration;

use weir_load::run::RunStop;
use weir_load::{duration, random, texts};
use weir_net::process::{self, Signal};
use weir_net::{clock, worker};
use weir_words::{Said, Text, say};

use super::exit;
use super::flags::RunArgs;

/// `t` and three random parts, like Artillery's ids.
pub fn test_run_id() -> String {
    const LETTERS: &[u8] = b"3456789abcdefghjkmnpqrtwxyz";
    let part =
        |length| -> String { (0..length).map(|_| random::one_of(LETTERS).copied().map_or('a', char::from)).collect() };
    format!("t{}_{}_{}", part(4), part(29), part(4))
}

/// The facts in which environments can differ, as name and value; a run of a URL has no seed.
pub fn environment(args: &RunArgs, workers: usize, seed: Option<u64>) -> Vec<(String, String)> {
    let read = |path: &str| std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
    vec![
        ("weir".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("host".to_owned(), read("/proc/sys/kernel/hostname")),
        ("kernel".to_owned(), read("/proc/sys/kernel/osrelease")),
        ("cpus".to_owned(), weir_host::effective_cpus().to_string()),
        ("workers".to_owned(), workers.to_string()),
        ("seed".to_owned(), seed.map(|seed| seed.to_string()).unwrap_or_default()),
        ("environment".to_owned(), args.environment.clone().unwrap_or_default()),
    ]
}

/// The time in a flag; the error names the flag.
pub fn time(text: &str, flag: &str) -> Result<Duration, Said> {
    duration::phase(&text.into()).map(|time| time.time).ok_or_else(|| say!(texts::BAD_TIME, flag, text))
}

/// The reason for an incomplete run that a signal ended.
pub const STOPPED: Text = texts::STOPPED;

/// A second signal within this time counts as the first one repeated: coreutils' `timeout` sends two, and npm passes
/// on a signal that the terminal has sent already.
const SAME_WISH: Duration = Duration::from_millis(500);

/// Stops the run at the first signal; ends the process at a second one.
pub fn stop_on_signal(stop: RunStop) -> Result<(), Said> {
    let failed = |error: std::io::Error| say!(crate::texts::SIGNALS, error.to_string());
    let signals = process::signals().map_err(failed)?;
    let wait = move || {
        let mut told = None;
        for _ in signals.filter(|signal| matches!(signal, Signal::Int | Signal::Term | Signal::Quit)) {
            let now = clock::precise();
            match told {
                None => {
                    told = Some(now);
                    stop.stop();
                }
                Some(first) if now - first < SAME_WISH => {}
                // This is a separate second signal: end at once.
                Some(_) => std::process::exit(i32::from(exit::INTERRUPTED)),
            }
        }
    };
    worker::block_aside("signals", wait).map_err(failed)
}
