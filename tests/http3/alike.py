#!/usr/bin/env python3
"""The same request over HTTP/2 and over HTTP/3 gets the same answer, and the same line in the access log.

    tests/http3/alike.py --weir BIN [--seeds 1-300]

Each seed draws a request from the lists below. A difference is a fault unless `EXCUSED` has a reason.
"""

import argparse
import asyncio
import random
import re
import ssl
import sys
import traceback

import h2.config
import h2.connection
import h2.events
import h2.stream

import run
from aioquic.h3.connection import FrameType, encode_frame
from client import opened
from origin import Origin, content

HTTP = """
    log_format own '$http_x_case|$server_protocol|$server_name|$host|$request_method|$request_uri|$uri|$args|$status|$body_bytes_sent|$request_completion|$upstream_status|$content_length|$sent_http_content_type|$http_cookie|$https|$scheme|';
    access_log access.log own;
    proxy_http_version 1.1; proxy_set_header Connection ""; client_max_body_size 50k; large_client_header_buffers 4 8k;
    ssl_certificate localhost.crt; ssl_certificate_key localhost.key; http2 on; gzip_types *; gzip_min_length 10;
    proxy_cache_path cache keys_zone=cache:1m; limit_req_zone $http_x_case zone=reqs:1m rate=1r/m;
    server {
        listen 127.0.0.1:%(main)d quic; listen 127.0.0.1:%(main)d ssl;
        server_name localhost; root html;
        add_header X-Host $host; add_header X-Args $args always;
        location / { }
        location /gz { gzip on; alias html/; }
        location /echo { proxy_pass http://127.0.0.1:%(origin)d; }
        location /echo/stream { proxy_request_buffering off; proxy_pass http://127.0.0.1:%(origin)d; }
        location /echo/plain { proxy_buffering off; gzip on; proxy_pass http://127.0.0.1:%(origin)d; }
        location /echo/host { proxy_set_header Host $http_host; proxy_pass http://127.0.0.1:%(origin)d; }
        location /size/ { gzip on; proxy_pass http://127.0.0.1:%(origin)d; }
        location /status/ { proxy_pass http://127.0.0.1:%(origin)d; }
        location /hidden/ { proxy_intercept_errors on; error_page 404 500 =200 /page.html; error_page 503 @named; proxy_pass http://127.0.0.1:%(origin)d/status/; }
        location @named { return 418 "named $uri"; }
        location /chunked/ { proxy_pass http://127.0.0.1:%(origin)d; proxy_pass_trailers on; }
        location /early { early_hints 1; proxy_pass http://127.0.0.1:%(origin)d; }
        location /broken { proxy_pass http://127.0.0.1:%(origin)d; }
        location /dead { proxy_pass http://127.0.0.1:1; }
        location /return/ { return 200 "$request_method $host $request_uri $content_length $http_cookie"; }
        location /moved { return 301 /other; }
        location /gone { return 444; }
        location /auth { auth_basic realm; auth_basic_user_file users; alias html/; }
        location /denied { deny all; error_page 403 /page.html; }
        location /sub { sub_filter title TITLE; sub_filter_types *; alias html/; }
        location /ssi { ssi on; ssi_types *; alias html/; }
        location /only { limit_except GET { deny all; } }
        location /204 { return 204; }
        location /list/ { autoindex on; alias html/; }
        location /folder { }
        location /mirror { mirror /empty.txt; proxy_pass http://127.0.0.1:%(origin)d/echo/m; }
        location /asked { auth_request /204; proxy_pass http://127.0.0.1:%(origin)d/echo/a; }
        location /rewritten { rewrite ^/rewritten/(.*)$ /echo/$1?x=1 last; }
        location /trickle { limit_rate 100k; alias html/; }
        location /small { client_max_body_size 10; proxy_pass http://127.0.0.1:%(origin)d/echo/s; }
    }
    server { listen 127.0.0.1:%(main)d quic; listen 127.0.0.1:%(main)d ssl; server_name other.test; return 200 "other $host"; }
"""

METHODS = ["GET"] * 12 + ["HEAD"] * 4 + ["POST"] * 8 + ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "PROPFIND", "get", "FOO", "CONNECT", ""]
PATHS = ["/", "/index.html", "/big.txt", "/empty.txt", "/none", "/gzindex.html", "/gzbig.txt", "/echo/a?b=c", "/echo/stream", "/echo/plain", "/echo/host",
         "/size/10", "/size/20000", "/size/300000", "/status/204", "/status/304", "/status/404", "/status/500", "/hidden/404", "/hidden/500", "/hidden/503",
         "/chunked/100", "/chunked/70000", "/chunked/0", "/early", "/broken", "/dead", "/return/x?y", "/moved", "/gone", "/authpage.html", "/denied", "/subindex.html", "/ssipart.html",
         "/only", "/204", "/list/", "/folder", "/mirror", "/asked", "/rewritten/q", "/tricklepage.html", "/small"]
