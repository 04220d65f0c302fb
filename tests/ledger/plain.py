"""Vulnerabilities of plain HTTP from 2009 to 2019: requests, answers of origins, ranges, bodies."""
import os
import time

import wire
from row import Row
from target import Hole, need

SERVER = "server { listen 127.0.0.1:<port>; server_name localhost; <alive>\n%s }"
SECRET = "only for the owner"


def parse_heads(target):
    """A field that begins with a carriage return, and request lines that end where a buffer ends."""
    target.send(b"GET / HTTP/1.1\r\n\rX\r\n\r\n", patience=1)
    target.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\rX: y\r\n\r\n", patience=1)
    for length in [*range(1000, 1030), *range(2020, 2054), *range(4080, 4100)]:
        path = b"/" + b"a" * (length - len("GET / HTTP/1.1\r\n"))
        target.send(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", patience=1)


def climb(target):
    """Paths that go above the root, in the forms that the parser of complex URIs reads."""
    for path in ("//../", "/%2f../", "/./../", "/%2e%2e/", "//%2e%2e/", "/../", "/a//../../../", "//..//../", "/%2f%2e%2e%2f"):
        answer = target.get(path)
        need(answer.status in (400, 403, 404), f"{path}: status {answer.status}")


def climb_destination(target):
    """COPY and MOVE to a place outside of the location."""
    target.write("files/dav/a", "mine")
    for method in ("COPY", "MOVE"):
        for escape in ("/dav/../../escaped", "/dav/%2e%2e/%2e%2e/escaped", "/dav/..%2f..%2fescaped"):
            target.get("/dav/a", method=method, fields=[f"Destination: http://localhost{escape}"])
            need(not os.path.exists(target.dir + "/escaped"), f"{method} wrote outside of the root: {escape}")
    need(not os.path.exists(target.dir + "/files/escaped"), "a file outside of the location was written")


def log_escapes(target):
    """An escape sequence of a terminal in a request must not reach the error log."""
    target.get("/%1b]2;title%07", fields=[b"Referer: \x1b]2;title\x07"])
    target.get(b"/a\x1b[2J")
    time.sleep(0.2)
    need("\x1b" not in target.text("error.log"), "the error log has a raw escape byte")


def foreign_bytes(target):
    """A field with a NUL from the origin: the client must not get other bytes in its place."""
    for path in ("/value", "/many"):
        value = target.get(path).field("x-marked")
        need(value is None or not value.replace(b"\0", b"").strip(b"ab "), f"the field has foreign bytes: {value and value[:40]!r}")


def nul_origin(connection, target):
    before, _ = wire.head(connection)
    count = 3000 if b"/many" in before else 300
    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nX-Marked: aaaa\0" + b"b" * count + b"\r\nContent-Length: 2\r\n\r\nok")


def negative_chunk(target):
    """A chunk size that is negative as a signed number, for a location that discards the body, and for one that reads it."""
    for size in (b"f000000000000060", b"ffffffffffffffed", b"8000000000000000", b"7ffffffffffffff0", b"fffffffffffffffff"):
        for path in (b"/index.html", b"/read"):
            start = b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + size + b"\r\n"
            # The bytes come after the head, so that the server reads them into the buffer of the body.
            data = target.send(start, b"x" * 5000, b"x" * 5000, gap=0.05, patience=0.4)
            need(not data.startswith(b"HTTP/1.1 2"), f"chunk size {size.decode()}: {data[:20]!r}")


SIZES = [b"ffffffffffffffff", b"fffffffffffffff0", b"8000000000000000", b"ffffffffffff0000"]


def chunked_origin(connection, target):
    before, _ = wire.head(connection)
    size = SIZES[int(before.split(b"/")[1][:1])]
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n" + size + b"\r\nmarked" + b"m" * 3000)
    time.sleep(0.1)


def negative_chunk_of_origin(target):
    """An origin sends a negative chunk size: the client may get bytes of the origin, and no others."""
    for place in range(len(SIZES)):
        for where in ("", "plain/"):
            body = target.get(f"/{place}/{where}", patience=1).body
            foreign = body.replace(b"ok", b"").replace(b"marked", b"").replace(b"m", b"").strip(b"0123456789abcdef\r\n")
            # An error page of the server has no bytes of another.
            need(not foreign or foreign.lstrip().startswith(b"<"), f"the body has foreign bytes: {foreign[:40]!r}")


def space_in_line(target):
    """A space that is not encoded must not lead past a location's rules."""
    for line in (b"/open /../closed/secret", b"/open /../closed/secret ", b"/open%20/../closed/secret"):
        data = target.send(b"GET " + line + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        need(SECRET.encode() not in data, f"the closed file was sent: {line.decode()}")


def chunks_to_file(target):
    """Bodies of many chunks that the server writes to a file, with the end of the body in each place of the list of buffers."""
    for count in [*range(60, 70), 127, 128, 129, 1023, 1024, 1025]:
        body = b"".join(b"1\r\n%c\r\n" % (97 + place % 26) for place in range(count)) + b"0\r\n\r\n"
        answer = wire.Answer(target.send(b"POST /file HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + body))
        need(answer.status == 200, f"{count} chunks: status {answer.status}")


CACHED = b"c" * 500


def ranges(target):
    """Ranges whose sum overflows must not show the file of the cache before its body."""
    need(target.get("/page").body == CACHED, "the page is not cached")
    for before in (100, 200, 400, 600, 900):
        suffix = len(CACHED) + before
        answer = target.get("/page", fields=[f"Range: bytes=-{suffix},-{(1 << 63) - suffix}"])
        need(b"KEY:" not in answer.body and b"HTTP/1.1 200" not in answer.body, "the answer has the head of the cache's file")
    for field in ("bytes=0-,-9223372036854775807", "bytes=9223372036854775806-9223372036854775807", "bytes=-9223372036854775808", "bytes=-18446744073709551615"):
        answer = target.get("/page", fields=["Range: " + field])
        need(answer.status in (200, 206, 416), f"{field}: status {answer.status}")
        need(len(answer.body) < 3 * len(CACHED), f"{field}: {len(answer.body)} bytes")


def hidden_request(target):
    """The body of a request that a redirect answers must not be read as the next request."""
    inner = b"GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for head in (b"Content-Length: %d\r\n\r\n%s" % (len(inner), inner), b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(inner), inner)):
        data = target.send(b"GET /moved HTTP/1.1\r\nHost: localhost\r\n" + head, patience=1)
        need(b"hidden answer" not in data and data.count(b"HTTP/1.1 ") == 1, "the body was answered as a request")


def files(target):
    target.write("files/index.html", "hello")
    target.write("files/open /file", "hello")
    target.write("files/closed/secret", SECRET)


ROWS = [
    Row("2009-3896", "NULL pointer dereference while a head is parsed", "0.1.0-0.8.13",
        "the parser returns places inside the bytes; safe Rust", parse_heads, release="0.8.13",
        http="client_header_buffer_size 1k; large_client_header_buffers 2 2k;" + SERVER % "location / { root <dir>/files; }"),
    Row("2009-2629", "buffer underflow by `/../`", "0.1.0-0.8.14", "weir answers 400 to a path above the root", climb, release="0.8.14",
        http="merge_slashes off;" + SERVER % "location / { root <dir>/files; }"),
    Row("2009-3898", "COPY and MOVE to a place outside of the root", "0.1.0-0.8.16", "`Destination` is normalised, and must begin with the location's name",
        climb_destination, release="0.8.16", http=SERVER % "location /dav/ { root <dir>/files; dav_methods PUT DELETE COPY MOVE; create_full_put_path on; }"),
    Row("2009-4487", "the error log has escape sequences of the client", "all", "weir writes control bytes as `\\x1B`", log_escapes,
        release="0.8.14", asan=False, http=SERVER % "location / { root <dir>/files; }"),
    Row("2012-1180", "a NUL in an origin's field shows freed memory", "0.1.0-1.1.16", "values are slices of the bytes that the origin sent; safe Rust", foreign_bytes,
        release="1.1.16", origin=nul_origin, http=SERVER % "location / { proxy_pass http://127.0.0.1:<origin>; }"),
    Row("2013-2028", "stack overflow by a chunk size", "1.3.9-1.4.0", "a chunk size that does not fit a signed number is refused", negative_chunk,
        release="1.4.0", prepare=files, origin=wire.origin(b"HTTP/1.1 500 Read\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
        http=SERVER % "location / { root <dir>/files; } location /read { proxy_pass http://127.0.0.1:<origin>; }"),
    Row("2013-2070", "memory of the worker by a chunk size of an origin", "1.1.4-1.2.8, 1.3.9-1.4.0", "the same parser: weir cuts the answer",
        negative_chunk_of_origin, release="1.2.8", origin=chunked_origin,
        http=SERVER % "location / { proxy_pass http://127.0.0.1:<origin>; proxy_buffering off; }"),
    Row("2013-4547", "a space in the request line leads past rules", "0.8.41-1.5.6", "weir answers 400 to a space in a target", space_in_line,
        release="1.5.6", asan=False, prepare=files, http=SERVER % "location / { root <dir>/files; } location /closed/ { root <dir>/files; deny all; }"),
    Row("2016-4450", "NULL pointer dereference while a body is written to a file", "1.3.9-1.11.0", "weir writes bytes, not a list with a special end",
        chunks_to_file, release="1.11.0", origin=wire.origin(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
        http=SERVER % "location / { client_body_in_file_only clean; client_body_buffer_size 64k; proxy_pass http://127.0.0.1:<origin>; }"),
    Row("2017-7529", "ranges overflow and show the cache's file", "0.5.6-1.13.2", "sums are checked, and a suffix longer than the body is the whole body",
        ranges, release="1.13.2", asan=False,
        origin=wire.origin(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nAccept-Ranges: bytes\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(CACHED) + CACHED),
        http="proxy_cache_path <dir>/cache keys_zone=one:1m;" + SERVER % "location / { proxy_cache one; proxy_pass http://127.0.0.1:<origin>; }"),
    Row("2019-20372", "a body is read as the next request after `error_page` with a URL", "0.7.12-1.17.6", "weir reads or drops each body before the next request",
        hidden_request, release="1.17.6", asan=False,
        http=SERVER % "location = /moved { error_page 401 http://example.org/; return 401; } location = /hidden { return 200 'hidden answer'; }"),
]
