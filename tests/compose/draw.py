"""Draws a case from a seed: a configuration from the families, and requests that meet it."""
import dataclasses
import random
import re

import families
import grammar
import pools
from ask import Ask
from families import stream
from grammar import Statement

# Statements that nginx takes several times in a block; of all others the first one stays.
MANY = frozenset("""add_header add_trailer error_page if set rewrite allow deny sub_filter location fastcgi_param auth_request_set mirror set_real_ip_from limit_except map geo split_clients upstream server listen return
    charset_map early_hints break limit_req_zone limit_conn_zone uwsgi_param scgi_param grpc_set_header proxy_set_header keyval_zone access_log include""".split())
MANY_ENDINGS = ("_hide_header", "_pass_header", "_cache_valid", "_cookie_path", "_cookie_domain", "_cookie_flags", "_redirect", "_cache_path")
# One of these answers in a location.
HANDLERS = ("proxy_pass", "fastcgi_pass", "uwsgi_pass", "scgi_pass", "memcached_pass", "grpc_pass", "empty_gif", "stub_status", "mp4", "flv", "tunnel_pass")
PREFIXES = {"proxy": 60, "fastcgi": 12, "uwsgi": 6, "scgi": 6, "grpc": 4, "memcached": 4}

# What every case has at its http level; a reduced file keeps only the used parts.
KIT = """
proxy_cache_path cache/proxy levels=1:2 keys_zone=proxy_zone:1m inactive=10m {|use_temp_path=off}
fastcgi_cache_path cache/fastcgi keys_zone=fastcgi_zone:1m
uwsgi_cache_path cache/uwsgi levels=2 keys_zone=uwsgi_zone:1m
scgi_cache_path cache/scgi keys_zone=scgi_zone:1m
limit_req_zone $arg_a zone=lr:1m rate=1r/m
limit_req_zone $server_name zone=lrone:1m rate=1r/m
limit_conn_zone $arg_a zone=lc:1m
limit_conn_zone $server_name zone=lcone:1m
upstream first :
    server 127.0.0.1:9001 {max_fails=0*5|}
    server 127.0.0.1:9002 backup {max_fails=0*5|}
    keepalive 4 ~30
upstream backed :
    server 127.0.0.1:9010 {|max_fails=0}
    server 127.0.0.1:9001 backup
upstream half :
    server 127.0.0.1:9001 down
    server 127.0.0.1:9002 {max_fails=0*5|}
upstream closing :
    server 127.0.0.1:9009 max_fails=0
    server 127.0.0.1:9002 max_fails=0
upstream pair :
    least_conn ~30
    server 127.0.0.1:9001 max_fails=0
    server 127.0.0.1:9002 max_fails=0
    keepalive 4 ~30
upstream weighted :
    server 127.0.0.1:9001 weight=3 max_fails=0
    server 127.0.0.1:9002 max_fails=0 {|weight=2}
upstream hashed :
    hash {$uri|$arg_a|$http_x_u$request_body} {|consistent}
    server 127.0.0.1:9001 max_fails=0
    server 127.0.0.1:9002 max_fails=0
upstream bound :
    server 127.0.0.1:9001 max_fails=0 {|route=a}
    server 127.0.0.1:9002 max_fails=0 {|route=1}
    sticky cookie {c|srv} {|expires=1h|expires=max path=/|domain=.x.test httponly|secure samesite=lax}
upstream routed :
    server 127.0.0.1:9001 max_fails=0 route=1
    server 127.0.0.1:9002 max_fails=0 {|route=ax}
    sticky route {$arg_a|$cookie_c $arg_a|$http_x_u}
upstream learned :
    server 127.0.0.1:9001 max_fails=0
    server 127.0.0.1:9002 max_fails=0
    sticky learn create={$upstream_http_x_from|$upstream_cookie_sid} lookup={$arg_a|$cookie_c} zone=learned:1m {|header|timeout=1h}
upstream fast :
    server 127.0.0.1:9003
    keepalive 2 ~40
map $http_x_u $pick :
    default d
    ~^(\\w)x $1
    admin 1
    "" ""
map $uri $to :
    default /b/a.html
    ~^/p/(?<mn>.*) /i/a.txt
    /e @n1
map $status $word :
    default x
    ~^4 four
    200 ok
map $request_method $verb :
    default GET
    POST PUT
map $cookie_c$arg_a $skip :
    default 0
    ~1 1
map $request_body $bodied :
    default none
    ~a=(.*) $1
map $pick$word $nested :
    default $uri
    ~1 $skip$to
map $http_upgrade $connection_upgrade :
    default upgrade
    "" close
geo $geo :
    default 0
    127.0.0.0/8 local
    10.0.0.0/8 ten
split_clients $http_x_u$uri $split :
    30% a
    40% b
    * c
charset_map koi8-r utf-8 :
    E4 D094
charset_map koi8-r iso-8859-1 :
    E4 C4
"""
PARAMS = """
P_param REQUEST_METHOD $request_method
P_param REQUEST_URI $request_uri
P_param QUERY_STRING $query_string
P_param CONTENT_TYPE $content_type
P_param CONTENT_LENGTH $content_length
P_param SCRIPT_NAME $SCRIPT
P_param DOCUMENT_URI $document_uri
P_param SERVER_PROTOCOL $server_protocol
"""
SUITS = {"http": "http", "server": "server", "location": "location", "if": "if"}
VALUES = {"X-O": pools.ORDINARY}
METHODS = "GET*60 HEAD*8 POST*18 PUT*4 OPTIONS*2 DELETE*2 PATCH BREW TRACE*0".split()
BODIES = (b"a=1", b"b=22", b"x" * 300, b"y" * 3000, b"", b"z" * 20000)
# A field that any request may have, and its share in percent.
FIELDS = """
Accept-Encoding: {gzip*3|identity|gzip;q=0} ~25
Range: {bytes=0-9|bytes=5-|bytes=-7|bytes=0-1,5-9|bytes=99999999-} ~4
If-Modified-Since: {Tue, 14 Nov 2023 22:13:20 GMT|Tue, 14 Nov 2028 22:13:20 GMT} ~4
If-None-Match: {"e1"|"h1"|*|W/"e1"} ~4
Cookie: {c=1|c=2} ~12
Authorization: Basic {dTpw|dTpiYWQ=} ~6
Referer: {http://x.test/|http://evil/} ~5
X-Forwarded-For: {10.1.1.1|10.1.1.1, 127.0.0.9} ~5
X-A: {200|401|403|500|204} ~10
X-U: {ax|admin|zz} ~20
Upgrade: {foo|websocket|h2c} ~3
Content-Type: application/x-www-form-urlencoded ~8
User-Agent: {c/1|c/2} ~8
TE: trailers ~4
"""