ODD_PATHS = ["/a/../page.html", "//page.html", "/%2e%2e/x", "/%70age.html", "/%00", "*", "", "page.html", "/a b", "/a#b", "/é", "/../..", "/%", "https://localhost/page.html",
             "/page.html?" + "q" * 9000, "/" + "p" * 40000, "/\x01", "/?\x7f"]
FIELDS = [("range", "bytes=0-9"), ("range", "bytes=5-"), ("range", "bytes=-3"), ("range", "bytes=0-1,3-4"), ("range", "bytes=99999999-"), ("range", "junk"),
          ("if-none-match", "*"), ("if-none-match", '"none"'), ("if-match", '"none"'), ("if-modified-since", "Sun, 29 Nov 2037 00:00:00 GMT"), ("if-unmodified-since", "Sun, 29 Nov 1997 00:00:00 GMT"),
          ("if-range", '"x"'), ("accept-encoding", "gzip"), ("accept-encoding", "gzip;q=0"), ("accept-encoding", "br, gzip"), ("cookie", "a=1"), ("cookie", "b=2"), ("cookie", ""),
          ("authorization", "Basic bWU6d29yZA=="), ("authorization", "Basic junk"), ("te", "trailers"), ("te", "gzip"), ("expect", "100-continue"), ("expect", "other"),
          ("user-agent", "test"), ("referer", "http://a/"), ("accept", "*/*"), ("priority", "u=1, i"), ("x-one", "1"), ("x-one", "2"), ("x-empty", ""),
          ("x-forwarded-for", "1.2.3.4"), ("max-forwards", "3"), ("upgrade-insecure-requests", "1"), ("cache-control", "no-cache"), ("content-type", "text/plain")]
ODD_FIELDS = [("connection", "close"), ("keep-alive", "1"), ("transfer-encoding", "chunked"), ("upgrade", "websocket"), ("proxy-connection", "x"), ("X-Upper", "1"), ("x space", "1"),
              ("x-ctl", "a\x01b"), ("x-nul", "a\0b"), ("x-lf", "a\nb"), ("x-cr", "a\rb"), ("x-lead", " a"), ("x-trail", "a "), ("x-tab", "\ta"), ("x-latin", "é"),
              ("x-large", "y" * 7000), ("x-huge", "y" * 40000), ("host", "localhost"), ("host", "other.test"), ("host", ""), ("content-length", "5"), ("content-length", "0"),
              ("content-length", "-1"), ("content-length", "junk"), ("content-length", "99999999"), ("content-length", "5, 5"), ("content-length", "+5"), ("x_under", "1"), ("x:colon", "1"),
              (":late", "1"), (":path", "/again"), (":status", "200"), (":protocol", "websocket"), (":authority", "again"), ("http2-settings", "x"), ("x-del", "a\x7fb")]
AUTHORITIES = ["localhost"] * 12 + ["localhost:443", "LOCALHOST", "other.test", "unknown.test", "", None, "user@localhost", "localhost.", "127.0.0.1", "[::1]", "local host", "a/b", "localhost:99999", "é"]
SCHEMES = ["https"] * 20 + ["http", "", None, "ftp", "HTTPS"]
BODIES = [None] * 8 + [b"", b"hello", content(20000), content(60000)]

# An answer without a body has its length: the client need not check it.
h2.stream.H2Stream._track_content_length = lambda *words: None

# HTTP/2's codes, and the ones that mean the same in HTTP/3 (RFC 9114 appendix A.4).
CODES = {0: 0x100, 1: 0x10E, 2: 0x102, 7: 0x10B, 8: 0x10C, 10: 0x10F, 11: 0x107}


