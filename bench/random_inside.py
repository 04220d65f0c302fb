"""Faults inside the edge, PHP-FPM, MariaDB, Redis and Node.js' threads, and sound stacks of these programs."""

import random_apps
from random_named import cached
from random_stack import Draft, Truth
from stacks import MYSQL, ONE_CPU

# A pool of PHP-FPM, with a status page of its own and a slow log.
FPM = """
[global]
error_log = /dev/stderr
[www]
user = root
group = root
listen = 0.0.0.0:3000
listen.backlog = 511
pm = static
pm.max_children = @WORKERS@
pm.status_path = /status
pm.status_listen = 0.0.0.0:9001
slowlog = @DIR@/slow.log
request_slowlog_timeout = 1s
"""
PHP = "include /etc/nginx/fastcgi_params; fastcgi_param SCRIPT_FILENAME @DIR@$fastcgi_script_name; fastcgi_pass app;"
# `redis.cjs PORT MARK COMMAND…`: one connection, one command for each request. An answer begins with the mark.
REDIS = """
const net = require('net'), http = require('http');
const [port, mark, ...words] = process.argv.slice(2);
const waiting = [], redis = net.connect(Number(port), '127.0.0.1');
const send = (all) => redis.write(`*${all.length}\\r\\n` + all.map((w) => `$${Buffer.byteLength(w)}\\r\\n${w}\\r\\n`).join(''));
let isReady = false;
redis.on('data', (d) => {
  if (!isReady) { isReady = d.toString().startsWith('+'); return; }
  for (const c of d.toString()) if (c === mark) waiting.shift()();
});
send(['DEBUG', 'POPULATE', '100000']);
http.createServer((q, r) => { waiting.push(() => r.end('x')); send(words); }).listen(3000, '0.0.0.0', 511);
"""
# Rows that no index finds.
SCAN = """<?php
$db = new mysqli('localhost', 'root', '', 'test', 0, getenv('SOCKET'));
echo $db->query("SELECT COUNT(*) FROM orders WHERE customer = " . rand(1, 900))->fetch_row()[0];
"""
ONE_ROW = """<?php
$db = new mysqli('localhost', 'root', '', 'test', 0, getenv('SOCKET'));
echo $db->query("SELECT n FROM t WHERE id = 1")->fetch_row()[0];
"""


def alone(draft: Draft) -> None:
    """One server, whose program is not drawn."""
    draft.servers, draft.is_spread, draft.stages = 1, False, []


# --- the edge

def gate(draft: Draft) -> None:
    """Another port of the application, at which few requests at once have a place."""
    draft.servers, draft.is_spread = 1, False
    few, held = draft.rng.randint(2, 5), draft.between(25, 60)
    draft.app["ports"] = [[3000, 3001]]
    draft.stages = [["gate", 3001, few, held]]
    draft.capacity, draft.inside = few / held * 1000, few


def auth_slow(draft: Draft) -> None:
    gate(draft)
    draft.http += " upstream check { server app:3001; keepalive 64; }"
    draft.location += "auth_request /check; "
    draft.extra_locations += f' location = /check {{ internal; proxy_pass http://check/; proxy_pass_request_body off; proxy_set_header Content-Length ""; {draft.keep} }}'
    draft.over("closed rate")
    draft.rules("B70")


def mirror_slow(draft: Draft) -> None:
    """nginx takes the next request of a connection only when the copy of the last one is answered."""
    gate(draft)
    draft.http += " upstream copy { server app:3001; keepalive 64; }"
    draft.location += "mirror /copy; "
    draft.extra_locations += f" location = /copy {{ internal; proxy_pass http://copy/; {draft.keep} }}"
    draft.over("closed")
    draft.rules("B71")


def rate_field(draft: Draft) -> None:
    """The application asks for slow answers by X-Accel-Limit-Rate."""
    alone(draft)
    draft.size, connections, seconds = 65536, draft.one(8, 16), draft.between(2.2, 3.2)
    draft.stages = [["field", "X-Accel-Limit-Rate", str(round(draft.size / seconds))]]
    draft.capacity = connections / (seconds - 1)
    draft.load = ["-R", str(round(1.6 * draft.capacity)), "-c", str(connections)]
    draft.rules("P03", is_policy=True)


# --- Node.js

