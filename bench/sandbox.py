#!/usr/bin/env python3
"""CPU of a proxied request in a server behind a keeper, and in one process that is not restricted.

    python3 bench/sandbox.py --weir target/dist/weir [--rounds 7] [--seconds 3] [--rates 2000,8000]

Both edges run the same file with one worker; the second one has `master_process off`, so no filter looks at its system calls and no rule
at its files. Each round loads both in random order with 64 connections and 1 KiB answers: at each rate, and as fast as it goes. CPU is user
and system time of the whole edge. Loopback only. Needs root: without it, weir has no other process."""

import argparse
import os
import random
import statistics
import subprocess
import tempfile
from pathlib import Path

import proc
from opening import Edge
from ports import free_port

CONNECTIONS = 64


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rates", default="2000,8000")
    chosen = parser.parse_args()
    weir, rates = os.path.abspath(chosen.weir), [*map(int, chosen.rates.split(",")), None]
    with tempfile.TemporaryDirectory(prefix="weir-sandbox-") as work:
        os.chmod(work, 0o755)
        port = free_port()
        origin = subprocess.Popen([weir, "origin", "--listen", f"127.0.0.1:{port}"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        proxied = f"""proxy_http_version 1.1; proxy_set_header Connection ""; upstream origin {{ server 127.0.0.1:{port}; keepalive 64; }}"""
        edges = {name: Edge(weir, Path(work), name, top, proxied, "location /1k { proxy_pass http://origin; }")
                 for name, top in [("apart", ""), ("alone", "master_process off;")]}
        found = {(name, rate): [] for name in edges for rate in rates}
        for number in range(chosen.rounds + 1):
            for rate in rates:
                for name in random.sample(list(edges), len(edges)):
                    cost = load(weir, edges[name], rate, chosen.seconds)
                    # The first round warms up.
                    if number:
                        found[name, rate].append(cost)
        print("| load | keeper and server, CPU µs/request | master_process off | ratio [least, most] |\n|---|---|---|---|")
        for rate in rates:
            one, other = (found[name, rate] for name in ("apart", "alone"))
            ratios = [first / second for first, second in zip(one, other)]
            print(f"| {f'{rate} a second' if rate else 'as fast as it goes'} | {statistics.median(one):.1f} | {statistics.median(other):.1f}"
                  f" | {statistics.median(ratios):.3f} [{min(ratios):.3f}, {max(ratios):.3f}] |")
        for edge in edges.values():
            edge.end()
        origin.terminate()
        origin.wait(20)


def load(weir, edge, rate, seconds):
    """CPU microseconds of a request."""
    command = [weir, "load", f"http://127.0.0.1:{edge.port}/1k", "-d", f"{seconds}s", "-c", str(CONNECTIONS), "-k"]
    before = (proc.cpu(edge.process.pid).total_ns, edge.requests())
    subprocess.run(command + (["-R", str(rate)] if rate else []), check=True, stdin=subprocess.DEVNULL, capture_output=True)
    after = (proc.cpu(edge.process.pid).total_ns, edge.requests())
    # The question itself is a request.
    return (after[0] - before[0]) / (after[1] - before[1] - 1) / 1000


if __name__ == "__main__":
    main()
