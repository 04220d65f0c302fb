//! The functions in `native` for the JavaScript files in this directory.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::rc::Rc;

use md5::{Digest, Md5};
use rquickjs as js;
use rquickjs::function::{IntoJsFunc, Opt};
use rquickjs::{Array, BigInt, Ctx, Exception, Function, Object, TypedArray};
use sha1::Sha1;
use sha2::{Sha256, Sha512};

use super::convert::{FunctionConversion, Given, from_js, text_of, to_js};
use super::files;
use super::host::{ProcessorFile, ProcessorHost};
use super::state::{FunctionKind, KEPT_MAX, ProcessorState};
use crate::value::Value;

/// Most random bytes of one request; the limit of Node's `crypto.getRandomValues`.
const RANDOM_BYTES_MAX: usize = 65_536;
/// Longest text that a processor prints at once, in bytes; longer text is cut.
const LINE_MAX: usize = 65_536;

/// The object `native`.
pub fn make<'js>(ctx: &Ctx<'js>, state: &Rc<ProcessorState>) -> js::Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    variables(ctx, &native, state)?;
    calls(ctx, &native, state)?;
    system(ctx, &native, state)?;
    cookies(ctx, &native, state)?;
    wires(ctx, &native, state)?;
    modules(ctx, &native, state)?;
    Ok(native)
}

/// The object `facts`.
pub fn facts<'js>(ctx: &Ctx<'js>, host: &ProcessorHost, facts: &ProcessorFile) -> js::Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    object.set("testRunId", &*host.test_run_id)?;
    object.set("version", host.version)?;
    object.set("file", facts.file.as_str())?;
    object.set("cwd", facts.folder.as_str())?;
    object.set("pid", std::process::id())?;
    object.set("arch", if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" })?;
    let hostname = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    object.set("hostname", hostname.trim())?;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    object.set("cpus", vec![0; cpus])?;
    object.set("isForced", facts.is_forced)?;
    Ok(object)
}

fn add<'js, P>(
    ctx: &Ctx<'js>,
    native: &Object<'js>,
    name: &str,
    function: impl IntoJsFunc<'js, P> + 'js,
) -> js::Result<()> {
    native.set(name, Function::new(ctx.clone(), function)?)
}

/// `context.vars`.
fn variables<'js>(ctx: &Ctx<'js>, native: &Object<'js>, state: &Rc<ProcessorState>) -> js::Result<()> {
    let own = state.clone();
    add(ctx, native, "get", move |ctx: Ctx<'js>, id: f64, name: js::String<'js>| -> js::Result<js::Value<'js>> {
        let name = text_of(&name);
        let read = own.with_vars(id as u64, |vars| {
            let value = vars.by_name(&name);
            match own.share(value, false) {
                Some(index) => Ok(BigInt::from_i64(ctx.clone(), index as i64)?.into_value()),
                None => to_js(&ctx, value),
            }
        });
        read.unwrap_or_else(|| Ok(js::Value::new_undefined(ctx.clone())))
    })?;
    let own = state.clone();
    add(ctx, native, "shared", move |ctx: Ctx<'js>, index: usize| {
        to_js(&ctx, own.shared.borrow().get(index).unwrap_or(&Value::Undefined))
    })?;
    let own = state.clone();
    add(ctx, native, "set", move |id: f64, name: js::String<'js>, value: js::Value<'js>| {
        let name = text_of(&name);
        let (value, is_lossy) = from_js(&value, FunctionConversion::Dropped);
        set(&own, id as u64, &name, value);
        is_lossy
    })?;
    let own = state.clone();
    add(ctx, native, "isKept", move |id: f64, uid: String, name: String| {
        let (calls, kept) = (own.calls.borrow(), own.kept.borrow());
        let value = calls.get(&(id as u64)).map(|call| call.vars.by_name(&name));
        value.is_some_and(|value| {
            kept.get(&*uid).and_then(|own| own.get(&*name)).is_some_and(|kept| kept.is_same(value))
        })
    })?;
    let own = state.clone();
    add(ctx, native, "keep", move |id: f64, uid: String, name: Opt<String>| {
        let mut kept = own.kept.borrow_mut();
        if kept.len() >= KEPT_MAX && !kept.contains_key(&*uid) {
            kept.clear();
        }
        let kept = kept.entry(uid.into()).or_default();
        if let (Some(name), Some(call)) = (name.0, own.calls.borrow().get(&(id as u64))) {
            let value = call.vars.by_name(&name).clone();
            kept.insert(name.into(), value);
        }
    })?;
    let own = state.clone();
    add(ctx, native, "names", move |ctx: Ctx<'js>, id: f64| -> js::Result<Array<'js>> {
        let names = Array::new(ctx)?;
        let listed = own.with_vars(id as u64, |vars| {
            let set = vars.iter().filter(|(_, value)| **value != Value::Undefined);
            set.enumerate().try_for_each(|(index, (name, _))| names.set(index, &**name))
        });
        listed.transpose()?;
        Ok(names)
    })
}

