"""An HTTP/3 server on aioquic that counts what it sees; it prints its port, and at SIGTERM its counts as JSON.

The first argument has the options as JSON, the second and third name certificate and key:

    max_streams  streams that a client may have open at the same time
    refuse       every so many requests are rejected (H3_REQUEST_REJECTED), the repetition too if it is 1
    reset        every so many requests are reset (H3_INTERNAL_ERROR)
    goaway       after so many requests, a connection gets GOAWAY
    cut          after so many requests, a connection is closed (H3_INTERNAL_ERROR)
    retry        each client must prove its address first
    tickets      clients may resume their sessions, with early data
    forget       no early data is accepted
    alpn         the protocols that the server speaks
    break        the rule that the server breaks: "frame", "settings", "stream", "field", "length", "cut body"

A request's query says the length of the answer's body (size) and whether trailers or interim answers come (trailers, interim).
The answer of /id is {"id": 42} in JSON, with a cookie.
"""

import asyncio
import json
import signal
import sys
from collections import Counter
from urllib.parse import parse_qs, urlsplit

from aioquic.asyncio import serve
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.buffer import encode_uint_var
from aioquic.h3.connection import H3Connection, encode_frame
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, HandshakeCompleted, ProtocolNegotiated

OPTIONS = json.loads(sys.argv[1])
SAW = Counter(sessions=0, streams=0, answered=0, refused=0, reset=0, cancelled=0, body_bytes=0, at_once=0, resumed=0, early=0)
ENDS = Counter()
TICKETS = {}
REJECTED, INTERNAL, CANCELLED = 0x10B, 0x102, 0x10C


def every(name):
    return OPTIONS.get(name) and SAW["streams"] % OPTIONS[name] == 0


class Server(QuicConnectionProtocol):
    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, **keywords)
        self.http = None
        self.requests = {}
        self.begun = 0
        self.peers = set()
        if "max_streams" in OPTIONS:
            limit = self._quic._local_max_streams_bidi
            limit.value = limit.sent = OPTIONS["max_streams"]

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            SAW["sessions"] += 1
            self.http = H3Connection(self._quic)
            if OPTIONS.get("break") == "settings":
                self.control(encode_frame(4, b""))
        if isinstance(event, HandshakeCompleted):
            SAW["resumed"] += event.session_resumed
            SAW["early"] += event.early_data_accepted
        if isinstance(event, ConnectionTerminated):
            ENDS[f"{event.error_code:#x}"] += 1
        path = self._quic._network_paths[0].addr if self._quic._network_paths else None
        if path is not None:
            self.peers.add(path)
            SAW["paths"] = max(SAW["paths"], len(self.peers))
        for happened in self.http.handle_event(event) if self.http else []:
            self.happened(happened)

    def control(self, data):
        self._quic.send_stream_data(self.http._local_control_stream_id, data)

    def happened(self, event):
        if isinstance(event, HeadersReceived):
            request = self.requests.setdefault(event.stream_id, {"fields": dict(event.headers), "bytes": 0})
            if not self.began(event.stream_id, request):
                return
        elif isinstance(event, DataReceived):
            request = self.requests.get(event.stream_id)
            if request is None:
                return
            request["bytes"] += len(event.data)
            SAW["body_bytes"] += len(event.data)
        else:
            return
        if event.stream_ended:
            self.answer(event.stream_id, request)

    def began(self, stream, request):
        """Counts a request; whether it gets an answer."""
        SAW["streams"] += 1
        self.begun += 1
        SAW["at_once"] = max(SAW["at_once"], len(self.requests))
        code = REJECTED if every("refuse") else INTERNAL if every("reset") else None
        if code is not None:
            SAW["refused" if code == REJECTED else "reset"] += 1
            self._quic.stop_stream(stream, code)
            self._quic.reset_stream(stream, code)
            del self.requests[stream]
            return False
        if OPTIONS.get("goaway") == self.begun:
            self.control(encode_frame(7, encode_uint_var(stream + 4)))
        if OPTIONS.get("goaway") and self.begun > OPTIONS["goaway"]:
            self._quic.stop_stream(stream, REJECTED)
            self._quic.reset_stream(stream, REJECTED)
            SAW["streams"] -= 1
            del self.requests[stream]
            return False
        if OPTIONS.get("cut") == self.begun:
            self._quic.close(error_code=INTERNAL, reason_phrase="cut")
            return False
        SAW["cookies"] += request["fields"].get(b"cookie") == b"a=1"
        if b"authorization" in request["fields"]:
            SAW["authorization"] = request["fields"][b"authorization"].decode()
        return True

    def answer(self, stream, request):
        del self.requests[stream]
        path = urlsplit(request["fields"][b":path"].decode()).path
        query = {name: values[0] for name, values in parse_qs(urlsplit(request["fields"][b":path"].decode()).query).items()}
        size = int(query.get("size", 0))
        rule = OPTIONS.get("break")
        if rule == "frame":
            self._quic.send_stream_data(stream, encode_frame(0, b"x"), True)
            return
        if rule == "stream":
            self._quic._remote_max_streams_bidi = 1
            self._quic.send_stream_data(self._quic.get_next_available_stream_id(), b"x")
            return
        if "interim" in query:
            self.http.send_headers(stream, [(b":status", b"103"), (b"link", b"</x>")])
        fields = [(b":status", b"200"), (b"x-long", b"v" * 300), (b"content-length", str(size).encode())]
        if path == "/id":
            fields[2:] = [(b"content-type", b"application/json"), (b"set-cookie", b"a=1")]
            self.http.send_headers(stream, fields)
            self.http.send_data(stream, b'{"id": 42}', True)
            SAW["answered"] += 1
            return
        if rule == "field":
            fields.append((b"Upper", b"x"))
        if rule == "length":
            fields[2] = (b"content-length", str(size + 1).encode())
        self.http.send_headers(stream, fields, size == 0 and "trailers" not in query)
        if rule == "cut body":
            self.http.send_data(stream, b"b" * (size // 2), False)
            self._quic.reset_stream(stream, INTERNAL)
            return
        if size:
            self.http.send_data(stream, b"b" * size, "trailers" not in query)
        if "trailers" in query:
            self.http.send_headers(stream, [(b"x-check", b"1")], True)
        SAW["answered"] += 1


async def main():
    configuration = QuicConfiguration(is_client=False, alpn_protocols=OPTIONS.get("alpn", ["h3"]), max_datagram_size=1350)
    configuration.load_cert_chain(sys.argv[2], sys.argv[3])
    keeps = {}
    if OPTIONS.get("tickets"):
        keeps = {
            "session_ticket_handler": lambda ticket: TICKETS.__setitem__(ticket.ticket, ticket),
            "session_ticket_fetcher": lambda label: None if OPTIONS.get("forget") else TICKETS.get(label),
        }
    server = await serve(
        "127.0.0.1", 0, configuration=configuration, create_protocol=Server, retry=bool(OPTIONS.get("retry")), **keeps
    )
    print(server._transport.get_extra_info("sockname")[1], flush=True)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    # The last packets of the clients are read before the counts are printed.
    await asyncio.sleep(0.2)
    print(json.dumps({**SAW, "ends": ENDS}), flush=True)


asyncio.run(main())
