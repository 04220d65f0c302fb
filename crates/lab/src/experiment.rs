//! Experiments as data: `labs/NAME/lab.yml` has the hosts, processes, load, actions and expectations of an experiment.
//!
//! The lab runs one block for each edge and variant, and compares its facts with the expectations. If the file has
//! `compare`, the lab runs its variants two and two in alternating blocks, as `weir lab ab` does. The verdicts are then
//! facts too.

pub mod facts;
mod lab;
pub mod link;
pub mod page;
mod read;
pub mod report;
pub mod run;

use std::collections::BTreeMap;
use std::path::Path;

use crate::ask::EdgeProgram;
use crate::said::Said;
use lab::name_of;

pub use lab::{Compare, Expect, Experiment, FILE, Front, Need, Places, Prepare, Sent, Variant, What};
pub use read::{KEYS, read};

/// Most folders that are searched.
pub const LABS_MAX: usize = 1000;

/// The labs below a folder, by name. A lab that cannot be read has its error.
pub fn list(labs: &Path, places: &Places) -> BTreeMap<String, Result<Experiment, Said>> {
    let entries = std::fs::read_dir(labs).into_iter().flatten().flatten().take(LABS_MAX);
    let dirs = entries.map(|entry| entry.path()).filter(|path| path.join(FILE).is_file());
    dirs.map(|dir| (name_of(&dir), read(&dir, places))).collect()
}

/// The program for an edge's name.
fn edge_of(name: &str, places: &Places) -> EdgeProgram {
    if name == "weir" { EdgeProgram::Weir } else { EdgeProgram::Nginx(places.nginx.clone()) }
}

/// The tables of keys and facts in the guide.
pub fn tables() -> String {
    let row = |(name, what): &(&str, &str)| format!("| `{name}` | {what} |\n");
    let table = |head: &str, rows: &[(&str, &str)]| {
        format!("| {head} | |\n|---|---|\n{}", rows.iter().map(row).collect::<String>())
    };
    format!("{}\n{}", table("key", KEYS), table("fact", facts::FACTS))
}

#[cfg(test)]
mod tests;
