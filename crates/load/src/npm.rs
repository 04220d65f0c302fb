//! Artillery's own libraries for conditions and JSONPaths, filtrex and jsonpath-plus, in QuickJS.
//!
//! The files in `crates/load/npm` are the ones that Node loads for Artillery, unchanged. Each thread that needs them
//! makes one engine, at the first use; a script without conditions and with plain paths needs none. The engine has no
//! files, no network and no clock, and its memory, stack and time are limited.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rquickjs as js;
use rquickjs::function::Args;
use rquickjs::{Array, Ctx, Function, Object, Persistent};
use weir_net::{Instant, clock};

use crate::processor::convert::{FunctionConversion, from_js, to_js};
use crate::random;
use crate::value::{Keyed, Value};

/// Memory limit of one thread's engine, in bytes; above it, a query or an expression fails.
pub const MEMORY_MAX: usize = 512 << 20;
/// Stack limit of JavaScript, in bytes: half of a thread's stack. Each operand of an expression needs a few kilobytes.
pub const STACK_MAX: usize = 1 << 20;
/// Time limit of one query or expression, which then fails. A query of this length stops all virtual users of its
/// worker.
pub const BUSY_MAX: Duration = Duration::from_secs(5);
/// Compiled expressions kept per thread; at this limit all are dropped.
const COMPILED_MAX: usize = 1000;

/// `JSON` hides the real one from filtrex, whose lexer passes every name and text to `JSON.stringify`.
const SOURCE: &str = concat!(
    "(function () {'use strict'; const texts = [];",
    "const filtrex = (function (exports, JSON) {",
    include_str!("../npm/filtrex-2.2.3/filtrex.js"),
    "\nreturn exports;})({}, { stringify(text) { texts.push(text); return JSON.stringify(text); } });",
    // It wants Node's `vm` for evaluation that Artillery does not ask for.
    "const { JSONPath } = (function (exports, require) {",
    include_str!("../npm/jsonpath-plus-10.4.0/index-node-cjs.cjs"),
    "\nreturn exports;})({}, () => ({}));",
    include_str!("npm/glue.js"),
    "})()"
);

/// A body for a query.
#[derive(Clone, Copy, Debug)]
pub(crate) enum QueriedBody<'d> {
    /// JSON.
    Text(&'d [u8]),
    /// Arguments of a Socket.IO event.
    Value(&'d Value),
}

/// Why a query has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nothing {
    /// The body is not JSON.
    NotJson,
    /// The body is no object or list, or jsonpath-plus threw an exception.
    Failed,
}

type Kept = Persistent<Function<'static>>;

/// An expression that filtrex compiled in this thread.
struct Compiled {
    names: Vec<String>,
    run: Kept,
}

struct Engine {
    // Fields drop in order, and JavaScript values must drop before the runtime.
    query: Kept,
    mistake: Kept,
    compile: Kept,
    compiled: RefCell<HashMap<Box<str>, Rc<Compiled>, Keyed>>,
    context: js::Context,
    _runtime: js::Runtime,
    busy_until: Rc<Cell<Option<Instant>>>,
    busy_max: Cell<Duration>,
}

/// True if this process has made an engine.
static IS_USED: AtomicBool = AtomicBool::new(false);

thread_local!(static ENGINE: RefCell<Option<Rc<Engine>>> = const { RefCell::new(None) });

/// The matches of a JSONPath: of several matches a random one, or all of them, as with `multiple: false`.
pub(crate) fn query(document: QueriedBody<'_>, path: &str, all: bool) -> Result<Value, Nothing> {
    let engine = engine().map_err(|_| Nothing::Failed)?;
    engine.enter(|ctx| {
        let document = match document {
            QueriedBody::Text(text) => ctx.json_parse(text).map_err(|error| {
                caught(ctx, &error);
                Nothing::NotJson
            })?,
            QueriedBody::Value(value) => to_js(ctx, value).map_err(|_| Nothing::Failed)?,
        };
        if !document.is_object() {
            return Err(Nothing::Failed);
        }
        let ask = || {
            let found: js::Value = engine.query.clone().restore(ctx)?.call((path, document, !all))?;
            if all {
                return Ok(Some(from_js(&found, FunctionConversion::Dropped).0).filter(Value::is_truthy));
            }
            let Some(found) = found.as_array() else { return Ok(None) };
            match found.len() {
                0 => Ok(Some(Value::Undefined)),
                len => Ok(Some(from_js(&found.get(random::below(len))?, FunctionConversion::Dropped).0)),
            }
        };
        ask().map_err(|error| caught(ctx, &error)).ok().flatten().ok_or(Nothing::Failed)
    })
}

