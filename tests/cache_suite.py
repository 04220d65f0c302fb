#!/usr/bin/env python3
"""Runs http-tests/cache-tests against a cache, and counts what it passes.

  tests/cache_suite.py --checkout DIR (--weir BIN | --nginx BIN | --varnishd BIN | --base URL)
                       [--directives 'proxy_cache_… ;'] [--id TEST] [--out FILE.csv]

DIR is a checkout of github.com/http-tests/cache-tests in which `npm i --no-save undici@7` was run. Node runs the suite's
own server and client; this starts the cache between them on free ports of loopback, in a directory that is removed.
weir and nginx get the suite's own nginx.conf, with --directives in its location besides.

Prints how many of the required, the optimal and the informational tests pass, as the suite's pages count them: a test
whose premise (depends_on) fails does not pass, and neither does one whose own setup failed. `fail` is a required test
that failed although its premises hold. With --id it prints the messages of one test. Exit code 1 when any `fail` is left.
"""
import argparse
import csv
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from ports import free_port

# How long all of the suite may take: it pauses for three seconds in every test, 25 tests at once.
LIMIT_S = 280
# How long a server may take to listen.
START_S = 20

NGINX_CONF = """
daemon off;
master_process off;
worker_processes 1;
error_log {dir}/error.log;
pid {dir}/pid;
events {{ worker_connections 2048; }}
http {{
    access_log off;
    proxy_cache_path {dir}/cache levels=1:2 keys_zone=suite:8m max_size=1000m inactive=600m;
    proxy_temp_path {dir}/proxy;
    client_body_temp_path {dir}/body;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://127.0.0.1:{origin};
            proxy_cache suite;
            proxy_cache_revalidate on;
            proxy_http_version 1.1;
            {directives}
        }}
    }}
}}
"""
VCL = """
vcl 4.1;
backend default {{ .host = "127.0.0.1"; .port = "{origin}"; }}
"""
# Reads results as the suite's own page does: its verdict, for every test that a shared cache is asked.
JUDGE = """
const [root, results] = [process.argv[1], JSON.parse(require('fs').readFileSync(0))];
(async () => {
  const suites = (await import(`file://${root}/tests/index.mjs`)).default;
  const { determineTestResult, resultTypes } = await import(`file://${root}/test-engine/lib/results.mjs`);
  const names = new Map(Object.entries(resultTypes).map(([name, type]) => [type, name]));
  const tests = suites.flatMap(suite => suite.tests.map(test => ({ suite: suite.id, ...test })));
  console.log(JSON.stringify(tests.filter(test => test.browser_only !== true).map(test => ({
    id: test.id, suite: test.suite, kind: test.kind || 'required', name: test.name,
    verdict: names.get(determineTestResult(suites, test.id, results)),
    message: Array.isArray(results[test.id]) ? String(results[test.id][1]) : '',
  }))));
})();
"""
PASSES = ("pass", "yes")


def main():
    args = arguments()
    with tempfile.TemporaryDirectory(prefix="cache-suite-") as directory:
        with Running() as running:
            base = args.base or start(args, directory, running)
            if args.id:
                print(client(args, base, args.id))
                return 0
            results = client(args, base, "")
    tests = judge(args.checkout, json.loads(results))
    return report(tests, args.out)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", required=True, type=os.path.abspath)
    cache = parser.add_mutually_exclusive_group(required=True)
    cache.add_argument("--weir", type=os.path.abspath, help="weir's program")
    cache.add_argument("--nginx", type=os.path.abspath, help="nginx's program")
    cache.add_argument("--varnishd", type=os.path.abspath, help="Varnish's program")
    cache.add_argument("--base", help="the URL of a cache that runs already, in front of the suite's server")
    parser.add_argument("--directives", default="", help="for the location of weir's or nginx's configuration")
    parser.add_argument("--id", help="one test only, with all it sent and received")
    parser.add_argument("--out", help="a CSV file with the verdict of every test")
    return parser.parse_args()


