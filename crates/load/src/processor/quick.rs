//! A processor in QuickJS, embedded: one runtime for one worker thread.
//!
//! A call that ends without waiting needs no task and no timer. A waiting call is woken by the code that ends it:
//! another call, or the task that runs the timers. That task exists only while there are timers.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::path::Path;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use rquickjs as js;
use rquickjs::function::IntoArgs;
use rquickjs::{Ctx, Exception, Function, Module, Object, Persistent, Promise};
use weir_net::Deadline;
use weir_net::worker::spawn;

use super::context::Context;
use super::convert::{FunctionConversion, MemberNames, from_js, from_js_again, text_of, to_js};
use super::files;
use super::host::{ProcessorFile, ProcessorHost};
use super::known::{FORMS_MAX, KnownParams};
use super::loading::Files;
use super::natives;
use super::params::{ParamChanges, Params};
use super::state::{CallResult, FunctionKind, Hear, KEPT_MAX, Lent, ProcessorState};
use super::wires::ReceivedEvent;
use crate::value::{Keyed, Map, UNDEFINED, Value};

/// Memory limit of one worker's processor, in bytes; above it, the script gets an exception.
pub const MEMORY_MAX: usize = 1 << 30;
/// Stack limit of JavaScript, in bytes: a quarter of a thread's stack.
pub const STACK_MAX: usize = 512 << 10;
/// Time for a processor's files to load, top-level `await` included.
pub const LOAD_MAX: Duration = Duration::from_secs(30);
/// Time after which a call ends if nothing, not even a timer, can end it; Artillery waits for ever.
pub const HUNG_MAX: Duration = Duration::from_secs(60);
/// Most timers that run in one turn of the worker.
const TIMERS_PER_TURN: u32 = 1000;
/// Promise callbacks between two checks of the clock.
const JOBS_PER_LOOK: u32 = 256;

const SOURCE: &str = concat!(
    "(function (native, facts) {'use strict';",
    include_str!("js/shared.js"),
    include_str!("js/inspect.js"),
    include_str!("js/buffer.js"),
    include_str!("js/url.js"),
    include_str!("js/globals.js"),
    include_str!("js/builtins.js"),
    include_str!("js/wires.js"),
    include_str!("js/calls.js"),
    include_str!("js/modules.js"),
    "})"
);

type Kept = Persistent<Function<'static>>;
/// Members of parameters, and the prepared form, if there is one.
type Met = (Arc<Map>, Option<Rc<KnownParams>>);

/// The JavaScript functions that quick.rs calls.
struct Api {
    invoke: Kept,
    /// Functions for `beforeRequest` calls, by function number.
    befores: Vec<Kept>,
    seat_for: Kept,
    prepare: Kept,
    run_timer: Kept,
    call_template: Kept,
    forget: Kept,
    hear: Kept,
}

/// See the module.
pub struct QuickJs {
    // These fields come before the context, and the context before the runtime: fields drop in order, and JavaScript
    // values must drop first.
    api: Api,
    /// The seats (see calls.js) of virtual users that have called a function, by `$uuid`.
    seats: RefCell<HashMap<Box<str>, Persistent<Object<'static>>, Keyed>>,
    /// The kinds of parameters seen so far; `None` for a kind that is too large, so that it is not tried again.
    forms: RefCell<Vec<Met>>,
    /// Names of members that functions set.
    names: MemberNames,
    context: js::Context,
    _runtime: js::Runtime,
    pub state: Rc<ProcessorState>,
    functions: HashMap<String, u32, Keyed>,
    hung_max: Cell<Duration>,
    timer: Rc<Deadline>,
    is_driven: Cell<bool>,
}

/// Why a processor could not be loaded.
pub struct ProcessorRefused {
    /// The feature that needs Node, if that is the reason.
    pub needs_node: Option<String>,
    /// For the user.
    pub message: String,
}

/// An engine without a loaded file.
struct Bare {
    context: js::Context,
    runtime: js::Runtime,
    state: Rc<ProcessorState>,
}

