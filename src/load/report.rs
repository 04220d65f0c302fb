//! Report files: those that a run writes, and those of `weir load compare` and `weir load report`, which read them.

use std::path::{Path, PathBuf};

use serde_json::Value;
use weir_load::output::console::Console;
use weir_load::output::{RunFacts, compare as comparison, html, json, legacy};
use weir_load::record::RunResults;
use weir_load::texts;
use weir_words::{Language, Said, say};

use super::exit;
use super::flags::RunArgs;

/// Checks that the folders of the report files exist, before anything is sent. The error is for the user.
pub fn has_place(args: &RunArgs) -> Result<(), Said> {
    for path in args.output.iter().chain(&args.html) {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
            return Err(say!(texts::NO_FOLDER, folder.display().to_string()));
        }
    }
    Ok(())
}

/// Writes the report files from the flags, and prints their paths.
pub fn files(args: &RunArgs, result: &RunResults, facts: &RunFacts, console: &Console) -> Result<(), Said> {
    if let Some(path) = &args.output {
        let text = match std::env::var_os("ARTILLERY_USE_LEGACY_REPORT_FORMAT") {
            Some(_) => legacy::write(result, facts, &Value::Null),
            None => json::write(result, facts),
        };
        write(path, &text)?;
        print!("{}", console.log_file(&path.to_string_lossy()));
    }
    if let Some(path) = &args.html {
        write(path, &html::render(&json::document(result, facts), console.language))?;
        print!("{}", console.log_file(&path.to_string_lossy()));
    }
    Ok(())
}

/// Writes a file that a user asked for.
pub fn write(path: &Path, text: &str) -> Result<(), Said> {
    std::fs::write(path, text).map_err(|error| say!(texts::OF_FILE, path.display().to_string(), error.to_string()))
}

/// Compares two reports and prints to stdout.
pub fn compare(before: &Path, after: &Path, language: Language) -> u8 {
    if before.is_dir() || after.is_dir() {
        let (before, after) = (before.display().to_string(), after.display().to_string());
        return fail(&say!(texts::SEVERAL, before, after), exit::USAGE, language);
    }
    match (read(before), read(after)) {
        (Ok(a), Ok(b)) => {
            print!(
                "{}",
                comparison::compare((&before.to_string_lossy(), &a), (&after.to_string_lossy(), &b), language)
            );
            0
        }
        (Err(error), _) | (_, Err(error)) => fail(&error, exit::USAGE, language),
    }
}

/// Makes an HTML page from a report.
pub fn page(report: &Path, output: Option<PathBuf>, language: Language) -> u8 {
    let output = output.unwrap_or_else(|| {
        let mut name = report.as_os_str().to_owned();
        name.push(".html");
        name.into()
    });
    let outcome = read(report).and_then(|report| write(&output, &html::render(&report, language)));
    match outcome {
        Ok(()) => {
            println!("{}", say!(texts::REPORT_GENERATED, output.display().to_string()).say(language));
            0
        }
        Err(error) => fail(&error, exit::FAILED, language),
    }
}

fn read(path: &Path) -> Result<Value, Said> {
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| say!(texts::OF_FILE, &shown, error.to_string()))?;
    comparison::read(&path.to_string_lossy(), &text)
}

fn fail(error: &Said, code: u8, language: Language) -> u8 {
    eprintln!("weir load: {}", error.say(language));
    code
}
