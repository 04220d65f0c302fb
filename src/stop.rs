//! Ends a verb by a signal: the first one asks it to end, the second one ends the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use weir_net::process::{self, Signal};
use weir_net::worker;
use weir_words::{Said, say};

use crate::texts;

/// The exit code of a verb that a signal ended.
pub const INTERRUPTED: u8 = 130;

/// Returns a flag that becomes true at the first signal to end. The second signal ends this process and all its
/// children.
pub fn on_signal() -> Result<Arc<AtomicBool>, Said> {
    let said = |error: std::io::Error| say!(texts::SIGNALS, error.to_string());
    let signals = process::signals().map_err(said)?;
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    let wait = move || {
        for _ in signals.filter(|signal| matches!(signal, Signal::Int | Signal::Term | Signal::Quit)) {
            if told.swap(true, Ordering::Relaxed) {
                std::process::exit(i32::from(INTERRUPTED));
            }
        }
    };
    worker::block_aside("signals", wait).map_err(said)?;
    Ok(stop)
}
