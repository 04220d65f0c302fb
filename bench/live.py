#!/usr/bin/env python3
"""`weir why` beside systems that run: the shapes of the field reports S0 to S4, and sound stacks.

    bench/live.py --weir target/debug/weir [--nginx PATH] [--only s0,sound] [--edges n,w] [--for 6s] [--keep DIR]

Needs root (a network namespace of its own), nginx, node, python3 and php; `npm ci --prefix tests/apps` for Socket.IO. Each row starts
an edge, its applications and clients, and runs `weir why` beside them: the edge is the only thing that it is told. A row is right
when the verdict names one of the rules that may be said of that fault; a sound stack has to be NOT SATURATED. The last lines count
the reports whose cause was named, for each edge, and the CPU that `weir why` used. Exit code 1: fewer than four of five, or a sound
stack that is suspected.
"""

import argparse
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent.parent
PORT = 8080
LOG = ("log_format why '$remote_addr [$time_local] \"$request\" $status $body_bytes_sent $request_time $upstream_addr $upstream_status "
       "$upstream_connect_time $upstream_header_time $upstream_response_time $upstream_cache_status';")
KEEP = 'proxy_http_version 1.1; proxy_set_header Connection "";'

# An application that answers after a while. Every N-th request it ends the connection without an answer.
APP = """
const http = require('http');
const [port, wait, ends] = process.argv.slice(2).map(Number);
let n = 0;
http.createServer((q, r) => {
  if (ends && ++n % ends === 0) return q.socket.destroy();
  setTimeout(() => r.end('x'.repeat(1000)), wait);
}).listen(port, '127.0.0.1', 511);
"""
# Waits for a server that all of its kind share: one question at a time for all of them.
LOCKED = """
const http = require('http'), net = require('net');
const db = net.connect(5999, '127.0.0.1'); const waiting = [];
db.on('data', (d) => { for (const _ of d) waiting.shift()(); });
http.createServer((q, r) => { waiting.push(() => r.end('x')); db.write('q'); }).listen(Number(process.argv[2]), '127.0.0.1');
"""
DB = """
const net = require('net'); let queue = Promise.resolve();
net.createServer((c) => c.on('data', (d) => { for (const _ of d) queue = queue.then(() => new Promise((go) => setTimeout(() => { c.write('r'); go(); }, 40))); }).on('error', () => 0)).listen(5999, '127.0.0.1');
"""
SOCKETS = """
const { Server } = require('@ROOT@/tests/apps/node_modules/socket.io'), http = require('http');
for (const port of process.argv.slice(2).map(Number)) {
  const server = http.createServer();
  new Server(server).on('connection', (s) => s.on('message', (x, ack) => ack && ack(x)));
  server.listen(port, '127.0.0.1');
}
"""
USERS = """
config:
  target: http://127.0.0.1:8080
  phases: [{duration: 60, arrivalRate: @RATE@}]
  socketio: {transports: [@WAY@]}
scenarios:
  - engine: socketio
    flow: [{loop: [{emit: {channel: message, data: x}}, {think: 1}], count: @COUNT@}]
"""
PAGE = "<?php header('Set-Cookie: visitor=1'); usleep(1200000); echo str_repeat('x', 20000);"
QUICK = "<?php usleep(20000); echo str_repeat('x', 20000);"


def node(source, *words):
    return ("node", source, [str(word) for word in words])


def php(source):
    return ("php", source, [])


def url(*words):
    return ["@WEIR@", "load", f"http://127.0.0.1:{PORT}{words[0]}", *words[1:], "-d", "60s"]


def users(way, rate, count):
    return USERS.replace("@WAY@", way).replace("@RATE@", str(rate)).replace("@COUNT@", str(count))


def conf(location=f"proxy_pass http://app; {KEEP}", upstream="server 127.0.0.1:3000; keepalive 64;", main="worker_processes 1;",
         events="worker_connections 1024;", http=""):
    return (f"{main}\nevents {{ {events} }}\nhttp {{ {LOG} access_log @DIR@/access.log why; {http}\n  upstream app {{ {upstream} }}\n"
            f"  server {{ listen 127.0.0.1:{PORT}; location / {{ {location} }} }}\n}}\n")


UPGRADE = "proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;"
CACHE = "proxy_cache_path @DIR@/cache keys_zone=one:1m; proxy_cache one; proxy_cache_valid 200 10s;"

# Report, name, edges, rules that may be said, configuration, applications, clients.
ROWS = [
    ("S0", "full-table", "nw", {"B05", "B06"}, conf(UPGRADE, events="worker_connections 48;"), [node(SOCKETS, 3000)], users("websocket", 10, 8)),
    ("S0", "not-sticky", "n", {"B41"}, conf(UPGRADE, upstream="server 127.0.0.1:3000; server 127.0.0.1:3001;"), [node(SOCKETS, 3000, 3001)], users("polling", 10, 3)),
    ("S1", "files", "nw", {"B07"}, conf(main="worker_processes 1; worker_rlimit_nofile 30;"), [node(APP, 3000, 1000, 0)], url("/", "-c", "60")),
    ("S2", "ends", "nw", {"B63", "B04"}, conf(), [node(APP, 3000, 5, 6)], url("/", "-R", "100", "-c", "16", "-X", "POST")),
    ("S2", "ports", "n", {"B01"}, conf(upstream="server 127.0.0.1:3000; keepalive 16; keepalive_requests 1;"), [node(APP, 3000, 2, 0)], url("/", "-R", "150", "-c", "16")),
    ("S3", "shared", "nw", {"B26", "B62", "B61", "B23"}, conf(upstream="server 127.0.0.1:3000; server 127.0.0.1:3001; server 127.0.0.1:3002; keepalive 64;"),
     [node(DB), node(LOCKED, 3000), node(LOCKED, 3001), node(LOCKED, 3002)], url("/", "-c", "40")),
    ("S4", "stores-nothing", "nw", {"B31"}, conf(http=CACHE), [php(PAGE)], url("/", "-R", "12", "-c", "64")),
    (None, "sound-node", "nw", {None}, conf(), [node(APP, 3000, 15, 0)], url("/", "-R", "60", "-c", "8")),
    (None, "sound-sockets", "nw", {None}, conf(UPGRADE), [node(SOCKETS, 3000)], users("websocket", 5, 4)),
    (None, "sound-php", "nw", {None}, conf(http=CACHE), [php(QUICK)], url("/", "-R", "40", "-c", "8")),
]