class Case:
    """A request of one seed."""

    def __init__(self, seed):
        draw = random.Random(seed)
        self.seed = seed
        self.method = draw.choice(METHODS)
        self.path = draw.choice(ODD_PATHS) if draw.random() < 0.1 else draw.choice(PATHS)
        self.authority = draw.choice(AUTHORITIES)
        self.scheme = draw.choice(SCHEMES)
        self.body = draw.choice(BODIES) if self.method in ("POST", "PUT", "PATCH") or draw.random() < 0.15 else None
        self.fields = draw.sample(FIELDS, draw.choice([0, 0, 1, 1, 2, 3, 5]))
        if draw.random() < 0.15:
            self.fields.insert(draw.randint(0, len(self.fields)), draw.choice(ODD_FIELDS))
        if draw.random() < 0.02:
            self.fields += [(f"x-many-{at}", "v" * 50) for at in range(150)]
        if self.body is not None and draw.random() < 0.6:
            self.fields.append(("content-length", str(len(self.body))))
        self.trailers = [("x-trailer", "1")] if self.body and draw.random() < 0.2 else draw.choice([[(":path", "/")], [("X-Up", "1")]]) if self.body and draw.random() < 0.03 else None

    def head(self):
        pseudo = [(":method", self.method), (":scheme", self.scheme), (":authority", self.authority), (":path", self.path)]
        if self.method == "CONNECT":
            pseudo = [(":method", "CONNECT"), (":authority", self.authority)]
        fields = [*((name, value) for name, value in pseudo if value is not None), ("x-case", str(self.seed)), *self.fields]
        return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]

    def tail(self):
        return [(name.encode(), value.encode()) for name, value in self.trailers]

    def __str__(self):
        body = None if self.body is None else len(self.body)
        return f"{self.head()} body={body} trailers={self.trailers}"[:700]


def outcome(status, fields, body, trailers, interim, end):
    fields = sorted((name, value) for name, value in fields if name not in ("date", "set-cookie"))
    for at, (name, value) in enumerate(fields):
        if name == "content-type" and "boundary=" in value:
            boundary = value.split("boundary=")[1]
            fields[at] = (name, value.replace(boundary, "B"))
            body = body.replace(boundary.encode(), b"B")
    return {"status": status, "fields": fields, "size": len(body), "body": body if len(body) < 700 else run.sha(body), "trailers": trailers, "interim": interim, "end": end}


class Http2:
    """One connection of HTTP/2; a new one after each end."""

    def __init__(self, port):
        self.port, self.side = port, None

    async def begin(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=context, server_hostname="localhost")
        config = h2.config.H2Configuration(client_side=True, header_encoding=False, validate_outbound_headers=False, normalize_outbound_headers=False,
                                           validate_inbound_headers=False)
        self.side = h2.connection.H2Connection(config)
        self.side.initiate_connection()
        self.side.increment_flow_control_window(1 << 28)
        self.side.update_settings({4: 1 << 24})

    async def ask(self, case):
        if self.side is None:
            await self.begin()
        side, self.found = self.side, {"status": 0, "fields": [], "body": b"", "trailers": [], "interim": [], "end": None}
        number = side.get_next_available_stream_id()
        side.send_headers(number, case.head(), end_stream=case.body is None)
        rest, may_send = case.body, True
        while self.found["end"] is None:
            while rest is not None and may_send:
                room = min(side.local_flow_control_window(number), side.max_outbound_frame_size)
                if rest and not room:
                    break
                piece, rest = rest[:room], rest[room:]
                last = not rest
                side.send_data(number, piece, end_stream=last and case.trailers is None)
                if last:
                    rest = None
                    if case.trailers is not None:
                        side.send_headers(number, case.tail(), end_stream=True)
            self.writer.write(side.data_to_send())
            try:
                data = await asyncio.wait_for(self.reader.read(1 << 16), 30)
            except (ConnectionError, ssl.SSLError):
                data = b""
            if not data:
                self.found["end"] = self.found.get("goaway") or "cut"
                self.side = None
                break
            for event in side.receive_data(data):
                if isinstance(event, h2.events.StreamReset) and event.stream_id == number:
                    may_send = False
                self.happened(event, number)
            if self.found["end"] is not None and "goaway" in self.found:
                self.side = None
        if self.side is not None and rest is not None:
            # The body was not sent: the connection is not used again.
            self.side = None
        if self.side is None:
            self.writer.close()
        else:
            self.writer.write(side.data_to_send())
        self.found.pop("goaway", None)
        return outcome(**self.found)

    def happened(self, event, number):
        found = self.found
        if isinstance(event, h2.events.ConnectionTerminated):
            found["goaway"] = f"closed {CODES.get(event.error_code, event.error_code):#x}"
        if getattr(event, "stream_id", None) != number:
            return
        if isinstance(event, (h2.events.ResponseReceived, h2.events.InformationalResponseReceived, h2.events.TrailersReceived)):
            fields = [(name.decode(), value.decode("latin-1")) for name, value in event.headers]
            plain = [each for each in fields if not each[0].startswith(":")]
            if isinstance(event, h2.events.TrailersReceived):
                found["trailers"] = plain
            elif isinstance(event, h2.events.InformationalResponseReceived):
                found["interim"].append((int(dict(fields)[":status"]), plain))
            else:
                found["status"], found["fields"] = int(dict(fields)[":status"]), plain
        elif isinstance(event, h2.events.DataReceived):
            found["body"] += event.data
            self.side.acknowledge_received_data(event.flow_controlled_length, number)
        elif isinstance(event, h2.events.StreamEnded):
            found["end"] = "end"
        elif isinstance(event, h2.events.StreamReset):
            found["end"] = found["end"] or f"reset {CODES.get(event.error_code, event.error_code):#x}"


