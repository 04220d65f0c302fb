"""Vulnerabilities of 2026: text expressions, files, filters, origins."""
import os
import random
import socket
import time

import wire
from row import Row
from target import need
from wire import DATA, HEADERS, SETTINGS, WINDOW_UPDATE, frame, setting

SERVER = "server { listen 127.0.0.1:<port>; server_name localhost; <alive>\n%s }"
GROWS = "texts grow; safe Rust"


def many(*targets, statuses=(200, 204, 301, 302, 400, 403, 404, 414, 500)):
    """An attack that asks for each target, and for random ones like it."""

    def attack(target):
        # nginx closes the connection if a field of the answer has an error.
        fair = statuses if target.is_weir else (0, *statuses)
        rng = random.Random(2026)
        for one in targets:
            for length in (1, 16, 300, 1500, 3500):
                for fill in ("+", "%2b", "a", "%25", "&", "%3f", "%20", "ä", "%ff"):
                    text = (fill * length)[:3600].encode()
                    answer = target.get(one.replace("@", "").encode() + text)
                    need(answer.status in fair, f"{one}, {length} of {fill}: status {answer.status}")
            for _ in range(20):
                text = bytes(rng.choice(b"+%/.?&=;~aZ09-_") for _ in range(rng.randint(1, 2000))).replace(b"%", b"%2b")
                answer = target.get(one.replace("@", "").encode() + text)
                need(answer.status in fair, f"{one}{text[:20].decode()}: status {answer.status}")

    return attack


def files(target):
    target.write("files/a", "hello")
    target.write("files/page", "hello")


def short_destinations(target):
    """COPY and MOVE to a destination that is shorter than the name of the location."""
    for method in ("COPY", "MOVE"):
        for destination in ("/", "/d", "/da", "/dav", "/dave", "/x", "/dav/../x", "/%64av", "/../a"):
            target.write("files/a", "mine")
            answer = target.get("/dav-with-a-long-name/a", method=method, fields=[f"Destination: http://localhost{destination}"])
            need(answer.status in (400, 403, 404, 409, 500), f"{method} to {destination}: status {answer.status}")
    need(sorted(os.listdir(target.dir + "/files")) == ["a"], f"files: {os.listdir(target.dir + '/files')}")


# A body of an HTTP/2 origin that is longer than a frame's length can say.
BODY = (b"0123456789abcdef" * 4096) * 257


def frames_origin(connection, target):
    """An origin of HTTP/2 that reads the frames of one request, and notes each that does not belong there."""
    connection.sendall(frame(SETTINGS, 0, 0, setting(4, (1 << 31) - 1)) + frame(WINDOW_UPDATE, 0, 0, (1 << 30).to_bytes(4, "big")))
    data, at, got = bytearray(), len(wire.PREFACE), 0
    while True:
        part = connection.recv(1 << 20)
        if not part:
            break
        data += part
        while at + 9 <= len(data):
            length, kind, flags = int.from_bytes(data[at:at + 3], "big"), data[at + 3], data[at + 4]
            if at + 9 + length > len(data):
                break
            stream = int.from_bytes(data[at + 5:at + 9], "big")
            if length > 16384 or stream not in (0, 1) or kind not in (0, 1, 3, 4, 6, 8, 9):
                target.note(("foreign", f"type {kind}, stream {stream}, {length} bytes"))
                return
            at += 9 + length
            if kind == DATA:
                got += length
                connection.sendall(frame(WINDOW_UPDATE, 0, 0, max(1, length).to_bytes(4, "big")))
            if kind in (DATA, HEADERS) and flags & 1:
                target.note(("body", got))
                connection.sendall(frame(HEADERS, 5, 1, b"\x88"))
                return
        if at > 1 << 20:
            del data[:at]
            at = 0


def large_set_body(target):
    answer = target.get("/", method="POST", body=BODY, patience=40)
    need(not target.noted("foreign"), f"the origin read a frame that the client wrote: {target.noted('foreign')[:1]}")
    bodies = [note[1] for note in target.noted("body")]
    need(answer.status != 200 or bodies == [len(BODY)], f"the origin got bodies of {bodies} bytes in place of {len(BODY)}")


