#!/usr/bin/env python3
"""The CPU of a limited request while three edges share the limit over Redis, beside the same limit of each edge alone.

    python3 bench/fleet.py --weir target/dist/weir [--rate 10000] [--keys 20000] [--rounds 9] [--seconds 4]

`weir load` sends requests at a fixed rate from core 1, in turn to three edges, each with one of the keys at random. The edges have one worker each; edges and
Redis are on core 0. A figure is the CPU of all threads of the edges for one answer, from /proc. Rounds are interleaved, in a random order. For each round, the
ratio to the round with zones of their own is taken; the line has the median of the ratios and the interval that has the true median in 95 of 100 cases. `aa` is a
second side without a fleet: its ratio shows what the machine adds. The commands and the CPU of Redis are those that it counts itself.
"""

import argparse
import json
import random
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import peers
import proc
import record

EDGES = [f"127.88.0.2:{port}" for port in (18161, 18162, 18163)]
REDIS_PORT = 18164
WARM_SECONDS = 1
CONF = """
worker_processes 1;
pid {prefix}/nginx.pid;
error_log {prefix}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    {fleet}
    limit_req_zone $arg_key zone=one:64m rate=5r/s {sync};
    server {{ listen {listen}; location / {{ limit_req zone=one burst=20 nodelay; empty_gif; }} }}
}}
"""
SCRIPT = """
config:
  target: "http://{first}"
  http: {{ pool: {connections} }}
  phases: [{{ duration: {seconds}, arrivalRate: {rate} }}]
scenarios:
{scenarios}
"""
SCENARIO = """  - flow: [{{ get: {{ url: "http://{edge}/?key={{{{ $randomNumber(1, {keys}) }}}}" }} }}]"""
SIDES = {"none": False, "aa": False, "fleet": True}
ROW = record.Row("limited", "a limited request", "/")


def main():
    args = arguments()
    with tempfile.TemporaryDirectory(prefix="weir-fleet-") as work, redis(Path(work)):
        found, commands, redis_us = {side: [] for side in SIDES}, [], []
        for _ in range(args.rounds):
            for side in random.sample(list(SIDES), len(SIDES)):
                cpu, counted, used = measured(SIDES[side], Path(work), args)
                found[side].append(cpu)
                if SIDES[side]:
                    commands.append(counted)
                    redis_us.append(used)
        record.show(ROW, found, dict.fromkeys(SIDES), args)
        print(f"    Redis: {statistics.median(commands):,.0f} commands a second, {statistics.median(redis_us):.2f} µs of its CPU for one request", flush=True)


def measured(is_fleet, work, args):
    """Microseconds of CPU of the edges for one answer, Redis' commands a second, and its microseconds for one answer."""
    ask("FLUSHALL")
    running = []
    try:
        for number, edge in enumerate(EDGES):
            prefix = work / f"edge{number}"
            prefix.mkdir(exist_ok=True)
            fleet = f"fleet redis://127.0.0.1:{REDIS_PORT} name=bench edge=e{number} edges=3;" if is_fleet else ""
            text = CONF.format(prefix=prefix, listen=edge, fleet=fleet, sync="sync" if is_fleet else "")
            (prefix / "nginx.conf").write_text(text)
            one = peers.Running("weir", [args.weir, "edge", "-c", str(prefix / "nginx.conf"), "-p", f"{prefix}/", *peers.ALONE], peers.PEER_CORE, edge, prefix / "output.log")
            running.append(one.__enter__())
        load(args, WARM_SECONDS)
        before, redis_before = sum(proc.cpu(one.pid).total_ns for one in running), counts()
        began = time.monotonic()
        answers = load(args, args.seconds)
        took = time.monotonic() - began
        cpu = sum(proc.cpu(one.pid).total_ns for one in running) - before
        commands, used = (after - then for after, then in zip(counts(), redis_before))
    finally:
        for one in running:
            one.__exit__(None, None, None)
    return cpu / answers / 1000, commands / took, used * 1e6 / answers


def load(args, seconds):
    """The number of answers, all of which passed."""
    with tempfile.TemporaryDirectory(prefix="weir-fleet-load-") as place:
        script, report = Path(place, "load.yml"), Path(place, "report.json")
        scenarios = "\n".join(SCENARIO.format(edge=edge, keys=args.keys) for edge in EDGES)
        script.write_text(SCRIPT.format(first=EDGES[0], connections=args.connections, seconds=seconds, rate=args.rate, scenarios=scenarios))
        done = subprocess.run(["taskset", "-c", str(peers.LOAD_CORE), args.weir, "load", str(script), "--workers", "1", "-o", str(report), "-q"],
                              capture_output=True, text=True, timeout=120)
        counters = json.loads(report.read_text())["aggregate"]["counters"] if report.exists() else {}
    answers = counters.get("http.codes.200", 0)
    if not answers or answers != counters["http.responses"]:
        raise peers.PeerFailed(f"{counters or done.stdout + done.stderr}")
    if answers < 0.98 * args.rate * seconds:
        print(f"    {answers / seconds:,.0f} answers a second instead of {args.rate:,}: the machine is too slow for this rate", flush=True)
    return answers


def redis(work):
    argv = ["redis-server", "--bind", "127.0.0.1", "--port", str(REDIS_PORT), "--save", "", "--appendonly", "no", "--dir", str(work)]
    return peers.Running("redis-server", argv, peers.PEER_CORE, f"127.0.0.1:{REDIS_PORT}", work / "redis.log")


def counts():
    """Commands that Redis has processed, and the seconds of CPU that it has used."""
    text = ask("INFO", "ALL")
    figure = {name: value for name, _, value in (line.partition(":") for line in text.splitlines())}
    return int(figure["total_commands_processed"]), float(figure["used_cpu_user"]) + float(figure["used_cpu_sys"])


def ask(*words):
    with socket.create_connection(("127.0.0.1", REDIS_PORT), 5) as one:
        one.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words))
        text = b""
        while not text.endswith(b"\r\n") or text.startswith(b"$") and len(text) < int(text[1:text.index(b"\r\n")]):
            text += one.recv(1 << 16)
    return text.decode(errors="replace")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--keys", type=int, default=20_000)
    parser.add_argument("--connections", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=4)
    return parser.parse_args()


if __name__ == "__main__":
    main()
