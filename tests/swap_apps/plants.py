"""The planted differences: forty small changes of the five configurations, each with the parts that it changes.

A plant replaces one text of A's file by another. `must` is a pattern for the part of the report that shows it, `may` for the parts that the same
change moves too. A part of the report that neither pattern takes is a false report.
"""
import dataclasses
import re

# What a change of the body, its length or its coding moves besides.
LENGTH = r"field (content-length|transfer-encoding|accept-ranges|etag|vary|last-modified)|log.*"


@dataclasses.dataclass(frozen=True)
class Plant:
    """One change. Its name is unique in an application."""
    app: str
    kind: str
    name: str
    old: str
    new: str
    must: str
    may: str = "log.*"

    def file(self, text):
        """B's file, made of A's."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.app}/{self.name}: {self.old!r} is there {text.count(self.old)} times")
        return text.replace(self.old, self.new)

    def lines(self, text):
        """The lines that a report may name: pairs of side and number, from 1. Of two lines that change places, each is the one."""
        before, after = text.splitlines(), self.file(text).splitlines()
        begin = next(number for number, pair in enumerate(zip(before, after)) if pair[0] != pair[1])
        end = next(number for number, pair in enumerate(zip(before[::-1], after[::-1])) if pair[0] != pair[1])
        return {(side, line) for side, lines in (("a", before), ("b", after)) for line in range(begin + 1, len(lines) - end + 1)}

    def shows(self, part):
        return re.fullmatch(self.must, part, re.I) is not None

    def moves(self, part):
        return self.shows(part) or re.fullmatch(self.may, part, re.I) is not None


def added(after, line):
    """The texts of a plant that adds a line after another one."""
    indent = re.match(r"\s*", after)[0]
    return after, f"{after}\n{indent}{line}"


X_CACHE = "            add_header X-Cache $upstream_cache_status always;\n"
NOSNIFF = "            add_header X-Content-Type-Options nosniff always;\n"
WP_CACHE = "            add_header X-Cache $upstream_cache_status;\n"
WP_FRAME = "            add_header X-Frame-Options SAMEORIGIN;\n"
KIND, HOST = "            add_header X-Kind static;\n", "            add_header X-Host $host;\n"
ACCOUNT = '            add_header Cache-Control "private" always;\n'

PLANTS = [
    Plant("api", "headers", "frame", "X-Frame-Options DENY always", "X-Frame-Options SAMEORIGIN always", "field x-frame-options"),
    Plant("api", "order", "fields", X_CACHE + NOSNIFF, NOSNIFF + X_CACHE, "order of fields"),
    Plant("api", "status", "gone", "return 410;", "return 404;", "status", f"body.*|field content-encoding|{LENGTH}"),
    Plant("api", "caching", "key", "$scheme$host$uri$is_args$args;", "$scheme$host$uri;", "body.*|field (x-cache|link)", f"origin .*|field (x-request-id|cache-control|date)|{LENGTH}"),
    Plant("api", "compression", "types", "gzip_types application/json text/css", "gzip_types text/css", "field content-encoding", LENGTH),
    Plant("api", "range", "none", *added("            expires 1h;", "max_ranges 0;"), "status|field (accept-ranges|content-range)", f"body.*|{LENGTH}"),
    Plant("api", "log line", "request", '[$time_local] "$request" $status', '[$time_local] "$request_method $uri" $status', "log.*"),
    Plant("api", "origin", "proto", "        proxy_set_header X-Forwarded-Proto $scheme;\n", "", "origin field x-forwarded-proto"),

    Plant("shop", "cookies", "flags", "samesite=lax", "samesite=strict", "field set-cookie"),
    Plant("shop", "cookies", "path", "            proxy_cookie_path /app /app/;\n", "", "field set-cookie"),
    Plant("shop", "redirects", "proxied", "proxy_redirect http://shop.internal/ /;", "proxy_redirect off;", "field location", f"order of fields|body.*|{LENGTH}"),
    Plant("shop", "redirects", "code", "$1 permanent;", "$1 redirect;", "status", f"body.*|{LENGTH}"),
    Plant("shop", "headers", "powered", "            proxy_hide_header X-Powered-By;\n", "", "field x-powered-by"),
    Plant("shop", "body", "replaced", "'https://help.example'", "'https://help.example.net'", "body.*", LENGTH),
    Plant("shop", "caching", "expires", "expires 7d;", "expires 1d;", "field (cache-control|expires)"),
    Plant("shop", "origin", "inherited", '            proxy_set_header Accept-Encoding "";\n', "", "origin field (accept-encoding|host|x-forwarded-for|x-forwarded-proto)"),

    Plant("spring", "headers", "section", ACCOUNT + "            add_header X-Section $section always;\n", ACCOUNT, "field x-section"),
    Plant("spring", "status", "error page", "error_page 404 /missing.html;", "error_page 404 =200 /missing.html;", "status"),
    Plant("spring", "body", "errors", "proxy_intercept_errors on;", "proxy_intercept_errors off;", "body.*", f"field (content-type|content-encoding|connection)|{LENGTH}"),
    Plant("spring", "range", "hidden", "            proxy_buffering off;\n", '            proxy_set_header Range "";\n', "status|field content-range|origin field range",
          f"body.*|origin .*|field content-encoding|{LENGTH}"),
    Plant("spring", "redirects", "port", "            proxy_redirect http://orders.example:80/ /;\n", "", "field location", "order of fields|log.*"),
    Plant("spring", "compression", "csv", "gzip_types application/json text/csv;", "gzip_types application/json;", "field content-encoding", LENGTH),
    Plant("spring", "log line", "off", *added("            proxy_buffering off;", "access_log off;"), "log.*"),
    Plant("spring", "origin", "address", "X-Real-IP $remote_addr;", "X-Real-IP $http_x_real_ip;", "origin field x-real-ip"),

    Plant("wordpress", "caching", "valid", "fastcgi_cache_valid 200 301 5m;", "fastcgi_cache_valid 301 5m;", "field x-cache", f"origin .*|field age|{LENGTH}"),
    Plant("wordpress", "caching", "bypass", "            fastcgi_cache_bypass $personal;\n", "", "field x-cache", f"origin .*|field age|{LENGTH}"),
    Plant("wordpress", "status", "hidden", "location = /wp-config.php { deny all; }", "location = /wp-config.php { return 404; }", "status", f"body.*|{LENGTH}"),
    Plant("wordpress", "redirects", "folders", "try_files $uri $uri/ /index.php?$args;", "try_files $uri /index.php?$args;", "status|field location", "body.*|field .*|order of fields|origin .*|log.*"),
    Plant("wordpress", "compression", "off", "gzip on;", "gzip off;", "field content-encoding", LENGTH),
    Plant("wordpress", "headers", "cross-origin", "            add_header Access-Control-Allow-Origin *;\n", "", "field access-control-allow-origin"),
    Plant("wordpress", "order", "fields", WP_CACHE + WP_FRAME, WP_FRAME + WP_CACHE, "order of fields"),
    Plant("wordpress", "origin", "params", 'fastcgi_param HTTP_PROXY "";', "fastcgi_param REMOTE_USER edge;", "origin field (http_proxy|remote_user)", "log.*|origin order.*"),

    Plant("site", "body", "up", '"up\\n"', '"ok\\n"', "body.*"),
    Plant("site", "status", "icon", "return 204;", "return 200;", "status", f"field content-type|body.*|{LENGTH}"),
    Plant("site", "cookies", "csrf", "csrftoken secure samesite=lax;", "csrftoken samesite=strict;", "field set-cookie"),
    Plant("site", "redirects", "scheme", "X-Forwarded-Proto https;", "X-Forwarded-Proto http;", "field location|origin field x-forwarded-proto", "field .*|body.*|log.*|origin .*"),
    Plant("site", "range", "none", *added("            autoindex on;", "max_ranges 0;"), "status|field (accept-ranges|content-range)", f"body.*|{LENGTH}"),
    Plant("site", "compression", "vary", "gzip_vary on;", "gzip_vary off;", "field vary"),
    Plant("site", "order", "fields", KIND + HOST, HOST + KIND, "order of fields"),
    Plant("site", "log line", "uri", "$http_host $uri';", "$http_host $request_uri';", "log.*"),
]

KINDS = {"headers", "order", "status", "body", "caching", "redirects", "cookies", "range", "compression", "log line", "origin"}
assert len(PLANTS) == 40 and {plant.kind for plant in PLANTS} == KINDS
