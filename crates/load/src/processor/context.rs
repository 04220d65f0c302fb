//! The inputs of a processor's function besides its arguments.

use std::rc::Rc;

use super::wires::Wires;
use crate::engine::http::session::HttpSession;
use crate::record::Recorder;
use crate::value::Value;
use crate::vars::Vars;

/// The inputs of a hook.
pub struct Context<'c> {
    /// `context.vars`.
    pub vars: &'c mut Vars,
    /// `context.scenario`.
    pub scenario: &'c Value,
    /// `$uuid` and `context._uid`.
    pub uid: &'c str,
    /// The virtual user's cookies: `context._jar`.
    pub session: &'c HttpSession,
    /// The virtual user's open connections: `context.sockets`, `context.ws`.
    pub wires: Option<&'c Rc<Wires>>,
    /// Records `ee.emit('counter' | 'histogram' | 'rate' | 'error', …)`.
    pub recorder: &'c Recorder,
}
