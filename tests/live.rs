//! The live view of `weir load` in a terminal of `script(1)`: it neither tears nor floods, and leaves nothing behind.
//!
//! The output is drawn on a screen in this test that supports only the sequences that the view uses.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/needs.rs"]
mod needs;
#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::collections::VecDeque;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use needs::{Need, cases};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// Lines that the script's virtual users print.
const LINES: usize = 60;

/// The first characters of the view's first two lines.
const BAR: [char; 2] = ['█', '░'];
const USERS: &str = "users    ";

/// No process listens at the target: each virtual user prints a line, and fails.
const SCRIPT: &str = "config:
  target: 'http://127.0.0.1:PORT'
  phases: [{duration: 2, arrivalCount: 60, name: 'a phase with a name that no narrow terminal has room for'}]
scenarios:
  - flow: [{log: 'line {{ $uuid }} end'}, {get: {url: '/'}}]
";

fn main() -> ExitCode {
    needs::run(cases![
        [Need::Program("script")] => it_stays_in_its_place, colours_and_movements_can_be_refused, a_url_has_one_too;
    ])
}

fn it_stays_in_its_place() {
    for (columns, rows) in [(80, 24), (40, 10), (30, 5)] {
        let (text, took) = run("live", columns, rows, "", "");
        let mut screen = Screen::new(columns, rows);
        let mut frames = 0;
        for part in text.split_inclusive("\x1b[?7h") {
            screen.write(part);
            if part.ends_with("\x1b[?7h") {
                frames += 1;
                assert_eq!(screen.views(), (1, 1), "{columns} x {rows}\n{}", screen.text());
                assert!(screen.seen().all(|line| line.chars().count() <= columns), "{}", screen.text());
            }
        }
        // Four drawings a second; a slow machine only makes fewer of them.
        assert!((2..=took.as_millis() as usize / 250 + 8).contains(&frames), "{frames} frames in {took:?}");
        screen.scroll_out();
        assert_eq!(screen.views(), (0, 0), "{}", screen.text());
        let all = screen.text().replace('\n', "");
        assert_eq!((all.matches("line ").count(), all.matches(" end").count()), (LINES, LINES), "{}", screen.text());
    }
}

fn colours_and_movements_can_be_refused() {
    let (text, _) = run("live-plain", 80, 24, "NO_COLOR=1", "");
    assert!(text.contains("\x1b[?7l") && !text.contains("\x1b[3") && !text.contains("\x1b[9"), "{text:?}");
    assert!(!only_colours(&text), "{text:?}");
    let (text, _) = run("live-dumb", 80, 24, "TERM=dumb", "");
    assert!(!text.contains('\x1b'), "{text:?}");
    // No cursor movements. On a slow machine, weir reports in red that it was late itself.
    let (text, _) = run("live-quiet", 80, 24, "QUIET=-q", "");
    assert!(only_colours(&text), "{text:?}");
}

/// True if each escape sequence is a colour: numbers, then m.
fn only_colours(text: &str) -> bool {
    let is_colour = |codes: &str| codes.bytes().all(|byte| byte.is_ascii_digit() || byte == b';');
    let mut ends = text.split('\x1b').skip(1).map(|rest| rest.strip_prefix('[').and_then(|rest| rest.split_once('m')));
    ends.all(|split| split.is_some_and(|(codes, _)| is_colour(codes)))
}

fn a_url_has_one_too() {
    let (text, _) = run("live-url", 80, 24, "", "-c 3 -d 1s http://127.0.0.1:PORT/");
    let mut screen = Screen::new(80, 24);
    let mut frames = 0;
    for part in text.split_inclusive("\x1b[?7h") {
        screen.write(part);
        if part.ends_with("\x1b[?7h") {
            frames += 1;
            let seen: Vec<String> = screen.seen().collect();
            assert!(seen.iter().any(|line| line.starts_with("sent     ") && line.ends_with(" by 3 connections")));
            assert!(seen.iter().any(|line| line.contains("closed loop")), "{}", screen.text());
        }
    }
    assert!(frames >= 2, "{frames}");
    screen.scroll_out();
    assert_eq!(screen.text().matches("3 connections").count(), 1, "the plan alone is left\n{}", screen.text());
}