impl Bare {
    fn new(facts: &ProcessorFile, host: ProcessorHost) -> js::Result<(Bare, Persistent<Object<'static>>)> {
        let runtime = js::Runtime::new()?;
        let state = ProcessorState::new(host);
        runtime.set_memory_limit(MEMORY_MAX);
        runtime.set_max_stack_size(STACK_MAX);
        let own = state.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || own.is_too_busy())));
        runtime.set_loader(Files, Files);
        let context = js::Context::full(&runtime)?;
        let api = context.with(|ctx| {
            let mut options = js::context::EvalOptions::default();
            options.filename = Some("weir".into());
            let make: Function = ctx.eval_with_options(SOURCE, options)?;
            let native = natives::make(&ctx, &state)?;
            let api: Object = make.call((native, natives::facts(&ctx, &state.host, facts)?))?;
            Ok::<_, js::Error>(Persistent::save(&ctx, api))
        })?;
        Ok((Bare { context, runtime, state }, api))
    }

    /// Loads the file and returns its exports.
    fn exported<'js>(&self, ctx: &Ctx<'js>, api: &Object<'js>, path: &str) -> js::Result<js::Value<'js>> {
        self.state.begin_turn();
        if !files::is_module(Path::new(path)) {
            let exported = call(api, "requireFile", (path,))?;
            run_jobs(ctx, &self.state);
            return Ok(exported);
        }
        let promise: Promise = Module::import(ctx, path)?;
        let end = self.state.now() + LOAD_MAX.as_secs_f64() * 1e3;
        loop {
            run_jobs(ctx, &self.state);
            if let Some(exported) = promise.result() {
                return exported;
            }
            self.state.begin_turn();
            self.state.wake_at.set(None);
            let did_run: bool = call(api, "runTimer", ())?;
            if !did_run {
                let wake_at = self.state.wake_at.get().unwrap_or(f64::INFINITY).min(end);
                let now = self.state.now();
                if now >= end {
                    let why = format!("{path} was not loaded after {} s of waiting", LOAD_MAX.as_secs());
                    return Err(Exception::throw_message(ctx, &why));
                }
                std::thread::sleep(Duration::from_secs_f64((wake_at - now).max(0.0) / 1e3));
            }
        }
    }

    fn refused(&self, ctx: &Ctx<'_>, error: &js::Error) -> ProcessorRefused {
        ProcessorRefused { needs_node: self.state.needs_node.take(), message: thrown(ctx, error, &self.state) }
    }
}

fn broken(error: &js::Error) -> ProcessorRefused {
    ProcessorRefused { needs_node: None, message: format!("QuickJS did not start: {error}") }
}

fn call<'js, R: js::FromJs<'js>>(api: &Object<'js>, name: &str, args: impl IntoArgs<'js>) -> js::Result<R> {
    api.get::<_, Function>(name)?.call(args)
}

/// Runs the waiting promise callbacks; stops if they do not end.
fn run_jobs(ctx: &Ctx<'_>, state: &ProcessorState) {
    let mut count = 0u32;
    while ctx.execute_pending_job() {
        count = count.wrapping_add(1);
        if state.was_interrupted.get() || (count.is_multiple_of(JOBS_PER_LOOK) && state.is_too_busy()) {
            return;
        }
    }
}

/// The thrown error and its place.
fn thrown(ctx: &Ctx<'_>, error: &js::Error, state: &ProcessorState) -> String {
    let caught = ctx.catch();
    if state.was_interrupted.get() {
        return too_busy(state);
    }
    if !matches!(error, js::Error::Exception) {
        return error.to_string();
    }
    let Some(exception) = caught.as_exception() else {
        return from_js(&caught, FunctionConversion::Dropped).0.to_string();
    };
    let message = exception.message().unwrap_or_default();
    let name = exception.as_object().get::<_, String>("name").unwrap_or_else(|_| "Error".into());
    let stack = exception.stack().unwrap_or_default();
    // The first line in the script's own files.
    let place = stack.lines().map(str::trim).find(|line| line.contains('/'));
    match place {
        Some(place) => format!("{name}: {message} ({})", place.trim_start_matches("at ")),
        None => format!("{name}: {message}"),
    }
}

fn too_busy(state: &ProcessorState) -> String {
    format!("a function ran for more than {:?} without a pause", state.busy_max.get())
}

