//! The families of the engine: their settings are fields of every block and location.

crate::declare! {
    process
    bounds
    error_log
    debug_connection
    early_read
    variables
    core
    files
    certificates
    status_zone
    server
    location
    rewrite
    disable_symlinks
    open_file_cache
    error_page
    headers
    http2
    http3
    otel
}
