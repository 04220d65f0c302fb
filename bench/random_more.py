"""More faults of services, most without a rule: written from what breaks in services, not from the table of rules."""

import random_apps
from random_named import dummy
from random_stack import Draft, Truth
from stacks import NAMES, ONE_CPU

# Another port of the application: what stands behind a second location.
SECOND = 3009


def alone(draft: Draft, program: str = "python3") -> None:
    """One application, one server."""
    draft.program, draft.servers, draft.is_spread = program, 1, False


def second(draft: Draft, *stage: object) -> None:
    """The application has a stage of its own on a second port."""
    alone(draft)
    draft.app["ports"] = [[3000, SECOND]]
    draft.stages.insert(0, ["on", SECOND, *stage])
    draft.http += f" upstream second {{ server app:{SECOND}; keepalive 64; }}"


def rate(draft: Draft) -> None:
    """A rate that nothing but the fault has trouble with."""
    draft.load = ["-R", str(draft.between(60, 100)), "-c", "16"]


# --- inside the application

def retry_loop(draft: Draft) -> None:
    """Workers that ask a server that is gone again and again, and sleep in between."""
    alone(draft)
    few, pause, times = draft.rng.randint(3, 8), draft.between(8, 15), draft.rng.randint(2, 4)
    draft.stages.append(["tries", 3999, few, pause, times])
    draft.capacity, draft.inside = few / (pause * times) * 1000, few
    draft.over()
    draft.unnamed()


def own_ports(draft: Draft) -> None:
    """A connection to the server behind the application for each request, until its host has no port left."""
    alone(draft)
    draft.files["backend.py"] = random_apps.BACKEND
    draft.host("db")
    draft.host("origin", sysctls=[["net.ipv4.ip_local_port_range", "50000 50079"]])
    draft.processes.append({"name": "db", "host": "db", "argv": ["python3", "@DIR@/backend.py", "7000", "64", "1"], "ready": {"Prints": "ready"}})
    draft.stages = [["ask_new", "db", 7000]]
    rate(draft)
    # That the application answers 500 is all that the edge sees.
    draft.unnamed("P08")


def one_connection(draft: Draft) -> None:
    """A single connection to a server that could do more at once: each request waits for all before it."""
    alone(draft, draft.program)
    held = draft.between(6, 16)
    draft.files["backend.py"] = random_apps.BACKEND
    draft.host("db")
    draft.processes.append({"name": "db", "host": "db", "argv": ["python3", "@DIR@/backend.py", "7000", "64", str(held)], "ready": {"Prints": "ready"}})
    draft.stages.append(["ask", "db", 7000, 1, "whole"])
    draft.capacity, draft.inside = 1000 / held, 2
    draft.over()
    draft.unnamed()


def calls_itself(draft: Draft) -> None:
    """Workers that ask their own service over the edge: with all of them at it, nobody is left to answer."""
    alone(draft)
    draft.is_tls = False
    few = draft.rng.randint(3, 6)
    draft.stages = [["itself", few, draft.between(5, 15)]]
    draft.load = ["-c", str(4 * few)]
    draft.unnamed("P08")


def batches(draft: Draft) -> None:
    """Requests that go on a few at a time, at a fixed pace."""
    alone(draft)
    many, every = draft.rng.randint(4, 10), draft.between(60, 120)
    draft.stages.append(["batch", many, every])
    draft.capacity, draft.inside = many / every * 1000, many
    draft.over("closed rate")
    draft.unnamed()


def drips(draft: Draft) -> None:
    """Bodies that come in pieces, a few of them at once."""
    alone(draft)
    few, parts, pause = draft.rng.randint(3, 6), 4, draft.between(6, 12)
    draft.size = 16384
    draft.stages.append(["drip", few, parts, pause])
    draft.capacity, draft.inside = few / (parts * pause) * 1000, few
    draft.over("closed rate")
    draft.unnamed()


def workers_kept(draft: Draft) -> None:
    """Workers that each serve one connection until it ends, beside an edge that keeps its connections."""
    alone(draft)
    few, held = draft.rng.randint(3, 6), draft.between(30, 60)
    draft.app["workers"], draft.stages = few, [["sleep", held]]
    draft.keepalive = 64
    # A connection that has a worker keeps it. A connection without a worker waits until the load gives up.
    draft.load = ["-c", str(4 * few)]
    draft.rules("B22", "B49")


def compresses(draft: Draft) -> None:
    """An application that compresses a large body for each request."""
    alone(draft)
    draft.flags += ONE_CPU
    draft.stages = [["gzip", draft.one(150, 300)]]
    draft.over("closed")
    draft.rules("B21", "B20")


def bursts(draft: Draft) -> None:
    """A few requests that compute for long, in an application of which one thread at a time computes."""
    alone(draft)
    draft.flags += ONE_CPU
    many, burst = draft.rng.randint(8, 15), draft.between(100, 160)
    draft.stages = [["bursts", many, burst]]
    draft.capacity = many / burst * 1000
    draft.over("closed rate")
    draft.rules("B21", "B20")


