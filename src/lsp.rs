//! `weir lsp`: a language server over stdin and stdout. Flags and the exit code; the work is in `weir_lsp`.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use weir_lsp::{LspWish, TargetWish};
use weir_words::{Language, Said, say};

use crate::texts;

const AFTER_HELP: &str = "\
Speaks the Language Server Protocol over standard input and output; an editor starts it. It starts no process, opens
no socket, changes no file, and reads only configuration files inside the folders that the editor has open.

The editor's settings target, language, severity, prefix and root win over the flags.";

/// `weir lsp`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct LspArgs {
    /// The program that will read the files: auto, weir, nginx, or "nginx 1.18.0"; auto means weir if a file has a directive that only weir has, else nginx
    #[arg(long, value_name = "PROGRAM", default_value = "auto", value_parser = target)]
    target: TargetWish,
    /// A tree with further files: an absolute include outside of the folders is looked up below it
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// The directory of relative includes in a file that no nginx.conf includes [default: that of the nearest nginx.conf above]
    #[arg(short = 'p', long, value_name = "DIR")]
    prefix: Option<PathBuf>,
    /// Accepted, because editors pass it; there is no other way
    #[arg(long, hide = true)]
    stdio: bool,
}

fn target(text: &str) -> Result<TargetWish, Said> {
    TargetWish::read(text).ok_or_else(|| say!(texts::NO_TARGET, text))
}

/// Runs the verb.
pub fn main(args: &LspArgs, language: Language) -> ExitCode {
    // Editors pass it; there is no other way.
    let _ = args.stdio;
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let wish = LspWish {
        target: args.target,
        root: args.root.as_ref().map(absolute),
        prefix: args.prefix.as_ref().map(|path| absolute(path).display().to_string()),
        language,
    };
    match weir_lsp::serve(io::stdin(), io::stdout(), wish) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("weir lsp: {error}");
            ExitCode::from(2)
        }
    }
}
