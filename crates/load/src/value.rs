//! The value of a script's variable: a JavaScript value, because scripts, captures and processors expect JavaScript's
//! rules.
//!
//! Values are cheap to clone and can move between threads: texts, lists and maps are shared. Not here: templates.

mod json;
mod model;
mod number;
mod path;

pub(crate) use json::write_text as write_json_text;
pub use json::{extract, parse_json};
pub(crate) use model::into_string;
pub use model::{Keyed, Map, UNDEFINED, Value};
pub(crate) use number::{digits_of, is_space};
pub use number::{text_to_number, write_number};
pub(crate) use path::get;
pub use path::{Path, PathStep};

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn json(text: &str) -> Value {
        parse_json(text.as_bytes()).unwrap()
    }

    #[test]
    fn texts_are_javascripts() {
        for (value, text) in [
            (json("[1,null,[2,\"a\"],{\"b\":1}]"), "1,,2,a,[object Object]"),
            (json("{}"), "[object Object]"),
            (json("1e21"), "1e+21"),
            (json("-0"), "0"),
            (json("0.1"), "0.1"),
            (Value::Undefined, "undefined"),
            (Value::Null, "null"),
            (Value::Bool(true), "true"),
        ] {
            assert_eq!(value.to_text(), text);
        }
    }

    #[test]
    fn truth_is_javascripts() {
        for (value, truth) in [
            (Value::Undefined, false),
            (Value::Null, false),
            (json("0"), false),
            (Value::Number(f64::NAN), false),
            ("".into(), false),
            ("0".into(), true),
            (json("[]"), true),
            (json("{}"), true),
        ] {
            assert_eq!(value.is_truthy(), truth, "{value:?}");
        }
    }

    #[test]
    fn two_kinds_of_equal() {
        // The columns: one, two, isEqual.
        for (one, two, deep) in [
            (json("1"), "1".into(), false),
            (Value::Undefined, Value::Null, false),
            (Value::Null, json("0"), false),
            (json("[1,{\"a\":2,\"b\":3}]"), json("[1,{\"b\":3,\"a\":2}]"), true),
            (json("[1]"), json("1"), false),
            (json("[1]"), "1".into(), false),
            (true.into(), "1".into(), false),
            (Value::Number(f64::NAN), Value::Number(f64::NAN), true),
        ] {
            assert_eq!(one.is_deeply(&two), deep, "{one:?} isEqual {two:?}");
            assert!(!one.is_same(&two), "{one:?} === {two:?}");
        }
        let list = json("[1]");
        assert!(list.is_same(&list.clone()));
    }
}