def main():
    args = arguments()
    if os.environ.get("WEIR_LIVE") != "inside":
        # A network of its own: its ports are free, and few of them where a row says so.
        os.environ["WEIR_LIVE"] = "inside"
        os.execvp("unshare", ["unshare", "--net", "--", sys.executable, *sys.argv])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    named, wrong, cpu = {}, 0, []
    for report, name, edges, may, text, apps, load in ROWS:
        if args.only and not any(word in (report or "", name) or name.startswith(word) for word in args.only):
            continue
        for edge in edges:
            if edge not in args.edges:
                continue
            verdict, used = row(args, name, edge, text, apps, load)
            cpu.append(used)
            is_right = verdict["rule"] in may
            is_right = is_right and (verdict["word"] == "NOT SATURATED") == (report is None)
            wrong += report is None and not is_right
            if report:
                named.setdefault(edge, {}).setdefault(report, []).append(is_right)
            print(f"{'ok   ' if is_right else 'WRONG'} {report or 'sound'} {name}-{edge}: {verdict['text']}", flush=True)
    few = False
    for edge, reports in named.items():
        right = [report for report, all_rows in reports.items() if all(all_rows)]
        few |= not args.only and len(right) < 4
        print(f"{'nginx' if edge == 'n' else 'weir'}: the cause of {len(right)} of {len(reports)} reports was named ({', '.join(right)})")
    if cpu:
        print(f"weir why used {sum(cpu) / len(cpu):.2f} s of CPU in each watch of {args.length}, {max(cpu):.2f} at most")
    sys.exit(1 if few or wrong else 0)


def row(args, name, edge, text, apps, load):
    """Starts a system, watches it, ends it; gives the verdict and the CPU time of `weir why`."""
    with tempfile.TemporaryDirectory(prefix="weir-live-") as work:
        where = pathlib.Path(work)
        where.chmod(0o755)
        ports = "50000 50199" if name == "ports" else "32768 60999"
        pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").write_text(ports)
        started = []
        for number, app in enumerate(apps):
            started.append(start(where, number, app))
            # The next one may ask this one.
            time.sleep(0.7)
        (where / "nginx.conf").write_text(f"error_log {where}/error.log; pid {where}/pid; daemon off;\n" + text.replace("@DIR@", work))
        command = [args.nginx, "-c", str(where / "nginx.conf")] if edge == "n" else [args.weir, "edge", "-c", str(where / "nginx.conf")]
        server = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(1)
        client = subprocess.Popen(clients(args, where, load), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            # Sessions have to add up, and ports to rest.
            time.sleep(6)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run([args.weir, "why", "--edge", str(server.pid), "--for", args.length, "--json", *args.more], capture_output=True, text=True, check=False)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        finally:
            for process in [client, server, *started]:
                end(process)
        if args.keep:
            (args.keep / f"{name}-{edge}.json").write_text(done.stdout + done.stderr)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        try:
            run = json.loads(done.stdout)
        except ValueError:
            return {"word": "failed", "rule": "failed", "text": done.stderr.strip()}, used
        return {"word": run["verdict"]["name"], "rule": run["verdict"]["rule"], "text": run["verdict"]["text"]}, used


def start(where, number, app):
    program, source, words = app
    if program == "php":
        (where / "index.php").write_text(source)
        command = ["php", "-S", "127.0.0.1:3000", "-t", str(where), str(where / "index.php")]
    else:
        file = where / f"app{number}.cjs"
        file.write_text(source.replace("@ROOT@", str(HERE)))
        command = [program, str(file), *words]
    environment = {**os.environ, "PHP_CLI_SERVER_WORKERS": "24"}
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, start_new_session=True)


def clients(args, where, load):
    if isinstance(load, str):
        (where / "users.yml").write_text(load)
        return [args.weir, "load", str(where / "users.yml")]
    return [word.replace("@WEIR@", args.weir) for word in load]


def end(process):
    for way in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, way)
            process.wait(3)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            pass


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--nginx", default="/usr/sbin/nginx")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[], help="reports (S0) or names of rows")
    parser.add_argument("--edges", type=lambda text: text.split(","), default=["n", "w"])
    parser.add_argument("--for", dest="length", default="6s", metavar="TIME")
    parser.add_argument("--more", type=str.split, default=[], help="further flags of weir why")
    parser.add_argument("--keep", type=pathlib.Path, help="a directory for what was printed")
    args = parser.parse_args()
    args.weir = str(pathlib.Path(args.weir).resolve())
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
    return args


if __name__ == "__main__":
    main()
