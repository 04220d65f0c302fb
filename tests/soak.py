#!/usr/bin/env python3
"""An edge under a load of all kinds for hours, while things happen to it at random, repeatably by a seed.

    tests/soak.py --weir BIN [--minutes 120] [--seed N] [--json FILE]

The load is that of tests/lasting.py with its strict account. The acts are in tests/lasting/chance.py: reloads, refused reloads, rotated
logs, a stopped server, a full disk, a clock that jumps, a silent name server, an origin that is killed or stopped, clients that leave, send
no request, or come in crowds. No act ends the server, because its counters would begin anew: tests/lasting.py kills servers.

The exit code is 1 unless

- no request, WebSocket or session is lost, but for the time in which the origin is dead or the disk is full;
- memory is flat: its median in the last third is not more than GROWTH_MIB above its median in the second third;
- descriptors are flat in the same way, by DESCRIPTORS; when the load ends, no connection and no temporary file is left;
- weir's counters equal the clients' own: answers by status, requests that were left, lines in the access log, messages of WebSockets, sessions
  of TCP.

A run of less than ten minutes says nothing about memory and descriptors. All is on loopback. Needs root, a C compiler, and the package of
tests/lasting/python.txt and tests/http3/python.txt; openssl.
"""

import argparse
import asyncio
import glob
import json
import os
import signal
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/lasting"))
sys.path += glob.glob(str(ROOT / "target/python/lib/python*/site-packages"))

import chance
import clock
import peers
import processes
import room
import scenario
from edge import Edge, Setting
from ports import free_ports
from http3 import Http3
from load import KINDS, Load

GROWTH_MIB = 1.5
DESCRIPTORS = 8
SAMPLE_SECONDS = 5
REASONS_MAX = 10
CLIENTS = {"kept": 8, "fresh": 4, "upload": 2, "large": 1, "cached": 2, "http2": 2, "fresh2": 1, "http3": 2, "socket": 4, "call": 2, "session": 3}
# Its package is not needed by those who have no HTTP/3 in their load.
KINDS["http3"] = Http3
SETTING = Setting(
    # Half of the free bytes of so small a disk is less than two bodies.
    main="limit_memory 1g; limit_temp_files 16m;", temp="SMALL", cache="SMALL/cache", upstream="zone origin 64k; server app.test:{origin} resolve;",
    http=f"resolver 127.0.0.1:{{dns}} valid=1s ipv6=off; resolver_timeout 1s; {room.SMALL_BUFFERS}", server="status_zone soak; listen 127.0.0.1:{quic} quic; ssl_certificate ROOM/cert.pem; ssl_certificate_key ROOM/key.pem;",
    more="server { listen 127.0.0.1:{api}; access_log off; location /api { api; allow 127.0.0.1; deny all; } }")


def main():
    args = arguments()
    for needed in (scenario.needs_root(), clock.needs_compiler()):
        if needed:
            raise SystemExit(needed)
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    processes.adopt()
    try:
        faults = asyncio.run(soak(args))
    finally:
        processes.end_all()
    for fault in faults:
        print(f"fault: {fault}")
    print(f"seed {args.seed}: {'holds' if not faults else 'does not hold'}")
    raise SystemExit(1 if faults else 0)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write all samples to this file")
    return parser.parse_args()


async def soak(args):
    places = {}
    edge = Edge("weir", args.weir, SETTING, places)
    stage = scenario.Stage(None, edge, 1, 1)
    try:
        await stage.start_origin()
        places["api"], places["quic"] = free_ports(2)
        certificate(edge.room)
        await peers.start_dns(stage)
        await clock.prepare(stage)
        await edge.start()
        stage.load = load = Load(edge, int(places["origin"]), CLIENTS)
        load.begin()
        acts = chance.Chance(stage, args.seed)
        samples, faults = [], []
        watching = asyncio.create_task(watch(edge, samples))
        faults += await happen(acts, args.minutes * 60)
        await load.end()
        watching.cancel()
        # What the clients have closed is closed in weir a moment later.
        await asyncio.sleep(3)
        samples.append(sample(edge))
        faults += account(load, acts) + flat(samples) + at_rest(edge) + counters(edge, load, acts)
        if faults:
            print("\n".join([*acts.errors, *edge.errors()]))
        if args.json:
            args.json.write_text(json.dumps(samples))
        return faults + await edge.stop()
    finally:
        await stage.end_peers()
        edge.remove()


