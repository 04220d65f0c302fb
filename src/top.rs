//! `weir top`: the dashboard on a terminal.
//!
//! It fetches the dashboard's document once a second and draws it; the dashboard makes the document.

mod draw;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use serde_json::Value;
use weir_conf::language::Language;
use weir_conf::said::Said;
use weir_conf::say;
use weir_edge::dash::place;
use weir_load::once::{self, Once};
use weir_net::clock::{self, Instant};

use crate::texts;

/// `weir top`.
#[derive(Args)]
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
}

/// Time between two requests to the edge.
const EVERY: Duration = Duration::from_secs(1);
/// Longest time to wait for an answer; the first answer takes up to two seconds.
const TIMEOUT: Duration = Duration::from_secs(6);
/// Columns of a screen printed as text.
const COLUMNS: u16 = 100;
const ROWS: u16 = 40;

/// Runs the verb.
pub fn main(args: &TopArgs, language: Language) -> ExitCode {
    let result = source(args).and_then(|source| match args.once || !io::stdout().is_terminal() {
        true => print(&source, language),
        false => watch(&source, language),
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("weir top: {}", message.say(language));
            ExitCode::FAILURE
        }
    }
}

/// The source of the document.
struct Source {
    url: String,
    token: Option<String>,
    insecure: bool,
}

fn source(args: &TopArgs) -> Result<Source, Said> {
    let token = match &args.token {
        None => None,
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| say!(texts::OF_FILE, path.display().to_string(), error.to_string()))?;
            Some(text.lines().next().unwrap_or_default().trim().to_owned())
        }
    };
    let of = |url: &str| Source { url: with_slash(url), token: token.clone(), insecure: args.insecure };
    if let Some(url) = &args.url {
        return Ok(of(url));
    }
    let mut places = (place::PORT..place::PORT + place::PORTS).map(|port| of(&format!("http://127.0.0.1:{port}/")));
    places.find(|source| source.is_there()).ok_or_else(|| say!(texts::NO_DASHBOARD, u32::from(place::PORT)))
}

fn with_slash(url: &str) -> String {
    if url.ends_with('/') { url.to_owned() } else { format!("{url}/") }
}

impl Source {
    fn once(&self, method: &'static str, timeout: Duration) -> Once {
        Once {
            url: format!("{}doc.json", self.url),
            method,
            json: Vec::new(),
            timeout,
            insecure: self.insecure,
            bearer: self.token.clone(),
        }
    }

    fn is_there(&self) -> bool {
        once::ask(&self.once("HEAD", Duration::from_millis(500))).is_ok()
    }

    fn fetch(&self) -> Result<Value, Said> {
        let (status, body) = once::ask(&self.once("GET", TIMEOUT))?;
        let said = || String::from_utf8_lossy(&body).trim().to_owned();
        match status {
            200 => serde_json::from_slice(&body).map_err(|_| say!(texts::NOT_DASHBOARD_JSON, &self.url)),
            401 => Err(say!(texts::NEEDS_TOKEN, &self.url)),
            404 => Err(say!(texts::NOT_DASHBOARD, &self.url)),
            status => Err(say!(texts::ANSWERS_AS, &self.url, u32::from(status), said())),
        }
    }
}

/// Prints a screen as text, from two documents, because rates need two.
fn print(source: &Source, language: Language) -> Result<(), Said> {
    let before = source.fetch()?;
    std::thread::sleep(EVERY);
    let doc = source.fetch()?;
    for line in draw::text(&draw::Screen { doc: &doc, before: Some(&before), language, trouble: None }, COLUMNS, ROWS) {
        println!("{line}");
    }
    Ok(())
}

/// Draws on the terminal until `q`, Escape or Ctrl-C. Restores the terminal at the end, also after a panic.
fn watch(source: &Source, language: Language) -> Result<(), Said> {
    let mut doc = source.fetch()?;
    let mut before: Option<Value> = None;
    let mut trouble: Option<Said> = None;
    let failed = |error: io::Error| say!(texts::CANNOT_DRAW, error.to_string());
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let result = loop {
        let screen = draw::Screen {
            doc: &doc,
            before: before.as_ref(),
            language,
            trouble: trouble.as_ref().map(|said| said.say(language)),
        };
        if let Err(error) = terminal.draw(|frame| draw::draw(frame, &screen)) {
            break Err(failed(error));
        }
        match is_left(clock::precise() + EVERY) {
            Ok(true) => break Ok(()),
            Ok(false) => {}
            Err(error) => break Err(failed(error)),
        }
        match source.fetch() {
            Ok(next) => (before, doc, trouble) = (Some(doc), next, None),
            // The last document stays on the screen, with the reason why there is no newer one.
            Err(message) => trouble = Some(message),
        }
    };
    ratatui::restore();
    result
}

/// Waits until this time; returns true if the user quits. Returns at once after a change of the terminal's size.
fn is_left(until: Instant) -> io::Result<bool> {
    loop {
        let left = until.saturating_duration_since(clock::precise());
        if left.is_zero() || !event::poll(left)? {
            return Ok(false);
        }
        match event::read()? {
            Event::Key(key) => {
                let is_control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
                if is_control_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                    return Ok(true);
                }
            }
            Event::Resize(..) => return Ok(false),
            _ => {}
        }
    }
}
