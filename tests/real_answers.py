#!/usr/bin/env python3
"""Asks nginx and weir the same on public configurations, and compares every answer.

  tests/real_answers.py --corpus DIR --weir BIN --nginx BIN [-v] [--out FILE.json] [PART_OF_A_NAME...]

DIR has one folder for each repository (OWNER+NAME) with cases in it: `root/` is laid over the machine's file system; `_std` has nginx's usual
files. Each case runs in mount, process and network namespaces of its own (needs root, `ip`, `openssl`, and curl for HTTP/2): first nginx, then weir,
each in a fresh copy of the root. Behind them are origins of this script, one for each address that the file passes requests to: they note
each request and answer with fixed fields. Names of origins lead to a second network, so that an origin may have a port that the edge uses too.
Each folder that the file serves gets the same files.

Compared are the status, every field, the decoded body, and each request as the origin saw it: line, fields in order, body. Not compared are
the values of Date and Server, the product's name, and the ports that the kernel chooses (answers/compare.py). A difference that weir's
documentation explains has a named rule in answers/rules, with its reason, and is counted by itself.

The exit code is 0 if no other difference is left.
"""
import argparse
import collections
import json
import os
import pickle
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
import conf  # noqa: E402
import room  # noqa: E402
import rules  # noqa: E402

# Seconds for one case with both edges.
LIMIT_S = 600
# Seconds for the first answer of the name server.
RESOLVE_S = 0.5
# Of an example, in characters.
SHOWN = 220


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--nginx", required=True)
    parser.add_argument("-v", action="store_true", help="print each difference")
    parser.add_argument("--out", help="a file for all differences, as JSON")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("parts", nargs="*")
    options = parser.parse_args()
    for name in ("corpus", "weir", "nginx"):
        setattr(options, name, os.path.realpath(getattr(options, name)))
    if options.inside:
        return inside(options, *options.inside.split("|"))
    cases = sorted(os.path.join(options.corpus, repository, case) for repository in os.listdir(options.corpus) if "+" in repository
                   for case in os.listdir(os.path.join(options.corpus, repository)))
    cases = [case for case in cases if not options.parts or any(part in case for part in options.parts)]
    version = subprocess.run([options.nginx, "-v"], capture_output=True, text=True, check=True).stderr
    rules.NGINX.append(version.rpartition(" ")[2].strip())
    tally = Tally(options)
    with tempfile.TemporaryDirectory() as pair:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=localhost",
                        "-keyout", pair + "/key.pem", "-out", pair + "/cert.pem"], check=True, capture_output=True)
        for case in cases:
            one(options, case, pair, tally)
    return tally.report(len(cases))


def one(options, case, pair, tally):
    """Runs a case in namespaces of its own, and counts the differences."""
    name = "/".join(case.split("/")[-2:])
    out = pair + "/out"
    words = ["unshare", "-m", "-n", "-p", "-f", "--mount-proc", "--kill-child", sys.executable, os.path.join(HERE, "real_answers.py"), "--corpus", options.corpus, "--weir", options.weir,
             "--nginx", options.nginx, "--inside", f"{case}|{pair}|{out}"]
    try:
        run = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        problem = run.stderr.strip().splitlines()[-1:] if run.returncode else []
    except subprocess.TimeoutExpired:
        problem = [f"took longer than {LIMIT_S} s"]
    if problem:
        tally.failed.append((name, problem[0][:600]))
        print(f"NOT RUN {name}: {problem[0][:600]}", flush=True)
        return
    with open(out, "rb") as file:
        tally.add(name, pickle.load(file))


def inside(options, case, pair, out):
    """In the namespaces: both edges on one case."""
    apart()
    base = tempfile.mkdtemp()
    records, network = {}, None
    for edge, binary in (("nginx", options.nginx), ("weir", options.weir)):
        laid = Laid(case, f"{base}/{edge}", pair)
        network = laid.behind(network, pair)
        running = room.Edge(laid.root, binary, laid.taken)
        laid.resolve()
        records[edge] = ask(laid.plan[:client.MOST_REQUESTS], network)
        running.end()
        laid.root.remove()
    network.stop.set()
    with open(out, "wb") as file:
        pickle.dump({"plan": laid.plan[:client.MOST_REQUESTS], "cut": max(0, len(laid.plan) - client.MOST_REQUESTS), "notes": laid.notes, **records}, file)
    return 0


def apart():
    """Makes the namespaces ready for a case."""
    room.run("mount", "--make-rprivate", "/")
    room.run("ip", "link", "set", "lo", "up")
    for setting in ("net.ipv4.ip_nonlocal_bind=1", "net.ipv6.ip_nonlocal_bind=1", "net.ipv4.ip_unprivileged_port_start=0"):
        subprocess.run(["sysctl", "-qw", setting], capture_output=True, check=False)


