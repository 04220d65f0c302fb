#!/usr/bin/env python3
"""What it costs to be watched: CPU per proxied exchange of one weir, interleaved, in an order thrown each round.

    python3 bench/watched.py --weir target/dist/weir [--rounds 12] [--seconds 3] [--instructions]
    python3 bench/watched.py --weir target/dist/weir --turns 50 [--seconds 3]
    python3 bench/watched.py --weir target/dist/weir --tick 20

    off        `dashboard off`, and nobody asks
    on         a dashboard is there, and nobody looks
    watched    a viewer of its feed, and a poll of the whole API each second

CPU is that of the whole process, the observer's thread among it. With --instructions each runs under callgrind too: what
the worker executes for an exchange, and what the observer does in a second, apart. At callgrind's pace a second has few
exchanges, so adding the two up would say more of callgrind than of weir.

With --turns one process stays under one load all the while, and viewers come and go: of each turn two windows are watched
and two are not, the outer ones alike. What differs between starts is the same in both, so this tells smaller differences.

With --tick one idle process has a dashboard, and nobody looks. The script measures the observer's thread for so many seconds:
its CPU time, and then its system calls under strace.
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import instructions
import loads
import peers
import proc
import stats

MODES = {
    "off": ("dashboard off;", "location /weir/ { return 204; }"),    # the same places to look for a request
    "on": ("dashboard off;", "location /weir/ { dashboard; }"),
    "watched": ("dashboard off;", "location /weir/ { dashboard; }"),
}
ORIGIN = "127.0.0.1:18400"
LISTEN = "127.0.0.1:18401"
WORKLOAD = loads.named("1k-64")
FOREIGN_SHARE = 0.10
ATTEMPTS = 3
WARM, SETTLE = 5, 1.2       # seconds before all windows, and before each
SECONDS = (2, 8)            # of a short and of a long run under callgrind


def main():
    args = arguments()
    if args.turns:
        return turns(args)
    if args.tick:
        return tick(args)
    with tempfile.TemporaryDirectory(prefix="weir-watched-") as work, peers.start_origin(ORIGIN, work) as origin:
        values, observed, disturbed = {mode: {} for mode in MODES}, {mode: [] for mode in MODES}, 0
        for number in range(args.rounds):
            for mode in random.sample(list(MODES), len(MODES)):
                run = quiet(mode, args, Path(work), origin)
                values[mode][number] = run["value"]
                observed[mode].append(run["observer"])
                disturbed += run["foreign"] > FOREIGN_SHARE
        print(f"{WORKLOAD.title}, {args.rounds} rounds of {args.seconds} s: {WORKLOAD.unit}"
              f" ({disturbed} of {args.rounds * len(MODES)} runs disturbed)")
        for mode in MODES:
            median, low, high = stats.spread(values[mode].values())
            ratio = stats.ratio(values[mode], values["off"])
            print(f"  {mode:8} {median:7.2f}  {low:.2f}..{high:.2f}  / off {ratio.median:.3f} [{ratio.low:.3f} {ratio.high:.3f}]"
                  f"  observer {stats.spread(observed[mode])[0]:.3%} of a core")
        if args.instructions:
            print("user instructions, under callgrind:")
            for mode in MODES:
                exchange, second = counted(mode, args, Path(work))
                print(f"  {mode:8} {exchange:7.0f} an exchange on its worker; {second / 1e6:.2f} million a second elsewhere")


def turns(args):
    """One process, watched and not watched, turn about."""
    os.sched_setaffinity(0, {peers.LOAD_CORE})      # who views and who polls are no part of the edge
    seconds = WARM + args.turns * 4 * (args.seconds + SETTLE)
    load = ["wrk", "-t1", f"-c{WORKLOAD.conns}", f"-d{int(2 * seconds)}s", f"http://{LISTEN}{WORKLOAD.path}"]
    values, disturbed = {"on": {}, "watched": {}}, 0
    with tempfile.TemporaryDirectory(prefix="weir-watched-") as work, peers.start_origin(ORIGIN, work), \
            started("on", args.weir, Path(work)) as peer, peers.Running("wrk", load, peers.LOAD_CORE, LISTEN, f"{work}/wrk"):
        time.sleep(WARM)
        for turn in range(args.turns):
            outer, inner = random.sample(list(values), 2)
            windows = [window(mode, args.seconds, peer) for mode in (outer, inner, inner, outer)]
            disturbed += any(foreign > FOREIGN_SHARE for _, foreign in windows)
            for mode, pair in ((outer, (0, 3)), (inner, (1, 2))):
                values[mode][turn] = sum(windows[place][0] for place in pair) / 2
    ratio = stats.ratio(values["watched"], values["on"])
    print(f"{WORKLOAD.title}, one process, {args.turns} turns of 4 windows of {args.seconds} s: {WORKLOAD.unit}"
          f" ({disturbed} turns disturbed)")
    for mode, of in values.items():
        median, low, high = stats.spread(of.values())
        print(f"  {mode:8} {median:7.2f}  {low:.2f}..{high:.2f}")
    print(f"  watched / on {ratio.median:.4f} [{ratio.low:.4f} {ratio.high:.4f}]")


def window(mode, seconds, peer):
    """CPU of an exchange in microseconds, and the share of the edge's core that somebody else had."""
    with Watching(mode):
        time.sleep(SETTLE)
        before, cpu, core, begun = exchanges(), proc.cpu(peer.pid), proc.core_busy_ns(peers.PEER_CORE), time.monotonic_ns()
        time.sleep(seconds)
        used, done = proc.cpu(peer.pid).since(cpu).total_ns, exchanges() - before
        others = proc.core_busy_ns(peers.PEER_CORE) - core - used
    return used / 1000 / done, others / (time.monotonic_ns() - begun)


