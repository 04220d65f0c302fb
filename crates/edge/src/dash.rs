//! The dashboard as an edge serves it: a page of files, and a stream of what changes.
//!
//! ```text
//!  observer ── a snapshot a second ──► `Hall` ── the same bytes for all ──► `answer`, one task a viewer
//! ```
//!
//! Files that are shown, logs of upstreams and runs of labs, are read by a thread of their own (`shelf`).
//! What is shown is made in `weir_dash`, on the observer's thread, and only while somebody watches. A viewer holds no
//! queue: one that is too slow for the seconds that are kept gets the whole again. `family::dashboard` has the
//! directives, `docs/guide/dashboard.md` the words for users.

pub mod answer;
pub mod hall;
pub mod place;
pub mod shelf;
pub mod token;
