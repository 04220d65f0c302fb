#!/usr/bin/env python3
"""What HTTP/3 costs: weir beside nginx's HTTP/3 and beside weir's own HTTP/2 over TLS, from one file (conf/http3.conf).

    python3 bench/http3.py --weir target/dist/weir --nginx BIN [--only small,one,16k] [--rounds 5] [--seconds 2]

`weir load` is the client of all peers, on core 1; the peer has one worker on core 0. nginx runs twice, with `multi_accept` off and on: each row
is compared with the better of the two. The certificate is for P-256, and `quic_gso` is on. A figure is the CPU of all threads of the peer,
from /proc, for one answer of status 200 and the right length; it is the median of the rounds, which are interleaved. A round counts
only if the peer's core was full (`--full`, a share of the core), because batches are smaller on an idle core.
"""

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import peers
import proc

LISTEN, ORIGIN = "127.0.0.1:18143", "127.0.0.1:18144"
WARM_SECONDS = 1
ATTEMPTS = 3        # of a round whose core was not full
IDLE = 5_000
ARRIVALS = 500      # idle connections a second that begin
HELD_SECONDS = 15   # so long each of them stays after its answer
DESCRIPTORS = 20_000


@dataclass(frozen=True)
class Row:
    name: str
    title: str
    path: str
    bytes: int
    connections: int
    streams: int = 1
    to_nginx: float = 0     # the wanted ratio to nginx's HTTP/3
    to_http2: float = 0     # the wanted ratio to weir's HTTP/2
    kind: str = "busy"      # busy | shake | idle
    unit: str = "us/request"


ROWS = [
    Row("small", "1 KiB, 32 connections of 8 streams", "/return", 1024, 32, 8, 0.85, 1.2),
    Row("one", "1 KiB, 256 connections of 1 stream", "/return", 1024, 256, 1, 0.95, 0.9),
    Row("file", "1 KiB from a file, 32 connections of 8 streams", "/1k", 1024, 32, 8),
    Row("proxied", "1 KiB from an origin, 32 connections of 8 streams", "/origin/1k", 1024, 32, 8),
    Row("16k", "16 KiB from a file, 32 connections of 8 streams", "/16k", 16 << 10, 32, 8, 0.8, 0.9),
    Row("1m", "1 MiB from a file, 32 connections of 8 streams", "/1m", 1 << 20, 32, 8, 0.6, 1.75),
    Row("shake", "a full handshake and one request, 32 at a time", "/return", 1024, 32, 1, 0.4, 1.1, "shake", "us/connection"),
    Row("idle", "an idle connection", "/return", 1024, IDLE, 1, 0.4, 0, "idle", "bytes"),
]


@dataclass(frozen=True)
class Side:
    """A server, and the protocol in which it is asked."""

    name: str
    program: str
    is_weir: bool
    protocol: str
    multi_accept: str = "off"
    more: tuple = ()        # words of its command line


def main():
    args = arguments()
    sides = [
        Side("nginx h3", args.nginx, False, "--http3"),
        Side("nginx h3, multi_accept", args.nginx, False, "--http3", "on"),
        Side("weir h3", args.weir, True, "--http3"),
        Side("weir h2", args.weir, True, "--http2"),
    ]
    rows = [row for row in ROWS if not args.only or row.name in args.only]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(DESCRIPTORS, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    with tempfile.TemporaryDirectory(prefix="weir-http3-") as work, peers.start_origin(ORIGIN, work):
        os.chmod(work, 0o755)  # nginx's worker is another user
        for row in rows:
            found = {side.name: [] for side in sides}
            for _ in range(min(args.rounds, 2) if row.kind == "idle" else args.rounds):
                for side in random.sample(sides, len(sides)):
                    found[side.name].append(full_round(row, side, Path(work), args))
            show(row, found)


def full_round(row, side, work, args):
    """One round; the fullest of several if the core was never full."""
    best = (0, None)
    for _ in range(ATTEMPTS):
        with started(side, work) as running:
            value, share = measured(row, side, running, args)
        if row.kind == "idle" or share >= args.full:
            return value, share
        best = max(best, (share, value), key=lambda round: round[0])
    return best[1], best[0]


def started(side, work):
    prefix = work / ("weir" if side.is_weir else "nginx")
    (prefix / "logs").mkdir(parents=True, exist_ok=True)
    html = prefix / "html"
    html.mkdir(exist_ok=True)
    for row in ROWS:
        if row.path.count("/") == 1:
            (html / row.path[1:]).write_bytes(b"x" * row.bytes)
    text = (peers.HERE / "conf" / "http3.conf").read_text()
    places = {"@listen@": LISTEN, "@origin@": ORIGIN, "@accept@": side.multi_accept, "@kibibyte@": "x" * 1024,
              "@certificate@": str(certificate(work))}
    for place, words in places.items():
        text = text.replace(place, words)
    (prefix / "http3.conf").write_text(text)
    argv = [side.program, *(["edge"] if side.is_weir else []), "-c", str(prefix / "http3.conf"), "-p", f"{prefix}/", *side.more]
    return peers.Running(side.name, argv, peers.PEER_CORE, LISTEN, prefix / "output.log")


def certificate(work):
    path = work / "p256.pem"
    if not path.exists():
        key, own = path.with_suffix(".key"), path.with_suffix(".crt")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                        "-out", own, "-subj", "/CN=localhost", "-days", "2"], check=True, capture_output=True)
        path.write_text(own.read_text() + key.read_text())
    return path


