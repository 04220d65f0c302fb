"""Clients of HTTP/2, by the package h2: several streams at a time, one request on each connection, and calls of gRPC that stay."""

import asyncio
import contextlib
import socket

import answers
import h2.connection
import h2.events
import h2.exceptions
from h2.config import H2Configuration
from h2.connection import ConnectionState
from http1 import Client
from live import Ended, Live

REFUSED_STREAM = 7


class Unprocessed(Exception):
    """The edge says that it has not processed the request, so RFC 9113 §8.7 lets the client send it again."""


class Lost(Exception):
    """The stream, or its connection, ended before its answer."""


class Patient(h2.connection.H2Connection):
    """The package takes GOAWAY for the end of the connection; the streams that the edge has taken go on until their end."""

    def _receive_goaway_frame(self, frame):
        events = super()._receive_goaway_frame(frame)
        self.state_machine.state = ConnectionState.CLIENT_OPEN
        return events


class Connection:
    """A connection with its streams. It has the socket itself: asyncio's streams drop bytes that have come once a write fails, and GOAWAY with
    them."""

    def __init__(self, wire, heads):
        self.wire, self.heads, self.is_open = wire, heads, True
        self.h2 = Patient(H2Configuration(client_side=True, header_encoding="utf-8"))
        self.streams = {}
        self.h2.initiate_connection()
        self.h2.increment_flow_control_window(1 << 24)
        self.flush()
        self.task = asyncio.create_task(self.read())

    @classmethod
    async def connect(cls, edge):
        wire = socket.socket()
        wire.setblocking(False)
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await asyncio.get_running_loop().sock_connect(wire, ("127.0.0.1", edge.port))
        except OSError:
            wire.close()
            raise
        return cls(wire, edge.heads)

    def flush(self):
        """Sends the frames that wait. They are small: the kernel has room for them."""
        # If the connection has ended, the bytes that came before say why. Its task closes the socket.
        with contextlib.suppress(OSError):
            self.wire.sendall(self.h2.data_to_send())

    def begin(self, method, path, answer, *fields):
        """Opens a stream; a GET ends with its head."""
        number = self.h2.get_next_available_stream_id()
        self.h2.send_headers(number, [(":method", method), (":scheme", "http"), (":authority", "lasting"), (":path", path), *fields], end_stream=method == "GET")
        self.flush()
        self.streams[number] = answer
        return number

    async def ask(self, path):
        """One exchange: the status and the body."""
        answer = Answer()
        number = self.begin("GET", path, answer)
        try:
            return await answer.done
        finally:
            self.streams.pop(number, None)

    async def read(self):
        """Hands what comes to the streams, until the connection ends."""
        why = "the connection ended"
        try:
            while data := await asyncio.get_running_loop().sock_recv(self.wire, 65536):
                for event in self.h2.receive_data(data):
                    self.take(event)
                self.flush()
        except (ConnectionError, h2.exceptions.ProtocolError) as error:
            why = f"{type(error).__name__} {error}"
        finally:
            self.is_open = False
            self.wire.close()
        for answer in list(self.streams.values()):
            answer.fail(Lost(why))

    def take(self, event):
        answer = self.streams.get(getattr(event, "stream_id", None))
        match event:
            case h2.events.ConnectionTerminated():
                self.goes_away(event)
            case h2.events.ResponseReceived():
                status = int(dict(event.headers)[":status"])
                self.heads[status] += 1
                if answer:
                    answer.status = status
            case h2.events.DataReceived():
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                if answer:
                    answer.add(event.data)
            case h2.events.StreamEnded() if answer:
                answer.end()
            case h2.events.StreamReset() if answer:
                answer.fail(Unprocessed() if event.error_code == REFUSED_STREAM else Lost(f"reset with error {event.error_code}"))

    def goes_away(self, event):
        self.is_open = False
        for number, answer in list(self.streams.items()):
            if number > event.last_stream_id:
                answer.fail(Unprocessed())

    def close(self):
        with contextlib.suppress(h2.exceptions.ProtocolError):
            self.h2.close_connection()
            self.flush()
        self.task.cancel()


