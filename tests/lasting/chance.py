"""What happens to an edge at random, by a seed: each act ends when all clients are served again."""

import asyncio
import collections
import contextlib
import random

import clock
import processes
import room
from http1 import Connection, Unanswered, head
from processes import within

# Requests that are no request, and the status that each gets.
MALFORMED = [(b"GET / HTTP/1.1\r\n\r\n", 400), (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400), (b"nonsense\r\n\r\n", 400),
             (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
             (b"GET / HTTP/9.0\r\nHost: a\r\n\r\n", 505), (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n", 414)]
# Errors of rotated logs that are kept.
ERRORS_MAX = 200


class Chance:
    """The acts, and what they add to the account."""

    def __init__(self, stage, seed):
        self.stage, self.random = stage, random.Random(seed)
        # Requests that clients left before a byte of the answer; log files that are rotated, and the lines in them.
        self.left = self.rotated = self.lines = 0
        # The last errors of logs that are gone.
        self.errors = collections.deque(maxlen=ERRORS_MAX)
        self.acts = [self.reload, self.reloads, self.refused_reload, self.rotate, self.stop, self.disk_full, self.jump, self.silent_dns, self.origin_ends,
                     self.origin_stops, self.clients_leave, self.malformed, self.half_a_head, self.crowd]

    def next(self):
        """The next act: its name, and its course."""
        act = self.random.choice(self.acts)
        return act.__name__, act

    @property
    def edge(self):
        return self.stage.edge

    @property
    def load(self):
        return self.stage.load

    async def reload(self):
        await self.edge.reload()

    async def reloads(self):
        for _ in range(self.random.randint(2, 8)):
            await self.edge.reload()

    async def refused_reload(self):
        """A file that is refused changes nothing."""
        file, before = self.edge.room / "nginx.conf", len(self.edge.log())
        text = file.read_text()
        file.write_text(text.replace("keepalive 32;", "keepalive many;"))
        processes.send(self.edge.master, "HUP")
        try:
            await within("the file is refused", 10, lambda: "[emerg]" in self.edge.log()[before:])
        finally:
            file.write_text(text)

    async def rotate(self):
        """The log gets another name, and its lines are counted."""
        log = self.edge.room / "access.log"
        old = log.rename(log.with_suffix(".old"))
        processes.send(self.edge.master, "USR1")
        await within("the log has its file again", 10, log.exists)
        # A worker writes into the old file until it has the order.
        await asyncio.sleep(1)
        self.count_lines(old)
        self.errors.extend(self.edge.errors())
        (self.edge.room / "error.log").write_text("")

    def count_lines(self, log):
        with log.open("rb") as text:
            self.lines += sum(1 for _ in text)
        log.unlink()
        self.rotated += 1

    async def stop(self):
        victims = self.edge.serving()
        for pid in victims:
            processes.send(pid, "STOP")
        await asyncio.sleep(self.random.uniform(0.1, 3))
        for pid in victims:
            processes.send(pid, "CONT")

    async def disk_full(self):
        """Bodies need files that do not fit."""
        file = self.edge.inside(self.edge.small / "fill")
        with self.forgiving():
            for _ in range(self.random.randint(5, 30)):
                room.fill(file)
                await asyncio.sleep(0.1)
            file.unlink()
            await self.load.all_served()

    async def jump(self):
        clock.set_clock(self.stage, self.random.choice([-1, 1]) * self.random.randint(10, clock.HOUR))
        await asyncio.sleep(self.random.uniform(0.5, 5))
        clock.set_clock(self.stage, 0)

    async def silent_dns(self):
        """The group keeps its addresses."""
        self.stage.signal("dns", "STOP")
        await asyncio.sleep(self.random.uniform(1, 6))
        self.stage.signal("dns", "CONT")

    async def origin_ends(self):
        """The origin is killed with its exchanges, and another one takes its ports after a moment."""
        with self.forgiving():
            self.stage.signal("origin", "KILL")
            await self.stage.peers["origin"].wait()
            await asyncio.sleep(self.random.uniform(0, 2))
            await self.stage.start_origin()
            await self.load.all_served()

    async def origin_stops(self):
        self.stage.signal("origin", "STOP")
        await asyncio.sleep(self.random.uniform(0.1, 3))
        self.stage.signal("origin", "CONT")

    async def clients_leave(self):
        """Clients that leave while the origin works."""
        await asyncio.gather(*[self.leaves() for _ in range(self.random.randint(1, 30))])

    async def leaves(self):
        path = f"/slow/{self.load.next()}"
        _, writer = await asyncio.open_connection("127.0.0.1", self.edge.port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: lasting\r\n\r\n".encode())
        async with asyncio.timeout(10):
            while not await self.load.has_seen(path):
                await asyncio.sleep(0.02)
        writer.close()
        self.left += 1

    async def malformed(self):
        for text, wanted in self.random.choices(MALFORMED, k=10):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.edge.port)
            writer.write(text)
            status, _ = head(await reader.readuntil(b"\r\n\r\n"))
            self.edge.heads[status] += 1
            writer.close()
            assert status == wanted, f"status {status} to {text[:60]}"

    async def half_a_head(self):
        """Clients that leave before their request is whole."""
        for text in self.random.choices([b"G", b"GET / HT", b"GET / HTTP/1.1\r\nHost: a\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0"], k=20):
            _, writer = await asyncio.open_connection("127.0.0.1", self.edge.port)
            writer.write(text)
            await writer.drain()
            await asyncio.sleep(self.random.uniform(0, 0.05))
            writer.close()
            # The beginning of HTTP/2 is no request.
            self.left += not text.startswith(b"PRI")

    async def crowd(self):
        """Many more clients for some seconds."""
        more = self.load.add("fresh", self.random.randint(5, 30)) + self.load.add("http2", self.random.randint(1, 5))
        await asyncio.sleep(self.random.uniform(1, 4))
        for client in more:
            client.is_over = True
        await within("the crowd ends", 60, lambda: all(client.has_ended for client in more))
        self.load.forget(more)

    @contextlib.contextmanager
    def forgiving(self):
        """An answer of 500 or more, and an end, are no loss meanwhile."""
        self.load.forgives = True
        try:
            yield
        finally:
            self.load.forgives = False
