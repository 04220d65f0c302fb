#!/usr/bin/env python3
"""As `floor idle`, over TLS: connections that have made one request each and stand idle until stdin ends."""

import argparse
import socket
import ssl
import sys


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", required=True)
    parser.add_argument("--conns", type=int, required=True)
    parser.add_argument("--path", default="/1k")
    args = parser.parse_args()
    host, port = args.target.rsplit(":", 1)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    request = f"GET {args.path} HTTP/1.1\r\nHost: {args.target}\r\n\r\n".encode()
    held = [ask(context, host, int(port), request) for _ in range(args.conns)]
    print("ready", flush=True)
    sys.stdin.read()
    del held


def ask(context, host, port, request):
    """A connection whose one answer was read to its end."""
    connection = context.wrap_socket(socket.create_connection((host, port)))
    connection.sendall(request)
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += connection.recv(65536) or sys.exit("the peer closed")
    head, _, body = answer.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    left = int(fields[b"content-length"]) - len(body)
    while left > 0:
        left -= len(connection.recv(left))
    return connection


if __name__ == "__main__":
    main()
