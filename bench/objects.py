#!/usr/bin/env python3
"""What an object of 1 KiB costs in a cache that holds very many, and how long hits among them take: weir, nginx, Varnish.

    python3 bench/objects.py --weir target/dist/weir [--keys 200000] [--rate 8000]

Every key is asked for (a miss), then some of them `--rate` times a second for ten seconds, in turns (hits). `bytes each` is what the
process holds more than before, its files in memory (nginx keeps bodies there: the cache lies on a tmpfs) counted apart as
`files each`. Latency counts from the instant a request was due, so a stall of the cache shows in `max`. Peer on core 0,
generator and origin on core 1. weir keeps all in memory (`memory=`), as Varnish does.
"""

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path

import peers
import proc

CONNECTIONS = 64
# Keys are asked for in parts of this many, each until it was asked for whole.
PART = 20_000
FILL_RATE = 8_000
SECONDS = 10
VARNISH = ("{program}", "-F", "-a", "{listen}", "-b", "{origin}", "-n", "{prefix}varnish", "-s", "malloc,12g", "-t", "3600")


def main():
    args = arguments()
    chosen = [peer for peer in peers.all_peers(args.weir, None) if peer.name in ("nginx", "varnish", "weir")]
    print(f"{args.keys} objects of 1 KiB, hits at {args.rate}/s on {CONNECTIONS} connections")
    print(f"{'':10}{'bytes each':>12}{'files each':>12}{'p50 ms':>9}{'p99 ms':>9}{'p99.9 ms':>10}{'max ms':>9}{'CPU us':>9}{'hits':>8}")
    # Files of the cache belong into memory, as their peers' objects do.
    with tempfile.TemporaryDirectory(prefix="weir-objects-", dir="/dev/shm") as work:
        os.chmod(work, 0o755)
        with peers.start_origin(f"127.0.0.1:{args.port + 1}", work) as origin:
            for peer in chosen:
                print(line(peer.name, run(peer, args, origin, Path(work) / peer.name)), flush=True)


def line(name, found):
    times = [found[key] / 1000 for key in ("p50_us", "p99_us", "p999_us", "max_us")]
    return (f"{name:10}{found['each']:12.0f}{found['files']:12.0f}{times[0]:9.2f}{times[1]:9.2f}{times[2]:10.2f}"
            f"{times[3]:9.2f}{found['cpu_us']:9.1f}{found['hits']:8.1%}")


def run(peer, args, origin, prefix):
    (prefix / "logs").mkdir(parents=True)
    listen, conf = f"127.0.0.1:{args.port}", prefix / "objects.conf"
    text = (peers.HERE / "conf" / "objects.conf").read_text().replace("@memory@", " memory=8g" if peer.name == "weir" else "")
    conf.write_text(text.replace("@listen@", listen).replace("@origin@", origin.listen))
    words = VARNISH if peer.name == "varnish" else peer.argv
    argv = [part.format(program=peer.program, conf=conf, prefix=f"{prefix}/", listen=listen, origin=origin.listen) for part in words]
    with peers.Running(peer.name, argv, peers.PEER_CORE, listen, prefix / "output.log") as running:
        load(listen, "warm", 1000, 1)  # what a process takes once
        before = proc.rss_kib(running.pid)
        for part in range(args.keys // PART):
            while load(listen, part, FILL_RATE, 3)["requests"] < PART:
                pass
        each = (proc.rss_kib(running.pid) - before) * 1024 / args.keys
        asked, cpu = reads(origin.pid), proc.cpu(running.pid)
        said = load(listen, 0, args.rate, SECONDS)
        used = proc.cpu(running.pid).since(cpu).total_ns / 1000 / said["requests"]
        hits = 1 - (reads(origin.pid) - asked) / said["requests"]
        files = subprocess.run(["du", "-s", "--block-size=1", prefix / "cache"], capture_output=True, text=True).stdout.split()
        return said | {"each": each, "cpu_us": used, "hits": hits, "files": int(files[0]) / args.keys if files else 0}


def reads(pid):
    """Calls to read, of which the origin makes at least one a request."""
    fields = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(fields["syscr"])


def load(listen, part, rate, seconds):
    done = subprocess.run(
        ["taskset", "-c", str(peers.LOAD_CORE), str(peers.FLOOR), "load", "--target", listen, "--path", f"/1k?{part}-", "--spread",
         str(PART), "--rate", str(rate), "--conns", str(CONNECTIONS), "--seconds", str(int(seconds))],
        capture_output=True, text=True, timeout=seconds + 30)
    if done.returncode:
        raise peers.PeerFailed(done.stderr)
    return json.loads(done.stdout)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", help="the binary; left out without it")
    parser.add_argument("--keys", type=int, default=200_000)
    parser.add_argument("--rate", type=int, default=8000, help="hits a second")
    parser.add_argument("--port", type=int, default=18040)
    return parser.parse_args()


if __name__ == "__main__":
    main()
