//! The families that answer, filter, limit and log: one file each, and one word below. And the list of all families.

use std::sync::LazyLock;

use weir_http::exchange::Get;
use weir_http::read::build::Build;
use weir_http::read::families::Families;
use weir_http::text::template::{Argument, Definition};

// The order is the order of handlers within one phase (nginx: auto/modules, "the module order is important").
weir_http::declare! {
    record
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
    msie_refresh
    alt_svc
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
    fleet
    acme
    ssl
    sessions
    live
    dashboard
}

weir_http::above!(1, sessions::variable_names);

/// The order in which filters change a response's head, first to last.
const FILTERS: &[&str] = &[
    "msie_refresh",
    "not_modified",
    "headers_more",
    "headers",
    "alt_svc",
    "gunzip",
    "userid",
    "addition",
    "sub_filter",
    "charset",
    "ssi",
    "record",
    "compression",
    "range",
];

/// The families of all crates.
pub static ALL: LazyLock<Families> = LazyLock::new(|| {
    let levels = [&weir_http::read::families::ENGINE, &weir_proxy::family::LEVEL, &weir_stream::family::LEVEL, &LEVEL];
    Families::new(&levels, FILTERS)
});

/// Defines the variable of this name in the block being read: of exchanges in `http`, of sessions in `stream`. Its value
/// is kept if `is_kept`.
fn define(
    b: &mut Build<'_>,
    argument: Argument,
    is_kept: bool,
    of_exchange: Get,
    of_session: weir_stream::session::Get,
) {
    let name = argument.name.clone();
    if b.is_in_stream() {
        let definition =
            if is_kept { Definition::Cached(of_session, argument) } else { Definition::Computed(of_session, argument) };
        return weir_stream::variable::define(b, &name, definition);
    }
    let definition =
        if is_kept { Definition::Cached(of_exchange, argument) } else { Definition::Computed(of_exchange, argument) };
    b.names.define(&name, definition);
}

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
