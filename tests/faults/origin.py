"""Hostile origins: each case has a listener of its own, which plays the case's fault once and serves well otherwise."""

import asyncio
import contextlib
import inspect
import socket
import ssl
import struct
import subprocess
import tempfile

from play import End, Wire, take_body


class Origin:
    """The origin of one case, in one protocol."""

    def __init__(self, case, protocol):
        self.case, self.protocol = case, protocol
        self.play, self.server, self.port, self.kept = None, None, 0, []
        self.hits = {}

    async def start(self):
        """Listens as the case says."""
        match self.case.at:
            case "listens":
                self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0, limit=1 << 20, **self.secure())
                self.port = self.server.sockets[0].getsockname()[1]
            case "refuses":
                # Bound and not listening: nobody else gets the port.
                bound = socket.socket()
                bound.bind(("127.0.0.1", 0))
                self.kept, self.port = [bound], bound.getsockname()[1]
            case "is full":
                # The queue of connections is full, and the kernel drops each further SYN.
                full = socket.socket()
                full.bind(("127.0.0.1", 0))
                full.listen(0)
                self.port, self.kept = full.getsockname()[1], [full]
                for _ in range(4):
                    client = socket.socket()
                    client.setblocking(False)
                    with contextlib.suppress(BlockingIOError):
                        client.connect(("127.0.0.1", self.port))
                    self.kept.append(client)
                await asyncio.sleep(0.05)

    def secure(self):
        """The certificate of an origin that makes a handshake: the edge does not check it."""
        if not self.case.tls:
            return {}
        with tempfile.TemporaryDirectory() as room:
            words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=faults"]
            subprocess.run([*words, "-keyout", f"{room}/key", "-out", f"{room}/crt"], check=True, capture_output=True)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(f"{room}/crt", f"{room}/key")
        return {"ssl": context}

    async def serve(self, reader, writer):
        wire = Wire(reader, writer)
        with contextlib.suppress(End, ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, ssl.SSLError, TimeoutError):
            if self.case.greets and self.play and not self.play.begun:
                await self.act(wire, None)
            session = self.protocol.Session(wire, self.case)
            while request := await session.request():
                self.hits[request.path] = self.hits.get(request.path, 0) + 1
                if self.play and not self.play.begun and request.path == self.play.path:
                    await self.act(wire, request)
                else:
                    await wire.send(session.good(request, self.case))
                    # A fault shall come on a connection of its own: on a kept one, an edge may ask once more.
                    break
        writer.close()

    async def act(self, wire, request):
        play = self.play
        play.begun = True
        steps = self.case.steps
        if callable(steps):
            steps = steps(*[play.variant, request and request.stream][:len(inspect.signature(steps).parameters)])
        for step in steps:
            if isinstance(step, bytes):
                await wire.send(step)
            else:
                await step(wire, play)

    def close(self):
        if self.server:
            self.server.close()
        for kept in self.kept:
            kept.close()


class Request:
    """A request as far as an origin needs it."""

    def __init__(self, path, stream=0, method="GET"):
        self.path, self.stream, self.method = path, stream, method


class Http1:
    class Session:
        def __init__(self, wire, case):
            self.wire, self.case = wire, case

        async def request(self):
            head = (await self.wire.reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            line, _, fields = head.partition("\r\n")
            length = [field.split(":")[1] for field in fields.split("\r\n") if field.startswith("content-length:")]
            self.wire.body = int(length[0]) if length else 0
            if self.case.reads_body:
                await take_body(self.wire, None)
            method, path, _ = line.split(" ")
            return Request(path, method=method.upper())

        def good(self, request, case):
            body = (case if isinstance(case, str) else "clean") + " " + request.path
            return f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


class FastCgi:
    class Session:
        def __init__(self, wire, case):
            self.wire = wire

        async def request(self):
            params, read = b"", self.wire.reader.readexactly
            while True:
                _, kind, _, length, padding = struct.unpack(">BBHHBx", await read(8))
                content = await read(length)
                await read(padding)
                if kind == 4:
                    params += content
                if kind == 5 and not length:
                    at = params.index(b"REQUEST_URI")
                    return Request(params[at + 11:at + 11 + params[at - 1]].decode())

        def good(self, request, case):
            body = (case if isinstance(case, str) else "clean") + " " + request.path
            return stdout(f"Content-Length: {len(body)}\r\n\r\n{body}".encode()) + END


def record(kind, content, padding=0, version=1, number=1):
    """A record of FastCGI."""
    return struct.pack(">BBHHBx", version, kind, number, len(content), padding) + content + b"\0" * padding


def stdout(content, **more):
    return record(6, content, **more)


END = record(6, b"") + record(3, bytes(8))


class Scgi:
    class Session:
        def __init__(self, wire, case):
            self.wire = wire

        async def request(self):
            size = int((await self.wire.reader.readuntil(b":"))[:-1])
            words = (await self.wire.reader.readexactly(size + 1)).split(b"\0")
            params = dict(zip(words[0::2], words[1::2]))
            await self.wire.reader.readexactly(int(params.get(b"CONTENT_LENGTH") or 0))
            return Request(params[b"REQUEST_URI"].decode())

        def good(self, request, case):
            body = (case if isinstance(case, str) else "clean") + " " + request.path
            return f"Status: 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


class Uwsgi:
    class Session(Scgi.Session):
        async def request(self):
            _, size, _ = struct.unpack("<BHB", await self.wire.reader.readexactly(4))
            data, at, params = await self.wire.reader.readexactly(size), 0, []
            while at < size:
                length = struct.unpack_from("<H", data, at)[0]
                params.append(data[at + 2:at + 2 + length])
                at += 2 + length
            params = dict(zip(params[0::2], params[1::2]))
            await self.wire.reader.readexactly(int(params.get(b"CONTENT_LENGTH") or 0))
            return Request(params[b"REQUEST_URI"].decode())


class Memcached:
    class Session:
        def __init__(self, wire, case):
            self.wire = wire

        async def request(self):
            return Request((await self.wire.reader.readuntil(b"\r\n"))[4:-2].decode())

        def good(self, request, case):
            body = ((case if isinstance(case, str) else "clean") + " " + request.path).encode()
            return b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (request.path.encode(), len(body), body)


async def second(protocol):
    """The second peer: it serves well, and its bodies say that they are its own."""
    async def serve(reader, writer):
        wire = Wire(reader, writer)
        session = protocol.Session(wire, Second)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, End):
            while request := await session.request():
                await wire.send(session.good(request, "second"))
        writer.close()
    return await asyncio.start_server(serve, "127.0.0.1", 0)


class Second:
    reads_body = True
