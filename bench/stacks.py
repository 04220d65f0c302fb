"""A stack that `weir lab why` loads: the parts it is made of, and how one is run. `faults.py` and `random_faults.py` use it."""

import json
import pathlib
import shutil
import subprocess
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
# Two workers, each of which waits for as long as a query takes.
FPM = """
[global]
error_log = /dev/stderr
[www]
user = root
group = root
listen = 0.0.0.0:3000
pm = static
pm.max_children = 2
pm.status_path = /status
pm.status_listen = 0.0.0.0:9001
"""
WSGI = """
import time
def application(environment, start):
    time.sleep(0.05)
    start('200 OK', [('Content-Type', 'text/plain')])
    return [b'x']
"""
# Answers each question of a name after 0.6 s: it is 127.0.0.1, for one second.
NAMES = """
import socket, threading, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 53))
def answer(d, a):
    time.sleep(0.6)
    s.sendto(d[:2] + b'\\x81\\x80' + d[4:6] + b'\\0\\1\\0\\0\\0\\0' + d[12:] + b'\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\1\\0\\4\\x7f\\0\\0\\1', a)
while True: threading.Thread(target=answer, args=s.recvfrom(512), daemon=True).start()
"""
# One request at a time, each for 50 ms, and a queue of four.
SLEEPS = """
import http.server, time
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_GET(self):
        time.sleep(0.05)
        self.send_response(200); self.send_header('Content-Length', '1'); self.end_headers(); self.wfile.write(b'x')
class Server(http.server.HTTPServer): request_queue_size = 4
Server(('0.0.0.0', 3000), Handler).serve_forever()
"""
GET = """
config:
  target: http://127.0.0.1:1
  phases: [{duration: 4, arrivalRate: 60}]
scenarios:
  - flow: [{get: {url: /1k}}]
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
    # The rows of `orders` have no index but their number.
    (made / "init.sql").write_text("CREATE DATABASE IF NOT EXISTS test;\nCREATE TABLE IF NOT EXISTS test.t (id INT PRIMARY KEY, n INT) ENGINE=InnoDB;\nREPLACE INTO test.t VALUES (1, 0);\n"
                                   "CREATE TABLE IF NOT EXISTS test.orders (id INT PRIMARY KEY, customer INT);\n"
                                   "INSERT IGNORE INTO test.orders SELECT seq, seq % 1000 FROM test.seq_1_to_60000;\n")
    (where / "index.php").write_text(source)
    server = f"mariadbd --no-defaults --user=root --datadir={DB} --socket={DB}/m.sock --skip-networking --init-file={DB}/init.sql {small} {words}"
    asked = f"mariadb --no-defaults -S {DB}/m.sock -u root test -e 'select 1 from t' >/dev/null"
    # Without its table each request would fail at once, and no lock be waited for.
    return (f"cp -a {made} {DB} && {server} & for i in $(seq 100); do {asked} 2>&1 && break; sleep 0.1; done; {asked} || exit 1; "
            f"SOCKET={DB}/m.sock PHP_CLI_SERVER_WORKERS=8 exec php -S 0.0.0.0:3000 -t {where} {where}/index.php")


def java(where, weir, source, _):
    (where / "App.java").write_text(source)
    subprocess.run(["javac", "-d", str(where), str(where / "App.java")], check=True, capture_output=True)
    # Without nodelay, each answer on a kept connection waits 40 ms for an acknowledgement, and the heap limits nothing.
    return f"exec java -Xmx64m -XX:+UseSerialGC -Dsun.net.httpserver.nodelay=true -cp {where} App"


def fpm(where, weir, source, _):
    (where / "fpm.conf").write_text(source.replace("@DIR@", str(where)))
    (where / "x.php").write_text("<?php usleep(50000); echo 'x';")
    program = next(path for path in sorted(pathlib.Path("/usr/sbin").glob("php-fpm*")))
    return f"exec {program} -R -F -y {where}/fpm.conf"


def uwsgi(where, weir, source, _):
    (where / "app.py").write_text(source)
    return f"exec uwsgi --plugin python3 --socket 0.0.0.0:3000 --processes 2 --stats 0.0.0.0:9191 --wsgi-file {where}/app.py"


SPECIAL = {"apache": apache, "redis": redis, "mysql": mysql, "java": java, "php-fpm": fpm, "uwsgi": uwsgi}


def missing(extra):
    """What a row needs that is not there."""
    need = extra.get("needs")
    if need == "socket.io":
        return None if (HERE / "tests/apps/node_modules/socket.io").exists() else "npm ci --prefix tests/apps"
    if need == "php-fpm":
        return None if any(pathlib.Path("/usr/sbin").glob("php-fpm*")) else need
    return None if need is None or shutil.which(need) or (need == "mariadbd" and pathlib.Path("/usr/sbin/mariadbd").exists()) else need


def pages():
    """The file that PAGES reads."""
    name = pathlib.Path(tempfile.gettempdir()) / "weir-faults-pages"
    if not name.exists():
        name.write_bytes(b"x" * (128 << 20))


def key_pair(where, kind):
    """A certificate for a stack, of this kind of key (`rsa`, `ec`). Made once for each kind: RSA of 4096 bits takes seconds."""
    made = pathlib.Path(tempfile.gettempdir()) / f"weir-faults-{kind}"
    made.mkdir(exist_ok=True)
    if not (made / "done").exists():
        how = {"rsa": ["-newkey", "rsa:4096"], "ec": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]}[kind]
        subprocess.run(["openssl", "req", "-x509", *how, "-nodes", "-days", "365", "-subj", "/CN=x", "-keyout", str(made / "key.pem"),
                        "-out", str(made / "cert.pem")], check=True, capture_output=True)
        (made / "done").touch()
    for name in ("key.pem", "cert.pem"):
        shutil.copy(made / name, where / name)
        (where / name).chmod(0o644)


def written(where, weir, text, load, extra):
    """The files of a stack in its directory; the path or script that is loaded, and the flags of the command."""
    if text is not None:
        (where / "nginx.conf").write_text(text.replace("@DIR@", str(where)))
    scripts = {"@POLLING@": POLLING, "@WS@": WS, "@GET60@": GET, "@SCRIPT@": extra.get("script", "")}
    words = []
    for word in load:
        if word in scripts:
            script = where / f"{word.strip('@').lower()}.yml"
            script.write_text(scripts[word])
            word = str(script)
        words.append(word)
    for name, source in extra.get("files", {}).items():
        (where / name).write_text(source)
    kind = "rsa" if extra.get("needs") == "openssl" else extra.get("certificate")
    if kind:
        key_pair(where, kind)
    # What is loaded comes first: a path, where it is no script.
    is_path = [word.startswith("/") and not word.endswith(".yml") for word in words]
    words = [word for word, path in zip(words, is_path) if path] + [word for word, path in zip(words, is_path) if not path]
    words += extra.get("flags", [])
    if "origin" in extra:
        program, source, arguments = extra["origin"]
        if program in SPECIAL:
            words += ["--origin", SPECIAL[program](where, weir, source, arguments)]
        else:
            app = where / ("app.py" if program.startswith("python") else "app.cjs")
            app.write_text(source.replace("@ROOT@", str(HERE)))
            words += ["--origin", f"exec {program} {app} {arguments.replace('@DIR@', str(where))}"]
    if "inject" in extra:
        inject = where / "inject.json"
        inject.write_text(json.dumps(extra["inject"]).replace("@WEIR@", weir).replace("@DIR@", str(where)))
        words += ["--inject", str(inject)]
    return words


def run(weir, store, name, edge, text, load, extra, options):
    """Runs a stack, and gives what was said of it. All that was printed is kept in the store, as NAME-EDGE.txt."""
    where = pathlib.Path(tempfile.mkdtemp(prefix="weir-faults-"))
    where.chmod(0o755)
    command = [weir, "lab", "why"]
    command += ["--stack", str(HERE / "labs" / extra["stack"][0]), "--variant", extra["stack"][1]] if "stack" in extra else [str(where / "nginx.conf")]
    command += written(where, weir, text, load, extra)
    command += ["--edge", NGINX] if edge == "n" else []
    command += ["--block", options.block] if "--block" not in load and "--load" not in load else []
    command += ["--store", str(store), "--seed", "1"]
    # A remedy is tried only where that is asked for: it takes longer than all the rest.
    command += ["--try", "--try-budget", options.budget] if getattr(options, "tries", False) else ["--try-budget", "0"]
    command += ["--prove"] if options.prove else []
    command += ["--noisy"] if options.noisy else []
    before = set(store.glob("*.json"))
    began = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        said, errors = done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        said, errors = str(late.stdout or ""), f"not done after {late.timeout:.0f} s"
    seconds = time.monotonic() - began
    kept = sorted(set(store.glob("*.json")) - before)
    (store / f"{name}-{edge}.txt").write_text(" ".join(command) + "\n" + said + errors)
    shutil.rmtree(where, ignore_errors=True)
    if not kept:
        return {"word": "failed", "rule": None, "seconds": seconds, "text": "; ".join(errors.strip().splitlines()[-1:])}
    try:
        verdict = json.loads(kept[-1].read_text())
        findings = [finding["rule"] for finding in verdict["findings"]]
        word, text = verdict["verdict"]["name"], verdict["verdict"]["text"]
    except (ValueError, KeyError, TypeError) as wrong:
        return {"word": "failed", "rule": None, "seconds": seconds, "text": f"{kept[-1]}: not a run: {wrong!r}"}
    lead = verdict.get("lead")
    remedy = verdict["findings"][lead].get("knob") if lead is not None else None
    return {"word": word, "rule": verdict["verdict"].get("rule"), "findings": findings, "text": text, "seconds": seconds, "kept": str(kept[-1]),
            "remedy": remedy, "tried": (verdict.get("tried") or {}).get("name")}
