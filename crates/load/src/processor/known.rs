//! Parameters that JavaScript gets repeatedly. A generated function makes them in JavaScript. After a hook, identity
//! tells which values the hook replaced, so that unchanged values are neither written nor read as text.

use std::sync::Arc;

use rquickjs as js;
use rquickjs::{Array, Atom, Ctx, Filter, Function, Object, Persistent};

use super::convert::{MemberNames, Taking, is_plain, to_js};
use super::params::{ParamChanges, Params, UUID};
use crate::value::{Map, UNDEFINED, Value, write_json_text};

/// Most kinds of parameters that are known; the parameters of further requests are made member by member.
pub const FORMS_MAX: usize = 1000;
/// Most values in one kind; larger parameters are made member by member.
pub const VALUES_MAX: usize = 200;
/// Deepest nesting of objects and lists.
const DEPTH_MAX: usize = 8;

/// A kind of parameters, in JavaScript's form.
pub struct KnownParams {
    members: Arc<Map>,
    /// Makes the parameters from the `uuid`.
    maker: Persistent<Function<'static>>,
    object: Members,
}

type Members = Vec<(Persistent<Atom<'static>>, Part)>;

/// A value at the time it was given.
enum Part {
    /// This very value.
    Same(Persistent<js::Value<'static>>),
    /// The `uuid`, which differs in each call.
    Uuid,
    Object(Members),
    List(Vec<Part>),
}

impl KnownParams {
    /// Prepares a kind; `None` if it is too large. `prepare` is the function in calls.js.
    pub fn new<'js>(
        ctx: &Ctx<'js>,
        members: &Arc<Map>,
        prepare: &Persistent<Function<'static>>,
    ) -> js::Result<Option<KnownParams>> {
        let mut writer = Writer { ctx, body: Vec::new(), values: Vec::new(), names: Vec::new() };
        let Some(object) = writer.object(members, 0)? else { return Ok(None) };
        let parameters: Vec<String> = (0..writer.values.len()).map(|at| format!("v{at}")).collect();
        let body = String::from_utf8_lossy(&writer.body);
        let mut options = js::context::EvalOptions::default();
        options.filename = Some("weir".into());
        let source = format!("(({}) => (uuid) => ({body}))", parameters.join(","));
        let outer: Function<'js> = ctx.eval_with_options(source, options)?;
        let mut arguments = js::function::Args::new_unsized(ctx.clone());
        arguments.push_args(writer.values)?;
        let maker: Function<'js> = outer.call_arg(arguments)?;
        let maker: Function<'js> = prepare.clone().restore(ctx)?.call((maker, writer.names))?;
        Ok(Some(KnownParams { members: members.clone(), maker: Persistent::save(ctx, maker), object }))
    }

    /// The function that makes the parameters.
    pub fn maker<'js>(&self, ctx: &Ctx<'js>) -> js::Result<js::Value<'js>> {
        Ok(self.maker.clone().restore(ctx)?.into_value())
    }

    /// The hook's changes to the parameters.
    pub fn changed<'js>(
        &self,
        value: &js::Value<'js>,
        params: &Params,
        uuid: &js::Value<'js>,
        names: &MemberNames,
    ) -> ParamChanges {
        let mut comparing = Comparing { taking: Taking::with(names), names, uuid };
        let compared = match value.as_object() {
            Some(object) => comparing.object(object, &self.object, &self.members, 0),
            _ => Compared::Unclear,
        };
        match compared {
            Compared::Same => ParamChanges::Nothing,
            Compared::Members(members) => ParamChanges::Members(members),
            Compared::Unclear => ParamChanges::Whole(comparing.taking.take(value, &params.value(), 0)),
        }
    }
}

/// Writes the function that makes an object.
struct Writer<'w, 'js> {
    ctx: &'w Ctx<'js>,
    body: Vec<u8>,
    values: Vec<js::Value<'js>>,
    /// The names of each object.
    names: Vec<Vec<String>>,
}

