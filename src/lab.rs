//! `weir lab`: experiments on configurations. Flags, files, exit codes; the work is in `weir_lab`.

mod ab;
mod capacity;
mod flags;
mod progress;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use weir_lab::{report, stack, store};
use weir_net::process::{self, Signal};
use weir_net::worker;

pub use flags::LabArgs;
use flags::What;

/// Exit codes of `weir lab`.
mod exit {
    /// The change is shown to be worse, or to trade one thing for another.
    pub const REGRESSION: u8 = 1;
    /// It could not be done.
    pub const FAILED: u8 = 2;
    /// Nothing may be said.
    pub const NO_VERDICT: u8 = 3;
    /// Ended by a signal.
    pub const INTERRUPTED: u8 = 130;
}

/// Runs `weir lab`.
pub fn main(args: LabArgs) -> ExitCode {
    let code = match args.what {
        What::Ab(args) => ab::run(&args),
        What::Capacity(args) => capacity::run(&args),
        What::Report { run, store, html } => show(&store, &run, html.as_deref()),
        What::Runs { store } => Ok(list(&store)),
        What::Words => {
            print!("{}", weir_lab::verdict::table());
            Ok(0)
        }
        What::Block => Ok(stack::keeper::keep()),
    };
    ExitCode::from(code.unwrap_or_else(|message| {
        eprintln!("weir lab: {message}");
        exit::FAILED
    }))
}

fn show(store: &Path, run: &str, html: Option<&Path>) -> Result<u8, String> {
    let run = store::read(store, run)?;
    print!("{}", report::text(&run));
    html.map_or(Ok(()), |path| write(path, &weir_lab::html::page(&run)))?;
    Ok(0)
}

fn list(store: &Path) -> u8 {
    for (id, kind, verdict) in store::list(store) {
        println!("{id}  {kind:<8}  {verdict}");
    }
    0
}

/// Writes a file that a user asked for.
fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Becomes true at the first signal to end; the second ends this process, and with it everything it started.
fn stop_on_signal() -> Result<Arc<AtomicBool>, String> {
    let said = |error| format!("signals cannot be caught: {error}");
    let signals = process::signals().map_err(said)?;
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    let wait = move || {
        for _ in signals.filter(|signal| matches!(signal, Signal::Int | Signal::Term | Signal::Quit)) {
            if told.swap(true, Ordering::Relaxed) {
                std::process::exit(i32::from(exit::INTERRUPTED));
            }
        }
    };
    worker::block_aside("signals", wait).map_err(said)?;
    Ok(stop)
}