/// Sets a variable unless it has this value already, so that a value shared with other users stays shared.
fn set(state: &ProcessorState, id: u64, name: &str, value: Value) {
    let mut calls = state.calls.borrow_mut();
    let Some(call) = calls.get_mut(&id) else {
        return state.ended.borrow().get(&id).iter().for_each(|wires| wires.set(name, value.clone()));
    };
    let before = call.vars.by_name(name);
    let is_same = before.is_deeply(&value) && std::mem::discriminant(before) == std::mem::discriminant(&value);
    if !is_same {
        call.vars.set_by_name(name, value);
    }
}

/// Outcomes, metrics, printed lines.
fn calls<'js>(ctx: &Ctx<'js>, native: &Object<'js>, state: &Rc<ProcessorState>) -> js::Result<()> {
    let own = state.clone();
    add(ctx, native, "finish", move |id: f64, error: js::Value<'js>, value: js::Value<'js>| {
        let id = id as u64;
        let kind = own.calls.borrow().get(&id).map(|call| call.kind);
        let outcome = match (error.as_string(), kind) {
            (Some(error), _) => Err(text_of(error)),
            (
                None,
                Some(
                    FunctionKind::BeforeRequest
                    | FunctionKind::Connect
                    | FunctionKind::WhileTrue
                    | FunctionKind::IfTrue,
                ),
            ) => Ok(from_js(&value, FunctionConversion::Dropped).0),
            _ => Ok(Value::Undefined),
        };
        own.finish(id, outcome);
    })?;
    let own = state.clone();
    add(ctx, native, "scenario", move |id: f64| {
        Given(own.calls.borrow().get(&(id as u64)).map(|call| call.scenario.clone()).unwrap_or_default())
    })?;
    let own = state.clone();
    add(ctx, native, "count", move |kind: u8, name: js::String<'js>, value: f64| {
        own.emit(kind, text_of(&name), value);
    })?;
    let own = state.clone();
    add(ctx, native, "say", move |text: js::String<'js>| {
        let mut text = text_of(&text);
        text.truncate(text.floor_char_boundary(LINE_MAX));
        (own.host.say)(text);
    })?;
    let own = state.clone();
    add(ctx, native, "functionAdded", move |name: String| {
        own.functions.borrow_mut().insert(name);
    })?;
    let own = state.clone();
    add(ctx, native, "exitCode", move |code: f64| own.exit_code.set(Some(code as i32)))
}

/// `context._jar`.
fn cookies<'js>(ctx: &Ctx<'js>, native: &Object<'js>, state: &Rc<ProcessorState>) -> js::Result<()> {
    let own = state.clone();
    let session = move |id: f64| own.calls.borrow().get(&(id as u64)).map(|call| call.session.share());
    let of = session.clone();
    add(ctx, native, "cookies", move |id: f64| {
        Given(of(id).map(|session| session.listed_cookies()).unwrap_or_default())
    })?;
    let of = session.clone();
    add(ctx, native, "putCookie", move |id: f64, text: js::String<'js>, url: js::String<'js>| {
        of(id).is_some_and(|session| session.put_cookie(&text_of(&text), &text_of(&url)))
    })?;
    add(ctx, native, "clearCookies", move |id: f64| {
        if let Some(session) = session(id) {
            session.clear_cookies();
        }
    })
}