impl<'js> Writer<'_, 'js> {
    fn object(&mut self, map: &Map, depth: usize) -> js::Result<Option<Members>> {
        self.names.push(map.keys().map(|name| name.to_string()).collect());
        self.body.push(b'{');
        let mut members = Members::new();
        for (name, value) in map {
            // `"__proto__": …` would set the prototype and add no member.
            let is_special = &**name == "__proto__";
            self.body.extend_from_slice(if is_special { b"[" } else { b"" });
            write_json_text(name, &mut self.body);
            self.body.extend_from_slice(if is_special { b"]:" } else { b":" });
            let is_uuid = depth == 0 && &**name == UUID;
            let Some(part) = self.part(value, is_uuid, depth + 1)? else { return Ok(None) };
            self.body.push(b',');
            members.push((Persistent::save(self.ctx, Atom::from_str(self.ctx.clone(), name)?), part));
        }
        self.body.push(b'}');
        Ok(Some(members))
    }

    fn part(&mut self, value: &Value, is_uuid: bool, depth: usize) -> js::Result<Option<Part>> {
        match value {
            _ if self.values.len() >= VALUES_MAX || depth > DEPTH_MAX => Ok(None),
            _ if is_uuid => {
                self.body.extend_from_slice(b"uuid");
                Ok(Some(Part::Uuid))
            }
            Value::Map(map) => Ok(self.object(map, depth)?.map(Part::Object)),
            Value::List(list) => {
                self.body.push(b'[');
                let mut parts = Vec::new();
                for item in list.iter() {
                    let Some(part) = self.part(item, false, depth + 1)? else { return Ok(None) };
                    self.body.push(b',');
                    parts.push(part);
                }
                self.body.push(b']');
                Ok(Some(Part::List(parts)))
            }
            value => {
                self.body.extend_from_slice(format!("v{}", self.values.len()).as_bytes());
                let value = to_js(self.ctx, value)?;
                self.values.push(value.clone());
                Ok(Some(Part::Same(Persistent::save(self.ctx, value))))
            }
        }
    }
}

/// The result of comparing a value with the given one.
enum Compared {
    Same,
    /// These members differ, or were added at the end.
    Members(Vec<(Arc<str>, Value)>),
    /// Too different: read it as a whole.
    Unclear,
}

struct Comparing<'c, 'js> {
    taking: Taking<'c>,
    names: &'c MemberNames,
    uuid: &'c js::Value<'js>,
}

