//! Values to JavaScript and back.
//!
//! Back, only what [`Value`] can hold is taken: functions and symbols are dropped, objects of a class become what
//! `JSON.stringify` would make of them, and depth and size are bounded, so that a cycle ends.

use std::sync::Arc;

use rquickjs as js;
use rquickjs::function::This;
use rquickjs::{Array, Ctx, Filter, Function, IntoJs, Object, Type};

use crate::value::Value;

/// Levels of objects and lists taken from JavaScript; what is deeper is dropped.
pub const DEPTH_MAX: usize = 64;
/// Values taken from JavaScript at once; the rest is dropped.
pub const VALUES_MAX: usize = 2_000_000;

/// A value for JavaScript.
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
                object.set(&**key, to_js(ctx, item)?)?;
            }
            object.into_value()
        }
    })
}

/// What becomes of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Functions {
    /// They are left out.
    Dropped,
    /// They become their names: scripts written in JavaScript refer to a processor's functions so.
    Named,
}

/// A value from JavaScript, and whether something of it was lost on the way.
pub fn from_js<'js>(value: &js::Value<'js>, functions: Functions) -> (Value, bool) {
    let mut taking = Taking { functions, left: VALUES_MAX, is_lossy: false };
    let taken = taking.take(value, &Value::Undefined, 0);
    (taken, taking.is_lossy)
}

/// A value that went to JavaScript as `given` and comes back, most of it as it was: that costs neither texts nor
/// places for members.
pub fn from_js_again<'js>(value: &js::Value<'js>, given: &Value) -> Value {
    Taking { functions: Functions::Dropped, left: VALUES_MAX, is_lossy: false }.take(value, given, 0)
}

struct Taking {
    functions: Functions,
    left: usize,
    is_lossy: bool,
}

impl Taking {
    fn take<'js>(&mut self, value: &js::Value<'js>, given: &Value, depth: usize) -> Value {
        if depth > DEPTH_MAX || self.left == 0 {
            return self.lost();
        }
        self.left -= 1;
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
            Type::Array => self.list(value, depth),
            Type::Function | Type::Constructor => self.function(value),
            _ => match value.as_object() {
                Some(object) => self.object(object, given, depth),
                None => self.lost(),
            },
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
            Functions::Dropped => Value::Undefined,
            Functions::Named => {
                let name = value.as_object().and_then(|object| object.get::<_, String>("name").ok());
                name.map_or(Value::Undefined, Value::from)
            }
        }
    }

    fn object<'js>(&mut self, object: &Object<'js>, given: &Value, depth: usize) -> Value {
        // An object literal's prototype has none itself; anything else is of some class.
        let is_plain = object.get_prototype().is_none_or(|prototype| prototype.get_prototype().is_none());
        if !is_plain {
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
        // How many members came back in their places, as long as all did.
        let mut kept = given.map(|_| 0);
        for member in object.own_props::<js::Value<'js>, js::Value<'js>>(Filter::new().string().enum_only()) {
            let Ok((key, item)) = member else {
                self.failed(object.ctx());
                continue;
            };
            let Some(key) = key.as_string().map(text_of) else { continue };
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
                    map.insert(key.into(), item);
                }
            }
        }
        kept.into_iter().for_each(|at| map.truncate(at));
        Value::Map(Arc::new(map))
    }

    /// What an instance of a class is as data: bytes as text, and otherwise what `toJSON` says.
    fn shown<'js>(&mut self, object: &Object<'js>, depth: usize) -> Option<Value> {
        let is_bytes = object.is_typed_array::<u8>();
        let method = object.get::<_, js::Value<'js>>(if is_bytes { "toString" } else { "toJSON" }).ok()?;
        let method = method.as_function()?;
        match method.call::<_, js::Value<'js>>((This(object.clone()),)) {
            Ok(value) => Some(self.take(&value, &Value::Undefined, depth + 1)),
            Err(_) => Some(self.failed(object.ctx())),
        }
    }

    /// A getter or `toJSON` threw: its exception is not the script's concern.
    fn failed(&mut self, ctx: &Ctx<'_>) -> Value {
        let _ = ctx.catch();
        self.lost()
    }
}

/// A string's text; half a surrogate pair becomes U+FFFD.
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

/// [`Value`] as an argument or result of a native function.
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

    /// What comes back is what is there, whatever it was before.
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
                let (plain, _) = from_js(&value, Functions::Dropped);
                let again = from_js_again(&value, &given);
                assert_eq!(again.to_json(), plain.to_json(), "{change}");
                assert_eq!(again, plain, "{change}");
            }
        });
    }
}
