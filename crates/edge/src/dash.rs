//! The dashboard as an edge serves it: a page of files, and a stream of changes.
//!
//! ```text
//!  observer ── a snapshot a second ──► `Hall` ── the same bytes for all ──► `answer`, one task a viewer
//! ```
//!
//! A thread of its own reads the files that the dashboard shows: logs of upstreams and runs of labs (`shelf`). Another
//! looks at the machine (`host`), and one for each receiver sends alerts (`alert`).
//! `weir_dash` makes the document on the observer's thread, and only while there are viewers. A viewer has no queue:
//! a viewer that is too slow for the kept seconds gets the whole document again. `family::dashboard` has the
//! directives, `docs/guide/dashboard.md` the words for users.

pub mod alert;
pub mod answer;
pub mod hall;
pub mod host;
pub mod place;
pub mod shelf;
pub mod token;
