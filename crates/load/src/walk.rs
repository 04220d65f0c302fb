//! A virtual user's way: how it arrives, and the walk through its flow.
//!
//! The walk keeps its own stack of loops. So a virtual user stays one small future, however deep loops are nested. The
//! branches of `parallel` have their own variables and share the connections and cookies. When a branch ends, its changes
//! go to the virtual user's variables. Branches are polled by hand, because `net` requires that they are one task.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use weir_net::worker::spawn;
use weir_net::{Instant, clock};

use crate::engine::{http, socketio, ws};
use crate::failed::Failed;
use crate::plan::{Engine, Hook, Jitter, Loop, LoopTimes, Step, Think};
use crate::processor::wires::Wires;
use crate::random;
use crate::value::Value;
use crate::vars::Vars;
use crate::vuser::Vuser;
use crate::worker::Worker;

/// Most steps of a virtual user in one turn, if none of them has to wait; then others get their turn.
const STEPS_PER_TURN: u32 = 64;

/// Starts a virtual user; `most` limits the number of active ones.
pub fn arrive(worker: &Rc<Worker>, due: Instant, most: Option<u64>) {
    if most.is_some_and(|most| worker.shared.active.load(Ordering::Relaxed) >= most) {
        worker.recorder.count(worker.metrics.skipped, 1);
        return;
    }
    let Some(index) = pick(worker) else { return };
    if let Some(metric) = worker.metrics.created_by_name.get(index) {
        worker.recorder.count(*metric, 1);
    }
    worker.recorder.count(worker.metrics.created, 1);
    let presence = Presence::new(worker);
    let vuser = Vuser::new(worker, Some(index), due);
    spawn(async move {
        let uid = vuser.uid.clone();
        live(vuser).await;
        if let Some(processor) = &presence.0.processor {
            processor.forget(&uid);
        }
        drop(presence);
    });
}

/// Picks a scenario at random, by weight.
fn pick(worker: &Worker) -> Option<usize> {
    let scenarios = &worker.plan.scenarios;
    let total: u64 = scenarios.iter().map(|scenario| u64::from(scenario.weight)).sum();
    let mut at = random::below(total as usize) as u64;
    scenarios.iter().position(|scenario| {
        let weight = u64::from(scenario.weight);
        let is_here = at < weight;
        at = at.saturating_sub(weight);
        is_here
    })
}

/// Counts a virtual user while it lives.
struct Presence(Rc<Worker>);

impl Presence {
    fn new(worker: &Rc<Worker>) -> Presence {
        worker.active.set(worker.active.get() + 1);
        worker.shared.active.fetch_add(1, Ordering::Relaxed);
        Presence(worker.clone())
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.active.set(self.0.active.get() - 1);
        self.0.shared.active.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs a virtual user from the first step of its scenario to the last, and counts it.
pub async fn live(mut vuser: Vuser) {
    let Some(index) = vuser.scenario else { return };
    let worker = vuser.worker.clone();
    let began = clock::precise();
    let Some(scenario) = worker.plan.scenarios.get(index) else { return };
    let outcome = engaged(&mut vuser, scenario.engine, &scenario.flow).await;
    let (recorder, metrics) = (&worker.recorder, &worker.metrics);
    match outcome {
        Ok(()) => {
            recorder.count(metrics.failed, 0);
            recorder.count(metrics.completed, 1);
            recorder.sample(metrics.session_length, (clock::precise() - began).as_secs_f64() * 1e3);
        }
        Err(Failed(name)) => {
            worker.count_error(&name);
            recorder.count(metrics.failed, 1);
        }
    }
}

/// Runs `before` or `after`; returns the variables afterwards.
pub async fn hook(mut vuser: Vuser, hook: &Hook) -> Result<Vars, Failed> {
    engaged(&mut vuser, hook.engine, &hook.flow).await?;
    Ok(vuser.vars)
}

/// Opens the engine's connection, runs a flow, and closes the connection.
async fn engaged(vuser: &mut Vuser, engine: Engine, flow: &[Step]) -> Result<(), Failed> {
    match engine {
        Engine::Http => walk(vuser, flow).await,
        Engine::Ws => {
            Box::pin(ws::open(vuser, flow)).await?;
            wire(vuser);
            let outcome = walk(vuser, flow).await;
            unwire(vuser);
            ws::close(vuser);
            outcome
        }
        Engine::SocketIo => {
            Box::pin(socketio::open(vuser)).await?;
            wire(vuser);
            let outcome = walk(vuser, flow).await;
            unwire(vuser);
            socketio::close(vuser);
            outcome
        }
    }
}

/// A running flow, or a round of a loop.
struct Frame<'p> {
    flow: &'p [Step],
    at: usize,
    rounds: Option<Rounds<'p>>,
}

/// The remaining rounds of a loop.
struct Rounds<'p> {
    spec: &'p Loop,
    /// Rounds that have ended.
    done: usize,
    /// Rounds left after this one; `None`: their number has no limit.
    left: Option<i64>,
    /// The function that decides about each further round.
    while_true: Option<&'p str>,
    /// The elements, if the loop has some.
    elements: Option<Elements<'p>>,
}

