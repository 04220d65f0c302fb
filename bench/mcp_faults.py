#!/usr/bin/env python3
"""Stacks with one fault each, and an agent that knows nothing but `weir mcp`: it asks `why`, and then does what `next` says.

    bench/mcp_faults.py --weir target/dist/weir --stacks 30 --seed 1 --json mcp.jsonl
    bench/mcp_faults.py --weir target/dist/weir --stacks 30 --resume mcp.jsonl --minutes 60    # goes on where that ended
    bench/mcp_faults.py --weir target/dist/weir --only pool-untold --edge nginx --stacks 1 --show

The faults, the loads and the truth are those of `random_faults.py`. The agent has no rules of its own: it stops when `next` is
empty, when `next` is no longer `why`, when it only asks to try a remedy, or after --steps. Its conclusion is the last verdict that
is one. A stack whose fault did not limit, by the answers that the load counted, is not judged, and another seed takes its place.

Needs root, nginx, node and python3, and a quiet machine (else --noisy). Exit code 1: fewer than --right of the stacks; 3: --minutes
ended before all stacks were judged.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

from random_faults import EDGES, binary, block_of, chosen, is_bound, read, said_of, seconds_of
from random_kinds import HEALTHY_KINDS, KINDS
from random_stack import Stack, compose
from random_table import classify
from stacks import NGINX, pages, written

# The longest time for one call, s.
PATIENCE = 1800
# Seeds that are looked at for each stack that is judged.
SEEDS_MAX = 4
WORDS = {"no_verdict": "no verdict", "not_saturated": "NOT SATURATED"}


class Server:
    """`weir mcp`, and the client's side of its pipe."""

    def __init__(self, words: list[str]) -> None:
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.number = 0

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        timer = threading.Timer(PATIENCE, self.process.kill)
        timer.start()
        try:
            for line in self.process.stdout:
                answer = json.loads(line)
                if answer.get("id") == self.number:
                    return answer["result"]["structuredContent"]
        finally:
            timer.cancel()
        return {"verdict": {"name": "failed", "text": "the server ended"}, "evidence": [], "next": None}

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(30)


def started(weir: str, where: pathlib.Path, store: pathlib.Path, stack: Stack, options: argparse.Namespace) -> tuple[Server, dict[str, Any]]:
    """A server for a stack, with the flags that a person gives it, and the first call of the agent."""
    extra = dict(stack.extra)
    block = max(options.block, extra.pop("block", "0s"), key=seconds_of)
    block = block_of(stack, block)
    if "script" in extra:
        extra["script"] = extra["script"].replace("@SECONDS@", str(max(1, round(seconds_of(block)))))
    words = written(where, weir, stack.text, stack.load, extra)
    command = [weir, "--lang", "en", "mcp", "--dir", str(where), "--experiments", "--store", str(store)]
    command += ["--edge", NGINX] if EDGES[stack.edge] == "n" else []
    command += ["--noisy"] if options.noisy else []
    first: dict[str, Any] = {"conf": "nginx.conf"}
    # The path comes first; other words that begin with a slash are values of flags.
    if words and words[0].startswith("/"):
        first["path"] = words.pop(0)
    left = iter(words)
    for word in left:
        match word:
            case "-R":
                first["rate"] = float(next(left))
            case "-c":
                first["connections"] = int(next(left))
            case "--load":
                first["script"] = pathlib.Path(next(left)).name
            case "--origin":
                command += ["--origin", next(left)]
            case _:
                command += [f"--why-word={word}"]
    if "script" not in first:
        first["seconds"] = seconds_of(block)
    return Server(command), first


def followed(server: Server, first: dict[str, Any], options: argparse.Namespace) -> list[dict[str, Any]]:
    """The answers of `why`, each after the first one asked for by the `next` of the one before."""
    answers, arguments = [], first
    for _ in range(options.steps):
        answer = server.call("why", arguments)
        answers.append(answer)
        if options.show:
            print(f"    why {arguments}: {answer['verdict']['name']} -> {answer['next']}", flush=True)
        following = answer["next"]
        if not following or following["tool"] != "why" or following["arguments"].get("try"):
            break
        arguments = following["arguments"]
    return answers


def concluded(answers: list[dict[str, Any]]) -> tuple[str, str | None]:
    """The word and the rule of the last verdict that is one."""
    told = [answer for answer in answers if answer["verdict"]["name"] not in ("no_verdict", "refused", "failed")]
    last = (told or answers)[-1]
    name = last["verdict"]["name"]
    word = WORDS.get(name, "failed" if name in ("refused", "failed") else name.upper())
    return word, next((one["rule"] for one in last["evidence"] if one["kind"] == "suspect"), None)


