#!/usr/bin/env python3
"""What a user does over HTTP/3: requests of every kind, TLS, resumption, limits, and the end of connections.

    tests/http3/user.py --weir BIN [NAME…]

Each case is a function below, whose name a part of NAME selects. One edge serves them all.
"""

import asyncio
import gzip
import json
import struct
import sys
import time

import run
from client import opened, settings
from origin import Http2Origin, Origin, content, frame

MEGABYTE = 1 << 20
HTTP = """
    log_format own '$request_id|$server_name|$request|$status|$http3|$server_protocol|$ssl_protocol|$ssl_early_data|$request_length|$bytes_sent|$body_bytes_sent|$connection_requests|$remote_user|$ssl_client_verify|$request_completion|';
    access_log access.log own;
    proxy_http_version 1.1; proxy_set_header Connection "";
    proxy_cache_path cache keys_zone=cache:1m;
    limit_conn_zone $server_port zone=conns:1m;
    limit_req_zone $server_port zone=reqs:1m rate=1r/m;
    client_max_body_size 100m;
    server {
        listen 127.0.0.1:%(main)d quic reuseport; listen 127.0.0.1:%(main)d ssl;
        server_name localhost; ssl_early_data on; http2 on;
        ssl_certificate localhost.crt; ssl_certificate_key localhost.key;
        root html; http3_max_concurrent_streams 128; add_header Alt-Svc 'h3=":%(main)d"; ma=86400';
        location / { }
        location /echo { proxy_pass http://127.0.0.1:%(origin)d; }
        location /size/ { proxy_pass http://127.0.0.1:%(origin)d; }
        location /chunked/ { proxy_pass http://127.0.0.1:%(origin)d; proxy_pass_trailers on; }
        location /endless { proxy_pass http://127.0.0.1:%(origin)d; proxy_buffers 8 16k; proxy_max_temp_file_size 0; }
        location /stream/ { proxy_pass http://127.0.0.1:%(origin)d/echo/; proxy_request_buffering off; }
        location /broken { proxy_pass http://127.0.0.1:%(origin)d; }
        location /early { early_hints 1; proxy_pass http://127.0.0.1:%(origin)d; }
        location /grpc { grpc_pass grpc://127.0.0.1:%(grpc)d; }
        location /ws { proxy_pass http://127.0.0.1:%(origin)d; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }
        location /vars { return 200 "$http3 $server_protocol $ssl_protocol $ssl_cipher $ssl_early_data $ssl_server_name $connection_requests $scheme $https $host $remote_addr $server_port"; }
        location /204 { return 204; }
        location /304 { return 304; }
        location /limited/conn { limit_conn conns 1; proxy_pass http://127.0.0.1:%(origin)d/endless; proxy_max_temp_file_size 0; }
        location /limited/req { limit_req zone=reqs; alias html/; }
        location /limited/rate { limit_rate 200k; alias html/; }
        location /private { auth_basic realm; auth_basic_user_file users; alias html/; }
        location /gzip { gzip on; gzip_min_length 1; gzip_types text/plain; alias html/; }
        location /cached/ { proxy_cache cache; proxy_cache_valid 200 1m; add_header X-Cache $upstream_cache_status; proxy_pass http://127.0.0.1:%(origin)d/size/; }
        location /own-page { error_page 404 /page.html; alias html/none; }
        location /sub { sub_filter title TITLE; sub_filter_types *; alias html/; }
        location /ssi { ssi on; ssi_types *; alias html/; }
        location /debug { error_log debug.log debug; return 200 "debug"; }
        location /small { client_max_body_size 1k; proxy_pass http://127.0.0.1:%(origin)d/echo; }
    }
    server {
        listen 127.0.0.1:%(main)d quic; listen 127.0.0.1:%(main)d ssl; server_name other.test;
        ssl_certificate other.test.crt; ssl_certificate_key other.test.key; return 200 "other $ssl_server_name";
    }
    server {
        listen 127.0.0.1:%(main)d quic; server_name reject.test; ssl_reject_handshake on;
    }
    server {
        listen 127.0.0.1:%(retry)d quic; quic_retry on; server_name localhost;
        ssl_certificate localhost.crt; ssl_certificate_key localhost.key; return 200 retried;
    }
    server {
        listen 127.0.0.1:%(mtls)d quic; server_name localhost; ssl_verify_client optional; ssl_client_certificate client.crt;
        ssl_certificate localhost.crt; ssl_certificate_key localhost.key; return 200 "$ssl_client_verify $ssl_client_s_dn";
    }
    server {
        listen 127.0.0.1:%(few)d quic; server_name localhost; keepalive_requests 3; send_timeout 2s; root html;
        ssl_certificate localhost.crt; ssl_certificate_key localhost.key;
        location /echo { proxy_pass http://127.0.0.1:%(origin)d; }
        location /endless { proxy_pass http://127.0.0.1:%(origin)d; proxy_buffers 8 16k; proxy_max_temp_file_size 0; }
    }
    server {
        listen 127.0.0.1:%(short)d quic; server_name localhost; client_header_timeout 1s; client_body_timeout 1s; keepalive_timeout 2s; root html;
        ssl_certificate localhost.crt; ssl_certificate_key localhost.key;
        location /echo { proxy_pass http://127.0.0.1:%(origin)d; }
    }
"""


