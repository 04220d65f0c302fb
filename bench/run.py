#!/usr/bin/env python3
"""CPU per request of weir, nginx, HAProxy and the floor relay, interleaved. See README.md."""

import argparse
import contextlib
import dataclasses
import fcntl
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import loads
import peers
import stats

ORIGIN = "127.0.0.1:18000"
OTHER_ORIGIN = "127.0.0.1:17999"
FIRST_PORT = 18001
ATTEMPTS = 3            # a run with errors or strangers is tried again
MEMORY_ROUNDS = 2       # resident memory hardly varies
FOREIGN_SHARE = 0.10    # more of either core used by others, and the run is called disturbed
FULL_SHARE = 0.97       # a core that is used so much is full
WAKES = "CPU us on this machine: {sleep_us} to sleep, {wake_halted_us} to wake a halted CPU, {woken_us} to be woken, {call_us} to enter the kernel"
REFERENCES = ["floor", "nginx", "nginx-tuned", "haproxy"]


def main():
    args = arguments()
    chosen = pick(peers.all_peers(args.weir, args.weir_as_nginx, args.nginx, args.haproxy), args.peers, "peer")
    workloads = pick(loads.WORKLOADS, args.only, "workload")
    build_floor()
    results = Results(args, chosen)
    print(WAKES.format(**results.about["wakes"]))
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as work, peers.start_origin(ORIGIN, work) as origin:
        os.chmod(work, 0o755)  # nginx's worker is another user
        for workload in workloads:
            measure(workload, chosen, args, work, origin, results)
            results.show(workload)
            results.save()
    print(f"\n{results.path}")


def measure(workload, chosen, args, work, origin, results):
    """All peers once per round, in an order thrown anew each time."""
    taking_part = [peer for peer in chosen if loads.takes_part(workload, peer)]
    rounds = min(args.rounds, MEMORY_ROUNDS) if workload.kind == "idle" else args.rounds
    for number in range(rounds):
        with machine_lock():
            for peer in random.sample(taking_part, len(taking_part)):
                listen = f"127.0.0.1:{FIRST_PORT + chosen.index(peer)}"

                def once():
                    with contextlib.ExitStack() as stack:
                        place, behind = ORIGIN, origin
                        if workload.origin:
                            place = OTHER_ORIGIN
                            behind = stack.enter_context(peers.start_other_origin(workload.origin, place, work, args.weir))
                        running = stack.enter_context(peers.start(
                            peer, listen, place, work, workload.cached, workload.secure, workload.kind == "h2",
                            workload.origin == "h2", workload.servers))
                        return loads.run(workload, running, behind, args.seconds)

                attempt(workload, peer, number, once, results)


def attempt(workload, peer, number, once, results):
    """The first quiet run counts, else the least disturbed one; runs with errors never do.

    Every try has a fresh process: nothing a peer did before can help or hurt it.
    """
    def runs():
        for _ in range(ATTEMPTS):
            try:
                yield once()
            except peers.PeerFailed as failure:
                results.reject(workload, peer, number, str(failure))
    best = stats.quietest(runs(), lambda run: run.get("foreign", 0), FOREIGN_SHARE)
    if best:
        results.add(workload, peer, number, best)


class Results:
    """Every run as it came, and the table drawn from them."""

    def __init__(self, args, chosen):
        stamp = time.strftime("%Y%m%d-%H%M%S")
        self.path = peers.HERE / "results" / f"{stamp}.json"
        self.peers = [peer.name for peer in chosen]
        self.runs, self.rejected = {}, []
        self.about = {
            "when": stamp, "rounds": args.rounds, "seconds": args.seconds, "kernel": platform.release(),
            "cores": os.cpu_count(), "commit": commit(), "versions": peers.versions(chosen), "wakes": wakes()}

    def add(self, workload, peer, number, run):
        self.runs.setdefault(workload.name, {}).setdefault(peer.name, {})[number] = run

    def reject(self, workload, peer, number, why):
        self.rejected.append({"workload": workload.name, "peer": peer.name, "round": number, "why": why})
        print(f"rejected: {workload.name} round {number}: {why}", file=sys.stderr)

    def values(self, workload, peer):
        return {n: run["value"] for n, run in self.runs.get(workload, {}).get(peer, {}).items()}

    def rows(self, workload):
        """One row per peer that has at least one run."""
        for peer in self.peers:
            values = self.values(workload, peer)
            if not values:
                continue
            runs = self.runs[workload][peer].values()
            ratios = {r: stats.ratio(values, self.values(workload, r)) for r in REFERENCES if r != peer}
            median, low, high = stats.spread(values.values())
            disturbed = sum(run.get("foreign", 0) > FOREIGN_SHARE for run in runs)
            yield {"peer": peer, "median": median, "min": low, "max": high, "ratios": ratios,
                   "runs": len(values), "disturbed": disturbed, "extra": extra(list(runs))}

    def show(self, workload):
        print(f"\n{workload.name}: {workload.title} ({workload.unit})")
        head = "".join(f"{'/ ' + r:>24}" for r in REFERENCES)
        print(f"  {'':12}{'median':>9}{'min..max':>18}{head}  runs")
        for row in self.rows(workload.name):
            ratios = "".join(f"{ratio_text(row['ratios'].get(r)):>24}" for r in REFERENCES)
            span = f"{row['min']:.1f}..{row['max']:.1f}"
            note = f" ({row['disturbed']} disturbed)" if row["disturbed"] else ""
            print(f"  {row['peer']:12}{row['median']:9.1f}{span:>18}{ratios}  {row['runs']}{note}{row['extra']}")
        sys.stdout.flush()

    def save(self):
        """After each workload: a later failure loses nothing."""
        self.path.parent.mkdir(exist_ok=True)
        table = {name: list(self.rows(name)) for name in self.runs}
        whole = {"about": self.about, "table": table, "runs": self.runs, "rejected": self.rejected}
        self.path.write_text(json.dumps(whole, indent=1, default=dataclasses.asdict) + "\n")


