#!/usr/bin/env python3
"""CPU time of servers with a thread or a process for each connection: what weir reads beside what the control group says.

    python3 bench/accounts.py --family target/release/examples/family [--requests 400] [--only threads.py]

`family` is `cargo build --release -p weir-host --example family`: the sum that the lab and the dashboard have. Each server of `bench/accounts` runs in
a control group of its own (version 1 or 2; needs root). It answers --requests requests, each on a connection of its own, four at once. Both accounts are
read before and after. Exit code 1: a difference above 3 %.
"""

import argparse
import concurrent.futures
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent / "accounts"
PORT = 18190
NEAR = 0.03


def servers(work: Path) -> dict[str, list[str]]:
    """The command of each server whose language is installed."""
    found = {"threads.py": [sys.executable, HERE / "threads.py"], "forks.py": [sys.executable, HERE / "forks.py"]}
    if shutil.which("perl"):
        found["forks.pl"] = ["perl", HERE / "forks.pl"]
    if shutil.which("node"):
        found["children.js"] = ["node", HERE / "children.js"]
    if shutil.which("java"):
        found["Threads.java"] = ["java", "-XX:TieredStopAtLevel=1", HERE / "Threads.java"]
    if shutil.which("cc"):
        subprocess.run(["cc", "-O1", "-pthread", "-o", work / "threads", HERE / "threads.c"], check=True)
        found["threads.c"] = [work / "threads"]
    return {name: [str(word) for word in command] for name, command in found.items()}


class Group:
    """A control group, version 1 or 2."""

    def __init__(self, name: str):
        old = next((path for path in map(Path, ["/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/cpu,cpuacct"]) if path.is_dir()), None)
        self.is_old = old is not None
        self.path = (old or Path("/sys/fs/cgroup")) / name
        self.path.mkdir()

    def cpu(self) -> float:
        if self.is_old:
            return int((self.path / "cpuacct.usage").read_text()) / 1e9
        stat = dict(line.split() for line in (self.path / "cpu.stat").read_text().splitlines())
        return int(stat["usage_usec"]) / 1e6

    def remove(self):
        for _ in range(100):
            try:
                return self.path.rmdir()
            except OSError:
                time.sleep(0.05)


def ask(_: int) -> None:
    with socket.create_connection(("127.0.0.1", PORT), timeout=20) as client:
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        answer = b""
        while piece := client.recv(4096):
            answer += piece
    if b"200 OK" not in answer:
        raise SystemExit(f"no answer: {answer!r}")


def wait_for_server():
    for _ in range(200):
        try:
            return socket.create_connection(("127.0.0.1", PORT), timeout=1).close()
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server does not listen")


def measured(name: str, command: list[str], args) -> tuple[float, float]:
    """Seconds of CPU for the requests: by the control group, and by weir."""
    group = Group(f"weir-accounts-{name.replace('.', '-')}-{int(time.time())}")
    joins = 'echo 0 > "$1"; shift; exec "$@"'
    server = subprocess.Popen(["sh", "-c", joins, "sh", str(group.path / "cgroup.procs"), *command, str(PORT)], stderr=subprocess.DEVNULL)
    try:
        wait_for_server()

        def family() -> float:
            said = subprocess.run([args.family, str(server.pid)], capture_output=True, text=True, check=True).stdout
            return float(said.split()[0])

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(ask, range(20)))
            time.sleep(0.3)
            before = group.cpu(), family()
            list(pool.map(ask, range(args.requests)))
            time.sleep(0.3)
            after = group.cpu(), family()
        return after[0] - before[0], after[1] - before[1]
    finally:
        server.kill()
        server.wait()
        group.remove()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", required=True, help="the example of weir-host")
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--only", action="append", default=[])
    args = parser.parse_args()
    is_far = False
    with tempfile.TemporaryDirectory(prefix="weir-accounts-") as work:
        for name, command in servers(Path(work)).items():
            if args.only and name not in args.only:
                continue
            group, family = measured(name, command, args)
            share = family / group - 1
            is_far |= abs(share) > NEAR
            print(f"{name:14} control group {group:7.3f} s, weir {family:7.3f} s, {share * 100:+.1f} %", flush=True)
    raise SystemExit(1 if is_far else 0)


if __name__ == "__main__":
    main()
