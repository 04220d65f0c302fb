//! The edge: what happens on a client's connection, the families that answer, filter and log, and the process around them.
//!
//! ```text
//!  keeper ─► control ─► worker: drive ─► http: exchange ─ phases ─► proxy: pick, try, relay
//!                └► live: snapshots ─► dashboard, API, metrics
//! ```
#![forbid(unsafe_code)]

pub mod acme;
pub mod control;
pub mod dash;
pub mod drive;
pub mod errands;
pub mod explain;
pub mod family;
pub mod guard;
pub mod keeper;
pub mod live;
pub mod load;
pub mod log_files;
pub mod modules;
pub mod obey;
pub mod proof;
pub mod purge;
pub mod resources;
mod trust;

pub use family::{
    declared, declared_mut, declared_so_far, declaring, settings, values, values_mut, written, written_mut,
};

/// Compiles a file of this text with all families; see `compile::of_text`.
#[cfg(test)]
fn of_text(text: &str) -> (Option<weir_http::conf::Conf>, Vec<String>) {
    weir_http::compile::of_text(text, &family::ALL)
}
