//! Converts values to JavaScript and back.
//!
//! The way back keeps only data that [`Value`] can hold: functions and symbols are dropped, and objects of a class
//! become the same as in `JSON.stringify`. Depth and size are limited, so that a cycle ends.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use rquickjs as js;
use rquickjs::function::This;
use rquickjs::object::Property;
use rquickjs::{Array, Atom, Ctx, Filter, Function, IntoJs, Object, Persistent, Type};

use crate::value::{Keyed, Value};

/// Most levels of objects and lists that are read from JavaScript; deeper ones are dropped.
pub const DEPTH_MAX: usize = 128;
/// Most values that are read from JavaScript at once; the others are dropped.
pub const VALUES_MAX: usize = 2_000_000;

/// Names that are remembered; other names are read each time.
const NAMES_MAX: usize = 1000;

/// Converts a value for JavaScript.
pub fn to_js<'js>(ctx: &Ctx<'js>, value: &Value) -> js::Result<js::Value<'js>> {
    Ok(match value {
        Value::Undefined => js::Value::new_undefined(ctx.clone()),
        Value::Null => js::Value::new_null(ctx.clone()),
        Value::Bool(bool) => js::Value::new_bool(ctx.clone(), *bool),
        Value::Number(number) => js::Value::new_number(ctx.clone(), *number),
        Value::Text(text) => js::String::from_str(ctx.clone(), text)?.into_value(),
        Value::List(list) => {
            let array = Array::new(ctx.clone())?;
            for (index, item) in list.iter().enumerate() {
                array.set(index, to_js(ctx, item)?)?;
            }
            array.into_value()
        }
        Value::Map(map) => {
            let object = Object::new(ctx.clone())?;
            for (key, item) in map.iter() {
                let item = to_js(ctx, item)?;
                // Setting this name would set the prototype.
                if &**key == "__proto__" {
                    object.prop(&**key, Property::from(item).configurable().enumerable().writable())?;
                } else {
                    object.set(&**key, item)?;
                }
            }
            object.into_value()
        }
    })
}

/// How functions are converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionConversion {
    /// They are left out.
    Dropped,
    /// They become their names: a script written in JavaScript refers to a processor's functions in this way.
    Named,
}

/// A value from JavaScript, and true if some of it could not be converted.
pub fn from_js<'js>(value: &js::Value<'js>, functions: FunctionConversion) -> (Value, bool) {
    let mut taking = Taking::new(functions);
    let taken = taking.take(value, &Value::Undefined, 0);
    (taken, taking.is_lossy)
}

/// Converts a value that went to JavaScript as `given` and comes back mostly unchanged. Unchanged parts reuse the
/// texts and members of `given`.
pub fn from_js_again<'js>(value: &js::Value<'js>, given: &Value) -> Value {
    Taking::new(FunctionConversion::Dropped).take(value, given, 0)
}

/// Names of members that JavaScript uses repeatedly, by their atoms.
#[derive(Default)]
pub struct MemberNames(RefCell<HashMap<Persistent<Atom<'static>>, Arc<str>, Keyed>>);

impl MemberNames {
    /// The text of a name.
    pub fn text<'js>(&self, ctx: &Ctx<'js>, name: Atom<'js>) -> Arc<str> {
        let name = Persistent::save(ctx, name);
        if let Some(known) = self.0.borrow().get(&name) {
            return known.clone();
        }
        let Ok(name) = name.restore(ctx) else { return Arc::default() };
        let text: Arc<str> = name.to_js_string().map(|text| text_of(&text)).unwrap_or_default().into();
        let mut all = self.0.borrow_mut();
        if all.len() < NAMES_MAX {
            all.insert(Persistent::save(ctx, name), text.clone());
        }
        text
    }
}

/// Reads values from JavaScript, within the limits.
pub struct Taking<'n> {
    functions: FunctionConversion,
    left: usize,
    is_lossy: bool,
    names: Option<&'n MemberNames>,
}

