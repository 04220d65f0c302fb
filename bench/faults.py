#!/usr/bin/env python3
"""Faults that are put into a stack on purpose, and what `weir lab why` says of each: the confusion matrix.

    bench/faults.py --weir target/debug/weir [--list] [--prove] [--try] [--only b15,b21-weir] [--block 8s] [--minutes 35]

Needs root (namespaces, control groups), nginx, node, python3 and openssl; rows that need more (Apache, MariaDB, Redis, a JDK) are
left out, and named, where it is not installed. On a quiet machine, else with --noisy (which is said by every run). A row is right
when the first finding is one of the rules that may be said of that fault. "PROVED" by another rule is the worst there is, and fails
the whole. No row is begun after --minutes. Exit code 1: fewer than nine of ten right, or one wrongly proved.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

NGINX = "/usr/sbin/nginx"
BURN = """
const http = require('http'), cluster = require('cluster');
const [ms, forks] = process.argv.slice(2).map(Number);
if (forks > 1 && cluster.isPrimary) { for (let i = 0; i < forks; i++) cluster.fork(); }
else http.createServer((q, r) => { const end = performance.now() + ms; while (performance.now() < end); r.end('x'); }).listen(3000, '0.0.0.0');
"""
# Two servers, of which the second waits; or answers some with 503.
TWO = """
const http = require('http');
const [ports, slow, share] = [process.argv[2].split(','), Number(process.argv[3]), Number(process.argv[4])];
let n = 0;
ports.forEach((port, at) => http.createServer((q, r) => {
  if (share && (++n % 10) < share * 10) r.statusCode = 503;
  at > 0 && slow ? setTimeout(() => r.end('x'), slow) : r.end('x');
}).listen(Number(port), '0.0.0.0'));
"""
# One connection at a time, each as long as a query takes.
POOL = """
import socket, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(('0.0.0.0', 3000)); s.listen(128)
while True:
    c, _ = s.accept()
    try:
        if not c.recv(65536): continue
        time.sleep(0.02)
        c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 1\\r\\nConnection: close\\r\\n\\r\\nx')
    except OSError: pass
    finally: c.close()
"""
DEAF = "require('http').createServer((q, r) => r.end('x')).listen(3000, '0.0.0.0', 1)"
WS = """
config:
  target: ws://127.0.0.1:1
  phases: [{duration: 4, arrivalRate: 20}]
scenarios:
  - engine: ws
    flow: [{send: hello}, {think: 0.2}]
"""
# Redis computes: as many rounds as it takes a millisecond or two; the application only waits for it.
REDIS = """
const net = require('net'), http = require('http');
const [port, rounds, calls] = process.argv.slice(2).map(Number);
const redis = net.connect(port, '127.0.0.1'); const waiting = [];
redis.on('data', (d) => { for (const c of d.toString()) if (c === ':') waiting.shift()(); });
const one = () => new Promise((done) => { waiting.push(done); redis.write(`EVAL "for i=1,${rounds} do end return 1" 0\\r\\n`); });
http.createServer(async (q, r) => { for (let i = 0; i < calls; i++) await one(); r.end('x'); }).listen(3000, '0.0.0.0');
"""
# Each request changes the same row, and keeps it for as long as it says.
MYSQL = """<?php
$db = new mysqli('localhost', 'root', '', 'test', 0, getenv('SOCKET'));
$db->query('BEGIN'); $db->query('UPDATE t SET n = n + 1 WHERE id = 1'); $db->query('SELECT SLEEP(0.005)'); $db->query('COMMIT');
echo 'x';
"""
# Lives near the end of its heap, and allocates for each request.
HEAP = """
import com.sun.net.httpserver.HttpServer; import java.net.InetSocketAddress; import java.util.concurrent.Executors;
public class App { static byte[][] kept = new byte[420][];
  public static void main(String[] a) throws Exception { for (int i = 0; i < kept.length; i++) kept[i] = new byte[100_000];
    HttpServer s = HttpServer.create(new InetSocketAddress("0.0.0.0", 3000), 128); s.setExecutor(Executors.newFixedThreadPool(4));
    s.createContext("/", x -> { byte[][] b = new byte[40][]; for (int i = 0; i < 40; i++) b[i] = new byte[100_000];
      kept[(int) (Math.random() * kept.length)] = b[0];
      x.sendResponseHeaders(200, 1); x.getResponseBody().write('x'); x.close(); }); s.start(); } }
