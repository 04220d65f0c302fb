"""The servers behind the edges. Each notes every request that it sees, and answers as the request's query asks."""
import hashlib
import importlib.machinery
import importlib.util
import os
import socket
import ssl
import struct
import threading
import zlib

APP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "app")
# Of a request's head or body that an origin reads, in bytes.
MOST = 64 << 20
TEXT = b"0123456789 the origin's own text, long enough that an edge compresses it if its file says so\n" * 20


def application():
    """tests/app as a module; its answers become those of `Origins`."""
    loader = importlib.machinery.SourceFileLoader("app", APP)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("app", loader))
    loader.exec_module(module)
    return module


def wish(query):
    """What the client asks the origin for: the value of `answer` in the query."""
    return next((part[7:] for part in query.replace("?", "&").split("&") if part.startswith("answer=")), "")


def fields(asked):
    """Status and fields of an answer."""
    status = {"302": "302 Found", "201": "201 Created", "404": "404 Not Found", "500": "500 Internal Server Error", "204": "204 No Content",
              "503": "503 Service Unavailable", "401": "401 Unauthorized"}.get(asked, "200 OK")
    found = [("Content-Type", "text/html; charset=utf-8"), ("Set-Cookie", "first=1; Path=/; HttpOnly"), ("Set-Cookie", "second=2"),
             ("Cache-Control", "no-cache" if asked else "max-age=60"), ("Vary", "Accept"), ("X-Powered-By", "origin"), ("X-Frame-Options", "DENY"),
             ("Last-Modified", "Sun, 09 Sep 2001 01:46:40 GMT"), ("ETag", '"origin"')]
    if asked in ("302", "201"):
        found.append(("Location", "/elsewhere?x=1"))
    if asked == "401":
        found.append(("WWW-Authenticate", 'Basic realm="origin"'))
    if asked == "accel":
        found.append(("X-Accel-Redirect", "/style.css"))
    return status, found


class Origins:
    """All origins of a case. `seen` has the requests since it was last emptied."""

    def __init__(self, pair):
        self.seen, self.lock, self.app, self.table = [], threading.Lock(), application(), {}
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(pair + "/cert.pem", pair + "/key.pem")

    def note(self, kind, first, headers, body):
        with self.lock:
            self.seen.append({"kind": kind, "line": first, "headers": headers, "body": f"{len(body)} bytes, md5 {hashlib.md5(body).hexdigest()}"})

    def take(self):
        with self.lock:
            taken, self.seen = self.seen, []
        return taken

    def listen(self, listener, protocol, is_tls):
        """Serves the listener until the process ends."""
        if protocol in ("http", "grpc"):
            threading.Thread(target=self.accept, args=(listener, is_tls), daemon=True).start()
            return
        app = self.app

        def answer(params, body):
            self.note(protocol, f"{params.get('REQUEST_METHOD')} {params.get('REQUEST_URI')}", sorted(params.items()), body)
            status, found = fields(wish(params.get("QUERY_STRING", "")))
            head = [("Status", status), *found]
            return "".join(f"{name}: {value}\r\n" for name, value in head).encode() + b"\r\n" + TEXT
        app.answer = answer
        talk = {"fastcgi": app.fastcgi, "uwsgi": app.uwsgi, "scgi": app.scgi, "memcached": app.memcached}[protocol]
        threading.Thread(target=app.serve, args=(listener, talk), daemon=True).start()

    def accept(self, listener, is_tls):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self.connection, args=(connection, is_tls), daemon=True).start()

    def connection(self, connection, is_tls):
        try:
            if is_tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rb") as stream:
                while self.exchange(connection, stream):
                    pass
        except (OSError, ValueError):
            pass

    def exchange(self, connection, stream):
        """One request and its answer; whether another may follow."""
        first = stream.readline(MOST).decode("latin-1").rstrip("\r\n")
        if not first:
            return False
        headers = []
        while True:
            line = stream.readline(MOST).decode("latin-1").rstrip("\r\n")
            if not line:
                break
            name, _, value = line.partition(":")
            headers.append((name, value.strip(" ")))
        lower = {name.lower(): value for name, value in headers}
        body = b""
        if lower.get("transfer-encoding", "").lower() == "chunked":
            while True:
                size = int(stream.readline(MOST), 16)
                body += stream.read(size)
                stream.readline(MOST)
                if not size:
                    break
        elif "content-length" in lower:
            body = stream.read(int(lower["content-length"]))
        method, target, version = first.split(" ")
        self.note("http", first, headers, body)
        return self.answer(connection, method, target, version, lower)

    def answer(self, connection, method, target, version, lower):
        asked = wish(target)
        if lower.get("upgrade") and "upgrade" in lower.get("connection", "").lower():
            connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: %s\r\nConnection: Upgrade\r\nX-Origin: 1\r\n\r\nhello" % lower["upgrade"].encode())
            return False
        status, found = fields(asked)
        keeps = version == "HTTP/1.1" and lower.get("connection", "").lower() != "close"
        has_body, body = method != "HEAD" and not status.startswith(("204", "304")), TEXT
        head = [("Date", "Sun, 09 Sep 2001 01:46:40 GMT"), ("Server", "origin/1"), *found]
        if asked == "gzip":
            squeeze = zlib.compressobj(wbits=31)
            body = squeeze.compress(TEXT) + squeeze.flush()
            head.append(("Content-Encoding", "gzip"))
        if asked == "chunked" and version == "HTTP/1.1":
            head.append(("Transfer-Encoding", "chunked"))
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        elif asked == "close":
            keeps = False
        elif not status.startswith("204"):
            head.append(("Content-Length", str(len(body))))
        head.append(("Connection", "keep-alive" if keeps else "close"))
        text = f"HTTP/1.1 {status}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in head) + "\r\n"
        connection.sendall(text.encode() + (body if has_body else b""))
        return keeps


def names(stop, address, table):
    """A name server on `address`: each name of the table has its one address, and no other name exists."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((address, 53))
    server.settimeout(0.2)
    while not stop.is_set():
        try:
            question, peer = server.recvfrom(4096)
        except TimeoutError:
            continue
        at, labels = 12, []
        while question[at]:
            labels.append(question[at + 1:at + 1 + question[at]].decode())
            at += question[at] + 1
        asked, = struct.unpack(">H", question[at + 1:at + 3])
        known = table.get(".".join(labels).lower())
        records = struct.pack(">HHHIH4s", 0xC00C, 1, 1, 5, 4, socket.inet_aton(known)) if known and asked == 1 else b""
        flags = 0x8180 | (0 if known else 3)
        server.sendto(question[:2] + struct.pack(">HHHHH", flags, 1, 1 if records else 0, 0, 0) + question[12:at + 5] + records, peer)
    server.close()
