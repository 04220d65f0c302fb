"""The applications, and what stands behind them, of `random_faults.py`: programs that do for each request what a list of stages says.

An application reads one word of JSON: `{"ports": [[3000, 3001], [3002]], "size": 1024, "stages": [["sleep", 20], ["places", 5, 30]]}`.
Each inner list of ports is a process of its own. Times are in ms; `heap`, `lookup` and `pauses` are NODE's alone, `file` and all from `on` on PYTHON's, the
other stages are known to both:

    sleep T              waits, everybody for himself
    cpu T                computes (CPU time, so that a quota makes it longer)
    places N T           one of N places is needed for T: a pool; with 1 place, a lock; N is POOL: what that environment variable says
    gate PORT N T        as places, only for requests on this port
    field NAME VALUE     a field of the answer
    lookup               looks a new name up as the system does (NODE alone): with a thread of a pool of four
    bucket R how         R requests a second: more of them wait ("wait") or are answered with 429 ("refuse")
    ask HOST PORT N how  asks the server behind it over N connections: "whole", or in two writes as of a careless client ("split")
    redis PORT ROUNDS N  N commands, each of so many rounds of Redis' own computing
    names PORT           looks a name up at this DNS server, on loopback
    sync FILE N          appends to a file N times, and waits for the disk each time
    file FILE T          holds a lock of the file system for T
    full T               appends to a log on a full disk, and tries again after T, with everybody behind it
    heap MB N            keeps MB in small objects, and makes N more for each request
    errors SHARE         answers this share with 503
    drops SHARE          ends the connection of this share instead of an answer
    port PORT T          waits for T where it was asked on this port
    pauses EVERY T       stands still for T in each EVERY
    collects EVERY T     computes for itself for T in each EVERY (NODE)
    flushes FILE N EVERY  appends N times in each EVERY, and waits for the disk each time (NODE)
    opens                opens a file, and keeps it open (PYTHON)
    keeps KB             keeps so much of each request (PYTHON)
    walks US             walks through a list, for so long for each request before (PYTHON)
    caches N KB          keeps so much for each of N keys (PYTHON)
    hangs_up T           ends a connection on which nothing was asked for T as the next request comes
    on PORT STAGE ...    has this stage where it was asked on this port, and no other one
    tries PORT N T TIMES connects to a port at which nobody listens, so often and with a pause of T after each; N requests may do so at once
    ask_new HOST PORT    asks the server behind it over a new connection, and answers 500 if there is none
    itself N T           asks the edge for /inner, which this application answers too, with one of N workers held meanwhile; T is an inner answer's time
    batch N T            N of the requests that wait go on every T
    gzip KB              compresses so much at level 9
    bursts N T           computes T for one of N requests
    drip N PARTS T       sends the body in so many parts with a pause of T after each; N answers at once
    cut SHARE            sends half of the answer, and ends the connection
    garbled SHARE        sends a field whose name is none
    fat SHARE BYTES      sends a cookie of so many bytes

Beside the stages: `head` is a line of each answer's head, `body` the body instead of `size` bytes, `is_text` a body of words, `workers` the most connections
that a process serves at once.
"""

