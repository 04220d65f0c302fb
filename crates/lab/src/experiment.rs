//! Experiments as data: `labs/NAME/lab.yml` says hosts, processes, load, what happens, and what is expected of it.
//!
//! A lab is run for each of its edges and variants, a block each, and its facts are compared with what was expected; where it
//! compares, its two variants are run in alternating blocks, as `weir lab ab` does, and the verdict is a fact too.

pub mod facts;
pub mod page;
mod read;
pub mod report;
pub mod run;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::ask::Edge;
use crate::metric::Metric;
use crate::stack::{Action, Host, Process, Watch};

pub use read::{KEYS, read};

/// The name of the file in a lab's folder.
pub const FILE: &str = "lab.yml";
/// Folders that are looked through.
pub const LABS_MAX: usize = 1000;

/// Where a lab finds things: what `${…}` in its file stands for.
#[derive(Clone, Debug)]
pub struct Places {
    /// This program: `${weir}`.
    pub weir: PathBuf,
    /// The nginx: `${nginx}`.
    pub nginx: PathBuf,
    /// What was prepared once and is kept: `${cache}`.
    pub cache: PathBuf,
}

/// A lab, read.
#[derive(Clone, Debug)]
pub struct Lab {
    /// Its folder's name.
    pub name: String,
    /// Its folder: `${lab}`.
    pub dir: PathBuf,
    /// In a line.
    pub title: String,
    /// What the field report, or the study, led one to expect.
    pub prior: String,
    /// It belongs to the ones that CI runs: with these of its variants, or with all if none is named.
    pub ci: Option<Vec<String>>,
    /// What has to be there.
    pub needs: Vec<Need>,
    /// What is made once, outside of everything.
    pub prepare: Vec<Prepare>,
    /// Which edges it is for: `nginx`, `weir`.
    pub edges: Vec<String>,
    /// Its variants by name, in order; one without a name if there are none.
    pub variants: Vec<Variant>,
    /// How two variants are compared, if they are.
    pub compare: Option<Compare>,
    /// What is expected.
    pub expect: Vec<Expect>,
}

/// Something that has to be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// A program's name, or a path.
    pub what: String,
    /// The command that brings it.
    pub install: String,
}

/// Something that is made once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepare {
    /// What is there afterwards.
    pub makes: PathBuf,
    /// What it is made from: if something there is newer, it is made again.
    pub from: Option<PathBuf>,
    /// The command.
    pub run: String,
}

/// What is run in a block, but for the edge.
#[derive(Clone, Debug, Default)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// The hosts.
    pub hosts: Vec<Host>,
    /// What is started, the edge left out.
    pub processes: Vec<Process>,
    /// How many of them are started after the edge.
    pub after_edge: usize,
    /// The edge.
    pub front: Front,
    /// What loads it.
    pub load: Option<Sent>,
    /// What warms it up.
    pub warm: Option<Sent>,
    /// What happens.
    pub actions: Vec<Action>,
    /// What is counted.
    pub watches: Vec<Watch>,
    /// Directories that begin empty.
    pub fresh: Vec<String>,
    /// Directories whose changes are forgotten.
    pub overlaid: Vec<String>,
    /// Processes may end.
    pub may_end: bool,
    /// How long a block may take.
    pub limit: Duration,
}

/// The edge of a variant.
#[derive(Clone, Debug, Default)]
pub struct Front {
    /// Its configuration.
    pub conf: PathBuf,
    /// What `-g` says besides.
    pub globals: String,
    /// Descriptors: soft and hard limit.
    pub files: Option<(u64, u64)>,
    /// CPUs it may run on; its half if none are said.
    pub cpus: Vec<usize>,
    /// The port that is waited for and loaded; the configuration's only one if not said.
    pub port: Option<u16>,
    /// The scheme of what is loaded.
    pub scheme: String,
}

