#!/usr/bin/env python3
"""Composes configurations and requests at random, and compares weir with nginx on them.

  tests/compose.py run --weir BIN --nginx BIN (--seeds A-B | --minutes N) [--first SEED] [--jobs N] [--out DIR] [--known FILE] [--unlike BIN]
  tests/compose.py show SEED                              the configuration and the requests of a seed
  tests/compose.py reduce SEED --weir BIN --nginx BIN     the differences of a seed, each reduced to a few lines
  tests/compose.py again FILE.json --weir BIN --nginx BIN a reduced case once more

A seed gives one case: an http block from the families of compose/families/, and some 22 requests that meet it. Both edges run in networks of their own
with the same addresses and paths (needs root, `unshare`, `ip`), each with origins that do as the request says and record it. nginx decides
which of the drawn statements stand: those that it refuses are left out, so an older nginx works too.

Compared are the answers (status, interim answers, fields, body, trailers, end of the connection), each request as the origin saw it, the lines of the access
log, alerts in the error log, the files that are stored. A deliberate difference has a rule with a reason in answers/rules. Every other difference that
two runs show is reduced and printed. The exit code is 0 if there is none that --known does not have.

It needs the packages of compose/python.txt.
"""
import argparse
import collections
import contextlib
import json
import multiprocessing
import multiprocessing.connection
import os
import random
import re
import subprocess
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "compose"), os.path.join(HERE, "answers")]
sys.dont_write_bytecode = True

import ask  # noqa: E402
import draw  # noqa: E402
import judge  # noqa: E402
import pair as pairs  # noqa: E402
import reduce as reducing  # noqa: E402
import report  # noqa: E402
import rules  # noqa: E402
import trial  # noqa: E402
from grammar import Statement  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=["run", "show", "reduce", "again"])
    parser.add_argument("what", nargs="?", help="a seed, or a file")
    parser.add_argument("--weir")
    parser.add_argument("--added", default="", help="a statement of http for weir alone, which must change nothing: 'record /tmp/traffic.weir;'")
    parser.add_argument("--canary", action="store_true", help="weir runs a canary of the same file for nearly all clients, and promotes it or rolls it back in the middle: it must change nothing")
    parser.add_argument("--unlike", help="another build of weir: only differences that it does not have count, as what a change broke or mended")
    parser.add_argument("--nginx", default="/usr/sbin/nginx")
    parser.add_argument("--seeds", help="A-B: the first and the last seed")
    parser.add_argument("--first", type=int, help="the first seed of --minutes; a random one without it")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("-v", action="store_true", help="print each difference before it is reduced")
    parser.add_argument("--out", help="a folder for reduced cases")
    parser.add_argument("--each", type=int, default=2, help="cases of one kind that are reduced; with 0, each difference without a reason counts as it is")
    parser.add_argument("--known", help="a file with a regular expression a line: a reduced difference that fits is counted by itself")
    options = parser.parse_args()
    if options.do == "show":
        tree, asks = draw.draw(int(options.what))
        print(report.case_text(trial.Case(tree, asks)))
        return 0
    if not options.weir:
        parser.error("--weir is missing")
    if options.do == "run":
        return Run(options).run()
    with pairs.Pair(options.nginx, options.weir, options.added, options.canary) as pair:
        version(options.nginx)
        return reduce_seed(pair, options) if options.do == "reduce" else again(pair, options.what)


def version(nginx):
    """Tells the rules how this nginx calls itself."""
    said = subprocess.run([nginx, "-v"], capture_output=True, text=True, check=True).stderr
    rules.NGINX[:] = [said.rpartition(" ")[2].strip()]


def reduce_seed(pair, options):
    seed = int(options.what)
    case, first, found, refusals = trial.steady(pair, trial.Case(*draw.draw(seed), seed))
    print(f"{len(found)} differences, {len([one for one in found if one.rule is None])} without a rule, {len(first)} steady ones at the first requests; nginx refused {len(refusals)} statements")
    for kind in sorted(judge.leading(first), key=judge.weight):
        if small := reducing.reduce(pair, case, kind):
            print(f"\n=== seed {seed}\n{report.whole(small[0], small[1])}", flush=True)
    return 1 if first else 0


def again(pair, file):
    with open(file, encoding="utf-8") as source:
        case = loaded(json.load(source))
    _, found, _ = trial.run(pair, case, False)
    for one in found:
        print(report.difference_text(one) + (f"\n  (rule: {one.rule})" if one.rule else ""))
    return 1 if any(one.rule is None for one in found) else 0


def dumped(case):
    def plain(statements):
        return [[one.text, None if one.block is None else plain(one.block)] for one in statements]
    return {"seed": case.seed, "tree": plain(case.tree), "asks": [one.dump() for one in case.asks]}


def loaded(found):
    def tree(statements):
        return tuple(Statement(text, None if block is None else tree(block)) for text, block in statements)
    return trial.Case(tree(found["tree"]), tuple(ask.Ask.load(one) for one in found["asks"]), found["seed"])


def work(options, wire):
    """A process with one pair, or two: takes ("seed", N) or ("reduce", case, kind), and gives the result."""
    version(options.nginx)
    with contextlib.ExitStack() as stack:
        pair = stack.enter_context(pairs.Pair(options.nginx, options.weir, options.added, options.canary))
        other = stack.enter_context(pairs.Pair(options.nginx, options.unlike)) if options.unlike else None
        while (job := wire.recv()) is not None:
            try:
                if job[0] == "seed":
                    case, first, found, refusals = trial.steady(pair, trial.Case(*draw.draw(job[1]), job[1]), other)
                    wire.send(("seed", case, first, collections.Counter(one.rule for one in found if one.rule), len(case.asks), len(refusals)))
                else:
                    wire.send(("reduced", job[2], reducing.reduce(pair, job[1], job[2], other)))
            except pairs.Lost:
                raise
            except Exception:
                wire.send(("problem", job[1] if job[0] == "seed" else job[1].seed, traceback.format_exc()))


