//! The report of a check of files.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weir_doctor::FindingLevel;
use weir_words::{Language, Said, left, say, width};

use crate::escape::{code_cell, sentence};
use crate::finding::{BaselineChange, CheckFinding};
use crate::junit::{self, JunitCase, JunitEnd};
use crate::report::{CiReport, cut};
use crate::revision::CodeRevision;
use crate::{sarif, texts};

/// Most findings that a comment lists.
const LISTED_MAX: usize = 50;

/// A check of configurations.
#[derive(Clone, Debug)]
pub struct CheckReport {
    /// The names of the configurations, relative to the root.
    pub confs: Vec<String>,
    /// The directory that names are relative to.
    pub root: PathBuf,
    /// The findings, the most important first.
    pub findings: Vec<CheckFinding>,
    /// The revision before, if findings that it has are left out, and the numbers of those and of the ones that are gone.
    pub baseline: Option<(CodeRevision, usize, usize)>,
    /// The least level that fails the check. `None`: none does.
    pub fails_from: Option<FindingLevel>,
    /// The name in the hidden marker of the comment.
    pub marker: String,
}

impl CheckReport {
    /// Leaves out the findings that the revision before has.
    pub fn compare(&mut self, before: &CodeRevision, change: BaselineChange) {
        self.findings = change.brought;
        self.baseline = Some((before.clone(), change.known, change.gone));
    }

    /// Whether a finding fails the check.
    pub fn fails(&self) -> bool {
        self.findings.iter().any(|finding| self.is_failure(finding))
    }

    fn is_failure(&self, finding: &CheckFinding) -> bool {
        self.fails_from.is_some_and(|from| finding.level <= from)
    }

    fn count(&self, level: FindingLevel) -> usize {
        self.findings.iter().filter(|finding| finding.level == level).count()
    }

    /// The numbers of findings.
    fn counts(&self) -> Said {
        let [wrong, risk, note] =
            [FindingLevel::Wrong, FindingLevel::Risk, FindingLevel::Note].map(|level| self.count(level));
        match &self.baseline {
            None => say!(texts::CHECK_COUNT, wrong, risk, note),
            Some((before, known, _)) => say!(texts::CHECK_COUNT_NEW, wrong, risk, note, &*before.asked, *known),
        }
    }

    fn gone(&self) -> Option<Said> {
        let (before, _, gone) = self.baseline.as_ref()?;
        (*gone > 0).then(|| say!(texts::CHECK_GONE, *gone, &*before.asked))
    }

    /// The report for a terminal: a line for each finding.
    pub fn text(&self, language: Language) -> String {
        let places: Vec<String> = self.findings.iter().map(CheckFinding::shown_place).collect();
        let widest = places.iter().map(|place| width(place)).max().unwrap_or(0);
        let mut text = String::new();
        for (finding, place) in self.findings.iter().zip(&places) {
            let level = level_word(finding.level).say(language);
            let what = finding.what.say(language);
            text += &format!("{}  {}  {}: {what}\n", left(level, 5), left(place, widest), finding.rule);
            if let Some(write) = &finding.write {
                text += &format!("       → {}\n", write.replace('\n', " "));
            }
        }
        text += &format!("{}\n", self.counts().say(language));
        text + &self.gone().map_or(String::new(), |gone| format!("{}\n", gone.say(language)))
    }

    /// The comment for a pull request.
    pub fn markdown(&self, language: Language) -> String {
        let mut out = CiReport::marker_line(&self.marker) + "\n";
        out += &format!("### weir ci: {}\n\n", sentence(&self.confs.join(", ")));
        out += &format!("{}\n", sentence(self.counts().say(language)));
        out += &self.gone().map_or(String::new(), |gone| format!("\n{}\n", sentence(gone.say(language))));
        if self.findings.is_empty() {
            return out;
        }
        let heading = [texts::HEAD_LEVEL, texts::HEAD_PLACE, texts::HEAD_RULE, texts::HEAD_FINDING];
        out += &format!("\n| {} |\n|---|---|---|---|\n", heading.map(|text| text.say(language)).join(" | "));
        for finding in self.findings.iter().take(LISTED_MAX) {
            let remedy =
                finding.remedy.as_ref().map_or(String::new(), |said| format!("<br>{}", sentence(said.say(language))));
            out += &format!(
                "| {} | {} | {} | {}{remedy} |\n",
                level_word(finding.level).say(language),
                code_cell(&finding.shown_place()),
                code_cell(&finding.rule),
                sentence(finding.what.say(language)),
            );
        }
        if let Some(more) = self.findings.len().checked_sub(LISTED_MAX).filter(|more| *more > 0) {
            out += &format!("\n{}\n", say!(texts::LEFT_OUT, more).say(language));
        }
        cut(out, language)
    }

