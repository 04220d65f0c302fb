//! `weir top`: the dashboard on a terminal.
//!
//! It fetches the dashboard's document once a second and draws it; the dashboard makes the document.

mod choice;
mod draw;
mod screen;
mod tables;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use ratatui::crossterm::event::{self, Event};
use serde_json::Value;
use weir_net::clock::{self, Instant};
use weir_words::{Language, Said, Text, left, say};

use crate::edges::{self, Dashboard};
use crate::texts;
use choice::{Choice, KeyEffect};
use screen::Screen;

const AFTER_HELP: &str = "\
Keys: q ends; Tab chooses a table; arrows, PgUp, PgDn, Home and End scroll it; s sorts by the next column, r turns the
order round; f shows only rows that fail; n shows the next edge of this machine.";

/// `weir top`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct TopArgs {
    /// A dashboard: http://HOST:PORT/ or its location [default: the first dashboard that answers on 127.0.0.1]
    #[arg(value_name = "URL")]
    url: Option<String>,
    /// The file whose first line is the dashboard's token
    #[arg(long, value_name = "FILE")]
    token: Option<std::path::PathBuf>,
    /// Accept any certificate
    #[arg(long)]
    insecure: bool,
    /// Print one screen as text and end; the default if the output is not a terminal
    #[arg(long)]
    once: bool,
    /// List the edges of this machine and end
    #[arg(long, conflicts_with = "url")]
    list: bool,
}

/// Time between two requests to the edge.
const EVERY: Duration = Duration::from_secs(1);
/// Columns of a screen printed as text.
const COLUMNS: u16 = 100;
const ROWS: u16 = 40;

/// Runs the verb.
pub fn main(args: &TopArgs, language: Language) -> ExitCode {
    let result = found(args).and_then(|edges| match (args.list, args.once || !io::stdout().is_terminal()) {
        (true, _) => list(&edges, language),
        (_, true) => print(&edges, language),
        (_, false) => watch(&edges, language),
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("weir top: {}", message.say(language));
            ExitCode::FAILURE
        }
    }
}

/// The dashboard that the command line names, or all of this machine; none only for a list of edges without one.
fn found(args: &TopArgs) -> Result<Vec<Dashboard>, Said> {
    let token = edges::token(args.token.as_deref())?;
    let found = match &args.url {
        Some(url) => vec![Dashboard::at(url, token.as_deref(), args.insecure)],
        None => edges::here(token.as_deref(), args.insecure),
    };
    let has_rows = !found.is_empty() || args.list && !edges::without_dashboard().is_empty();
    if has_rows { Ok(found) } else { Err(edges::none_here()) }
}

/// Prints a line for each edge.
fn list(edges: &[Dashboard], language: Language) -> Result<(), Said> {
    let heads: [Text; 5] = [texts::TOP_EDGE, texts::TOP_STATE, texts::TOP_RATE, texts::TOP_UP, texts::TOP_FILE];
    let row = |cells: [&str; 5]| {
        let [edge, state, rate, up, file] = cells;
        println!("{} {} {} {} {file}", left(edge, 26), left(state, 14), left(rate, 10), left(up, 8));
    };
    row(heads.map(|text| text.say(language)));
    for edge in edges {
        match edge.fetch("doc.json") {
            Ok(doc) => {
                let file = edge.fetch("configuration.json").unwrap_or_default();
                let file = file["files"][0]["name"].as_str().unwrap_or_default().to_owned();
                let [state, rate, up] = draw::summary(&doc, language);
                row([&edge.url, &state, &rate, &up, &file]);
            }
            Err(message) => println!("{} {}", left(&edge.url, 26), message.say(language)),
        }
    }
    for (pid, command) in edges::without_dashboard() {
        row([&format!("pid {pid}"), texts::TOP_WITHOUT.say(language), "", "", &command]);
    }
    Ok(())
}

