#!/usr/bin/env python3
"""Starts, promotions, rollbacks and reloads of canaries under load: nothing is lost, no client changes its configuration, the counters are exact.

    python3 bench/canary_steady.py --weir target/dist/weir [--rounds 100] [--seed 1]

Needs the package `h2` (tests/compose/python.txt has its version). A round begins a canary of half of the clients and, a moment later, promotes it, rolls it back or reloads the edge. Meanwhile
there are on loopback: kept connections of HTTP/1.1, one for a client and two for some clients; connections of HTTP/2, each with the streams of several
clients; WebSockets that stay open for all rounds, and others that are opened again and again. Each answer names its configuration in a field, each
message of a WebSocket the configuration that opened it. The whole takes two seconds a round.

What must hold, or the exit code is 1:

- Each request has its answer with 200, each message its echo, and the edge closes no connection.
- An answer comes from one of the two configurations of its round. While a canary runs, a client has one of them. On a connection, each client goes once from the old
  configuration to the new one, and once more when the canary ends.
- A WebSocket keeps its configuration for ever.
- The edge's counter of requests equals the clients' count. In a last canary, its counts of clients and of requests of both configurations equal the
  clients' own.
"""

import argparse
import asyncio
import collections
import os
import random
import signal
import sys
import tempfile
import time

import h2.config
import h2.connection
import h2.events

import proc
from canary_account import Answer, Round, judged
from canary_edge import ADDRESS, Edge

PLAIN, DOUBLE, STREAMED, STREAMS, LASTING, RENEWED = 24, 8, 4, 8, 12, 6
PAUSE_S = 0.02
# Until a client's answers are of the canary alone, and until a decision has reached all workers.
DWELL_S, SETTLE_S, PATIENCE_S = 0.5, 0.3, 20
# A window of the judge closes when its client has sent nothing for 10 s.
IDLE_S = 11.5
SERVER = """location / { proxy_pass http://app; }
        location /socket { proxy_pass http://app; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; proxy_set_header X-Lane LANE; proxy_read_timeout 600s; }"""


class Lost(Exception):
    """A connection ended, or an answer is wrong."""


