"""The filters of bodies."""
from family import Family

FAMILIES = [
    Family("gzip", 5, "http server location if", """
        gzip {on*4|off}
        gzip_min_length {0|100} ~80
        gzip_proxied {any*4|off|expired no-cache|auth|no-store private} ~80
        gzip_types {text/plain|*|text/plain text/css} ~50
        gunzip on ~20
        gzip_static {on|always} ~20
        gzip_vary on ~40
        gzip_http_version 1.0 ~20
        gzip_disable c/1 ~10
        gzip_comp_level {1|9} ~10
        """, asks="Accept-Encoding: {gzip*5|identity|gzip;q=0|deflate|br, gzip} ~70\nVia: 1.1 v ~10"),
    Family("gunzip", 2, "http server location", "gunzip on\ngzip_static {on|always} ~50", asks="Accept-Encoding: {gzip|identity} ~40\n?o=gz ~40"),
    Family("sub_filter", 3, "http server location", """
        sub_filter {foo|FOO|one|</body>|html|text} {bar|$uri|$status|<$arg_a>|""}
        sub_filter {two|f} {2|$one} ~30
        sub_filter_once off ~40
        sub_filter_types {*|text/plain} ~40
        sub_filter_last_modified on ~20
        """),
    Family("addition", 3, "http server location", """
        {add_before_body|add_after_body} {/b/a.html|/a/a.txt|/p/k|/none|/i/a.txt|/e|/p/k?o={gz|403|accel|chunk|big|empty}}
        addition_types {*|text/plain} ~40
        """),
    Family("ssi", 4, "http server location if", """
        ssi {on*5|off}
        ssi_types {*|text/plain} ~30
        ssi_last_modified on ~20
        ssi_silent_errors on ~20
        ssi_value_length 4 ~10
        """, asks="/z/ssi.html ~40\n?o=html ~40"),
    Family("charset", 2, "http server location if", """
        charset {utf-8|koi8-r|off|iso-8859-1|$http_x_u}
        override_charset on ~30
        source_charset {koi8-r|utf-8} ~30
        charset_types {*|text/plain} ~30
        """, asks="X-U: {utf-8|koi8-r} ~30\n/z/koi.html ~30"),
    Family("slice", 2, "location", """
        slice {4k|1k}
        P_set_header Range $slice_range
        P_cache P_zone
        P_cache_key $uri$is_args$args$slice_range
        P_cache_valid 200 206 1m
        """, asks="Range: {bytes=0-9|bytes=5000-9000|bytes=-7|bytes=10-,3-4} ~60\n?o=range ~60"),
    Family("mirror", 3, "http server location", """
        mirror {/p/mirror|/auth|/e|/i/a.txt|off|/x.php|@n1|/p/mirror?o=500}
        mirror /c ~20
        mirror_request_body off ~30
        """, asks="POST ~40\nUpgrade: websocket ~8\nConnection: upgrade ~8"),
    Family("chunked", 1, "http server location", "chunked_transfer_encoding off"),
]
