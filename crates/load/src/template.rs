//! `{{ … }}` in texts and trees, compiled once (artillery.md §1.9).

use crate::value::Value;
use crate::vars::{Names, Vars};

/// What a template may call: `$randomNumber`, `$randomString`, fake data, functions a processor added.
pub trait Functions {
    /// The value of `$name(arguments)`; `None` when there is no such function.
    fn call(&self, name: &str, arguments: &[Value]) -> Option<Value>;
}

/// A text that may hold templates.
#[derive(Clone, Debug)]
pub struct Template {
    text: String,
}

impl Template {
    /// Compiles a text. Never fails: what is no template is text.
    pub fn parse(text: &str, names: &mut Names) -> Template {
        let _ = names;
        Template { text: text.to_owned() }
    }

    /// The text when it holds no template at all.
    pub fn literal(&self) -> Option<&str> {
        Some(&self.text)
    }

    /// Its value: a text that is one template and nothing else keeps the variable's type.
    pub fn value(&self, vars: &Vars, functions: &dyn Functions) -> Value {
        let _ = (vars, functions);
        Value::from(self.text.as_str())
    }

    /// Its value as text, appended.
    pub fn write(&self, vars: &Vars, functions: &dyn Functions, out: &mut Vec<u8>) {
        let _ = (vars, functions);
        out.extend_from_slice(self.text.as_bytes());
    }
}

/// A value with templates anywhere inside it, keys included.
#[derive(Clone, Debug)]
pub struct Tree {
    value: Value,
}

impl Tree {
    /// Compiles a value.
    pub fn parse(value: &Value, names: &mut Names) -> Tree {
        let _ = names;
        Tree { value: value.clone() }
    }

    /// The value when nothing in it is a template.
    pub fn literal(&self) -> Option<&Value> {
        Some(&self.value)
    }

    /// The value with all templates rendered.
    pub fn value(&self, vars: &Vars, functions: &dyn Functions) -> Value {
        let _ = (vars, functions);
        self.value.clone()
    }
}
