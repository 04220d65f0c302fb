//! The directives of weir's own edge. The program gives them once, as data: this crate knows no family.

use std::sync::OnceLock;

use weir_http::known::Known;

static KNOWN: OnceLock<&'static Known> = OnceLock::new();

/// Gives the directives that weir's edge has. Only the first call counts; before it, the edge has none.
pub fn give(known: &'static Known) {
    KNOWN.get_or_init(|| known);
}

/// The directives that weir's edge has.
pub fn known() -> &'static Known {
    #[cfg(test)]
    give(&weir_edge::family::ALL.known);
    KNOWN.get_or_init(|| Box::leak(Box::new(Known::new(std::iter::empty(), std::iter::empty(), std::iter::empty()))))
}
