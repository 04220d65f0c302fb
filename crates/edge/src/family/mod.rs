//! The families that answer, filter, limit and log: one file each, and one word below. And the list of all families.

use std::sync::LazyLock;

use weir_http::families::Families;

// The order is the order of handlers within one phase (nginx: auto/modules, "the module order is important").
weir_http::declare! {
    log
    realip
    map
    geo
    keyval
    split_clients
    referer
    stub_status
    limit_req
    limit_conn
    access
    auth_basic
    try_files
    mirror
    flv
    mp4
    index
    autoindex
    precompressed
    static_files
    not_modified
    gunzip
    sub_filter
    charset
    range
    purge
    ssl
    live
    dashboard
}

weir_http::above!(1);

/// The order in which filters change a response's head, first to last.
const FILTERS: &[&str] = &["not_modified", "headers", "gunzip", "sub_filter", "charset", "compression", "range"];

/// The families of all crates.
pub static ALL: LazyLock<Families> =
    LazyLock::new(|| Families::new(&[&weir_http::families::ENGINE, &weir_proxy::family::LEVEL, &LEVEL], FILTERS));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_variable_is_defined_twice() {
        let mut names: Vec<&str> = ALL.known.variables().map(|variable| variable.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
