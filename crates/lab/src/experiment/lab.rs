//! An experiment as read from its file.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::metric::Metric;
use crate::said::{Said, say};
use crate::stack::{Action, Host, LineWatch, Process};

/// The name of the file in a lab's folder.
pub const FILE: &str = "lab.yml";

/// The paths that `${…}` in a lab's file stands for.
#[derive(Clone, Debug)]
pub struct Places {
    /// This program: `${weir}`.
    pub weir: PathBuf,
    /// The nginx binary: `${nginx}`.
    pub nginx: PathBuf,
    /// The directory of prepared files, which are kept: `${cache}`.
    pub cache: PathBuf,
}

/// An experiment, as read from its file.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its folder's name.
    pub name: String,
    /// Its folder: `${lab}`.
    pub dir: PathBuf,
    /// Its title, one line.
    pub title: String,
    /// The expectation from the field report or the study.
    pub prior: String,
    /// CI runs it. The list names the variants for CI; empty means all. `None`: CI does not run it.
    pub ci: Option<Vec<String>>,
    /// The programs and files that it needs.
    pub needs: Vec<Need>,
    /// Things that are made once, outside of any block.
    pub prepare: Vec<Prepare>,
    /// The edges that it is for: `nginx`, `weir`.
    pub edges: Vec<String>,
    /// Its variants, in order. One variant without a name if the file has none.
    pub variants: Vec<Variant>,
    /// How variants are compared, two and two. Empty: they are not.
    pub compare: Vec<Compare>,
    /// The expectations.
    pub expect: Vec<Expect>,
}

/// A program or file that has to be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// A program's name, or a path.
    pub what: String,
    /// The command that installs it.
    pub install: String,
}

/// A thing that is made once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepare {
    /// The path that the command makes.
    pub makes: PathBuf,
    /// Its source. If any file there is newer, the command runs again.
    pub from: Option<PathBuf>,
    /// The command.
    pub run: String,
}

/// The settings of a block, except the edge program.
#[derive(Clone, Debug, Default)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// The hosts.
    pub hosts: Vec<Host>,
    /// The processes, without the edge.
    pub processes: Vec<Process>,
    /// How many of these processes start after the edge.
    pub after_edge: usize,
    /// The edge.
    pub front: Front,
    /// The load.
    pub load: Option<Sent>,
    /// The warm-up load.
    pub warm: Option<Sent>,
    /// The actions during the block.
    pub actions: Vec<Action>,
    /// The lines that are counted.
    pub watches: Vec<LineWatch>,
    /// Directories that are empty at the start.
    pub fresh: Vec<String>,
    /// Directories whose changes are dropped after the block.
    pub overlaid: Vec<String>,
    /// Processes may end during the block.
    pub may_end: bool,
    /// The longest time of a block.
    pub limit: Duration,
}

/// The edge of a variant.
#[derive(Clone, Debug, Default)]
pub struct Front {
    /// Its configuration.
    pub conf: PathBuf,
    /// Further directives, passed with `-g`.
    pub globals: String,
    /// Limit of its descriptors: soft and hard.
    pub files: Option<(u64, u64)>,
    /// CPUs that it may run on. Empty: the edge's share.
    pub cpus: Vec<usize>,
    /// The port to wait for and to load. `None`: the only port in the configuration.
    pub port: Option<u16>,
    /// The scheme of the loaded URL.
    pub scheme: String,
}

/// A load and its sender.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// The host of the sender.
    pub host: String,
    /// The CPUs that the sender may run on.
    pub cpus: Vec<usize>,
    /// The target, if it is another process of the stack than the edge.
    pub to: Option<SocketAddr>,
    /// The kind of load.
    pub what: What,
}

/// A load.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// `weir load` of one URL, with these additional flags.
    Path(String, Vec<String>),
    /// `weir load` of an Artillery script, with these additional flags.
    Script(PathBuf, Vec<String>),
    /// A command that prints numbers as JSON in its last output line.
    Command(Vec<String>, Vec<(String, String)>),
}

/// How two variants are compared. The first is A, the second is B.
#[derive(Clone, Debug)]
pub struct Compare {
    /// Their names. `None`: the two variants that the lab has.
    pub sides: Option<[String; 2]>,
    /// The metric.
    pub metric: &'static Metric,
    /// The threshold below which a change is negligible, as a ratio.
    pub threshold: f64,
    /// Pairs of blocks.
    pub pairs: usize,
}

/// An expectation.
#[derive(Clone, Debug, PartialEq)]
pub struct Expect {
    /// The facts that are summed.
    pub that: Vec<String>,
    /// The facts whose sum divides the first sum.
    pub of: Vec<String>,
    /// Only for this edge.
    pub edge: Option<String>,
    /// Only for this variant.
    pub variant: Option<String>,
    /// Divide by the same figure of this variant.
    pub against: Option<String>,
    /// The least and the largest allowed value.
    pub range: (f64, f64),
    /// Allowed verdicts, instead of a range: of the comparison whose second variant is `variant`, or of the only one.
    pub verdicts: Vec<String>,
    /// A busy machine breaks it: with `--noisy` it is measured, and does not fail the run.
    pub is_timed: bool,
    /// The expectation in words.
    pub says: String,
    /// Its place in the file.
    pub place: String,
}

impl Expect {
    /// Whether this verdict would be of that comparison.
    fn is_about(&self, compare: &Compare) -> bool {
        self.variant.is_none() || compare.sides.as_ref().map(|[_, after]| after) == self.variant.as_ref()
    }
}

impl Experiment {
    /// Keeps only the named variants and their expectations. No names: keeps all. The error is for the user.
    pub fn only(mut self, names: &[String]) -> Result<Experiment, Said> {
        if names.is_empty() {
            return Ok(self);
        }
        let has = |name: &String| self.variants.iter().any(|variant| variant.name == *name);
        if let Some(name) = names.iter().find(|name| !has(name)) {
            let known: Vec<&str> = self.variants.iter().map(|variant| variant.name.as_str()).collect();
            return Err(say!(ERR_NO_VARIANT, &self.name, name, known.join(", ")));
        }
        self.variants.retain(|variant| names.contains(&variant.name));
        let kept = |name: &Option<String>| name.as_ref().is_none_or(|name| names.contains(name));
        let is_compared = |compare: &Compare| match &compare.sides {
            Some(sides) => sides.iter().all(|name| names.contains(name)),
            None => true,
        };
        self.compare.retain(is_compared);
        self.expect.retain(|expect| {
            let is_asked = expect.verdicts.is_empty() || self.compare.iter().any(|compare| expect.is_about(compare));
            is_asked && kept(&expect.variant) && kept(&expect.against)
        });
        Ok(self)
    }

    /// The needs that are not installed.
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
    // Debian installs servers here. Only root has this directory in PATH.
    let mut all = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    all.any(|dir| dir.join(program).is_file())
}

/// The name of a lab's folder.
pub(super) fn name_of(dir: &Path) -> String {
    dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
