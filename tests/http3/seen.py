#!/usr/bin/env python3
"""What weir counts and logs of HTTP/3 is what clients did.

    tests/http3/seen.py --weir BIN [NAME…]

The counters are compared with what aioquic sent and received, and with the access log. Each fault of a client is one line of the
error log.
"""

import asyncio
import signal
import socket
import ssl
import subprocess
import sys
from contextlib import AsyncExitStack

import run
from aioquic.h3.connection import encode_frame
from aioquic.quic.configuration import QuicConfiguration
from client import Client, RawClient, opened, settings
from hostile import CONTROL, HEAD, POST, inject
from origin import Origin, content, frame

HTTP = """
    log_format own '$http2$http3|$request_length|$bytes_sent|$request|';
    access_log access.log own;
    proxy_http_version 1.1; client_header_timeout 5s;
    ssl_certificate localhost.crt; ssl_certificate_key localhost.key;
    server {
        listen 127.0.0.1:%(plain)d; listen 127.0.0.1:%(main)d ssl; listen 127.0.0.1:%(main)d quic reuseport;
        server_name localhost; http2 on; root html; ssl_early_data on; http3_alt_svc on;
        location / { }
        location /echo { proxy_pass http://127.0.0.1:%(origin)d; }
        location /stream { proxy_request_buffering off; proxy_pass http://127.0.0.1:%(origin)d/echo; }
        location /ws { proxy_pass http://127.0.0.1:%(origin)d; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }
        location /ssi { ssi on; ssi_types *; alias html/; }
        location /slow { limit_rate 10k; alias html/; }
        location /asked { auth_request /204; alias html/; }
        location /204 { return 204; }
    }
    server { listen 127.0.0.1:%(main)d quic; server_name reject.test; ssl_reject_handshake on; }
    server { listen 127.0.0.1:%(main)d quic; server_name hq.test; http3_hq on; root html; location /vars { return 200 "$http3 $request_uri"; } }
    server { listen 127.0.0.1:%(main)d quic; server_name only-hq.test; http3 off; http3_hq on; root html; }
    server { listen 127.0.0.1:%(retry)d quic; quic_retry on; quic_active_connection_id_limit 4; server_name localhost; location / { return 200 retried; } location /slow { limit_rate 10k; alias html/; } }
"""
# Connections of a worker.
PLACES = 20
MEGABYTE = 1 << 20


class Place:
    async def start(self, binary):
        self.origin = Origin()
        await self.origin.start()
        self.edge, self.ports = run.edge(binary, "main", "plain", "retry")
        vars(self).update(self.ports)
        for name in ("localhost", "stranger"):
            self.edge.certificate(name)
        self.edge.file("html/index.html", b"index\n")
        self.edge.file("html/part.html", b'<!--# include virtual="/index.html" -->')
        self.edge.file("html/big.txt", content(MEGABYTE))
        # Its datagrams fit into a client's socket.
        self.edge.file("html/small.txt", content(60_000))
        self.write()
        await self.edge.start()

    def write(self, workers=2):
        self.edge.write(HTTP % {**self.ports, "origin": self.origin.port}, workers=workers, connections=PLACES)

    async def weir(self):
        return (await asyncio.to_thread(self.edge.asked, "weir"))["weir"]

    async def quic(self):
        """The counters of QUIC, once no client has a connection."""
        await self.edge.settled()
        return (await self.weir())["quic"]

    def curl(self, *words):
        subprocess.run(["curl", "-sk", *words], check=True, stdout=subprocess.DEVNULL)

    async def reload(self):
        generation = (await asyncio.to_thread(self.edge.asked, "9/nginx"))["generation"]
        self.edge.process.send_signal(signal.SIGHUP)
        while (await asyncio.to_thread(self.edge.asked, "9/nginx"))["generation"] == generation:
            await asyncio.sleep(0.05)


def grown(after, before):
    """The counters that grew, by their paths."""
    found = {}
    for name, value in after.items():
        old = before.get(name, {} if isinstance(value, dict) else 0)
        if isinstance(value, dict):
            found.update({f"{name}.{inner}": count for inner, count in grown(value, old).items()})
        elif value != old:
            found[name] = value - old
    return found


def without_datagrams(found):
    return {name: count for name, count in found.items() if name not in ("datagrams.received", "datagrams.sent")}


