//! A script prepared for its run: immutable, shared by all workers, with everything looked up in advance.
//!
//! `script` makes it from YAML or JSON; `vuser` runs it. Terms are Artillery's.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use weir_words::Said;

use crate::capture::{Capture, CaptureMatch};
use crate::client::{Protocol, Proxies};
use crate::cookie::Rules;
use crate::expression::Expression;
use crate::publish::Reporter;
use crate::template::{Template, Tree};
use crate::value::{Map, Value};
use crate::vars::{VariableNames, VariableSlot};

/// A script prepared for its run.
#[derive(Debug)]
pub struct Plan {
    /// The first script file, absolute: `$scenarioFile`.
    pub file: PathBuf,
    /// The directory from which relative paths in the script start.
    pub dir: PathBuf,
    /// `config.target`.
    pub target: Arc<str>,
    /// The phases in order.
    pub phases: Vec<Phase>,
    /// The scenarios of virtual users.
    pub scenarios: Vec<Scenario>,
    /// Runs once before the first virtual user; all virtual users get the variables it sets.
    pub before: Option<Hook>,
    /// Runs once after the summary.
    pub after: Option<Hook>,
    /// The numbers of the requests, in flows and in hooks.
    pub requests: Requests,
    /// Every variable name in the script.
    pub names: Arc<VariableNames>,
    /// The first variables of every virtual user in order: `target`, `$environment`, `$processEnvironment`, `$env`,
    /// `$testId`, `$dirname`, `$scenarioFile`. After them come those of `before`, a row of each payload, `variables`,
    /// `$uuid`.
    pub globals: Vec<(VariableSlot, Value)>,
    /// `config.payload`.
    pub payloads: Vec<Payload>,
    /// `config.variables`.
    pub variables: Vec<(VariableSlot, Initial)>,
    /// `config.http`, and its keys in their legacy places.
    pub http: HttpConfig,
    /// `config.ws`.
    pub ws: WsConfig,
    /// `config.socketio`: options of socket.io-client, rendered per virtual user.
    pub socketio: Tree,
    /// `config.tls`.
    pub tls: Map,
    /// `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, for requests.
    pub proxies: Proxies,
    /// `config.timeout`: the legacy key, which wins over `http.timeout`.
    pub timeout: Option<Duration>,
    /// `config.processor`.
    pub processor: Option<PathBuf>,
    /// `config.plugins`, and plugin options in their legacy places.
    pub plugins: Plugins,
    /// Files besides the script's own that were read or will be read: CSV, forms, the processor. Absolute paths.
    pub files: Vec<PathBuf>,
    /// Warnings for the user before the run, one sentence each.
    pub warnings: Vec<Said>,
}

/// A phase of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Its name, `unnamed` if it has none.
    pub name: String,
    /// As the console shows it: `6s`, `5m`.
    pub shown: String,
    /// The duration.
    pub duration: Duration,
    /// The arrivals.
    pub arrivals: Arrivals,
    /// Most virtual users at the same time; above it, new ones are dropped and counted as skipped.
    pub vusers_max: Option<u64>,
}

/// How virtual users arrive in a phase (artillery.md §1.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// No arrivals.
    Pause,
    /// This many in all, evenly spread.
    Count(u64),
    /// This many a second, evenly spread.
    Rate(f64),
    /// This many a second on average, at random (`mode: poisson`).
    Poisson(f64),
    /// A rate that changes from the first to the second number a second, in steps of a second.
    Ramp(f64, f64),
}

/// The first value of a variable.
#[derive(Clone, Debug)]
pub enum Initial {
    /// This value.
    Fixed(Value),
    /// One of these values, at random for each virtual user.
    OneOf(Vec<Value>),
}

/// Rows of a CSV file.
#[derive(Debug)]
pub struct Payload {
    /// The variables for the columns.
    pub fields: Vec<VariableSlot>,
    /// The rows, each as long as `fields`.
    pub rows: Vec<Vec<Value>>,
    /// True: rows in order; false: rows at random.
    pub is_sequence: bool,
    /// `loadAll`: the variable that gets all rows, as one value.
    pub all: Option<(VariableSlot, Value)>,
}

/// `before` or `after`.
#[derive(Debug)]
pub struct Hook {
    /// The engine that speaks to the target.
    pub engine: Engine,
    /// The steps.
    pub flow: Flow,
}

/// One kind of virtual user.
#[derive(Debug)]
pub struct Scenario {
    /// The name, or the index as text.
    pub name: Arc<str>,
    /// Relative frequency; 0: never.
    pub weight: u32,
    /// The engine that speaks to the target.
    pub engine: Engine,
    /// The steps; `beforeScenario` and `afterScenario` are function steps at their beginning and end.
    pub flow: Flow,
    /// Functions called before every request.
    pub before_request: Vec<Template>,
    /// Functions called after every response.
    pub after_response: Vec<Template>,
    /// Functions called with the error of a request.
    pub on_error: Vec<Template>,
    /// `socketio`: merged over `config.socketio`.
    pub socketio: Option<Tree>,
    /// The scenario as the script wrote it: `context.scenario` of a processor.
    pub spec: Value,
}