class Http3:
    def __init__(self, port):
        self.port, self.context, self.client = port, None, None

    async def ask(self, case):
        if self.client is None or self.client.closed:
            await self.close()
            self.context = opened(self.port)
            self.client = await self.context.__aenter__()
        client = self.client
        number = client.quic.get_next_available_stream_id()
        section = lambda fields: encode_frame(FrameType.HEADERS, client.http._encode_headers(number, fields))
        client.raw(section(case.head()), case.body is None, number)
        if case.body is not None:
            data = encode_frame(FrameType.DATA, case.body) if case.body else b""
            tail = section(case.tail()) if case.trailers is not None else b""
            client.raw(data + tail, True, number)
        answer = await client.end(number, 30)
        if client.closed and not answer.ended:
            end = f"closed {client.closed[0]:#x}"
        else:
            end = "end" if answer.ended else f"reset {answer.reset:#x}"
        return outcome(answer.status, answer.fields, bytes(answer.body), answer.trailers, answer.interim, end)

    async def close(self):
        if self.context:
            await self.context.__aexit__(None, None, None)
        self.context = self.client = None


def excused(case, second, third):
    """The reason for a difference, or nothing."""
    names = {name for name, _ in case.fields}
    if case.authority is None and not names & {"host", ":authority"}:
        return "RFC 9114 §4.3.1: such a request is malformed"
    if "x-huge" in names and second["end"] == "closed 0x107" and third["status"] == 400:
        return "HTTP/2 must read each section, because the next ones depend on it: weir ends the connection"
    if second["end"] == third["end"] and third["end"].startswith("reset"):
        return "RFC 9000 §3.2: a reset may overtake the bytes before it"
    return None


def differences(case, second, third, logs):
    if excused(case, second, third):
        return {}
    found = {key: (second[key], third[key]) for key in second if second[key] != third[key]}
    if logs[0] != logs[1]:
        found["log"] = logs
    return found


async def logged(edge, seed):
    """The lines of the access log for a seed, without the protocol; they are written with the end of the request."""
    for _ in range(60):
        lines = [re.sub(r"boundary=\d+", "boundary=B", line).split("|") for line in edge.text("access.log").splitlines() if line.startswith(f"{seed}|")]
        protocols = [line[1] for line in lines]
        if "HTTP/2.0" in protocols and "HTTP/3.0" in protocols:
            break
        await asyncio.sleep(0.02)
    by = lambda protocol: [line[:1] + line[2:] for line in lines if line[1] == protocol]
    return by("HTTP/2.0"), by("HTTP/3.0")


async def start(binary):
    origin = Origin()
    await origin.start()
    edge, ports = run.edge(binary, "main")
    edge.certificate("localhost")
    for name, text in {"index.html": b"<title>index</title>\n", "page.html": b"own page\n", "empty.txt": b"", "big.txt": content(200_000),
                       "part.html": b'before <!--# echo var="scheme" --> after\n', "folder/index.html": b"in folder"}.items():
        edge.file(f"html/{name}", text)
    edge.file("users", b"me:{PLAIN}word\n")
    edge.write(HTTP % {**ports, "origin": origin.port})
    await edge.start()
    return edge, ports


async def main(words):
    edge, ports = await start(words.weir)
    first, last = map(int, words.seeds.split("-"))
    second, third, failed = Http2(ports["main"]), Http3(ports["main"]), 0
    try:
        for seed in range(first, last + 1):
            case = Case(seed)
            try:
                answers = await second.ask(case), await third.ask(case)
                found = differences(case, *answers, await logged(edge, seed))
            except Exception:
                found = {"raised": traceback.format_exc()}
                second.side = None
                await third.close()
            if found:
                failed += 1
                print(f"FAILED  seed {seed}: {case}")
                for key, values in found.items():
                    print(f"    {key}: {values}"[:1500] if key != "raised" else values, flush=True)
        await third.close()
        second.writer.close()
        await edge.settled()
        await edge.stop()
    except (AssertionError, OSError) as error:
        failed += 1
        print(f"FAILED  at the end: {error}")
    finally:
        if failed:
            print("--- error.log\n" + edge.text("error.log")[-4000:])
        edge.remove()
    print(f"{last - first + 1} requests, {failed} with differences")
    return 1 if failed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--seeds", default="1-300")
    sys.exit(asyncio.run(main(parser.parse_args())))
