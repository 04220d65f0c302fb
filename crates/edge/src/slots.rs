//! Values that variables keep in an exchange.

use crate::regex::{Captures, MatchFailed, Regex};
use crate::variable::VariableId;

/// The values of variables that the exchange keeps, and the captures of the last match.
#[derive(Clone, Default)]
pub struct SlotStore {
    values: Vec<Option<Vec<u8>>>,
    /// `$1` to `$9`.
    pub captures: Captures,
}

impl SlotStore {
    /// The value kept under this number.
    pub fn get(&self, id: VariableId) -> Option<&[u8]> {
        self.values.get(id.0 as usize)?.as_deref()
    }

    /// Keeps a value.
    pub fn set(&mut self, id: VariableId, value: &[u8]) {
        let index = id.0 as usize;
        if self.values.len() <= index {
            self.values.resize_with(index + 1, || None);
        }
        if let Some(slot) = self.values.get_mut(index) {
            *slot = Some(value.to_vec());
        }
    }

    /// The values kept.
    pub fn iter(&self) -> impl Iterator<Item = (VariableId, &[u8])> {
        (0..).zip(&self.values).filter_map(|(id, value)| Some((VariableId(id), value.as_deref()?)))
    }

    /// Matches and keeps the captures, the named ones as variables.
    pub fn capture(&mut self, regex: &Regex, subject: &[u8]) -> Result<bool, MatchFailed> {
        if !regex.capture(subject, &mut self.captures)? {
            return Ok(false);
        }
        for (group, id) in regex.named() {
            let value = self.captures.get(*group).unwrap_or_default().to_vec();
            self.set(*id, &value);
        }
        Ok(true)
    }

    /// Forgets all of them; the memory stays.
    pub fn clear(&mut self) {
        self.values.clear();
        self.captures.clear();
    }
}
