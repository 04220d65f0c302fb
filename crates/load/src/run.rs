//! Runs a plan from its first arrival to its last virtual user: starts the workers, watches them, collects their
//! counts.
//!
//! ```text
//!   this thread                      worker threads (one per core)
//!   phases, windows, log lines  ◄──  arrivals ─► virtual users ─► recorder
//! ```
//!
//! Nothing here prints: a [`RunWatch`] gets every event when it happens.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use weir_net::Instant;
use weir_words::{Said, say};

use weir_net::clock;
use weir_net::timer::until;
use weir_net::worker::{self, Remote, spawn};

use crate::arrive::{AllArrivals, length};
use crate::client::h3;
use crate::event::Event;
use crate::failed::Failed;
use crate::plan::{Hook, Phase, Plan};
use crate::record::{Merger, Period, TakenWindow};
use crate::texts::agents as texts;
use crate::value::Value;
use crate::vuser::Vuser;
use crate::walk;
use crate::worker::{RunShared, Worker};

/// Most threads of one run.
pub const WORKERS_MAX: usize = 64;
/// Longest time that virtual users may run after the last phase before the run is ended.
pub const DRAIN_MAX: Duration = Duration::from_secs(3600);
/// Time for the workers to get ready before the first phase begins.
const LEAD: Duration = Duration::from_millis(30);
/// Interval at which a worker reports its counts, and checks whether the run must end.
pub(crate) const TELL: Duration = Duration::from_millis(250);
/// Most arrivals in one turn; then the sockets get their turn.
const ARRIVALS_PER_TURN: u32 = 256;
/// Interval at which the watcher gets the progress.
const PROGRESS: Duration = Duration::from_millis(200);

/// A plan and the parameters of its run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The plan.
    pub plan: Arc<Plan>,
    /// Number of threads, limited to 1 to [`WORKERS_MAX`].
    pub workers: usize,
    /// Seed of all random choices.
    pub seed: u64,
    /// This process's share of the arrivals: its number, and the number of shares.
    pub share: (u64, u64),
    /// Start of the first phase; `None`: as soon as everything is ready.
    pub start: Option<Instant>,
    /// For a process that sends its counts to a controller: counts are reported as they come instead of by whole
    /// windows, and their times are this many ms ahead of this machine's clock.
    pub ahead_ms: Option<i64>,
}

/// Receives the events of a run.
pub trait RunWatch {
    /// A phase has begun.
    fn phase_started(&mut self, index: usize, phase: &Phase);
    /// A phase is over; its virtual users may still run.
    fn phase_completed(&mut self, index: usize, phase: &Phase);
    /// A `log` step's text.
    fn line(&mut self, line: &str);
    /// A period of the report is over.
    fn period(&mut self, period: &Period);
    /// Counts came for a period that is closed: they are in the whole only.
    fn late(&mut self, start_ms: u64);
    /// The progress of the run.
    fn progress(&mut self, progress: &RunProgress, merger: &Merger);
    /// The counts of a worker before they are merged; and the time up to which all workers have reported.
    fn taken(&mut self, taken: &TakenWindow, before_ms: u64) {
        let _ = (taken, before_ms);
    }
    /// A line that `DEBUG` asks for.
    fn debug(&mut self, line: &str) {
        let _ = line;
    }
    /// A processor set `artillery.suggestedExitCode`; the last one counts.
    fn exit_code(&mut self, code: i32) {
        let _ = code;
    }
}

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunProgress {
    /// Time since the first phase began.
    pub elapsed: Duration,
    /// Duration of all phases.
    pub length: Duration,
    /// Number of active virtual users.
    pub active: u64,
    /// The current phase; `None` after the last.
    pub phase: Option<usize>,
}

/// The variables that `before` set.
pub type Before = Vec<(Arc<str>, Value)>;

