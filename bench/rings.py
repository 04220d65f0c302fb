#!/usr/bin/env python3
"""What io_uring would save: CPU of a proxied request of the floor's relays, interleaved, in an order thrown each round.

    python3 bench/rings.py [--rounds 7] [--seconds 2] [--only 2w-64-max] [--keep FILE]

    epoll      `floor relay`: a read and a write for each side, each as soon as it can be
    ring       `floor relay --ring multi`: io_uring with requests to receive that stay
    late       on epoll, but all writes of a turn come after its reads, as on io_uring (with --relays)
    single     `--ring single`: a request for each receipt (with --relays)

Rows: 1 and 2 workers, 64 and 256 connections, 8,000 and 20,000 requests a second and as many as go. `machine` is the busy time of both
CPUs for a request, whoever used it: interrupts, the client and the origin too. One worker has CPU 0 for itself, and client and
origin have CPU 1. Two workers need both CPUs of this machine, so client and origin share them: who saves CPU time there also runs
at other moments, and `max` tells of all three together. The kernel spreads connections over workers by their ports (SO_REUSEPORT).

--keep FILE adds this run's rounds to those that FILE has: on a shared machine many short runs are better than a long one."""

import argparse
import contextlib
import dataclasses
import json
import random
import sys
import tempfile
from pathlib import Path

import loads
import peers
import run
import stats

ORIGIN = "127.0.0.1:18600"
FIRST_PORT = 18601
RELAYS = {"epoll": (), "ring": ("--ring", "multi"), "late": ("--send", "late"), "single": ("--ring", "single")}
BASE = "epoll"
RATES = {"8000": 8_000, "20000": 20_000, "max": 0}
CONNECTIONS = (64, 256)
BOTH = (peers.PEER_CORE, peers.LOAD_CORE)


@dataclasses.dataclass(frozen=True)
class Row:
    """How many workers meet which load."""

    workers: int
    load: loads.Workload

    @property
    def name(self):
        return f"{self.workers}w-{self.load.name}"


def rows():
    """All of them, the ones with a worker first."""
    return [Row(workers, loads.Workload(f"{conns}-{name}", "", "rate" if rate else "wrk", conns=conns, rate=rate, shared=workers > 1))
            for workers in (1, 2) for conns in CONNECTIONS for name, rate in RATES.items()]


def main():
    args = arguments()
    chosen = run.pick(rows(), args.only, "row")
    run.build_floor()
    found = kept(args.keep)
    print(run.WAKES.format(**run.wakes()))
    with tempfile.TemporaryDirectory(prefix="weir-rings-") as work:
        for _ in range(args.rounds):
            with run.machine_lock():
                one_round(chosen, args.relays, args.seconds, work, found)
            if args.keep:
                Path(args.keep).write_text(json.dumps(found) + "\n")
    show(chosen, found)


def one_round(chosen, relays, seconds, work, found):
    """Every relay once in every row."""
    for row in chosen:
        number = 1 + max((int(n) for runs in found.get(row.name, {}).values() for n in runs), default=-1)
        for relay in random.sample(relays, len(relays)):
            best = stats.quietest(tries(row, relay, seconds, work), lambda one: one["foreign"], run.FOREIGN_SHARE)
            if best:
                found.setdefault(row.name, {}).setdefault(relay, {})[str(number)] = best


def tries(row, relay, seconds, work):
    """Runs with a fresh relay and a fresh origin each; those with errors are told and left out."""
    for _ in range(run.ATTEMPTS):
        try:
            yield once(row, relay, seconds, work)
        except peers.PeerFailed as failure:
            print(f"rejected: {row.name} {relay}: {failure}", file=sys.stderr)


def once(row, relay, seconds, work):
    listen = f"127.0.0.1:{FIRST_PORT + list(RELAYS).index(relay)}"
    argv = [str(peers.FLOOR), "relay", "--listen", listen, "--origin", ORIGIN, "--workers", str(row.workers), *RELAYS[relay]]
    cores, load_cores = (BOTH, BOTH) if row.load.shared else (peers.PEER_CORE, peers.LOAD_CORE)
    with contextlib.ExitStack() as stack:
        origin = stack.enter_context(peers.Running(
            "origin", [str(peers.FLOOR), "origin", "--listen", ORIGIN], load_cores, ORIGIN, Path(work) / "origin.log"))
        peer = stack.enter_context(peers.Running(relay, argv, cores, listen, Path(work) / f"{relay}.log"))
        return loads.run(row.load, peer, origin, seconds)


def show(chosen, found):
    """Medians with their ranges, and the medians of the ratios within rounds."""
    print("two workers share both CPUs with client and origin\n")
    print(f"{'':12}{'':8}{'CPU us':>8}{'min..max':>14}{'/ epoll':>24}{'machine us':>12}{'/ epoll':>24}{'user':>6}{'p50 ms':>8}{'p99 ms':>8}  runs")
    for row in chosen:
        for relay, runs in sorted(found.get(row.name, {}).items(), key=lambda one: list(RELAYS).index(one[0])):
            print(f"{row.name:12}{relay:8}{line(runs, found[row.name].get(BASE, {}))}")


def line(runs, base):
    median, low, high = stats.spread([one["value"] for one in runs.values()])
    machine = stats.spread([one["machine_us"] for one in runs.values()])[0]
    against = [run.ratio_text(stats.ratio(by(runs, key), by(base, key))) for key in ("value", "machine_us")]
    user = stats.spread([one["user_share"] for one in runs.values()])[0]
    late = "".join(f"{middle(runs, key):>8}" for key in ("p50_us", "p99_us"))
    disturbed = sum(one["foreign"] > run.FOREIGN_SHARE for one in runs.values())
    note = f" ({disturbed} disturbed)" if disturbed else ""
    return f"{median:8.1f}{f'{low:.1f}..{high:.1f}':>14}{against[0]:>24}{machine:12.1f}{against[1]:>24}{user:>6.0%}{late}  {len(runs)}{note}"


def by(runs, key):
    return {number: one[key] for number, one in runs.items()}


def middle(runs, key):
    """The median of a time in milliseconds, where the load tells one."""
    times = [one[key] for one in runs.values() if key in one]
    return f"{stats.spread(times)[0] / 1000:.2f}" if times else ""


def kept(name):
    return json.loads(Path(name).read_text()) if name and Path(name).exists() else {}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="0: only show what --keep has")
    parser.add_argument("--seconds", type=int, default=2, help="of each run")
    parser.add_argument("--only", type=lambda text: text.split(","), help="rows, by name: " + ", ".join(row.name for row in rows()))
    parser.add_argument("--keep", help="a file for every run as it came")
    parser.add_argument("--relays", type=lambda text: text.split(","), default=["epoll", "ring"], help="of " + ", ".join(RELAYS))
    return parser.parse_args()


if __name__ == "__main__":
    main()