class Place:
    """The edge and its origins."""

    async def start(self, binary):
        self.origin, grpc = Origin(), Http2Origin()
        await self.origin.start()
        await grpc.start()
        self.edge, ports = run.edge(binary, "main", "retry", "mtls", "few", "short")
        vars(self).update(ports)
        for name in ("localhost", "other.test", "client"):
            self.edge.certificate(name)
        self.edge.file("html/index.html", b"<title>index</title>\n")
        self.edge.file("html/page.html", b"own page\n")
        self.edge.file("html/part.html", b'before <!--# echo var="http3" --> <!--# include virtual="/index.html" --> after\n')
        self.edge.file("html/big.txt", content(MEGABYTE))
        self.edge.file("html/empty.txt", b"")
        self.edge.file("users", b"me:{PLAIN}word\n")
        self.edge.write(HTTP % {**ports, "origin": self.origin.port, "grpc": grpc.port})
        await self.edge.start()

    async def logged(self, *parts):
        return (await self.edge.line("access.log", *parts)).split("|")


async def answers_of_every_kind(place):
    async with opened(place.main) as client:
        answer = await client.ask(path="/")
        assert (answer.status, bytes(answer.body)) == (200, b"<title>index</title>\n") and answer["content-length"] == "21"
        assert answer["alt-svc"].startswith("h3=") and answer["connection"] is None and answer["keep-alive"] is None
        big = await client.ask(path="/big.txt")
        assert bytes(big.body) == content(MEGABYTE)
        proxied = await client.ask(path=f"/size/{MEGABYTE}")
        assert bytes(proxied.body) == content(MEGABYTE)
        head = await client.ask("HEAD", "/big.txt")
        assert (head.status, head["content-length"], bytes(head.body)) == (200, str(MEGABYTE), b"")
        head = await client.ask("HEAD", "/size/1000")
        assert (head.status, head["content-length"], bytes(head.body)) == (200, "1000", b"")
        for status in (204, 304):
            answer = await client.ask(path=f"/{status}")
            assert (answer.status, bytes(answer.body)) == (status, b""), answer
        answer = await client.ask(path="/index.html", fields=[("if-none-match", (await client.ask(path="/index.html"))["etag"])])
        assert (answer.status, bytes(answer.body)) == (304, b"")
        answer = await client.ask(path="/big.txt", fields=[("range", "bytes=1000-1999")])
        assert (answer.status, bytes(answer.body), answer["content-range"]) == (206, content(2000)[1000:], f"bytes 1000-1999/{MEGABYTE}")
        answer = await client.ask(path="/big.txt", fields=[("range", "bytes=0-1,5-6")])
        assert answer.status == 206 and answer["content-type"].startswith("multipart/byteranges")
        answer = await client.ask(path="/big.txt", fields=[("range", f"bytes={MEGABYTE}-")])
        assert answer.status == 416
        assert (await client.ask(path="/empty.txt")).status == 200 and (await client.ask(path="/none")).status == 404


