//! Rules, their inputs, and their findings.

use weir_conf::{At, Problem, Tree};
use weir_words::{Said, Words, words};

use crate::edit::Edit;
use crate::facts::Facts;
use crate::symptom::Symptom;
use crate::target::Target;
use crate::version::Version;
use crate::view::{Spot, View};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingLevel {
    /// The server does not start, does not do what the configuration says, or discloses data that it should protect.
    Wrong,
    /// It causes harm under a condition that the sentence names.
    Risk,
    /// It has no effect, or could be written better.
    Note,
}

impl FindingLevel {
    /// Its name in reports and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            FindingLevel::Wrong => "wrong",
            FindingLevel::Risk => "risk",
            FindingLevel::Note => "note",
        }
    }
}

/// The subject of a rule. Reports are ordered by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Whether the server starts and does what the configuration says.
    Works,
    /// Attacks that it allows.
    Safety,
    /// Limits of processes, the kernel and nginx that are too low for the need.
    Limits,
    /// Causes of slowness.
    Speed,
    /// Statements without effect.
    NoEffect,
}

impl Group {
    /// All groups, in the order of a report.
    pub const ALL: [Group; 5] = [Group::Works, Group::Safety, Group::Limits, Group::Speed, Group::NoEffect];

    /// Its heading.
    pub const fn heading(self) -> Words {
        match self {
            Group::Works => words("Has another effect than its text says", "설정과 다르게 동작함"),
            Group::Safety => words("Safety", "보안"),
            Group::Limits => words("Limits", "한도"),
            Group::Speed => words("Speed", "속도"),
            Group::NoEffect => words("No effect", "효과 없음"),
        }
    }
}

/// One rule: a file in `rules/`.
pub struct Rule {
    /// Its name: gixy's, if gixy has the same rule.
    pub id: &'static str,
    /// The level of its findings, unless a finding sets another.
    pub level: FindingLevel,
    /// Its subject.
    pub group: Group,
    /// The symptoms that it can cause. Empty for none.
    pub symptoms: &'static [Symptom],
    /// The condition that it reports, in one sentence.
    pub says: Words,
    /// Why it matters and what to do, in one or two sentences.
    pub remedy: Words,
    /// The source of this knowledge.
    pub source: &'static str,
    /// Checks a case.
    pub check: fn(&Case<'_>, &mut Findings),
    /// A case in which it fires.
    pub fires: Example,
    /// A similar case in which it is silent.
    pub silent: Example,
}

/// A configuration and facts for a rule's example.
pub struct Example {
    /// nginx.conf.
    pub conf: &'static str,
    /// Sets further facts.
    pub facts: fn(&mut Facts),
}

impl Example {
    /// A configuration alone.
    pub const fn conf(conf: &'static str) -> Example {
        Example { conf, facts: |_| {} }
    }

    /// A configuration with further facts.
    pub const fn with(conf: &'static str, facts: fn(&mut Facts)) -> Example {
        Example { conf, facts }
    }
}

/// The input of a rule.
pub struct Case<'c> {
    /// The configuration.
    pub view: &'c View<'c>,
    /// The program that reads it.
    pub target: Target,
    /// The nginx version whose rules apply.
    pub version: Version,
    /// Facts about host, process and load.
    pub facts: &'c Facts,
    /// The problems for which weir's edge refuses it, if the caller has read it with the edge.
    pub refused: Option<&'c [Problem]>,
}

/// One thing found.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The rule's name.
    pub rule: &'static str,
    /// Its level.
    pub level: FindingLevel,
    /// Its place. `None` if it is not about a line of a file.
    pub at: Option<At>,
    /// The finding in words, with its values.
    pub what: Said,
    /// The line to write, or the command to run.
    pub write: Option<String>,
    /// The change of the files.
    pub fix: Vec<Edit>,
}

impl Finding {
    /// A finding about a statement.
    pub fn at(spot: Spot<'_>, what: Said) -> Finding {
        Finding { at: Some(spot.at()), ..Finding::nowhere(what) }
    }

    /// A finding that is not about a line of a file.
    pub fn nowhere(what: Said) -> Finding {
        Finding { rule: "", level: FindingLevel::Note, at: None, what, write: None, fix: Vec::new() }
    }

    /// Adds the line to write.
    pub fn write(mut self, line: impl Into<String>) -> Finding {
        self.write = Some(line.into());
        self
    }

    /// Adds the change of the files.
    pub fn fix(mut self, edit: Option<Edit>) -> Finding {
        self.fix.extend(edit);
        self
    }
}

/// The findings of a rule so far.
pub struct Findings {
    rule: &'static str,
    level: FindingLevel,
    findings: Vec<Finding>,
}

/// Most findings of one rule: users do not read more of the same.
pub const FINDINGS_MAX: usize = 200;

impl Findings {
    /// No findings yet.
    pub fn new(rule: &Rule) -> Findings {
        Findings { rule: rule.id, level: rule.level, findings: Vec::new() }
    }

    /// Adds a finding at the rule's level.
    pub fn add(&mut self, finding: Finding) {
        self.add_as(self.level, finding);
    }

    /// Adds a finding at another level.
    pub fn add_as(&mut self, level: FindingLevel, finding: Finding) {
        let is_new = !self.findings.iter().any(|other| other.at == finding.at && other.what == finding.what);
        if is_new && self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding { rule: self.rule, level, ..finding });
        }
    }

    /// All findings.
    pub fn findings(self) -> Vec<Finding> {
        self.findings
    }
}

impl Case<'_> {
    /// Whether the target certainly has the behaviour that nginx introduced in this version: weir has it; for nginx,
    /// the version has to be known.
    pub fn is_surely(&self, since: Version) -> bool {
        self.is_weir() || self.facts.version_is_told.is_some() && self.version >= since
    }

    /// Whether weir reads the file.
    pub fn is_weir(&self) -> bool {
        self.target == Target::Weir
    }

    /// The default of a directive in these blocks.
    pub fn default_of(&self, name: &str, path: &[&str]) -> Option<&'static str> {
        let path: Vec<String> = path.iter().map(|block| (*block).to_owned()).collect();
        self.target.known(name, &path).and_then(|known| known.default)
    }

    /// The tree, for edits.
    pub fn tree(&self) -> &Tree {
        self.view.tree()
    }
}

/// The imports of every rule file.
pub mod prelude {
    pub use super::{Case, Example, Finding, FindingLevel, Findings, Group, Rule};
    pub use crate::caches::{caches, stale_in_force, stale_words};
    pub use crate::edit;
    pub use crate::lines::edits_for;
    pub use crate::possible::PossibleRequest;
    pub use crate::reach::{self, ArgumentPiece};
    pub use crate::regex::ByteSet;
    pub use crate::symptom::Symptom;
    pub use crate::upgrade;
    pub use crate::version::Version;
    pub use crate::view::{Match, Scope, Spot, matches_by};
    pub use weir_words::{Said, Words, said, words};
}
