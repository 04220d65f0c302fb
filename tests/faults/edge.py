"""An edge under test: its file, its process, its log and its counters."""

import asyncio
import json
import re
import shutil
import signal
import subprocess
import tempfile
import urllib.request
from pathlib import Path

from play import TWO_PEERS
from ports import free_ports

HTTP = {"http": ("proxy", "http://"), "https": ("proxy", "https://"), "h2": ("proxy", "http://"), "grpc": ("grpc", "grpc://"), "fastcgi": ("fastcgi", ""),
        "uwsgi": ("uwsgi", ""), "scgi": ("scgi", ""), "memcached": ("memcached", "")}

# What a location of each protocol needs to reach its origin.
COMMON = {
    "http": 'proxy_http_version 1.1; proxy_set_header Connection "";',
    "https": 'proxy_http_version 1.1; proxy_set_header Connection "";',
    "h2": "proxy_http_version 2;",
    "grpc": "",
    "fastcgi": "fastcgi_keep_conn on; fastcgi_param REQUEST_METHOD $request_method; fastcgi_param REQUEST_URI $request_uri; fastcgi_param CONTENT_LENGTH $content_length;",
    "uwsgi": "uwsgi_param REQUEST_METHOD $request_method; uwsgi_param REQUEST_URI $request_uri; uwsgi_param CONTENT_LENGTH $content_length;",
    "scgi": "scgi_param CONTENT_LENGTH $content_length; scgi_param REQUEST_METHOD $request_method; scgi_param REQUEST_URI $request_uri;",
    "memcached": "set $memcached_key $uri;",
}


class NotStarted(Exception):
    """The edge ended at once; the text is its output."""


class Edge:
    """weir, or nginx in its place."""

    def __init__(self, name, binary):
        self.name, self.binary, self.is_weir = name, str(Path(binary).resolve()), name == "weir"
        self.room = Path(tempfile.mkdtemp(prefix=f"weir-upstream-{name}-"))
        self.process = None

    def write(self, suites, streams=""):
        """Writes nginx.conf for these suites: lists of pairs of a case and its origin, with the port of the second peer."""
        upstreams, places = [], []
        for suite in suites:
            word, scheme = HTTP[suite.protocol]
            for case, origin in suite.pairs:
                name = f"{suite.protocol}-{case.name}"
                address = case.at if case.at.startswith("unix:") else f"127.0.0.1:{origin.port}"
                upstreams.append(f"upstream {name} {{ server {address} max_fails=0; keepalive 4; }}\n"
                                 f"upstream {name}.two {{ server {address} max_fails=0; server 127.0.0.1:{suite.second} max_fails=0 backup; keepalive 4; }}")
                for way in suite.ways_of(case):
                    group = f"{name}.two" if way in TWO_PEERS else name
                    text = f"{COMMON[suite.protocol]} {word}_pass {scheme}{group}; {case.conf.replace('{p}', word)}"
                    if way == "invalid":
                        text += f" {word}_next_upstream error timeout invalid_header;"
                    if way == "cache":
                        text += f" {word}_cache faults; {word}_cache_key $uri; {word}_cache_valid 200 1m; add_header X-Cache $upstream_cache_status always;"
                    if self.is_weir:
                        text += f" status_zone {name};"
                    places.append(f"location /{name}/{way}/ {{ {text} }}")
                    if "_timeout" in case.conf:
                        # The next clients shall not depend on how fast this machine is.
                        places.append(f"location /{name}/{way}/next {{ {COMMON[suite.protocol]} {word}_pass {scheme}{group}; }}")
        words = {HTTP[suite.protocol][0] for suite in suites if "cache" in suite.ways}
        cache = " ".join(f"{word}_cache_path {self.room}/cache keys_zone=faults:10m;" for word in words)
        own = f"server {{ listen 127.0.0.1:{self.api}; location /api {{ api; }} }}" if self.is_weir else ""
        self.room.joinpath("nginx.conf").write_text(f"""
daemon off; user root; pid nginx.pid; error_log error.log info; worker_processes 1; worker_rlimit_nofile 8192;
{self.modules(streams)}
events {{ worker_connections 4000; }}
{streams}
http {{
    access_log off; client_max_body_size 0; types_hash_max_size 2048;
    client_body_temp_path body.tmp; proxy_temp_path proxy.tmp; fastcgi_temp_path fastcgi.tmp; uwsgi_temp_path uwsgi.tmp; scgi_temp_path scgi.tmp;
    {cache}
    {chr(10).join(upstreams)}
    server {{
        listen 127.0.0.1:{self.port};
        listen 127.0.0.1:{self.h2} http2;
        {chr(10).join(places)}
    }}
    {own}
}}
""")

    def modules(self, streams):
        said = subprocess.run([self.binary, *(["edge"] if self.is_weir else []), "-V"], capture_output=True, text=True).stderr
        if streams and "with-stream=dynamic" in said:
            return "load_module /usr/lib/nginx/modules/ngx_stream_module.so;"
        return ""

    ports = staticmethod(free_ports)

    async def start(self, suites, streams=None):
        """Starts the edge on this file, on other ports if others have taken the first ones."""
        for attempt in range(5):
            self.port, self.h2, self.api = free_ports(3)
            self.write(suites, streams.text(self) if streams else "")
            try:
                return await self.run()
            except NotStarted as failed:
                if "Address already in use" not in str(failed) or attempt == 4:
                    raise SystemExit(f"{self.name} did not start:\n{failed}")
                (self.room / "error.log").unlink()

    async def run(self):
        words = [self.binary, *(["edge"] if self.is_weir else []), "-p", f"{self.room}/", "-c", "nginx.conf", "-e", "error.log"]
        self.process = subprocess.Popen(words, cwd=self.room, stdin=subprocess.DEVNULL, stdout=self.room.joinpath("out").open("w"), stderr=subprocess.STDOUT)
        pid = self.room / "nginx.pid"
        while not (pid.exists() and pid.read_text().strip()):
            if self.process.poll() is not None:
                raise NotStarted(self.room.joinpath("out").read_text()[-3000:])
            await asyncio.sleep(0.02)

    def snapshot(self):
        """weir's own counters."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.api}/api/weir") as answer:
            return json.load(answer)

    async def stop(self):
        """Ends the edge, and reads its log: the lines by the path of their request."""
        self.process.send_signal(signal.SIGTERM)
        while self.process.poll() is None:
            await asyncio.sleep(0.02)
        lines = {}
        self.text = self.room.joinpath("error.log").read_text(errors="replace")
        for line in self.text.splitlines():
            if found := re.search(r'request: "[A-Z]+ (\S+) HTTP', line):
                lines.setdefault(found[1], []).append(line)
        return lines

    def remove(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.room, ignore_errors=True)
