#!/usr/bin/env python3
"""How many requests a second 200 local ports carry if the edge closes each connection, beside what weir says of them.

    python3 bench/ports_reused.py --weir BIN [--nginx BIN] [--seconds 75]

The origin is on loopback, and then in another network namespace. Needs root. For each rate, `weir load` asks the edge for that long,
and counts answers that are not 200. Beside it: the sentence of `weir doctor` about the file, and the most ports that the dashboard of
weir showed as used. A port rests for 60 s or 1 s (net.ipv4.tcp_tw_reuse), so the rates between namespaces are low and take long.
"""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

PORTS, EDGE, ORIGIN, DASHBOARD = 200, 8080, 3000, 9200
NAMES = {place: f"weir-{place}-{os.getpid()}" for place in ("edge", "far")}
# The rates are about the two ceilings: 200 ports a second, and 200 ports a minute.
PLACES = {"loopback": ("127.0.0.1", [100, 180, 260, 400], 6), "namespace": ("10.78.0.2", [2, 3, 5], None)}


def ip(*words):
    subprocess.run(["ip", *words], check=True)


@contextlib.contextmanager
def rooms():
    """A namespace for the edge, and one for an origin on another machine."""
    made = []
    try:
        for name in NAMES.values():
            ip("netns", "add", name)
            made.append(name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("link", "add", "e", "netns", NAMES["edge"], "type", "veth", "peer", "name", "f", "netns", NAMES["far"])
        for name, device, address in ((NAMES["edge"], "e", "10.78.0.1/24"), (NAMES["far"], "f", "10.78.0.2/24")):
            ip("-n", name, "addr", "add", address, "dev", device)
            ip("-n", name, "link", "set", device, "up")
        inside("edge", "sysctl", "-qw", f"net.ipv4.ip_local_port_range=50000 {50000 + PORTS - 1}").wait()
        yield
    finally:
        for name in made:
            ip("netns", "del", name)


def inside(place, *command, **more):
    return subprocess.Popen(["ip", "netns", "exec", NAMES[place], *map(str, command)], **more)


def conf(folder, address, is_weir):
    """The edge closes each connection to its origin."""
    own = f"dashboard 127.0.0.1:{DASHBOARD};" if is_weir else ""
    keep = "keepalive 0;"
    path = folder / "nginx.conf"
    path.write_text(f"""daemon off;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log crit;
events {{ worker_connections 1024; }}
{own}
http {{
    access_log off;
    upstream app {{ server {address}:{ORIGIN}; {keep if is_weir else ''} }}
    server {{
        listen 127.0.0.1:{EDGE} reuseport;
        location / {{
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_pass http://app;
        }}
    }}
}}
""")
    return path


class Watch(threading.Thread):
    """The most ports that the dashboard showed as used."""

    def __init__(self):
        super().__init__(daemon=True)
        self.most, self.is_over = None, False

    def run(self):
        while not self.is_over:
            done = inside("edge", "curl", "-s", "-m", "2", f"http://127.0.0.1:{DASHBOARD}/doc.json", stdout=subprocess.PIPE).communicate()[0]
            for row in limits(json.loads(done or b"{}")):
                self.most = max(self.most or 0, row["used"])
            time.sleep(1)


def limits(value):
    """The rows about ports, wherever they are in the document."""
    if isinstance(value, dict):
        if value.get("kind") == "ports" and "used" in value:
            yield value
        for one in value.values():
            yield from limits(one)
    elif isinstance(value, list):
        for one in value:
            yield from limits(one)


def measure(args, edge, place, rate, seconds):
    address = PLACES[place][0]
    with tempfile.TemporaryDirectory(prefix="ports-reused-") as folder:
        folder = Path(folder)
        os.chmod(folder, 0o755)
        path = conf(folder, address, edge == "weir")
        program = [args.nginx, "-c", path] if edge == "nginx" else [args.weir, "edge", "-p", folder, "-c", path]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        origin = inside("edge" if place == "loopback" else "far", args.weir, "origin", "--listen", f"{address}:{ORIGIN}", **quiet)
        server = inside("edge", *program, **quiet)
        watch = Watch()
        try:
            time.sleep(1)
            if edge == "weir":
                watch.start()
            load = [args.weir, "load", f"http://127.0.0.1:{EDGE}/1k", "-R", rate, "-d", f"{seconds}s", "-c", "4", "-o", folder / "run.json"]
            inside("edge", *load, **quiet).wait()
            told = json.loads((folder / "run.json").read_text())
            doctor = inside("edge", args.weir, "doctor", path, "--nginx", args.nginx, "--json", stdout=subprocess.PIPE).communicate()[0]
        finally:
            watch.is_over = True
            for one in (server, origin):
                one.terminate()
                one.wait()
    said = next((one["what"] for one in json.loads(doctor)["findings"] if one["rule"] == "upstream_without_keepalive"), "")
    return told, re.findall(r"(?:Above|enough for) (\d+) requests", said), watch.most


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", type=os.path.abspath, required=True)
    parser.add_argument("--nginx", type=os.path.abspath, default="/usr/sbin/nginx")
    parser.add_argument("--seconds", type=int, default=75, help="for each rate between namespaces; more than the 60 s of TIME_WAIT")
    args = parser.parse_args()
    print(f"{PORTS} local ports; the edge closes each connection")
    print(f"{'origin':10}{'edge':7}{'rate':>6}{'asked':>8}{'not 200':>9}{'the doctor: most a second':>27}{'dashboard: ports used':>23}")
    for place, (_, rates, seconds) in PLACES.items():
        for rate in rates:
            for edge in ("nginx", "weir"):
                # Ports of an earlier run must not rest any more.
                with rooms():
                    told, said, used = measure(args, edge, place, rate, seconds or args.seconds)
                print(f"{place:10}{edge:7}{rate:>6}{asked(told):>8}{failed(told):>9}{', '.join(said) if edge == 'nginx' else '':>27}"
                      f"{'' if used is None else int(used):>23}", flush=True)


def asked(told):
    return told["aggregate"]["counters"].get("http.requests", 0)


def failed(told):
    counters = told["aggregate"]["counters"]
    return counters.get("http.requests", 0) - counters.get("http.codes.200", 0)


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("needs root, for network namespaces")
    main()
