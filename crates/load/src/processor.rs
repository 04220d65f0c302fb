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

mod context;
pub(crate) mod convert;
mod files;
mod host;
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

use crate::record::Recorder;
use crate::value::{Map, Value};

pub use context::Context;
pub use host::{Choice, ProcessorHost};
pub use params::{Form, Params, member};

use host::ProcessorFile;
use node::NodeProcess;
use params::ParamChanges;
use quick::QuickJs;
use state::{CallResult, FunctionKind, ProcessorState};

/// A loaded processor; one per worker thread.
pub struct Processor {
    engine: Engine,
}

enum Engine {
    Quick(Rc<QuickJs>),
    Node(Box<NodeProcess>),
}

impl Processor {
    /// Loads the file. The error is for the user: the problem, the place, and the remedy.
    pub fn load(path: &Path) -> Result<Processor, String> {
        Processor::load_with(path, ProcessorHost::default(), Choice::from_environment())
    }

    /// Loads the file for a run. Its top-level code runs here, for at most [`quick::LOAD_MAX`].
    pub fn load_with(path: &Path, host: ProcessorHost, choice: Choice) -> Result<Processor, String> {
        let facts = ProcessorFile::new(path, choice)?;
        if let Err(why) = plain(path, choice) {
            return in_node(&facts, host, &why).map_err(|error| format!("{}: {error}", path.display()));
        }
        match QuickJs::load(&facts, host.clone()) {
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
        self.call(name, FunctionKind::Function, [&Value::Undefined; 2], context).await.map(drop)
    }

    /// `beforeRequest`: may change `params`.
    pub async fn before_request(&self, name: &str, params: &mut Params, context: Context<'_>) -> Result<(), String> {
        let made = match &self.engine {
            Engine::Quick(quick) => quick.call_before(name, params, context).await?,
            Engine::Node(node) => {
                let given = params.value();
                ParamChanges::Whole(
                    node.call(name, FunctionKind::BeforeRequest, [&given, &Value::Undefined], context).await?,
                )
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
        self.call(name, FunctionKind::AfterResponse, [params, response], context).await.map(drop)
    }

    /// `onError`; its result has no effect.
    pub async fn on_error(&self, name: &str, error: &str, params: &Value, context: Context<'_>) {
        let mut members = Map::default();
        members.insert("message".into(), error.into());
        // A system error has only a code, such as `ECONNREFUSED`; other errors are sentences.
        if !error.contains(' ') {
            members.insert("code".into(), error.into());
        }
        let _ = self.call(name, FunctionKind::OnError, [&Value::from(members), params], context).await;
    }

    /// `whileTrue`.
    pub async fn while_true(&self, name: &str, context: Context<'_>) -> Result<bool, String> {
        Ok(self.call(name, FunctionKind::WhileTrue, [&Value::Undefined; 2], context).await?.is_truthy())
    }

    /// `ifTrue`.
    pub async fn if_true(&self, name: &str, context: Context<'_>) -> Result<bool, String> {
        Ok(self.call(name, FunctionKind::IfTrue, [&Value::Undefined; 2], context).await?.is_truthy())
    }

    /// `connect.function` of a WebSocket scenario: may change `{target, subprotocols, options}`.
    pub async fn ws_connect(&self, name: &str, arguments: &mut Value, context: Context<'_>) -> Result<(), String> {
        *arguments = self.call(name, FunctionKind::Connect, [arguments, &Value::Undefined], context).await?;
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

    fn state(&self) -> &ProcessorState {
        match &self.engine {
            Engine::Quick(quick) => &quick.state,
            Engine::Node(node) => &node.state,
        }
    }

    async fn call(&self, name: &str, kind: FunctionKind, arguments: [&Value; 2], context: Context<'_>) -> CallResult {
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
    let facts = ProcessorFile::new(path, choice)?;
    let host = ProcessorHost::default();
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
    refused: quick::ProcessorRefused,
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

fn in_node(facts: &ProcessorFile, host: ProcessorHost, why: &str) -> Result<Processor, String> {
    let node = NodeProcess::load(&found(why)?, facts, host)?;
    Ok(Processor { engine: Engine::Node(Box::new(node)) })
}

fn found(why: &str) -> Result<std::path::PathBuf, String> {
    node::find().ok_or_else(|| {
        format!("this processor needs Node.js ({why}), and PATH has no `node`; install it (`apt install nodejs`) and run again")
    })
}

#[cfg(test)]
mod tests;