impl<'js> Comparing<'_, 'js> {
    /// Compares an object; `given` is its earlier value.
    fn object(&mut self, object: &Object<'js>, known: &Members, given: &Map, depth: usize) -> Compared {
        if !is_plain(object) {
            return Compared::Unclear;
        }
        let ctx = object.ctx();
        let mut members = Vec::new();
        let mut count = 0;
        for name in object.own_keys::<Atom<'js>>(Filter::new().string().enum_only()) {
            let Ok(name) = name else { return self.unclear(ctx) };
            let (at, name) = (count, Persistent::save(ctx, name));
            count += 1;
            match known.get(at) {
                Some((known, part)) if *known == name => {
                    let Ok(value) = name.restore(ctx).and_then(|name| object.get(name)) else {
                        return self.unclear(ctx);
                    };
                    let Some((name, before)) = given.get_index(at) else { return Compared::Unclear };
                    if let Some(value) = self.part(ctx, value, part, before, depth + 1) {
                        members.push((name.clone(), value));
                    }
                }
                // A member was left out or moved: the order differs.
                Some(_) => return Compared::Unclear,
                None => {
                    let member =
                        name.restore(ctx).and_then(|name| Ok((name.clone(), object.get::<_, js::Value>(name)?)));
                    let Ok((name, value)) = member else { return self.unclear(ctx) };
                    let value = self.taking.take(&value, &UNDEFINED, depth + 1);
                    members.push((self.names.text(ctx, name), value));
                }
            }
        }
        match members.is_empty() {
            _ if count < known.len() => Compared::Unclear,
            true => Compared::Same,
            false => Compared::Members(members),
        }
    }

    /// A getter threw an exception; ignore it.
    fn unclear(&self, ctx: &Ctx<'js>) -> Compared {
        let _ = ctx.catch();
        Compared::Unclear
    }

    /// The current value; `None` if it is unchanged.
    fn part(
        &mut self,
        ctx: &Ctx<'js>,
        value: js::Value<'js>,
        known: &Part,
        given: &Value,
        depth: usize,
    ) -> Option<Value> {
        let compared = match (known, given) {
            (Part::Same(known), _) => {
                let saved = Persistent::save(ctx, value);
                if saved == *known {
                    return None;
                }
                let value = saved.restore(ctx).ok()?;
                return Some(self.taking.take(&value, &UNDEFINED, depth));
            }
            (Part::Uuid, _) if value == *self.uuid => Compared::Same,
            (Part::Object(members), Value::Map(map)) => match value.as_object() {
                Some(object) => self.object(object, members, map, depth),
                _ => Compared::Unclear,
            },
            (Part::List(parts), Value::List(list)) => match value.as_array() {
                Some(array) if array.len() == parts.len() => self.list(array, parts, list, depth),
                _ => Compared::Unclear,
            },
            _ => Compared::Unclear,
        };
        match compared {
            Compared::Same => None,
            Compared::Members(members) => {
                let Value::Map(map) = given else { return None };
                let mut map = (**map).clone();
                map.extend(members);
                Some(Value::from(map))
            }
            Compared::Unclear => Some(self.taking.take(&value, given, depth)),
        }
    }

    fn list(&mut self, array: &Array<'js>, parts: &[Part], given: &[Value], depth: usize) -> Compared {
        for (at, (part, given)) in parts.iter().zip(given).enumerate() {
            let Ok(item) = array.get::<js::Value<'js>>(at) else {
                return self.unclear(array.ctx());
            };
            if self.part(array.ctx(), item, part, given, depth + 1).is_some() {
                return Compared::Unclear;
            }
        }
        Compared::Same
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::processor::convert::{FunctionConversion, from_js};
    use crate::processor::params::{Form, member};
    use crate::value::parse_json;

    const GIVEN: &str = r#"{"url":"/a","headers":{"a":"1","b":"2"},"json":{"list":[{"x":1},"y",null],"n":1.5},"uuid":0,"n":1,"t":true}"#;

    fn form(text: &str) -> std::rc::Rc<Form> {
        let Value::Map(map) = parse_json(text.as_bytes()).unwrap() else { panic!("{text}") };
        Form::new(Arc::unwrap_or_clone(map))
    }

    fn with_known(text: &str, run: impl for<'js> FnOnce(&Ctx<'js>, &Params, Option<&KnownParams>)) {
        let runtime = js::Runtime::new().unwrap();
        js::Context::full(&runtime).unwrap().with(|ctx| {
            let prepare: Function = ctx.eval("(make, names) => make").unwrap();
            let prepare = Persistent::save(&ctx, prepare);
            let params = Params::new(form(text));
            let known = KnownParams::new(&ctx, params.form().members(), &prepare).unwrap();
            run(&ctx, &params, known.as_ref());
        });
    }

    /// The value found is the actual value, whatever a hook did.
    #[test]
    fn what_a_hook_changed_is_found() {
        // The hook's code with `p`, and whether it changes something.
        for (change, is_change) in [
            ("", false),
            ("p.url = '/' + 'a'", true),
            ("p.url = p.url; p.headers = p.headers; p.json.list[1] = p.json.list[1]", false),
            ("p.headers.c = '3'", true),
            ("p.headers = { ...p.headers }", false),
            ("p.headers = { b: '2', a: '1' }", true),
            ("p.headers = null", true),
            ("p.more = undefined", true),
            ("p.more = { deep: [1, { er: p.headers }] }; p.url = '/b'", true),
            ("delete p.headers", true),
            ("delete p.t", true),
            ("delete p.url; p.url = '/a'", true),
            ("p.uuid = 'mine'", true),
            ("p.json.list[0].x = 2", true),
            ("p.json.list.push(1)", true),
            ("p.json.list.length = 1", true),
            ("p.json.n = 3 / 2", false),
            ("p.json = [p.json]", true),
            ("p.json = () => 1", true),
            ("p.json = new Date(0)", true),
            ("p[5] = 'a number first'", true),
            ("Object.setPrototypeOf(p, { toJSON() { return 'shown'; } })", true),
            ("Object.defineProperty(p, 'url', { get() { throw new Error('no'); }, enumerable: true })", true),
            ("Object.defineProperty(p, 'url', { enumerable: false })", true),
            ("p[Symbol('s')] = 1", false),
            ("for (const name of Object.keys(p)) delete p[name]", true),
            ("p.self = p", true),
        ] {
            with_known(GIVEN, |ctx, params, known| {
                let uuid = to_js(ctx, params.uuid()).unwrap();
                let known = known.unwrap();
                let maker: Function = known.maker(ctx).unwrap().into_function().unwrap();
                let made: js::Value = maker.call((uuid.clone(),)).unwrap();
                let (plain, _) = from_js(&made, FunctionConversion::Dropped);
                assert_eq!(plain.to_json(), params.value().to_json());
                ctx.globals().set("p", made.clone()).unwrap();
                ctx.eval::<(), _>(change).unwrap();
                let mut after = Params::new(params.form().clone());
                let changed = known.changed(&made, params, &uuid, &MemberNames::default());
                assert_eq!(!matches!(changed, ParamChanges::Nothing), is_change, "{change}");
                after.make(changed);
                if !is_change {
                    return;
                }
                let (plain, _) = from_js(&made, FunctionConversion::Dropped);
                let without = |value: &Value| {
                    let mut value = value.clone();
                    if let Value::Map(map) = &mut value {
                        // Each has its own `uuid`.
                        Arc::make_mut(map).entry(UUID.into()).and_modify(|uuid| {
                            if uuid.as_str().is_some_and(|text| text.len() == 36) {
                                *uuid = Value::Null;
                            }
                        });
                    }
                    value
                };
                assert_eq!(without(&after.value()).to_json(), without(&plain).to_json(), "{change}");
                for name in ["url", "headers", "json", "n", "more"] {
                    let there = |value: &Value| !matches!(value, Value::Undefined | Value::Null);
                    assert_eq!(after.member(name), member(&plain, name), "{change}: {name}");
                    let listed = after.members().filter(|(known, _)| *known == name).last();
                    assert_eq!(
                        listed.map(|(_, value)| value).filter(|value| there(value)),
                        member(&plain, name),
                        "{change}: {name}"
                    );
                }
            });
        }
    }

    #[test]
    fn what_is_special_or_large_is_given_as_it_is() {
        let large = format!(r#"{{"json":[{}1]}}"#, "1,".repeat(VALUES_MAX));
        let deep = format!(r#"{{"json":{}1{}}}"#, "[".repeat(20), "]".repeat(20));
        for (text, is_known) in [
            (r#"{"__proto__":{"a":1},"a-b":1,"\"\n\u2028":2,"":3}"#, true),
            (r#"{}"#, true),
            (&*large, false),
            (&*deep, false),
        ] {
            with_known(text, |ctx, params, known| {
                assert_eq!(known.is_some(), is_known, "{text}");
                let Some(known) = known else { return };
                let uuid = js::Value::new_undefined(ctx.clone());
                let maker: Function = known.maker(ctx).unwrap().into_function().unwrap();
                let made: js::Value = maker.call((uuid.clone(),)).unwrap();
                assert_eq!(from_js(&made, FunctionConversion::Dropped).0.to_json(), params.value().to_json());
                assert!(matches!(known.changed(&made, params, &uuid, &MemberNames::default()), ParamChanges::Nothing));
            });
        }
    }
}
