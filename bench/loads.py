"""The workloads: what is asked of a peer, and how many requests it completed."""

import json
import re
import resource
import subprocess
import time
from dataclasses import dataclass

import proc
from peers import FLOOR, LOAD_CORE, PEER_CORE, PeerFailed

IDLE_WANTED = 10_000
IDLE_WARM = 64
FD_SPARE = 400
RATE = 30_000
READY_SECONDS = 60


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    kind: str               # wrk | rate | ws | idle
    conns: int = 64
    path: str = "/1k"
    header: str | None = None
    tuning_matters: bool = True
    cached: bool = False    # the peer answers from its cache; the floor is a program that has the answer itself
    unit: str = "CPU us/request"


WORKLOADS = [
    Workload("1k-64", "proxied 1 KiB, 64 conns, keep-alive", "wrk"),
    Workload("1k-256", "proxied 1 KiB, 256 conns, keep-alive", "wrk", conns=256),
    Workload("1k-1000", "proxied 1 KiB, 1000 conns, keep-alive", "wrk", conns=1000),
    Workload("64k", "proxied 64 KiB, 64 conns", "wrk", path="/64k"),
    Workload("1m", "proxied 1 MiB, 16 conns", "wrk", conns=16, path="/1m"),
    Workload("hit-1k", "cache hit, 1 KiB, 64 conns", "wrk", tuning_matters=False, cached=True),
    Workload("hit-64k", "cache hit, 64 KiB, 64 conns", "wrk", path="/64k", tuning_matters=False, cached=True),
    Workload("close", "new connection per request, 1 KiB, 64 conns", "wrk", header="Connection: close"),
    Workload("rate", f"proxied 1 KiB at a fixed {RATE}/s, 64 conns", "rate"),
    Workload("ws", "WebSocket round trip, 32 bytes, 64 conns", "ws", tuning_matters=False),
    Workload("idle", "memory per idle keep-alive connection", "idle", tuning_matters=False, unit="bytes/connection"),
    Workload("idle-ws", "memory per idle proxied WebSocket", "idle", path="--ws", tuning_matters=False,
             unit="bytes/connection"),
]


def run(workload, peer, origin, seconds):
    """One run against a started peer: {"value": in the workload's unit, ...}."""
    return _idle(workload, peer) if workload.kind == "idle" else _busy(workload, peer, origin, seconds)


def _busy(workload, peer, origin, seconds):
    before = _Reading(peer, origin)
    said = {"wrk": _wrk, "rate": _rate, "ws": _ws}[workload.kind](workload, peer.listen, seconds)
    after = _Reading(peer, origin)
    cpu, elapsed = after.peer.since(before.peer), after.at - before.at
    requests = said["requests"]
    if said["errors"] or not requests:
        raise PeerFailed(f"{peer.name}: {said['errors']} errors in {requests} requests")
    ticks = max(cpu.user_ns + cpu.sys_ns, 1)
    return said | {
        "value": cpu.total_ns / 1000 / requests,
        "user_share": round(cpu.user_ns / ticks, 3),
        "busy": round(cpu.total_ns / elapsed, 3),
        "foreign": round(after.foreign_since(before) / elapsed, 3),
    }


class _Reading:
    """The clocks of both cores and of the three parties at one instant, in nanoseconds."""

    def __init__(self, peer, origin):
        self.at = time.monotonic_ns()
        self.peer = proc.cpu(peer.pid)
        self.cores = [proc.core_busy_ns(PEER_CORE), proc.core_busy_ns(LOAD_CORE)]
        generators = resource.getrusage(resource.RUSAGE_CHILDREN)  # those that have ended
        self.load = proc.cpu(origin.pid).total_ns + int((generators.ru_utime + generators.ru_stime) * 1e9)

    def foreign_since(self, before):
        """The time strangers had on the core that suffered more from them."""
        peers_core, load_core = (now - then for now, then in zip(self.cores, before.cores))
        return max(peers_core - self.peer.since(before.peer).total_ns, load_core - (self.load - before.load), 0)


def _wrk(workload, target, seconds):
    argv = ["wrk", "-t1", f"-c{workload.conns}", f"-d{seconds}s", "--latency"]
    if workload.header:
        argv += ["-H", workload.header]
    return parse_wrk(_pinned(argv + [f"http://{target}{workload.path}"], seconds))


def _rate(workload, target, seconds):
    return json.loads(_pinned(
        [str(FLOOR), "load", "--target", target, "--path", workload.path, "--rate", str(RATE),
         "--conns", str(workload.conns), "--seconds", str(seconds)], seconds))


def _ws(workload, target, seconds):
    return json.loads(_pinned(
        [str(FLOOR), "wsload", "--target", target, "--conns", str(workload.conns), "--seconds", str(seconds)], seconds))


def parse_wrk(text):
    """Requests completed and the sum of all errors wrk admits to."""
    requests = re.search(r"(\d+) requests in ", text)
    sockets = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    statuses = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    errors = sum(map(int, sockets.groups())) if sockets else 0
    errors += int(statuses.group(1)) if statuses else 0
    return {"requests": int(requests.group(1)) if requests else 0, "errors": errors}


def idle_conns():
    """How many connections fit: a proxied WebSocket takes two descriptors of the peer."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return min(IDLE_WANTED, (limit - FD_SPARE) // 2)


def _idle(workload, peer):
    """Resident memory before and while many connections, each used once, stand idle."""
    with _Held(workload, peer, IDLE_WARM):
        pass
    conns, before = idle_conns(), proc.rss_kib(peer.pid)
    with _Held(workload, peer, conns):
        after = proc.rss_kib(peer.pid)
    return {"value": (after - before) * 1024 / conns, "connections": conns, "rss_before_kib": before, "rss_after_kib": after}


class _Held:
    """Connections held open by `floor idle` for the length of a `with` block."""

    def __init__(self, workload, peer, conns):
        how = ["--ws"] if workload.path == "--ws" else ["--path", workload.path]
        self.argv = [str(FLOOR), "idle", "--target", peer.listen, "--conns", str(conns), *how]
        self.name = peer.name

    def __enter__(self):
        self.process = subprocess.Popen(
            ["timeout", str(READY_SECONDS), "taskset", "-c", str(LOAD_CORE), *self.argv],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.process.stdout.readline().strip() != "ready":
            _, error = self.process.communicate()
            raise PeerFailed(f"{self.name}: {error.strip()}")

    def __exit__(self, *_):
        self.process.communicate()  # closes stdin, which ends it


def _pinned(argv, seconds):
    """Runs a load generator on its core, for a bounded time."""
    try:
        done = subprocess.run(["taskset", "-c", str(LOAD_CORE), *argv], capture_output=True, text=True, timeout=seconds + 15)
    except subprocess.TimeoutExpired:
        raise PeerFailed("the load generator did not end") from None
    if done.returncode:
        raise PeerFailed(f"{argv[0]}: {(done.stderr or done.stdout).strip()}")
    return done.stdout
