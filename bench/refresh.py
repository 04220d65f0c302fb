#!/usr/bin/env python3
"""How long a hit takes while others' answers are fetched anew: weir beside nginx, with refreshes and without.

    python3 bench/refresh.py --weir target/dist/weir [--rate 8000] [--keys 200] [--delay 50] [--rounds 3] [--seconds 6]

`floor load` asks for `--keys` answers in turns at a fixed rate over 64 connections; the origin takes `--delay` ms for each.
With `refresh` an answer lives for a second and is then given stale while it is fetched (`conf/refresh.conf`, the same file
for both), so about `--keys` fetches a second go on behind the clients' backs; with `steady` it lives for an hour. Latency
counts from the instant a request was due. `fetches` is what the origin was asked, per second and key: more than 1 would be a
stampede. Peer on core 0, generator and origin on core 1, runs interleaved; each figure is the median of the rounds.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import tempfile
import threading
import urllib.request
from pathlib import Path

import peers
import proc

CONNECTIONS = 64
BODY = b"x" * 1024
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
FIGURES = ("p50_us", "p99_us", "p999_us", "max_us")


class Origin(threading.Thread):
    """Answers after a while, and counts; light enough to share the generator's core at some hundreds a second."""

    def __init__(self, delay):
        super().__init__(daemon=True)
        self.delay, self.fetches, self.ready = delay, 0, threading.Event()

    def run(self):
        os.sched_setaffinity(threading.get_native_id(), {peers.LOAD_CORE})
        asyncio.run(self.serve())

    async def serve(self):
        server = await asyncio.start_server(self.client, "127.0.0.1", 0)
        self.address = "127.0.0.1:%d" % server.sockets[0].getsockname()[1]
        self.ready.set()
        await server.serve_forever()

    async def client(self, reader, writer):
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self.fetches += 1
                await asyncio.sleep(self.delay)
                writer.write(ANSWER)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def main():
    args = arguments()
    origin = Origin(args.delay / 1000)
    origin.start()
    origin.ready.wait()
    found = {peer.name: peer for peer in peers.all_peers(args.weir, None) if peer.name in ("nginx", "weir")}
    cases = [(name, life) for name in found for life in ("steady", "refresh")]
    runs = {case: [] for case in cases}
    with tempfile.TemporaryDirectory(prefix="weir-refresh-") as work:
        os.chmod(work, 0o755)
        for number in range(args.rounds):
            for case in random.sample(cases, len(cases)):
                runs[case].append(run(found[case[0]], case[1], args, origin, Path(work) / f"{number}-{'-'.join(case)}"))
    print(f"{args.rate} hits/s on {args.keys} keys, {CONNECTIONS} connections, origin {args.delay} ms; "
          f"medians of {args.rounds} runs of {args.seconds} s")
    print(f"{'':16}{'p50 ms':>9}{'p99 ms':>9}{'p99.9 ms':>9}{'max ms':>9}{'CPU us':>9}{'fetches':>9}{'left late, p99.9 ms':>21}")
    for (name, life), results in runs.items():
        middle = {key: statistics.median(result[key] for result in results) for key in results[0]}
        times = "".join(f"{middle[key] / 1000:9.2f}" for key in FIGURES)
        print(f"{name + ' ' + life:16}{times}{middle['cpu_us']:9.1f}{middle['fetches']:9.2f}{middle['lag_p999_us'] / 1000:21.2f}")


def run(peer, life, args, origin, prefix):
    (prefix / "logs").mkdir(parents=True)
    listen = f"127.0.0.1:{args.port}"
    conf = prefix / "refresh.conf"
    text = (peers.HERE / "conf" / "refresh.conf").read_text().replace("@life@", "1h" if life == "steady" else "1s")
    conf.write_text(text.replace("@listen@", listen).replace("@origin@", origin.address))
    argv = [part.format(program=peer.program, conf=conf, prefix=f"{prefix}/") for part in peer.argv]
    with peers.Running(peer.name, argv, peers.PEER_CORE, listen, prefix / "output.log") as running:
        fill(listen, args.keys)
        fetches, cpu = origin.fetches, proc.cpu(running.pid)
        done = subprocess.run(
            ["taskset", "-c", str(peers.LOAD_CORE), str(peers.FLOOR), "load", "--target", listen, "--path", "/1k?key=",
             "--spread", str(args.keys), "--rate", str(args.rate), "--conns", str(CONNECTIONS), "--seconds", str(args.seconds)],
            capture_output=True, text=True, timeout=args.seconds + 15)
        if done.returncode:
            raise peers.PeerFailed(f"{peer.name}: {done.stderr}")
        said = json.loads(done.stdout)
        if said["errors"] or not said["requests"]:
            raise peers.PeerFailed(f"{peer.name}: {said['errors']} errors in {said['requests']} requests")
        said["cpu_us"] = proc.cpu(running.pid).since(cpu).total_ns / 1000 / said["requests"]
        said["fetches"] = (origin.fetches - fetches) / args.seconds / args.keys
        return said


def fill(listen, keys):
    """Every key once, several at a time: the origin is slow."""
    def some(first):
        for key in range(first, keys, 16):
            urllib.request.urlopen(f"http://{listen}/1k?key={key}", timeout=15).read()
    threads = [threading.Thread(target=some, args=(first,)) for first in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", help="the binary; left out without it")
    parser.add_argument("--rate", type=int, default=8000, help="hits a second")
    parser.add_argument("--keys", type=int, default=200)
    parser.add_argument("--delay", type=int, default=50, help="of the origin, in ms")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=6)
    parser.add_argument("--port", type=int, default=18020)
    return parser.parse_args()


if __name__ == "__main__":
    main()
