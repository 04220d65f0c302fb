"""The requests that every server of a case gets, and a client that sends them as they are written."""
import dataclasses
import gzip
import os
import re
import socket
import ssl
import subprocess
import zlib

# Seconds that an edge may be silent.
SILENCE_S = 15
LOOSE = ssl.create_default_context()
LOOSE.check_hostname = False
LOOSE.verify_mode = ssl.CERT_NONE
# curl 7.88 takes RST_STREAM with NO_ERROR after a whole answer for an error (RFC 9113 §8.1 allows it), and drops the answer. It depends on
# packets, with nginx and with weir, so curl tries again.
BROKEN_STREAM, TRIES = 92, 20
# Of a case; the rest is cut, and the cut is reported.
MOST_REQUESTS = 600
# Locations of a server that get every kind of request.
FULL_TARGETS = 4


@dataclasses.dataclass
class Request:
    """One request. `raw` replaces the whole request if it is not empty; one that `waits` sends its body after `100 Continue`."""
    what: str
    method: str = "GET"
    target: str = "/"
    host: str = ""
    headers: tuple = ()
    body: bytes = b""
    version: str = "HTTP/1.1"
    http2: bool = False
    waits: bool = False
    raw: bytes = b""

    def bytes(self):
        if self.raw:
            return self.raw
        lines = [f"{self.method} {self.target} {self.version}"]
        if self.host:
            lines.append(f"Host: {self.host}")
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.body and not any(name == "Transfer-Encoding" for name, _ in self.headers):
            lines.append(f"Content-Length: {len(self.body)}")
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + self.body


def everywhere(target):
    """The kinds of requests that a few targets of each server get."""
    mark = "&" if "?" in target else "?"
    yield Request("HEAD", method="HEAD", target=target)
    yield Request("POST", method="POST", target=target, body=b"a=1&b=2", headers=(("Content-Type", "application/x-www-form-urlencoded"),))
    yield Request("POST chunked", method="POST", target=target, body=b"3\r\nabc\r\n0\r\n\r\n", headers=(("Transfer-Encoding", "chunked"),))
    yield Request("OPTIONS", method="OPTIONS", target=target, headers=(("Origin", "http://other.example"), ("Access-Control-Request-Method", "PUT")))
    yield Request("PUT", method="PUT", target=target, body=b"put")
    yield Request("DELETE", method="DELETE", target=target)
    yield Request("Range", target=target, headers=(("Range", "bytes=2-9"),))
    yield Request("If-Modified-Since", target=target, headers=(("If-Modified-Since", "Sun, 09 Sep 2001 01:46:40 GMT"),))
    yield Request("gzip", target=target, headers=(("Accept-Encoding", "gzip, br;q=0.5"),))
    yield Request("Upgrade", target=target, headers=(("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="), ("Sec-WebSocket-Version", "13")))
    yield Request("Cookie", target=target, headers=(("Cookie", "session=1; theme=dark"), ("Referer", "http://elsewhere.example/"), ("User-Agent", "Mozilla/5.0")))
    yield Request("X-Forwarded-For", target=target, headers=(("X-Forwarded-For", "198.51.100.7"), ("X-Forwarded-Proto", "https"), ("X-Real-IP", "198.51.100.8"), ("X_Under", "1")))
    for asked in ("302", "404", "500", "204", "201", "401", "chunked", "close", "gzip", "accel"):
        yield Request(f"answer={asked}", target=f"{target}{mark}answer={asked}")


