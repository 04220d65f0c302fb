//! `parallel`: runs steps of one virtual user at the same time.
//!
//! Each branch has its own variables and shares the connections and cookies. When a branch ends, its changes go to
//! the virtual user's variables. Branches are polled by hand, because `net` requires that they are one task.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use crate::plan::Step;
use crate::vars::Vars;
use crate::vuser::{Failed, Vuser, walk};

/// Most branches at the same time; Artillery's own limit.
pub const BRANCHES_MAX: usize = 100;

type Branch<'b> = Pin<Box<dyn Future<Output = Result<Vars, Failed>> + 'b>>;

/// Runs all steps, at most `limit` at the same time. The first error ends the others.
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
        // The intended start of a branch that waits for another branch, and of later steps, is the moment at which
        // they begin.
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

/// Waits until the first branch ends, and removes it.
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
