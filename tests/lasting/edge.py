"""An edge under test, weir or nginx: its file, its processes, its log."""

import asyncio
import os
import re
import shutil
import subprocess
import tempfile
import urllib.request
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import processes
from ports import free_ports
from processes import within

CONF = """
{user} worker_processes {workers}; pid {room}/pid; error_log {room}/error.log notice; {main}
events {{ worker_connections 1024; }}
stream {{
    {stream}
    server {{ listen 127.0.0.1:{tcp}; proxy_pass 127.0.0.1:{origin_tcp}; proxy_timeout 1h; }}
}}
http {{
    access_log {log};
    client_body_temp_path {temp}/body; proxy_temp_path {temp}/proxy; fastcgi_temp_path {temp}/fastcgi; uwsgi_temp_path {temp}/uwsgi; scgi_temp_path {temp}/scgi;
    proxy_cache_path {cache} keys_zone=pages:8m;
    proxy_http_version 1.1;
    {http}
    upstream origin {{ {upstream} keepalive 32; }}
    server {{
        listen 127.0.0.1:{port};
        http2 on;
        client_max_body_size 1m;
        add_header X-Generation {generation} always;
        proxy_set_header Connection "";
        location / {{ proxy_pass http://origin; }}
        location /cached/ {{
            proxy_pass http://origin; proxy_cache pages; proxy_cache_valid 200 1s; proxy_cache_key $uri;
            add_header X-Cache $upstream_cache_status always;
        }}
        location /socket {{
            proxy_pass http://origin; proxy_read_timeout 1h;
            proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
        }}
        location /grpc/ {{ grpc_pass grpc://127.0.0.1:{origin_grpc}; grpc_read_timeout 1h; grpc_send_timeout 1h; }}
        {server}
    }}
    {more}
}}
"""


@dataclass
class Setting:
    """What a scenario adds to the file. `ROOM` stands for the directory of the edge, `SMALL` for a file system of 1 MiB in it."""
    main: str = ""
    stream: str = ""
    http: str = ""
    server: str = ""
    more: str = ""
    upstream: str = "server 127.0.0.1:{origin};"
    workers: int = 2
    log: str = "ROOM/access.log"
    temp: str = "ROOM/temp"
    cache: str = "ROOM/cache"

    @property
    def has_small(self):
        return any("SMALL" in str(text) for text in vars(self).values())


class Edge:
    """weir, or nginx in its place. `places` has the origin's ports, and words for the texts of the setting."""

    def __init__(self, name, binary, setting, places):
        self.name, self.binary, self.is_weir = name, str(Path(binary).resolve()), name == "weir"
        self.setting, self.places = replace(setting), places
        self.user = "user nobody nogroup;" if os.geteuid() == 0 else ""
        self.room = Path(tempfile.mkdtemp(prefix=f"weir-lasting-{name}-"))
        # The workers are another user.
        self.room.chmod(0o755)
        self.small, self.generation, self.master = self.room / "small", 1, None
        for folder in (self.small, self.room / "temp"):
            folder.mkdir()
            folder.chmod(0o777)
        self.port, self.tcp = free_ports(2)
        self.environment = dict(os.environ)
        # The heads of answers that clients got, by status.
        self.heads = Counter()

    def write(self):
        """Writes the file; `generation` is in a field of each answer."""
        texts = {name: str(value).replace("ROOM", str(self.room)).replace("SMALL", str(self.small)) for name, value in vars(self.setting).items()}
        texts = {name: re.sub(r"\{(\w+)\}", lambda found: str(self.places[found[1]]), text) for name, text in texts.items()}
        if self.is_weir:
            texts["main"] += " dashboard off;"
        text = CONF.format(room=self.room, port=self.port, tcp=self.tcp, generation=self.generation, user=self.user, origin_tcp=self.places["origin_tcp"], origin_grpc=self.places["origin_grpc"], **texts)
        (self.room / "nginx.conf").write_text(text)

    async def start(self):
        """Starts the edge, in the background: only so does nginx take USR2."""
        self.write()
        words = [self.binary, *(["edge"] if self.is_weir else []), "-p", f"{self.room}/", "-c", "nginx.conf", "-e", "error.log"]
        if self.setting.has_small:
            # The mount is seen in this namespace only, and ends with the last process in it.
            mount = f'mount -t tmpfs -o size=1m,mode=1777 none "{self.small}" && exec "$@"'
            words = ["unshare", "-m", "sh", "-c", mount, "sh", *words]
        with (self.room / "out").open("w") as out:
            started = await asyncio.create_subprocess_exec(*words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.room, env=self.environment)
        if await started.wait():
            raise SystemExit(f"{self.name} did not start:\n{(self.room / 'out').read_text()[-3000:]}{self.log()[-3000:]}")
        self.master = await within(f"{self.name} has started", 20, self.pid)
        await within(f"{self.name} serves", 20, lambda: self.get("/work/first")[0] == 200)

    def pid(self):
        """The process that the pid file names."""
        try:
            return int((self.room / "pid").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def serving(self, master=None):
        """The processes that serve: weir's server, nginx's workers."""
        kept = [(pid, processes.title(pid)) for pid in processes.children(master or self.master)]
        if self.is_weir:
            return [pid for pid, _ in kept if processes.is_there(pid)]
        return [pid for pid, title in kept if title == "nginx: worker process"]

    def get(self, path, patience=2, **fields):
        """One request on a connection of its own: the status, the fields and the body; 0 if there is no answer."""
        try:
            request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=fields)
            with urllib.request.urlopen(request, timeout=patience) as answer:
                self.heads[answer.status] += 1
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as answer:
            self.heads[answer.code] += 1
            return answer.code, answer.headers, answer.read()
        except OSError:
            return 0, {}, b""

    async def ask(self, path, patience=2, **fields):
        """The same, while the load goes on."""
        return await asyncio.to_thread(self.get, path, patience, **fields)

    async def reload(self, seconds=30):
        """Changes the file, and waits until the change is in force."""
        self.generation += 1
        self.write()
        processes.send(self.master, "HUP")
        await self.shows(self.generation, seconds)

    async def shows(self, generation, seconds=30):
        async with asyncio.timeout(seconds):
            while (await self.ask("/work/generation", seconds))[1].get("X-Generation") != str(generation):
                await asyncio.sleep(0.01)

    def inside(self, path):
        """A path as the edge sees it, in its own namespace of mounts."""
        return Path(f"/proc/{self.master}/root{path}")

    def log(self):
        try:
            return (self.room / "error.log").read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def errors(self):
        """The lines of the log that are errors, without two of a kind."""
        lines = [line for line in self.log().splitlines() if re.search(r"\[(error|crit|alert|emerg)\]", line)]
        return list({re.sub(r"[\d/:#*]+", "", line)[:80]: line for line in reversed(lines)}.values())

    async def stop(self):
        """Ends the edge; the faults that show only now."""
        faults = []
        if self.master and not await processes.end(self.master):
            faults.append(f"{self.name} did not end after SIGTERM")
        if self.is_weir and "panicked" in self.log():
            faults += [line for line in self.log().splitlines() if "panicked" in line]
        return faults

    def remove(self):
        shutil.rmtree(self.room, ignore_errors=True)