/// Evaluates a script written in JavaScript.
pub fn script(facts: &ProcessorFile, host: ProcessorHost) -> Result<Value, ProcessorRefused> {
    let (bare, api) = Bare::new(facts, host).map_err(|error| broken(&error))?;
    bare.context.with(|ctx| {
        let load = || {
            let api = api.restore(&ctx)?;
            let exported = bare.exported(&ctx, &api, &facts.file)?;
            let script: js::Value = call(&api, "scriptOf", (exported,))?;
            Ok(from_js(&script, FunctionConversion::Named).0)
        };
        load().map_err(|error| bare.refused(&ctx, &error))
    })
}

impl QuickJs {
    /// Loads a processor.
    pub fn load(facts: &ProcessorFile, host: ProcessorHost) -> Result<Rc<QuickJs>, ProcessorRefused> {
        let (bare, api) = Bare::new(facts, host).map_err(|error| broken(&error))?;
        let loaded = bare.context.with(|ctx| {
            let load = || {
                let api = api.restore(&ctx)?;
                let exported = bare.exported(&ctx, &api, &facts.file)?;
                let names: Vec<String> = call(&api, "setEntries", (exported,))?;
                call::<()>(&api, "loaded", ())?;
                let keep = |name: &str| Ok::<_, js::Error>(Persistent::save(&ctx, api.get::<_, Function>(name)?));
                let befores: Vec<Function> = call(&api, "befores", ())?;
                let api = Api {
                    befores: befores.into_iter().map(|before| Persistent::save(&ctx, before)).collect(),
                    invoke: keep("invoke")?,
                    seat_for: keep("seatFor")?,
                    prepare: keep("prepare")?,
                    run_timer: keep("runTimer")?,
                    call_template: keep("callTemplate")?,
                    forget: keep("forget")?,
                    hear: keep("hear")?,
                };
                Ok((api, names))
            };
            load().map_err(|error| bare.refused(&ctx, &error))
        });
        let (api, names) = loaded?;
        let Bare { context, runtime, state } = bare;
        let quick = Rc::new(QuickJs {
            api,
            seats: RefCell::default(),
            forms: RefCell::default(),
            names: MemberNames::default(),
            context,
            _runtime: runtime,
            state,
            functions: names.into_iter().zip(0..).collect(),
            hung_max: Cell::new(HUNG_MAX),
            timer: Rc::new(Deadline::new()),
            is_driven: Cell::new(false),
        });
        let own = Rc::downgrade(&quick);
        let hear: Hear = Rc::new(move |number, heard| own.upgrade().iter().for_each(|quick| quick.hear(number, heard)));
        quick.state.hear.replace(Some(hear));
        Ok(quick)
    }

    /// Calls the listeners of a virtual user's connections.
    fn hear(self: &Rc<QuickJs>, number: u64, heard: Option<&ReceivedEvent>) {
        let failed = self.enter(|ctx, api| {
            let hear = api.hear.clone().restore(ctx)?;
            match heard {
                Some(ReceivedEvent { kind, place, text, number: answer }) => {
                    hear.call((number as f64, *kind as u8, &**place, &**text, *answer as f64))
                }
                None => hear.call((number as f64,)),
            }
        });
        if let Some(error) = failed {
            (self.state.host.say)(format!("Error in a listener of the processor: {error}"));
        }
    }

    /// True if the file exports a function with this name.
    pub fn has(&self, name: &str) -> bool {
        self.functions.contains_key(name)
    }

    /// Calls a function. calls.js describes the arguments after the context.
    pub async fn call(
        self: &Rc<QuickJs>,
        name: &str,
        kind: FunctionKind,
        args: [&Value; 2],
        context: Context<'_>,
    ) -> CallResult {
        match self.call_with(name, kind, Given::Values(args), context).await? {
            ParamChanges::Whole(value) => Ok(value),
            _ => Ok(Value::Undefined),
        }
    }

    /// Calls a `beforeRequest` function; returns its changes to the parameters.
    pub async fn call_before(
        self: &Rc<QuickJs>,
        name: &str,
        params: &Params,
        context: Context<'_>,
    ) -> Result<ParamChanges, String> {
        self.call_with(name, FunctionKind::BeforeRequest, Given::Params(params), context).await
    }