def backend_computes(draft: Draft) -> None:
    """The server behind the application computes, and is full."""
    alone(draft, draft.program)
    draft.flags += ONE_CPU
    draft.capacity = draft.draw_capacity()
    draft.files["backend.py"] = random_apps.COMPUTES
    draft.host("db")
    draft.processes.append({"name": "db", "host": "db", "argv": ["python3", "@DIR@/backend.py", "7000", f"{1000 / draft.capacity:.1f}"],
                            "ready": {"Prints": "ready"}, "cpus": [1]})
    draft.stages.append(["ask", "db", 7000, 64, "whole"])
    draft.inside = 4
    draft.over("closed")
    # Its thread is full, and says so.
    draft.unnamed("B21", "B20")


# --- what the application answers

def cut(draft: Draft) -> None:
    """Answers that end in the middle of their body."""
    alone(draft)
    draft.size = 4096
    draft.stages.append(["cut", draft.one(0.1, 0.25)])
    rate(draft)
    draft.rules("B68")


def garbled(draft: Draft) -> None:
    """Heads with a field whose name is none."""
    alone(draft)
    draft.next_to = " max_fails=0"
    draft.stages.append(["garbled", draft.one(0.1, 0.25)])
    rate(draft)
    draft.rules("B67")


def fat_head(draft: Draft) -> None:
    """A cookie that grew larger than the edge's buffer for heads."""
    alone(draft)
    draft.next_to = " max_fails=0"
    draft.stages.append(["fat", draft.one(0.15, 0.3), 9000])
    draft.location += "proxy_buffer_size 4k; "
    rate(draft)
    draft.rules("B67")


def not_trusted(draft: Draft) -> None:
    """A certificate of the application that the edge does not accept."""
    alone(draft, "node")
    draft.app["tls"], draft.certificate, draft.is_tls = "@DIR@", "ec", False
    draft.proxy, draft.next_to = "https://app", " max_fails=0"
    draft.location += "proxy_ssl_verify on; proxy_ssl_trusted_certificate @DIR@/cert.pem; proxy_ssl_name other.example; "
    rate(draft)
    draft.rules("B67")


# --- in the edge

def included(draft: Draft) -> None:
    """A page of parts, each of which the edge fetches from a server with a few places."""
    few, held, parts = draft.rng.randint(3, 6), draft.between(10, 25), draft.rng.randint(2, 4)
    second(draft, "places", few, held)
    draft.app["body"] = '<html>' + ''.join(f'<!--# include virtual="/part?{number}" -->' for number in range(parts)) + '</html>'
    draft.app["head"] = "Content-Type: text/html\r\n"
    draft.location += "ssi on; "
    draft.extra_locations += f" location /part {{ proxy_pass http://second; {draft.keep} }}"
    draft.capacity, draft.inside = few / (held * parts) * 1000, few
    draft.over("closed rate")
    draft.unnamed()


def one_sided(draft: Draft) -> None:
    """All clients come from one address, and `ip_hash` sends them to one of several servers."""
    draft.program, draft.servers, draft.is_spread = "python3", draft.one(2, 3), True
    few, held = draft.rng.randint(2, 5), draft.between(20, 50)
    draft.stages = [["places", few, held]]
    servers = " ".join(f"server app:{3000 + number};" for number in range(draft.servers))
    draft.upstream = draft.one("ip_hash;", "hash $host consistent;") + f" {servers} keepalive 64;"
    draft.capacity, draft.inside = few / held * 1000, few
    draft.over("closed rate")
    draft.unnamed()


def edge_compresses(draft: Draft) -> None:
    """The edge compresses large answers at the highest level."""
    alone(draft)
    draft.is_tls, draft.stages, draft.main = False, [], "worker_processes 1;"
    draft.size, draft.app["is_text"], draft.app["head"] = draft.one(200_000, 400_000), True, "Content-Type: text/plain\r\n"
    draft.http += " gzip on; gzip_comp_level 9; gzip_types text/plain; gzip_proxied any;"
    draft.flags += ["-H", "Accept-Encoding: gzip"]
    draft.load = ["-c", "8"]
    draft.rules("B19", "B12")


def clients_close(draft: Draft) -> None:
    """One request for each connection of a client, with a long key."""
    draft.is_tls, draft.certificate = True, "rsa"
    draft.server += " keepalive_requests 1; ssl_session_cache off; ssl_session_tickets off;"
    draft.load = ["-c", "16"]
    draft.rules("B17", "B19")


def edge_names(draft: Draft) -> None:
    """The edge asks for the server's name again and again, of a slow server of names."""
    dummy(draft, "/1k")
    draft.servers, draft.is_tls, draft.upstream = 1, False, "server 127.0.0.1:3000;"
    draft.processes.append({"name": "names", "host": "edge", "argv": ["python3", "-c", NAMES]})
    draft.location += "resolver 127.0.0.1 valid=1s ipv6=off; set $name app.test; "
    draft.proxy, draft.keep = "http://$name:3000", ""
    draft.load = ["-R", str(draft.one(40, 60)), "-c", "128"]
    draft.rules("B50", is_waste=True)