/// The engine of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// HTTP requests.
    Http,
    /// One WebSocket.
    Ws,
    /// Socket.IO 4, with requests in between.
    SocketIo,
}

/// Steps, one after another.
pub type Flow = Vec<Step>;

/// One step of a flow.
#[derive(Debug)]
pub enum Step {
    /// A request.
    Request(Box<Request>),
    /// `think`.
    Think(Think),
    /// `log`.
    Log(Template),
    /// `function`: a processor's function by name.
    Function(Template),
    /// `loop`.
    Loop(Box<Loop>),
    /// `parallel`: runs all steps at the same time, at most `limit` at once.
    Parallel {
        /// The steps.
        steps: Flow,
        /// Most steps at the same time.
        limit: usize,
    },
    /// ws `send`, with the captures and matches for the next message.
    Send {
        /// The data to send: a text unchanged, any other value as JSON.
        payload: Tree,
        /// Captures and matches; if there are any, the step waits for the next message.
        then: Option<Box<Take>>,
    },
    /// ws `wait`.
    Wait(Box<Take>),
    /// ws `connect`; it has an effect only as the first step.
    Connect(Box<Connect>),
    /// socketio `emit`.
    Emit(Box<Emit>),
}

/// `loop`.
#[derive(Debug)]
pub struct Loop {
    /// The steps.
    pub flow: Flow,
    /// Number of rounds.
    pub times: LoopTimes,
    /// `whileTrue`: evaluated after each round.
    pub while_true: Option<String>,
    /// The variable with the counter: `$loopCount`, or the name in `loopValue`.
    pub count: VariableSlot,
    /// The variable with the element: `$loopElement`, or another name.
    pub element: VariableSlot,
    /// `from`: the first value of the counter.
    pub from: i64,
}

/// The number of rounds of a loop.
#[derive(Debug)]
pub enum LoopTimes {
    /// Without end.
    Forever,
    /// Known in advance: from (inclusive) to (exclusive).
    Range(i64, i64),
    /// A text rendered when the loop begins (`count: "{{ n }}"`).
    Rendered(Template),
    /// One round for each of these values.
    Over(Vec<Value>),
    /// One round for each element of a variable.
    OverVariable(VariableSlot),
    /// One round for each element of a value inside a variable (`over: a.b`).
    OverPath(Template),
}

/// `think`.
#[derive(Debug)]
pub struct Think {
    /// The duration if it is known in advance; otherwise a text that is rendered and parsed at run time.
    pub time: Result<Duration, Template>,
    /// Random deviation: the step's own, or that of the engine's `defaults.think`.
    pub jitter: Option<Jitter>,
}

/// `jitter` of a think.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Jitter {
    /// This time.
    Time(Duration),
    /// This share of the time, 0 to 1.
    Part(f64),
}

/// Gives numbers to the requests of a plan while it is made.
#[derive(Debug, Default)]
pub struct Requests(usize);

impl Requests {
    /// The number of the next request.
    pub fn number(&mut self) -> RequestNumber {
        self.0 += 1;
        RequestNumber(self.0 - 1)
    }

    /// Number of numbers given.
    pub fn count(&self) -> usize {
        self.0
    }
}

/// A request's number in its plan, from 0: the index of the worker's compiled request.
///
/// Only [`Requests`] makes these numbers, so no two requests of a plan have the same one.
#[derive(Debug, PartialEq, Eq)]
pub struct RequestNumber(usize);

impl RequestNumber {
    /// As an index.
    pub fn index(&self) -> usize {
        self.0
    }
}

/// A request of the http engine (artillery.md §2.1).
#[derive(Debug)]
pub struct Request {
    /// Its number in the plan.
    pub number: RequestNumber,
    /// `GET` and so on, upper case.
    pub method: String,
    /// `url` or `uri`.
    pub url: Option<Template>,
    /// `name`.
    pub name: Option<Template>,
    /// `headers`, names in lower case.
    pub headers: Vec<(String, Template)>,
    /// `json`, `body`, `form` or `formData`.
    pub body: RequestBody,
    /// `qs`.
    pub query: Option<Tree>,
    /// `cookie`.
    pub cookies: Vec<(String, Template)>,
    /// `auth`.
    pub auth: Option<(Template, Template)>,
    /// `http2`: `true` uses HTTP/2 by ALPN, `false` uses HTTP/1.1; `None`: as `config.http` says.
    pub http2: Option<bool>,
    /// `gzip`; `None` means on.
    pub gzip: Option<bool>,
    /// `followRedirect`.
    pub follows: bool,
    /// `allowGetBody`.
    pub allow_get_body: bool,
    /// `capture`.
    pub captures: Vec<Capture>,
    /// `match`.
    pub matches: Vec<CaptureMatch>,
    /// `expect`, in order: the check's name and its expected value.
    pub expect: Vec<(String, Tree)>,
    /// `beforeRequest`.
    pub before_request: Vec<Template>,
    /// `afterResponse`.
    pub after_response: Vec<Template>,
    /// `ifTrue`.
    pub if_true: Option<Condition>,
    /// `probability`, 0 to 100.
    pub probability: Option<f64>,
    /// The step as the script wrote it: `requestParams` of a processor.
    pub spec: Value,
}

