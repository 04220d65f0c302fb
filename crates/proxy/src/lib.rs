//! An exchange asks an origin, and keeps the answer: the request to a peer, the way from peer to peer, and the cache.
//!
//! Invariants: decisions (which peer, whether to retry, whether to keep) are functions of `peers` and `cache`, over state and
//! time. No answer of an origin can cause a panic or an unbounded buffer.
//!
//! - `way`: what stands between a location and its upstream: nothing, a cache, slices
//! - `family/proxy/`, `family/upstream/`, `family/proxy_ssl/`: the request to the origin and its answer; which peer
//!   gets it, over which connection, and which peer is next; TLS towards peers. `family/grpc` and `family/grpc_ssl` are
//!   the same settings under their own names
//! - `family/upstream/`: `groups` has a worker's records of the groups of a configuration, `pool` idle connections, `line`
//!   HTTP/2 connections, `lend` lends an idle connection to another worker
//! - `protocol/`, `bundle`, `family/fastcgi`, `family/uwsgi`, `family/scgi`, `family/memcached`: the other protocols:
//!   their requests; their settings, which replace `proxy`'s where their `..._pass` answers; `family/upstream/heads`
//!   and `records` read their answers
//! - `family/cache/`: how the cache answers a request (`ask`, `hit`), stores an answer (`keep`) and refreshes it
//!   (`refresh`); `plain` and `pack` are the parts that are made once for all hits
//! - `family/compression/`: what `gzip`, `brotli` and `zstd` share; `family/slice`, `family/store`: parts of an answer;
//!   copies as files
//! - `family/health/`, `family/sticky`, `family/resolver`: active checks; sessions that stay with a peer; the DNS
//!   servers of a location
//! - `relay/`: an upstream's body to a slow client; `direct` moves it inside the kernel
//! - `part`: the part of an answer that an exchange fetches
#![forbid(unsafe_code)]

pub mod bundle;
pub mod family;
pub mod part;
pub mod protocol;
pub mod relay;
#[cfg(test)]
mod tests;
pub mod way;

pub use family::{
    declared, declared_mut, declared_so_far, declaring, settings, values, values_mut, written, written_mut,
};

/// Compiles a file of this text with the families of this crate and of those below; see `compile::of_text`.
#[cfg(test)]
fn of_text(text: &str) -> (Option<weir_http::exchange::conf::Conf>, Vec<String>) {
    weir_http::read::compile::of_text(text, families())
}

/// The families of this crate and of those below.
#[cfg(test)]
fn families() -> &'static weir_http::read::families::Families {
    static ALL: std::sync::LazyLock<weir_http::read::families::Families> = std::sync::LazyLock::new(|| {
        weir_http::read::families::Families::new(
            &[&weir_http::read::families::ENGINE, &family::LEVEL],
            &["headers", "compression"],
        )
    });
    &ALL
}
