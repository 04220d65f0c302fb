//! `weir lab`: experiments on configurations. Flags, files, exit codes; the work is in `weir_lab`.

mod ab;
mod asked;
mod capacity;
mod elsewhere;
mod exit;
mod experiment;
mod factorial;
mod flags;
mod kept;
mod labs;
mod progress;
mod sheet;
mod tune;
mod why;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use weir_lab::{html, report, stack, store, verdict, wan};
use weir_words::{Language, Said};

pub use flags::LabArgs;
use flags::What;
use kept::{tell_next, write};

/// Runs `weir lab`.
pub fn main(args: LabArgs, language: Language) -> ExitCode {
    let code = match args.what {
        What::Ab(args) if args.factorial => factorial::run(&args, language),
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