def cookies(draft: Draft) -> None:
    """Clients whose cookies have grown beyond the edge's buffers."""
    draft.is_tls = False
    draft.http += " client_header_buffer_size 1k; large_client_header_buffers 4 8k;"
    draft.flags += ["-H", "Cookie: cart=" + draft.one(8500, 9500) * "x"]
    rate(draft)
    draft.rules("P07")


def rewritten(draft: Draft) -> None:
    """Two locations that send each request to each other."""
    draft.location += "rewrite ^ /other last; "
    draft.extra_locations += " location /other { rewrite ^ / last; }"
    rate(draft)
    draft.rules("P07")


def log_reader(draft: Draft) -> None:
    """The access log is a pipe, and its reader is slow."""
    dummy(draft, "/1k")
    draft.is_tls, draft.main = False, "worker_processes 1;"
    draft.files["reader.py"] = random_apps.READER
    # The pipe has to be there before the edge opens it.
    draft.processes.append({"name": "reader", "host": "edge", "argv": ["python3", "@DIR@/reader.py", "@DIR@/log.pipe", str(draft.one(40, 70))],
                            "ready": {"Prints": "ready"}})
    draft.http += " log_format long '$request $http_user_agent " + 300 * "x" + "'; access_log @DIR@/log.pipe long;"
    draft.warmup, draft.load = "2s", ["-R", "400", "-c", "32"]
    draft.rules("B66")


# --- on the way

def takes_nothing(draft: Draft) -> None:
    """A server of the upstream whose process hangs: its queue is full, and it takes no connection."""
    alone(draft, draft.program)
    draft.files["hangs.py"] = random_apps.HANGS
    draft.processes.append({"name": "hangs", "host": "origin", "argv": ["python3", "@DIR@/hangs.py", "3990"], "ready": {"Prints": "ready"}})
    draft.upstream = f"server app:3990 max_fails=0; {draft.one('', 'server app:3000;')} keepalive 32;"
    draft.location += "proxy_connect_timeout 300ms; proxy_next_upstream off; "
    draft.load = ["-R", "40", "-c", "32"]
    draft.rules("B42", "B27", "B22", "B49")


def slow_clients(draft: Draft) -> None:
    """Other clients open connections, and send a byte of a request now and then."""
    few = draft.one(32, 48)
    dummy(draft, "/1k")
    draft.main, draft.events, draft.is_tls = "worker_processes 1;", f"worker_connections {few};", False
    draft.files["slow.py"] = random_apps.SLOW_CLIENTS
    draft.processes.append({"name": "others", "host": "client", "argv": ["python3", "@DIR@/slow.py", "edge", "8080", str(few)]})
    draft.load = ["-R", "80", "-c", "16"]
    draft.rules("B05", "B06")


def lossy(draft: Draft) -> None:
    """A way to the application on which packets are lost, and few connections of clients."""
    alone(draft, draft.program)
    draft.is_tls, draft.stages, draft.size = False, [], 16384
    lost = draft.one(150, 200)
    draft.host("origin", link={"to": {"loss": lost}, "from": {"loss": lost}})
    draft.load = ["-R", str(draft.between(80, 120)), "-c", "6"]
    draft.unnamed()


def small_window(draft: Draft) -> None:
    """Little memory for what is on the way to far clients: each answer takes many turns."""
    alone(draft, draft.program)
    draft.is_tls, draft.stages, draft.size = False, [], 65536
    late = 1000 * draft.one(15, 25)
    draft.host("client", link={"to": {"delay_us": late}, "from": {"delay_us": late}})
    draft.host("edge", sysctls=[["net.ipv4.tcp_wmem", "4096 4096 4096"]])
    draft.load = ["-R", "60", "-c", "8"]
    draft.unnamed()


# --- sound ones

def healthy_cached(draft: Draft) -> None:
    """A cache that answers nearly all."""
    draft.http += " proxy_cache_path /tmp/weir-faults-cache keys_zone=one:1m; proxy_cache_valid 200 60s; proxy_cache one; proxy_cache_lock on;"
    draft.truth = Truth(is_healthy=True)
    draft.under()


def healthy_slow(draft: Draft) -> None:
    """Answers that take long, and enough connections for them."""
    draft.stages = [["sleep", draft.one(600, 900)]]
    draft.load = ["-R", str(draft.between(15, 25)), "-c", "64"]
    draft.truth = Truth(is_healthy=True)
    draft.notes.append("load rate")


def healthy_uploads(draft: Draft) -> None:
    """Bodies of requests, and room for them."""
    draft.http += " client_body_buffer_size 128k;"
    draft.scripted(draft.between(20, 40), f"post: {{url: @PATH@, body: '{'x' * 20000}'}}")
    draft.truth = Truth(is_healthy=True)
