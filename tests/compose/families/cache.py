"""The cache of every family of origins."""
from family import Family

FAMILIES = [
    Family("cache", 9, "http server location", """
        P_cache {P_zone*7|off}
        P_cache_key {$scheme$proxy_host$uri$is_args$args|$uri$is_args$args|$request_uri|$request_method$request_uri|$uri-$cookie_c|$uri-$http_x_u|$scheme$host$uri|$pick$uri|$request_uri-$arg_a|k$slice_range$uri|$uri$remote_user|$request_uri-$request_body|$uri$is_args$args$one}
        P_cache_valid {1m|200 302 1m|any 1m|404 1m|any 0|200 1s|any 1s} ~70
        P_cache_valid {404 403 1m|500 1m|301 1m} ~20
        P_cache_methods {POST|GET HEAD POST} ~25
        P_cache_lock on ~20
        P_cache_bypass {$arg_a|$skip|$http_pragma|$cookie_c|$request_body|$one} ~20
        P_no_cache {$arg_a|$skip|$http_authorization|$cookie_c|$upstream_http_x_from|$request_body|$status} ~20
        P_cache_use_stale {error timeout|http_500 http_404|updating error|error http_503 http_403|error timeout invalid_header updating http_500 http_502 http_503 http_504 http_403 http_404 http_429} ~25
        P_cache_background_update on ~10
        P_cache_revalidate on ~20
        P_cache_min_uses {2|1} ~10
        P_cache_convert_head off ~10
        P_ignore_headers {Cache-Control|Set-Cookie|Vary|X-Accel-Expires Expires|Cache-Control Expires Set-Cookie|Expires X-Accel-Expires Cache-Control Set-Cookie Vary} ~30
        P_buffering off ~8
        """, asks="""
        Cookie: c={1|2} ~25
        X-U: {ax|admin|zz} ~25
        Pragma: no-cache ~10
        Cache-Control: {no-cache|max-age=0|only-if-cached|no-store} ~6
        HEAD ~10
        POST ~15
        Authorization: Basic dTpw ~8
        Upgrade: {foo|websocket|h2c} ~8
        Connection: upgrade ~8
        Range: bytes=0-9 ~6
        If-None-Match: {"e1"|"h1"} ~6
        """),
    # What only its parts together show: a key of the body, answers to POST, and the same request with another body.
    Family("answers by body", 2, "server location", """
        P_cache P_zone
        P_cache_key {$uri-$request_body*3|$request_uri$bodied}
        P_cache_methods {POST|GET HEAD POST}
        P_cache_valid {any 1m|1m}
        """, asks="POST ~60"),
    Family("store", 1, "location", "P_store {on|store$uri|store/x}\nP_store_access user:rw group:r ~30\nroot store ~50"),
]
