//! `weir lab`: experiments on configurations. Flags, files, exit codes; the work is in `weir_lab`.

mod ab;
pub mod asked;
mod capacity;
mod elsewhere;
pub mod exit;
mod experiment;
mod factorial;
pub mod flags;
pub mod kept;
mod labs;
pub mod progress;
mod sheet;
mod tune;
mod why;

use std::path::Path;
use std::process::ExitCode;

use weir_lab::{html, report, stack, store, verdict, wan};
use weir_words::{Language, Said};

pub use flags::LabArgs;
use flags::LabCommand;
use kept::{tell_next, write};

/// Runs `weir lab`.
pub fn main(args: LabArgs, language: Language) -> ExitCode {
    let code = match args.what {
        LabCommand::Ab(args) if args.factorial => factorial::run(&args, language),
        LabCommand::Ab(args) => ab::run(&args, language),
        LabCommand::Compare(args) => elsewhere::run(&args, language),
        LabCommand::Capacity(args) => capacity::run(&args, language),
        LabCommand::Why(args) => why::run(&args, language),
        LabCommand::Tune(args) => tune::run(&args, language),
        LabCommand::Apply { run, store } => tune::write(&store, &run, false, language),
        LabCommand::Undo { run, store } => tune::write(&store, &run, true, language),
        LabCommand::Run(args) => experiment::run(&args, language),
        LabCommand::List { labs } => experiment::list(labs.as_deref(), language),
        LabCommand::Report { run, store, html, json } => show(&store, &run, html.as_deref(), json, language),
        LabCommand::Runs { store } => Ok(list(&store, language)),
        LabCommand::Words => {
            print!("{}\n{}", verdict::table(language), verdict::table_of_why(language));
            Ok(0)
        }
        LabCommand::Block => Ok(stack::keeper::keep()),
        LabCommand::Wan { link } => Err(wan::run(&link).into()),
    };
    ExitCode::from(code.unwrap_or_else(|message| {
        eprintln!("weir lab: {}", message.say(language));
        exit::FAILED
    }))
}

fn show(store: &Path, run: &str, html: Option<&Path>, json: bool, language: Language) -> Result<u8, Said> {
    let run = store::read(store, run)?;
    match json {
        true => println!("{run:#}"),
        false => print!("{}", report::text(&run, language)),
    }
    if html.is_none() && !json {
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