/// The result of a run.
#[derive(Debug)]
pub struct RunOutcome {
    /// All counts.
    pub merger: Merger,
    /// The run was stopped early.
    pub is_interrupted: bool,
    /// Virtual users were still running after [`DRAIN_MAX`].
    pub is_cut: bool,
    /// Lines of `log` steps that were not printed.
    pub lines_lost: u64,
    /// Duration of the run, from the first phase on.
    pub took: Duration,
    /// The variables that `before` set, for `after`.
    pub before: Before,
}

/// Ends a run from another thread.
#[derive(Clone, Debug)]
pub struct RunStop(Sender<Event>, Arc<AtomicBool>);

impl RunStop {
    /// Ends the run: no more virtual users arrive, the active ones are dropped, and the counts are reported.
    pub fn stop(&self) {
        self.1.store(true, Ordering::Relaxed);
        // It does not matter if the run is over already.
        let _ = self.0.send(Event::Stop);
    }
}

/// The event channel of a run. It is made first, so that another thread can have the [`RunStop`].
pub struct Channel {
    sender: Sender<Event>,
    receiver: Receiver<Event>,
    is_stopped: Arc<AtomicBool>,
    /// Length of a point in the lines over time, ms; `None`: a second.
    pub point_ms: Option<u64>,
}

impl Channel {
    /// A channel.
    pub fn new() -> Channel {
        let (sender, receiver) = mpsc::channel();
        Channel { sender, receiver, is_stopped: Arc::default(), point_ms: None }
    }

    /// The sender for workers.
    pub fn sender(&self) -> Sender<Event> {
        self.sender.clone()
    }

    /// True if the run was told to stop.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// A handle that ends the run.
    pub fn stop(&self) -> RunStop {
        RunStop(self.sender.clone(), self.is_stopped.clone())
    }
}

impl Default for Channel {
    fn default() -> Channel {
        Channel::new()
    }
}

/// Why a run could not begin; the text is for the user.
#[derive(Debug)]
pub enum NotBegun {
    /// The script's `before` failed.
    Before(Said),
    /// A worker could not start.
    Worker(Said),
}

impl From<Said> for NotBegun {
    fn from(why: Said) -> NotBegun {
        NotBegun::Worker(why)
    }
}

/// Runs the plan. Failures after the beginning are counted.
pub fn run(run: &Run, channel: Channel, watch: &mut dyn RunWatch) -> Result<RunOutcome, NotBegun> {
    let before = before(run, &channel, watch)?;
    Ok(serve(run, before, channel, watch)?)
}

/// Runs `before`; returns the variables it set.
pub fn before(run: &Run, channel: &Channel, watch: &mut dyn RunWatch) -> Result<Before, NotBegun> {
    let before = match &run.plan.before {
        Some(_) => hook(run, channel, Vec::new(), |plan| plan.before.as_ref())
            .map_err(|Failed(name)| NotBegun::Before(say!(texts::BEFORE_FAILED, name.as_ref())))?,
        None => Vec::new(),
    };
    print_lines(channel, watch);
    Ok(before)
}

/// Runs everything between `before` and `after`.
pub fn serve(run: &Run, before: Before, channel: Channel, watch: &mut dyn RunWatch) -> Result<RunOutcome, Said> {
    let shared = Arc::new(RunShared {
        rows: run.plan.payloads.iter().map(|_| AtomicU64::new(0)).collect(),
        share: run.share,
        before: before.clone(),
        point_ms: channel.point_ms,
        ..RunShared::default()
    });
    let workers = run.workers.clamp(1, WORKERS_MAX);
    let began = run.start.unwrap_or_else(|| clock::precise() + LEAD);
    let mut running = Workers { remotes: Vec::new() };
    for index in 0..workers {
        let part = Part { run: run.clone(), index, of: workers, began };
        let (shared, events) = (shared.clone(), channel.sender.clone());
        let remote = worker::start(&format!("{}{index}", crate::selfcheck::THREAD_NAME), None, move || {
            begin(part, shared, events)
        })
        .map_err(|error| say!(texts::WORKER_NOT_STARTED, index, error.to_string()))?;
        running.remotes.push(remote);
    }
    let heard = listen(&run.plan.phases, began, workers, &shared, &channel, watch)?;
    drop(running);
    print_lines(&channel, watch);
    Ok(RunOutcome { lines_lost: shared.lines_lost.load(Ordering::Relaxed), before, ..heard })
}

