#!/usr/bin/env python3
"""Faults that are put into a stack on purpose, and what `weir lab why` says of each: the confusion matrix.

    bench/faults.py --weir target/debug/weir [--prove] [--only b15,b21-weir] [--block 8s]

Needs root (namespaces, control groups), nginx, node and python3; on a quiet machine, else with --noisy (which is said by every
run). A row is right when the first finding is one of the rules that may be said of that fault. "PROVED" by another rule is the worst
there is, and fails the whole. Exit code 1: fewer than nine of ten right, or one wrongly proved.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

NGINX = "/usr/sbin/nginx"
BURN = """
const http = require('http'), cluster = require('cluster');
const [ms, forks] = process.argv.slice(2).map(Number);
if (forks > 1 && cluster.isPrimary) { for (let i = 0; i < forks; i++) cluster.fork(); }
else http.createServer((q, r) => { const end = performance.now() + ms; while (performance.now() < end); r.end('x'); }).listen(3000, '0.0.0.0');
"""
# Two servers, of which the second waits; or answers some with 503.
TWO = """
const http = require('http');
const [ports, slow, share] = [process.argv[2].split(','), Number(process.argv[3]), Number(process.argv[4])];
let n = 0;
ports.forEach((port, at) => http.createServer((q, r) => {
  if (share && (++n % 10) < share * 10) r.statusCode = 503;
  at > 0 && slow ? setTimeout(() => r.end('x'), slow) : r.end('x');
}).listen(Number(port), '0.0.0.0'));
"""
# One connection at a time, each as long as a query takes.
POOL = """
import socket, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(('0.0.0.0', 3000)); s.listen(128)
while True:
    c, _ = s.accept()
    try:
        if not c.recv(65536): continue
        time.sleep(0.02)
        c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 1\\r\\nConnection: close\\r\\n\\r\\nx')
    except OSError: pass
    finally: c.close()
"""
DEAF = "require('http').createServer((q, r) => r.end('x')).listen(3000, '0.0.0.0', 1)"
WS = """
config:
  target: ws://127.0.0.1:1
  phases: [{duration: 4, arrivalRate: 20}]
scenarios:
  - engine: ws
    flow: [{send: hello}, {think: 0.2}]
