#!/usr/bin/env python3
"""`weir swap` from nginx to weir, on other people's configurations with generated traffic.

    tests/swap_configs.py public --corpus DIR --weir BIN --nginx BIN [--out FILE.json] [PART_OF_A_NAME…]
    tests/swap_configs.py suite --tests DIR --weir BIN --nginx BIN [--out FILE.json] [FILE.t…]
    tests/swap_configs.py table FILE.json…

`public` takes the configurations of a corpus, each in a root and network of its own with origins of `answers/`, as `real_answers.py` does.
`suite` takes the configurations that nginx's own tests write, from a checkout of nginx/nginx-tests: it runs each test with a program in the place of
nginx, which asks `weir swap` while the test's origins run. Origins that a test lacks are those of `answers/`. Nothing of the suite is copied.

Both ask swap for nginx as A and weir as B, and collect the differences by part, and by the directive of the line that swap names. The
exit code is 0 if no difference is left. Needs root, `ip`, `openssl`; `suite` needs the packages and the user `ngxtest` of the suite's tools.
"""
import argparse
import collections
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "answers"))
sys.dont_write_bytecode = True

import conf  # noqa: E402
import room  # noqa: E402
from origins import Origins  # noqa: E402
from real_answers import planned  # noqa: E402

# Seconds for one swap, and for one test or case with all its swaps.
SWAP_S, CASE_S = 180, 240
# Seconds until the origins of a test listen.
ORIGINS_S = 0.7
# Most requests of one swap, how many a second, and seconds for one: some tests have origins that never answer.
REQUESTS, RATE, TIMEOUT_S = 120, 500, 3
# The user of nginx's tests: as root, nginx's workers could not read the tests' folders.
USER = "ngxtest"
# Flags with which nginx does not serve.
ASIDE = {"-v", "-V", "-t", "-T", "-h", "-?", "-s"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, folder in (("public", "--corpus"), ("suite", "--tests")):
        one = verbs.add_parser(verb)
        one.add_argument(folder, required=True, dest="folder")
        one.add_argument("--weir", required=True)
        one.add_argument("--nginx", required=True)
        one.add_argument("--out", help="a file for the outcomes, as JSON; it is kept up to date, and its cases are not run again")
        one.add_argument("--seconds", type=float, default=1e9, help="begin no case after so many seconds")
        one.add_argument("--no-cause", action="store_true")
        one.add_argument("--inside", help=argparse.SUPPRESS)
        one.add_argument("names", nargs="*")
    verbs.add_parser("table").add_argument("files", nargs="+")
    options = parser.parse_args()
    if options.verb == "table":
        return table([one for file in options.files for one in json.load(open(file, encoding="utf-8"))])
    for name in ("folder", "weir", "nginx"):
        setattr(options, name, os.path.realpath(getattr(options, name)))
    if options.inside:
        return within(options, *options.inside.split("|"))
    return Run(options).all()


class Run:
    """All cases of a corpus or of the suite, one after the other."""

    def __init__(self, options):
        self.options, self.done = options, []
        if options.out and os.path.exists(options.out):
            with open(options.out, encoding="utf-8") as file:
                self.done = json.load(file)

    def all(self):
        options, end = self.options, time.monotonic() + self.options.seconds
        if options.verb == "public":
            names = sorted(f"{repository}/{case}" for repository in os.listdir(options.folder) if "+" in repository
                           for case in os.listdir(os.path.join(options.folder, repository)))
        else:
            names = sorted(name for name in os.listdir(options.folder) if name.endswith(".t"))
        ran = {one["case"] for one in self.done}
        with tempfile.TemporaryDirectory() as pair:
            os.chmod(pair, 0o755)
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=localhost",
                            "-keyout", pair + "/key.pem", "-out", pair + "/cert.pem"], check=True, capture_output=True)
            os.chmod(pair + "/key.pem", 0o644)
            for name in names:
                if (options.names and not any(part == name or part in name and not part.endswith(".t") for part in options.names)) or name in ran or time.monotonic() > end:
                    continue
                found = (self.public if options.verb == "public" else self.test)(name, pair)
                self.done += found
                for one in found:
                    print(line(one), flush=True)
                if options.out:
                    with open(options.out + ".new", "w", encoding="utf-8") as file:
                        json.dump(self.done, file, indent=1)
                    os.replace(options.out + ".new", options.out)
        return table(self.done)

    def flags(self):
        return ["--weir", self.options.weir, "--nginx", self.options.nginx] + ["--no-cause"] * self.options.no_cause

    def public(self, name, pair):
        """A case of the corpus, in namespaces of its own."""
        out = pair + "/out"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(out)
        words = ["unshare", "-m", "-n", "-p", "-f", "--mount-proc", "--kill-child", sys.executable, __file__, "public", "--corpus", self.options.folder,
                 *self.flags(), "--inside", f"{name}|{pair}|{out}"]
        said = bounded(words, os.environ)
        if not os.path.exists(out):
            return [{"case": name, "outcome": "not run", "why": said[-400:]}]
        with open(out, encoding="utf-8") as file:
            return [json.load(file)]

    def test(self, name, pair):
        """A test of the suite, with this program in nginx's place: an outcome for each configuration that it starts, in its order."""
        with tempfile.TemporaryDirectory() as base:
            os.chmod(base, 0o777)
            called = base + "/nginx"
            with open(called, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\nexec /usr/bin/python3 {__file__} suite --tests {self.options.folder} {' '.join(self.flags())} --inside '{name}|{pair}|{base}' -- \"$@\"\n")
            os.chmod(called, 0o755)
            environment = {"PATH": os.environ["PATH"], "TEST_NGINX_BINARY": called, "TMPDIR": base, "HOME": base, "LANG": "C", "TZ": "UTC", "TEST_NGINX_UNSAFE": "1"}
            shell = f"ip link set lo up; cd {self.options.folder}; setpriv --reuid={USER} --regid={USER} --init-groups --inh-caps=-all perl -Ilib {name}; exit $?"
            said = bounded(["unshare", "-n", "-p", "-f", "--mount-proc", "--kill-child", "sh", "-c", shell], environment)
            found = []
            for place in sorted(os.listdir(base)):
                if place.startswith("outcome-"):
                    with open(f"{base}/{place}", encoding="utf-8") as file:
                        found.append(json.load(file))
        if not found:
            skipped = re.search(r"1\.\.0 # SKIP (.*)", said, re.I)
            return [{"case": name, "outcome": "skipped" if skipped else "not run", "why": skipped[1] if skipped else said[-400:]}]
        return found


