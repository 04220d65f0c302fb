#!/usr/bin/env python3
"""Memory and open descriptors of an edge over time, idle or under a mixed load.

    python3 bench/steady.py --weir target/dist/weir [--minutes 30] [--rate 1200] [--idle] [--dashboard] [--json FILE]

    --idle        nobody sends a request
    --dashboard   the dashboard of the edge is on; without this flag the configuration says `dashboard off`

The load has seven parts: plain requests, cached answers that expire each second, HTTP/2, answers with an error status,
answers that the origin cuts short, uploads of 64 KiB, and WebSockets that send a frame each second. `weir load` sends it,
to loopback only, and ends by itself.

A third of the time is warm-up. Memory is flat if its median in the last third is not more than GROWTH_MIB above its median
in the second third; descriptors are flat if they differ by at most DESCRIPTORS. Exits with 1 if either grew.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import proc
from ports import free_port

GROWTH_MIB = 1.0
DESCRIPTORS = 8
SAMPLE_SECONDS = 5
SOCKETS = 50
CONF = """
error_log {work}/error.log crit;
pid {work}/weir.pid;
events {{ }}
{dashboard}
http {{
    access_log {work}/access.log;
    proxy_cache_path {work}/cache/pages keys_zone=pages:8m;
    upstream origin {{ server {origin}; keepalive 32; }}
    server {{
        listen {plain};
        http2 on;
        client_max_body_size 1m;
        location / {{ proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; }}
        location /cached/ {{ proxy_pass http://origin; proxy_cache pages; add_header X-Cache $upstream_cache_status; }}
        location /socket {{
            proxy_pass http://origin;
            proxy_http_version 1.1;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection "upgrade";
        }}
    }}
}}
"""
SOCKET_SCRIPT = """
config:
  target: "ws://{plain}"
  phases: [{{ duration: 10, arrivalCount: {sockets} }}]
scenarios:
  - engine: ws
    flow:
      - connect: "/socket"
      - loop: [{{ send: "hello" }}, {{ think: 1 }}]
        count: {seconds}
"""


def main():
    args = arguments()
    with tempfile.TemporaryDirectory(prefix="weir-steady-") as work:
        sys.exit(steady(args, Path(work)))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rate", type=int, default=1200, help="requests a second, all parts together")
    parser.add_argument("--idle", action="store_true")
    parser.add_argument("--dashboard", action="store_true")
    parser.add_argument("--json", help="write all samples to this file")
    return parser.parse_args()


def steady(args, work):
    plain, origin = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    dashboard = f"dashboard 127.0.0.1:{free_port()};" if args.dashboard else "dashboard off;"
    work.chmod(0o755)
    (work / "cache").mkdir()
    (work / "cache").chmod(0o777)
    conf = work / "steady.conf"
    conf.write_text(CONF.format(work=work, plain=plain, origin=origin, dashboard=dashboard))
    started = []
    try:
        started.append(start([args.weir, "origin", "--listen", origin], work / "origin.out"))
        edge = start([args.weir, "edge", "-g", "daemon off;", "-p", str(work), "-c", str(conf)], work / "edge.out")
        started.append(edge)
        wait_for(plain, work / "edge.out")
        seconds = int(args.minutes * 60)
        loads = [] if args.idle else [start(command, work / f"load-{name}.out")
                                      for name, command in parts(args, work, plain, seconds)]
        started.extend(loads)
        samples = watch(edge.pid, seconds)
        for load in loads:
            load.wait(timeout=60)
        if args.json:
            Path(args.json).write_text(json.dumps(samples))
        return report(samples, work, loads)
    finally:
        for process in started:
            if process.poll() is None:
                process.terminate()
        for process in started:
            process.wait(timeout=20)


def parts(args, work, plain, seconds):
    """The name and the command of each part of the load; the shares of the rate add up to one."""
    script = work / "sockets.yml"
    script.write_text(SOCKET_SCRIPT.format(plain=plain, sockets=SOCKETS, seconds=max(1, seconds - 15)))
    body = work / "body"
    body.write_bytes(b"x" * 65536)
    url = f"http://{plain}"

    def at(share, path, *more):
        rate = max(1, round(args.rate * share))
        return [args.weir, "load", url + path, "-R", str(rate), "-d", f"{seconds}s", "-c", "40", "-k", *more]

    return [
        ("plain", at(0.36, "/1k")),
        ("cached", at(0.33, "/cached/1k?cache=max-age=1")),
        ("http2", at(0.25, "/1k", "--http2", "-m", "8")),
        ("status", at(0.03, "/1k?status=503")),
        ("cut", at(0.02, "/64k?fail=truncate")),
        ("upload", at(0.01, "/echo", "-X", "POST", "--body", f"@{body}")),
        ("sockets", [args.weir, "load", "-q", str(script)]),
    ]


def watch(pid, seconds):
    """One sample each SAMPLE_SECONDS: the second, RSS in MiB, open descriptors."""
    begin, samples = time.monotonic(), []
    while (now := time.monotonic() - begin) < seconds:
        descriptors = sum(len(os.listdir(f"/proc/{one}/fd")) for one in proc.tree(pid))
        samples.append({"second": round(now), "rss_mib": proc.rss_kib(pid) / 1024, "descriptors": descriptors})
        if len(samples) % 12 == 1:
            print(f"{samples[-1]['second']:6} s  {samples[-1]['rss_mib']:7.1f} MiB  {descriptors:5} descriptors", flush=True)
        time.sleep(SAMPLE_SECONDS)
    return samples


def report(samples, work, loads):
    third = len(samples) // 3
    middle, last = samples[third : 2 * third], samples[2 * third :]
    median = lambda part, key: statistics.median(sample[key] for sample in part)
    grown = median(last, "rss_mib") - median(middle, "rss_mib")
    more = median(last, "descriptors") - median(middle, "descriptors")
    print(f"memory: first {samples[0]['rss_mib']:.1f}, second third {median(middle, 'rss_mib'):.1f},"
          f" last third {median(last, 'rss_mib'):.1f}, most {max(s['rss_mib'] for s in samples):.1f} MiB: grew {grown:+.2f} MiB")
    print(f"descriptors: second third {median(middle, 'descriptors'):.0f}, last third {median(last, 'descriptors'):.0f}")
    for name in sorted(work.glob("load-*.out")) if loads else []:
        tail = [line for line in name.read_text(errors="replace").splitlines() if line.strip()]
        print(f"-- {name.stem}", *tail[:4], sep="\n   ")
    flat = grown <= GROWTH_MIB and abs(more) <= DESCRIPTORS
    print("flat" if flat else "not flat")
    return 0 if flat else 1


def start(command, log):
    with open(log, "wb") as out:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)


def wait_for(address, log):
    host, port = address.rsplit(":", 1)
    for _ in range(100):
        try:
            socket.create_connection((host, int(port)), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"nothing listens on {address}: {log.read_text(errors='replace')}")


if __name__ == "__main__":
    main()
