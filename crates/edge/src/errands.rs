//! How a server lets its keeper do what it cannot do itself. A process without a keeper does it itself.

use std::sync::OnceLock;

use weir_net::process::Channel;

use crate::keeper::order::{Done, Errand, Report};

/// The keeper of this process.
static KEEPER: OnceLock<Channel> = OnceLock::new();

/// Says that this process has a keeper, and how to reach it. The first call counts.
pub fn has_keeper(channel: Channel) {
    drop(KEEPER.set(channel));
}

/// Lets the keeper do an errand, or does it `here` without one; blocks meanwhile. `None` if the keeper refuses it.
pub fn run(errand: Errand, here: impl FnOnce() -> Option<Done>) -> Option<Done> {
    let Some(keeper) = KEEPER.get() else { return here() };
    let (answer, _) = keeper.call(&Report::Errand(errand).to_bytes()).ok()??;
    Done::from_bytes(&answer)
}
