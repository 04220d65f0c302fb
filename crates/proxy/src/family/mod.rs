//! The families that ask origins and keep answers: one file each, and one word below.

weir_http::declare! {
    upstream_variables
    compression
    gzip
    brotli
    zstd
    cache
    cache_purge
    store
    slice
    proxy
    proxy_ssl
    grpc
    grpc_ssl
    fastcgi
    uwsgi
    scgi
    memcached
    tunnel
    upstream
    sticky
    health
    resolver
    early_hints
}

weir_http::above!(0);
