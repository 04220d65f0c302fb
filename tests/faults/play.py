"""The parts of a fault: what an origin does, and what must come of it."""

import asyncio
import contextlib
import socket
import struct

# The words of nginx's log.
CLOSED = "upstream prematurely closed connection"
RESET_WORDS = "recv() failed (104: Connection reset by peer)|readv() failed (104: Connection reset by peer)"
TIMED_OUT = "upstream timed out (110: Connection timed out)"
HEAD = " while reading response header from upstream"
BODY = " while reading upstream"

# The reasons under which weir counts a failed try, by the words of its log line.
REASONS = [
    (r"connect\(\) .*failed \((111|2):", "refused"),
    (r"(connect|recv|readv|writev|sendfile)\(\) failed \((104|32):", "reset"),
    ("timed out", "timeout"),
    ("SSL_do_handshake|certificate", "tls"),
    ("upstream (prematurely closed|rejected)", "closed"),
    ("(upstream|memcached) ", "bad_head"),
]

# The words of failures after which nginx asks another peer by default (`error timeout`).
RETRIED = f"{CLOSED}|failed [(]|timed out|SSL_do_handshake"

# The ways with a second peer: `invalid` asks it after an invalid answer too.
TWO_PEERS = ("second", "post", "invalid")


def at(words, step):
    """The line of a fault at this step; `|` separates words of which one is enough."""
    return words and "|".join(each + step for each in words.split("|"))


class End(Exception):
    """The connection is over, by the origin's will."""


class Wire:
    """The origin's end of a connection."""

    def __init__(self, reader, writer):
        self.reader, self.writer, self.body = reader, writer, 0

    async def send(self, data):
        self.writer.write(data)
        await self.writer.drain()


async def close(wire, _):
    """Closes: the edge sees the end of the stream."""
    wire.writer.close()
    raise End


async def reset(wire, _):
    """Sends RST."""
    # The bytes before it shall be read first; the kernel keeps them in any case.
    await asyncio.sleep(0.005)
    linger_off(wire.writer)
    wire.writer.transport.abort()
    raise End


async def abort(wire, _):
    """Ends TLS and the connection without a word: no close_notify comes before FIN."""
    wire.writer.get_extra_info("socket").shutdown(socket.SHUT_WR)
    await wire.reader.read()
    raise End


def linger_off(writer):
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def stall(wire, _):
    """Says nothing more until the edge closes."""
    while await wire.reader.read(65536):
        pass
    raise End


async def take_body(wire, _):
    """Reads the body of the request."""
    while wire.body:
        wire.body -= len(some := await wire.reader.read(min(wire.body, 65536)))
        if not some:
            raise End


async def unread(wire, play):
    """Reads nothing more, and stays."""
    wire.writer.transport.pause_reading()
    await asyncio.wait_for(play.answered.wait(), 20)
    raise End


async def part(wire, _):
    """Lets the edge use the bytes so far before the next come."""
    await asyncio.sleep(0.015)


async def passed(wire, play):
    """Lets the client have the beginning, if the edge passes it on."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(play.seen.wait(), 2)
    await part(wire, play)


async def idle(wire, play):
    """Waits until the client has its answer, and the connection is idle."""
    play.late = asyncio.Event()
    await asyncio.wait_for(play.answered.wait(), 20)
    await asyncio.sleep(0.02)


async def sent(wire, play):
    """The late bytes are sent: the client may go on."""
    if play.late:
        play.late.set()


def flood(data, times):
    """Sends `data` so many times, or until the edge closes."""
    async def send(wire, _):
        for _ in range(times):
            await wire.send(data)
    return send


def drip(data, pause=0.001):
    """Sends byte by byte."""
    async def send(wire, _):
        for at in range(len(data)):
            await wire.send(data[at:at + 1])
            await asyncio.sleep(pause)
    return send


class Case:
    """One fault: the steps of an origin, and what must come of it.

    `steps`: bytes to send and functions of this module; or a function that returns them, of the number of the variant (and
    of the stream over HTTP/2). `expect`: the client's outcome, as `client.Outcome.text` has it, or a function of the variant.
    `log`: a pattern of the line in the error log, `None` if there is none, or a function of the variant. `ways`: outcomes that differ by way;
    a way with `None` does not run. `body`: the whole body of the answer. `conf`: directives of the location. `upload`: bytes of
    the request's body, which the origin reads if it `reads_body`. `greets`: the fault comes before the request. `at`: where the
    origin is, if it is nowhere. `tls`: it makes a handshake. `follows`: other clients ask afterwards. `retried`: another peer is asked, against the rule of
    `RETRIED`. `counted`: weir's reason, if it is not that of the log line.
    """

    def __init__(self, name, steps, expect, log=None, *, variants=1, ways=None, body=None, conf="", method="GET",
                 upload=0, reads_body=True, greets=False, at="listens", follows=True, tls=False, retried=None, fields=(), counted=None):
        self.name, self.steps, self.expect, self.log, self.variants = name, steps, expect, log, variants
        self.ways, self.body, self.conf, self.method, self.upload = ways or {}, body, conf, method, upload
        self.reads_body, self.greets, self.at, self.follows = reads_body, greets, at, follows
        self.tls, self.retried, self.fields, self.counted = tls, retried, fields, counted

    def of(self, what, variant):
        return what(variant) if callable(what) else what


class Play:
    """The fault that an origin plays next, and the progress of its exchange."""

    def __init__(self, case, path, variant):
        self.case, self.path, self.variant = case, path, variant
        self.answered, self.seen, self.late, self.begun = asyncio.Event(), asyncio.Event(), None, False
