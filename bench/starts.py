#!/usr/bin/env python3
"""Times of start, reload and restart beside nginx, with many servers in the file.

    python3 bench/starts.py --weir target/dist/weir [--nginx /usr/sbin/nginx] [--servers 10,1000,10000] [--rounds 7] [--json FILE]

Both read the same file: SERVERS name-based servers on one address, each with a root, a proxied location and an access log.
Each round runs both once, in random order. A step is timed until a client gets an answer of the new state over a new connection:

    test      `-t`, until it ends
    start     from the command to the first answer
    reload    from SIGHUP to the first answer of a file that says another number
    restart   from SIGTERM to the first answer of a process started as soon as the first one has ended
    kill      from SIGKILL of a process that serves to the first answer

Two figures for each: wall time, and CPU of all processes of the peer. Medians of all rounds, and their ratio. Loopback only, and
processes that this script has started."""

import argparse
import json
import os
import random
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import proc
from ports import free_port

STEPS = ["test", "start", "reload", "restart", "kill"]
PATIENCE_SECONDS = 120
PAUSE = 0.0005


def text(work, port, servers, number):
    blocks = "".join(
        f"""    server {{
        listen 127.0.0.1:{port};
        server_name s{index}.example www.s{index}.example;
        root {work}/www/s{index};
        access_log {work}/access.log;
        location / {{ try_files $uri $uri/ =404; }}
        location /api/ {{ proxy_pass http://origin; proxy_set_header Host $host; }}
        location = /number {{ return 200 {number}; }}
    }}
"""
        for index in range(servers)
    )
    return (
        f"daemon off;\nuser nobody nogroup;\nworker_processes 2;\npid {work}/pid;\nerror_log {work}/error.log;\n"
        f"events {{ worker_connections 512; }}\nhttp {{\n    server_names_hash_max_size 65536;\n"
        f"    server_names_hash_bucket_size 128;\n    upstream origin {{ server 127.0.0.1:9; }}\n{blocks}}}\n"
    )


class Peer:
    """A peer with a directory of its own."""

    def __init__(self, name, program, work):
        self.name, self.work, self.port, self.process = name, work / name, free_port(), None
        (self.work / "www").mkdir(parents=True)
        self.work.chmod(0o755)
        self.file = self.work / "nginx.conf"
        edge = [program, "edge"] if name == "weir" else [program]
        self.command = [*edge, "-p", f"{self.work}/", "-c", str(self.file)]
        if name == "nginx":
            for part in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]:
                (self.work / f"{part}_temp").mkdir()

    def write(self, servers, number):
        self.file.write_text(text(self.work, self.port, servers, number))

    def launch(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)

    def await_number(self, number):
        wanted, until = str(number).encode(), time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            if self.answer() == wanted:
                return
            time.sleep(PAUSE)
        sys.exit(f"{self.name} did not answer {number}: {(self.work / 'error.log').read_text()[-800:]}")

    def answer(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as client:
                client.sendall(b"GET /number HTTP/1.0\r\nHost: s1.example\r\n\r\n")
                parts = b"".join(iter(lambda: client.recv(4096), b""))
                return parts.partition(b"\r\n\r\n")[2]
        except OSError:
            return None

    def serving(self):
        return [pid for pid in proc.tree(self.process.pid) if pid != self.process.pid]

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE_SECONDS)


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(act):
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def measure(peer, servers):
    """Wall and CPU seconds of each step."""
    found = {}
    peer.write(servers, 1)
    before = cpu_of_children()
    wall = timed(lambda: subprocess.run([*peer.command, "-t"], check=True, capture_output=True))
    found["test"] = wall, cpu_of_children() - before

    def start(number):
        peer.launch()
        peer.await_number(number)

    wall = timed(lambda: start(1))
    found["start"] = wall, proc.cpu(peer.process.pid).total_ns / 1e9
    time.sleep(0.3)
    peer.write(servers, 2)
    # Processes that end meanwhile take their CPU with them; nginx's old workers have used little.
    before = proc.cpu(peer.process.pid).total_ns

    def reload():
        peer.process.send_signal(signal.SIGHUP)
        peer.await_number(2)

    wall = timed(reload)
    time.sleep(0.5)
    found["reload"] = wall, max(0, proc.cpu(peer.process.pid).total_ns - before) / 1e9

    def kill():
        os.kill(peer.serving()[0], signal.SIGKILL)
        peer.await_number(2)

    before = proc.cpu(peer.process.pid).total_ns
    wall = timed(kill)
    time.sleep(0.3)
    found["kill"] = wall, max(0, proc.cpu(peer.process.pid).total_ns - before) / 1e9

    def restart():
        peer.end()
        start(2)

    wall = timed(restart)
    found["restart"] = wall, proc.cpu(peer.process.pid).total_ns / 1e9
    peer.end()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--nginx", default=shutil.which("nginx") or "/usr/sbin/nginx")
    parser.add_argument("--servers", default="10,1000,10000")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    sizes = [int(size) for size in chosen.servers.split(",")]
    runs = []
    with tempfile.TemporaryDirectory(prefix="weir-starts-") as work:
        Path(work).chmod(0o755)
        peers = [Peer(name, os.path.abspath(program), Path(work))
                 for name, program in [("weir", chosen.weir), ("nginx", chosen.nginx)]]
        for servers in sizes:
            for number in range(chosen.rounds):
                for peer in random.sample(peers, len(peers)):
                    found = measure(peer, servers)
                    runs += [{"servers": servers, "round": number, "peer": peer.name, "step": step, "wall_s": wall, "cpu_s": cpu}
                             for step, (wall, cpu) in found.items()]
    if chosen.json:
        chosen.json.write_text(json.dumps(runs, indent=1))
    print(f"{subprocess.run([chosen.nginx, '-v'], capture_output=True, text=True).stderr.strip()}; medians of {chosen.rounds} rounds\n")
    print("| servers | step | weir wall ms | nginx wall ms | ratio | weir CPU ms | nginx CPU ms | ratio |\n|---|---|---|---|---|---|---|---|")
    for servers in sizes:
        for step in STEPS:
            def median(peer, unit):
                return statistics.median(run[unit] * 1e3 for run in runs
                                         if (run["servers"], run["step"], run["peer"]) == (servers, step, peer))
            cells = []
            for unit in ["wall_s", "cpu_s"]:
                one, other = median("weir", unit), median("nginx", unit)
                cells += [f"{one:.1f}", f"{other:.1f}", f"{one / other:.2f}" if other else "–"]
            print(f"| {servers} | {step} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