class Load:
    """All clients, and their account."""

    def __init__(self, edge):
        self.edge, self.is_over, self.is_paused = edge, False, False
        self.answers, self.requests, self.messages, self.problems, self.sockets = [], 0, 0, [], 0
        self.busy = 0
        # Of WebSockets that have ended: the client, the time of the beginning, and the configuration.
        self.ended = []

    def actors(self):
        for number in range(PLAIN):
            yield self.plain(f"plain{number}", f"p{number}")
        for number in range(DOUBLE):
            for side in "ab":
                yield self.plain(f"double{number}{side}", f"d{number}")
        for number in range(STREAMED):
            yield self.streamed(f"http2-{number}", [f"s{number}-{stream}" for stream in range(STREAMS)])
        for number in range(LASTING):
            yield self.lasting(f"l{number}", None)
        for number in range(RENEWED):
            yield self.lasting(f"r{number}", 40)

    async def guarded(self, actor):
        try:
            await actor
        except (Lost, OSError, asyncio.IncompleteReadError, asyncio.TimeoutError, h2.exceptions.ProtocolError) as problem:
            self.problems.append(f"{type(problem).__name__} {problem}")

    async def turn(self):
        """Waits before the next request; whether there is one."""
        await asyncio.sleep(PAUSE_S * random.uniform(0.5, 1.5))
        while self.is_paused and not self.is_over:
            await asyncio.sleep(PAUSE_S)
        return not self.is_over

    async def plain(self, name, client):
        reader, writer = await asyncio.open_connection(ADDRESS, self.edge.port)
        while await self.turn():
            self.busy += 1
            sent = time.monotonic()
            writer.write(f"GET /r?sid={client}&d=1&u=0.5 HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            self.requests += 1
            head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)).decode()
            fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
            body = await reader.readexactly(int(fields["Content-Length"]))
            if not head.startswith("HTTP/1.1 200 ") or not body.startswith(f"sid={client};".encode()) or fields.get("Connection") == "close":
                raise Lost(f"{name}: {head}")
            self.answers.append(Answer(name, client, sent, time.monotonic(), fields["X-Lane"]))
            self.busy -= 1
        writer.close()

    async def streamed(self, name, clients):
        reader, writer = await asyncio.open_connection(ADDRESS, self.edge.port)
        connection = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        waiting = {}
        reading = asyncio.create_task(self.read_frames(name, connection, reader, writer, waiting))
        await asyncio.gather(*(self.stream(name, client, connection, writer, waiting) for client in clients))
        reading.cancel()
        writer.close()

    async def stream(self, name, client, connection, writer, waiting):
        while await self.turn():
            self.busy += 1
            sent, number = time.monotonic(), connection.get_next_available_stream_id()
            connection.send_headers(number, [(":method", "GET"), (":path", f"/r?sid={client}&d=1&u=0.5"), (":scheme", "http"), (":authority", "a")], end_stream=True)
            waiting[number] = {"done": asyncio.get_running_loop().create_future(), "body": b""}
            writer.write(connection.data_to_send())
            self.requests += 1
            await asyncio.wait_for(waiting[number]["done"], PATIENCE_S)
            answer = waiting.pop(number)
            if answer["fields"][":status"] != "200" or not answer["body"].startswith(f"sid={client};".encode()):
                raise Lost(f"{name}: {answer['fields']}")
            self.answers.append(Answer(f"{name} {client}", client, sent, time.monotonic(), answer["fields"]["x-lane"]))
            self.busy -= 1

    async def read_frames(self, name, connection, reader, writer, waiting):
        def fail(why):
            for one in waiting.values():
                if not one["done"].done():
                    one["done"].set_exception(Lost(f"{name}: {why}"))
        while data := await reader.read(65536):
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.ResponseReceived):
                    waiting[event.stream_id]["fields"] = dict(event.headers)
                elif isinstance(event, h2.events.DataReceived):
                    waiting[event.stream_id]["body"] += event.data
                    connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, h2.events.StreamEnded):
                    waiting[event.stream_id]["done"].set_result(None)
                elif isinstance(event, (h2.events.StreamReset, h2.events.ConnectionTerminated)):
                    self.problems.append(f"{name}: {event}")
                    fail(event)
            writer.write(connection.data_to_send())
        self.problems.append(f"{name}: the edge closed the connection")
        fail("closed")

    async def lasting(self, client, messages):
        """WebSockets of a client, one after another: each for so many messages, or one to the end."""
        while not self.is_over:
            reader, writer = await asyncio.open_connection(ADDRESS, self.edge.port)
            writer.write(f"GET /socket?sid={client} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n".encode())
            self.requests += 1
            self.sockets += 1
            opened = time.monotonic()
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
            if not head.startswith(b"HTTP/1.1 101 "):
                raise Lost(f"{client}: {head}")
            lane, sent = None, 0
            while messages is None or sent < messages:
                if not await self.turn():
                    break
                text = f"{client} {sent} ".encode()
                writer.write(bytes((0x81, 0x80 | len(text), 0, 0, 0, 0)) + text)
                start = await asyncio.wait_for(reader.readexactly(2), PATIENCE_S)
                echo = await reader.readexactly(start[1])
                sent += 1
                self.messages += 1
                if not echo.startswith(text) or lane not in (None, echo[len(text):]):
                    raise Lost(f"the WebSocket of {client}, which {lane} has opened: {text} {echo}")
                lane = echo[len(text):]
            writer.close()
            self.ended.append((client, opened, (lane or b"").decode()))

    async def quiet(self):
        """Waits until no request is under way."""
        self.is_paused = True
        until = time.monotonic() + PATIENCE_S
        while self.busy and time.monotonic() < until and not self.problems:
            await asyncio.sleep(PAUSE_S)


async def one_round(edge, number, old, end):
    path = edge.write(f"g{number}", SERVER.replace("LANE", f"g{number}"))
    begun = time.monotonic()
    code, said = await edge.canary(path, "--share", "50%", "--key", "$arg_sid", "--no-promote", *edge.words)
    if code:
        raise Lost(f"no canary: {said}")
    await until(edge, lambda state: state["phase"] == "running" and state["workers"] == edge.workers)
    ready = time.monotonic()
    await asyncio.sleep(DWELL_S)
    ordered = time.monotonic()
    if end == "reload":
        os.kill(edge.keeper.pid, signal.SIGHUP)
    else:
        code, said = await edge.canary(end)
        if code and end == "promote":
            raise Lost(f"no promotion: {said}")
    await until(edge, lambda state: (state["phase"], state["reason"]) == {
        "promote": ("promoted", "asked"), "rollback": ("rolled_back", "asked"), "reload": ("rolled_back", "reload")}[end])
    await asyncio.sleep(SETTLE_S)
    return Round(old, f"g{number}", end, begun, ready, ordered, time.monotonic())