/// The mistake in a JSONPath that shows before there is a body.
pub(crate) fn mistake(path: &str) -> Option<String> {
    let engine = engine().ok()?;
    let mistake: String = engine.enter(|ctx| {
        let ask = || engine.mistake.clone().restore(ctx)?.call((path,));
        ask().unwrap_or_else(|error| caught(ctx, &error))
    });
    Some(mistake).filter(|mistake| !mistake.is_empty())
}

/// Compiles an expression; the error is filtrex's, in one line.
pub(crate) fn compile(text: &str) -> Result<(), String> {
    engine()?.compiled(text).map(drop)
}

/// The value of an expression; `lookup` returns the value of a name.
pub(crate) fn value(text: &str, lookup: &dyn Fn(&str) -> Value) -> Result<Value, String> {
    let engine = engine()?;
    let compiled = engine.compiled(text)?;
    engine.enter(|ctx| {
        let run = || {
            let mut args = Args::new(ctx.clone(), compiled.names.len());
            for name in &compiled.names {
                args.push_arg(to_js(ctx, &lookup(name))?)?;
            }
            let value: js::Value = compiled.run.clone().restore(ctx)?.call_arg(args)?;
            Ok(from_js(&value, FunctionConversion::Dropped).0)
        };
        run().map_err(|error| caught(ctx, &error))
    })
}

/// Sets this thread's limit of time.
#[cfg(test)]
pub(crate) fn limit(busy_max: Duration) {
    engine().unwrap_or_else(|why| panic!("{why}")).busy_max.set(busy_max);
}

/// Makes this thread's engine if the plan needs one: ten milliseconds that no virtual user should wait for.
///
/// A thread that compiled a condition or looked for a mistake in a path has an engine, and has told so. A plan with
/// templates for paths needs one only if these are not plain, so it makes the engine when it finds out.
pub(crate) fn prepare() {
    if IS_USED.load(Relaxed) {
        // A query reports the error, if it persists.
        let _ = engine();
    }
}

/// This thread's engine.
fn engine() -> Result<Rc<Engine>, String> {
    ENGINE.with(|engine| {
        if let Some(engine) = &*engine.borrow() {
            return Ok(engine.clone());
        }
        let made = Rc::new(Engine::new().map_err(|error| format!("QuickJS did not start: {error}"))?);
        IS_USED.store(true, Relaxed);
        Ok(engine.borrow_mut().insert(made).clone())
    })
}

impl Engine {
    fn new() -> js::Result<Engine> {
        let runtime = js::Runtime::new()?;
        runtime.set_memory_limit(MEMORY_MAX);
        runtime.set_max_stack_size(STACK_MAX);
        let busy_until: Rc<Cell<Option<Instant>>> = Rc::default();
        let until = busy_until.clone();
        let is_too_busy = move || until.get().is_some_and(|until| clock::precise() > until);
        runtime.set_interrupt_handler(Some(Box::new(is_too_busy)));
        let context = js::Context::full(&runtime)?;
        let [query, mistake, compile] = context.with(|ctx| {
            // A seed for weir also seeds `random()`.
            ctx.globals().get::<_, Object>("Math")?.set("random", Function::new(ctx.clone(), random::unit)?)?;
            let mut options = js::context::EvalOptions::default();
            options.filename = Some("weir".into());
            let api: Object = ctx.eval_with_options(SOURCE, options)?;
            let keep = |name: &str| Ok::<_, js::Error>(Persistent::save(&ctx, api.get::<_, Function>(name)?));
            Ok::<_, js::Error>([keep("query")?, keep("mistake")?, keep("compile")?])
        })?;
        let busy_max = Cell::new(BUSY_MAX);
        let compiled = RefCell::default();
        Ok(Engine { query, mistake, compile, compiled, context, _runtime: runtime, busy_until, busy_max })
    }

