//! The options of one function, as the plugin's configuration gives them.

use crate::random;
use crate::value::{PathStep, Value};

/// Makes a value.
pub(super) type Make = fn(&FakeOptions<'_>) -> Value;

/// The options of one function.
pub(super) struct FakeOptions<'o>(pub &'o Value);

impl FakeOptions<'_> {
    /// An option as it is written.
    pub fn value(&self, name: &str) -> Value {
        match self.0 {
            Value::Map(_) => PathStep::from(name).of(self.0).cloned().unwrap_or_default(),
            _ => Value::Undefined,
        }
    }

    /// A numeric option. A bare number as the options means the first option of the function.
    pub fn number(&self, name: &str) -> Option<f64> {
        let value = if let Value::Number(_) = self.0 { self.0.clone() } else { self.value(name) };
        Some(value.to_number()).filter(|number| number.is_finite() && value != Value::Null)
    }

    /// A text option; an empty text and `false` count as absent.
    pub fn text(&self, name: &str) -> Option<String> {
        Some(self.value(name)).filter(Value::is_truthy).map(|value| value.to_text().into_owned())
    }

    /// A length: a number, or a random number between `min` and `max`.
    pub fn length(&self, name: &str, default: usize) -> usize {
        /// The longest text or list that one call makes.
        const LENGTH_MAX: f64 = 100_000.0;
        let inner = self.value(name);
        let inner = if inner.is_object() { FakeOptions(&inner) } else { FakeOptions(self.0) };
        let bounds = (inner.number("min"), inner.number("max"));
        let length = match (self.number(name), bounds) {
            (Some(length), _) => length,
            (None, (Some(min), Some(max))) => random::between(min, max),
            (None, (Some(one), None) | (None, Some(one))) => one,
            (None, (None, None)) => default as f64,
        };
        length.clamp(0.0, LENGTH_MAX) as usize
    }
}
