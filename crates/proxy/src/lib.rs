//! An exchange asks an origin, and keeps the answer: the request to a peer, the way from peer to peer, and the cache.
#![forbid(unsafe_code)]

pub mod bundle;
pub mod family;
pub mod part;
pub mod protocol;
pub mod relay;
pub mod way;

pub use family::{
    declared, declared_mut, declared_so_far, declaring, settings, values, values_mut, written, written_mut,
};

/// Compiles a file of this text with the families of this crate and of those below; see `compile::of_text`.
#[cfg(test)]
fn of_text(text: &str) -> (Option<weir_http::conf::Conf>, Vec<String>) {
    weir_http::compile::of_text(text, families())
}

/// The families of this crate and of those below.
#[cfg(test)]
fn families() -> &'static weir_http::families::Families {
    static ALL: std::sync::LazyLock<weir_http::families::Families> = std::sync::LazyLock::new(|| {
        weir_http::families::Families::new(&[&weir_http::families::ENGINE, &family::LEVEL], &["headers", "compression"])
    });
    &ALL
}
