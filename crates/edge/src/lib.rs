//! The edge: what happens on a client's connection, the families that answer, filter and log, and the process around them.
//!
//! ```text
//!  keeper ─► control ─► worker: drive ─► http: exchange ─ phases ─► proxy: pick, try, relay
//!                └► live: snapshots ─► dashboard, API, metrics
//! ```
//!
//! Invariants: a worker waits for no other thread, but for a short lock, and for the keeper when it opens a file that the
//! server may not open (`net::opening`). Whatever outlives an exchange has an owner that ends it: the
//! connection, the worker, or the control thread. The keeper reads nothing from the network, and does nothing for a server
//! that its configuration does not name.
//!
//! - `drive/`: everything that happens on a client's connection, as straight-line code: `accept`, `serve` (its life),
//!   `seat` (the memory that a worker lends to it while it is served), `requests`, `open` (from a head to the phases),
//!   `answer`, `subrequest` (exchanges that weir starts for another one), `streams` (HTTP/2), `secure` (TLS), `tunnel`.
//!   Nothing below imports it
//! - `family/`: a family of directives is a file: its directives, its settings, their inheritance, its effect on an
//!   exchange, its variables, its tests. A family that outgrows its file becomes a folder of the same name.
//!   `family/mod` has the list of all families of all crates, and the order of filters
//! - `keeper/`, `load`, `resources`: the process that starts as root: reads configurations (`load`), opens what only
//!   root may open (`resources`), answers signals, and keeps a server running: `apart` (another process), `here` (this
//!   one). `order` and `passed` are its messages to a server, `desk` does a server's errands, `opener` opens files for
//!   it, `beacon` shows the edge to `weir top`; `canary` and `trial` are its part of a canary
//! - `obey`, `errands`: the server's side: puts the keeper's orders into practice; lets the keeper do what a server
//!   cannot
//! - `control/`: the control thread of the server: puts configurations in force; what belongs to one of them (`lane`); which
//!   workers serve and which finish (`crew`); whether all of them answer (`watchdog`)
//! - `live/`: the thread that makes snapshots of the workers' cells (`observer`, `gather`), and its answers (`api`,
//!   `metrics`)
//! - `dash/`: the page and its events: `hall`, where viewers wait, `answer`, `token`; `shelf/`, the thread that reads
//!   files for viewers; `host/`, the one that asks for programs and the output of logs; `alert/`; `place`, the
//!   dashboard's own server
//! - `purge/`: orders to purge: the API, and the log of several edges in a Redis stream (`bus/`; `keys` has its
//!   commands)
//! - `fleet/`: limits that several edges share over Redis: the reports of this edge (`beats`), its debts (`debts`, `pay`);
//!   pairs, servers and sessions (`records`, `follow`, `sessions`); the figures of all edges (`view`); the keys and scripts in
//!   Redis (`scripts`); the state that workers and thread share (`shared`)
//! - `recorder/`: the blocks of workers with exchanges for a recording, and the thread that writes them
//! - `canary/`: a second configuration for a share of the clients, its judge, and what the keeper and the server tell each other
//! - `acme/`: the thread that gets and renews certificates (`agent`, `outside`), its files (`state`), the certificates
//!   in force (`cell`), the challenges that workers answer (`challenges`), the ways into DNS (`publish`, `responder`),
//!   what several edges share over Redis (`share`, `together`)
//! - `guard`, `trust`, `redis`, `log_files`, `proof`: who may use the API, the purge and the dashboard; whom weir trusts as a
//!   server that it asks; a Redis server as directives name it; opens the log files of a configuration; what `-t` proves about the machine
//! - `modules`, `explain`: the output of `-V`; the output of `-T --explain`
#![forbid(unsafe_code)]

pub mod acme;
pub mod canary;
pub mod control;
pub mod dash;
pub mod drive;
pub mod errands;
pub mod explain;
pub mod family;
pub mod fleet;
pub mod guard;
pub mod keeper;
pub mod live;
pub mod load;
pub mod log_files;
pub mod modules;
pub mod obey;
pub mod proof;
pub mod purge;
pub mod recorder;
mod redis;
pub mod resources;
mod trust;

pub use family::{
    declared, declared_mut, declared_so_far, declaring, settings, values, values_mut, written, written_mut,
};

/// Compiles a file of this text with all families; see `compile::of_text`.
#[cfg(test)]
fn of_text(text: &str) -> (Option<weir_http::exchange::conf::Conf>, Vec<String>) {
    weir_http::read::compile::of_text(text, &family::ALL)
}
