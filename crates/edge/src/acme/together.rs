//! Before and after a round: which certificates this edge is to get, if several edges share them.

use std::sync::Arc;

use weir_acme::plan::Plan;
use weir_acme::{Issued, Tended, Tending, answer};
use weir_net::log::{self, Level, Os};

use super::share::{AcmeShare, SharedCertificate};
use super::work::Work;

/// How soon an edge looks again, in seconds: while another edge makes the order, and while Redis is away.
const LOOK_S: i64 = 5;
const AWAY_S: i64 = 60;

/// A certificate with less than this part of its life left is renewed without a lock if Redis is away.
const URGENT_PART: i64 = 8;

/// The locks that this edge holds in a round: the number of the certificate, and when its validity began before.
pub struct Locks(Vec<(usize, i64)>);

/// Takes over certificates that another edge has got, and takes the locks of those that are due. Without a lock, a
/// certificate waits.
pub async fn before(share: &Arc<AcmeShare>, work: &Work, tending: &mut Tending, now: i64) -> Locks {
    let mut locks = Vec::new();
    // One failure is enough for a round: each takes as long as the timeout.
    let mut away = None;
    for (number, tended) in tending.all.iter_mut().enumerate() {
        if !tended.plan.wants_certificate(now) {
            continue;
        }
        let looked = match &away {
            Some(why) => Err(String::clone(why)),
            None => look(share, work, tended, now).await,
        };
        match looked {
            Ok(true) => locks.push((number, tended.plan.valid.start)),
            Ok(false) => {}
            Err(why) => {
                let left = tended.plan.valid.end - now;
                let life = tended.plan.valid.end - tended.plan.valid.start;
                if left > life / URGENT_PART {
                    tended.plan.next = now + AWAY_S;
                }
                away = Some(why.clone());
                tended.error = Some(why);
            }
        }
    }
    Locks(locks)
}

/// Whether this edge is to get the certificate.
async fn look(share: &Arc<AcmeShare>, work: &Work, tended: &mut Tended, now: i64) -> Result<bool, String> {
    let (issuer, id) = (&work.issuer.name, tended.order.id());
    if adopt(share, work, tended, now).await? {
        return Ok(false);
    }
    if !share.lock(issuer, &id).await? {
        tended.plan.next = now + LOOK_S;
        return Ok(false);
    }
    // Another edge may have finished between the look and the lock.
    if adopt(share, work, tended, now).await? {
        share.unlock(issuer, &id).await?;
        return Ok(false);
    }
    Ok(true)
}

/// Takes over a shared certificate that is newer.
async fn adopt(share: &Arc<AcmeShare>, work: &Work, tended: &mut Tended, now: i64) -> Result<bool, String> {
    let (issuer, id) = (&work.issuer.name, tended.order.id());
    let Some(SharedCertificate { chain, key }) = share.certificate(issuer, &id).await? else { return Ok(false) };
    let unusable = |why: String| {
        log::global(
            Level::Warn,
            format_args!("a shared certificate cannot be used ({why}), acme issuer: \"{issuer}\", order: \"{id}\""),
        );
        Ok(false)
    };
    let issued = match Issued::new(chain.as_bytes(), &key, &tended.order.identifiers, now) {
        Ok(issued) if issued.begins > tended.plan.valid.start => issued,
        Ok(_) => return Ok(false),
        Err(unfit) => return unusable(unfit.to_string()),
    };
    if let Some((_, cell)) = work.orders.iter().find(|(order, _)| *order == tended.order)
        && let Err(why) = cell.put(&issued)
    {
        return unusable(why);
    }
    if let Some(directory) = &work.directory
        && let Err(error) = directory.keep(&tended.order, &issued)
    {
        let path = work.path();
        log::global(
            Level::Warn,
            format_args!("writing certificate in \"{path}\" failed {}, acme issuer: \"{issuer}\"", Os(&error)),
        );
    }
    tended.plan = Plan::kept(answer::Window { start: issued.begins, end: issued.ends });
    tended.renewal_id = issued.renewal_id;
    (tended.begun, tended.error) = (None, None);
    log::global(
        Level::Info,
        format_args!("certificate taken over from another edge, acme issuer: \"{issuer}\", order: \"{id}\""),
    );
    Ok(true)
}

/// Shares the certificates that were issued, and gives their locks back. After a failure the lock stays until its lease
/// ends: this edge tries again, and the others wait.
pub async fn after(share: &Arc<AcmeShare>, work: &Work, tending: &Tending, locks: Locks) {
    for (number, before) in locks.0 {
        let Some(tended) = tending.all.get(number).filter(|tended| tended.plan.valid.start != before) else { continue };
        let (issuer, id) = (&work.issuer.name, tended.order.id());
        let held = work.orders.iter().find(|(order, _)| *order == tended.order).and_then(|(_, cell)| cell.held());
        let Some(held) = held else { continue };
        let text = |text: &str| text.strip_prefix("data:").unwrap_or(text).to_owned();
        let certificate = SharedCertificate { chain: text(&held.chain), key: text(&held.key) };
        let shared = share.put(issuer, &id, &certificate).await;
        let unlocked = share.unlock(issuer, &id).await;
        if let Err(why) = shared.and(unlocked) {
            log::global(Level::Warn, format_args!("{why}, acme issuer: \"{issuer}\", order: \"{id}\""));
        }
    }
}