class Laid:
    """A case in a root of its own: its requests, its addresses, and its notes for the report."""

    def __init__(self, case, place, pair):
        self.root = room.Root(case, place, pair)
        modules = len(conf.named(conf.read(self.root.path, "/etc/nginx/nginx.conf"), "load_module"))
        self.root.without_modules()
        parsed = conf.read(self.root.path, "/etc/nginx/nginx.conf")
        self.notes = [f"{modules} load_module lines removed"] if modules else []
        if not conf.named(conf.one(parsed, "http"), "server"):
            self.notes.append("the case has no server: one was added")
            with open(self.root.path + "/etc/nginx/nginx.conf", encoding="utf-8") as file:
                self.root.probe(file.read())
            parsed = conf.read(self.root.path, "/etc/nginx/nginx.conf")
        self.http = conf.one(parsed, "http")
        self.plan, self.taken = planned(self.http)

    def behind(self, network, pair):
        """The network with the case's origins, made if there is none, with this root's names, files and sockets."""
        if network is None:
            network = room.Network(conf.origins(self.http), pair)
            for address in {listen.address for listen in self.taken} - {"127.0.0.1", "::1"}:
                room.run("ip", "addr", "replace", address, "dev", "lo")
            network.near({listen.port for listen in self.taken})
        self.root.hosts(network.table)
        self.root.sites(conf.roots(self.http), sorted({target.partition("?")[0] for target in conf.locations([line for server in conf.named(self.http, "server") for line in server.block])}))
        network.sockets(self.root.path)
        return network

    def resolve(self):
        """Waits for the name server, if the file has names that are resolved at run time."""
        if any("resolve" in line.words[2:] for line in conf.walk(self.http) if line.words[:1] == ["server"]):
            # Until the first answer of the name server, such a group has no peers, and both edges send 502.
            time.sleep(RESOLVE_S)


def ask(plan, network):
    """The answers to all requests, each with the requests that origins saw."""
    records = []
    for listen, request in plan:
        network.servers.take()
        answer = client.send(listen, request)
        records.append({"answer": answer, "seen": network.servers.take()})
    return records


def planned(http):
    """The requests of a case, each with the address it goes to; and all addresses of the file."""
    on = any(line.words[1] == "on" for line in conf.named(http, "http2"))
    servers, taken = [], []
    for server in conf.named(http, "server"):
        listens = list(conf.listens(server.block, on))
        taken += listens
        servers.append({"listens": listens, "names": list(conf.names(server.block)), "targets": list(dict.fromkeys(conf.locations(server.block)))})
    plans = [list(client.asked(server, server["targets"])) for server in servers if server["listens"]]
    # Servers take turns, so that a cut shortens all of them.
    turns = [one for place in range(max(map(len, plans), default=0)) for one in (plan[place] for plan in plans if place < len(plan))]
    return turns, sorted(set(taken), key=str)


class Tally:
    """Counts of all cases, and the classes of differences."""

    def __init__(self, options):
        self.options, self.failed, self.classes, self.rules = options, [], collections.defaultdict(list), collections.Counter()
        self.statuses, self.origins = collections.Counter(), collections.Counter()
        self.requests = self.equal = self.explained = self.different = 0

    def add(self, name, found):
        different = explained = 0
        for (listen, request), nginx, weir in zip(found["plan"], found["nginx"], found["weir"]):
            self.statuses[re.sub(r"^HTTP/\S+ (\d+).*", r"\1", nginx["answer"]["status"])] += 1
            self.origins.update(one["kind"] for one in nginx["seen"])
            unexplained, ruled = [], set()
            for difference in compare.differences(nginx, weir):
                rule = rules.rule(request, difference, nginx, weir)
                if rule:
                    ruled.add(rule)
                else:
                    unexplained.append(difference)
                    self.classes[compare.kind(difference)].append((name, listen, request, difference))
            self.rules.update(ruled)
            different += bool(unexplained)
            explained += bool(ruled) and not unexplained
        count = len(found["plan"])
        self.requests += count
        self.different += different
        self.explained += explained
        self.equal += count - different - explained
        notes = "".join(f"; {note}" for note in [*found["notes"], *([f"{found['cut']} requests cut"] if found["cut"] else [])])
        print(f"{count:4} requests, {count - different - explained:4} equal, {explained:4} explained, {different:4} different  {name}{notes}", flush=True)

    def report(self, cases):
        """Prints the classes and the rules; the exit code."""
        for kind, places in sorted(self.classes.items(), key=lambda item: -len(item[1])):
            print(f"\n{len(places)} in {len({place[0] for place in places})} cases: {kind}"[:400])
            for name, listen, request, difference in places if self.options.v else places[:1]:
                print(f"    {name} [{listen.address}]:{listen.port} {request.what}: {request.method} {request.target[:80]} Host: {request.host}")
                print(f"      nginx: {difference.nginx[:SHOWN]}\n      weir:  {difference.weir[:SHOWN]}")
        print()
        for name, reason, *_ in rules.RULES:
            print(f"{self.rules[name]:5} explained by {name}: {reason}")
        print("nginx's answers: " + ", ".join(f"{count} {status}" for status, count in self.statuses.most_common()))
        print("requests that reached an origin: " + ", ".join(f"{count} {kind}" for kind, count in self.origins.most_common()))
        if self.options.out:
            with open(self.options.out, "w", encoding="utf-8") as file:
                json.dump([{"case": name, "request": f"{request.what}: {request.method} {request.target}", "host": request.host, "listen": str(listen), "where": difference.where,
                            "nginx": difference.nginx, "weir": difference.weir} for places in self.classes.values() for name, listen, request, difference in places], file, indent=1)
        for name, problem in self.failed:
            print(f"NOT RUN {name}: {problem}")
        print(f"{cases} cases ({len(self.failed)} not run), {self.requests} requests: {self.equal} equal, {self.explained} explained by a rule, {self.different} different")
        return 1 if self.different or self.failed else 0


if __name__ == "__main__":
    sys.exit(main())
