//! `weir record show`: the parts of a recording, one a line. `weir record check`: secrets that are left in one.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::ExitCode;

use weir_net::clock;
use weir_recording::model::{Losses, RecordedExchange, RecordedMessage, RecordedVersion, RecordingPart};
use weir_recording::read::Reader;
use weir_recording::to_json;
use weir_words::{Language, Said, say};

use super::words::{grouped, reason_text, share_text};
use crate::figures::time;
use crate::texts;

/// Prints the parts. A recording that a fault ends is printed up to the fault.
///
/// # Errors
/// The file cannot be opened, or is no whole recording.
pub fn parts(path: &Path, is_json: bool, language: Language) -> Result<(), Said> {
    for part in opened(path)? {
        let part = part.map_err(|fault| of_file(path, fault.said()))?;
        if is_json {
            println!("{}", to_json(&part));
        } else {
            println!("{}", line(&part).say(language));
        }
    }
    Ok(())
}

fn opened(path: &Path) -> Result<Reader<BufReader<File>>, Said> {
    let file = File::open(path).map_err(|error| of_file(path, error.to_string().into()))?;
    Reader::new(BufReader::new(file)).map_err(|fault| of_file(path, fault.said()))
}

fn of_file(path: &Path, what: Said) -> Said {
    say!(texts::OF_FILE, path.display().to_string(), what)
}

/// Prints the places of secrets that are left, and never the secrets.
pub fn check(path: &Path, language: Language) -> ExitCode {
    let report = match opened(path) {
        Ok(reader) => weir_recording::check::check(reader),
        Err(message) => {
            eprintln!("weir record: {}", message.say(language));
            return ExitCode::from(1);
        }
    };
    for finding in &report.findings {
        println!("{}", finding.said().say(language));
    }
    report.unlisted_said().iter().for_each(|more| println!("{}", more.say(language)));
    println!("{}", report.said().say(language));
    if let Some(fault) = &report.fault {
        eprintln!("weir record: {}", of_file(path, fault.said()).say(language));
    }
    if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn line(part: &RecordingPart) -> Said {
    match part {
        RecordingPart::Beginning(of) => {
            let at = clock::strftime(b"%F %T", (of.unix_us / 1_000_000).cast_signed(), false, 64).unwrap_or_default();
            let at = String::from_utf8_lossy(&at).into_owned();
            let share = share_text(f64::from(of.share_ppm) / 1e6);
            say!(texts::SHOW_BEGINNING, at, plain(of.program.as_bytes()), share, format!("{:016x}", of.key_id))
        }
        RecordingPart::Configuration(of) => {
            say!(texts::SHOW_CONFIGURATION, of.generation, plain(of.path.as_bytes()), of.locations.len())
        }
        RecordingPart::Exchange(of) => exchange(of),
        RecordingPart::Message(of) => message(of),
        RecordingPart::Lost(of) => say!(texts::SHOW_LOST, losses(of)),
        RecordingPart::Ending(of) => {
            let took = time(Some(of.at_us as f64 / 1000.0));
            let line = say!(texts::SHOW_ENDING, grouped(of.recorded), grouped(of.exchanges), took);
            match of.lost.all() {
                0 => line,
                _ => Said::list(&[line, losses(&of.lost)], "; "),
            }
        }
    }
}

/// `    0.989607 HTTP/1.1 GET /a: 200, 9 bytes in 510 µs, client 4bee83c4d0f3e2a6`.
fn exchange(of: &RecordedExchange) -> Said {
    let version = match of.version {
        RecordedVersion::Http10 => "HTTP/1.0",
        RecordedVersion::Http11 => "HTTP/1.1",
        RecordedVersion::Http2 => "HTTP/2",
        RecordedVersion::Http3 => "HTTP/3",
    };
    let begin = format!("{} {version} {}", at(of.at_us), plain(&of.method));
    let (status, length) = match &of.answer {
        Some(answer) => (answer.status.to_string().into(), answer.body.length),
        None => (say!(texts::SHOW_NO_ANSWER), 0),
    };
    let status = if of.is_cut { say!(texts::SHOW_CUT, status) } else { status };
    let took = time(Some(of.took_us as f64 / 1000.0));
    let client = format!("{:016x}", of.client);
    let bytes = say!(texts::SHOW_BYTES, grouped(length));
    say!(texts::SHOW_EXCHANGE, begin, plain(&of.target.bytes), status, bytes, took, client)
}

fn message(of: &RecordedMessage) -> Said {
    let from = if of.is_of_client { say!(texts::SHOW_OF_CLIENT) } else { say!(texts::SHOW_OF_ORIGIN) };
    say!(texts::SHOW_MESSAGE, at(of.at_us), of.tunnel, from, say!(texts::SHOW_BYTES, grouped(of.content.length)))
}

fn losses(of: &Losses) -> Said {
    let Losses { queue, size, writing, large } = *of;
    let all = [("queue", queue), ("size", size), ("writing", writing), ("large", large)];
    let lost = all.into_iter().filter(|(_, count)| *count > 0);
    let lost: Vec<Said> =
        lost.map(|(reason, count)| say!(texts::RECORD_LOST, grouped(count), reason_text(reason))).collect();
    Said::list(&lost, "; ")
}

/// Microseconds as seconds, in a column.
fn at(us: u64) -> String {
    format!("{:6}.{:06}", us / 1_000_000, us % 1_000_000)
}

/// Text of a stranger, without commands for the terminal.
fn plain(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace(char::is_control, "\u{fffd}")
}
