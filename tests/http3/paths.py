#!/usr/bin/env python3
"""HTTP/3 over bad paths, by a seed: loss, reordering, duplicates, datagrams of at most 1,200 bytes, a NAT that changes its port, corrupt bytes.

    tests/http3/paths.py --weir BIN [--seed N] [--short] [NAME…]

On each path, clients of aioquic make requests for 1 KiB and for 1 MiB, send 1 MiB, and have messages of WebSocket echoed. Every byte is
checked. The figures are those of this client, which is written in Python: compare the rows, and not with other programs.
"""

import argparse
import asyncio
import dataclasses
import itertools
import json
import random
import sys
import time
import traceback

import run
from client import Client, opened
from origin import Origin, content, frame
from relay import Path, relayed

MEGABYTE = 1 << 20
CLIENTS = 2
# The longest time for one client on one path, in seconds.
PATIENCE = 120
# Without packets of its own, a client does not notice that its NAT has changed its port.
SIGN_INTERVAL = 0.2
HTTP = """
    log_format own '$connection|$remote_port|$request|$status|'; access_log access.log own;
    client_max_body_size 10m; proxy_http_version 1.1; proxy_set_header Connection "";
    server {
        listen 127.0.0.1:%(main)d quic; server_name localhost; root html; ssl_certificate localhost.crt; ssl_certificate_key localhost.key;
        keepalive_timeout 30s;
        location / { }
        location /echo { proxy_pass http://127.0.0.1:%(origin)d; }
        location /size { proxy_pass http://127.0.0.1:%(origin)d; }
        location /ws { proxy_pass http://127.0.0.1:%(origin)d; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }
    }
"""

PATHS = {
    "clean": Path(),
    "loss 1 %": Path(loss=0.01),
    "loss 2 %": Path(loss=0.02),
    "loss 5 %": Path(loss=0.05),
    "5 % are late": Path(late=0.05),
    "all are late": Path(late=1.0),
    "duplicates 5 %": Path(duplicates=0.05),
    "1,200 bytes": Path(size_max=1200),
    "rebinding each s": Path(rebinds=1.0),
    "corrupt 1 %": Path(corrupt=0.01),
    "all of these": Path(loss=0.02, late=0.05, duplicates=0.02, size_max=1200, rebinds=1.0, corrupt=0.01),
}
SHORT = ["loss 2 %", "rebinding each s", "corrupt 1 %", "all of these"]


@dataclasses.dataclass
class Work:
    """The requests of a client, and the seconds that each kind took."""
    small: int = 60
    large: int = 4
    sent: int = 4
    messages: int = 20
    seconds: dict = dataclasses.field(default_factory=dict)

    async def of(self, kind, count, one):
        """Makes `count` requests of a kind, one after another."""
        begun = time.monotonic()
        for at in range(count):
            await one(at)
        self.seconds[kind] = time.monotonic() - begun


async def client(port, work, seed):
    draw = random.Random(seed)
    async with opened(port) as one:
        signs = asyncio.create_task(show(one))
        try:
            await work.of("small", work.small, lambda at: fetched(one, "/small.txt", 1024))
            await work.of("large", work.large, lambda at: fetched(one, "/large.txt" if at % 2 else f"/size/{MEGABYTE}", MEGABYTE))
            await work.of("sent", work.sent, lambda at: sent(one, draw.randbytes(MEGABYTE), at))
            begun = time.monotonic()
            await echoed(one, [draw.randbytes(draw.choice([1, 100, 5000, 60000])) for _ in range(work.messages)])
            work.seconds["messages"] = time.monotonic() - begun
        finally:
            signs.cancel()


async def show(one):
    for number in itertools.count():
        await asyncio.sleep(SIGN_INTERVAL)
        one.quic.send_ping(number)
        one.transmit()


async def fetched(one, path, size):
    answer = await one.ask(path=path)
    assert answer.status == 200 and run.sha(answer.body) == run.sha(content(size)), (path, answer.status, len(answer.body))


async def sent(one, body, at):
    answer = await one.ask("POST", f"/echo/{at}", body=body)
    assert answer.status == 200 and json.loads(answer.body)["sha"] == run.sha(body), answer


async def echoed(one, messages):
    await one.until(lambda: one.http.received_settings, "SETTINGS")
    number = one.begin("CONNECT", "/ws", [("sec-websocket-version", "13")], ends=False, more=[(":protocol", "websocket")])
    answer = one.answer(number)
    await one.until(lambda: answer.status, "the answer to CONNECT")
    assert answer.status == 200, answer
    for message in messages:
        before, expected = len(answer.body), frame(0x82, message, None)
        one.send(number, frame(0x82, message, b"mask"))
        await one.until(lambda: len(answer.body) - before >= len(expected), "an echo")
        assert bytes(answer.body[before:]) == expected, "other bytes came back"
    one.send(number, frame(0x88, b"\x03\xe8", b"mask"))
    await one.until(lambda: answer.ended, "the end of the WebSocket")


async def over(path, port, words):
    """Runs the clients over a path: a line of figures."""
    works = [Work(small=20, large=1, sent=1, messages=8) if words.short else Work() for _ in range(CLIENTS)]
    with relayed(port, path) as (relay, counts):
        tasks = [asyncio.wait_for(client(relay, work, path.seed + at), PATIENCE) for at, work in enumerate(works)]
        results = await asyncio.gather(*tasks, return_exceptions=True)
    faults = [result for result in results if result is not None]
    if faults:
        raise faults[0]

    def rate(kind, amount):
        return sum(amount(work) / work.seconds[kind] for work in works)

    return (f"{rate('small', lambda work: work.small):5.0f} {rate('large', lambda work: work.large):6.2f} {rate('sent', lambda work: work.sent):6.2f} "
            f"{rate('messages', lambda work: work.messages):6.0f}   {', '.join(f'{name} {count}' for name, count in counts.items() if count)}")


async def main(words):
    origin, failed = Origin(), 0
    await origin.start()
    edge, ports = run.edge(words.weir, "main")
    edge.certificate("localhost")
    edge.file("html/small.txt", content(1024))
    edge.file("html/large.txt", content(MEGABYTE))
    edge.write(HTTP % {**ports, "origin": origin.port}, workers=2)
    await edge.start()
    names = [name for name in PATHS if (not words.short or name in SHORT) and (not words.names or any(part in name for part in words.names))]
    print(f"seed {words.seed}; {CLIENTS} clients\n{'path':17} GET/s 1 MiB/s sent/s echo/s   datagrams", flush=True)
    try:
        for name in names:
            begun = time.monotonic()
            try:
                said = await over(dataclasses.replace(PATHS[name], seed=words.seed), ports["main"], words)
                print(f"{name:17} {said} ({time.monotonic() - begun:.1f} s)", flush=True)
            except Exception:
                failed += 1
                print(f"{name:17} FAILED\n{traceback.format_exc()}", flush=True)
        # A client that is gone without a word leaves its connection until it is idle for too long.
        await edge.settled(patience=90)
        await edge.stop()
    except (AssertionError, OSError) as error:
        failed += 1
        print(f"FAILED at the end: {error}", flush=True)
    finally:
        if failed:
            print("--- error.log\n" + edge.text("error.log")[-6000:])
        edge.remove()
    return 1 if failed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--short", action="store_true", help="the paths and the requests of `cargo test`")
    parser.add_argument("names", nargs="*")
    sys.exit(asyncio.run(main(parser.parse_args())))
