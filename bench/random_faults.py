#!/usr/bin/env python3
"""Stacks that are composed from a seed, with one fault or none, and what `weir lab why` says of each: the confusion table.

    bench/random_faults.py --weir target/dist/weir --stacks 60 --seed 1 --json runs.jsonl
    bench/random_faults.py --weir target/dist/weir --resume runs.jsonl --minutes 180       # goes on where that ended
    bench/random_faults.py --seed 17 --stacks 1 --only pool-untold --edge nginx               # one of them again
    bench/random_faults.py --half --stacks 300 --prove-share 0.4 --resume runs.jsonl --minutes 60   # the ledger, in several sessions

Needs root, nginx, node and python3; kinds that need more (redis, haproxy, a JDK) are left out where it is not installed. On a quiet
machine, else with --noisy. The generator knows the truth (`random_stack.py`, `random_kinds.py`), and so whether a remedy
helps (`random_remedies.py`). Each stack is one of:

    right           what was said is so
    undecided       no verdict; or UNATTRIBUTED where there is a rule for it
    wrong           another rule was suspected, or a policy named where there is none
    wrongly PROVED  the worst there is
    false alarm     something was said of a stack that is at no end
    missed          NOT SATURATED, although it is at its end
    not bound       the answers counted by the load say that the fault did not limit, or that a sound stack was not answered: not
                    for the verdict to answer, and in no fraction
    failed          the stack did not start, nothing was kept, or a word was said that is none

Exit code 1: one wrongly PROVED or failed; with --strict, also one that is not right.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import math
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

from random_kinds import HEALTHY_KINDS, KINDS
from random_stack import HEALTHY, POLICY, UNATTRIBUTED, Kind, Stack, Truth, compose
from random_table import CLASSES, classify, fractions, report
from stacks import NGINX, pages, run

EDGES = {"nginx": "n", "weir": "w"}
# What a block of a closed loop may differ from the capacity that was computed.
NEAR = (0.55, 1.4)
# Words of a run that the machine disturbed: then nothing is known of the stack, and it may be measured again.
DISTURBED = ("the hypervisor took", "other work used", "the load generator was late")
# How often a stack is measured, at most.
MEASURED_MAX = 4
# Requests a block holds at least: `--prove` refuses one of which a request is more than a per cent.
REQUESTS_LEAST = 110


def chosen(seed: int, kinds: list[Kind], edges: list[str], is_half: bool = False) -> tuple[Kind, str]:
    """Kind and edge of a seed: as many seeds in turn as there are pairs have each of them once, a kind of weight w w times. By halves,
    an even seed has no fault and an odd one has one."""
    if is_half:
        kinds = [kind for kind in kinds if (kind in HEALTHY_KINDS) == (seed % 2 == 0)]
        seed //= 2
    pairs = [(kind, edge) for kind in kinds for edge in edges if EDGES[edge] in kind.edges for _ in range(kind.weight)]
    turn, at = divmod(seed, len(pairs))
    random.Random(f"{turn} {len(pairs)}").shuffle(pairs)
    return pairs[at]


def is_bound(truth: Truth, capacity: float | None, signals: dict[str, Any]) -> bool:
    """Whether the load met what it was to meet, by what the load generator itself counted of the block as asked."""
    load, seconds = signals["load"], max(signals["seconds"], 1e-9)
    statuses = load["statuses"]
    good = sum(count for status, count in statuses.items() if int(status) < 400) if statuses else load["answered"]
    # An answer that was cut off has a good status.
    failed = max(1 - good / max(load["sent"], 1), sum(load.get("errors", {}).values()) / max(load["sent"], 1))
    reached = good / (load["offered"] * load["length_s"]) if load["offered"] else None
    if truth.is_healthy:
        return failed < 0.001 and (reached is None or reached >= 0.97)
    if truth.is_waste:
        return True
    if load["is_closed"]:
        return capacity is None or NEAR[0] <= good / seconds / capacity <= NEAR[1]
    return failed > 0.005 or bool(load["incomplete"]) or reached is not None and reached < 0.97 or reached is None and is_late(capacity, load, seconds)


def is_late(capacity: float | None, load: dict[str, Any], seconds: float) -> bool:
    """Of a script: its answers came at the pace of the capacity."""
    return capacity is None or load["answered"] / seconds <= 1.15 * capacity


def block_of(stack: Stack, block: str) -> str:
    """How long a block of this stack measures: as asked, and longer where its rate is low."""
    if "-R" in stack.load:
        least = math.ceil(REQUESTS_LEAST / float(stack.load[stack.load.index("-R") + 1]))
        return block if seconds_of(block) >= least else f"{least}s"
    return block


def seconds_of(time: str) -> float:
    """A time like 3s or 1500ms."""
    return float(time[:-2]) / 1000 if time.endswith("ms") else float(time.removesuffix("s"))


def tried(stack: Stack, weir: str, store: pathlib.Path, options: argparse.Namespace) -> dict[str, Any]:
    """One row: a stack, what was said of it, and what that is worth."""
    where = store / f"{stack.seed}-{stack.kind}-{stack.edge}"
    where.mkdir(parents=True, exist_ok=True)
    extra = dict(stack.extra)
    is_proved = proves(stack.seed, options)
    # A fault that comes every few seconds, or grows, takes its time.
    block = max(options.block, extra.pop("block", "0s"), key=seconds_of)
    options = argparse.Namespace(**{**vars(options), "prove": is_proved, "block": block_of(stack, block) if is_proved else block})
    if is_proved:
        extra["flags"] = [*extra["flags"], "--rounds", str(options.rounds)]
    if "script" in extra:
        extra["script"] = extra["script"].replace("@SECONDS@", str(max(1, round(seconds_of(options.block)))))
    got = run(weir, where, stack.kind, EDGES[stack.edge], stack.text, stack.load, extra, options)
    row = {"seed": stack.seed, "kind": stack.kind, "edge": stack.edge, "notes": stack.notes, "load": " ".join(stack.load),
           "truth": said_of(stack.truth), "word": got["word"], "rule": got["rule"], "findings": got.get("findings", []), "text": got["text"],
           "is_proved": is_proved, "remedy": got.get("remedy"), "tried": got.get("tried"), "seconds": round(got["seconds"], 1),
           "capacity": stack.capacity and round(stack.capacity, 1)}
    row["class"] = classify(stack.truth, got["word"], got["rule"])
    if "kept" in got:
        signals = json.loads(pathlib.Path(got["kept"]).read_text()).get("signals")
        if signals:
            row["answered"] = round(signals["load"]["answered"] / max(signals["seconds"], 1e-9), 1)
            if row["class"] != "wrongly PROVED" and not is_bound(stack.truth, stack.capacity, signals):
                row["class"] = "not bound"
    return row


def proves(seed: int, options: argparse.Namespace) -> bool:
    """Whether a stack runs with --prove: all of them, or a share that depends on the seeds alone."""
    share = 1.0 if options.prove else options.prove_share
    return random.Random(f"prove {seed}").random() < share


def said_of(truth: Truth) -> str:
    """What may be said, in a few words."""
    rules = "/".join(sorted(truth.rules))
    if truth.is_healthy or truth.is_policy:
        return HEALTHY if truth.is_healthy else POLICY
    return rules if truth.has_rule else f"{UNATTRIBUTED}{' or ' * bool(rules)}{rules}"


def told(row: dict[str, Any]) -> str:
    """A row as it comes."""
    mark = " " if row["class"] == "right" else "-" if row["class"] in ("undecided", "not bound") else "x"
    return (f"{mark} {row['seed']:>6} {row['kind']:<18} {row['edge']:<6} {row['class']:<14} wanted {row['truth']:<20} {row['seconds']:4.0f} s  "
            f"{row['answered'] if 'answered' in row else '-'}/s of {row['capacity'] or '-'}  {row['findings']} {row['text'][:110]}")


def read(file: pathlib.Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows of earlier runs, one a line, and the binaries that made them."""
    lines = [json.loads(line) for line in file.read_text().splitlines() if line.strip()] if file.exists() else []
    return [line for line in lines if "seed" in line], [line["binary"] for line in lines if "binary" in line]


