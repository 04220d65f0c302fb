"""The edge of one side: its room, its process, the files that it leaves."""
import asyncio
import collections
import contextlib
import gzip
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import zlib
from pathlib import Path

import answers
import pools

# Seconds for the start.
START_S = 6
# Directories that a case may change; all others stay.
CHANGED = ("cache", "store", "dav", "temp", "logs")
KEPT_STAMP = 1700000000
LEVELS = re.compile(r"\[(emerg|alert|crit|error|warn)\]")
# What nginx's error log says of its own limits and defects: a rule may need this proof.
TOLD = ("http finalize non-active request", "is not enough for cache key", "PUT request body must be in a file", "no live upstreams", "differ between users, so weir no longer shares them")
# The key in a cache file of nginx.
KEY = re.compile(rb"\nKEY: (.*)\n")
BROKEN = re.compile(r"panicked|exited on signal|core dumped|ERROR: .*Sanitizer")
LOGGED = """status body_bytes_sent uri request_uri args request upstream_status upstream_cache_status request_completion sent_http_content_type sent_http_content_length sent_http_location sent_http_cache_control sent_http_x_h1 sent_http_etag
 remote_user remote_addr request_filename host server_name server_protocol sent_http_transfer_encoding upstream_addr content_length document_root upstream_http_x_from is_args upstream_response_length sent_trailer_x_t1
 sent_http_last_modified limit_req_status limit_conn_status upstream_http_location request_length""".split()
FORMAT = "log_format line escape=json '{" + ",".join(f'"{name}":"${name}"' for name in ["http_x_n", *LOGGED]) + "}';"
FRAME = f"""worker_processes 1; daemon off; pid nginx.pid; error_log error.log info; @USER@
events {{ worker_connections 256; }}
"""
HTTP = f"""    {FORMAT}
    access_log access.log line; server_tokens off; default_type text/plain; types {{ text/html html shtml; text/css css; video/mp4 mp4; video/x-flv flv; }}
    client_body_temp_path temp/body; proxy_temp_path temp/proxy; fastcgi_temp_path temp/fastcgi; uwsgi_temp_path temp/uwsgi; scgi_temp_path temp/scgi;
    proxy_read_timeout 1s; fastcgi_read_timeout 1s; uwsgi_read_timeout 1s; scgi_read_timeout 1s; memcached_read_timeout 1s; grpc_read_timeout 1s;
    server_names_hash_bucket_size 128; variables_hash_bucket_size 128; map_hash_bucket_size 128;
"""


def atom(name, data):
    return struct.pack(">I", len(data) + 8) + name + data


def film():
    """An MP4 of one video track with four samples of a second each."""
    words = lambda *numbers: struct.pack(f">{len(numbers)}I", *numbers)  # noqa: E731
    table = b"".join([atom(b"stsd", words(0, 0)), atom(b"stts", words(0, 1, 4, 1000)), atom(b"stss", words(0, 4, 1, 2, 3, 4)), atom(b"stsc", words(0, 1, 1, 1, 1)), atom(b"stsz", words(0, 0, 4, 5, 6, 7, 8)), atom(b"stco", words(0, 4, 0, 0, 0, 0))])

    def whole(start):
        offsets = words(0, 4, start, start + 5, start + 11, start + 18)
        stbl = atom(b"stbl", table.replace(words(0, 4, 0, 0, 0, 0), offsets))
        media = atom(b"mdia", atom(b"mdhd", words(0, 0, 0, 1000, 4000, 0)) + atom(b"hdlr", words(0, 0)) + atom(b"minf", atom(b"vmhd", words(0, 0)) + atom(b"dinf", b"") + stbl))
        moov = atom(b"moov", atom(b"mvhd", words(0, 0, 0, 1000, 4000) + bytes(80)) + atom(b"trak", atom(b"tkhd", words(0, 0, 0, 1, 0, 4000) + bytes(60)) + media))
        return atom(b"ftyp", b"isom\0\0\2\0isom") + moov
    head = whole(0)
    return whole(len(head) + 8) + atom(b"mdat", b"11111222222333333344444444")


def site():
    """The static files."""
    ssi = (b'<html><body>SSI <!--# echo var="uri" --> <!--# include virtual="/p/k?o=chunk" --> <!--# include virtual="/a/a.txt" wait="yes" --> <!--# if expr="$arg_a = 1" -->one<!--# else -->other<!--# endif --> '
           b'<!--# include virtual="/e" stub="none" --><!--# block name="none" -->nothing<!--# endblock --> <!--# set var="q" value="$status" --><!--# echo var="q" --> <!--# include virtual="/none" --> foo</body></html>\n')
    page = b"<html><head></head><body>html foo one two</body></html>\n"
    files = {"index.html": b"<html><body>front foo</body></html>\n", "50x.html": b"<html>fifty foo</html>\n", "a/a.txt": b"text a one foo\n", "a/a.html": page, "b/a.html": b"<html><body>b foo <!--# echo var=\"uri\" --></body></html>\n", "b/big.txt": answers.BIG, "c/d": b"c d\n",
             "s/a.txt": b"s text\n", "d/a.txt": b"d text foo\n", "d/sub/index.html": b"<html>sub foo</html>\n", "i/a.txt": b"inner text foo\n", "q/k/a.txt": b"q text\n", "r/w/a.txt": b"r text\n", "m/film.mp4": film(), "m/film.flv": b"FLV\1\5\0\0\0\x09\0\0\0\0" + b"0123456789" * 20,
             "z/gz.txt": b"plain gz foo\n" * 20, "z/gz.txt.gz": gzip.compress(b"packed gz foo\n" * 20, mtime=0), "z/gz.html": page * 10, "z/gz.html.gz": gzip.compress(page * 10, mtime=0), "z/koi.html": b"<html>\xd4\xe5 foo</html>\n", "z/ssi.html": ssi, "z/foo.html": b"<html><body>foo foo FOO two e one</body></html>\n" * 40}
    return {f"html/{name}": data for name, data in files.items()}


