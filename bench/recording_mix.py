#!/usr/bin/env python3
"""An hour of a shop as a recording, made into a script by `weir load from`, and replayed: do shares, arrivals and sessions hold?

    bench/recording_mix.py --weir BIN [--sessions N] [--speed X] [--recorded]

The hour has a rate that rises and falls, bursts, clients of very different activity, pauses of seconds and minutes, ids, posted JSON,
pictures asked for at the same time, redirects, conditions and cookies. Its account is kept here, and not read from the recording. The
replay goes to an edge with an access log; the same account is made of that log. With --recorded the edge also records the replay, and
that recording is replayed again. Ends with 1 if a figure differs by more than 2 %. Prints the tables of docs/guide/load-from-log.md.
"""

import argparse
import bisect
import collections
import json
import math
import pathlib
import random
import re
import socket
import subprocess
import sys
import tempfile
import time

from ports import free_port
from recording_file import Recording

HOUR_S = 3600
GAP_S = 1800
LENGTH_MAX = 50
LIMIT = 2.0
AGENTS = ["Mozilla/5.0 (Windows NT 10.0) Chrome/140", "Mozilla/5.0 (iPhone) Safari/19", "Mozilla/5.0 (X11; Linux) Firefox/144", "shop-app/7.1 (Android)"]
PICTURES = [f"/static/p{n}.webp" for n in range(1, 9)]

CONF = """
daemon off; master_process off; pid {room}/{name}.pid; error_log {room}/{name}.error.log; worker_processes 1;
events {{ worker_connections 8192; }}
http {{
    client_body_temp_path {room}/{name}.body; keepalive_timeout 300; keepalive_requests 100000;
    log_format own '$msec $request_time "$request" $status "$http_x_session" "$http_cookie" $content_length. "$http_user_agent" "$http_if_none_match"';
    access_log {room}/{name}.log own;
    server {{
        listen 127.0.0.1:{port} backlog=4096; {record}
        location / {{ return 200 ok; }}
        # An edge reads, and records, only a body that it passes on.
        location = /cart {{ proxy_pass http://127.0.0.1:{port}/kept; }}
        location = /login {{ proxy_redirect off; proxy_pass http://127.0.0.1:{port}/kept/login; }}
        location = /checkout {{ proxy_redirect off; proxy_pass http://127.0.0.1:{port}/kept/checkout; }}
        location /kept {{
            access_log off; record off;
            location = /kept/login {{ add_header Set-Cookie "sid=of-the-target; Path=/"; return 303 /account; }}
            location = /kept/checkout {{ return 303 /orders/1; }}
            return 201;
        }}
    }}
}}
"""


class Request:
    """A request: when it began and ended in seconds, its client, method, target, fields and body."""

    __slots__ = ("at", "end", "client", "method", "target", "fields", "body", "status", "sets")

    def __init__(self, at, client, method, target, fields, body=b"", status=200, sets=None):
        self.at, self.client, self.method, self.target = at, client, method, target
        self.end = at + min(random.lognormvariate(math.log(0.04), 0.6), 3)
        self.fields, self.body, self.status, self.sets = fields, body, status, sets


