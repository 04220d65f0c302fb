#!/usr/bin/env python3
"""CPU of a small file that the server opens itself, and of one that its keeper has to open.

    python3 bench/opening.py --weir target/dist/weir [--rounds 7] [--requests 4000]

Both files have the same bytes. One is below the root; the other one is behind a symbolic link that leads out of it, which the
server may not follow (docs/why/011-keeper.md). Each round asks for both, in random order, over one connection. CPU is user and
system time of the keeper and the server together. The third row is the second file with `master_process off`, where nothing is
restricted. Loopback only. Needs root: a server without root has no other rules, but the keeper then opens files as the same user."""

import argparse
import os
import random
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import proc
from ports import free_port

PATIENCE_SECONDS = 20


class Edge:
    """An edge with one worker, and files to serve; `top`, `http` and `server` are further statements."""

    def __init__(self, weir, work, name, top, http="", server=""):
        self.port, self.room = free_port(), work / name
        (self.room / "site").mkdir(parents=True)
        (self.room / "outside").mkdir()
        for place in ["site", "outside"]:
            (self.room / place / "file").write_text("x" * 1024)
        (self.room / "site/way").symlink_to("../outside")
        (self.room / "nginx.conf").write_text(
            f"daemon off; pid {self.room}/pid; error_log {self.room}/error.log; user nobody nogroup; dashboard off; worker_processes 1; {top}\n"
            f"events {{ }} http {{ access_log off; server {{ listen 127.0.0.1:{self.port}; root {self.room}/site; keepalive_requests 1000000;"
            f" location = /status {{ stub_status; }} {server} }} {http} }}\n")
        self.process = subprocess.Popen([weir, "edge", "-p", f"{self.room}/", "-c", self.room / "nginx.conf"],
                                        stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self.client = socket.create_connection(("127.0.0.1", self.port))
                break
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)

    def ask(self, path, times):
        """CPU microseconds of a request."""
        request = f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
        before = proc.cpu(self.process.pid).total_ns
        for _ in range(times):
            self.client.sendall(request)
            answer = b""
            while b"\r\n\r\n" not in answer or len(answer.partition(b"\r\n\r\n")[2]) < 1024:
                answer += self.client.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200 "), answer[:80]
        return (proc.cpu(self.process.pid).total_ns - before) / times / 1000

    def requests(self):
        """The requests that it has had, with this one."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/status", timeout=PATIENCE_SECONDS) as answer:
            return int(answer.read().split()[9])

    def end(self):
        self.client.close()
        self.process.terminate()
        self.process.wait(PATIENCE_SECONDS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=4000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weir-opening-") as work:
        os.chmod(work, 0o755)
        weir = os.path.abspath(chosen.weir)
        apart, alone = Edge(weir, Path(work), "apart", ""), Edge(weir, Path(work), "alone", "master_process off;")
        rows = {"below the root": (apart, "/file"), "behind a link out of the root": (apart, "/way/file"),
                "the same, master_process off": (alone, "/way/file")}
        found = {name: [] for name in rows}
        for edge, path in rows.values():
            edge.ask(path, chosen.requests // 4)
        for _ in range(chosen.rounds):
            for name in random.sample(list(rows), len(rows)):
                edge, path = rows[name]
                found[name].append(edge.ask(path, chosen.requests))
        first = statistics.median(found["below the root"])
        print("| file | CPU µs/request | ratio |\n|---|---|---|")
        for name, values in found.items():
            print(f"| {name} | {statistics.median(values):.1f} | {statistics.median(values) / first:.2f} |")
        apart.end()
        alone.end()


if __name__ == "__main__":
    main()