"""
# Reads a file larger than the memory it may have, again and again.
PAGES = """
import http.server, os, random
name = '/tmp/weir-faults-pages'
class Server(http.server.ThreadingHTTPServer): daemon_threads = True; request_queue_size = 128
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def log_message(self, *_): pass
    def do_GET(self):
        with open(name, 'rb') as f:
            f.seek(random.randrange(0, 120) << 20)
            for _ in range(64): f.read(1 << 16)
        self.send_response(200); self.send_header('Content-Length', '1'); self.end_headers(); self.wfile.write(b'x')
# What is in memory already is on somebody else's account.
fd = os.open(name, os.O_RDWR); os.fsync(fd); os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
Server(('0.0.0.0', 3000), Handler).serve_forever()
"""
# Keeps something of each request, as a leak does, until its group has no more.
LEAK = """
const kept = [];
require('http').createServer((q, r) => { kept.push(Buffer.alloc(1 << 18, 1)); r.end('x'); }).listen(3000, '0.0.0.0');
"""
# Waits without letting others go on, and does not compute.
SYNC = """
const http = require('http'), cell = new Int32Array(new SharedArrayBuffer(4));
http.createServer((q, r) => { Atomics.wait(cell, 0, 0, 60); r.end('x'); }).listen(3000, '0.0.0.0');
"""
# Two processes of one application, each with its own sessions.
POLL = """
const { Server } = require('@ROOT@/tests/apps/node_modules/socket.io'), http = require('http');
for (const port of [3000, 3001]) {
  const server = http.createServer();
  new Server(server).on('connection', (s) => s.on('message', (x, ack) => ack(x)));
  server.listen(port, '0.0.0.0');
}
"""
POLLING = """
config:
  target: http://127.0.0.1:1
  phases: [{duration: 4, arrivalRate: 10}]
  socketio: {transports: [polling]}
scenarios:
  - engine: socketio
    flow: [{emit: {channel: message, data: x}}, {think: 0.2}]
"""
APACHE = """
ServerRoot /etc/apache2
ServerName app
PidFile @DIR@/apache.pid
ErrorLog /dev/stderr
Listen 0.0.0.0:3000
@MODULES@
StartServers 1
ServerLimit 1
ThreadsPerChild 5
MaxRequestWorkers 5
MinSpareThreads 1
MaxSpareThreads 5
User www-data
Group www-data
KeepAlive Off
<Location /server-status>
  SetHandler server-status
</Location>
<Location /slow>
  ProxyPass http://127.0.0.1:3001/1k
