#!/usr/bin/env python3
"""The doctor judged by gixy-ng's labelled configurations.

Fetches gixy-ng's source distribution from PyPI with pip, runs `weir doctor --json --only RULE` on every file of
tests/plugins/simply/RULE, and compares: a name that ends in _fp.conf wants silence, any other wants a finding. Prints
precision and recall, and a line for each miss. Nothing that was fetched is kept.

    tests/gixy.py [--weir target/debug/weir] [--sdist DIR] [--check]

--check exits with 1 below precision 0.95 or recall 0.8. Options that a file gives to gixy (`# Options:`) are passed on
where the doctor has them (the version); a list of domains it has not.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

VERSION = "0.2.59"


def fetch(into):
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:",
               f"gixy-ng=={VERSION}", "--dest", into]
    subprocess.run(command, check=True)
    archive = next(pathlib.Path(into).glob("gixy_ng-*.tar.gz"))
    with tarfile.open(archive) as tar:
        tar.extractall(into, filter="data")
    return next(path for path in pathlib.Path(into).glob("gixy_ng-*") if path.is_dir())


def found(weir, rule, conf):
    options = {}
    for line in conf.read_text().splitlines()[:3]:
        if line.startswith("# Options: "):
            options = json.loads(line.removeprefix("# Options: "))
    command = [weir, "doctor", "--json", "--no-host", "--only", rule, str(conf)]
    if "version" in options:
        command += ["--nginx-version", options["version"]]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if answer.returncode not in (0, 1):
        raise SystemExit(f"{conf}: {answer.stderr}")
    return len(json.loads(answer.stdout)["findings"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weir", default="target/debug/weir")
    parser.add_argument("--sdist", help="an unpacked source distribution, instead of fetching one")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(args.sdist) if args.sdist else fetch(scratch)
        score = {"right": 0, "missed": 0, "wrong": 0, "silent": 0}
        for folder in sorted((root / "tests/plugins/simply").iterdir()):
            for conf in sorted(folder.glob("*.conf")):
                speaks = found(args.weir, folder.name, conf) > 0
                should = not conf.name.endswith("_fp.conf")
                verdict = {(True, True): "right", (True, False): "missed", (False, True): "wrong",
                           (False, False): "silent"}[should, speaks]
                score[verdict] += 1
                if verdict in ("missed", "wrong"):
                    print(f"{verdict:6}  {folder.name}/{conf.name}")
    precision = score["right"] / max(1, score["right"] + score["wrong"])
    recall = score["right"] / max(1, score["right"] + score["missed"])
    print(f"gixy-ng {VERSION}: {sum(score.values())} files, {score}")
    print(f"precision {precision:.3f}, recall {recall:.3f}")
    if args.check and (precision < 0.95 or recall < 0.8):
        sys.exit(1)


if __name__ == "__main__":
    main()
