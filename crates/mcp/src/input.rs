//! The arguments of tools: a table for each tool, which is both the JSON schema that a client reads and the check of a call.

use serde_json::{Map, Value, json};
use weir_words::{Said, say};

use crate::texts;

/// Most bytes of a text among the arguments.
pub const TEXT_BYTES_MAX: usize = 16_384;
/// Most texts in a list among the arguments.
pub const LIST_MAX: usize = 32;

/// An argument.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its values.
    pub kind: ParameterKind,
    /// Whether a call must have it.
    pub is_required: bool,
    /// Its meaning, for a model.
    pub says: &'static str,
}

/// The values of an argument.
#[derive(Clone, Copy, Debug)]
pub enum ParameterKind {
    /// The path of a file below the named directories.
    Path,
    /// Several such paths.
    Paths,
    /// A text.
    Text,
    /// Several texts.
    Texts,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A number from the first to the second.
    Number(f64, f64),
    /// A whole number from the first to the second.
    Whole(u64, u64),
    /// True or false.
    Flag,
}

impl Parameter {
    /// An argument that a call must have.
    pub const fn must(name: &'static str, kind: ParameterKind, says: &'static str) -> Parameter {
        Parameter { name, kind, is_required: true, says }
    }

    /// An argument that a call may have.
    pub const fn may(name: &'static str, kind: ParameterKind, says: &'static str) -> Parameter {
        Parameter { name, kind, is_required: false, says }
    }

    fn schema(&self) -> Value {
        let mut schema = match self.kind {
            ParameterKind::Path | ParameterKind::Text => text_schema(),
            ParameterKind::Paths | ParameterKind::Texts => {
                json!({"type": "array", "items": text_schema(), "minItems": 1, "maxItems": LIST_MAX})
            }
            ParameterKind::OneOf(words) => json!({"enum": words}),
            ParameterKind::Number(least, most) => json!({"type": "number", "minimum": least, "maximum": most}),
            ParameterKind::Whole(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
            ParameterKind::Flag => json!({"type": "boolean"}),
        };
        schema["description"] = self.says.into();
        schema
    }

    /// Whether a value fits.
    fn fits(&self, value: &Value) -> bool {
        match self.kind {
            ParameterKind::Path | ParameterKind::Text => is_text(value),
            ParameterKind::Paths | ParameterKind::Texts => {
                value.as_array().is_some_and(|list| (1..=LIST_MAX).contains(&list.len()) && list.iter().all(is_text))
            }
            ParameterKind::OneOf(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            ParameterKind::Number(least, most) => value.as_f64().is_some_and(|number| (least..=most).contains(&number)),
            ParameterKind::Whole(least, most) => whole(value).is_some_and(|number| (least..=most).contains(&number)),
            ParameterKind::Flag => value.is_boolean(),
        }
    }

    /// The values in words.
    fn wants(&self) -> String {
        match self.kind {
            ParameterKind::Path | ParameterKind::Text => format!("a text of 1 to {TEXT_BYTES_MAX} bytes"),
            ParameterKind::Paths | ParameterKind::Texts => format!("a list of 1 to {LIST_MAX} texts"),
            ParameterKind::OneOf(words) => words.join(", "),
            ParameterKind::Number(least, most) => format!("{least} … {most}"),
            ParameterKind::Whole(least, most) => format!("{least} … {most}"),
            ParameterKind::Flag => "true, false".to_owned(),
        }
    }
}

fn text_schema() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": TEXT_BYTES_MAX})
}

fn is_text(value: &Value) -> bool {
    // No path and no format has a NUL, and no system call takes one.
    value.as_str().is_some_and(|text| (1..=TEXT_BYTES_MAX).contains(&text.len()) && !text.contains('\0'))
}

/// A whole number; models also write `8.0`.
fn whole(value: &Value) -> Option<u64> {
    let whole = |number: f64| (number.fract() == 0.0 && (0.0..=9e15).contains(&number)).then_some(number as u64);
    value.as_u64().or_else(|| value.as_f64().and_then(whole))
}

/// The JSON schema of all arguments of a tool.
pub fn schema(parameters: &[Parameter]) -> Value {
    let properties: Map<String, Value> =
        parameters.iter().map(|parameter| (parameter.name.to_owned(), parameter.schema())).collect();
    let required: Vec<&str> =
        parameters.iter().filter(|parameter| parameter.is_required).map(|parameter| parameter.name).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    })
}

/// The checked arguments of a call.
#[derive(Clone, Debug, Default)]
pub struct Arguments(Map<String, Value>);

