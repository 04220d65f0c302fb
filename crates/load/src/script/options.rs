//! The options of the command line for a script.

use std::path::PathBuf;

/// The options of the command line for a script (artillery.md §4.1).
#[derive(Clone, Debug, Default)]
pub struct ScriptOptions {
    /// The script files, merged in order.
    pub files: Vec<PathBuf>,
    /// `-c`: merged last.
    pub config: Option<PathBuf>,
    /// `-e`.
    pub environment: Option<String>,
    /// `-t`.
    pub target: Option<String>,
    /// `-k`.
    pub insecure: bool,
    /// `-p`.
    pub payload: Option<PathBuf>,
    /// `--overrides`, JSON.
    pub overrides: Option<String>,
    /// `-v`, JSON.
    pub variables: Option<String>,
    /// `--dotenv`.
    pub dotenv: Option<PathBuf>,
    /// `-s`.
    pub solo: bool,
    /// `--check`: also warn about captures and conditions without effect.
    pub check: bool,
    /// `--scenario-name`: a name, or a regular expression.
    pub scenario_name: Option<String>,
    /// `$testId`.
    pub test_id: String,
    /// The environment of the process.
    pub env: Vec<(String, String)>,
}