def once():
    """Requests that every server gets once."""
    for target in ("/", "/index.html", "/style.css", "/absent", "/absent.php", "/index.php", "/index.php?a=1", "/index.php/extra/path", "/dir", "/dir/", "/empty", "/empty/",
                   "/.hidden", "/dir/.htaccess", "/?" + "q" * 3000, "/dir/../style.css", "/%2e%2e/style.css", "/../etc/passwd", "/./style.css", "//style.css", "/dir//index.html",
                   "/a%20b.txt", "/%61pp.js", "/style.css?v=1", "/a%00b", "/%zz", "/style.css#part", "/page.html", "/robots.txt", "/favicon.ico", "/50x.html",
                   "/404.html", "/pic.png", "/font.woff2", "/backup.sql", "/data.json", "/big.bin", "/.well-known/acme-challenge/token", "/x/y/z%2Fw", "/index.php%0a", "/caf%C3%A9"):
        yield Request(f"GET {target[:30]}", target=target)
    yield Request("connection: close", headers=(("Connection", "close"),))
    yield Request("no Host", host=None)
    yield Request("HTTP/1.0", version="HTTP/1.0")
    yield Request("HTTP/1.0 without Host", version="HTTP/1.0", host=None)
    yield Request("HTTP/1.0 keep-alive", version="HTTP/1.0", headers=(("Connection", "keep-alive"),))
    yield Request("absolute form", target="http://absolute.example/style.css")
    yield Request("Host with a port", host="with.example:8888")
    yield Request("bad Host", host="a/b")
    yield Request("two Hosts", headers=(("Host", "second.example"),))
    yield Request("TRACE", method="TRACE")
    yield Request("CONNECT", method="CONNECT", target="a.example:443")
    yield Request("unknown method", method="BREW")
    yield Request("lower-case method", method="get")
    yield Request("HTTP/3.0", version="HTTP/3.0")
    yield Request("no version", raw=b"GET /\r\n")
    yield Request("not HTTP", raw=b"\x16\x03\x01 hello\r\n\r\n")
    yield Request("long target", target="/" + "l" * 9000)
    yield Request("long field", headers=(("X-Long", "v" * 40000),))
    yield Request("bad field", headers=(("Bad Name", "1"),))
    yield Request("large body", method="POST", body=b"b" * 1_500_000)
    yield Request("two lengths", method="POST", headers=(("Content-Length", "1"), ("Content-Length", "2")))
    yield Request("length and chunked", method="POST", headers=(("Content-Length", "3"), ("Transfer-Encoding", "chunked")), body=b"0\r\n\r\n")
    yield Request("unknown coding", method="POST", headers=(("Transfer-Encoding", "gzip"),))
    yield Request("Expect", method="POST", body=b"abc", headers=(("Expect", "100-continue"),), waits=True)
    yield Request("Expect with the body", method="POST", body=b"abc", headers=(("Expect", "100-continue"),))
    yield Request("If-None-Match", target="/style.css", headers=(("If-None-Match", '"origin"'),))
    yield Request("two ranges", target="/style.css", headers=(("Range", "bytes=0-1,5-6"),))
    yield Request("bad range", target="/style.css", headers=(("Range", "bytes=99999999-"),))
    yield Request("If-Range", target="/style.css", headers=(("Range", "bytes=0-1"), ("If-Range", "Sun, 09 Sep 2001 01:46:40 GMT")))
    yield Request("If-Unmodified-Since", target="/style.css", headers=(("If-Unmodified-Since", "Sun, 09 Sep 2000 01:46:40 GMT"),))


def http2():
    yield Request("HTTP/2 /", http2=True)
    yield Request("HTTP/2 HEAD", method="HEAD", http2=True)
    yield Request("HTTP/2 POST", method="POST", body=b"a=1", http2=True)
    for target in ("/style.css", "/absent", "/dir", "/index.php?a=1", "/x?answer=302", "/?answer=404"):
        yield Request(f"HTTP/2 {target}", target=target, http2=True)
    yield Request("HTTP/2 gzip", target="/page.html", headers=(("Accept-Encoding", "gzip"),), http2=True)
    yield Request("HTTP/2 Cookie", headers=(("Cookie", "a=1; b=2"), ("X-Forwarded-For", "198.51.100.7")), http2=True)


def asked(server, targets):
    """The requests of one server: of its first address all kinds, of the others a few. `server` has `listens` and `names`."""
    hosts = server["names"] or ["unnamed.example"]
    for place, listen in enumerate(server["listens"]):
        kinds = []
        if place == 0:
            kinds += once()
            kinds += (Request(f"location {target}", target=target) for target in targets)
            for target in ["/", *(target for target in targets if target != "/")][:FULL_TARGETS]:
                kinds += everywhere(target)
            kinds += (Request("below a location", target=target.rstrip("/") + "/below/style.css?x=%20y") for target in targets)
        else:
            kinds += (Request(f"GET {target}", target=target) for target in ("/", "/style.css", "/absent", "/index.php"))
            kinds += [Request("POST", method="POST", body=b"a=1"), Request("no Host", host=None)]
        kinds.append(Request("unknown host", host="nobody.invalid"))
        kinds += (Request(f"host {host}", host=host, target="/style.css") for host in hosts[1:6])
        if listen.http2:
            kinds += http2()
        for request in kinds:
            host = "" if request.host is None else request.host or hosts[0]
            yield listen, dataclasses.replace(request, host=host)


class Odd(Exception):
    """An answer that is no HTTP."""


