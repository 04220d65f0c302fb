//! `weir record`: the recordings of a running edge, switched on and off; and the content of a recording.

mod show;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use weir_edge::recorder::api::FOR_S_MAX;
use weir_http::text::value;
use weir_load::once::{self, Once};
use weir_meter::live::Recording;
use weir_words::{Language, Said, said, say};

use self::words::{grouped, reason_text, share_text};
use crate::edges::{self, Dashboard};
use crate::figures::{amount, time};
use crate::lang::wrong::within;
use crate::texts;

const AFTER_HELP: &str = "\
An edge records the places of its configuration that have `record FILE;`. start and stop need a location with `api write=on`, or a
dashboard with a token. A change of the share or of the time begins another part of the file.

Exit codes: 0 done; 1 no answer, refused, not the answer of an edge, not a whole recording, or check has found secrets; 2 the command line is invalid.";

/// `weir record`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct RecordArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Show the recordings of an edge: which are on, and what is recorded and lost
    Status {
        #[command(flatten)]
        edge: EdgeArgs,
        /// Print the answer of the edge
        #[arg(long)]
        json: bool,
    },
    /// Switch a recording on
    Start {
        #[command(flatten)]
        edge: EdgeArgs,
        /// Switch it off after this time: 30s, 10m, 2h
        #[arg(long = "for", value_name = "TIME", value_parser = lasts)]
        lasts: Option<Duration>,
        /// The share of clients that are recorded
        #[arg(long, value_name = "PERCENT%", value_parser = share)]
        share: Option<String>,
    },
    /// Switch a recording off
    Stop {
        #[command(flatten)]
        edge: EdgeArgs,
    },
    /// Print the parts of a recording, one a line
    Show {
        /// The recording
        #[arg(value_name = "FILE")]
        recording: PathBuf,
        /// Print each part as JSON, with its fields and bodies
        #[arg(long)]
        json: bool,
    },
    /// Look for secrets in a recording that weir has not replaced
    Check {
        /// The recording
        #[arg(value_name = "FILE")]
        recording: PathBuf,
    },
}

/// An edge and one of its recordings.
#[derive(Args)]
struct EdgeArgs {
    /// The file as the configuration names it [default: the only one]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The API or the dashboard of an edge [default: the first dashboard that answers on 127.0.0.1]
    #[arg(long, value_name = "URL")]
    edge: Option<String>,
    /// The file whose first line is the dashboard's token
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,
    /// Seconds to wait for the answer
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = within::<u16>(1..=600))]
    timeout: u16,
    /// Accept any certificate of an https:// URL
    #[arg(long)]
    insecure: bool,
}

/// A time as nginx writes it: `30s`, `10m`, `1h30m`; seconds without a unit.
fn lasts(text: &str) -> Result<Duration, Said> {
    let time = value::whole_seconds_of(text).filter(|time| !time.is_zero() && time.as_secs() <= FOR_S_MAX);
    time.ok_or_else(|| {
        said!("write a time up to 31d, such as 30s, 10m or 2h", "30s, 10m, 2h처럼 31d까지의 시간을 쓰세요")
    })
}

/// A percentage, as the directive takes it.
fn share(text: &str) -> Result<String, Said> {
    match weir_edge::recorder::options::share_of(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err(said!("write a percentage from 0.0001% to 100%", "0.0001%부터 100%까지의 비율을 쓰세요")),
    }
}

/// Runs the verb.
pub fn main(args: &RecordArgs, language: Language) -> ExitCode {
    if let What::Check { recording } = &args.what {
        return show::check(recording, language);
    }
    match run(args, language) {
        Ok(text) => {
            if !text.is_empty() {
                println!("{text}");
            }
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("weir record: {}", message.say(language));
            ExitCode::from(1)
        }
    }
}

