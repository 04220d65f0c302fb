#!/usr/bin/env python3
"""What a request costs each load generator, and a waiting virtual user: CPU microseconds on a core of its own, bytes.

Target on core 0, generator on core 1, interleaved in a random order; peers that are not there are left out. CPU is user
and system time of the generator's whole process tree; for tools with a long start (Node, Go) that of a run of one
request is taken off.

    python3 bench/load.py --weir target/dist/weir [--only get,script,hook,ws,socketio,socketio-full,h2,h2-tls,memory]
        [--rounds 5] [--seconds 3] [--old PATH] [--artillery DIR] [--k6 PATH] [--origin PATH]

DIR is where `npm i artillery@2.0.34 node@22` was run. `ws` asks `weir origin`, `socketio` a node application
(`npm ci --prefix tests/apps`), `socketio-full` a cheaper one (`cargo build --release -p weir-load --example
socketio_origin`), which does not leave the generator waiting. `memory` wants root for 20,000 virtual users: it raises the limit on descriptors.
"""
import argparse
import json
import os
import random
import resource
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import load_scripts as scripts
from ports import free_port

ROOT = Path(__file__).resolve().parent.parent
TARGET_CORE, LOAD_CORE = "0", "1"
CONNECTIONS = 64
FILES = 60_000
NGINX = """daemon off; master_process off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;
worker_rlimit_nofile {files};
events {{ worker_connections 25000; }}
http {{ access_log off; keepalive_requests 100000000; client_body_temp_path {dir}/b; proxy_temp_path {dir}/p;
fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
server {{ listen 127.0.0.1:{port}{spoken} backlog=8192; {tls} location / {{ default_type application/json; return 200 '{body}'; }} }} }}
"""


class Target:
    """A server on core 0 that ends with its `with` block."""

    def __init__(self, port, command, **more):
        self.port = port
        self.child = subprocess.Popen(["taskset", "-c", TARGET_CORE, *command], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, preexec_fn=raise_files, **more)
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 0.1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"{command[0]} did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.terminate()
        self.child.wait()


def target(kind, directory, args):
    port = free_port()
    if kind == "ws":
        return Target(port, [args.weir, "origin", "--listen", f"127.0.0.1:{port}"])
    if kind == "socketio-full":
        return Target(port, [args.origin, f"127.0.0.1:{port}"])
    if kind == "socketio":
        environment = {**os.environ, "NODE_ENV": "production", "HOST": "127.0.0.1", "PORT": str(port)}
        return Target(port, ["node", str(ROOT / "labs/apps/socketio.mjs")], env=environment)
    conf = os.path.join(directory, "nginx.conf")
    spoken, tls = {"h2": (" http2", ""), "h2-tls": (" ssl http2", certificate(directory))}.get(kind, ("", ""))
    body = '{"token":"abc","rest":"' + "x" * 1000 + '"}'
    Path(conf).write_text(NGINX.format(dir=directory, port=port, body=body, files=FILES, spoken=spoken, tls=tls))
    return Target(port, ["nginx", "-p", directory, "-c", conf])


def certificate(directory):
    """What nginx is told of a certificate made for this run."""
    key, own = os.path.join(directory, "key.pem"), os.path.join(directory, "certificate.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                    key, "-out", own, "-subj", "/CN=localhost", "-days", "2"], check=True, capture_output=True)
    return f"ssl_certificate {own}; ssl_certificate_key {key};"


def raise_files():
    """Raises the limit on descriptors for a child, where that is allowed."""
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    except ValueError:
        pass


def cpu():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(command, count, environment):
    """One run: CPU seconds, requests counted by the tool itself, seconds."""
    before, begin = cpu(), time.monotonic()
    done = subprocess.run(["taskset", "-c", LOAD_CORE, *command], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **environment})
    took, used = time.monotonic() - begin, cpu() - before
    requests = count(done.stdout)
    if done.returncode or not requests:
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout[-500:]}{done.stderr[-1500:]}")
    return used, requests, took


def measure(kind, args, directory):
    with target(kind, directory, args) as server:
        tools = {name: tool for name, tool in scripts.tools(kind, args, server.port, directory).items() if tool}
        start = {name: min(run(tool.one, tool.count, tool.environment)[0] for _ in range(2))
                 for name, tool in tools.items() if tool.one}
        runs = {name: [] for name in tools}
        for _ in range(args.rounds):
            for name in random.sample(sorted(tools), len(tools)):
                tool = tools[name]
                used, requests, took = run(tool.command, tool.count, tool.environment)
                used -= start.get(name, 0)
                runs[name].append({"us": used / requests * 1e6, "rps": requests / took, "busy": used / took})
    table(kind, runs)


def table(kind, runs):
    median = lambda name, key: statistics.median(one[key] for one in runs[name])
    print(f"\n{scripts.TITLES[kind]}; medians of {len(next(iter(runs.values())))} rounds, range in brackets\n")
    base = "h2load" if "h2load" in runs else "wrk"
    print(f"| tool | CPU µs | range | / {base} | a second | busy |\n|---|--:|--:|--:|--:|--:|")
    for name in sorted(runs, key=lambda name: median(name, "us")):
        values = [one["us"] for one in runs[name]]
        ratio = "–"
        if base in runs:
            ratio = f"{statistics.median(one['us'] / other['us'] for one, other in zip(runs[name], runs[base])):.2f}"
        print(f"| {name} | {median(name, 'us'):.1f} | {min(values):.1f} to {max(values):.1f} | {ratio} "
              f"| {median(name, 'rps'):,.0f} | {median(name, 'busy') * 100:.0f} % |", flush=True)


def memory(args, directory):
    """Resident bytes of the generator while so many virtual users are connected and think."""
    print("\nMemory: each virtual user has asked once and thinks\n\n| tool | virtual users | completed | RSS, MB | kB each |")
    print("|---|--:|--:|--:|--:|", flush=True)
    for users in args.users:
        with target("get", directory, args) as server:
            script, report = scripts.thinking(directory, server.port, users), os.path.join(directory, "memory.json")
            command = ["taskset", "-c", LOAD_CORE, args.weir, "load", script, "-o", report, "--workers", "1"]
            child = subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=raise_files)
            time.sleep(scripts.ARRIVE_SECONDS + scripts.THINK_SECONDS / 2)
            resident = rss(child.pid)
            child.wait(120)
            completed = json.loads(Path(report).read_text())["aggregate"]["counters"].get("vusers.completed", 0)
        print(f"| weir load | {users:,} | {completed:,} | {resident / 1e6:.0f} | {resident / users / 1e3:.1f} |", flush=True)


def rss(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", default=str(ROOT / "target/dist/weir"))
    parser.add_argument("--old", help="another build of it, to compare with")
    parser.add_argument("--artillery", type=Path, help="where npm installed artillery and node")
    parser.add_argument("--k6", default=shutil.which("k6"))
    parser.add_argument("--origin", default=str(ROOT / "target/release/examples/socketio_origin"))
    parser.add_argument("--only", default="get,script,hook,ws,socketio,socketio-full,h2,h2-tls,memory")
    parser.add_argument("--users", type=lambda text: [int(part) for part in text.split(",")], default=[10_000, 20_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    args = parser.parse_args()
    kinds = parser.get_default("only").split(",")
    for kind in args.only.split(","):
        if kind not in kinds:
            parser.error(f'no work "{kind}"; there is {", ".join(kinds)}')
    for kind in args.only.split(","):
        with tempfile.TemporaryDirectory() as directory:
            memory(args, directory) if kind == "memory" else measure(kind, args, directory)


if __name__ == "__main__":
    main()