def send(listen, request):
    """Sends the request to the address, and returns what came back."""
    try:
        if request.http2:
            return by_curl(listen, request)
        with socket.create_connection((listen.address, listen.port), SILENCE_S) as plain:
            if listen.proxied:
                plain.sendall(b"PROXY TCP4 203.0.113.9 203.0.113.1 5555 80\r\n")
            connection = LOOSE.wrap_socket(plain, server_hostname=re.sub(r":\d+$", "", request.host) if re.fullmatch(r"[\w.:-]+", request.host) else None) if listen.tls else plain
            try:
                connection.sendall(request.bytes()[:-len(request.body)] if request.waits else request.bytes())
            except (BrokenPipeError, ConnectionResetError):
                # The edge may have answered and closed before it read everything.
                pass
            return answer(connection, request)
    except Odd as odd:
        return {"status": f"no HTTP: {odd}", "headers": [], "body": b"", "before": []}
    except TimeoutError:
        return {"status": "silence", "headers": [], "body": b"", "before": []}
    except ConnectionResetError:
        # A close with bytes that the edge has not read yet is a reset: it depends on packets.
        return {"status": "closed", "headers": [], "body": b"", "before": []}
    except OSError as error:
        return {"status": f"no answer: {type(error).__name__}", "headers": [], "body": b"", "before": []}


def answer(connection, request):
    stream, before = connection.makefile("rb"), []
    while True:
        status = stream.readline().decode("latin-1").rstrip("\r\n")
        if not status:
            return {"status": "closed", "headers": [], "body": b"", "before": before}
        if not status.startswith("HTTP/"):
            return {"status": "HTTP/0.9", "headers": [], "body": status.encode("latin-1") + b"\n" + stream.read(), "before": before}
        headers = fields(stream)
        code = status.split(" ")[1]
        if code[0] == "1" and code != "101":
            before.append(status)
            if code == "100" and request.waits:
                connection.sendall(request.body)
            continue
        break
    lower = {name.lower(): value for name, value in headers}
    if request.method == "HEAD" or code in ("204", "304"):
        body = b""
    elif code == "101":
        body = stream.read(5)
    elif lower.get("transfer-encoding") == "chunked":
        body = b"".join(chunks(stream))
    elif "content-length" in lower:
        body = stream.read(int(lower["content-length"]))
    else:
        body = stream.read()
    return {"status": status, "headers": headers, "body": plain(lower, body), "before": before}


def fields(stream):
    found = []
    while True:
        line = stream.readline().decode("latin-1").rstrip("\r\n")
        if not line:
            return found
        name, colon, value = line.partition(":")
        if not colon:
            raise Odd(line[:80])
        found.append((name, value.strip(" ")))


def chunks(stream):
    while True:
        line = stream.readline()
        try:
            size = int(line.split(b";")[0], 16)
        except ValueError:
            yield b"[cut]"
            return
        if not size:
            fields(stream)
            return
        yield stream.read(size)
        stream.readline()


def plain(lower, body):
    """The body without its coding."""
    try:
        if lower.get("content-encoding") == "gzip":
            return gzip.decompress(body) if body else body
    except (OSError, EOFError, zlib.error):
        return b"[damaged gzip] " + body
    return body


def by_curl(listen, request):
    """HTTP/2 through curl; it sends the target as it is."""
    address = f"[{listen.address}]" if ":" in listen.address else listen.address
    host = re.sub(r":\d+$", "", request.host)
    scheme = "https" if listen.tls else "http"
    words = ["curl", "-s", "-i", "-k", "--path-as-is", "--max-time", str(SILENCE_S), "--http2" if listen.tls else "--http2-prior-knowledge",
             "--resolve", f"{host}:{listen.port}:{address}", "-A", "curl", "-X", request.method]
    if listen.proxied:
        words.append("--haproxy-protocol")
    if request.method == "HEAD":
        words.append("-I")
    for name, value in request.headers:
        words += ["-H", f"{name}: {value}"]
    if request.body:
        words += ["--data-binary", request.body.decode()]
    for _ in range(TRIES):
        run = subprocess.run([*words, f"{scheme}://{host}:{listen.port}{request.target}"], capture_output=True, env={**os.environ, "no_proxy": "*"}, check=False)
        if run.returncode != BROKEN_STREAM:
            break
    if run.returncode and not run.stdout:
        return {"status": f"curl's error {run.returncode}", "headers": [], "body": b"", "before": []}
    head, _, body = run.stdout.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = [tuple(line.split(": ", 1)) if ": " in line else (line.rstrip(":"), "") for line in lines]
    return {"status": status.strip(), "headers": headers, "body": plain({name.lower(): value for name, value in headers}, body), "before": []}
