"""An origin for prometheus.py, and the clients that load the edge."""
import base64
import http.client
import os
import socket
import socketserver
import ssl
import threading
import time

PING, PONG, TEXT, CLOSE = 9, 10, 1, 8


def exactly(stream, count):
    data = b""
    while len(data) < count:
        more = stream.recv(count - len(data))
        if not more:
            raise ConnectionError("closed")
        data += more
    return data


def read_frame(stream):
    """A WebSocket frame of at most 125 bytes: opcode and content."""
    first, second = exactly(stream, 2)
    mask = exactly(stream, 4) if second & 0x80 else bytes(4)
    return first & 15, bytes(byte ^ mask[at % 4] for at, byte in enumerate(exactly(stream, second & 0x7F)))


def write_frame(stream, opcode, content, is_masked=False):
    """The mask is four zero bytes, so that the content stays as it is."""
    head = bytes([0x80 | opcode, len(content) | (0x80 if is_masked else 0)])
    stream.sendall(head + (bytes(4) if is_masked else b"") + content)


class Origin(socketserver.BaseRequestHandler):
    """Answers every request: /slow after a while, /500 with 500, and an Upgrade as a WebSocket that echoes."""

    def handle(self):
        try:
            while True:
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    head += exactly(self.request, 1)
                path = head.split(b" ")[1].decode()
                if b"\r\nupgrade: websocket" in head.lower():
                    return self.echo()
                if path.startswith("/slow"):
                    time.sleep(0.4)
                status = "500 Internal Server Error" if path.startswith("/500") else "200 OK"
                self.request.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 3\r\n\r\nok\n".encode())
        except OSError:
            pass

    def echo(self):
        # weir does not read the key, so the answer need not prove that it read the key.
        self.request.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        while True:
            opcode, content = read_frame(self.request)
            write_frame(self.request, PONG if opcode == PING else opcode, content)
            if opcode == CLOSE:
                return


class Threads(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


def origin():
    """Starts an origin on a free port, and returns the port."""
    server = Threads(("127.0.0.1", 0), Origin)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


class Load:
    """Clients that ask for everything again and again, until `stop`."""

    def __init__(self, ports):
        self.ports, self.is_over = ports, threading.Event()
        rounds = [self.requests, self.tls, self.websocket, self.tcp] + [self.slow] * 4
        self.threads = [threading.Thread(target=self.again, args=(one,), daemon=True) for one in rounds]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join(5)

    def again(self, one):
        while not self.is_over.is_set():
            try:
                one()
            except (OSError, http.client.HTTPException):
                pass
            self.is_over.wait(0.1)

    def get(self, *paths):
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["http"], timeout=5)
        for path in paths:
            connection.request("GET", path)
            connection.getresponse().read()
        connection.close()

    def requests(self):
        fresh = base64.b32encode(os.urandom(5)).decode()
        self.get("/app/", "/app/500", "/500", "/gone/", "/checked/", "/traced/", "/limited/", "/single/", "/cached/x", "/cached/x", f"/cached/{fresh}")
        # A client that leaves before the answer.
        with socket.create_connection(("127.0.0.1", self.ports["http"])) as stream:
            stream.sendall(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
            time.sleep(0.02)

    def slow(self):
        self.get("/queued/slow")

    def tls(self):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        session = None
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", self.ports["https"])) as stream:
                with context.wrap_socket(stream, server_hostname="localhost", session=session) as secure:
                    secure.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    while secure.recv(4096):
                        pass
                    session = secure.session
        with socket.create_connection(("127.0.0.1", self.ports["https"])) as stream:
            stream.sendall(b"\x16\x03\x01\x00\x02\xff\xff")
            stream.recv(100)

    def websocket(self):
        with socket.create_connection(("127.0.0.1", self.ports["http"])) as stream:
            stream.sendall(
                b"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
            )
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += exactly(stream, 1)
            for opcode, content in ((TEXT, b"hello"), (PING, os.urandom(8)), (CLOSE, b"\x03\xe8")):
                write_frame(stream, opcode, content, is_masked=True)
                read_frame(stream)
                self.is_over.wait(0.4)

    def tcp(self):
        with socket.create_connection(("127.0.0.1", self.ports["tcp"])) as stream:
            stream.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            stream.recv(4096)