class Run:
    """Many seeds on a few pairs."""

    def __init__(self, options):
        self.options, self.began = options, time.monotonic()
        self.kinds, self.classes, self.reduced = collections.defaultdict(list), {}, collections.Counter()
        self.rules, self.counts, self.todo = collections.Counter(), collections.Counter(), []
        self.known = []
        if options.known:
            with open(options.known, encoding="utf-8") as file:
                self.known = [re.compile(line.strip(), re.S) for line in file if line.strip() and not line.startswith("#")]
        self.seeds = iter(range(0))
        if options.seeds:
            first, _, last = options.seeds.partition("-")
            self.seeds = iter(range(int(first), int(last or first) + 1))
        elif options.minutes:
            first = random.randrange(10**6, 10**9) if options.first is None else options.first
            self.seeds = iter(range(first, first + 10**6))
            print(f"seeds from {first} on", flush=True)

    def next_job(self):
        if self.todo:
            return self.todo.pop(0)
        if self.options.minutes and time.monotonic() - self.began > self.options.minutes * 60:
            return None
        seed = next(self.seeds, None)
        return None if seed is None else ("seed", seed)

    def run(self):
        wires = {}
        for _ in range(self.options.jobs):
            ours, theirs = multiprocessing.Pipe()
            process = multiprocessing.Process(target=work, args=(self.options, theirs))
            process.start()
            theirs.close()
            wires[ours] = process
        busy = {}
        for wire in wires:
            self.give(wire, busy)
        while busy:
            for wire in multiprocessing.connection.wait(list(busy)):
                try:
                    self.take(wire.recv())
                except EOFError:
                    busy.pop(wire)
                    self.counts["lost sides"] += 1
                    continue
                self.give(wire, busy)
        for wire, process in wires.items():
            try:
                wire.send(None)
            except BrokenPipeError:
                pass
            process.join()
        return self.report()

    def give(self, wire, busy):
        job = self.next_job()
        busy.pop(wire, None)
        if job:
            wire.send(job)
            busy[wire] = job

    def take(self, result):
        match result:
            case ("seed", case, first, explained, asks, refusals):
                self.counts["configurations"] += 1
                self.counts["requests"] += asks
                self.counts["statements that nginx refused"] += refusals
                self.rules.update(explained)
                self.counts["configurations with differences"] += bool(first)
                for kind in dict.fromkeys(one.kind for one in first):
                    self.kinds[kind].append(case.seed)
                    if self.options.v:
                        one = next(one for one in first if one.kind == kind)
                        print(f"seed {case.seed} request {one.number}: {report.difference_text(one)}", flush=True)
                    if self.is_known("\n".join(report.difference_text(one) for one in first if one.kind == kind)):
                        self.counts["differences that are known"] += 1
                    elif not self.options.each:
                        self.counts["differences without a reason"] += 1
                    elif kind in judge.leading(first) and self.reduced[kind] < self.options.each:
                        self.reduced[kind] += 1
                        self.todo.append(("reduce", case, kind))
                        self.todo.sort(key=lambda job: judge.weight(job[2]))
            case ("reduced", kind, None):
                self.counts["differences that did not come again"] += 1
            case ("reduced", kind, (case, found, tries)):
                self.class_of(kind, case, found, tries)
            case ("problem", seed, text):
                self.counts["problems of this program"] += 1
                print(f"seed {seed}: {text}", flush=True)

    def is_known(self, text):
        return any(known.search(text) for known in self.known)

    def class_of(self, kind, case, found, tries):
        text = report.whole(case, found)
        if self.is_known(text):
            self.counts["reduced differences that are known"] += 1
            # Others of this kind may have another cause.
            self.reduced[kind] -= 1 if len(self.kinds[kind]) < 40 else 0
            return
        name = f"{kind} [{report.names(case)}]"
        if name in self.classes:
            return
        self.classes[name] = case.seed
        seconds = time.monotonic() - self.began
        print(f"\n=== seed {case.seed}, after {seconds:.0f} s, {tries} runs for the reduction\n{text}", flush=True)
        if self.options.out:
            os.makedirs(self.options.out, exist_ok=True)
            base = os.path.join(self.options.out, re.sub(r"[^\w.-]+", "_", f"{kind}.{case.seed}")[:120])
            with open(base + ".txt", "w", encoding="utf-8") as file:
                file.write(f"seed {case.seed}, after {seconds:.0f} s\n{text}")
            with open(base + ".json", "w", encoding="utf-8") as file:
                json.dump(dumped(case), file)

    def report(self):
        seconds = time.monotonic() - self.began
        print()
        for kind, seeds in sorted(self.kinds.items(), key=lambda item: -len(item[1])):
            print(f"{len(seeds):6} {kind}   {seeds[:5]}")
        print(report.rules_text(self.rules))
        print(f"{seconds:.0f} s: " + ", ".join(f"{count} {name}" for name, count in self.counts.items()))
        failures = ("differences without a reason", "problems of this program", "lost sides")
        return 1 if self.classes or any(self.counts[name] for name in failures) else 0


if __name__ == "__main__":
    sys.exit(main())
