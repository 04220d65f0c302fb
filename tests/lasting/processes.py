"""Processes that a scenario starts, and those that these start: all of them end with the test."""

import asyncio
import contextlib
import ctypes
import os
import resource
import signal
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


class Late(Exception):
    """Something did not happen in its time."""


def adopt():
    """Makes this process the parent of the orphans below it: an edge goes into the background, and its upgrades outlive it."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # A test that kills processes leaves no cores behind.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def children(pid):
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def title(pid):
    """The command line of a process, as `ps` shows it."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def is_there(pid):
    """Whether a process runs; takes note of its end if it is a child of this one."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def send(pid, name):
    """Sends a signal; a process that has ended gets none."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, getattr(signal, f"SIG{name}"))


async def within(what, seconds, test):
    """Waits until `test` holds; returns its value."""
    until = time.monotonic() + seconds
    while not (value := test()):
        if time.monotonic() > until:
            raise Late(f"not within {seconds} s: {what}")
        await asyncio.sleep(0.01)
    return value


async def end(pid, name="TERM", seconds=15):
    """Ends a process with this signal, and kills it if it does not end in time; whether it did."""
    send(pid, name)
    try:
        await within(f"process {pid} ends", seconds, lambda: not is_there(pid))
        return True
    except Late:
        send(pid, "CONT")
        send(pid, "KILL")
        await within(f"process {pid} ends", 15, lambda: not is_there(pid))
        return False


def end_all():
    """Kills each process below this one: there are none, unless the test was interrupted."""
    for _ in range(100):
        mine = children(os.getpid())
        if not mine:
            return
        for pid in mine:
            send(pid, "KILL")
            is_there(pid)
        time.sleep(0.02)
