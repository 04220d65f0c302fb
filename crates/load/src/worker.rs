//! State that the virtual users of one worker thread share, and how they start.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use crate::debug::Debug;
use crate::engine::http::shared::Http;
use crate::engine::socketio::shared as socketio;
use crate::engine::ws::shared as ws;
use crate::event::Event;
use crate::failed::Failed;
use crate::fake::Fake;
use crate::plan::Plan;
use crate::processor::{Choice, Processor, ProcessorHost};
use crate::random::{self, Builtins};
use crate::record::{MetricId, Recorder};
use crate::template::TemplateFunctions;
use crate::tls::Tls;
use crate::value::Value;

/// Most lines of `log` steps that wait to be printed; further ones are dropped and counted.
pub const LINES_MAX: u64 = 10_000;

/// State that the virtual users of one worker thread share.
pub struct Worker {
    /// The plan.
    pub plan: Arc<Plan>,
    /// The recorder of counts.
    pub recorder: Recorder,
    /// The metrics of every virtual user.
    pub metrics: UserMetrics,
    /// The processor, if the script names one.
    pub processor: Option<Rc<Processor>>,
    /// State for requests: shared connections, resolved names, metrics.
    pub http: Http,
    /// TLS settings.
    pub tls: Rc<Tls>,
    /// State for WebSockets.
    pub ws: ws::WsShared,
    /// State for Socket.IO.
    pub socketio: socketio::SocketioShared,
    /// Functions for templates.
    pub functions: Box<dyn TemplateFunctions>,
    /// State that the workers of a run share.
    pub shared: Arc<RunShared>,
    /// The kinds of output that `DEBUG` selects.
    pub debug: Debug,
    /// Number of active virtual users of this worker.
    pub active: Cell<u64>,
    events: Sender<Event>,
    /// The processor's last exit code that was reported.
    exit_code: Cell<Option<i32>>,
}

/// State that all workers of a run share.
#[derive(Debug, Default)]
pub struct RunShared {
    /// Number of active virtual users.
    pub active: AtomicU64,
    /// No more virtual users arrive.
    pub is_ending: AtomicBool,
    /// Number of lines that wait to be printed.
    pub lines_waiting: AtomicU64,
    /// Number of lines dropped because too many waited.
    pub lines_lost: AtomicU64,
    /// The next row of each payload that is read in sequence.
    pub rows: Vec<AtomicU64>,
    /// This process's share of the arrivals: its number, and the number of shares.
    pub share: (u64, u64),
    /// Length of a point in the lines over time, ms; `None`: [`POINT_MS`](crate::record::POINT_MS).
    pub point_ms: Option<u64>,
    /// The variables that `before` set, for all virtual users.
    pub before: Vec<(Arc<str>, Value)>,
}

/// Ids of the metrics of virtual users (artillery.md §3.2).
pub struct UserMetrics {
    /// `vusers.created`.
    pub created: MetricId,
    /// `vusers.created_by_name`.
    pub created_by_name: Vec<MetricId>,
    /// `vusers.skipped`.
    pub skipped: MetricId,
    /// `vusers.completed`.
    pub completed: MetricId,
    /// `vusers.failed`.
    pub failed: MetricId,
    /// `vusers.session_length`.
    pub session_length: MetricId,
}

impl UserMetrics {
    fn new(plan: &Plan, recorder: &Recorder) -> UserMetrics {
        let by_name = |name: &str| recorder.metric(&format!("vusers.created_by_name.{name}"));
        UserMetrics {
            created: recorder.metric("vusers.created"),
            created_by_name: plan.scenarios.iter().map(|scenario| by_name(&scenario.name)).collect(),
            skipped: recorder.metric("vusers.skipped"),
            completed: recorder.metric("vusers.completed"),
            failed: recorder.metric("vusers.failed"),
            session_length: recorder.metric("vusers.session_length"),
        }
    }
}

