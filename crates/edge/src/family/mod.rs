//! The families that answer, filter, limit and log: one file each, and one word below. And the list of all families.

use std::sync::LazyLock;

use weir_http::families::Families;

// The order is the order of handlers within one phase (nginx: auto/modules, "the module order is important").
weir_http::declare! {
    log
    headers_more
    set_misc
    realip
    map
    geo
    keyval
    split_clients
    browser
    secure_link
    referer
    stub_status
    empty_gif
    echo
    limit_req
    limit_conn
    access
    auth_basic
    auth_request
    try_files
    mirror
    flv
    mp4
    random_index
    index
    autoindex
    dav
    precompressed
    static_files
    not_modified
    gunzip
    sub_filter
    userid
    charset
    addition
    ssi
    range
    purge
    ssl
    live
    dashboard
}

weir_http::above!(1);

/// The order in which filters change a response's head, first to last.
const FILTERS: &[&str] = &[
    "not_modified",
    "headers_more",
    "headers",
    "gunzip",
    "userid",
    "addition",
    "sub_filter",
    "charset",
    "ssi",
    "compression",
    "range",
];

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
