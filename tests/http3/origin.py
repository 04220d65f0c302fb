"""Origins: HTTP/1.1 that does what the path says, WebSocket, and HTTP/2 with trailers."""

import asyncio
import base64
import hashlib
import json

import h2.config
import h2.connection
import h2.events

SIZE = 64 << 10


def content(size):
    """Bytes that show a gap or a repetition."""
    return b"".join(b"%015d\n" % at for at in range(0, size, 16))[:size]


class Origin:
    """What it saw is in `seen`, what it sent of `/endless` in `sent`."""

    def __init__(self):
        self.seen, self.sent, self.ended = [], 0, asyncio.Event()

    async def start(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        try:
            while await self.exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def exchange(self, reader, writer):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except asyncio.IncompleteReadError:
            return False
        line, *lines = head[:-4].split("\r\n")
        method, target, _ = line.split(" ", 2)
        fields = [tuple(each.split(": ", 1)) if ": " in each else (each.rstrip(":"), "") for each in lines]
        names = {name.lower(): value for name, value in fields}
        if names.get("upgrade", "").lower() == "websocket":
            await self.websocket(reader, writer, names)
            return False
        body = await self.body(reader, names)
        self.seen.append((method, target, fields, len(body), hashlib.sha256(body).hexdigest()))
        path = target.split("?")[0]
        word, _, rest = path.strip("/").partition("/")
        act = getattr(self, f"on_{word}", self.on_echo)
        await act(method, target, fields, body, rest, writer)
        await writer.drain()
        return True

    async def body(self, reader, names):
        if "content-length" in names:
            return await reader.readexactly(int(names["content-length"]))
        body = b""
        if names.get("transfer-encoding") == "chunked":
            while size := int(await reader.readline(), 16):
                body += await reader.readexactly(size)
                await reader.readline()
            await reader.readline()
        return body

    def answer(self, writer, method, body, fields=(), status="200 OK"):
        lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in fields)]
        if not status.startswith(("204", "304")):
            lines.append(f"Content-Length: {len(body)}")
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + (b"" if method == "HEAD" or status.startswith(("204", "304")) else body))

    async def on_echo(self, method, target, fields, body, rest, writer):
        said = {"method": method, "target": target, "length": len(body), "sha": hashlib.sha256(body).hexdigest(),
                "fields": sorted([name.lower(), value] for name, value in fields)}
        self.answer(writer, method, json.dumps(said).encode(), [("Content-Type", "application/json")])

    async def on_size(self, method, target, fields, body, rest, writer):
        self.answer(writer, method, content(int(rest)), [("Content-Type", "text/plain"), ("ETag", '"size"'), ("Cache-Control", "max-age=60")])

    async def on_status(self, method, target, fields, body, rest, writer):
        self.answer(writer, method, b"status " + rest.encode(), [("X-Origin", "yes"), ("Content-Type", "text/plain")], f"{rest} Some Reason")

    async def on_chunked(self, method, target, fields, body, rest, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\nContent-Type: text/html\r\n\r\n")
        if method != "HEAD":
            piece = content(int(rest))
            writer.write(b"%x\r\n%s\r\n0\r\nX-Sum: 7\r\n\r\n" % (len(piece), piece) if piece else b"0\r\nX-Sum: 7\r\n\r\n")

    async def on_early(self, method, target, fields, body, rest, writer):
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.05)
        self.answer(writer, method, b"late")

    async def on_broken(self, method, target, fields, body, rest, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort")
        raise ConnectionError

    async def on_endless(self, method, target, fields, body, rest, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        piece = content(SIZE)
        self.sent, self.ended = 0, asyncio.Event()
        try:
            while True:
                writer.write(piece)
                await writer.drain()
                self.sent += len(piece)
        finally:
            self.ended.set()

    async def websocket(self, reader, writer, names):
        """Echoes messages (RFC 6455), and answers a close."""
        key = names["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        chosen = f"Sec-WebSocket-Protocol: {names['sec-websocket-protocol']}\r\n" if "sec-websocket-protocol" in names else ""
        writer.write(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n{chosen}\r\n".encode())
        while True:
            first, second = await reader.readexactly(2)
            size = second & 127
            if size == 126:
                size = int.from_bytes(await reader.readexactly(2), "big")
            elif size == 127:
                size = int.from_bytes(await reader.readexactly(8), "big")
            mask = await reader.readexactly(4)
            data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(await reader.readexactly(size)))
            if first & 15 == 1 and data == b"close":
                first, data = 0x88, (1001).to_bytes(2, "big")
            writer.write(frame(first, data, None))
            await writer.drain()
            if first & 15 == 8:
                return


def frame(first, data, mask):
    """A frame of WebSocket."""
    flag = 0x80 if mask else 0
    length = bytes([flag | len(data)]) if len(data) < 126 else bytes([flag | 126]) + len(data).to_bytes(2, "big")
    if mask:
        data = mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
    return bytes([first]) + length + data


class Http2Origin:
    """gRPC's form: an answer with trailers."""

    async def start(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        side = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        side.initiate_connection()
        writer.write(side.data_to_send())
        while data := await reader.read(SIZE):
            for event in side.receive_data(data):
                if isinstance(event, h2.events.StreamEnded):
                    side.send_headers(event.stream_id, [(":status", "200"), ("content-type", "application/grpc")])
                    side.send_data(event.stream_id, b"\0\0\0\0\2hi")
                    side.send_headers(event.stream_id, [("grpc-status", "0"), ("grpc-message", "fine")], end_stream=True)
                elif isinstance(event, h2.events.DataReceived):
                    side.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            writer.write(side.data_to_send())
            await writer.drain()
        writer.close()