NODE = r"""
const http = require('http'), https = require('https'), net = require('net'), fs = require('fs'), dns = require('dns');
const it = JSON.parse(process.argv[2]);
if (!it.mine) {
  it.ports.slice(1).forEach((mine) => require('child_process').fork(__filename, [JSON.stringify({ ...it, mine })], { stdio: 'inherit' }));
  it.mine = it.ports[0];
}
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const places = (n, work) => {
  const waiting = [];
  return async (...all) => {
    if (n > 0) n--; else await new Promise((done) => waiting.push(done));
    try { return await work(...all); } finally { const next = waiting.shift(); next ? next() : n++; }
  };
};
const connection = (host, port) => {
  const socket = net.connect(port, host); let done;
  socket.on('data', (d) => { for (const c of d) done(c); });
  return { socket, ask: (writes) => new Promise((answered) => { done = answered; writes.forEach((w) => socket.write(w)); }) };
};
const later = (work) => new Promise((done) => setImmediate(() => done(work())));
const STAGES = {
  sleep: (ms) => () => sleep(ms),
  cpu: (ms) => () => { const used = () => { const { user, system } = process.cpuUsage(); return user + system; }; const end = used() + ms * 1000; while (used() < end); },
  places: (n, ms) => places(n === 'POOL' ? Number(process.env.POOL) : n, () => sleep(ms)),
  gate: (port, n, ms) => { const pass = places(n, () => sleep(ms)); return (q) => q.socket.localPort === port ? pass() : undefined; },
  field: (name, value) => (q, r) => { r.setHeader(name, value); },
  lookup: () => { let n = 0; return (q, r) => dns.promises.lookup(`n${n++}.example`).catch(() => { r.statusCode = 500; }); },
  bucket: (rate, how) => {
    let next = 0;
    return async (q, r) => {
      const now = performance.now(), at = Math.max(next, now);
      if (how === 'refuse' && at > now + 50) { r.statusCode = 429; return; }
      next = at + 1000 / rate;
      await sleep(at - now);
    };
  },
  ask: (host, port, n, how) => {
    const free = [];
    return places(n, async () => {
      const c = free.pop() || connection(host, port);
      if (how !== 'split') { await c.ask(['ab']); } else { const answered = c.ask(['a']); await later(() => c.socket.write('b')); await answered; }
      free.push(c);
    });
  },
  redis: (port, rounds, n) => {
    const waiting = [], c = net.connect(port, '127.0.0.1');
    c.on('data', (d) => { for (const x of d.toString()) if (x === ':') waiting.shift()(); });
    return async () => { for (let i = 0; i < n; i++) await new Promise((done) => { waiting.push(done); c.write(`EVAL "for i=1,${rounds} do end return 1" 0\r\n`); }); };
  },
  names: (port) => {
    const resolver = new dns.promises.Resolver({ timeout: 20000, tries: 1 });
    resolver.setServers([`127.0.0.1:${port}`]);
    return (q, r) => resolver.resolve4('db.example').catch(() => { r.statusCode = 500; });
  },
  sync: (file, n) => { const fd = fs.openSync(file, 'a'); return () => { for (let i = 0; i < n; i++) { fs.writeSync(fd, 'x'.repeat(512)); fs.fsyncSync(fd); } }; },
  full: (ms) => { const fd = fs.openSync('/dev/full', 'a'); return places(1, async () => { try { fs.writeSync(fd, 'line\n'); } catch { await sleep(ms); } }); },
  heap: (mb, n) => {
    const kept = Array.from({ length: mb * 2000 }, (_, i) => ({ i, s: `${i}-kept` }));
    return () => { for (let i = 0; i < n; i++) kept[(Math.random() * kept.length) | 0] = { i, s: `${i}-made` }; };
  },
  errors: (share) => { let n = 0; return (q, r) => { if ((++n * 0.6180339887) % 1 < share) r.statusCode = 503; }; },
  drops: (share) => { let n = 0; return (q) => { if ((++n * 0.6180339887) % 1 < share) q.socket.destroy(); }; },
  port: (port, ms) => (q) => q.socket.localPort === port ? sleep(ms) : undefined,
  pauses: (every, ms) => { const cell = new Int32Array(new SharedArrayBuffer(4)); setInterval(() => Atomics.wait(cell, 0, 0, ms), every); return () => undefined; },
  collects: (every, ms) => { setInterval(() => { const end = performance.now() + ms; while (performance.now() < end); }, every); return () => undefined; },
  flushes: (file, n, every) => {
    const fd = fs.openSync(file, 'a');
    setInterval(() => { for (let i = 0; i < n; i++) { fs.writeSync(fd, 'x'.repeat(512)); fs.fsyncSync(fd); } }, every);
    return () => undefined;
  },
  hangs_up: (ms) => (q) => { const s = q.socket, idle = performance.now() - (s.since || 1e12); if (idle > ms) s.destroy(); q.once('close', () => { s.since = performance.now(); }); },
};
const stages = it.stages.map(([name, ...words]) => STAGES[name](...words)), body = 'x'.repeat(it.size);
const answer = async (q, r) => {
  for (const stage of stages) { const wait = stage(q, r); if (wait) await wait; if (q.socket.destroyed) return; }
  r.end(body);
};
const tls = it.tls && { key: fs.readFileSync(`${it.tls}/key.pem`), cert: fs.readFileSync(`${it.tls}/cert.pem`) };
for (const port of it.mine) {
  const server = tls ? https.createServer(tls, answer) : http.createServer(answer);
  server.keepAliveTimeout = 60000;
  server.listen(port, '0.0.0.0', 511);
}
"""