class Composer:
    """Draws one case."""

    def __init__(self, seed):
        self.seed, self.dice = seed, grammar.Dice(random.Random(seed), pools.POOLS)
        self.random = self.dice.random
        every = families.ALL
        # A case has a few families, often: what one file never mixes shows elsewhere.
        some = self.random.randint(4, 12)
        self.families = []
        for _ in range(some):
            family = self.random.choices(every, [one.weight for one in every])[0]
            if family not in self.families:
                self.families.append(family)

    def case(self):
        tree = self.configuration()
        return over_http3(random.Random(f"HTTP/3 {self.seed}"), tree, self.asks(tree))

    def modifiers(self, at, most, prefix):
        """Statements of a few of the case's families that may stand in this block."""
        fitting = [family for family in self.families if at in family.at.split()]
        drawn = []
        for _ in range(self.random.randint(0, most) if fitting else 0):
            drawn += self.random.choice(fitting).statements(self.dice, prefix)
        return drawn

    def prefix(self):
        return self.random.choices(list(PREFIXES), list(PREFIXES.values()))[0]

    def handler(self, place):
        """The statements that answer in a location, and the prefix of its origins."""
        dice, is_plain = self.dice, not place.startswith(("~", "@"))
        kind = self.random.choices(["proxy", "cgi", "memcached", "grpc", "static", "return", "try", "rewrite", "empty", "none", "stub", "movie", "http2", "tls"], [44, 10, 2, 2, 12, 6, 8, 4, 2, 12, 1, 2 + 20 * (place == "/m/"), 2, 2])[0]
        uri = dice.text("{*4|/|/x/|/z?k=v}") if is_plain else ""
        match kind:
            case "proxy":
                target = dice.text("{<group>*9|127.0.0.1:9001$request_uri|first$uri$is_args$args|$origin|$origin/k?$args}")
                return [Statement(f"proxy_pass http://{target}" + ("" if "$" in target else uri))] + self.some(["proxy_http_version 1.1"], 40) + self.upgrade(), "proxy"
            case "http2":
                return [Statement("proxy_pass http://127.0.0.1:9007"), Statement("proxy_http_version 2")], "proxy"
            case "tls":
                return [Statement("proxy_pass https://127.0.0.1:9008" + uri), *self.some(["proxy_ssl_session_reuse off"], 30)], "proxy"
            case "cgi":
                prefix = self.random.choice(["fastcgi", "fastcgi", "uwsgi", "scgi"])
                params = [Statement(text.text.replace("$SCRIPT", "$fastcgi_script_name" if prefix == "fastcgi" else "$uri")) for text in dice.statements(grammar.sheet(PARAMS), prefix)]
                port = pools.PORTS[prefix]
                more = dice.statements(grammar.sheet("fastcgi_index index.php ~20\nfastcgi_split_path_info ^(.+\\.php)(/.*)$ ~30\nfastcgi_param PATH_INFO $fastcgi_path_info ~30\nfastcgi_keep_conn on ~30")) if prefix == "fastcgi" else []
                return [Statement(f"{prefix}_pass " + (dice.text(f"{{127.0.0.1:{port}*3|fast}}") if prefix == "fastcgi" else f"127.0.0.1:{port}")), *params, *more], prefix
            case "memcached":
                return dice.statements(grammar.sheet("set $memcached_key \"{$uri?$args|$request_uri|$arg_a}\"\nmemcached_pass 127.0.0.1:9006\nmemcached_gzip_flag 2 ~30")), "memcached"
            case "grpc":
                return [Statement("grpc_pass grpc://127.0.0.1:9007")], "grpc"
            case "static":
                texts = [dice.text("{root|alias} {html|html/|html/b/|html/a|html/d/}" if is_plain else "{root html*3|alias html/$1|root html/d}")]
                return [Statement(text) for text in texts] + dice.statements(grammar.sheet("autoindex on ~20\nindex a.txt ~20\ngzip_static on ~10")), self.prefix()
            case "return":
                return [Statement(dice.text("return {200|201|403|404|500|418|405|401} {t|<text>}"))], self.prefix()
            case "try":
                tries = " ".join(dice.text("{$uri*3|$uri/|/b/$1|$uri.html|/a/a.txt|$document_uri|/none$uri}") for _ in range(self.random.randint(1, 2)))
                last = dice.text("{=404*2|@n1*3|@n2|/p/k?o=html|/e|=500|/b/a.html?$args|/none|=403|/q/x$uri}")
                return [Statement(f"try_files {tries} {last}"), *self.some([f"proxy_pass http://{dice.text('<group>')}"], 25)], self.prefix()
            case "rewrite":
                return [], self.prefix()
            case "empty":
                return [Statement("empty_gif")], self.prefix()
            case "stub":
                return [Statement("stub_status")], self.prefix()
            case "movie":
                return [Statement("root html"), Statement(self.random.choice(["mp4", "flv"]))], self.prefix()
        return [], self.prefix()

    def upgrade(self):
        return self.some(["proxy_http_version 1.1", "proxy_set_header Upgrade $http_upgrade", "proxy_set_header Connection $connection_upgrade"], 10)

    def some(self, texts, percent):
        return [Statement(text) for text in texts] if self.dice.happens(percent) else []

    def location(self, place, depth=0):
        handler, prefix = self.handler(place)
        body = handler + self.modifiers("location", 4, prefix)
        if depth == 0 and not place.startswith(("@", "=")) and self.dice.happens(20):
            path = None if place.startswith("~") else place.split(" ")[-1]
            inner = self.random.choice([f"{path}x/" if path else "~ x", "~ \\.txt$", "~* \\.(html|php)$", f"= {path}a.txt" if path else "~ k$", f"^~ {path}sub/" if path else "~ z", "~ k"])
            body.append(self.location(inner, 1))
        return Statement(f"location {place}", unique(body))

    def server(self, is_first):
        dice = self.dice
        drawn = [place for place in pools.PLACES if place not in ("/i/", "@n1", "@n2")]
        places = self.random.sample(drawn, self.random.randint(3, 8) if is_first else 2)
        if is_first:
            listens = ["listen 8080", *(["listen 8443 ssl", "ssl_certificate cert.pem", "ssl_certificate_key key.pem"] if dice.happens(25) else []), *(["listen 8081 proxy_protocol"] if dice.happens(12) else [])]
            listens += ["server_name x.test _"] + (["http2 on"] if dice.happens(35) else [])
        else:
            listens = ["listen 8080", "server_name y.test ~^(?<sub>[xz])\\.test$ *.x.test"]
        body = [Statement(text) for text in listens]
        body += [Statement("root html")] if dice.happens(90) else []
        body += [Statement("set $one 1st"), Statement("set $two $arg_a"), Statement("set $origin 127.0.0.1:9001"), Statement("set $taken none")]
        body += self.modifiers("server", 4, self.prefix())
        body += [self.location(place) for place in places]
        body += [self.location("@n1"), self.location("@n2") if is_first and dice.happens(50) else Statement("location @n2", (Statement("return 200 \"n2 $uri $status $one\""),))]
        body.append(Statement("location /i/", unique([Statement("internal"), *self.modifiers("location", 2, "proxy")])))
        if is_first:
            body += [self.auth("/auth"), *([self.auth("/auth2")] if dice.happens(40) else [])]
            if dice.happens(15):
                body.append(self.dav())
        return Statement("server", unique(body))

    def auth(self, place):
        dice = self.dice
        kind = self.random.choice(["proxy", "proxy", "usual", "usual", "204", "cgi", "if", "closing", "dead"])
        body = {
            "proxy": ["proxy_pass http://127.0.0.1:9001"],
            "usual": ["internal", "proxy_pass http://127.0.0.1:9002/auth", "proxy_pass_request_body off", 'proxy_set_header Content-Length ""'],
            "204": [f"return {self.random.choice(['204', '200', '403', '401'])}"],
            "cgi": ["fastcgi_pass 127.0.0.1:9003", "fastcgi_param REQUEST_METHOD $request_method", "fastcgi_param REQUEST_URI $uri", "fastcgi_pass_request_body off"],
            "if": ["return 200"],
            "closing": ["proxy_pass http://127.0.0.1:9009"],
            "dead": ["proxy_pass http://127.0.0.1:9010"],
        }[kind]
        drawn = [Statement(text) for text in body]
        if kind == "if":
            drawn.insert(0, Statement("if ($http_x_a = 403)", (Statement("return 403"),)))
        return Statement(f"location = {place}", unique(drawn + (self.modifiers("location", 2, "proxy") if dice.happens(40) else [])))

    def dav(self):
        rows = self.dice.statements(grammar.sheet("""
            root dav
            dav_methods {PUT|PUT DELETE|PUT DELETE MKCOL COPY MOVE*3}
            create_full_put_path on ~40
            min_delete_depth 2 ~20
            dav_access user:rw group:r ~30
            """))
        return Statement("location /w/", unique(rows + self.modifiers("location", 3, "proxy")))

    def configuration(self):
        http, kit = self.modifiers("http", 4, self.prefix()), self.dice.statements(grammar.sheet(KIT))
        servers = [self.server(True)]
        if self.dice.happens(25):
            servers.append(self.server(False))
        # The stream block stands beside the http block, and last.
        sessions = self.dice.statements(grammar.sheet(stream.SHEET)) if self.dice.happens(stream.SHARE) else []
        return unique([*http, *used(kit, grammar.text((*http, *servers)))]) + tuple(servers) + tuple(sessions)

    # Requests.

    def asks(self, tree):
        """Some requests, of which many come again in the same or nearly the same form."""
        named = [statement.text.partition(" ")[2] for statement in grammar.walk(tree) if statement.name == "location"]
        paths = [path for place in named for path in pools.PLACES.get(place, ())] or pools.PATHS
        whole = grammar.text(tree)
        asks = []
        while len(asks) < 22:
            ask = self.ask(paths, whole)
            asks.append(ask)
            for _ in range(self.random.choices([0, 1, 2], [60, 30, 10])[0]):
                asks.append(dataclasses.replace(self.alike(ask), again=self.dice.happens(50)))
        if self.dice.happens(6) and "_cache " in whole:
            # What is stored gets too old.
            asks = asks[:16]
            asks += [dataclasses.replace(asks[0], pause=2.1), *asks[1:5]]
        return [ask if ask.way in ways(whole) else dataclasses.replace(ask, way="plain") for ask in asks]

    def hint(self):
        """Changes of a request that meet one of the case's families."""
        family = self.random.choice(self.families)
        return [line.text for line in self.dice.statements(grammar.sheet(family.asks))] if family.asks else []

    def alike(self, ask):
        """The same request, or one that a cache or a limit may take for the same."""
        match self.random.randint(0, 9):
            case 0 | 1 | 2 | 3 | 4:
                return ask
            case 5 if ask.body is None:
                return dataclasses.replace(ask, method=self.random.choice(["GET", "HEAD"]))
            case 6:
                return dataclasses.replace(ask, fields=changed(ask.fields, "Cookie", self.random.choice(["c=1", "c=2"])))
            case 7:
                return dataclasses.replace(ask, fields=changed(ask.fields, "X-U", self.random.choice(["ax", "admin"])))
            case 5 | 8 if ask.body is not None:
                return dataclasses.replace(ask, body=self.random.choice(BODIES))
            case 9:
                return dataclasses.replace(ask, fields=changed(ask.fields, "X-A", self.random.choice(["200", "403"])))
        return ask

    def ask(self, paths, whole):
        dice = self.dice
        path = self.random.choice(paths if dice.happens(88) else pools.PATHS)
        fields = (("Host", dice.text("{x.test*8|x.test:80|y.test*2|a.x.test}")),)
        method = dice.text("{" + "|".join(METHODS) + "}")
        arguments = [dice.text("{*2|o=<any>*6|o=<any>&a=1|a=1|a=%2f&b|a=404|o=html|o=echo}")]
        for text in [line.text for line in dice.statements(grammar.sheet(FIELDS))] + self.hint() + self.hint():
            if text.startswith("?"):
                arguments = [text[1:]]
            elif text.startswith("/"):
                path = text
            elif ": " in text:
                fields = changed(fields, *text.split(": ", 1))
            else:
                method = text
        if dice.happens(1.2):
            arguments = [f"o={self.random.choice(pools.RARE)}"]
        if any(name == "Upgrade" for name, _ in fields) and dice.happens(80):
            fields = changed(fields, "Connection", "upgrade")
        if dice.happens(12) and not any(name == "Connection" for name, _ in fields):
            fields = (*fields, ("Connection", "close"))
        query = "&".join(filter(None, arguments))
        target = path + (("&" if "?" in path else "?") + query if query else "")
        has_body = method in ("POST", "PUT", "PATCH") or dice.happens(3)
        if path.startswith("/w/") and dice.happens(60):
            method = self.random.choice(["PUT", "PUT", "DELETE", "MKCOL", "COPY", "MOVE"])
            has_body = method == "PUT"
            fields = (*fields, ("Destination", self.random.choice(["/w/copy.txt", "http://x.test/w/sub/y", "/a/a.txt"]))) if method in ("COPY", "MOVE") else fields
        way = self.random.choices(["plain", "h2c", "tls", "h2", "proxied"], [70, 8, 8, 8, 6])[0]
        return Ask(method, target, "HTTP/1.0" if dice.happens(8) else "HTTP/1.1", fields, self.random.choice(BODIES) if has_body else None, way, is_chunked=has_body and dice.happens(30), expects=has_body and dice.happens(6), is_late=has_body and dice.happens(12),
                   again=dice.happens(20), trailers=(("X-Trailer", "1"),) if has_body and dice.happens(4) else ())


