"""What load.py has the generators do: the same work, said to each in its own language."""
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

CONNECTIONS = 64
ARRIVE_SECONDS, THINK_SECONDS = 10, 12
# Requests a run does for each of its seconds: what weir comes near to on one core, and twice what Artillery does, so that
# its compiler is warm for most of them.
NEAR = {"weir": {"get": 120_000, "script": 90_000, "hook": 50_000, "ws": 70_000, "socketio": 20_000,
                 "socketio-full": 70_000},
        "artillery": {"get": 6_000, "script": 5_000, "hook": 5_000, "ws": 16_000, "socketio": 12_000,
                      "socketio-full": 12_000}}
TITLES = {
    "get": "One keep-alive GET of 1 KiB, 64 connections",
    "script": "The same with a capture (JSON) and a check (status); wrk plain",
    "hook": "The same GET with a function in JavaScript before it that sets one header; wrk plain",
    "ws": "One WebSocket message and its echo, 64 connections",
    "socketio": "One Socket.IO emit and its acknowledgement, 64 connections",
    "h2": "GET of 1 KiB over HTTP/2, 16 connections of 32 streams",
    "h2-tls": "The same over TLS",
    "socketio-full": "The same against a cheaper origin, so that the generator does not wait",
}
# HTTP/2: the scheme, and how many at once.
H2 = {"h2": "http", "h2-tls": "https"}
H2_CONNECTIONS, H2_STREAMS = 16, 32
STEPS = {
    "get": [{"get": {"url": "/"}}],
    "script": [{"get": {"url": "/", "capture": {"json": "$.token", "as": "token"}, "expect": [{"statusCode": 200}]}}],
    "hook": [{"get": {"url": "/", "beforeRequest": "setHeader"}}],
    "ws": [{"send": {"payload": "0123456789abcdef0123456789abcdef", "capture": {"json": "$", "as": "echo", "strict": False}}}],
    "socketio": [{"emit": {"channel": "message", "data": "0123456789abcdef0123456789abcdef"},
                  "acknowledge": {"match": {"json": "$.0", "value": "0123456789abcdef0123456789abcdef"}}}],
}
STEPS["socketio-full"] = STEPS["socketio"]
COUNTERS = {"get": "http.responses", "script": "http.responses", "hook": "http.responses", "ws": "websocket.messages_sent",
            "socketio": "socketio.emit", "socketio-full": "socketio.emit"}
ENGINES = {"get": "http", "script": "http", "hook": "http", "ws": "ws", "socketio": "socketio", "socketio-full": "socketio"}
HTTP = ("get", "script", "hook")
# What a hook does, and the same in k6, which is JavaScript all the way.
PROCESSOR = """module.exports = { setHeader };
function setHeader(requestParams, context, ee, next) {
  requestParams.headers = requestParams.headers || {};
  requestParams.headers['x-hook'] = 'set';
  return next();
}
"""
K6_MORE = {
    "get": "http.get('{url}');",
    "script": "const answer = http.get('{url}'); "
              "const token = answer.json('token'); check(answer, {{ ok: (r) => r.status === 200 }});",
    "hook": "const params = {{}}; params.headers = params.headers || {{}}; params.headers['x-hook'] = 'set'; "
            "http.get('{url}', params);",
}
K6 = """import http from 'k6/http'; import {{ check }} from 'k6';
export const options = {{ vus: {vus}, {bound} }};
export default function () {{ {work} }}
"""


@dataclass(frozen=True)
class Tool:
    command: list
    count: object           # from stdout to the number of requests
    one: list | None = None  # the same for as little as possible: what starting costs
    environment: dict = field(default_factory=dict)


def tools(kind, args, port, directory):
    """What can do this kind of work here, by name."""
    url, seconds = f"http://127.0.0.1:{port}/", args.seconds
    if kind in H2:
        return http2(args, f"{H2[kind]}://127.0.0.1:{port}/", seconds)
    found = {"weir, script": scripted("weir", [args.weir, "load"], kind, port, directory, seconds)}
    if args.old:
        found["weir before, script"] = scripted("weir", [args.old, "load"], kind, port, directory, seconds, "old")
    if args.artillery:
        node, main = args.artillery / "node_modules/node/bin/node", args.artillery / "node_modules/artillery/bin/run"
        found["Artillery 2.0.34"] = scripted("artillery", [str(node), str(main), "run"], kind, port, directory, seconds)
    if kind in HTTP and args.k6:
        found["k6"] = k6(args.k6, kind, url, directory, seconds)
    if kind in HTTP:
        # Beside the script it is a measure only: it neither captures nor checks.
        found["wrk"] = Tool(["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", url], number(r"(\d+) requests in"))
    if kind == "get":
        command = [args.weir, "load", url, "-c", str(CONNECTIONS), "-d", f"{seconds}s", "--workers", "1"]
        found["weir, URL"] = Tool(command, number(r"(\d[\d ,]*) requests"))
    return found


