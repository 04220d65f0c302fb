//! The variables that every configuration has: those of weir, and those of nginx that weir lacks.

use crate::meanings;

/// Whether nginx or weir has a variable of this name, in lower case, in `http` or in `stream`.
pub fn is_built_in(name: &str, is_stream: bool) -> bool {
    let known = &weir_edge::family::ALL.known;
    let is_prefix = |known: &str| known.ends_with('_') && name.len() > known.len() && name.starts_with(known);
    let is_known = if is_stream {
        known.session_variables().iter().any(|known| *known == name || is_prefix(known))
    } else {
        known.variable(name).is_some()
    };
    is_known || !name.ends_with('_') && meanings::variable(name).is_some()
}

/// The names of weir's variables in `http` or in `stream`, sorted; a name that ends in `_` is a prefix.
pub fn built_in(is_stream: bool) -> Vec<&'static str> {
    let known = &weir_edge::family::ALL.known;
    let mut names: Vec<&'static str> = if is_stream {
        known.session_variables().to_vec()
    } else {
        known.variables().map(|variable| variable.name).collect()
    };
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_variables_are_known_with_their_prefixes() {
        for name in ["uri", "http_x_y", "arg_a", "upstream_http_etag", "cookie_a"] {
            assert!(is_built_in(name, false), "{name}");
        }
        for name in ["mine", "httpx", "uri2"] {
            assert!(!is_built_in(name, false), "{name}");
        }
        assert!(is_built_in("ssl_preread_server_name", true));
        assert!(built_in(false).contains(&"http_") && built_in(true).contains(&"remote_addr"));
    }
}
