"""What an edge says to an origin, and what it takes from its answer."""
from family import Family

FAMILIES = [
    Family("request", 8, "http server location", most=3, menu="""
        P_set_header {Host|X-V|X-Real|Connection|Accept-Encoding|Range|Cookie|X-O|Content-Type|Content-Length|Upgrade|X-Code} {<variable>|<text>|""|$host|$status}
        fastcgi_param {X_V|HTTP_X_V|CONTENT_LENGTH|HTTP_COOKIE|REQUEST_METHOD} {<variable>|<text>|""}
        P_method {POST|GET|$verb|PUT}
        P_set_body {fixed|$request_body|$uri|b=$arg_a|"$request_body-$http_x_u"}
        P_pass_request_body off
        P_pass_request_headers off
        P_http_version {1.0|1.1}
        P_request_buffering off
        P_socket_keepalive on
        P_ignore_client_abort on
        """, asks="POST ~40"),
    Family("answer", 6, "http server location", most=3, menu="""
        P_hide_header {X-From|ETag|Set-Cookie|Link|Content-Type|Last-Modified|Cache-Control|X-Accel-Redirect}
        P_pass_header {Server|Date|X-Accel-Redirect|X-Accel-Expires|X-Accel-Buffering|Status}
        P_redirect {off|/x/ /y/|http://127.0.0.1:9001/ /z/|~*^/x/(.*) $scheme://$host/$1|/ $http_x_u|default}
        P_cookie_path {/x/ /|~^/(.+)/ /k/$1|off}
        P_cookie_domain {o.test $host|off}
        P_cookie_flags {c secure samesite=lax|~. nohttponly|c httponly}
        P_ignore_headers {X-Accel-Redirect|X-Accel-Limit-Rate X-Accel-Buffering|X-Accel-Charset|Set-Cookie|Cache-Control Expires}
        P_pass_trailers on
        early_hints {$pick|$skip|1}
        P_intercept_errors on
        """, asks="?o={accel|accelargs|accelname|accelodd|cookie|302|early|trail|nobuf|xae} ~50"),
    Family("next_upstream", 3, "http server location", """
        P_next_upstream {error http_500 http_503|http_404 http_403|off|error timeout non_idempotent http_502|invalid_header|error timeout invalid_header http_429 http_504|updating}
        P_next_upstream_tries {1|2} ~30
        P_next_upstream_timeout 1s ~10
        """, asks="?o={500|502|503|504|404|403|429|nohead|short|reset} ~50\nPOST ~20"),
    Family("buffering", 4, "http server location", most=2, menu="""
        P_buffering off
        P_request_buffering off
        P_max_temp_file_size 0
        P_buffer_size {4k|1k|256}
        P_buffers 4 4k
        P_busy_buffers_size 4k
        P_limit_rate 2m
        P_force_ranges on
        """, asks="?o={pieces|pieceshtml|big|nobuf|chunk} ~50\nPOST ~30"),
]
