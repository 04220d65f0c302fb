//! A script made ready to run: immutable, shared by all workers, everything looked up that can be.
//!
//! `script` makes one from YAML or JSON; `vuser` walks it. Terms are Artillery's.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::capture::{Capture, Match};
use crate::client::Proxies;
use crate::cookie::Rules;
use crate::expression::Expression;
use crate::publish::Reporter;
use crate::template::{Template, Tree};
use crate::value::{Map, Value};
use crate::vars::{Names, Slot};

/// A script made ready to run.
#[derive(Debug)]
pub struct Plan {
    /// The first script file, absolute: `$scenarioFile`.
    pub file: PathBuf,
    /// Where relative paths of the script begin.
    pub dir: PathBuf,
    /// `config.target`.
    pub target: Arc<str>,
    /// What arrives when, in order.
    pub phases: Vec<Phase>,
    /// What a virtual user may do.
    pub scenarios: Vec<Scenario>,
    /// Runs once before the first virtual user; the variables it leaves are everybody's.
    pub before: Option<Hook>,
    /// Runs once after the summary.
    pub after: Option<Hook>,
    /// How many requests there are, in flows and in hooks.
    pub requests: Requests,
    /// Every variable name mentioned.
    pub names: Arc<Names>,
    /// Every virtual user's first variables in order: `target`, `$environment`, `$processEnvironment`, `$env`,
    /// `$testId`, `$dirname`, `$scenarioFile`. Then come those of `before`, a row of each payload, `variables`, `$uuid`.
    pub globals: Vec<(Slot, Value)>,
    /// `config.payload`.
    pub payloads: Vec<Payload>,
    /// `config.variables`.
    pub variables: Vec<(Slot, Initial)>,
    /// `config.http`, with the legacy places of its keys.
    pub http: HttpConfig,
    /// `config.ws`.
    pub ws: WsConfig,
    /// `config.socketio`: options of socket.io-client, rendered per virtual user.
    pub socketio: Tree,
    /// `config.tls`.
    pub tls: Map,
    /// `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, for requests.
    pub proxies: Proxies,
    /// `config.timeout`: the legacy one, which wins over `http.timeout`.
    pub timeout: Option<Duration>,
    /// `config.processor`.
    pub processor: Option<PathBuf>,
    /// `config.plugins`, and what lies in their legacy places.
    pub plugins: Plugins,
    /// Files that were read or will be, besides the script's own: CSV, forms, the processor. Absolute.
    pub files: Vec<PathBuf>,
    /// What the user should know before the run, one sentence each.
    pub warnings: Vec<String>,
}

/// A stretch of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Its name, `unnamed` if it has none.
    pub name: String,
    /// As the console shows it: `6s`, `5m`.
    pub shown: String,
    /// How long.
    pub duration: Duration,
    /// What arrives.
    pub arrivals: Arrivals,
    /// No more virtual users at once than this: later ones are dropped and counted as skipped.
    pub vusers_max: Option<u64>,
}

/// How virtual users arrive in a phase (artillery.md §1.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// Nobody.
    Pause,
    /// So many in all, evenly spread.
    Count(u64),
    /// So many a second, evenly spread.
    Rate(f64),
    /// So many a second on average, at random (`mode: poisson`).
    Poisson(f64),
    /// From so many a second to so many, in steps of a second.
    Ramp(f64, f64),
}

/// The first value of a variable.
#[derive(Clone, Debug)]
pub enum Initial {
    /// This.
    Fixed(Value),
    /// One of these, at random for each virtual user.
    OneOf(Vec<Value>),
}

/// Rows of a CSV file.
#[derive(Debug)]
pub struct Payload {
    /// The variables the columns go to.
    pub fields: Vec<Slot>,
    /// The rows, each as long as `fields`.
    pub rows: Vec<Vec<Value>>,
    /// Rows in turn instead of at random.
    pub is_sequence: bool,
    /// `loadAll`: the variable that gets all rows, as one value.
    pub all: Option<(Slot, Value)>,
}