def measured(row, side, running, args):
    """The figure of the row, and the share of the core that the peer used."""
    if row.kind == "idle":
        return idle(row, side, running, args), 0
    bound = ["-d", f"{args.seconds}s", *(["--per-connection", "1"] if row.kind == "shake" else [])]
    load(row, side, args, [*bound[2:], "-d", f"{WARM_SECONDS}s"])
    before, began = proc.cpu(running.pid), time.monotonic_ns()
    answers = load(row, side, args, bound)
    elapsed = time.monotonic_ns() - began
    cpu = proc.cpu(running.pid).since(before).total_ns
    return cpu / answers / 1000, cpu / elapsed


def idle(row, side, running, args):
    """Memory that connections take, each of which has had one answer."""
    load(row, side, args, ["-d", "1s"], connections=64)
    before = proc.rss_kib(running.pid)
    script = {
        "config": {"target": f"https://{LISTEN}", "http": {side.protocol[2:]: True}, "tls": {"rejectUnauthorized": False},
                   "phases": [{"duration": row.connections // ARRIVALS, "arrivalRate": ARRIVALS}]},
        "scenarios": [{"flow": [{"get": {"url": row.path}}, {"think": HELD_SECONDS}]}],
    }
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file, tempfile.NamedTemporaryFile(suffix=".json") as report:
        json.dump(script, file)
        file.flush()
        argv = ["taskset", "-c", str(peers.LOAD_CORE), args.weir, "load", file.name, "-o", report.name, "--workers", "1"]
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(row.connections / ARRIVALS + 2)
        after = proc.rss_kib(running.pid)
        process.wait()
        counters = json.loads(Path(report.name).read_text())["aggregate"]["counters"]
    # nginx 1.31.5 cuts the numbers of transport parameters to 16 bits, so it refuses one of some thousand clients.
    if counters.get("http.codes.200", 0) < row.connections * (1 if side.is_weir else 0.998):
        raise peers.PeerFailed(f"{side.name}, {row.name}: {counters}")
    return (after - before) * 1024 / row.connections


def argv_of(row, side, args, bound, connections):
    return ["taskset", "-c", str(peers.LOAD_CORE), args.weir, "load", f"https://{LISTEN}{row.path}", "-k", "--workers", "1", side.protocol,
            "-c", str(connections), "-m", str(row.streams), *bound]


def load(row, side, args, bound, connections=None):
    """The number of answers, all of which were right."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        argv = argv_of(row, side, args, [*bound, "-o", report.name], connections or row.connections)
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        counters = json.loads(Path(report.name).read_text())["aggregate"]["counters"] if done.returncode == 0 else {}
    answers = counters.get("http.codes.200", 0)
    if not answers or answers != counters["http.responses"] or counters["http.downloaded_bytes"] < answers * row.bytes:
        raise peers.PeerFailed(f"{side.name}, {row.name}: {counters or done.stdout + done.stderr}")
    return answers


def show(row, found):
    values = {name: [value for value, _ in rounds] for name, rounds in found.items()}
    least = {name: min(share for _, share in rounds) for name, rounds in found.items()}
    figures = "  ".join(f"{name} {statistics.median(each):,.{0 if row.kind == 'idle' else 2}f}"
                        + (f" (core {least[name]:.2f})" if row.kind != "idle" else "") for name, each in values.items())
    print(f"{row.title}, {row.unit}: {figures}")
    nginx = min(("nginx h3", "nginx h3, multi_accept"), key=lambda name: statistics.median(values[name]))
    for other, wanted in ((nginx, row.to_nginx), ("weir h2", row.to_http2)):
        ratios = sorted(weir / theirs for weir, theirs in zip(values["weir h3"], values[other]))
        want = f", wanted {wanted}" if wanted else ""
        print(f"    to {other}: {statistics.median(ratios):.2f} [{ratios[0]:.2f} {ratios[-1]:.2f}]{want}", flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--nginx", required=True)
    parser.add_argument("--only", type=lambda text: text.split(","), help="rows: " + ", ".join(row.name for row in ROWS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--full", type=float, default=0.9)
    args = parser.parse_args()
    return args


if __name__ == "__main__":
    main()