def name_of(row: dict[str, Any]) -> tuple[int, str, str]:
    """The stack that a row is of."""
    return row["seed"], row["kind"], row["edge"]


def was_disturbed(row: dict[str, Any]) -> bool:
    """Whether the machine kept weir from a verdict."""
    return row["word"] == "no verdict" and any(words in row["text"] for words in DISTURBED)


def binary(weir: str) -> str:
    """A text that differs between two builds of weir."""
    version = subprocess.run([weir, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return f"{version}, {hashlib.sha256(pathlib.Path(weir).read_bytes()).hexdigest()[:12]}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", default="target/debug/weir")
    parser.add_argument("--stacks", type=int, default=20, help="how many, of as many seeds from --seed on")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=24 * 60, help="none is begun after these")
    parser.add_argument("--half", action="store_true", help="every second stack has no fault; else one of five")
    parser.add_argument("--only", default="", help="kinds, with commas between them")
    parser.add_argument("--edge", choices=[*EDGES, "both"], default="both")
    parser.add_argument("--prove", action="store_true", help="all stacks run with --prove")
    parser.add_argument("--prove-share", type=float, default=0.0, help="so many of the stacks do, 0 to 1; which ones depends on their seeds")
    parser.add_argument("--tries", action="store_true", help="each remedy that is a line of the file is tried")
    parser.add_argument("--budget", default="3m", help="the longest time for such a try")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--noisy", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, help="stacks at once; they share the machine's CPUs")
    parser.add_argument("--block", default="3s", help="how long a block measures")
    parser.add_argument("--json", default="", help="a line of JSON for each stack, as it is done")
    parser.add_argument("--resume", default="", help="such a file: what is in it is not done again, and what is done is added")
    parser.add_argument("--again", action="store_true", help=f"stacks of that file without a verdict because the machine was disturbed are done "
                        f"again, {MEASURED_MAX} times at most in all; the last time counts")
    parser.add_argument("--store", default="", help="where the runs are kept; else they are thrown away")
    parser.add_argument("--list", action="store_true", help="the kinds, and what may be said of each")
    parser.add_argument("--show", action="store_true", help="the stacks, without running them")
    parser.add_argument("--strict", action="store_true", help="fail where one is not right")
    return parser.parse_args()


