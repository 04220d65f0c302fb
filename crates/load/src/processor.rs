//! `config.processor`: functions in JavaScript that a script's steps and hooks name (artillery.md §1.6).

use std::path::Path;

use crate::record::Recorder;
use crate::value::Value;
use crate::vars::Vars;

/// TEMP
pub fn load_script(path: &Path) -> Result<Value, String> {
    Err(format!("{}: scripts in JavaScript are not there yet", path.display()))
}

/// What a hook works on.
pub struct Context<'c> {
    /// `context.vars`.
    pub vars: &'c mut Vars,
    /// `context.scenario`.
    pub scenario: &'c Value,
    /// `$uuid` and `context._uid`.
    pub uid: &'c str,
    /// `ee.emit('counter' | 'histogram' | 'rate' | 'error', …)` ends here.
    pub recorder: &'c Recorder,
}

/// A loaded processor; one per worker thread.
pub struct Processor {}

impl Processor {
    /// Loads the file. The error is for the user: what is wrong, where, and what to do.
    pub fn load(path: &Path) -> Result<Processor, String> {
        Err(format!("{}: processors are not there yet", path.display()))
    }

    /// Whether it exports a function of that name.
    pub fn has(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// A `function` step, `beforeScenario` or `afterScenario`. The error is the name after `errors.`.
    pub async fn function(&self, name: &str, context: Context<'_>) -> Result<(), String> {
        let _ = (name, context);
        Ok(())
    }

    /// `beforeRequest`: may change `params`.
    pub async fn before_request(&self, name: &str, params: &mut Value, context: Context<'_>) -> Result<(), String> {
        let _ = (name, params, context);
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
        let _ = (name, params, response, context);
        Ok(())
    }

    /// `onError`.
    pub async fn on_error(&self, name: &str, error: &str, params: &Value, context: Context<'_>) {
        let _ = (name, error, params, context);
    }

    /// `whileTrue`.
    pub async fn while_true(&self, name: &str, context: Context<'_>) -> Result<bool, String> {
        let _ = (name, context);
        Ok(false)
    }

    /// `ifTrue`.
    pub async fn if_true(&self, name: &str, context: Context<'_>) -> Result<bool, String> {
        let _ = (name, context);
        Ok(true)
    }

    /// ws `connect: {function}`: may change `args`, which hold `target`, `subprotocols` and `options`.
    pub async fn ws_connect(&self, name: &str, args: &mut Value, context: Context<'_>) -> Result<(), String> {
        let _ = (name, args, context);
        Ok(())
    }

    /// A function a template calls that the processor added to `context.funcs`.
    pub fn template(&self, name: &str, arguments: &[Value]) -> Option<Value> {
        let _ = (name, arguments);
        None
    }
}
