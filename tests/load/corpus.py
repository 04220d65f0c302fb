#!/usr/bin/env python3
"""Runs Artillery's own example and test scripts with weir, and judges each.

  tests/load/corpus.py --checkout DIR [--weir BIN] [--artillery BIN] [--jobs N] [--out FILE.csv] [PART_OF_A_NAME...]

DIR is a checkout of github.com/artilleryio/artillery whose `node_modules` has what its targets and examples need: that
of corpus-npm (`npm install --no-package-lock --prefix tests/load/corpus-npm`, then a link to it). Each script runs in a network
and mount namespace of its own (root): every host name of the scripts leads to loopback there, every port is free,
nothing can leave. The servers are the repository's.

A script passes when
  - it is read (`--check`), with its config file where the repository runs it with one, or refused as Artillery does;
  - it ends with the exit code that is expected (0, or what FILE's own test expects);
  - it created as many virtual users as its phases say (phases are made short: at most 2 s each);
  - all of them completed, unless FACTS says which do not; its counters are those of FACTS;
  - no error is counted that FACTS (corpus_facts.py) does not name.

With --artillery each script that runs as meant is run by Artillery in the same room too, and the last column says what
differs: names of counters, rates and summaries, counts (not bytes), the exit code. A different count is no fault by
itself: weights, `probability` and the clock differ from run to run in either.

--out keeps the rows of scripts that were not run, so a file can be made in slices, and the last column without --artillery.
"""
import argparse
import concurrent.futures
import csv
import json
import math
import os
import re
import subprocess
import sys
import tempfile

from corpus_facts import ANY, JUDGED_ANYWAY, LEFT_OUT, facts

HERE = os.path.dirname(os.path.abspath(__file__))
HOSTS = """asciiart.artillery.io asciizoo.artillery.io artillery.io www.artillery.io lab.artillery.io example.com doesntmatter
 run.mocky.io api.somewebsite.com api.someservice.com us-east-1.amazonaws.com play.artillery.io api.artillery.io redis.example"""
