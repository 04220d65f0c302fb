//! `weir load from`: opens access logs and recordings, and writes the script that `weir_load::traffic` makes of them.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use weir_conf::log_format::{COMMON, Format, VHOST_COMBINED};
use weir_load::texts;
use weir_load::traffic::{self, MadeScript, Wish};
use weir_words::{Language, Said, say};

use super::exit::{self, usage};
use super::flags::FromArgs;
use super::report::write;
use crate::files::Disk;

/// Makes the script; returns the exit code.
pub fn run(args: &FromArgs, language: Language) -> u8 {
    let format = match &args.format {
        None if args.conf.is_some() => return usage(&say!(texts::CONF_NEEDS_FORMAT), language),
        None => None,
        Some(text) => match format(text, args.conf.as_deref()) {
            Ok(format) => Some(format),
            Err(message) => return usage(&message, language),
        },
    };
    let stem = args.output.as_ref().map(|path| path.with_extension("").display().to_string());
    let wish = Wish {
        format,
        host: args.host.clone(),
        without_assets: args.without_assets,
        minutes: args.minutes,
        speed: args.speed,
        all_clients: args.all_clients,
        target: args.target.clone(),
        stem,
        language,
    };
    let logs = args.logs.iter().map(|path| open(path)).collect::<Result<_, _>>();
    let made = logs.and_then(|logs| traffic::make(&wish, logs).map_err(Said::from));
    match made.and_then(|made| give(args, &made)) {
        Ok(()) => 0,
        Err(message) => {
            eprintln!("weir load from: {}", message.say(language));
            exit::FAILED
        }
    }
}

/// A log or a recording, with its name.
type Source = (String, Box<dyn Read>);

fn open(path: &Path) -> Result<Source, Said> {
    let name = path.display().to_string();
    if name == "-" {
        return Ok(("stdin".to_owned(), Box::new(std::io::stdin())));
    }
    let file = File::open(path).map_err(|error| say!(texts::OF_FILE, &name, error.to_string()))?;
    Ok((name, Box::new(file)))
}

/// The format with this name, or the format that the text is.
pub(crate) fn format(text: &str, conf: Option<&Path>) -> Result<Format, Said> {
    if text.contains('$') {
        let format = Format::read(&[text]).filter(Format::has_time);
        return format.ok_or_else(|| say!(texts::FORMAT_NEEDS));
    }
    let Some(conf) = conf else {
        let known = match text {
            "combined" => return named_combined(),
            "common" => COMMON,
            "vhost_combined" => VHOST_COMBINED,
            "json" => return Ok(Format::json()),
            _ => return Err(say!(texts::FORMAT_NEEDS_CONF, text)),
        };
        return Format::read(&[known]).ok_or_else(|| say!(texts::FORMAT_UNREADABLE, text));
    };
    let shown = conf.display().to_string();
    let folder = conf.parent().map_or_else(String::new, |folder| format!("{}/", folder.display()));
    let (tree, problems) = weir_conf::load(&Disk, &shown, &folder, &|_| false);
    let found = tree.named("http").find_map(|http| Format::named(http, text));
    let why = problems.first().map_or_else(String::new, |problem| format!(" ({})", problem.what));
    let found = found.ok_or_else(|| say!(texts::NO_LOG_FORMAT, &shown, text, why))?;
    match found.has_time() {
        true => Ok(found),
        false => Err(say!(texts::FORMAT_WITHOUT_TIME, text, shown)),
    }
}

fn named_combined() -> Result<Format, Said> {
    Format::read(&[weir_conf::log_format::COMBINED]).ok_or_else(|| say!(texts::FORMAT_UNREADABLE, "combined"))
}

/// Writes the script and its rows; the notes go to stderr.
fn give(args: &FromArgs, made: &MadeScript) -> Result<(), Said> {
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
