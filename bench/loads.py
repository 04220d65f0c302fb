"""The workloads: what is asked of a peer, and how many requests it completed."""

import contextlib
import json
import re
import resource
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import proc
from peers import FLOOR, LOAD_CORE, PEER_CORE, PeerFailed

IDLE_WANTED = 10_000
IDLE_WARM = 64
FD_SPARE = 400
RATES = [2_000, 8_000, 20_000, 30_000]     # requests a second
FILLS = 3
STREAMS = 32            # of each HTTP/2 connection
TLS_IDLE = Path(__file__).resolve().parent / "tls_idle.py"
READY_SECONDS = 60
NEIGHBOUR = """
import time
while True:
    busy = time.perf_counter() + 0.001
    while time.perf_counter() < busy:
        pass
    time.sleep(0.009)
"""
WARM_SECONDS = 1        # the first requests over new connections touch memory that the host has to provide first


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    kind: str               # wrk | h2 | shake | rate | ws | idle
    conns: int = 64
    path: str = "/1k"
    header: str | None = None
    tuning_matters: bool = True
    rate: int = 0           # requests a second, for `rate`
    cached: bool = False    # the answer comes out of the peer's cache
    secure: bool = False    # clients speak TLS
    neighbour: bool = False     # another program works on the client's core for a tenth of the time, 1 ms in each 10
    origin: str | None = None   # nginx as the origin: "h1" or "h2" is what it is asked in; or "slow", weir's own origin
    shared: bool = False    # the peer has several workers, so peer, client and origin share both cores
    servers: int = 1        # lines `server` in the peer's group
    unit: str = "CPU us/request"

    @property
    def load_cores(self):
        return f"{PEER_CORE},{LOAD_CORE}" if self.shared else str(LOAD_CORE)


WORKLOADS = [
    Workload("1k-64", "proxied 1 KiB, 64 conns, keep-alive", "wrk"),
    Workload("1k-two", "proxied 1 KiB, 64 conns, keep-alive, two servers in the group", "wrk", servers=2),
    Workload("1k-256", "proxied 1 KiB, 256 conns, keep-alive", "wrk", conns=256),
    Workload("1k-1000", "proxied 1 KiB, 1000 conns, keep-alive", "wrk", conns=1000),
    Workload("1k-neighbour", "proxied 1 KiB, 64 conns, a neighbour on a tenth of the client's core", "wrk", neighbour=True),
    Workload("64k", "proxied 64 KiB, 64 conns", "wrk", path="/64k"),
    Workload("1m", "proxied 1 MiB, 16 conns", "wrk", conns=16, path="/1m"),
    Workload("close", "new connection per request, 1 KiB, 64 conns", "wrk", header="Connection: close"),
    *(Workload(f"rate-{rate}", f"proxied 1 KiB at a fixed {rate:,}/s, 64 conns", "rate", rate=rate) for rate in RATES),
    Workload("slow-2000", "proxied 1 KiB, answered after 20 ms, at a fixed 2,000/s, 128 conns", "rate", conns=128, rate=2_000,
             path="/1k?delay=20ms", origin="slow"),
    Workload("slow-8000", "proxied 1 KiB, answered after 20 ms, at a fixed 8,000/s, 256 conns", "rate", conns=256, rate=8_000,
             path="/1k?delay=20ms", origin="slow"),
    Workload("ws", "WebSocket round trip, 32 bytes, 64 conns", "ws", tuning_matters=False),
    Workload("hit-1k", "1 KiB out of the cache, 64 conns", "wrk", cached=True),
    Workload("hit-64k", "64 KiB out of the cache, 64 conns", "wrk", path="/64k", cached=True),
    Workload("tls-1k", "proxied 1 KiB over TLS, 64 conns, keep-alive", "wrk", secure=True),
    Workload("h2", "proxied 1 KiB, HTTP/2 without TLS, 16 conns of 32 streams", "h2", conns=16),
    Workload("h2-tls", "proxied 1 KiB, HTTP/2 over TLS, 16 conns of 32 streams", "h2", conns=16, secure=True),
    Workload("origin-h1", "proxied 1 KiB, 64 conns, nginx as the origin over HTTP/1.1", "wrk", origin="h1"),
    Workload("origin-h2", "proxied 1 KiB, 64 conns, nginx as the origin over HTTP/2 without TLS", "wrk", origin="h2"),
    Workload("tls-full", "full TLS handshake, RSA-2048, and one request", "shake", secure=True, unit="CPU us/handshake"),
    Workload("tls-resumed", "resumed TLS 1.2 handshake and one request", "shake", header="-reuse", secure=True,
             unit="CPU us/handshake"),
    Workload("idle-tls", "memory per idle TLS connection", "idle", secure=True, unit="bytes/connection"),
    Workload("idle", "memory per idle keep-alive connection", "idle", tuning_matters=False, unit="bytes/connection"),
    Workload("idle-ws", "memory per idle proxied WebSocket", "idle", path="--ws", tuning_matters=False,
             unit="bytes/connection"),
]


