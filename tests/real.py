#!/usr/bin/env python3
"""Real components behind an edge: WordPress, a cloud in the shape of Nextcloud, oauth2-proxy.

    tests/real.py --weir BIN [--nginx BIN] [NAME…]

Each test installs the component in a folder under /tmp, starts an edge in front of it, and uses it as a browser does. With
--nginx, the same test runs with nginx in weir's place, and the program compares the answers: status, fields, and the bodies
that are always the same. The configurations are the ones in docs/guide, with other ports and folders. A test that lacks a
program names the packages; --oauth2-proxy is the binary of `go install github.com/oauth2-proxy/oauth2-proxy/v7@latest`.
"""

import argparse
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "real"))
import cloud
import login
import parts
import wordpress

TESTS = {"wordpress": wordpress, "cloud": cloud, "login": login}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(TESTS)}")
    parser.add_argument("--weir", type=Path)
    parser.add_argument("--nginx", type=Path)
    parser.add_argument("--oauth2-proxy", default="oauth2-proxy")
    parser.add_argument("--nextcloud-conf", type=Path, help="Nextcloud's own nginx file, for the test cloud instead of the guide's")
    parser.add_argument("-v", "--verbose", action="store_true", help="print each expectation that holds, too")
    args = parser.parse_args()
    edges = [(name, binary) for name, binary in (("weir", args.weir), ("nginx", args.nginx)) if binary]
    if not edges:
        parser.error("--weir or --nginx is needed")
    if unknown := set(args.names) - set(TESTS):
        parser.error(f"no such test: {', '.join(sorted(unknown))}")
    passed = failed = 0
    for name in args.names or TESTS:
        good, bad = test(name, edges, args)
        passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")
    raise SystemExit(1 if failed or not passed else 0)


def test(name, edges, args):
    """Runs one test with each edge: the numbers of expectations and comparisons that hold and that do not."""
    transcripts, good, bad = [], 0, 0
    for edge, binary in edges:
        started = time.monotonic()
        with parts.Room(edge, binary, args.verbose) as room:
            try:
                TESTS[name].run(room, args)
            except parts.Missing as missing:
                print(f"{name}: not run: {missing}")
                return 0, 1
            except Exception:
                room.check("the test came to its end", False, traceback.format_exc()[-1500:])
                print(room.read("error.log")[-1500:])
            transcripts.append(room.transcript)
            held = sum(room.checks)
        print(f"{name}, {edge}: {held} of {len(room.checks)} in {time.monotonic() - started:.1f} s", flush=True)
        good, bad = good + held, bad + len(room.checks) - held
    if len(transcripts) == 2:
        same, different = compare(*transcripts)
        print(f"{name}: {same} of {same + different} answers are the same through weir and nginx", flush=True)
        good, bad = good + same, bad + different
    return good, bad


def compare(weir, nginx):
    """Prints the differences between two transcripts: the numbers of equal and of different answers."""
    same = 0
    for ours, theirs in zip(weir, nginx):
        if ours == theirs:
            same += 1
            continue
        print(f"    differs: {ours[0]}" + ("" if ours[0] == theirs[0] else f" / {theirs[0]}"))
        for what, mine, other in zip(("status", "fields", "body"), ours[1:], theirs[1:]):
            if mine == other:
                continue
            if what == "fields":
                mine, other = sorted(set(mine) - set(other)), sorted(set(other) - set(mine))
            print(f"        {what}: weir {mine}, nginx {other}")
    longest = max(len(weir), len(nginx))
    return same, longest - same


if __name__ == "__main__":
    main()