def long_fields(target):
    """Fields of megabytes for an HTTP/2 origin."""
    long = b"x" + b"\x7e" * 2_200_000
    fields = b"".join(b"%c" % (97 + place) + long + b": " + b"\xfe" * 2_200_000 + b"\r\n" for place in range(9))
    target.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + fields + b"Connection: close\r\n\r\n", patience=60)


ODD_LINES = [prefix + rest for prefix in (b"H", b"HT", b"HTT", b"HTTP", b"HTTP/", b"HTTP/1", b"HTTP/1.", b"HTTP/1.1", b"HTTP/1.1 ", b"HTTP/1.1 2", b"HTTP/1.1 20", b"HTTP/1.1 200")
             for rest in (b"X: y\r\n\r\nbody", b"\n\nbody", b"\0: y\r\n\r\nbody", b": y\r\nStatus: 200 OK\r\n\r\nbody", b"\r\n\r\nbody", b"x" * 3000 + b"\r\n\r\nbody")]


def odd_origin(connection, target):
    """An application whose first line begins as a status line does, in two parts."""
    data = connection.recv(65536)
    place = next((int(word) for word in data.replace(b"/", b" ").replace(b"\0", b" ").replace(b"\x04", b" ").split() if word.isdigit() and word.startswith(b"9")), 90000) - 90000
    line = ODD_LINES[place // 2 % len(ODD_LINES)]
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if place % 2:
        cut = next(cut for cut in range(1, len(line)) if not b"HTTP/1.1 200".startswith(line[:cut + 1]))
        connection.sendall(line[:cut])
        time.sleep(0.01)
        line = line[cut:]
    connection.sendall(line)


def odd_lines(target):
    for path in ("scgi", "uwsgi"):
        for place in range(2 * len(ODD_LINES)):
            answer = target.get(f"/{path}/{90000 + place}")
            foreign = answer.data.replace(b"\0", b"").count(b"\xbe")
            need(not foreign, f"{path}, case {place}: {foreign} bytes of fresh memory")
            need(answer.status in (200, 502), f"{path}, case {place}: status {answer.status}")


LETTERS = "".join(map(chr, range(0x430, 0x450)))
CHARSETS = "charset_map koi8-r utf-8 { " + " ".join(f"{0xC0 + place:X} {letter.encode().hex().upper()};" for place, letter in enumerate(LETTERS)) + " }"


def split_text(connection, target):
    """Text in parts of one byte: characters of two to four bytes, and invalid ones."""
    before, _ = wire.head(connection)
    kind = int(before.split(b"/")[1][:1])
    # The last part of each text begins a character and ends it wrongly.
    text = [LETTERS.encode() + b"\xe2\x82\xac" + "😀".encode() + b" ok", b"\xe2\x82\xacx" * 3, "😀".encode() * 3, b"\xf0\x9fA\xe2\x82B\xd0C",
            b"\xf0\x9f\x98\xff\xe2\x28\xa1\xf0\x28\x8c\xbc", b"\xf8\x88\x80\x80\x80\xc0\x80", b"\xe2\x82"][kind]
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n")
    for place in range(len(text)):
        time.sleep(0.004)
        connection.sendall(text[place:place + 1])


def split_characters(target):
    for kind in range(7):
        body = target.get(f"/{kind}").body
        need(b"\xbe" not in body, f"text {kind}: fresh memory in the body")
        need(len(body) < 400, f"text {kind}: {len(body)} bytes")
        if kind == 0:
            need(b"&#8364;" in body and b"&#128512;" in body and body.endswith(b" ok"), f"the text is {body!r}")


SLOW, QUICK = b"<!--#include virtual='/slow' -->", b"<!--#include virtual='/quick' -->"
# The parts in which an origin sends a page, and the text that the client gets.
PAGES = [([SLOW, QUICK], b"slowquick"), ([SLOW, QUICK + QUICK], b"slowquickquick"),
         ([SLOW + b"one", QUICK + b"two"], b"slowonequicktwo"), ([SLOW + b"one", QUICK], b"slowonequick"), ([SLOW + b"one", b"x" + QUICK, b"y" + QUICK], b"slowonexquickyquick"),
         ([SLOW + QUICK + b"one", QUICK], b"slowquickonequick"), ([SLOW + b"one" + QUICK, b"z", QUICK], b"slowonequickzquick"), ([SLOW + b"one", b"<", QUICK[1:] + QUICK], b"slowonequickquick")]
# Seconds between the parts: before, while and after the slow part ends.
GAPS_S = (0.001, 0.02, 0.05, 0.052, 0.055, 0.06)


def page_origin(connection, target):
    before, _ = wire.head(connection)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if b"/slow" in before:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\n")
        time.sleep(0.05)
        connection.sendall(b"slow")
        return
    page, gap = before.split(b" ")[1].split(b"/")[2:4]
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n")
    for part in PAGES[int(page)][0]:
        connection.sendall(part)
        time.sleep(GAPS_S[int(gap)])


def pages(target):
    for place, (_, wanted) in enumerate(PAGES):
        for gap in range(len(GAPS_S)):
            body = target.get(f"/page/{place}/{gap}").body
            need(body == wanted, f"the page is {body[:80]!r}")


SLICED = b"0123456789" * 40


def slices(connection, target):
    """An origin of ranges that notes the field that a capture makes."""
    before, _ = wire.head(connection)
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in before.split(b"\r\n")[1:])}
    target.note(("capture", fields.get(b"test", b"")))
    first, _, last = fields.get(b"range", b"bytes=0-49").partition(b"=")[2].partition(b"-")
    part = SLICED[int(first):int(last) + 1]
    connection.sendall(b"HTTP/1.1 206 Partial Content\r\nContent-Length: %d\r\nContent-Range: bytes %d-%d/%d\r\nETag: \"a\"\r\nConnection: close\r\n\r\n"
                       % (len(part), int(first), int(first) + len(part) - 1, len(SLICED)) + part)


