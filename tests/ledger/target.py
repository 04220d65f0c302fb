"""One server that is attacked: its configuration, its process, its origin, its name server, and the judgement after the attack."""
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import wire
from ports import free_port

# Seconds for a start, and for the answer that shows that the server still serves.
START_S, ALIVE_S = 20, 5
# Tries for a start: another process may take the port between its choice and its use.
STARTS = 4
HEAD = """user root;
worker_processes 1;
daemon off;
error_log <dir>/error.log info;
pid <dir>/nginx.pid;
events { worker_connections <connections>; }
"""
# The location that shows that the server still serves.
ALIVE = "location = /alive { return 204; }"
# An ended worker, in the error log of nginx. 99 is the exit code of AddressSanitizer here.
ENDED = re.compile(r"worker process \d+ (exited on signal \d+|exited with code [1-9]\d*)")
# Numbers for addresses of name servers.
NUMBERS = itertools.count(1)
PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024
TICKS = os.sysconf("SC_CLK_TCK")


class Hole(Exception):
    """The server did the wrong thing that the row describes."""


class NotRun(Exception):
    """This machine or this binary cannot run the row; the text is the reason."""


def need(condition, text):
    """Raises a hole with this text unless the condition holds."""
    if not condition:
        raise Hole(text)


class Target:
    """A weir or an nginx with one row's configuration, in a folder of its own."""

    def __init__(self, binary, row, is_weir, version=()):
        self.binary, self.row, self.is_weir, self.version = os.path.realpath(binary), row, is_weir, version
        self.dir = tempfile.mkdtemp(prefix="weir-ledger.")
        self.notes, self.threads, self.sockets, self.process = [], [], [], None
        self.lock = threading.Lock()
        for folder in ("logs", "files", "cache"):
            os.mkdir(f"{self.dir}/{folder}")
        os.chmod(self.dir, 0o755)
        self.values = {"dir": self.dir, "alive": ALIVE, "connections": str(row.connections)}

    def __enter__(self):
        try:
            self.around()
            if self.row.prepare:
                self.row.prepare(self)
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def around(self):
        """Starts the origin and the name server of the row."""
        if self.row.origin:
            listener = self.held(socket.create_server(("127.0.0.1", 0), backlog=512))
            self.values["origin"] = str(listener.getsockname()[1])
            self.thread(self.accept, listener)
        if self.row.dns:
            server = self.held(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            # The resolver of old releases of nginx always asks port 53.
            fixed = not self.is_weir and self.version < (1, 3, 1)
            try:
                server.bind((f"127.53.{os.getpid() % 250}.{next(NUMBERS) % 250}", 53) if fixed else ("127.0.0.1", 0))
            except OSError as error:
                raise NotRun(f"port 53 of the loopback network: {error.strerror}") from error
            host, port = server.getsockname()
            self.values["dns"] = host if fixed else f"{host}:{port}"
            self.thread(self.resolve, server)

    def held(self, one):
        self.sockets.append(one)
        return one

    def thread(self, function, *words):
        thread = threading.Thread(target=function, args=words, daemon=True)
        thread.start()
        self.threads.append(thread)
        return thread

    def accept(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self.thread(self.converse, connection)

    def converse(self, connection):
        connection.settimeout(10)
        try:
            with connection:
                self.row.origin(connection, self)
        except OSError:
            # The server under attack ended the connection.
            pass

    def resolve(self, server):
        while True:
            try:
                question, peer = server.recvfrom(4096)
            except OSError:
                return
            if not question:
                # The end of this target shuts the socket down.
                return
            self.note(("dns", wire.asked(question)))
            for reply in self.row.dns(question, self):
                try:
                    server.sendto(reply, peer)
                except OSError:
                    return

    def note(self, one):
        """Keeps a fact that an origin or a name server saw, for the attack to judge."""
        with self.lock:
            self.notes.append(one)

    def noted(self, kind):
        with self.lock:
            return [note for note in self.notes if note[0] == kind]

    def fill(self, text):
        """The text with the values of this target in place of `<name>`."""
        return re.sub(r"<(\w+)>", lambda found: self.values.get(found[1], found[0]), text)

    def write(self, name, data):
        """Writes a file below the target's folder, and returns its path."""
        path = f"{self.dir}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
        return path

    def configuration(self):
        for name in ("port", "port2"):
            self.values[name] = str(free_port())
        self.port, self.port2 = int(self.values["port"]), int(self.values["port2"])
        http = f"http {{\naccess_log off;\n{self.row.http}\n}}\n" if self.row.http else ""
        text = self.fill(HEAD + http + self.row.main)
        return self.write("nginx.conf", text)

    def command(self, *words):
        binary = self.binary
        if self.is_weir:
            # weir reads nginx's flags if its name is nginx.
            binary = f"{self.dir}/nginx"
            if not os.path.lexists(binary):
                os.symlink(self.binary, binary)
        return [binary, "-p", self.dir + "/", "-c", self.dir + "/nginx.conf", *words]

    def start(self):
        environment = dict(os.environ, ASAN_OPTIONS=f"detect_leaks=0:exitcode=99:log_path={self.dir}/asan{self.row.sanitizer}", LANG="C", WEIR_LANG="en")
        said = ""
        for _ in range(STARTS):
            self.configuration()
            with open(f"{self.dir}/said", "wb") as out:
                self.process = subprocess.Popen(self.command(), stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=environment, cwd=self.dir)
            end = time.monotonic() + START_S
            while time.monotonic() < end and self.process.poll() is None:
                try:
                    socket.create_connection(("127.0.0.1", self.port), 1).close()
                    return
                except OSError:
                    time.sleep(0.02)
            self.end()
            said = self.text("said") + self.text("error.log")
            if "in use" not in said:
                break
        raise NotRun("does not start: " + " ".join((re.findall(r".*\[emerg\].*", said) or [said])[0].split())[:300])

    def text(self, name):
        try:
            with open(f"{self.dir}/{name}", encoding="utf-8", errors="surrogateescape") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                for pid in self.tree():
                    os.kill(pid, signal.SIGKILL)
                self.process.wait()

    def restart(self):
        """Ends the server and starts it with the same folder."""
        self.end()
        self.start()

    def close(self):
        self.end()
        for one in self.sockets:
            # A thread that waits in accept(2) does not see close(2).
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    # The server's own cost.

    def tree(self):
        """The process and its descendants, the youngest first."""
        children = {}
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                        children.setdefault(int(file.read().rpartition(")")[2].split()[1]), []).append(int(name))
                except OSError:
                    pass
        found = [self.process.pid]
        for pid in found:
            found += children.get(pid, [])
        return found[::-1]

    def sum(self, file, count):
        total = 0
        for pid in self.tree():
            try:
                with open(f"/proc/{pid}/{file}", encoding="ascii", errors="replace") as text:
                    total += count(text.read())
            except OSError:
                pass
        return total

    def memory_kb(self):
        """The memory of its processes, once they serve: the sockets are open before the server has started."""
        self.answers()
        return self.sum("statm", lambda text: int(text.split()[1]) * PAGE_KB)

    def cpu_s(self):
        return self.sum("stat", lambda text: sum(map(int, text.rpartition(")")[2].split()[11:13]))) / TICKS

    # Requests.

    def get(self, target="/", **words):
        """The answer to one request on a connection of its own."""
        return wire.get(self.port, target, **words)

    def send(self, *pieces, **words):
        return wire.exchange(self.port, *pieces, **words)

    # The judgement.

    def judge(self):
        """A hole if the server crashed, panicked, or does not serve any more."""
        self.crashes()
        if self.row.serves:
            try:
                self.answers()
            except Hole:
                # A report takes seconds; it explains the silence.
                self.crashes()
                raise
        if self.is_weir:
            log = self.text("error.log") + self.text("said")
            found = [line for line in re.findall(r".*(?:panicked|\[alert\]|\[emerg\]).*", log) if not re.search(self.row.alerts, line)]
            need(not found, f"the log says: {found and found[0][:300]}")

    def crashes(self):
        """A hole if the server or its worker ended."""
        reports = sorted(name for name in os.listdir(self.dir) if name.startswith("asan."))
        if reports:
            raise Hole("AddressSanitizer: " + sanitizer(self.text(reports[0])))
        # The master writes this line after the child has ended.
        ended = ENDED.search(self.text("error.log"))
        if ended:
            raise Hole(f"the worker {ended[1]}")
        code = self.process.poll()
        need(code is None, f"the server ended with code {code}")

    def answers(self):
        """A hole if the server does not answer a plain request soon."""
        last = ""
        end = time.monotonic() + ALIVE_S
        while time.monotonic() < end:
            try:
                answer = wire.get(self.port2 if self.row.alive2 else self.port, "/alive", patience=ALIVE_S)
                if answer.status == 204:
                    return
                last = f"status {answer.status}"
            except (OSError, ValueError) as error:
                last = str(error)
            time.sleep(0.05)
        raise Hole(f"the server does not serve any more: {last}")


def sanitizer(report):
    """The kind and the place in a report of AddressSanitizer."""
    kind = re.search(r"SUMMARY: AddressSanitizer: ([\w-]+)", report) or re.search(r"AddressSanitizer:? (?:attempting )?([\w-]+)", report)
    place = next((name for name in re.findall(r"#\d+ 0x\w+ in (\w+)", report) if name.startswith("ngx_")), "")
    return (kind[1] if kind else "a report") + (f" in {place}" if place else "")
