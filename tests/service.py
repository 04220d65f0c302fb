#!/usr/bin/env python3
"""weir as a service: this program takes systemd's place and speaks sd_notify(3) and sd_listen_fds(3) with it.

  tests/service.py --weir BIN

It starts weir, reads weir's messages, keeps the sockets that weir gives to the descriptor store, and passes them to the
next weir. Prints a line for each thing that holds; exit code 1 at the first that does not.
"""
import argparse
import array
import ctypes
import os
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path

from ports import free_port

# How long one message may take. Nothing is measured: a test that hangs should end.
LIMIT_S = 30
# The manager's patience, in microseconds (WatchdogSec=).
PATIENCE_US = 2_000_000

CONF = """
daemon off;
worker_processes 2;
pid {dir}/pid;
error_log {dir}/error.log;
dashboard off;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
{servers}
}}
"""


class Manager:
    """What systemd does for a service with NotifyAccess=all."""

    def __init__(self, folder, weir):
        self.folder, self.weir, self.store, self.waiting = folder, weir, {}, []
        self.path = os.path.join(folder, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.conf = os.path.join(folder, "nginx.conf")

    def write(self, *ports):
        servers = "\n".join(f"    server {{ listen 127.0.0.1:{port}; return 200 {port}; }}" for port in ports)
        self.write_text(CONF.format(dir=self.folder, servers=servers))

    def write_text(self, text):
        with open(self.conf, "w") as file:
            file.write(text)

    def start(self):
        """Starts weir with the sockets of the store as descriptors 3, 4, …"""
        passed = [(name, fd) for name, fds in self.store.items() for fd in fds]
        pid = os.fork()
        if pid:
            return pid
        try:
            # Above the places that the sockets will take.
            copies = [os.dup2(os.dup(fd), 100 + number) for number, (_, fd) in enumerate(passed)]
            for number, copy in enumerate(copies):
                os.dup2(copy, 3 + number)
            os.closerange(3 + len(copies), 1000)
            own = str(os.getpid())
            environment = dict(os.environ, NOTIFY_SOCKET=self.path, WATCHDOG_USEC=str(PATIENCE_US), WATCHDOG_PID=own)
            if passed:
                names = ":".join(name for name, _ in passed)
                environment.update(LISTEN_PID=own, LISTEN_FDS=str(len(passed)), LISTEN_FDNAMES=names)
            os.execve(self.weir, [self.weir, "edge", "-c", self.conf], environment)
        finally:
            os._exit(127)

    def receive(self):
        """One message as a dictionary."""
        self.socket.settimeout(LIMIT_S)
        data, controls, _, _ = self.socket.recvmsg(65536, socket.CMSG_SPACE(253 * 4))
        message = dict(line.split("=", 1) for line in data.decode().splitlines())
        fds = array.array("i")
        for level, kind, payload in controls:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
        if message.get("FDSTORE") == "1":
            known = self.store.setdefault(message["FDNAME"], [])
            for fd in fds:
                if any(os.path.sameopenfile(fd, other) for other in known):
                    os.close(fd)
                else:
                    known.append(fd)
        if message.get("FDSTOREREMOVE") == "1":
            for fd in self.store.pop(message["FDNAME"], []):
                os.close(fd)
        return message

    def until(self, key, value=None):
        """Reads messages until one has this key (and this value)."""
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            message = self.receive()
            if key in message and value in (None, message[key]):
                return message
        raise AssertionError(f"no message with {key}={value or '…'}")


def begin(port):
    client = socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)
    client.sendall(b"GET / HTTP/1.0\r\n\r\n")
    return client


def answer(client):
    data = b""
    while piece := client.recv(4096):
        data += piece
    return data.rpartition(b"\r\n\r\n")[2].decode()


def holds(what, condition):
    if not condition:
        raise AssertionError(what)
    print(f"ok: {what}", flush=True)


def end(pid, number=signal.SIGTERM):
    os.kill(pid, number)
    os.waitpid(pid, 0)