def stale_captures(target):
    for path in ("/film", "/" + "f" * 200) * 20:
        body = target.get(path).body
        need(body == SLICED or len(body) < len(SLICED), f"the body has {len(body)} bytes")
    wrong = [note[1] for note in target.noted("capture") if note[1] not in (b"", b"/film", b"/" + b"f" * 200)]
    need(not wrong, f"a part of the file was asked for with a foreign capture: {wrong[:1]}")


def hello(extensions):
    """A ClientHello of TLS 1.2 in one record."""
    body = b"\3\3" + b"r" * 32 + b"\0" + b"\0\2\0\x2f" + b"\1\0" + len(extensions).to_bytes(2, "big") + extensions
    message = b"\1" + len(body).to_bytes(3, "big") + body
    return b"\x16\3\1" + len(message).to_bytes(2, "big") + message


def extension(kind, data, length=None):
    return kind.to_bytes(2, "big") + (len(data) if length is None else length).to_bytes(2, "big") + data


def server_name(name, kind=0, length=None, around=None):
    entry = bytes([kind]) + (len(name) if length is None else length).to_bytes(2, "big") + name
    return (len(entry) if around is None else around).to_bytes(2, "big") + entry


def hellos(target):
    """Hellos whose lengths lie, at each place that `ssl_preread` reads, whole and in two parts."""
    name, protocols = server_name(b"a.test"), b"\0\x0c\2h2\x08http/1.1"
    good = hello(extension(0, name) + extension(16, protocols) + extension(43, b"\2\3\4"))
    lies = [0, 1, 2, 0x7f, 0xff, 0x7fff, 0xffff]
    odd = [hello(extension(0, name, length)) for length in lies] + [hello(extension(16, protocols, length)) for length in lies]
    odd += [hello(extension(0, server_name(b"a.test", length=length))) for length in lies]
    odd += [hello(extension(0, server_name(b"a.test", around=length))) for length in lies]
    odd += [hello(extension(0, name) * 3), hello(extension(0, b"")), hello(extension(0, b"\0")), hello(extension(0, server_name(b""))), hello(extension(0, server_name(b"x" * 5000))),
            hello(extension(0, server_name(b"a\0b\xff"))), hello(extension(0, server_name(b"a", kind=1) + name)), hello(extension(16, b"\0\1\0")), hello(extension(16, b"\xff\xff\xff")),
            hello(extension(43, b"\xff\3\4")), hello(extension(43, b"")), hello(b"\0"), hello(b"\0\0\0")]
    odd += [good[:place] + bytes([byte]) + good[place + 1:] for place in range(len(good)) for byte in (0, 0xff)]
    for data in [good, *odd]:
        for cut in (len(data), len(data) // 2, len(data) - 1):
            with socket.create_connection(("127.0.0.1", target.port2), timeout=5) as one:
                try:
                    one.sendall(data[:cut])
                    one.sendall(data[cut:])
                    one.shutdown(socket.SHUT_WR)
                    one.recv(100)
                except OSError:
                    pass


H2_ORIGIN = "proxy_http_version 2; proxy_pass http://127.0.0.1:<origin>;"
ROWS = [
    Row("2026-42945", "`rewrite` with arguments, and captures after it: buffer overflow", "0.6.27-1.30.0", GROWS, many("/@"), release="1.30.0",
        http=SERVER % "location / { rewrite ^(.*) /new?c=1; set $mine $1; return 200 $mine; }"),
    Row("2026-9256", "`rewrite` with captures that overlap: buffer overflow", "0.1.17-1.31.0", GROWS, many("/@", "/arguments/@"), release="1.31.0",
        http=SERVER % "location / { rewrite ^/((.*))$ http://127.0.0.1/$1$2 redirect; return 200 foo; }\n location /arguments/ { rewrite ^/((.*))$ http://127.0.0.1/?$1$2; return 200 foo; }"),
    Row("2026-42533", "`map` with patterns in a text: buffer overflow", "0.9.6-1.31.2", "captures are owned copies, and texts grow; safe Rust",
        many("/@"), release="1.31.2", http="map $uri $map { ~(?<capture>.*) $capture; } map prefix:$capture $again { volatile; ~(?<capture>.*) $capture; }"
        + SERVER % "location / { set $capture ''; set $temp '$capture $map'; return 200 $temp; }"),
    Row("2026-93479", "text expressions with variables: buffer overflow", "before 1.31.7", GROWS, many("/@"), near=True,
        http="map $uri $map { ~(?<capture>.*) $capture; } map prefix:$capture $again { volatile; ~(?<capture>.*) $capture; }"
        + SERVER % "location / { set $capture ''; add_header X-One '$again$capture$again'; root <dir>/files$again; try_files $again$map$uri$capture =404; }"),
    Row("2026-123640", "`stream` with `ssl_preread`: extensions of a hello whose lengths lie", "before 1.31.9", "the reader of hellos is safe Rust: each length is checked", hellos, near=True,
        main="http { server { listen 127.0.0.1:<port>; <alive> } }\nstream { map $ssl_preread_server_name:$ssl_preread_alpn_protocols:$ssl_preread_protocol $answer { default '$ssl_preread_server_name'; }\n"
        "server { listen 127.0.0.1:<port2>; ssl_preread on; preread_timeout 1s; return $answer; } }"),
    Row("2026-15176", "`alias` with `rewrite`, and `$request_filename`: buffer overflow", "0.1.29-1.31.6", GROWS, many("/a/@", "/long-name-of-a-location/@"), release="1.31.4", prepare=files,
        alerts="where URI was rewritten",
        http=SERVER % "location /a/ { alias <dir>/files/; rewrite ^ /b; set $name $request_filename; return 200 $name; }\n"
        "location /long-name-of-a-location/ { alias <dir>/files/; rewrite ^ /b; break; add_header X-Name $request_filename; }"),
    Row("2026-125283", "`try_files` with `alias`: buffer overflow", "0.9.6-1.31.8", GROWS, many("/a/@", "/b/@"), near=True, prepare=files,
        http="map $uri $map { ~(?<capture>.*) $capture; }" + SERVER % "location /a/ { alias <dir>/files/; try_files $map$capture$uri $capture =404; }\n"
        "location ~ ^/b/(.*)$ { alias <dir>/files/$1; try_files $uri $1 '' =404; }"),
    Row("2026-27654", "COPY and MOVE with `alias`: buffer overflow", "0.5.13-1.29.6", "`Destination` must begin with the location's name, else 400", short_destinations,
        release="1.29.6", http=SERVER % "location /dav-with-a-long-name/ { alias <dir>/files/; dav_methods PUT DELETE COPY MOVE; }"),
    Row("2026-42926", "`proxy_set_body` adds frames to a request for an HTTP/2 origin", "1.29.4-1.30.0", "weir cuts a body into DATA frames", large_set_body, release="1.30.0",
        asan=False, origin=frames_origin, http=SERVER % ("client_max_body_size 20m; client_body_buffer_size 20m; location / { proxy_set_body $request_body; " + H2_ORIGIN + " }")),
    Row("2026-42055", "fields of megabytes for HTTP/2 and gRPC origins: buffer overflow", "1.13.10-1.31.1", "heads grow within the limits on heads", long_fields, release="1.31.1",
        origin=frames_origin, http="ignore_invalid_headers off; large_client_header_buffers 16 6m;" + SERVER % ("location / { " + H2_ORIGIN + " }")),
    Row("2026-42946", "`scgi` and `uwsgi`: over-read by a line that begins as a status line does", "0.8.42-1.30.0", "weir reads a head only when it is whole", odd_lines, release="1.30.0",
        origin=odd_origin, http=SERVER % "location /scgi/ { scgi_pass 127.0.0.1:<origin>; scgi_param REQUEST_URI $uri; scgi_next_upstream off; }\n"
        "location /uwsgi/ { uwsgi_pass 127.0.0.1:<origin>; uwsgi_param REQUEST_URI $uri; uwsgi_next_upstream off; }"),
    Row("2026-42934", "`charset_map`: over-read by a character in parts", "0.3.50-1.30.0", "a character that is cut waits in three bytes; safe Rust", split_characters, release="1.30.0",
        origin=split_text, http=CHARSETS + SERVER % "location / { proxy_pass http://127.0.0.1:<origin>; proxy_buffering off; charset koi8-r; source_charset utf-8; }"),
    Row("2026-48142", "`charset_map`: over-read by an invalid character in parts", "0.3.50-1.31.1", "the same", split_characters, release="1.31.1",
        origin=split_text, http=CHARSETS + SERVER % "location / { proxy_pass http://127.0.0.1:<origin>; proxy_buffering off; charset koi8-r; source_charset utf-8; }"),
    Row("2026-60005", "`slice`: a capture reads foreign memory", "1.15.8-1.31.2", "captures are owned copies; safe Rust", stale_captures, release="1.31.2", origin=slices,
        sanitizer=":max_malloc_fill_size=0:quarantine_size_mb=0",
        http="map test $mine { volatile; ~mismatch(.*) 1; default ''; }"
        + SERVER % "location ~ (.*) { slice 50; proxy_set_header Test $mine$1; proxy_set_header Range $slice_range; proxy_pass http://127.0.0.1:<origin>; }"),
    Row("2026-56434", "`ssi`: use of freed memory", "0.8.11-1.31.2", "weir's own code, in safe Rust; names, values, variables and blocks are bounded", pages, release="1.31.2", origin=page_origin,
        http=SERVER % "location / { ssi on; proxy_buffering off; proxy_pass http://127.0.0.1:<origin>; } location = /quick { return 200 quick; }"),
    Row("2026-97205", "`ssi` with asynchronous files: use of freed memory", "before 1.31.7", "the same", pages, near=True, origin=page_origin,
        http=SERVER % "location / { ssi on; aio on; proxy_buffering off; proxy_pass http://127.0.0.1:<origin>; } location = /quick { return 200 quick; }"),
]
