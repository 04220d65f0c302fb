"""The faults of a TCP origin behind `stream`.

There is no framing, so weir ends the client's connection when the origin's ends. It sends FIN also after a reset, as nginx does: RST
would destroy bytes that the client has not read yet.
"""

import asyncio
import re
import time

import client
import origin as origins
from play import Case, Play, close, reset, stall
from suite import Result, shape

CONNECTING = " while connecting to upstream"
RESET_HERE = "recv() failed (104: Connection reset by peer) while proxying and reading from upstream"

# Each also runs with a second peer, whose text is `second`: the outcome is behind the comma.
CASES = [
    Case("refused", [], "closed, second", "connect() failed (111: Connection refused)" + CONNECTING, at="refuses"),
    Case("connect-timeout", [], "closed, second", "upstream timed out (110: Connection timed out)" + CONNECTING, at="is full", conf="proxy_connect_timeout 400ms;"),
    Case("no-socket", [], "closed, second", "connect() to unix:/nonexistent/socket failed (2: No such file or directory)" + CONNECTING, at="unix:/nonexistent/socket"),
    Case("close", [close], "closed, closed"),
    Case("reset", [reset], "closed, closed", RESET_HERE),
    Case("close-after", [b"abcd", close], "abcd end, abcd end"),
    Case("reset-after", [b"abcd", reset], "abcd end, abcd end", RESET_HERE),
    Case("reset-large", [b"a" * 100_000, reset], "100000 end, 100000 end", RESET_HERE),
    Case("silent", [stall], "closed, closed", conf="proxy_timeout 400ms;"),
    Case("stall-after", [b"abcd", stall], "abcd end, abcd end", conf="proxy_timeout 400ms;"),
]


class Tcp:
    class Session:
        def __init__(self, wire, case):
            self.wire = wire

        async def request(self):
            return origins.Request((await self.wire.reader.readuntil(b"\n"))[:-1].decode())

        def good(self, request, case):
            return b"second" if isinstance(case, str) else b"clean"


class Streams:
    """The cases of `stream`, with the same parts as `Suite`."""

    protocol, ways = "stream", ("tcp", "second")

    def __init__(self, names=()):
        self.cases = [case for case in CASES if not names or any(name in f"stream/{case.name}" for name in names)]

    def ways_of(self, case):
        return list(self.ways)

    async def run(self, edge):
        self.origins = [(case, origins.Origin(case, Tcp)) for case in self.cases]
        for _, origin in self.origins:
            await origin.start()
        second, started = await origins.second(Tcp), time.monotonic()
        self.second, results = second.sockets[0].getsockname()[1], {}
        await edge.start([], self)
        try:
            for number, (case, origin) in enumerate(self.origins):
                results[case.name] = {}
                for at, way in enumerate(self.ways):
                    result = results[case.name][way] = Result()
                    path = f"/stream-{case.name}/{way}"
                    origin.play = play = Play(case, path, 0)
                    text = await self.ask(edge.stream_ports[number * 2 + at], path)
                    play.answered.set()
                    result.outcomes[text] = [0]
                    if edge.is_weir and text != case.expect.split(", ")[at]:
                        result.faults.append(f"{text}, expected {case.expect.split(', ')[at]}")
            if edge.is_weir:
                await self.count(edge, results)
            await edge.stop()
        finally:
            second.close()
            for _, origin in self.origins:
                origin.close()
        for number, case in enumerate(self.cases):
            for at, way in enumerate(self.ways):
                port = edge.stream_ports[number * 2 + at]
                found = [line for line in edge.text.splitlines() if f"server: 127.0.0.1:{port}" in line]
                result = results[case.name][way]
                words = sorted({re.sub(r".*?\d+#\d+: \*\d+ |, client:.*", "", line) for line in found if "[error]" in line or "[crit]" in line})
                result.lines["; ".join(words) or "nothing"] = [0]
                if edge.is_weir and bool(case.log) != any(re.search(shape(case.log or ""), line) for line in found if "[error]" in line or "[crit]" in line):
                    result.faults.append(f"expected in the log: {case.log}, but {words}")
        self.seconds = time.monotonic() - started
        return results

    async def ask(self, port, path):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        got = b""
        try:
            writer.write(path.encode() + b"\n")
            async with asyncio.timeout(client.PATIENCE):
                while got != b"second" and (some := await reader.read(65536)):
                    got += some
            end = "end"
        except ConnectionError:
            end = "reset"
        except TimeoutError:
            end = "hangs"
        writer.close()
        if got == b"second":
            return "second"
        if not got and end != "hangs":
            # An end or a reset: it depends on whether the edge had read the client's bytes.
            return "closed"
        return " ".join(filter(None, [got.decode() if len(got) < 20 else str(len(got)), end]))

    async def count(self, edge, results):
        """Each attempt that found no peer is a failed one."""
        for _ in range(30):
            groups = edge.snapshot()["stream"]["upstreams"]
            told = {name: sum(peer["fails"] for peer in group["peers"]) for name, group in groups.items()}
            wrong = [(case, name) for case in self.cases for name in (case.name, case.name + ".two")
                     if told.get(f"stream-{name}", 0) != (CONNECTING in (case.log or ""))]
            if not wrong:
                return
            await asyncio.sleep(0.2)
        for case, name in wrong:
            results[case.name]["tcp"].faults.append(f"failed attempts counted for {name}: {told.get('stream-' + name)}")

    def text(self, edge):
        """The block of nginx.conf."""
        edge.stream_ports = edge.ports(2 * len(self.origins))
        out = []
        for number, (case, origin) in enumerate(self.origins):
            address = case.at if case.at.startswith("unix:") else f"127.0.0.1:{origin.port}"
            for at, (name, more) in enumerate(((case.name, ""), (case.name + ".two", f"server 127.0.0.1:{self.second} max_fails=0 backup;"))):
                out.append(f"upstream stream-{name} {{ zone stream-{name} 64k; server {address} max_fails=0; {more} }}\n"
                           f"server {{ listen 127.0.0.1:{edge.stream_ports[number * 2 + at]}; proxy_pass stream-{name}; {case.conf} }}")
        return "stream {\n" + "\n".join(out) + "\n}"
