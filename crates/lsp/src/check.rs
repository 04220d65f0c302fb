//! The diagnostics of a configuration: what `weir edge -t` and `weir doctor` say of it, with the same places and texts.
//!
//! Only a machine can say whether a certificate, a key, a user or a host is there, and which limits a process has: weir asks
//! none, and leaves these messages out. So does it with every line whose value another program fills.

use weir_conf::{At, Level, Problem, Span};
use weir_doctor::rule::Group;
use weir_doctor::{Facts, Finding, FindingLevel, Target, rules};
use weir_net::answers;
use weir_words::{Language, Said, say};

use crate::config::{Config, Home};
use crate::settings::{LspWish, Severity};
use crate::template::{Placeholders, has_placeholder};
use crate::texts;

/// How an editor shows a diagnostic. Its number is that of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiagnosticTag {
    /// Without effect.
    Unnecessary = 1,
    /// Old.
    Deprecated = 2,
}

/// The changes that an editor can make about a diagnostic at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuickFix {
    /// Write another word.
    Word {
        /// The bytes to replace.
        span: Span,
        /// The word.
        with: String,
    },
    /// Make the fix of the finding with this number in [`CheckedConfig::findings`].
    Finding(usize),
}

/// A diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// The file: an index into the files of the tree.
    pub file: u32,
    /// The bytes to point at.
    pub span: Span,
    /// How severe it is.
    pub severity: Severity,
    /// The rule of the doctor, or nginx's word for the level.
    pub code: String,
    /// The program that says so: `weir edge -t`, `nginx -t`, `weir doctor` or `weir lsp`.
    pub source: &'static str,
    /// The text.
    pub message: String,
    /// Further places with the same problem.
    pub also: Vec<At>,
    /// How to show it.
    pub tag: Option<DiagnosticTag>,
    /// The remedy.
    pub fix: Option<QuickFix>,
}

/// A checked configuration.
pub struct CheckedConfig {
    /// The diagnostics, in the order of the programs.
    pub diagnoses: Vec<Diagnosis>,
    /// The findings of the doctor, with the files of the tree that the doctor has read.
    pub findings: Vec<Finding>,
    /// The program that will read the files.
    pub target: Target,
}

/// Rules about words that a later nginx has replaced.
const DEPRECATED: [&str; 2] = ["listen_http2_deprecated", "obsolete_directive"];

/// The rule about names that nginx does not know.
const UNKNOWN: &str = "unknown_directive";

/// The facts that weir may use: none of this machine.
pub fn facts(wish: &LspWish) -> Facts {
    Facts { version_is_told: wish.target.told(), ..Facts::default() }
}

/// Checks a configuration. `None` if `is_stale` says between two steps that nobody wants it any more.
pub fn check(config: &Config, wish: &LspWish, is_stale: &dyn Fn() -> bool) -> Option<CheckedConfig> {
    let own = config.own();
    let target = config.target(wish.target);
    let mut checks = Checks { config, language: wish.language, target, diagnoses: Vec::new() };
    checks.reading();
    // Without a place for a part, its words have no meaning.
    let has_meaning = config.alone.is_some() || matches!(config.home, Home::Main(_));
    let wants_objections = has_meaning && (target == Target::Weir || config.is_incomplete);
    let read = wants_objections.then(|| answers::unasked(|| weir_edge::load::read_problems(&config.tree)));
    if is_stale() {
        return None;
    }
    // A part alone is another tree.
    let refused = read.as_ref().filter(|_| config.alone.is_none()).map(|read| read.refused.as_slice());
    let findings = answers::unasked(|| weir_doctor::examine_read(own, target, &facts(wish), refused));
    if is_stale() {
        return None;
    }
    if let Some(read) = &read {
        checks.checked(&read.told, &findings);
    }
    if has_meaning {
        checks.findings(&findings, config.shift);
    }
    if config.alone.is_some() && target != Target::Weir {
        // In its blocks, the part's words are directives.
        let mut inside = answers::unasked(|| weir_doctor::examine(&config.tree, target, &facts(wish)));
        inside.retain(|finding| finding.rule == UNKNOWN && finding.fix.is_empty());
        checks.findings(&inside, 0);
    }
    let Checks { mut diagnoses, .. } = checks;
    diagnoses.retain(|one| config.is_real(one.file));
    Some(CheckedConfig { diagnoses, findings, target })
}

