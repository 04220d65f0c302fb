//! What a rule is, what it may look at, and what it finds.

pub use weir_conf::language::{GLOSSARY, Language, Words, words};
use weir_conf::{At, Tree};

use crate::edit::Edit;
use crate::facts::Facts;
use crate::target::Target;
use crate::version::Version;
use crate::view::{Spot, View};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// It does not start, does not do what it says, or gives away what it should keep.
    Wrong,
    /// It will hurt under a condition that the sentence names.
    Risk,
    /// It changes nothing, or could be said better.
    Note,
}

impl Level {
    /// Its name in reports and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Wrong => "wrong",
            Level::Risk => "risk",
            Level::Note => "note",
        }
    }
}

/// What a rule is about; reports are ordered by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Whether it starts and does what it says.
    Works,
    /// What others can do with it.
    Safety,
    /// Limits of processes, kernel and nginx that are too low for what is wanted.
    Limits,
    /// What makes it slow.
    Speed,
    /// Statements without effect.
    NoEffect,
}

impl Group {
    /// All of them, in the order of a report.
    pub const ALL: [Group; 5] = [Group::Works, Group::Safety, Group::Limits, Group::Speed, Group::NoEffect];

    /// Its heading.
    pub const fn heading(self) -> Words {
        match self {
            Group::Works => words("Does not do what it says", "설정과 다르게 동작함"),
            Group::Safety => words("Safety", "보안"),
            Group::Limits => words("Limits", "한도"),
            Group::Speed => words("Speed", "속도"),
            Group::NoEffect => words("No effect", "효과 없음"),
        }
    }
}

/// A sentence with values, in every language; see [`said!`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// English.
    pub en: String,
    /// Korean.
    pub ko: String,
}

impl Said {
    /// In this language.
    pub fn say(&self, language: Language) -> &str {
        match language {
            Language::English => &self.en,
            Language::Korean => &self.ko,
        }
    }
}

/// One after the other.
impl std::ops::Add<Said> for Said {
    type Output = Said;

    fn add(self, more: Said) -> Said {
        Said { en: self.en + &more.en, ko: self.ko + &more.ko }
    }
}

/// What looks for words looks in the English.
impl std::ops::Deref for Said {
    type Target = str;

    fn deref(&self) -> &str {
        &self.en
    }
}

/// A name or a value by itself is the same in every language; a sentence is not, and is made by [`said!`].
pub fn same(text: impl Into<String>) -> Said {
    let en = text.into();
    Said { ko: en.clone(), en }
}

/// A sentence in every language, of the same values: `said!("{} workers", "워커 {}개", count)`.
#[macro_export]
macro_rules! said {
    ($en:literal, $ko:literal $(, $value:expr)* $(,)?) => {
        $crate::rule::Said { en: format!($en $(, $value)*), ko: format!($ko $(, $value)*) }
    };
}

/// One rule: a file in `rules/`.
pub struct Rule {
    /// Its name: gixy's where gixy has the same.
    pub id: &'static str,
    /// How much its findings matter, unless one says otherwise.
    pub level: Level,
    /// What it is about.
    pub group: Group,
    /// What is so, in one sentence.
    pub says: Words,
    /// Why that matters and what to do, in one or two sentences.
    pub remedy: Words,
    /// Where that is known from.
    pub source: &'static str,
    /// Looks at a case.
    pub check: fn(&Case<'_>, &mut Found),
    /// A case in which it speaks.
    pub fires: Example,
    /// A case like it in which it is silent.
    pub silent: Example,
}

/// A configuration and facts that show a rule.
pub struct Example {
    /// nginx.conf.
    pub conf: &'static str,
    /// What else is so.
    pub facts: fn(&mut Facts),
}

impl Example {
    /// A configuration alone.
    pub const fn conf(conf: &'static str) -> Example {
        Example { conf, facts: |_| {} }
    }

    /// A configuration, and what is known besides.
    pub const fn with(conf: &'static str, facts: fn(&mut Facts)) -> Example {
        Example { conf, facts }
    }
}

/// What rules look at.
pub struct Case<'c> {
    /// The configuration.
    pub view: &'c View<'c>,
    /// The program that reads it.
    pub target: Target,
    /// The nginx whose rules hold there.
    pub version: Version,
    /// What is known of host, process and load.
    pub facts: &'c Facts,
}

/// One thing found.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The rule's name.
    pub rule: &'static str,
    /// How much it matters.
    pub level: Level,
    /// Where; `None` for what is not in a file.
    pub at: Option<At>,
    /// What is so here, with the values.
    pub what: Said,
    /// The one line to write or the command to run.
    pub write: Option<String>,
    /// The change that does it.
    pub fix: Vec<Edit>,
}

impl Finding {
    /// A finding about a statement.
    pub fn at(spot: Spot<'_>, what: Said) -> Finding {
        Finding { at: Some(spot.at()), ..Finding::nowhere(what) }
    }

    /// A finding about what is not in the file.
    pub fn nowhere(what: Said) -> Finding {
        Finding { rule: "", level: Level::Note, at: None, what, write: None, fix: Vec::new() }
    }

    /// With the line to write.
    pub fn write(mut self, line: impl Into<String>) -> Finding {
        self.write = Some(line.into());
        self
    }

    /// With the change that does it.
    pub fn fix(mut self, edit: Option<Edit>) -> Finding {
        self.fix.extend(edit);
        self
    }
}

/// What a rule has found so far.
pub struct Found {
    rule: &'static str,
    level: Level,
    findings: Vec<Finding>,
}

/// Findings kept of one rule: more of the same would only be read past.
pub const FINDINGS_MAX: usize = 200;

impl Found {
    /// Nothing yet.
    pub fn new(rule: &Rule) -> Found {
        Found { rule: rule.id, level: rule.level, findings: Vec::new() }
    }

    /// Keeps a finding, at the rule's level.
    pub fn add(&mut self, finding: Finding) {
        self.add_as(self.level, finding);
    }

    /// Keeps a finding at a level of its own.
    pub fn add_as(&mut self, level: Level, finding: Finding) {
        let is_new = !self.findings.iter().any(|other| other.at == finding.at && other.what == finding.what);
        if is_new && self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding { rule: self.rule, level, ..finding });
        }
    }

    /// What was found.
    pub fn findings(self) -> Vec<Finding> {
        self.findings
    }
}

impl Case<'_> {
    /// Whether what reads the file surely does what this version of nginx began to do: weir does, and of nginx somebody
    /// said which it is.
    pub fn is_surely(&self, since: Version) -> bool {
        self.is_weir() || self.facts.version_is_told.is_some() && self.version >= since
    }

    /// Whether weir reads the file.
    pub fn is_weir(&self) -> bool {
        self.target == Target::Weir
    }

    /// What holds where a directive of the outermost blocks is not written.
    pub fn default_of(&self, name: &str, path: &[&str]) -> Option<&'static str> {
        let path: Vec<String> = path.iter().map(|block| (*block).to_owned()).collect();
        self.target.known(name, &path).and_then(|known| known.default)
    }

    /// The tree, for edits.
    pub fn tree(&self) -> &Tree {
        self.view.tree()
    }
}

/// What rule files begin with.
pub mod prelude {
    pub use super::same;
    pub use super::{Case, Example, Finding, Found, Group, Level, Rule, Said, Words, words};
    pub use crate::edit;
    pub use crate::reach::{self, Piece};
    pub use crate::regex::ByteSet;
    pub use crate::said;
    pub use crate::version::Version;
    pub use crate::view::{Match, Scope, Spot, matches_by};
}