impl<'n> Taking<'n> {
    /// A reader that has read nothing yet.
    pub fn new(functions: FunctionConversion) -> Taking<'n> {
        Taking { functions, left: VALUES_MAX, is_lossy: false, names: None }
    }

    /// The same, with remembered names of members.
    pub fn with(names: &'n MemberNames) -> Taking<'n> {
        Taking { names: Some(names), ..Taking::new(FunctionConversion::Dropped) }
    }

    /// Reads a value at this depth; usually most of it equals `given`.
    pub fn take<'js>(&mut self, value: &js::Value<'js>, given: &Value, depth: usize) -> Value {
        if depth > DEPTH_MAX || self.left == 0 {
            return self.lost();
        }
        self.left -= 1;
        if value.is_object() {
            return self.held(value, given, depth);
        }
        match value.type_of() {
            Type::Undefined | Type::Uninitialized => Value::Undefined,
            Type::Null => Value::Null,
            Type::Bool => Value::Bool(value.as_bool().unwrap_or_default()),
            Type::Int | Type::Float => Value::Number(value.as_number().unwrap_or(f64::NAN)),
            Type::String => match value.as_string().map(text_of) {
                Some(text) if given.as_str() == Some(&*text) => given.clone(),
                text => text.map_or(Value::Undefined, Value::from),
            },
            Type::BigInt => {
                self.is_lossy = true;
                let number = value.clone().into_big_int().and_then(|big| big.to_i64().ok());
                number.map_or(Value::Undefined, |number| Value::Number(number as f64))
            }
            _ => self.lost(),
        }
    }

    /// Reads a list, function, or object. Each test for the type is a call into JavaScript, so each is made once.
    fn held<'js>(&mut self, value: &js::Value<'js>, given: &Value, depth: usize) -> Value {
        if value.is_array() {
            return self.list(value, depth);
        }
        if value.is_function() {
            return self.function(value);
        }
        match value.as_object() {
            Some(object) => self.object(object, given, depth),
            None => self.lost(),
        }
    }

    fn lost(&mut self) -> Value {
        self.is_lossy = true;
        Value::Undefined
    }

    fn list<'js>(&mut self, value: &js::Value<'js>, depth: usize) -> Value {
        let Some(array) = value.as_array() else { return self.lost() };
        let mut list = Vec::with_capacity(array.len().min(self.left));
        for index in 0..array.len() {
            if self.left == 0 {
                self.is_lossy = true;
                break;
            }
            match array.get::<js::Value<'js>>(index) {
                Ok(item) => list.push(self.take(&item, &Value::Undefined, depth + 1)),
                Err(_) => list.push(self.failed(value.ctx())),
            }
        }
        Value::List(Arc::new(list))
    }

    fn function(&mut self, value: &js::Value<'_>) -> Value {
        self.is_lossy = true;
        match self.functions {
            FunctionConversion::Dropped => Value::Undefined,
            FunctionConversion::Named => {
                let name = value.as_object().and_then(|object| object.get::<_, String>("name").ok());
                name.map_or(Value::Undefined, Value::from)
            }
        }
    }

    fn object<'js>(&mut self, object: &Object<'js>, given: &Value, depth: usize) -> Value {
        if !is_plain(object) {
            self.is_lossy = true;
            if let Some(shown) = self.shown(object, depth) {
                return shown;
            }
        }
        let given = match given {
            Value::Map(map) => Some(&**map),
            _ => None,
        };
        let mut map = given.cloned().unwrap_or_default();
        // Number of members that came back in their places; `None` after the first difference.
        let mut kept = given.map(|_| 0);
        for name in object.own_keys::<Atom<'js>>(Filter::new().string().enum_only()) {
            let member = name.and_then(|name| Ok((name.clone(), object.get::<_, js::Value<'js>>(name)?)));
            let Ok((name, item)) = member else {
                self.failed(object.ctx());
                continue;
            };
            let key: Arc<str> = match self.names {
                Some(names) => names.text(object.ctx(), name),
                None => match name.to_js_string() {
                    Ok(name) => text_of(&name).into(),
                    Err(_) => continue,
                },
            };
            let before = kept.and_then(|at| given?.get_index(at)).filter(|(known, _)| ***known == *key);
            let item = self.take(&item, before.map_or(&Value::Undefined, |(_, value)| value), depth + 1);
            match (kept, before) {
                (Some(at), Some(_)) => {
                    if let Some((_, place)) = map.get_index_mut(at) {
                        *place = item;
                    }
                    kept = Some(at + 1);
                }
                (at, _) => {
                    at.into_iter().for_each(|at| map.truncate(at));
                    kept = None;
                    map.insert(key, item);
                }
            }
        }
        kept.into_iter().for_each(|at| map.truncate(at));
        Value::Map(Arc::new(map))
    }

    /// The data of a class instance: bytes as text, otherwise the result of `toJSON`.
    fn shown<'js>(&mut self, object: &Object<'js>, depth: usize) -> Option<Value> {
        let is_bytes = object.is_typed_array::<u8>();
        let method = object.get::<_, js::Value<'js>>(if is_bytes { "toString" } else { "toJSON" }).ok()?;
        let method = method.as_function()?;
        match method.call::<_, js::Value<'js>>((This(object.clone()),)) {
            Ok(value) => Some(self.take(&value, &Value::Undefined, depth + 1)),
            Err(_) => Some(self.failed(object.ctx())),
        }
    }

    /// A getter or `toJSON` threw an exception; ignore it.
    fn failed(&mut self, ctx: &Ctx<'_>) -> Value {
        let _ = ctx.catch();
        self.lost()
    }
}