    async fn call_with(
        self: &Rc<QuickJs>,
        name: &str,
        kind: FunctionKind,
        given: Given<'_>,
        context: Context<'_>,
    ) -> Result<ParamChanges, String> {
        let Some(&index) = self.functions.get(name) else {
            return Err(format!("Undefined function \"{name}\""));
        };
        let Context { vars, scenario, uid, session, wires, recorder } = context;
        let id = self.state.begin(vars.take(), scenario.clone(), session, kind, wires);
        let lent = Lent { state: &self.state, id, vars };
        let mut outcome = None;
        let failed = self.enter(|ctx, api| {
            let seat = self.seat(ctx, uid)?;
            let known = self.known(ctx, &given)?;
            let mut uuid = js::Value::new_undefined(ctx.clone());
            let said: js::Value = match (&given, &known, api.befores.get(index as usize)) {
                (Given::Params(params), Some(known), Some(before)) => {
                    uuid = to_js(ctx, params.uuid())?;
                    before.clone().restore(ctx)?.call((seat, id as f64, known.maker(ctx)?, uuid.clone()))?
                }
                (Given::Params(params), ..) => {
                    self.invoke(ctx, (seat, id, index, kind), [&params.value(), &UNDEFINED])?
                }
                (Given::Values(values), ..) => self.invoke(ctx, (seat, id, index, kind), *values)?,
            };
            // Read the changes before promises run: a hook's synchronous changes count, later ones are too late.
            let error = if said.is_object() { None } else { said.as_string() };
            outcome = match (error, &given) {
                (Some(error), _) => Some(Err(text_of(error))),
                _ if said.is_undefined() => None,
                (_, Given::Params(params)) => Some(Ok(match &known {
                    Some(known) => known.changed(&said, params, &uuid, &self.names),
                    None => ParamChanges::Whole(from_js_again(&said, &params.value())),
                })),
                (_, Given::Values([first, _])) => Some(Ok(ParamChanges::Whole(from_js_again(&said, first)))),
            };
            Ok(())
        });
        self.state.record(recorder);
        let ended = outcome.or_else(|| Some(self.state.outcome(id)?.map(ParamChanges::Whole)));
        if let Some(outcome) = ended.or(failed.map(Err)) {
            return outcome;
        }
        let outcome = self.wait(name, id).await;
        self.state.record(recorder);
        drop(lent);
        outcome.map(ParamChanges::Whole)
    }