def bounded(words, environment):
    """Runs the words at most so long as a case may take; what they said."""
    process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        return process.communicate(timeout=CASE_S)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return f"took longer than {CASE_S} s"


def within(options, name, pair, out):
    return public_case(options, name, pair, out) if options.verb == "public" else as_nginx(options, name, pair, out)


def public_case(options, name, pair, out):
    """In the namespaces: a root with the case's files, the origins beside it, and swap inside of the root."""
    room.run("mount", "--make-rprivate", "/")
    room.run("ip", "link", "set", "lo", "up")
    for setting in ("net.ipv4.ip_nonlocal_bind=1", "net.ipv6.ip_nonlocal_bind=1", "net.ipv4.ip_unprivileged_port_start=0"):
        subprocess.run(["sysctl", "-qw", setting], capture_output=True, check=False)
    root = room.Root(os.path.join(options.folder, name), tempfile.mkdtemp() + "/root", pair)
    root.without_modules()
    parsed = conf.read(root.path, "/etc/nginx/nginx.conf")
    if not conf.named(conf.one(parsed, "http"), "server"):
        with open(root.path + "/etc/nginx/nginx.conf", encoding="utf-8") as file:
            root.probe(file.read())
        parsed = conf.read(root.path, "/etc/nginx/nginx.conf")
    http = conf.one(parsed, "http")
    _, taken = planned(http)
    network = room.Network(conf.origins(http), pair)
    for address in {listen.address for listen in taken} - {"127.0.0.1", "::1"}:
        room.run("ip", "addr", "replace", address, "dev", "lo")
    network.near({listen.port for listen in taken})
    root.hosts(network.table)
    root.sites(conf.roots(http), sorted({target.partition("?")[0] for target in conf.locations([line for server in conf.named(http, "server") for line in server.block])}))
    network.sockets(root.path)
    places = {}
    for program in ("weir", "nginx"):
        place = f"/opt/candidate/{program}"
        os.makedirs(root.path + "/opt/candidate", exist_ok=True)
        shutil.copy(getattr(options, program), root.path + place)
        places[program] = place
    outcome = {"case": name, **swap(["chroot", root.path], places, "/etc/nginx/nginx.conf", root.path + "/tmp", "/tmp", options.no_cause)}
    with open(out, "w", encoding="utf-8") as file:
        json.dump(outcome, file)
    return 0


def as_nginx(options, name, pair, base):
    """In the place of nginx: asks the real nginx what is no start, and swap at a start, while the test waits."""
    words = options.names
    if ASIDE & set(words):
        os.execv(options.nginx, [options.nginx, *words])
    parent = os.getppid()
    os.kill(parent, signal.SIGSTOP)
    try:
        folder = words[words.index("-p") + 1]
        path = os.path.join(folder, words[words.index("-c") + 1])
        number = sum(place.startswith("outcome-") for place in os.listdir(base))
        before = set(os.listdir(folder))
        refused = subprocess.run([options.nginx, "-t", *words], capture_output=True, text=True, errors="replace", check=False)
        for left in set(os.listdir(folder)) - before:
            # `-t` writes an empty pid file, which says to the test that nginx runs.
            if left.endswith(".pid"):
                os.unlink(os.path.join(folder, left))
        if refused.returncode:
            outcome = {"outcome": "refused by nginx", "why": emergency(refused.stderr)}
        else:
            stand_in(path, pair)
            outcome = swap([], {"weir": options.weir, "nginx": options.nginx}, path, folder, folder, options.no_cause)
        with open(path, encoding="utf-8", errors="replace") as file:
            outcome["text"] = file.read()
        with open(f"{base}/outcome-{number:03}", "w", encoding="utf-8") as file:
            json.dump({"case": name, "number": number, **outcome}, file)
        if outcome["outcome"] != "refused by nginx":
            # The test has no more to give. Its end is that of its processes, too.
            os.kill(parent, signal.SIGKILL)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(parent, signal.SIGCONT)
    return 1