/// The elements of a loop.
enum Elements<'p> {
    Written(&'p [Value]),
    Variable(std::sync::Arc<Vec<Value>>),
}

impl Elements<'_> {
    /// The element, undefined beyond the last.
    fn nth(&self, index: usize) -> Value {
        let list: &[Value] = match self {
            Elements::Written(list) => list,
            Elements::Variable(list) => list,
        };
        list.get(index).cloned().unwrap_or_default()
    }
}

impl<'p> Frame<'p> {
    fn once(flow: &'p [Step]) -> Frame<'p> {
        Frame { flow, at: 0, rounds: None }
    }

    fn next(&mut self) -> Option<&'p Step> {
        let step = self.flow.get(self.at)?;
        self.at += 1;
        Some(step)
    }

    /// The first round of a loop; `None` if there is none.
    fn first_round(spec: &'p Loop, vuser: &mut Vuser) -> Option<Frame<'p>> {
        let (count, rounds, elements) = match &spec.times {
            LoopTimes::Forever => (spec.from, None, None),
            LoopTimes::Range(from, to) => (*from, Some(to.saturating_sub(*from)), None),
            LoopTimes::Rendered(text) => {
                let value = text.value(&vuser.vars, &*vuser.worker.functions);
                match crate::script::times(&value) {
                    LoopTimes::Range(from, to) => (from, Some(to.saturating_sub(from)), None),
                    _ => (spec.from, None, None),
                }
            }
            LoopTimes::Over(list) => (spec.from, i64::try_from(list.len()).ok(), Some(Elements::Written(list))),
            LoopTimes::OverVariable(slot) => over(spec.from, vuser.vars.get(*slot).clone()),
            LoopTimes::OverPath(path) => over(spec.from, path.value(&vuser.vars, &*vuser.worker.functions)),
        };
        // As in Artillery, a loop without rounds sets its variables too. Without elements, the element is the start of the
        // counter.
        let count = Value::Number(count as f64);
        let element = elements.as_ref().map_or_else(|| count.clone(), |elements| elements.nth(0));
        vuser.vars.set(spec.element, element);
        vuser.vars.set(spec.count, count);
        // As in Artillery, weir ignores a function that the processor does not have. A function that it has decides
        // alone, unless the value of `over` is no list.
        let has = |name: &&str| vuser.worker.processor.as_ref().is_some_and(|processor| processor.has(name));
        let while_true = spec.while_true.as_deref().filter(has);
        let is_no_list =
            elements.is_none() && matches!(spec.times, LoopTimes::OverVariable(_) | LoopTimes::OverPath(_));
        let rounds = rounds.filter(|_| while_true.is_none() || is_no_list);
        if rounds.is_some_and(|rounds| rounds <= 0) {
            return None;
        }
        let rounds = Rounds { spec, done: 0, left: rounds.map(|rounds| rounds - 1), while_true, elements };
        Some(Frame { flow: &spec.flow, at: 0, rounds: Some(rounds) })
    }

    /// Begins another round; `false` if the flow is over.
    async fn another_round(&mut self, vuser: &mut Vuser) -> Result<bool, Failed> {
        let Some(rounds) = &mut self.rounds else { return Ok(false) };
        rounds.end_round(vuser);
        if let Some(name) = rounds.while_true {
            let (worker, context) = vuser.context();
            if let Some(processor) = &worker.processor
                && !processor.while_true(name, context).await?
            {
                return Ok(false);
            }
        }
        if rounds.left == Some(0) {
            return Ok(false);
        }
        rounds.left = rounds.left.map(|left| left - 1);
        self.at = 0;
        Ok(true)
    }
}

/// A loop over the value of a variable; a value that is not a list has no elements, and the loop no rounds.
fn over<'p>(from: i64, value: Value) -> (i64, Option<i64>, Option<Elements<'p>>) {
    match value {
        Value::List(list) => (from, i64::try_from(list.len()).ok(), Some(Elements::Variable(list))),
        _ => (from, Some(0), None),
    }
}

impl Rounds<'_> {
    /// Sets the variables to those of the next round, also after the last round. As in Artillery, the counter is the
    /// variable itself: steps and inner loops may change it.
    fn end_round(&mut self, vuser: &mut Vuser) {
        self.done = self.done.saturating_add(1);
        let count = vuser.vars.get(self.spec.count).to_number() + 1.0;
        vuser.vars.set(self.spec.count, Value::Number(count));
        if let Some(elements) = &self.elements {
            vuser.vars.set(self.spec.element, elements.nth(self.done));
        }
    }
}