async def until(edge, holds):
    give_up = time.monotonic() + PATIENCE_S
    while not holds(state := await edge.state()):
        if time.monotonic() > give_up:
            raise Lost(f"the canary does not go on: {state}")
        await asyncio.sleep(0.02)


async def counted(edge, load):
    """A last canary, whose counts must be the clients' own; the problems."""
    await load.quiet()
    path = edge.write("last", SERVER.replace("LANE", "last"))
    code, said = await edge.canary(path, "--share", "50%", "--key", "$arg_sid", "--no-promote", *edge.words)
    if code:
        return [f"no canary: {said}"]
    await until(edge, lambda state: state["phase"] == "running" and state["workers"] == edge.workers)
    load.answers.clear()
    ready = time.monotonic()
    load.is_paused = False
    await asyncio.sleep(3)
    await load.quiet()
    await asyncio.sleep(IDLE_S)
    state = await edge.state()
    own = {}
    for lane, is_own in (("old", lambda name: name != "last"), ("new", lambda name: name == "last")):
        answers = [answer for answer in load.answers if is_own(answer.lane)]
        # A WebSocket counts when it ends, and is no request that says something about speed.
        sockets = {client for client, opened, name in load.ended if opened > ready and is_own(name)}
        own[lane] = (len({answer.client for answer in answers} | sockets), len(answers))
    edges = {lane: (state[lane]["clients"], state[lane]["requests"]) for lane in own}
    print(f"a last canary: clients and requests by the edge {edges}, by the clients {own}; {state['clients_skipped']} clients skipped, {state['requests_lost']} requests lost", flush=True)
    problems = [] if edges == own and not state["clients_skipped"] + state["requests_lost"] else [f"the canary counts {edges}, the clients {own}"]
    await edge.canary("rollback")
    return problems


async def whole(args, room):
    edge = Edge(args.weir, room, SERVER.replace("LANE", "old"))
    edge.words = args.words
    try:
        await edge.serves()
        load = Load(edge)
        before, asked = (await edge.api("9/http/requests"))["total"], edge.asked
        actors = [asyncio.create_task(load.guarded(actor)) for actor in load.actors()]
        await asyncio.sleep(1)
        draw, rounds, old = random.Random(args.seed), [], "old"
        memory = proc.rss_kib(edge.keeper.pid)
        started = time.monotonic()
        for number in range(args.rounds):
            end = ("promote", "rollback", "reload")[number % 3] if number < 6 else draw.choice(("promote", "rollback", "reload"))
            rounds.append(await one_round(edge, number, old, end))
            old = rounds[-1].then
            if load.problems:
                break
        seconds = time.monotonic() - started
        ends = collections.Counter(one.end for one in rounds)
        grown = proc.rss_kib(edge.keeper.pid) - memory
        problems = load.problems + judged(load.answers, rounds)
        print(f"{len(rounds)} starts, {ends['promote']} promotions, {ends['rollback']} rollbacks and {ends['reload']} reloads in {seconds:.0f} s; {len(load.answers):,} answers, "
              f"{load.messages:,} messages of {load.sockets:,} WebSockets; memory grew by {grown / 1024:.1f} MiB", flush=True)
        problems += await counted(edge, load)
        load.is_over = True
        await asyncio.gather(*actors)
        await asyncio.sleep(0.5)
        count = (await edge.api("9/http/requests"))["total"] - before - (edge.asked - asked)
        print(f"requests by the edge {count:,}, by the clients {load.requests:,}")
        if count != load.requests:
            problems.append(f"the edge counts {count - load.requests:+} requests")
        for problem in (problems + load.problems)[:20]:
            print(f"FAILED: {problem}")
        return int(bool(problems or load.problems))
    finally:
        edge.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--words", type=str.split, default=["--look", "1s", "--anyway"], help="further words for `weir canary`")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weir-canary-") as room:
        return asyncio.run(whole(args, room))


if __name__ == "__main__":
    sys.exit(main())
