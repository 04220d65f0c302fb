//! The live view on a terminal while the load runs: a few lines that change in place.
//!
//! The caller writes the text to stderr, so that stdout stays Artillery's. No line is wider than the terminal: a line
//! that wraps would take two rows, and moving up to the first line would then end too low.

use weir_words::{Language, Said, Text, left, say, width};

use super::console::{GRAY, RED, paint};
use super::number::{grouped, ms};
use crate::record::{Merger, Point};
use crate::texts;

/// Largest width of the bar in cells.
const BAR_MAX: usize = 28;
/// A terminal with fewer columns has no room for all quantiles.
const ROOMY: usize = 60;
/// Kinds of errors that are named.
const ERRORS_SHOWN: usize = 3;
/// Switches line wrap off and on again, so that a line that is wider than computed does not wrap (DECAWM,
/// `console_codes(4)`).
const WRAP_OFF: &str = "\x1b[?7l";
const WRAP_ON: &str = "\x1b[?7h";

/// The view; it remembers the number of lines that it drew.
#[derive(Clone, Debug, Default)]
pub struct LiveView {
    drawn: usize,
}

/// The terminal to draw on.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Width in columns.
    pub columns: usize,
    /// Height in rows; the view is at most one row less.
    pub rows: usize,
    /// True if the terminal shows colours.
    pub is_colour: bool,
    /// The language of the words.
    pub language: Language,
}

/// The progress of the run.
#[derive(Clone, Debug, Default)]
pub struct LiveProgress {
    /// Time since the first phase began.
    pub elapsed_ms: u64,
    /// Duration of all phases together; 0 if it is unknown.
    pub planned_ms: u64,
    /// The current phase.
    pub phase: String,
    /// Connections of a run without virtual users; otherwise 0.
    pub connections: u64,
}

impl LiveView {
    /// The text to write: it overwrites the lines drawn before.
    pub fn refresh(&mut self, merger: &Merger, progress: &LiveProgress, screen: Screen, now_ms: u64) -> String {
        let point = merger.last_point(now_ms).unwrap_or_default();
        let mut lines = drawing(merger, progress, &point, screen);
        lines.truncate(screen.rows.saturating_sub(1));
        let mut text = self.up() + WRAP_OFF;
        // Each line erases the rest of its row, and the last one everything below, after it is written. So nothing
        // flickers.
        lines.iter().for_each(|line| text.push_str(&format!("{line}\x1b[K\n")));
        text.push_str("\x1b[J");
        text.push_str(WRAP_ON);
        self.drawn = lines.len();
        text
    }

    /// The text that removes the lines, to write before any other output.
    pub fn clear(&mut self) -> String {
        let up = self.up();
        self.drawn = 0;
        if up.is_empty() { up } else { up + "\x1b[J" }
    }

    /// Moves the cursor to the first line drawn.
    fn up(&self) -> String {
        if self.drawn == 0 { String::new() } else { format!("\x1b[{}A\r", self.drawn) }
    }
}

fn drawing(merger: &Merger, progress: &LiveProgress, point: &Point, screen: Screen) -> Vec<String> {
    let is_roomy = screen.columns >= ROOMY;
    let quantiles = |figures: Option<[f64; 5]>| match figures {
        None => "–".to_owned(),
        Some([p50, p90, _, p99, max]) if is_roomy => {
            format!("p50 {}  p90 {}  p99 {}  max {} ms", ms(p50), ms(p90), ms(p99), ms(max))
        }
        Some([p50, _, _, p99, max]) => format!("p50 {}  p99 {}  max {}", ms(p50), ms(p99), ms(max)),
    };
    let errors = errors(merger);
    let named: Vec<String> =
        errors.iter().take(ERRORS_SHOWN).map(|(name, count)| format!("{name} {}", grouped(*count))).collect();
    let (errors, colour) = if named.is_empty() {
        (texts::LIVE_NONE.say(screen.language).to_owned(), None)
    } else {
        (named.join("  "), Some(RED))
    };
    let say = |text: Text| text.say(screen.language);
    let told = |said: Said| said.say(screen.language).to_owned();
    let who = match progress.connections {
        0 => {
            let created = grouped(merger.counted("vusers.created"));
            (texts::LIVE_USERS, told(say!(texts::LIVE_USERS_LINE, grouped(active(merger)), created)))
        }
        all => {
            let sent = grouped(merger.counted("http.requests"));
            (texts::LIVE_SENT, told(say!(texts::LIVE_SENT_LINE, sent, grouped(all))))
        }
    };
    let row = |key: Text, text: &str, colour: Option<u8>| {
        let key = left(say(key), 9);
        let text = cut(text, screen.columns.saturating_sub(width(&key)));
        let text = colour.map_or(text.clone(), |colour| paint(screen.is_colour, colour, &text));
        paint(screen.is_colour, GRAY, &key) + &text
    };
    vec![
        headline(progress, screen),
        row(who.0, &who.1, None),
        row(texts::LIVE_LOAD, &told(say!(texts::LIVE_RATE, grouped(rate(merger, point)))), None),
        row(texts::LIVE_RESPONSE, &quantiles(point.response), None),
        row(texts::LIVE_SERVICE, &quantiles(point.service), None),
        row(texts::LIVE_ERRORS, &errors, colour),
    ]
}

