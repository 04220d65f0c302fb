"""The faults of an origin that speaks HTTP/1.1."""

from play import BODY, CLOSED, HEAD, RESET_WORDS, TIMED_OUT, Case, at, close, drip, flood, idle, part, passed, reset, sent, stall, take_body, unread

OK = b"HTTP/1.1 200 OK\r\n"
LENGTH = OK + b"Cache-Control: max-age=60\r\nContent-Length: 8\r\n\r\n"
CHUNKED = OK + b"Cache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n"
TO_CLOSE = OK + b"Cache-Control: max-age=60\r\n\r\n"
CHUNKS = b"4\r\nabcd\r\n4\r\nefgh\r\n0\r\n\r\n"
TRAILERS = b"4\r\nabcd\r\n4\r\nefgh\r\n0\r\nX-Trailer: yes\r\n\r\n"
FULL = b"abcdefgh"
POISON = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON"
SHORT = "{p}_read_timeout 400ms;"

INVALID = "upstream sent invalid header" + HEAD
NO_STATUS = "upstream sent no valid HTTP/1.0 header" + HEAD
TOO_BIG = "upstream sent too big header" + HEAD
DUPLICATE = "upstream sent duplicate header line"
BAD_LENGTH = 'upstream sent invalid "Content-Length" header'
BOTH = 'upstream sent "Content-Length" and "Transfer-Encoding" headers at the same time'
UNKNOWN = 'upstream sent unknown "Transfer-Encoding"'
BAD_CHUNK = "upstream sent invalid chunked response"
MORE = 'upstream sent more data than specified in "Content-Length" header'
BEHIND = "upstream sent data after final chunk"



def cuts(name, head, body, end, words):
    """The answer ends at each of its bytes."""
    return Case(name, lambda place: [(head + body)[:place], end], lambda place: "502" if place < len(head) else "200 cut",
                lambda place: at(words, HEAD if place < len(head) else BODY), variants=len(head + body), body=FULL)


def stalls(name, head, body):
    """The answer stops at some of its bytes."""
    places = [0, 12, len(head) - 1, len(head), len(head) + 5, len(head + body) - 1]
    return Case(name, lambda at: [(head + body)[:places[at]], stall],
                lambda at: "504" if places[at] < len(head) else "200 cut",
                lambda at: TIMED_OUT + (HEAD if places[at] < len(head) else BODY), variants=len(places), body=FULL, conf=SHORT)


