#!/usr/bin/env python3
"""Attacks the memory of an edge that may have 512 MB, and asks it for pages meanwhile.

Each attack is a few kilobytes of requests for large answers that the client does not take. The edge runs in a control group of its
own with a limit on memory (v1 or v2; needs root). Afterwards it must be the same process, the group must have met no OOM kill, and
each page must have been served while the attack lasted.

    tests/held.py --weir BIN [--nginx BIN] [NAME…]
"""

import argparse
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import ports

LIMIT = 512 << 20
STREAMS = 128
FILE_BYTES = 4 << 20
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, HEADERS, WINDOW_UPDATE = 4, 1, 8
# SETTINGS_INITIAL_WINDOW_SIZE.
WINDOW = 4

# Name: the connections, the window of each stream, the path, the coding that the client accepts.
ATTACKS = {
    "brotli": (30, 0, b"/br/noise.bin", b"br"),
    "brotli-open": (30, 40_000, b"/br/noise.bin", b"br"),
    "zstd": (30, 0, b"/zs/noise.bin", b"zstd"),
    "zstd-open": (30, 40_000, b"/zs/noise.bin", b"zstd"),
    "gzip": (30, 0, b"/gz/noise.bin", b"gzip"),
    "gzip-open": (30, 40_000, b"/gz/noise.bin", b"gzip"),
    "proxied": (30, 0, b"/px/noise.bin", b"x"),
    "proxied-brotli": (30, 40_000, b"/pxbr/noise.bin", b"br"),
    "listing": (30, 0, b"/list/", b"x"),
    "fields": (100, 0, b"/hang/", b"x"),
}
NGINX = {"gzip", "gzip-open", "proxied", "listing", "fields"}

CONF = """
{main}
worker_processes 1;
worker_rlimit_nofile 20000;
daemon off;
pid {dir}/pid;
error_log {dir}/error.log error;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    client_body_temp_path {dir}/temp; proxy_temp_path {dir}/temp;
    proxy_max_temp_file_size 0;
    types {{ }}
    default_type text/html;
    server {{
        listen 127.0.0.1:{port}; http2 on; root {work}/www;
        location / {{ gzip on; }}
        location /gz/ {{ alias {work}/www/; gzip on; gzip_types *; }}
        location /px/ {{ proxy_buffers 4 256k; proxy_pass http://127.0.0.1:{origin}/; }}
        location /list/ {{ alias {work}/list/; autoindex on; }}
        location /hang/ {{ proxy_pass http://127.0.0.1:{hang}; }}
        {own}
    }}
    server {{ listen 127.0.0.1:{origin}; root {work}/www; }}
}}
"""
OWN = """
        location /br/ { alias WORK/www/; brotli on; brotli_types *; }
        location /zs/ { alias WORK/www/; zstd on; zstd_types *; }
        location /pxbr/ { proxy_pass http://127.0.0.1:ORIGIN/; brotli on; brotli_types *; }
"""


class Group:
    """A control group with a limit on memory."""

    def __init__(self):
        name = f"weir-held-{os.getpid()}"
        v1 = pathlib.Path("/sys/fs/cgroup/memory")
        self.v1 = v1.is_dir()
        self.path = (v1 if self.v1 else pathlib.Path("/sys/fs/cgroup")) / name
        self.path.mkdir()
        self.write("memory.limit_in_bytes" if self.v1 else "memory.max", LIMIT)

    def write(self, name, value):
        (self.path / name).write_text(str(value))

    def run(self, command, log):
        enter = lambda: self.write("cgroup.procs", os.getpid())
        return subprocess.Popen(command, preexec_fn=enter, stdout=log, stderr=log)

    def peak(self):
        """The most memory that its processes used, in MB. The kernel's cache of files counts until it is needed elsewhere."""
        name = "memory.max_usage_in_bytes" if self.v1 else "memory.peak"
        return int((self.path / name).read_text()) >> 20

    def kills(self):
        events = (self.path / ("memory.oom_control" if self.v1 else "memory.events")).read_text()
        return int(dict(line.split() for line in events.splitlines()).get("oom_kill", 0))

    def remove(self):
        for _ in range(100):
            try:
                return self.path.rmdir()
            except OSError:
                time.sleep(0.1)


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def field(name, value, indexed=False):
    def text(part):
        if len(part) < 127:
            return bytes([len(part)]) + part
        rest, out = len(part) - 127, b"\x7f"
        while rest >= 128:
            out, rest = out + bytes([rest & 127 | 128]), rest >> 7
        return out + bytes([rest]) + part
    return (b"\x40" if indexed else b"\x00") + text(name) + text(value)


