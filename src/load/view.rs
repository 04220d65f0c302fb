//! The live view on stderr, and lines for stdout that are printed between two drawings.

use std::io::{IsTerminal, Write};

use weir_load::output::live::{LiveProgress, LiveView, Screen};
use weir_load::record::Merger;
use weir_net::process::terminal_size;
use weir_words::Language;

/// Largest number of bytes that wait for the next drawing; more are printed at once.
const WAITING_MAX: usize = 64 * 1024;

/// Prints to stdout. If stderr is a terminal, draws a view below.
pub(super) struct View {
    /// `None`: no view is shown.
    live: Option<LiveView>,
    /// True if stdout is a terminal too; then its lines are printed between the drawings.
    shares: bool,
    /// Lines for stdout that wait for the next drawing. Drawing again after each line would flood the terminal.
    waiting: String,
    language: Language,
}

impl View {
    /// The view of this process's terminal. No view is shown if `is_quiet`.
    pub fn new(is_quiet: bool, language: Language) -> View {
        let is_shown = std::io::stderr().is_terminal() && !is_dumb() && !is_quiet;
        View {
            live: is_shown.then(LiveView::default),
            shares: std::io::stdout().is_terminal(),
            waiting: String::new(),
            language,
        }
    }

    /// Prints to stdout, with the next drawing if there is a view.
    pub fn say(&mut self, text: &str) {
        if self.live.is_none() || !self.shares {
            return print(text);
        }
        self.waiting.push_str(text);
        if self.waiting.len() > WAITING_MAX {
            self.clear();
        }
    }

    /// Removes the view and prints the waiting lines.
    pub fn clear(&mut self) {
        if let Some(live) = &mut self.live {
            eprint!("{}", live.clear());
        }
        print(&std::mem::take(&mut self.waiting));
    }

    /// Prints the waiting lines and draws the view below them.
    pub fn draw(&mut self, merger: &Merger, progress: &LiveProgress, now_ms: u64) {
        let Some(live) = &mut self.live else { return };
        let Some((columns, rows)) = terminal_size(std::io::stderr()) else { return };
        let cleared = if self.waiting.is_empty() { String::new() } else { live.clear() };
        let drawn = live.refresh(
            merger,
            progress,
            Screen { columns, rows, is_colour: has_colours(), language: self.language },
            now_ms,
        );
        if !self.waiting.is_empty() {
            eprint!("{cleared}");
            print(&std::mem::take(&mut self.waiting));
        }
        eprint!("{drawn}");
    }
}

/// No colours with `NO_COLOR` (no-color.org: set and not empty), nor on a terminal without escape sequences.
pub(super) fn has_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && !is_dumb()
}

fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

fn print(text: &str) {
    print!("{text}");
    // There is nowhere to report a closed stdout.
    let _ = std::io::stdout().flush();
}
