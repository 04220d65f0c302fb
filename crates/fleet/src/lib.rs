//! One rate limit over several edges, with a ledger in Redis for which no request waits.
//!
//! ```text
//!   a request ─► Account (one key at one edge): let through or refused, at once
//!                   │ owes the requests that passed
//!                   ▼ a few milliseconds later, many keys together
//!                Redis: a bucket for each key (`debit.lua`) ─► how full it is ─► Account
//!                Redis: which edges are there, and their shares (`beat.lua`) ─► Presence
//! ```
//!
//! **The bound.** In any time `t`, all edges together let through at most `rate · t + capacity + edges · credit` requests
//! of a key. It holds while edges are cut off from Redis, while Redis is slow, and after it lost its memory:
//!
//! - The requests that an edge let through and the ledger does not have are its debt. A debt never passes `credit`.
//! - The buckets of the ledger leak in the fleet's time, which passes more slowly while edges are away: the share of an
//!   edge that is away is reserved for it ([`Presence`]).
//! - An edge that is away may use that share: its debts leak with it, from the moment on at which the ledger reserves it.
//! - A ledger that lost its memory begins with full buckets.
//!
//! An edge that is killed takes its debts along, so each start of an edge counts as one of `edges`. The share of an edge is
//! reserved for [`FORGET_MS`]; the bound is that of fewer edges after it.
//!
//! Pure: times and replies are arguments. Times are in milliseconds, amounts in thousandths of a request, rates in
//! thousandths of a request a second.
//!
//! - `terms`: the rate, the capacity and the credit of a limit
//! - `account`: the account of one key at one edge
//! - `presence`: the place of one edge in the fleet, and its time alone
//! - `ledger`: the scripts for Redis, their arguments and their replies
#![forbid(unsafe_code)]

mod account;
mod ledger;
mod presence;
mod terms;

pub use account::{Account, AccountVerdict};
pub use ledger::{BEAT, BeatReply, DEBIT, DebitReply, EDGES_MAX, FORGET_MS, GRACE_MS, SILENT_MS};
pub use presence::{Beat, Presence, Standing};
pub use terms::LimitTerms;