pools.POOLS["any"] = pools.ORDINARY


# The percentage of the files that listen for HTTP/3 too, and of their requests that come over it.
HTTP3_FILES, HTTP3_ASKS = 35, 60

# Words of HTTP/3 and QUIC, and the percentage of these files that each of them is in.
HTTP3_WORDS = ("quic_retry on", "quic_gso on", "quic_active_connection_id_limit 3", "http3_max_concurrent_streams 2",
               "http3_stream_buffer_size 16k", "http3_hq on")
HTTP3_WORD = 20


def over_http3(dice, tree, asks):
    """The same case, or one that also listens for HTTP/3. The draws of the other families do not depend on it."""
    if dice.randrange(100) >= HTTP3_FILES:
        return tree, asks
    listens = [Statement("listen 8443 quic")]
    if "ssl_certificate cert.pem" not in grammar.text(tree):
        listens += [Statement("ssl_certificate cert.pem"), Statement("ssl_certificate_key key.pem")]
    asks = tuple(dataclasses.replace(ask, way="h3", otherwise=ask.way) if dice.randrange(100) < HTTP3_ASKS else ask for ask in asks)
    listens += [Statement(word) for word in HTTP3_WORDS if dice.randrange(100) < HTTP3_WORD]
    first = next(statement for statement in tree if statement.name == "server")
    changed = dataclasses.replace(first, block=(first.block[0], *listens, *first.block[1:]))
    return tuple(changed if statement is first else statement for statement in tree), asks


