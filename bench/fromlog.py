#!/usr/bin/env python3
"""Replays the log of a real nginx: its mix, made into a script by `weir load from`, beside the log of the replay.

    bench/fromlog.py --weir BIN [--nginx BIN] [--seconds N] [--artillery BIN]

Prints the table of docs/guide/load-from-log.md. With --artillery, Artillery itself runs the same script, too.
"""

import argparse
import collections
import pathlib
import re
import socket
import subprocess
import tempfile
import time

from ports import free_port

KNOWN = """
config:
  phases:
    - {{ duration: {a}, arrivalRate: 20 }}
    - {{ duration: {b}, arrivalRate: 60 }}
    - {{ duration: {a}, arrivalRate: 30 }}
  variables:
    user: [1, 1, 1, 1, 2, 2, 3, 4, 5, 6]
scenarios:
  - weight: 50
    flow: [{{ get: {{ headers: {{ user-agent: "{{{{ $uuid }}}}" }}, url: "/" }} }}, {{ think: "1500ms" }}, {{ get: {{ headers: {{ user-agent: "{{{{ $uuid }}}}" }}, url: "/users/{{{{ user }}}}" }} }}, {{ get: {{ headers: {{ user-agent: "{{{{ $uuid }}}}" }}, url: "/app.css" }} }}]
  - weight: 30
    flow: [{{ get: {{ headers: {{ user-agent: "{{{{ $uuid }}}}" }}, url: "/" }} }}, {{ get: {{ headers: {{ user-agent: "{{{{ $uuid }}}}" }}, url: "/search?q=word{{{{ $randomNumber(1, 50) }}}}" }} }}]
  - weight: 20
    flow: [{{ post: {{ headers: {{ user-agent: "{{{{ $uuid }}}}" }}, url: "/users/{{{{ user }}}}/orders" }} }}, {{ think: "1s" }}, {{ get: {{ headers: {{ user-agent: "{{{{ $uuid }}}}" }}, url: "/old", followRedirect: false }} }}]
"""

CONF = """
daemon off; master_process off; pid {room}/{name}.pid; error_log {room}/{name}.error.log;
events {{ worker_connections 4096; }}
http {{
    client_body_temp_path {room}/{name}.body; proxy_temp_path {room}/{name}.proxy; fastcgi_temp_path {room}/{name}.fastcgi;
    uwsgi_temp_path {room}/{name}.uwsgi; scgi_temp_path {room}/{name}.scgi;
    log_format own '$connection_requests $remote_addr [$msec $request_time] "$request" $status "$http_user_agent"';
    access_log {room}/{name}.log own;
    server {{ listen 127.0.0.1:{port}; location / {{ return 200 ok; }} location /old {{ return 302 /; }} }}
}}
"""


class Nginx:
    """A server with a log of its own."""

    def __init__(self, binary, room, name):
        self.port = free_port()
        self.log = room / f"{name}.log"
        conf = room / f"{name}.conf"
        conf.write_text(CONF.format(room=room, name=name, port=self.port))
        self.conf = conf
        self.process = subprocess.Popen([binary, "-c", str(conf)], stderr=subprocess.DEVNULL)
        for _ in range(200):
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", self.port)) == 0:
                    break
            time.sleep(0.05)
        self.url = f"http://127.0.0.1:{self.port}"

    def end(self):
        self.process.terminate()
        self.process.wait()


LINE = re.compile(r'^(\d+) \S+ \[(\S+) \S+\] "(\S+) (\S+) ')


def counted(log, ends):
    """Requests by route, and arrivals by phase; `ends` are the ends of the phases, in seconds."""
    routes, arrivals = collections.Counter(), [0] * len(ends)
    lines = [LINE.match(line) for line in log.read_text().splitlines()]
    lines = [line for line in lines if line]
    begin = min(float(line[2]) for line in lines)
    for line in lines:
        path = re.sub(r"/\d+", "/:id", line[4])
        path = re.sub(r"q=.*", "q=:q", path)
        routes[f"{line[3]} {path}"] += 1
        if line[1] == "1":
            after = float(line[2]) - begin
            number = next((n for n, end in enumerate(ends) if after < end), len(ends) - 1)
            arrivals[number] += 1
    return routes, arrivals


def phases(script):
    """The ends of the phases, in seconds."""
    ends, end = [], 0
    for line in script.read_text().splitlines():
        found = re.search(r"(?:duration|pause): (\d+)", line)
        if found and line.startswith("    - {"):
            end += int(found[1])
            ends.append(end)
    return ends


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weir", required=True)
    parser.add_argument("--nginx", default="/usr/sbin/nginx")
    parser.add_argument("--artillery")
    parser.add_argument("--seconds", type=int, default=120)
    flags = parser.parse_args()
    room = pathlib.Path(tempfile.mkdtemp(prefix="weir-fromlog-"))
    quarter = flags.seconds // 4
    known, script = room / "known.yml", room / "mix.yml"
    known.write_text(KNOWN.format(a=quarter, b=flags.seconds - 2 * quarter))
    first = Nginx(flags.nginx, room, "first")
    subprocess.run([flags.weir, "load", "-q", "--seed", "7", "-t", first.url, known], check=True)
    first.end()
    columns = [("log", None)]
    # Another seed than above: with the same one, the replay would draw the scenarios in the same order.
    tools = [("weir", [flags.weir, "load", "-q", "--seed", "8"])]
    if flags.artillery:
        tools.append(("Artillery", [flags.artillery, "run", "-q"]))
    for name, command in tools:
        server = Nginx(flags.nginx, room, name)
        make = [flags.weir, "load", "from", first.log, "--conf", first.conf, "--format", "own"]
        subprocess.run([*make, "-t", server.url, "-o", script], check=True)
        subprocess.run([*command, script], check=True)
        server.end()
        columns.append((name, server.log))
    ends = phases(script)
    counts = [counted(log or first.log, ends) for _, log in columns]
    names = [name for name, _ in columns]
    print("| route | " + " | ".join(f"{name}, %" for name in names) + " |")
    print("|---|" + "---|" * len(names))
    for route, _ in counts[0][0].most_common():
        shares = [100 * routes[route] / sum(routes.values()) for routes, _ in counts]
        print(f"| `{route}` | " + " | ".join(f"{share:.1f}" for share in shares) + " |")
    print("\n| phase, until | " + " | ".join(f"{name}, arrivals" for name in names) + " |")
    print("|---|" + "---|" * len(names))
    for number, end in enumerate(ends):
        print(f"| {end} s | " + " | ".join(str(arrivals[number]) for _, arrivals in counts) + " |")
    worst = max(
        abs(100 * routes[route] / sum(routes.values()) - 100 * share / sum(counts[0][0].values()))
        for routes, _ in counts[1:]
        for route, share in counts[0][0].items()
    )
    print(f"\nLargest difference of a share: {worst:.2f} percentage points")


if __name__ == "__main__":
    main()