async def bodies_of_requests(place):
    async with opened(place.main) as client:
        body = content(10 * MEGABYTE)
        for path in ("/echo/whole", "/stream/whole"):
            said = json.loads((await client.ask("POST", path, body=body)).body)
            assert said["length"] == len(body) and said["sha"] == run.sha(body) and ["content-length", str(len(body))] in said["fields"]
        said = json.loads((await client.ask("POST", "/echo/unknown", body=body[:100_000], length=False)).body)
        assert (said["length"], said["sha"]) == (100_000, run.sha(body[:100_000]))
        for path in ("/echo/expect", "/stream/expect"):
            number = client.begin("POST", path, [("content-length", "5"), ("expect", "100-continue")], ends=False)
            # As over HTTP/2 and in nginx, no 100 comes: a client waits a moment for it (RFC 9110 §10.1.1).
            await asyncio.sleep(0.2)
            assert not client.answer(number).ended
            client.send(number, b"hello", ends=True)
            assert json.loads((await client.end(number)).body)["length"] == 5
        said = json.loads((await client.ask("POST", "/echo/none", body=b"")).body)
        assert said["length"] == 0
        answer = await client.ask("POST", "/small", body=b"x" * 2000)
        assert answer.status == 413
        number = client.begin("POST", "/small", ends=False)
        client.send(number, b"x" * 3000)
        answer = await client.end(number)
        assert answer.status == 413, answer
        assert (await client.ask(path="/")).status == 200


async def trailers_and_early_hints(place):
    async with opened(place.main) as client:
        answer = await client.ask("POST", "/grpc", [("te", "trailers"), ("content-type", "application/grpc")], body=b"\0\0\0\0\0", length=False)
        assert bytes(answer.body) == b"\0\0\0\0\2hi" and answer.trailers == [("grpc-status", "0"), ("grpc-message", "fine")], answer
        answer = await client.ask(path="/chunked/1000", fields=[("te", "trailers")])
        assert bytes(answer.body) == content(1000) and answer.trailers == [("x-sum", "7")], answer.trailers
        answer = await client.ask(path="/early")
        assert [status for status, _ in answer.interim] == [103] and bytes(answer.body) == b"late", answer
        assert dict(answer.interim[0][1])["link"] == "</a.css>; rel=preload"


async def an_answer_that_the_origin_cuts(place):
    async with opened(place.main) as client:
        # What came before the end reaches the client first, as over HTTP/2.
        answer = await client.end(client.begin(path="/broken"))
        assert (answer.status, bytes(answer.body), answer.reset) == (200, b"short", 0x102), answer
        assert (await client.ask()).status == 200


async def websocket(place):
    async with opened(place.main) as client:
        await client.until(lambda: client.http.received_settings, "SETTINGS")
        assert client.http.received_settings.get(8) == 1
        for close_by_origin in (False, True):
            number = client.begin("CONNECT", "/ws", [("sec-websocket-version", "13"), ("sec-websocket-protocol", "chat")], ends=False,
                                  more=[(":protocol", "websocket")])
            answer = client.answer(number)
            await client.until(lambda: answer.status, "the answer to CONNECT")
            assert answer.status == 200 and answer["sec-websocket-protocol"] == "chat" and answer["sec-websocket-accept"] is None, answer
            for data in (b"hello", b"x" * 60000, b"again"):
                before = len(answer.body)
                client.send(number, frame(0x81, data, b"mask"))
                expected = frame(0x81, data, None)
                await client.until(lambda: len(answer.body) - before >= len(expected), "the echo")
                assert bytes(answer.body[before:]) == expected
            before = len(answer.body)
            client.send(number, frame(0x81, b"close", b"mask") if close_by_origin else frame(0x88, struct.pack(">H", 1000), b"mask"))
            await client.until(lambda: answer.ended, "the end")
            assert answer.body[before] == 0x88
        other = client.begin("CONNECT", "/ws", [], ends=False, more=[(":protocol", "other")])
        answer = client.answer(other)
        await client.until(lambda: answer.status or answer.reset is not None, "a refusal")
        assert answer.status in (400, 405, 501) or answer.reset is not None, answer
        assert (await client.ask(path="/")).status == 200
    await place.logged("CONNECT /ws HTTP/3.0", "|101|")