class Counting(Client):
    """Counts its datagrams, and loses some that weir sends."""
    drop = ()
    most = float("inf")

    def __init__(self, *words, **named):
        super().__init__(*words, **named)
        self.sent = self.received = self.dropped = 0

    def connection_made(self, transport):
        super().connection_made(transport)
        send = self._transport.sendto

        def sendto(data, to):
            if self.sent < self.most:
                self.sent += 1
                send(data, to)
        self._transport.sendto = sendto

    def datagram_received(self, data, address):
        self.received += 1
        if self.received in self.drop:
            self.dropped += 1
        else:
            super().datagram_received(data, address)


class Silent(Counting):
    """Begins a handshake, and does no more."""

    most = 1

    def datagram_received(self, data, address):
        self.received += 1


async def _books(place):
    """The counts by protocol are those of the access log. The asking request has begun, and has no line yet."""
    await place.edge.settled()
    counts = {row["protocol"]: [row["requests"], row["received"], row["sent"]] for row in (await place.weir())["protocols"]}
    logged, names = {name: [0, 0, 0] for name in counts}, {"": "HTTP/1", "h2": "HTTP/2", "h3": "HTTP/3"}
    # The last line is written after the answer.
    await place.edge.line("access.log", "/api/weir")
    for line in place.edge.text("access.log").splitlines():
        protocol, received, sent, *_ = line.split("|")
        row = logged[names[protocol]]
        row[:] = [row[0] + 1, row[1] + int(received), row[2] + int(sent)]
    return counts, logged


async def _agree(place):
    for _ in range(40):
        counts, logged = await _books(place)
        # The line of the question itself may be there already, with its bytes.
        if counts["HTTP/2"] == logged["HTTP/2"] and counts["HTTP/3"] == logged["HTTP/3"] and counts["HTTP/1"][0] == logged["HTTP/1"][0]:
            return counts
        await asyncio.sleep(0.1)
    raise AssertionError(f"weir counts {counts}, the access log {logged}")


async def requests_by_protocol(place):
    before = await _agree(place)
    for _ in range(3):
        place.curl("--http1.1", f"https://127.0.0.1:{place.main}/index.html", f"http://127.0.0.1:{place.plain}/none")
        place.curl("--http2", f"https://127.0.0.1:{place.main}/big.txt", f"https://127.0.0.1:{place.main}/ssipart.html")
    async with opened(place.main) as client:
        for path in ("/index.html", "/none", "/ssipart.html", "/askedindex.html", "/big.txt"):
            await client.ask(path=path)
        await client.ask("POST", "/echo", body=content(100_000))
        # Malformed, and cancelled by the client: requests too.
        await client.end(client.begin(path="/index.html", fields=[("Upper", "1")]))
        number = client.begin("POST", "/echo", ends=False)
        await asyncio.sleep(0.1)
        client.quic.reset_stream(number, 0x10C)
        client.quic.stop_stream(number, 0x10C)
        client.transmit()
        await asyncio.sleep(0.1)
    after = await _agree(place)
    assert after["HTTP/2"][0] - before["HTTP/2"][0] == 6, (before, after)
    assert after["HTTP/3"][0] - before["HTTP/3"][0] == 8, (before, after)
    assert after["HTTP/3"][2] - before["HTTP/3"][2] > MEGABYTE


async def tunnels_and_reloads(place):
    before = await _agree(place)
    async with opened(place.main) as client:
        await client.until(lambda: client.http.received_settings, "SETTINGS")
        number = client.begin("CONNECT", "/ws", [("sec-websocket-version", "13")], ends=False, more=[(":protocol", "websocket")])
        answer = client.answer(number)
        await client.until(lambda: answer.status == 200, "the tunnel")
        place.write(workers=3)
        await place.reload()
        await client.ask(path="/index.html")
        client.send(number, frame(0x81, b"x" * 60_000, b"mask"))
        await client.until(lambda: len(answer.body) > 60_000, "the echo")
        assert (await place.weir())["quic"]["active"] == 1
        client.send(number, frame(0x88, b"\x03\xe8", b"mask"))
        await client.until(lambda: answer.ended, "the end")
    after = await _agree(place)
    requests, _, sent = (now - then for now, then in zip(after["HTTP/3"], before["HTTP/3"]))
    assert requests == 2 and sent > 60_000, (before, after)
    await place.reload()
    assert (await _agree(place))["HTTP/3"] == after["HTTP/3"]
    assert (await place.quic())["active"] == 0


async def a_request_after_a_reload_beside_an_older_one(place):
    """Nothing else listens on this port."""
    async with opened(place.retry) as client:
        slow = client.answer(client.begin(path="/slowsmall.txt"))
        await client.until(lambda: slow.body, "its beginning")
        await place.reload()
        assert bytes((await client.ask()).body) == b"retried"
        await client.until(lambda: slow.ended, "its end", 15)
        assert len(slow.body) == 60_000