/// `before` or `after`.
#[derive(Debug)]
pub struct Hook {
    /// What speaks to the target.
    pub engine: Engine,
    /// The steps.
    pub flow: Flow,
}

/// One kind of virtual user.
#[derive(Debug)]
pub struct Scenario {
    /// Its name, or its index as text.
    pub name: Arc<str>,
    /// How often it is picked: 0 is never.
    pub weight: u32,
    /// What speaks to the target.
    pub engine: Engine,
    /// The steps; `beforeScenario` and `afterScenario` are function steps at its ends.
    pub flow: Flow,
    /// Functions called before every request.
    pub before_request: Vec<Template>,
    /// Functions called after every response.
    pub after_response: Vec<Template>,
    /// Functions called with the error of a request.
    pub on_error: Vec<Template>,
    /// `socketio`: merged over `config.socketio`.
    pub socketio: Option<Tree>,
    /// The scenario as written: `context.scenario` of a processor.
    pub spec: Value,
}

/// What a scenario speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Requests.
    Http,
    /// A WebSocket.
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
    /// `parallel`: each step at once, at most `limit` at a time.
    Parallel {
        /// The steps.
        steps: Flow,
        /// At most so many at a time.
        limit: usize,
    },
    /// ws `send`, with what is to be checked of the next message.
    Send {
        /// What is sent: text as it is, anything else as JSON.
        payload: Tree,
        /// Waits for the next message if there is something to take from it.
        then: Option<Box<Take>>,
    },
    /// ws `wait`.
    Wait(Box<Take>),
    /// ws `connect`; meaningful as the first step only.
    Connect(Box<Connect>),
    /// socketio `emit`.
    Emit(Box<Emit>),
}

/// `loop`.
#[derive(Debug)]
pub struct Loop {
    /// The steps.
    pub flow: Flow,
    /// How often.
    pub times: Times,
    /// `whileTrue`: asked after each round.
    pub while_true: Option<String>,
    /// The variable that counts: `$loopCount`, or `loopValue`'s.
    pub count: Slot,
    /// The variable of the element: `$loopElement`, or as renamed.
    pub element: Slot,
    /// `from`: what counting begins at.
    pub from: i64,
}

/// How often a loop goes round.
#[derive(Debug)]
pub enum Times {
    /// Without end.
    Forever,
    /// Known now: from (inclusive) to (exclusive).
    Range(i64, i64),
    /// A text rendered when the loop begins (`count: "{{ n }}"`).
    Rendered(Template),
    /// Once for each of these.
    Over(Vec<Value>),
    /// Once for each element of a variable.
    OverVariable(Slot),
    /// Once for each element of what lies inside a variable (`over: a.b`).
    OverPath(Template),
}

/// `think`.
#[derive(Debug)]
pub struct Think {
    /// How long, when known now; otherwise a text to render and read then.
    pub time: Result<Duration, Template>,
    /// More or less, at random: its own, or what `defaults.think` says for the engine.
    pub jitter: Option<Jitter>,
}

/// `jitter` of a think.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Jitter {
    /// So much.
    Time(Duration),
    /// So large a part of the time, 0 to 1.
    Part(f64),
}

/// The numbers given to the requests of a plan while it is made.
#[derive(Debug, Default)]
pub struct Requests(usize);

impl Requests {
    /// The number of the next request.
    pub fn number(&mut self) -> RequestNumber {
        self.0 += 1;
        RequestNumber(self.0 - 1)
    }

    /// How many numbers were given.
    pub fn count(&self) -> usize {
        self.0
    }
}