def check(manager):
    first, second = free_port(), free_port()
    name = f"127.0.0.1_{first}"
    manager.write(first)
    pid = manager.start()
    ready = manager.until("READY", "1")
    holds("READY comes from the process that serves", ready["MAINPID"] == str(pid))
    holds("the status names workers and configuration", ready["STATUS"] == "2 workers serve configuration 1")
    holds("at READY, weir answers", answer(begin(first)) == str(first))
    holds("the store has the socket", len(manager.store.get(name, [])) == 1)
    for _ in range(3):
        manager.until("WATCHDOG", "1")
    print("ok: weir says again and again that it is alive", flush=True)

    manager.write(first, second)
    os.kill(pid, signal.SIGHUP)
    holds("a reload begins with a time", int(manager.until("RELOADING", "1")["MONOTONIC_USEC"]) > 0)
    status = manager.until("READY", "1")["STATUS"]
    holds("a reload ends with READY", status == "2 workers serve configuration 2")
    holds("the store has the new socket", f"127.0.0.1_{second}" in manager.store)
    manager.write_text("nonsense")
    os.kill(pid, signal.SIGHUP)
    status = manager.until("READY", "1")["STATUS"]
    holds("a refused reload is told", status.startswith("2 workers serve configuration 2; the last reload was refused"))
    manager.write(first)
    os.kill(pid, signal.SIGHUP)
    manager.until("FDSTOREREMOVE", "1")
    manager.until("READY", "1")
    holds("a socket that is closed leaves the store", list(manager.store) == [name])

    os.kill(pid, signal.SIGUSR2)
    successor = int(manager.until("READY", "1")["MAINPID"])
    holds("after USR2, the new process is the main one", successor != pid)
    os.kill(pid, signal.SIGQUIT)
    holds("the old process names it too", manager.until("MAINPID")["MAINPID"] == str(successor))
    os.waitpid(pid, 0)
    manager.until("WATCHDOG", "1")
    holds("the new process serves and is alive", answer(begin(first)) == str(first))

    # systemd ends the server of a keeper that has died before it starts the service again.
    server = Path(f"/proc/{successor}/task/{successor}/children").read_text().split()[0]
    os.kill(successor, signal.SIGKILL)
    os.waitpid(successor, 0)
    while Path(f"/proc/{server}").exists() and ") Z " not in Path(f"/proc/{server}/stat").read_text():
        time.sleep(0.01)
    waiting = begin(first)
    pid = manager.start()
    holds("a client that came while nobody served is answered", answer(waiting) == str(first))
    manager.until("READY", "1")
    os.kill(pid, signal.SIGTERM)
    manager.until("STOPPING", "1")
    os.waitpid(pid, 0)
    waiting = begin(first)
    pid = manager.start()
    holds("so is one that came during a restart", answer(waiting) == str(first))
    end(pid)

    manager.write(second)
    pid = manager.start()
    manager.until("FDSTOREREMOVE", "1")
    manager.until("READY", "1")
    holds("a passed socket that the file does not name is closed", list(manager.store) == [f"127.0.0.1_{second}"])
    try:
        begin(first).close()
        holds("nobody listens there", False)
    except ConnectionRefusedError:
        pass
    end(pid)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weir", required=True)
    arguments = parser.parse_args()
    # A process that weir starts becomes our child, as it would be systemd's.
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory(prefix="weir-service-") as folder:
        os.chmod(folder, 0o755)
        manager = Manager(folder, os.path.abspath(arguments.weir))
        try:
            check(manager)
        except (AssertionError, OSError) as error:
            with open(os.path.join(folder, "error.log")) as log:
                sys.exit(f"FAILED: {error!r}\n{log.read()}")
        finally:
            for process in children():
                os.kill(process, signal.SIGKILL)


def children():
    """The pids of the processes that this program started and that still run."""
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(pid) for pid in file.read().split()]


if __name__ == "__main__":
    main()
