//! `weir load compare` and `weir load report`: what is done with reports afterwards.

use std::path::{Path, PathBuf};

use serde_json::Value;
use weir_load::output::{compare as comparison, html};

use super::{exit, write};

/// Compares two reports; prints to stdout.
pub fn compare(before: &Path, after: &Path) -> u8 {
    match (read(before), read(after)) {
        (Ok(a), Ok(b)) => {
            print!("{}", comparison::compare((&before.to_string_lossy(), &a), (&after.to_string_lossy(), &b)));
            0
        }
        (Err(error), _) | (_, Err(error)) => fail(&error, exit::USAGE),
    }
}

/// Makes a page of a report.
pub fn page(report: &Path, output: Option<PathBuf>) -> u8 {
    let output = output.unwrap_or_else(|| {
        let mut name = report.as_os_str().to_owned();
        name.push(".html");
        name.into()
    });
    let outcome = read(report).and_then(|report| write(&output, &html::render(&report)));
    match outcome {
        Ok(()) => {
            println!("Report generated: {}", output.display());
            0
        }
        Err(error) => fail(&error, exit::FAILED),
    }
}

fn read(path: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    comparison::read(&path.to_string_lossy(), &text)
}

fn fail(error: &str, code: u8) -> u8 {
    eprintln!("weir load: {error}");
    code
}