/// Collects events until all workers, local or remote, have ended.
pub fn listen(
    phases: &[Phase],
    began: Instant,
    workers: usize,
    shared: &Arc<RunShared>,
    channel: &Channel,
    watch: &mut dyn RunWatch,
) -> Result<RunOutcome, Said> {
    let mut hearing = Hearing::new(phases, shared.clone(), began, workers);
    if channel.is_stopped() {
        // The stop came while `before` ran.
        hearing.hear(Event::Stop, watch)?;
    }
    hearing.listen(&channel.receiver, watch)?;
    Ok(RunOutcome {
        merger: hearing.merger,
        is_interrupted: hearing.is_interrupted,
        is_cut: hearing.is_cut,
        lines_lost: shared.lines_lost.load(Ordering::Relaxed),
        took: clock::precise().saturating_duration_since(began),
        before: Vec::new(),
    })
}

/// Runs `after` with the variables that `before` set. Its error is for the user.
pub fn after(run: &Run, before: Before, watch: &mut dyn RunWatch) -> Result<(), Said> {
    if run.plan.after.is_none() {
        return Ok(());
    }
    let channel = Channel::new();
    let outcome = hook(run, &channel, before, |plan| plan.after.as_ref());
    print_lines(&channel, watch);
    outcome.map(drop).map_err(|Failed(name)| say!(texts::AFTER_FAILED, name.as_ref()))
}

/// Runs `before` or `after` on a separate worker; its counts are dropped.
fn hook(
    run: &Run,
    channel: &Channel,
    before: Vec<(Arc<str>, Value)>,
    which: fn(&Plan) -> Option<&Hook>,
) -> Result<Vec<(Arc<str>, Value)>, Failed> {
    let (run, events) = (run.clone(), channel.sender.clone());
    let shared = Arc::new(RunShared { before, ..RunShared::default() });
    let (tell, told) = mpsc::channel();
    let remote = worker::start("load hook", None, move || {
        spawn(async move {
            // It does not matter if the receiver is gone.
            let _ = tell.send(walk(&run, shared, events, which).await);
        });
    })
    .map_err(|error| Failed(error.to_string().into()))?;
    let outcome = told.recv().unwrap_or_else(|_| Err(Failed("it panicked".into())));
    remote.stop();
    remote.join();
    outcome
}

async fn walk(
    run: &Run,
    shared: Arc<RunShared>,
    events: Sender<Event>,
    which: fn(&Plan) -> Option<&Hook>,
) -> Result<Vec<(Arc<str>, Value)>, Failed> {
    let worker = Rc::new(Worker::new(run.plan.clone(), shared, events, run.seed)?);
    let Some(hook) = which(&run.plan) else { return Ok(Vec::new()) };
    let vars = walk::hook(Vuser::new(&worker, None, clock::precise()), hook).await;
    worker.tell_exit_code();
    let vars = vars?;
    Ok(vars.iter().map(|(name, value)| (name.clone(), value.clone())).collect())
}

fn print_lines(channel: &Channel, watch: &mut dyn RunWatch) {
    while let Ok(event) = channel.receiver.try_recv() {
        match event {
            Event::Line(line) => watch.line(&line),
            Event::Debug(line) => watch.debug(&line),
            Event::ExitCode(code) => watch.exit_code(code),
            _ => {}
        }
    }
}

/// The workers; dropping it ends them.
struct Workers {
    remotes: Vec<Remote>,
}

impl Drop for Workers {
    fn drop(&mut self) {
        for remote in &self.remotes {
            remote.stop();
        }
        for remote in &self.remotes {
            remote.join();
        }
    }
}

/// One worker's part of a run.
struct Part {
    run: Run,
    index: usize,
    of: usize,
    began: Instant,
}