def attack(name, port):
    """Sends the attack; returns its connections and the number of its bytes."""
    connections, window, path, coding = ATTACKS[name]
    held, total = [], 0
    for _ in range(connections):
        try:
            one = socket.create_connection(("127.0.0.1", port), timeout=5)
            data = PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", WINDOW, window))
            data += frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30))
            # :method GET and :scheme http are in the table that every client has.
            request = b"\x82\x86" + field(b":path", path) + field(b":authority", b"h")
            extra = field(b"x-a", b"v" * 3900, True) if name == "fields" else field(b"accept-encoding", coding, True)
            for number in range(STREAMS):
                # Later requests name the large field by its place in the table, many times.
                rest = extra if number == 0 else b"\xbe" * (7 if name == "fields" else 1)
                data += frame(HEADERS, 5, 1 + 2 * number, request + rest)
            one.sendall(data)
            held.append(one)
            total += len(data)
        except OSError:
            pass
    return held, total


def drain(held, until):
    """Takes the frames that come, so that only the windows of the streams hold the answers back."""
    for one in held:
        one.settimeout(0.01)
    while not until.is_set():
        for one in held:
            try:
                one.recv(1 << 16)
            except OSError:
                pass
        time.sleep(0.05)


def status(port, path="/page.html"):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as one:
            one.settimeout(20)
            one.sendall(f"GET {path} HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n".encode())
            return int(one.recv(4096).split(b" ")[1])
    except (OSError, IndexError, ValueError):
        return 0


def serving(keeper):
    """The processes that serve: the children of the process that was started."""
    found = pathlib.Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
    return sorted(int(pid) for pid in found)


def resident(pids):
    total = 0
    for pid in pids:
        try:
            total += sum(int(line.split()[1]) for line in open(f"/proc/{pid}/status") if line.startswith("VmRSS")) >> 10
        except OSError:
            pass
    return total


def hang(port):
    """An origin that says nothing."""
    listener = socket.create_server(("127.0.0.1", port), backlog=4096)
    held = []
    while True:
        held.append(listener.accept())


def run(binary, own, name, work):
    port, origin, hanging = ports.free_ports(3)
    directory = pathlib.Path(tempfile.mkdtemp(dir=work))
    directory.chmod(0o755)
    own = OWN.replace("WORK", str(work)).replace("ORIGIN", str(origin)) if own else ""
    main = "user nobody nogroup;"
    (directory / "conf").write_text(
        CONF.format(main=main, dir=directory, work=work, port=port, origin=origin, hang=hanging, own=own))
    threading.Thread(target=hang, args=(hanging,), daemon=True).start()
    group = Group()
    log = open(directory / "out", "wb")
    command = [binary] + ([] if "nginx" in pathlib.Path(binary).name else ["edge"])
    process = group.run([*command, "-c", str(directory / "conf"), "-e", str(directory / "error.log")], log)
    try:
        for _ in range(100):
            if status(port) == 200:
                break
            time.sleep(0.1)
        else:
            sys.exit(f"{binary} does not serve: {(directory / 'out').read_text()[-500:]} {(directory / 'error.log').read_text()[-500:]}")
        before = serving(process.pid)
        idle = resident(before)
        over = threading.Event()
        asked, served, most = 0, 0, idle
        result = {}
        attacker = threading.Thread(target=lambda: result.update(zip(("held", "bytes"), attack(name, port))))
        attacker.start()
        reader = None
        for _ in range(24):
            asked += 1
            served += status(port) == 200
            most = max(most, resident(serving(process.pid)))
            if reader is None and not attacker.is_alive():
                reader = threading.Thread(target=drain, args=(result["held"], over))
                reader.start()
            time.sleep(0.25)
        attacker.join()
        over.set()
        if reader:
            reader.join()
        for one in result["held"]:
            one.close()
        same = serving(process.pid) == before
        return dict(bytes=result["bytes"], idle=idle, most=most, peak=group.peak(), kills=group.kills(), same=same,
                    asked=asked, served=served)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
        group.remove()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--nginx")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(ATTACKS))
    given = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory(prefix="weir-held-") as name:
        work = pathlib.Path(name)
        work.chmod(0o755)
        (work / "www").mkdir()
        (work / "www/page.html").write_text("a page\n" * 200)
        (work / "www/noise.bin").write_bytes(random.Random(1).randbytes(FILE_BYTES))
        (work / "list").mkdir()
        for number in range(10_000):
            (work / "list" / f"a-file-with-a-long-name-{number:060}").touch()
        print("| attack | bytes sent | edge | MB idle | MB at most | OOM kills | pages served |\n|---|---|---|---|---|---|---|")
        for attack_name in given.names or ATTACKS:
            for label, binary in (("weir", given.weir), ("nginx", given.nginx)):
                if binary is None or label == "nginx" and attack_name not in NGINX:
                    continue
                seen = run(binary, label == "weir", attack_name, work)
                print(f"| {attack_name} | {seen['bytes']:,} | {label} | {seen['idle']} | {seen['most']} | {seen['kills']} | "
                      f"{seen['served']} of {seen['asked']} |", flush=True)
                if label == "weir" and (seen["kills"] or not seen["same"] or seen["served"] < seen["asked"]):
                    failed.append(attack_name)
    if failed:
        sys.exit(f"not held: {', '.join(failed)}")


if __name__ == "__main__":
    main()