def used(kit, text):
    """The statements of the kit that a text needs, and those that they need."""
    kept, size = [], -1
    while size != len(kept):
        size = len(kept)
        whole = text + grammar.text(kept)
        kept = [statement for statement in kit if statement.name == "charset_map" and "charset " in whole or re.search(rf"(?<![\w$]){re.escape(name_of(statement))}\b", whole)]
    return kept


def name_of(statement):
    """The name by which other statements use one of the kit."""
    zone = re.search(r"(?:keys_)?zone=(\w+)", statement.text)
    return zone[1] if zone else statement.text.split(" ")[-1 if statement.name in ("map", "geo", "split_clients") else 1]


def ways(text):
    """The ways to the edge that this file has."""
    found = ["plain"]
    has_h2 = "http2 on;" in text
    found += ["h2c"] if has_h2 else []
    if "listen 8443 ssl;" in text:
        found += ["tls"] + (["h2"] if has_h2 else [])
    found += ["h3"] if "listen 8443 quic;" in text else []
    return found + (["proxied"] if "listen 8081 proxy_protocol;" in text else [])


def changed(fields, name, value):
    """The fields with this value for the name."""
    return (*((found, old) for found, old in fields if found != name), (name, value))


def unique(statements):
    """Without statements that nginx takes once in a block and that came before."""
    seen, kept = set(), []
    for statement in statements:
        name = statement.name
        key = None if name in MANY or name.endswith(MANY_ENDINGS) else "handler" if name in HANDLERS else "root" if name in ("root", "alias") else name
        if statement.name == "location":
            key = statement.text
        if key in seen and key is not None:
            continue
        seen.add(key)
        kept.append(statement)
    return tuple(kept)


def draw(seed):
    """The case of a seed: statements of the http block, and requests."""
    return Composer(seed).case()