impl Part {
    /// True if the arrival belongs to this worker.
    fn is_mine(&self, number: u64) -> bool {
        let (share, shares) = self.run.share;
        let shares = shares.max(1);
        number % shares == share && (number / shares) % self.of as u64 == self.index as u64
    }

    /// This process's share of a phase's limit of virtual users.
    fn most(&self, phase: &Phase) -> Option<u64> {
        let (share, shares) = self.run.share;
        let most = phase.vusers_max?;
        Some(most / shares.max(1) + u64::from(share < most % shares.max(1)))
    }
}

/// Starts a worker thread's part.
fn begin(part: Part, shared: Arc<RunShared>, events: Sender<Event>) {
    // Every worker of every agent gets a different random stream: no two virtual users share a UUID.
    let number = part.run.share.0 * WORKERS_MAX as u64 + part.index as u64 + 1;
    let seed = part.run.seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let worker = match Worker::new(part.run.plan.clone(), shared, events.clone(), seed) {
        Ok(worker) => Rc::new(worker),
        Err(Failed(error)) => {
            // It does not matter if the receiver is gone.
            let _ = events.send(Event::Failed(error.into_owned()));
            return;
        }
    };
    worker.shared.point_ms.iter().for_each(|ms| worker.recorder.set_point_ms(*ms));
    worker.recorder.set_ahead(part.run.ahead_ms.unwrap_or(0));
    let index = part.index;
    let in_parts = part.run.ahead_ms.is_some();
    spawn(tell(worker.clone(), index, events.clone(), in_parts));
    spawn(async move {
        serve_arrivals(&part, &worker).await;
        h3::leave().await;
        report(&worker, index, &events, in_parts, true);
        let _ = events.send(Event::Ended { worker: index });
    });
}

/// Starts virtual users, each at its time, and waits for the last of them.
async fn serve_arrivals(part: &Part, worker: &Rc<Worker>) {
    let plan = &part.run.plan;
    let mut at_once = 0;
    for arrival in AllArrivals::new(&plan.phases, part.run.seed) {
        if !part.is_mine(arrival.number) {
            continue;
        }
        let due = part.began + arrival.due;
        at_once += 1;
        let mut now = clock::precise();
        if now < due {
            until(due).await;
            now = clock::precise();
            at_once = 0;
        } else if at_once >= ARRIVALS_PER_TURN {
            walk::let_others_run().await;
            at_once = 0;
        }
        if worker.shared.is_ending.load(Ordering::Relaxed) {
            return;
        }
        worker.recorder.lag(now.saturating_duration_since(due));
        let most = plan.phases.get(arrival.phase).and_then(|phase| part.most(phase));
        walk::arrive(worker, due, most);
    }
    until(part.began + length(&plan.phases)).await;
    let cut = clock::now() + DRAIN_MAX;
    while worker.active() > 0 && clock::now() < cut && !worker.shared.is_ending.load(Ordering::Relaxed) {
        weir_net::timer::sleep(TELL / 10).await;
    }
}

/// Reports the counts at intervals.
async fn tell(worker: Rc<Worker>, index: usize, events: Sender<Event>, in_parts: bool) {
    loop {
        weir_net::timer::sleep(TELL).await;
        report(&worker, index, &events, in_parts, false);
    }
}

fn report(worker: &Worker, index: usize, events: &Sender<Event>, in_parts: bool, is_last: bool) {
    let before_ms = if is_last { u64::MAX } else { worker.recorder.now_ms() };
    if let Some(processor) = &worker.processor {
        processor.flush(&worker.recorder);
        worker.tell_exit_code();
    }
    h3::record(&worker.recorder);
    let taken = worker.recorder.take(if in_parts { u64::MAX } else { before_ms });
    // It does not matter if the receiver is gone.
    let _ = events.send(Event::Taken { worker: index, taken, before_ms });
}

/// State of the thread that runs the load.
struct Hearing<'r> {
    plan: &'r [Phase],
    shared: Arc<RunShared>,
    began: Instant,
    merger: Merger,
    /// The time up to which each worker has reported.
    reported: Vec<u64>,
    ended: Vec<bool>,
    is_interrupted: bool,
    is_cut: bool,
    /// End of the current phase.
    boundary: Duration,
    /// Number of phases begun.
    phases: usize,
}

