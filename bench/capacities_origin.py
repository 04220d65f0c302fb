"""An application with a known ceiling: `capacities_origin.py KIND PORT`. The kinds and their ceilings are in `capacities.py`."""

import asyncio
import random
import sys
import time

KIND, PORT = sys.argv[1], int(sys.argv[2])


class Places:
    """So many requests at once, each for a time."""

    def __init__(self, count: int, seconds: float, is_random: bool = False):
        self.places, self.seconds, self.is_random = asyncio.Semaphore(count), seconds, is_random

    async def serve(self) -> None:
        async with self.places:
            await asyncio.sleep(random.expovariate(1 / self.seconds) if self.is_random else self.seconds)


class Batches:
    """Each 100 ms, ten of the requests that wait are answered."""

    def __init__(self):
        self.waiting: asyncio.Queue = asyncio.Queue()
        asyncio.get_running_loop().create_task(self.run())

    async def run(self) -> None:
        begin = time.monotonic()
        for turn in range(1, 10**9):
            await asyncio.sleep(max(0.0, begin + turn * 0.1 - time.monotonic()))
            for _ in range(10):
                if not self.waiting.empty():
                    self.waiting.get_nowait().set_result(None)

    async def serve(self) -> None:
        done = asyncio.get_running_loop().create_future()
        self.waiting.put_nowait(done)
        await done


class Bucket:
    """A link of so many requests a second, which serves one after another."""

    def __init__(self, rate: float):
        self.rate, self.free_at = rate, 0.0

    async def serve(self) -> None:
        now = time.monotonic()
        self.free_at = max(self.free_at, now) + 1 / self.rate
        await asyncio.sleep(self.free_at - now)


class Work:
    """So much CPU time for each request, in one thread."""

    def __init__(self, seconds: float):
        self.seconds = seconds

    async def serve(self) -> None:
        until = time.thread_time() + self.seconds
        while time.thread_time() < until:
            pass


class Stages:
    """One after another."""

    def __init__(self, *stages):
        self.stages = stages

    async def serve(self) -> None:
        for stage in self.stages:
            await stage.serve()


def service():
    return {
        "places": lambda: Places(20, 0.2),
        "short-places": lambda: Places(5, 0.05),
        "random-places": lambda: Places(10, 0.1, is_random=True),
        "slow": lambda: Places(150, 2.0),
        "one-second": lambda: Places(60, 1.0),
        "pool": lambda: Stages(Places(1000, 0.02), Places(6, 0.04)),
        "two-stages": lambda: Stages(Places(4, 0.02), Places(9, 0.1)),
        "batch": Batches,
        "link": lambda: Bucket(80),
        "cpu": lambda: Work(0.02),
        "policy": lambda: Places(1000, 0.005),
        "connections": lambda: Places(1000, 0.25),
    }[KIND]()


async def main() -> None:
    own = service()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                await own.serve()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "0.0.0.0", PORT, backlog=1024)
    await server.serve_forever()


asyncio.run(main())
