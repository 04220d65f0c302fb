"""The families that let a request in, and those that limit it."""
from family import Family

USER = "dTpw"  # u:p

FAMILIES = [
    Family("auth_request", 7, "http server location", """
        auth_request {/auth*5|/auth2|/i/a.txt|off|/auth?x=1|/p/au|/auth3}
        auth_request_set $taken $upstream_http_x_from ~30
        auth_request_set $one $upstream_status ~30
        auth_request_set $two $status ~10
        satisfy any ~15
        """, asks="X-A: {200|401|403|500|302|404c|nohead|accel|429|204|nobuf|cookie|hang*0|etag|ok} ~60\nUpgrade: websocket ~8\nConnection: upgrade ~8"),
    Family("auth_basic", 4, "http server location", """
        auth_basic {realm*3|off|$http_x_u}
        auth_basic_user_file users
        satisfy any ~40
        """, asks="Authorization: Basic {dTpw*4|dTpiYWQ=|bg==} ~70"),
    Family("access", 4, "http server location", """
        {allow|deny} <where>
        {allow|deny} <where> ~60
        satisfy any ~30
        """),
    Family("limit_except", 2, "location", menu="""
        limit_except {GET|POST|HEAD|GET POST|PUT} :
            deny all
        limit_except {GET|POST|GET POST} :
            allow 127.0.0.1
            deny all
        limit_except GET :
            auth_basic realm
            auth_basic_user_file users
        limit_except GET :
            proxy_pass http://127.0.0.1:9002
        """, asks="{POST|PUT|DELETE|HEAD} ~40"),
    Family("secure_link", 2, "http server location", menu="""
        secure_link $arg_md5,$arg_e
        secure_link_md5 "$uri k"
        """, rows="secure_link_secret word ~20"),
    Family("referer", 2, "server location", "valid_referers {none|none server_names|none blocked *.x.test|~evil}\nif ($invalid_referer) :\n    {return 403|set $one bad|rewrite ^ /e last}", asks="Referer: {http://x.test/|http://evil/|http://a.x.test/k} ~60"),
    Family("realip", 3, "http server location", """
        set_real_ip_from {127.0.0.0/8|127.0.0.1|10.0.0.0/8}
        set_real_ip_from 10.0.0.0/8 ~20
        real_ip_header {X-Forwarded-For|X-Real-IP|proxy_protocol|X-U}
        real_ip_recursive on ~40
        """, asks="X-Forwarded-For: {10.1.1.1|10.1.1.1, 127.0.0.9|junk|10.1.1.1:99, 192.0.2.1} ~60\nX-Real-IP: 10.1.1.9 ~40"),
    Family("limit_req", 3, "http server location", """
        limit_req zone={lr|lrone} {burst=3 nodelay|burst=1 nodelay||burst=200 nodelay}
        limit_req_status {429|444|404} ~30
        limit_req_dry_run on ~15
        """),
    Family("limit_conn", 2, "http server location", """
        limit_conn {lc|lcone} {1|20}
        limit_conn_status {429|404} ~30
        limit_conn_dry_run on ~15
        """),
    Family("userid", 2, "http server location", menu="""
        userid on
        userid log
        userid v1
        """, rows="userid_name {uid|c}\nuserid_path /x ~30\nuserid_flags secure samesite=lax ~20\nuserid_mark A ~20\nuserid_expires 1d ~20\nuserid_p3p policyref ~10", asks="Cookie: {uid=CgACBl; c=1|uid=fwAAAWdGiWkZRVVVAwMEAg==} ~40"),
    Family("internal", 2, "location", "internal"),
]
