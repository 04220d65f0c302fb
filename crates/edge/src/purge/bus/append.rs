//! The thread that writes: one order after another, each once; it returns the result to the waiting task.

use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use super::Shared;
use crate::purge::entry::Id;
use crate::purge::server::{Failed, Link};

/// The work for the thread.
pub(super) enum Errand {
    /// Write these entries.
    Append {
        /// Their fields.
        entries: Vec<Vec<(&'static str, String)>>,
        /// The waiting task.
        ticket: Arc<Ticket>,
    },
    /// Remove this edge's name, then confirm it.
    Leave(SyncSender<()>),
}

/// The result of writing entries, for a worker to wait for.
#[derive(Default)]
pub(super) struct Ticket(Mutex<State>);

#[derive(Default)]
struct State {
    logged: Option<Result<Id, String>>,
    waker: Option<Waker>,
}

impl Ticket {
    /// The id of the last entry, or the reason why there is none.
    pub fn poll(&self, context: &Context<'_>) -> Poll<Result<Id, String>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match state.logged.take() {
            Some(logged) => Poll::Ready(logged),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    fn settle(&self, logged: Result<Id, String>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.logged = Some(logged);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Works until nobody can send it work any more.
pub(super) fn serve(shared: &Shared, errands: &Receiver<Errand>) {
    let mut link = None;
    for errand in errands {
        match errand {
            // The waiting task has left: it has already reported that the order is not logged.
            Errand::Append { ticket, .. } if Arc::strong_count(&ticket) == 1 => {}
            Errand::Append { entries, ticket } => {
                let logged = with_link(shared, &mut link, |link| {
                    let id = link.append(&entries, shared.settings.length_max)?;
                    // Reads the current edges: weir also waits for an edge that joined since the last look.
                    Ok((id, link.look(id)?))
                });
                ticket.settle(logged.map_err(|failed| failed.to_string()).map(|(id, look)| {
                    shared.note(|book| {
                        book.newest = book.newest.max(id);
                        book.edges.take(look.edges.into_iter(), look.now_ms);
                    });
                    id
                }));
            }
            Errand::Leave(tell) => {
                let name = shared.settings.edge.clone();
                // If this fails, the other edges forget the name in time.
                let _ = with_link(shared, &mut link, |link| link.forget(std::slice::from_ref(&name)));
                let _ = tell.send(());
                return;
            }
        }
    }
}

/// Does something over the existing connection. If that fails, tries once more over a new connection: an entry that
/// is written twice is purged twice, which does no harm.
fn with_link<T>(
    shared: &Shared,
    link: &mut Option<Link>,
    mut act: impl FnMut(&mut Link) -> Result<T, Failed>,
) -> Result<T, Failed> {
    if let Some(mut known) = link.take()
        && let Ok(done) = act(&mut known)
    {
        *link = Some(known);
        return Ok(done);
    }
    let settings = &shared.settings;
    let mut fresh = Link::open(&settings.server, &settings.stream, settings.timeout, settings.timeout)?;
    let done = act(&mut fresh)?;
    *link = Some(fresh);
    Ok(done)
}
