#!/usr/bin/env python3
"""Runs Artillery's own example and test scripts with weir, and judges each.

  tests/load/corpus.py --checkout DIR [--weir BIN] [--jobs N] [--out FILE.csv] [PART_OF_A_NAME...]

DIR is a checkout of github.com/artilleryio/artillery with a `node_modules` beside it that has what its targets and
examples need (see docs/scores.md). Each script runs in a network and mount namespace of its own (root): every host
name of the scripts leads to loopback there, every port is free, nothing can leave. The servers are the repository's.

A script passes when
  - it is read (`--check`), with its config file where the repository runs it with one;
  - it ends with the exit code that is expected (0, or what FILE's own test expects);
  - it created as many virtual users as its phases say (phases are made short: at most 2 s each);
  - all of them completed, unless FACTS says which do not; its counters are those of FACTS;
  - no error is counted that FACTS does not name.
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

HERE = os.path.dirname(os.path.abspath(__file__))
HOSTS = """asciiart.artillery.io asciizoo.artillery.io artillery.io www.artillery.io lab.artillery.io example.com doesntmatter
 run.mocky.io api.somewebsite.com api.someservice.com us-east-1.amazonaws.com play.artillery.io"""
# How long a script may take in all, with its servers.
LIMIT_S = 90
# What phases are shortened to.
PHASE_S, PHASE_ARRIVALS = 2, 60
T, X = "packages/artillery/test/", "examples/"
CORE, SCRIPTS, CLOUD = T + "core/scripts/", T + "scripts/", T + "cloud-e2e/fargate/fixtures/"
# Not judged, and why; everything else is.
LEFT_OUT = [
    (r"playwright|adot-cloudwatch", "needs a browser: Playwright scripts stay with Artillery"),
    (r"engine-posthog|artillery-engine-example", "an engine from npm"),
    (r"memory-hog", "allocates 10 GB to be killed"),
    (r"large_payload", "the stored copy lacks the file"),
    (r"sample_task_03", "names files that the repository lacks"),
    (r"bom-trace", "never run by Artillery either: input of its bundler's tests"),
]
# A negative test that the word "playwright" would leave out.
JUDGED_ANYWAY = SCRIPTS + "unknown_engine.json"

ANY = object()


def facts():
    """What a script needs beside itself, and what is expected of it."""
    table = {}

    def add(name, **what):
        table[name] = what

    pets = ["-p", SCRIPTS + "pets.csv"]
    for name in ("all_features", "captures-regexp", "iftrue", "single_payload"):
        add(CORE + name + ".json", args=["-p", CORE + "data/pets.csv"])
    table[CORE + "captures-regexp.json"]["count"] = {"http.codes.201": 2, "http.codes.200": 2}
    table[CORE + "iftrue.json"]["count"] = {"http.codes.201": 2, "http.codes.404": 2, "http.requests": 4}
    add(CORE + "hello.json", count={"http.codes.200": 2, "http.codes.201": 2})
    add(CORE + "hello_basic_auth.json", count={"http.codes.200": 4, "http.codes.401": 2})
    add(CORE + "hello_environments.json", args=["-e", "staging"], count={"http.codes.200": 2})
    add(CORE + "before_test.json", count={"http.codes.200": 2})
    add(CORE + "after_test.json", count={"http.codes.201": 1})
    add(CORE + "cookies.json", count={"http.codes.204": 2, "http.codes.200": 2})
    add(CORE + "cookies_socketio.json", count={"http.codes.200": ANY})
    add(CORE + "defaults_cookies.json", count={"http.codes.200": 2})
    add(CORE + "no_defaults_cookies.json", count={"http.codes.200": 2})
    add(CORE + "cookies_malformed_response.json", errors=["cookie_parse_error_invalid_cookie"], count={"http.codes.200": 2})
    add(CORE + "loop.json", count={"http.codes.200": 20})
    add(CORE + "loop_range.json", count={"http.codes.200": 12})
    add(CORE + "loop_nested_range.json", count={"http.codes.200": 12})
    add(CORE + "loop_infinite.json", interrupt_s=6, exit=130, completed=False, count={"http.codes.200": ANY})
    add(CORE + "parallel.json", count={"http.codes.200": 8})
    add(CORE + "config_variables.json", count={"http.requests": 2})
    add(CORE + "generators_http.json", count={"http.codes.201": 2})
    add(CORE + "hello_ws.json", count={"websocket.messages_sent": 2 * 13})
    add(T + "core/acceptance/ws/scripts/subprotocols.json", count={"websocket.messages_sent": 2})
    add(T + "core/acceptance/ws/scripts/ws-tls.json", count={"websocket.messages_sent": 1})
    add(CORE + "ws_proxy.json", count={"websocket.messages_sent": 1})
    add(CORE + "hello_socketio_with_args.json", count={"socketio.emit": 4})
    add(CORE + "namespaces_socketio.json", count={"socketio.emit": 4})
    add(CORE + "tls-lax.json", count={"http.codes.200": 2})
    add(CORE + "tls-strict.json", completed=False, errors=[ANY], count={"vusers.failed": 2})
    for name in ("arrival_count", "arrival_rate", "ramp_to"):
        add(CORE + f"concurrent_requests_{name}.json", phases=None, created=1, count={"vusers.skipped": ANY})
    add(CORE + "concurrent_requests_multiple_phases.json", created=ANY, count={"http.codes.200": ANY})
    add(CORE + "thinks_http.json", count={"vusers.completed": 2})
    add(CORE + "hello_socketio.json", count={"socketio.emit": ANY})
    add(CORE + "express_socketio.json", count={"vusers.completed": 2})

    add(SCRIPTS + "hello.json", args=["-c", SCRIPTS + "hello_config.json"], phases=None, created=1,
        count={"http.codes.200": 3})
    add(SCRIPTS + "environments.yaml", args=["-e", "local"], count={"http.codes.404": 2}, out="current environment: local")
    add(SCRIPTS + "environments2.json", args=["-e", "production", "-k"], count={"http.codes.200": 10})
    add(SCRIPTS + "multiple_payloads.json", args=["-e", "local"])
    add(SCRIPTS + "single_payload.json", args=pets, count={"http.codes.201": 20})
    add(SCRIPTS + "single_payload_object.json", count={"http.codes.201": 20})
    add(SCRIPTS + "single_payload_options.json", count={"http.codes.201": 20})
    add(SCRIPTS + "gh_215_add_token.json", count={"http.codes.200": 1})
    add(SCRIPTS + "hello_with_xpath.json", completed=ANY, errors=["Failed capture or match"])
    add(SCRIPTS + "http/async_function.json", completed=ANY, errors=[ANY], count={"asyncFunctionOrder": ANY})
    add(SCRIPTS + "http/simple_function.json", count={"simpleFunction": 1})
    add(SCRIPTS + "http/undefined_function.json", errors=['Undefined function "undefinedFunction"'],
        count={'errors.Undefined function "undefinedFunction"': 1})
    add(SCRIPTS + "http/error_code_function.json", completed=False, errors=["123"], count={"errors.123": 1})
    add(SCRIPTS + "http/error_message_function.json", completed=False, errors=["AwesomeErrorMessage"],
        count={"errors.AwesomeErrorMessage": 1})
    add(SCRIPTS + "ramp.json", phases=None, created=7)
    add(SCRIPTS + "ramp-regression-1682.json", phases=None, created=10)
    add(SCRIPTS + "scenario-async-esm-hooks/test.yml", completed=False, errors=["error_from_async_hook"],
        count={"hey_from_esm": 2, "errors.error_from_async_hook": 2})
    variables = json.dumps({"myVar": "abc123", "bar": "bcd456"})
    add(SCRIPTS + "scenario-cli-variables/scenario-with-variables.yml", args=["-v", variables],
        out="foo is abc123\nbar is bcd456\nother is abc123\nmyVar is abc123")
    variables = json.dumps({"myVar": 40, "defaultCookie": "abc123", "anotherCookie": "hhh123"})
    add(SCRIPTS + "scenario-cli-variables/scenario-with-other-nested-config.yml", args=["-v", variables],
        out="HTTP timeout is: 40")
    add(SCRIPTS + "scenario-config-different-folder/scenario.yml", created=1, out="Successfully ran with id myTestId123",
        args=["-c", SCRIPTS + "scenario-config-different-folder/config/config.yml"],
        env={"ARTILLERY_TEST_RUN_ID": "myTestId123"})
    add(SCRIPTS + "scenario-named/scenario.yml", args=["--scenario-name", "Test Scenario (4)"], phases=None, created=6,
        out="Successfully running scenario 4")
    payload = SCRIPTS + "scenario-payload-with-envs/config/artillery-config.yml"
    add(SCRIPTS + "scenario-payload-with-envs/scenario.yml", args=["-c", payload, "-e", "staging"], created=1,
        out="Successfully ran with id")
    custom = {"config": {"target": "http://asciiart.artillery.io:8080", "phases": [{"duration": 1, "arrivalCount": 1}]}}
    add(SCRIPTS + "scenario-with-custom-plugin/custom-plugin.yml", overrides=custom, created=1, count={"http.codes.200": 1})
    add(SCRIPTS + "scenario-with-parallel/scenario.yml", phases=None, created=2,
        count={"http.codes.200": 6, "beforeRequestHook.Dinosaur": 2, "afterRequestHook.Pony": 2})
    add(SCRIPTS + "scenarios-typescript/lodash.yml", count={"hey_from_ts": 2})
    add(SCRIPTS + "scenarios-typescript/error.yml", completed=False, errors=["error_from_ts_processor"],
        count={"errors.error_from_ts_processor": 2})
    add(SCRIPTS + "test-calc-server.yml", args=["-e", "multiple", "-t", "http://127.0.0.1:3011"], env={"CALC": "1"},
        count={"http.codes.200": 20})
    add(SCRIPTS + "test-suggest-exit-code.yml", exit=17, count={"http.codes.200": 1})
    add(SCRIPTS + "unknown_engine.json", exit=11, refused='unknown engine "playwright"')
    add(SCRIPTS + "with-dotenv/with-dotenv.yml", args=["--dotenv", SCRIPTS + "with-dotenv/my-vars"], created=1,
        count={"http.codes.200": 1})
    env = {"ARRIVAL_RATE": "2", "ENVIRONMENT": "staging", "NESTED_HEADER_VALUE": "abc",
           "URL": "http://asciiart.artillery.io:8080"}
    for name in ("with-env", "with-processEnvironment"):
        add(SCRIPTS + f"with-process-env/{name}.yml", env=env, phases=None, created=2, count={"http.codes.200": 2},
            out="Environment is staging\nHeader is abc")
    add(T + "integration/core/fixtures/http-file-upload.yml", args=["-t", "http://127.0.0.1:3010"], env={"UPLOADS": "1"},
        count={"http.codes.200": 1})

    add(CLOUD + "cli-exit-conditions/with-expect-ensure.yml", exit=1, count={"plugins.expect.failed": 2})
    add(CLOUD + "cli-exit-conditions/with-expect.yml", exit=21, count={"plugins.expect.failed": 2})
    # Its p95 < 1 ms may hold or not against a server this near.
    add(CLOUD + "uses-ensure/with-ensure.yaml", exit=ANY, count={"http.codes.200": 2})
    env = {"SECRET1": "/dino", "SECRET2": "/pony", "DOTENV1": "/armadillo", "DOTENV2": "/"}
    add(CLOUD + "cli-kitchen-sink/kitchen-sink.yml", env=env, count={"http.codes.200": 8})
    config = CLOUD + "mixed-hierarchy/config/config-no-file-uploads.yml"
    for name in ("dino", "pony"):
        add(CLOUD + f"mixed-hierarchy/scenarios/mixed-hierarchy-{name}.yml", args=["-c", config, "-e", "main"],
            count={"http.codes.200": 2})
    add(CLOUD + "simple-bom/simple-bom.yml", args=["-e", "test"])
    lambdas = T + "cloud-e2e/lambda/fixtures/"
    add(lambdas + "quick-loop-with-csv/blitz.yml", args=["-c", lambdas + "quick-loop-with-csv/config.yml"],
        count={"http.codes.200": 18})
    add(lambdas + "dotenv/dotenv-test.yml", env={"FRUIT": "apple"})

    plugins = "packages/artillery-plugin-"
    add(plugins + "apdex/test/fixtures/scenario.yml", count={"http.codes.200": 2})
    add(plugins + "expect/test/parallel.yml", exit=21, count={"plugins.expect.failed": 4, "plugins.expect.ok": 8})
    add(plugins + "expect/test/pets-fail-test.yaml", phases=None, created=1, exit=ANY, completed=ANY, errors=[ANY],
        count={"plugins.expect.failed": 1})
    add(plugins + "expect/test/pets-test.yaml", phases=None, created=1, exit=ANY, errors=[ANY], completed=ANY,
        count={"plugins.expect.ok.matchesRegexp": ANY})
    add(plugins + "expect/test/cdn-test.yml", args=["-k"], created=1, count={"plugins.expect.ok": 2})
    add(plugins + "memory-inspector/test/fixtures/scenario.yml", env={"TEST_PORT": "3003"}, count={"http.codes.200": 2})
    add(plugins + "publish-metrics/test/scenario.yaml", created=1, args=["-t", "http://127.0.0.1:8080"],
        count={"http.codes.200": 1, "http.codes.404": 2})

    common = ["-c", X + "multiple-scenario-specs/common-config.yml"]
    for name in ("armadillo", "dino", "pony"):
        add(X + f"multiple-scenario-specs/scenarios/{name}.yml", args=common, created=1, count={"plugins.expect.ok": 1})
    add(X + "artillery-plugin-hello-world/test.yml", count={"http.codes.200": 2})
    add(X + "automated-checks/load-test-with-automated-checks.yml", exit=ANY)
    # Its app needs SQLite's native module: the stand-in answers 200 where the script expects 201, 204 and a name.
    add(X + "functional-testing-with-expect-plugin/functional-load-tests.yml", args=["-e", "functional"], created=1, exit=21,
        count={"http.requests": 3, "plugins.expect.failed": ANY})
    for name in ("http-file-uploads", "http-socketio-server", "scenario-weights", "socket-io", "track-custom-metrics",
                 "using-cookies", "websockets"):
        [script] = {"http-file-uploads": ["file-uploads"], "http-socketio-server": ["http-socket"],
                    "socket-io": ["socket-io"], "track-custom-metrics": ["custom-metrics"], "using-cookies": ["cookies"],
                    "websockets": ["test"], "scenario-weights": ["scenario-weights"]}[name]
        add(X + f"{name}/{script}.yml", app=X + name + "/app.js")
    add(X + "http-set-custom-header/set-header.yml", completed=ANY, errors=["ERR_GOT_REQUEST_ERROR"])
    add(X + "rpc-twirp-with-custom-function/test/scenario.yml", count={"twirp.requests": ANY})
    add(X + "soap-with-custom-function/soap.yml", app=X + "soap-with-custom-function/server/app.js",
        count={"soap.addNumbers.responses": ANY})
    add(X + "table-driven-functional-tests/functional-test.yml", created=1, args=["-k"], count={"plugins.expect.ok": 3})
    add(X + "refresh-auth-token/refresh.yml", created=1, count={"http.codes.200": 3}, out="Used auth token: token-")
    add(X + "generating-vu-tokens/auth-with-token.yml", out="shared token is:")
    add(X + "script-overrides/test.yaml", args=["-e", "smoke"], count={"http.codes.200": 2})
    loops = {"config": {"phases": [{"duration": 1, "arrivalCount": 2}]}}
    add(X + "using-data-from-csv/website-test.yml", overrides=loops, created=2, interrupt_s=8, exit=130, completed=ANY,
        errors=[ANY], count={"http.requests": ANY})
    add(X + "starter-kit/scenarios/sample_task_01.yaml", args=["-k"])
    # `members/create` has no leading slash: the virtual user ends there.
    add(X + "starter-kit/scenarios/sample_task_02.yaml", args=["-k"], completed=False,
        errors=["Invalid URL - members/create"])
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", required=True)
    parser.add_argument("--weir", default=os.path.join(HERE, "../../target/release/weir"))
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--out")
    parser.add_argument("parts", nargs="*")
    options = parser.parse_args()
    options.weir, options.checkout = os.path.abspath(options.weir), os.path.abspath(options.checkout)
    scripts = [name for name in find(options.checkout) if not options.parts or any(part in name for part in options.parts)]
    table = facts()
    if not options.parts:
        for name in sorted(set(table) - set(scripts)):
            print(f"# facts about a script that is not there: {name}", file=sys.stderr)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda name: (name, *judge(options, name, table.get(name, {}))), scripts))
    for name, engine, outcome, reason in rows:
        print(f"{outcome:9} {engine:9} {name}  {reason}")
    count = {kind: sum(row[2] == kind for row in rows) for kind in ("as meant", "not", "left out")}
    print(f"{count['as meant']} of {count['as meant'] + count['not']} judged scripts run as meant; {count['left out']} left out")
    if options.out:
        with open(options.out, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["file", "engine", "outcome", "reason"])
            writer.writerows(rows)


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
            return engine, "left out", why
    try:
        return engine, "as meant", attempt(options, name, fact)
    except Wrong as wrong:
        return engine, "not", " ".join(str(wrong).split())[:300]


class Wrong(Exception):
    pass


def attempt(options, name, fact):
    plain = [options.weir, "load", *fact.get("args", []), name]
    env = dict(os.environ, **fact.get("env", {}))
    own = ["--overrides", json.dumps(fact["overrides"])] if "overrides" in fact else []
    check = subprocess.run([*plain, *own, "--check"], cwd=options.checkout, env=env, capture_output=True, text=True)
    if "refused" in fact:
        if check.returncode != fact["exit"] or fact["refused"] not in check.stderr + check.stdout:
            raise Wrong(f"exit {check.returncode}: {check.stderr}")
        return "refused as Artillery does"
    if check.returncode:
        raise Wrong(f"refused: {check.stderr}")
    overrides, created = shorten(options, name, fact)
    with tempfile.TemporaryDirectory() as room:
        report = os.path.join(room, "report.json")
        command = [*plain, *overrides, "-o", report]
        run = in_namespace(options, command, env, fact, room)
        if not os.path.exists(report):
            raise Wrong(f"no report, exit {run.returncode}: {(run.stderr or run.stdout)[-250:]}")
        counters = json.loads(read(report))["aggregate"]["counters"]
    return weigh(fact, created, run, counters)


def weigh(fact, created, run, counters):
    def differs(value, expected):
        return expected is not ANY and value != expected

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


def in_namespace(options, command, env, fact, room):
    hosts = os.path.join(room, "hosts")
    with open(hosts, "w") as file:
        file.write(f"127.0.0.1 localhost {' '.join(HOSTS.split())}\n")
    app = [fact["app"]] if "app" in fact else []
    targets = ["node", os.path.join(HERE, "corpus-targets.cjs"), options.checkout, *app]
    stop = f"-s INT {fact['interrupt_s']}" if "interrupt_s" in fact else f"-k 5 {LIMIT_S - 10}"
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