fn run(args: &RecordArgs, language: Language) -> Result<String, Said> {
    match &args.what {
        What::Status { edge, json } => {
            let answer = edge.ask("GET", None)?;
            if *json {
                return Ok(answer.to_string());
            }
            let all = recordings(&answer);
            let file = edge.file()?;
            let of: Vec<Said> =
                all.iter().filter(|of| file.as_ref().is_none_or(|file| of.file == *file)).map(line).collect();
            if of.is_empty() {
                return Err(say!(texts::NO_RECORDING));
            }
            Ok(Said::list(&of, "\n").say(language).to_owned())
        }
        What::Start { edge, lasts, share } => {
            let mut order = Map::from_iter([("on".to_owned(), json!(true))]);
            lasts.iter().for_each(|lasts| drop(order.insert("for_s".to_owned(), json!(lasts.as_secs()))));
            share.iter().for_each(|share| drop(order.insert("share".to_owned(), json!(share))));
            told(edge, order, language)
        }
        What::Show { recording, json } => show::parts(recording, *json, language).map(|()| String::new()),
        // It has an exit code of its own.
        What::Check { .. } => Ok(String::new()),
        What::Stop { edge } => told(edge, Map::from_iter([("on".to_owned(), json!(false))]), language),
    }
}

/// Gives an order, and says the state after it.
fn told(edge: &EdgeArgs, mut order: Map<String, Value>, language: Language) -> Result<String, Said> {
    if let Some(file) = edge.file()? {
        order.insert("file".to_owned(), json!(file));
    }
    let answer = edge.ask("PATCH", Some(Value::Object(order)))?;
    let mut of = serde_json::from_value::<Recording>(answer).map_err(|_| say!(texts::HAS_API))?;
    // The last figures are those of the end: each worker gives its block within a second.
    for _ in 0..ENDING_LOOKS {
        if !of.is_ending {
            break;
        }
        std::thread::sleep(ENDING_EVERY);
        let all = recordings(&edge.ask("GET", None)?);
        of = all.into_iter().find(|one| one.file == of.file).unwrap_or(of);
    }
    Ok(line(&of).say(language).to_owned())
}

/// How often, and how many times, the end of a recording is looked for.
const ENDING_EVERY: Duration = Duration::from_millis(100);
const ENDING_LOOKS: u32 = 30;

fn recordings(answer: &Value) -> Vec<Recording> {
    let all = answer.get("recordings").and_then(Value::as_array).into_iter().flatten();
    all.filter_map(|one| serde_json::from_value(one.clone()).ok()).collect()
}

impl EdgeArgs {
    /// The file with its whole path.
    fn file(&self) -> Result<Option<String>, Said> {
        let whole = self.file.as_ref().map(|file| {
            let whole = std::path::absolute(file);
            whole.map_err(|error| say!(texts::OF_FILE, file.display().to_string(), error.to_string()))
        });
        Ok(whole.transpose()?.map(|path| path.to_string_lossy().into_owned()))
    }

    /// Asks the edge, by its API or by its dashboard.
    fn ask(&self, method: &'static str, order: Option<Value>) -> Result<Value, Said> {
        let token = edges::token(self.token.as_deref())?;
        let (url, names): (String, &[&str]) = match &self.edge {
            Some(url) => (Dashboard::at(url, None, self.insecure).url, &["weir/record", "record"]),
            None => {
                let here = edges::here(token.as_deref(), self.insecure);
                let first = here.first().ok_or_else(edges::none_here)?;
                if here.len() > 1 {
                    eprintln!("weir record: {}", say!(texts::ONE_OF_EDGES, &first.url, here.len() - 1));
                }
                (first.url.clone(), &["record"])
            }
        };
        let mut answer = (404, Vec::new());
        for name in names {
            answer = once::ask(&Once {
                url: format!("{url}{name}"),
                method,
                json: order.as_ref().map(|order| order.to_string().into_bytes()).unwrap_or_default(),
                timeout: Duration::from_secs(u64::from(self.timeout)),
                insecure: self.insecure,
                bearer: token.clone(),
            })?;
            if answer.0 != 404 || refusal(&answer.1).is_some() {
                break;
            }
        }
        let (status, bytes) = answer;
        match (status, serde_json::from_slice(&bytes)) {
            (200, Ok(value)) => Ok(value),
            (401, _) => Err(say!(texts::NEEDS_TOKEN, url)),
            (404, _) if refusal(&bytes).is_none() => {
                Err(say!(texts::STATUS_FROM, u32::from(status), url, say!(texts::HAS_API)))
            }
            _ => {
                let plain = || String::from_utf8_lossy(&bytes).trim().to_owned();
                Err(say!(texts::ANSWERS_AS, url, u32::from(status), refusal(&bytes).unwrap_or_else(plain)))
            }
        }
    }
}

