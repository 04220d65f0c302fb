//! `weir lab`: experiments on configurations. Flags, files, exit codes; the work is in `weir_lab`.

mod ab;
mod capacity;
mod elsewhere;
mod experiment;
mod factorial;
mod flags;
mod labs;
mod progress;
mod sheet;
mod tune;
mod why;

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use weir_lab::command::CommandLine;
use weir_lab::{html, next, report, stack, store, texts, verdict, wan};
use weir_net::process;
use weir_words::{Language, Said, say};

pub use flags::LabArgs;
use flags::{StackArgs, What};
use progress::Progress;

use crate::stop;

/// Exit codes of `weir lab`.
mod exit {
    /// The change is worse, or is better in one way and worse in another; the measurement proves it.
    pub const REGRESSION: u8 = 1;
    /// The experiment failed to run.
    pub const FAILED: u8 = 2;
    /// The measurement allows no verdict.
    pub const NO_VERDICT: u8 = 3;
    /// Ended by a signal.
    pub const INTERRUPTED: u8 = crate::stop::INTERRUPTED;
}

/// Runs `weir lab`.
pub fn main(args: LabArgs, language: Language) -> ExitCode {
    let code = match args.what {
        What::Ab(args) => ab::run(&args, language),
        What::Compare(args) => elsewhere::run(&args, language),
        What::Capacity(args) => capacity::run(&args, language),
        What::Why(args) => why::run(&args, language),
        What::Tune(args) => tune::run(&args, language),
        What::Apply { run, store } => tune::write(&store, &run, false, language),
        What::Undo { run, store } => tune::write(&store, &run, true, language),
        What::Run(args) => experiment::run(&args, language),
        What::List { labs } => experiment::list(labs.as_deref(), language),
        What::Report { run, store, html } => show(&store, &run, html.as_deref(), language),
        What::Runs { store } => Ok(list(&store, language)),
        What::Words => {
            print!("{}\n{}", verdict::table(language), verdict::table_of_why(language));
            Ok(0)
        }
        What::Block => Ok(stack::keeper::keep()),
        What::Wan { there, back } => Err(wan::run(Duration::from_micros(there), Duration::from_micros(back)).into()),
    };
    ExitCode::from(code.unwrap_or_else(|message| {
        eprintln!("weir lab: {}", message.say(language));
        exit::FAILED
    }))
}

/// Runs an experiment until it ends or a signal ends it. Prints the report and stores the run. Returns the run and an
/// exit code of [`exit`]; the code is 0 if there is a verdict.
fn experiment(
    args: &StackArgs,
    seed: u64,
    language: Language,
    run: impl FnOnce(&AtomicBool, &mut Progress) -> Result<Value, Said>,
) -> Result<(Value, u8), Said> {
    let stop = stop::on_signal()?;
    // Each connection needs a descriptor in the load and in the edge. If the kernel refuses to raise the limit, the
    // old limit stays.
    let _ = process::raise_nofile();
    let mut progress = Progress::new(&args.store, language);
    println!("{}", texts::LOAD_GOES.with(&[seed.into()]).say(language));
    let outcome = run(&stop, &mut progress);
    progress.end();
    let mut run = outcome?;
    run["command"] = CommandLine::new(std::env::args()).words().into();
    let kept = store::keep(&args.store, run["id"].as_str().unwrap_or("run"), &run)?;
    args.html.as_deref().map_or(Ok(()), |path| write(path, &html::page(&run, language)))?;
    print!("{}", report::text(&run, language));
    tell_kept(&kept, language);
    tell_next(&run, language);
    let code = match run["verdict"]["name"].as_str() {
        _ if stop.load(Ordering::Relaxed) => exit::INTERRUPTED,
        Some("no verdict" | "not comparable") => exit::NO_VERDICT,
        _ => 0,
    };
    Ok((run, code))
}

/// Prints the path of the stored run.
fn tell_kept(path: &Path, language: Language) {
    println!("{}", texts::KEPT_AT.with(&[path.display().to_string().into()]).say(language));
}

/// Prints the next command.
fn tell_next(run: &Value, language: Language) {
    if let Some(next) = next::next(run) {
        println!("{}", next.say(language));
    }
}

fn show(store: &Path, run: &str, html: Option<&Path>, language: Language) -> Result<u8, Said> {
    let run = store::read(store, run)?;
    print!("{}", report::text(&run, language));
    if html.is_none() {
        tell_next(&run, language);
    }
    html.map_or(Ok(()), |path| write(path, &html::page(&run, language)))?;
    Ok(0)
}

fn list(store: &Path, language: Language) -> u8 {
    for (id, kind, verdict) in store::list(store, language) {
        println!("{id}  {kind:<8}  {verdict}");
    }
    0
}

/// Writes a file that a user asked for.
fn write(path: &Path, text: &str) -> Result<(), Said> {
    std::fs::write(path, text).map_err(|error| say!(texts::ERR_FILE, path.display().to_string(), error.to_string()))
}
