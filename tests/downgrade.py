#!/usr/bin/env python3
"""HTTP/2 requests that a proxy must not turn into other HTTP/1.1 requests: what reaches the origin, case by case.

    tests/downgrade.py CASES.json --weir BIN

CASES.json is shared/tools/conformance/h2-downgrade-cases.json. Starts an edge and a recording origin on loopback; prints a line a
case and how many went as they should.
"""

import argparse
import json
import socket
import struct
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from ports import free_port

WAIT_SECONDS = 1.2
CONF = """daemon off; worker_processes 1; error_log error.log info; pid nginx.pid;
events {{}}
http {{ access_log off; server {{ listen 127.0.0.1:{listen}; http2 on; location / {{ proxy_pass http://127.0.0.1:{origin}; }} }} }}
"""
DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY = 0, 1, 3, 4, 7
END_STREAM, END_HEADERS, ACK = 1, 4, 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--weir", required=True, type=Path)
    args = parser.parse_args()
    origin = Origin()
    listen = free_port()
    with tempfile.TemporaryDirectory(prefix="weir-downgrade-") as prefix:
        conf = Path(prefix) / "nginx.conf"
        (Path(prefix) / "logs").mkdir()
        conf.write_text(CONF.format(listen=listen, origin=origin.port))
        edge = subprocess.Popen([args.weir.resolve(), "edge", "-c", conf, "-p", prefix])
        try:
            wait_for(listen)
            cases = json.loads(args.cases.read_text())
            good = sum(judge(case, listen, origin) for case in cases)
        finally:
            edge.terminate()
            edge.wait()
    print(f"{good} of {len(cases)}")
    raise SystemExit(0 if good == len(cases) else 1)


def judge(case, port, origin):
    """Sends one case; whether what came of it is allowed, and nothing forbidden reached the origin."""
    origin.seen.clear()
    frames = ask(port, request(case))
    seen = list(origin.seen)
    refused = any(kind in (HEADERS, RST_STREAM, GOAWAY) for kind, _ in frames)
    came = f"forward:{len(seen)}" if seen else "reject" if refused else "nothing"
    smuggled = any(text.encode() in head for head, _ in seen for text in case["forbid"])
    bodies = [body.decode("latin1") for _, body in seen]
    right = came in case["allow"] and not smuggled and (not seen or case["bodies"] in (None, bodies))
    print("ok  " if right else "FAIL", case["tier"], case["name"], came, "of", case["allow"])
    return right


def request(case):
    """The bytes a client sends."""
    ends = case["end_stream_on_headers"]
    if ends is None:
        ends = case["body"] is None and not case["trailers"]
    out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0) + frame(SETTINGS, ACK, 0)
    out += frame(HEADERS, END_HEADERS | (END_STREAM if ends else 0), 1, section(case["headers"]))
    if case["body"] is not None:
        out += frame(DATA, 0 if case["trailers"] else END_STREAM, 1, case["body"].encode("latin1"))
    if case["trailers"]:
        out += frame(HEADERS, END_HEADERS | END_STREAM, 1, section(case["trailers"]))
    return out


def ask(port, sent):
    """Kinds and payloads of the frames that come back."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(WAIT_SECONDS)
        connection.sendall(sent)
        got = b"".join(until_quiet(connection))
    frames = []
    while len(got) >= 9:
        length = int.from_bytes(got[:3], "big")
        frames.append((got[3], got[9:9 + length]))
        got = got[9 + length:]
    return frames


def until_quiet(connection):
    try:
        while data := connection.recv(1 << 16):
            yield data
    except OSError:
        return


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def section(fields):
    """Every field as it is written, without indexing and without Huffman."""
    return b"".join(b"\0" + text(name) + text(value) for name, value in fields)


def text(value):
    value = value.encode("latin1")
    length, out = len(value), b""
    if length < 127:
        return bytes([length]) + value
    length, out = length - 127, b"\x7f"
    while length >= 128:
        length, out = length // 128, out + bytes([length % 128 + 128])
    return out + bytes([length]) + value


class Origin:
    """Answers every request with 200, and keeps head and body of each."""

    def __init__(self):
        self.seen = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.socket.accept()
            threading.Thread(target=self.serve, args=(connection.makefile("rwb"),), daemon=True).start()

    def serve(self, stream):
        try:
            while head := self.head(stream):
                fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in head[1:])}
                body = self.chunks(stream) if b"transfer-encoding" in fields else stream.read(int(fields.get(b"content-length", 0)))
                self.seen.append((b"\r\n".join(head), body))
                stream.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                stream.flush()
        except (OSError, ValueError):
            return

    @staticmethod
    def head(stream):
        lines = []
        while (line := stream.readline()) not in (b"\r\n", b""):
            lines.append(line.rstrip(b"\r\n"))
        return lines

    @staticmethod
    def chunks(stream):
        body = b""
        while size := int(stream.readline(), 16):
            body += stream.read(size)
            stream.readline()
        stream.readline()
        return body


def wait_for(port, tries=100):
    for _ in range(tries):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit("the edge does not listen")


if __name__ == "__main__":
    main()