/// `ifTrue`: a processor's function with this name, or else an expression.
#[derive(Debug)]
pub struct Condition {
    /// The text in the script.
    pub text: String,
    /// The compiled expression; `None` if the text is not an expression: then the step runs.
    pub expression: Option<Expression>,
}

/// A request's body.
#[derive(Debug)]
pub enum RequestBody {
    /// No body.
    None,
    /// `json`.
    Json(Tree),
    /// `body`.
    Raw(Template),
    /// `form`.
    Form(Vec<(String, Tree)>),
    /// `formData`.
    Multipart {
        /// The parts.
        parts: Vec<(String, FormPart)>,
        /// `setContentLengthHeader`.
        sets_length: bool,
    },
}

/// A part of `formData`.
#[derive(Debug)]
pub enum FormPart {
    /// A value.
    Value(Tree, Option<String>),
    /// `fromFile`: read when the run begins; absolute.
    File(PathBuf, Arc<[u8]>, Option<String>),
    /// `fromFile` with a template in it: read when the request is made, from the plan's `dir`.
    FileNamed(Template, Option<String>),
}

/// The captures and matches for one message.
#[derive(Debug, Default)]
pub struct Take {
    /// `capture`.
    pub captures: Vec<Capture>,
    /// `match`.
    pub matches: Vec<CaptureMatch>,
}

/// ws `connect`.
#[derive(Debug)]
pub enum Connect {
    /// A URL.
    Url(Template),
    /// `{target, headers, subprotocols, …}`.
    Options(Tree),
    /// `{function: name}`.
    Function(String),
}

/// socketio `emit` (artillery.md §2.5).
#[derive(Debug)]
pub struct Emit {
    /// The event and its arguments; `None` if the step only listens.
    pub message: Option<(Template, Vec<Tree>)>,
    /// `namespace`; `None` or the empty text means the default namespace.
    pub namespace: Option<Template>,
    /// `response`.
    pub response: Option<Response>,
    /// `acknowledge`.
    pub acknowledge: Option<Expected>,
}

/// socketio `response`.
#[derive(Debug)]
pub struct Response {
    /// `channel` or `on`.
    pub channel: Template,
    /// `concat`.
    pub concat: bool,
    /// The expected arguments, with captures and matches.
    pub expected: Expected,
}

/// The expected arguments of a message or acknowledgement.
#[derive(Debug, Default)]
pub struct Expected {
    /// `data` or `args`.
    pub data: Option<Tree>,
    /// `capture` and `match`.
    pub take: Take,
}

/// `config.http` (artillery.md §1.7).
#[derive(Debug, Default)]
pub struct HttpConfig {
    /// `timeout`.
    pub timeout: Option<Duration>,
    /// `pool`: sockets that all virtual users share.
    pub pool: Option<usize>,
    /// `http2` or `http3`, weir's own: all requests use it; HTTP/2 with prior knowledge over `http://`.
    pub protocol: Option<Protocol>,
    /// `maxSockets`: sockets of one virtual user; 1 if not set.
    pub sockets_max: Option<usize>,
    /// `extendedMetrics`.
    pub extended_metrics: bool,
    /// `defaults.headers`, names in lower case; `None`: Artillery's own headers.
    pub headers: Option<Vec<(String, Template)>>,
    /// `defaults.cookie`.
    pub cookies: Vec<(String, Template)>,
    /// `defaults.strictCapture`.
    pub strict_capture: Option<bool>,
    /// `distributedTracing`: sampled, prefix of the trace id.
    pub tracing: Option<(bool, String)>,
    /// `cookieJarOptions`.
    pub cookie_rules: Rules,
}

/// `config.ws` (artillery.md §2.4).
#[derive(Debug, Default)]
pub struct WsConfig {
    /// `headers`.
    pub headers: Vec<(String, Template)>,
    /// `subprotocols`.
    pub subprotocols: Vec<String>,
    /// `timeout`: for a capture; default 10 s.
    pub timeout: Option<Duration>,
    /// All other keys, as options of the npm module `ws`.
    pub options: Map,
}

/// `config.plugins` (artillery.md §5); a plugin that must run is present.
#[derive(Debug, Default)]
pub struct Plugins {
    /// `ensure`, its options as the script wrote them.
    pub ensure: Option<Value>,
    /// `expect`, its options as the script wrote them.
    pub expect: Option<Value>,
    /// `metrics-by-endpoint`; `None` if the script does not name it: then it runs with Artillery's hidden options.
    pub by_endpoint: Option<Value>,
    /// `apdex`: the threshold in ms.
    pub apdex: Option<f64>,
    /// `fake-data`, its options as the script wrote them.
    pub fake_data: Option<Value>,
    /// `publish-metrics`: the reporters that get metrics.
    pub publish: Vec<Reporter>,
    /// `slack`, `memory-inspector` and unknown plugins: name and options; each causes a warning.
    pub others: Vec<(String, Value)>,
}
