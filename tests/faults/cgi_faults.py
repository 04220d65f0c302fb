"""The faults of applications that speak FastCGI, uwsgi or SCGI, and of memcached."""

import struct

from origin import END, record, stdout
from play import BODY, CLOSED, HEAD, RESET_WORDS, TIMED_OUT, Case, at, close, drip, flood, part, passed, reset, stall

FULL = b"abcdefgh"
FIELDS = b"Cache-Control: max-age=60\r\nContent-Length: 8\r\n\r\n"
OPEN = b"Cache-Control: max-age=60\r\n\r\n"
SHORT = "{p}_read_timeout 400ms;"
INVALID = "upstream sent invalid header" + HEAD
TOO_BIG = "upstream sent too big header" + HEAD
STDOUT_CLOSED = "upstream prematurely closed FastCGI stdout"
MORE = 'upstream sent more data than specified in "Content-Length" header'


def cuts(name, wire, head, end, words, whole=()):
    """The answer ends at each of its bytes; at the places `whole`, it is whole."""
    def expect(place):
        return "502" if place < head else "200" if place in whole else "200 cut"

    def log(place):
        # The end of standard output is the end of the answer.
        return None if place == len(wire) - 16 and place in whole else at(words, HEAD if place < head else BODY)
    return Case(name, lambda place: [wire[:place], end], expect, log, variants=len(wire), body=FULL)


LENGTH = stdout(FIELDS + FULL) + END
CHUNKS = stdout(OPEN) + stdout(b"abcd") + stdout(b"efgh") + END


def wrong(name, what, words, expect="502", step=HEAD, **more):
    return Case(name, what, expect, at(words, "*" + step), **more)