/// What is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// The host that sends it.
    pub host: String,
    /// The CPUs it may run on.
    pub cpus: Vec<usize>,
    /// Whom it asks, if not the edge: another process of the stack.
    pub to: Option<SocketAddr>,
    /// What it is.
    pub what: What,
}

/// A load.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// `weir load` of one URL, with these flags besides.
    Path(String, Vec<String>),
    /// `weir load` of an Artillery script, with these flags besides.
    Script(PathBuf, Vec<String>),
    /// A command that prints numbers as JSON in its last line.
    Command(Vec<String>, Vec<(String, String)>),
}

/// How the variants are compared: the first is A, the second B.
#[derive(Clone, Debug)]
pub struct Compare {
    /// What is looked at.
    pub metric: &'static Metric,
    /// What matters to nobody, as a ratio.
    pub threshold: f64,
    /// Pairs of blocks.
    pub pairs: usize,
}

/// Something that is expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Expect {
    /// Facts, added up.
    pub that: Vec<String>,
    /// Facts, added up: the first are divided by them.
    pub of: Vec<String>,
    /// Only of this edge.
    pub edge: Option<String>,
    /// Only of this variant.
    pub variant: Option<String>,
    /// Divided by the same of this variant.
    pub against: Option<String>,
    /// The least and the most it may be.
    pub range: (f64, f64),
    /// Verdicts it may be instead of a number.
    pub verdicts: Vec<String>,
    /// In words.
    pub says: String,
    /// Where it stands.
    pub place: String,
}

impl Lab {
    /// Only these of its variants, and what is expected of them; all if none is named. The error is for the user.
    pub fn only(mut self, names: &[String]) -> Result<Lab, String> {
        if names.is_empty() {
            return Ok(self);
        }
        let has = |name: &String| self.variants.iter().any(|variant| variant.name == *name);
        if let Some(name) = names.iter().find(|name| !has(name)) {
            let known: Vec<&str> = self.variants.iter().map(|variant| variant.name.as_str()).collect();
            return Err(format!("lab {}: there is no variant {name}; there are {}", self.name, known.join(", ")));
        }
        self.variants.retain(|variant| names.contains(&variant.name));
        let kept = |name: &Option<String>| name.as_ref().is_none_or(|name| names.contains(name));
        self.expect.retain(|expect| kept(&expect.variant) && kept(&expect.against));
        Ok(self)
    }

    /// What is not installed of what it needs.
    pub fn missing(&self) -> Vec<&Need> {
        let has = |need: &&Need| match need.what.contains('/') {
            true => self.dir.join(&need.what).exists(),
            false => in_path(&need.what),
        };
        self.needs.iter().filter(|need| !has(need)).collect()
    }
}

fn in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Where Debian has its servers, which is in root's path and nobody else's.
    let mut all = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    all.any(|dir| dir.join(program).is_file())
}

/// The labs below a folder by name: those that cannot be read with why.
pub fn list(labs: &Path, places: &Places) -> BTreeMap<String, Result<Lab, String>> {
    let entries = std::fs::read_dir(labs).into_iter().flatten().flatten().take(LABS_MAX);
    let dirs = entries.map(|entry| entry.path()).filter(|path| path.join(FILE).is_file());
    dirs.map(|dir| (name_of(&dir), read(&dir, places))).collect()
}

fn name_of(dir: &Path) -> String {
    dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Which program an edge's name is.
fn edge_of(name: &str, places: &Places) -> Edge {
    if name == "weir" { Edge::Weir } else { Edge::Nginx(places.nginx.clone()) }
}

/// The keys and the facts as the guide has them.
pub fn tables() -> String {
    let row = |(name, what): &(&str, &str)| format!("| `{name}` | {what} |\n");
    let table = |head: &str, rows: &[(&str, &str)]| {
        format!("| {head} | |\n|---|---|\n{}", rows.iter().map(row).collect::<String>())
    };
    format!("{}\n{}", table("key", KEYS), table("fact", facts::FACTS))
}

#[cfg(test)]
mod tests;
