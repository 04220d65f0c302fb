"""The faults of an origin that speaks HTTP/2, for `proxy_http_version 2` and for gRPC."""

import struct

import hpack
from client import frame
from play import BODY, CLOSED, HEAD, RESET_WORDS, TIMED_OUT, Case, at, close, drip, flood, passed, reset, stall
from origin import Request

DATA, HEADERS, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK, PADDED, PRIORITY = 1, 4, 1, 8, 32
FULL = b"abcdefgh"
SHORT = "{p}_read_timeout 400ms;"
ANSWER = [(":status", "200"), ("cache-control", "max-age=60"), ("content-length", "8")]
OPEN = [(":status", "200"), ("cache-control", "max-age=60")]


class Http2:
    class Session:
        def __init__(self, wire, case):
            self.wire, self.case, self.begun, self.decoder = wire, case, False, hpack.Decoder()

        async def request(self):
            read = self.wire.reader.readexactly
            if not self.begun:
                self.begun = True
                await read(24)
                if getattr(self.case, "settings", True):
                    await self.wire.send(frame(SETTINGS, 0, 0))
            path = None
            while True:
                start = await read(9)
                kind, flags, stream = start[3], start[4], int.from_bytes(start[5:], "big")
                payload = await read(int.from_bytes(start[:3], "big"))
                if kind == SETTINGS and not flags & ACK:
                    await self.wire.send(frame(SETTINGS, ACK, 0))
                elif kind == PING and not flags & ACK:
                    await self.wire.send(frame(PING, ACK, 0, payload))
                elif kind == HEADERS:
                    fields = payload[5:] if flags & PRIORITY else payload
                    path = dict(self.decoder.decode(fields))[":path"]
                if kind in (HEADERS, DATA) and flags & END_STREAM and path:
                    return Request(path, stream)

        def good(self, request, case):
            body = ((case if isinstance(case, str) else "clean") + " " + request.path).encode()
            head = fields(request.stream, [(":status", "200"), ("content-length", str(len(body)))])
            return head + frame(DATA, END_STREAM, request.stream, body) + goaway(request.stream, 0)


def literal(pairs):
    """A block of fields, each as a literal without an index."""
    text = b""
    for name, value in pairs:
        name, value = name.encode("latin-1"), value.encode("latin-1")
        text += b"\0" + length(name) + name + length(value) + value
    return text


def length(text):
    if len(text) < 127:
        return bytes([len(text)])
    rest, out = len(text) - 127, b"\x7f"
    while rest >= 128:
        out, rest = out + bytes([rest % 128 + 128]), rest // 128
    return out + bytes([rest])


def fields(stream, pairs, flags=END_HEADERS):
    return frame(HEADERS, flags, stream, literal(pairs))


def rst(stream, code):
    return frame(RST, 0, stream, struct.pack(">I", code))


def goaway(last, code):
    return frame(GOAWAY, 0, 0, struct.pack(">II", last, code))


def whole(stream):
    return fields(stream, ANSWER) + frame(DATA, END_STREAM, stream, FULL)


SIZE = len(whole(1))
HEAD_SIZE = len(fields(1, ANSWER))


def cuts(name, end):
    """The answer ends at each of its bytes: of its last frame, all bytes are needed."""
    return Case(name, lambda variant, stream: [whole(stream)[:variant], end],
                lambda variant: "502" if variant < HEAD_SIZE else "200 cut",
                lambda variant: at(CLOSED, HEAD if variant < HEAD_SIZE else BODY), variants=SIZE, body=FULL)


def bad(name, what, words="", expect="502", **more):
    """A fault in place of an answer, or in its head."""
    steps = (lambda _, stream: what(stream)) if callable(what) else what
    return Case(name, steps, expect, **{"log": at(words, "*" + HEAD)} | more)


def late(name, what, words="", expect="200 cut", **more):
    """A fault after the head and a part of the body."""
    def steps(variant, stream):
        rest = what(stream)
        return [fields(stream, ANSWER) + frame(DATA, 0, stream, b"abcd"), passed, *(rest if isinstance(rest, list) else [rest])]
    return Case(name, steps, expect, at(words, "*" + BODY), body=FULL, **more)


REJECTED = "upstream rejected request with error "