impl Arguments {
    /// Checks arguments by the table of a tool.
    ///
    /// # Errors
    /// An argument is missing, unknown, or has another value; the sentence names it.
    pub fn read(parameters: &[Parameter], given: &Value) -> Result<Arguments, Said> {
        let empty = Map::new();
        let given = match given {
            Value::Null => &empty,
            Value::Object(members) => members,
            _ => return Err(say!(texts::ARGUMENTS_OBJECT)),
        };
        let known = || parameters.iter().map(|parameter| parameter.name).collect::<Vec<_>>().join(", ");
        if given.keys().any(|name| !parameters.iter().any(|parameter| parameter.name == name)) {
            return Err(say!(texts::ARGUMENT_UNKNOWN, known()));
        }
        let mut kept = Map::new();
        for parameter in parameters {
            match given.get(parameter.name) {
                None | Some(Value::Null) if parameter.is_required => {
                    return Err(say!(texts::ARGUMENT_MISSING, parameter.name, parameter.wants()));
                }
                None | Some(Value::Null) => {}
                Some(value) if parameter.fits(value) => {
                    kept.insert(parameter.name.to_owned(), value.clone());
                }
                Some(_) => return Err(say!(texts::ARGUMENT_VALUE, parameter.name, parameter.wants())),
            }
        }
        Ok(Arguments(kept))
    }

    /// A text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// A list of texts.
    pub fn texts(&self, name: &str) -> Vec<&str> {
        self.0.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// A number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64()
    }

    /// A whole number.
    pub fn whole(&self, name: &str) -> Option<u64> {
        whole(self.0.get(name)?)
    }

    /// Whether a flag is true.
    pub fn flag(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| value == true)
    }

    /// The arguments as JSON.
    pub fn json(&self) -> Value {
        self.0.clone().into()
    }

    /// The arguments as JSON with another value of one of them.
    #[must_use]
    pub fn with(&self, name: &str, value: impl Into<Value>) -> Value {
        let mut members = self.0.clone();
        members.insert(name.to_owned(), value.into());
        members.into()
    }

    /// Those of the arguments that have these names, as JSON.
    pub fn only(&self, names: &[&str]) -> Value {
        let members = self.0.iter().filter(|(name, _)| names.contains(&name.as_str()));
        members.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>().into()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const TABLE: &[Parameter] = &[
        Parameter::must("conf", ParameterKind::Path, "a file"),
        Parameter::may("rate", ParameterKind::Number(0.1, 100.0), "a rate"),
        Parameter::may("pairs", ParameterKind::Whole(1, 24), "pairs"),
        Parameter::may("reader", ParameterKind::OneOf(&["nginx", "weir"]), "a program"),
        Parameter::may("only", ParameterKind::Texts, "names"),
        Parameter::may("prove", ParameterKind::Flag, "a flag"),
    ];

    #[test]
    fn a_call_has_the_arguments_of_the_table_and_no_others() {
        let of = |json: Value| Arguments::read(TABLE, &json).map_err(|why| why.en().to_owned());
        let good =
            of(json!({"conf": "a", "rate": 5, "pairs": 8.0, "reader": "weir", "only": ["x"], "prove": true})).unwrap();
        assert_eq!((good.text("conf"), good.number("rate"), good.whole("pairs")), (Some("a"), Some(5.0), Some(8)));
        assert!(good.flag("prove") && good.texts("only") == ["x"]);
        assert!(of(json!({"conf": "a", "rate": null})).is_ok());
        for (json, expect) in [
            (json!({}), "conf"),
            (json!([]), "object"),
            (json!({"conf": "a", "command": "rm -rf /"}), "conf, rate"),
            (json!({"conf": ""}), "conf"),
            (json!({"conf": "a\0b"}), "conf"),
            (json!({"conf": "x".repeat(TEXT_BYTES_MAX + 1)}), "conf"),
            (json!({"conf": "a", "rate": 0}), "rate"),
            (json!({"conf": "a", "rate": "5"}), "rate"),
            (json!({"conf": "a", "pairs": 8.5}), "pairs"),
            (json!({"conf": "a", "pairs": -1}), "pairs"),
            (json!({"conf": "a", "reader": "caddy"}), "reader"),
            (json!({"conf": "a", "only": []}), "only"),
            (json!({"conf": "a", "only": vec!["x"; LIST_MAX + 1]}), "only"),
            (json!({"conf": "a", "prove": 1}), "prove"),
        ] {
            let why = of(json.clone()).unwrap_err();
            assert!(why.contains(expect) && !why.contains("rm -rf"), "{json}: {why}");
        }
    }

    #[test]
    fn the_schema_has_every_argument() {
        let schema = schema(TABLE);
        assert_eq!(schema["required"], json!(["conf"]));
        assert_eq!(
            schema["properties"]["pairs"],
            json!({"type": "integer", "minimum": 1, "maximum": 24, "description": "pairs"})
        );
        assert_eq!(schema["properties"].as_object().map(Map::len), Some(TABLE.len()));
    }
}