async def connections_and_datagrams(place):
    before = await place.quic()
    clients = []
    for _ in range(5):
        async with opened(place.main, kind=Counting) as client:
            await client.ask(path="/small.txt")
            assert (await place.weir())["quic"]["active"] == 1
            clients.append(client)
    found = grown(await place.quic(), before)
    await asyncio.sleep(0.5)
    found = grown(await place.quic(), before)
    sent, received = sum(client.sent for client in clients), sum(client.received for client in clients)
    # An end takes no answer, so its datagrams and the client's last ones cross.
    assert without_datagrams(found) == {"accepted": 5}, found
    assert found["datagrams.received"] == sent, (found, sent)
    assert found["datagrams.sent"] >= received > 5 * 40, (found, received)
    return f"{sent} datagrams to weir, {received} back"


async def lost_packets(place):
    class Losing(Counting):
        drop = range(20, 30)

    before = await place.quic()
    async with opened(place.main, kind=Losing) as client:
        answer = await client.ask(path="/small.txt")
        assert bytes(answer.body) == content(60_000) and client.dropped == 10
        now = (await place.weir())["quic"]["lost_packets"] - before["lost_packets"]
    lost = grown(await place.quic(), before)["lost_packets"]
    # One of them may be a probe for a larger path, whose loss is no loss.
    assert lost == now and lost in (9, 10), (now, lost)


async def handshakes_that_fail(place):
    before, lines = await place.quic(), place.edge.text("error.log")
    ssl_before = (await asyncio.to_thread(place.edge.asked, "9/ssl"))

    async def fails(configuration, kind=RawClient):
        try:
            async with opened(place.main, configuration, kind=kind, waits=False) as client:
                client.quic.send_ping(0)
                client.transmit()
                return await client.close_code(15)
        except ConnectionError:
            return None
    other = settings()
    other.alpn_protocols = ["hq-29"]
    assert await fails(other) == 0x178
    assert await fails(settings("reject.test")) == 0x170
    strict = QuicConfiguration(is_client=True, alpn_protocols=["h3"], verify_mode=ssl.CERT_REQUIRED, server_name="localhost")
    strict.load_verify_locations(str(place.edge.room / "stranger.crt"))
    refused = await fails(strict)
    try:
        async with opened(place.main, kind=Silent, waits=False) as client:
            client.transmit()
            await place.edge.line("error.log", "client timed out (110: Connection timed out) while SSL handshaking")
    except ConnectionError:
        pass
    found = without_datagrams(grown(await place.quic(), before))
    name = {42: "bad_certificate", 46: "certificate_unknown", 48: "unknown_ca"}[refused & 0xFF]
    assert found == {"accepted": 4, "handshakes_failed.no_application_protocol": 1, "handshakes_failed.unrecognized_name": 1,
                     f"handshakes_failed.{name}": 1, "handshakes_failed.timeout": 1}, found
    grew = grown(await asyncio.to_thread(place.edge.asked, "9/ssl"), ssl_before)
    assert (grew["handshakes_failed"], grew["handshake_timeout"], grew["peer_rejected_cert"]) == (4, 1, 1), grew
    new = [line for line in place.edge.text("error.log")[len(lines):].splitlines() if "SSL handshaking" in line]
    said = ["SSL handshake rejected", name, "client timed out"]
    assert len(new) == 4 and all(sum(words in line for line in new) == 1 for words in said), new


