//! `weir lab compare`: runs that other tools or machines made, from files to a report.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use weir_lab::elsewhere::{self, Elsewhere};
use weir_lab::import::{self, Imported};
use weir_lab::schedule::ComparedSide;
use weir_lab::texts;
use weir_lab::{html, metric, report, stats, store};
use weir_load::random;
use weir_words::{Language, Said, say};

use super::asked::threshold;
use super::exit;
use super::flags::CompareArgs;
use super::kept::{tell_kept, tell_next, write};

/// Largest report file that is read, in bytes.
const REPORT_MAX: u64 = 64 << 20;

/// Runs the comparison, prints the report and stores the run.
pub(super) fn run(args: &CompareArgs, language: Language) -> Result<u8, Said> {
    let primary = metric::of(&args.metric)
        .filter(|metric| metric.key != "cpu")
        .ok_or_else(|| say!(texts::ERR_METRIC_OF_REPORT, &args.metric))?;
    let it = Elsewhere {
        before: (args.before.display().to_string(), runs(&args.before, ComparedSide::Before)?),
        after: (args.after.display().to_string(), runs(&args.after, ComparedSide::After)?),
        primary,
        threshold: threshold(primary, args.threshold)?,
        seed: args.seed.unwrap_or_else(|| random::below(1_000_000) as u64),
    };
    let run = elsewhere::compare(&it);
    let kept = store::keep(&args.store, run["id"].as_str().unwrap_or("run"), &run)?;
    args.html.as_deref().map_or(Ok(()), |path| write(path, &html::page(&run, language)))?;
    if args.json {
        println!("{run:#}");
    } else {
        print!("{}", report::text(&run, language));
        tell_kept(&kept, language);
        tell_next(&run, language);
    }
    Ok(match run["verdict"]["name"].as_str() {
        Some("no verdict" | "not comparable") => exit::NO_VERDICT,
        _ if run["verdict"]["is_regression"] == true => exit::REGRESSION,
        _ => 0,
    })
}

/// The reports of a directory in the order of their names, or one file.
fn runs(place: &Path, arm: ComparedSide) -> Result<Vec<Imported>, Said> {
    let failed =
        |path: &Path, error: std::io::Error| say!(texts::ERR_FILE, path.display().to_string(), error.to_string());
    let mut files = if place.is_dir() {
        let entries = fs::read_dir(place).map_err(|error| failed(place, error))?;
        let is_report = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
        entries.flatten().map(|entry| entry.path()).filter(is_report).take(stats::RUNS_MAX + 1).collect()
    } else {
        vec![place.to_owned()]
    };
    files.sort();
    match files.len() {
        0 => {
            return Err(say!(texts::ERR_NO_REPORTS, place.display().to_string()));
        }
        count if count > stats::RUNS_MAX => {
            return Err(say!(texts::ERR_MANY_REPORTS, place.display().to_string(), stats::RUNS_MAX));
        }
        _ => {}
    }
    let read = |(number, path): (usize, &PathBuf)| {
        let mut text = String::new();
        let file = fs::File::open(path).and_then(|file| file.take(REPORT_MAX).read_to_string(&mut text));
        file.map_err(|error| failed(path, error))?;
        import::read(&path.display().to_string(), &text, number, arm)
    };
    files.iter().enumerate().map(read).collect()
}