class Answer:
    """The answer to a stream, as far as it has come."""

    def __init__(self):
        self.status, self.pieces, self.done = None, [], asyncio.get_running_loop().create_future()

    def add(self, data):
        self.pieces.append(data)

    def end(self):
        if not self.done.done():
            self.done.set_result((self.status, b"".join(self.pieces)))

    def fail(self, error):
        if not self.done.done():
            self.done.set_exception(error)


class Http2(Client):
    """A client that has three streams under way on one connection."""

    at_once, pause = 3, 0.01

    def __init__(self, load, kind):
        super().__init__(load, kind)
        self.connection, self.connecting = None, asyncio.Lock()

    async def connect(self):
        return await Connection.connect(self.load.edge)

    async def turn(self):
        faults = await asyncio.gather(*[self.one() for _ in range(self.at_once)])
        if not any(faults):
            self.served()
        for fault in filter(None, faults):
            self.load.lose(self.load.tally.lost, self.kind, fault)
        await asyncio.sleep(self.pause)

    async def one(self):
        """One request: why it is lost, or `None`."""
        path = f"/work/{self.load.next()}"
        self.load.tally.requests += 1
        try:
            async with asyncio.timeout(self.load.patience):
                return await self.exchange(path)
        except TimeoutError:
            return f"no whole answer in {self.load.patience} s to {path}"

    async def exchange(self, path):
        while True:
            try:
                async with self.connecting:
                    if self.connection is None or not self.connection.is_open:
                        self.connection = await self.connect()
                status, body = await self.connection.ask(path)
                break
            except Unprocessed:
                self.load.tally.reopened += 1
            except Lost as error:
                if "closed" in self.load.allows and not await self.load.has_seen(path):
                    self.load.tally.refused["closed"] += 1
                    return None
                return f"{error}, with {path} under way"
            except OSError as error:
                return f"no connection: {error}"
        if status != 200:
            return f"status {status} to {path}"
        return None if body == answers.answer(path) else f"another body to {path}: {body[:60]}"

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None


class Fresh2(Http2):
    """A client that opens a connection for each request, and that does not ask again if the edge has not processed it: curl's way."""

    at_once = 1

    async def exchange(self, path):
        try:
            connection = await Connection.connect(self.load.edge)
        except OSError as error:
            return f"no connection: {error}"
        try:
            status, body = await connection.ask(path)
        except (Unprocessed, Lost) as error:
            return f"{type(error).__name__} {error}, with {path} under way"
        finally:
            connection.close()
        return None if (status, body) == (200, answers.answer(path)) else f"status {status} or another body to {path}"


class Messages(Answer):
    """The messages of a call that have come."""

    def __init__(self):
        super().__init__()
        self.came = asyncio.Queue()

    def add(self, data):
        self.came.put_nowait(data)


class Call(Live):
    """A call of gRPC that stays: numbered messages come back."""

    def account(self):
        return self.load.tally.calls

    async def connect(self):
        connection = await Connection.connect(self.load.edge)
        messages = Messages()
        number = connection.begin("POST", "/grpc/echo", messages, ("content-type", "application/grpc"), ("te", "trailers"))
        return (number, messages), connection

    async def echo(self, text):
        (number, messages), connection = self.wire
        message = b"\0" + len(text).to_bytes(4, "big") + text
        try:
            connection.h2.send_data(number, message)
        except h2.exceptions.ProtocolError as error:
            # The stream has been reset, and the client has not heard why before.
            raise Ended(f"{error}") from error
        connection.flush()
        came = b""
        while len(came) < len(message):
            piece = asyncio.create_task(messages.came.get())
            await asyncio.wait((piece, messages.done), return_when=asyncio.FIRST_COMPLETED)
            if not piece.done():
                piece.cancel()
                raise Ended(f"{messages.done.exception() or messages.done.result()}")
            came += piece.result()
        if came != message:
            raise Ended(f"{came} came back")
        self.load.tally.messages += 1
