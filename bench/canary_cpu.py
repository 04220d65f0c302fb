#!/usr/bin/env python3
"""The CPU of a request while a canary of the same file runs, beside the same request without one; and the memory of the second configuration.

    python3 bench/canary_cpu.py --weir target/dist/weir [--only own,proxied] [--rate 8000] [--rounds 9] [--seconds 4]
    python3 bench/canary_cpu.py --weir target/dist/weir --memory

`weir load` sends requests at a fixed rate from core 1, each with one of 20,000 cookies at random. The edge has one worker, and all its threads are on core 0, also the
judge. A figure is the CPU of all threads of the edge for one answer, from /proc. Rounds are interleaved, in a random order. For each round, the ratio to
the round without a canary beside it is taken; the line has the median of the ratios and the interval that has the true median in 95 of 100 cases. `aa` is
a second side without a canary: its ratio shows what the machine adds. With the key `address`, the load is one client; with `cookie:sid`, 20,000.

`--memory` prints the resident memory of keeper and server before, while and after a canary runs, for a file of 2 and of 200 servers.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import peers
import proc
import record

LISTEN, ORIGIN = "127.88.0.2:18155", "127.88.0.2:18156"
WARM_SECONDS, PATIENCE_SECONDS = 1, 20
COOKIES = 20_000
SCRIPT = """
config:
  target: "http://{listen}"
  http: {{ pool: {connections} }}
  phases: [{{ duration: {seconds}, arrivalRate: {rate} }}]
scenarios:
  - flow:
      - get:
          url: "{path}"
          headers: {headers}
"""


@dataclass(frozen=True)
class Side:
    """The share and the key of a canary; without a share there is none."""

    share: str = ""
    key: str = ""


SIDES = {"none": Side(), "aa": Side(), "10% address": Side("10%", "address"), "50% address": Side("50%", "address"),
         "10% cookie": Side("10%", "cookie:sid"), "50% cookie": Side("50%", "cookie:sid")}
ROWS = [record.Row("own", "1 KiB of weir's own", "/own?q=shoes&page=2"), record.Row("proxied", "1 KiB from an origin", "/1k?q=shoes&page=2")]


def main():
    args = arguments()
    with tempfile.TemporaryDirectory(prefix="weir-canary-") as work, peers.start_origin(ORIGIN, work):
        if args.memory:
            return memory(Path(work), args)
        for row in ROWS:
            if args.only and row.name not in args.only:
                continue
            found, judge = {side: [] for side in SIDES}, {side: [] for side in SIDES}
            end = time.monotonic() + 60 * args.minutes
            for _ in range(args.rounds):
                if time.monotonic() > end:
                    break
                for side in random.sample(list(SIDES), len(SIDES)):
                    both, own = measured(row, SIDES[side], Path(work), args)
                    found[side].append(both)
                    judge[side].append(own)
            record.show(row, found, dict.fromkeys(SIDES), args)
            print("    of these in the judge's thread: " + ", ".join(f"{side} {statistics.median(values):.2f}" for side, values in judge.items() if SIDES[side].share), flush=True)


def measured(row, side, work, args):
    """Microseconds of CPU for one answer, and those of the judge's thread."""
    with started(args.weir, work) as running:
        begin(args.weir, work, side)
        load(row, args, WARM_SECONDS)
        before, judge = proc.cpu(running.pid), thread_ns(running.pid, "canary")
        answers = load(row, args, args.seconds)
        cpu, judge = proc.cpu(running.pid).since(before).total_ns, thread_ns(running.pid, "canary") - judge
        if side.share:
            state = canary_state()
            if state["phase"] != "running" or state["requests_lost"]:
                raise peers.PeerFailed(f"the canary did not run to the end: {state['sentence']}; {state['requests_lost']} requests lost")
    return cpu / answers / 1000, judge / answers / 1000


def thread_ns(root, name):
    """The CPU of all threads with this name."""
    tasks = [task for pid in proc.tree(root) for task in Path(f"/proc/{pid}/task").iterdir()]
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks if (task / "comm").read_text().strip() == name)


def started(weir, work, servers=0):
    prefix = work / "edge"
    (prefix / "logs").mkdir(parents=True, exist_ok=True)
    more = "".join(f"server {{ listen {LISTEN}; server_name s{number}.example; location / {{ proxy_pass http://app; add_header X-Server s{number}; }} location /a/ {{ return 204; }} }}\n"
                   for number in range(servers))
    text = (peers.HERE / "conf" / "canary.conf").read_text()
    for place, words in {"@listen@": LISTEN, "@origin@": ORIGIN, "@kibibyte@": "x" * 1024, "@more@": more}.items():
        text = text.replace(place, words)
    for name in ("canary.conf", "same.conf"):
        (prefix / name).write_text(text)
    return peers.Running("weir", [weir, "edge", "-c", str(prefix / "canary.conf"), "-p", f"{prefix}/"], peers.PEER_CORE, LISTEN, prefix / "output.log")