/// True if the object is not an instance of a class: the prototype of an object literal has no prototype.
pub fn is_plain(object: &Object<'_>) -> bool {
    object.get_prototype().is_none_or(|prototype| prototype.get_prototype().is_none())
}

/// The text of a string; half a surrogate pair becomes U+FFFD.
pub fn text_of(text: &js::String<'_>) -> String {
    text.to_string().unwrap_or_else(|_| well_formed(text).unwrap_or_default())
}

fn well_formed<'js>(text: &js::String<'js>) -> js::Result<String> {
    let ctx = text.ctx();
    let object: Object<'js> = ctx.globals().get("String")?;
    let prototype: Object<'js> = object.get("prototype")?;
    let method: Function<'js> = prototype.get("toWellFormed")?;
    let whole: js::String<'js> = method.call((This(text.clone()),))?;
    whole.to_string()
}

/// A [`Value`] as an argument or result of a native function.
pub struct Given(pub Value);

impl<'js> IntoJs<'js> for Given {
    fn into_js(self, ctx: &Ctx<'js>) -> js::Result<js::Value<'js>> {
        to_js(ctx, &self.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::value::parse_json;

    /// The value that comes back is the actual value, whatever was given before.
    #[test]
    fn what_was_given_changes_nothing_but_the_cost() {
        let given = parse_json(br#"{"url":"/a","headers":{"a":"1","b":"2"},"list":[{"x":1}],"n":1}"#).unwrap();
        let runtime = js::Runtime::new().unwrap();
        js::Context::full(&runtime).unwrap().with(|ctx| {
            for change in [
                "",
                "g.url = '/b'",
                "g.n = '1'; g.headers.c = '3'",
                "g.headers = { b: '2', a: '1' }",
                "delete g.headers; delete g.n",
                "delete g.url; g.url = '/a'",
                "g.list[0].x = 2; g.list.push(g.headers)",
                "g = { 1: 'number first', url: '/a' }",
                "g = [g]",
                "g = 'text'",
                "g.headers = null; g.more = undefined",
                "for (const name of Object.keys(g)) delete g[name]",
            ] {
                ctx.globals().set("g", to_js(&ctx, &given).unwrap()).unwrap();
                ctx.eval::<(), _>(change).unwrap();
                let value: js::Value = ctx.globals().get("g").unwrap();
                let (plain, _) = from_js(&value, FunctionConversion::Dropped);
                let again = from_js_again(&value, &given);
                assert_eq!(again.to_json(), plain.to_json(), "{change}");
                assert_eq!(again, plain, "{change}");
            }
        });
    }
}
