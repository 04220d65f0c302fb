//! Reports of findings, as text for people and as JSON for programs.

use std::fmt::Write;

use serde_json::{Value, json};
use weir_conf::{ColumnUnit, Span, TextRegion, Tree, TreeLines};
use weir_words::{Language, left, said, width, words};

use crate::explain::place;
use crate::facts::Facts;
use crate::rule::{Finding, FindingLevel, Group, Rule};
use crate::rules;
use crate::target::Target;

/// The subject of a report.
pub struct Subject<'s> {
    /// The configuration.
    pub tree: &'s Tree,
    /// The program that reads the file.
    pub target: Target,
    /// Whether the version is known, not assumed.
    pub version_is_told: bool,
    /// The other facts that were examined.
    pub facts: &'s Facts,
    /// The directory that file names are shown relative to. Empty for none.
    pub directory: &'s str,
}

impl Subject<'_> {
    /// The place of a finding, relative to the directory. `None` if it is not about a line of a file.
    fn place(&self, finding: &Finding) -> Option<String> {
        let at = place(self.tree, finding.at?);
        Some(at.strip_prefix(self.directory).unwrap_or(&at).to_owned()).filter(|at| !at.is_empty())
    }
}

/// The width of a report, in columns.
pub(crate) const COLUMNS: usize = 100;

/// Most findings of one rule that are shown one by one.
const SHOWN_MAX: usize = 12;

/// The report: most important first, one paragraph for each rule, followed by its places.
pub fn text(subject: &Subject<'_>, findings: &[Finding], language: Language) -> String {
    let mut text = String::new();
    let mut done: Vec<&str> = Vec::new();
    let mut heading: Option<(FindingLevel, Group)> = None;
    for finding in findings {
        let Some(rule) = rules::lookup(finding.rule).filter(|rule| !done.contains(&rule.id)) else { continue };
        done.push(rule.id);
        if heading != Some((finding.level, rule.group)) {
            heading = Some((finding.level, rule.group));
            let level = level(finding.level).say(language);
            let _ = writeln!(text, "{level} · {}\n", rule.group.heading().say(language));
        }
        paragraph(&mut text, subject, rule, findings, language);
    }
    text.push_str(&summary(subject, findings, language));
    for said in rules::unchecked(subject.tree) {
        let _ = writeln!(text, "{}", said.say(language));
    }
    text
}

/// A line for each finding: its level, its place, its rule and the rule's title. The most important is first; the
/// summary is last.
pub fn brief(subject: &Subject<'_>, findings: &[Finding], language: Language) -> String {
    lines(subject, findings, language) + &summary(subject, findings, language)
}

/// A line for each finding, in columns. A finding without a place has `-` there.
pub(crate) fn lines(subject: &Subject<'_>, findings: &[Finding], language: Language) -> String {
    let known = findings.iter().filter_map(|finding| Some((finding, rules::lookup(finding.rule)?)));
    let rows: Vec<[String; 4]> = known
        .map(|(finding, rule)| {
            let at = subject.place(finding).unwrap_or_else(|| "-".to_owned());
            let level = level(finding.level).say(language).to_lowercase();
            [level, at, rule.id.to_owned(), rule.says.say(language).to_owned()]
        })
        .collect();
    let widest = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max();
    let [levels, places, names] = [0, 1, 2].map(|column| widest(column).unwrap_or_default());
    let mut text = String::new();
    for [level, at, name, says] in &rows {
        let _ = writeln!(text, "{}  {}  {}  {says}", left(level, levels), left(at, places), left(name, names));
    }
    text
}

/// The sentence about the names in brackets. Empty if [`text`] shows none.
pub fn about_names(findings: &[Finding], language: Language) -> &'static str {
    let said = words(
        "The name in [brackets] is the name for --only. --brief prints one line for each finding.\n",
        "[대괄호] 안의 이름은 --only에 쓰는 이름입니다. --brief는 결과마다 한 줄씩 출력합니다.\n",
    );
    if findings.is_empty() { "" } else { said.say(language) }
}

