"""Clients of a canary, each with a latency law and a number of requests of its own, and their account of what they got.

Thousands of clients come from one machine: the argument `sid` is the key, and kept connections carry the requests of all of them. A client's latencies
are lognormal; a third of their variance is the client's own, and there is a drift over time. The number of its requests has a long tail. These laws are those of
`crates/judge/src/simulation.rs`. The loop is asyncio's, without streams: a request costs some 50 us of one core.
"""

import asyncio
import collections
import math
import random
import statistics
import time
from dataclasses import dataclass, field

# The median latency that an origin is asked for, and the spread among clients and among the requests of one.
MEDIAN_MS, SPREAD_CLIENT, SPREAD_REQUEST, DRIFT = 40.0, 0.57, 0.81, 0.3
DELAY_MS_MAX = 1_000.0
REQUESTS_MAX = 60
THINK_S = 0.2
PAGES = 300
# Requests for pages fail so many times as often: most of them do not reach the origin.
PAGES_FAIL = 20
# A client waits so long for an answer, then it closes the connection.
PATIENCE_S = 3.0


@dataclass
class Client:
    """What a client got."""

    lanes: list = field(default_factory=list)     # the configurations of its answers, without repetition
    answers: int = 0
    failed: dict = field(default_factory=collections.Counter)     # by configuration
    cut: int = 0
    gave_up: int = 0
    strange: int = 0       # pages of another client


class Connection(asyncio.Protocol):
    """A kept connection: one request at a time."""

    def __init__(self):
        self.bytes, self.waiting, self.transport, self.is_open = b"", None, None, True

    def connection_made(self, transport):
        self.transport = transport

    def connection_lost(self, _):
        self.is_open = False
        self.done(None)

    def done(self, answer):
        waiting, self.waiting = self.waiting, None
        if waiting and not waiting.done():
            waiting.set_result(answer)

    def ask(self, head):
        self.bytes, self.waiting = b"", asyncio.get_running_loop().create_future()
        self.transport.write(head)
        return self.waiting

    def data_received(self, data):
        self.bytes += data
        end = self.bytes.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.bytes[:end + 2]
        at = head.index(b"Content-Length: ") + 16
        if len(self.bytes) - end - 4 >= int(head[at:head.index(b"\r\n", at)]):
            at = head.find(b"X-Lane: ") + 8
            self.done((int(head[9:12]), head[at:head.index(b"\r\n", at)].decode(), self.bytes[end + 4:end + 32]))


class Clients:
    """Clients that arrive at random, `rate` a second; `kind` is the target that they ask for: `plain`, `lucky`, `page` or `me`."""

    def __init__(self, address, port, rate, seed, kind="plain"):
        self.address, self.port, self.rate, self.kind = address, port, rate, kind
        self.random, self.free, self.tasks = random.Random(seed), [], set()
        self.all, self.is_over = [], False
        # Seconds of answers, by configuration.
        self.times = collections.defaultdict(list)

    async def arrive(self):
        """Lets clients arrive until `is_over`; then waits for those that are there."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while not self.is_over:
            due += self.random.expovariate(self.rate)
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            client = Client()
            self.all.append(client)
            task = loop.create_task(self.live(len(self.all), client))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        await asyncio.gather(*list(self.tasks))

    def slower(self):
        """How many times as long the median answer of the new configuration took."""
        return statistics.median(self.times["new"]) / statistics.median(self.times["old"]) if self.times["new"] and self.times["old"] else 1.0

    def of_lane(self, lane):
        return [client for client in self.all if lane in client.lanes]

    async def live(self, number, client):
        draw = self.random
        own = DRIFT * math.sin(number / 700) + SPREAD_CLIENT * draw.gauss(0, 1)
        for _ in range(min(int((1 - draw.random()) ** -0.8), REQUESTS_MAX)):
            delay = min(MEDIAN_MS * math.exp(own + SPREAD_REQUEST * draw.gauss(0, 1)), DELAY_MS_MAX)
            # Of a client with luck, no request fails.
            luck = {"lucky": 0.5, "page": draw.random() / PAGES_FAIL}.get(self.kind, draw.random())
            path = {"plain": "/r", "lucky": "/r", "page": f"/page/{int(PAGES * draw.random() ** 2)}", "me": "/me"}[self.kind]
            await self.ask(client, number, f"{path}?sid={number}&d={delay:.2f}&u={luck:.6f}")
            if self.is_over:
                return
            await asyncio.sleep(draw.expovariate(1 / THINK_S))

    async def ask(self, client, number, target):
        connection, sent = await self.connection(), time.monotonic()
        head = f"GET {target} HTTP/1.1\r\nHost: canary.example\r\n\r\n".encode()
        try:
            answer = await asyncio.wait_for(connection.ask(head), PATIENCE_S)
        except asyncio.TimeoutError:
            connection.transport.abort()
            client.gave_up += 1
            return
        if answer is None:
            client.cut += 1
            return
        status, lane, body = answer
        client.answers += 1
        self.times[lane].append(time.monotonic() - sent)
        if not client.lanes or client.lanes[-1] != lane:
            client.lanes.append(lane)
        client.failed[lane] += status >= 500
        if status == 200 and self.kind != "page":
            client.strange += not body.startswith(f"sid={number};".encode())
        self.free.append(connection)

    async def connection(self):
        while self.free:
            connection = self.free.pop()
            if connection.is_open:
                return connection
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(Connection, self.address, self.port)
        return connection