def stacks_of(options: argparse.Namespace) -> list[Stack]:
    """The stacks that are asked for."""
    only = [word for word in options.only.split(",") if word]
    unknown = sorted(set(only) - {kind.name for kind in KINDS})
    if unknown:
        sys.exit(f"no kind {', '.join(unknown)}: --list shows them")
    kinds = [kind for kind in KINDS if (not only or kind.name in only)]
    lacking = [kind for kind in kinds if kind.needs and not shutil.which(kind.needs)]
    if lacking:
        print("left out: " + ", ".join(f"{kind.name} ({kind.needs})" for kind in lacking))
    edges = list(EDGES) if options.edge == "both" else [options.edge]
    if "nginx" in edges and not pathlib.Path(NGINX).exists():
        print(f"left out: nginx as the edge ({NGINX})")
        edges.remove("nginx")
    kinds = [kind for kind in kinds if kind not in lacking and any(EDGES[edge] in kind.edges for edge in edges)]
    if not kinds or options.half and len({kind in HEALTHY_KINDS for kind in kinds}) < 2:
        sys.exit("nothing is left to run")
    if options.list:
        return [compose(options.seed, kind, edge) for kind in kinds for edge in edges if EDGES[edge] in kind.edges]
    picked = [(seed, *chosen(seed, kinds, edges, options.half)) for seed in range(options.seed, options.seed + options.stacks)]
    return [compose(seed, kind, edge) for seed, kind, edge in picked]


def main() -> None:
    options = arguments()
    stacks = stacks_of(options)
    if options.list or options.show:
        for stack in stacks:
            where = f"{stack.seed:>6} " * options.show + f"{stack.kind:<20} {stack.edge:<6}"
            print(f"{where} {said_of(stack.truth):<24} {stack.notes}; {' '.join(stack.load)}")
        return
    weir = str(pathlib.Path(options.weir).resolve())
    file = pathlib.Path(options.resume or options.json) if options.resume or options.json else None
    rows, binaries = read(file) if options.resume and file else ([], [])
    now = binary(weir)
    if binaries and binaries[-1] != now:
        print(f"the binary changed: the last rows of {file} are of {binaries[-1]}, those that come are of {now}")
    if file and (not binaries or binaries[-1] != now):
        with file.open("a") as out:
            out.write(json.dumps({"binary": now}) + "\n")
    times = collections.Counter(name_of(row) for row in rows)
    last = {name_of(row): row for row in rows}
    done = {name for name, row in last.items() if not (options.again and was_disturbed(row) and times[name] < MEASURED_MAX)}
    rows = list(last.values())
    stacks = [stack for stack in stacks if (stack.seed, stack.kind, stack.edge) not in done]
    if any(stack.kind == "app-memory" for stack in stacks):
        pages()
    store = pathlib.Path(options.store or tempfile.mkdtemp(prefix="weir-random-runs-"))
    store.mkdir(parents=True, exist_ok=True)
    began, lock = time.monotonic(), threading.Lock()

    def one(stack: Stack) -> None:
        if time.monotonic() - began > options.minutes * 60:
            return
        row = tried(stack, weir, store, options)
        with lock:
            times[name_of(row)] += 1
            rows[:] = [known for known in rows if name_of(known) != name_of(row)] + [row]
            print(told(row), flush=True)
            if file:
                with file.open("a") as out:
                    out.write(json.dumps(row) + "\n")

    try:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(one, stacks))
    finally:
        if not options.store:
            shutil.rmtree(store, ignore_errors=True)
    print("\n" + report(rows, options))
    if repeated := sum(count > 1 for count in times.values()):
        print(f"{repeated} stacks were measured again, because the machine was disturbed")
    print(f"{len(rows)} stacks, {(time.monotonic() - began) / 60:.0f} min")
    counts = fractions(rows)
    bad = counts["wrongly PROVED"] + counts["failed"] + (sum(counts[name] for name in CLASSES[1:]) if options.strict else 0)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