def exchanges():
    with urllib.request.urlopen(f"http://{LISTEN}/api/9/http/requests", timeout=60) as answer:
        return json.load(answer)["total"]


def quiet(mode, args, work, origin):
    """The least disturbed of a few runs."""
    def one():
        with started(mode, args.weir, work) as peer, Watching(mode):
            before, begun = observer_ns(peer.pid), time.monotonic_ns()
            run = loads.run(WORKLOAD, peer, origin, args.seconds)
            run["observer"] = (observer_ns(peer.pid) - before) / (time.monotonic_ns() - begun)
        return run
    return stats.quietest((one() for _ in range(ATTEMPTS)), lambda run: run["foreign"], FOREIGN_SHARE)


def tick(args):
    """What the observer's thread does in a second of an idle process: CPU time, then system calls."""
    if not shutil.which("strace"):
        sys.exit("strace is needed: apt install strace")
    with tempfile.TemporaryDirectory(prefix="weir-watched-") as work, started("on", args.weir, Path(work)) as peer:
        time.sleep(WARM)
        before = observer_ns(peer.pid)
        time.sleep(args.tick)
        used = (observer_ns(peer.pid) - before) / args.tick
        trace = ["strace", "-qq", "-c", "-U", "calls,name", "-p", observer(peer.pid).name]
        ended = subprocess.run(["timeout", "--signal=INT", str(args.tick), *trace], capture_output=True, text=True)
    rows = [(int(count), name) for count, name in re.findall(r"^ *(\d+) (\w+)$", ended.stderr, re.MULTILINE) if name != "total"]
    if not rows:
        sys.exit(f"strace counted nothing: {ended.stderr}")
    print(f"observer, idle, {args.tick} s: {used / 1e6:.3f} ms of CPU and {sum(count for count, _ in rows) / args.tick:.0f}"
          " system calls a second")
    for count, name in rows:
        print(f"  {count / args.tick:7.1f} {name}")


def observer_ns(pid):
    """What the observer's thread has used so far; nothing before its start. It runs in every mode: weir needs its figures itself."""
    task = observer(pid)
    return int((task / "schedstat").read_text().split()[0]) if task else 0


def observer(root):
    """The observer's thread in /proc, or nothing. A weir that starts as root serves in another process."""
    tasks = (task for pid in proc.tree(root) for task in Path(f"/proc/{pid}/task").iterdir())
    return next((task for task in tasks if (task / "comm").read_text().strip() == "observer"), None)


