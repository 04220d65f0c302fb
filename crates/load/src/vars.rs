//! The variables of one virtual user (Artillery's `context.vars`).
//!
//! Names in the script have a slot, assigned when the plan is made. Names that a processor or a dynamic template adds
//! are looked up by name. A virtual user that sets nothing needs one small allocation.

use std::collections::HashMap;
use std::sync::Arc;

use crate::value::{self, Keyed, Map, Path, PathStep, UNDEFINED, Value};

/// Most names that are added at run time, per virtual user; further ones are dropped.
pub const OTHERS_MAX: usize = 10_000;

/// The slot of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VariableSlot(u32);

/// The names in a plan.
#[derive(Debug, Default)]
pub struct VariableNames {
    slots: HashMap<Arc<str>, VariableSlot, Keyed>,
    names: Vec<Arc<str>>,
}

impl VariableNames {
    /// The slot of a name; a new slot if the name has none.
    pub fn slot(&mut self, name: &str) -> VariableSlot {
        if let Some(slot) = self.slots.get(name) {
            return *slot;
        }
        let name: Arc<str> = name.into();
        let slot = VariableSlot(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        self.names.push(name.clone());
        self.slots.insert(name, slot);
        slot
    }

    /// The slot of a name, if there is one.
    pub fn find(&self, name: &str) -> Option<VariableSlot> {
        self.slots.get(name).copied()
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// True if there are no names.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// One virtual user's variables.
#[derive(Clone, Debug)]
pub struct Vars {
    names: Arc<VariableNames>,
    values: Vec<Value>,
    others: Option<Box<Map>>,
}

impl Vars {
    /// Variables of which none is set.
    pub fn new(names: Arc<VariableNames>) -> Vars {
        let values = vec![Value::Undefined; names.len()];
        Vars { names, values, others: None }
    }

    /// Takes all variables, and leaves none set.
    pub fn take(&mut self) -> Vars {
        let (values, others) = (std::mem::take(&mut self.values), self.others.take());
        Vars { names: self.names.clone(), values, others }
    }

    /// The name of a slot.
    pub fn name(&self, slot: VariableSlot) -> &str {
        self.names.names.get(slot.0 as usize).map_or("", |name| name)
    }

    /// The value in a slot.
    pub fn get(&self, slot: VariableSlot) -> &Value {
        self.values.get(slot.0 as usize).unwrap_or(&UNDEFINED)
    }

    /// Sets the value in a slot.
    pub fn set(&mut self, slot: VariableSlot, value: Value) {
        if let Some(place) = self.values.get_mut(slot.0 as usize) {
            *place = value;
        }
    }

    /// The value of a name.
    pub fn by_name(&self, name: &str) -> &Value {
        match self.names.find(name) {
            Some(slot) => self.get(slot),
            None => self.others.as_ref().and_then(|others| others.get(name)).unwrap_or(&UNDEFINED),
        }
    }

    /// The value at a path that is known only at run time: `a.b[0]`. A variable with exactly this name wins.
    pub fn by_path(&self, text: &str) -> Value {
        let whole = self.by_name(text);
        if *whole != Value::Undefined {
            return whole.clone();
        }
        let path = Path::parse(text);
        match path.keys.split_first() {
            Some((first, rest)) if !rest.is_empty() => value::get(self.by_name(&first.name), rest),
            _ => Value::Undefined,
        }
    }

    /// Sets the value at a path inside a slot's variable, and makes missing objects and lists.
    pub fn set_path(&mut self, slot: VariableSlot, path: &[PathStep], value: Value) {
        if let Some(place) = self.values.get_mut(slot.0 as usize) {
            place.set(path, value);
        }
    }

    /// Sets the variable with this name.
    pub fn set_by_name(&mut self, name: &str, value: Value) {
        if let Some(slot) = self.names.find(name) {
            return self.set(slot, value);
        }
        let others = self.others.get_or_insert_default();
        if others.len() < OTHERS_MAX || others.contains_key(name) {
            others.insert(name.into(), value);
        }
    }

    /// Applies the differences between two states of the same variables.
    pub fn take_changes(&mut self, before: &Vars, after: &Vars) {
        for (own, (before, after)) in self.values.iter_mut().zip(before.values.iter().zip(&after.values)) {
            if before != after {
                *own = after.clone();
            }
        }
        for (name, value) in after.others.iter().flat_map(|others| others.iter()) {
            if before.by_name(name) != value {
                self.set_by_name(name, value.clone());
            }
        }
    }

    /// All set variables, with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Value)> {
        let slots = self.names.names.iter().zip(&self.values).filter(|(_, value)| **value != Value::Undefined);
        slots.chain(self.others.iter().flat_map(|others| others.iter()))
    }
}
