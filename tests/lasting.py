#!/usr/bin/env python3
"""Nothing lost: an edge runs under a steady load, something happens, and each request that is lost is counted.

    tests/lasting.py --weir BIN [--peer nginx=BIN] [--only NAME,NAME] [--seconds N] [--ci] [--slow] [--write]

The scenarios are in tests/lasting/: reloads, upgrades, killed and stopped processes, a lack of descriptors and of disk space, a clock
that jumps, peers that say nothing any more. The load is in `load.py`, with the definition of a loss. The exit code is 1 if weir loses
more than the bound of a scenario, which is zero for most, or if it does not do what the scenario asks for. With --peer, nginx goes
through the same; it has no bound. `--write` writes both into docs/scores/lasting.md. All is on loopback. The package of
tests/lasting/python.txt is needed; `cargo xtask ci` installs it in target/python. Some scenarios need root, and say so.
"""

import argparse
import asyncio
import glob
import resource
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/lasting"))
sys.path += glob.glob(str(ROOT / "target/python/lib/python*/site-packages"))

import clock
import life
import peers
import processes
import room
import scenario
import table

SCENARIOS = [*life.SCENARIOS, *room.SCENARIOS, *clock.SCENARIOS, *peers.SCENARIOS]
PAGE = ROOT / "docs/scores/lasting.md"
# The reasons for losses that are printed for each kind.
REASONS_MAX = 5


def main():
    args = arguments()
    if args.write and (args.only or args.ci or not args.peer):
        raise SystemExit("the page has all scenarios, with a peer")
    # A signal that ends the test ends what it has started.
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    processes.adopt()
    edges = [("weir", args.weir), *([args.peer] if args.peer else [])]
    results = []
    try:
        for chosen in choose(args):
            times = chosen.ci_times if args.ci else chosen.times
            for name, binary in edges:
                results.append(asyncio.run(scenario.run(chosen, name, binary, args.seconds, times)))
                show(results[-1])
    except KeyboardInterrupt:
        raise SystemExit("interrupted")
    finally:
        processes.end_all()
    if args.write:
        PAGE.write_text(table.text(results, version(args.peer)))
    weir = [result for result in results if result.edge_name == "weir" and not result.skipped]
    failed = [result.scenario.name for result in weir if result.fails]
    print(f"{len(weir) - len(failed)} of {len(weir)} scenarios hold" + (f"; not: {', '.join(failed)}" if failed else ""))
    raise SystemExit(1 if failed or not weir else 0)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", type=Path, required=True)
    parser.add_argument("--peer", type=named, metavar="nginx=BIN", help="goes through the same")
    parser.add_argument("--only", help="names of scenarios, with commas between them")
    parser.add_argument("--seconds", type=float, default=1, help="of load before and after what happens; 1 by default")
    parser.add_argument("--ci", action="store_true", help="a choice that takes 90 s")
    parser.add_argument("--slow", action="store_true", help="also scenarios that take a minute each")
    parser.add_argument("--write", action="store_true", help=f"writes {PAGE.relative_to(ROOT)}")
    return parser.parse_args()


def named(text):
    name, _, binary = text.partition("=")
    if name != "nginx" or not Path(binary).exists():
        raise argparse.ArgumentTypeError("nginx=BIN")
    return name, Path(binary)


def choose(args):
    if args.only:
        names = args.only.split(",")
        unknown = set(names) - {one.name for one in SCENARIOS}
        if unknown:
            raise SystemExit(f"no such scenario: {', '.join(sorted(unknown))}; there are {', '.join(one.name for one in SCENARIOS)}")
        return [one for one in SCENARIOS if one.name in names]
    return [one for one in SCENARIOS if (one.ci_times or not args.ci) and (args.slow or not one.is_slow)]


def show(result):
    """The row of a result, and the reasons for its losses."""
    print(table.line(result), flush=True)
    for fault in result.faults:
        print(f"    fault: {fault}")
    for lost, most in zip(result.losses, result.allowed):
        if len(lost) > most or result.edge_name != "weir":
            for reason in lost[:REASONS_MAX]:
                print(f"    lost: {reason}")
    if result.fails and result.edge_name == "weir":
        for line in result.errors[:REASONS_MAX]:
            print(f"    log: {line}")
    sys.stdout.flush()


def version(peer):
    if not peer:
        return "not measured"
    return subprocess.run([peer[1], "-v"], capture_output=True, text=True).stderr.split("/")[-1].strip()


if __name__ == "__main__":
    main()