def stand_in(path, pair):
    """Starts an origin for each address of the file that neither the file nor the test listens on."""
    time.sleep(ORIGINS_S)
    http = conf.one(conf.read("", path), "http")
    own = {listen.port for server in conf.named(http, "server") for listen in conf.listens(server.block, False)}
    servers = Origins(pair)
    for origin in conf.origins(http):
        if origin.path or origin.port in own or origin.host not in ("127.0.0.1", "localhost", "::1"):
            continue
        with contextlib.suppress(OSError):
            servers.listen(socket.create_server((origin.host, origin.port), backlog=64), origin.protocol, origin.tls)


def swap(before, places, path, folder, seen_as, is_without_cause):
    """Asks swap about one file: its outcome. `before` are words before the command; `folder` is for the report, `seen_as` its name inside."""
    words = [*before, places["weir"], "swap", path, path, "--binary-a", places["nginx"], "--binary-b", places["weir"], "--requests", REQUESTS, "--rate", RATE, "--timeout", TIMEOUT_S,
             "--json", f"{seen_as}/swap-report.json", *["--no-cause"] * is_without_cause]
    started = time.monotonic()
    try:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, errors="replace", timeout=SWAP_S, stdin=subprocess.DEVNULL, check=False)
    except subprocess.TimeoutExpired:
        return {"outcome": "no report", "why": f"took longer than {SWAP_S} s"}
    seconds = round(time.monotonic() - started, 1)
    with contextlib.suppress(OSError, ValueError):
        with open(f"{folder}/swap-report.json", encoding="utf-8") as file:
            report = json.load(file)
        return {"outcome": report["verdict"], "exit": done.returncode, "seconds": seconds, "report": report}
    return {"outcome": "no report", "exit": done.returncode, "seconds": seconds, "why": emergency(done.stderr or done.stdout)}


def emergency(said):
    """The line that says why a file is refused, else the last line."""
    lines = said.strip().splitlines() or ["nothing said"]
    return next((one for one in lines if "[emerg]" in one), lines[-1])[-400:]


def line(one):
    """An outcome as a line of the terminal."""
    report = one.get("report", {})
    counts = report.get("requests", {})
    parts = collections.Counter(difference["part"] for difference in report.get("differences", []))
    told = one.get("why") or f"{counts.get('comparable')} of {counts.get('asked')} comparable, {counts.get('differing')} differ; " + ", ".join(f"{part} ×{count}" for part, count in parts.items())
    return f"{one['outcome']:16} {one.get('seconds', 0):5} s  {one['case']} {one.get('number', '')} {told}"[:400]


def table(done):
    """Prints the counts of outcomes, the reasons, and the differences by part and directive; the exit code."""
    outcomes = collections.Counter(one["outcome"] for one in done)
    whys, classes = collections.defaultdict(list), collections.defaultdict(list)
    for one in done:
        if one.get("why"):
            whys[one["outcome"], re.sub(r"\d+", "N", re.sub(r"\S*/", "", one["why"]))[-150:]].append(one["case"])
        for difference in one.get("report", {}).get("differences", []):
            named = sorted({cause["text"].split()[0] for cause in difference.get("causes", []) if cause.get("text")})
            classes[difference["part"], difference["kind"], " ".join(named)].append((one["case"], difference))
    for (outcome, why), cases in sorted(whys.items(), key=lambda item: (item[0][0], -len(item[1]))):
        print(f"{len(cases):4} {outcome}: {why}  ({', '.join(cases[:3])})")
    print()
    for (part, kind, named), found in sorted(classes.items(), key=lambda item: -len(item[1])):
        case, first = found[0]
        request = first.get("request") or {}
        print(f"{len(found):4} in {len({case for case, _ in found}):3} cases  {part} ({kind}) {named}")
        print(f"          {case}: {request.get('method')} {request.get('target')}\n          nginx {str(first.get('a'))[:200]!r}\n          weir  {str(first.get('b'))[:200]!r}")
    asked = sum(one.get("report", {}).get("requests", {}).get("comparable", 0) for one in done)
    print("\n" + ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()) + f"; {asked} comparable requests, {sum(map(len, classes.values()))} differences")
    return 1 if classes or not done else 0


if __name__ == "__main__":
    sys.exit(main())
