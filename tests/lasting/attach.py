"""The load of a scenario for an edge that somebody else has started: `attach.py` begins, and ends when /tmp/load.on is gone.

It prints the reasons of losses, and last `lost N of M requests, …`. The edge has the server of tests/evening2/lasting.conf: nginx before 1.25.1 has
ports of their own for HTTP/2, and perhaps no `stream`.
"""

import asyncio
import os
import sys
from collections import Counter
from pathlib import Path

from load import Load

ORIGIN = (18101, 18102, 18103)
HTTP1, HTTP2 = 18110, 18111
# A client that waits on in vain ends here.
SECONDS_MAX = 300


class Edge:
    """The address of an edge."""

    def __init__(self, port):
        self.port, self.heads = port, Counter()


async def main():
    origin = await asyncio.create_subprocess_exec(sys.executable, Path(__file__).parent / "origin.py", *map(str, ORIGIN), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    await origin.stdout.readline()
    loads = [Load(Edge(HTTP1), ORIGIN[0], {"kept": 6, "fresh": 3, "upload": 1, "cached": 1, "socket": 4}),
             Load(Edge(HTTP2), ORIGIN[0], {"http2": 2, "fresh2": 1, "call": 2})]
    for load in loads:
        load.begin()
    for _ in range(SECONDS_MAX * 10):
        if not os.path.exists("/tmp/load.on"):
            break
        await asyncio.sleep(0.1)
    for load in loads:
        await load.end()
    tallies = [load.tally for load in loads]
    lost = [reason for tally in tallies for reason in tally.lost + tally.sockets + tally.calls]
    print("\n".join(lost))
    print(f"lost {len(lost)} of {sum(tally.requests for tally in tallies)} requests, {sum(tally.frames for tally in tallies)} frames of WebSockets and"
          f" {sum(tally.messages for tally in tallies)} messages of gRPC; {sum(tally.reopened for tally in tallies)} reopened")
    origin.kill()


if __name__ == "__main__":
    asyncio.run(main())
