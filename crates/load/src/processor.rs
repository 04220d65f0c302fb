//! `config.processor`: functions in JavaScript that a script's steps and hooks name (artillery.md §1.6).
//!
//! ```text
//!   walk, engines, templates -> Processor -+- quick  QuickJS in this thread: plain files, a few of Node's modules
//!                                          '- node   a Node child: npm packages, all of Node, TypeScript
//! ```
//!
//! QuickJS is tried first. What it lacks is found when the files are loaded, by what they import and which globals
//! they mention, so that a run does not find out in its middle. Functions see Artillery's arguments and objects in both.
//! Not here: npm's resolution, which is Node's; plugins.

mod convert;
mod files;
mod known;
mod loading;
mod natives;
mod node;
mod params;
mod quick;
mod state;
mod wire;
pub mod wires;

use std::path::Path;
use std::rc::Rc;

use crate::engine::http::Session;
use crate::record::Recorder;
use crate::value::{Map, Value};
use crate::vars::Vars;

pub use params::{Form, Params, member};

use node::Node;
use params::Made;
use quick::Quick;
use state::{Outcome, State};
use wires::Wires;

/// Virtual users for whom something is kept that a [`Value`] cannot hold; with more, all of it is forgotten.
const KEPT_MAX: usize = 50_000;

/// What a hook works on.
pub struct Context<'c> {
    /// `context.vars`.
    pub vars: &'c mut Vars,
    /// `context.scenario`.
    pub scenario: &'c Value,
    /// `$uuid` and `context._uid`.
    pub uid: &'c str,
    /// Its cookies: `context._jar`.
    pub session: &'c Session,
    /// Its open connections: `context.sockets`, `context.ws`.
    pub wires: Option<&'c Rc<Wires>>,
    /// `ee.emit('counter' | 'histogram' | 'rate' | 'error', …)` ends here.
    pub recorder: &'c Recorder,
}

/// What a processor is told about the run, and where its lines go.
#[derive(Clone)]
pub struct Host {
    /// Takes what `console.log` and `artillery.log` print, a line or several.
    pub say: Rc<dyn Fn(String)>,
    /// `artillery.testRunId`.
    pub test_run_id: String,
    /// `artillery.version`.
    pub version: &'static str,
}

impl Default for Host {
    /// Prints to stdout.
    fn default() -> Host {
        Host { say: Rc::new(|line| println!("{line}")), test_run_id: String::new(), version: "2.0.34" }
    }
}

/// Which function is called, and so with what: the numbers are those of calls.js and host.js.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Function = 0,
    BeforeRequest = 1,
    AfterResponse = 2,
    OnError = 3,
    WhileTrue = 4,
    IfTrue = 5,
    Connect = 6,
}

/// Which engine runs it; the environment variable `WEIR_JS` is `quickjs` or `node` to force one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// QuickJS, unless the files need Node.
    Fitting,
    /// QuickJS, whatever the files say.
    QuickJs,
    /// Node.
    Node,
}

impl Choice {
    /// What `WEIR_JS` says.
    pub fn from_environment() -> Choice {
        match std::env::var("WEIR_JS").as_deref() {
            Ok("quickjs") => Choice::QuickJs,
            Ok("node") => Choice::Node,
            _ => Choice::Fitting,
        }
    }
}

/// The file to load, as JavaScript sees it.
struct Facts {
    /// Its path, absolute.
    file: String,
    /// The current folder.
    folder: String,
    /// QuickJS is to be used whatever the files say.
    is_forced: bool,
}

impl Facts {
    fn new(path: &Path, choice: Choice) -> Result<Facts, String> {
        let folder = std::env::current_dir().map_err(|error| format!("current folder: {error}"))?;
        let file = files::plain(&folder.join(path));
        if !file.is_file() {
            return Err(format!("{}: there is no such file", path.display()));
        }
        let text =
            |path: &Path| path.to_str().map(str::to_owned).ok_or_else(|| format!("{}: is not UTF-8", path.display()));
        Ok(Facts { file: text(&file)?, folder: text(&folder)?, is_forced: choice == Choice::QuickJs })
    }
}

/// A loaded processor; one per worker thread.
pub struct Processor {
    engine: Engine,
}

enum Engine {
    Quick(Rc<Quick>),
    Node(Box<Node>),
}

impl Processor {
    /// Loads the file. The error is for the user: what is wrong, where, and what to do.
    pub fn load(path: &Path) -> Result<Processor, String> {
        Processor::load_with(path, Host::default(), Choice::from_environment())
    }

    /// Loads the file for a run. Its top level runs now, and may take as long as [`quick::LOAD_MAX`].
    pub fn load_with(path: &Path, host: Host, choice: Choice) -> Result<Processor, String> {
        let facts = Facts::new(path, choice)?;
        if let Err(why) = plain(path, choice) {
            return in_node(&facts, host, &why).map_err(|error| format!("{}: {error}", path.display()));
        }
        match Quick::load(&facts, host.clone()) {
            Ok(quick) => Ok(Processor { engine: Engine::Quick(quick) }),
            Err(refused) => otherwise(refused, choice, |why| in_node(&facts, host, why))
                .map_err(|error| format!("{}: {error}", path.display())),
        }
    }

