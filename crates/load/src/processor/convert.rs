//! Values to JavaScript and back.
//!
//! Back, only what [`Value`] can hold is taken: functions and symbols are dropped, objects of a class become what
//! `JSON.stringify` would make of them, and depth and size are bounded, so that a cycle ends.

use std::sync::Arc;

use rquickjs as js;
use rquickjs::function::This;
use rquickjs::{Array, Ctx, Filter, Function, IntoJs, Object, Type};

use crate::value::{Map, Value};

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
    let taken = taking.take(value, 0);
    (taken, taking.is_lossy)
}

struct Taking {
    functions: Functions,
    left: usize,
    is_lossy: bool,
}

impl Taking {
    fn take<'js>(&mut self, value: &js::Value<'js>, depth: usize) -> Value {
        if depth > DEPTH_MAX || self.left == 0 {
            return self.lost();
        }
        self.left -= 1;
        match value.type_of() {
            Type::Undefined | Type::Uninitialized => Value::Undefined,
            Type::Null => Value::Null,
            Type::Bool => Value::Bool(value.as_bool().unwrap_or_default()),
            Type::Int | Type::Float => Value::Number(value.as_number().unwrap_or(f64::NAN)),
            Type::String => value.as_string().map_or(Value::Undefined, |text| Value::from(text_of(text))),
            Type::BigInt => {
                self.is_lossy = true;
                let number = value.clone().into_big_int().and_then(|big| big.to_i64().ok());
                number.map_or(Value::Undefined, |number| Value::Number(number as f64))
            }
            Type::Array => self.list(value, depth),
            Type::Function | Type::Constructor => self.function(value),
            _ => match value.as_object() {
                Some(object) => self.object(object, depth),
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
                Ok(item) => list.push(self.take(&item, depth + 1)),
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

    fn object<'js>(&mut self, object: &Object<'js>, depth: usize) -> Value {
        // An object literal's prototype has none itself; anything else is of some class.
        let is_plain = object.get_prototype().is_none_or(|prototype| prototype.get_prototype().is_none());
        if !is_plain {
            self.is_lossy = true;
            if let Some(shown) = self.shown(object, depth) {
                return shown;
            }
        }
        let mut map = Map::new();
        for member in object.own_props::<js::Value<'js>, js::Value<'js>>(Filter::new().string().enum_only()) {
            let Ok((key, item)) = member else {
                self.failed(object.ctx());
                continue;
            };
            let Some(key) = key.as_string().map(text_of) else { continue };
            let item = self.take(&item, depth + 1);
            map.insert(key.into(), item);
        }
        Value::Map(Arc::new(map))
    }

    /// What an instance of a class is as data: bytes as text, and otherwise what `toJSON` says.
    fn shown<'js>(&mut self, object: &Object<'js>, depth: usize) -> Option<Value> {
        let is_bytes = object.is_typed_array::<u8>();
        let method = object.get::<_, js::Value<'js>>(if is_bytes { "toString" } else { "toJSON" }).ok()?;
        let method = method.as_function()?;
        match method.call::<_, js::Value<'js>>((This(object.clone()),)) {
            Ok(value) => Some(self.take(&value, depth + 1)),
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