    /// A case for each finding, and one for each configuration without any.
    pub fn junit(&self, language: Language) -> String {
        let case = |finding: &CheckFinding| {
            let place = finding.shown_place();
            let remedy = finding.remedy.as_ref().map_or("", |said| said.say(language));
            let what = finding.what.say(language).to_owned();
            JunitCase {
                class: format!("weir.ci.check.{}", finding.rule),
                name: format!("{place} {}", finding.rule),
                file: finding.place.as_ref().filter(|place| place.is_inside).map(|place| place.file.clone()),
                end: match self.is_failure(finding) {
                    true => JunitEnd::Failed(what, format!("{place}\n{remedy}")),
                    false => JunitEnd::Skipped(what),
                },
            }
        };
        let clean = |conf: &String| JunitCase {
            class: "weir.ci.check".to_owned(),
            name: conf.clone(),
            file: Some(conf.clone()),
            end: JunitEnd::Passed,
        };
        let is_clean = |conf: &&String| {
            let is_of = |finding: &CheckFinding| finding.place.as_ref().is_some_and(|place| place.file == **conf);
            !self.findings.iter().any(is_of)
        };
        let cases: Vec<JunitCase> =
            self.confs.iter().filter(is_clean).map(clean).chain(self.findings.iter().map(case)).collect();
        junit::document("weir ci check", &cases, 0.0)
    }

    /// The report as SARIF.
    pub fn sarif(&self, language: Language) -> Value {
        sarif::document(&self.findings, &self.root, self.baseline.is_some(), language)
    }

    /// The report for programs. Its schema is `docs/reference/schemas/ci-check.json`.
    pub fn json(&self) -> Value {
        let baseline = self
            .baseline
            .as_ref()
            .map(|(before, known, gone)| json!({"before": before.to_json(), "known": known, "gone": gone}));
        json!({
            "version": 1,
            "kind": "ci-check",
            "verdict": {
                "name": if self.fails() { "failed" } else { "passed" },
                "text": self.counts().en(),
                "text_said": self.counts(),
                "is_regression": self.fails(),
            },
            "confs": self.confs,
            "counts": {
                "wrong": self.count(FindingLevel::Wrong), "risk": self.count(FindingLevel::Risk),
                "note": self.count(FindingLevel::Note),
            },
            "baseline": baseline,
            "findings": self.findings.iter().map(CheckFinding::to_json).collect::<Vec<_>>(),
        })
    }
}

const fn level_word(level: FindingLevel) -> weir_words::Text {
    match level {
        FindingLevel::Wrong => texts::LEVEL_WRONG,
        FindingLevel::Risk => texts::LEVEL_RISK,
        FindingLevel::Note => texts::LEVEL_NOTE,
    }
}

/// The least level of a name: `wrong`, `risk`, `note`; `none` for no failure.
pub fn fails_from(name: &str) -> Option<Option<FindingLevel>> {
    match name {
        "none" => Some(None),
        "wrong" => Some(Some(FindingLevel::Wrong)),
        "risk" => Some(Some(FindingLevel::Risk)),
        "note" => Some(Some(FindingLevel::Note)),
        _ => None,
    }
}

/// A name relative to the root, for a report.
pub fn relative(file: &Path, root: &Path) -> String {
    file.strip_prefix(root).unwrap_or(file).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{brought, tests::findings_of};

    fn report(text: &str, from: &str) -> CheckReport {
        CheckReport {
            confs: vec!["n.conf".to_owned()],
            root: "/r".into(),
            findings: findings_of(text),
            baseline: None,
            fails_from: fails_from(from).flatten(),
            marker: "check".to_owned(),
        }
    }

    const TRAP: &str = "http { server { listen 80; location /a { alias /b/; } } }\n";

    #[test]
    fn the_least_level_decides() {
        assert!(report(TRAP, "wrong").fails() && report(TRAP, "note").fails() && !report(TRAP, "none").fails());
        assert!(!report("events { }\nworker_processes auto;\nworker_rlimit_nofile 4096;\n", "risk").fails());
        assert_eq!(fails_from("loud"), None);
    }

    #[test]
    fn only_what_a_revision_brought_is_reported() {
        let mut report = report(TRAP, "wrong");
        let before = CodeRevision { asked: "main".into(), commit: "0".into(), subject: String::new() };
        let root = PathBuf::from("/r");
        report.compare(&before, brought((&findings_of(TRAP), &root), (report.findings.clone(), &root)));
        assert!(!report.fails() && report.findings.is_empty());
        assert!(
            report.text(Language::English).contains("that main did not have; "),
            "{}",
            report.text(Language::English)
        );
        assert_eq!(report.json()["baseline"]["gone"], 0);
        assert!(report.junit(Language::English).contains("name=\"n.conf\" file=\"n.conf\" time=\"0.000\"/>"));
    }

    #[test]
    fn all_forms_name_the_finding() {
        for language in [Language::English, Language::Korean] {
            let report = report(TRAP, "wrong");
            let forms = [
                report.text(language),
                report.markdown(language),
                report.junit(language),
                report.sarif(language).to_string(),
            ];
            assert!(forms.iter().all(|form| form.contains("alias_traversal")), "{forms:?}");
        }
        let markdown = report(TRAP, "wrong").markdown(Language::English);
        assert!(
            markdown.starts_with("<!-- weir ci: check -->\n### ") && markdown.contains("| wrong | `n.conf:1` |"),
            "{markdown}"
        );
    }
}