def ratio_text(ratio):
    return f"{ratio.median:.2f} [{ratio.low:.2f} {ratio.high:.2f}] {ratio.below}/{ratio.rounds}" if ratio else ""


def extra(runs):
    """What else a workload tells: shares of the core, latency at a fixed rate."""
    def middle(key):
        return stats.spread([run[key] for run in runs])[0]
    if "busy" not in runs[0]:
        return ""
    text = f"  busy {middle('busy'):.0%}, user {middle('user_share'):.0%}, client and origin {middle('client_busy'):.0%}"
    full = [side for side, key in (("the peer", "busy"), ("the client", "client_busy")) if middle(key) >= FULL_SHARE]
    text += f" ({' and '.join(full)} full)" if full else ""
    if "p999_us" in runs[0]:
        quarter = stats.quarter([run["p99_us"] for run in runs])
        text += (f"  with client and origin {middle('all_us'):.1f} us"
                 f"  p50 {middle('p50_us') / 1000:.2f}, p99 {middle('p99_us') / 1000:.2f} (in a quarter of the rounds at most {quarter / 1000:.2f}),"
                 f" p99.9 {middle('p999_us') / 1000:.1f} ms"
                 f" (left {middle('lag_p999_us') / 1000:.1f} ms late)")
    return text


@contextlib.contextmanager
def machine_lock():
    """One measurer at a time, where $WEIR_LOCK names a lock file."""
    name = os.environ.get("WEIR_LOCK")
    if not name:
        yield
        return
    with open(name, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def pick(all_of, wanted, what):
    if not wanted:
        return all_of
    by_name = {one.name: one for one in all_of}
    for name in wanted:
        if name not in by_name:
            sys.exit(f"no {what} \"{name}\" here; there is {', '.join(by_name)}")
    return [one for one in all_of if one.name in wanted]


def build_floor():
    """Also when there is one: an older build may pace or measure in another way."""
    manifest = peers.HERE / "floor" / "Cargo.toml"
    subprocess.run(["cargo", "build", "--quiet", "--release", "--locked", "--manifest-path", manifest], check=True)


def wakes():
    """CPU microseconds of sleeping and waking on this machine; rows at a fixed rate consist of little else."""
    with machine_lock():
        done = subprocess.run([peers.FLOOR, "wakes"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def commit():
    done = subprocess.run(["git", "-C", peers.HERE, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return done.stdout.strip()


def arguments():
    words = lambda text: [word for word in text.split(",") if word]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=words, help="workloads, by name: " + ", ".join(w.name for w in loads.WORKLOADS))
    parser.add_argument("--peers", type=words, help="peers, by name")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3, help="of each run")
    parser.add_argument("--weir", type=lambda p: str(Path(p).resolve()), help="the weir binary (profile dist)")
    parser.add_argument("--nginx", help="the nginx binary; default: the one in PATH")
    parser.add_argument("--haproxy", help="the HAProxy binary; default: the one in PATH")
    parser.add_argument("--weir-as-nginx", action="store_true", help="start weir under the name nginx, with nginx's flags")
    args = parser.parse_args()
    if args.weir and not os.access(args.weir, os.X_OK):
        sys.exit(f"no binary at {args.weir}; build it with: cargo build --profile dist")
    if args.rounds < 1 or args.seconds < 1:
        sys.exit("--rounds and --seconds must be at least 1")
    return args


if __name__ == "__main__":
    main()
