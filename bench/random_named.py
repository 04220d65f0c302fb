"""Sound stacks, and faults that a rule was written for: what is short, the capacity that follows, a load, and what may be said."""

import random_apps
from random_stack import Draft, Truth
from stacks import BURN, BURNER, CACHE, HEAP, LEAK, ONE_CPU, PAGES, POOL, SYNC, WORK, WORKED

# What a pattern costs the edge is in a path.
WORK_ONLY = WORK.split(" proxy_pass")[0]


def healthy(draft: Draft) -> None:
    draft.truth = Truth(is_healthy=True)
    draft.under()


def healthy_far(draft: Draft) -> None:
    """A long way to the application is a latency, and no capacity."""
    late = 1000 * draft.rng.randint(2, 12)
    draft.host("origin", link={"to": {"delay_us": late}, "from": {"delay_us": late}})
    draft.truth = Truth(is_healthy=True)
    draft.under()


def healthy_loop(draft: Draft) -> None:
    """A closed loop of a few connections, of which more would give more."""
    draft.stages = [["sleep", draft.between(25, 60)]]
    draft.load = ["-c", str(draft.one(4, 6, 8))]
    draft.truth = Truth(is_healthy=True)
    draft.notes.append("load closed")


def healthy_limited(draft: Draft) -> None:
    """A pool and a quota that are large enough."""
    draft.stages = [["places", 12, 40]]
    draft.origin_limit(cpus=0.7)
    draft.capacity = 300.0 * draft.local()
    draft.load = ["-R", str(draft.between(40, 80)), "-c", "32"]
    draft.truth = Truth(is_healthy=True)
    draft.notes.append("load rate")


def healthy_full_disk(draft: Draft) -> None:
    """An edge that cannot write its log serves all the same."""
    draft.http += " access_log /dev/full;"
    healthy(draft)


# --- the edge's CPU

def computing(draft: Draft) -> None:
    draft.location, draft.path = WORK_ONLY + " ", WORKED
    draft.main, draft.is_tls, draft.stages = "worker_processes 1;", False, []
    draft.load = ["-c", "8"]


def edge_cpu(draft: Draft) -> None:
    computing(draft)
    draft.rules("B19", "B12")


def edge_one_worker(draft: Draft) -> None:
    computing(draft)
    draft.flags += ["--edge-cpus", "0-1"]
    draft.rules("B12")


def edge_workers(draft: Draft) -> None:
    computing(draft)
    draft.main, draft.load = "worker_processes 8;", ["-c", "32"]
    draft.rules("B14", "B19")


def edge_quota(draft: Draft) -> None:
    draft.flags += ["--edge-quota", str(draft.one(0.05, 0.08, 0.1))]
    draft.load = ["-c", str(draft.one(16, 32))]
    draft.rules("B15")


def edge_neighbour(draft: Draft) -> None:
    computing(draft)
    draft.processes.append(BURNER)
    draft.rules("B18", "B19")


def edge_handshakes(draft: Draft) -> None:
    draft.is_tls, draft.certificate = True, "rsa"
    draft.server += " ssl_session_tickets off; keepalive_timeout 0;"
    draft.load = ["-c", "16"]
    draft.rules("B17", "B19")


# --- limits of the edge

def dummy(draft: Draft, path: str) -> None:
    """A dummy origin instead of an application: the path says how long it takes."""
    draft.program, draft.servers, draft.is_spread, draft.path = "weir", draft.one(1, 2), False, path


def ports(draft: Draft) -> None:
    dummy(draft, "/1k")
    draft.keepalive, draft.is_tls = 0, False
    few = draft.one(100, 200)
    draft.host("edge", sysctls=[["net.ipv4.ip_local_port_range", f"50000 {50000 + few - 1}"]])
    draft.load = ["-R", str(draft.one(200, 300)), "-c", "16"]
    draft.rules("B01")