PYTHON = r"""
import fcntl, json, os, random, socket, struct, sys, threading, time, zlib
it = json.loads(sys.argv[1])
mine = it['ports'][0]
for ports in it['ports'][1:]:
    if os.fork() == 0:
        mine = ports
        break
own = threading.local()
class Hang(Exception): pass

def sleep(ms): return lambda _: time.sleep(ms / 1000)
def cpu(ms):
    def work(_):
        end = time.thread_time() + ms / 1000
        while time.thread_time() < end: pass
    return work
def places(n, ms):
    free = threading.Semaphore(int(os.environ['POOL']) if n == 'POOL' else n)
    def work(_):
        with free: time.sleep(ms / 1000)
    return work
def gate(port, n, ms):
    pass_ = places(n, ms)
    return lambda c: pass_(c) if c.port == port else None
fields = []
def field(name, value):
    fields.append(b'%s: %s\r\n' % (name.encode(), value.encode()))
    return lambda _: None
def bucket(rate, how):
    lock, state = threading.Lock(), [0.0]
    def work(_):
        with lock:
            now = time.monotonic()
            at = max(state[0], now)
            if how == 'refuse' and at > now + 0.05: return 429
            state[0] = at + 1 / rate
        time.sleep(at - now)
    return work
def ask(host, port, n, how):
    free, kept = threading.Semaphore(n), []
    def work(_):
        with free:
            c = kept.pop() if kept else socket.create_connection((host, port))
            for part in ([b'ab'] if how == 'whole' else [b'a', b'b']): c.send(part)
            c.recv(1)
            kept.append(c)
    return work
def redis(port, rounds, n):
    def work(_):
        if not hasattr(own, 'redis'): own.redis = socket.create_connection(('127.0.0.1', port))
        for _ in range(n):
            own.redis.sendall(b'EVAL "for i=1,%d do end return 1" 0\r\n' % rounds)
            own.redis.recv(64)
    return work
def names(port):
    asked = struct.pack('>HHHHHH', 7, 256, 1, 0, 0, 0) + b'\x02db\x07example\x00' + struct.pack('>HH', 1, 1)
    def work(_):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as c:
            c.settimeout(20)
            c.sendto(asked, ('127.0.0.1', port))
            try: c.recv(512)
            except OSError: return 500
    return work
def sync(name, n):
    fd = os.open(name, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    def work(_):
        for _ in range(n):
            os.write(fd, b'x' * 512)
            os.fsync(fd)
    return work
def file(name, ms):
    def work(_):
        with open(name, 'a') as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            time.sleep(ms / 1000)
    return work
def full(ms):
    fd, lock = os.open('/dev/full', os.O_WRONLY), threading.Lock()
    def work(_):
        with lock:
            try: os.write(fd, b'line')
            except OSError: time.sleep(ms / 1000)
    return work
def chosen(share):
    # In no step with the turns of several servers: multiples of the golden ratio.
    number, lock = [0], threading.Lock()
    def is_one():
        with lock:
            number[0] += 1
            return number[0] * 0.6180339887 % 1 < share
    return is_one
def errors(share):
    is_one = chosen(share)
    return lambda _: 503 if is_one() else None
def drops(share):
    is_one = chosen(share)
    def work(_):
        if is_one(): raise Hang
    return work
def port(which, ms): return lambda c: time.sleep(ms / 1000) if c.port == which else None
def opens():
    kept = []
    return lambda _: kept.append(open('/dev/null'))
def keeps(kb):
    kept = []
    return lambda _: kept.append(os.urandom(kb << 10))
def walks(us):
    state, lock = [0], threading.Lock()
    def work(_):
        with lock: state[0] += 1
        end = time.thread_time() + state[0] * us / 1e6
        while time.thread_time() < end: pass
    return work
def caches(n, kb):
    kept = {}
    def work(_): kept.setdefault(random.randrange(n), os.urandom(kb << 10))
    return work
def hangs_up(ms):
    def work(c):
        if c.idle * 1000 > ms: raise Hang
    return work
def on(which, name, *words):
    inner = globals()[name](*words)
    def work(c):
        if c.port != which: return None
        c.is_done = True
        return inner(c)
    return work
def tries(port, n, ms, times):
    free = threading.Semaphore(n)
    def work(_):
        with free:
            for _ in range(times):
                try: socket.create_connection(('127.0.0.1', port)).close()
                except OSError: time.sleep(ms / 1000)
    return work
def ask_new(host, port):
    def work(_):
        try: c = socket.create_connection((host, port), 5)
        except OSError: return 500
        with c:
            c.sendall(b'ab')
            c.recv(1)
    return work
def itself(n, ms):
    free = threading.Semaphore(n)
    def work(c):
        with free:
            if c.path == b'/inner': return time.sleep(ms / 1000)
            try:
                with socket.create_connection(('edge', 8080), 1) as edge:
                    edge.sendall(b'GET /inner HTTP/1.0\r\nHost: x\r\n\r\n')
                    edge.settimeout(1)
                    return None if edge.recv(65536).startswith(b'HTTP/1.1 200') else 503
            except OSError: return 503
    return work
def batch(n, ms):
    waiting = threading.Semaphore(0)
    def turns():
        begin, turn = time.monotonic(), 0
        while True:
            turn += 1
            time.sleep(max(0, begin + turn * ms / 1000 - time.monotonic()))
            # A client that was not there in this turn does not come twice in the next.
            while waiting.acquire(blocking=False): pass
            waiting.release(n)
    threading.Thread(target=turns, daemon=True).start()
    return lambda _: waiting.acquire() and None
def gzip(kb):
    data = words(kb * 1024)
    return lambda _: zlib.compress(data, 9) and None
def bursts(n, ms):
    is_one, burst = chosen(1 / n), cpu(ms)
    return lambda c: burst(c) if is_one() else None
def drip(n, parts, ms):
    free = threading.Semaphore(n)
    def work(c):
        def send(whole):
            with free:
                part = len(whole) // parts + 1
                for at in range(0, len(whole), part):
                    c.socket.sendall(whole[at:at + part])
                    time.sleep(ms / 1000)
        c.send = send
    return work
def cut(share):
    is_one = chosen(share)
    def work(c):
        def send(whole):
            c.socket.sendall(whole[:-(it['size'] // 2)])
            raise Hang
        if is_one(): c.send = send
    return work
def garbled(share):
    is_one = chosen(share)
    def work(c):
        if is_one(): c.head += '\x01\x02: x\r\n'
    return work
def fat(share, size):
    is_one = chosen(share)
    def work(c):
        if is_one(): c.head += 'Set-Cookie: cart=%s\r\n' % ('x' * size)
    return work
def words(size):
    rng = random.Random(1)
    return ' '.join('%x' % rng.getrandbits(20) for _ in range(size // 5)).encode()[:size]

stages = [globals()[name](*stage) for name, *stage in it['stages']]
body = it['body'].encode() if 'body' in it else words(it['size']) if it.get('is_text') else b'x' * it['size']
WORDS = {200: b'OK', 429: b'Too Many Requests', 500: b'Internal Server Error', 503: b'Service Unavailable'}

class Client:
    def __init__(self, socket, port): self.socket, self.port, self.idle = socket, port, 0.0
    def serve(self):
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head, since = b'', None
        try:
            while True:
                while b'\r\n\r\n' not in head:
                    more = self.socket.recv(65536)
                    if not more: return
                    head += more
                one, _, head = head.partition(b'\r\n\r\n')
                for line in one.lower().split(b'\r\n'):
                    if line.startswith(b'content-length:'):
                        left = int(line.split(b':')[1]) - len(head)
                        while left > 0: left -= len(self.socket.recv(65536)) or left
                        head = b''
                self.idle = time.monotonic() - since if since else 0.0
                self.path, self.head, self.send, self.is_done = one.split(b' ')[1], it.get('head', ''), None, False
                status = 200
                for stage in stages:
                    status = stage(self) or status
                    if self.is_done: break
                is_kept = b'HTTP/1.0' not in one and b'\r\nconnection: close' not in one.lower()
                (self.send or self.socket.sendall)(b'HTTP/1.1 %d %s\r\nContent-Length: %d\r\n%s%sConnection: %s\r\n\r\n' % (status, WORDS[status],
                    len(body), self.head.encode(), b''.join(fields), b'keep-alive' if is_kept else b'close') + body)
                since = time.monotonic()
                if not is_kept: return
        except (OSError, Hang): pass
        finally: self.socket.close()

places_ = threading.Semaphore(it.get('workers', 1 << 20))
def serve(c, port):
    try: Client(c, port).serve()
    finally: places_.release()
def listen(port):
    server = socket.create_server(('0.0.0.0', port), backlog=511)
    while True:
        places_.acquire()
        try: c, _ = server.accept()
        except OSError:
            # No descriptor: who waits is taken when there is one.
            places_.release()
            time.sleep(0.05)
            continue
        threading.Thread(target=serve, args=(c, port), daemon=True).start()

for port_ in mine[1:]: threading.Thread(target=listen, args=(port_,), daemon=True).start()
listen(mine[0])
"""

