//! Shows the progress of a lab: one moving line on a terminal, separate lines elsewhere.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;
use weir_lab::ab::Tell;
use weir_lab::{store, texts};
use weir_words::Language;

/// Prints to standard error, because standard output is for the report.
pub struct ProgressPrinter {
    bar: ProgressBar,
    is_terminal: bool,
    store: PathBuf,
    language: Language,
    /// Id of the run whose progress is written to the store, for a reader of the store such as the dashboard.
    noted: Option<String>,
}

impl ProgressPrinter {
    /// A printer. The runs so far are noted in `store`.
    pub fn new(store: &Path, language: Language) -> ProgressPrinter {
        let is_terminal = std::io::stderr().is_terminal();
        let bar = bar(ProgressDrawTarget::stderr(), language);
        ProgressPrinter { bar, is_terminal, store: store.to_owned(), language, noted: None }
    }

    /// Removes the moving line.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// The moving line.
fn bar(target: ProgressDrawTarget, language: Language) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(0), target);
    // This cannot fail: the template is a constant that the crate accepts. After an error, the default style would stay.
    if let Ok(style) = ProgressStyle::with_template(texts::BAR.say(language)) {
        bar.set_style(style);
    }
    bar
}

impl Drop for ProgressPrinter {
    fn drop(&mut self) {
        // At this point the run is stored, or there is no run.
        if let Some(id) = &self.noted {
            store::forget(&self.store, id);
        }
    }
}

impl Tell for ProgressPrinter {
    fn language(&self) -> Language {
        self.language
    }

    fn line(&mut self, line: &str) {
        if self.is_terminal { self.bar.println(line) } else { eprintln!("{line}") }
    }

    fn so_far(&mut self, run: &Value) {
        let Some(id) = run["id"].as_str() else { return };
        let is_first = self.noted.as_deref() != Some(id);
        if let Some(before) = self.noted.replace(id.to_owned()).filter(|_| is_first) {
            store::forget(&self.store, &before);
        }
        // Print this error once. If the store cannot be written, storing the run at the end fails too, with a better
        // message.
        if let Err(error) = store::note(&self.store, id, run)
            && is_first
        {
            self.tell(&texts::NOBODY_WATCHES.with(&[error]));
        }
    }

    fn progress(&mut self, done: usize, of: usize, what: &str) {
        self.bar.set_length(of as u64);
        self.bar.set_position(done as u64);
        self.bar.set_message(what.to_owned());
        if !self.is_terminal && done.is_multiple_of(2) {
            let said = texts::BLOCKS_DONE.with(&[done.into(), of.into(), what.into()]);
            eprintln!("{}", said.say(self.language));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use indicatif::TermLike;
    use std::io;
    use std::sync::{Arc, Mutex};

    const COLUMNS: usize = 70;

    /// A terminal that keeps the texts that it gets.
    #[derive(Debug, Default)]
    struct Terminal(Arc<Mutex<String>>);

    impl TermLike for Terminal {
        fn width(&self) -> u16 {
            COLUMNS as u16
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(&format!("{text}\n"))
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            self.write_str("\n")
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A line that is wider than the terminal makes the next one begin below it.
    #[test]
    fn the_line_fits_into_the_terminal() {
        for language in [Language::English, Language::Korean] {
            let terminal = Terminal::default();
            let written = Arc::clone(&terminal.0);
            let bar = bar(ProgressDrawTarget::term_like(Box::new(terminal)), language);
            bar.set_length(16);
            bar.set_message("8번째 쌍 AB");
            bar.tick();
            let columns =
                |text: &str| text.chars().map(|one| if ('가'..='힣').contains(&one) { 2 } else { 1 }).sum::<usize>();
            let widths: Vec<usize> = written.lock().unwrap().lines().map(columns).collect();
            assert!(widths.iter().max().is_some_and(|most| (30..=COLUMNS).contains(most)), "{language:?} {widths:?}");
        }
    }
}