async def retries_versions_and_resets(place):
    before = await place.quic()
    async with opened(place.retry) as client:
        assert bytes((await client.ask()).body) == b"retried"
        assert client.quic._remote_active_connection_id_limit == 4
    plain = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    plain.settimeout(5)
    to = ("127.0.0.1", place.main)
    plain.sendto(b"\xc0\x0a\x0a\x0a\x0a\x08" + b"d" * 8 + b"\x08" + b"s" * 8 + b"\0" * 1200, to)
    assert plain.recv(2000)[1:5] == b"\0\0\0\0"
    async with opened(place.main) as client:
        answer = await client.ask()
        assert answer["alt-svc"] is None and client.quic._remote_active_connection_id_limit == 2
        peer = client.quic._peer_cid.cid
    await place.edge.settled()
    # The state of a connection stays for three times its probe timeout.
    await asyncio.sleep(2)
    plain.sendto(b"\x40" + peer + b"r" * 60, to)
    answer = plain.recv(2000)
    assert answer[0] & 0xC0 == 0x40 and len(answer) < 78, answer
    # Garbage: too short, a first byte without the fixed bit, a short Initial packet.
    for data in (b"x", b"\x00" * 100, b"\xc0\0\0\0\1\x08" + b"d" * 8 + b"\0" * 50):
        plain.sendto(data, to)
    # Ids of nobody, with both headers.
    for data in (b"\x40" + b"i" * 60, b"\xe0\0\0\0\1\x08" + b"d" * 8 + b"\0" * 50):
        plain.sendto(data, to)
    await asyncio.sleep(0.3)
    plain.close()
    found = without_datagrams(grown(await place.quic(), before))
    assert found == {"accepted": 2, "retries": 1, "version_negotiations": 1, "stateless_resets": 1, "datagrams.dropped.garbage": 3, "datagrams.dropped.unknown_id": 2}, found


async def early_data_and_moves(place):
    before = await place.quic()
    async with opened(place.main) as client:
        await client.ask()
        await client.until(lambda: client.tickets, "a ticket")
        ticket = client.tickets[0]
    async with opened(place.main, settings(session_ticket=ticket), waits=False) as client:
        await client.end(client.begin())
        assert client.quic.tls.early_data_accepted
        loop = asyncio.get_running_loop()
        for host in ("127.0.0.2", "127.0.0.3"):
            old = client._transport
            await loop.create_datagram_endpoint(lambda: client, local_addr=("::ffff:" + host, 0))
            for _ in range(2):
                await client.ask()
                await asyncio.sleep(0.1)
            old.close()
    found = without_datagrams(grown(await place.quic(), before))
    assert found == {"accepted": 2, "early_data": 1, "migrations": 2}, found


async def datagrams_for_another_worker(place):
    """The kernel chooses the socket by a mark in the id, and the worker finds out."""
    async with opened(place.main) as client:
        await client.ask()
        peer = client.quic._peer_cid.cid
        before = (await place.weir())["quic"]
        plain = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for mark in range(64):
            plain.sendto(b"\x40" + peer[:8] + bytes([mark]) + peer[9:] + b"f" * 40, ("127.0.0.1", place.main))
        plain.close()
        await asyncio.sleep(0.3)
        now = (await place.weir())["quic"]
        found = grown(now["datagrams"], before["datagrams"])
    resets = now["stateless_resets"] - before["stateless_resets"]
    # The mark is a part of the id, so no connection has these ids, but for the true one; a few get resets.
    unknown = 64 - (peer[8] < 64)
    assert 0 < found["forwarded.worker"] < 64 and found["dropped.unknown_id"] + resets == unknown and not set(found) & {"dropped.full", "dropped.garbage"}, (found, resets)
    return f"{found['forwarded.worker']} of 64"


async def requests_of_http_09(place):
    def speaking(*protocols, server_name="hq.test"):
        configuration = settings(server_name)
        configuration.alpn_protocols = list(protocols)
        return configuration

    async def got(client, line, ends=True):
        answer = await client.end(client.raw(line, ends))
        return bytes(answer.body) if answer.ended else answer.reset
    for name in ("hq.test", "only-hq.test"):
        async with opened(place.main, speaking("hq-interop", server_name=name), kind=RawClient) as client:
            assert await got(client, b"GET /index.html\r\n") == b"index\n"
            assert await got(client, b"GET /index.html") == b"index\n"
            assert await got(client, b"GET /index.html\n", ends=False) == b"index\n"
            assert b"404 Not Found" in await got(client, b"GET /none\r\n")
            assert await got(client, b"POST /index.html\r\n") == 0x10E
            assert await got(client, b"GET /" + b"x" * 20_000, ends=False) == 0x107
            # More requests than a client may open at once, and a long body.
            numbers = [client.raw(b"GET /index.html\r\n", True) for _ in range(40)]
            assert [bytes((await client.end(number)).body) for number in numbers] == [b"index\n"] * 40
            assert await got(client, b"GET /big.txt\r\n") == content(MEGABYTE)
            client.raw_uni(b"\0")
            assert await client.close_code(15) == 0x103
    async with opened(place.main, speaking("hq-interop"), kind=RawClient) as client:
        assert await got(client, b"GET /vars?a=b\r\n") == b"hq /vars?a=b"
    # HTTP/3 goes first, and stays where HTTP/0.9 is off.
    async with opened(place.main, speaking("hq-interop", "h3")) as client:
        assert client.quic.tls.alpn_negotiated == "h3" and bytes((await client.ask(authority="hq.test")).body) == b"index\n"
    async with opened(place.main, speaking("h3", "hq-interop", server_name="localhost")) as client:
        assert client.quic.tls.alpn_negotiated == "h3"