/// Runs the steps of a flow one after another, with its loops.
pub async fn walk(vuser: &mut Vuser, flow: &[Step]) -> Result<(), Failed> {
    let mut around: Vec<Frame<'_>> = Vec::new();
    let mut here = Frame::once(flow);
    let mut taken = 0;
    loop {
        let Some(step) = here.next() else {
            if here.another_round(vuser).await? {
                continue;
            }
            match around.pop() {
                Some(frame) => here = frame,
                None => return Ok(()),
            }
            continue;
        };
        taken += 1;
        if taken % STEPS_PER_TURN == 0 {
            let_others_run().await;
        }
        vuser.sync();
        match step {
            Step::Loop(spec) => {
                if let Some(frame) = Frame::first_round(spec, vuser) {
                    around.push(std::mem::replace(&mut here, frame));
                }
            }
            Step::Request(request) => http::step(vuser, request).await?,
            Step::Think(think) => pause(vuser, think).await?,
            Step::Log(text) => {
                let text = text.value(&vuser.vars, &*vuser.worker.functions);
                vuser.worker.say(text.to_text().into_owned());
            }
            Step::Function(name) => Box::pin(function(vuser, name)).await?,
            Step::Parallel { steps, limit } => Box::pin(parallel(vuser, steps, *limit)).await?,
            Step::Send { .. } | Step::Wait(_) | Step::Connect(_) => ws::step(vuser, step).await?,
            Step::Emit(_) => socketio::step(vuser, step).await?,
        }
    }
}

/// A `function` step. A missing function is counted and skipped.
async fn function(vuser: &mut Vuser, name: &crate::template::Template) -> Result<(), Failed> {
    let name = name.value(&vuser.vars, &*vuser.worker.functions);
    let name = name.to_text().into_owned();
    let (worker, context) = vuser.context();
    match &worker.processor {
        Some(processor) if processor.has(&name) => Ok(processor.function(&name, context).await?),
        _ => {
            worker.count_undefined(&name);
            Ok(())
        }
    }
}

/// `think`.
async fn pause(vuser: &mut Vuser, think: &Think) -> Result<(), Failed> {
    let time = match &think.time {
        Ok(time) => *time,
        Err(text) => {
            let value = text.value(&vuser.vars, &*vuser.worker.functions);
            match crate::duration::think(&value) {
                Some(time) => time.time,
                None => return Err(Failed(format!("Invalid think time: {}", value.to_text()).into())),
            }
        }
    };
    let time = match think.jitter {
        None => time,
        Some(Jitter::Time(by)) => around(time, by),
        Some(Jitter::Part(part)) => {
            around(time, Duration::try_from_secs_f64(time.as_secs_f64() * part).unwrap_or(time))
        }
    };
    // The next exchange is intended to begin at the end of the think time.
    let due = clock::precise() + time;
    vuser.due = Some(due);
    http::think(vuser, due).await;
    Ok(())
}

/// A random time within `by` of `time`, never negative.
fn around(time: Duration, by: Duration) -> Duration {
    let least = time.saturating_sub(by);
    least + time.saturating_add(by).saturating_sub(least).mul_f64(random::unit())
}

/// Lets every other task of the worker run once.
pub(crate) async fn let_others_run() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Most branches at the same time; Artillery's own limit.
pub const BRANCHES_MAX: usize = 100;

type Branch<'b> = Pin<Box<dyn Future<Output = Result<Vars, Failed>> + 'b>>;

/// Runs all steps, at most `limit` at the same time. The first error ends the others.
async fn parallel(vuser: &mut Vuser, steps: &[Step], limit: usize) -> Result<(), Failed> {
    let before = vuser.vars.clone();
    let mut waiting = steps.iter();
    let mut under_way: Vec<Branch<'_>> = Vec::new();
    let limit = limit.clamp(1, BRANCHES_MAX);
    loop {
        while under_way.len() < limit
            && let Some(step) = waiting.next()
        {
            under_way.push(Box::pin(branch(vuser.share(before.clone()), step)));
        }
        // The intended start of a branch that waits for another branch, and of later steps, is the moment at which
        // they begin.
        vuser.due = None;
        if under_way.is_empty() {
            return Ok(());
        }
        let after = any(&mut under_way).await?;
        vuser.vars.take_changes(&before, &after);
    }
}

async fn branch(mut vuser: Vuser, step: &Step) -> Result<Vars, Failed> {
    walk(&mut vuser, std::slice::from_ref(step)).await?;
    Ok(vuser.vars)
}

/// Waits until the first branch ends, and removes it.
async fn any(branches: &mut Vec<Branch<'_>>) -> Result<Vars, Failed> {
    poll_fn(|context| {
        for index in 0..branches.len() {
            let Some(branch) = branches.get_mut(index) else { break };
            if let Poll::Ready(outcome) = branch.as_mut().poll(context) {
                drop(branches.swap_remove(index));
                return Poll::Ready(outcome);
            }
        }
        Poll::Pending
    })
    .await
}

/// Gives the processor, if there is one, access to the connections.
fn wire(vuser: &mut Vuser) {
    if vuser.worker.processor.is_some() {
        let line = socketio::line(vuser).or_else(|| ws::line(vuser));
        vuser.wires = line.map(Wires::new);
    }
}

/// Ends the processor's access to the connections.
fn unwire(vuser: &mut Vuser) {
    vuser.sync();
    vuser.wires.take().iter().for_each(|wires| wires.over());
}
