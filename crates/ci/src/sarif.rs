//! Findings as SARIF 2.1.0, which code scanning of GitHub and editors read.

use std::path::Path;

use serde_json::{Value, json};
use weir_conf::TextRegion;
use weir_doctor::{FindingLevel, rules};
use weir_words::Language;

use crate::finding::{CheckEdit, CheckFinding, CheckPlace, edge_rule};
use crate::texts;

/// The name of the base of relative addresses: the top of the repository.
const ROOT: &str = "%SRCROOT%";
/// The form of a fingerprint. Another form gets another name.
const FINGERPRINT: &str = "weirFinding/v1";
/// The page with all rules.
const RULES: &str = "docs/reference/doctor.md";

/// The document. `is_compared`: only findings that the revision before does not have are there.
pub fn document(findings: &[CheckFinding], root: &Path, is_compared: bool, language: Language) -> Value {
    let mut names: Vec<&str> = findings.iter().map(|finding| finding.rule.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let rules: Vec<Value> = names.iter().map(|name| rule(name, findings, language)).collect();
    let results = findings.iter().map(|finding| {
        let index = names.binary_search(&finding.rule.as_str()).ok();
        result(finding, index, root, is_compared, language)
    });
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "weir",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "utf16CodeUnits",
            "results": results.collect::<Vec<_>>(),
        }],
    })
}

/// The metadata of a rule.
fn rule(name: &str, findings: &[CheckFinding], language: Language) -> Value {
    let first = findings.iter().find(|finding| finding.rule == name);
    let says = edge_rule(name).or_else(|| first.map(|one| one.says.clone())).unwrap_or_default();
    let remedy =
        first.and_then(|one| one.remedy.as_ref()).map_or_else(|| says.say(language), |said| said.say(language));
    let doctors = rules::lookup(name);
    let source = doctors.map_or(String::new(), |rule| format!(" ({})", rule.source));
    let level = doctors.map_or(FindingLevel::Wrong, |rule| rule.level);
    json!({
        "id": name,
        "name": name,
        "shortDescription": {"text": says.say(language)},
        "fullDescription": {"text": says.say(language)},
        "help": {"text": format!("{remedy}{source}\n{RULES}#{name}")},
        "defaultConfiguration": {"level": word(level)},
        "properties": {
            "tags": doctors.map(|rule| vec![rule.group.heading().en]).unwrap_or_default(),
            "problem.severity": severity(level),
        },
    })
}

fn result(finding: &CheckFinding, index: Option<usize>, root: &Path, is_compared: bool, language: Language) -> Value {
    let write = finding.write.as_ref().map_or(String::new(), |write| format!("\n→ {write}"));
    let mut result = json!({
        "ruleId": finding.rule,
        "level": word(finding.level),
        "message": {"text": format!("{}{write}", finding.what.say(language))},
        "locations": finding.place.iter().map(|place| json!({"physicalLocation": location(place)})).collect::<Vec<_>>(),
        "partialFingerprints": {FINGERPRINT: finding.fingerprint(root)},
    });
    if let Some(index) = index {
        result["ruleIndex"] = index.into();
    }
    if is_compared {
        result["baselineState"] = "new".into();
    }
    if !finding.edits.is_empty() {
        result["fixes"] = json!([fix(&finding.edits, language)]);
    }
    result
}

/// The change of all files of a finding.
fn fix(edits: &[CheckEdit], language: Language) -> Value {
    let mut files: Vec<&CheckPlace> = Vec::new();
    for edit in edits {
        if !files.iter().any(|place| place.file == edit.place.file) {
            files.push(&edit.place);
        }
    }
    let replacement =
        |edit: &CheckEdit| json!({"deletedRegion": region(edit.place.utf16), "insertedContent": {"text": edit.with}});
    let change = |place: &&CheckPlace| {
        let own = edits.iter().filter(|edit| edit.place.file == place.file);
        json!({"artifactLocation": artifact(place), "replacements": own.map(replacement).collect::<Vec<_>>()})
    };
    json!({
        "description": {"text": texts::FIX.say(language)},
        "artifactChanges": files.iter().map(change).collect::<Vec<_>>(),
    })
}

fn location(place: &CheckPlace) -> Value {
    json!({"artifactLocation": artifact(place), "region": region(place.utf16)})
}

fn artifact(place: &CheckPlace) -> Value {
    match place.is_inside {
        true => json!({"uri": uri(&place.file), "uriBaseId": ROOT}),
        false => json!({"uri": format!("file://{}", uri(&place.file))}),
    }
}

fn region(region: TextRegion) -> Value {
    json!({
        "startLine": region.start.0, "startColumn": region.start.1, "endLine": region.end.0, "endColumn": region.end.1,
    })
}

/// A path as the path of a URI (RFC 3986 §3.3).
fn uri(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=@".contains(&byte);
    let each = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    path.bytes().map(each).collect()
}

const fn word(level: FindingLevel) -> &'static str {
    match level {
        FindingLevel::Wrong => "error",
        FindingLevel::Risk => "warning",
        FindingLevel::Note => "note",
    }
}

const fn severity(level: FindingLevel) -> &'static str {
    match level {
        FindingLevel::Wrong => "error",
        FindingLevel::Risk => "warning",
        FindingLevel::Note => "recommendation",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::tests::findings_of;

    #[test]
    fn a_document_has_rules_places_and_fixes() {
        let text = "http {\n    # 한\n    server { listen 80; location /a { alias /b/; } }\n    upstream a { server 10.0.0.1; }\n}\n";
        let findings = findings_of(text);
        let json = document(&findings, Path::new("/r"), true, Language::English);
        let run = &json["runs"][0];
        let (rules, results) =
            (&run["tool"]["driver"]["rules"], run["results"].as_array().cloned().unwrap_or_default());
        assert_eq!(results.len(), findings.len());
        for result in &results {
            let index = result["ruleIndex"].as_u64().unwrap_or(u64::MAX) as usize;
            assert_eq!(rules[index]["id"], result["ruleId"], "{result}");
            assert_eq!(result["baselineState"], "new");
        }
        let trap = results.iter().find(|one| one["ruleId"] == "alias_traversal").cloned().unwrap_or_default();
        let place = &trap["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"], json!({"uri": "n.conf", "uriBaseId": "%SRCROOT%"}));
        assert_eq!((&place["region"]["startLine"], &trap["level"]), (&json!(3), &json!("error")));
        let fixes: Vec<&Value> = results.iter().filter(|one| one["fixes"].is_array()).collect();
        assert!(!fixes.is_empty(), "{results:?}");
        let replacement = &fixes[0]["fixes"][0]["artifactChanges"][0]["replacements"][0];
        assert!(
            replacement["deletedRegion"]["startLine"].is_u64() && replacement["insertedContent"]["text"].is_string()
        );
        let alone = document(&findings, Path::new("/r"), false, Language::Korean);
        assert_eq!(alone["runs"][0]["results"][0]["baselineState"], Value::Null);
        let none = document(&[], Path::new("/r"), false, Language::English);
        assert_eq!(none["runs"][0]["results"], json!([]));
    }

    #[test]
    fn paths_are_escaped() {
        assert_eq!(uri("a b/한?.conf#x"), "a%20b/%ED%95%9C%3F.conf%23x");
    }
}
