//! `requestParams` on their way through hooks: as in the plan, until a hook changes them.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use crate::value::{Map, Value};

/// With fewer members, a linear search is used.
const FEW: usize = 17;
/// The member that differs from request to request.
pub const UUID: &str = "uuid";

/// The parameters of a request of the plan before the hooks: always the same, except `uuid`.
pub struct Form {
    members: Arc<Map>,
    /// The number under which the engine knows this form, if it does.
    pub(super) number: Cell<Option<usize>>,
}

impl Form {
    /// Parameters with these members. The value of `uuid` is ignored; its place counts.
    pub fn new(members: Map) -> Rc<Form> {
        Rc::new(Form { members: Arc::new(members), number: Cell::new(None) })
    }

    /// The members; `uuid` has the value given at creation.
    pub fn members(&self) -> &Arc<Map> {
        &self.members
    }
}

/// The parameters of one request.
pub struct Params {
    form: Rc<Form>,
    uuid: Value,
    made: ParamChanges,
}

/// A hook's changes to the parameters.
pub enum ParamChanges {
    /// No changes.
    Nothing,
    /// These members differ, or were added at the end.
    Members(Vec<(Arc<str>, Value)>),
    /// The parameters were replaced by this value.
    Whole(Value),
}

impl Params {
    /// The plan's parameters, with a new `uuid`.
    pub fn new(form: Rc<Form>) -> Params {
        Params { form, uuid: Value::Text(crate::random::uuid_text()), made: ParamChanges::Nothing }
    }

    /// The form that they were made from.
    pub(super) fn form(&self) -> &Rc<Form> {
        &self.form
    }

    /// The text of `uuid`, if the form has one.
    pub(super) fn uuid(&self) -> &Value {
        &self.uuid
    }

    /// True if a hook changed the parameters.
    pub fn is_made(&self) -> bool {
        !matches!(self.made, ParamChanges::Nothing)
    }

    /// Applies a hook's changes.
    pub(super) fn make(&mut self, made: ParamChanges) {
        match made {
            ParamChanges::Nothing => {}
            made => self.made = made,
        }
    }

    /// All parameters as a value.
    pub fn value(&self) -> Cow<'_, Value> {
        if let ParamChanges::Whole(value) = &self.made {
            return Cow::Borrowed(value);
        }
        let mut members = (*self.form.members).clone();
        if let Some(place) = members.get_mut(UUID) {
            *place = self.uuid.clone();
        }
        if let ParamChanges::Members(changed) = &self.made {
            members.extend(changed.iter().cloned());
        }
        Cow::Owned(Value::from(members))
    }

    /// A member that exists and is neither `undefined` nor `null`.
    pub fn member(&self, name: &str) -> Option<&Value> {
        let found = match &self.made {
            ParamChanges::Whole(whole) => return member(whole, name),
            ParamChanges::Members(changed) => {
                changed.iter().rfind(|(known, _)| &**known == name).map(|(_, value)| value)
            }
            ParamChanges::Nothing => None,
        };
        match found {
            Some(value) => Some(value).filter(|value| is_there(value)),
            None if name == UUID && self.form.members.contains_key(UUID) => Some(&self.uuid),
            None => find(&self.form.members, name),
        }
    }

    /// All members that [`Params::member`] could find, with their names, except `uuid`. If a name occurs twice, the
    /// later member counts.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Value)> {
        let (first, then) = match &self.made {
            ParamChanges::Whole(Value::Map(map)) => (Some(map), None),
            ParamChanges::Whole(_) => (None, None),
            ParamChanges::Members(changed) => (Some(&self.form.members), Some(changed)),
            ParamChanges::Nothing => (Some(&self.form.members), None),
        };
        let first = first.into_iter().flat_map(|map| map.iter().map(|(name, value)| (&**name, value)));
        let then = then.into_iter().flatten().map(|(name, value)| (&**name, value));
        first.chain(then).filter(|(name, _)| *name != UUID)
    }

    /// Sets a member.
    pub fn set(&mut self, name: &str, value: Value) {
        match &mut self.made {
            ParamChanges::Whole(Value::Map(map)) => {
                Arc::make_mut(map).insert(name.into(), value);
            }
            ParamChanges::Whole(_) => {}
            ParamChanges::Members(changed) => changed.push((name.into(), value)),
            ParamChanges::Nothing => self.made = ParamChanges::Members(vec![(name.into(), value)]),
        }
    }
}

/// A member of an object that exists and is neither `undefined` nor `null`.
pub fn member<'v>(object: &'v Value, name: &str) -> Option<&'v Value> {
    match object {
        Value::Map(map) => find(map, name),
        _ => None,
    }
}

fn find<'m>(map: &'m Map, name: &str) -> Option<&'m Value> {
    // Callers look up about twenty names in a few members: a linear search is cheaper than hashing each name.
    let found = match map.len() {
        0..FEW => map.iter().find(|(known, _)| &***known == name).map(|(_, value)| value),
        _ => map.get(name),
    };
    found.filter(|value| is_there(value))
}

fn is_there(value: &Value) -> bool {
    !matches!(value, Value::Undefined | Value::Null)
}