/// The bar, the time, and the phase.
fn headline(progress: &LiveProgress, screen: Screen) -> String {
    let bar = (screen.columns * 35 / 100).min(BAR_MAX);
    let part = progress.elapsed_ms as f64 / progress.planned_ms.max(1) as f64;
    let full = if progress.planned_ms == 0 { 0 } else { (part.clamp(0.0, 1.0) * bar as f64) as usize };
    let (done, left) = ("█".repeat(full), paint(screen.is_colour, GRAY, &"░".repeat(bar - full)));
    let text = cut(&format!("  {}  {}", clock(progress), progress.phase), screen.columns.saturating_sub(bar));
    format!("{done}{left}{text}")
}

/// Cuts a text to the width. Names come from scripts and servers: a character that would move the cursor becomes a
/// dot.
fn cut(text: &str, columns: usize) -> String {
    let mut text: String = text.chars().map(|c| if c.is_control() { '·' } else { c }).collect();
    if width(&text) > columns {
        while width(&text) >= columns.max(1) {
            text.pop();
        }
        text.push('…');
    }
    text
}

fn clock(progress: &LiveProgress) -> String {
    let time = |ms: u64| format!("{}:{:02}", ms / 60_000, ms / 1000 % 60);
    match progress.planned_ms {
        0 => time(progress.elapsed_ms),
        planned => format!("{}/{}", time(progress.elapsed_ms), time(planned)),
    }
}

fn active(merger: &Merger) -> u64 {
    let ended = merger.counted("vusers.completed") + merger.counted("vusers.failed");
    merger.counted("vusers.created").saturating_sub(ended)
}

/// Requests sent in the last whole second.
fn rate(merger: &Merger, point: &Point) -> u64 {
    let sent = ["http.requests", "websocket.messages_sent", "socketio.emit"];
    let counts = point.counts.iter().filter(|(name, _)| sent.contains(&&**name));
    counts.map(|(_, count)| count).sum::<u64>() * 1000 / merger.point_ms().max(1)
}

/// All errors so far by name, the most frequent first.
fn errors(merger: &Merger) -> Vec<(String, u64)> {
    let mut errors = merger.counted_after("errors.");
    errors.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Recorder;
    use std::time::Duration;

    const T: u64 = 1_795_186_840_000;

    fn merger() -> Merger {
        let recorder = Recorder::at(T);
        recorder.count(recorder.metric("vusers.created"), 12);
        recorder.count(recorder.metric("vusers.completed"), 4);
        recorder.count(recorder.metric("http.requests"), 1500);
        recorder.latency(Duration::from_millis(20), Duration::from_millis(10));
        recorder.count(recorder.metric("errors.ECONNREFUSED"), 1);
        let mut merger = Merger::default();
        merger.add(recorder.take(u64::MAX));
        merger
    }

    fn progress() -> LiveProgress {
        LiveProgress { elapsed_ms: 45_000, planned_ms: 90_000, phase: "ramp".to_owned(), connections: 0 }
    }

    const WIDE: Screen = Screen { columns: 80, rows: 24, is_colour: false, language: Language::English };

    #[test]
    fn a_terminal_is_redrawn_in_place() {
        let (merger, mut live) = (merger(), LiveView::default());
        let first = live.refresh(&merger, &progress(), WIDE, T + 1_500);
        let bar = format!("\x1b[?7l{}{}  0:45/1:30  ramp\x1b[K\n", "█".repeat(14), "░".repeat(14));
        assert!(first.starts_with(&bar) && first.ends_with("\x1b[J\x1b[?7h"), "{first:?}");
        for line in ["users    8 active, 12 created", "load     1 500/s", "errors   ECONNREFUSED 1"] {
            assert!(first.lines().any(|seen| seen == format!("{line}\x1b[K")), "{line}\n{first}");
        }
        let second = live.refresh(&merger, &progress(), WIDE, T + 1_600);
        assert!(second.starts_with("\x1b[6A\r\x1b[?7l"), "{second:?}");
        let url = LiveProgress { connections: 64, ..progress() };
        let text = LiveView::default().refresh(&merger, &url, WIDE, T + 1_500);
        assert!(text.contains("\nsent     1 500 by 64 connections\x1b[K\n") && !text.contains("users"), "{text:?}");
        assert_eq!((live.clear(), live.clear()), ("\x1b[6A\r\x1b[J".to_owned(), String::new()));
    }

    #[test]
    fn it_fits_any_terminal() {
        let progress = LiveProgress { phase: "a phase of many words, and then some more".to_owned(), ..progress() };
        for (columns, rows) in [(200, 50), (80, 24), (40, 10), (40, 4), (20, 2), (3, 1), (0, 0)] {
            let text = LiveView::default().refresh(&merger(), &progress, Screen { columns, rows, ..WIDE }, T + 1_500);
            let drawn = text.replace("\x1b[?7l", "").replace("\x1b[J\x1b[?7h", "").replace("\x1b[K", "");
            assert!(drawn.lines().count() < rows.max(1), "{rows} {drawn:?}");
            for line in drawn.lines() {
                // On a very narrow terminal, a line still has its key; it is cut at the edge.
                assert!(line.chars().count() <= columns.max(10), "{columns} {line:?}");
            }
        }
    }

    #[test]
    fn names_do_not_move_the_cursor() {
        assert_eq!(cut("a\x1b[2Jb\r\n", 20), "a·[2Jb··");
        assert_eq!((cut("12345", 5), cut("123456", 5), cut("1", 0)), ("12345".into(), "1234…".into(), "…".into()));
    }

    #[test]
    fn colours_are_asked_for() {
        let text =
            |is_colour| LiveView::default().refresh(&merger(), &progress(), Screen { is_colour, ..WIDE }, T + 1_500);
        assert!(text(true).contains("\x1b[31mECONNREFUSED 1\x1b[39m") && !text(false).contains("\x1b[3"));
    }
}
