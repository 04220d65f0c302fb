"""The core module, static files, and what listens."""
from family import Family

FAMILIES = [
    Family("body", 4, "http server location", most=2, menu="""
        client_max_body_size {100|1k|0|10}
        client_body_in_file_only {clean|on}
        client_body_in_single_buffer on
        client_body_buffer_size {100|1k}
        client_body_timeout 3s
        """, asks="POST ~70"),
    Family("core", 5, "http server location", most=2, menu="""
        keepalive_requests {1|2|3}
        keepalive_timeout {0|5s 3s}
        keepalive_disable none
        lingering_close {off|always}
        absolute_redirect off
        port_in_redirect off
        server_name_in_redirect on
        msie_padding off
        msie_refresh on
        log_not_found off
        default_type {text/html|text/plain|""}
        sendfile on
        directio 1k
        output_buffers 2 4k
        reset_timedout_connection on
        limit_rate 900k
        limit_rate_after 1k
        send_timeout 5s
        postpone_output 0
        aio threads
        disable_symlinks on
        tcp_nodelay off
        if_modified_since {before|off|exact}
        etag off
        access_log off
        access_log access.log line if=$skip
        open_file_cache {max=10|max=1|max=10 inactive=1s|off}
        open_file_cache_errors on
        open_file_cache_min_uses 2
        subrequest_output_buffer_size 100
        satisfy any
        server_tokens off
        """),
    Family("server_only", 3, "server", most=2, menu="""
        ignore_invalid_headers off
        underscores_in_headers on
        merge_slashes off
        large_client_header_buffers 2 1k
        client_header_buffer_size 128
        http2_max_concurrent_streams 1
        http2_body_preread_size 0
        http2_chunk_size 1k
        max_headers 8
        """, asks="X_Under: 1 ~30\nX.Dot: 1 ~20"),
    Family("static", 4, "http server location", most=2, menu="""
        index {a.txt index.html|none.html /e|index.html|$one.html a.html}
        autoindex on
        autoindex_format {html|json|xml}
        autoindex_exact_size off
        try_files $uri $uri/ {=404|@n1|/p/k|/e?$args}
        root {html|html/b|html/$http_x_u}
        """),
]
