//! `weir why`: names the limit of a system that runs, from outside.

mod args;
mod edge;

use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_lab::capacity::Objective;
use weir_lab::why::running;
use weir_lab::why::running::settings::WatchSettings;
use weir_lab::why::say as verdict;
use weir_words::{Language, Said, left, say};

use crate::lab::exit;
use crate::{stop, texts};

pub use args::NowArgs;

/// Share of requests that may fail within the objective.
const FAILURES: f64 = 0.001;
/// The shortest watch and the longest one.
const LENGTH: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(600));

/// Runs the verb.
pub fn main(args: &NowArgs, language: Language) -> ExitCode {
    match run(args, language) {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            eprintln!("weir why: {}", message.say(language));
            ExitCode::from(exit::FAILED)
        }
    }
}

fn run(args: &NowArgs, language: Language) -> Result<u8, Said> {
    if !(LENGTH.0..=LENGTH.1).contains(&args.length) {
        return Err(say!(texts::NOW_LENGTH, LENGTH.0.as_secs(), LENGTH.1.as_secs() / 60));
    }
    let edge = edge::find(args)?;
    let name = if edge.is_weir { "weir" } else { "nginx" };
    let conf = edge.conf.display().to_string();
    let seconds = args.length.as_secs();
    eprintln!("{}", say!(texts::NOW_WATCHES, name, edge.pid, &conf, seconds).say(language));
    let objective = Objective { quantile: args.slo.0, limit_ms: args.slo.1.as_secs_f64() * 1000.0, errors: FAILURES };
    let pid = edge.pid;
    let wish = WatchSettings {
        edge,
        length: args.length,
        inside: args.inside.unwrap_or_default(),
        good: args.good.clone(),
        objective,
    };
    let stop = stop::on_signal()?;
    let run = running::run(&wish, &stop)?;
    if args.json {
        println!("{run:#}");
    } else {
        print!("{}", verdict::text(&run, language));
        let others = run["watched"]["others"].as_array().into_iter().flatten();
        let others: Vec<&str> = others.filter_map(serde_json::Value::as_str).collect();
        let seconds = format!("{:.0}", run["watched"]["seconds"].as_f64().unwrap_or(0.0));
        let columns = if language == Language::Korean { 12 } else { 11 };
        let watched = match others.is_empty() {
            true => say!(texts::NOW_WATCHED_ALONE, seconds, name, pid),
            false => say!(texts::NOW_WATCHED, seconds, name, pid, others.join(", ")),
        };
        println!("  {} {}", left(texts::NOW_LABEL_WATCHED.say(language), columns), watched.say(language));
    }
    Ok(match run["verdict"]["name"].as_str() {
        _ if stop.load(Ordering::Relaxed) => exit::INTERRUPTED,
        Some("no verdict") => exit::NO_VERDICT,
        _ => 0,
    })
}