# How long a script may take in all, with its servers.
LIMIT_S = 90
# What phases are shortened to.
PHASE_S, PHASE_ARRIVALS = 2, 60
# Of Artillery, which needs seconds to start, before an interrupt is counted.
START_S = 6
# Of a reason or a difference, in characters.
SHOWN = 300
COLUMNS = ["file", "engine", "outcome", "reason", "beside Artillery"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", required=True)
    parser.add_argument("--weir", default=os.path.join(HERE, "../../target/release/weir"))
    parser.add_argument("--artillery", help="its command line's file, to compare with")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--out")
    parser.add_argument("parts", nargs="*")
    options = parser.parse_args()
    options.weir, options.checkout = os.path.abspath(options.weir), os.path.abspath(options.checkout)
    options.artillery = options.artillery and os.path.abspath(options.artillery)
    scripts = [name for name in find(options.checkout) if not options.parts or any(part in name for part in options.parts)]
    table = facts()
    if not options.parts:
        for name in sorted(set(table) - set(scripts)):
            print(f"# facts about a script that is not there: {name}", file=sys.stderr)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = []
        for row in pool.map(lambda name: (name, *judge(options, name, table.get(name, {}))), scripts):
            rows.append(row)
            name, engine, outcome, reason, beside = row
            print(f"{outcome:9} {engine:9} {name}  {reason}" + (f" | {beside}" if beside else ""), flush=True)
    count = {kind: sum(row[2] == kind for row in rows) for kind in ("as meant", "not", "left out")}
    print(f"{count['as meant']} of {count['as meant'] + count['not']} judged scripts run as meant; {count['left out']} left out")
    if options.out:
        write(options.out, rows)


def write(out, rows):
    kept = {}
    if os.path.exists(out):
        with open(out, newline="") as file:
            kept = {row["file"]: [row.get(column) or "" for column in COLUMNS] for row in csv.DictReader(file)}
    for row in rows:
        # Without --artillery what it said last time stays.
        before = kept.get(row[0], [""])[-1]
        kept[row[0]] = [*row[:-1], row[-1] or before]
    with open(out, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(kept[name] for name in sorted(kept))


def find(checkout):
    """Every script: a YAML or JSON file with a list of scenarios that have a flow."""
    for folder, folders, files in os.walk(checkout):
        folders[:] = [name for name in folders if name not in ("node_modules", ".git")]
        for name in files:
            path = os.path.join(folder, name)
            if re.search(r"\.(ya?ml|json)$", name) and re.search(r'^\s*"?(\$schema|scenarios)"?:', read(path), re.M):
                if re.search(r'"?scenarios"?:\s*(\[|\n)', read(path)):
                    yield os.path.relpath(path, checkout)


def judge(options, name, fact):
    text = read(os.path.join(options.checkout, name))
    engine = (re.search(r'"?engine"?:\s*[\'"]?(\w+)', text) or [None, "http"])[1]
    for pattern, why in LEFT_OUT:
        if re.search(pattern, name) and name != JUDGED_ANYWAY:
            return engine, "left out", why, ""
    try:
        run, reason = attempt(options, name, fact)
        is_as_meant = True
    except Wrong as wrong:
        run, reason, is_as_meant = wrong.run, " ".join(str(wrong).split())[:SHOWN], False
    compared = beside(options, name, fact, run) if options.artillery and run else ""
    return engine, "as meant" if is_as_meant else "not", reason, compared


class Wrong(Exception):
    # What was measured all the same.
    run = None


def attempt(options, name, fact):
    plain = [options.weir, "load", *fact.get("args", []), name]
    env = dict(os.environ, **fact.get("env", {}))
    own = ["--overrides", json.dumps(fact["overrides"])] if "overrides" in fact else []
    check = subprocess.run([*plain, *own, "--check"], cwd=options.checkout, env=env, capture_output=True, text=True)
    if "refused" in fact:
        if check.returncode != fact["exit"] or fact["refused"] not in check.stderr + check.stdout:
            raise Wrong(f"exit {check.returncode}: {check.stderr}")
        return None, "refused as Artillery does"
    if check.returncode:
        raise Wrong(f"refused: {check.stderr}")
    overrides, created = shorten(options, name, fact)
    with tempfile.TemporaryDirectory() as room:
        if "fails" in fact:
            run = in_namespace(options, [*plain, *overrides], env, fact, room, 0)
            if run.returncode != fact["exit"] or fact["fails"] not in run.stderr:
                raise Wrong(f"exit {run.returncode}, not {fact['exit']}: {run.stderr}")
            return None, f"ends as Artillery does, exit {run.returncode}"
        run = measure(options, [*plain, *overrides], env, fact, room)
    try:
        return run, weigh(fact, created, *run)
    except Wrong as wrong:
        wrong.run = run
        raise


def measure(options, command, env, fact, room, start_s=0):
    """Runs it: the exit code and what was printed, and what is reported of the whole run."""
    file = os.path.join(room, "report.json")
    run = in_namespace(options, [*command, "-o", file], env, fact, room, start_s)
    if not os.path.exists(file):
        raise Wrong(f"no report, exit {run.returncode}: {(run.stderr or run.stdout)[-250:]}")
    return run, json.loads(read(file))["aggregate"]


def beside(options, name, fact, ours):
    """What differs between a run of weir and one of Artillery."""
    overrides, _ = shorten(options, name, fact)
    command = [options.artillery, "run", *fact.get("args", []), name, *overrides]
    env = dict(os.environ, **fact.get("env", {}), ARTILLERY_DISABLE_TELEMETRY="1")
    try:
        with tempfile.TemporaryDirectory() as room:
            theirs = measure(options, command, env, fact, room, START_S)
    except Wrong as wrong:
        return "Artillery: " + " ".join(str(wrong).split())[:SHOWN]
    codes = ours[0].returncode, theirs[0].returncode
    differences = [] if codes[0] == codes[1] else [f"exit {codes[0]}, theirs {codes[1]}"]
    for kind in ("counters", "rates", "summaries"):
        mine, other = ours[1].get(kind, {}), theirs[1].get(kind, {})
        differences += [f"only ours: {key}" for key in sorted(set(mine) - set(other))]
        differences += [f"only theirs: {key}" for key in sorted(set(other) - set(mine))]
        for key in sorted(set(mine) & set(other)):
            pair = {"counters": lambda all: all[key], "rates": lambda all: 0, "summaries": lambda all: all[key]["count"]}[kind]
            if pair(mine) != pair(other) and "interrupt_s" not in fact and not key.endswith("_bytes"):
                differences.append(f"{key}: {pair(mine)}, theirs {pair(other)}")
    return "; ".join(differences)[:SHOWN] or "the same names and counts"


def weigh(fact, created, run, report):
    def differs(value, expected):
        return expected is not ANY and value != expected

    counters = report["counters"]
    expected = fact.get("exit", 0)
    if differs(run.returncode, expected):
        raise Wrong(f"exit {run.returncode}, not {expected}: {run.stderr[-200:]} {errors_of(counters)}")
    if differs(counters.get("vusers.created", 0), created):
        raise Wrong(f"{counters.get('vusers.created', 0)} virtual users, not {created}")
    unknown = [key for key in errors_of(counters) if ANY not in fact.get("errors", []) and key not in fact.get("errors", [])]
    if unknown:
        raise Wrong(f"errors: { {key: counters['errors.' + key] for key in unknown} }")
    failed = counters.get("vusers.failed", 0)
    if fact.get("completed", True) is True and (failed or counters.get("vusers.completed") != counters.get("vusers.created")):
        raise Wrong(f"{counters.get('vusers.completed')} completed of {counters.get('vusers.created')}")
    for counter, value in fact.get("count", {}).items():
        if counter not in counters or differs(counters[counter], value):
            raise Wrong(f"{counter}: {counters.get(counter)}, not {'some' if value is ANY else value}; {counters}")
    for line in fact.get("out", "").split("\n"):
        if line not in run.stdout:
            raise Wrong(f"not printed: {line}")
    said = f"{counters.get('vusers.created', 0)} virtual users, {failed} failed"
    return said if run.returncode == 0 else f"{said}, exit {run.returncode}"


def errors_of(counters):
    return [key[len("errors."):] for key in counters if key.startswith("errors.")]


def in_namespace(options, command, env, fact, room, start_s):
    hosts = os.path.join(room, "hosts")
    with open(hosts, "w") as file:
        file.write(f"127.0.0.1 localhost {' '.join(HOSTS.split())}\n")
    app = [fact["app"]] if "app" in fact else []
    targets = ["node", os.path.join(HERE, "corpus-targets.cjs"), options.checkout, *app]
    stop = f"-s INT {start_s + fact['interrupt_s']}" if "interrupt_s" in fact else f"-k 5 {LIMIT_S - 10}"
    # stdin holds the two commands, NUL between the words of each.
    shell = f"""
        ip link set lo up && mount --bind {hosts} /etc/hosts || exit 97
        mapfile -d '' -t targets < {room}/targets; mapfile -d '' -t command < {room}/command
        "${{targets[@]}}" > {room}/targets.log 2>&1 & server=$!
        for _ in $(seq 100); do grep -q ^ready {room}/targets.log && break; sleep 0.1; done
        timeout --preserve-status {stop} "${{command[@]}}"; code=$?
        kill $server; exit $code"""
    for name, words in (("targets", targets), ("command", command)):
        with open(os.path.join(room, name), "w") as file:
            file.write("".join(word + "\0" for word in words))
    unshare = ["unshare", "-n", "-m", "bash", "-c", shell]
    try:
        return subprocess.run(unshare, cwd=options.checkout, env=env, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired as expired:
        raise Wrong(f"did not end within {LIMIT_S} s") from expired


def shorten(options, name, fact):
    """Flags that make the phases short, and how many virtual users they make."""
    if fact.get("overrides"):
        return ["--overrides", json.dumps(fact["overrides"])], fact["created"]
    phases = None if "phases" in fact else phases_of(options, name, fact)
    if not phases:
        return [], fact.get("created", ANY if phases is None else 1)
    short = [shortened(phase) for phase in phases]
    return ["--overrides", json.dumps({"config": {"phases": short}})], fact.get("created", sum(map(arrivals, short)))


def phases_of(options, name, fact):
    """The phases as the plan would have them, from the script itself: its file, config file and environment."""
    node = """
        const yaml = require(process.argv[1] + '/node_modules/js-yaml');
        const read = (f) => yaml.load(require('fs').readFileSync(f, 'utf8'));
        let phases, [, , , environment, ...files] = [null, ...process.argv];
        for (const f of files) { const c = read(f).config ?? {};
            phases = c.phases ?? phases; phases = c.environments?.[environment]?.phases ?? phases; }
        console.log(JSON.stringify(phases ?? []));"""
    arguments = fact.get("args", [])
    after = lambda flag: [arguments[at + 1] for at, word in enumerate(arguments) if word == flag]
    environment = (after("-e") or [""])[0]
    command = ["node", "-e", node, options.checkout, environment, name, *after("-c")]
    run = subprocess.run(command, cwd=options.checkout, capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def shortened(phase):
    phase = dict(phase)
    if "pause" in phase:
        return dict(phase, pause=1)
    phase["duration"] = min(PHASE_S, phase["duration"]) if isinstance(phase.get("duration"), int) else PHASE_S
    for key in ("arrivalCount", "arrivalRate", "rampTo"):
        if key in phase:
            phase[key] = min(PHASE_ARRIVALS, phase[key])
    return phase


def arrivals(phase):
    if "pause" in phase:
        return 0
    if "arrivalCount" in phase:
        return phase["arrivalCount"]
    start, length = phase.get("arrivalRate", 0), phase["duration"]
    if "rampTo" not in phase:
        return math.floor(start * length)
    if length == 1:
        return math.floor((start + phase["rampTo"]) / 2 + 0.5)
    steps = (start + (phase["rampTo"] - start) * step / (length - 1) for step in range(length))
    return sum(math.floor(rate + 0.5) for rate in steps)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


if __name__ == "__main__":
    main()