    fn invoke<'js>(
        &self,
        ctx: &Ctx<'js>,
        (seat, id, index, kind): (Object<'js>, u64, u32, FunctionKind),
        [first, second]: [&Value; 2],
    ) -> js::Result<js::Value<'js>> {
        let (first, second) = (to_js(ctx, first)?, to_js(ctx, second)?);
        self.api.invoke.clone().restore(ctx)?.call((seat, id as f64, index << 3 | kind as u32, first, second))
    }

    /// The prepared kind of these parameters, if there is one.
    fn known<'js>(&self, ctx: &Ctx<'js>, given: &Given<'_>) -> js::Result<Option<Rc<KnownParams>>> {
        let Given::Params(params) = given else { return Ok(None) };
        if params.is_made() {
            return Ok(None);
        }
        let form = params.form();
        if let Some((members, known)) = form.number.get().and_then(|at| self.forms.borrow().get(at).cloned())
            && Arc::ptr_eq(&members, form.members())
        {
            return Ok(known);
        }
        let number = self.forms.borrow().len();
        if number >= FORMS_MAX {
            return Ok(None);
        }
        let known = KnownParams::new(ctx, form.members(), &self.api.prepare)?.map(Rc::new);
        self.forms.borrow_mut().push((form.members().clone(), known.clone()));
        form.number.set(Some(number));
        Ok(known)
    }

    /// The seat of a virtual user: an existing or a new one. Above the limit, a new seat lives for this call only.
    fn seat<'js>(&self, ctx: &Ctx<'js>, uid: &str) -> js::Result<Object<'js>> {
        if let Some(seat) = self.seats.borrow().get(uid) {
            return seat.clone().restore(ctx);
        }
        let seat: Object<'js> = self.api.seat_for.clone().restore(ctx)?.call((uid,))?;
        let mut seats = self.seats.borrow_mut();
        if seats.len() < KEPT_MAX {
            seats.insert(uid.into(), Persistent::save(ctx, seat.clone()));
        }
        Ok(seat)
    }

    async fn wait(&self, name: &str, id: u64) -> CallResult {
        let hung = Deadline::new();
        hung.set(self.hung_max.get());
        poll_fn(|task| {
            if let Some(outcome) = self.state.outcome(id) {
                return Poll::Ready(outcome);
            }
            if let Some(call) = self.state.calls.borrow_mut().get_mut(&id) {
                call.waker = Some(task.waker().clone());
            }
            while hung.poll_expired().is_ready() {
                if self.state.wake_at.get().is_none() {
                    let time = self.hung_max.get();
                    return Poll::Ready(Err(format!(
                        "function {name} did not end in {time:?}, and no timer of the processor is pending"
                    )));
                }
                hung.set(self.hung_max.get());
            }
            Poll::Pending
        })
        .await
    }

    /// Runs JavaScript, then the waiting promise callbacks; returns the thrown error.
    fn enter(self: &Rc<QuickJs>, work: impl for<'js> FnOnce(&Ctx<'js>, &Api) -> js::Result<()>) -> Option<String> {
        self.state.begin_turn();
        let failed = self.context.with(|ctx| {
            let failed = work(&ctx, &self.api).err().map(|error| thrown(&ctx, &error, &self.state));
            run_jobs(&ctx, &self.state);
            failed.or_else(|| self.state.was_interrupted.get().then(|| too_busy(&self.state)))
        });
        self.drive();
        failed
    }

    /// Makes sure that the timers run.
    fn drive(self: &Rc<QuickJs>) {
        let Some(at) = self.state.wake_at.get() else { return };
        let after = (at - self.state.now()).clamp(0.0, f64::from(u32::MAX));
        self.timer.set(Duration::from_secs_f64(after / 1e3));
        if !self.is_driven.replace(true) {
            let driven = Driven { quick: Rc::downgrade(self), timer: self.timer.clone() };
            spawn(driven.run());
        }
    }

    /// Runs the timers that are due.
    fn run_timers(self: &Rc<QuickJs>) {
        self.state.wake_at.set(None);
        for _ in 0..TIMERS_PER_TURN {
            let mut did_run = false;
            let failed = self.enter(|ctx, api| {
                did_run = api.run_timer.clone().restore(ctx)?.call(())?;
                Ok(())
            });
            match failed {
                Some(error) => (self.state.host.say)(format!("Error in a timer of the processor: {error}")),
                None if !did_run => return,
                None => {}
            }
        }
        // More timers are due: they run after the other tasks had their turn.
        self.state.wake_at.set(Some(self.state.now()));
        self.drive();
    }

    /// Calls a function for a template, if the processor added one with this name.
    pub fn template(self: &Rc<QuickJs>, name: &str, arguments: &[Value]) -> Option<Value> {
        if !self.state.functions.borrow().contains(name) {
            return None;
        }
        let mut value = Value::Undefined;
        let failed = self.enter(|ctx, api| {
            let arguments: Vec<js::Value> = arguments.iter().map(|one| to_js(ctx, one)).collect::<js::Result<_>>()?;
            let given: js::Value = api.call_template.clone().restore(ctx)?.call((name, arguments))?;
            value = from_js(&given, FunctionConversion::Dropped).0;
            Ok(())
        });
        failed.is_none().then_some(value)
    }

    /// Forgets the values kept for a virtual user.
    pub fn forget(self: &Rc<QuickJs>, uid: &str) {
        self.state.kept.borrow_mut().remove(uid);
        if let Some(seat) = self.seats.borrow_mut().remove(uid) {
            self.enter(|ctx, api| api.forget.clone().restore(ctx)?.call((seat.restore(ctx)?,)));
        }
    }

    #[cfg(test)]
    pub fn set_bounds(&self, busy: Duration, hung: Duration) {
        self.state.busy_max.set(busy);
        self.hung_max.set(hung);
    }
}

/// The arguments of a function besides its context.
enum Given<'g> {
    Values([&'g Value; 2]),
    Params(&'g Params),
}

/// The task that runs timers while there are any.
struct Driven {
    quick: Weak<QuickJs>,
    timer: Rc<Deadline>,
}

impl Driven {
    async fn run(self) {
        loop {
            self.timer.expired().await;
            let Some(quick) = self.quick.upgrade() else { return };
            quick.run_timers();
            if quick.state.wake_at.get().is_none() {
                return;
            }
        }
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.timer.clear();
        if let Some(quick) = self.quick.upgrade() {
            quick.is_driven.set(false);
        }
    }
}