    fn enter<R>(&self, work: impl FnOnce(&Ctx<'_>) -> R) -> R {
        self.busy_until.set(Some(clock::precise() + self.busy_max.get()));
        self.context.with(|ctx| work(&ctx))
    }

    fn compiled(&self, text: &str) -> Result<Rc<Compiled>, String> {
        if let Some(compiled) = self.compiled.borrow().get(text) {
            return Ok(compiled.clone());
        }
        let compiled = self.enter(|ctx| {
            let compile = || {
                let made: Array = self.compile.clone().restore(ctx)?.call((text,))?;
                let run = Persistent::save(ctx, made.get::<Function>(1)?);
                Ok(Rc::new(Compiled { names: made.get(0)?, run }))
            };
            compile().map_err(|error| caught(ctx, &error))
        })?;
        let mut all = self.compiled.borrow_mut();
        if all.len() >= COMPILED_MAX {
            all.clear();
        }
        all.insert(text.into(), compiled.clone());
        Ok(compiled)
    }
}

/// The message of an error; takes the exception out of the engine.
fn caught(ctx: &Ctx<'_>, error: &js::Error) -> String {
    let caught = ctx.catch();
    match caught.as_exception().and_then(|exception| exception.message()) {
        Some(message) => message,
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fmt::Write as _;

    use sha2::{Digest, Sha256};

    use super::*;
    use crate::value::parse_json;

    /// The files are npm's: docs/why/dependencies.md has the same sums, and the command that fetches the files.
    #[test]
    fn the_files_are_unchanged() {
        let notes = include_str!("../../../docs/why/dependencies.md");
        for bytes in [
            include_bytes!("../npm/filtrex-2.2.3/filtrex.js").as_slice(),
            include_bytes!("../npm/jsonpath-plus-10.4.0/index-node-cjs.cjs").as_slice(),
        ] {
            let sum = Sha256::digest(bytes).iter().fold(String::new(), |mut sum, byte| {
                write!(sum, "{byte:02x}").unwrap();
                sum
            });
            assert!(notes.contains(&sum), "{sum}");
        }
    }

    /// `JSON.parse` is JavaScript's: these bodies are JSON there, and numbers come first.
    #[test]
    fn bodies() {
        let deep = format!("{{\"a\":{}1{},\"b\":[2]}}", "[".repeat(500), "]".repeat(500));
        for (body, path, found) in [
            (r#"{"a":[1e400,"\ud800",3]}"#, "$.a[2:]", "[3]"),
            (&deep, "$.b[-1:]", "[2]"),
            (r#"{"b":1,"2":2,"1":3}"#, "$.*", "[3,2,1]"),
            (r#"{"__proto__":{"x":1}}"#, "$.*.x", "[1]"),
        ] {
            let value = query(QueriedBody::Text(body.as_bytes()), path, true).unwrap();
            assert_eq!(value.to_json().unwrap(), found, "{path}");
        }
        for (body, why) in [
            ("", Nothing::NotJson),
            ("{\"a\":1} x", Nothing::NotJson),
            ("{\0}", Nothing::NotJson),
            ("5", Nothing::Failed),
            ("null", Nothing::Failed),
        ] {
            assert_eq!(query(QueriedBody::Text(body.as_bytes()), "$..a", false), Err(why), "{body}");
        }
        // Too deep for the stack: an error as for any body that cannot be read, and the engine goes on.
        let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert_eq!(query(QueriedBody::Text(deep.as_bytes()), "$..a", false), Err(Nothing::NotJson));
        let value = parse_json(br#"[{"__proto__":{"x":1}},"y"]"#).unwrap();
        assert_eq!(query(QueriedBody::Value(&value), "$..x", false), Ok(Value::Number(1.0)));
    }

    /// A template may make a new path for each request; neither memory nor answers change.
    #[test]
    fn many_paths_and_expressions() {
        for number in 0..3000 {
            let found = query(QueriedBody::Text(b"[1,2,3]"), &format!("$[?(@ + {number} === {number} + 2)]"), false);
            assert_eq!(found, Ok(Value::Number(2.0)));
            let sum = value(&format!("a + {number}"), &|_| Value::Number(1.0));
            assert_eq!(sum, Ok(Value::Number(f64::from(number + 1))));
        }
        assert!(engine().unwrap().compiled.borrow().len() <= COMPILED_MAX);
    }

    /// A worker begins with an engine after another thread has used one.
    #[test]
    fn a_worker_is_prepared() {
        compile("a").unwrap();
        let has_engine = || ENGINE.with(|engine| engine.borrow().is_some());
        let fresh = || (has_engine(), prepare(), has_engine());
        let seen = std::thread::scope(|scope| scope.spawn(fresh).join());
        assert_eq!(seen.unwrap(), (false, (), true));
    }

    /// A seed for weir decides the random numbers of expressions too.
    #[test]
    fn random_numbers_have_weirs_seed() {
        let draw = || value("random()", &|_| Value::Undefined).unwrap();
        random::seed(7);
        let first = draw();
        random::seed(7);
        assert_eq!(draw(), first);
        assert_ne!(draw(), first);
    }
}