def begin(weir, work, side):
    """Begins a canary of the same file, and waits until the worker throws its coin."""
    if not side.share:
        return
    pid, until = work / "edge" / "nginx.pid", time.monotonic() + PATIENCE_SECONDS
    while not (pid.exists() and pid.read_text()) and time.monotonic() < until:
        time.sleep(0.02)
    order(weir, work, str(work / "edge" / "same.conf"), "--share", side.share, "--key", side.key, "--no-promote", *WORDS)
    while (state := canary_state())["workers"] < 1 or state["phase"] != "running":
        if time.monotonic() > until:
            raise peers.PeerFailed(f"the canary does not begin: {state}")
        time.sleep(0.05)


WORDS = []


def order(weir, work, *words):
    prefix = work / "edge"
    done = subprocess.run([weir, "canary", *words, "-c", prefix / "canary.conf", "-p", f"{prefix}/"], capture_output=True, text=True, timeout=PATIENCE_SECONDS * 4)
    if done.returncode and words[0] != "rollback":
        raise peers.PeerFailed(done.stdout + done.stderr)


def canary_state():
    with urllib.request.urlopen(f"http://{LISTEN}/api/weir/canary", timeout=PATIENCE_SECONDS) as answer:
        return json.load(answer)["canary"]


def load(row, args, seconds):
    """The number of answers, all of which were right."""
    headers = dict(field.split(": ", 1) for field in record.FIELDS)
    headers["Cookie"] = f"sid={{{{ $randomNumber(1, {COOKIES}) }}}}; " + headers["Cookie"]
    with tempfile.TemporaryDirectory(prefix="weir-canary-load-") as place:
        script, report = Path(place, "load.yml"), Path(place, "report.json")
        script.write_text(SCRIPT.format(listen=LISTEN, connections=args.connections, seconds=seconds, rate=args.rate, path=row.path, headers=json.dumps(headers)))
        done = subprocess.run(["taskset", "-c", str(peers.LOAD_CORE), args.weir, "load", str(script), "--workers", "1", "-o", str(report), "-q"],
                              capture_output=True, text=True, timeout=120)
        counters = json.loads(report.read_text())["aggregate"]["counters"] if report.exists() else {}
    answers = counters.get("http.codes.200", 0)
    if not answers or answers != counters["http.responses"]:
        raise peers.PeerFailed(f"{row.name}: {counters or done.stdout + done.stderr}")
    if answers < 0.98 * args.rate * seconds:
        print(f"    {answers / seconds:,.0f} answers a second instead of {args.rate:,}: the machine is too slow for this rate", flush=True)
    return answers


def memory(work, args):
    for servers in (2, 200):
        found = []
        for _ in range(args.rounds):
            with started(args.weir, work, servers) as running:
                load(ROWS[1], args, WARM_SECONDS)
                time.sleep(1)
                figures = [proc.rss_kib(running.pid)]
                begin(args.weir, work, SIDES["50% cookie"])
                time.sleep(1)
                figures.append(proc.rss_kib(running.pid))
                load(ROWS[1], args, args.seconds)
                figures.append(proc.rss_kib(running.pid))
                order(args.weir, work, "rollback")
                time.sleep(2)
                figures.append(proc.rss_kib(running.pid))
                found.append(figures)
        before, begun, loaded, after = (statistics.median(column) / 1024 for column in zip(*found))
        size = os.path.getsize(work / "edge" / "canary.conf") / 1024
        print(f"{servers} servers ({size:.0f} KiB): {before:.1f} MiB before; {begun - before:+.1f} MiB with a canary, {loaded - before:+.1f} after requests of {COOKIES:,} clients, "
              f"{after - before:+.1f} after the rollback", flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--only", type=lambda text: text.split(","), help="rows: " + ", ".join(row.name for row in ROWS))
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--rate", type=int, default=8_000)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--minutes", type=float, default=60, help="for each row: begin no round after this time")
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--words", type=str.split, default=["--look", "1s", "--anyway"], help="further words for `weir canary`")
    args = parser.parse_args()
    WORDS[:] = args.words
    return args


if __name__ == "__main__":
    main()
