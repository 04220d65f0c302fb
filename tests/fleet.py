#!/usr/bin/env python3
"""Three edges of a fleet, a real redis-server, and everything that can happen between them: judged from outside.

    tests/fleet.py --weir BIN [--seconds 8] [--edges 3] [--busy] [NAME…]

Each edge reaches Redis by a relay of its own, which passes bytes on, holds them, delays them or cuts the connection. Clients send
more than the limit to all edges, on kept connections. What is judged, for each case:

    bound     in no span of time more requests passed than rate · t + burst + 1 + edges · credit
    share     what passed while the case lasted, as a part of the rate; each case says the least
    waits     no answer came later than Redis could have been waited for
    log       each edge says once that Redis is away, and once that it is back

Needs redis-server. Exit code 1: something is not so.
"""

import argparse
import asyncio
import http.client
import http.server
import json
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

# The limit of all cases: requests a second, and the burst.
RATE, BURST = 40, 20
# Requests a second that clients send to each edge.
OFFERED = 60
# A request that waited for Redis would wait at least as long as this relay delays, in seconds.
SLOW = 0.2
# An answer that takes longer has waited for something; the machine may be busy.
WAITED = 0.15
# The share of slow answers from which on it was not the machine.
WAITED_SHARE = 0.02
# How long a case has before it is disturbed, in seconds.
BEFORE = 2.0


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Redis:
    """A redis-server without files on disk."""

    def __init__(self, room):
        self.room, self.port, self.process = room, free_port(), None
        self.start()

    def start(self):
        words = ["redis-server", "--port", str(self.port), "--save", "", "--appendonly", "no", "--dir", str(self.room)]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        sys.exit("redis-server does not answer")

    def say(self, *words):
        out = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()) for word in words)
        with socket.create_connection(("127.0.0.1", self.port), 5) as one:
            one.sendall(out)
            return one.recv(1 << 16).decode(errors="replace")

    def end(self):
        self.process.kill()
        self.process.wait()


class Relay:
    """Between one edge and Redis. `mode`: pass, hold (a cut: bytes vanish), slow, refuse."""

    def __init__(self, redis):
        self.redis, self.mode, self.server, self.open = redis, "pass", None, set()

    async def start(self):
        self.server = await asyncio.start_server(self.accept, "127.0.0.1", 0)
        return self.server.sockets[0].getsockname()[1]

    async def accept(self, reader, writer):
        try:
            await self.carry(reader, writer)
        except asyncio.CancelledError:
            # The case has ended.
            writer.transport.abort()

    async def carry(self, reader, writer):
        if self.mode == "refuse":
            writer.transport.abort()
            return
        try:
            out_reader, out_writer = await asyncio.open_connection("127.0.0.1", self.redis.port)
        except OSError:
            writer.transport.abort()
            return
        pair = (writer, out_writer)
        self.open.add(pair)
        await asyncio.gather(self.pump(reader, out_writer), self.pump(out_reader, writer), return_exceptions=True)
        self.open.discard(pair)
        for one in pair:
            one.transport.abort()

    async def pump(self, reader, writer):
        while data := await reader.read(1 << 16):
            if self.mode == "hold":
                continue
            if self.mode == "slow":
                await asyncio.sleep(SLOW / 2)
            writer.write(data)
            await writer.drain()
        writer.transport.abort()

    def set(self, mode):
        """Bytes that were held never arrive: their connections end with the cut."""
        if self.mode == "hold" or mode == "refuse":
            for pair in list(self.open):
                for one in pair:
                    one.transport.abort()
        self.mode = mode


