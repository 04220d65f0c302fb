"""Runs the cases of a program, and says which of them failed."""

import argparse
import asyncio
import hashlib
import inspect
import sys
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from edge import Edge
from ports import free_ports

# The longest time for a case, in seconds.
PATIENCE = 150


def edge(binary, *names):
    """An edge, and a port for each name and for its API (`api`)."""
    ports = dict(zip((*names, "api"), free_ports(len(names) + 1)))
    return Edge(binary, ports["api"]), ports


def sha(data):
    return hashlib.sha256(data).hexdigest()


def main(place, module):
    parser = argparse.ArgumentParser(description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("names", nargs="*")
    words = parser.parse_args()
    cases = [case for name, case in vars(module).items()
             if inspect.iscoroutinefunction(case) and case.__module__ == "__main__" and not name.startswith("_")]
    cases = [case for case in cases if not words.names or any(name in case.__name__ for name in words.names)]
    sys.exit(asyncio.run(run(place(), cases, words.weir)))


async def run(place, cases, binary):
    failed = 0
    await place.start(binary)
    try:
        for case in cases:
            begun = time.monotonic()
            try:
                said = await asyncio.wait_for(case(place), PATIENCE)
                print(f"ok      {case.__name__} ({time.monotonic() - begun:.1f} s) {said or ''}", flush=True)
            except Exception:
                failed += 1
                print(f"FAILED  {case.__name__}\n{traceback.format_exc()}", flush=True)
        await place.edge.settled()
        await place.edge.stop()
    except (AssertionError, OSError) as error:
        failed += 1
        print(f"FAILED  at the end: {error}", flush=True)
    finally:
        if failed:
            print("--- error.log\n" + place.edge.text("error.log")[-6000:])
        place.edge.remove()
    print(f"{len(cases)} cases, {failed} failed")
    return 1 if failed else 0
