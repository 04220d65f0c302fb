//! `weir ci`: checks and comparisons for a pipeline. Flags, files and exit codes; the work is in `weir_ci` and `weir_lab`.

mod ab;
mod check;
mod flags;
mod outputs;

use std::process::ExitCode;

use weir_words::Language;

pub use flags::CiArgs;
use flags::CiCommand;

use crate::lab::exit;

/// Runs the verb.
pub fn main(args: &CiArgs, language: Language) -> ExitCode {
    let code = match &args.what {
        CiCommand::Ab(args) => ab::run(args, language),
        CiCommand::Check(args) => check::run(args, language),
    };
    ExitCode::from(code.unwrap_or_else(|message| {
        eprintln!("weir ci: {}", message.say(language));
        exit::FAILED
    }))
}
