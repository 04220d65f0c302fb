"""Vulnerabilities of the `mp4` module: films whose tables lie."""
import random
import struct
import time

import wire
from row import Row
from target import need
from wire import atom, movie, words

SERVER = "server { listen 127.0.0.1:<port>; <alive> root <dir>/files; location / { mp4; } }"
# Wrong numbers for a table.
NUMBERS = [0, 1, 2, 3, 8, 0x7f, 0xffff, 0x10000, 0x3fffffff, 0x40000001, 0x7fffffff, 0x80000000, 0xfffffff0, 0xfffffffe, 0xffffffff]
QUERIES = ["start=0", "start=1", "start=1&end=2", "start=3.9", "end=1", "start=39", "start=9.5&end=39", "start=0&end=99", "start=3.95&end=3.96"]
# Films of each set of random changes.
FILMS = 120


def play(films):
    """An attack that asks for parts of each film."""

    def attack(target):
        for place, film in enumerate(films()):
            target.write(f"files/{place}.mp4", film)
            for query in QUERIES[:3] if place % 4 and place > 12 else QUERIES:
                begun = time.monotonic()
                answer = target.get(f"/{place}.mp4?{query}", patience=10)
                need(time.monotonic() - begun < 9, f"film {place}, {query}: no answer in 10 seconds")
                # nginx closes the connection if a part would be empty.
                need(answer.status in (200, 206, 400, 404, 416, 500) or not target.is_weir and answer.status == 0, f"film {place}, {query}: status {answer.status}")
                need(answer.status == 500 or len(answer.body) <= len(film) + 4096, f"film {place}, {query}: {len(answer.body)} bytes of {len(film)}")

    return attack


def changed(data, rng, keep):
    """The bytes with some of their numbers replaced, but for the first `keep` bytes."""
    places = list(range(keep, len(data) - 3, 4))
    data = bytearray(data)
    for place in rng.sample(places, min(len(places), rng.randint(1, 4))):
        data[place:place + 4] = struct.pack(">I", rng.choice(NUMBERS))
    return bytes(data)


def tables(*names, seed):
    """Films in which the numbers of these tables are changed at random, with the same films in each run."""

    def films():
        rng = random.Random(seed)
        for _ in range(FILMS):
            name = rng.choice(names)
            yield movie({name: changed(wire.tables(700)[name], rng, 12)})

    return films


def long_tables():
    """Tables that end before the number of their entries, and atoms that are longer than their container."""
    for name in ("stts", "stss", "ctts", "stsc", "stsz", "stco"):
        for count in (0, 41, 0x10000000, 0x20000001, 0x40000000, 0x80000000, 0xffffffff):
            data = bytearray(wire.tables(700)[name])
            place = 16 if name == "stsz" else 12
            data[place:place + 4] = words(count)
            yield movie({name: bytes(data)})
        for size in (8, 9, 11, 12, 15, 16, 0x7fffffff, 0xffffffff):
            yield movie({name: words(size) + wire.tables(700)[name][4:]})
        yield movie({name: b""})
    for kind in ("mvhd", "tkhd", "mdhd", "hdlr", "stbl", "minf", "mdia", "trak"):
        yield movie(wrap={kind: lambda data: words(len(data) - 8 - 20) + data[4:]})
        yield movie(wrap={kind: lambda data: words(8) + data[4:8]})
        yield movie(wrap={kind: lambda data: words(0xfffffff0) + data[4:]})
    for cut in range(40, 700, 37):
        yield movie()[:cut]
    yield from tables("stts", "stss", "ctts", "stsc", "stsz", "stco", seed=2089)()


def long_sizes():
    """Atoms with a size of 64 bits that is smaller than their own head, or wraps."""
    for size in (*range(16), 16, 17, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 16):
        for kind in ("ftyp", "moov", "mvhd", "trak", "tkhd", "mdia", "mdhd", "stbl", "mdat"):
            yield movie(wrap={kind: lambda data, size=size: words(1) + data[4:8] + struct.pack(">Q", size) + data[8:]})
        # An atom that no reader of the module knows: only its size counts.
        free = words(1) + b"free" + struct.pack(">Q", size) + bytes(32)
        yield movie(more=[free])
        yield movie(wrap={"ftyp": lambda data, free=free: data + free})


