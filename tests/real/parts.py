"""The parts that each test of a real component shares: a folder with processes, a browser with cookies, PHP-FPM, MariaDB."""

import glob
import hashlib
import http.client
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.parse
from pathlib import Path

START_SECONDS = 60
ANSWER_SECONDS = 60
END_SECONDS = 20
DOCUMENTS = Path(__file__).resolve().parents[2] / "docs"
# Fields that differ from answer to answer, or that each server writes in its own way.
OWN_FIELDS = {"age", "connection", "content-length", "date", "etag", "expires", "keep-alive", "last-modified", "server"}
# Fields with one fresh value for each session: only their presence is compared.
FRESH_FIELDS = {"lock-token", "oc-etag", "oc-fileid", "x-request-id", "x-wp-nonce"}


class Missing(Exception):
    """A program or a package that a test needs and that is not installed."""


def needs(*paths):
    """Raises Missing unless each path exists; each argument is (path or pattern, Debian package)."""
    absent = [package for path, package in paths if not glob.glob(path)]
    if absent:
        raise Missing("apt-get install " + " ".join(sorted(set(absent))))


def guide(page, heading, number=0):
    """The indented block `number` under `heading` of a page of the guide: the tests run exactly these lines."""
    text = (DOCUMENTS / "guide" / page).read_text()
    _, found, below = text.partition(f"\n{heading}\n")
    if not found:
        raise ValueError(f"{page} has no heading {heading!r}")
    section = re.split(r"\n#{2,3} ", below)[0]
    blocks = re.findall(r"(?:^|\n\n)((?: {4}.*\n?|\n(?= {4}))+)", section)
    return "\n".join(line[4:] for line in blocks[number].splitlines())


def replaced(text, *pairs):
    """The text with each `old` replaced by `new`; an `old` that the text lacks is an error."""
    for old, new in pairs:
        if old not in text:
            raise ValueError(f"the configuration lacks {old!r}")
        text = text.replace(old, new)
    return text