async def names_and_certificates(place):
    for name, said in (("localhost", b"<title>index"), ("other.test", b"other other.test")):
        async with opened(place.main, server_name=name) as client:
            names = client.quic.tls._peer_certificate.subject.rfc4514_string()
            assert names == f"CN={name}", names
            answer = await client.ask(authority=name)
            assert bytes(answer.body).startswith(said), answer
            # Another name of the same address: its server, as over HTTP/2.
            assert (await client.ask(authority="unknown.test")).status in (200, 421)
    try:
        async with opened(place.main, server_name="reject.test"):
            raise AssertionError("the handshake was not rejected")
    except ConnectionError:
        pass
    await place.edge.line("error.log", "reject", "handshak")
    async with opened(place.main, server_name="127.0.0.1") as client:
        answer = await client.ask(authority=f"127.0.0.1:{place.main}", path="/vars")
        assert answer.status == 200 and b"127.0.0.1" in answer.body


async def client_certificates(place):
    async with opened(place.mtls) as client:
        assert bytes((await client.ask()).body) == b"NONE "
    for name, said in (("client", b"SUCCESS CN=client"), ("other.test", None)):
        configuration = settings()
        configuration.load_cert_chain(str(place.edge.room / f"{name}.crt"), str(place.edge.room / f"{name}.key"))
        async with opened(place.mtls, configuration) as client:
            answer = await client.ask()
            if said:
                assert (answer.status, bytes(answer.body)) == (200, said), answer
            else:
                assert answer.status == 400, answer


async def variables(place):
    async with opened(place.main) as client:
        for number in (1, 2):
            http3, protocol, tls, cipher, *rest = bytes((await client.ask(path="/vars")).body).decode().split(" ")
            assert (http3, protocol, tls) == ("h3", "HTTP/3.0", "TLSv1.3") and cipher.startswith("TLS_"), (http3, protocol, tls, cipher)
            assert rest == ["", "localhost", str(number), "https", "on", "localhost", "127.0.0.1", str(place.main)], rest
        answer = await client.ask("POST", "/echo/variables", body=b"x" * 1000)
        words = await place.logged("/echo/variables")
        assert words[2:8] == ["POST /echo/variables HTTP/3.0", "200", "h3", "HTTP/3.0", "TLSv1.3", "-"], words
        length, sent, body, number = map(int, words[8:12])
        assert 1000 < length < 1500 and body == len(answer.body) and body < sent < body + 500 and number == 3, words


async def early_data(place):
    async with opened(place.main) as client:
        await client.ask()
        await client.until(lambda: client.tickets, "a ticket")
        tickets = client.tickets
    assert tickets[0].max_early_data_size == 0xFFFFFFFF, tickets[0]
    taken = []
    for _ in range(2):
        # The same ticket twice: weir answers both, and only one may be early (RFC 8446 §8).
        async with opened(place.main, settings(session_ticket=tickets[0]), waits=False) as client:
            number = client.begin(path="/vars")
            answer = await client.end(number)
            assert answer.status in (200, 425), answer
            taken.append((client.quic.tls.early_data_accepted, bytes(answer.body).decode().split(" ")[4] if answer.status == 200 else answer.status))
    assert taken[0][0], taken
    if len(tickets) > 1:
        async with opened(place.main, settings(session_ticket=tickets[1]), waits=False) as client:
            answer = await client.end(client.begin(path="/vars"))
            assert client.quic.tls.early_data_accepted and answer.status == 200
    return taken


async def address_validation(place):
    async with opened(place.retry) as client:
        assert client.quic._retry_source_connection_id is not None
        assert bytes((await client.ask()).body) == b"retried"
        await client.until(lambda: client.tokens, "NEW_TOKEN")
        token = client.tokens[0]
    async with opened(place.retry, settings(token=token)) as client:
        assert client.quic._retry_source_connection_id is None, "a token of NEW_TOKEN needs no Retry"
        assert bytes((await client.ask()).body) == b"retried"
    async with opened(place.retry, settings(token=token)) as client:
        assert client.quic._retry_source_connection_id is not None, "a token counts once"
    async with opened(place.retry, settings(token=b"garbage" * 5)) as client:
        assert bytes((await client.ask()).body) == b"retried"


async def many_streams(place):
    async with opened(place.main) as client:
        for _ in range(12):
            await client.ask()
        answers = await asyncio.gather(*(client.ask(path=f"/size/{10_000 + at}") for at in range(100)))
        assert all(bytes(answer.body) == content(10_000 + at) for at, answer in enumerate(answers))


