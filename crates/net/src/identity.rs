//! The user of a thread.

use crate::log;
use crate::process::{Identity, drop_privileges_this_thread};

/// Gives this thread its user and groups. If the kernel refuses, writes a line to the log and returns false.
pub fn assume(identity: Option<&Identity>) -> bool {
    let Some(identity) = identity else { return true };
    let assumed = drop_privileges_this_thread(identity);
    if let Err(error) = &assumed {
        log::global(log::Level::Emerg, format_args!("setuid({}) failed {}", identity.uid, log::Os(error)));
    }
    assumed.is_ok()
}
