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
use weir_edge::dash::place;
use weir_load::once::{self, Once};
use weir_net::clock::{self, Instant};

use crate::doctor::Lang;

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
    /// Language of the screen
    #[arg(long, value_enum, default_value_t = Lang::En)]
    lang: Lang,
    /// The same as --lang ko
    #[arg(long, hide = true)]
    korean: bool,
}

/// Time between two requests to the edge.
const EVERY: Duration = Duration::from_secs(1);
/// Longest time to wait for an answer; the first answer takes up to two seconds.
const TIMEOUT: Duration = Duration::from_secs(6);
/// Columns of a screen printed as text.
const COLUMNS: u16 = 100;
const ROWS: u16 = 40;

/// Runs the verb.
pub fn main(args: &TopArgs) -> ExitCode {
    let is_korean = args.korean || args.lang == Lang::Ko;
    let result = source(args).and_then(|source| match args.once || !io::stdout().is_terminal() {
        true => print(&source, is_korean),
        false => watch(&source, is_korean),
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("weir top: {message}");
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

fn source(args: &TopArgs) -> Result<Source, String> {
    let token = match &args.token {
        None => None,
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            Some(text.lines().next().unwrap_or_default().trim().to_owned())
        }
    };
    let of = |url: &str| Source { url: with_slash(url), token: token.clone(), insecure: args.insecure };
    if let Some(url) = &args.url {
        return Ok(of(url));
    }
    let mut places = (place::PORT..place::PORT + place::PORTS).map(|port| of(&format!("http://127.0.0.1:{port}/")));
    places.find(|source| source.is_there()).ok_or_else(|| {
        format!(
            "no dashboard answers on 127.0.0.1:{}: is weir edge running? You can name another: weir top http://HOST:PORT/",
            place::PORT
        )
    })
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

    fn fetch(&self) -> Result<Value, String> {
        let (status, body) = once::ask(&self.once("GET", TIMEOUT))?;
        let said = || String::from_utf8_lossy(&body).trim().to_owned();
        match status {
            200 => serde_json::from_slice(&body)
                .map_err(|_| format!("{} is not a dashboard: its answer is not JSON", self.url)),
            401 => Err(format!("{} requires a token: --token FILE", self.url)),
            404 => Err(format!("{} is not a dashboard: does its location have \"dashboard\"?", self.url)),
            status => Err(format!("{} answers {status}: {}", self.url, said())),
        }
    }
}

/// Prints a screen as text, from two documents, because rates need two.
fn print(source: &Source, korean: bool) -> Result<(), String> {
    let before = source.fetch()?;
    std::thread::sleep(EVERY);
    let doc = source.fetch()?;
    for line in draw::text(&draw::Screen { doc: &doc, before: Some(&before), korean, trouble: None }, COLUMNS, ROWS) {
        println!("{line}");
    }
    Ok(())
}

/// Draws on the terminal until `q`, Escape or Ctrl-C. Restores the terminal at the end, also after a panic.
fn watch(source: &Source, korean: bool) -> Result<(), String> {
    let mut doc = source.fetch()?;
    let mut before: Option<Value> = None;
    let mut trouble = None;
    let failed = |error: io::Error| format!("weir cannot draw on the terminal: {error}");
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let result = loop {
        let screen = draw::Screen { doc: &doc, before: before.as_ref(), korean, trouble: trouble.as_deref() };
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