class Application(http.server.ThreadingHTTPServer):
    """Begins a session at /login; else says its name."""

    daemon_threads = True

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            body = self.server.name.encode()
            self.send_response(200)
            if self.path == "/login":
                self.send_header("Set-Cookie", f"sid={secrets.token_hex(8)}")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    def __init__(self, name):
        super().__init__(("127.0.0.1", 0), Application.Handler)
        self.name = name
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Edge:
    """One edge, with its file and its log."""

    def __init__(self, options, room, name, relay_port, extra="", count=3, servers=()):
        self.name, self.room, self.port = name, room / name, free_port()
        self.room.mkdir()
        self.weir = options.weir
        fleet = f"fleet redis://127.0.0.1:{relay_port} name=t edge={name} edges={count} {extra};" if relay_port else ""
        sync = "sync" if relay_port else ""
        (self.room / "nginx.conf").write_text(f"""
            daemon off; master_process off; worker_processes 1; pid {self.room}/pid; error_log {self.room}/error.log notice;
            events {{}}
            http {{
                access_log off;
                {fleet}
                limit_req_zone $arg_key zone=one:1m rate={RATE}r/s {sync};
                limit_req_status 429;
                limit_req_log_level info;
                keyval_zone zone=flags:1m {sync};
                keyval $arg_k $flag zone=flags;
                upstream app {{
                    zone app 64k;
                    {" ".join(f"server 127.0.0.1:{port};" for port in servers) or "server 127.0.0.1:1;"}
                    sticky learn create=$upstream_cookie_sid lookup=$cookie_sid zone=sessions:1m {sync};
                }}
                server {{
                    listen 127.0.0.1:{self.port};
                    # What `return` answers passes no limit.
                    location / {{ limit_req zone=one burst={BURST} nodelay; empty_gif; }}
                    location /app/ {{ proxy_pass http://app/; }}
                    location = /flag {{ return 200 "$flag"; }}
                    location /api/ {{ api write=on; allow 127.0.0.1; deny all; }}
                }}
            }}""")
        self.process = None

    def start(self):
        self.process = subprocess.Popen([self.weir, "edge", "-p", str(self.room), "-c", str(self.room / "nginx.conf")], stderr=subprocess.DEVNULL)
        for _ in range(500):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return self
            except OSError:
                time.sleep(0.02)
        sys.exit(f"the edge does not listen: {self.log()}")

    def log(self):
        file = self.room / "error.log"
        return file.read_text() if file.exists() else ""

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def login(self):
        """Begins a session; returns its id and its server."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("GET", "/app/login")
        answer = connection.getresponse()
        sid, name = answer.getheader("Set-Cookie").removeprefix("sid="), answer.read().decode()
        connection.close()
        return sid, name

    def server_of(self, sid):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("GET", "/app/", headers={"Cookie": f"sid={sid}"})
        name = connection.getresponse().read().decode()
        connection.close()
        return name

    def flag(self, key):
        return self.ask("GET", f"/flag?k={key}")[1]

    def set(self, key, value):
        """Sets a pair over the API, or removes it."""
        status, text = self.ask("PATCH", "/api/9/http/keyvals/flags", {key: value})
        if status == 404 and value is not None:
            status, text = self.ask("POST", "/api/9/http/keyvals/flags", {key: value})
        if status not in (201, 204):
            sys.exit(f"{self.name}: {status} {text}")

    def servers(self):
        """The servers of the group: address, weight, drain."""
        return {one["server"]: (one["weight"], one.get("drain", False)) for one in json.loads(self.ask("GET", "/api/9/http/upstreams/app/servers")[1])}

    def change_server(self, server, change):
        """Adds a server, changes it, or removes it."""
        ids = {one["server"]: one["id"] for one in json.loads(self.ask("GET", "/api/9/http/upstreams/app/servers")[1])}
        path = "/api/9/http/upstreams/app/servers"
        if change is None:
            status, text = self.ask("DELETE", f"{path}/{ids[server]}")
        elif server in ids:
            status, text = self.ask("PATCH", f"{path}/{ids[server]}", change)
        else:
            status, text = self.ask("POST", f"{path}/", {"server": server, **change})
        if status not in (200, 201):
            sys.exit(f"{self.name}: {status} {text}")

    def reload(self, change=lambda text: text):
        file = self.room / "nginx.conf"
        file.write_text(change(file.read_text()))
        before = self.log().count("reconfiguring")
        self.process.send_signal(signal.SIGHUP)
        for _ in range(500):
            if self.log().count("reconfiguring") > before:
                return
            time.sleep(0.02)

    def end(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait()


async def client(edge, key, until, seen, rate):
    """Sends requests at a rate on a kept connection; a lost one is made again."""
    reader = writer = None
    begin, number = time.monotonic(), 0
    request = f"GET /?key={key} HTTP/1.1\r\nHost: h\r\n\r\n".encode()
    while time.monotonic() < until:
        due = begin + number / rate
        number += 1
        if (wait := due - time.monotonic()) > 0:
            await asyncio.sleep(wait)
        try:
            if writer is None:
                reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
            sent = time.monotonic()
            writer.write(request)
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
            lower = head.lower()
            length = int(lower.split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            seen.append((sent, time.monotonic(), int(head.split()[1]), edge.name))
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError, IndexError, ValueError):
            if writer is not None:
                writer.transport.abort()
            writer = None
            await asyncio.sleep(0.02)


def excess(times, rate):
    """How much more passed in some span of time than the rate allows, at most."""
    least, most = float("inf"), 0.0
    for number, moment in enumerate(times):
        least = min(least, number - rate * moment)
        most = max(most, number + 1 - rate * moment - least)
    return most


class World:
    """What a case may disturb."""

    def __init__(self, redis, relays, edges):
        self.redis, self.relays, self.edges, self.starts = redis, relays, edges, len(edges)

    async def all(self, mode):
        for relay in self.relays:
            relay.set(mode)

    async def one(self, mode):
        self.relays[0].set(mode)

    async def half(self, mode):
        """Of three edges, two are on the other side."""
        for relay in self.relays[:2]:
            relay.set(mode)

    async def redis_dies(self):
        self.redis.end()

    async def redis_is_back(self):
        self.redis.start()

    async def say(self, *words):
        self.redis.say(*words)

    async def kill(self):
        self.edges[0].end()
        self.starts += 1
        self.edges[0].start()

    async def leave(self):
        await asyncio.to_thread(self.edges[0].end, signal.SIGQUIT)
        self.starts += 1
        await asyncio.to_thread(self.edges[0].start)


async def nothing(_):
    pass


# For each case: what happens, what ends it, the least part of the rate that passes meanwhile, whether edges lose Redis.
CASES = {
    "together": (nothing, nothing, 0.9, 0),
    "one edge cut off": (lambda world: world.one("hold"), lambda world: world.one("pass"), 0.8, 1),
    "one edge refused": (lambda world: world.one("refuse"), lambda world: world.one("pass"), 0.8, 1),
    "two halves": (lambda world: world.half("hold"), lambda world: world.half("pass"), 0.8, 2),
    "all cut off": (lambda world: world.all("hold"), lambda world: world.all("pass"), 0.8, 3),
    "slow": (lambda world: world.all("slow"), lambda world: world.all("pass"), 0.8, 0),
    "killed and restarted": (lambda world: world.redis_dies(), lambda world: world.redis_is_back(), 0.8, 3),
    "emptied": (lambda world: world.say("FLUSHALL"), nothing, 0.7, 0),
    "read-only": (lambda world: world.say("REPLICAOF", "127.0.0.1", "1"), lambda world: world.say("REPLICAOF", "NO", "ONE"), 0.8, 3),
    "wrong password": (lambda world: wrong_password(world), lambda world: right_password(world), 0.8, 3),
    "foreign values": (lambda world: foreign(world), lambda world: world.say("FLUSHALL"), 0.8, 3),
    "an edge killed": (lambda world: world.kill(), nothing, 0.6, 0),
    "an edge leaves": (lambda world: world.leave(), nothing, 0.8, 0),
}


async def wrong_password(world):
    world.redis.say("CONFIG", "SET", "requirepass", "other")
    for relay in world.relays:
        relay.set("refuse")
        relay.set("pass")


async def right_password(world):
    with socket.create_connection(("127.0.0.1", world.redis.port), 5) as one:
        one.sendall(b'AUTH other\r\nCONFIG SET requirepass ""\r\n')
        one.recv(100)
        await asyncio.sleep(0.1)


async def foreign(world):
    world.redis.say("DEL", "{weir:t}:fleet", "{weir:t}:shares")
    world.redis.say("SET", "{weir:t}:fleet", "not a hash " + "x" * 1_000_000)
    world.redis.say("LPUSH", "{weir:t}:shares", "not a hash")


async def same(edges, key, value):
    """Whether all edges have this pair, soon."""
    for _ in range(100):
        if all([await asyncio.to_thread(edge.flag, key) == value for edge in edges]):
            return True
        await asyncio.sleep(0.1)
    return False


async def pairs(options, redis, room):
    """Pairs of keyval: at all edges, after cuts, losses of memory and restarts."""
    relays = [Relay(redis) for _ in range(options.edges)]
    edges = [Edge(options, room, f"e{number}", await relay.start(), count=options.edges) for number, relay in enumerate(relays)]
    first, second, *_ = edges
    wrong = []

    async def say(edge, key, value):
        await asyncio.to_thread(edge.set, key, value)

    async def wants(what, key, value, of=edges):
        if not await same(of, key, value):
            shown = [await asyncio.to_thread(edge.flag, key) for edge in of]
            wrong.append(f"{what}: {key} is {shown}, and not {value!r}")

    try:
        for edge in edges:
            await asyncio.to_thread(edge.start)
        await say(first, "a", "1")
        await wants("set at one edge", "a", "1")
        await say(second, "a", "2")
        await wants("set at another edge", "a", "2")
        await say(first, "gone", "x")
        await wants("before a cut", "gone", "x")
        # One edge is away: it keeps its own, and the later change of each pair wins.
        relays[0].set("hold")
        await asyncio.sleep(1)
        await say(first, "a", "earlier")
        await say(first, "own", "3")
        await asyncio.sleep(0.5)
        await say(second, "a", "later")
        await say(second, "b", "earlier")
        await say(second, "gone", None)
        await asyncio.sleep(0.5)
        await say(first, "b", "later")
        await wants("alone", "own", "3", [first])
        await wants("alone", "gone", "x", [first])
        relays[0].set("pass")
        for key, value in (("a", "later"), ("b", "later"), ("own", "3"), ("gone", "")):
            await wants("back again", key, value)
        # Redis forgets everything: the edges do not.
        redis.say("FLUSHALL")
        for key, value in (("a", "later"), ("own", "3"), ("gone", "")):
            await wants("after Redis lost its memory", key, value)
        await say(second, "c", "4")
        await wants("after Redis lost its memory", "c", "4")
        # An edge that begins has no file, and takes the pairs of the others.
        await asyncio.to_thread(first.end, signal.SIGQUIT)
        await say(second, "d", "5")
        await asyncio.to_thread(first.start)
        for key, value in (("a", "later"), ("d", "5")):
            await wants("after a restart", key, value)
        await asyncio.to_thread(first.ask, "DELETE", "/api/9/http/keyvals/flags")
        for key in ("a", "c", "own"):
            await wants("all removed", key, "")
        for _ in range(100):
            fleet = json.loads((await asyncio.to_thread(second.ask, "GET", "/api/weir"))[1])["weir"]["fleet"]
            if seen := [member["edge"] for member in fleet["members"]] == [edge.name for edge in edges] and not fleet["is_alone"]:
                break
            await asyncio.sleep(0.1)
        if not seen:
            wrong.append(f"the view of one edge: {fleet}")
    finally:
        for edge in edges:
            edge.end()
        for relay in relays:
            relay.set("refuse")
            relay.server.close()
    print(f"{'ok ' if not wrong else 'NOT'} pairs  {'; '.join(wrong)}", flush=True)
    return not wrong


async def sessions(options, redis, room):
    """Sessions of sticky learn: each edge sends a client to the server that began its session."""
    servers = [Application(f"app{number}") for number in range(4)]
    ports = [server.server_address[1] for server in servers]
    relays = [Relay(redis) for _ in range(options.edges)]
    edges = [Edge(options, room, f"e{number}", await relay.start(), count=options.edges, servers=ports) for number, relay in enumerate(relays)]
    first, second, *_ = edges
    wrong = []

    async def begin(edge, count=20):
        return [await asyncio.to_thread(edge.login) for _ in range(count)]

    async def moved(begun, of):
        """How many sessions are at another server, over all edges."""
        return sum([await asyncio.to_thread(edge.server_of, sid) != name for edge in of for sid, name in begun])

    async def stay(what, begun, of=edges):
        if count := await moved(begun, of):
            wrong.append(f"{what}: {count} of {len(begun) * len(of)} moved")

    try:
        for edge in edges:
            await asyncio.to_thread(edge.start)
        await asyncio.sleep(0.5)
        before = await begin(first)
        await asyncio.sleep(0.3)
        await stay("together", before)
        relays[0].set("hold")
        await asyncio.sleep(0.5)
        there, here = await begin(second), await begin(first)
        await asyncio.sleep(0.3)
        await stay("cut off, begun before", before)
        await stay("cut off, begun there", here, [first])
        await stay("cut off, begun among the others", there, edges[1:])
        relays[0].set("pass")
        await asyncio.sleep(3)
        await stay("back again", before + there + here)
        redis.end()
        await asyncio.sleep(0.3)
        lonely = await begin(second)
        await stay("without Redis", before + there + here)
        await stay("without Redis, begun there", lonely, [second])
        redis.start()
        await asyncio.sleep(3)
        await stay("Redis is back, and empty", before + there + here + lonely)
        later = await begin(second)
        await asyncio.to_thread(first.end, signal.SIGQUIT)
        await asyncio.to_thread(first.start)
        await asyncio.sleep(1.5)
        await stay("after a restart", later, [first])
    finally:
        for edge in edges:
            edge.end()
        for relay in relays:
            relay.set("refuse")
            relay.server.close()
        for server in servers:
            server.shutdown()
    print(f"{'ok ' if not wrong else 'NOT'} sessions  {'; '.join(wrong)}", flush=True)
    return not wrong


async def servers(options, redis, room):
    """Servers that the API changes: the same at all edges, also after a cut, a reload and a loss of memory."""
    relays = [Relay(redis) for _ in range(options.edges)]
    ports = [11, 12]
    edges = [Edge(options, room, f"e{number}", await relay.start(), count=options.edges, servers=ports) for number, relay in enumerate(relays)]
    first, second, third = edges[:3]
    wrong = []

    async def wants(what, wanted, of=edges):
        for _ in range(100):
            shown = [await asyncio.to_thread(edge.servers) for edge in of]
            if all(one == wanted for one in shown):
                return
            await asyncio.sleep(0.1)
        wrong.append(f"{what}: {shown}, and not {wanted}")

    async def change(edge, server, what):
        await asyncio.to_thread(edge.change_server, server, what)

    try:
        for edge in edges:
            await asyncio.to_thread(edge.start)
        now = {"127.0.0.1:11": (1, False), "127.0.0.1:12": (1, False)}
        await wants("at first", now)
        await change(first, "127.0.0.1:12", {"drain": True})
        await change(second, "127.0.0.1:13", {"weight": 3})
        now |= {"127.0.0.1:12": (1, True), "127.0.0.1:13": (3, False)}
        await wants("drained and added", now)
        relays[0].set("hold")
        await asyncio.sleep(0.5)
        await change(second, "127.0.0.1:11", None)
        await change(second, "127.0.0.1:13", {"weight": 5})
        del now["127.0.0.1:11"]
        now["127.0.0.1:13"] = (5, False)
        await wants("one is cut off", now, edges[1:])
        relays[0].set("pass")
        await wants("back again", now)
        await asyncio.to_thread(second.reload)
        await asyncio.sleep(1)
        await wants("after a reload", now)
        redis.say("FLUSHALL")
        await asyncio.sleep(1)
        await asyncio.to_thread(third.end, signal.SIGQUIT)
        await asyncio.to_thread(third.start)
        await wants("after Redis lost its memory, and a restart", now)
        # Other servers in the file: the changes were made for the old ones.
        await asyncio.to_thread(third.reload, lambda text: text.replace("server 127.0.0.1:11;", "server 127.0.0.1:14;"))
        await wants("another file", {"127.0.0.1:14": (1, False), "127.0.0.1:12": (1, False)}, [third])
        await wants("the others", now, edges[:2])
    finally:
        for edge in edges:
            edge.end()
        for relay in relays:
            relay.set("refuse")
            relay.server.close()
    print(f"{'ok ' if not wrong else 'NOT'} servers  {'; '.join(wrong)}", flush=True)
    return not wrong


# Cases with a story of their own.
STORIES = {"pairs": pairs, "sessions": sessions, "servers": servers}


async def play(options, name, redis, room):
    if name in STORIES:
        return await STORIES[name](options, redis, room)
    disturb, mend, least, losers = CASES[name]
    redis.say("FLUSHALL")
    relays = [Relay(redis) for _ in range(options.edges)]
    ports = [await relay.start() for relay in relays]
    edges = [Edge(options, room, f"e{number}", port, count=options.edges) for number, port in enumerate(ports)]
    wrong = []
    try:
        for edge in edges:
            await asyncio.to_thread(edge.start)
        await asyncio.sleep(1.0)
        world = World(redis, relays, edges)
        seen = []
        begin = time.monotonic()
        middle, end = begin + BEFORE + options.seconds, begin + BEFORE + 2 * options.seconds
        clients = [asyncio.create_task(client(edge, "k", end, seen, OFFERED)) for edge in edges]
        await asyncio.sleep(BEFORE)
        await disturb(world)
        await asyncio.sleep(max(0.0, middle - time.monotonic()))
        await mend(world)
        await asyncio.gather(*clients)
        passed = sorted(sent for sent, _, status, _ in seen if status == 200)
        other = {status for _, _, status, _ in seen} - {200, 429}
        credit = max(BURST + 1, 0.02 * RATE, 1)
        bound = BURST + 1 + world.starts * credit
        most = excess(passed, RATE)
        during = sum(begin + BEFORE + 1 <= moment < middle for moment in passed) / (RATE * (options.seconds - 1))
        after = sum(middle + 1 <= moment < end for moment in passed) / (RATE * (options.seconds - 1))
        late = sum(got - sent > WAITED for sent, got, _, _ in seen) / max(len(seen), 1)
        lost = sum(edge.log().count("weir cannot reach the fleet") > 0 for edge in edges)
        again = sum(edge.log().count("is connected again to the fleet") > 0 for edge in edges)
        if other:
            wrong.append(f"answers {sorted(other)}")
        # A client notes the time of its sending, and the edge judges a little later.
        if most > bound + 1:
            wrong.append(f"{most:.1f} of {bound:.1f} passed beyond the rate")
        if during < least:
            wrong.append(f"{during:.2f} of the rate passed meanwhile, {least} is the least")
        if after < 0.6:
            wrong.append(f"{after:.2f} of the rate passed after it")
        if late > WAITED_SHARE and not options.busy:
            wrong.append(f"{late:.3f} of the answers came late")
        if lost < losers:
            wrong.append(f"{lost} edges say that they lost Redis, and not {losers}")
        if losers and again < losers:
            wrong.append(f"{again} edges say that it is back, and not {losers}")
        print(f"{'ok ' if not wrong else 'NOT'} {name:<22} {most:5.1f} of {bound:4.1f} beyond the rate, {during:4.2f} of the rate meanwhile, "
              f"{after:4.2f} after, {late:5.3f} late  {'; '.join(wrong)}", flush=True)
        if wrong:
            for edge in edges:
                print(f"  {edge.name}: " + "\n  ".join(edge.log().splitlines()[-6:]))
    finally:
        for edge in edges:
            edge.end()
        for relay in relays:
            relay.set("refuse")
            relay.server.close()
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--seconds", type=float, default=8, help="how long a case is disturbed, and watched after it")
    parser.add_argument("--edges", type=int, default=3)
    parser.add_argument("--busy", action="store_true", help="the machine does other work, so answers may be late")
    parser.add_argument("names", nargs="*", help="cases; else all")
    options = parser.parse_args()
    options.weir = os.path.abspath(options.weir)
    all_names = [*CASES, *STORIES]
    unknown = set(options.names) - set(all_names)
    if unknown:
        sys.exit(f"no case {', '.join(sorted(unknown))}: {', '.join(all_names)}")
    names = options.names or all_names
    good = 0
    for name in names:
        room = pathlib.Path(tempfile.mkdtemp(prefix="weir-fleet-"))
        redis = Redis(room)
        try:
            good += asyncio.run(play(options, name, redis, room))
        finally:
            redis.end()
            shutil.rmtree(room, ignore_errors=True)
    print(f"{good} of {len(names)} cases are as they must be")
    sys.exit(0 if good == len(names) else 1)


if __name__ == "__main__":
    main()
