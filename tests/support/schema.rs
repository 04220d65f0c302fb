//! Validates outputs of weir against the schemas that `weir schema` prints. A member that a schema does not name fails.

use std::collections::HashMap;
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::Validator;
use serde_json::Value;

/// Most errors of one output that are shown.
const SHOWN_MAX: usize = 12;

/// The validators that this process has made.
static MADE: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

/// The validator of a schema, which `weir schema` prints with those that it refers to.
fn validator(name: &str) -> Arc<Validator> {
    let mut made = MADE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let make = || {
        let output = Command::new(env!("CARGO_BIN_EXE_weir")).args(["schema", name]).output().expect("weir schema");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let schema: Value = serde_json::from_slice(&output.stdout).expect("a schema is JSON");
        Arc::new(jsonschema::validator_for(&schema).unwrap_or_else(|error| panic!("schema {name}: {error}")))
    };
    made.entry(name.to_owned()).or_insert_with(make).clone()
}

/// The errors of an output, each with its place.
pub fn errors(name: &str, output: &Value) -> Vec<String> {
    let told = |error: jsonschema::ValidationError<'_>| {
        let said: String = error.to_string().chars().take(300).collect();
        format!("{}: {said}", error.instance_path())
    };
    validator(name).iter_errors(output).map(told).take(SHOWN_MAX).collect()
}

/// Fails unless the output has the shape of the schema.
#[track_caller]
#[allow(dead_code, reason = "one test asks for the errors alone")]
pub fn valid(name: &str, output: &Value) {
    let errors = errors(name, output);
    assert!(errors.is_empty(), "the output is not as docs/reference/schemas/{name}.json says:\n{}", errors.join("\n"));
}