def slots(draft: Draft) -> None:
    few = draft.one(32, 48, 64)
    dummy(draft, f"/1k?delay={draft.one(500, 1000)}ms")
    draft.main, draft.events, draft.is_tls = "worker_processes 1;", f"worker_connections {few};", False
    draft.load = ["-c", str(round(few * draft.between(1.5, 2)))]
    draft.rules("B05", "B06")


def recycled(draft: Draft) -> None:
    dummy(draft, "/1k")
    draft.main, draft.events, draft.is_tls = "worker_processes 1;", "worker_connections 64;", False
    draft.load = ["-R", str(draft.one(150, 200)), "-c", "100"]
    draft.rules("B06", "B05", is_waste=True)


def files(draft: Draft) -> None:
    few = draft.one(30, 40, 50)
    dummy(draft, f"/1k?delay={draft.one(500, 1000)}ms")
    draft.main, draft.is_tls = f"worker_processes 1; worker_rlimit_nofile {few};", False
    draft.load = ["-c", str(few * 2)]
    draft.rules("B07")


def backlog(draft: Draft) -> None:
    dummy(draft, "/1k")
    draft.backlog, draft.is_tls, draft.warmup = " backlog=8", False, "0"
    draft.actions = [{"at_ms": 0, "deed": {"Stop": "edge"}}, {"at_ms": 1200, "deed": {"Continue": "edge"}}]
    draft.load = ["-c", "80"]
    draft.rules("B10", "B11")


# --- policies

def policy_req(draft: Draft) -> None:
    draft.capacity = round(draft.draw_capacity())
    draft.http += f" limit_req_zone $binary_remote_addr zone=policy:1m rate={draft.capacity}r/s;"
    draft.location += draft.one("limit_req zone=policy;", "limit_req zone=policy burst=5 nodelay;", "limit_req zone=policy burst=20;",
                                "limit_req zone=policy burst=5 nodelay; limit_req_status 429;")
    draft.inside = 5
    draft.over("rate")
    draft.rules(is_policy=True)


def policy_conn(draft: Draft) -> None:
    few, held = draft.rng.randint(3, 8), draft.between(40, 80)
    draft.stages, draft.capacity, draft.inside = [["sleep", held]], few / held * 1000, few
    draft.http += " limit_conn_zone $binary_remote_addr zone=policy:1m;"
    draft.location += f"limit_conn policy {few};" + draft.one("", " limit_conn_status 429;")
    draft.over("rate")
    draft.rules(is_policy=True)


def policy_rate(draft: Draft) -> None:
    draft.size, connections, seconds = 65536, draft.one(8, 16), draft.between(2.2, 3.2)
    draft.location += f"limit_rate {round(draft.size / seconds)};"
    # Each connection has so much; more of them would have more. nginx sends the bytes of the first second at once.
    draft.capacity = connections / (seconds - 1)
    draft.load = ["-R", str(round(1.6 * draft.capacity)), "-c", str(connections)]
    draft.rules(is_policy=True)


def policy_max_conns(draft: Draft) -> None:
    few, held = draft.rng.randint(3, 6), draft.between(40, 80)
    draft.next_to, draft.stages = f" max_conns={few}", [["sleep", held]]
    # nginx counts for each worker unless there is a zone.
    draft.main = "worker_processes 1;"
    draft.capacity, draft.inside = draft.servers * few / held * 1000, draft.servers * few
    draft.over("rate")
    draft.rules(is_policy=True)


# --- the application's CPU

def burning(draft: Draft) -> float:
    """Milliseconds of CPU for each request, on a CPU that neither the edge nor the load is on."""
    draft.flags += ONE_CPU
    draft.capacity = draft.draw_capacity()
    return round(1000 / draft.capacity, 1)


def app_thread(draft: Draft) -> None:
    draft.program, draft.is_spread = "node", False
    draft.stages = [["cpu", burning(draft)]]
    draft.over()
    draft.rules("B21", "B20")


