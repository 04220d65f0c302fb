"""Strict clients for HTTP/1.1 and HTTP/2: they say what arrived, and whether the answer is complete."""

import asyncio
import contextlib
import struct

import hpack

# The longest wait for anything: a case that takes longer fails.
PATIENCE = 20


class Outcome:
    """What a client has of an answer."""

    def __init__(self, seen):
        self.status, self.fields, self.body = None, {}, b""
        self.ending, self.seen = "whole", seen

    def begins(self, status, fields):
        """The head is here."""
        self.status, self.fields = status, fields
        if self.seen:
            self.seen.set()

    def text(self, path, body):
        """The outcome in a word or three: the status, how the answer ended, and whose it is."""
        if self.status is None:
            return self.ending
        words = [str(self.status)]
        for own in (b"clean", b"second"):
            if self.body == own + b" " + path.encode():
                words.append(own.decode())
        if self.ending != "whole":
            words.append(self.ending)
        if self.status == 200 and len(words) == 1 and body is not None and self.body != body:
            words.append("another body")
        if self.status == 200 and self.ending == "cut" and body is not None and not body.startswith(self.body):
            words.append("no part of the body")
        return " ".join(words)


class Cut(Exception):
    """The answer ended before its end."""


class Http1:
    """A connection of a client over HTTP/1.1."""

    def __init__(self, reader, writer):
        self.reader, self.writer, self.is_open = reader, writer, True

    @classmethod
    async def connect(cls, port):
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 20))

    async def ask(self, method, path, upload=0, fields=(), seen=None):
        outcome = Outcome(seen)
        sending = None
        head = f"{method} {path} HTTP/1.1\r\nHost: faults\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields)
        if upload or method == "POST":
            head += f"Content-Length: {upload}\r\n"
        try:
            self.writer.write(head.encode() + b"\r\n")
            if upload:
                sending = asyncio.create_task(self.upload(upload))
            async with asyncio.timeout(PATIENCE):
                await self.read(method, outcome)
        except TimeoutError:
            outcome.ending, self.is_open = "hangs", False
        except (Cut, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            outcome.ending = "closed" if outcome.status is None else "cut"
            self.is_open = False
        except (ValueError, IndexError):
            outcome.ending, self.is_open = "no HTTP", False
        finally:
            if sending:
                # An upload that the server refuses stays behind.
                self.is_open &= sending.done()
                sending.cancel()
        return outcome

    async def upload(self, count):
        with contextlib.suppress(ConnectionError):
            for at in range(0, count, 65536):
                self.writer.write(b"u" * min(65536, count - at))
                await self.writer.drain()

    async def read(self, method, outcome):
        while True:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, *lines = head[:-4].split("\r\n")
            status = int(line.split(" ")[1])
            fields = {}
            for field in lines:
                name, _, value = field.partition(":")
                fields.setdefault(name.lower(), value.strip())
            if not 100 <= status < 200 or status == 101:
                break
        outcome.begins(status, fields)
        if fields.get("connection") == "close":
            self.is_open = False
        if method == "HEAD" or status in (101, 204, 304):
            return
        if "transfer-encoding" in fields:
            await self.chunks(outcome)
        elif "content-length" in fields:
            await self.exactly(int(fields["content-length"]), outcome)
        else:
            self.is_open = False
            while some := await self.reader.read(65536):
                outcome.body += some

    async def chunks(self, outcome):
        while size := int((await self.reader.readuntil(b"\r\n"))[:-2], 16):
            await self.exactly(size, outcome)
            if await self.reader.readexactly(2) != b"\r\n":
                raise Cut
        while await self.reader.readuntil(b"\r\n") != b"\r\n":
            pass

    async def exactly(self, count, outcome):
        while count:
            some = await self.reader.read(min(count, 65536))
            if not some:
                raise Cut
            outcome.body, count = outcome.body + some, count - len(some)

    def close(self):
        self.writer.close()


def frame(kind, flags, stream, payload=b""):
    """A frame of HTTP/2."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


class Http2:
    """A connection of a client over HTTP/2."""

    def __init__(self, reader, writer):
        self.reader, self.writer, self.is_open, self.stream = reader, writer, True, -1
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
        self.decoder.max_header_list_size = 1 << 20
        self.window, self.initial, self.room = 65535, 65535, asyncio.Event()

    @classmethod
    async def connect(cls, port):
        client = cls(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 20))
        settings = struct.pack(">HI", 4, 1 << 30)
        client.writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, settings))
        client.writer.write(frame(8, 0, 0, struct.pack(">I", 1 << 30)))
        return client

    async def ask(self, method, path, upload=0, fields=(), seen=None):
        outcome, self.stream, sending = Outcome(seen), self.stream + 2, None
        head = [(":method", method), (":scheme", "http"), (":authority", "faults"), (":path", path), *fields]
        if upload or method == "POST":
            head.append(("content-length", str(upload)))
        self.writer.write(frame(1, 4 if upload else 5, self.stream, self.encoder.encode(head)))
        self.left = self.initial
        try:
            if upload:
                sending = asyncio.create_task(self.upload(upload, self.stream))
            async with asyncio.timeout(PATIENCE):
                await self.read(method, outcome)
        except TimeoutError:
            outcome.ending, self.is_open = "hangs", False
        except Cut:
            outcome.ending = "closed" if outcome.status is None else "cut"
        except (ConnectionError, asyncio.IncompleteReadError):
            outcome.ending, self.is_open = "closed" if outcome.status is None else "cut", False
        finally:
            if sending:
                sending.cancel()
        return outcome

    async def upload(self, count, stream):
        with contextlib.suppress(ConnectionError):
            while count:
                size = min(count, 16384, self.window, self.left)
                if size <= 0:
                    self.room.clear()
                    await self.room.wait()
                    continue
                count, self.window, self.left = count - size, self.window - size, self.left - size
                self.writer.write(frame(0, 0 if count else 1, stream, b"u" * size))
                await self.writer.drain()

    async def next(self):
        head = await self.reader.readexactly(9)
        length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        return kind, flags, int.from_bytes(head[5:], "big") & 0x7FFFFFFF, await self.reader.readexactly(length)

    async def read(self, method, outcome):
        block = b""
        while True:
            kind, flags, stream, payload = await self.next()
            if kind == 4 and not flags & 1:
                for name, value in struct.iter_unpack(">HI", payload):
                    if name == 4:
                        self.left, self.initial = self.left + value - self.initial, value
                self.writer.write(frame(4, 1, 0))
                self.room.set()
            elif kind == 6 and not flags & 1:
                self.writer.write(frame(6, 1, 0, payload))
            elif kind == 8:
                more = int.from_bytes(payload, "big")
                if stream == 0:
                    self.window += more
                elif stream == self.stream:
                    self.left += more
                self.room.set()
            elif kind == 7:
                self.is_open = False
            elif stream != self.stream:
                continue
            elif kind == 3:
                # An upload that the server needs no longer: the answer was complete.
                raise Cut
            elif kind == 0:
                body = payload[1:len(payload) - payload[0]] if flags & 8 else payload
                outcome.body += body
                if flags & 1:
                    break
            elif kind in (1, 9):
                block += payload
                if not flags & 4:
                    continue
                fields = [(bytes(n).decode(), bytes(v).decode("latin-1")) for n, v in self.decoder.decode(block, raw=True)]
                block = b""
                if outcome.status is None and not 100 <= int(dict(fields)[":status"]) < 200:
                    outcome.begins(int(dict(fields)[":status"]), dict(fields))
                if kind == 1:
                    ends = flags & 1
                if ends and outcome.status is not None:
                    break
        length = outcome.fields.get("content-length")
        if length is not None and method != "HEAD" and outcome.status != 304 and int(length) != len(outcome.body):
            raise Cut

    def close(self):
        self.writer.close()