/// A request's number in its plan, from 0: what a worker makes of a request beforehand is found by it.
///
/// Only [`Requests`] makes one, so no two requests of a plan have the same.
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
    pub body: Body,
    /// `qs`.
    pub query: Option<Tree>,
    /// `cookie`.
    pub cookies: Vec<(String, Template)>,
    /// `auth`.
    pub auth: Option<(Template, Template)>,
    /// `http2`: by ALPN where `true`, not at all where `false`; `None` as `config.http.http2` says.
    pub http2: Option<bool>,
    /// `gzip`; `None` is on.
    pub gzip: Option<bool>,
    /// `followRedirect`.
    pub follows: bool,
    /// `allowGetBody`.
    pub allow_get_body: bool,
    /// `capture`.
    pub captures: Vec<Capture>,
    /// `match`.
    pub matches: Vec<Match>,
    /// `expect`, in order: the check's name and what it expects.
    pub expect: Vec<(String, Tree)>,
    /// `beforeRequest`.
    pub before_request: Vec<Template>,
    /// `afterResponse`.
    pub after_response: Vec<Template>,
    /// `ifTrue`.
    pub if_true: Option<Condition>,
    /// `probability`, 0 to 100.
    pub probability: Option<f64>,
    /// The step as written: `requestParams` of a processor.
    pub spec: Value,
}

/// `ifTrue`: a processor's function of that name, or else an expression.
#[derive(Debug)]
pub struct Condition {
    /// As written.
    pub text: String,
    /// As an expression; `None` when it is none: then the step runs.
    pub expression: Option<Expression>,
}

/// A request's body.
#[derive(Debug)]
pub enum Body {
    /// None.
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
        parts: Vec<(String, Part)>,
        /// `setContentLengthHeader`.
        sets_length: bool,
    },
}

/// A part of `formData`.
#[derive(Debug)]
pub enum Part {
    /// A value.
    Value(Tree, Option<String>),
    /// `fromFile`: read when the run begins; absolute.
    File(PathBuf, Arc<[u8]>, Option<String>),
    /// `fromFile` with a template in it: read when the request is made, from the plan's `dir`.
    FileNamed(Template, Option<String>),
}

/// What is taken from, or expected of, one message.
#[derive(Debug, Default)]
pub struct Take {
    /// `capture`.
    pub captures: Vec<Capture>,
    /// `match`.
    pub matches: Vec<Match>,
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
    /// The event and its arguments, or `None` when the step only listens.
    pub message: Option<(Template, Vec<Tree>)>,
    /// `namespace`; empty is the default one.
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
    /// The rest.
    pub expected: Expected,
}

/// What the arguments of a message or acknowledgement are to be.
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
    /// `pool`: sockets shared by everybody.
    pub pool: Option<usize>,
    /// `http2`, weir's own: everything over HTTP/2, with prior knowledge over `http://`.
    pub http2: bool,
    /// `maxSockets`: of one virtual user; 1 unless set.
    pub sockets_max: Option<usize>,
    /// `extendedMetrics`.
    pub extended_metrics: bool,
    /// `defaults.headers`, names in lower case; `None` leaves Artillery's own.
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
    /// `timeout`: for a capture; 10 s.
    pub timeout: Option<Duration>,
    /// The rest, as options of the npm module `ws`.
    pub options: Map,
}

/// `config.plugins` (artillery.md §5), each present if it is to run.
#[derive(Debug, Default)]
pub struct Plugins {
    /// `ensure`, its options as written.
    pub ensure: Option<Value>,
    /// `expect`, its options as written.
    pub expect: Option<Value>,
    /// `metrics-by-endpoint`; `None` when the script does not name it, and then it runs with Artillery's hidden options.
    pub by_endpoint: Option<Value>,
    /// `apdex`: the threshold in ms.
    pub apdex: Option<f64>,
    /// `fake-data`, its options as written.
    pub fake_data: Option<Value>,
    /// `publish-metrics`: the reporters that are sent to.
    pub publish: Vec<Reporter>,
    /// `slack`, `memory-inspector` and strangers: name and options, each with a warning.
    pub others: Vec<(String, Value)>,
}