def judged(weir: str, stack: Stack, options: argparse.Namespace) -> dict[str, Any]:
    """One row: a stack, the way of the agent, and its class."""
    where = pathlib.Path(tempfile.mkdtemp(prefix="weir-mcp-faults-"))
    where.chmod(0o755)
    store = pathlib.Path(tempfile.mkdtemp(prefix="weir-mcp-runs-"))
    began = time.monotonic()
    try:
        server, first = started(weir, where, store, stack, options)
        answers = followed(server, first, options)
        server.close()
        word, rule = concluded(answers)
        row = {"seed": stack.seed, "kind": stack.kind, "edge": stack.edge, "truth": said_of(stack.truth), "word": word, "rule": rule,
               "way": [answer["verdict"]["name"] for answer in answers], "seconds": round(time.monotonic() - began, 1),
               "class": classify(stack.truth, word, rule), "refusal": answers[-1].get("refusal")}
        runs = sorted(store.glob("*.json"))
        signals = json.loads(runs[0].read_text()).get("signals") if runs else None
        if signals and row["class"] != "wrongly PROVED" and not is_bound(stack.truth, stack.capacity, signals):
            row["class"] = "not bound"
        return row
    finally:
        shutil.rmtree(where, ignore_errors=True)
        shutil.rmtree(store, ignore_errors=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", default="target/debug/weir")
    parser.add_argument("--stacks", type=int, default=30, help="how many are judged")
    parser.add_argument("--right", type=int, default=-1, help="how many have to be right [default: nine of ten]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=6, help="calls of the agent at most")
    parser.add_argument("--only", default="", help="kinds, with commas between them")
    parser.add_argument("--edge", choices=[*EDGES, "both"], default="both")
    parser.add_argument("--block", default="3s", help="how long a block measures")
    parser.add_argument("--noisy", action="store_true")
    parser.add_argument("--show", action="store_true", help="each step of the agent")
    parser.add_argument("--minutes", type=float, default=24 * 60, help="no stack is begun that would end after these, by the longest so far")
    parser.add_argument("--json", default="", help="a line of JSON for each stack, as it is done")
    parser.add_argument("--resume", default="", help="such a file: what is in it is not done again, and what is done is added")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    only = [word for word in options.only.split(",") if word]
    kinds = [kind for kind in KINDS if kind not in HEALTHY_KINDS and (not only or kind.name in only) and (not kind.needs or shutil.which(kind.needs))]
    edges = [edge for edge in EDGES if options.edge in (edge, "both") and (edge != "nginx" or pathlib.Path(NGINX).exists())]
    kinds = [kind for kind in kinds if any(EDGES[edge] in kind.edges for edge in edges)]
    if not kinds:
        sys.exit("no kind is left")
    weir = str(pathlib.Path(options.weir).resolve())
    if any(kind.name == "app-memory" for kind in kinds):
        pages()
    file = pathlib.Path(options.resume or options.json) if options.resume or options.json else None
    rows, binaries = read(file) if options.resume and file else ([], [])
    now = binary(weir)
    if binaries and binaries[-1] != now:
        print(f"the binary changed: the last rows of {file} are of {binaries[-1]}, those that come are of {now}")

    def keep(line: dict[str, Any]) -> None:
        if file:
            with file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(line) + "\n")

    if not binaries or binaries[-1] != now:
        keep({"binary": now})
    stacks = (compose(seed, *chosen(seed, kinds, edges)) for seed in range(options.seed, options.seed + SEEDS_MAX * options.stacks))
    done = {(row["seed"], row["kind"], row["edge"]) for row in rows}
    began, longest, is_cut = time.monotonic(), 0.0, False
    for stack in stacks:
        if sum(row["class"] != "not bound" for row in rows) >= options.stacks:
            break
        if (stack.seed, stack.kind, stack.edge) in done:
            continue
        if time.monotonic() - began + longest > options.minutes * 60:
            is_cut = True
            break
        row = judged(weir, stack, options)
        longest = max(longest, row["seconds"])
        rows.append(row)
        print(f"{row['class']:<14} {row['seed']:>4} {row['kind']:<18} {row['edge']:<6} wanted {row['truth']:<16} said {row['word']} {row['rule'] or ''}"
              f"  {row['seconds']:.0f} s  {' > '.join(row['way'])} {row['refusal'] or ''}", flush=True)
        keep(row)
    counted = [row for row in rows if row["class"] != "not bound"]
    right = sum(row["class"] == "right" for row in counted)
    wanted = options.right if options.right >= 0 else -(-9 * options.stacks // 10)
    spent = sorted(row["seconds"] for row in rows)
    print(f"\n{right} of {len(counted)} right, {options.stacks} asked for; {len(rows) - len(counted)} not bound; {sum(spent) / 60:.0f} min")
    if spent:
        print(f"time of a stack: {spent[len(spent) // 2]:.0f} s in the middle, {spent[-1]:.0f} s at most")
    if is_cut:
        print("--minutes ended before all stacks were judged: --resume goes on")
        sys.exit(3)
    sys.exit(0 if right >= wanted and len(counted) >= options.stacks else 1)


if __name__ == "__main__":
    main()