def takes_part(workload, peer):
    """Whether a workload says anything about a peer."""
    if workload.cached:
        return peer.cache is not None
    if workload.origin == "h2":
        return peer.name in ("weir", "weir-tuned", "haproxy")    # nginx 1.22 and Varnish ask in HTTP/1.1
    if workload.secure or workload.kind == "h2":
        return peer.tls is not None
    if peer.rated and workload.kind != "rate":
        return False
    return bool(peer.argv) and (workload.tuning_matters or not peer.tuned)


def named(name):
    """The workload of a name."""
    return next(workload for workload in WORKLOADS if workload.name == name)


def run(workload, peer, origin, seconds):
    """One run against a started peer: {"value": in the workload's unit, ...}."""
    if workload.cached:
        _fill(peer.listen, workload.path)
    if workload.kind == "rate":
        _rate(workload, peer.listen, WARM_SECONDS)
    return _idle(workload, peer) if workload.kind == "idle" else _busy(workload, peer, origin, seconds)


def _busy(workload, peer, origin, seconds):
    generate = {"wrk": _wrk, "rate": _rate, "ws": _ws, "shake": _shake, "h2": _h2}[workload.kind]
    with _neighbour() if workload.neighbour else contextlib.nullcontext() as neighbour:
        others = [origin.pid, *([neighbour.pid] if neighbour else [])]
        before = _Reading(peer, others)
        said = generate(workload, peer.listen, seconds)
        after = _Reading(peer, others)
    cpu, elapsed = after.peer.since(before.peer), after.at - before.at
    requests = said["requests"]
    if said["errors"] or not requests:
        raise PeerFailed(f"{peer.name}: {said['errors']} errors in {requests} requests")
    ticks = max(cpu.user_ns + cpu.sys_ns, 1)
    return said | {
        "value": cpu.total_ns / 1000 / requests,
        "user_share": round(cpu.user_ns / ticks, 3),
        "busy": round(cpu.total_ns / elapsed, 3),
        "all_us": (cpu.total_ns + after.load - before.load) / 1000 / requests,
        "client_busy": round((after.load - before.load) / elapsed, 3),
        "machine_us": (sum(after.cores) - sum(before.cores)) / 1000 / requests,
        "foreign": round(after.foreign_since(before, workload.shared) / elapsed, 3),
    }


def _fill(target, path):
    """Lets a peer's cache take the answer in before anything is measured."""
    for _ in range(FILLS):
        with urllib.request.urlopen(f"http://{target}{path}", timeout=READY_SECONDS) as answer:
            answer.read()


@contextlib.contextmanager
def _neighbour():
    """Works beside the client; the load's cost includes it, so it is no stranger."""
    process = subprocess.Popen(["taskset", "-c", str(LOAD_CORE), sys.executable, "-c", NEIGHBOUR])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