async def goaway_after_keepalive_requests(place):
    """The last answer is whole, and the client learns which request was the last."""
    for _ in range(3):
        async with opened(place.few) as client:
            numbers = [client.begin(path="/big.txt") for _ in range(3)]
            answers = [await client.end(number) for number in numbers]
            assert [bytes(answer.body) == content(MEGABYTE) for answer in answers] == [True] * 3, [len(answer.body) for answer in answers]
            assert all(answer.ended for answer in answers)
            assert await client.close_code() == 0x100
            assert client.goaways() == [12], client.goaways()
    async with opened(place.few) as client:
        assert (await client.ask()).status == 200


async def a_client_that_gives_up(place):
    async with opened(place.main) as client:
        number = client.begin(path="/endless?reset")
        await client.until(lambda: len(client.answer(number).body) > 100_000, "some of it")
        client.quic.stop_stream(number, 0x10C)
        client.transmit()
        await client.until(lambda: client.answer(number).reset is not None, "a reset")
        assert client.answer(number).reset == 0x10C
        await asyncio.wait_for(place.origin.ended.wait(), 20)
        assert (await client.ask(path="/")).status == 200
        # A request whose body is given up: the origin of an unbuffered request sees no whole one.
        number = client.begin("POST", "/stream/given-up", [("content-length", "1000")], ends=False)
        client.send(number, b"x" * 10)
        await asyncio.sleep(0.2)
        client.quic.reset_stream(number, 0x10C)
        client.transmit()
        await asyncio.sleep(0.2)
        assert not any("/echo/given-up" in seen[1] for seen in place.origin.seen)
        assert (await client.ask(path="/")).status == 200
    words = await place.logged("/endless?reset")
    assert words[3] in ("200", "499") and words[14] == "", words
    assert (await place.logged("/stream/given-up"))[3] in ("400", "499")


async def streams_that_are_given_up_make_room(place):
    """However a client gives requests up, the next ones have streams and windows."""
    async with opened(place.main) as client:
        for way in ("reset", "stop", "reset without a head"):
            for _ in range(40):
                if way == "reset without a head":
                    number = client.raw(b"\1")
                else:
                    number = client.begin("POST", "/stream/given-up", [("content-length", "100000")], ends=False)
                    client.send(number, b"x" * 40_000)
                room = client.quic._remote_max_streams_bidi * 4 > number
                assert room, f"no room for stream {number} by {way}"
                await asyncio.sleep(0.02)
                if way == "stop":
                    client.quic.stop_stream(number, 0x10C)
                else:
                    client.quic.reset_stream(number, 0x10C)
                client.transmit()
                answer = client.answer(number)
                await client.until(lambda: answer.reset is not None, f"weir's reset after {way}", 20)
        answer = await client.ask("POST", "/echo/after", body=content(MEGABYTE))
        assert json.loads(answer.body)["length"] == MEGABYTE


async def key_update(place):
    async with opened(place.main) as client:
        for _ in range(3):
            assert (await client.ask(path="/big.txt")).status == 200
            client.quic.request_key_update()
            assert bytes((await client.ask(path="/size/100")).body) == content(100)


async def a_client_that_does_not_read(place):
    """weir keeps a bounded part of the answer, and the origin waits."""
    before = place.edge.memory()
    configuration = settings(max_data=200_000, max_stream_data=200_000)
    async with opened(place.main, configuration) as client:
        client.quic._write_connection_limits = lambda **named: None
        client.quic._write_stream_limits = lambda **named: None
        number = client.begin(path="/endless?still")
        await client.until(lambda: len(client.answer(number).body) > 150_000, "the window's bytes")
        sent = -1
        while place.origin.sent != sent:
            sent = place.origin.sent
            await asyncio.sleep(1)
        grown = place.edge.memory() - before
        assert sent < 24 * MEGABYTE and grown < 16 * MEGABYTE, (sent, grown)
        client.quic.stop_stream(number, 0x10C)
        client.transmit()
        await asyncio.wait_for(place.origin.ended.wait(), 20)


