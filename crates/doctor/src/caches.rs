//! The caches of a configuration: those of proxy, FastCGI, uwsgi and SCGI.

use crate::view::{Scope, Spot, View};

/// The names of one family's directives.
#[derive(Debug)]
pub struct DirectiveNames {
    /// `proxy`.
    pub family: &'static str,
    /// `proxy_cache`.
    pub cache: &'static str,
    /// `proxy_cache_background_update`.
    pub background_update: &'static str,
    /// `proxy_cache_bypass`.
    pub bypass: &'static str,
    /// `proxy_buffering`.
    pub buffering: &'static str,
    /// `proxy_cache_guard`, which only weir has.
    pub guard: &'static str,
    /// `proxy_ignore_headers`.
    pub ignore_headers: &'static str,
    /// `proxy_cache_key`.
    pub key: &'static str,
    /// `proxy_cache_lock`.
    pub lock: &'static str,
    /// `proxy_no_cache`.
    pub no_cache: &'static str,
    /// `proxy_cache_use_stale`.
    pub use_stale: &'static str,
    /// `proxy_cache_valid`.
    pub valid: &'static str,
}

macro_rules! names {
    ($family:literal) => {
        DirectiveNames {
            family: $family,
            cache: concat!($family, "_cache"),
            background_update: concat!($family, "_cache_background_update"),
            bypass: concat!($family, "_cache_bypass"),
            buffering: concat!($family, "_buffering"),
            guard: concat!($family, "_cache_guard"),
            ignore_headers: concat!($family, "_ignore_headers"),
            key: concat!($family, "_cache_key"),
            lock: concat!($family, "_cache_lock"),
            no_cache: concat!($family, "_no_cache"),
            use_stale: concat!($family, "_cache_use_stale"),
            valid: concat!($family, "_cache_valid"),
        }
    };
}

/// The families of nginx that have a cache.
pub static FAMILIES: [DirectiveNames; 4] = [names!("proxy"), names!("fastcgi"), names!("uwsgi"), names!("scgi")];

/// Every use of a cache that is not `off`, with the names of its family.
pub fn caches<'v>(view: &'v View<'v>) -> Vec<(Spot<'v>, &'static DirectiveNames)> {
    let of = |names: &'static DirectiveNames| view.named(names.cache).map(move |spot| (spot, names));
    FAMILIES.iter().flat_map(of).filter(|(spot, _)| spot.arg(0) != "off").collect()
}

/// The words of `…_cache_use_stale` that are in force in a block. None if one of them is `off`. A word that nginx cannot
/// know is left out: a fix writes these words again.
pub fn stale_in_force<'v>(scope: Scope<'v>, names: &DirectiveNames) -> Vec<&'v str> {
    let is_word =
        |word: &&str| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') && !word.is_empty();
    let words: Vec<&str> =
        scope.effective_all(names.use_stale).into_iter().flat_map(Spot::args).filter(is_word).collect();
    if words.contains(&"off") { Vec::new() } else { words }
}

/// The words of `…_cache_use_stale` for a refresh and for failures. FastCGI, uwsgi and SCGI know fewer statuses.
pub fn stale_words(names: &DirectiveNames) -> &'static str {
    match names.family {
        "proxy" => "updating error timeout http_500 http_502 http_503 http_504",
        _ => "updating error timeout http_500 http_503",
    }
}