def started(mode, weir, work, under=()):
    prefix = work / mode
    shutil.rmtree(prefix, ignore_errors=True)
    (prefix / "logs").mkdir(parents=True)
    top, dashboard = MODES[mode]
    text = (peers.HERE / "conf" / "watched.conf").read_text()
    for place, words in (("@top@", top), ("@dashboard@", dashboard), ("@listen@", LISTEN), ("@origin@", ORIGIN)):
        text = text.replace(place, words)
    (prefix / "peer.conf").write_text(text)
    # The keeper's restrictions of its server refuse valgrind's own system calls.
    alone = peers.ALONE if under else ()
    argv = [*under, weir, "edge", "-c", str(prefix / "peer.conf"), "-p", f"{prefix}/", *alone]
    return peers.Running(mode, argv, peers.PEER_CORE, LISTEN, prefix / "output.log")


class Watching:
    """A viewer and somebody who polls, while the `with` block lasts; for modes without, nothing."""

    def __init__(self, mode):
        self.is_on, self.threads, self.events, self.polls = mode == "watched", [], 0, 0

    def __enter__(self):
        if self.is_on:
            self.threads = [threading.Thread(target=work, daemon=True) for work in (self.view, self.poll)]
            for thread in self.threads:
                thread.start()
            time.sleep(1.2)         # the first second is the whole document
        return self

    def __exit__(self, *failed):
        watched, self.is_on = self.is_on, False
        for thread in self.threads:
            thread.join(10)
        if watched and not failed[0] and not (self.events and self.polls):
            raise peers.PeerFailed(f"nobody watched: {self.events} events, {self.polls} polls")

    def view(self):
        with urllib.request.urlopen(f"http://{LISTEN}/weir/feed", timeout=60) as feed:
            for line in feed:
                self.events += line.startswith(b"data:")
                if not self.is_on:
                    return

    def poll(self):
        while self.is_on:
            with urllib.request.urlopen(f"http://{LISTEN}/api/weir", timeout=60) as answer:
                json.load(answer)
            self.polls += 1
            time.sleep(1)


def counted(mode, args, work):
    """Instructions of an exchange on its worker, and of a second on all other threads."""
    runs = [threads(mode, args, work, seconds) for seconds in SECONDS]
    (short, few), (long, many) = runs
    per_thread = sorted((long.get(thread, 0) - short.get(thread, 0) for thread in long), reverse=True)
    return per_thread[0] / (many - few), sum(per_thread[1:]) / (SECONDS[1] - SECONDS[0])


def threads(mode, args, work, seconds):
    """What each thread executed, and the requests answered."""
    under = ("valgrind", "--tool=callgrind", "--vgdb=no", "--separate-threads=yes",
             f"--callgrind-out-file={work}/{mode}-{seconds}.%p")
    ready, peers.READY_SECONDS = peers.READY_SECONDS, instructions.READY_SECONDS
    try:
        with started(mode, args.weir, work, under), Watching(mode):
            requests = instructions.load(LISTEN, "/1k", seconds)
    finally:
        peers.READY_SECONDS = ready
    totals = {}
    for path in work.glob(f"{mode}-{seconds}.*"):
        thread = re.search(r"-(\d+)$", path.name)
        if thread:
            totals[thread[1]] = instructions.parse_callgrind(path.read_text(errors="replace")).get("Ir", 0)
    return totals, requests


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", type=lambda path: str(Path(path).resolve()), required=True, help="the weir binary (release build)")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=int, default=3, help="of each run or window")
    parser.add_argument("--turns", type=int, default=0, help="one process instead, watched and not watched so often")
    parser.add_argument("--tick", type=int, default=0, help="measure only the observer of an idle process, for so many seconds")
    parser.add_argument("--instructions", action="store_true", help="count them, too (valgrind)")
    args = parser.parse_args()
    if not os.access(args.weir, os.X_OK):
        sys.exit(f"no binary at {args.weir}; build it with: cargo build --profile dist")
    return args


if __name__ == "__main__":
    main()