class Running:
    """Programs that end when this does; each in a group of its own."""

    def __init__(self):
        self.programs = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in reversed(self.programs):
            if program.poll() is None:
                os.killpg(program.pid, signal.SIGTERM)
        for program in self.programs:
            try:
                program.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(program.pid, signal.SIGKILL)

    def start(self, command, port, log, **more):
        program = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, **more)
        self.programs.append(program)
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and program.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.05)
        log.seek(0)
        sys.exit(f"{command[0]} does not listen on {port}:\\n{log.read()[-2000:]}")


def start(args, directory, running):
    """The suite's server and the cache in front of it; the URL of the cache."""
    origin, port = free_port(), free_port()
    server = os.path.join(args.checkout, "test-engine/server/server.mjs")
    settings = {"npm_config_protocol": "http", "npm_config_port": str(origin),
                "npm_config_pidfile": os.path.join(directory, "origin.pid")}
    with open(os.path.join(directory, "origin.log"), "w+") as log:
        running.start(["node", server], origin, log, cwd=args.checkout, env={**os.environ, **settings})
    with open(os.path.join(directory, "cache.log"), "w+") as log:
        running.start(cache_command(args, directory, origin, port), port, log)
    return f"http://127.0.0.1:{port}"


def cache_command(args, directory, origin, port):
    if args.varnishd:
        vcl = os.path.join(directory, "suite.vcl")
        with open(vcl, "w") as file:
            file.write(VCL.format(origin=origin))
        os.chmod(directory, 0o755)
        work = os.path.join(directory, "varnish")
        # The suite's own settings: Varnish keeps what says nothing for two minutes otherwise, and every premise fails.
        return [args.varnishd, "-F", "-n", work, "-a", f"127.0.0.1:{port}", "-f", vcl, "-s", "malloc,64m",
                "-p", "default_ttl=0", "-p", "default_grace=0", "-p", "default_keep=3600"]
    conf = os.path.join(directory, "nginx.conf")
    program = os.path.join(directory, "nginx")
    os.symlink(args.weir or args.nginx, program)
    for folder in ("cache", "proxy", "body"):
        os.mkdir(os.path.join(directory, folder))
    with open(conf, "w") as file:
        file.write(NGINX_CONF.format(dir=directory, port=port, origin=origin, directives=args.directives))
    return [program, "-p", directory, "-c", conf, "-e", os.path.join(directory, "error.log")]


def client(args, base, test):
    settings = {"npm_config_base": base, "npm_config_id": test, "npm_package_config_id": ""}
    command = ["node", "--no-warnings", os.path.join(args.checkout, "test-engine/cli.mjs")]
    done = subprocess.run(command, cwd=args.checkout, env={**os.environ, **settings}, stdout=subprocess.PIPE,
                          text=True, timeout=LIMIT_S, check=True)
    return done.stdout


def judge(checkout, results):
    done = subprocess.run(["node", "-e", JUDGE, checkout], input=json.dumps(results), stdout=subprocess.PIPE, text=True,
                          check=True)
    return json.loads(done.stdout)


def report(tests, out):
    for test in tests:
        if test["kind"] != "check" and test["verdict"] not in PASSES:
            print(f"{test['kind']:9}{test['verdict']:16}{test['suite']}: {test['id']}  {test['message']}")
    counts = {}
    for test in tests:
        row = counts.setdefault(test["kind"], {})
        row[test["verdict"]] = row.get(test["verdict"], 0) + 1
    for kind, row in sorted(counts.items(), reverse=True):
        passed = sum(row.get(verdict, 0) for verdict in PASSES)
        rest = ", ".join(f"{count} {verdict}" for verdict, count in sorted(row.items()) if verdict not in PASSES)
        print(f"{kind}: {passed} of {sum(row.values())} ({rest})")
    if out:
        with open(out, "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["suite", "id", "kind", "verdict"])
            rows.writerows([test["suite"], test["id"], test["kind"], test["verdict"]] for test in tests)
    return 1 if any(test["verdict"] == "fail" for test in tests) else 0


if __name__ == "__main__":
    if not shutil.which("node"):
        sys.exit("node is not installed")
    sys.exit(main())
