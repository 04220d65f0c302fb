//! The page of all rules, `docs/reference/doctor.md`, generated from the rules' own tables.

use crate::defaults::DEFAULTS;
use crate::rule::Group;
use crate::rules::RULES;
use crate::symptom::Symptom;
use crate::version::Version;

/// The symptoms that a rule names, as a paragraph. Empty for none.
fn symptoms(symptoms: &[Symptom]) -> String {
    let names: Vec<String> = symptoms.iter().map(|symptom| format!("`{}`", symptom.name())).collect();
    if names.is_empty() { String::new() } else { format!("Symptoms: {}.\n\n", names.join(", ")) }
}

/// The page.
pub fn page() -> String {
    let mut text = String::from(
        "# The doctor's rules\n\n`weir doctor --reference` prints this page from the rules; do not edit it. The [guide](../guide/doctor.md) says how to use the rules.\n",
    );
    for group in Group::ALL {
        text.push_str(&format!("\n## {}\n", group.heading().en));
        for rule in RULES.iter().filter(|rule| rule.group == group) {
            text.push_str(&format!(
                "\n### {}\n\n{} ({}). {}\n\n{}Reports:\n\n```nginx\n{}\n```\n\nDoes not report:\n\n```nginx\n{}\n```\n\nSource: {}.\n",
                rule.id,
                rule.says.en,
                rule.level.name(),
                rule.remedy.en,
                symptoms(rule.symptoms),
                rule.fires.conf,
                rule.silent.conf,
                rule.source
            ));
        }
    }
    text.push_str(
        "\n## nginx's defaults, by version\n\n`equals_default` and `--explain` compare a file with these values. `-`: no default.\n\n| directive | in | default | |\n|---|---|---|---|\n",
    );
    for default in DEFAULTS {
        let values: Vec<String> = default
            .history
            .iter()
            .map(|(since, value)| match *since {
                Version(0, 0, 0) => format!("`{value}`"),
                since => format!("`{value}` since {since}"),
            })
            .collect();
        text.push_str(&format!(
            "| `{}` | {} | {} | {} |\n",
            default.name,
            default.place,
            values.join(", "),
            default.note.en
        ));
    }
    text
}
