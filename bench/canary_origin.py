"""An origin whose answers take the time that a request asks for, and that does harm to the requests of a new configuration.

    python3 bench/canary_origin.py ADDRESS PORT LEAKING_PORT

A request has its client (`sid`), its delay in milliseconds (`d`) and a number from 0 to 1 (`u`) as arguments: it fails if `u` is small. So the request decides
what it meets, and not its configuration. The field `X-Harm` of a new configuration changes this. The second port is the same origin with a leak:
each answer takes longer than the one before, and after some answers the port is closed for ever.

A WebSocket gets each short message back, with the value of the field `X-Lane` that opened it. One thread with timers: a delay costs no CPU.
"""

import asyncio
import sys

# A request fails with this probability.
FAILING = 0.001
# Of the requests that `cut` and `stuck` mean.
CUT, STUCK = 0.02, 0.02
# What a leak adds to each answer, and after how many the port dies.
LEAK_MS, LEAK_ANSWERS = 0.05, 2_000
BODY_BYTES = 400


class Leak:
    """The state of the origin that leaks."""

    def __init__(self):
        self.answers, self.connections, self.server = 0, set(), None

    def more(self):
        """The milliseconds that the next answer takes longer; `None` if the origin has died."""
        self.answers += 1
        if self.answers == LEAK_ANSWERS:
            self.server.close()
            for transport in list(self.connections):
                transport.abort()
        return None if self.answers >= LEAK_ANSWERS else LEAK_MS * self.answers


def field(head, name):
    """The value of a field; empty if it is not there."""
    at = head.find(name)
    return head[at + len(name):head.index(b"\r\n", at)] if at >= 0 else b""


def framed(text):
    """A frame of a WebSocket with a short text."""
    return bytes((0x81, len(text))) + text


class Served(asyncio.Protocol):
    """A connection of the edge; it has one request at a time."""

    def __init__(self, leak=None):
        # `echo` is the configuration by which a WebSocket was opened.
        self.leak, self.bytes, self.transport, self.echo = leak, b"", None, None

    def connection_made(self, transport):
        self.transport = transport
        if self.leak:
            self.leak.connections.add(transport)

    def connection_lost(self, _):
        if self.leak:
            self.leak.connections.discard(self.transport)

    def data_received(self, data):
        if self.echo is not None:
            self.transport.write(framed(data[6:6 + (data[1] & 127)] + self.echo))
            return
        self.bytes += data
        if not self.bytes.endswith(b"\r\n\r\n"):
            return
        head, self.bytes = self.bytes, b""
        if b"Upgrade: websocket" in head:
            self.echo = field(head, b"X-Lane: ")
            self.transport.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
            return
        target = head.split(b" ", 2)[1]
        asks = dict(pair.split(b"=") for pair in target.partition(b"?")[2].split(b"&"))
        harm, _, size = field(head, b"X-Harm: ").decode().partition(" ")
        delay, chance = float(asks[b"d"]), float(asks[b"u"])
        if harm == "hang" or harm == "stuck" and chance > 1 - STUCK:
            return
        if harm == "slow":
            delay *= float(size)
        if self.leak:
            more = self.leak.more()
            if more is None:
                return
            delay += more
        has_failed = chance < FAILING * (float(size) if harm == "errors" else 1)
        is_cut = harm == "cut" and chance > 1 - CUT
        asyncio.get_running_loop().call_later(delay / 1000, self.answer, asks[b"sid"], has_failed, is_cut)

    def answer(self, client, has_failed, is_cut):
        if self.transport.is_closing():
            return
        body = (b"sid=" + client + b";").ljust(BODY_BYTES, b".")
        status = b"503 Service Unavailable" if has_failed else b"200 OK"
        if is_cut:
            self.transport.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: " + str(BODY_BYTES).encode() + b"\r\n\r\n" + body[:100])
            self.transport.close()
        else:
            self.transport.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: " + str(BODY_BYTES).encode() + b"\r\n\r\n" + body)


async def serve(address, port, leaking):
    loop, leak = asyncio.get_running_loop(), Leak()
    leak.server = await loop.create_server(lambda: Served(leak), address, leaking)
    server = await loop.create_server(Served, address, port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