impl<'r> Hearing<'r> {
    fn new(plan: &'r [Phase], shared: Arc<RunShared>, began: Instant, workers: usize) -> Hearing<'r> {
        Hearing {
            plan,
            merger: shared.point_ms.map_or_else(Merger::default, Merger::with_point_ms),
            shared,
            began,
            reported: vec![0; workers],
            ended: vec![false; workers],
            is_interrupted: false,
            is_cut: false,
            boundary: Duration::ZERO,
            phases: 0,
        }
    }

    /// Collects events until every worker has ended.
    fn listen(&mut self, receiver: &Receiver<Event>, watch: &mut dyn RunWatch) -> Result<(), Said> {
        let mut next_progress = self.began;
        while !self.ended.iter().all(|ended| *ended) {
            self.turn_phases(watch);
            let now = clock::precise();
            if now >= next_progress {
                next_progress = now + PROGRESS;
                watch.progress(&self.progress(), &self.merger);
            }
            let wait = next_progress.saturating_duration_since(clock::precise()).min(self.to_boundary());
            match receiver.recv_timeout(wait) {
                Ok(event) => self.hear(event, watch)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(say!(texts::WORKERS_ENDED)),
            }
        }
        if !self.is_interrupted {
            self.turn_phases(watch);
        }
        self.is_cut = self.shared.active.load(Ordering::Relaxed) > 0 && !self.is_interrupted;
        Ok(())
    }

    fn hear(&mut self, event: Event, watch: &mut dyn RunWatch) -> Result<(), Said> {
        match event {
            Event::Line(line) => {
                self.shared.lines_waiting.fetch_sub(1, Ordering::Relaxed);
                watch.line(&line);
            }
            Event::Taken { worker, taken, before_ms } => {
                if let Some(reported) = self.reported.get_mut(worker) {
                    // A worker that has finished its share still sends empty reports.
                    *reported = before_ms.max(*reported);
                }
                let before_ms = self.reported.iter().copied().min().unwrap_or(0);
                watch.taken(&taken, before_ms);
                for start_ms in self.merger.add(taken) {
                    watch.late(start_ms);
                }
                for period in self.merger.close(before_ms) {
                    watch.period(period);
                }
            }
            Event::Ended { worker } => {
                if let Some(ended) = self.ended.get_mut(worker) {
                    *ended = true;
                }
            }
            Event::Failed(error) => return Err(error.into()),
            Event::Debug(line) => {
                self.shared.lines_waiting.fetch_sub(1, Ordering::Relaxed);
                watch.debug(&line);
            }
            Event::ExitCode(code) => watch.exit_code(code),
            Event::Stop => {
                self.is_interrupted = true;
                self.shared.is_ending.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn to_boundary(&self) -> Duration {
        if self.phases > self.plan.len() {
            return PROGRESS;
        }
        (self.began + self.boundary).saturating_duration_since(clock::precise())
    }

    /// Reports the phases that have ended and begun by now.
    fn turn_phases(&mut self, watch: &mut dyn RunWatch) {
        let phases = self.plan;
        while self.phases <= phases.len() && clock::precise() >= self.began + self.boundary && !self.is_interrupted {
            if let Some(last) = self.phases.checked_sub(1)
                && let Some(phase) = phases.get(last)
            {
                watch.phase_completed(last, phase);
            }
            if let Some(phase) = phases.get(self.phases) {
                watch.phase_started(self.phases, phase);
                self.boundary += phase.duration;
            }
            self.phases += 1;
        }
    }

    fn progress(&self) -> RunProgress {
        let phase = self.phases.checked_sub(1).filter(|index| *index < self.plan.len());
        RunProgress {
            elapsed: clock::precise().saturating_duration_since(self.began),
            length: length(self.plan),
            active: self.shared.active.load(Ordering::Relaxed),
            phase,
        }
    }
}
