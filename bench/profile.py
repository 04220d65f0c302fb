#!/usr/bin/env python3
"""The work that an instrumented weir is watched at: `cargo xtask profile` builds it, runs this, and keeps the profile.

    python3 bench/profile.py --weir target/profile/x86_64-unknown-linux-gnu/dist/weir

Each workload is one that `run.py` measures: plain and TLS, HTTP/1.1 and HTTP/2, small and large bodies, hits, many
connections, and a fixed rate, where the worker sleeps. It takes a minute, and prints no figure: instrumented code is slow.
"""

import argparse
import dataclasses
import os
import shutil
import subprocess
import sys
import tempfile

import loads
import peers

LISTEN, ORIGIN = "127.0.0.1:18111", "127.0.0.1:18110"


def wrk(path, seconds, conns=64, scheme="http"):
    return ["wrk", "-t1", f"-c{conns}", f"-d{seconds}", f"{scheme}://{LISTEN}{path}"]


FIXED = [str(loads.FLOOR), "load", "--target", LISTEN, "--path", "/1k", "--rate", "4000", "--conns", "64", "--seconds", "5"]
STREAMS = ["h2load", "-c16", "-m32", "-n60000", f"https://{LISTEN}/1k"]

# What weir serves, and the loads on it.
WORK = [
    ({}, [wrk("/1k", 8), FIXED, wrk("/64k", 3), wrk("/1m", 2), wrk("/1k", 3, conns=256)]),
    ({"cached": True}, [wrk("/1k", 8), wrk("/64k", 2)]),
    ({"secure": True}, [wrk("/1k", 6, scheme="https")]),
    ({"secure": True, "http2": True}, [STREAMS]),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True, help="the instrumented binary")
    weir = parser.parse_args().weir
    for tool in ("wrk", "h2load"):
        if not shutil.which(tool):
            sys.exit(f"{tool} is needed: apt install {'nghttp2-client' if tool == 'h2load' else tool}")
    if not loads.FLOOR.exists():
        sys.exit(f"{loads.FLOOR} is needed: cargo build --release --manifest-path bench/floor/Cargo.toml")
    with tempfile.TemporaryDirectory(prefix="weir-profile-") as work, peers.start_origin(ORIGIN, work):
        os.chmod(work, 0o755)
        for served, loaded in WORK:
            with peers.start(watched(weir), LISTEN, ORIGIN, work, **served):
                for argv in loaded:
                    load(argv)


def watched(weir):
    """weir in one process: it writes its profile at its end, and the keeper's restrictions of its server forbid that."""
    peer = next(peer for peer in peers.all_peers(weir, None) if peer.name == "weir")
    alone = ("-g", "master_process off;")
    return dataclasses.replace(peer, argv=peer.argv + alone, cache=(peer.cache[0], peer.cache[1] + alone))


def load(argv):
    done = subprocess.run(["taskset", "-c", str(peers.LOAD_CORE), *argv], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(argv)}: {done.stdout}{done.stderr}")
    print(" ".join(argv), flush=True)


if __name__ == "__main__":
    main()
