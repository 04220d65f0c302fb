#!/usr/bin/env python3
"""The CPU of a request with a body to an address and to a group: weir beside nginx.

    python3 bench/posts.py --weir target/dist/weir [--nginx BIN] [--rate 2000] [--body 1024] [--rounds 5] [--seconds 4]

weir keeps the connection after such a request only if an `upstream` block vouches for the origin (docs/security.md): to an address,
each POST has a connection of its own. The rows with GET show what kept connections cost. `floor load` asks at a fixed rate over 64
connections. Peer on core 0, generator and origin (nginx) on core 1, runs interleaved; each figure is the median of the rounds.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import tempfile
from pathlib import Path

import peers
import proc
from ports import free_ports

CONNECTIONS = 64


def main():
    args = arguments()
    found = {peer.name: peer for peer in peers.all_peers(args.weir, None, args.nginx) if peer.name in ("nginx", "weir")}
    cases = [(name, method, to) for name in found for method in ("GET", "POST") for to in ("group", "address")]
    runs = {case: [] for case in cases}
    with tempfile.TemporaryDirectory(prefix="weir-posts-") as work:
        os.chmod(work, 0o755)
        origin, listen = (f"127.0.0.1:{port}" for port in free_ports(2))
        with peers.start_other_origin("h1", origin, work, args.weir):
            for number in range(args.rounds):
                for case in random.sample(cases, len(cases)):
                    runs[case].append(run(found[case[0]], case, args, listen, origin, Path(work) / f"{number}-{'-'.join(case)}"))
    print(f"{args.rate} requests/s over {CONNECTIONS} connections, bodies of {args.body} bytes; medians of {args.rounds} runs of {args.seconds} s")
    print(f"{'':8}{'':6}{'to':10}{'CPU us/request':>16}{'p99 ms':>9}")
    for (name, method, to), results in runs.items():
        cpu, p99 = (statistics.median(result[key] for result in results) for key in ("cpu_us", "p99_us"))
        print(f"{name:8}{method:6}{to:10}{cpu:16.1f}{p99 / 1000:9.2f}")


def run(peer, case, args, listen, origin, prefix):
    _, method, to = case
    (prefix / "logs").mkdir(parents=True)
    conf = prefix / "posts.conf"
    conf.write_text((peers.HERE / "conf" / "posts.conf").read_text().replace("@listen@", listen).replace("@origin@", origin))
    argv = [part.format(program=peer.program, conf=conf, prefix=f"{prefix}/") for part in peer.argv]
    with peers.Running(peer.name, argv, peers.PEER_CORE, listen, prefix / "output.log") as running:
        ask = ["taskset", "-c", str(peers.LOAD_CORE), str(peers.FLOOR), "load", "--target", listen, "--path", f"/{to}",
               "--rate", str(args.rate), "--conns", str(CONNECTIONS)]
        if method == "POST":
            ask += ["--body", str(args.body)]
        # The first second touches memory and opens connections.
        loaded(peer, [*ask, "--seconds", "1"], 1)
        cpu = proc.cpu(running.pid)
        said = loaded(peer, [*ask, "--seconds", str(args.seconds)], args.seconds)
        said["cpu_us"] = proc.cpu(running.pid).since(cpu).total_ns / 1000 / said["requests"]
        return said


def loaded(peer, ask, seconds):
    done = subprocess.run(ask, capture_output=True, text=True, timeout=seconds + 15)
    if done.returncode:
        raise peers.PeerFailed(f"{peer.name}: {done.stderr}")
    said = json.loads(done.stdout)
    if said["errors"] or not said["requests"]:
        raise peers.PeerFailed(f"{peer.name}: {said['errors']} errors in {said['requests']} requests")
    return said


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", help="the binary; left out without it")
    parser.add_argument("--nginx", help="the binary; the one in PATH without it")
    parser.add_argument("--rate", type=int, default=2000, help="requests a second")
    parser.add_argument("--body", type=int, default=1024, help="bytes of a POST")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    return parser.parse_args()


if __name__ == "__main__":
    main()
