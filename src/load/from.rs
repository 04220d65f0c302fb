//! `weir load from`: opens access logs, and writes the script that `weir_load::traffic` makes of them.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use weir_conf::log_format::{COMMON, Format, VHOST_COMBINED};
use weir_load::traffic::{self, Made, Wish};

use super::flags::FromArgs;
use super::{exit, usage, write};
use crate::files::Disk;

/// Makes the script; returns the exit code.
pub fn run(args: &FromArgs) -> u8 {
    let format = match &args.format {
        None if args.conf.is_some() => return usage("--conf needs --format NAME: the name of the log_format"),
        None => None,
        Some(text) => match format(text, args.conf.as_deref()) {
            Ok(format) => Some(format),
            Err(message) => return usage(&message),
        },
    };
    let stem = args.output.as_ref().map(|path| path.with_extension("").display().to_string());
    let wish = Wish {
        format,
        host: args.host.clone(),
        without_assets: args.without_assets,
        minutes: args.minutes,
        speed: args.speed,
        target: args.target.clone(),
        stem,
        language: super::language(),
    };
    let logs = args.logs.iter().map(|path| open(path)).collect::<Result<_, _>>();
    match logs.and_then(|logs| traffic::make(&wish, logs)).and_then(|made| give(args, &made)) {
        Ok(()) => 0,
        Err(message) => {
            eprintln!("weir load from: {message}");
            exit::FAILED
        }
    }
}

/// A log with its name.
type Source = (String, Box<dyn Read>);

fn open(path: &Path) -> Result<Source, String> {
    let name = path.display().to_string();
    if name == "-" {
        return Ok(("stdin".to_owned(), Box::new(std::io::stdin())));
    }
    let file = File::open(path).map_err(|error| format!("{name}: {error}"))?;
    Ok((name, Box::new(file)))
}

/// The format with this name, or the format that the text is.
fn format(text: &str, conf: Option<&Path>) -> Result<Format, String> {
    if text.contains('$') {
        let format = Format::read(&[text]).filter(Format::has_time);
        return format.ok_or_else(|| {
            "--format needs $request or $request_uri, and $time_local, $time_iso8601 or $msec".to_owned()
        });
    }
    let Some(conf) = conf else {
        let known = match text {
            "combined" => return named_combined(),
            "common" => COMMON,
            "vhost_combined" => VHOST_COMBINED,
            "json" => return Ok(Format::json()),
            _ => return Err(format!("--format {text}: name the nginx.conf with this log_format: --conf FILE")),
        };
        return Format::read(&[known]).ok_or_else(|| format!("--format {text}: not readable"));
    };
    let shown = conf.display().to_string();
    let folder = conf.parent().map_or_else(String::new, |folder| format!("{}/", folder.display()));
    let (tree, problems) = weir_conf::load(&Disk, &shown, &folder, &|_| false);
    let found = tree.named("http").find_map(|http| Format::named(http, text));
    let why = problems.first().map_or_else(String::new, |problem| format!(" ({})", problem.what));
    let found = found.ok_or_else(|| format!("{shown} has no log_format {text} with the request{why}"))?;
    match found.has_time() {
        true => Ok(found),
        false => Err(format!("log_format {text} in {shown} has no time: $time_local, $time_iso8601 or $msec")),
    }
}

fn named_combined() -> Result<Format, String> {
    Format::read(&[weir_conf::log_format::COMBINED]).ok_or_else(|| "--format combined: not readable".to_owned())
}

/// Writes the script and its rows; the notes go to stderr.
fn give(args: &FromArgs, made: &Made) -> Result<(), String> {
    match &args.output {
        None => print!("{}", made.script),
        Some(path) => {
            write(path, &made.script)?;
            for (name, rows) in &made.rows {
                write(Path::new(name), rows)?;
            }
        }
    }
    made.notes.iter().for_each(|note| eprintln!("{note}"));
    Ok(())
}
