"""A client of HTTP/3, with aioquic: whole requests, and streams by the byte."""

import asyncio
import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration

PATIENCE = 60


@dataclass
class Answer:
    """What came on a stream of a request."""
    status: int = 0
    fields: list = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    interim: list = field(default_factory=list)
    trailers: list = field(default_factory=list)
    reset: int = None
    stopped: int = None
    ended: bool = False

    def __getitem__(self, name):
        """The value of a field; several are one list."""
        found = [value for other, value in self.fields if other == name]
        return ", ".join(found) if found else None


class Client(QuicConnectionProtocol):
    wants_http = True

    def __init__(self, *words, **named):
        super().__init__(*words, **named)
        self.http = H3Connection(self._quic) if self.wants_http else None
        if self.http:
            # aioquic compares the length of an answer to HEAD with its body.
            self.http._check_content_length = lambda stream: None
        self.answers, self.changed = {}, asyncio.Event()
        self.closed, self.goaway, self.uni = None, [], bytearray()
        self.tickets, self.tokens = [], []

    @property
    def quic(self):
        return self._quic

    def quic_event_received(self, event):
        if isinstance(event, events.ConnectionTerminated):
            self.closed = (event.error_code, event.reason_phrase, event.frame_type)
        elif isinstance(event, events.StreamReset):
            self.answer(event.stream_id).reset = event.error_code
        elif isinstance(event, events.StopSendingReceived):
            self.answer(event.stream_id).stopped = event.error_code
        if isinstance(event, events.StreamDataReceived) and event.stream_id == 3:
            self.uni += event.data
        if not self.http and isinstance(event, events.StreamDataReceived):
            answer = self.answer(event.stream_id)
            answer.body += event.data
            answer.ended |= event.end_stream
        if self.http and not isinstance(event, events.ConnectionTerminated):
            for news in self.http.handle_event(event):
                if isinstance(news, (HeadersReceived, DataReceived)):
                    self.came(news)
        self.changed.set()

    def answer(self, number):
        return self.answers.setdefault(number, Answer())

    def came(self, news):
        answer = self.answer(news.stream_id)
        if isinstance(news, DataReceived):
            answer.body += news.data
        else:
            fields = [(name.decode(), value.decode("latin-1")) for name, value in news.headers]
            status = dict(fields).get(":status")
            plain = [each for each in fields if not each[0].startswith(":")]
            if status is None:
                answer.trailers = plain
            elif status.startswith("1"):
                answer.interim.append((int(status), plain))
            else:
                answer.status, answer.fields = int(status), plain
        answer.ended |= news.stream_ended

    def goaways(self):
        """The numbers of GOAWAY frames on weir's control stream, which is stream 3."""
        found, rest = [], bytes(self.uni[1:])
        while len(rest) >= 2:
            kind, rest = varint(rest)
            length, rest = varint(rest)
            payload, rest = rest[:length], rest[length:]
            if kind == 7:
                found.append(varint(payload)[0])
        return found

    async def until(self, is_so, what="it", patience=PATIENCE):
        async def wait():
            while not is_so():
                self.changed.clear()
                await self.changed.wait()
        try:
            await asyncio.wait_for(wait(), patience)
        except TimeoutError:
            raise AssertionError(f"not within {patience} s: {what}; closed: {self.closed}") from None

    def begin(self, method="GET", path="/", fields=(), ends=True, authority="localhost", scheme="https", more=()):
        """Sends a head; returns the number of the stream."""
        number = self._quic.get_next_available_stream_id()
        head = [(":method", method), (":scheme", scheme), (":authority", authority), (":path", path), *more, *fields]
        head = [(name.encode(), value.encode("latin-1")) for name, value in head if value is not None]
        self.http.send_headers(number, head, end_stream=ends)
        self.transmit()
        return number

    def send(self, number, data, ends=False):
        self.http.send_data(number, data, end_stream=ends)
        self.transmit()

    def raw(self, data, ends=False, number=None):
        """Sends bytes on a new stream, or on one that is there."""
        if number is None:
            number = self._quic.get_next_available_stream_id()
        self._quic.send_stream_data(number, data, end_stream=ends)
        self.transmit()
        return number

    def raw_uni(self, data, ends=False):
        number = self._quic.get_next_available_stream_id(is_unidirectional=True)
        return self.raw(data, ends, number)

    async def end(self, number, patience=PATIENCE):
        """The answer on a stream, once it has ended or was reset."""
        answer = self.answer(number)
        await self.until(lambda: answer.ended or answer.reset is not None or self.closed, f"the end of stream {number}", patience)
        return answer

    async def ask(self, method="GET", path="/", fields=(), body=None, length=True, **named):
        fields = list(fields)
        if body is not None and length:
            fields.append(("content-length", str(len(body))))
        number = self.begin(method, path, fields, ends=body is None, **named)
        if body is not None:
            self.send(number, body, ends=True)
        answer = await self.end(number)
        assert answer.ended, f"{method} {path}: reset {answer.reset}, closed {self.closed}"
        return answer

    async def close_code(self, patience=PATIENCE):
        """The code with which weir ended the connection."""
        await self.until(lambda: self.closed, "the end of the connection", patience)
        return self.closed[0]


class RawClient(Client):
    """Without HTTP: the test opens every stream."""
    wants_http = False


def varint(data):
    """An integer of QUIC, and the bytes after it."""
    length = 1 << (data[0] >> 6)
    value = int.from_bytes(data[:length], "big") & ((1 << (8 * length - 2)) - 1)
    return value, data[length:]


def settings(server_name="localhost", **named):
    return QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE, server_name=server_name, **named)


@asynccontextmanager
async def opened(port, configuration=None, kind=Client, waits=True, **named):
    tickets, tokens = [], []
    async with connect("127.0.0.1", port, configuration=configuration or settings(**named), create_protocol=kind, wait_connected=waits,
                       session_ticket_handler=tickets.append, token_handler=tokens.append) as client:
        client.tickets, client.tokens = tickets, tokens
        yield client
