"""One side of a comparison, in a network and a mount of its own: the edge, its origins, the client. Run by pair.py.

It reads commands as pickles from standard input and writes answers as pickles: ("start", text), ("play", asks, streams), ("stop",).
"""
import asyncio
import contextlib
import os
import pickle
import re
import ssl
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

import canary as canaries  # noqa: E402
import edge as edges  # noqa: E402
import origin  # noqa: E402
import pools  # noqa: E402
import talk  # noqa: E402

# Seconds without news at the end of a case, and at most. Copies and refreshes go on after the answer, and may wait for the delayed acknowledgment of TCP.
SETTLE_S, SETTLE_LATE_S, SETTLE_MAX_S = 0.012, 0.09, 0.9
# An edge writes a file of a cache within this time after its answer.
WRITTEN_S = 0.004
LATE = re.compile(r"\b(?:mirror|post_action|\w+_background_update|slice) ")


class Side:
    def __init__(self, binary, room, has_canary):
        self.edge, self.desk = edges.Edge(binary, room), origin.Desk()
        self.canary = canaries.Canary(binary, self.edge.room) if has_canary else None
        self.quiet_s, self.has_cache = SETTLE_S, False
        self.secure = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.secure.load_cert_chain(f"{room}/cert.pem", f"{room}/key.pem")

    async def serve(self, take, give):
        await origin.start(self.desk, pools.PORTS, self.secure)
        loop = asyncio.get_running_loop()
        # Connections that the end of this process cuts are no news.
        loop.set_exception_handler(lambda *_: None)
        while True:
            command = await loop.run_in_executor(None, take)
            match command:
                case ("start", text):
                    self.quiet_s = SETTLE_LATE_S if LATE.search(text) else SETTLE_S
                    self.has_cache = "_cache_path " in text
                    give(await self.start(text))
                case ("play", asks, streams):
                    give(await self.play(asks, streams))
                    self.stop()
                case ("stop",):
                    self.stop()
                    give(None)
                case None:
                    return

    async def start(self, text):
        verdict = await self.edge.start(text)
        if verdict is None and self.canary and (verdict := await self.canary.begin(text)):
            self.stop()
        return verdict

    def stop(self):
        self.edge.stop()
        if self.canary:
            self.canary.stop()

    async def play(self, asks, streams):
        """Sends all requests in their order: everything that this side has to say of the case."""
        self.desk.clear()
        client, answers = talk.Client(self.desk), []
        for number, ask in enumerate(asks):
            if ask.pause:
                await asyncio.sleep(ask.pause)
            is_after_canary = self.canary is not None and number >= len(asks) // 2
            if is_after_canary and number == len(asks) // 2 and (problem := await self.canary.decide()):
                raise RuntimeError(problem)
            self.desk.begins(str(number))
            stored = await self.stored() if self.has_cache else []
            answers.append({**await client.ask(ask, str(number)), "pieces": self.desk.pieces, "stored": stored, "is_after_canary": is_after_canary})
        said = [await talk.stream(port) for port in streams]
        client.close()
        await self.settle()
        died = self.edge.has_died()
        seen = {}
        for number, record in self.desk.records:
            seen.setdefault(number, []).append(record)
        return {"answers": answers, "seen": seen, "log": self.edge.log(), "errors": self.edge.errors(), "files": self.edge.files(), "died": died, "streams": said}

    async def stored(self):
        """The answers that the caches keep, once their files are written."""
        before, now = None, self.edge.stored_answers()
        while now != before:
            await asyncio.sleep(WRITTEN_S)
            before, now = now, self.edge.stored_answers()
        return now

    async def settle(self):
        """Waits until no origin is at work and nothing new comes."""
        waited, count = 0, -1
        while waited < SETTLE_MAX_S and count != len(self.desk.records):
            count = len(self.desk.records)
            await asyncio.sleep(self.quiet_s)
            waited += self.quiet_s


def take():
    size = sys.stdin.buffer.read(4)
    return pickle.loads(sys.stdin.buffer.read(struct.unpack(">I", size)[0])) if len(size) == 4 else None


def main():
    binary, room, pair, *more = sys.argv[1:]
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    os.umask(0o022)
    files = {name: open(f"{pair}/{name}", "rb").read() for name in ("cert.pem", "key.pem")}
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512m,mode=755", "tmpfs", room], check=True)
    os.chdir(room)
    for name, data in files.items():
        with open(f"{room}/{name}", "wb") as file:
            file.write(data)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def give(answer):
        data = pickle.dumps(answer)
        out.write(struct.pack(">I", len(data)) + data)
        out.flush()
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        asyncio.run(Side(binary, room, more == ["canary"]).serve(take, give))


if __name__ == "__main__":
    main()