def app_interpreter(draft: Draft) -> None:
    """Threads of which one at a time computes."""
    draft.program, draft.is_spread = "python3", False
    draft.stages = [["cpu", burning(draft)]]
    draft.over()
    draft.rules("B21", "B20")


def app_cpus(draft: Draft) -> None:
    draft.flags += ONE_CPU
    draft.capacity = draft.draw_capacity()
    draft.servers, draft.origin = 1, ("node", BURN, f"{1000 / draft.capacity:.1f} 3")
    # Its time is of the clock, of which three have a third each: as if there were three CPUs.
    draft.capacity = None
    draft.inside = 6
    draft.over("closed")
    draft.rules("B20")


def app_quota(draft: Draft) -> None:
    quota = draft.one(0.15, 0.25, 0.35)
    draft.flags += ONE_CPU
    draft.capacity = draft.draw_capacity() * 0.7
    draft.stages = [["cpu", round(1000 * quota / draft.capacity, 2)]]
    draft.origin_limit(cpus=quota)
    draft.over()
    draft.rules("B15")


def app_neighbour(draft: Draft) -> None:
    draft.program, draft.is_spread = "node", False
    draft.stages = [["cpu", burning(draft)]]
    draft.capacity = None
    draft.processes.append({**BURNER, "host": "origin", "cpus": [1]})
    draft.over("closed")
    draft.rules("B18", "B20", "B21")


def app_blocked(draft: Draft) -> None:
    """An event loop that waits without letting others go on, and is asked for its delay."""
    draft.servers, draft.origin = 1, ("node", SYNC, "")
    draft.flags += ["--probe", "node"]
    draft.load = ["-c", "16"]
    draft.capacity = 16.7
    draft.rules("B21", "B22")


def app_heap(draft: Draft) -> None:
    """A heap near its end: collecting is what the CPU does."""
    draft.flags += ONE_CPU
    draft.program, draft.is_spread = "node --max-old-space-size=80", False
    draft.stages = [["heap", 250, draft.one(4000, 8000)]]
    draft.over("closed")
    draft.rules("B43", "B21", "B20")


def app_heap_java(draft: Draft) -> None:
    draft.servers, draft.origin = 1, ("java", HEAP, "")
    draft.load = ["-c", "8"]
    draft.rules("B43")


def app_memory(draft: Draft) -> None:
    draft.servers, draft.origin = 1, ("python3", PAGES, "")
    draft.origin_limit(memory_mb=40)
    draft.load = ["-c", "8"]
    draft.rules("B43", "B44")


def app_killed(draft: Draft) -> None:
    draft.servers, draft.origin, draft.warmup = 1, ("node", LEAK, ""), "0"
    draft.origin_limit(memory_mb=100)
    draft.load = ["-R", "250", "-c", "8"]
    draft.rules("B43")


# --- pools, locks, and what is behind the application

def pool(draft: Draft) -> tuple[int, float]:
    """Places, and how long each is held, of all processes together the capacity."""
    few = draft.rng.randint(2, 6)
    held = draft.between(20, 60)
    draft.capacity, draft.inside = draft.local() * few / held * 1000, draft.local() * few
    return few, held


def pool_told(draft: Draft) -> None:
    """A pool whose size the command says."""
    draft.is_spread = False
    few, held = pool(draft)
    draft.stages.append(["places", "POOL", held])
    draft.flags += ["--pool", f"origin0:POOL={few}"]
    draft.over()
    draft.rules("B23")


def pool_deaf(draft: Draft) -> None:
    """One connection at a time: the others wait to be accepted."""
    draft.servers, draft.origin, draft.capacity = 1, ("python3", POOL, ""), 50.0
    draft.inside = 4
    draft.over("closed rate")
    draft.rules("B22")


def backend(draft: Draft, how: str = "whole") -> None:
    """A server behind the application, on a host of its own, with so many places."""
    few = draft.rng.randint(1, 4)
    held = draft.between(10, 30)
    draft.files["backend.py"] = random_apps.BACKEND
    draft.host("db")
    draft.processes.append({"name": "db", "host": "db", "argv": ["python3", "@DIR@/backend.py", "7000", str(few), str(held)], "ready": {"Prints": "ready"}})
    draft.stages.append(["ask", "db", 7000, 64, how])
    draft.capacity, draft.inside = few / held * 1000, few


