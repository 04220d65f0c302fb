#!/usr/bin/env python3
"""A promoted canary is the same as a reload of its file: the same requests to both, on public configurations.

  tests/canary_corpus.py --corpus DIR --weir BIN [--requests 150] [--seconds S] [PART_OF_A_NAME...]

Each case of the corpus (as in real_answers.py, with its namespaces and origins) begins with another version of its files: in each server `return 418;` stands before
everything else, and every fourth statement of many kinds is removed. Then the case's own files come back, once by a reload, and once by `weir canary` and
`weir canary promote`, each in a fresh root. All answers must be equal: status, fields, body, and each request as an origin saw it.

A case that weir refuses as a canary is counted with its reason. The exit code is 0 if no answer differs, and if each case was promoted or refused. Needs root.
"""
import argparse
import collections
import os
import pickle
import random
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "answers"))
sys.dont_write_bytecode = True

import client  # noqa: E402
import compare  # noqa: E402
import real_answers  # noqa: E402
import room  # noqa: E402

# Seconds for one case, for a configuration to come into force, and until all workers have it.
LIMIT_S, FORCE_S, SETTLE_S = 300, 15, 0.5
OLD = "418"
# Statements of the old version that may be missing: no place, no name and no address depends on them.
REMOVABLE = re.compile(r"^\s*(add_header|proxy_set_header|proxy_(?:buffer|connect|read|send|redirect|hide|cache_v|cache_b|cache_u|http)\w*|gzip\w*|expires|client_\w+|keepalive\w*|"
                       r"limit_req|limit_conn|error_page|index|sendfile|tcp_\w+|open_file_cache\w*|send_timeout|server_tokens|ssl_session\w*|ssl_prefer\w*|sub_filter\w*|"
                       r"charset|etag|deny|allow|fastcgi_(?:param|read|buffer)\w*|access_log|rewrite|types_hash\w*)\s[^{}]*;\s*(?:#.*)?$")
SERVER = re.compile(r"^(\s*server\s*\{)", re.M)
PART = 4


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--requests", type=int, default=150, help="of each case, at most")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no case after so many seconds")
    parser.add_argument("--words", type=str.split, default=["--look", "1s", "--anyway"], help="further words for `weir canary`")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("parts", nargs="*")
    options = parser.parse_args()
    for name in ("corpus", "weir"):
        setattr(options, name, os.path.realpath(getattr(options, name)))
    if options.inside:
        return inside(options, *options.inside.split("|"))
    cases = sorted(os.path.join(options.corpus, repository, case) for repository in os.listdir(options.corpus) if "+" in repository
                   for case in os.listdir(os.path.join(options.corpus, repository)))
    end, report = time.monotonic() + options.seconds, Report()
    with tempfile.TemporaryDirectory() as pair:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=localhost",
                        "-keyout", pair + "/key.pem", "-out", pair + "/cert.pem"], check=True, capture_output=True)
        for case in cases:
            if time.monotonic() < end and (not options.parts or any(part in case for part in options.parts)):
                report.add("/".join(case.split("/")[-2:]), outcome(options, case, pair))
    return report.end()


def outcome(options, case, pair):
    """The outcome of a case, in namespaces of its own."""
    out = pair + "/out"
    words = ["unshare", "-m", "-n", "-p", "-f", "--mount-proc", "--kill-child", sys.executable, __file__, "--corpus", options.corpus, "--weir", options.weir,
             "--requests", options.requests, "--words=" + " ".join(options.words), "--inside", f"{case}|{pair}|{out}"]
    try:
        run = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"took longer than {LIMIT_S} s"}
    if run.returncode:
        return {"failed": (run.stderr.strip().splitlines() or ["nothing said"])[-1][:600]}
    with open(out, "rb") as file:
        return pickle.load(file)


class Report:
    """Counts of all cases."""

    def __init__(self):
        self.counts, self.refused, self.requests, self.different = collections.Counter(), collections.defaultdict(list), 0, 0

    def add(self, name, found):
        if "failed" in found or "refused" in found:
            kind = "failed" if "failed" in found else "refused"
            self.counts[kind] += 1
            if kind == "refused":
                self.refused[re.sub(r"\d+(\.\d+)*(:\d+)?|\"[^\"]*\"", "…", found["refused"])[:160]].append(name)
            print(f"{kind:8} {name}: {found[kind]}", flush=True)
            return
        differing = []
        for (listen, request), reloaded, promoted in zip(found["plan"], found["reload"], found["canary"]):
            first = next(iter(compare.differences(reloaded, promoted)), None)
            differing += [(listen, request, first)] if first else []
        self.counts["promoted"] += 1
        self.requests += len(found["plan"])
        self.different += len(differing)
        statuses = collections.Counter(one["answer"]["status"].split(" ")[1] for one in found["canary"] if " " in one["answer"]["status"])
        print(f"promoted {name}: {len(found['plan'])} requests, {len(differing)} different; from a version with {found['removed']} statements removed; "
              + ", ".join(f"{count} {status}" for status, count in statuses.most_common(5)), flush=True)
        for listen, request, difference in differing[:3]:
            print(f"    [{listen.address}]:{listen.port} {request.what}: {request.method} {request.target[:80]} Host: {request.host}: {difference.where}\n"
                  f"      reload: {difference.nginx[:200]}\n      canary: {difference.weir[:200]}", flush=True)

    def end(self):
        for reason, names in sorted(self.refused.items(), key=lambda item: -len(item[1])):
            print(f"{len(names):3} refused: {reason} ({', '.join(names[:3])})")
        print(f"{sum(self.counts.values())} cases: " + ", ".join(f"{count} {kind}" for kind, count in self.counts.most_common())
              + f"; {self.requests:,} requests, {self.different} different")
        return int(bool(self.different or self.counts["failed"] or not self.counts["promoted"]))


