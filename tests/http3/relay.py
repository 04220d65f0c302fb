#!/usr/bin/env python3
"""A relay of UDP datagrams that does to them, by a seed, what a bad path does. It prints its port, and at TERM what it did.

    relay.py PORT '{"seed": 1, "loss": 0.02}'      PORT is the server's; the names are the fields of `Path`

Each client gets a socket towards the server, as behind a NAT.
"""

import collections
import dataclasses
import heapq
import itertools
import json
import random
import selectors
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path as File

DATAGRAM_MAX = 65536
# Datagrams with a short header after which a client's handshake counts as complete.
SHORT_MIN = 10


@dataclasses.dataclass
class Path:
    """What happens to a datagram, in either direction; the rates are from 0 to 1, the times are seconds."""
    seed: int = 1
    delay: float = 0.01
    # These take longer by up to `jitter`, so later ones overtake them.
    late: float = 0.0
    jitter: float = 0.01
    loss: float = 0.0
    duplicates: float = 0.0
    # One byte becomes another one.
    corrupt: float = 0.0
    # Larger ones are lost.
    size_max: int = DATAGRAM_MAX
    # The relay's port towards the server changes after this time; what comes to the old port is lost.
    rebinds: float = 0.0


class Relay:
    def __init__(self, server, path):
        self.server, self.path, self.draw = ("127.0.0.1", server), path, random.Random(path.seed)
        self.front, self.selector = bound(), selectors.DefaultSelector()
        self.selector.register(self.front, selectors.EVENT_READ, None)
        self.backs, self.queue, self.order = {}, [], itertools.count()
        self.after_handshake = collections.Counter()
        self.counts = dict.fromkeys(("passed", "lost", "too large", "duplicated", "corrupted", "rebound"), 0)
        self.is_told = False
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "is_told", True))

    def back(self, client):
        if client not in self.backs:
            self.backs[client] = bound()
            self.selector.register(self.backs[client], selectors.EVENT_READ, client)
        return self.backs[client]

    def rebind(self):
        # QUIC relies on addresses that stay during the handshake (RFC 9000 §9).
        for client in [client for client, count in self.after_handshake.items() if count >= SHORT_MIN]:
            self.selector.unregister(self.backs[client])
            self.backs.pop(client).close()
            self.back(client)
            self.counts["rebound"] += 1

    def run(self):
        print(self.front.getsockname()[1], flush=True)
        rebinds_at = time.monotonic() + self.path.rebinds if self.path.rebinds else float("inf")
        while not self.is_told:
            now = time.monotonic()
            if now >= rebinds_at:
                self.rebind()
                rebinds_at = now + self.path.rebinds
            while self.queue and self.queue[0][0] <= now:
                self.deliver(*heapq.heappop(self.queue)[2:])
            next_at = min(self.queue[0][0] if self.queue else now + 0.2, rebinds_at)
            for key, _ in self.selector.select(max(0.0, next_at - time.monotonic())):
                self.read(key.fileobj, key.data)
        print(json.dumps(self.counts), flush=True)

    def read(self, from_where, client):
        """Takes what has come to a socket; `client` is `None` for datagrams of clients."""
        while True:
            try:
                data, source = from_where.recvfrom(DATAGRAM_MAX)
            except OSError:
                return
            self.take(data, source if client is None else client, client is None)

    def take(self, data, client, goes_up):
        path, draw, counts = self.path, self.draw, self.counts
        self.after_handshake[client] += goes_up and not data[0] & 0x80
        if len(data) > path.size_max:
            counts["too large"] += 1
            return
        if draw.random() < path.loss:
            counts["lost"] += 1
            return
        if draw.random() < path.corrupt:
            at = draw.randrange(len(data))
            data = data[:at] + bytes([data[at] ^ draw.randrange(1, 256)]) + data[at + 1:]
            counts["corrupted"] += 1
        copies = 1 + (draw.random() < path.duplicates)
        counts["duplicated"] += copies - 1
        for _ in range(copies):
            at = time.monotonic() + path.delay + (draw.random() * path.jitter if draw.random() < path.late else 0)
            heapq.heappush(self.queue, (at, next(self.order), data, client, goes_up))

    def deliver(self, data, client, goes_up):
        try:
            if goes_up:
                self.back(client).sendto(data, self.server)
            else:
                self.front.sendto(data, client)
            self.counts["passed"] += 1
        except OSError:
            self.counts["lost"] += 1


def bound():
    new = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for name in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        new.setsockopt(socket.SOL_SOCKET, name, 4 << 20)
    new.setblocking(False)
    new.bind(("127.0.0.1", 0))
    return new


@contextmanager
def relayed(server, path):
    """A relay in a process of its own: its port, and a dictionary that has its counts afterwards."""
    words = [sys.executable, str(File(__file__).resolve()), str(server), json.dumps(dataclasses.asdict(path))]
    process, counts = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True), {}
    try:
        yield int(process.stdout.readline()), counts
    finally:
        process.terminate()
        counts.update(json.loads(process.communicate(timeout=20)[0] or "{}"))


if __name__ == "__main__":
    Relay(int(sys.argv[1]), Path(**json.loads(sys.argv[2]))).run()