    /// `QuickJS` or `Node`, for who wants to know.
    pub fn engine(&self) -> &'static str {
        match self.engine {
            Engine::Quick(_) => "QuickJS",
            Engine::Node(_) => "Node",
        }
    }

    /// Whether it exports a function of that name.
    pub fn has(&self, name: &str) -> bool {
        match &self.engine {
            Engine::Quick(quick) => quick.has(name),
            Engine::Node(node) => node.has(name),
        }
    }

    /// A `function` step, `beforeScenario` or `afterScenario`. The error is the name after `errors.`.
    pub async fn function(&self, name: &str, context: Context<'_>) -> Result<(), String> {
        self.call(name, Kind::Function, [&Value::Undefined; 2], context).await.map(drop)
    }

    /// `beforeRequest`: may change `params`.
    pub async fn before_request(&self, name: &str, params: &mut Params, context: Context<'_>) -> Result<(), String> {
        let made = match &self.engine {
            Engine::Quick(quick) => quick.call_before(name, params, context).await?,
            Engine::Node(node) => {
                let given = params.value();
                Made::Whole(node.call(name, Kind::BeforeRequest, [&given, &Value::Undefined], context).await?)
            }
        };
        params.make(made);
        Ok(())
    }

    /// `afterResponse`.
    pub async fn after_response(
        &self,
        name: &str,
        params: &Value,
        response: &Value,
        context: Context<'_>,
    ) -> Result<(), String> {
        self.call(name, Kind::AfterResponse, [params, response], context).await.map(drop)
    }

    /// `onError`; what it answers changes nothing.
    pub async fn on_error(&self, name: &str, error: &str, params: &Value, context: Context<'_>) {
        let mut members = Map::default();
        members.insert("message".into(), error.into());
        // An error of the system is its code, such as `ECONNREFUSED`; others are sentences.
        if !error.contains(' ') {
            members.insert("code".into(), error.into());
        }
        let _ = self.call(name, Kind::OnError, [&Value::from(members), params], context).await;
    }

    /// `whileTrue`.
    pub async fn while_true(&self, name: &str, context: Context<'_>) -> Result<bool, String> {
        Ok(self.call(name, Kind::WhileTrue, [&Value::Undefined; 2], context).await?.is_truthy())
    }

    /// `ifTrue`.
    pub async fn if_true(&self, name: &str, context: Context<'_>) -> Result<bool, String> {
        Ok(self.call(name, Kind::IfTrue, [&Value::Undefined; 2], context).await?.is_truthy())
    }

    /// `connect.function` of a WebSocket scenario: may change `{target, subprotocols, options}`.
    pub async fn ws_connect(&self, name: &str, arguments: &mut Value, context: Context<'_>) -> Result<(), String> {
        *arguments = self.call(name, Kind::Connect, [arguments, &Value::Undefined], context).await?;
        Ok(())
    }

    /// A function a template calls that the processor added to `context.funcs`. One in Node is waited for here.
    pub fn template(&self, name: &str, arguments: &[Value]) -> Option<Value> {
        match &self.engine {
            Engine::Quick(quick) => quick.template(name, arguments),
            Engine::Node(node) => node.template(name, arguments),
        }
    }

    /// A virtual user is over: what its functions left beside its variables is forgotten.
    pub fn forget(&self, uid: &str) {
        match &self.engine {
            Engine::Quick(quick) => quick.forget(uid),
            Engine::Node(node) => node.forget(uid),
        }
    }

    /// Counts what was emitted since the last call ended, by timers say; at the end of a run.
    pub fn flush(&self, recorder: &Recorder) {
        self.state().record(recorder);
    }

    /// `artillery.suggestedExitCode`, if a function set it.
    pub fn exit_code(&self) -> Option<i32> {
        self.state().exit_code.get()
    }

    fn state(&self) -> &State {
        match &self.engine {
            Engine::Quick(quick) => &quick.state,
            Engine::Node(node) => &node.state,
        }
    }

    async fn call(&self, name: &str, kind: Kind, arguments: [&Value; 2], context: Context<'_>) -> Outcome {
        match &self.engine {
            Engine::Quick(quick) => quick.call(name, kind, arguments, context).await,
            Engine::Node(node) => node.call(name, kind, arguments, context).await,
        }
    }
}

/// Loads a script written in JavaScript or TypeScript: `config`, `scenarios` and the rest, functions as their names.
///
/// The error is for the user.
pub fn load_script(path: &Path) -> Result<Value, String> {
    let choice = Choice::from_environment();
    let facts = Facts::new(path, choice)?;
    let host = Host::default();
    let node = |why: &str| node::script(&found(why)?, &facts, &host);
    let script = match plain(path, choice) {
        Err(why) => node(&why),
        Ok(()) => quick::script(&facts, host.clone()).or_else(|refused| otherwise(refused, choice, node)),
    };
    script.map_err(|error| format!("{}: {error}", path.display()))
}

/// Whether QuickJS may be tried; otherwise why not.
fn plain(path: &Path, choice: Choice) -> Result<(), String> {
    if choice == Choice::Node {
        Err("WEIR_JS=node".to_owned())
    } else if files::is_typescript(path) {
        Err("it is TypeScript".to_owned())
    } else {
        Ok(())
    }
}

/// What to do when QuickJS refused a file.
fn otherwise<T>(
    refused: quick::Refused,
    choice: Choice,
    in_node: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, String> {
    match refused.needs_node {
        Some(why) if choice == Choice::Fitting => in_node(&why),
        // It may be the file's own mistake, or something that QuickJS lacks: Node knows.
        None if choice == Choice::Fitting && node::find().is_some() => in_node(&refused.message),
        _ => Err(refused.message),
    }
}

fn in_node(facts: &Facts, host: Host, why: &str) -> Result<Processor, String> {
    let node = Node::load(&found(why)?, facts, host)?;
    Ok(Processor { engine: Engine::Node(Box::new(node)) })
}

fn found(why: &str) -> Result<std::path::PathBuf, String> {
    node::find().ok_or_else(|| {
        format!("this needs Node.js ({why}), and there is no `node` on PATH; install it (`apt install nodejs`) and run again")
    })
}

#[cfg(test)]
mod tests;