def http2(args, url, seconds):
    """h2load, and weir with the same flags."""
    flags = [f"-c{H2_CONNECTIONS}", f"-m{H2_STREAMS}"]

    def weir(path):
        command = [path, "load", url, "--http2", "-k", *flags, "-d", f"{seconds}s", "--workers", "1"]
        return Tool(command, number(r"(\d[\d ,]*) requests in"))

    return {"h2load": Tool(["h2load", "-t1", *flags, f"-D{seconds}", url], number(r"(\d+) 2xx")), "weir": weir(args.weir),
            **({"weir before": weir(args.old)} if args.old else {})}


def number(pattern):
    def count(out):
        found = re.search(pattern, out)
        return int(re.sub(r"\D", "", found.group(1))) if found else 0
    return count


def scripted(tool, command, kind, port, directory, seconds, name=""):
    """An Artillery script of 64 virtual users that do a fixed number of rounds; and one of a single round."""
    rounds = max(NEAR[tool][kind] * seconds // CONNECTIONS, 1)
    report = os.path.join(directory, f"{tool}{name}.json")

    def count(_):
        counters = json.loads(Path(report).read_text())["aggregate"]["counters"]
        os.unlink(report)
        wrong = {key: value for key, value in counters.items() if key.startswith("errors.") or key == "vusers.failed" and value}
        if wrong:
            raise SystemExit(f"{tool}: {wrong}")
        return counters.get(COUNTERS[kind], 0)

    def line(users, rounds):
        script = os.path.join(directory, f"{tool}-{users}.json")
        Path(directory, "hooks.js").write_text(PROCESSOR)
        Path(script).write_text(json.dumps(artillery(kind, port, users, rounds)))
        return [*command, script, "-o", report, *(["--workers", "1"] if tool == "weir" else ["-q"])]

    environment = {"ARTILLERY_DISABLE_TELEMETRY": "true"}
    return Tool(line(CONNECTIONS, rounds), count, line(1, 1) if tool == "artillery" else None, environment)


def artillery(kind, port, users, rounds):
    scheme = "ws" if kind == "ws" else "http"
    return {
        "config": {
            "target": f"{scheme}://127.0.0.1:{port}",
            "phases": [{"duration": 1, "arrivalCount": users}],
            "plugins": {"expect": {"outputFormat": "silent"}} if kind == "script" else {},
            "socketio": {"transports": ["websocket"]},
            **({"processor": "./hooks.js"} if kind == "hook" else {}),
        },
        "scenarios": [{"engine": ENGINES[kind], "flow": [{"loop": STEPS[kind], "count": rounds}]}],
    }


def k6(path, kind, url, directory, seconds):
    work = K6_MORE[kind].format(url=url)

    def line(vus, bound):
        script = os.path.join(directory, f"k6-{vus}.js")
        Path(script).write_text(K6.format(vus=vus, bound=bound, work=work))
        return [path, "run", "--quiet", "--no-usage-report", script]

    return Tool(line(CONNECTIONS, f"duration: '{seconds}s'"), number(r"http_reqs[.\s:]*(\d+)"), line(1, "iterations: 1"),
                {"GOMAXPROCS": "1"})


def thinking(directory, port, users):
    """A script whose virtual users are all connected for a while, and do nothing."""
    script = os.path.join(directory, "memory.json.script.json")
    Path(script).write_text(json.dumps({
        "config": {"target": f"http://127.0.0.1:{port}",
                   "phases": [{"duration": ARRIVE_SECONDS, "arrivalCount": users}]},
        "scenarios": [{"flow": [{"get": {"url": "/"}}, {"think": THINK_SECONDS}, {"get": {"url": "/"}}]}],
    }))
    return script