FASTCGI = [
    cuts("cut-length", LENGTH, 8 + len(FIELDS), close, CLOSED, range(len(LENGTH) - 24, len(LENGTH))),
    cuts("cut-open", CHUNKS, 8 + len(OPEN), close, CLOSED, [len(CHUNKS) - 16]),
    cuts("reset-open", CHUNKS, 8 + len(OPEN), reset, RESET_WORDS),
    wrong("stall-silent", [stall], TIMED_OUT, "504", conf=SHORT),
    wrong("stall-in-head", [stdout(FIELDS)[:20], stall], TIMED_OUT, "504", conf=SHORT),
    wrong("stall-in-body", [stdout(FIELDS + b"abcd"), stall], TIMED_OUT, "200 cut", BODY, body=FULL, conf=SHORT),
    wrong("stall-open", [stdout(OPEN + b"abcd"), stall], TIMED_OUT, "200 cut", BODY, body=FULL, conf=SHORT),
    wrong("stall-before-end", [stdout(OPEN + FULL), stall], TIMED_OUT, "200 cut", BODY, body=FULL, conf=SHORT),
    wrong("drip", [drip(LENGTH)], "", "200", body=FULL),
    wrong("version", [stdout(FIELDS + FULL, version=9) + END], "upstream sent unsupported FastCGI protocol version: 9"),
    wrong("type", [record(9, b"x") + LENGTH], "upstream sent invalid FastCGI record type: 9"),
    wrong("id-low", [stdout(FIELDS + FULL, number=7) + END], "upstream sent unexpected FastCGI request id low byte: 7"),
    wrong("id-high", [stdout(FIELDS + FULL, number=0x101) + END], "upstream sent unexpected FastCGI request id high byte: 1"),
    wrong("end-first", [END[8:]], "upstream sent unexpected FastCGI record: 3"),
    wrong("stdout-closed-first", [END], STDOUT_CLOSED, counted="bad_head"),
    wrong("stdout-closed-in-head", [stdout(FIELDS[:10]) + END], STDOUT_CLOSED, counted="bad_head"),
    wrong("http", [b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nabcdefgh"], "upstream sent unsupported FastCGI protocol version: 72"),
    wrong("zeros", [bytes(100)], "upstream sent unsupported FastCGI protocol version: 0"),
    wrong("version-late", [stdout(FIELDS + b"abcd"), passed, stdout(b"efgh", version=9) + END], "upstream sent unsupported FastCGI protocol version: 9", "200 cut", BODY, body=FULL),
    wrong("type-late", [stdout(OPEN + b"abcd"), passed, record(9, b"x") + END], "upstream sent invalid FastCGI record type: 9", "200 cut", BODY, body=FULL),
    wrong("id-late", [stdout(OPEN + b"abcd"), passed, stdout(b"efgh", number=7) + END], "upstream sent unexpected FastCGI request id low byte: 7", "200 cut", BODY, body=FULL),
    wrong("short", [stdout(FIELDS + b"abcd") + END], STDOUT_CLOSED, "200 cut", BODY, body=FULL),
    wrong("short-end-only", [stdout(FIELDS + b"abcd") + END[8:]], "upstream prematurely closed FastCGI request", "200 cut", BODY, body=FULL),
    wrong("long", [stdout(FIELDS + FULL + b"XXX") + END], MORE, "200", BODY, body=FULL),
    # Once the answer is whole, weir may have stopped to read before the rest comes: then nothing is wrong.
    Case("long-parts", [stdout(FIELDS + FULL), part, stdout(b"XXX") + END], "200", None, body=FULL),
    wrong("extra-once", [LENGTH + b"POISON"], "", "200", body=FULL),
    wrong("extra-parts", [LENGTH + b"POI", part, b"SON"], "", "200", body=FULL),
    wrong("extra-answer", [LENGTH + stdout(b"Content-Length: 6\r\n\r\nPOISON") + END], "", "200", body=FULL),
    wrong("extra-answer-parts", [LENGTH + stdout(b"Content-Length: 6\r\n\r\nPOISON"), part, END], "", "200", body=FULL),
    wrong("body-204", [stdout(b"Status: 204 No Content\r\n\r\nPOISON") + END], "", "204"),
    wrong("body-head", [LENGTH], "", "200", method="HEAD", ways={"cache": None}),
    wrong("status-text", [stdout(b"Status: none\r\n\r\nx") + END], "upstream sent invalid status"),
    wrong("status-99", [stdout(b"Status: 99 No\r\n\r\nx") + END], "upstream sent invalid status"),
    wrong("status-100", [stdout(b"Status: 100 Go on\r\n\r\nx") + END], "upstream sent invalid status"),
    wrong("no-colon", [stdout(b"no colon\r\n\r\nx") + END], "upstream sent invalid header"),
    wrong("nul", [stdout(b"Odd: a\0b\r\n\r\nx") + END], "upstream sent invalid header"),
    wrong("length-text", [stdout(b"Content-Length: x\r\n\r\nx") + END], 'upstream sent invalid "Content-Length" header'),
    wrong("length-twice", [stdout(b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx") + END], "upstream sent duplicate header line"),
    wrong("head-long", [stdout(b"Odd: " + b"a" * 60_000 + b"\r\n\r\n") + END], "upstream sent too big header"),
    wrong("head-endless", [flood(stdout(b"Odd: a\r\n" * 1000), 1000), close], "upstream sent too big header"),
    wrong("application-error", [stdout(FIELDS + FULL) + record(6, b"") + record(3, struct.pack(">IB3x", 1, 0))], "", "200", body=FULL),
    wrong("overloaded", [record(3, struct.pack(">IB3x", 0, 2))], "upstream sent unexpected FastCGI record: 3"),
    wrong("padding", [record(6, FIELDS + FULL, 255) + END], "", "200", body=FULL),
    wrong("unasked-chunked", [stdout(b"Transfer-Encoding: chunked\r\n\r\nzz\r\n") + END], "", "200", body=b"zz\r\n", ways={}),
]


def plain(protocol):
    """uwsgi and SCGI: the answer is a CGI head and a body, and the end of the connection ends both."""
    length, opened = b"Status: 200 OK\r\n" + FIELDS, b"Status: 200 OK\r\n" + OPEN
    return [
        cuts("cut-length", length + FULL, len(length), close, CLOSED),
        cuts("cut-open", opened, len(opened), close, CLOSED),
        cuts("reset-length", length + FULL, len(length), reset, RESET_WORDS),
        cuts("reset-open", opened + FULL, len(opened), reset, RESET_WORDS),
        wrong("stall-silent", [stall], TIMED_OUT, "504", conf=SHORT),
        wrong("stall-in-head", [length[:20], stall], TIMED_OUT, "504", conf=SHORT),
        wrong("stall-in-body", [length + b"abcd", stall], TIMED_OUT, "200 cut", BODY, body=FULL, conf=SHORT),
        wrong("stall-open", [opened + FULL, stall], TIMED_OUT, "200 cut", BODY, body=FULL, conf=SHORT),
        wrong("extra", [length + FULL + b"POISON"], MORE, "200", BODY, body=FULL),
        wrong("extra-parts", [length + FULL + b"POI", part, b"SON"], MORE, "200", BODY, body=FULL),
        wrong("status-line", [b"HTTP/1.1 201 Created\r\nContent-Length: 8\r\n\r\nabcdefgh"], "", "201"),
        wrong("status-text", [b"Status: none\r\n\r\nx", close], "upstream sent invalid status"),
        wrong("status-99", [b"Status: 99 No\r\n\r\nx", close], "upstream sent invalid status"),
        wrong("no-colon", [b"no colon\r\n\r\nx", close], "upstream sent invalid header"),
        wrong("nul", [b"Odd: a\0b\r\n\r\nx", close], "upstream sent invalid header"),
        wrong("length-text", [b"Content-Length: x\r\n\r\nx", close], 'upstream sent invalid "Content-Length" header'),
        wrong("head-long", [b"Odd: " + b"a" * 60_000 + b"\r\n\r\n", close], "upstream sent too big header"),
        wrong("body-204", [b"Status: 204 No Content\r\n\r\nPOISON", close], "", "204"),
        wrong("body-head", [length + FULL, close], "", "200", method="HEAD", ways={"cache": None}),
        wrong("switch-unasked", [b"Status: 101 Switching Protocols\r\n\r\nPOISON", close], "upstream switched protocols unasked"),
    ]


class Value:
    """A step that answers with the key that was asked for."""

    def __init__(self, text):
        self.text = text

    async def __call__(self, wire, play):
        await wire.send(self.text.replace(b"KEY", play.path.encode()))


class CutValue(Value):
    def __init__(self, text, place):
        self.text, self.place = text, place

    async def __call__(self, wire, play):
        whole = self.text.replace(b"KEY", play.path.encode())
        # The place counts from the end: keys differ in length.
        await wire.send(whole[:len(whole) - self.place])


GOOD = b"VALUE KEY 0 8\r\nabcdefgh\r\nEND\r\n"
BEHIND_HEAD = len(b"abcdefgh\r\nEND\r\n")
BAD = "memcached sent invalid "


def cut_value(place):
    """Without its last bytes, the trailer, the value itself is whole."""
    return "200" if place < 7 else "200 cut" if place + 1 <= BEHIND_HEAD else "502"


MEMCACHED = [
    Case("cut", lambda place: [CutValue(GOOD, place + 1), close], cut_value,
         lambda place: CLOSED + (BODY if place + 1 <= BEHIND_HEAD else HEAD), variants=BEHIND_HEAD + 12, body=FULL),
    Case("reset", lambda place: [CutValue(GOOD, place + 8), reset], lambda place: cut_value(place + 7),
         lambda place: at(RESET_WORDS, BODY if place + 8 <= BEHIND_HEAD else HEAD), variants=BEHIND_HEAD + 5, body=FULL),
    wrong("stall-silent", [stall], TIMED_OUT, "504", conf=SHORT),
    wrong("stall-in-body", [Value(GOOD[:20]), stall], TIMED_OUT, "200 cut", BODY, body=FULL, conf=SHORT),
    wrong("other-key", [b"VALUE other 0 8\r\nabcdefgh\r\nEND\r\n"], BAD + "key"),
    wrong("no-flags", [Value(b"VALUE KEY\r\nabcdefgh\r\nEND\r\n")], "memcached sent invalid"),
    wrong("length-text", [Value(b"VALUE KEY 0 x\r\nabcdefgh\r\nEND\r\n")], BAD + "length"),
    wrong("length-minus", [Value(b"VALUE KEY 0 -8\r\nabcdefgh\r\nEND\r\n")], BAD + "length"),
    wrong("error", [b"ERROR\r\n"], BAD + "response"),
    wrong("server-error", [b"SERVER_ERROR out of memory\r\n"], BAD + "response"),
    wrong("http", [b"HTTP/1.1 400 Bad Request\r\n\r\n", close], BAD + "response"),
    wrong("line-endless", [flood(b"V" * 65536, 500), close], "upstream sent too big header"),
    wrong("trailer-wrong", [Value(b"VALUE KEY 0 8\r\nabcdefgh\r\nENDE\r\n")], "memcached sent invalid trailer", "200", BODY, body=FULL, ways={}),
    wrong("body-long", [Value(b"VALUE KEY 0 8\r\nabcdefghXXX\r\nEND\r\n")], "memcached sent invalid trailer", "200", BODY, body=FULL, ways={}),
    wrong("extra", [Value(GOOD + b"VALUE KEY 0 6\r\nPOISON\r\nEND\r\n")], "memcached sent invalid trailer", "200", BODY, body=FULL),
    wrong("extra-parts", [Value(GOOD + b"VALUE KEY 0 6\r\nPOI"), part, b"SON\r\nEND\r\n"], "memcached sent invalid trailer", "200", BODY, body=FULL),
]
