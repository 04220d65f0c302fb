//! nginx's `stream`: sessions of TCP and UDP. A client's bytes go to a peer unchanged, and the peer's bytes come back.
//!
//! ```text
//!  stream { } ─ Build ─► Stream ─► accept ─► session ─ phases ─► proxy_pass: pick, connect, relay
//!                                                              ├─► return: a text
//!                                                              └─► pass: another socket of weir
//! ```
//!
//! `http` reads the file: blocks, statements, arguments, names of variables. It also has the worker and its table of
//! connections. Crates above add parts (`part`): limits, access, logs, TLS.
//!
//! Invariants: a session ends with the configuration it began with; it holds no buffer while it waits, except for bytes
//! that a side did not take; no byte of a client or a peer can cause a panic or an unbounded buffer.
//!
//! - `family/`: the directives of `stream` alone
//! - `compile`, `conf`: the servers of the block become sockets, servers and variables
//! - `part`: what crates above add to sessions: `edge` adds addresses, limits, access, TLS and logs. One row in `edge`
//!   serves `http` and `stream`
//! - `session`, `variable`, `line`, `counts`, `attempt`: one session; the variables of sessions, which are not those of
//!   `http`: `$status` has another meaning; lines of the error log; counts
//! - `drive/`: a session as straight-line code: `begin` (PROXY header, phases, TLS, preread), `look` (the first bytes,
//!   taken or left in the kernel), `choose` and `connect` (group, peer, connection), `relay` (bytes both ways),
//!   `datagrams` and `volley` (UDP), `say` (`return`), `pass` (another socket), `check` (one health check)
#![forbid(unsafe_code)]

pub mod attempt;
pub mod compile;
pub mod conf;
pub mod counts;
pub mod drive;
pub mod family;
pub mod line;
pub mod part;
pub mod session;
#[cfg(test)]
mod tests;
pub mod variable;

pub use family::{
    declared, declared_mut, declared_so_far, declaring, settings, values, values_mut, written, written_mut,
};

/// Compiles a file of this text with the families of this crate and of those below; see `compile::of_text` of `http`.
#[cfg(test)]
fn of_text(text: &str) -> (Option<weir_http::exchange::conf::Conf>, Vec<String>) {
    use weir_http::read::families::{ENGINE, Families, Family, Level};
    static TAKE: Family = Family::new("take", &[]).servers(|b, servers| drop(compile::take(b, servers, &[])));
    static TEST: Level = Level { families: &[&TAKE], session_variables: Vec::new, declare: None };
    static ALL: std::sync::LazyLock<Families> =
        std::sync::LazyLock::new(|| Families::new(&[&ENGINE, &family::LEVEL, &TEST], &["headers"]));
    weir_http::read::compile::of_text(text, &ALL)
}
