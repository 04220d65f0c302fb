"""The faults of an origin behind TLS: in the handshake, and an end without close_notify."""

from http1 import CHUNKED, CHUNKS, FULL, LENGTH, TO_CLOSE
from play import BODY, CLOSED, HEAD, TIMED_OUT, Case, abort, at, close, reset, stall

SHAKING = "* while SSL handshaking to upstream"
# It depends on whether the origin had read the edge's first bytes.
CLOSED_HERE = "peer closed connection in SSL handshake|SSL_do_handshake() failed"


def shakes(name, steps, words="SSL_do_handshake() failed", expect="502", **more):
    """A fault in place of the handshake."""
    return Case(name, steps, expect, at(words, SHAKING), greets=True, follows=False, **more)


CASES = [
    shakes("plain", [b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", stall]),
    shakes("alert", [b"\x15\x03\x01\0\2\2\x28", stall]),
    shakes("zeros", [bytes(100), stall]),
    shakes("hello-cut", [b"\x16\x03\x03\0\x40\x02\0\0\x3c\x03\x03", close], CLOSED_HERE, counted="tls"),
    shakes("close", [close], CLOSED_HERE, counted="tls"),
    shakes("reset", [reset], counted="tls"),
    shakes("silent", [stall], TIMED_OUT, "504", conf="{p}_connect_timeout 400ms;"),
    Case("cut-head", [LENGTH[:20], abort], "502", CLOSED + HEAD, tls=True),
    Case("cut-length", [LENGTH + FULL[:4], abort], "200 cut", CLOSED + BODY, tls=True, body=FULL),
    Case("cut-chunked", [CHUNKED + CHUNKS[:-5], abort], "200 cut", CLOSED + BODY, tls=True, body=FULL),
    # nginx: an end without close_notify ends a body without a length. Many servers end so (RFC 9112 §9.8 would call it incomplete).
    Case("cut-to-close", [TO_CLOSE + FULL[:4], abort], "200", tls=True, body=FULL[:4]),
    Case("whole-to-close", [TO_CLOSE + FULL, close], "200", tls=True, body=FULL),
    Case("extra-once", [LENGTH + FULL + b"POISON"], "200", 'upstream sent more data than specified in "Content-Length" header', tls=True, body=FULL),
]
