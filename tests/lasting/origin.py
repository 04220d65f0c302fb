"""The origin of a scenario, in a process of its own: `origin.py [HTTP TCP GRPC]` prints its ports of HTTP, TCP and gRPC, and ends with its
standard input.

Each answer takes 5 to 20 ms, and two seconds below `/slow/`. `/seen/PATH` says whether a request for this path has come through an edge. `/socket` echoes the frames of a
WebSocket, the port of TCP echoes lines, and the port of gRPC echoes messages.
"""

import asyncio
import base64
import collections
import contextlib
import hashlib
import os
import random
import signal
import sys
import threading

import answers
import h2.connection
import h2.events
import h2.exceptions
from h2.config import H2Configuration

SLOW = 2
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


# The paths that `/seen/` knows, at most: the last ones.
SEEN_MAX = 50_000


class Origin:
    def __init__(self):
        self.seen, self.order = set(), collections.deque()

    def see(self, path):
        self.seen.add(path)
        self.order.append(path)
        if len(self.order) > SEEN_MAX:
            self.seen.discard(self.order.popleft())

    async def serve(self, reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self.exchange(reader, writer):
                pass
        writer.close()

    async def exchange(self, reader, writer):
        """One request and its answer; whether another may follow."""
        line, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")[:-4].split("\r\n")
        path = line.split(" ")[1]
        fields = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in lines)}
        if path.startswith("/seen/"):
            await say(writer, b"yes" if path[len("/seen"):] in self.seen else b"no")
            return True
        self.see(path)
        if path == "/socket":
            await echo_frames(reader, writer, fields)
            return False
        length = int(fields.get("content-length", 0))
        body = await reader.readexactly(length)
        await asyncio.sleep(SLOW if path.startswith("/slow/") else random.uniform(0.005, 0.020))
        await say(writer, answers.receipt(path, body) if length else answers.answer(path))
        return True


async def say(writer, body):
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    await writer.drain()


async def echo_frames(reader, writer, fields):
    accept = base64.b64encode(hashlib.sha1(fields["sec-websocket-key"].encode() + GUID).digest()).decode()
    writer.write(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n".encode())
    while True:
        head = await reader.readexactly(6)
        length, mask = head[1] & 127, head[2:]
        data = await reader.readexactly(length)
        text = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
        writer.write(bytes([head[0], length]) + text)
        await writer.drain()
        if head[0] & 15 == 8:
            return


async def echo_lines(reader, writer):
    with contextlib.suppress(ConnectionError, asyncio.CancelledError):
        while line := await reader.readline():
            writer.write(line)
            await writer.drain()
    writer.close()


async def echo_messages(reader, writer):
    """A server of gRPC: what comes on a stream goes back on it."""
    connection = h2.connection.H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
    connection.initiate_connection()
    writer.write(connection.data_to_send())
    with contextlib.suppress(ConnectionError, asyncio.CancelledError, h2.exceptions.ProtocolError):
        while data := await reader.read(65536):
            for event in connection.receive_data(data):
                match event:
                    case h2.events.RequestReceived():
                        connection.send_headers(event.stream_id, [(":status", "200"), ("content-type", "application/grpc")])
                    case h2.events.DataReceived():
                        connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                        connection.send_data(event.stream_id, event.data)
                    case h2.events.StreamEnded():
                        connection.send_headers(event.stream_id, [("grpc-status", "0")], end_stream=True)
            writer.write(connection.data_to_send())
            await writer.drain()
    writer.close()


async def main():
    # The test ends this process when it ends, however it ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(0)), daemon=True).start()
    ports = [int(word) for word in sys.argv[1:]] or [0, 0, 0]
    servers = [await asyncio.start_server(serve, "127.0.0.1", port, backlog=1000) for serve, port in zip((Origin().serve, echo_lines, echo_messages), ports, strict=True)]
    print(*[server.sockets[0].getsockname()[1] for server in servers], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