def libuv_pool(draft: Draft) -> None:
    """Lookups of names, of which Node.js has two at once, however many requests there are."""
    alone(draft)
    draft.program = "node"
    each = draft.between(30, 60)
    draft.files["names.py"] = random_apps.NAMES_AT_ONCE
    draft.files["resolv.conf"] = "nameserver 127.0.0.1\noptions timeout:20 attempts:1\n"
    draft.processes += [
        {"name": "resolv", "host": "origin", "is_step": True, "argv": ["mount", "--bind", "@DIR@/resolv.conf", "/etc/resolv.conf"]},
        {"name": "names", "host": "origin", "argv": ["python3", "@DIR@/names.py", "53", str(each)], "ready": {"Prints": "ready"}}]
    draft.stages = [["lookup"]]
    # libuv gives half of its four threads to slow work.
    draft.capacity, draft.inside = 2 / each * 1000, 2
    draft.over("closed rate")
    draft.rules("B50")


# --- PHP-FPM

def fpm(draft: Draft, workers: int, ms: float) -> None:
    alone(draft)
    draft.files["slow.php"] = f"<?php usleep({round(ms * 1000)}); echo 'x';"
    draft.files["fast.php"] = "<?php echo 'x';"
    draft.origin = ("php-fpm", FPM.replace("@WORKERS@", str(workers)), "")
    draft.passing, draft.path = PHP, "/slow.php"
    # The page is on another port than the pool, so the pool is not asked.
    draft.flags += ["--probe", "php-fpm=10.99.255.10:9001"]


def fpm_script(draft: Draft) -> None:
    few, held = draft.rng.randint(2, 5), draft.between(30, 60)
    fpm(draft, few, held)
    draft.capacity, draft.inside = few / held * 1000, few
    draft.over("closed rate")
    draft.rules("B22")


def healthy_fpm(draft: Draft) -> None:
    fpm(draft, 8, draft.between(3, 15))
    draft.under()
    draft.truth = Truth(is_healthy=True)


# --- MariaDB

def mysql(draft: Draft, source: str, words: str = "") -> None:
    """An application of PHP with eight processes, and a database."""
    alone(draft)
    draft.origin = ("mysql", source, words)


def mysql_rows(draft: Draft) -> None:
    """All requests change one row."""
    mysql(draft, MYSQL)
    draft.load = ["-c", "8"]
    draft.rules("B24")


def mysql_scan(draft: Draft) -> None:
    """A query without an index, with or without the database's own times of queries."""
    mysql(draft, SCAN, draft.one("", "--performance-schema=ON"))
    draft.flags += ONE_CPU
    draft.load = ["-c", "8"]
    draft.rules("B24", "B20")


def healthy_mysql(draft: Draft) -> None:
    mysql(draft, ONE_ROW)
    draft.load = ["-R", str(draft.between(20, 40)), "-c", "16"]
    draft.truth = Truth(is_healthy=True)


# --- Redis

def redis(draft: Draft, mark: str, words: str) -> None:
    """An application with one connection to a Redis of 100000 keys."""
    alone(draft)
    draft.processes.append({"name": "redis", "host": "origin", "ready": {"Prints": "Ready to accept"}, "cpus": [1],
                            "argv": ["redis-server", "--port", "6379", "--bind", "0.0.0.0", "--protected-mode", "no", "--save", "", "--enable-debug-command", "yes"]})
    draft.flags += ONE_CPU
    draft.origin = ("node", REDIS, f"6379 '{mark}' {words}")
    draft.inside = 4


def redis_keys(draft: Draft) -> None:
    redis(draft, "*", "KEYS 'nothing:*'")
    draft.over("closed")
    draft.rules("B25")


def redis_script(draft: Draft) -> None:
    redis(draft, ":", f"EVAL 'for i=1,{draft.one(300_000, 600_000)} do end return 1' 0")
    draft.over("closed")
    draft.rules("B25")


def healthy_redis(draft: Draft) -> None:
    redis(draft, "$", "GET key:1")
    draft.load = ["-R", str(draft.between(40, 90)), "-c", "16"]
    draft.truth = Truth(is_healthy=True)


# --- the cache

def cache_lock(draft: Draft) -> None:
    """A key of each second: whoever comes while it is fetched waits; for nginx in steps of half a second."""
    cached(draft)
    draft.http += " map $msec $second { ~^(?<s>[0-9]+) $s; }"
    draft.location += "proxy_cache_lock on; proxy_cache_key $uri$second;"
    draft.stages = [["sleep", draft.one(300, 400)]]
    draft.load = ["-R", str(draft.one(150, 200)), "-c", "100"]
    # All are answered, only late.
    draft.rules("P06", is_policy=True, is_waste=True)
