//! `parallel`: steps of one virtual user at once.
//!
//! Each branch works on variables of its own and shares the connections and cookies; what it changed is the virtual
//! user's when it ends. Branches are polled by hand, as `net` wants it: they are one task.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use crate::plan::Step;
use crate::vars::Vars;
use crate::vuser::{Failed, Vuser, walk};

/// Branches at once; Artillery's own limit.
pub const BRANCHES_MAX: usize = 100;

type Branch<'b> = Pin<Box<dyn Future<Output = Result<Vars, Failed>> + 'b>>;

/// Takes all steps at once, at most `limit` at a time. The first error ends the rest.
pub async fn run(vuser: &mut Vuser, steps: &[Step], limit: usize) -> Result<(), Failed> {
    let before = vuser.vars.clone();
    let mut waiting = steps.iter();
    let mut under_way: Vec<Branch<'_>> = Vec::new();
    let limit = limit.clamp(1, BRANCHES_MAX);
    loop {
        while under_way.len() < limit
            && let Some(step) = waiting.next()
        {
            under_way.push(Box::pin(branch(vuser.share(before.clone()), step)));
        }
        // What waits for another branch to end, and what comes after, is meant to begin when it does.
        vuser.due = None;
        if under_way.is_empty() {
            return Ok(());
        }
        let after = any(&mut under_way).await?;
        vuser.vars.take_changes(&before, &after);
    }
}

async fn branch(mut vuser: Vuser, step: &Step) -> Result<Vars, Failed> {
    walk(&mut vuser, std::slice::from_ref(step)).await?;
    Ok(vuser.vars)
}

/// Waits for the first of several to end, and takes it out.
async fn any(branches: &mut Vec<Branch<'_>>) -> Result<Vars, Failed> {
    poll_fn(|context| {
        for index in 0..branches.len() {
            let Some(branch) = branches.get_mut(index) else { break };
            if let Poll::Ready(outcome) = branch.as_mut().poll(context) {
                drop(branches.swap_remove(index));
                return Poll::Ready(outcome);
            }
        }
        Poll::Pending
    })
    .await
}