def cases():
    """For both protocols, the frames are the same."""
    return [
        cuts("cut", close),
        cuts("reset", reset),
        bad("stall-silent", [], TIMED_OUT, "504", conf=SHORT),
        bad("stall-in-head", lambda s: [whole(s)[:20], stall], TIMED_OUT, "504", conf=SHORT, follows=False),
        late("stall-in-body", lambda s: [], TIMED_OUT, conf=SHORT),
        bad("drip", lambda s: [drip(whole(s))], "", "200", body=FULL),
        # Not HTTP/2 at all.
        Case("greets-http1", [b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", stall], "502", "upstream sent", greets=True, follows=False),
        Case("greets-text", [b"220 mail.test ESMTP\r\n", stall], "502", "upstream sent", greets=True, follows=False),
        Case("greets-zeros", [b"\0" * 100, stall], "502", "upstream sent", greets=True, follows=False),
        Case("greets-ping", [frame(PING, 0, 0, bytes(8)), stall], "504", TIMED_OUT + HEAD, greets=True, follows=False, conf=SHORT),
        Case("greets-silent", [stall], "504", TIMED_OUT + HEAD, greets=True, follows=False, conf=SHORT),
        Case("greets-close", [close], "502", "|".join(words + step for words in (CLOSED, *RESET_WORDS.split("|")) for step in (HEAD, " while sending request to upstream")), greets=True, follows=False),
        Case("greets-goaway", [frame(SETTINGS, 0, 0) + goaway(0, 0), close], "502", "upstream rejected request with error 0", greets=True, follows=False, retried="also a POST", counted="closed"),
        # Resets and goodbyes.
        *[bad(f"rst-{code}", lambda s, code=code: [rst(s, code)], f"{REJECTED}{code}") for code in (0, 1, 2, 3, 5, 8, 11, 13)],
        bad("rst-7", lambda s: [rst(s, 7)], REJECTED + "7", retried="also a POST"),
        *[late(f"rst-{code}-late", lambda s, code=code: rst(s, code), f"{REJECTED}{code}") for code in (0, 2, 7, 8)],
        bad("rst-after-whole", lambda s: [whole(s) + rst(s, 0)], "", "200", body=FULL),
        bad("goaway-unprocessed", lambda s: [goaway(0, 0), close], REJECTED, retried="also a POST"),
        bad("goaway-error", lambda s: [goaway(0, 2), close], REJECTED, retried="also a POST"),
        bad("goaway-goes-on", lambda s: [goaway(s, 0) + whole(s)], "", "200", body=FULL),
        late("goaway-late", lambda s: [goaway(s, 2), close], CLOSED),
        # Bodies that are not as long as they say.
        bad("length-short", lambda s: [fields(s, ANSWER), passed, frame(DATA, END_STREAM, s, b"abcd")], "", "200 cut", log="upstream sent a body*" + BODY, body=FULL),
        bad("length-short-at-once", lambda s: [fields(s, ANSWER) + frame(DATA, END_STREAM, s, b"abcd")], "", "200 cut", log="upstream sent a body*" + BODY, body=FULL),
        bad("length-long", lambda s: [fields(s, ANSWER), passed, frame(DATA, END_STREAM, s, FULL + b"X")], "", "200 cut", log="upstream sent a body*" + BODY),
        bad("length-long-at-once", lambda s: [fields(s, ANSWER) + frame(DATA, END_STREAM, s, FULL + b"X")], "", "200 cut", log="upstream sent a body*" + BODY),
        bad("length-no-body", lambda s: [fields(s, ANSWER, END_HEADERS | END_STREAM)], "upstream sent"),
        bad("length-twice", lambda s: [fields(s, ANSWER + [("content-length", "9")]) + frame(DATA, END_STREAM, s, FULL)], "upstream sent duplicate header line"),
        bad("length-text", lambda s: [fields(s, OPEN + [("content-length", "8x")]) + frame(DATA, END_STREAM, s, FULL)], 'upstream sent invalid "Content-Length" header'),
        bad("data-after-end", lambda s: [whole(s) + frame(DATA, END_STREAM, s, b"POISON")], "", "200", body=FULL),
        bad("head-after-end", lambda s: [whole(s) + fields(s, ANSWER) + frame(DATA, END_STREAM, s, b"POISON..")], "", "200", body=FULL),
        bad("body-204", lambda s: [fields(s, [(":status", "204")]) + frame(DATA, END_STREAM, s, b"POISON")], "", "204"),
        bad("body-head", lambda s: [whole(s)], "", "200", method="HEAD", ways={"cache": None, "grpc": None}),
        # Heads.
        bad("no-status", lambda s: [fields(s, [("x", "y")]) + frame(DATA, END_STREAM, s, FULL)], "upstream sent"),
        *[bad(f"status-{status or 'empty'}", lambda s, status=status: [fields(s, [(":status", status)]) + frame(DATA, END_STREAM, s, FULL)], "upstream sent")
          for status in ("", "99", "099", "2000", "abc", "+20", "000")],
        bad("status-twice", lambda s: [fields(s, [(":status", "200"), (":status", "200")]) + frame(DATA, END_STREAM, s, FULL)], "upstream sent"),
        bad("status-late", lambda s: [fields(s, [("x", "y"), (":status", "200")]) + frame(DATA, END_STREAM, s, FULL)], "upstream sent"),
        bad("pseudo-unknown", lambda s: [fields(s, OPEN + [(":path", "/")]) + frame(DATA, END_STREAM, s, FULL)], "upstream sent"),
        bad("switch", lambda s: [fields(s, [(":status", "101")]) + frame(DATA, END_STREAM, s, FULL)], "upstream sent"),
        bad("interim", lambda s: [fields(s, [(":status", "103"), ("link", "</a>")]) + whole(s)], "", "200", body=FULL),
        bad("interim-ends", lambda s: [fields(s, [(":status", "103")], END_HEADERS | END_STREAM)], "upstream sent"),
        bad("interim-flood", lambda s: [flood(fields(s, [(":status", "103")]) * 100, 1000)], "upstream sent too big header"),
        bad("name-upper", lambda s: [fields(s, OPEN + [("X-Upper", "1")]) + frame(DATA, END_STREAM, s, FULL)], "upstream sent"),
        bad("name-empty", lambda s: [fields(s, OPEN + [("", "1")]) + frame(DATA, END_STREAM, s, FULL)], "upstream sent"),
        bad("name-space", lambda s: [fields(s, OPEN + [("a b", "1")]) + frame(DATA, END_STREAM, s, FULL)], "upstream sent"),
        *[bad(f"value-{word}", lambda s, byte=byte: [fields(s, OPEN + [("odd", f"a{byte}b")]) + frame(DATA, END_STREAM, s, FULL)], "upstream sent")
          for word, byte in (("nul", "\0"), ("line-feed", "\n"), ("return", "\r"), ("crlf", "\r\nSet-Cookie: a=b\r\n"))],
        *[bad(f"hop-{name}", lambda s, name=name, value=value: [fields(s, OPEN + [(name, value)]) + frame(DATA, END_STREAM, s, FULL)], "upstream sent")
          for name, value in (("connection", "close"), ("transfer-encoding", "chunked"), ("keep-alive", "1"), ("upgrade", "x"))],
        bad("head-large", lambda s: [fields(s, OPEN + [("odd", "a" * 15000)]) + frame(DATA, END_STREAM, s, FULL)], "upstream sent too big header", conf="{p}_buffer_size 8k;"),
        bad("head-endless", lambda s: [fields(s, OPEN, 0), flood(frame(CONTINUATION, 0, s, literal([("odd", "a" * 100)])) * 100, 5000)], "upstream sent"),
        bad("head-many-empty", lambda s: [fields(s, OPEN, 0), flood(frame(CONTINUATION, 0, s) * 1000, 1000)], "upstream sent"),
        # HPACK.
        bad("hpack-garbage", lambda s: [frame(HEADERS, END_HEADERS, s, b"\xff" * 20)], "upstream sent"),
        bad("hpack-index", lambda s: [frame(HEADERS, END_HEADERS, s, b"\x88\xfe")], "upstream sent"),
        bad("hpack-cut", lambda s: [frame(HEADERS, END_HEADERS, s, literal(ANSWER)[:-3])], "upstream sent"),
        bad("hpack-table", lambda s: [frame(HEADERS, END_HEADERS, s, b"\x3f\xff\xff\xff\x0f\x88")], "upstream sent"),
        bad("hpack-huffman", lambda s: [frame(HEADERS, END_HEADERS, s, b"\x88\0\x84\xff\xff\xff\xff\x011")], "upstream sent"),
        bad("hpack-bomb", lambda s: [frame(HEADERS, END_HEADERS, s, b"\x88\x40\x01x\x7f\xe1\x1e" + b"a" * 4000 + b"\xbe" * 12000) + frame(DATA, END_STREAM, s, FULL)], "upstream sent"),
        # Frames.
        bad("data-first", lambda s: [frame(DATA, END_STREAM, s, FULL)], "upstream sent"),
        bad("data-stream-0", lambda s: [frame(DATA, 0, 0, FULL)], "upstream sent"),
        bad("head-stream-0", lambda s: [fields(0, ANSWER)], "upstream sent"),
        bad("head-other-stream", lambda s: [fields(s + 10, ANSWER) + frame(DATA, END_STREAM, s + 10, b"POISON..")], "upstream sent"),
        bad("head-even-stream", lambda s: [fields(2, ANSWER) + frame(DATA, END_STREAM, 2, b"POISON..")], "upstream sent"),
        bad("push", lambda s: [frame(PUSH, END_HEADERS, s, struct.pack(">I", 2) + literal([(":path", "/")]))], "upstream sent"),
        bad("frame-too-large", lambda s: [frame(HEADERS, END_HEADERS, s, literal(OPEN)) + frame(DATA, END_STREAM, s, b"a" * 200_000)], "", "200 cut", log="upstream sent*" + BODY),
        bad("padding-too-long", lambda s: [frame(HEADERS, END_HEADERS | PADDED, s, b"\xff" + literal(ANSWER))], "upstream sent"),
        bad("padding-good", lambda s: [frame(HEADERS, END_HEADERS | PADDED, s, b"\2" + literal(ANSWER) + b"\0\0") + frame(DATA, END_STREAM | PADDED, s, b"\3" + FULL + b"\0" * 3)], "", "200", body=FULL),
        late("padding-late", lambda s: frame(DATA, END_STREAM | PADDED, s, b"\xffabcd"), "upstream sent"),
        bad("continuation-missing", lambda s: [fields(s, ANSWER, 0) + frame(DATA, END_STREAM, s, FULL)], "upstream sent"),
        bad("continuation-alone", lambda s: [frame(CONTINUATION, END_HEADERS, s, literal(ANSWER))], "upstream sent"),
        bad("continuation-good", lambda s: [frame(HEADERS, 0, s, literal(ANSWER)[:10]) + frame(CONTINUATION, END_HEADERS, s, literal(ANSWER)[10:]) + frame(DATA, END_STREAM, s, FULL)], "", "200", body=FULL),
        bad("unknown-frame", lambda s: [frame(0xEE, 0xFF, s, b"odd") + whole(s)], "", "200", body=FULL),
        bad("rst-short", lambda s: [frame(RST, 0, s, b"\0")], "upstream sent"),
        bad("rst-stream-0", lambda s: [frame(RST, 0, 0, bytes(4))], "upstream sent"),
        bad("settings-odd", lambda s: [frame(SETTINGS, 0, 0, b"12345")], "upstream sent"),
        bad("settings-stream", lambda s: [frame(SETTINGS, 0, s, b"")], "upstream sent"),
        bad("settings-window", lambda s: [frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 1 << 31))], "upstream sent"),
        bad("settings-frame-size", lambda s: [frame(SETTINGS, 0, 0, struct.pack(">HI", 5, 1))], "upstream sent"),
        bad("settings-push", lambda s: [frame(SETTINGS, 0, 0, struct.pack(">HI", 2, 2))], "upstream sent", ways={}),
        bad("settings-ack-payload", lambda s: [frame(SETTINGS, ACK, 0, bytes(6))], "upstream sent"),
        bad("settings-flood", lambda s: [flood(frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 100)) * 1000, 500)], "upstream sent"),
        bad("ping-flood", lambda s: [flood(frame(PING, 0, 0, bytes(8)) * 1000, 500)], "upstream sent"),
        bad("ping-short", lambda s: [frame(PING, 0, 0, bytes(7))], "upstream sent"),
        bad("window-0", lambda s: [frame(WINDOW, 0, 0, bytes(4))], "upstream sent"),
        bad("window-overflow", lambda s: [frame(WINDOW, 0, 0, struct.pack(">I", 0x7FFFFFFF)) * 2], "upstream sent"),
        bad("window-stream-overflow", lambda s: [frame(WINDOW, 0, s, struct.pack(">I", 0x7FFFFFFF)) * 2], "upstream sent"),
        bad("window-short", lambda s: [frame(WINDOW, 0, 0, b"\1")], "upstream sent"),
        bad("empty-data-flood", lambda s: [fields(s, OPEN), flood(frame(DATA, 0, s) * 1000, 1000)], "", "200 cut", log="upstream sent*" + BODY),
        bad("goaway-short", lambda s: [frame(GOAWAY, 0, 0, b"1234")], "upstream sent"),
        # Trailers.
        bad("trailers", lambda s: [fields(s, OPEN) + frame(DATA, 0, s, FULL) + fields(s, [("grpc-status", "0")], END_HEADERS | END_STREAM)], "", "200", body=FULL),
        late("trailers-open", lambda s: fields(s, [("grpc-status", "0")]), "upstream sent"),
        late("trailers-status", lambda s: fields(s, [(":status", "200")], END_HEADERS | END_STREAM), "upstream sent"),
        late("trailers-short", lambda s: fields(s, [("grpc-status", "0")], END_HEADERS | END_STREAM), "upstream sent"),
        late("trailers-bad-value", lambda s: fields(s, [("odd", "a\nb")], END_HEADERS | END_STREAM), "upstream sent"),
    ]
