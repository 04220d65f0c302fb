//! The inputs of loading a processor: the run, the engine to use, and the file.

use std::path::Path;
use std::rc::Rc;

use super::files;

/// Facts about the run for a processor, and the output for its lines.
#[derive(Clone)]
pub struct ProcessorHost {
    /// Called with the text of `console.log` and `artillery.log`, one line or several.
    pub say: Rc<dyn Fn(String)>,
    /// `artillery.testRunId`.
    pub test_run_id: String,
    /// `artillery.version`.
    pub version: &'static str,
}

impl Default for ProcessorHost {
    /// Prints to stdout.
    fn default() -> ProcessorHost {
        ProcessorHost { say: Rc::new(|line| println!("{line}")), test_run_id: String::new(), version: "2.0.34" }
    }
}

/// The engine to use; the environment variable `WEIR_JS` forces one: `quickjs` or `node`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// QuickJS, unless the files need Node.
    Fitting,
    /// QuickJS, even if the files need Node.
    QuickJs,
    /// Node.
    Node,
}

impl Choice {
    /// The choice in `WEIR_JS`.
    pub fn from_environment() -> Choice {
        match std::env::var("WEIR_JS").as_deref() {
            Ok("quickjs") => Choice::QuickJs,
            Ok("node") => Choice::Node,
            _ => Choice::Fitting,
        }
    }
}

/// The file to load, in the form for JavaScript.
pub(super) struct ProcessorFile {
    /// The absolute path of the file.
    pub file: String,
    /// The current folder.
    pub folder: String,
    /// QuickJS must be used even if the files need Node.
    pub is_forced: bool,
}

impl ProcessorFile {
    /// Finds the file; the error is for the user.
    pub fn new(path: &Path, choice: Choice) -> Result<ProcessorFile, String> {
        let folder = std::env::current_dir().map_err(|error| format!("current folder: {error}"))?;
        let file = files::plain(&folder.join(path));
        if !file.is_file() {
            return Err(format!("{}: there is no such file", path.display()));
        }
        let text =
            |path: &Path| path.to_str().map(str::to_owned).ok_or_else(|| format!("{}: is not UTF-8", path.display()));
        Ok(ProcessorFile { file: text(&file)?, folder: text(&folder)?, is_forced: choice == Choice::QuickJs })
    }
}