def inside(options, case, pair, out):
    """In the namespaces: the case by a reload, and by a canary."""
    real_answers.apart()
    found, network = {}, None
    base = tempfile.mkdtemp()
    for way in ("canary", "reload"):
        laid = real_answers.Laid(case, f"{base}/{way}", pair)
        network = laid.behind(network, pair)
        own = files(laid.root.path + "/etc/nginx")
        running, found["removed"] = begin(laid, options.weir, own, os.path.basename(case))
        put(own)
        plan = laid.plan[:options.requests]
        said = reload(laid) if way == "reload" else canary(laid, options)
        if said is None:
            in_force(plan)
            laid.resolve()
            found["plan"], found[way] = plan, real_answers.ask(plan, network)
        running.end()
        laid.root.remove()
        if said is not None:
            found = {"refused" if way == "canary" else "failed": said}
            break
    network.stop.set()
    with open(out, "wb") as file:
        pickle.dump(found, file)
    return 0


def files(folder):
    """The text of each file below a folder."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, encoding="utf-8", errors="surrogateescape") as file:
                    found[path] = file.read()
    return found


def put(texts):
    """Writes the files, which keep their times: some are served."""
    for path, text in texts.items():
        before = os.stat(path)
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def begin(laid, weir, own, seed):
    """Starts weir with another version of the files: the edge, and the number of statements that it lacks. Fewer are removed if it does not start."""
    for part in (PART, 4 * PART, None):
        draw, removed, texts = random.Random(seed), 0, {}
        for path, text in own.items():
            lines = []
            for line in text.splitlines(True):
                if part and REMOVABLE.match(line) and draw.randrange(part) == 0:
                    removed += 1
                else:
                    lines.append(line)
            texts[path] = SERVER.sub(rf"\1 return {OLD};", "".join(lines))
        put(texts)
        try:
            return room.Edge(laid.root, weir, laid.taken), removed
        except RuntimeError as problem:
            last = problem
    raise last


def reload(laid):
    """Reloads the edge; why it refuses."""
    return ordered(laid, "nginx", "-s", "reload")


def canary(laid, options):
    """Begins and promotes a canary of the file; why weir refuses it, if it does."""
    place = laid.root.path + "/opt/candidate/weir"
    open(place, "w").close()
    room.run("mount", "--bind", options.weir, place)
    try:
        refused = ordered(laid, "weir", "canary", "/etc/nginx/nginx.conf", "--share", "50%", "--no-promote", *options.words)
        return refused or ordered(laid, "weir", "canary", "promote")
    finally:
        room.run("umount", "-l", place)


def ordered(laid, program, *words):
    """Gives an order to the edge, which may not have written its pid file yet."""
    until = time.monotonic() + FORCE_S
    while True:
        done = subprocess.run(["chroot", laid.root.path, f"/opt/candidate/{program}", *words, "-p", "/etc/nginx/", "-c", "/etc/nginx/nginx.conf"],
                              capture_output=True, text=True, errors="replace", env={**os.environ, "WEIR_LANG": "en"}, check=False)
        said = (done.stderr or done.stdout).strip().splitlines()
        if not done.returncode or time.monotonic() > until or 'invalid PID number ""' not in said[-1] and "No such file" not in said[-1]:
            return said[-1] if done.returncode else None
        time.sleep(0.1)


def in_force(plan):
    """Waits until nobody gets the old version any more."""
    until = time.monotonic() + FORCE_S
    firsts = {}
    for listen, request in plan:
        firsts.setdefault((listen.address, listen.port, request.host), (listen, request))
    # Of each server one request, again and again.
    for listen, request in firsts.values():
        in_row = 0
        while in_row < 8 and time.monotonic() < until:
            in_row = 0 if f" {OLD}" in client.send(listen, request)["status"][:14] else in_row + 1
    time.sleep(SETTLE_S)


if __name__ == "__main__":
    sys.exit(main())
