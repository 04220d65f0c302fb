//! Zones with `sync`: the accounts of this edge in a fleet, in place of buckets.

use std::sync::Arc;

use weir_fleet::{Account, AccountVerdict, LimitTerms};

use crate::fleet::{Fail, Fleet, SharedZone};

/// Asks the account of a key about one more request, and charges it if `charges` is set.
pub(super) fn ask(
    fleet: &Fleet,
    zone: &Arc<SharedZone>,
    terms: &LimitTerms,
    key: &[u8],
    charges: bool,
) -> AccountVerdict {
    let now = fleet.now_ms();
    let standing = fleet.standing(now);
    match fleet.settings().fail {
        Fail::Open if standing.is_alone => return AccountVerdict::Passes { excess: 0 },
        Fail::Close if standing.is_alone => return AccountVerdict::Overflows { excess: 0 },
        Fail::Local | Fail::Open | Fail::Close => {}
    }
    let mut shard = zone.accounts.shard(key);
    if shard.get(key).is_none() {
        shard.insert(key, Account::begin(now, standing));
    }
    let Some(account) = shard.get(key) else { return AccountVerdict::Passes { excess: 0 } };
    let verdict = account.ask(now, standing, terms, charges);
    if charges && matches!(verdict, AccountVerdict::Passes { .. }) {
        fleet.owe(zone, key, account, terms);
    }
    verdict
}