/// Most documents that weir fetches for one printed screen. The edge makes one each second, or later without CPU time.
const PRINTED_MAX: u32 = 10;

/// Prints a screen as text. A rate needs two documents. If the edge has just started, weir waits until it has figures.
fn print(edges: &[Dashboard], language: Language) -> Result<(), Said> {
    let Some(edge) = edges.first() else { return Ok(()) };
    let mut before = edge.fetch("doc.json")?;
    std::thread::sleep(EVERY);
    let mut doc = edge.fetch("doc.json")?;
    for _ in 2..PRINTED_MAX {
        if doc["verdict"]["state"] != "waiting" {
            break;
        }
        std::thread::sleep(EVERY);
        before = std::mem::replace(&mut doc, edge.fetch("doc.json")?);
    }
    let choice = Choice::default();
    let screen =
        Screen { doc: &doc, before: Some(&before), language, trouble: None, choice: &choice, edges, has_keys: false };
    for line in draw::text(&screen, COLUMNS, ROWS) {
        println!("{line}");
    }
    Ok(())
}

/// Draws on the terminal until `q`, Escape or Ctrl-C. Restores the terminal at the end, also after a panic.
fn watch(edges: &[Dashboard], language: Language) -> Result<(), Said> {
    let Some(mut edge) = edges.first() else { return Ok(()) };
    let mut doc = edge.fetch("doc.json")?;
    let mut before: Option<Value> = None;
    let mut trouble: Option<Said> = None;
    let mut choice = Choice::default();
    let failed = |error: io::Error| say!(texts::CANNOT_DRAW, error.to_string());
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let mut next = clock::precise() + EVERY;
    let result = loop {
        let screen = Screen {
            doc: &doc,
            before: before.as_ref(),
            language,
            trouble: trouble.as_ref().map(|said| said.say(language)),
            choice: &choice,
            edges,
            has_keys: true,
        };
        let mut firsts = Default::default();
        if let Err(error) = terminal.draw(|frame| firsts = draw::draw(frame, &screen)) {
            break Err(failed(error));
        }
        // The screen knows how far each table can be scrolled.
        for (pane, first) in choice.panes.iter_mut().zip(firsts) {
            pane.first = first;
        }
        match key_effect(&mut choice, edges.len(), next) {
            Ok(Some(KeyEffect::Leave)) => break Ok(()),
            Ok(Some(KeyEffect::Turn)) => {
                edge = edges.get(choice.edge).unwrap_or(edge);
                before = None;
            }
            Ok(Some(KeyEffect::Draw | KeyEffect::Nothing)) => continue,
            Ok(None) => next = clock::precise() + EVERY,
            Err(error) => break Err(failed(error)),
        }
        match edge.fetch("doc.json") {
            // Another edge was chosen: the two documents have no rates.
            Ok(newest) if before.is_none() && doc["snapshot"]["nginx"]["pid"] != newest["snapshot"]["nginx"]["pid"] => {
                (doc, trouble) = (newest, None);
            }
            Ok(newest) => (before, doc, trouble) = (Some(doc), newest, None),
            // The last document stays on the screen, with the reason why there is no newer one.
            Err(message) => trouble = Some(message),
        }
    };
    ratatui::restore();
    result
}

/// Waits until this time for a key that has a meaning; `None` when the time has come.
fn key_effect(choice: &mut Choice, edges: usize, until: Instant) -> io::Result<Option<KeyEffect>> {
    loop {
        let left = until.saturating_duration_since(clock::precise());
        if left.is_zero() || !event::poll(left)? {
            return Ok(None);
        }
        let effect = match event::read()? {
            Event::Key(key) => choice.take(key, tables::COLUMNS.get(choice.pane).copied().unwrap_or_default(), edges),
            // The terminal has another size.
            Event::Resize(..) => KeyEffect::Draw,
            _ => KeyEffect::Nothing,
        };
        if effect != KeyEffect::Nothing {
            return Ok(Some(effect));
        }
    }
}
