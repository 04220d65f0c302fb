#!/usr/bin/env python3
"""Attacks weir with the vulnerabilities that nginx has had since 2009, and shows the holes in nginx beside it.

  tests/ledger.py --weir BIN [--nginx BIN]... [--build CHECKOUT] [--write] [PART_OF_A_NAME...]

Each row is one vulnerability: a configuration, an attack, and a judgement. The server must live, serve, use little CPU and memory, show no bytes of
others, and give the right status. All servers listen on loopback. A row whose part weir lacks says so; weir must then refuse its directive by name.
A row over QUIC has no attack here: it names the tests of the readers.

With --build, the program builds the last nginx with the hole from a git checkout of nginx (gcc, make, PCRE, zlib and OpenSSL are needed) and attacks it
too: this shows that the attack is one. AddressSanitizer is in the build where it shows the hole. Binaries are kept in ~/.cache/weir-ledger. With
--nginx, the program attacks these binaries too, and prints the result; it asserts nothing about them. Releases before 1.3.1 ask only port 53 for
names, so their rows need root.

--write needs --build, and writes the table in docs/security.md. --check compares the table's list with the rows.

The exit code is 0 if weir does each time as it should, and if each nginx that was built for a row shows its hole.
"""
import argparse
import concurrent.futures
import dataclasses
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "ledger"))
sys.dont_write_bytecode = True

import absent  # noqa: E402
import build  # noqa: E402
import http2  # noqa: E402
import late  # noqa: E402
import movies  # noqa: E402
import names  # noqa: E402
import page  # noqa: E402
import plain  # noqa: E402
import tls  # noqa: E402
from target import Hole, NotRun, Target  # noqa: E402

# Rows at the same time: most of a row is waiting.
AT_ONCE = 4


def order(row):
    """By year and number; the one name that is no CVE stands with its year."""
    return [int(word) for word in re.findall(r"\d+", row.cve)[:2]]


ROWS = sorted(plain.ROWS + movies.ROWS + names.ROWS + http2.ROWS + tls.ROWS + late.ROWS + absent.ROWS, key=order)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--nginx", action="append", default=[])
    parser.add_argument("--build", metavar="CHECKOUT")
    parser.add_argument("--build-only", action="store_true", help="only fill the cache of binaries")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("parts", nargs="*")
    options = parser.parse_args()
    if options.write and (not options.build or options.parts):
        parser.error("--write needs --build, and all rows")
    rows = [row for row in ROWS if not options.parts or any(part in row.cve for part in options.parts)]
    if options.build:
        built = {id(row): binary(options.build, row) for row in rows if row.release}
        if options.build_only:
            return 0
    else:
        built = {}
    given = [(path, version(path)) for path in options.nginx]
    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as workers:
        results = [result for result in workers.map(lambda row: one(options.weir, built.get(id(row)), given, row), rows) if show(result)]
    wrong = [result for result in results if result.wrong()]
    attacked = [result for result in results if not result.row.absent]
    print(f"{len(rows)} rows in {time.monotonic() - begun:.0f} s: weir as it should in {len([r for r in results if r.weir == page.RIGHT])}, "
          f"of these {len([r for r in attacked if r.row.near])} near an attack that is not public; {len(rows) - len(attacked)} without an attack; "
          f"hole seen in {len([r for r in results if r.nginx.startswith(page.SEEN)])} of {len([row for row in rows if row.release]) if options.build else 0} nginx")
    if options.write and not wrong:
        page.write(HERE, results)
    if options.check and not page.is_current(HERE, ROWS):
        print("docs/security.md does not have these rows: run --write")
        return 1
    return 1 if wrong else 0


def binary(checkout, row):
    """The nginx with the row's hole, or the reason why there is none."""
    try:
        print(f"nginx {row.release}", flush=True)
        return build.nginx(checkout, row.release, row.asan, row.ssl)
    except build.NotBuilt as error:
        return error


def version(path):
    said = subprocess.run([path, "-v"], capture_output=True, text=True, check=True).stderr
    return tuple(int(word) for word in re.search(r"/([\d.]+)", said)[1].split("."))


class Result:
    """The results of one row: with weir, with the nginx that was built, with the nginx that were given."""

    def __init__(self, row):
        self.row, self.weir, self.nginx, self.given, self.seconds = row, "", "", [], 0.0

    def wrong(self):
        return self.weir != page.RIGHT or self.nginx.startswith(page.MISSED)


def one(weir, old, given, row):
    result = Result(row)
    begun = time.monotonic()
    result.weir = verdict(weir, row, True) if not row.absent else refusal(weir, row)
    result.seconds = time.monotonic() - begun
    if isinstance(old, build.NotBuilt):
        result.nginx = f"{page.MISSED}: {row.release} does not compile: {old}"
    elif old:
        said = verdict(old, row, False, build.number(row.release))
        result.nginx = f"{page.SEEN} in {row.release}: {said}" if said not in (page.RIGHT,) and not said.startswith(page.NOT_RUN) else f"{page.MISSED} in {row.release}: {said}"
    for path, number in given:
        if not row.absent:
            result.given.append(f"nginx {'.'.join(map(str, number))}: {verdict(path, row, False, number)}")
    return result


def verdict(path, row, is_weir, number=()):
    """RIGHT, the hole, or the reason why the row did not run."""
    try:
        with Target(path, row, is_weir, number) as target:
            try:
                row.attack(target)
            except Hole as hole:
                # A crash explains a wrong answer. nginx logs it, and AddressSanitizer reports it, a moment later.
                time.sleep(0 if is_weir else 1)
                target.judge()
                raise hole
            except (OSError, ValueError) as error:
                target.judge()
                raise Hole(f"{type(error).__name__}: {error}") from error
            target.judge()
    except Hole as hole:
        return str(hole)
    except NotRun as reason:
        return f"{page.NOT_RUN}: {reason}"
    return page.RIGHT


def refusal(path, row):
    """RIGHT if weir refuses the directive of a part that it lacks, by its name."""
    if not row.refused:
        return page.RIGHT
    try:
        with Target(path, dataclasses.replace(row, main=row.refused), True):
            return "weir takes the directive: " + row.refused
    except NotRun as reason:
        word = re.search(r"spdy|mail", row.refused)
        return page.RIGHT if word and word[0] in str(reason) and "[emerg]" in str(reason) else f"another refusal: {reason}"


def show(result):
    row = result.row
    kind = f" ({row.absent})" if row.absent else " (near it)" if row.near else ""
    print(f"{row.cve}: {row.title}{kind}\n    weir: {result.weir} [{result.seconds:.1f} s]", flush=True)
    for line in ([result.nginx] if result.nginx else []) + result.given:
        print(f"    {line}", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
