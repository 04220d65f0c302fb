"""A steady load of all kinds of clients at once, and the strict account of what they got.

A loss is a request without its whole right answer, and a WebSocket, a call of gRPC or a session of TCP that ends. RFC 9112 §9.3.1 and §9.5 let a client
ask again, on another connection, if a connection that it had used before ends without a byte of the answer and the method is idempotent.
The clients do so only if the origin has not seen the request: then no exchange was under way, and the request counts as reopened.
"""

import asyncio
import time
from collections import Counter

import http1
import http2
import live

# The clients of each kind.
CLIENTS = {"kept": 8, "fresh": 4, "upload": 1, "cached": 2, "http2": 2, "fresh2": 1, "socket": 4, "call": 2, "session": 3}
KINDS = {"kept": http1.Kept, "fresh": http1.Fresh, "upload": http1.Upload, "cached": http1.Cached, "large": http1.Large,
         "http2": http2.Http2, "fresh2": http2.Fresh2, "call": http2.Call, "socket": live.Socket, "session": live.Session}
# The longest wait for an answer, in seconds.
PATIENCE = 20


class Tally:
    """What the clients got."""

    def __init__(self):
        self.requests = self.reopened = 0
        # Frames of WebSockets, messages of calls and lines of sessions that came back; sessions that were opened.
        self.frames = self.messages = self.lines = self.opened = 0
        # Losses with their reasons; each is the time, the kind of the client, and the reason.
        self.lost, self.sockets, self.calls, self.sessions = [], [], [], []
        # Requests that the edge refused as a whole, where the scenario lets it.
        self.refused = Counter()
        # Losses while the load forgives them.
        self.forgiven = 0


class Load:
    """The clients, from `begin` to `end`.

    `allows` has the refusals that are no loss: "closed" is the end of a connection before a byte of the answer, if the origin has not seen
    the request; "status" is a whole answer with a status of 500 or more. While `forgives` is set, a loss is only counted.
    """

    def __init__(self, edge, origin_port, clients=None, patience=PATIENCE, allows=()):
        self.edge, self.origin_port, self.forgives = edge, origin_port, False
        self.patience, self.allows = patience, allows
        self.tally, self.is_over, self.number, self.begun = Tally(), False, 0, time.monotonic()
        # Connections of QUIC that end.
        self.clients, self.tasks, self.closing = [], [], []
        self.first = CLIENTS if clients is None else clients

    def begin(self):
        for kind, count in self.first.items():
            self.add(kind, count)

    def add(self, kind, count):
        """More clients of a kind."""
        more = [KINDS[kind](self, kind) for _ in range(count)]
        self.clients += more
        self.tasks += [asyncio.create_task(client.run()) for client in more]
        return more

    def forget(self, clients):
        """Clients that have ended take no room any more."""
        self.clients = [client for client in self.clients if client not in clients]
        self.tasks = [task for task in self.tasks if not task.done()]

    def next(self):
        """The number of the next request: no two requests have one path."""
        self.number += 1
        return self.number

    def count(self, kind):
        return sum(client.kind == kind for client in self.clients)

    @property
    def exchanges(self):
        """The exchanges that can be under way at one time."""
        return sum(client.at_once for client in self.clients if client.kind not in ("socket", "call", "session"))

    def lose(self, account, kind, reason):
        if self.forgives:
            self.tally.forgiven += 1
            return
        account.append(f"{time.monotonic() - self.begun:.2f} s, {kind}: {reason}")

    async def has_seen(self, path):
        """Whether the origin has got the request for this path."""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.origin_port)
            writer.write(f"GET /seen{path} HTTP/1.1\r\n\r\n".encode())
            answer = await reader.readuntil(b"\r\n\r\n") + await reader.read(3)
            writer.close()
        except OSError:
            return True
        return answer.endswith(b"yes")

    async def all_served(self, but=()):
        """Waits until each client has got a whole answer to a request that it sent after this call; not for the kinds `but`."""
        await asyncio.gather(*[client.serves_again() for client in self.clients if not client.is_over and client.kind not in but])

    async def run_for(self, seconds):
        """Lets the load go on; each client gets an answer at least."""
        await asyncio.sleep(seconds)
        await self.all_served()

    async def end(self):
        """Lets each client finish its exchange."""
        self.is_over = True
        done, late = await asyncio.wait(self.tasks, timeout=self.patience + 10) if self.tasks else ((), ())
        for task in late:
            task.cancel()
            self.lose(self.tally.lost, "client", "did not end")
        for task in done:
            task.result()
        await asyncio.gather(*self.closing)