/// A rule with its places, up to a bound, and its remedy.
pub(crate) fn paragraph(
    text: &mut String,
    subject: &Subject<'_>,
    rule: &Rule,
    findings: &[Finding],
    language: Language,
) {
    let _ = writeln!(text, "  {}   [{}]", rule.says.say(language), rule.id);
    let own: Vec<&Finding> = findings.iter().filter(|finding| finding.rule == rule.id).collect();
    for finding in own.iter().take(SHOWN_MAX) {
        let at = subject.place(finding).map_or(String::new(), |at| format!("{at}  "));
        let _ = writeln!(text, "    {at}{}", finding.what.say(language));
        if let Some(write) = &finding.write {
            let _ = writeln!(text, "      → {}", write.replace('\n', " "));
        }
    }
    if own.len() > SHOWN_MAX {
        let _ = writeln!(
            text,
            "    … {}",
            words("weir leaves out further findings of this rule", "이 규칙의 나머지 결과는 표시하지 않습니다")
                .say(language)
        );
    }
    for line in wrap(rule.remedy.say(language), COLUMNS - 4) {
        let _ = writeln!(text, "    {line}");
    }
    text.push('\n');
}

fn level(level: FindingLevel) -> weir_words::Words {
    match level {
        FindingLevel::Wrong => words("WRONG", "오류"),
        FindingLevel::Risk => words("RISK", "위험"),
        FindingLevel::Note => words("NOTE", "참고"),
    }
}

/// The numbers of findings, and the program that they are for.
pub(crate) fn summary(subject: &Subject<'_>, findings: &[Finding], language: Language) -> String {
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let (wrong, risk, note) = (count(FindingLevel::Wrong), count(FindingLevel::Risk), count(FindingLevel::Note));
    let is_known = subject.version_is_told || subject.target == Target::Weir;
    let whose = match is_known {
        true => said!("for {}\n", "{} 기준\n", subject.target),
        false => said!(
            "weir does not know nginx's version: it assumes {} and also reports problems of older versions (name the version with --nginx PATH or --nginx-version)\n",
            "nginx 버전을 알 수 없습니다: {}로 가정하고, 이전 버전의 문제도 함께 알립니다 (--nginx PATH 또는 --nginx-version으로 버전을 지정하세요)\n",
            subject.target
        ),
    };
    let counts = said!("{} wrong, {} at risk, {} notes; ", "오류 {}건, 위험 {}건, 참고 {}건; ", wrong, risk, note);
    (counts + whose).say(language).to_owned()
}

/// The examined processes, a line each; then the sentence about the limit and its source, if there is one.
pub fn processes(facts: &Facts, limit: Option<&weir_words::Said>, language: Language) -> String {
    let mut text = String::new();
    for process in facts.processes.iter().chain(&facts.neighbours) {
        let files = process.files.map_or("?".to_owned(), |limit| format!("{} / {}", limit.soft, limit.hard));
        let open = process.open_files.map_or("?".to_owned(), |open| open.to_string());
        let command: String = process.command.chars().take(50).collect();
        // Node.js raises its soft limit to the hard one when it starts.
        let is_node = facts.neighbours.iter().any(|other| other.id == process.id);
        let note = match process.files {
            Some(limit) if is_node && limit.soft == limit.hard => {
                words("  (Node: already at its hard limit)", "  (Node: 이미 hard 한도)")
            }
            _ => words("", ""),
        };
        let _ = writeln!(text, "  {:>7}  {files:>17}  {open:>6}  {command}{}", process.id, note.say(language));
    }
    if text.is_empty() {
        return text;
    }
    let head = words("    pid    files soft/hard    open  command", "    pid    파일 soft/hard    열림  명령");
    let mut whole = format!("{}\n{text}", head.say(language));
    if let Some(limit) = limit {
        let _ = writeln!(whole, "  {}", limit.say(language));
    }
    whole.push('\n');
    whole
}

