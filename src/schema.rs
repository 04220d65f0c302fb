//! `weir schema`: the JSON Schemas of weir's outputs.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value};
use weir_words::{Language, Said, say};

use crate::texts;

/// The schemas by name, in the order of their list. `common` has the shapes that the others share.
const SCHEMAS: &[(&str, &str)] = &[
    ("common", include_str!("../docs/reference/schemas/common.json")),
    ("adopt", include_str!("../docs/reference/schemas/adopt.json")),
    ("canary", include_str!("../docs/reference/schemas/canary.json")),
    ("ci-ab", include_str!("../docs/reference/schemas/ci-ab.json")),
    ("ci-check", include_str!("../docs/reference/schemas/ci-check.json")),
    ("doctor", include_str!("../docs/reference/schemas/doctor.json")),
    ("lab", include_str!("../docs/reference/schemas/lab.json")),
    ("load", include_str!("../docs/reference/schemas/load.json")),
    ("status", include_str!("../docs/reference/schemas/status.json")),
    ("swap", include_str!("../docs/reference/schemas/swap.json")),
    ("why", include_str!("../docs/reference/schemas/why.json")),
];

/// The version of the shapes of all outputs.
const VERSION: u64 = 1;

/// The beginning of a schema's identifier.
const URN: &str = "urn:weir:schema:";

/// `weir schema`.
#[derive(Args)]
pub struct SchemaArgs {
    /// The output: its schema with all schemas that it refers to; without a name, the list
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// Runs the verb.
pub fn main(args: &SchemaArgs, language: Language) -> ExitCode {
    let printed = match &args.name {
        None => Ok(list()),
        Some(name) => bundled(name).map(|schema| format!("{schema:#}\n")),
    };
    match printed {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("weir schema: {}", message.say(language));
            ExitCode::from(2)
        }
    }
}

/// An output with the version of its shape.
pub fn versioned(mut output: Value) -> Value {
    if let Some(members) = output.as_object_mut() {
        members.insert("version".to_owned(), VERSION.into());
    }
    output
}

/// A line for each schema: its name and its title.
fn list() -> String {
    let title = |text: &str| {
        let schema: Value = serde_json::from_str(text).unwrap_or_default();
        schema["title"].as_str().unwrap_or_default().to_owned()
    };
    SCHEMAS.iter().map(|(name, text)| format!("{name:<10}  {}\n", title(text))).collect()
}

/// A schema with the schemas that it refers to as members of its `$defs`, each under its identifier (JSON Schema 2020-12,
/// section 9.3).
fn bundled(name: &str) -> Result<Value, Said> {
    let of = |name: &str| SCHEMAS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
    let names = || SCHEMAS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let text = of(name).ok_or_else(|| say!(texts::NO_SCHEMA, name, names()))?;
    let read = |text: &str| -> Value { serde_json::from_str(text).unwrap_or_default() };
    let mut schema = read(text);
    let mut bundle = Map::new();
    let mut open = vec![text];
    while let Some(text) = open.pop() {
        for (other, other_text) in SCHEMAS {
            let urn = format!("{URN}{other}");
            if *other != name && text.contains(&format!("{urn}#")) && !bundle.contains_key(&urn) {
                bundle.insert(urn, read(other_text));
                open.push(other_text);
            }
        }
    }
    if let Some(schema) = schema.as_object_mut().filter(|_| !bundle.is_empty()) {
        let defs = schema.entry("$defs").or_insert_with(|| Value::Object(Map::new()));
        if let Some(defs) = defs.as_object_mut() {
            defs.extend(bundle);
        }
    }
    Ok(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_is_json_with_its_name_and_a_title() {
        for (name, text) in SCHEMAS {
            let schema: Value = serde_json::from_str(text).unwrap_or_else(|error| unreachable!("{name}: {error}"));
            assert_eq!(schema["$id"], format!("{URN}{name}"));
            assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
            assert!(schema["title"].as_str().is_some_and(|title| !title.is_empty()), "{name}");
        }
        assert_eq!(list().lines().count(), SCHEMAS.len());
    }

    #[test]
    fn a_schema_brings_what_it_refers_to() {
        let doctor = bundled("doctor").unwrap_or_default();
        assert_eq!(doctor["$defs"]["urn:weir:schema:common"]["$id"], "urn:weir:schema:common");
        let ci = bundled("ci-ab").unwrap_or_default();
        assert!(ci["$defs"]["urn:weir:schema:lab"].is_object() && ci["$defs"]["urn:weir:schema:common"].is_object());
        assert!(bundled("common").is_ok_and(|common| common["$defs"]["finding"].is_object()));
        assert!(bundled("x").is_err_and(|why| why.contains("common, adopt")));
    }
}
