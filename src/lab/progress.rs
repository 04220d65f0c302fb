//! How a lab says how far it is: a line that moves on a terminal, lines that stay elsewhere.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use weir_lab::ab::Tell;

/// Tells on standard error; the report is standard output's.
pub(super) struct Progress {
    bar: ProgressBar,
    is_terminal: bool,
}

impl Progress {
    pub(super) fn new() -> Progress {
        let is_terminal = std::io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        // The template is a constant that the crate accepts; another would leave its own in place.
        if let Ok(style) =
            ProgressStyle::with_template("{bar:24} {pos}/{len} blocks  {msg}  {elapsed}, at most {eta} left")
        {
            bar.set_style(style);
        }
        Progress { bar, is_terminal }
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl Tell for Progress {
    fn line(&mut self, line: &str) {
        if self.is_terminal { self.bar.println(line) } else { eprintln!("{line}") }
    }

    fn progress(&mut self, done: usize, of: usize, what: &str) {
        self.bar.set_length(of as u64);
        self.bar.set_position(done as u64);
        self.bar.set_message(what.to_owned());
        if !self.is_terminal && done.is_multiple_of(2) {
            eprintln!("{done} of at most {of} blocks, {what}");
        }
    }
}