/// The findings as JSON. The keys are stable; new keys may be added.
pub fn json(subject: &Subject<'_>, findings: &[Finding]) -> Value {
    let lines = TreeLines::new(subject.tree);
    let list: Vec<Value> = findings
        .iter()
        .map(|finding| {
            let source = finding.at.and_then(|at| subject.tree.source(&at));
            let region = finding.at.and_then(|at| region(&lines, at.file, at.span));
            let rule = rules::lookup(finding.rule);
            json!({
                "rule": finding.rule,
                "level": finding.level.name(),
                "file": source.map(|source| source.name.clone()),
                "line": region.as_ref().map(|region| region["start_line"].clone()),
                "region": region,
                "says": rule.map(|rule| rule.says.en),
                "what": finding.what.en(),
                "remedy": rule.map(|rule| rule.remedy.en),
                "write": finding.write,
                "can_fix": !finding.fix.is_empty(),
                "edits": edits(subject.tree, &lines, finding),
                "source": rule.map(|rule| rule.source),
            })
        })
        .collect();
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    json!({
        "version": 1,
        "weir_doctor": 1,
        "nginx": subject.target.version().to_string(),
        "nginx_is_assumed": !subject.version_is_told && subject.target != Target::Weir,
        "target": subject.target.to_string(),
        "counts": { "wrong": count(FindingLevel::Wrong), "risk": count(FindingLevel::Risk), "note": count(FindingLevel::Note) },
        "findings": list,
        "unchecked": rules::unchecked(subject.tree).iter().map(|said| said.en().to_owned()).collect::<Vec<_>>(),
    })
}

/// A range of a file, in lines and columns of characters; `None` if there is no such file.
fn region(lines: &TreeLines<'_>, file: u32, span: Span) -> Option<Value> {
    let TextRegion { start, end } = lines.region(file, span, ColumnUnit::Character)?;
    Some(json!({ "start_line": start.0, "start_column": start.1, "end_line": end.0, "end_column": end.1 }))
}

/// The changes of the files that a finding proposes.
fn edits(tree: &Tree, lines: &TreeLines<'_>, finding: &Finding) -> Vec<Value> {
    let edit = |edit: &crate::edit::Edit| {
        let source = tree.files.get(edit.file as usize)?;
        let with = String::from_utf8_lossy(&edit.with);
        Some(json!({ "file": source.name, "region": region(lines, edit.file, edit.span)?, "with": with }))
    };
    finding.fix.iter().filter_map(edit).collect()
}

/// Wraps a text at this many columns. East Asian letters take two.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_ordered_and_counts() {
        let conf = "http { server { listen 80; location /a { alias /b/; } } }\nserver_tokens on;";
        let (tree, _) = crate::load(&weir_conf::MemoryFiles::new().with("/n", conf), "/n", "/");
        let facts = Facts::default();
        let findings = crate::examine(&tree, crate::NEWEST, &facts);
        let subject =
            Subject { tree: &tree, target: crate::NEWEST.into(), version_is_told: false, facts: &facts, directory: "" };
        let shown = text(&subject, &findings, Language::English);
        let at = |what: &str| shown.find(what);
        assert!(at("[alias_traversal]").is_some() && at("[alias_traversal]") < at("[version_disclosure]"), "{shown}");
        assert!(shown.contains("/n:1  nginx answers /a../x with the file /b/../x"), "{shown}");
        assert!(text(&subject, &findings, Language::Korean).contains("오류 ·"));
        let value = json(&subject, &findings);
        assert_eq!(
            value["counts"]["wrong"].as_u64(),
            Some(findings.iter().filter(|f| f.level == FindingLevel::Wrong).count() as u64)
        );
        let first = &value["findings"][0];
        assert_eq!((&value["version"], &first["line"]), (&json!(1), &first["region"]["start_line"]));
        assert_eq!(first["can_fix"] == true, first["edits"].as_array().is_some_and(|edits| !edits.is_empty()));
        assert_eq!(wrap("a bb ccc", 4), ["a bb", "ccc"]);
    }
}