def certificate(room):
    names = ["-keyout", room / "key.pem", "-out", room / "cert.pem"]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=lasting", *names],
                   check=True, capture_output=True)


async def happen(acts, seconds):
    """One act after the other; the faults that end them."""
    begun, counts = time.monotonic(), {}
    while time.monotonic() - begun < seconds:
        await asyncio.sleep(acts.random.uniform(1, 8))
        name, act = acts.next()
        counts[name] = counts.get(name, 0) + 1
        print(f"{time.monotonic() - begun:6.0f} s  {name}", flush=True)
        try:
            await act()
            await acts.load.all_served()
        except (processes.Late, TimeoutError, AssertionError, OSError, asyncio.IncompleteReadError) as error:
            return [f"{name}: {type(error).__name__} {error}"]
    print("acts: " + ", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
    return []


async def watch(edge, samples):
    while True:
        samples.append(sample(edge))
        await asyncio.sleep(SAMPLE_SECONDS)


def sample(edge):
    """Resident memory of the server and of the keeper in MiB, open descriptors of both, files in the directory of temporary files."""
    server, = edge.serving()
    return {"server_mib": own_mib(server), "keeper_mib": own_mib(edge.master),
            "descriptors": sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in (server, edge.master)), "temporary": temporary(edge)}


def own_mib(pid):
    """Resident memory of one process, without its children."""
    fields = dict(line.split(":") for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) / 1024


def temporary(edge):
    small = edge.inside(edge.small)
    return sum(len(files) for folder, _, files in os.walk(small) if not Path(folder).is_relative_to(small / "cache"))


def account(load, acts):
    """The losses."""
    tally = load.tally
    print(f"{tally.requests:,} requests, {tally.frames:,} frames of WebSockets, {tally.messages:,} messages of gRPC, {tally.lines:,} lines of sessions, {tally.reopened} reopened, {tally.forgiven} forgiven,"
          f" {acts.left} left by their clients, {acts.rotated} logs")
    lost = tally.lost + tally.sockets + tally.calls + tally.sessions
    return [f"lost: {reason}" for reason in lost[:REASONS_MAX]] + ([f"{len(lost)} are lost"] if lost else [])


def flat(samples):
    third = len(samples) // 3
    faults = []
    for key, most in (("server_mib", GROWTH_MIB), ("keeper_mib", GROWTH_MIB), ("descriptors", DESCRIPTORS)):
        middle, last = (statistics.median(sample[key] for sample in part) for part in (samples[third : 2 * third], samples[2 * third :]))
        print(f"{key}: first {samples[0][key]:.1f}, second third {middle:.1f}, last third {last:.1f}, most {max(one[key] for one in samples):.1f}")
        if last - middle > most:
            faults.append(f"{key} grew by {last - middle:.1f}")
    return faults


def at_rest(edge):
    """What is left after the load."""
    active = ask(edge, "connections")["active"]
    # One is that of this question.
    left = {"connections": active - 1, "temporary files": temporary(edge), "requests": ask(edge, "http/server_zones/soak")["processing"]}
    return [f"{count} {name} are left" for name, count in left.items() if count]


def counters(edge, load, acts):
    """weir's counters beside the clients' own."""
    zone = ask(edge, "http/server_zones/soak")
    acts.count_lines(edge.room / "access.log")
    websockets = json.loads(fetch(edge, "/api/weir"))["weir"]["websockets"]
    session, = ask(edge, "stream/server_zones").values()
    codes = {int(code): count for code, count in zone["responses"]["codes"].items() if count}
    answers = sum(edge.heads.values())
    pairs = [("answers by status", codes, dict(edge.heads)), ("requests that were left", zone["discarded"], acts.left),
             ("requests", zone["requests"], answers + acts.left), ("lines in the access log", acts.lines, answers + acts.left),
             ("messages of WebSockets", websockets["messages_sent"], load.tally.frames), ("sessions of TCP", session["connections"], load.tally.opened)]
    faults = []
    for name, weirs, clients in pairs:
        same = weirs == clients
        print(f"{name}: {weirs}" + ("" if same else f", by the clients {clients}"))
        if not same:
            faults.append(f"{name}: weir {weirs}, clients {clients}")
    return faults


def ask(edge, path):
    return json.loads(fetch(edge, f"/api/9/{path}"))


def fetch(edge, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{edge.places['api']}{path}", timeout=10) as answer:
        return answer.read()


if __name__ == "__main__":
    main()