/// `context.sockets`, `context.ws`.
fn wires<'js>(ctx: &Ctx<'js>, native: &Object<'js>, state: &Rc<ProcessorState>) -> js::Result<()> {
    let own = state.clone();
    add(ctx, native, "wire", move |id: f64| own.wires_of(id as u64).map(|number| number as f64))?;
    let own = state.clone();
    let of = move |number: f64| own.wires(number as u64);
    let find = of.clone();
    add(ctx, native, "wireKind", move |number: f64| find(number).map(|wires| wires.line().kind() as u8))?;
    let find = of.clone();
    add(ctx, native, "wirePlaces", move |number: f64| {
        find(number).map(|wires| wires.line().places()).unwrap_or_default()
    })?;
    let find = of.clone();
    add(ctx, native, "wireIsOpen", move |number: f64, place: String| {
        find(number).is_some_and(|wires| wires.line().is_open(&place))
    })?;
    let (find, own) = (of.clone(), state.clone());
    add(ctx, native, "wireListen", move |number: f64| {
        if let Some(wires) = find(number) {
            wires.listen(&own);
        }
    })?;
    let find = of.clone();
    add(ctx, native, "wireEmit", move |number: f64, place: String, text: js::String<'js>, wants_answer: bool| {
        find(number).and_then(|wires| wires.line().emit(&place, &text_of(&text), wants_answer)).map(|id| id as f64)
    })?;
    add(ctx, native, "wireClose", move |number: f64, place: String| {
        if let Some(wires) = of(number) {
            wires.line().close(&place);
        }
    })
}

/// Clock, random numbers, bytes, hashes, files.
fn system<'js>(ctx: &Ctx<'js>, native: &Object<'js>, state: &Rc<ProcessorState>) -> js::Result<()> {
    let own = state.clone();
    add(ctx, native, "now", move || own.now())?;
    let own = state.clone();
    add(ctx, native, "wakeAt", move |at: f64| own.wake_at.set(Some(at)))?;
    add(ctx, native, "environment", |ctx: Ctx<'js>| -> js::Result<Object<'js>> {
        let object = Object::new(ctx)?;
        for (name, value) in std::env::vars_os() {
            object.set(name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())?;
        }
        Ok(object)
    })?;
    add(ctx, native, "utf8", |ctx: Ctx<'js>, text: js::String<'js>| TypedArray::new(ctx, text_of(&text).into_bytes()))?;
    add(ctx, native, "randomBytes", |ctx: Ctx<'js>, length: f64| -> js::Result<TypedArray<'js, u8>> {
        if !(0.0..=RANDOM_BYTES_MAX as f64).contains(&length) {
            return Err(Exception::throw_range(&ctx, &format!("at most {RANDOM_BYTES_MAX} random bytes at once")));
        }
        TypedArray::new(ctx, (0..length as usize).map(|_| fastrand::u8(..)).collect::<Vec<u8>>())
    })?;
    add(ctx, native, "uuid", uuid)?;
    add(ctx, native, "hash", |ctx: Ctx<'js>, name: String, bytes: Vec<u8>| {
        TypedArray::new(ctx, hash(&name, &[&bytes]))
    })?;
    add(ctx, native, "hmac", |ctx: Ctx<'js>, name: String, key: Vec<u8>, bytes: Vec<u8>| {
        TypedArray::new(ctx, hmac(&name, key, &bytes))
    })?;
    add(ctx, native, "exists", |path: String| Path::new(&path).exists())?;
    add(ctx, native, "readFile", |ctx: Ctx<'js>, path: String| -> js::Result<Object<'js>> {
        let answer = Object::new(ctx.clone())?;
        match files::read(Path::new(&path)) {
            Ok(bytes) => answer.set("bytes", TypedArray::new(ctx, bytes)?)?,
            Err(error) => answer.set("error", io_error(&error))?,
        }
        Ok(answer)
    })?;
    add(ctx, native, "writeFile", |path: String, bytes: Vec<u8>, is_appended: bool| {
        let mut options = fs::OpenOptions::new();
        options.create(true).write(true).append(is_appended).truncate(!is_appended);
        options.open(path).and_then(|mut file| file.write_all(&bytes)).err().map(|error| io_error(&error))
    })
}