def shared_backend(draft: Draft) -> None:
    draft.servers, draft.is_spread = draft.one(2, 3), True
    backend(draft)
    draft.over()
    draft.rules("B26")


def redis_full(draft: Draft) -> None:
    draft.servers, draft.is_spread = 1, False
    draft.processes.append({"name": "redis", "host": "origin", "argv": ["redis-server", "--port", "6379", "--bind", "127.0.0.1", "--save", ""],
                            "ready": {"Prints": "Ready to accept"}, "cpus": [1]})
    draft.flags += ONE_CPU
    draft.stages.append(["redis", 6379, draft.one(200_000, 400_000), 1])
    draft.inside = 4
    draft.over("closed")
    # On the loopback of the application's host nobody reaches it, and its thread is what can be seen.
    draft.rules("B25", "B21")


def disk(draft: Draft) -> None:
    """Appends that wait for the disk, eight for each request."""
    draft.stages.append(["sync", "@DIR@/log", 8])
    draft.inside = 4
    draft.over("closed")
    draft.rules("B44")


# --- the way to the upstream

def retries(draft: Draft) -> None:
    draft.servers, draft.is_spread = 3, False
    draft.next_to = " max_fails=0"
    draft.location += "proxy_next_upstream error timeout http_503;"
    draft.stages.append(["errors", 0.5])
    draft.load = ["-R", str(draft.one(60, 100)), "-c", "16"]
    # Of three tries one may do: clients need not see that any failed.
    draft.rules("B28", is_waste=True)


def dead_server(draft: Draft) -> None:
    draft.servers, draft.is_spread, draft.next_to = draft.one(2, 3), False, " max_fails=0"
    draft.app["ports"] = [[3000 + number for number in range(draft.servers - 1)]]
    draft.processes.append({"name": "origin0", "ready": "Started"})
    draft.location += "proxy_next_upstream off;"
    draft.load = ["-R", str(draft.between(60, 100)), "-c", "16"]
    draft.rules("B27")


def slow_server(draft: Draft) -> None:
    draft.servers, draft.is_spread = draft.one(2, 3), False
    slow = draft.one(250, 400)
    draft.stages.append(["port", 3001, slow])
    # Of so many connections soon all wait for the slow one.
    draft.load = ["-c", "16"]
    draft.rules("B27")


def inert(draft: Draft) -> None:
    draft.keep, draft.keepalive = "", 32
    draft.rules("B02", is_waste=True)
    draft.load = ["-R", "80", "-c", "16"]


def no_pool(draft: Draft) -> None:
    draft.keepalive = 0
    draft.rules("B03", is_waste=True)
    draft.load = ["-R", "80", "-c", "16"]


def hangs_up(draft: Draft) -> None:
    """Connections that were idle for a moment are ended as the next request comes: the race of two timeouts, made sure."""
    draft.servers, draft.is_spread = 1, False
    draft.stages.insert(0, ["hangs_up", 4])
    draft.keepalive = 32
    draft.scripted(40, "post: {url: @PATH@, json: {a: 1}}")
    draft.rules("B04")


def drops(draft: Draft) -> None:
    """A process that ends in the middle of its work: its connection ends without an answer. Over a kept connection both edges send a
    GET again, and weir keeps connections by itself."""
    draft.servers, draft.is_spread = 1, False
    draft.stages.append(["drops", draft.one(0.1, 0.25)])
    draft.keepalive = 0
    draft.load = ["-R", str(draft.between(60, 100)), "-c", "16"]
    draft.rules("B63")