class _Reading:
    """The clocks of both cores, of the peer and of the load's side at one instant, in nanoseconds."""

    def __init__(self, peer, others):
        self.at = time.monotonic_ns()
        self.peer = proc.cpu(peer.pid)
        self.cores = [proc.core_busy_ns(PEER_CORE), proc.core_busy_ns(LOAD_CORE)]
        generators = resource.getrusage(resource.RUSAGE_CHILDREN)  # those that have ended
        beside = sum(proc.cpu(pid).total_ns for pid in others)
        self.load = beside + int((generators.ru_utime + generators.ru_stime) * 1e9)

    def foreign_since(self, before, shared):
        """The time strangers had on the core that suffered more from them; on both, where nobody has a core of its own."""
        peers_core, load_core = (now - then for now, then in zip(self.cores, before.cores))
        if shared:
            return max(peers_core + load_core - self.peer.since(before.peer).total_ns - (self.load - before.load), 0)
        return max(peers_core - self.peer.since(before.peer).total_ns, load_core - (self.load - before.load), 0)


def _wrk(workload, target, seconds):
    argv = ["wrk", "-t1", f"-c{workload.conns}", f"-d{seconds}s", "--latency"]
    if workload.header:
        argv += ["-H", workload.header]
    scheme = "https" if workload.secure else "http"
    return parse_wrk(_pinned(argv + [f"{scheme}://{target}{workload.path}"], seconds, workload.load_cores))


def _h2(workload, target, seconds):
    scheme = "https" if workload.secure else "http"
    return parse_h2load(_pinned(
        ["h2load", "-t1", f"-c{workload.conns}", f"-m{STREAMS}", f"-D{seconds}", f"{scheme}://{target}{workload.path}"], seconds))


def parse_h2load(text):
    """Requests done and those that failed, by h2load's own count."""
    found = re.search(r"(\d+) succeeded, (\d+) failed, (\d+) errored", text)
    done, failed, errored = (int(n) for n in found.groups()) if found else (0, 0, 1)
    statuses = re.search(r"status codes: (\d+) 2xx", text)
    return {"requests": done, "errors": failed + errored + (0 if statuses and int(statuses.group(1)) >= done else 1)}


def _shake(workload, target, seconds):
    """`openssl s_time`: one connection after the other, each with one request of HTTP/1.0.

    TLS 1.2, because s_time resumes no other; what a handshake costs a server is its signature in either version.
    """
    how = workload.header or "-new"
    said = _pinned(["openssl", "s_time", "-connect", target, how, "-tls1_2", "-www", workload.path, "-time", str(seconds)],
                   2 * seconds)
    return parse_s_time(said)


def parse_s_time(text):
    """Connections made in real time; s_time tells of no errors, it stops."""
    found = re.search(r"(\d+) connections in [\d.]+ real seconds", text)
    return {"requests": int(found.group(1)) if found else 0, "errors": 0 if found else 1}


def _rate(workload, target, seconds):
    return json.loads(_pinned(
        [str(FLOOR), "load", "--target", target, "--path", workload.path, "--rate", str(workload.rate),
         "--conns", str(workload.conns), "--seconds", str(seconds)], seconds, workload.load_cores))


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
        program = [sys.executable, str(TLS_IDLE)] if workload.secure else [str(FLOOR), "idle"]
        self.argv = [*program, "--target", peer.listen, "--conns", str(conns), *how]
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


def _pinned(argv, seconds, cores=str(LOAD_CORE)):
    """Runs a load generator on its core, for a bounded time."""
    try:
        done = subprocess.run(["taskset", "-c", cores, *argv], capture_output=True, text=True, timeout=seconds + 15)
    except subprocess.TimeoutExpired:
        raise PeerFailed("the load generator did not end") from None
    if done.returncode:
        raise PeerFailed(f"{argv[0]}: {(done.stderr or done.stdout).strip()}")
    return done.stdout
