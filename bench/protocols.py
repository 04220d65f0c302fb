#!/usr/bin/env python3
"""What FastCGI, TCP and UDP cost: weir beside nginx, from one file (conf/protocols.conf).

    python3 bench/protocols.py --weir target/dist/weir [--only php,echo,bulk,dns] [--rounds 5] [--seconds 3]

`php`: "Hello, world" of a real PHP-FPM behind FastCGI, connections kept; wrk asks. `echo`: 1 KiB there and back over TCP, 64 connections.
`bulk`: one connection that brings 1 GiB from a server. `dns`: a datagram of 64 bytes and its answer, each from a client address of its
own, as resolvers do. The CPU is that of all threads of the peer, from /proc. Peer on core 0, everything else on core 1, runs
interleaved; each figure is the median of the rounds, with the range of the ratios.
"""

import argparse
import contextlib
import os
import random
import selectors
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import loads
import peers
import proc

BULK_BYTES = 1 << 30
BUFFER = bytes(1 << 20)
ECHO_BYTES, ECHO_CONNECTIONS = 1024, 64
DATAGRAM, DNS_CLIENTS = bytes(64), 32
CHILDREN = 16       # of PHP-FPM: a kept connection takes one
PATIENCE_SECONDS = 10
PORTS = {"http": 18101, "echo": 18102, "bulk": 18103, "dns": 18104,
         "origin_echo": 18112, "origin_bulk": 18113, "origin_dns": 18114}
ROWS = {
    "php": "PHP hello world through FastCGI, us a request",
    "echo": "1 KiB echo over TCP, us an echo",
    "bulk": "1 GiB over TCP, ms a GiB",
    "dns": "64 bytes over UDP and the answer, us a datagram",
}


def main():
    args = arguments()
    chosen = [peer for peer in peers.all_peers(args.weir, None) if peer.name in ("nginx", "weir")]
    rows = [row for row in ROWS if not args.only or row in args.only.split(",")]
    if "php" in rows and not php_fpm():
        sys.exit("php-fpm is needed: apt install php-fpm (or leave the row out with --only)")
    found = {row: {peer.name: [] for peer in chosen} for row in rows}
    with tempfile.TemporaryDirectory(prefix="weir-protocols-") as work, origins(), \
            Php(Path(work)) if "php" in rows else contextlib.nullcontext():
        os.chmod(work, 0o755)
        for _ in range(args.rounds):
            for peer in random.sample(chosen, len(chosen)):
                with start(peer, Path(work)) as running:
                    for row in rows:
                        found[row][peer.name].append(measure(row, running, args.seconds))
    for row in rows:
        show(row, found[row])


def show(row, found):
    medians = {name: statistics.median(values) for name, values in found.items()}
    line = "  ".join(f"{name} {value:8.2f}" for name, value in medians.items())
    if len(found) == 2:
        ratios = sorted(weir / nginx for weir, nginx in zip(found["weir"], found["nginx"]))
        line += f"  weir/nginx {statistics.median(ratios):.2f} [{ratios[0]:.2f} {ratios[-1]:.2f}]"
    print(f"{ROWS[row]:50} {line}", flush=True)


def measure(row, running, seconds):
    """CPU of the peer for one unit of the row."""
    before = proc.cpu(running.pid)
    count = {"php": php, "echo": echo, "bulk": bulk, "dns": dns}[row](seconds)
    return proc.cpu(running.pid).since(before).total_ns / count / (1e6 if row == "bulk" else 1e3)


def php(seconds):
    said = loads.parse_wrk(subprocess.run(
        ["taskset", "-c", str(peers.LOAD_CORE), "wrk", "-t1", f"-c{CHILDREN}", f"-d{seconds}s", f"http://127.0.0.1:{PORTS['http']}/"],
        capture_output=True, text=True, check=True).stdout)
    if said["errors"] or not said["requests"]:
        raise peers.PeerFailed(f"php: {said}")
    return said["requests"]


def echo(seconds):
    """Sends on all connections, and again on each whose echo is whole."""
    selector, message, count = selectors.DefaultSelector(), bytes(ECHO_BYTES), 0
    for _ in range(ECHO_CONNECTIONS):
        stream = socket.create_connection(("127.0.0.1", PORTS["echo"]))
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(stream, selectors.EVENT_READ, [ECHO_BYTES])
        stream.sendall(message)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for key, _ in selector.select(PATIENCE_SECONDS):
            got = len(key.fileobj.recv(ECHO_BYTES))
            if not got:
                raise peers.PeerFailed("echo: the peer closed a connection")
            key.data[0] -= got
            if key.data[0] == 0:
                key.data[0] = ECHO_BYTES
                key.fileobj.sendall(message)
                count += 1
    for key in list(selector.get_map().values()):
        key.fileobj.close()
    return count