def accepts(port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Room:
    """A folder under /tmp and the processes that work in it; it ends and removes all of them."""

    def __init__(self, edge, binary, verbose=False):
        self.edge_name, self.binary, self.verbose = edge, Path(binary).resolve(), verbose
        self.dir = Path(tempfile.mkdtemp(prefix="weir-real-"))
        self.running, self.checks, self.transcript = [], [], []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.running):
            process.terminate()
        for process in reversed(self.running):
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def check(self, that, holds, told=""):
        """Counts one expectation, and prints it if it does not hold."""
        self.checks.append(bool(holds))
        if not holds:
            print(f"    {self.edge_name}: FAILED: {that}\n        {str(told)[:1500]}", flush=True)
        elif self.verbose:
            print(f"    {self.edge_name}: {that}", flush=True)
        return bool(holds)

    def start(self, name, command, ready, **more):
        """Starts a process, and returns once `ready()` is true. Its output is in NAME.log."""
        log = open(self.dir / f"{name}.log", "wb")
        process = subprocess.Popen([str(part) for part in command], cwd=self.dir, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **more)
        self.running.append(process)
        self.until(ready, lambda: f"{name} did not start:\n{self.read(f'{name}.log')}", process)
        return process

    def until(self, true, otherwise, process=None, seconds=START_SECONDS):
        end = time.monotonic() + seconds
        while not true():
            if time.monotonic() > end or process and process.poll() is not None:
                raise RuntimeError(otherwise())
            time.sleep(0.02)

    def stop(self, process):
        process.terminate()
        process.wait(END_SECONDS)
        self.running.remove(process)

    def read(self, name):
        path = self.dir / name
        return path.read_text(errors="replace") if path.exists() else ""

    def run(self, *command, text=None):
        done = subprocess.run([str(part) for part in command], cwd=self.dir, input=text, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")
        return done.stdout

    def edge(self, inside_http):
        """Starts the edge with these lines in `http`, and Debian's snippets beside the file."""
        for name in ("snippets", "fastcgi.conf", "fastcgi_params", "mime.types", "uwsgi_params"):
            source, copy = Path("/etc/nginx") / name, self.dir / name
            shutil.copytree(source, copy) if source.is_dir() else shutil.copy(source, copy)
        (self.dir / "nginx.conf").write_text(f"""daemon off; user root; pid nginx.pid; error_log error.log info; worker_processes 2;
events {{ worker_connections 1024; }}
http {{
    include mime.types;
    default_type application/octet-stream;
    log_format real '$status $request_method $request_uri';
    access_log access.log real;
    client_body_temp_path body.tmp; proxy_temp_path proxy.tmp; fastcgi_temp_path fastcgi.tmp;
{inside_http}
}}
""")
        # weir takes the place of nginx if it is called by this name.
        called = self.dir / "nginx"
        called.symlink_to(self.binary)
        pid = self.dir / "nginx.pid"
        command = [called, "-p", self.dir, "-c", "nginx.conf", "-e", "error.log"]
        return self.start("edge", command, lambda: pid.exists() and pid.stat().st_size)

    def ends_well(self, process):
        """The edge ends after QUIT, and its log has no alert and no panic."""
        self.run("kill", "-QUIT", process.pid)
        process.wait(END_SECONDS)
        self.running.remove(process)
        bad = [line for line in (self.read("error.log") + self.read("edge.log")).splitlines() if "[alert]" in line or "panicked" in line]
        self.check("the edge's log has no alert", not bad, bad)

    def php_fpm(self, children=4):
        """PHP-FPM of Debian on php.sock, with its status page."""
        (self.dir / "fpm.conf").write_text(f"""[global]
error_log = {self.dir}/fpm-error.log
daemonize = no
[www]
listen = {self.dir}/php.sock
user = root
group = root
pm = static
pm.max_children = {children}
pm.status_path = /fpm-status
request_slowlog_timeout = 5s
slowlog = {self.dir}/slow.log
catch_workers_output = yes
php_admin_value[upload_max_filesize] = 64M
php_admin_value[post_max_size] = 64M
php_admin_value[session.save_path] = {self.dir}
""")
        program = sorted(glob.glob("/usr/sbin/php-fpm[0-9]*"))[-1]
        command = [program, "--allow-to-run-as-root", "--nodaemonize", "--fpm-config", "fpm.conf"]
        return self.start("fpm", command, (self.dir / "php.sock").exists)

    def mariadb(self):
        """MariaDB of Debian on mariadb.sock, with an empty password for root."""
        data = self.dir / "mariadb"
        self.run("mariadb-install-db", "--no-defaults", "--user=root", "--auth-root-authentication-method=normal", "--skip-test-db",
                 "--innodb-log-file-size=8M", f"--datadir={data}")
        process = self.start(
            "mariadb",
            ["mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", f"--socket={self.dir}/mariadb.sock", "--skip-networking",
             "--innodb-log-file-size=8M", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M"],
            (self.dir / "mariadb.sock").exists)
        return process

    def browser(self, port, host=None):
        return Browser(self, port, host)


class Answer:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    @property
    def text(self):
        return self.body.decode(errors="replace")

    def __getitem__(self, name):
        """The values of a field, joined as if they were one; an empty text if the answer lacks it."""
        return ", ".join(value for key, value in self.fields if key.lower() == name.lower())

    def __str__(self):
        return f"{self.status} {self.fields} {self.text[:600]}"

    def find(self, pattern):
        """The first group of the first match in the body."""
        found = re.search(pattern, self.text, re.S)
        if not found:
            raise RuntimeError(f"no {pattern!r} in {self}")
        return found[1]


class Browser:
    """One client with cookies, and with one connection that it keeps open as long as the edge does."""

    def __init__(self, room, port, host=None):
        self.room, self.port, self.host = room, port, host or f"127.0.0.1:{port}"
        self.cookies, self.connection = {}, None

    def ask(self, method, target, body=None, form=None, fields=None, label=None, stable=False):
        """Sends a request and notes the answer in the room's transcript; `stable` says that its body is always the same."""
        fields = {"Host": self.host, "User-Agent": "real", **(fields or {})}
        if self.cookies and "Cookie" not in fields:
            fields["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if form is not None:
            body = urllib.parse.urlencode(form)
            fields["Content-Type"] = "application/x-www-form-urlencoded"
        answer = self.once(method, self.local(target), body, fields)
        self.keep_cookies(answer)
        self.room.transcript.append((label or f"{method} {self.plain(self.local(target))}", *self.noted(answer, stable)))
        return answer

    def get(self, target, **more):
        return self.ask("GET", target, **more)

    def local(self, target):
        """The target of an absolute link to this edge; other targets as they are."""
        return re.sub(rf"^https?://{re.escape(self.host)}", "", target) or "/"

    def once(self, method, target, body, fields):
        """The answer; a kept connection that the edge had closed already is replaced once, as browsers do."""
        for kept in (True, False):
            if self.connection is None or not kept:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_SECONDS)
            try:
                self.connection.request(method, target, body, fields, encode_chunked=fields.get("Transfer-Encoding") == "chunked")
                said = self.connection.getresponse()
                return Answer(said.status, said.getheaders(), said.read())
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                self.connection.close()
                if not kept:
                    raise
        raise AssertionError("unreachable")

    def keep_cookies(self, answer):
        for key, value in answer.fields:
            if key.lower() == "set-cookie":
                pair, *attributes = value.split(";")
                name, _, content = pair.partition("=")
                gone = any(re.match(r"\s*max-age=0|\s*expires=.*19[7-9]\d", attribute, re.I) for attribute in attributes)
                if gone or content in ("", "deleted"):
                    self.cookies.pop(name.strip(), None)
                else:
                    self.cookies[name.strip()] = content

    def noted(self, answer, stable):
        """The status, the fields and perhaps the body, in the form in which two edges are compared."""
        fields = sorted((key.lower(), self.noted_value(key.lower(), value)) for key, value in answer.fields if key.lower() not in OWN_FIELDS)
        if answer["X-Cache"] == "HIT":
            # Of an answer in its cache, weir knows the length and can give parts; nginx does not, if PHP sent no length.
            fields = [(key, value) for key, value in fields if key not in ("accept-ranges", "transfer-encoding")]
        body = answer.body
        if answer["Content-Type"].startswith(("text/", "application/json")):
            body = self.plain(answer.text).encode()
        return answer.status, tuple(fields), hashlib.sha256(body).hexdigest() if stable else None

    def noted_value(self, key, value):
        if key == "set-cookie":
            pair, *attributes = value.split(";")
            shown = [attribute for attribute in attributes if not re.match(r"\s*(expires|max-age)", attribute, re.I)]
            return pair.split("=")[0] + ";".join(["", *shown])
        return "…" if key in FRESH_FIELDS else self.plain(value)

    def plain(self, text):
        """The text without the values that differ from run to run."""
        text = text.replace(str(self.room.dir), "DIR").replace(str(self.port), "PORT")
        text = re.sub(r"(127\.0\.0\.1)(:|%3A)\d+", r"\1\2PORT", text)
        text = re.sub(r"\b\d{10}\b", "TIME", text)
        return re.sub(r"(?<=[=/-])[A-Za-z0-9_%-]*[0-9][A-Za-z0-9_%-]{8,}(?=[&;. ]|$)", "FRESH", text)


def multipart(fields, files):
    """The body and the type of a form with files: files are (name, file name, type, bytes)."""
    mark = "----weir-real-boundary"
    parts = [f'--{mark}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode() for name, value in fields.items()]
    for name, file, kind, content in files:
        head = f'--{mark}\r\nContent-Disposition: form-data; name="{name}"; filename="{file}"\r\nContent-Type: {kind}\r\n\r\n'
        parts.append(head.encode() + content + b"\r\n")
    return b"".join(parts) + f"--{mark}--\r\n".encode(), {"Content-Type": f"multipart/form-data; boundary={mark}"}