def servers_out(draft: Draft) -> None:
    """One answer of ten is a 503, and each takes its server out of use for ten seconds."""
    draft.servers, draft.is_spread, draft.main = draft.one(2, 3), False, "worker_processes 1;"
    draft.location += "proxy_next_upstream error timeout http_503;"
    draft.stages.append(["errors", draft.one(0.1, 0.15)])
    draft.load = ["-R", str(draft.between(60, 100)), "-c", "16"]
    draft.rules("P10", is_policy=True)


def check_fails(draft: Draft) -> None:
    """A health check that asks where nobody listens takes all servers out of use."""
    draft.upstream = "zone app 256k; " + " ".join(f"server app:{3000 + number};" for number in range(draft.servers)) + " keepalive 32;"
    draft.location += f"health_check interval={draft.one(200, 500)}ms port=3998;"
    draft.load = ["-R", str(draft.between(60, 100)), "-c", "16"]
    draft.rules("P10", is_policy=True)


def nobody(draft: Draft) -> None:
    """The upstream names ports at which nobody listens."""
    draft.upstream = "server app:3990; " + draft.one("", "server app:3991; ") + "keepalive 32;"
    draft.processes.append({"name": "origin0", "ready": "Started"})
    draft.load = ["-R", str(draft.between(60, 100)), "-c", "16"]
    draft.rules("B64")


def uploads(draft: Draft) -> None:
    """Bodies of requests fill the link of the clients."""
    rate, size = draft.between(30, 60), 60000
    draft.is_tls, draft.keepalive = False, 64
    draft.http += " client_body_buffer_size 128k;"
    draft.host("client", rate_kbit=round(0.6 * rate * size * 8 / 1000))
    draft.scripted(rate, f"post: {{url: @PATH@, body: '{'x' * size}'}}")
    draft.rules("B34")


def late(draft: Draft) -> None:
    draft.stages = [["sleep", draft.one(1200, 1500)]]
    draft.location += "proxy_read_timeout 400ms;"
    # Counted as failures, they take all servers out after one each; or not.
    draft.next_to = draft.one("", " max_fails=0")
    draft.load = ["-R", "20", "-c", "32"]
    # Either names the time that runs out.
    draft.rules("B42", "B39")


def localhost(draft: Draft) -> None:
    dummy(draft, "/1k")
    draft.servers = 1
    draft.upstream = "server localhost:3000 max_fails=0; keepalive 8;"
    draft.names = [["localhost", "::1"]]
    draft.load = ["-R", "80", "-c", "8"]
    # A try that is refused is sent to the other address: clients need not see it.
    draft.rules("B45", is_waste=True)


def link(draft: Draft, host: str) -> None:
    draft.size, draft.keepalive = 65536, 64
    draft.capacity = draft.draw_capacity() * 0.7
    # Heads, acknowledgements and frames are a twentieth beside the body.
    draft.host(host, rate_kbit=round(draft.capacity * draft.size * 1.06 * 8 / 1000))
    draft.inside = 4
    draft.over("closed rate")
    draft.rules("B34")


# --- the cache

def cached(draft: Draft) -> None:
    draft.http += " " + CACHE
    draft.servers, draft.is_spread, draft.is_tls = draft.one(1, 2), False, False


def stampede(draft: Draft) -> None:
    cached(draft)
    draft.location += "proxy_cache_lock off;"
    draft.stages = [["sleep", 300]]
    draft.load = ["-R", str(draft.one(150, 250)), "-c", "60"]
    draft.rules("B29", is_waste=True)


def key_differs(draft: Draft) -> None:
    """A key that no two requests have in common."""
    cached(draft)
    dummy(draft, "/1k")
    draft.location += f"proxy_cache_key $uri{draft.one('$request_id', '$msec', '$connection$connection_requests')};"
    draft.load = ["-R", "120", "-c", "16"]
    draft.rules("B31", is_waste=True)


def not_kept(draft: Draft) -> None:
    cached(draft)
    dummy(draft, "/1k?header=Set-Cookie:a=b")
    draft.load = ["-R", "120", "-c", "16"]
    draft.rules("B31", is_waste=True)
