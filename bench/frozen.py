#!/usr/bin/env python3
"""Does a load generator tell the truth about a server that freezes?

The server answers in 1 ms and freezes for 2 s of every 10 s: what arrives then waits for the thaw. 500 requests a second
for 30 s, so the truth is known: a fifth of them waits uniformly between 0 and 2 s.

    python3 bench/frozen.py --quick target/release/examples/quick [--connections 64,1500]

Fails when mean, p95 or p99 of the response time is more than 3 % beside the truth.
"""
import argparse
import asyncio
import json
import multiprocessing
import subprocess
import sys
import time

RATE, SECONDS = 500, 30
PERIOD, FREEZE_AT, FREEZE = 10.0, 4.0, 2.0
TRUTH = {"mean": 201.4, "p50": 1.0, "p90": 1001.0, "p95": 1501.0, "p99": 1901.0, "max": 2001.0}
JUDGED, MARGIN = ("mean", "p95", "p99"), 0.03
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def thaw(since):
    """Seconds until a request that arrives `since` the start is taken up."""
    at = since % PERIOD
    return FREEZE_AT + FREEZE - at if FREEZE_AT <= at < FREEZE_AT + FREEZE else 0.0


class Server(asyncio.Protocol):
    begin = None
    waiting = 0
    peak = 0

    def connection_made(self, transport):
        self.transport = transport
        self.rest = b""

    def data_received(self, data):
        self.rest += data
        while b"\r\n\r\n" in self.rest:
            _, self.rest = self.rest.split(b"\r\n\r\n", 1)
            now = time.monotonic()
            # The clock of the freezes begins with the first request.
            Server.begin = Server.begin or now
            Server.waiting += 1
            Server.peak = max(Server.peak, Server.waiting)
            asyncio.get_running_loop().call_later(thaw(now - Server.begin) + 0.001, self.answer)

    def answer(self):
        Server.waiting -= 1
        self.transport.write(ANSWER)


def serve(pipe):
    async def main():
        server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=4096)
        pipe.send(server.sockets[0].getsockname()[1])
        await asyncio.to_thread(pipe.recv)
        pipe.send(Server.peak)

    asyncio.run(main())


def measure(command, connections):
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{ours.recv()}/"
    out = subprocess.run([*command, url, "-R", str(RATE), "-d", str(SECONDS), "-c", str(connections)],
                         capture_output=True, text=True, check=True).stdout
    ours.send("end")
    peak = ours.recv()
    server.terminate()
    return json.loads(out), peak


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", required=True)
    parser.add_argument("--connections", default="64,1500")
    args = parser.parse_args()
    keys = list(TRUTH)
    print("| tool | requests | late | dropped | server's peak | " + " | ".join(keys) + " | service p95 | lag p50 |")
    print("|---|" + "--:|" * (len(keys) + 6))
    print(f"| truth | {RATE * SECONDS} | | | 1000 | " + " | ".join(f"{TRUTH[key]:.1f}" for key in keys) + " | | |")
    passed = True
    for connections in args.connections.split(","):
        result, peak = measure([args.quick], connections)
        response = result["response"]
        passed &= all(abs(response[key] / TRUTH[key] - 1) <= MARGIN for key in JUDGED) and result["errors"] == 0
        print(f"| weir load -R {RATE} -c {connections} | {result['requests']} | {result['late']} | {result['dropped']} "
              f"| {peak} | " + " | ".join(f"{response[key]:.1f}" for key in keys)
              + f" | {result['service']['p95']:.1f} | {result['lag']['p50']:.2f} |")
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