def bulk(_):
    stream = socket.create_connection(("127.0.0.1", PORTS["bulk"]))
    stream.settimeout(PATIENCE_SECONDS)
    room, got = bytearray(1 << 20), 0
    while count := stream.recv_into(room):
        got += count
    if got != BULK_BYTES:
        raise peers.PeerFailed(f"bulk: {got} bytes came")
    return 1


def dns(seconds):
    """Each question comes from a new socket, so each is a session of the peer."""
    selector, count = selectors.DefaultSelector(), 0

    def ask():
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        client.connect(("127.0.0.1", PORTS["dns"]))
        client.send(DATAGRAM)
        selector.register(client, selectors.EVENT_READ)

    for _ in range(DNS_CLIENTS):
        ask()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ready = selector.select(PATIENCE_SECONDS)
        if not ready:
            raise peers.PeerFailed("dns: no answer came")
        for key, _ in ready:
            if len(key.fileobj.recv(512)) != len(DATAGRAM):
                raise peers.PeerFailed("dns: another answer came")
            selector.unregister(key.fileobj)
            key.fileobj.close()
            count += 1
            ask()
    for key in list(selector.get_map().values()):
        key.fileobj.close()
    return count


def start(peer, work):
    prefix = work / peer.name
    (prefix / "logs").mkdir(parents=True, exist_ok=True)
    conf = written(prefix, work, PORTS)
    values = dict(program=peer.program, conf=conf, prefix=f"{prefix}/", listen="", origin="")
    return peers.Running(peer.name, [part.format(**values) for part in peer.argv], peers.PEER_CORE,
                         f"127.0.0.1:{PORTS['http']}", prefix / "output.log", executable=peer.program)


def written(prefix, work, ports):
    """conf/protocols.conf with everything filled in, in the prefix directory."""
    text = (peers.HERE / "conf" / "protocols.conf").read_text()
    for name, port in ports.items():
        text = text.replace(f"@{name}@", f"127.0.0.1:{port}")
    text = text.replace("@php@", str(work / "php.sock")).replace("@script@", str(work / "hello.php"))
    conf = prefix / "protocols.conf"
    conf.write_text(text)
    return conf


def php_fpm():
    """The program, if it is installed."""
    return next((path for path in map(shutil.which, ("php-fpm", "php-fpm8.2", "php-fpm8.4")) if path), None)


class Php:
    """PHP-FPM on the other core, with one page; ended on leaving the `with` block."""

    def __init__(self, work):
        self.work, self.process = work, None

    def __enter__(self):
        (self.work / "hello.php").write_text("<?php echo 'Hello, world';\n")
        (self.work / "fpm.conf").write_text(
            f"[global]\nerror_log={self.work}/fpm.log\ndaemonize=no\n[www]\nuser=root\ngroup=root\nlisten={self.work}/php.sock\n"
            f"listen.mode=0666\npm=static\npm.max_children={CHILDREN}\n")
        self.process = subprocess.Popen(["taskset", "-c", str(peers.LOAD_CORE), php_fpm(), "-R", "-y", str(self.work / "fpm.conf")])
        give_up = time.monotonic() + PATIENCE_SECONDS
        while not (self.work / "php.sock").exists() and time.monotonic() < give_up:
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


class origins:
    """The servers behind the peers, as processes on the other core; ended on leaving the `with` block."""

    def __init__(self):
        self.children = []

    def __enter__(self):
        os.sched_setaffinity(0, {peers.LOAD_CORE})
        for serve in (serve_echo, serve_bulk, serve_dns):
            child = os.fork()
            if child == 0:
                serve()
                os._exit(0)
            self.children.append(child)
        time.sleep(0.3)
        return self

    def __exit__(self, *_):
        for child in self.children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def listening(name):
    return socket.create_server(("127.0.0.1", PORTS[name]), backlog=512)


def serve_echo():
    selector, server = selectors.DefaultSelector(), listening("origin_echo")
    selector.register(server, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is server:
                stream, _ = server.accept()
                stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                selector.register(stream, selectors.EVENT_READ)
                continue
            try:
                data = key.fileobj.recv(1 << 16)
            except ConnectionError:
                data = b""
            if data:
                key.fileobj.sendall(data)
            else:
                selector.unregister(key.fileobj)
                key.fileobj.close()


def serve_bulk():
    server = listening("origin_bulk")
    while True:
        stream, _ = server.accept()
        for _ in range(BULK_BYTES // len(BUFFER)):
            stream.sendall(BUFFER)
        stream.close()


def serve_dns():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", PORTS["origin_dns"]))
    while True:
        data, client = server.recvfrom(512)
        server.sendto(data, client)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", help="the weir binary (profile dist); left out without it")
    parser.add_argument("--only", help="some rows, separated by commas: " + ", ".join(ROWS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3, help="of each run; a GiB takes as long as it takes")
    return parser.parse_args()


if __name__ == "__main__":
    main()
