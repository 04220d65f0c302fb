#!/usr/bin/env python3
"""Runs the stored Artillery samples with weir, and compares names and counts with the stored JSON reports.

  tests/load/samples.py /work/shared/artillery-samples [--weir target/release/weir] [NAME...]

The scripts name fixed ports, so everything runs in a network namespace of its own (root, or user namespaces).
Equal must be: the names of counters, rates and summaries, and every count, except
  - counts that chance decides (weights, and what follows from them): within 5 standard deviations of what was to be
    expected, and together equal where they share a fixed total;
  - values: latencies, rates, bytes of answers other than /1k (the samples' server is not ours).
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLES = ["http-refused", "http-rich", "http-loop100", "ws", "socketio", "socketio-v1style-silently-unacked"]
# Weights in each sample whose scenarios are drawn by chance: (created in all, {scenario: share}).
DRAWN = {
    "http-rich": {"browse": 3 / 4, "broken": 1 / 4},
    "socketio": {"ack default ns": 1 / 5, "ack namespace": 3 / 5, "bad ack": 1 / 5},
    "socketio-v1style-silently-unacked": {"ack default ns": 1 / 4, "ack namespace": 3 / 4},
}
# What one virtual user of each scenario adds to each count.
PER_VUSER = {
    "http-rich": {
        "browse": {"http.requests": 3, "http.codes.200": 3, "http.responses": 3, "apdex.satisfied": 3, "vusers.completed": 1,
                   "plugins.expect.ok": 6, "plugins.expect.ok.statusCode": 3, "plugins.expect.ok.contentType": 1,
                   "plugins.expect.ok.hasProperty": 1, "plugins.expect.ok.equals": 1,
                   "plugins.metrics-by-endpoint./login.codes.200": 1,
                   "plugins.metrics-by-endpoint./item?token={{ token }} (item by token).codes.200": 1,
                   "plugins.metrics-by-endpoint./cart?token={{ token }}.codes.200": 1},
        "broken": {"http.requests": 2, "http.codes.200": 1, "http.codes.404": 1, "http.responses": 2, "apdex.satisfied": 2,
                   "vusers.failed": 1, "plugins.expect.failed": 1, "plugins.expect.failed.statusCode": 1,
                   "errors.Failed capture or match": 1, "plugins.metrics-by-endpoint./login.codes.200": 1,
                   "plugins.metrics-by-endpoint./missing.codes.404": 1},
    },
    "socketio": {
        "ack default ns": {"socketio.emit": 1, "vusers.completed": 1},
        "ack namespace": {"socketio.emit": 6, "vusers.completed": 1},
        "bad ack": {"socketio.emit": 1, "vusers.failed": 1, "errors.Failed match": 1},
    },
    "socketio-v1style-silently-unacked": {
        "ack default ns": {"socketio.emit": 1, "vusers.completed": 1},
        "ack namespace": {"socketio.emit": 10, "vusers.completed": 1},
    },
}
BYTES = "http.downloaded_bytes"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("samples")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--weir", default=os.path.join(HERE, "../../target/release/weir"))
    options = parser.parse_args()
    if "WEIR_SAMPLES_INSIDE" not in os.environ:
        inside = dict(os.environ, WEIR_SAMPLES_INSIDE="1")
        os.execvpe("unshare", ["unshare", *([] if os.getuid() == 0 else ["-r"]), "-n", sys.executable, *sys.argv], inside)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    node = ["node", os.path.join(HERE, "servers.mjs"), "8080", "8090", "8081"]
    servers = subprocess.Popen(node, stdout=subprocess.PIPE)
    servers.stdout.readline()
    try:
        failed = sum(not judge(options, name) for name in options.names or SAMPLES)
    finally:
        servers.kill()
    sys.exit(1 if failed else 0)


def judge(options, name):
    with open(os.path.join(options.samples, f"{name}.json")) as file:
        stored = json.load(file)["aggregate"]
    with tempfile.TemporaryDirectory() as room:
        output = os.path.join(room, "report.json")
        script = os.path.join(options.samples, f"{name}.yml")
        run = subprocess.run([options.weir, "load", script, "-o", output], capture_output=True, text=True)
        if not os.path.exists(output):
            print(f"{name}: no report (exit {run.returncode})\n{run.stderr}")
            return False
        with open(output) as file:
            ours = json.load(file)["aggregate"]
    wrong = [*names(stored, ours), *counts(name, stored["counters"], ours["counters"])]
    print(f"{name}: {'as Artillery' if not wrong else 'DIFFERS'} ({len(stored['counters'])} counters)")
    for line in wrong:
        print(f"  {line}")
    return not wrong


def names(stored, ours):
    for kind in ("counters", "rates", "summaries", "histograms"):
        theirs, mine = set(stored[kind]), set(ours[kind])
        yield from (f"{kind}: {name} is missing" for name in sorted(theirs - mine))
        yield from (f"{kind}: {name} is one too many" for name in sorted(mine - theirs))
    for kind in ("summaries", "histograms"):
        for name in sorted(set(stored[kind]) & set(ours[kind])):
            if set(stored[kind][name]) != set(ours[kind][name]):
                yield f"{kind}: {name} has {sorted(ours[kind][name])}, not {sorted(stored[kind][name])}"
    missing = {key for key in stored if key not in ours}
    if missing:
        yield f"aggregate: {sorted(missing)} missing"


def counts(name, stored, ours):
    shares = DRAWN.get(name)
    drawn = {scenario: ours.get(f"vusers.created_by_name.{scenario}", 0) for scenario in shares or {}}
    created = stored["vusers.created"]
    for scenario, share in (shares or {}).items():
        allowed = 5 * math.sqrt(created * share * (1 - share))
        if abs(drawn[scenario] - created * share) > allowed:
            yield f"{scenario}: {drawn[scenario]} of {created}, expected {created * share:.0f} ± {allowed:.0f}"
    for counter, value in stored.items():
        mine = ours.get(counter)
        if mine is None or (counter == BYTES and name != "http-loop100"):
            continue
        if shares and counter.startswith("vusers.created_by_name."):
            continue
        if shares and counter != "vusers.created":
            value = sum(drawn[one] * adds.get(counter, 0) for one, adds in PER_VUSER[name].items())
        if mine != value:
            yield f"{counter}: {mine}, not {value}"


if __name__ == "__main__":
    main()
