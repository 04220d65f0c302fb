//! The cache: the rules for storing and serving answers, and the store that keeps and finds them.
//!
//! ```text
//!  request ─► RequestFacts ─┐                        ┌─► serving: fresh, stale for now, or to the origin
//!                           ├─ Policy (directives) ──┤
//!  answer ──► ResponseFacts ┘                        └─► storing: a Validity, or the Reason for no
//! ```
//!
//! The rules are pure: they read fields that the caller holds, and the time is an argument. They follow RFC 9111 with
//! its extensions RFC 5861 and RFC 9213. A directive of the file overrides them, with nginx's meaning
//! (`docs/why/007-cache-meaning.md`). Times are milliseconds since 1970, lifetimes are seconds.
//!
//! Invariant: the crate knows no directive, no exchange and no client's socket.
//!
//! - `storing`, `serving`, `update`, `invalidation`, `condition`: RFC 9111 as functions of fields and time: which
//!   answers may be kept, which requests they may answer, and which events change them
//! - `request`, `response`, `validity`, `vary`, `dates`, `structured`, `cache_control`, `partial`: the facts that these
//!   rules read
//! - `reason`, `policy`, `ready`: a name for every decision; the settings that directives give; a head that is made
//!   once for all hits
//! - `personal`, `divergence`: whether answers under one key differ by client
//! - `store/`: the objects: shards in memory, files behind a thread (`keeper`), one fetch for each key, purges; `zone`
//!   holds the parts, `file` is the form on disk
#![forbid(unsafe_code)]

pub mod cache_control;
pub mod condition;
pub mod dates;
pub mod divergence;
pub mod invalidation;
#[cfg(test)]
mod mutate;
pub mod partial;
pub mod personal;
pub mod policy;
pub mod ready;
pub mod reason;
pub mod request;
pub mod response;
pub mod serving;
pub mod store;
pub mod storing;
pub mod structured;
mod sync;
pub mod update;
pub mod validity;
pub mod vary;
