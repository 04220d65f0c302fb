//! `capture` and `match` on one message.

use crate::capture::{self, CapturedMessage};
use crate::plan::Take;
use crate::value::Value;
use crate::vuser::Vuser;

/// Runs captures and matches. Returns false if the virtual user fails; then nothing is captured.
///
/// Only an explicit `strict: false` is lenient: `defaults.strictCapture` applies to the http engine only.
pub(crate) fn take(vuser: &mut Vuser, take: &Take, message: &[u8]) -> bool {
    let message = CapturedMessage::new(message, &|_| Value::Undefined);
    let functions = &*vuser.worker.functions;
    capture::take((&take.captures, &take.matches), &message, &mut vuser.vars, functions, None)
}

/// The same for the arguments of an event, by the socketio engine's rules: a capture that finds nothing is no
/// failure; a failed match is one, strict or not.
pub(crate) fn take_arguments(vuser: &mut Vuser, take: &Take, arguments: Value) -> bool {
    let message = CapturedMessage::of_value(arguments);
    let functions = &*vuser.worker.functions;
    if !take.matches.iter().all(|one| one.holds(&message, &vuser.vars, functions)) {
        return false;
    }
    // One at a time, so that a capture without a result does not stop the others.
    for capture in take.captures.chunks(1) {
        capture::take((capture, &[]), &message, &mut vuser.vars, functions, Some(false));
    }
    true
}
