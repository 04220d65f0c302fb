#!/usr/bin/env python3
"""The CPU of a request while `record` writes it, beside the same request without `record`.

    python3 bench/record.py --weir target/dist/weir [--only own,varied,proxied] [--rate 20000] [--rounds 9] [--seconds 4]

`weir load` sends requests at a fixed rate from core 1, the edge has one worker, and all its threads are on core 0, also the one that writes the
recording. A figure is the CPU of all threads of the edge for one answer, from /proc. Rounds are interleaved, in a random order. For each
round, the ratio to the round without `record` beside it is taken; the table has the median of the ratios and the interval that has the true median in
95 of 100 cases (the binomial interval of the sorted ratios). `aa` is a second side without `record`: its ratio shows what the machine adds.

Each recording is read at the end: its exchanges plus its losses must be the answers that the generator counted, or the round fails.
"""

import argparse
import json
import math
import random
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import peers
import proc

LISTEN, ORIGIN = "127.0.0.1:18153", "127.0.0.1:18154"
WARM_SECONDS = 1

# What a browser sends: the names are those of every request, and the cookies are secrets.
FIELDS = [
    "Host: shop.example", "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "Accept-Language: ko-KR,ko;q=0.9,en;q=0.8",
    "Accept-Encoding: gzip, deflate, br", "Referer: https://shop.example/list?page=3",
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
    "Cookie: session=2f8a7c1e9b3d4f60a5c2e8d7b1f09a36; theme=dark; cart=18f0c2", "X-Forwarded-For: 203.0.113.7",
]


@dataclass(frozen=True)
class Row:
    name: str
    title: str
    path: str


ROWS = [
    Row("own", "1 KiB of weir's own", "/own?q=shoes&page=2"),
    Row("varied", "the same with a new session and a new id in each answer", "/varied?q=shoes&page=2"),
    Row("proxied", "1 KiB from an origin", "/1k?q=shoes&page=2"),
]

SIDES = {
    "none": "",
    "aa": "",
    "record": "record traffic.weir max=4g;",
    "record 10%": "record traffic.weir max=4g share=10% client=$request_id;",
}


def main():
    args = arguments()
    sides = [side for side in SIDES if not args.sides or side in args.sides or side == "none"]
    with tempfile.TemporaryDirectory(prefix="weir-record-") as work, peers.start_origin(ORIGIN, work):
        for row in ROWS:
            if args.only and row.name not in args.only:
                continue
            found = {side: [] for side in sides}
            said = {side: None for side in sides}
            for _ in range(args.rounds):
                for side in random.sample(sides, len(sides)):
                    value, account = measured(row, side, Path(work), args)
                    found[side].append(value)
                    said[side] = account or said[side]
            show(row, found, said, args)


def measured(row, side, work, args):
    """Microseconds of CPU for one answer; and what was recorded."""
    prefix = work / side.replace(" ", "-").replace("%", "")
    (prefix / "logs").mkdir(parents=True, exist_ok=True)
    recording = prefix / "traffic.weir"
    recording.unlink(missing_ok=True)
    text = (peers.HERE / "conf" / "record.conf").read_text()
    for place, words in {"@listen@": LISTEN, "@origin@": ORIGIN, "@record@": SIDES[side], "@kibibyte@": "x" * 1024}.items():
        text = text.replace(place, words)
    (prefix / "record.conf").write_text(text)
    argv = [args.weir, "edge", "-c", str(prefix / "record.conf"), "-p", f"{prefix}/"]
    with peers.Running(side, argv, peers.PEER_CORE, LISTEN, prefix / "output.log") as running:
        answers = load(row, args, WARM_SECONDS)
        before = proc.cpu(running.pid)
        counted = load(row, args, args.seconds)
        if SIDES[side]:
            time.sleep(1.3)  # the worker gives its last block, and the thread writes it: this belongs to the requests
        cpu = proc.cpu(running.pid).since(before).total_ns
    if not SIDES[side]:
        return cpu / counted / 1000, None
    return cpu / counted / 1000, account(recording, answers + counted, side, args)


def account(recording, answers, side, args):
    """The ending of a recording, which must agree with the generator's count of answers."""
    shown = subprocess.run([args.weir, "record", "show", "--json", str(recording)], capture_output=True, text=True, check=True)
    kinds, ending = 0, None
    for line in shown.stdout.splitlines():
        if line.startswith('{"kind":"exchange"'):
            kinds += 1
        elif line.startswith('{"kind":"ending"'):
            ending = json.loads(line)
    lost = sum(ending["lost"].values())
    if kinds != ending["recorded"] or ending["exchanges"] != kinds + lost or side == "record" and ending["exchanges"] != answers:
        raise peers.PeerFailed(f"{side}: {answers} answers, {kinds} exchanges in the file, {ending}")
    return {"recorded": kinds, "lost": lost, "bytes": recording.stat().st_size, "answers": answers}


def load(row, args, seconds):
    """The number of answers, all of which were right."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        argv = ["taskset", "-c", str(peers.LOAD_CORE), args.weir, "load", f"http://{LISTEN}{row.path}", "--workers", "1", "-c", str(args.connections),
                "-d", f"{seconds}s", "-o", report.name]
        argv += ["-R", str(args.rate)] if args.rate else []
        for field in FIELDS:
            argv += ["-H", field]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
        counters = json.loads(Path(report.name).read_text())["aggregate"]["counters"] if done.returncode == 0 else {}
    answers = counters.get("http.codes.200", 0)
    if not answers or answers != counters["http.responses"]:
        raise peers.PeerFailed(f"{row.name}: {counters or done.stdout + done.stderr}")
    if args.rate and answers < 0.98 * args.rate * seconds:
        print(f"    {answers / seconds:,.0f} answers a second instead of {args.rate:,}: the machine is too slow for this rate", flush=True)
    return answers


def interval(values):
    """The sorted values between which the median is in 95 of 100 cases, by the binomial law."""
    values, count = sorted(values), len(values)
    outside, rank = 0.0, 0
    while rank < count // 2 and outside + math.comb(count, rank) / 2 ** count <= 0.025:
        outside += math.comb(count, rank) / 2 ** count
        rank += 1
    return values[max(rank - 1, 0)], values[min(count - rank, count - 1)]


def show(row, found, said, args):
    base = found["none"]
    print(f"\n{row.title}, at {args.rate:,} requests a second, us of CPU for one" if args.rate else f"\n{row.title}, as fast as it goes")
    print(f"    none: {statistics.median(base):.2f}")
    for side, values in found.items():
        if side == "none":
            continue
        ratios = [value / other for value, other in zip(values, base)]
        low, high = interval(ratios)
        line = f"    {side}: {statistics.median(values):.2f}, {statistics.median(ratios) * 100 - 100:+.1f} % [{low * 100 - 100:+.1f} {high * 100 - 100:+.1f}]"
        account = said[side]
        if account:
            line += (f"; {account['recorded']:,} of {account['recorded'] + account['lost']:,} recorded, "
                     f"{account['bytes'] / max(account['recorded'], 1):.0f} bytes each")
        print(line, flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--only", type=lambda text: text.split(","), help="rows: " + ", ".join(row.name for row in ROWS))
    parser.add_argument("--sides", type=lambda text: text.split(","), help="sides: " + ", ".join(SIDES).replace("%", "%%"))
    parser.add_argument("--rate", type=int, default=20_000, help="0: without a rate, as fast as the connections go")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=4)
    return parser.parse_args()


if __name__ == "__main__":
    main()
