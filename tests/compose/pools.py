"""The pools of the templates: texts that many families share."""

# Origins of every case by their port; a request chooses their answers (origin.py).
PORTS = {"one": 9001, "two": 9002, "fastcgi": 9003, "uwsgi": 9004, "scgi": 9005, "memcached": 9006, "grpc": 9007, "tls": 9008, "closing": 9009, "tcp": 9011}
# Nobody listens there.
DEAD = 9010
# The edge listens there.
PLAIN, TLS, PROXIED, OTHER, STREAM = 8080, 8443, 8081, 8082, 8090

# Paths of static files, and the place of each location with paths that lead to it.
PLACES = {
    "/": ["/", "/index.html", "/none", "/other/k"],
    "/a/": ["/a/", "/a/a.txt", "/a/a.html", "/a/k", "/a/none", "/a/%61.txt", "/a//a.txt", "/a"],
    "/b/": ["/b/", "/b/a.html", "/b/k", "/b/../a/a.txt", "/b/big.txt"],
    "/c": ["/c", "/c/d", "/c/404", "/cc"],
    "= /e": ["/e"],
    "/d/": ["/d/", "/d", "/d/sub/", "/d/sub", "/d/a.txt"],
    "/p/": ["/p/", "/p/k", "/p/k", "/p/a.txt", "/p/a%20b", "/p/%2fx", "/p/a+b%25", "/p/;v=1", "/p/a.html"],
    "^~ /s/": ["/s/", "/s/a.txt", "/s/k"],
    "/m/": ["/m/film.mp4", "/m/film.flv", "/m/film.mp4?start=1", "/m/film.flv?start=13", "/m/film.mp4?start=1&end=2"],
    "~ \\.php$": ["/x.php", "/a/x.php", "/index.php", "/p/x.php"],
    "~ \\.php(/|$)": ["/x.php", "/a/x.php/info", "/index.php/a/b"],
    "~* ^/r/(\\w+)(?:/(.*))?$": ["/r/w/a.txt", "/r/d", "/R/w"],
    "~ ^/q/(?<nm>[^/]+)/(.*)$": ["/q/k/z", "/q/k/a.txt", "/q/%2f/z"],
    "~ \\.txt$": ["/a/a.txt", "/none.txt", "/p/a.txt"],
    "~* \\.(html|css)$": ["/b/a.html", "/a/a.html", "/p/a.html", "/index.HTML"],
    "/w/": ["/w/f.txt", "/w/new.txt", "/w/sub/x", "/w/sub/", "/w/"],
    "/i/": ["/i/a.txt", "/i/k"],
    "= /50x.html": ["/50x.html"],
    "= /err": ["/err"],
    "/z/": ["/z/gz.txt", "/z/gz.html", "/z/koi.html", "/z/ssi.html", "/z/foo.html"],
    "@n1": [], "@n2": [],
}
PATHS = [path for paths in PLACES.values() for path in paths if "?" not in path]

# The answers of the origins, by the argument `o` (answers.py has their meaning); those for an authentication by the field X-A.
ORDINARY = "ok echo html chunk close trail big gz range etag weak vary nocache private cookie expires xae xae0 accel accelargs accelname accelmiss accelodd nobuf early link 201 204 206 301 302 307 400 401 403 404 404c 410 416 429 500 502 503 504 short empty pieces pieceshtml".split()
RARE = "nohead garbage hang reset ws charset".split()

POOLS = {
    "code": "400 401 403 404 405 410 413 416 418 429 500 502 503 504".split(),
    "codes": ["<code>", "<code>", "<code> <code>", "403 404", "401 403", "500 502 503 504"],
    "equals": ["", "", "", " =", " ={200|204|301|302|403|404|503}"],
    "page": ["/50x.html", "/err", "/i/a.txt", "@n1", "@n2", "/b/a.html", "/a/none", "/p/e?o=404", "/p/e?o=html", "/e", "http://x.test/$uri", "$to", "/c/$status", "/q/x/y", "/c", "/s/k?$args", "/z/ssi.html"],
    "uri": ["/a/a.txt", "/b/a.html", "/c", "/c/d", "/e", "/s/a.txt", "/x.php", "/r/w/a.txt", "/q/k/z", "/i/a.txt", "/p/k", "/d/", "/none", "$uri", "/p$uri", "/p/$1", "/p/k?o={html|404|pieces|big}", "/z/ssi.html"],
    "variable": """$uri $args $arg_a $request_uri $request_method $cookie_c $http_x_u $host $remote_addr $status $upstream_status $upstream_http_x_from $pick $to $word $skip $geo $split $request_body $content_length $content_type
        $document_uri $is_args $query_string $request_filename $upstream_cache_status $sent_http_content_type $http_referer $scheme $one $two $remote_user $http_accept_encoding $limit_rate $document_root $server_protocol
        $proxy_host $proxy_add_x_forwarded_for $upstream_trailer_x_t $1 $2 $request_completion $upstream_http_cache_control $sent_http_location $server_name $http2 $https $ssl_server_name $realip_remote_addr
        $invalid_referer $secure_link $slice_range $fastcgi_script_name $uid_got $limit_req_status $nested $arg_o $sent_http_etag $request_length $proxy_protocol_addr $upstream_response_length
        $fastcgi_path_info $http_cookie $http_upgrade $connection_upgrade $body_bytes_sent $bytes_sent $upstream_addr $document_root $realpath_root""".split(),
    "text": ["<variable>", "x<variable>", "<variable>-<variable>", "fixed", "\"<variable> <variable>\"", "<variable>|<variable>"],
    "condition": ["(<variable>)", "(<variable> = {GET|POST|1|/e|404|\"\"|200})", "(<variable> != 1)", "(<variable> ~ \"^(.)(.)\")", "(<variable> ~* \"(a|o)=?\")", "(-f $request_filename)", "(!-e $request_filename)", "(-d $document_root$uri)", "($request_method = POST)",
                  "($arg_a)", "($http_x_u ~ (?<nm>.+))", "($uri ~ ^/(\\w)/(.*))", "($invalid_referer)", "($cookie_c = 1)", "($status = 404)", "($request_body ~ (a)=)"],
    "where": ["127.0.0.1", "all", "127.0.0.0/8", "10.0.0.0/8", "::1", "10.1.1.1"],
}
POOLS["group"] = ["127.0.0.1:9001", "127.0.0.1:9001", "127.0.0.1:9001", "127.0.0.1:9002", "first", "backed", "half", "closing", "pair", "weighted", "hashed", "bound", "routed", "learned", f"127.0.0.1:{DEAD}"]
