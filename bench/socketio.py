#!/usr/bin/env python3
"""Socket.IO at part load behind nginx and behind weir: CPU of the proxy for an acknowledged emit, and its response time.

    npm ci --prefix tests/apps
    python3 bench/socketio.py --weir target/dist/weir [--nginx PATH] [--arrivals 20,100] [--rounds 5] [--seconds 10]

A real Socket.IO server (`tests/apps/socketio.mjs`, Node) and virtual users of `weir load` on core 1, the proxy on core 0, both
proxies with the same file (`conf/socketio.conf`), interleaved. A virtual user connects by WebSocket, emits five times, a second
apart, waits for each acknowledgement, and goes. The same users connect by polling in runs of their own. CPU covers everything that the proxy
does for an emit: its share of the connection, the upgrade and the heartbeats. Of up to three tries, the first counts in which the
host of a virtual machine took little time away.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import peers
import proc
import stats

PORT = 18030
STOLEN_SHARE = 0.02     # if the host takes more of the two cores, the run is called disturbed
TRIES = 3               # of a run, until one is not disturbed
EMITS = 5
SERVER = peers.HERE.parent / "tests/apps/socketio.mjs"
# A watched server reads counters each second; at some hundred emits a second that shows.
LINES = {"weir-dark": "dashboard off;", **{f"weir-{time}": f"worker_coalesce {time};" for time in ("400us", "1ms", "auto")}}
SCRIPT = """
config:
  target: http://{target}
  phases: [{{duration: {seconds}, arrivalRate: {arrivals}}}]
  socketio: {{transports: [{transport}]}}
scenarios:
  - engine: socketio
    flow:
      - loop:
          - emit: [echo, hello]
            acknowledge: {{match: {{json: "$.0", value: hello}}}}
          - think: 1
        count: {emits}
"""


def main():
    args = arguments()
    chosen = some_peers(args)
    with tempfile.TemporaryDirectory(prefix="weir-socketio-") as work, server() as origin:
        os.chmod(work, 0o755)   # nginx's worker is another user
        for transport in args.transports:
            for arrivals in args.arrivals:
                runs = {peer.name: {} for peer in chosen}
                for number in range(args.rounds):
                    for peer in random.sample(chosen, len(chosen)):
                        runs[peer.name][number] = quiet_run(peer, origin, transport, arrivals, args, Path(work))
                show(transport, arrivals, runs)


def some_peers(args):
    """nginx, weir, and weir with one more line each."""
    here = peers.all_peers(args.weir, None, args.nginx)
    found = {peer.name: peer for peer in here}
    weir = found["weir"]
    lined = [peers.Peer(name, weir.program, weir.conf, (*weir.argv, "-g", line)) for name, line in LINES.items()]
    everyone = [found["nginx"], weir, *lined]
    return [peer for peer in everyone if not args.peers or peer.name == "nginx" or peer.name in args.peers]


class server:
    """The application, and its address."""

    def __enter__(self):
        self.process = subprocess.Popen(["taskset", "-c", str(peers.LOAD_CORE), "node", SERVER], stdout=subprocess.PIPE, text=True)
        return f"127.0.0.1:{self.process.stdout.readline().strip()}"

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def quiet_run(*what):
    """The first run that the host did not disturb, else the least disturbed one."""
    return stats.quietest((run(*what) for _ in range(TRIES)), lambda one: one["stolen"], STOLEN_SHARE)


def run(peer, origin, transport, arrivals, args, work):
    prefix = work / peer.name
    (prefix / "logs").mkdir(parents=True, exist_ok=True)
    listen = f"127.0.0.1:{PORT}"
    conf = peers.written("socketio.conf", prefix, listen, origin, work)
    argv = [part.format(program=peer.program, conf=conf, prefix=f"{prefix}/") for part in peer.argv]
    script, report = prefix / "script.yml", prefix / "report.json"
    script.write_text(SCRIPT.format(target=listen, seconds=args.seconds, arrivals=arrivals, transport=transport, emits=EMITS))
    with peers.Running(peer.name, argv, peers.PEER_CORE, listen, prefix / "output.log") as running:
        cores = (peers.PEER_CORE, peers.LOAD_CORE)
        before, began, kept_away = proc.cpu(running.pid), time.monotonic_ns(), proc.stolen_ns(cores)
        load = ["taskset", "-c", str(peers.LOAD_CORE), args.weir, "load", "run", "--quiet", "--seed", "1", "-o", report, script]
        done = subprocess.run(load, capture_output=True, text=True, timeout=args.seconds + 60)
        cpu = proc.cpu(running.pid).since(before).total_ns
        stolen = (proc.stolen_ns(cores) - kept_away) / len(cores) / (time.monotonic_ns() - began)
    if done.returncode:
        raise peers.PeerFailed(f"{peer.name}: {done.stdout}{done.stderr}")
    whole = json.loads(report.read_text())["aggregate"]
    counters, times = whole["counters"], whole["summaries"]["socketio.response_time"]
    users, failed = counters["vusers.created"], counters.get("vusers.failed", 0)
    if failed or counters["socketio.emit"] != users * EMITS:
        raise peers.PeerFailed(f"{peer.name}: {counters}")
    return {"cpu_us": cpu / 1000 / counters["socketio.emit"], "stolen": stolen, "p50": times["median"], "p99": times["p99"], "max": times["max"]}


def show(transport, arrivals, runs):
    print(f"\n{transport}, {arrivals} users a second, {arrivals * EMITS} emits a second")
    print(f"{'':12}{'CPU us an emit':>16}{'/ nginx':>22}{'p50 ms':>9}{'p99 ms':>9}{'p99 of the rounds':>22}{'max ms':>9}  disturbed")
    cpu = {name: {number: run["cpu_us"] for number, run in rounds.items()} for name, rounds in runs.items()}
    for name, rounds in runs.items():
        middle = {key: statistics.median(run[key] for run in rounds.values()) for key in rounds[0]}
        ratio = stats.ratio(cpu[name], cpu["nginx"]) if name != "nginx" else None
        beside = f"{ratio.median:.2f} [{ratio.low:.2f} {ratio.high:.2f}]" if ratio else ""
        disturbed = sum(run["stolen"] > STOLEN_SHARE for run in rounds.values())
        _, low, high = stats.spread([run["p99"] for run in rounds.values()])
        print(f"{name:12}{middle['cpu_us']:16.1f}{beside:>22}{middle['p50']:9.2f}{middle['p99']:9.2f}"
              f"{f'{low:.2f} to {high:.2f}':>22}{middle['max']:9.2f}  {disturbed or ''}", flush=True)


def arguments():
    numbers = lambda text: [int(word) for word in text.split(",")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True, help="the binary: proxy and load")
    parser.add_argument("--nginx", help="the nginx binary; default: the one in PATH")
    parser.add_argument("--arrivals", type=numbers, default=[20, 100], help="virtual users a second")
    parser.add_argument("--transports", type=lambda text: text.split(","), default=["websocket", "polling"])
    parser.add_argument("--peers", type=lambda text: text.split(","), help="some of them, beside nginx: weir, weir-dark (no dashboard), weir-400us ...")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=10, help="of arrivals")
    return parser.parse_args()


if __name__ == "__main__":
    main()