# `backend.py PORT PLACES MS`: one byte for each two; so many at once, each for so long.
BACKEND = r"""
import socket, sys, threading, time
port, places, ms = int(sys.argv[1]), threading.Semaphore(int(sys.argv[2])), float(sys.argv[3])
def serve(c):
    read = 0
    while True:
        more = c.recv(64)
        if not more: return
        read += len(more)
        if read < 2: continue
        read -= 2
        with places: time.sleep(ms / 1000)
        c.sendall(b'y')
server = socket.create_server(('0.0.0.0', port), backlog=511)
print('ready', flush=True)
while True:
    c, _ = server.accept()
    threading.Thread(target=serve, args=(c,), daemon=True).start()
"""

# `backend.py PORT MS`: one byte for each two; one thread, which computes for each.
COMPUTES = r"""
import select, socket, sys, time
port, seconds = int(sys.argv[1]), float(sys.argv[2]) / 1000
server = socket.create_server(('0.0.0.0', port), backlog=511)
print('ready', flush=True)
known = [server]
while True:
    for c in select.select(known, [], [])[0]:
        if c is server:
            known.append(server.accept()[0])
            continue
        if not c.recv(2):
            known.remove(c)
            continue
        end = time.thread_time() + seconds
        while time.thread_time() < end: pass
        c.sendall(b'y')
"""

