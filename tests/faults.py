#!/usr/bin/env python3
"""A hostile origin behind weir, and behind nginx: what the client gets, what the log says, what is counted.

    tests/faults.py --weir BIN [--nginx BIN] [--table FILE] [NAME…]

Each case of tests/faults/ is one fault. It is played towards clients over HTTP/1.1 and HTTP/2, through the cache, and with a
second peer for a GET, for a POST, and for an invalid answer (`invalid_header`). A case fails if weir's outcome is not the one of the table, if the log lacks nginx's line, if a counter is wrong, if an answer that is cut
looks complete, if the cache keeps a part of it, or if the next client gets a byte that is not its own. With --nginx, nginx runs
the same cases, and a difference needs a reason in the table. `protocol/part-of-a-name` selects cases.
"""

import argparse
import asyncio
import concurrent.futures
import glob
import multiprocessing
import re
import resource
import sys
from pathlib import Path

# The longest wait for an answer, in seconds. nginx never answers some of the cases.
PATIENCE = 20
NGINX_PATIENCE = 3

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/faults"))
# The environment of `cargo xtask ci` has the package hpack.
sys.path += glob.glob(str(ROOT / "target/python/lib/python*/site-packages"))

import cgi_faults
import client
import http1
import http2
import https
import origin
import reasons
import streams
import table
from edge import Edge
from suite import Suite


def suites(names):
    return [
        Suite("http", origin.Http1, http1.CASES, names=names),
        Suite("https", origin.Http1, https.CASES, ("h1", "h2", "cache"), names),
        Suite("h2", http2.Http2, http2.cases(), names=names),
        Suite("grpc", http2.Http2, http2.cases(), ("grpc", "second"), names),
        Suite("fastcgi", origin.FastCgi, cgi_faults.FASTCGI, names=names),
        Suite("uwsgi", origin.Uwsgi, cgi_faults.plain("uwsgi"), names=names),
        Suite("scgi", origin.Scgi, cgi_faults.plain("scgi"), names=names),
        Suite("memcached", origin.Memcached, cgi_faults.MEMCACHED, ("h1", "h2", "second"), names),
        streams.Streams(names),
    ]


def run(name, binary, protocol, names, patience):
    """The cases of one protocol with one edge, in a process of its own: the results by case and way."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    client.PATIENCE = patience
    suite = next(suite for suite in suites(names) if suite.protocol == protocol)
    edge = Edge(name, binary)
    try:
        results = asyncio.run(suite.run(edge))
    finally:
        edge.remove()
    print(f"{name}, {protocol}: {len(suite.cases)} faults in {suite.seconds:.1f} s", flush=True)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="PROTOCOL/PART-OF-A-NAME; all without one")
    parser.add_argument("--weir", type=Path, required=True)
    parser.add_argument("--nginx", type=Path)
    parser.add_argument("--table", type=Path, help="writes the results of both side by side into this file")
    args = parser.parse_args()
    chosen = [suite for suite in suites(args.names) if suite.cases]
    # Two at a time: the tests of other programs may run beside this one.
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        begun = {(name, suite.protocol): pool.submit(run, name, binary, suite.protocol, args.names, patience)
                 for name, binary, patience in (("weir", args.weir, PATIENCE), ("nginx", args.nginx, NGINX_PATIENCE)) if binary
                 for suite in chosen}
        results = {key: future.result() for key, future in begun.items()}
    failed, total, nginx_failed = 0, 0, 0
    for suite in chosen:
        for case in suite.cases:
            name = f"{suite.protocol}/{case.name}"
            for way, result in results["weir", suite.protocol][case.name].items():
                other = args.nginx and results["nginx", suite.protocol][case.name][way]
                if other and set(other.outcomes) != set(result.outcomes) and not reason(name):
                    result.faults.append(f"weir {list(result.outcomes)}, nginx {list(other.outcomes)}, and no reason")
                total, failed = total + 1, failed + bool(result.faults)
                nginx_failed += bool(other and other.foreign)
                for fault in result.faults[:3]:
                    print(f"    {name}, {way}: {fault}")
    if args.table:
        args.table.write_text(table.text(chosen, results, reason))
    print(f"{total - failed} of {total} hold" + (f"; with nginx, the next client got a foreign answer in {nginx_failed}" if args.nginx else ""))
    raise SystemExit(1 if failed or not total else 0)


def reason(name):
    """Why nginx differs in this case; `None` if the list has no reason."""
    return next((why for pattern, why in reasons.REASONS if re.match(pattern, name)), None)


if __name__ == "__main__":
    main()