struct Checks<'c> {
    config: &'c Config,
    language: Language,
    target: Target,
    diagnoses: Vec<Diagnosis>,
}

impl Checks<'_> {
    fn name(&self) -> &'static str {
        match self.target {
            Target::Weir => "weir edge -t",
            Target::Nginx(_) => "nginx -t",
        }
    }

    /// The problems of reading, and the files that were not read.
    fn reading(&mut self) {
        for problem in &self.config.problems {
            self.problem(problem, None);
        }
        for (at, why) in &self.config.refused {
            self.own(*at, Severity::Error, "refused_file", why);
        }
        for note in &self.config.notes {
            let severity = if note.is_harmless { Severity::Hint } else { Severity::Information };
            self.own(Some(note.at), severity, "unread_file", &note.why);
        }
    }

    fn own(&mut self, at: Option<At>, severity: Severity, code: &str, why: &Said) {
        let (file, span) = self.place(at);
        self.diagnoses.push(Diagnosis {
            file,
            span,
            severity,
            code: code.to_owned(),
            source: "weir lsp",
            message: why.say(self.language).to_owned(),
            also: Vec::new(),
            tag: None,
            fix: None,
        });
    }

    /// The problems of weir's reader. For nginx they are those of a part, about which the doctor says nothing.
    fn checked(&mut self, checked: &[Problem], findings: &[Finding]) {
        let is_weir = self.target == Target::Weir;
        let is_told = |problem: &Problem| {
            let of_it = |finding: &Finding| finding.at == problem.at && rules::refuses(finding);
            !is_weir && findings.iter().any(of_it)
        };
        for problem in checked.iter().filter(|problem| rules::is_of_file(problem)) {
            let is_meant = is_weir || !problem.is_weirs_own && problem.level == Level::Emerg && !is_told(problem);
            // A part inherits what weir does not see.
            let is_inherited = self.config.is_incomplete && problem.what.starts_with("no \"");
            if is_meant && !is_inherited {
                let text = (!is_weir).then(|| self.as_nginx(problem));
                self.problem(problem, text);
            }
        }
    }

    /// The words of the doctor about a refused value.
    fn as_nginx(&self, problem: &Problem) -> String {
        let hint = problem.todo.as_deref().and_then(|todo| todo.lines().next());
        let said = match hint.filter(|hint| !hint.contains("weir")) {
            Some(hint) => say!(texts::SAYS_OF_PART_HINT, problem.what.as_str(), hint),
            None => say!(texts::SAYS_OF_PART, problem.what.as_str()),
        };
        said.say(self.language).to_owned()
    }

    fn problem(&mut self, problem: &Problem, text: Option<String>) {
        let (file, span) = self.place(problem.at);
        if self.is_filled(problem.at, &problem.what) {
            return;
        }
        let remedies = problem.todo.iter().flat_map(|todo| todo.lines());
        let whole = || std::iter::once(problem.what.as_str()).chain(remedies).collect::<Vec<_>>().join("\n");
        let meant = problem.todo.as_deref().and_then(meant).zip(quoted(&problem.what));
        let fix = meant.and_then(|(with, word)| self.word(file, span, word, with));
        let severity = match problem.level {
            Level::Emerg => Severity::Error,
            Level::Warn => Severity::Warning,
        };
        let is_idle = problem.level == Level::Warn && problem.what.ends_with("directive has no effect");
        self.diagnoses.push(Diagnosis {
            file,
            span,
            severity,
            code: if text.is_some() { "refused_value".to_owned() } else { problem.level.name().to_owned() },
            source: self.name(),
            message: text.unwrap_or_else(whole),
            also: problem.also.clone(),
            tag: is_idle.then_some(DiagnosticTag::Unnecessary),
            fix,
        });
    }

    /// The findings of the doctor. weir's reader has told the lines that it refuses.
    /// `shift` is added to the numbers of their files.
    fn findings(&mut self, findings: &[Finding], shift: u32) {
        for (number, finding) in findings.iter().enumerate() {
            let at = finding.at.map(|at| At { file: at.file + shift, ..at });
            let is_told = self.target == Target::Weir && rules::refuses(finding);
            if is_told || self.is_filled(at, finding.what.en()) {
                continue;
            }
            let (file, span) = self.place(at);
            let rule = rules::lookup(finding.rule);
            let is_idle = rule.is_some_and(|rule| rule.group == Group::NoEffect) && finding.level == FindingLevel::Note;
            let severity = match finding.level {
                FindingLevel::Wrong => Severity::Error,
                FindingLevel::Risk => Severity::Warning,
                FindingLevel::Note if is_idle => Severity::Hint,
                FindingLevel::Note => Severity::Information,
            };
            let tag = match finding.rule {
                rule if DEPRECATED.contains(&rule) => Some(DiagnosticTag::Deprecated),
                _ => is_idle.then_some(DiagnosticTag::Unnecessary),
            };
            self.diagnoses.push(Diagnosis {
                file,
                span,
                severity,
                code: finding.rule.to_owned(),
                source: "weir doctor",
                message: message(finding, self.language),
                also: Vec::new(),
                tag,
                fix: self.fix_of(number, finding, file, span),
            });
        }
    }

    fn fix_of(&self, number: usize, finding: &Finding, file: u32, span: Span) -> Option<QuickFix> {
        if !finding.fix.is_empty() {
            return Some(QuickFix::Finding(number));
        }
        if finding.rule != UNKNOWN {
            return None;
        }
        let with = finding.write.as_deref()?.split([' ', ';']).next()?;
        self.word(file, span, quoted(finding.what.en())?, with)
    }

    /// The place of a problem; without one, the beginning of the main file.
    fn place(&self, at: Option<At>) -> (u32, Span) {
        at.map_or((self.config.shift, Span::default()), |at| (at.file, at.span))
    }

    /// Whether a diagnostic depends on text that another program fills.
    fn is_filled(&self, at: Option<At>, what: &str) -> bool {
        let Some(at) = at else { return false };
        let kind = self.config.placeholders_of(at.file);
        if kind == Placeholders::Generator {
            return true;
        }
        if !has_placeholder(kind, at.span.of(self.config.bytes(at.file))) {
            return false;
        }
        let is_of_name =
            what.starts_with("unknown directive \"") && quoted(what).is_some_and(|name| !name.contains('$'));
        !is_of_name && !what.ends_with("directive is not allowed here")
    }

    /// The fix that writes another word, if the word stands once at this place.
    fn word(&self, file: u32, span: Span, word: &str, with: &str) -> Option<QuickFix> {
        let text = span.of(self.config.bytes(file)).to_ascii_lowercase();
        let wanted = word.to_ascii_lowercase();
        let is_name = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let is_it = |at: &usize| {
            let end = at + wanted.len();
            let before = at.checked_sub(1).and_then(|before| text.get(before));
            text.get(*at..end) == Some(wanted.as_bytes()) && !is_name(before) && !is_name(text.get(end))
        };
        let last = text.len().checked_sub(wanted.len()).filter(|_| !wanted.is_empty())?;
        let mut places = (0..=last).filter(is_it);
        let (place, further) = (places.next()?, places.next());
        let start = span.start.checked_add(u32::try_from(place).ok()?)?;
        let end = start.checked_add(u32::try_from(wanted.len()).ok()?)?;
        further.is_none().then(|| QuickFix::Word { span: Span { start, end }, with: with.to_owned() })
    }
}

/// The text of a finding: what is wrong, why it matters, and the line to write.
pub fn message(finding: &Finding, language: Language) -> String {
    let remedy = rules::lookup(finding.rule).map(|rule| rule.remedy.say(language));
    let write = finding.write.as_ref().map(|line| say!(texts::WRITE, line));
    let lines = [Some(finding.what.say(language)), remedy, write.as_ref().map(|write| write.say(language))];
    lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// The word that a remedy proposes: `did you mean "WORD"?`.
fn meant(todo: &str) -> Option<&str> {
    todo.lines().next()?.strip_prefix("did you mean \"")?.strip_suffix("\"?")
}

/// The first text in quotes.
fn quoted(what: &str) -> Option<&str> {
    what.split('"').nth(1)
}