"""
KEEP = 'proxy_http_version 1.1; proxy_set_header Connection "";'


def conf(location=f"proxy_pass http://app; {KEEP}", upstream="server app:3000; keepalive 64;", main="", events="worker_connections 1024;",
         http="", listen="8080"):
    return (f"{main}\nevents {{ {events} }}\nhttp {{ {http}\n  upstream app {{ {upstream} }}\n"
            f"  server {{ listen {listen}; location / {{ {location} }} }}\n}}\n")


CACHE = "proxy_cache_path /tmp/weir-faults-cache keys_zone=one:1m; proxy_cache_valid 200 1s; proxy_cache one;"
BURNER = {"name": "batch", "host": "edge", "argv": ["sh", "-c", "for i in 1 2 3; do (while :; do :; done) & done; wait"], "cpus": [0]}
ONE_CPU = ["--client-cpus", "0", "--edge-cpus", "0", "--origin-cpus", "1"]
# Some milliseconds of the edge's own work for each request: a pattern that tries every way to split the query.
WORK = f'if ($args ~ "(x+x+)+[yz]") {{ return 403; }} proxy_pass http://app; {KEEP}'
WORKED = "/1k?" + 17 * "x"

# name, edges (n, w), rules that may be said, configuration, load, what else.
FAULTS = [
    ("b01-ports", "n", {"B01"}, conf(upstream="server app:3000;"), ["-R", "200", "-c", "16", "/1k"],
     {"inject": {"hosts": [{"name": "edge", "sysctls": [["net.ipv4.ip_local_port_range", "50000 50199"]]}]}}),
    ("b02-inert", "n", {"B02"}, conf("proxy_pass http://app;"), ["-R", "150", "-c", "16", "/1k"], {}),
    ("b03-small-pool", "n", {"B03"}, conf(upstream="server app:3000; keepalive 1;"), ["-c", "32", "/1k?delay=30ms"], {}),
    ("b03-no-pool", "n", {"B03"}, conf(upstream="server app:3000;"), ["-R", "150", "-c", "16", "/1k"], {}),
    ("b05-table", "nw", {"B05"}, conf(events="worker_connections 32;", main="worker_processes 1;"), ["-c", "60", "/1k?delay=1s"], {}),
    ("b06-recycled", "nw", {"B06", "B05"}, conf(events="worker_connections 64;", main="worker_processes 1;"), ["-R", "200", "-c", "100", "/1k"], {}),
    ("b07-files", "nw", {"B07"}, conf(main="worker_processes 1; worker_rlimit_nofile 30;"), ["-c", "60", "/1k?delay=1s"], {}),
    ("b10-stopped", "nw", {"B10", "B11"}, conf(listen="8080 backlog=8"), ["-c", "80", "/1k", "--warmup", "0"],
     {"inject": {"actions": [{"at_ms": 0, "deed": {"Stop": "edge"}}, {"at_ms": 2500, "deed": {"Continue": "edge"}}]}}),
    ("b12-one-worker", "nw", {"B12"}, conf(WORK, main="worker_processes 1;"), ["-c", "8", WORKED, "--edge-cpus", "0-1"], {}),
    ("b15-edge-quota", "nw", {"B15"}, conf(main="worker_processes 1;"), ["-c", "16", "/1k", "--edge-quota", "0.15"], {}),
    ("b15-edge-quota-rate", "nw", {"B15"}, conf(main="worker_processes 1;"), ["-R", "3000", "-c", "32", "/1k", "--edge-quota", "0.1"], {}),
    ("b15-app-quota", "nw", {"B15"}, conf(), ["-c", "16", "/64k"], {"inject": {"hosts": [{"name": "origin", "cpus": 0.06}], "processes": [{"name": "origin0", "is_unlimited": False}]}}),
    ("b16-credits", "nw", {"B16"}, conf(), ["-R", "250", "-c", "32", "/1k", "--block", "8s", "--warmup", "0"],
     {"origin": ("node", BURN, "1.5 1"), "inject": {"hosts": [{"name": "origin", "credits": {"cpus": 1.0, "baseline": 0.1, "earned_hourly": 6.0, "initial": 0.03, "speed": 1.0}}], "processes": [{"name": "origin0", "is_unlimited": False}]}}),
    ("b18-neighbours", "nw", {"B18", "B19"}, conf(WORK, main="worker_processes 1;"), ["-c", "8", WORKED], {"inject": {"processes": [BURNER]}}),
    ("b19-edge-full", "nw", {"B19"}, conf(WORK, main="worker_processes 1;"), ["-c", "8", WORKED], {}),
    ("b20-app-full", "nw", {"B20"}, conf(), ["-c", "16", "/", *ONE_CPU], {"origin": ("node", BURN, "5 2")}),
    ("b21-one-thread", "nw", {"B21"}, conf(), ["-c", "16", "/", *ONE_CPU], {"origin": ("node", BURN, "5 1")}),
    ("b21-one-thread-rate", "nw", {"B21"}, conf(), ["-R", "300", "-c", "32", "/", *ONE_CPU], {"origin": ("node", BURN, "5 1")}),
    ("b22-pool", "nw", {"B22"}, conf(), ["-c", "16", "/"], {"origin": ("python3", POOL, "")}),
    ("b27-dead-peer", "nw", {"B27"}, conf(upstream="server app:3000 max_fails=0; server app:3001 max_fails=0; keepalive 8;"), ["-R", "100", "-c", "8", "/1k"],
     {"inject": {"processes": [{"name": "origin0", "argv": ["@WEIR@", "origin", "--listen", "0.0.0.0:3000"], "ready": "Started"}]}}),
    ("b27-slow-peer", "nw", {"B27"}, conf(upstream="server app:3000; server app:3001; keepalive 16;"), ["-R", "60", "-c", "32", "/"],
     {"origin": ("node", TWO, "3000,3001 250 0")}),
    ("b28-retries", "nw", {"B28"}, conf(f"proxy_pass http://app; {KEEP} proxy_next_upstream error timeout http_503;",
                                        upstream="server app:3000 max_fails=0; server app:3001 max_fails=0; server app:3002 max_fails=0; keepalive 16;"),
     ["-R", "100", "-c", "16", "/"], {"origin": ("node", TWO, "3000,3001,3002 0 0.5")}),
    ("b29-stampede", "nw", {"B29"}, conf(f"proxy_pass http://app; {KEEP} proxy_cache_lock off;", http=CACHE), ["-R", "300", "-c", "60", "/1k?delay=300ms"], {}),
    ("b30-lock-polling", "n", {"B30"}, conf(f"proxy_pass http://app; {KEEP} proxy_cache_lock on;", http=CACHE), ["-R", "200", "-c", "100", "/1k?delay=300ms"], {}),
    ("b31-not-kept", "nw", {"B31"}, conf(http=CACHE), ["-R", "150", "-c", "16", "/1k?header=Set-Cookie:a=b"], {}),
    ("b33-foreground", "n", {"B33"}, conf(f"proxy_pass http://app; {KEEP} proxy_cache_lock on; proxy_cache_use_stale updating;", http=CACHE),
     ["-R", "200", "-c", "32", "/1k?delay=300ms"], {}),
    ("b34-link", "nw", {"B34"}, conf(), ["-c", "16", "/64k"], {"inject": {"hosts": [{"name": "client", "rate_kbit": 20000}]}}),
    ("b34-link-rate", "nw", {"B34"}, conf(), ["-R", "100", "-c", "64", "/64k"], {"inject": {"hosts": [{"name": "client", "rate_kbit": 20000}]}}),
    ("b37-not-saturated", "nw", {None}, conf(), ["-R", "60", "-c", "8", "/1k"], {}),
    ("b40-upgrade", "n", {"B40"}, conf("proxy_pass http://app;"), ["--load", "@WS@"], {}),
    ("b42-read-timeout", "nw", {"B42"}, conf(f"proxy_pass http://app; {KEEP} proxy_read_timeout 500ms;"), ["-R", "20", "-c", "32", "/1k?delay=2s"], {}),
    ("b42-connect-timeout", "n", {"B42", "B22"}, conf("proxy_pass http://app; proxy_connect_timeout 700ms;"), ["-R", "40", "-c", "64", "/", "--warmup", "0"],
     {"origin": ("node", DEAF, ""), "inject": {"actions": [{"at_ms": 0, "deed": {"Stop": "origin0"}}]}}),
    ("b45-localhost", "n", {"B45"}, conf(upstream="server localhost:3000 max_fails=0; keepalive 8;"), ["-R", "100", "-c", "8", "/1k"],
     {"inject": {"names": [["localhost", "::1"]]}}),
    ("client-quota", "nw", {"no verdict"}, conf(), ["-c", "32", "/1k"], {"inject": {"hosts": [{"name": "client", "cpus": 0.04}], "client": {"is_unlimited": False}}}),
    ("client-quota-rate", "nw", {"no verdict"}, conf(), ["-R", "3000", "-c", "32", "/1k"], {"inject": {"hosts": [{"name": "client", "cpus": 0.04}], "client": {"is_unlimited": False}}}),
]


def run(weir, store, name, edge, text, load, extra, options):
    where = pathlib.Path(tempfile.mkdtemp(prefix="weir-faults-"))
    where.chmod(0o755)
    file = where / "nginx.conf"
    file.write_text(text)
    load = list(load)
    if "@WS@" in load:
        script = where / "ws.yml"
        script.write_text(WS)
        load[load.index("@WS@")] = str(script)
    command = [weir, "lab", "why", str(file), *[word for word in load if word.startswith("/") and not word.endswith(".yml")]]
    command += [word for word in load if not word.startswith("/") or word.endswith(".yml")]
    if edge == "n":
        command += ["--edge", NGINX]
    if "origin" in extra:
        program, source, words = extra["origin"]
        app = where / ("app.py" if program.startswith("python") else "app.cjs")
        app.write_text(source)
        command += ["--origin", f"exec {program} {app} {words}"]
    if "inject" in extra:
        inject = where / "inject.json"
        inject.write_text(json.dumps(extra["inject"]).replace("@WEIR@", weir))
        command += ["--inject", str(inject)]
    if "--block" not in load and "--load" not in load:
        command += ["--block", options.block]
    command += ["--store", str(store), "--seed", "1"]
    command += ["--prove"] if options.prove else []
    command += ["--noisy"] if options.noisy else []
    before = set(store.glob("*.json"))
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    kept = sorted(set(store.glob("*.json")) - before)
    (store / f"{name}-{edge}.txt").write_text(" ".join(command) + "\n" + done.stdout + done.stderr)
    if not kept:
        return {"word": "failed", "rule": None, "seconds": time.monotonic() - began, "text": done.stderr.strip().splitlines()[-1:]}
    verdict = json.loads(kept[-1].read_text())
    findings = [finding["rule"] for finding in verdict["findings"]]
    return {"word": verdict["verdict"]["name"], "rule": verdict["verdict"].get("rule"), "findings": findings,
            "text": verdict["verdict"]["text"], "seconds": time.monotonic() - began}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--skip", default="")
    parser.add_argument("--block", default="8s")
    parser.add_argument("--prove", action="store_true")
    parser.add_argument("--noisy", action="store_true")
    parser.add_argument("--store", default="")
    options = parser.parse_args()
    weir = str(pathlib.Path(options.weir).resolve())
    store = pathlib.Path(options.store or tempfile.mkdtemp(prefix="weir-faults-runs-"))
    store.mkdir(parents=True, exist_ok=True)
    only = [word for word in options.only.split(",") if word]
    skip = [word for word in options.skip.split(",") if word]
    right = wrongly_proved = proved = all_of_them = 0
    matrix = {}
    for name, edges, accepted, text, load, extra in FAULTS:
        for edge in edges:
            full = f"{name}-{'nginx' if edge == 'n' else 'weir'}"
            if (only and not any(full.startswith(word) for word in only)) or any(full.startswith(word) for word in skip):
                continue
            got = run(weir, store, name, edge, text, load, extra, options)
            said = "no verdict" if got["word"] == "no verdict" else got["rule"]
            is_right = said in accepted
            all_of_them += 1
            right += is_right
            if got["word"] == "PROVED":
                proved += 1
                wrongly_proved += not is_right
            if got["word"] == "SHARED":
                proved += is_right
            expected = "/".join(sorted(str(rule) for rule in accepted))
            matrix.setdefault(expected, {}).setdefault(str(said), 0)
            matrix[expected][str(said)] += 1
            mark = "  " if is_right else "x "
            print(f"{mark}{full:<28} wanted {expected:<10} got {str(said):<10} {got['word']:<14} {got['seconds']:5.0f} s  {got.get('findings', '')} {got['text']}", flush=True)
    print("\nwanted      said")
    for expected, row in sorted(matrix.items()):
        print(f"{expected:<11} " + ", ".join(f"{said} {count}" for said, count in sorted(row.items())))
    print(f"\n{right} of {all_of_them} right, {proved} proved, {wrongly_proved} wrongly; runs in {store}")
    sys.exit(0 if right * 10 >= all_of_them * 9 and not wrongly_proved else 1)


if __name__ == "__main__":
    main()
