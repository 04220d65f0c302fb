#!/usr/bin/env python3
"""Compares docs/reference/nginx-changes.md with nginx's own list of changes.

    tests/changes.py --source CHECKOUT

Each change since 1.29.0 in CHECKOUT/docs/xml/nginx/changes.xml must have a row of its version and kind, in nginx's order.
The program prints the first difference of each version and exits with 1 if there is one.
"""

import argparse
import pathlib
import re
import sys
from itertools import zip_longest
from xml.etree import ElementTree

PAGE = pathlib.Path(__file__).parents[1] / "docs/reference/nginx-changes.md"
FIRST = (1, 29, 0)


def listed(source):
    text = pathlib.Path(source, "docs/xml/nginx/changes.xml").read_text()
    text = re.sub(r"<!DOCTYPE[^>]*>", "", text)
    text = re.sub(r"&(?!amp;|lt;|gt;|quot;|#)\w+;", " ", text)
    for changes in ElementTree.fromstring(text).findall("changes"):
        version = changes.get("ver")
        if tuple(map(int, version.split("."))) < FIRST:
            return
        for change in changes.findall("change"):
            words = next("".join(para.itertext()) for para in change.findall("para") if para.get("lang") == "en")
            yield version, change.get("type") or "-", " ".join(words.split())


def written():
    for line in PAGE.read_text().splitlines():
        if match := re.fullmatch(r"\| ([\d.]+) \| (\S+) \| (.+) \| (.+) \|", line):
            yield match.groups()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", required=True)
    told, wrong = set(), 0
    for theirs, ours in zip_longest(listed(parser.parse_args().source), written()):
        version = (theirs or ours)[0]
        if (theirs or ())[:2] != (ours or ())[:2] and version not in told:
            told.add(version)
            wrong += 1
            print(f"{version}: nginx has {theirs}, the page has {ours}")
    answers = {row[3] for row in written() if not re.match(r"has|refuses by name|own code|no meaning", row[3])}
    for answer in answers:
        wrong += 1
        print(f"no answer: {answer}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
