"""A client of HTTP/3 with aioquic, qh3 or picoquic: a line for each case, `NAME ok`, or `NAME failed` or `NAME cannot` with the reason.

    kin.py PACKAGE PORT BODY SHA      BODY is the file to send, SHA the hash of /big.txt
"""

import asyncio
import hashlib
import importlib
import json
import ssl
import sys
from pathlib import Path

PACKAGE, PORT, BODY, BIG = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]).read_bytes(), sys.argv[4]
# The packages have the interface of aioquic's: `client.py` gets them in its place. picoquic's has no HTTP/3.
ALIKE = {
    "aioquic": [],
    "qh3": ["asyncio.client", "asyncio.protocol", "quic.configuration", "quic.connection", "quic.events", "h3.connection", "h3.events"],
    "aiopquic": ["asyncio.client", "asyncio.protocol", "quic.events"],
}
for name in ALIKE[PACKAGE]:
    sys.modules[f"aioquic.{name}"] = importlib.import_module(f"{PACKAGE}.{name}")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from aioquic.asyncio.client import connect
from client import Client, settings
from origin import frame


class Cannot(Exception):
    """The client has no such feature."""


class Picoquic(Client):
    """A client whose packets picoquic's own thread sends."""
    def transmit(self):
        pass

    def quic_event_received(self, event):
        if hasattr(event, "data"):
            event.data = bytes(event.data)
        super().quic_event_received(event)


def opened(configuration=None, waits=True, **named):
    if PACKAGE == "aiopquic":
        make = importlib.import_module("aiopquic.quic.configuration").QuicConfiguration
        configuration = make(alpn_protocols=["h3"], verify_mode=ssl.CERT_NONE, server_name="localhost", stream_ring_cap=16 << 20, **named)
        return connect("127.0.0.1", PORT, configuration=configuration, create_protocol=Picoquic, wait_connected=waits)
    return connect("127.0.0.1", PORT, configuration=configuration or settings(), create_protocol=Client, wait_connected=waits, **named)


async def whole(client, name):
    answer = await client.ask(path=f"/big.txt?{PACKAGE}-{name}")
    assert answer.status == 200 and hashlib.sha256(answer.body).hexdigest() == BIG, (answer.status, len(answer.body))


async def get():
    async with opened() as client:
        await whole(client, "get")


async def post():
    async with opened() as client:
        answer = await client.ask("POST", f"/echo?{PACKAGE}-post", body=BODY)
        assert json.loads(answer.body)["sha"] == hashlib.sha256(BODY).hexdigest(), answer.status


async def websocket():
    async with opened() as client:
        await client.until(lambda: client.http.received_settings, "SETTINGS")
        number = client.begin("CONNECT", f"/ws?{PACKAGE}-websocket", [("sec-websocket-version", "13")], ends=False, more=[(":protocol", "websocket")])
        answer = client.answer(number)
        await client.until(lambda: answer.status, "the answer to CONNECT")
        assert answer.status == 200, answer
        client.send(number, frame(0x82, b"x" * 60000, b"mask"))
        expected = frame(0x82, b"x" * 60000, None)
        await client.until(lambda: len(answer.body) >= len(expected), "the echo")
        assert bytes(answer.body) == expected


async def early():
    tickets = []
    if PACKAGE == "aiopquic":
        # It writes the tickets of a connection when that ends. It does not tell that the server took early data: weir does, in most turns.
        kept = {"session_ticket_file": str(Path(sys.argv[3]).with_name("tickets"))}
        async with opened(**kept) as client:
            await client.ask(path=f"/vars?{PACKAGE}-first")
            await asyncio.sleep(0.3)
        for _ in range(20):
            async with opened(waits=False, **kept) as client:
                answer = await client.ask(path=f"/vars?{PACKAGE}-early")
                assert answer.status == 200, answer
                await asyncio.sleep(0.3)
            if bytes(answer.body) == b"h3 1":
                return
        raise AssertionError(f"no early data: {answer}")
    async with opened(session_ticket_handler=tickets.append) as client:
        await client.ask(path=f"/vars?{PACKAGE}-first")
        await client.until(lambda: tickets, "a ticket")
    async with opened(settings(session_ticket=tickets[0]), waits=False) as client:
        answer = await client.ask(path=f"/vars?{PACKAGE}-early")
        assert answer.status == 200 and client.quic.tls.early_data_accepted, answer


async def move():
    """Goes on from another port, as after a new binding of a NAT; aioquic probes it by itself."""
    if PACKAGE == "aiopquic":
        raise Cannot("picoquic's thread has the socket")
    async with opened() as client:
        await whole(client, "move")
        old, loop = client._transport, asyncio.get_running_loop()
        await loop.create_datagram_endpoint(lambda: client, local_addr=("::", 0))
        old.abort() if PACKAGE == "aioquic" else None
        await whole(client, "move")
        await whole(client, "move")


async def main():
    for case in (get, post, websocket, early, move):
        try:
            await asyncio.wait_for(case(), 90)
            print(case.__name__, "ok", flush=True)
        except Cannot as why:
            print(case.__name__, "cannot", why, flush=True)
        except Exception as error:
            print(case.__name__, "failed", repr(error)[:300].replace("\n", " "), flush=True)


asyncio.run(main())