# `reader.py FILE KB`: reads so many kB a second from a pipe that it makes.
READER = r"""
import os, sys, time
if not os.path.exists(sys.argv[1]): os.mkfifo(sys.argv[1])
os.chmod(sys.argv[1], 0o666)
pipe = os.open(sys.argv[1], os.O_RDWR)
print('ready', flush=True)
while True:
    os.read(pipe, int(sys.argv[2]) * 100)
    time.sleep(0.1)
"""

# `slow.py HOST PORT N`: N connections, each of which sends a byte of a request twice a second.
SLOW_CLIENTS = r"""
import socket, sys, time
host, port, many = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
known = []
while True:
    while len(known) < many:
        try:
            known.append(socket.create_connection((host, port), 1))
            # Before its first byte a connection counts as idle, and the edge may close it for another.
            known[-1].sendall(b'G')
        except OSError: break
    time.sleep(0.5)
    for c in known[:]:
        try: c.sendall(b'G')
        except OSError: known.remove(c)
"""

# `hangs.py PORT`: listens, and takes no connection; its queue is full.
HANGS = r"""
import socket, sys, time
server = socket.create_server(('0.0.0.0', int(sys.argv[1])), backlog=0)
mine = [socket.create_connection(('127.0.0.1', int(sys.argv[1])))]
print('ready', flush=True)
while True: time.sleep(60)
"""

# `names.py PORT MS`: an address for each name, one question after the other.
NAMES = r"""
import socket, struct, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
s.bind(('127.0.0.1', int(sys.argv[1])))
print('ready', flush=True)
while True:
    asked, at = s.recvfrom(512)
    time.sleep(float(sys.argv[2]) / 1000)
    question = asked[12:asked.index(b'\0', 12) + 5]
    s.sendto(asked[:2] + struct.pack('>HHHHH', 0x8180, 1, 1, 0, 0) + question + b'\xc0\x0c' + struct.pack('>HHIH', 1, 1, 0, 4) + bytes([10, 0, 0, 9]), at)
"""

# `names.py PORT MS`: as NAMES, but all questions at once; no address of the other family.
NAMES_AT_ONCE = r"""
import socket, struct, sys, threading, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('127.0.0.1', int(sys.argv[1])))
print('ready', flush=True)
def answer(asked, at):
    time.sleep(float(sys.argv[2]) / 1000)
    end = asked.index(b'\0', 12) + 5
    is_4 = asked[end - 4:end - 2] == b'\0\1'
    address = b'\xc0\x0c' + struct.pack('>HHIH', 1, 1, 0, 4) + bytes([10, 0, 0, 9])
    s.sendto(asked[:2] + struct.pack('>HHHHH', 0x8180, 1, is_4, 0, 0) + asked[12:end] + address * is_4, at)
while True: threading.Thread(target=answer, args=s.recvfrom(512), daemon=True).start()
"""

# Between the edge and the application: so many at once, the others wait.
HAPROXY = """
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  timeout queue 60s
frontend front
  bind 0.0.0.0:3000
  default_backend app
backend app
  server app 127.0.0.1:3100 maxconn @PLACES@
"""