/// The text of a refusal of the API about recordings.
fn refusal(bytes: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let error = value.get("error")?;
    let is_path = error.get("code").and_then(Value::as_str) == Some("PathNotFound");
    error.get("text").and_then(Value::as_str).filter(|_| !is_path).map(str::to_owned)
}

/// `/var/log/weir/traffic.weir: on, 10 % of clients; 41,200 of 41,203 recorded; 3 dropped: queue; 5.8 MiB of 256.0 MiB`.
fn line(of: &Recording) -> Said {
    let state = match (of.is_on, of.until, of.since) {
        (true, Some(until), _) => {
            let left = until.0.saturating_sub(weir_net::clock::unix_ms()) as f64;
            say!(texts::RECORD_ON_FOR, share_text(of.share), time(Some(left)))
        }
        (true, None, _) => say!(texts::RECORD_ON, share_text(of.share)),
        (false, _, None) => say!(texts::RECORD_NEVER),
        (false, ..) => say!(texts::RECORD_OFF),
    };
    let mut parts = vec![state, say!(texts::RECORDED_OF, grouped(of.recorded), grouped(of.exchanges))];
    for (reason, count) in of.lost.by_reason().into_iter().filter(|(_, count)| *count > 0) {
        parts.push(say!(texts::RECORD_LOST, grouped(count), reason_text(reason)));
    }
    if of.messages > 0 {
        parts.push(say!(texts::RECORD_MESSAGES, grouped(of.messages)));
    }
    let bytes = |bytes: u64| amount(Some("bytes"), Some(bytes as f64));
    parts.push(say!(texts::RECORD_BYTES, bytes(of.bytes), bytes(of.max_bytes)));
    say!(texts::OF_FILE, &of.file, Said::list(&parts, "; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_meter::live::{RecordingLosses, Timestamp};

    #[test]
    fn the_line_says_what_is_recorded_and_what_is_lost() {
        let of = Recording {
            file: "/r".to_owned(),
            is_on: true,
            share: 0.1,
            since: Some(Timestamp(1)),
            exchanges: 41_203,
            recorded: 41_200,
            lost: RecordingLosses { queue: 3, ..RecordingLosses::default() },
            bytes: 3 << 20,
            max_bytes: 256 << 20,
            ..Recording::default()
        };
        assert_eq!(
            line(&of),
            "/r: on, 10 % of clients; 41,200 of 41,203 recorded; 3 dropped: queue; file 3.0 MiB of 256.0 MiB"
        );
        assert_eq!(
            line(&of).say(Language::Korean),
            "/r: 켜짐, 클라이언트의 10 %; 41,203건 중 41,200건 기록; 3건 버림: 대기열; 파일 3.0 MiB (최대 256.0 MiB)"
        );
        let off = Recording { is_on: false, since: None, share: 0.000_001, ..of };
        assert!(line(&off).en().starts_with("/r: off, never begun; "));
        assert_eq!((share_text(1.0), share_text(0.000_001)), ("100 %".to_owned(), "0.0001 %".to_owned()));
    }

    #[test]
    fn times_have_units() {
        for (text, seconds) in [("30s", Some(30)), ("45", Some(45)), ("10m", Some(600)), ("2h", Some(7200))] {
            assert_eq!(lasts(text).ok(), seconds.map(Duration::from_secs), "{text}");
        }
        for text in ["", "m", "0s", "10w", "32d", "-1s", "99999999999999999999s"] {
            assert!(lasts(text).is_err(), "{text}");
        }
    }
}