/// The output of a run with these arguments, or of the script, on a terminal of this size, and its duration.
fn run(name: &str, columns: usize, rows: usize, env: &str, what: &str) -> (String, Duration) {
    let dir = support::scratch(name);
    let path = dir.join("live.yml");
    let port = support::free_port().to_string();
    std::fs::write(&path, SCRIPT.replace("PORT", &port)).unwrap();
    let shown = if what.is_empty() { path.display().to_string() } else { what.replace("PORT", &port) };
    let command = format!("stty cols {columns} rows {rows}; env {env} sh -c 'exec {WEIR} load $QUIET {shown}'");
    let begun = Instant::now();
    let mut script = Command::new("script");
    script.args(["-qefc", &command, "/dev/null"]).env("TERM", "xterm").env_remove("NO_COLOR").stdin(Stdio::null());
    let output = script.output().unwrap();
    let _ = std::fs::remove_dir_all(&dir);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // No process listens. A script only reports that; for a URL without any answer it is a failure.
    let code = i32::from(!what.is_empty());
    assert_eq!(output.status.code(), Some(code), "{text}");
    (text, begun.elapsed())
}

/// A terminal: lines that scrolled out, and rows. An unknown sequence fails the test.
struct Screen {
    columns: usize,
    gone: Vec<String>,
    rows: VecDeque<Vec<char>>,
    at: (usize, usize),
    wraps: bool,
}

impl Screen {
    fn new(columns: usize, rows: usize) -> Screen {
        Screen { columns, gone: Vec::new(), rows: vec![Vec::new(); rows].into(), at: (0, 0), wraps: true }
    }

    /// The rows, without the lines that scrolled out.
    fn seen(&self) -> impl Iterator<Item = String> + '_ {
        self.rows.iter().map(|row| row.iter().collect::<String>())
    }

    fn text(&self) -> String {
        self.gone.iter().cloned().chain(self.seen()).collect::<Vec<_>>().join("\n")
    }

    /// How often each of the view's first two lines occurs, scrolled out or not.
    fn views(&self) -> (usize, usize) {
        let text = self.text();
        let count = |is: &dyn Fn(&str) -> bool| text.lines().filter(|line| is(line)).count();
        (count(&|line| line.starts_with(BAR)), count(&|line| line.starts_with(USERS)))
    }

    /// Moves the remaining rows to the lines that scrolled out.
    fn scroll_out(&mut self) {
        (0..self.rows.len()).for_each(|_| self.scroll());
    }

    fn scroll(&mut self) {
        let first = self.rows.pop_front().unwrap();
        self.gone.push(first.into_iter().collect());
        self.rows.push_back(Vec::new());
    }

    fn write(&mut self, text: &str) {
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\r' => self.at.1 = 0,
                '\n' => self.down(),
                '\x1b' => {
                    assert_eq!(chars.next(), Some('['));
                    let mut number = String::new();
                    while let Some(c) = chars.next_if(|c| !c.is_ascii_alphabetic()) {
                        number.push(c);
                    }
                    self.control(chars.next().unwrap(), &number);
                }
                _ => self.put(c),
            }
        }
    }

    fn control(&mut self, what: char, number: &str) {
        let (row, column) = self.at;
        match (what, number) {
            ('A', _) => {
                let up: usize = number.parse().unwrap();
                assert!(up <= row, "above the screen\n{}", self.text());
                self.at.0 -= up;
            }
            ('K', "") => self.rows[row].truncate(column),
            ('J', "") => {
                self.rows[row].truncate(column);
                self.rows.iter_mut().skip(row + 1).for_each(Vec::clear);
            }
            ('l' | 'h', "?7") => self.wraps = what == 'h',
            ('m', _) => {}
            _ => panic!("ESC [ {number} {what}"),
        }
    }

    fn put(&mut self, c: char) {
        if self.at.1 == self.columns {
            if self.wraps {
                self.at.1 = 0;
                self.down();
            } else {
                self.at.1 -= 1;
            }
        }
        let row = &mut self.rows[self.at.0];
        row.resize(row.len().max(self.at.1 + 1), ' ');
        row[self.at.1] = c;
        self.at.1 += 1;
    }

    fn down(&mut self) {
        if self.at.0 + 1 < self.rows.len() {
            self.at.0 += 1;
        } else {
            self.scroll();
        }
    }
}
