//! `capture` and `match` on one message.

use crate::plan::Take;
use crate::vuser::Vuser;

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// All matched, everything captured is in its variable.
    All,
    /// Something strict did not match or was not there.
    Failed {
        /// Something did not match, strict or not.
        is_match: bool,
    },
    /// The message could not be read as asked, with the error's name.
    Broken(String),
}

/// Takes from a message what is asked, into the virtual user's variables.
pub(crate) fn take(vuser: &mut Vuser, take: &Take, message: &[u8]) -> Taken {
    let _ = (vuser, take, message);
    Taken::All
}

/// As [`take`], from the list of an event's arguments: what says not how is the first of them.
pub(crate) fn take_arguments(vuser: &mut Vuser, take: &Take, arguments: &[u8]) -> Taken {
    let _ = (vuser, take, arguments);
    Taken::All
}