/// Node's code and message for a system error.
fn io_error(error: &std::io::Error) -> Vec<&'static str> {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound => vec!["ENOENT", "no such file or directory"],
        ErrorKind::PermissionDenied => vec!["EACCES", "permission denied"],
        ErrorKind::IsADirectory => vec!["EISDIR", "illegal operation on a directory"],
        ErrorKind::FileTooLarge => vec!["EFBIG", "file too large"],
        _ => vec!["EIO", "i/o error"],
    }
}

fn uuid() -> String {
    let n = fastrand::u128(..) & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{n:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}

fn hash(name: &str, parts: &[&[u8]]) -> Vec<u8> {
    fn digest<D: Digest>(parts: &[&[u8]]) -> Vec<u8> {
        let mut digest = D::new();
        parts.iter().for_each(|part| digest.update(part));
        digest.finalize().to_vec()
    }
    match name {
        "md5" => digest::<Md5>(parts),
        "sha1" => digest::<Sha1>(parts),
        "sha512" => digest::<Sha512>(parts),
        _ => digest::<Sha256>(parts),
    }
}

/// RFC 2104.
fn hmac(name: &str, mut key: Vec<u8>, bytes: &[u8]) -> Vec<u8> {
    let block = if name == "sha512" { 128 } else { 64 };
    if key.len() > block {
        key = hash(name, &[&key]);
    }
    key.resize(block, 0);
    let pad = |with: u8| key.iter().map(|byte| byte ^ with).collect::<Vec<u8>>();
    let inner = hash(name, &[&pad(0x36), bytes]);
    hash(name, &[&pad(0x5c), &inner])
}

/// Files of a processor.
fn modules<'js>(ctx: &Ctx<'js>, native: &Object<'js>, state: &Rc<ProcessorState>) -> js::Result<()> {
    let own = state.clone();
    add(ctx, native, "needsNode", move |why: String| {
        own.needs_node.borrow_mut().get_or_insert(why);
    })?;
    add(ctx, native, "resolve", |from: String, name: String| files::resolve(Path::new(&from), &name))?;
    add(ctx, native, "isModule", |path: String| files::is_module(Path::new(&path)))?;
    add(ctx, native, "readText", |ctx: Ctx<'js>, path: String| -> js::Result<String> {
        files::text(Path::new(&path)).map_err(|error| Exception::throw_message(&ctx, &error))
    })?;
    add(ctx, native, "compile", |ctx: Ctx<'js>, path: String, source: String| -> js::Result<js::Value<'js>> {
        let source = source.strip_prefix("#!").map_or(source.clone(), |rest| format!("//{rest}"));
        // The wrapper is on the first line, so that line numbers stay correct.
        let whole = format!("(function (exports, require, module, __filename, __dirname) {{{source}\n}})");
        let mut options = js::context::EvalOptions::default();
        options.strict = false;
        options.filename = Some(path);
        ctx.eval_with_options(whole, options)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn hashes_are_the_standards() {
        // Test vectors of FIPS 180 and RFC 1321 for "abc"; case 2 of RFC 4231 and RFC 2202.
        assert_eq!(hex(&hash("md5", &[b"abc"])), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(hex(&hash("sha1", &[b"a", b"bc"])), "a9993e364706816aba3e25717850c26c9cd0d89d");
        let (key, data) = (b"Jefe".to_vec(), b"what do ya want for nothing?");
        let sha256 = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hex(&hmac("sha256", key.clone(), data)), sha256);
        assert_eq!(hex(&hmac("sha1", key, data)), "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
    }

    #[test]
    fn a_uuid_is_version_4() {
        let uuid = uuid();
        assert_eq!((uuid.len(), uuid.as_bytes().get(14)), (36, Some(&b'4')));
        assert!(uuid.as_bytes().get(19).is_some_and(|byte| b"89ab".contains(byte)), "{uuid}");
    }
}