impl Worker {
    /// Loads the processor and prepares the state for a run; the error is for the user.
    pub fn new(plan: Arc<Plan>, shared: Arc<RunShared>, events: Sender<Event>, seed: u64) -> Result<Worker, Failed> {
        let recorder = Recorder::default();
        let tls = Tls::new(&plan.tls)?;
        random::seed(seed);
        let host = ProcessorHost {
            say: {
                let (shared, events) = (shared.clone(), events.clone());
                Rc::new(move |line| say(&shared, &events, Event::Line(line)))
            },
            test_run_id: test_id(&plan),
            ..ProcessorHost::default()
        };
        crate::npm::prepare();
        let load = |path| Processor::load_with(path, host, Choice::from_environment());
        let processor = plan.processor.as_deref().map(load).transpose()?.map(Rc::new);
        Ok(Worker {
            metrics: UserMetrics::new(&plan, &recorder),
            http: Http::new(&plan, &recorder, &tls),
            ws: ws::WsShared::new(&plan, &recorder),
            socketio: socketio::SocketioShared::new(&plan, &recorder),
            functions: Box::new(Callable {
                fake: plan.plugins.fake_data.as_ref().map(Fake::new),
                processor: processor.clone(),
            }),
            tls,
            plan,
            recorder,
            processor,
            shared,
            active: Cell::new(0),
            debug: Debug::asked(),
            events,
            exit_code: Cell::new(None),
        })
    }

    /// Number of active virtual users of this worker.
    pub fn active(&self) -> u64 {
        self.active.get()
    }

    /// Reports the exit code that the processor suggests, if it has changed.
    pub fn tell_exit_code(&self) {
        let code = self.processor.as_ref().and_then(|processor| processor.exit_code());
        if let Some(code) = code.filter(|_| code != self.exit_code.get()) {
            self.exit_code.set(Some(code));
            // It does not matter if the receiver is gone.
            let _ = self.events.send(Event::ExitCode(code));
        }
    }

    /// Prints a line, unless too many wait.
    pub fn say(&self, line: String) {
        say(&self.shared, &self.events, Event::Line(line));
    }

    /// Prints lines for `DEBUG`, unless too many wait.
    pub fn say_debug(&self, lines: impl IntoIterator<Item = String>) {
        lines.into_iter().for_each(|line| say(&self.shared, &self.events, Event::Debug(line)));
    }

    /// Counts `errors.NAME`.
    pub fn count_error(&self, name: &str) {
        self.recorder.count(self.recorder.metric(&format!("errors.{name}")), 1);
    }

    /// Counts a missing function of the processor.
    pub fn count_undefined(&self, name: &str) {
        self.count_error(&format!("Undefined function \"{name}\""));
    }
}

/// Prints a line, unless too many wait.
fn say(shared: &RunShared, events: &Sender<Event>, line: Event) {
    let waiting = shared.lines_waiting.fetch_add(1, Ordering::Relaxed);
    if waiting >= LINES_MAX || events.send(line).is_err() {
        shared.lines_waiting.fetch_sub(1, Ordering::Relaxed);
        shared.lines_lost.fetch_add(1, Ordering::Relaxed);
    }
}

/// `$testId`; processors have it as `artillery.testRunId`.
fn test_id(plan: &Plan) -> String {
    let slot = plan.names.find("$testId");
    let found = plan.globals.iter().find(|(own, _)| Some(*own) == slot);
    found.map(|(_, value)| value.to_string()).unwrap_or_default()
}

/// The functions for templates: the two of Artillery's core, fake data if the script asks for it, and those that its
/// processor added.
struct Callable {
    fake: Option<Fake>,
    processor: Option<Rc<Processor>>,
}

impl TemplateFunctions for Callable {
    fn call(&self, name: &str, arguments: &[Value]) -> Option<Value> {
        let fake = || self.fake.as_ref()?.call(name, arguments);
        let own = || self.processor.as_ref()?.template(name, arguments);
        Builtins.call(name, arguments).or_else(fake).or_else(own)
    }
}
