//! How a server lets its keeper do what it cannot do itself. A process without a keeper does it itself.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::Duration;

use weir_http::exchange::file_path::errno;
use weir_net::opening::{self, Guard};
use weir_net::process::{self, Channel};

use crate::keeper::order::{Done, Errand, Opening, Report};

/// The longest time of an errand: the keeper ends a hook after two minutes.
const PATIENCE: Duration = Duration::from_secs(150);
/// The longest time until a file is open: a worker serves nobody meanwhile.
const OPEN_PATIENCE: Duration = Duration::from_secs(5);

/// The keeper of this process.
static KEEPER: OnceLock<Channel> = OnceLock::new();

/// Says that this process has a keeper, and how to reach it. The first call counts.
pub fn has_keeper(channel: Channel) {
    drop(KEEPER.set(channel));
    opening::set_elsewhere(open);
    process::resolve_elsewhere(resolve);
}

/// Lets the keeper find the addresses of a host.
fn resolve(host: &str) -> io::Result<Vec<IpAddr>> {
    match run(Errand::Resolve(host.to_owned()), || None) {
        Some(Done::Resolved(found)) => found.map_err(io::Error::other),
        _ => Err(io::Error::other("the keeper gave no answer")),
    }
}

/// Lets the keeper open a file for reading.
fn open(path: &[u8], guard: Guard) -> io::Result<File> {
    let refused = || io::Error::from_raw_os_error(errno::EACCES);
    let keeper = KEEPER.get().ok_or_else(refused)?;
    let errand = Errand::Open(Opening::new(path, guard));
    let (answer, mut files) = keeper.call(&Report::Errand(errand).to_bytes(), OPEN_PATIENCE)?.ok_or_else(refused)?;
    match Done::from_bytes(&answer) {
        Some(Done::Opened(Ok(()))) => files.pop().map(File::from).ok_or_else(refused),
        Some(Done::Opened(Err(number))) => Err(io::Error::from_raw_os_error(number)),
        _ => Err(refused()),
    }
}

/// Lets the keeper do an errand, or does it `here` without one; blocks meanwhile. `None` if the keeper refuses it.
pub fn run(errand: Errand, here: impl FnOnce() -> Option<Done>) -> Option<Done> {
    let Some(keeper) = KEEPER.get() else { return here() };
    let (answer, _) = keeper.call(&Report::Errand(errand).to_bytes(), PATIENCE).ok()??;
    Done::from_bytes(&answer)
}
