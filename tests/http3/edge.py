"""weir with one configuration: its file, its process, its logs and its counters."""

import asyncio
import json
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

FRAME = """
daemon off; user root; pid nginx.pid; error_log error.log %(level)s; worker_processes %(workers)d; worker_rlimit_nofile 8192;
%(main)s
events { worker_connections %(connections)d; }
http {
    client_body_temp_path body.tmp; proxy_temp_path proxy.tmp;
%(http)s
    server { listen 127.0.0.1:%(api)d; location /api { api; } }
}
"""


class Edge:
    def __init__(self, binary, api):
        self.binary, self.api, self.process = str(Path(binary).resolve()), api, None
        # Lines of the error log that a case provokes.
        self.expected = []
        self.room = Path(tempfile.mkdtemp(prefix="weir-http3-"))

    def write(self, http, main="", connections=1024, workers=1, level="info"):
        self.room.joinpath("nginx.conf").write_text(FRAME % {
            "http": http, "main": main, "connections": connections, "workers": workers, "level": level, "api": self.api})

    def file(self, name, content):
        path = self.room / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def certificate(self, name):
        """A certificate and its key: `name.crt`, `name.key`."""
        words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                 "-addext", "subjectAltName=" + f"DNS:{name}",
                 "-keyout", f"{name}.key", "-out", f"{name}.crt"]
        subprocess.run(words, cwd=self.room, check=True, capture_output=True)

    async def start(self):
        words = [self.binary, "edge", "-p", f"{self.room}/", "-c", "nginx.conf", "-e", "error.log"]
        out = self.room.joinpath("out").open("w")
        self.process = subprocess.Popen(words, cwd=self.room, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        pid = self.room / "nginx.pid"
        while not (pid.exists() and pid.read_text().strip()):
            if self.process.poll() is not None:
                raise SystemExit("weir did not start:\n" + self.room.joinpath("out").read_text()[-3000:] + self.text("error.log")[-3000:])
            await asyncio.sleep(0.02)

    def text(self, name):
        path = self.room / name
        return path.read_text(errors="replace") if path.exists() else ""

    async def line(self, name, *parts, patience=20):
        """The first line of a file with all these parts, once it is there."""
        until = time.monotonic() + patience
        while time.monotonic() < until:
            for line in self.text(name).splitlines():
                if all(part in line for part in parts):
                    return line
            await asyncio.sleep(0.05)
        raise AssertionError(f"no line with {parts} in {name}:\n{self.text(name)[-2000:]}")

    def asked(self, what):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.api}/api/{what}", timeout=10) as answer:
            return json.load(answer)

    async def connections(self):
        """NGINX Plus's counts of connections, without the one that asks."""
        return await asyncio.to_thread(self.asked, "9/connections")

    async def settled(self, patience=30):
        """Waits until no client has a connection and no request is under way."""
        until = time.monotonic() + patience
        while True:
            counts = await self.connections()
            requests = (await asyncio.to_thread(self.asked, "9/http/requests"))["current"]
            if counts["active"] + counts["idle"] <= 1 and requests <= 1:
                return counts
            assert time.monotonic() < until, f"connections {counts}, requests {requests}"
            await asyncio.sleep(0.1)

    def workers(self):
        found = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True).stdout.split()
        return [int(pid) for pid in found] or [self.process.pid]

    def memory(self):
        """Resident bytes of the server."""
        total = 0
        for pid in self.workers():
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmRSS:"):
                    total += int(line.split()[1]) << 10
        return total

    async def stop(self):
        self.process.send_signal(signal.SIGTERM)
        until = time.monotonic() + 30
        while self.process.poll() is None:
            if time.monotonic() > until:
                self.process.kill()
                self.process.wait()
                raise AssertionError("weir did not end after TERM")
            await asyncio.sleep(0.02)
        log = self.text("error.log")
        for word in ("panicked", "[alert]", "[emerg]", "[crit]"):
            bad = [line for line in log.splitlines() if word in line and not any(each in line for each in self.expected)]
            assert not bad, "\n".join(bad[:5])

    def remove(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.room, ignore_errors=True)
