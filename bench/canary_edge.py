"""An edge with an origin behind it, and the orders of a canary for it."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from ports import free_port

HERE = Path(__file__).resolve().parent
ADDRESS = "127.88.0.1"
PATIENCE_S = 20
CONF = """daemon off; user root; worker_processes {workers}; pid {room}/pid; error_log {room}/error.log notice; dashboard off;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    keepalive_requests 10000000; keepalive_timeout 600s;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_cache_path {room}/cache keys_zone=pages:8m;
    upstream app {{ server {address}:{origin}; keepalive 256; }}
    upstream leaking {{ server {address}:{leaking}; keepalive 256; }}
    server {{
        listen {address}:{port};
        http2 on;
        add_header X-Lane {lane} always;
        {server}
    }}
    server {{ listen {address}:{control}; location /api/ {{ api; }} }}
}}
"""


class Edge:
    """A running edge in a directory of its own."""

    def __init__(self, weir, room, server, workers=2):
        self.weir, self.room, self.workers, self.asked = weir, Path(room), workers, 0
        self.room.mkdir(parents=True, exist_ok=True)
        self.port, self.control, origin, leaking = free_port(), free_port(), free_port(), free_port()
        self.places = dict(room=self.room, address=ADDRESS, port=self.port, control=self.control, origin=origin, leaking=leaking, workers=workers)
        self.write("old", server)
        quiet = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.origin = subprocess.Popen([sys.executable, HERE / "canary_origin.py", ADDRESS, str(origin), str(leaking)], **quiet)
        self.keeper = subprocess.Popen([weir, "edge", "-e", self.room / "error.log", "-c", self.room / "old.conf"], **quiet)

    def write(self, lane, server):
        """Writes a configuration with this name, and returns its path."""
        path = self.room / f"{lane}.conf"
        path.write_text(CONF.format(lane=lane, server=server, **self.places))
        return path

    def log(self):
        with contextlib.suppress(OSError):
            return (self.room / "error.log").read_text(errors="replace")
        return ""

    async def serves(self):
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until and self.keeper.poll() is None:
            with contextlib.suppress(OSError):
                for port in (self.port, self.places["origin"]):
                    _, writer = await asyncio.open_connection(ADDRESS, port)
                    writer.close()
                return
            await asyncio.sleep(0.05)
        raise RuntimeError(f"the edge does not serve: {self.log()[-800:]}")

    async def canary(self, *words):
        """`weir canary` with these words; what it said, or an error."""
        process = await asyncio.create_subprocess_exec(
            self.weir, "canary", *map(str, words), "-c", self.room / "old.conf", env={**os.environ, "WEIR_LANG": "en"},
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
        said, failed = await process.communicate()
        return process.returncode, (said + failed).decode(errors="replace").strip()

    async def state(self):
        """The state of the canary; `None` if there was none."""
        return (await self.api("weir/canary"))["canary"]

    async def api(self, path):
        """The answer of weir's API; `asked` counts these requests."""
        self.asked += 1
        reader, writer = await asyncio.open_connection(ADDRESS, self.control)
        writer.write(f"GET /api/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = await asyncio.wait_for(reader.read(), PATIENCE_S)
        writer.close()
        return json.loads(answer.partition(b"\r\n\r\n")[2])

    def end(self):
        for process in (self.keeper, self.origin):
            process.terminate()
        for process in (self.keeper, self.origin):
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