</Location>
"""
KEEP = 'proxy_http_version 1.1; proxy_set_header Connection "";'


def conf(location=f"proxy_pass http://app; {KEEP}", upstream="server app:3000; keepalive 64;", main="", events="worker_connections 1024;",
         http="", listen="8080"):
    return (f"{main}\nevents {{ {events} }}\nhttp {{ {http}\n  upstream app {{ {upstream} }}\n"
            f"  server {{ listen {listen}; location / {{ {location} }} }}\n}}\n")


CACHE = "proxy_cache_path /tmp/weir-faults-cache keys_zone=one:1m; proxy_cache_valid 200 1s; proxy_cache one;"
BURNER = {"name": "batch", "host": "edge", "argv": ["sh", "-c", "for i in 1 2 3; do (while :; do :; done) & done; wait"], "cpus": [0]}
ONE_CPU = ["--client-cpus", "0", "--edge-cpus", "0", "--origin-cpus", "1"]
# Some milliseconds of the edge's own work for each request: a pattern that tries every way to split the query.
WORK = f'if ($args ~ "(x+x+)+[yz]") {{ return 403; }} proxy_pass http://app; {KEEP}'
WORKED = "/1k?" + 17 * "x"

TLS = "ssl_certificate @DIR@/cert.pem; ssl_certificate_key @DIR@/key.pem; ssl_session_tickets off; keepalive_timeout 0;"
HERE = pathlib.Path(__file__).resolve().parent.parent
DB = "/run/weir-faults-db"

# name, edges (n, w), rules that may be said, configuration, load, what else.
FAULTS = [
    ("b01-ports", "n", {"B01"}, conf(upstream="server app:3000;"), ["-R", "200", "-c", "16", "/1k"],
     {"inject": {"hosts": [{"name": "edge", "sysctls": [["net.ipv4.ip_local_port_range", "50000 50199"]]}]}}),
    ("b02-inert", "n", {"B02"}, conf("proxy_pass http://app;"), ["-R", "150", "-c", "16", "/1k"], {}),
    ("b03-small-pool", "n", {"B03"}, conf(upstream="server app:3000; keepalive 1;"), ["-c", "32", "/1k?delay=30ms"], {}),
    ("b03-no-pool", "n", {"B03"}, conf(upstream="server app:3000;"), ["-R", "150", "-c", "16", "/1k"], {}),
    ("b05-table", "nw", {"B05"}, conf(events="worker_connections 32;", main="worker_processes 1;"), ["-c", "60", "/1k?delay=1s"], {}),
    ("b06-recycled", "nw", {"B06", "B05"}, conf(events="worker_connections 64;", main="worker_processes 1;"), ["-R", "200", "-c", "100", "/1k"], {}),
    ("b07-files", "nw", {"B07"}, conf(main="worker_processes 1; worker_rlimit_nofile 30;"), ["-c", "60", "/1k?delay=1s"], {}),
    ("b10-stopped", "nw", {"B10", "B11"}, conf(listen="8080 backlog=8"), ["-c", "80", "/1k", "--warmup", "0"],
     {"inject": {"actions": [{"at_ms": 0, "deed": {"Stop": "edge"}}, {"at_ms": 2500, "deed": {"Continue": "edge"}}]}}),
    ("b12-one-worker", "nw", {"B12"}, conf(WORK, main="worker_processes 1;"), ["-c", "8", WORKED, "--edge-cpus", "0-1"], {}),
    ("b15-edge-quota", "nw", {"B15"}, conf(main="worker_processes 1;"), ["-c", "16", "/1k", "--edge-quota", "0.15"], {}),
    ("b15-edge-quota-rate", "nw", {"B15"}, conf(main="worker_processes 1;"), ["-R", "3000", "-c", "32", "/1k", "--edge-quota", "0.1"], {}),
    ("b15-app-quota", "nw", {"B15"}, conf(), ["-c", "16", "/64k"], {"inject": {"hosts": [{"name": "origin", "cpus": 0.06}], "processes": [{"name": "origin0", "is_unlimited": False}]}}),
    ("b16-credits", "nw", {"B16"}, conf(), ["-R", "250", "-c", "32", "/1k", "--block", "8s", "--warmup", "0"],
     {"origin": ("node", BURN, "1.5 1"), "inject": {"hosts": [{"name": "origin", "credits": {"cpus": 1.0, "baseline": 0.1, "earned_hourly": 6.0, "initial": 0.03, "speed": 1.0}}], "processes": [{"name": "origin0", "is_unlimited": False}]}}),
    ("b18-neighbours", "nw", {"B18", "B19"}, conf(WORK, main="worker_processes 1;"), ["-c", "8", WORKED], {"inject": {"processes": [BURNER]}}),
    ("b19-edge-full", "nw", {"B19"}, conf(WORK, main="worker_processes 1;"), ["-c", "8", WORKED], {}),
    ("b20-app-full", "nw", {"B20"}, conf(), ["-c", "16", "/", *ONE_CPU], {"origin": ("node", BURN, "5 2")}),
    ("b21-one-thread", "nw", {"B21"}, conf(), ["-c", "16", "/", *ONE_CPU], {"origin": ("node", BURN, "5 1")}),
    ("b21-one-thread-rate", "nw", {"B21"}, conf(), ["-R", "300", "-c", "32", "/", *ONE_CPU], {"origin": ("node", BURN, "5 1")}),
    ("b22-pool", "nw", {"B22"}, conf(), ["-c", "16", "/"], {"origin": ("python3", POOL, "")}),
    ("b27-dead-peer", "nw", {"B27"}, conf(upstream="server app:3000 max_fails=0; server app:3001 max_fails=0; keepalive 8;"), ["-R", "100", "-c", "8", "/1k"],
     {"inject": {"processes": [{"name": "origin0", "argv": ["@WEIR@", "origin", "--listen", "0.0.0.0:3000"], "ready": "Started"}]}}),
    ("b27-slow-peer", "nw", {"B27"}, conf(upstream="server app:3000; server app:3001; keepalive 16;"), ["-R", "60", "-c", "32", "/"],
     {"origin": ("node", TWO, "3000,3001 250 0")}),
    ("b28-retries", "nw", {"B28"}, conf(f"proxy_pass http://app; {KEEP} proxy_next_upstream error timeout http_503;",
                                        upstream="server app:3000 max_fails=0; server app:3001 max_fails=0; server app:3002 max_fails=0; keepalive 16;"),
     ["-R", "100", "-c", "16", "/"], {"origin": ("node", TWO, "3000,3001,3002 0 0.5")}),
    ("b29-stampede", "nw", {"B29"}, conf(f"proxy_pass http://app; {KEEP} proxy_cache_lock off;", http=CACHE), ["-R", "300", "-c", "60", "/1k?delay=300ms"], {}),
    ("b30-lock-polling", "n", {"B30"}, conf(f"proxy_pass http://app; {KEEP} proxy_cache_lock on; proxy_cache_key $uri$second;",
                                            http=CACHE + " map $msec $second { ~^(?<s>[0-9]+) $s; }"), ["-R", "200", "-c", "100", "/1k?delay=300ms"], {}),
    ("b31-not-kept", "nw", {"B31"}, conf(http=CACHE), ["-R", "150", "-c", "16", "/1k?header=Set-Cookie:a=b"], {}),
    ("b33-foreground", "n", {"B33"}, conf(f"proxy_pass http://app; {KEEP} proxy_cache_lock on; proxy_cache_use_stale updating;", http=CACHE),
     ["-R", "200", "-c", "32", "/1k?delay=300ms"], {}),
    ("b34-link", "nw", {"B34"}, conf(), ["-c", "16", "/64k"], {"inject": {"hosts": [{"name": "client", "rate_kbit": 20000}]}}),
    ("b34-link-rate", "nw", {"B34"}, conf(), ["-R", "100", "-c", "64", "/64k"], {"inject": {"hosts": [{"name": "client", "rate_kbit": 20000}]}}),
    ("b37-not-saturated", "nw", {None}, conf(), ["-R", "60", "-c", "8", "/1k"], {}),
    ("b40-upgrade", "n", {"B40"}, conf("proxy_pass http://app;"), ["--load", "@WS@"], {}),
    ("b42-read-timeout", "nw", {"B42"}, conf(f"proxy_pass http://app; {KEEP} proxy_read_timeout 500ms;"), ["-R", "20", "-c", "32", "/1k?delay=2s"], {}),
    ("b42-connect-timeout", "n", {"B42", "B22"}, conf("proxy_pass http://app; proxy_connect_timeout 700ms;"), ["-R", "40", "-c", "64", "/", "--warmup", "0"],
     {"origin": ("node", DEAF, ""), "inject": {"actions": [{"at_ms": 0, "deed": {"Stop": "origin0"}}]}}),
    ("b45-localhost", "n", {"B45"}, conf(upstream="server localhost:3000 max_fails=0; keepalive 8;"), ["-R", "100", "-c", "8", "/1k"],
     {"inject": {"names": [["localhost", "::1"]]}}),
    ("b13-imbalance", "n", {"B13"}, conf(WORK, main="worker_processes 2;", events="worker_connections 1024; accept_mutex on; multi_accept on;"),
     ["-c", "8", WORKED, "--edge-cpus", "0-1"], {}),
    ("b14-workers", "nw", {"B14", "B19"}, conf(WORK, main="worker_processes 8;"), ["-c", "32", WORKED], {}),
    ("b17-handshakes", "nw", {"B17"}, conf(http=TLS, listen="8443 ssl"), ["-c", "16", "/1k"], {"needs": "openssl"}),
    ("b21-blocked-loop", "nw", {"B21", "B22"}, conf(), ["-c", "16", "/"], {"origin": ("node", SYNC, ""), "flags": ["--probe", "node"]}),
    ("b22-apache", "nw", {"B22"}, conf(), ["-c", "16", "/slow?delay=40ms"],
     {"origin": ("apache", APACHE, ""), "needs": "apache2"}),
    ("b23-pool", "nw", {"B23"}, None, ["-c", "32", "/"], {"stack": ("e3c", "pool_one"), "flags": ["--pool", "app1:POOL=5"], "needs": "node"}),
    ("b24-locks", "nw", {"B24"}, conf(upstream="server 127.0.0.1:3000; keepalive 64;"), ["-c", "8", "/"], {"origin": ("mysql", MYSQL, ""), "needs": "mariadbd"}),
    ("b25-redis-full", "nw", {"B25"}, conf(upstream="server 127.0.0.1:3000; keepalive 64;"), ["-c", "16", "/"], {"origin": ("redis", REDIS, "6379 100000 1"), "needs": "redis-server"}),
    ("b26-shared-lock", "nw", {"B26"}, None, ["-c", "32", "/"], {"stack": ("e3c", "lock_three"), "needs": "node"}),
    ("b29-lock-alone", "n", {"B29"}, conf(f"proxy_pass http://app; {KEEP} proxy_cache_lock on;", http=CACHE), ["-R", "200", "-c", "100", "/1k?delay=300ms"], {}),
    ("b38-stopped", "nw", {"B38"}, conf(), ["-c", "2", "/1k?delay=2ms"],
     {"inject": {"actions": [{"at_ms": 1500, "deed": {"Stop": "edge"}}, {"at_ms": 2700, "deed": {"Continue": "edge"}}]}}),
    ("b41-sessions", "nw", {"B41"}, conf(upstream="server app:3000; server app:3001;"), ["--load", "@POLLING@"], {"origin": ("node", POLL, ""), "needs": "socket.io"}),
    ("b43-heap", "nw", {"B43"}, conf(), ["-c", "8", "/"], {"origin": ("java", HEAP, ""), "needs": "javac"}),
    ("b43-memory", "nw", {"B43", "B44"}, conf(), ["-c", "8", "/"],
     {"origin": ("python3", PAGES, ""), "inject": {"hosts": [{"name": "origin", "memory_mb": 40}], "processes": [{"name": "origin0", "is_unlimited": False}]}}),
    ("b43-killed", "nw", {"B43"}, conf(), ["-R", "300", "-c", "8", "/", "--warmup", "0"],
     {"origin": ("node", LEAK, ""), "inject": {"hosts": [{"name": "origin", "memory_mb": 120}], "processes": [{"name": "origin0", "is_unlimited": False}]}}),
    ("b44-log-disk", "n", {"B44"}, conf(http="access_log /var/log/nginx/slow.log;"), ["-c", "16", "/1k"],
     {"inject": {"processes": [{"name": "disk", "host": "edge", "is_step": True, "argv": ["sh", "-c",
      "truncate -s 64M /var/log/nginx/disk && mkfs.ext4 -q /var/log/nginx/disk && mkdir -p /var/log/nginx/d && mount -o loop,sync /var/log/nginx/disk /var/log/nginx/d && ln -s /var/log/nginx/d/slow.log /var/log/nginx/slow.log && touch /var/log/nginx/d/slow.log && chmod 666 /var/log/nginx/d/slow.log"]}]}}),
    ("client-quota", "nw", {"no verdict"}, conf(), ["-c", "32", "/1k"], {"inject": {"hosts": [{"name": "client", "cpus": 0.04}], "client": {"is_unlimited": False}}}),
    ("client-quota-rate", "nw", {"no verdict"}, conf(), ["-R", "3000", "-c", "32", "/1k"], {"inject": {"hosts": [{"name": "client", "cpus": 0.04}], "client": {"is_unlimited": False}}}),
]


def apache(where, weir, source, _):
    modules = pathlib.Path("/usr/lib/apache2/modules")
    wanted = ["mpm_event", "authz_core", "status", "proxy", "proxy_http"]
    lines = [f"LoadModule {name}_module {modules}/mod_{name}.so" for name in wanted]
    (where / "apache.conf").write_text(source.replace("@DIR@", str(where)).replace("@MODULES@", "\n".join(lines)))
    return f"{weir} origin --listen 127.0.0.1:3001 & exec apache2 -f {where}/apache.conf -DFOREGROUND"


def redis(where, weir, source, words):
    (where / "app.cjs").write_text(source)
    return f"redis-server --port 6379 --bind 127.0.0.1 --save '' & sleep 1; exec node {where}/app.cjs {words}"


def mysql(where, weir, source, words):
    # Made once, and copied for each block: a database that starts is a second, one that is made ten.
    made = pathlib.Path(tempfile.gettempdir()) / "weir-faults-mysql"
    small = "--innodb-log-file-size=4M --innodb-buffer-pool-size=16M"
    if not (made / "done").exists():
        shutil.rmtree(made, ignore_errors=True)
        subprocess.run(f"mariadb-install-db --no-defaults --user=root --datadir={made} --auth-root-authentication-method=normal {small}", shell=True, check=True,
                       capture_output=True)
        (made / "done").touch()
    # One statement a line: of two in one, the server takes none.
    (made / "init.sql").write_text("CREATE DATABASE IF NOT EXISTS test;\nCREATE TABLE IF NOT EXISTS test.t (id INT PRIMARY KEY, n INT) ENGINE=InnoDB;\nREPLACE INTO test.t VALUES (1, 0);\n")
    (where / "index.php").write_text(source)
    server = f"mariadbd --no-defaults --user=root --datadir={DB} --socket={DB}/m.sock --skip-networking --init-file={DB}/init.sql {small}"
    asked = f"mariadb --no-defaults -S {DB}/m.sock -u root test -e 'select 1 from t' >/dev/null"
    # Without its table each request would fail at once, and no lock be waited for.
    return (f"cp -a {made} {DB} && {server} & for i in $(seq 100); do {asked} 2>&1 && break; sleep 0.1; done; {asked} || exit 1; "
            f"SOCKET={DB}/m.sock PHP_CLI_SERVER_WORKERS=8 exec php -S 0.0.0.0:3000 -t {where} {where}/index.php")


def java(where, weir, source, _):
    (where / "App.java").write_text(source)
    subprocess.run(["javac", "-d", str(where), str(where / "App.java")], check=True, capture_output=True)
    return f"exec java -Xmx64m -XX:+UseSerialGC -cp {where} App"


SPECIAL = {"apache": apache, "redis": redis, "mysql": mysql, "java": java}


def missing(extra):
    """What a row needs that is not there."""
    need = extra.get("needs")
    if need == "socket.io":
        return None if (HERE / "tests/apps/node_modules/socket.io").exists() else "npm ci --prefix tests/apps"
    return None if need is None or shutil.which(need) or (need == "mariadbd" and pathlib.Path("/usr/sbin/mariadbd").exists()) else need


def run(weir, store, name, edge, text, load, extra, options):
    where = pathlib.Path(tempfile.mkdtemp(prefix="weir-faults-"))
    where.chmod(0o755)
    file = where / "nginx.conf"
    if text is not None:
        file.write_text(text.replace("@DIR@", str(where)))
    load = list(load)
    if "@POLLING@" in load:
        script = where / "polling.yml"
        script.write_text(POLLING)
        load[load.index("@POLLING@")] = str(script)
    if "@WS@" in load:
        script = where / "ws.yml"
        script.write_text(WS)
        load[load.index("@WS@")] = str(script)
    command = [weir, "lab", "why", str(file), *[word for word in load if word.startswith("/") and not word.endswith(".yml")]]
    command += [word for word in load if not word.startswith("/") or word.endswith(".yml")]
    if edge == "n":
        command += ["--edge", NGINX]
    if "needs" in extra and extra["needs"] == "openssl":
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:4096", "-nodes", "-days", "2", "-subj", "/CN=x", "-keyout", str(where / "key.pem"),
                        "-out", str(where / "cert.pem")], check=True, capture_output=True)
        (where / "key.pem").chmod(0o644)
    if "stack" in extra:
        lab, variant = extra["stack"]
        command[3:4] = ["--stack", str(HERE / "labs" / lab), "--variant", variant]
    command += extra.get("flags", [])
    if "origin" in extra and extra["origin"][0] in SPECIAL:
        command += ["--origin", SPECIAL[extra["origin"][0]](where, weir, *extra["origin"][1:])]
    elif "origin" in extra:
        program, source, words = extra["origin"]
        source = source.replace("@ROOT@", str(HERE))
        app = where / ("app.py" if program.startswith("python") else "app.cjs")
        app.write_text(source)
        command += ["--origin", f"exec {program} {app} {words}"]
    if "inject" in extra:
        inject = where / "inject.json"
        inject.write_text(json.dumps(extra["inject"]).replace("@WEIR@", weir))
        command += ["--inject", str(inject)]
    if "--block" not in load and "--load" not in load:
        command += ["--block", options.block]
    command += ["--store", str(store), "--seed", "1"]
    command += ["--try", "--try-budget", options.budget] if options.tries else ["--try-budget", "0"]
    command += ["--prove"] if options.prove else []
    command += ["--noisy"] if options.noisy else []
    before = set(store.glob("*.json"))
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    kept = sorted(set(store.glob("*.json")) - before)
    (store / f"{name}-{edge}.txt").write_text(" ".join(command) + "\n" + done.stdout + done.stderr)
    if not kept:
        return {"word": "failed", "rule": None, "seconds": time.monotonic() - began, "text": done.stderr.strip().splitlines()[-1:]}
    verdict = json.loads(kept[-1].read_text())
    findings = [finding["rule"] for finding in verdict["findings"]]
    return {"word": verdict["verdict"]["name"], "rule": verdict["verdict"].get("rule"), "findings": findings,
            "text": verdict["verdict"]["text"], "seconds": time.monotonic() - began}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", default=str(HERE / "target/debug/weir"))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--minutes", type=float, default=35)
    parser.add_argument("--only", default="")
    parser.add_argument("--skip", default="")
    parser.add_argument("--block", default="8s")
    parser.add_argument("--prove", action="store_true")
    parser.add_argument("--try", dest="tries", action="store_true")
    parser.add_argument("--try-budget", dest="budget", default="3m")
    parser.add_argument("--noisy", action="store_true")
    parser.add_argument("--store", default="")
    options = parser.parse_args()
    weir = str(pathlib.Path(options.weir).resolve())
    store = pathlib.Path(options.store or tempfile.mkdtemp(prefix="weir-faults-runs-"))
    store.mkdir(parents=True, exist_ok=True)
    only = [word for word in options.only.split(",") if word]
    skip = [word for word in options.skip.split(",") if word]
    right = wrongly_proved = proved = all_of_them = none = 0
    left_out, began = [], time.monotonic()
    if "b43-memory" in [row[0] for row in FAULTS] and not options.list:
        pages = pathlib.Path(tempfile.gettempdir()) / "weir-faults-pages"
        if not pages.exists():
            pages.write_bytes(b"x" * (128 << 20))
    matrix = {}
    for name, edges, accepted, text, load, extra in FAULTS:
        for edge in edges:
            full = f"{name}-{'nginx' if edge == 'n' else 'weir'}"
            if (only and not any(full.startswith(word) for word in only)) or any(full.startswith(word) for word in skip):
                continue
            if options.list:
                print(f"{full:<28} {'/'.join(sorted(str(rule) for rule in accepted))}")
                continue
            lacks = missing(extra)
            if lacks or time.monotonic() - began > options.minutes * 60:
                left_out.append(f"{full} ({lacks or 'no time'})")
                continue
            got = run(weir, store, name, edge, text, load, extra, options)
            said = "no verdict" if got["word"] == "no verdict" else got["rule"]
            is_right = said in accepted
            all_of_them += 1
            right += is_right
            none += said in ("None", None, "no verdict") and not is_right
            if got["word"] == "PROVED":
                proved += 1
                wrongly_proved += not is_right
            if got["word"] == "SHARED":
                proved += is_right
            expected = "/".join(sorted(str(rule) for rule in accepted))
            matrix.setdefault(expected, {}).setdefault(str(said), 0)
            matrix[expected][str(said)] += 1
            mark = "  " if is_right else "x "
            print(f"{mark}{full:<28} wanted {expected:<10} got {str(said):<10} {got['word']:<14} {got['seconds']:5.0f} s  {got.get('findings', '')} {got['text']}", flush=True)
    if options.list:
        return
    print("\nwanted      said")
    for expected, row in sorted(matrix.items()):
        print(f"{expected:<11} " + ", ".join(f"{said} {count}" for said, count in sorted(row.items())))
    if left_out:
        print("\nleft out: " + ", ".join(left_out))
    minutes = (time.monotonic() - began) / 60
    print(f"\n{right} of {all_of_them} right, {all_of_them - right - none} wrong, {none} with nothing said; {proved} proved, {wrongly_proved} wrongly; "
          f"{minutes:.0f} min; runs in {store}")
    sys.exit(0 if right * 10 >= all_of_them * 9 and not wrongly_proved else 1)


if __name__ == "__main__":
    main()
