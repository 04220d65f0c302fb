//! `config.processor`: functions in JavaScript that a script's steps and hooks name (artillery.md §1.6).
//!
//! ```text
//!   walk, engines, templates -> Processor -+- quick  QuickJS in this thread: plain files, a few of Node's modules
//!                                          '- node   a Node child: npm packages, all of Node, TypeScript
//! ```
//!
//! weir tries QuickJS first. When it loads the files, it checks their imports and the globals they mention, and so
//! finds out if they need Node before the run begins. Functions get Artillery's arguments and objects in both
//! engines. Not here: npm's resolution, which Node does; plugins.

pub(crate) mod convert;
mod files;
mod known;
mod loading;
mod natives;
mod node;
pub mod params;
mod quick;
mod state;
mod wire;
pub mod wires;

use std::path::Path;
use std::rc::Rc;

use crate::engine::http::session::Session;
use crate::record::Recorder;
use crate::value::{Map, Value};
use crate::vars::Vars;

pub use params::{Form, Params, member};

use node::Node;
use params::Made;
use quick::Quick;
use state::{Outcome, State};
use wires::Wires;

/// Virtual users for whom weir keeps values that a [`Value`] cannot hold; above this number, all of them are
/// forgotten.
const KEPT_MAX: usize = 50_000;

/// The inputs of a hook.
pub struct Context<'c> {
    /// `context.vars`.
    pub vars: &'c mut Vars,
    /// `context.scenario`.
    pub scenario: &'c Value,
    /// `$uuid` and `context._uid`.
    pub uid: &'c str,
    /// The virtual user's cookies: `context._jar`.
    pub session: &'c Session,
    /// The virtual user's open connections: `context.sockets`, `context.ws`.
    pub wires: Option<&'c Rc<Wires>>,
    /// Records `ee.emit('counter' | 'histogram' | 'rate' | 'error', …)`.
    pub recorder: &'c Recorder,
}

/// Facts about the run for a processor, and the output for its lines.
#[derive(Clone)]
pub struct Host {
    /// Called with the text of `console.log` and `artillery.log`, one line or several.
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

/// The kind of function, which sets its arguments. The numbers are those of calls.js and host.js.
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

/// The engine to use; the environment variable `WEIR_JS` forces one: `quickjs` or `node`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// QuickJS, unless the files need Node.
    Fitting,
    /// QuickJS, even if the files need Node.
    QuickJs,
    /// Node.
    Node,
}

impl Choice {
    /// The choice in `WEIR_JS`.
    pub fn from_environment() -> Choice {
        match std::env::var("WEIR_JS").as_deref() {
            Ok("quickjs") => Choice::QuickJs,
            Ok("node") => Choice::Node,
            _ => Choice::Fitting,
        }
    }
}

/// The file to load, in the form for JavaScript.
struct Facts {
    /// The absolute path of the file.
    file: String,
    /// The current folder.
    folder: String,
    /// QuickJS must be used even if the files need Node.
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
    /// Loads the file. The error is for the user: the problem, the place, and the remedy.
    pub fn load(path: &Path) -> Result<Processor, String> {
        Processor::load_with(path, Host::default(), Choice::from_environment())
    }

    /// Loads the file for a run. Its top-level code runs here, for at most [`quick::LOAD_MAX`].
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

    /// The name of the engine, `QuickJS` or `Node`.
    pub fn engine(&self) -> &'static str {
        match self.engine {
            Engine::Quick(_) => "QuickJS",
            Engine::Node(_) => "Node",
        }
    }

    /// True if the file exports a function with this name.
    pub fn has(&self, name: &str) -> bool {
        match &self.engine {
            Engine::Quick(quick) => quick.has(name),
            Engine::Node(node) => node.has(name),
        }
    }

    /// Calls a `function` step, `beforeScenario` or `afterScenario`. The error is the name after `errors.`.
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

    /// `onError`; its result has no effect.
    pub async fn on_error(&self, name: &str, error: &str, params: &Value, context: Context<'_>) {
        let mut members = Map::default();
        members.insert("message".into(), error.into());
        // A system error has only a code, such as `ECONNREFUSED`; other errors are sentences.
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

    /// Calls a function that the processor added to `context.funcs`, for a template. With Node, this thread waits for
    /// the result.
    pub fn template(&self, name: &str, arguments: &[Value]) -> Option<Value> {
        match &self.engine {
            Engine::Quick(quick) => quick.template(name, arguments),
            Engine::Node(node) => node.template(name, arguments),
        }
    }

    /// Ends a virtual user: forgets the values that its functions left besides the variables.
    pub fn forget(&self, uid: &str) {
        match &self.engine {
            Engine::Quick(quick) => quick.forget(uid),
            Engine::Node(node) => node.forget(uid),
        }
    }

    /// Counts metrics that were emitted after the last call ended, for example by timers. Called at the end of a run.
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

/// Checks that QuickJS may be tried; the error says why not.
fn plain(path: &Path, choice: Choice) -> Result<(), String> {
    if choice == Choice::Node {
        Err("WEIR_JS=node".to_owned())
    } else if files::is_typescript(path) {
        Err("it is TypeScript".to_owned())
    } else {
        Ok(())
    }
}

/// Handles a file that QuickJS refused.
fn otherwise<T>(
    refused: quick::Refused,
    choice: Choice,
    in_node: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, String> {
    match refused.needs_node {
        Some(why) if choice == Choice::Fitting => in_node(&why),
        // Either the file is wrong, or QuickJS lacks a feature: Node can tell.
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
        format!("this processor needs Node.js ({why}), and PATH has no `node`; install it (`apt install nodejs`) and run again")
    })
}

#[cfg(test)]
mod tests;