async def a_last_answer_that_is_not_read(place):
    """After GOAWAY too, a client that reads nothing does not stay longer than `send_timeout`."""
    async with opened(place.few, settings(max_data=1000, max_stream_data=1000)) as client:
        client.quic._write_connection_limits = lambda **named: None
        client.quic._write_stream_limits = lambda **named: None
        begun = time.monotonic()
        for _ in range(3):
            client.begin(path="/big.txt")
        assert await client.close_code(30) == 0x100
        assert time.monotonic() - begun > 1.5


async def heads_and_bodies_that_do_not_end(place):
    async with opened(place.short) as client:
        begun = time.monotonic()
        client.raw(bytes([1, 0x40, 200]) + b"\0\0")
        code = await client.close_code(30)
        assert 0.5 < time.monotonic() - begun < 15 and code in (0x100, 0x107), code
    async with opened(place.short) as client:
        number = client.begin("POST", "/echo/unfinished", [("content-length", "100")], ends=False)
        client.send(number, b"x")
        # As in nginx, 408 is for the log alone.
        answer = await client.end(number)
        assert answer.reset is not None and not answer.status, answer
        assert (await place.logged("/echo/unfinished"))[3] == "408"
        assert (await client.ask()).status == 200
    async with opened(place.short) as client:
        assert (await client.ask()).status == 200
        assert await client.close_code(30) == 0x100, "keepalive_timeout"
    async with opened(place.short) as client:
        # A head that does not end, while other requests are answered.
        number = client.raw(bytes([1, 0x40, 200]) + b"\0\0")
        begun = time.monotonic()
        while time.monotonic() - begun < 10 and client.answer(number).reset is None and not client.closed:
            await client.ask()
            await asyncio.sleep(0.1)
        assert client.closed or client.answer(number).reset is not None, "the head waits forever"


async def limits(place):
    async with opened(place.main) as client:
        number = client.begin(path="/limited/conn")
        await client.until(lambda: client.answer(number).status == 200, "the first one")
        assert (await client.ask(path="/limited/conn")).status == 503
        client.quic.stop_stream(number, 0x10C)
        client.transmit()
        assert [(await client.ask(path="/limited/reqpage.html")).status for _ in range(2)] == [200, 503]
        begun = time.monotonic()
        answer = await client.ask(path="/limited/ratebig.txt")
        assert bytes(answer.body) == content(MEGABYTE) and 3 < time.monotonic() - begun < 15, time.monotonic() - begun


async def filters_and_the_rest(place):
    async with opened(place.main) as client:
        assert (await client.ask(path="/privatepage.html")).status == 401
        answer = await client.ask(path="/privatepage.html", fields=[("authorization", "Basic bWU6d29yZA==")])
        assert (answer.status, bytes(answer.body)) == (200, b"own page\n")
        assert (await place.logged("/privatepage.html HTTP/3.0", "|200|"))[12] == "me"
        answer = await client.ask(path="/gzipbig.txt", fields=[("accept-encoding", "gzip")])
        assert answer["content-encoding"] == "gzip" and gzip.decompress(bytes(answer.body)) == content(MEGABYTE)
        first, second = [await client.ask(path="/cached/5000") for _ in range(2)]
        assert (first["x-cache"], second["x-cache"]) == ("MISS", "HIT") and bytes(second.body) == content(5000)
        answer = await client.ask(path="/own-page")
        assert (answer.status, bytes(answer.body)) == (404, b"own page\n")
        assert bytes((await client.ask(path="/subindex.html")).body) == b"<TITLE>index</title>\n"
        answer = await client.ask(path="/ssipart.html")
        assert bytes(answer.body) == b"before h3 <title>index</title>\n after\n", answer.body
        assert (await client.ask(path="/debug")).status == 200
        await place.edge.line("debug.log", '/debug', patience=5)
        answer = await client.ask(path="/echo/cookies", fields=[("cookie", "a=1"), ("cookie", "b=2")])
        assert ["cookie", "a=1; b=2"] in json.loads(answer.body)["fields"]


async def several_connections_at_once(place):
    async def one(at):
        async with opened(place.main) as client:
            return bytes((await client.ask(path=f"/size/{at}")).body) == content(at)
    assert all(await asyncio.gather(*(one(1000 + at) for at in range(50))))


if __name__ == "__main__":
    run.main(Place, sys.modules[__name__])