CUT = [
    cuts("cut-length", LENGTH, FULL, close, CLOSED),
    cuts("cut-chunked", CHUNKED, CHUNKS, close, CLOSED),
    cuts("cut-trailers", CHUNKED, TRAILERS, close, CLOSED),
    Case("cut-to-close", lambda at: [TO_CLOSE[:at], close], "502", CLOSED + HEAD, variants=len(TO_CLOSE)),
    cuts("reset-length", LENGTH, FULL, reset, RESET_WORDS),
    cuts("reset-chunked", CHUNKED, CHUNKS, reset, RESET_WORDS),
    cuts("reset-to-close", TO_CLOSE, FULL, reset, RESET_WORDS),
    stalls("stall-length", LENGTH, FULL),
    stalls("stall-chunked", CHUNKED, CHUNKS),
    stalls("stall-to-close", TO_CLOSE, FULL + b"X"),
    Case("whole-to-close", [TO_CLOSE + FULL, close], "200", body=FULL),
    Case("cut-large", [OK + b"Content-Length: 300000\r\n\r\n" + b"a" * 200_000, close], "200 cut", CLOSED + BODY, body=b"a" * 300_000),
    Case("cut-large-chunked", [CHUNKED + b"493e0\r\n" + b"a" * 200_000, close], "200 cut", CLOSED + BODY, body=b"a" * 300_000),
    Case("cut-large-unbuffered", [OK + b"Content-Length: 300000\r\n\r\n" + b"a" * 200_000, close], "200 cut", CLOSED + BODY,
         body=b"a" * 300_000, conf="{p}_buffering off;"),
    Case("reset-large", [OK + b"Content-Length: 300000\r\n\r\n" + b"a" * 200_000, reset], "200 cut", at(RESET_WORDS, BODY),
         body=b"a" * 300_000),
    Case("cut-error-page", [b"HTTP/1.1 404 Not Found\r\nContent-Length: 8\r\n\r\nabcd", close], "404 cut", CLOSED + BODY),
    Case("cut-gzip", [OK + b"Content-Type: text/html\r\nContent-Length: 8\r\n\r\nabcd", close], "200 cut", CLOSED + BODY,
         conf="gzip on; gzip_min_length 1;", fields=[("accept-encoding", "gzip")]),
    Case("cut-range", [b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-7/20\r\nContent-Length: 8\r\n\r\nabcd", close],
         "206 cut", CLOSED + BODY, fields=[("range", "bytes=0-7")], ways={"cache": None}),
]


def extra(name, head, body, status="200", log=MORE, **more):
    """Bytes behind an answer: at once, in two parts, and once the connection is idle. None may reach the next client."""
    for kind, junk in (("", b"XXXXX"), ("-answer", POISON)):
        steps = {
            "once": [head + body + junk],
            "parts": [head + body + junk[:3], part, junk[3:]],
            "idle": [head + body, idle, junk, sent],
        }
        for when, what in steps.items():
            yield Case(f"extra{kind}-{name}-{when}", what, status, None if when == "idle" else log, body=body and FULL, **more)


BODILESS = {"method": "HEAD", "ways": {"cache": None}}
EXTRA = [
    *extra("length", LENGTH, FULL),
    *extra("chunked", CHUNKED, CHUNKS, log=BEHIND),
    *extra("empty", OK + b"Content-Length: 0\r\n\r\n", b""),
    *extra("head", LENGTH, b"", **BODILESS),
    *extra("204", b"HTTP/1.1 204 No Content\r\n\r\n", b"", "204"),
    *extra("304", b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n", b"", "304", fields=[("if-none-match", '"a"')],
           ways={"cache": None}),
    Case("length-204", [b"HTTP/1.1 204 No Content\r\nContent-Length: 8\r\n\r\n" + FULL], "204", MORE, ways={"cache": None}),
    Case("chunked-204", [b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS], "204", MORE),
    Case("chunked-304", [b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS], "304", MORE,
         fields=[("if-none-match", '"a"')], ways={"cache": None}),
    Case("body-head", [LENGTH + FULL], "200", MORE, **BODILESS),
    Case("chunked-head", [CHUNKED + CHUNKS], "200", MORE, **BODILESS),
    Case("greeting", [b"220 mail.test ESMTP\r\n"], "502", NO_STATUS, greets=True),
    Case("greeting-answer", [POISON], "200", greets=True, body=b"POISON"),
]

MANY = b"HTTP/1.1 102 Processing\r\n\r\n"
INTERIM = [
    Case("interim-100", [b"HTTP/1.1 100 Continue\r\n\r\n" + LENGTH + FULL], "200", body=FULL),
    Case("interim-103", [b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + LENGTH + FULL], "200", body=FULL),
    Case("interim-parts", [MANY, part, MANY, part, LENGTH, part, FULL], "200", body=FULL),
    Case("interim-close", [MANY, close], "502", CLOSED + HEAD),
    Case("interim-cut", lambda at: [MANY[:at + 1], close], "502", CLOSED + HEAD, variants=len(MANY) - 1),
    Case("interim-stall", [MANY, stall], "504", TIMED_OUT + HEAD, conf=SHORT),
    Case("interim-17", [MANY * 17 + LENGTH + FULL], "502", TOO_BIG),
    Case("interim-flood", [flood(MANY * 100, 10_000), close], "502", TOO_BIG),
    Case("interim-body", [b"HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\nhello" + LENGTH + FULL], "502", NO_STATUS),
    Case("switch-unasked", [b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n" + POISON], "502",
         "upstream switched protocols unasked" + HEAD),
    Case("switch-bare", [b"HTTP/1.1 101 Switching Protocols\r\n\r\n", close], "502", "upstream switched protocols unasked" + HEAD),
]


def line(name, text, expect="502", log=NO_STATUS, **more):
    """A status line, with the rest of a good answer."""
    if expect == "200":
        more.setdefault("body", FULL)
    return Case("line-" + name, [text + b"\r\nContent-Length: 8\r\n\r\n" + FULL, close], expect, log, **more)


LINES = [
    Case("line-http09", [b"<html>abc</html>", close], "502", NO_STATUS),
    Case("line-http09-line", [b"<html>\nabc\n</html>\n\n", close], "502", NO_STATUS),
    Case("line-ssh", [b"SSH-2.0-OpenSSH_9.2\r\n", stall], "502", NO_STATUS),
    Case("line-tls", [b"\x15\x03\x01\x00\x02\x02\x46", close], "502", NO_STATUS),
    Case("line-zeros", [b"\0" * 100, close], "502", NO_STATUS),
    Case("line-h2", [b"\0\0\x12\4\0\0\0\0\0\0\3\0\0\0\x64\0\4\0\1\0\0\0\5\0\0\x40\0", close], "502", NO_STATUS),
    line("icy", b"ICY 200 OK"),
    line("099", b"HTTP/1.1 099 No"),
    line("99", b"HTTP/1.1 99 No"),
    line("000", b"HTTP/1.1 000 No"),
    line("2000", b"HTTP/1.1 2000 OK"),
    line("20", b"HTTP/1.1 20 OK"),
    line("letters", b"HTTP/1.1 2OO OK"),
    line("minus", b"HTTP/1.1 -200 OK"),
    line("http2", b"HTTP/2.0 200 OK"),
    line("http12", b"HTTP/1.2 200 OK", "200", None),
    line("http10", b"HTTP/1.0 200 OK", "200", None),
    line("no-minor", b"HTTP/1 200 OK"),
    line("lower", b"http/1.1 200 OK"),
    line("tab", b"HTTP/1.1\t200 OK"),
    line("two-spaces", b"HTTP/1.1  200 OK", "200", None),
    line("bare", b"HTTP/1.1 200", "200", None),
    line("no-code", b"HTTP/1.1 OK"),
    line("leading-space", b" HTTP/1.1 200 OK"),
    line("leading-line", b"\r\nHTTP/1.1 200 OK"),
    line("nul", b"HTTP/1.1 200 O\0K", "502"),
    line("return", b"HTTP/1.1 200 O\rK", "502"),
    line("high", b"HTTP/1.1 200 \xff\xfe", "200", None),
    line("999", b"HTTP/1.1 999 Odd", "999", None),
    line("long", b"HTTP/1.1 200 " + b"O" * 100_000, "502", TOO_BIG),
    Case("line-endless", [b"HTTP/1.1 200 ", flood(b"O" * 65536, 1000), close], "502", TOO_BIG),
]


def field(name, text, expect="502", log=INVALID, **more):
    """One odd field in an answer."""
    if expect == "200":
        more.setdefault("body", FULL)
    return Case("field-" + name, [OK + b"Content-Length: 8\r\n" + text + b"\r\n" + FULL], expect, log, **more)


FIELDS = [
    field("no-colon", b"no colon here\r\n"),
    field("empty-name", b": empty\r\n"),
    field("space-before-colon", b"Odd : 1\r\n"),
    field("space-in-name", b"Odd name: 1\r\n"),
    field("fold", b"Odd: 1\r\n 2\r\n"),
    field("fold-first", b" Odd: 1\r\n"),
    field("nul", b"Odd: a\0b\r\n"),
    field("nul-name", b"O\0dd: 1\r\n"),
    field("return", b"Odd: a\rb\r\n"),
    field("control", b"Odd: a\x01b\r\n", "200", None),
    field("high", b"Odd: \xff\xfe\r\n", "200", None),
    field("line-feed", b"Odd: a\n", "200", None),
    field("long", b"Odd: " + b"a" * 100_000 + b"\r\n", log=TOO_BIG),
    field("many", b"".join(b"Odd-%d: 1\r\n" % at for at in range(5000)), log=TOO_BIG),
    Case("head-endless", [OK, flood(b"Odd: 1\r\n" * 1000, 5000), close], "502", TOO_BIG),
    Case("head-32-mb", [OK + b"Odd: ", flood(b"a" * 65536, 512), b"\r\n\r\n", close], "502", TOO_BIG),
    Case("head-drip", [drip(LENGTH + FULL)], "200", body=FULL),
    Case("head-drip-endless", [OK, drip(b"Odd: 1\r\n" * 1000, 0), close], "502", TOO_BIG, conf="{p}_buffer_size 1k; {p}_buffers 8 1k; {p}_busy_buffers_size 2k;",
         ways={"cache": None}),
]


def framing(name, fields, expect="502", log=BAD_LENGTH + HEAD, body=FULL, **more):
    """The fields that say where a body ends."""
    if expect == "200":
        more.setdefault("body", FULL)
    return Case("framing-" + name, [OK + fields + b"\r\n" + body, part, close], expect, log, **more)


FRAMING = [
    framing("length-minus", b"Content-Length: -8\r\n"),
    framing("length-plus", b"Content-Length: +8\r\n"),
    framing("length-hex", b"Content-Length: 0x8\r\n"),
    framing("length-text", b"Content-Length: eight\r\n"),
    framing("length-empty", b"Content-Length: \r\n"),
    framing("length-two", b"Content-Length: 8 8\r\n"),
    framing("length-list", b"Content-Length: 8, 8\r\n"),
    framing("length-list-differs", b"Content-Length: 8, 9\r\n"),
    framing("length-zeros", b"Content-Length: 0008\r\n", "200", None),
    framing("length-space", b"Content-Length:   8  \r\n", "200", None),
    framing("length-2-63", b"Content-Length: 9223372036854775808\r\n"),
    framing("length-2-64", b"Content-Length: 18446744073709551624\r\n"),
    framing("length-huge", b"Content-Length: " + b"9" * 100 + b"\r\n"),
    framing("length-largest", b"Content-Length: 9223372036854775807\r\n", "200 cut", CLOSED + BODY),
    framing("length-twice", b"Content-Length: 8\r\nContent-Length: 8\r\n", log=DUPLICATE),
    framing("length-twice-differs", b"Content-Length: 8\r\nContent-Length: 9\r\n", log=DUPLICATE),
    framing("length-colon", b"Content-Length : 8\r\n", log=INVALID),
    framing("both", b"Content-Length: 8\r\nTransfer-Encoding: chunked\r\n", log=BOTH, body=CHUNKS),
    framing("both-swapped", b"Transfer-Encoding: chunked\r\nContent-Length: 8\r\n", log=BOTH, body=CHUNKS),
    framing("coding-twice", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", log=DUPLICATE, body=CHUNKS),
    framing("coding-list", b"Transfer-Encoding: chunked, chunked\r\n", log=UNKNOWN, body=CHUNKS),
    framing("coding-gzip", b"Transfer-Encoding: gzip\r\n", log=UNKNOWN),
    framing("coding-gzip-chunked", b"Transfer-Encoding: gzip, chunked\r\n", log=UNKNOWN, body=CHUNKS),
    framing("coding-identity", b"Transfer-Encoding: identity\r\n", log=UNKNOWN),
    framing("coding-odd", b"Transfer-Encoding: xchunked\r\n", log=UNKNOWN, body=CHUNKS),
    framing("coding-parameter", b"Transfer-Encoding: chunked;q=1\r\n", log=UNKNOWN, body=CHUNKS),
    framing("coding-control", b"Transfer-Encoding: \x0bchunked\r\n", log=UNKNOWN, body=CHUNKS),
    framing("coding-empty", b"Transfer-Encoding: \r\n", log=UNKNOWN, body=CHUNKS),
    framing("coding-upper", b"Transfer-Encoding: CHUNKED\r\n", "200", None, body=CHUNKS),
    Case("framing-coding-http10", [b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS, part, close], "200",
         body=FULL),
]


def chunk(name, bad, log=BAD_CHUNK, lenient=None, **more):
    """A fault in the chunks: in the first one, which comes with the head, and in a later one."""
    if lenient is not None:
        yield Case(f"chunk-{name}", [CHUNKED + bad, part, close], "200", None, body=lenient, **more)
        return
    yield Case(f"chunk-{name}-first", [CHUNKED + bad, part, close], "502", log + HEAD, **more)
    yield Case(f"chunk-{name}-later", [CHUNKED + b"4\r\nabcd\r\n", passed, bad, part, close], "200 cut", log + BODY, **more)


CHUNK = [
    *chunk("size-text", b"zz\r\nabcd\r\n0\r\n\r\n"),
    *chunk("size-minus", b"-4\r\nabcd\r\n0\r\n\r\n"),
    *chunk("size-plus", b"+4\r\nabcd\r\n0\r\n\r\n"),
    *chunk("size-0x", b"0x4\r\nabcd\r\n0\r\n\r\n"),
    *chunk("size-2-64", b"10000000000000004\r\nabcd\r\n0\r\n\r\n"),
    *chunk("size-2-63", b"8000000000000000\r\nabcd\r\n0\r\n\r\n"),
    *chunk("size-long", b"0" * 10_000 + b"4\r\nabcd\r\n0\r\n\r\n"),
    *chunk("size-empty", b"\r\nabcd\r\n0\r\n\r\n"),
    *chunk("size-space-before", b" 4\r\nabcd\r\n0\r\n\r\n"),
    *chunk("size-line-feed", b"4\nabcd\n0\n\n"),
    *chunk("size-return", b"4\rabcd\r\n0\r\n\r\n"),
    *chunk("size-nul", b"4\0\r\nabcd\r\n0\r\n\r\n"),
    *chunk("data-long", b"4\r\nabcdef\r\n0\r\n\r\n"),
    *chunk("data-end-missing", b"4\r\nabcd0\r\n\r\n"),
    *chunk("data-line-feed", b"4\r\nabcd\n0\r\n\r\n"),
    *chunk("extension-nul", b"4;a=\0b\r\nabcd\r\n0\r\n\r\n"),
    *chunk("extension-1-mb", b"4;a=" + b"b" * 1_000_000 + b"\r\nabcd\r\n0\r\n\r\n"),
    *chunk("extension-line-feed", b"4;a=b\nabcd\r\n0\r\n\r\n"),
    *chunk("extension-return", b"4;a=\rb\r\nabcd\r\n0\r\n\r\n"),
    *chunk("trailer-no-colon", b"4\r\nabcd\r\n0\r\nno colon\r\n\r\n"),
    *chunk("trailer-nul", b"4\r\nabcd\r\n0\r\nOdd: a\0b\r\n\r\n"),
    *chunk("trailer-fold", b"4\r\nabcd\r\n0\r\nOdd: a\r\n b\r\n\r\n"),
    *chunk("trailer-line-feed", b"4\r\nabcd\r\n0\r\nOdd: a\n\n"),
    *chunk("trailer-1-mb", b"4\r\nabcd\r\n0\r\nOdd: " + b"a" * 1_000_000 + b"\r\n\r\n"),
    *chunk("trailer-many", b"4\r\nabcd\r\n0\r\n" + b"Odd: a\r\n" * 500 + b"\r\n"),
    *chunk("last-line-feed", b"4\r\nabcd\r\n0\r\n\n"),
    *chunk("size-spaces-after", b"4  \r\nabcd\r\n0\r\n\r\n", lenient=b"abcd"),
    *chunk("extension-empty", b"4;\r\nabcd\r\n0\r\n\r\n", lenient=b"abcd"),
    *chunk("extension-odd", b"4;bad[=x\r\nabcd\r\n0\r\n\r\n", lenient=b"abcd"),
    *chunk("extension-good", b'4;a=b;c="d"\r\nabcd\r\n0\r\n\r\n', lenient=b"abcd"),
    *chunk("last-zeros", b"4\r\nabcd\r\n000\r\n\r\n", lenient=b"abcd"),
    *chunk("trailer-forbidden", b"4\r\nabcd\r\n0\r\nContent-Length: 5\r\nTransfer-Encoding: x\r\nSet-Cookie: a=b\r\n\r\n", lenient=b"abcd"),
    Case("chunk-largest", [CHUNKED + b"7fffffffffffffff\r\nabcd", part, close], "200 cut", CLOSED + BODY),
    Case("chunk-bytewise", [CHUNKED, drip(CHUNKS)], "200", body=FULL),
    Case("chunk-endless-trailer", [CHUNKED + CHUNKS[:-2], passed, flood(b"Odd: 1\r\n" * 1000, 5000), close], "200 cut", BAD_CHUNK + BODY),
    Case("chunk-endless-zeros", [CHUNKED + b"0" * 8000, flood(b"0" * 65536, 500), close], "502", BAD_CHUNK),
]

UNBUFFERED = "{p}_request_buffering off;"
REFUSAL = b"HTTP/1.1 413 Too Large\r\nContent-Length: 8\r\nConnection: close\r\n\r\nrejected"
UPLOAD = {"upload": 3_000_000, "method": "POST", "reads_body": False, "ways": {"second": None}}


def uploads(name, steps, expect, log=None, conf="", **more):
    """The same for a body that weir has read, and for one that it passes on while the client sends it."""
    yield Case(f"upload-{name}", steps, expect, log, conf=conf, **UPLOAD | more)
    yield Case(f"upload-{name}-unbuffered", steps, expect, log, conf=conf + UNBUFFERED, **UPLOAD | more)


LOST = "|".join(f"{call}() failed ({error}:" for call in ("recv", "readv", "writev", "sendfile") for error in (104, 32))
UPLOADS = [
    *uploads("413-close", [REFUSAL, close], "413"),
    *uploads("413-stays", [REFUSAL.replace(b"Connection: close\r\n", b""), take_body], "413"),
    *uploads("200-early", [LENGTH + FULL, take_body], "200", body=FULL),
    *uploads("reset", [reset], "502", LOST),
    *uploads("close", [close], "502", f"{LOST}|{CLOSED}"),
    *uploads("unread", [unread], "504", TIMED_OUT + " while sending request to upstream", conf="{p}_send_timeout 400ms;", upload=20_000_000),
    *uploads("417", [b"HTTP/1.1 417 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", close], "417"),
    *uploads("cut-answer", [LENGTH + b"abcd", close], "200 cut", at(f"{CLOSED}|{RESET_WORDS}", BODY), body=FULL),
]

NOT_SENT = {"retried": "also a POST", "follows": False}
# It depends on how far the edge was.
ENDED = CLOSED + HEAD + "".join(f"|{call}() failed (104: Connection reset by peer)" for call in ("connect", "recv", "readv", "writev"))
CONNECT = [
    Case("connect-refused", [], "502", "connect() failed (111: Connection refused) while connecting to upstream", at="refuses", **NOT_SENT),
    Case("connect-timeout", [], "504", TIMED_OUT + " while connecting to upstream", at="is full", conf="{p}_connect_timeout 400ms;", **NOT_SENT),
    Case("connect-no-socket", [], "502", "connect() to unix:/nonexistent/socket failed (2: No such file or directory) while connecting to upstream",
         at="unix:/nonexistent/socket", **NOT_SENT),
    Case("connect-close", [close], "502", ENDED, greets=True, follows=False),
    # Without POST: it depends on whether the request was sent.
    Case("connect-reset", [reset], "502", ENDED, greets=True, follows=False, ways={"post": None}),
    Case("connect-silent", [stall], "504", TIMED_OUT + HEAD, greets=True, conf=SHORT, follows=False),
]

CASES = [*CUT, *EXTRA, *INTERIM, *LINES, *FIELDS, *FRAMING, *CHUNK, *UPLOADS, *CONNECT]