class Edge:
    """A binary that runs as `nginx` in a room: the working directory of this process."""

    def __init__(self, binary, room):
        self.room, self.process, self.stores = Path(room), None, False
        # weir called as nginx has nginx's defaults: no dashboard.
        self.program = self.room / "nginx"
        self.program.symlink_to(binary)
        for name, data in site().items():
            self.write(self.room / name, data)
        self.stamp_folders()
        (self.room / "users").write_text("u:{PLAIN}p\n")
        self.user = "user root;" if os.geteuid() == 0 else ""

    @staticmethod
    def write(file, data):
        file.parent.mkdir(parents=True, exist_ok=True)
        # Another file, whatever rights an edge gave the one that was there.
        file.unlink(missing_ok=True)
        file.write_bytes(data)
        os.utime(file, (KEPT_STAMP, KEPT_STAMP))

    def stamp_folders(self):
        """Gives the folders of the static files their moment: autoindex shows it."""
        for path in sorted(self.room.glob("html/**/"), reverse=True):
            os.utime(path, (KEPT_STAMP, KEPT_STAMP))

    def clean(self):
        for name in CHANGED:
            shutil.rmtree(self.room / name, ignore_errors=True)
            (self.room / name).mkdir()
        if self.stores:
            # P_store on writes beside the static files, and over them.
            known = {self.room / name: data for name, data in site().items()}
            for path in sorted((self.room / "html").rglob("*"), reverse=True):
                if path.is_file() and path not in known:
                    path.unlink()
                elif path.is_dir() and not any(path.iterdir()):
                    path.rmdir()
            for path, data in known.items():
                if not path.exists() or path.stat().st_mtime != KEPT_STAMP or path.stat().st_size != len(data):
                    self.write(path, data)
            self.stamp_folders()
            self.stores = False
        for name in ("access.log", "error.log", "start.log", "stream.log", "nginx.pid"):
            with contextlib.suppress(FileNotFoundError):
                (self.room / name).unlink()
        file = self.room / "dav/f.txt"
        file.write_bytes(b"dav file\n")
        os.utime(file, (KEPT_STAMP, KEPT_STAMP))

    async def start(self, text):
        """Starts the edge on this file; gives what it says if it does not start."""
        self.clean()
        self.stores = "_store " in text
        (self.room / "nginx.conf").write_text(text, "latin-1")
        with open(self.room / "start.log", "wb") as out:
            self.process = subprocess.Popen([self.program, "-p", self.room, "-c", "nginx.conf", "-e", "error.log"], stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, cwd=self.room)
        for _ in range(int(START_S / 0.004)):
            if self.process.poll() is not None:
                return self.read("start.log") or "it ended"
            if (self.room / "nginx.pid").exists() and await self.listens():
                return None
            await asyncio.sleep(0.004)
        self.stop()
        return "it does not listen"

    async def listens(self):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", pools.PLAIN)
            writer.close()
            return True
        except OSError:
            return False

    def has_died(self):
        return self.process.poll() is not None

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        # Workers outlive their master for a moment, and hold its sockets. This process is the init of its namespace, so they are its children.
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-self.process.pid, 0)

    def read(self, name):
        try:
            return (self.room / name).read_text("latin-1")
        except FileNotFoundError:
            return ""

    def log(self):
        """The lines of the access log, by the number of the request."""
        lines = collections.defaultdict(list)
        for line in self.read("access.log").split("\n"):
            if line.startswith("{"):
                try:
                    found = json.loads(line)
                except ValueError:
                    found = {"http_x_n": "", "broken": line}
                lines[found.pop("http_x_n")].append(found)
        return dict(lines)

    def errors(self):
        """How often each level is in the error log, and the lines that no case may cause."""
        text = self.read("error.log") + self.read("start.log")
        return {"told": [phrase for phrase in TOLD if phrase in text], "levels": dict(collections.Counter(LEVELS.findall(text))), "broken": BROKEN.findall(text), "lines": [line for line in text.split("\n") if "[alert]" in line or "[crit]" in line or "[emerg]" in line][:5]}

    def stored(self):
        """The files of the caches, which have hashes of keys for names."""
        return sorted((path for path in (self.room / "cache").rglob("*") if len(path.name) == 32 and path.is_file()), key=lambda path: path.name)

    def stored_answers(self):
        """By file of the caches: its name, and a checksum of the answer's body."""
        found = []
        for path in self.stored():
            try:
                whole = path.read_bytes()
            except FileNotFoundError:
                continue
            # weir's head says where the body begins (crates/cache/src/store/file.rs).
            body = whole[struct.unpack_from("<I", whole, 16)[0]:] if whole.startswith(b"weircach") else whole.partition(b"\r\n\r\n")[2]
            found.append([path.name, zlib.crc32(body)])
        return found

    def files(self):
        """What the edge has stored: files of WebDAV and of P_store with their bytes, names of the files of the caches."""
        kept = []
        for folder in ("dav", "store"):
            kept += [(str(path.relative_to(self.room)), path.read_bytes()[:200].decode("latin-1") if path.is_file() else "folder", oct(path.stat().st_mode & 0o777)) for path in sorted((self.room / folder).rglob("*"))]
        cached = self.stored()
        heads = {path.name: path.open("rb").read(4096) for path in cached}
        keys = {name: found[1].decode("latin-1") for name, head in heads.items() if (found := KEY.search(head))}
        return {"kept": kept, "cached": [path.name for path in cached], "keys": keys, "sessions": self.read("stream.log").split("\n")}
