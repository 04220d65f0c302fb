//! No file can make a rule panic, no proposed change can break a file, and no report can grow without limit.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use weir_conf::MemoryFiles;
use weir_doctor::report::{self, Subject};
use weir_doctor::{Facts, Version, compare, examine, explain, mend, rules};
use weir_words::Language;

/// Statements from words that rules search for, in blocks that rules examine.
fn statements() -> impl Strategy<Value = String> {
    let names: Vec<&'static str> = rules::RULES.iter().flat_map(|rule| words_of(rule.fires.conf)).collect();
    let word = prop_oneof![
        8 => prop::sample::select(names),
        1 => "[a-z$~^.*()\\[\\]{}|+?:/0-9%_-]{0,12}".prop_map(|text| Box::leak(text.into_boxed_str()) as &'static str),
    ];
    let line = prop::collection::vec(word, 1..5)
        .prop_map(|words| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
    let leaf = line.clone().prop_map(|line| format!("{line};\n"));
    leaf.prop_recursive(5, 60, 8, move |inner| {
        let open = prop_oneof![
            prop::sample::select(vec![
                "http",
                "server",
                "events",
                "location /a",
                "location ~ ^/(.*)$",
                "upstream u",
                "if ($uri ~ (a|b))",
                "map $uri $m",
                "stream"
            ])
            .prop_map(str::to_owned),
            line.clone(),
        ];
        (open, prop::collection::vec(inner, 0..8))
            .prop_map(|(open, inside)| format!("{open} {{\n{}}}\n", inside.concat()))
    })
}

fn words_of(conf: &'static str) -> impl Iterator<Item = &'static str> {
    conf.split([' ', ';', '{', '}', '\n']).filter(|word| !word.is_empty())
}

fn quoted(word: &str) -> String {
    String::from_utf8_lossy(&weir_conf::quote(word.as_bytes())).into_owned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_file_panics_or_is_broken(before in statements(), parts in prop::collection::vec(statements(), 1..6), minor in 10_u16..32) {
        let load = |text: &[u8]| weir_doctor::load(&MemoryFiles::new().with("/n", text), "/n", "/");
        let text = parts.concat();
        let (tree, problems) = load(text.as_bytes());
        let version = Version(1, minor, 0);
        let mut facts = Facts { version_is_told: Some(version), cpus: Some(2), somaxconn: Some(128), ..Facts::default() };
        facts.load.clients = Some(1e6);
        let findings = examine(&tree, version, &facts);
        let subject = Subject { tree: &tree, target: version.into(), version_is_told: true, facts: &facts, directory: "" };
        let _ = (report::text(&subject, &findings, Language::Korean), report::json(&subject, &findings));
        let _ = (explain::explain(&tree, version, None, Language::English), compare(&load(before.as_bytes()).0, &tree, version));
        if problems.is_empty() {
            for mended in mend::mend(&tree, &findings) {
                let (_, after) = load(&mended.after);
                prop_assert!(after.is_empty(), "{after:?}\n{text}\n{}", String::from_utf8_lossy(&mended.after));
            }
        }
    }
}
