#!/usr/bin/env python3
"""What a megabyte of a body costs when it is replaced in, converted or compressed on its way: weir beside nginx.

    python3 bench/filters.py --weir target/release/weir [--only sub,gzip] [--rounds 5] [--megabytes 64]

The body is a text of 1 MiB from a file; one client asks for it again and again on one connection. A row is a location of
`conf/filters.conf`, which nginx and weir both read (a location of a module that Debian's nginx lacks is only for weir). The
CPU is that of all threads of the peer, from /proc, divided by the megabytes of the original body; `none` is the same file
without a filter. `to` is what the body becomes, as a share of it. Peer on core 0, client on core 1, runs interleaved; each
figure is the median of the rounds.
"""

import argparse
import http.client
import os
import random
import statistics
import tempfile
from pathlib import Path

import peers
import proc

MEGABYTE = 1 << 20

# Name, path, Accept-Encoding, and whether Debian's nginx has it.
ROWS = [
    ("none", "/none/text.html", None, True),
    ("sub one rare", "/sub/rare/text.html", None, True),
    ("sub one frequent", "/sub/frequent/text.html", None, True),
    ("sub five", "/sub/five/text.html", None, True),
    ("sub twenty", "/sub/twenty/text.html", None, True),
    ("sub once", "/sub/once/text.html", None, True),
    ("charset bytes", "/charset/bytes/text.html", None, True),
    ("charset to utf-8", "/charset/utf8/text.html", None, True),
    ("ssi text", "/ssi/text.html", None, True),
    ("ssi echo", "/ssi/echo.html", None, True),
    ("ssi include", "/ssi/include.html", None, True),
    ("gunzip", "/gunzip/text.html", None, True),
    ("gzip 1", "/gzip/1/text.html", "gzip", True),
    ("gzip 6", "/gzip/6/text.html", "gzip", True),
    ("brotli 1", "/brotli/1/text.html", "br", False),
    ("brotli 4", "/brotli/4/text.html", "br", False),
    ("brotli 6", "/brotli/6/text.html", "br", False),
    ("zstd 1", "/zstd/1/text.html", "zstd", False),
    ("zstd 3", "/zstd/3/text.html", "zstd", False),
    ("zstd 9", "/zstd/9/text.html", "zstd", False),
]
WORDS = ("the request of a client and its answer from an origin pass this text with many words that come again in other "
         "places http://app.internal/path <a href=\"/page\">link</a> <div class=\"item\"> value=\"{}\" number {} end").split(" ")


def text():
    """A megabyte that resembles HTML: words from a list, numbers and line ends."""
    numbers = random.Random(1)
    out = []
    while len(out) * 4 < MEGABYTE:
        out.append(numbers.choice(WORDS).format(numbers.randrange(10**6), numbers.randrange(100)))
        if numbers.random() < 0.1:
            out.append("\n")
    return " ".join(out).encode()[:MEGABYTE].ljust(MEGABYTE)


def main():
    args = arguments()
    chosen = [peer for peer in peers.all_peers(args.weir, None) if peer.name in ("nginx", "weir")]
    rows = [row for row in ROWS if not args.only or any(row[0].startswith(word) for word in args.only.split(","))]
    found = {}
    with tempfile.TemporaryDirectory(prefix="weir-filters-", dir="/dev/shm") as work:
        os.chmod(work, 0o755)
        files(Path(work) / "html")
        for _ in range(args.rounds):
            for peer in random.sample(chosen, len(chosen)):
                measure(peer, rows, args, Path(work), found)
    print(f"CPU ms per MiB of the original body, {args.rounds} rounds of {args.megabytes} MiB")
    print(f"{'':20}" + "".join(f"{peer.name:>12}{'to':>8}" for peer in chosen) + f"{'weir/nginx':>12}")
    for name, *_ in rows:
        cells = {peer.name: found.get((peer.name, name)) for peer in chosen}
        shown = "".join(
            f"{statistics.median(cost for cost, _ in cell):12.3f}{cell[0][1]:8.1%}" if cell else f"{'':20}" for cell in cells.values())
        both = [cells.get(peer) for peer in ("weir", "nginx")]
        ratio = "{:12.2f}".format(statistics.median(c for c, _ in both[0]) / statistics.median(c for c, _ in both[1])) if all(both) else ""
        print(f"{name:20}{shown}{ratio}", flush=True)


def files(html):
    import gzip

    html.mkdir()
    body = text()
    (html / "text.html").write_bytes(body)
    (html / "text.html.gz").write_bytes(gzip.compress(body, 6))
    # The same megabyte with a command after each 4 KiB, and as 64 parts of 16 KiB.
    echo = b'<!--# echo var="uri" -->'
    (html / "echo.html").write_bytes(echo.join(body[at:at + 4096] for at in range(0, MEGABYTE, 4096)))
    parts = [body[at:at + 16384] for at in range(0, MEGABYTE, 16384)]
    for number, part in enumerate(parts):
        (html / f"part{number}.html").write_bytes(part)
    (html / "include.html").write_text("".join(f'<!--# include virtual="/none/part{number}.html" -->' for number in range(len(parts))))


def measure(peer, rows, args, work, found):
    prefix = work / peer.name
    (prefix / "logs").mkdir(parents=True, exist_ok=True)
    listen, conf = f"127.0.0.1:{args.port}", prefix / "filters.conf"
    source = (peers.HERE / "conf" / "filters.conf").read_text()
    if peer.name == "nginx":
        source = "\n".join(line for line in source.splitlines() if "# weir only" not in line)
    conf.write_text(source.replace("@listen@", listen).replace("@html@", str(work / "html")))
    argv = [part.format(program=peer.program, conf=conf, prefix=f"{prefix}/", listen=listen, origin="") for part in peer.argv]
    with peers.Running(peer.name, argv, peers.PEER_CORE, listen, prefix / "output.log") as running:
        os.sched_setaffinity(0, {peers.LOAD_CORE})
        for name, path, coding, in_nginx in rows:
            if in_nginx or peer.name == "weir":
                ask(listen, path, coding, 2)  # what a process takes once
                before = proc.cpu(running.pid)
                size = ask(listen, path, coding, args.megabytes)
                cost = proc.cpu(running.pid).since(before).total_ns / 1e6 / args.megabytes
                found.setdefault((peer.name, name), []).append((cost, size / MEGABYTE))


def ask(listen, path, coding, times):
    """Asks for the file so often; returns the size of its body."""
    connection = http.client.HTTPConnection(listen)
    for _ in range(times):
        connection.request("GET", path, headers={"Accept-Encoding": coding} if coding else {})
        answer = connection.getresponse()
        size = len(answer.read())
        if answer.status != 200 or answer.getheader("Content-Encoding") != coding:
            raise peers.PeerFailed(f"{path}: {answer.status} {answer.getheader('Content-Encoding')}")
    connection.close()
    return size


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--only", help="rows whose names begin with one of these words")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--port", type=int, default=18480)
    return parser.parse_args()


if __name__ == "__main__":
    main()
