"""Loopback ports for servers of tests and benches, from the same blocks as `free_port` in support/mod.rs.

They lie below Linux's ephemeral range: between two starts of a server no outgoing connection takes its port. bench/ports.py
is a link to this file.
"""
import fcntl
import itertools
import os
import socket
import tempfile
from pathlib import Path

FIRST, BLOCK, BLOCKS = 20_000, 600, 20
# By process: a fork has ports of its own.
_held = {}
_given = itertools.count()


def free_port():
    """A port on which no process listens, and that no other test in any process got."""
    process = os.getpid()
    if process not in _held:
        _held[process] = _claim()
    first = FIRST + _held[process][0] * BLOCK
    for number in itertools.islice(_given, BLOCK):
        port = first + number % BLOCK
        try:
            socket.create_server(("127.0.0.1", port)).close()
            return port
        except OSError:
            continue
    raise SystemExit(f"no free port in {first}..{first + BLOCK}")


def free_ports(count):
    return [free_port() for _ in range(count)]


def _claim():
    """The first block that no running process has; the lock ends with this process."""
    for number in range(BLOCKS):
        try:
            lock = open(Path(tempfile.gettempdir(), f"weir-ports.{number}"), "a")
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return number, lock
        except OSError:
            continue
    raise SystemExit(f"{BLOCKS} other test processes run already")
