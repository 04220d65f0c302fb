"""A throw-away root and network for one case: files in place, origins behind a link, one edge started and ended in it."""
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

import conf
from origins import Origins, names

NEW_NET = 0x40000000
# The edge's end of the link; the origins' names have addresses after it.
EDGE, FIRST = "10.201.0.1", 10
# A fixed time for files, so that Last-Modified and ETag are alike in both runs.
OLD = 1_000_000_000
# Seconds that an edge may take to listen, and to end.
START_S, END_S = 20, 5
WORDS = "The quick brown fox jumps over the lazy dog; a page long enough to be compressed.\n"
FILES = {"index.html": "<html><body>index</body></html>\n" + WORDS * 10, "index.htm": "htm\n", "index.php": "<?php echo 1;\n", "style.css": "a { b: c }\n" * 300,
         "app.js": "f();\n" * 500, "page.html": "<p>page\n" + WORDS * 40, "pic.png": "\x89PNG" + "x" * 2000, ".hidden": "hidden\n", "dir/index.html": "dir\n",
         "dir/.htaccess": "deny\n", "empty/note.txt": "note\n", "a b.txt": "space\n", "big.bin": "0123456789abcdef" * 8192, "robots.txt": "User-agent: *\n", "50x.html": "50x\n",
         "404.html": "our 404\n", "font.woff2": "font\n", "backup.sql": "sql\n", "data.json": '{"a": 1}\n' * 100}
PROBE = "server { listen 80; server_name probe.example; root /srv/probe; location /proxied/ { proxy_pass http://probe-origin:8000; } }\n"


def run(*words, **more):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, **more)


class Network:
    """The origins' own network, behind a link, so that an origin may have a port that the edge listens on too."""

    def __init__(self, origins, pair):
        self.origins, self.servers, self.table, self.stop = origins, Origins(pair), {}, threading.Event()
        hosts = sorted({origin.host for origin in origins if origin.host and not origin.host[0].isdigit() and ":" not in origin.host})
        self.table = {host: f"10.201.0.{FIRST + place}" for place, host in enumerate(hosts)}
        ready = threading.Event()
        self.failure = None
        threading.Thread(target=self.beyond, args=(ready,), daemon=True).start()
        ready.wait()
        if self.failure:
            raise self.failure
        # A resolver of the file, at a loopback address.
        threading.Thread(target=names, args=(self.stop, "127.0.0.11", self.table), daemon=True).start()

    def beyond(self, ready):
        """Makes the other network and its listeners. The thread stays, because the network is its."""
        try:
            task = threading.get_native_id()
            if ctypes.CDLL(None, use_errno=True).unshare(NEW_NET):
                raise OSError(ctypes.get_errno(), "unshare")
            run("ip", "link", "set", "lo", "up")
            run("nsenter", f"--net=/proc/1/ns/net", "ip", "link", "add", "edge0", "type", "veth", "peer", "name", "far0", "netns", task)
            run("nsenter", f"--net=/proc/1/ns/net", "ip", "addr", "add", EDGE + "/16", "dev", "edge0")
            run("nsenter", f"--net=/proc/1/ns/net", "ip", "link", "set", "edge0", "up")
            for address in self.table.values():
                run("ip", "addr", "add", address + "/16", "dev", "far0")
            run("ip", "link", "set", "far0", "up")
            for origin in self.origins:
                if origin.host in self.table:
                    self.servers.listen(socket.create_server((self.table[origin.host], origin.port), backlog=64), origin.protocol, origin.tls)
        except (OSError, subprocess.CalledProcessError) as failure:
            self.failure = failure
        ready.set()
        self.stop.wait()

    def near(self, taken):
        """Starts the origins whose addresses are of the edge's own machine, unless the file itself listens there."""
        for origin in self.origins:
            if not origin.path and origin.host not in self.table and origin.port not in taken:
                run("ip", "addr", "replace", origin.host + "/32", "dev", "lo")
                self.servers.listen(socket.create_server((origin.host, origin.port), backlog=64), origin.protocol, origin.tls)

    def sockets(self, root):
        """Starts the origins that listen on unix sockets inside this root."""
        for origin in self.origins:
            if origin.path:
                path = root + ("/run" + origin.path[8:] if origin.path.startswith("/var/run/") else origin.path)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                listener = socket.socket(socket.AF_UNIX)
                listener.bind(path)
                os.chmod(path, 0o777)
                listener.listen(64)
                self.servers.listen(listener, origin.protocol, origin.tls)