def twice():
    """Films with an atom twice, the second of another size."""
    plain = wire.tables(700)
    for name in plain:
        yield movie(more=[plain[name]])
        for other in ("stco", "stsz", "stsc", "stts", "co64"):
            small = {"stco": words(0, 1, 700), "co64": words(0, 1, 0, 700), "stsz": words(0, 10, 1), "stsc": words(0, 1, 1, 1, 1), "stts": words(0, 1, 1, 100)}[other]
            yield movie(more=[atom(other, small), plain[name]])
            yield movie({"stco": plain["stco"] + atom(other, small)}, more=[plain[name]])
    for kind in ("ftyp", "mvhd", "tkhd", "mdhd", "hdlr", "stbl", "minf", "mdia", "trak", "mdat", "moov"):
        yield movie(wrap={kind: lambda data: data * 2})
        yield movie(wrap={kind: lambda data: data * 2 + data[:4] + b"free" + data[8:]})


def counted_twice():
    """Films with a short table of chunks and then a long one: the count is of one, the table is the other."""
    for count in (40, 100, 400):
        common = {"stts": atom("stts", words(0, 1, count, 100)), "stss": b"", "ctts": b"", "stsz": atom("stsz", words(0, 1, count)), "stco": b""}
        small = {"stco": atom("stco", words(0, 1, 40)), "co64": atom("co64", words(0, 1, 0, 40))}
        large = {"stco": atom("stco", words(0, count, *[40] * count)), "co64": atom("co64", words(0, count, *[0, 40] * count))}
        for first in small:
            for second in large:
                yield movie(common, more=[small[first], large[second]], tables_last=True)
                yield movie(common, more=[large[second], small[first]], tables_last=True)


def all_twice():
    yield from counted_twice()
    yield from twice()


def empty_chunks():
    """Films whose tables of chunks, or of 64-bit chunks, are empty, or begin at their end."""
    plain = wire.tables(700)
    for count in (0, 1, wire.SAMPLES):
        for name, table in (("stco", words(0, count, *[700] * count)), ("co64", words(0, count, *[0, 700] * count))):
            for stsc in (words(0, 1, 1, 1, 1), words(0, 1, 1, wire.SAMPLES, 1), words(0, 2, 1, 1, 1, 41, 1, 1), words(0, 0)):
                for stsz in (plain["stsz"], atom("stsz", words(0, 0, 0)), atom("stsz", words(0, 10, wire.SAMPLES))):
                    change = {"stsc": atom("stsc", stsc), "stsz": stsz, "stco": atom(name, table)}
                    yield movie(change)
                    yield movie(change, tables_last=True)
    yield from tables("stco", "stsc", "stsz", seed=32647)()


def unordered():
    """Tables of chunks whose order is wrong, or whose numbers overflow 32 bits."""
    rng = random.Random(7347)
    for _ in range(2 * FILMS):
        first = 1
        entries = []
        for _ in range(rng.randint(2, 6)):
            entries += [first, rng.choice([1, 2, 3, 0x1000, 0x10000, 0x01000000, 0x7fffffff, 0xffffffff]), 1]
            first = rng.choice([first + 1, first + 7, 1, 2, 40, 41, 0x10000, 0x7fffffff, 0xffffffff])
        yield movie({"stsc": atom("stsc", words(0, len(entries) // 3, *entries))})


def row(cve, title, holes, films, release="", **more):
    return Row(cve, title, holes, "each place of a file is checked, and tables have bounds; safe Rust", play(films), http=SERVER, release=release, **more)


ROWS = [
    row("2012-2089", "`mp4`: buffer overflow", "1.0.7-1.0.14, 1.1.3-1.1.18", long_tables, "1.1.18"),
    row("2018-16845", "`mp4`: memory of the worker, endless loop", "1.0.7-1.0.15, 1.1.3-1.15.5", long_sizes, "1.15.5"),
    row("2022-41741, 2022-41742", "`mp4`: memory corruption and disclosure by an atom that appears twice", "1.0.7-1.0.15, 1.1.3-1.23.1", all_twice, "1.23.1"),
    row("2024-7347", "`mp4`: over-read by the table of chunks", "1.5.13-1.27.0", unordered, "1.27.0"),
    row("2026-32647", "`mp4`: over-read and overwrite by empty tables", "1.1.19-1.29.6", empty_chunks, "1.29.6"),
    row("2026-27784", "`mp4`: overflow of 32-bit numbers", "1.1.19-1.29.6", tables("stts", "stss", "ctts", "stsc", "stsz", "stco", seed=27784),
        unbuilt="only a build for 32 bits has the hole"),
]
