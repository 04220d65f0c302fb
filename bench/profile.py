#!/usr/bin/env python3
"""The work that an instrumented weir is watched at: `cargo xtask profile` builds it, runs this, and keeps the profile.

    python3 bench/profile.py --weir target/profile/x86_64-unknown-linux-gnu/dist/weir

The workloads are those of `run.py`: plain and TLS, HTTP/1.1 and HTTP/2, small and large bodies, hits, many connections, and a
fixed rate, where the worker sleeps; and those of `http3.py`, which watch `weir load` too. It takes a minute, and prints no figure:
instrumented code is slow.
"""

import argparse
import dataclasses
import os
import tempfile
from pathlib import Path

import http3
import loads
import peers
import run

LISTEN, ORIGIN = "127.0.0.1:18111", "127.0.0.1:18110"
# Workloads and their seconds: the compiler weighs code by how often it ran.
WORK = {"1k-64": 8, "rate-2000": 5, "64k": 3, "1m": 2, "1k-256": 3, "hit-1k": 8, "hit-64k": 2, "tls-1k": 6, "h2-tls": 3}
WORK_HTTP3 = {"small": 3, "one": 3, "proxied": 3, "16k": 2, "1m": 2}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True, help="the instrumented binary")
    args = parser.parse_args()
    peer = watched(args.weir)
    run.build_floor()
    with tempfile.TemporaryDirectory(prefix="weir-profile-") as work, peers.start_origin(ORIGIN, work) as origin:
        os.chmod(work, 0o755)
        for name, seconds in WORK.items():
            load = loads.named(name)
            with peers.start(peer, LISTEN, ORIGIN, work, load.cached, load.secure, load.kind == "h2") as running:
                loads.run(load, running, origin, seconds)
            print(name, flush=True)
    over_http3(args)


def over_http3(args):
    side = http3.Side("weir", args.weir, True, "--http3", more=peers.ALONE)
    with tempfile.TemporaryDirectory(prefix="weir-profile-") as work, peers.start_origin(http3.ORIGIN, work):
        os.chmod(work, 0o755)
        for row in http3.ROWS:
            if row.name in WORK_HTTP3:
                with http3.started(side, Path(work)):
                    http3.load(row, side, args, ["-d", f"{WORK_HTTP3[row.name]}s"])
                print(f"{row.name} over HTTP/3", flush=True)


def watched(weir):
    """weir in one process: it writes its profile at its end, and the keeper's restrictions of its server forbid that."""
    peer = next(peer for peer in peers.all_peers(weir, None) if peer.name == "weir")
    return dataclasses.replace(peer, argv=peer.argv + peers.ALONE, cache=(peer.cache[0], peer.cache[1] + peers.ALONE))


if __name__ == "__main__":
    main()
