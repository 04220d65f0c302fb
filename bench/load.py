#!/usr/bin/env python3
"""What one keep-alive GET of 1 KiB costs each load generator: CPU microseconds, on a core of its own.

nginx (one worker, `return 200` with 1 KiB, no log) on core 0, the generator on core 1, interleaved in a random order.
Peers that are not installed are left out. CPU is user + system of the generator's whole process tree, start included.

    python3 bench/load.py --quick target/release/examples/quick [--engine target/release/examples/http]
                          [--rounds 5] [--seconds 3] [--connections 64]
"""
import argparse
import json
import os
import random
import re
import resource
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

NGINX = """daemon off; master_process off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;
events {{ worker_connections 12000; }}
http {{ access_log off; keepalive_requests 100000000; client_body_temp_path {dir}/b; proxy_temp_path {dir}/p;
fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
server {{ listen 127.0.0.1:{port} backlog=8192; location / {{ default_type application/json; return 200 '{body}'; }} }} }}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_nginx(directory, port):
    conf = os.path.join(directory, "nginx.conf")
    with open(conf, "w") as file:
        file.write(NGINX.format(dir=directory, port=port, body='{"token":"abc","rest":"' + "x" * 1000 + '"}'))
    server = subprocess.Popen(["taskset", "-c", "0", "nginx", "-p", directory, "-c", conf], stderr=subprocess.DEVNULL)
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), 0.1).close()
            return server
        except OSError:
            time.sleep(0.05)
    raise SystemExit("nginx did not start")


def wrk(out):
    return int(re.search(r"(\d+) requests in", out).group(1))


def oha(out):
    return sum(json.loads(out)["statusCodeDistribution"].values())


def quick(out):
    result = json.loads(out)
    assert result["errors"] == 0, result
    return result["requests"]


def peers(args, url):
    seconds, connections = str(args.seconds), str(args.connections)
    table = {
        "wrk": (["wrk", "-t1", "-c", connections, "-d", f"{seconds}s", url], wrk),
        "oha": (["oha", "--no-tui", "--output-format", "json", "--worker-threads", "1", "-c", connections, "-z",
                 f"{seconds}s", url], oha),
    }
    for name, path in [("weir", args.quick), ("weir-old", args.old)]:
        if path:
            table[name] = ([path, url, "-c", connections, "-d", seconds], quick)
    if args.engine:
        table["weir script, bare"] = ([args.engine, url, "-c", connections, "-d", seconds, "-bare"], quick)
        table["weir script, capture + expect"] = ([args.engine, url, "-c", connections, "-d", seconds], quick)
    return {name: peer for name, peer in table.items() if shutil.which(peer[0][0])}


def cpu():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime, usage.ru_stime


def run(command, count):
    user, system = cpu()
    begin = time.monotonic()
    out = subprocess.run(["taskset", "-c", "1"] + command, capture_output=True, text=True, check=True).stdout
    took = time.monotonic() - begin
    user, system = cpu()[0] - user, cpu()[1] - system
    requests = count(out)
    return {"us": (user + system) / requests * 1e6, "user": user / requests * 1e6, "rps": requests / took,
            "busy": (user + system) / took}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick")
    parser.add_argument("--old", help="another build of it, to compare with")
    parser.add_argument("--engine", help="examples/http: the http engine as scripts use it")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=64)
    args = parser.parse_args()
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    with tempfile.TemporaryDirectory() as directory:
        server = start_nginx(directory, port)
        try:
            table = peers(args, url)
            runs = {name: [] for name in table}
            for _ in range(args.rounds):
                for name in random.sample(sorted(table), len(table)):
                    runs[name].append(run(*table[name]))
        finally:
            server.terminate()
            server.wait()
    median = lambda name, key: statistics.median(one[key] for one in runs[name])
    print("| tool | CPU µs/request | of it user | / wrk | requests/s | busy |")
    print("|---|--:|--:|--:|--:|--:|")
    for name in sorted(runs, key=lambda name: median(name, "us")):
        pairs = [one["us"] / other["us"] for one, other in zip(runs[name], runs.get("wrk", runs[name]))]
        print(f"| {name} | {median(name, 'us'):.2f} | {median(name, 'user'):.2f} | {statistics.median(pairs):.3f} "
              f"| {median(name, 'rps'):,.0f} | {median(name, 'busy') * 100:.0f} % |")


if __name__ == "__main__":
    main()
