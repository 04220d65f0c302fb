//! One HTTP exchange: nginx.conf to an immutable configuration, and a request through the phases to its answer.
//!
//! ```text
//!  Tree ─ Build (families read statements) ─► Conf ─► conn ─► exchange ─ phases ─► respond
//! ```
//!
//! Invariants: `Conf` never changes; an exchange ends with the one it began with; parsing a configuration has no side
//! effects; no byte from outside can cause a panic. The engine names no family of the crates above.
//!
//! Seven folders. A file imports files of its own folder and of those before it; the few exceptions are types of `exchange`
//! that a worker holds, and values of `family`:
//!
//! - `text/`: texts and the values that they mean
//! - `hold/`: what lives longer than an exchange: workers, connections, tables
//! - `exchange/`: one request, its answer, and the configuration that it began with
//! - `receive/`: heads and bodies of requests, and HTTP/2
//! - `send/`: answers
//! - `read/`: statements become a configuration
//! - `family/`: the families of the engine itself
#![forbid(unsafe_code)]

/// The version of nginx whose directives weir reads: written only here, as a literal that `concat!` accepts.
macro_rules! nginx_version {
    () => {
        "1.31.5"
    };
}
pub(crate) use nginx_version;

pub mod exchange;
pub mod family;
pub mod hold;
pub mod read;
pub mod receive;
pub mod send;
#[cfg(test)]
mod tests;
pub mod text;

/// Compiles a file of this text with the families of this crate and of those below; see `compile::of_text`.
#[cfg(test)]
fn of_text(text: &str) -> (Option<crate::exchange::conf::Conf>, Vec<String>) {
    crate::read::compile::of_text(text, families())
}

/// The families of this crate and of those below.
#[cfg(test)]
fn families() -> &'static crate::read::families::Families {
    static ALL: std::sync::LazyLock<crate::read::families::Families> =
        std::sync::LazyLock::new(|| crate::read::families::Families::new(&[&read::families::ENGINE], &["headers"]));
    &ALL
}
