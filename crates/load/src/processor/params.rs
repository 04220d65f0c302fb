//! `requestParams` on their way through hooks: as the plan has them, until a hook makes them something else.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use crate::value::{Map, Value};

/// Members that are searched one by one.
const FEW: usize = 17;
/// The member that differs from request to request.
pub const UUID: &str = "uuid";

/// The parameters of a request of the plan before hooks see them: the same each time, but for `uuid`.
pub struct Form {
    members: Arc<Map>,
    /// Under which number the engine knows it, once it has met it.
    pub(super) number: Cell<Option<usize>>,
}

impl Form {
    /// Parameters that begin with these members. The value of `uuid` counts for nothing, its place does.
    pub fn new(members: Map) -> Rc<Form> {
        Rc::new(Form { members: Arc::new(members), number: Cell::new(None) })
    }

    /// The members, `uuid` being whatever it was made with.
    pub fn members(&self) -> &Arc<Map> {
        &self.members
    }
}

/// The parameters of one request.
pub struct Params {
    form: Rc<Form>,
    uuid: Value,
    made: Made,
}

/// What a hook made of parameters.
pub enum Made {
    /// It left them as they were.
    Nothing,
    /// These members differ, or came behind the others.
    Members(Vec<(Arc<str>, Value)>),
    /// They are this now.
    Whole(Value),
}

impl Params {
    /// Those of the plan, with a `uuid` of their own.
    pub fn new(form: Rc<Form>) -> Params {
        Params { form, uuid: Value::Text(crate::random::uuid_text()), made: Made::Nothing }
    }

    /// What they were made from.
    pub(super) fn form(&self) -> &Rc<Form> {
        &self.form
    }

    /// The text of `uuid`, if the form has one.
    pub(super) fn uuid(&self) -> &Value {
        &self.uuid
    }

    /// Whether a hook made them something else than the plan has.
    pub fn is_made(&self) -> bool {
        !matches!(self.made, Made::Nothing)
    }

    /// Takes what a hook made of them.
    pub(super) fn make(&mut self, made: Made) {
        match made {
            Made::Nothing => {}
            made => self.made = made,
        }
    }

    /// All of them, as a value.
    pub fn value(&self) -> Cow<'_, Value> {
        if let Made::Whole(value) = &self.made {
            return Cow::Borrowed(value);
        }
        let mut members = (*self.form.members).clone();
        if let Some(place) = members.get_mut(UUID) {
            *place = self.uuid.clone();
        }
        if let Made::Members(changed) = &self.made {
            members.extend(changed.iter().cloned());
        }
        Cow::Owned(Value::from(members))
    }

    /// A member that is there, and neither `undefined` nor `null`.
    pub fn member(&self, name: &str) -> Option<&Value> {
        let found = match &self.made {
            Made::Whole(whole) => return member(whole, name),
            Made::Members(changed) => changed.iter().rfind(|(known, _)| &**known == name).map(|(_, value)| value),
            Made::Nothing => None,
        };
        match found {
            Some(value) => Some(value).filter(|value| is_there(value)),
            None if name == UUID && self.form.members.contains_key(UUID) => Some(&self.uuid),
            None => find(&self.form.members, name),
        }
    }

    /// All members that some call [`Params::member`] could find, with their names, but for `uuid`; one that comes again
    /// takes the place of the earlier.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Value)> {
        let (first, then) = match &self.made {
            Made::Whole(Value::Map(map)) => (Some(map), None),
            Made::Whole(_) => (None, None),
            Made::Members(changed) => (Some(&self.form.members), Some(changed)),
            Made::Nothing => (Some(&self.form.members), None),
        };
        let first = first.into_iter().flat_map(|map| map.iter().map(|(name, value)| (&**name, value)));
        let then = then.into_iter().flatten().map(|(name, value)| (&**name, value));
        first.chain(then).filter(|(name, _)| *name != UUID)
    }

    /// Sets a member.
    pub fn set(&mut self, name: &str, value: Value) {
        match &mut self.made {
            Made::Whole(Value::Map(map)) => {
                Arc::make_mut(map).insert(name.into(), value);
            }
            Made::Whole(_) => {}
            Made::Members(changed) => changed.push((name.into(), value)),
            Made::Nothing => self.made = Made::Members(vec![(name.into(), value)]),
        }
    }
}

/// A member of an object that is there, and neither `undefined` nor `null`.
pub fn member<'v>(object: &'v Value, name: &str) -> Option<&'v Value> {
    match object {
        Value::Map(map) => find(map, name),
        _ => None,
    }
}

fn find<'m>(map: &'m Map, name: &str) -> Option<&'m Value> {
    // Twenty names are asked for in turn, and few members there: looking at each is cheaper than to hash each name.
    let found = match map.len() {
        0..FEW => map.iter().find(|(known, _)| &***known == name).map(|(_, value)| value),
        _ => map.get(name),
    };
    found.filter(|value| is_there(value))
}

fn is_there(value: &Value) -> bool {
    !matches!(value, Value::Undefined | Value::Null)
}
