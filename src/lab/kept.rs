//! Runs an experiment, prints its report, and keeps the run.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use weir_lab::command::CommandLine;
use weir_lab::{html, next, report, store, texts};
use weir_net::process;
use weir_words::{Language, Said, say};

use super::exit;
use super::flags::StackArgs;
use super::progress::ProgressPrinter;
use crate::stop;

/// Runs an experiment until it ends or a signal ends it. Prints the report and stores the run. Returns the run and an
/// exit code of [`exit`]; the code is 0 if there is a verdict.
pub fn experiment(
    args: &StackArgs,
    seed: u64,
    language: Language,
    run: impl FnOnce(&AtomicBool, &mut ProgressPrinter) -> Result<Value, Said>,
) -> Result<(Value, u8), Said> {
    let stop = stop::on_signal()?;
    // Each connection needs a descriptor in the load and in the edge. If the kernel refuses to raise the limit, the
    // old limit stays.
    let _ = process::raise_nofile();
    let mut progress = ProgressPrinter::new(&args.store, language);
    let first = texts::LOAD_GOES.with(&[seed.into()]);
    match args.json {
        true => eprintln!("{}", first.say(language)),
        false => println!("{}", first.say(language)),
    }
    let outcome = run(&stop, &mut progress);
    progress.end();
    let mut run = outcome?;
    run["command"] = CommandLine::new(std::env::args()).words().into();
    let kept = store::keep(&args.store, run["id"].as_str().unwrap_or("run"), &run)?;
    args.html.as_deref().map_or(Ok(()), |path| write(path, &html::page(&run, language)))?;
    if args.json {
        println!("{run:#}");
    } else {
        print!("{}", report::text(&run, language));
        tell_kept(&kept, language);
        tell_next(&run, language);
    }
    let code = match run["verdict"]["name"].as_str() {
        _ if stop.load(Ordering::Relaxed) => exit::INTERRUPTED,
        Some("no verdict" | "not comparable") => exit::NO_VERDICT,
        _ => 0,
    };
    Ok((run, code))
}

/// Prints the path of the stored run.
pub fn tell_kept(path: &Path, language: Language) {
    println!("{}", texts::KEPT_AT.with(&[path.display().to_string().into()]).say(language));
}

/// Prints the next command.
pub fn tell_next(run: &Value, language: Language) {
    if let Some(next) = next::next(run) {
        println!("{}", next.say(language));
    }
}

/// Writes a file that a user asked for.
pub fn write(path: &Path, text: &str) -> Result<(), Said> {
    std::fs::write(path, text).map_err(|error| say!(texts::ERR_FILE, path.display().to_string(), error.to_string()))
}
