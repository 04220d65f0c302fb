//! The task that pays debts to the ledger.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use weir_fleet::DebitReply;
use weir_net::{clock, timer};
use weir_redis::{NoReply, Value};

use crate::fleet::debts::{DEBTS_MAX, Owing};
use crate::fleet::scripts::Script;
use crate::fleet::shared::{FleetShared, PATIENCE};

/// Debts in one command, at most.
const BATCH_MAX: usize = 200;

/// A debt that the ledger had no room for is offered again after this time, at least; in milliseconds.
const AGAIN_MS: i64 = 100;

/// Pays again and again, as long as the thread runs.
pub(super) async fn pay(shared: Arc<FleetShared>) {
    let mut script = Script::new(weir_fleet::DEBIT);
    let mut later: BinaryHeap<Reverse<Owing>> = BinaryHeap::new();
    loop {
        let now = shared.now_ms(clock::precise());
        shared.debts.note_later(later.len());
        let next = later.peek().map(|Reverse(first)| (first.due_ms - now).max(1));
        shared.debts.wait(next).await;
        let now = shared.now_ms(clock::precise());
        let mut due = shared.debts.take();
        while later.peek().is_some_and(|Reverse(first)| first.due_ms <= now) {
            due.extend(later.pop().map(|Reverse(first)| first));
        }
        while !due.is_empty() {
            let rest = due.split_off(due.len().min(BATCH_MAX));
            let failed = pay_batch(&shared, &mut script, due, &mut later).await.err();
            due = rest;
            if let Some(failed) = failed {
                shared.note_failure(&failed);
                let now = shared.now_ms(clock::precise());
                due.drain(..).for_each(|owing| put_off(&shared, &mut later, owing, now + AGAIN_MS));
                timer::sleep(PATIENCE / 10).await;
            }
        }
    }
}

/// Pays these debts with one command. A debt that the ledger has no room for, or does not hear of, is paid later.
async fn pay_batch(
    shared: &FleetShared,
    script: &mut Script,
    batch: Vec<Owing>,
    later: &mut BinaryHeap<Reverse<Owing>>,
) -> Result<(), NoReply> {
    let now = shared.now_ms(clock::precise());
    let standing = shared.standing(now);
    let mut words = vec![String::new()];
    let mut keys = vec![shared.keys.state().to_owned()];
    let mut owing = Vec::with_capacity(batch.len());
    for one in batch {
        let mut shard = one.zone.accounts.shard(&one.key);
        // The zone may have dropped the account for others.
        let Some(account) = shard.get(&one.key) else { continue };
        let debt = account.owed(now, standing, &one.terms);
        if debt == 0 {
            account.end_owing();
            continue;
        }
        drop(shard);
        keys.push(shared.keys.bucket(&one.zone.name, &one.key));
        words.extend([one.terms.rate, one.terms.capacity, debt].map(|number| number.to_string()));
        owing.push((one, debt));
    }
    if owing.is_empty() {
        return Ok(());
    }
    let key_words: Vec<&str> = keys.iter().map(String::as_str).collect();
    let reply = script.run(&shared.settings.server, &key_words, &words, PATIENCE).await;
    let now = shared.now_ms(clock::precise());
    let replies = reply.and_then(|reply| {
        let items: Option<Vec<i64>> = reply.list().iter().map(Value::number).collect();
        // Without a ledger, the next report begins one.
        DebitReply::read(&items.unwrap_or_default(), owing.len()).ok_or(NoReply::Unexpected)
    });
    let replies = match replies {
        Ok(replies) => replies,
        Err(failed) => {
            owing.into_iter().for_each(|(one, _)| put_off(shared, later, one, now + AGAIN_MS));
            return Err(failed);
        }
    };
    for ((one, debt), reply) in owing.into_iter().zip(replies) {
        let mut shard = one.zone.accounts.shard(&one.key);
        let Some(account) = shard.get(&one.key) else { continue };
        account.settle(reply.taken, reply.level, now);
        if account.owed(now, standing, &one.terms) == 0 {
            account.end_owing();
            continue;
        }
        let fits = now + account.fits_after_ms(&one.terms).max(AGAIN_MS);
        drop(shard);
        match reply.taken >= debt {
            // The rest is of requests that passed in the meantime.
            true => shared.debts.put_back(one),
            false => put_off(shared, later, one, fits),
        }
    }
    Ok(())
}

fn put_off(shared: &FleetShared, later: &mut BinaryHeap<Reverse<Owing>>, mut owing: Owing, due_ms: i64) {
    if later.len() >= DEBTS_MAX {
        shared.debts.drop_one();
        if let Some(account) = owing.zone.accounts.shard(&owing.key).get(&owing.key) {
            account.end_owing();
        }
        return;
    }
    owing.due_ms = due_ms;
    later.push(Reverse(owing));
}
