"""Clients of HTTP/3, by the package aioquic: several requests at a time on one connection."""

import asyncio
import ssl
from contextlib import AsyncExitStack

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, ErrorCode, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamReset
from http2 import Answer, Http2, Lost, Unprocessed

# The package does not tell of GOAWAY, which the edge sends after a thousand requests: a client opens another connection before.
REQUESTS_MAX = 500


class Connection(QuicConnectionProtocol):
    """A connection with its requests."""

    heads = None

    def __init__(self, *words, **named):
        super().__init__(*words, **named)
        self.http, self.answers, self.is_open, self.asked = H3Connection(self._quic), {}, True, 0
        self.stack = AsyncExitStack()

    @classmethod
    async def open(cls, edge):
        settings = QuicConfiguration(alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE, server_name="lasting")
        stack = AsyncExitStack()
        connection = await stack.enter_async_context(connect("127.0.0.1", int(edge.places["quic"]), configuration=settings, create_protocol=cls))
        connection.heads, connection.stack = edge.heads, stack
        return connection

    async def ask(self, path):
        """One exchange: the status and the body."""
        answer, number = Answer(), self._quic.get_next_available_stream_id()
        self.answers[number], self.asked = answer, self.asked + 1
        fields = {":method": "GET", ":scheme": "https", ":authority": "lasting", ":path": path}
        self.http.send_headers(number, [(name.encode(), value.encode()) for name, value in fields.items()], end_stream=True)
        self.transmit()
        try:
            return await answer.done
        finally:
            self.answers.pop(number, None)

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated):
            self.is_open = False
            for answer in list(self.answers.values()):
                answer.fail(Lost(f"the connection ended: {event.error_code:#x} {event.reason_phrase}"))
        elif isinstance(event, StreamReset) and event.stream_id in self.answers:
            is_rejected = event.error_code == ErrorCode.H3_REQUEST_REJECTED
            self.is_open &= not is_rejected
            self.answers[event.stream_id].fail(Unprocessed() if is_rejected else Lost(f"reset with error {event.error_code:#x} after {self.asked} requests"))
        for news in self.http.handle_event(event):
            if isinstance(news, (HeadersReceived, DataReceived)):
                self.came(news)

    def came(self, news):
        answer = self.answers.get(news.stream_id)
        if isinstance(news, HeadersReceived):
            status = int(dict(news.headers)[b":status"])
            self.heads[status] += 1
            if answer:
                answer.status = status
        elif answer:
            answer.add(news.data)
        if answer and news.stream_ended:
            answer.end()


class Http3(Http2):
    """A client that has three requests under way on one connection."""

    async def connect(self):
        return await Connection.open(self.load.edge)

    async def turn(self):
        if self.connection and self.connection.asked > REQUESTS_MAX:
            self.close()
        await super().turn()

    def close(self):
        if self.connection:
            # The client may end before the connection has.
            self.load.closing.append(asyncio.create_task(self.connection.stack.aclose()))
            self.connection = None