class Root:
    """One overlay over the machine's file system, with the case's files, nginx's usual files, certificates and sites."""

    def __init__(self, case, base, pair):
        self.base = base
        os.makedirs(base)
        run("mount", "-t", "tmpfs", "tmpfs", base)
        for name in ("up", "work", "root"):
            os.mkdir(f"{base}/{name}")
        self.path = f"{base}/root"
        run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/,upperdir={base}/up,workdir={base}/work", self.path)
        shutil.rmtree(self.path + "/etc/nginx", ignore_errors=True)
        for source in (os.path.join(case, "..", "..", "_std"), os.path.join(case, "root")):
            if os.path.isdir(os.path.join(source, "root")):
                source = os.path.join(source, "root")
            run("cp", "-a", source + "/.", self.path + "/")
            self.certificates(source, pair)
        os.makedirs(self.path + "/etc/nginx/logs", exist_ok=True)
        run("mount", "--bind", "/dev", self.path + "/dev")
        run("mount", "-t", "proc", "proc", self.path + "/proc")

    def certificates(self, source, pair):
        for folder, _, files in os.walk(source):
            for name in files:
                path = self.path + os.path.join(folder, name)[len(source):]
                with open(path, "rb") as file:
                    text = file.read()
                if text.startswith((b"@CERT@", b"@KEY@")):
                    with open(path, "wb") as file:
                        for mark, part in ((b"@CERT@", "cert.pem"), (b"@KEY@", "key.pem")):
                            if mark in text:
                                with open(f"{pair}/{part}", "rb") as pem:
                                    file.write(pem.read())

    def without_modules(self):
        """Removes all `load_module` lines: the modules are not on this machine."""
        for folder, _, files in os.walk(self.path + "/etc/nginx"):
            for name in files:
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8", errors="surrogateescape") as file:
                    text = file.read()
                kept = [line for line in text.splitlines(True) if not line.lstrip().startswith("load_module")]
                if len(kept) != len(text.splitlines(True)):
                    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
                        file.writelines(kept)

    def probe(self, text):
        """Adds a server to a file that has none: in the first folder of its includes, or at the end of `http`."""
        main = self.path + "/etc/nginx/nginx.conf"
        at = text.rindex("}", 0, text.find("\nstream") if "\nstream" in text else len(text))
        with open(main, "w", encoding="utf-8") as file:
            file.write(text[:at] + PROBE + text[at:])

    def sites(self, roots, targets):
        """Puts files into each folder that the file serves, and below it for each location."""
        for folder, prefixes in roots.items():
            for prefix in {"", *prefixes}:
                for name, text in FILES.items():
                    place = self.path + folder + prefix
                    if not place.startswith(self.path) or (prefix and not prefix.endswith("/")):
                        continue
                    self.put(os.path.join(place, name), text)
            for target in targets:
                if "." in os.path.basename(target) and "%" not in target:
                    self.put(self.path + folder + target, "made for a location\n")

    def put(self, path, text):
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if not os.path.lexists(path):
                with open(path, "w", encoding="latin-1") as file:
                    file.write(text)
                os.utime(path, (OLD, OLD))
        except OSError:
            # A location's path may need a folder where a file is.
            pass

    def hosts(self, table):
        path = self.path + "/etc/hosts"
        lines = "".join(f"{address} {host}\n" for host, address in table.items())
        if "localhost" not in table:
            lines += "127.0.0.1 localhost\n"
        os.path.exists(path) and os.remove(path)
        with open(path, "w", encoding="utf-8") as file:
            file.write(lines)

    def remove(self):
        run("umount", "-l", self.path + "/dev", self.path + "/proc")
        run("umount", "-l", self.path)
        run("umount", "-l", self.base)


class Edge:
    """One edge inside a root."""

    def __init__(self, root, binary, listeners):
        self.root = root
        place = root.path + "/opt/candidate/nginx"
        os.makedirs(os.path.dirname(place), exist_ok=True)
        open(place, "w").close()
        run("mount", "--bind", binary, place)
        self.output = open(root.base + "/output", "wb")
        self.process = subprocess.Popen(["chroot", root.path, "/opt/candidate/nginx", "-p", "/etc/nginx/", "-e", "/var/log/nginx/error.log", "-c", "/etc/nginx/nginx.conf"],
                                        stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT)
        end = time.monotonic() + START_S
        waiting = {(listen.address, listen.port) for listen in listeners}
        while waiting:
            for place in sorted(waiting):
                try:
                    socket.create_connection(place, 1).close()
                    waiting.discard(place)
                except OSError:
                    pass
            if waiting and (self.process.poll() not in (None, 0) or time.monotonic() > end):
                self.end()
                raise RuntimeError(f"does not listen on {sorted(waiting)}: {self.said()}")
            time.sleep(0.02)

    def said(self):
        with open(self.root.base + "/output", errors="replace") as file:
            return file.read()[-600:].strip()

    def processes(self):
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and os.readlink(f"/proc/{name}/exe").endswith("/opt/candidate/nginx"):
                    yield int(name)
            except OSError:
                pass

    def end(self):
        """Ends the edge's processes; this namespace has no others with its name."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            for process in list(self.processes()):
                try:
                    os.kill(process, sign)
                except ProcessLookupError:
                    pass
            end = time.monotonic() + END_S
            while list(self.processes()) and time.monotonic() < end:
                self.process.poll()
                try:
                    os.waitpid(-1, os.WNOHANG)
                except ChildProcessError:
                    pass
                time.sleep(0.02)
        self.output.close()
        run("umount", "-l", self.root.path + "/opt/candidate/nginx")