def arrivals(count):
    """When visits begin: a rate that rises and falls, and twelve bursts with a tenth of all visits. Some begin before the hour."""
    rate = lambda t: 1 + 0.6 * math.sin(t / HOUR_S * math.pi * 1.5) + 0.2 * math.sin(t / 400)
    times = []
    while len(times) < count * 9 // 10:
        t = random.uniform(-900, HOUR_S)
        if random.random() * 1.8 < rate(t):
            times.append(t)
    for burst in range(12):
        begin, length = random.uniform(60, HOUR_S - 120), random.uniform(4, 20)
        times += [begin + random.random() * length for _ in range(count // 120)]
    return times


def visit(at, client):
    """The requests of one visit: a walk through the shop."""
    chance = random.Random(client)
    agent, language = chance.choice(AGENTS), chance.choice(["ko-KR,ko;q=0.9", "en-US,en;q=0.8", "ja"])
    base = [("host", "shop.test"), ("user-agent", agent), ("accept-language", language), ("accept-encoding", "gzip, br")]
    has_cookie, knows_pictures = random.random() < 0.6, random.random() < 0.4
    cookies = {"lang": language[:2]} | ({"sid": f"c{client:08x}"} if has_cookie else {})
    requests, place = [], random.choices(["/", "/search", "/item", "/api/stock"], [50, 20, 20, 10])[0]
    while place:
        fields = [*base, ("cookie", "; ".join(f"{name}={value}" for name, value in cookies.items()))]
        get = lambda target, **more: Request(at, client, "GET", target, [*fields, ("accept", "text/html")], **more)
        then, weights = ["/search", "/item", ""], [3, 4, 3]
        if place == "/":
            one = get("/")
        elif place == "/search":
            one, weights = get(f"/search?q=word{random.randrange(300)}&page={random.choice([1, 1, 1, 2, 3])}"), [2, 6, 2]
        elif place == "/item":
            one = get(f"/items/{int(random.paretovariate(0.8)) % 9000 + 1}")
            then, weights = ["/item", "/search", "/cart", ""], [4, 2, 2, 3]
        elif place == "/cart":
            body = json.dumps({"item": random.randrange(9000), "count": random.randint(1, 3), "note": "x" * random.randrange(200)}).encode()
            one = Request(at, client, "POST", "/cart", [*fields, ("content-type", "application/json")], body, 201)
            then, weights = ["/item", "/login" if "sid" not in cookies else "/checkout", ""], [4, 4, 2]
        elif place == "/login":
            body = f"user=u{client}&password=hash{client:x}".encode()
            one = Request(at, client, "POST", "/login", [*fields, ("content-type", "application/x-www-form-urlencoded")], body, 303, "sid")
            cookies["sid"] = f"s{client:08x}"
            then, weights = ["/account"], [1]
        elif place == "/account":
            one, then, weights = get("/account"), ["/checkout", ""], [8, 2]
        elif place == "/checkout":
            one = Request(at, client, "POST", "/checkout", [*fields, ("content-type", "application/json")], b'{"pay": "card"}', 303)
            then, weights = ["/order"], [1]
        elif place == "/order":
            one, then, weights = get(f"/orders/{random.randrange(10**6)}"), ["/item", ""], [1, 6]
        else:
            one = Request(at, client, "GET", f"/api/stock/{random.randrange(9000)}", [*fields, ("accept", "application/json")])
            then, weights = ["/api/stock", ""], [6, 1]
        requests.append(one)
        if one.method == "GET" and place in ("/", "/item"):
            for path in ["/app.css", *random.sample(PICTURES, random.randint(0, 3))]:
                condition = [("if-none-match", f'"{path}"')] if knows_pictures else []
                picture = Request(one.end + random.uniform(0.02, 0.1), client, "GET", path, [*fields, ("accept", "*/*"), *condition])
                picture.status = 304 if condition else 200
                requests.append(picture)
            knows_pictures = True
        place = random.choices(then, weights)[0]
        is_followed = one.status == 303
        at = max(request.end for request in requests) + (0.03 if is_followed else min(random.lognormvariate(math.log(9), 1.0), 600))
    return requests


def hour(count):
    """All requests of the hour, in order. A tenth of the clients makes half of the visits."""
    clients = [int(random.paretovariate(1.1) * 40) for _ in range(count)]
    requests = []
    for number, at in enumerate(arrivals(count)):
        # The most active clients are programs that ask for the stock all day.
        client = clients[number % count] if random.random() < 0.3 else 10**6 + number
        requests += visit(at, client)
    return sorted((one for one in requests if 0 <= one.at < HOUR_S), key=lambda one: one.at)


def record(requests, path):
    """Writes the recording of the hour."""
    recording = Recording(path, (1_795_600_000_000_000, "bench", 1_000_000, 7, True))
    flat = lambda fields: [word.encode() for field in fields for word in field]
    for one in requests:
        body = (len(one.body), None, one.body or None)
        answer = (one.status, flat([("set-cookie", f"{one.sets}=hash; Path=/")] if one.sets else []), (2, None, None))
        recording.put((2, int(one.at * 1e6), one.client, one.client, 11, False, 80, one.method.encode(), one.target.encode(), flat(one.fields),
                       body, answer, False, int((one.end - one.at) * 1e6), (), None, 1, 0, 0))
    recording.put((5, HOUR_S * 10**6, len(requests), len(requests), 0, 0, 0, 0))
    recording.finish()


LINE = re.compile(r'^(\S+) (\S+) "(\S+) (\S+) [^"]*" (\d+) "([^"]*)" "([^"]*)" (\S*)\. "([^"]*)" "([^"]*)"$')


def logged(path):
    """The requests of the edge's log; a virtual user is a client."""
    requests = []
    for line in path.read_text().splitlines():
        end, took, method, target, status, session, cookie, length, agent, condition = LINE.match(line).groups()
        fields = [("user-agent", agent), ("cookie", cookie), ("if-none-match", condition.replace("\\x22", '"'))]
        one = Request(float(end) - float(took), session, method, target, [field for field in fields if field[1] not in ("", "-")])
        one.end, one.body, one.status = float(end), b"x" * int(length if length.isdigit() else 0), int(status)
        requests.append(one)
    return sorted(requests, key=lambda one: one.at)


def sessions(requests):
    """Requests of a client until a pause of 30 minutes, at most 50."""
    by_client = collections.defaultdict(list)
    for one in requests:
        by_client[one.client].append(one)
    found = []
    for own in by_client.values():
        own = sorted(own, key=lambda one: one.at)
        found.append([own[0]])
        for before, one in zip(own, own[1:]):
            is_new = one.at - before.at >= GAP_S or len(found[-1]) == LENGTH_MAX
            found.append([one]) if is_new else found[-1].append(one)
    return found


def pauses(found, speed):
    """Pauses of a second or more, at the speed of the recording."""
    all_pauses = []
    for session in found:
        ends = []
        for one in session:
            ended = [end for end in ends if end <= one.at]
            if ended:
                all_pauses.append((one.at - max(ended)) * speed)
            ends.append(one.end)
    return sorted(pause for pause in all_pauses if pause >= 1)


def route(one):
    path = re.sub(r"(?<=/)\d+$", ":id", one.target)
    path = re.sub(r"=[^&]*", "=:x", path)
    return f"{one.method} {path}" + (" (condition)" if any(name == "if-none-match" for name, _ in one.fields) else "")


def apart(a, b):
    """The largest difference between two distributions, in percentage points (Kolmogorov and Smirnov)."""
    below = lambda values, x: bisect.bisect_right(values, x) / max(len(values), 1)
    return 100 * max(abs(below(a, x) - below(b, x)) for x in a + b)


class Account:
    """The figures that a replay has to have, too."""

    def __init__(self, requests, speed=1):
        found = sessions(requests)
        begin = min(one.at for one in requests)
        self.requests = len(requests)
        self.routes = collections.Counter(map(route, requests))
        self.starts = sorted((session[0].at - begin) * speed for session in found)
        self.lengths = sorted(len(session) for session in found)
        self.pauses = pauses(found, speed)
        has = lambda name, text: sum(any(own == name and text in value for own, value in one.fields) for one in requests)
        kinds = {"a cookie sid": ("cookie", "sid="), "a condition": ("if-none-match", "")}
        self.traits = {name: 100 * has(*kind) / len(requests) for name, kind in kinds.items()}
        agents = collections.Counter(dict(one.fields).get("user-agent") for one in requests)
        self.traits |= {agent: 100 * agents[agent] / len(requests) for agent in AGENTS}
        posts = [len(one.body) for one in requests if one.method == "POST"]
        self.body = sum(posts) / max(len(posts), 1)


class Edge:
    """An edge that answers everything itself, with a log."""

    def __init__(self, weir, room, name, records):
        self.port, self.log, self.recording = free_port(), room / f"{name}.log", room / f"{name}.rec"
        conf = room / f"{name}.conf"
        directive = f"record {self.recording} client=$http_x_session bodies=on max=1g;" if records else ""
        conf.write_text(CONF.format(room=room, name=name, port=self.port, record=directive))
        self.process = subprocess.Popen([weir, "edge", "-c", conf])
        for _ in range(200):
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", self.port)) == 0:
                    break
            time.sleep(0.05)

    def end(self):
        self.process.send_signal(3)
        self.process.wait()


def phases(script):
    """The ends of the phases, in seconds of the script, and their arrivals."""
    ends, counts, end = [], [], 0
    for line in script.read_text().splitlines():
        found = re.match(r"    - \{ (?:duration|pause): (\d+)(?:, arrivalCount: (\d+))?", line)
        if found:
            end += int(found[1])
            ends.append(end)
            counts.append(int(found[2] or 0))
    return ends, counts


def replay(flags, room, recording, name, speed, records):
    """Makes a script of a recording, and sends it to an edge; returns the script, and the account of the log."""
    edge, script = Edge(flags.weir, room, name, records), room / f"{name}.yml"
    make = [flags.weir, "load", "from", recording, "--speed", str(speed), "-t", f"http://127.0.0.1:{edge.port}", "-o", script]
    subprocess.run(make, check=True)
    # The log shows by this field which virtual user sent a request.
    script.write_text(script.read_text().replace("headers: { ", 'headers: { x-session: "{{ $uuid }}", '))
    subprocess.run([flags.weir, "load", "-q", "--seed", "8", "--workers", "1", "-o", room / f"{name}.json", script], check=True)
    edge.end()
    return script, edge


def compare(before, after, script, speed):
    """Prints the tables, and returns the largest difference of each kind, in per cent or percentage points."""
    worst = {}
    print("\n| route | recorded, % | replayed, % |\n|---|---|---|")
    for name, count in before.routes.most_common():
        own, other = 100 * count / before.requests, 100 * after.routes[name] / after.requests
        print(f"| `{name}` | {own:.2f} | {other:.2f} |")
        worst["share of a route"] = max(worst.get("share of a route", 0), abs(own - other))
    ends, counts = phases(script)
    inside = lambda starts, a, b: sum(a <= start < b for start in starts)
    worst["arrivals in all"] = 100 * abs(len(after.starts) / len(before.starts) - 1)
    off = [abs(inside(before.starts, a * speed, b * speed) - count) for a, b, count in zip([0, *ends], ends, counts)]
    worst["arrivals of the script's phases"] = 100 * sum(off) / len(before.starts)
    # Hundredths of the script, in whole seconds.
    length = math.ceil(ends[-1] / 100) * speed
    spans = [(n * length, (n + 1) * length) for n in range(math.ceil(ends[-1] * speed / length))]
    off = [abs(inside(before.starts, *span) - inside(after.starts, *span)) for span in spans]
    mean = len(before.starts) / len(spans)
    print(f"\n{len(counts)} phases. In {length:.0f} s of the recording {mean:.0f} sessions begin; the replay is off by {max(off)} at most.")
    worst[f"arrivals of each {length:.0f} s"] = 100 * sum(off) / len(before.starts)
    mean = lambda values: sum(values) / max(len(values), 1)
    worst["requests of a session, mean"] = 100 * abs(mean(after.lengths) / mean(before.lengths) - 1)
    worst["requests of a session, distribution"] = apart(before.lengths, after.lengths)
    worst["pauses, mean"] = 100 * abs(mean(after.pauses) / mean(before.pauses) - 1)
    worst["pauses, distribution"] = apart(before.pauses, after.pauses)
    worst["bytes of a body, mean"] = 100 * abs(after.body / before.body - 1)
    for name, share in before.traits.items():
        worst[f"requests with {name}"] = abs(share - after.traits[name])
    row = lambda name, a, b: print(f"| {name} | {a} | {b} |")
    print("\n| figure | recorded | replayed |\n|---|---|---|")
    row("requests", before.requests, after.requests)
    row("sessions", len(before.starts), len(after.starts))
    row("requests of a session", f"{mean(before.lengths):.2f}", f"{mean(after.lengths):.2f}")
    row("pauses of a second or more, mean", f"{mean(before.pauses):.2f} s", f"{mean(after.pauses):.2f} s")
    quantile = lambda values, q: values[int(q * (len(values) - 1))]
    for q in (0.1, 0.5, 0.9, 0.99):
        row(f"{q:.0%} of the pauses are below", f"{quantile(before.pauses, q):.1f} s", f"{quantile(after.pauses, q):.1f} s")
    print("\n| difference | % |\n|---|---|")
    for name, value in worst.items():
        print(f"| {name} | {value:.2f} |")
    return {name: value for name, value in worst.items() if value > LIMIT}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weir", required=True)
    parser.add_argument("--sessions", type=int, default=15_000)
    parser.add_argument("--speed", type=float, default=30)
    parser.add_argument("--recorded", action="store_true")
    flags = parser.parse_args()
    room = pathlib.Path(tempfile.mkdtemp(prefix="weir-recording-mix-"))
    random.seed(11)
    requests = hour(flags.sessions)
    record(requests, room / "hour.rec")
    before = Account(requests)
    script, edge = replay(flags, room, room / "hour.rec", "first", flags.speed, flags.recorded)
    after = Account(logged(edge.log), flags.speed)
    off = compare(before, after, script, flags.speed)
    if flags.recorded:
        print("\nThe replay, recorded by its edge, and replayed again:")
        before = Account(logged(edge.log))
        script, edge = replay(flags, room, edge.recording, "second", 1, False)
        off |= compare(before, Account(logged(edge.log)), script, 1)
    print("\n" + (f"More than {LIMIT} %: {off}" if off else f"Nothing differs by more than {LIMIT} %."))
    print(room)
    sys.exit(1 if off else 0)


if __name__ == "__main__":
    main()
