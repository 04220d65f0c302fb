//! Artillery scripts: turns text files into a [`Plan`](crate::plan::Plan).
//!
//! [`load`] follows Artillery's order: it merges the files, applies the environment and the flags, renders `config`,
//! checks the shape, and makes the plan (artillery.md §0 and §1). A problem is reported with file, line and column.
//! Not here: running the plan.

mod build;
mod document;
mod dotenv;
mod files;
mod http3;
mod idle;
mod keys;
mod merge;
mod near;
mod node;
mod notes;
mod number;
mod options;
mod payload;
mod phases;
mod pipeline;
mod reach;
mod render;
mod request;
mod scenarios;
mod settings;
mod source;
mod steps;
mod summary;
mod sweep;
mod take;
mod validate;
mod yaml;

mod scalar;

use std::path::Path;

pub use document::{DocumentEntry, ScriptDocument};
pub use keys::reference;
pub use options::ScriptOptions;
pub use reach::FarReach;
pub use steps::{is_method, times};

use weir_words::Said;

use crate::plan::Plan;
use crate::value::Value;
use node::Node;
use notes::Notes;
use source::StartProblem;

/// Why a script cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// For the terminal; every line ends in `\n`.
    pub text: Said,
    /// Artillery's exit code: 1, or 11 where Artillery's worker would end.
    pub exit: i32,
    /// Warnings from before the error.
    pub warnings: Vec<Said>,
}

/// Makes the plan of a script. `load_js` returns the exports of a `.js` or `.ts` script.
///
/// Reads the files that the script names: CSV, files of forms. Sends nothing.
pub fn load(options: &ScriptOptions, load_js: &dyn Fn(&Path) -> Result<Value, String>) -> Result<Plan, Refusal> {
    let mut notes = Notes::default();
    match try_load(options, load_js, &mut notes) {
        Ok(mut plan) => match notes.refusal() {
            None => {
                plan.files = std::mem::take(&mut notes.files);
                plan.warnings = notes.into_warnings();
                Ok(plan)
            }
            Some(text) => Err(Refusal { text, exit: 1, warnings: notes.into_warnings() }),
        },
        Err(stop) => {
            // The first problem is Artillery's; the same run reports all other problems too.
            let more = notes.refusal().unwrap_or_default();
            let text = Said::list(&[notes.sources.render(&stop.problem), more], "");
            Err(Refusal { text, exit: stop.exit, warnings: notes.into_warnings() })
        }
    }
}

fn try_load(
    options: &ScriptOptions,
    load_js: &dyn Fn(&Path) -> Result<Value, String>,
    notes: &mut Notes,
) -> Result<Plan, StartProblem> {
    let environment = pipeline::environment(options, notes);
    let script = files::read_all(options, load_js, notes)?;
    let written = script.clone();
    let planned = settled_plan(script, options, environment, notes);
    if options.check && planned.is_ok() {
        idle::check(&written, notes);
    }
    if planned.is_err() {
        sweep::unknown_keys(&written, notes);
    }
    planned
}

fn settled_plan(
    script: Node,
    options: &ScriptOptions,
    environment: Value,
    notes: &mut Notes,
) -> Result<Plan, StartProblem> {
    let written = script.clone();
    let mut settled = match pipeline::settle(script, options, environment, notes) {
        Ok(settled) => settled,
        Err(problem) => {
            notes.add(validate::errors(&written).into_iter().filter(|other| !other.what.contains("\"config.target\"")));
            return Err(problem.into());
        }
    };
    let mut errors = validate::errors(&settled.script).into_iter();
    if let Some(problem) = errors.next() {
        notes.add(errors);
        return Err(problem.into());
    }
    let config = settled.script.member_mut("config");
    if options.solo || config.get("phases").is_none() {
        pipeline::one_vuser(config);
    }
    let script: Node = settled.script.clone();
    let scenarios = scenarios::chosen(&script, options.scenario_name.as_deref())?;
    scenarios::check_engines(&script, &scenarios)?;
    Ok(build::plan(settled, &scenarios, notes))
}

/// True if the text can be read as YAML.
#[cfg(test)]
pub(crate) fn is_yaml(text: &str) -> bool {
    yaml::read(text, 0).is_ok()
}