async def clients_beyond_the_table(place):
    place.edge.expected.append("worker_connections are not enough")
    before = await place.quic()
    dropped = (await place.edge.connections())["dropped"]
    clients = []

    async def one(stack):
        client = await stack.enter_async_context(opened(place.main, waits=False))
        # With a request under way: to make room, weir closes connections without one.
        answer = client.answer(client.begin(path="/slowbig.txt"))
        await client.until(lambda: answer.body or client.closed, "an answer")
        clients.append(client)
    async with AsyncExitStack() as stack:
        for _ in range(9):
            await asyncio.gather(*(one(stack) for _ in range(10)))
    refused = sum(client.closed is not None and client.closed[0] == 0x2 for client in clients)
    found = grown(await place.quic(), before)
    assert refused > 0 and (found["accepted"], found["refused"]) == (90 - refused, refused), (found, refused)
    assert (await place.edge.connections())["dropped"] - dropped == refused
    return f"{refused} of 90 refused"


# What a client does, and what its line says.
FAULTS = {
    "a second control stream": (lambda client: [client.raw_uni(CONTROL), client.raw_uni(CONTROL)], "http3 error 0x103 (H3_STREAM_CREATION_ERROR)"),
    "a frame that may not be there": (lambda client: [client.raw_uni(CONTROL), client.raw(encode_frame(0, b"x"), True)], "http3 error 0x105 (H3_FRAME_UNEXPECTED)"),
    "an insertion of nothing": (lambda client: [client.raw_uni(CONTROL), client.raw_uni(b"\2\x3f\x45\0")], "http3 error 0x201 (QPACK_ENCODER_STREAM_ERROR)"),
    "an index of nothing": (lambda client: [client.raw_uni(CONTROL), client.raw(encode_frame(1, b"\0\0\x80"), True)], "http3 error 0x200 (QPACK_DECOMPRESSION_FAILED)"),
    "an unknown frame of QUIC": (lambda client: inject(client, 0x2F), "quic error 0x7"),
}
# The same for faults that end a stream alone.
STREAM_FAULTS = {
    "less body than it said": (encode_frame(1, b"\0\0\xd4\xd7\x51\x07/stream\x50\x09localhost\x54\x0210") + encode_frame(0, b"abc"), "client sent"),
    "more body than it said": (encode_frame(1, b"\0\0\xd4\xd7\x51\x07/stream\x50\x09localhost\x54\x0210") + encode_frame(0, b"a" * 11), "client sent"),
    "trailers with a pseudo-header": (POST + encode_frame(0, b"abc") + encode_frame(1, b"\0\0\xd1"), "client sent"),
    "no frame": (b"", "client sent a stream that ends without a message"),
    "a head without a method": (encode_frame(1, b"\0\0\xd7\xc1\x50\x09localhost"), "client sent"),
}


async def each_fault_is_one_line(place):
    async def lines(act):
        before = len(place.edge.text("error.log"))
        await act()
        await place.edge.settled()
        new = place.edge.text("error.log")[before:].splitlines()
        return [line for line in new if "HTTP/3 connection" in line]
    wrong = {}
    for name, (act, words) in FAULTS.items():
        async def play():
            async with opened(place.main, kind=RawClient) as client:
                act(client)
                await client.close_code(15)
        said = await lines(play)
        if len(said) != 1 or words not in said[0] or "[info]" not in said[0] or "client: 127.0.0.1" not in said[0]:
            wrong[name] = said
    for name, (data, words) in STREAM_FAULTS.items():
        async def play():
            async with opened(place.main) as client:
                number = client.raw(data, True)
                answer = client.answer(number)
                await client.until(lambda: answer.ended or answer.reset is not None or answer.stopped is not None, name, 10)
                assert (await client.ask()).status == 200
        said = await lines(play)
        if len(said) != 1 or words not in said[0] or "while processing HTTP/3 connection" not in said[0]:
            wrong[name] = said

    async def fine():
        async with opened(place.main) as client:
            await client.ask("POST", "/echo", body=b"abc")
    if said := await lines(fine):
        wrong["no fault"] = said
    assert not wrong, wrong


if __name__ == "__main__":
    run.main(Place, sys.modules[__name__])
