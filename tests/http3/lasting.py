"""Connections of HTTP/3 last: 100 reloads, five other numbers of workers, five upgrades of the binary, while clients download, talk over WebSockets and
move; and after a crash, each client learns of it at once.

    python lasting.py BINARY [PART …]    BINARY is weir, or an nginx of that name; the parts are "reloads", "workers", "upgrades", "back", "crash", "moves", "spoof"; without one, all

It needs aioquic. It prints a line for each part, and exits with 1 if one has failed.
"""

import asyncio
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamReset

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from origin import Origin, frame
from ports import free_port

FILE_BYTES = 2 << 20
CLIENTS = 8
MESSAGE = b"hello"
# One client moves between addresses of loopback.
HOSTS = ("127.0.0.2", "127.0.0.1", "127.0.0.3")
RESET, NO_ERROR = "a stateless reset", "H3_NO_ERROR"
# H3_REQUEST_REJECTED (RFC 9114, section 8.1).
REJECTED = 0x10B


class Refused(Exception):
    """The server has not begun the request, because it ends: the client asks again on another connection."""


class Client(QuicConnectionProtocol):
    """A client; `ended` has the reason once the connection has ended."""

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.http, self.waiting, self.ended = H3Connection(self._quic), {}, None
        self.tunnel = None

    def has_ended(self, why):
        self.ended = self.ended or why
        for stream, (future, answer) in self.waiting.items():
            if not future.done() and stream != self.tunnel:
                is_begun = answer["bytes"] or answer["headers"]
                future.set_exception(Refused(why) if why == NO_ERROR and not is_begun else ConnectionError(why))

    def datagram_received(self, data, address):
        # aioquic keeps the tokens of stateless resets, and looks for none (RFC 9000, section 10.3.1).
        ids = [self._quic._peer_cid, *self._quic._peer_cid_available]
        if data[-16:] in [each.stateless_reset_token for each in ids]:
            return self.has_ended(RESET)
        super().datagram_received(data, address)

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated):
            self.has_ended(NO_ERROR if event.error_code == 0x100 else event.reason_phrase or hex(event.error_code))
        if isinstance(event, StreamReset) and event.stream_id in self.waiting:
            kind = Refused if event.error_code == REJECTED else ConnectionError
            self.waiting[event.stream_id][0].set_exception(kind(hex(event.error_code)))
        for event in self.http.handle_event(event):
            if isinstance(event, (HeadersReceived, DataReceived)):
                future, answer = self.waiting[event.stream_id]
                if isinstance(event, HeadersReceived):
                    answer["headers"] = dict(event.headers)
                else:
                    answer["bytes"] += len(event.data)
                    answer["body"] = (answer["body"] + event.data)[:100]
                if event.stream_ended and not future.done():
                    future.set_result(answer)

    def begin(self, method, path, more=(), ends=True):
        """Sends a request; its stream."""
        if self.ended:
            raise (Refused if self.ended == NO_ERROR else ConnectionError)(self.ended)
        stream = self._quic.get_next_available_stream_id()
        self.waiting[stream] = asyncio.get_running_loop().create_future(), {"headers": {}, "bytes": 0, "body": b""}
        fields = [(b":method", method), (b":scheme", b"https"), (b":authority", b"localhost"), (b":path", path.encode()), *more]
        self.http.send_headers(stream, fields, end_stream=ends)
        self.transmit()
        return stream

    async def get(self, path, patience=20):
        stream = self.begin(b"GET", path)
        try:
            return await asyncio.wait_for(self.waiting[stream][0], patience)
        finally:
            del self.waiting[stream]

    async def echo(self, patience=20):
        """Sends a message over the connection's WebSocket (RFC 9220), and waits until it is back."""
        if self.tunnel is None:
            more = [(b":protocol", b"websocket"), (b"sec-websocket-version", b"13")]
            self.tunnel = self.begin(b"CONNECT", "/ws", more, ends=False)
        future, answer = self.waiting[self.tunnel]
        expected = answer["bytes"] + 2 + len(MESSAGE)
        self.http.send_data(self.tunnel, frame(0x81, MESSAGE, b"mask"), False)
        self.transmit()
        end = time.monotonic() + patience
        while answer["bytes"] < expected:
            if self.ended or future.done() or time.monotonic() > end:
                raise ConnectionError(f"no echo: {self.ended}")
            await asyncio.sleep(0.01)

    async def move(self, host):
        """Goes on from another address."""
        old = self._transport
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: self, local_addr=("::ffff:" + host, 0))
        return old


def is_nginx(binary):
    """nginx beside weir: it has no WebSockets over HTTP/3."""
    return Path(binary).name == "nginx"


class Weir:
    """A weir, or an nginx, in the foreground, with its configuration."""

    def __init__(self, binary, origin):
        self.place = Path(tempfile.mkdtemp(prefix="weir-lasting-"))
        self.port, self.origin = free_port(), origin
        self.acts = [act for act in ACTS if act != talk or not is_nginx(binary)]
        for part in ("logs", "html"):
            (self.place / part).mkdir()
        # The workers are another user's if root starts weir.
        self.place.chmod(0o755)
        (self.place / "html" / "file").write_bytes(b"x" * FILE_BYTES)
        make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
        keys = ["-keyout", self.place / "key.pem", "-out", self.place / "cert.pem"]
        subprocess.run([*make.split(), *keys], check=True, stderr=subprocess.DEVNULL)
        self.write(1)
        words = [] if is_nginx(binary) else ["edge"]
        self.process = subprocess.Popen([binary, *words, "-p", self.place, "-c", self.place / "nginx.conf"])
        self.pids = {self.process.pid}

    def write(self, workers, mark=0):
        (self.place / "nginx.conf").write_text(
            f"""
            daemon off;
            worker_processes {workers};
            pid {self.place}/pid;
            error_log {self.place}/logs/error.log info;
            events {{ }}
            http {{
                access_log off;
                server {{
                    listen 127.0.0.1:{self.port} quic;
                    listen 127.0.0.1:{self.port} ssl;
                    ssl_certificate {self.place}/cert.pem;
                    ssl_certificate_key {self.place}/key.pem;
                    root {self.place}/html;
                    location = /ws {{ proxy_pass http://127.0.0.1:{self.origin}; proxy_read_timeout 1h; }}
                    location = /who {{ return 200 "{mark} $remote_addr:$remote_port"; }}
                }}
            }}
            """
        )

    def log(self):
        path = self.place / "logs" / "error.log"
        return path.read_text() if path.exists() else ""

    def keeper(self):
        return int((self.place / "pid").read_text())

    async def until(self, what, patience=15):
        end = time.monotonic() + patience
        while not what():
            if time.monotonic() > end:
                raise TimeoutError(f"weir did not come so far; its log:\n{self.log()[-3000:]}")
            await asyncio.sleep(0.02)

    async def reload(self, workers, mark):
        """Reloads, and waits until the configuration is in force."""
        self.write(workers, mark)
        os.kill(self.keeper(), signal.SIGHUP)
        await self.until_says(str(mark))

    async def until_says(self, mark):
        end = time.monotonic() + 15
        while time.monotonic() < end:
            async with self.client() as client:
                if (await client.get("/who"))["body"].startswith(mark.encode() + b" "):
                    return
            await asyncio.sleep(0.02)
        raise TimeoutError(f"configuration {mark} is not in force; the log:\n{self.log()[-3000:]}")

    async def upgrade(self):
        """Replaces the binary, and ends the old one."""
        old = self.keeper()
        os.kill(old, signal.SIGUSR2)
        pid = self.place / "pid"
        await self.until(lambda: pid.exists() and pid.read_text().strip() not in ("", str(old)))
        self.pids.add(self.keeper())
        await asyncio.sleep(0.3)
        os.kill(old, signal.SIGQUIT)
        return old

    def servers(self):
        """The server of the keeper."""
        found = subprocess.run(["pgrep", "-P", str(self.keeper())], capture_output=True, text=True).stdout.split()
        return [int(pid) for pid in found]

    def client(self):
        config = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE)
        config.server_name = "localhost"
        return connect("127.0.0.1", self.port, configuration=config, create_protocol=Client)

    def stop(self):
        for pid in self.pids:
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        self.process.wait(20)


async def download(client, figures):
    answer = await client.get("/file")
    if answer["bytes"] != FILE_BYTES:
        raise ConnectionError(f"{answer['bytes']} bytes")
    figures["files"] += 1


async def talk(client, figures):
    await client.echo()
    figures["messages"] += 1
    await asyncio.sleep(0.02)


async def roam(client, figures):
    old = await client.move(HOSTS[figures["moves"] % len(HOSTS)])
    await client.get("/who")
    figures["moves"] += 1
    await asyncio.sleep(0.1)
    old.close()


ACTS = [*[download] * CLIENTS, talk, talk, roam, roam]


async def keep(act, weir, stop, figures):
    """A client that acts on one connection until it is told to stop, or on another one if the server ends."""
    try:
        async with weir.client() as client:
            figures["connections"] += 1
            while not stop.is_set():
                await act(client, figures)
    except Refused:
        figures["refused"] += 1
        await keep(act, weir, stop, figures)
    except (ConnectionError, TimeoutError, asyncio.TimeoutError) as error:
        figures["lost"].append(f"{act.__name__}: {error!r}")


async def under_load(weir, events):
    """Lets events happen while clients download, talk and move. Clients come and go besides."""
    stop, figures = asyncio.Event(), {"connections": 0, "files": 0, "messages": 0, "moves": 0, "refused": 0, "lost": []}
    tasks = [asyncio.create_task(keep(act, weir, stop, figures)) for act in weir.acts]
    await weir.until(lambda: figures["connections"] == len(weir.acts))
    try:
        await events()
        before = figures["files"]
        await weir.until(lambda: figures["files"] >= before + 2 * CLIENTS or figures["lost"], 20)
    finally:
        stop.set()
        await asyncio.gather(*tasks)
    return figures


async def reloads(weir):
    async def events():
        for number in range(100):
            await weir.reload(1, f"r{number}")

    return await under_load(weir, events)


async def workers(weir):
    async def events():
        for count in (1, 3, 2, 4, 1):
            await weir.reload(count, f"w{count}")

    return await under_load(weir, events)


async def upgrades(weir):
    await weir.reload(2, "u")

    async def events():
        for _ in range(5):
            await weir.upgrade()
            await weir.until_says("u")

    return await under_load(weir, events)


async def back(weir):
    """The new binary ends, and the old one reads again."""

    async def events():
        old, pid = weir.keeper(), weir.place / "pid"
        os.kill(old, signal.SIGUSR2)
        await weir.until(lambda: pid.exists() and pid.read_text().strip() not in ("", str(old)))
        new = weir.keeper()
        weir.pids.add(new)
        await asyncio.sleep(0.5)
        os.kill(new, signal.SIGTERM)
        await weir.until(lambda: pid.exists() and pid.read_text().strip() == str(old))
        await weir.until_says("0")

    return await under_load(weir, events)


async def crash(weir):
    """Each client sees a stateless reset within a second after it sends."""
    await weir.reload(2, "c")
    clients = [weir.client() for _ in range(CLIENTS)]
    opened = [await client.__aenter__() for client in clients]
    for client in opened:
        await client.get("/who")
    (server,) = weir.servers()
    os.kill(server, signal.SIGKILL)
    await weir.until(lambda: weir.servers() not in ([], [server]))
    await weir.until_says("c")
    began = time.monotonic()
    results = await asyncio.gather(*(client.get("/who", 5) for client in opened), return_exceptions=True)
    seconds = time.monotonic() - began
    for client in clients:
        await client.__aexit__(None, None, None)
    reset = [client.ended for client in opened]
    lost = [f"{result!r} {end}" for result, end in zip(results, reset) if end != RESET]
    if seconds > 1:
        lost.append(f"it took {seconds:.2f} s")
    return {"connections": len(opened), "seconds": round(seconds, 3), "reasons": sorted(set(map(str, reset))), "lost": lost}


async def moves(weir):
    """A client that moves has its new address once it has proved it."""
    lost = []
    async with weir.client() as client:
        await client.get("/who")
        for host in HOSTS:
            old = await client.move(host)
            await client.get("/who")
            await asyncio.sleep(0.1)
            name = client._transport.get_extra_info("sockname")
            seen = (await client.get("/who"))["body"].split()[1].decode()
            if seen != f"{host}:{name[1]}":
                lost.append(f"{seen} in place of {host}:{name[1]}")
            old.close()
    return {"connections": 1, "lost": lost}


async def spoof(weir):
    """A client that sends from an address at which it does not receive does not become that address."""
    lost = []
    async with weir.client() as client:
        home = (await client.get("/who"))["body"].split()[1]
        # aioquic's sockets are of IPv6.
        other = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        other.bind(("::ffff:127.0.0.2", 0))
        transport = client._transport
        for _ in range(3):

            class Elsewhere:
                def sendto(self, data, to):
                    other.sendto(data, to)

                def close(self):
                    transport.close()

            # The answers to this request go to the other address. Those after it come home again.
            client._transport = Elsewhere()
            asked = asyncio.create_task(client.get("/who"))
            await asyncio.sleep(0.1)
            client._transport = transport
            for _ in range(2):
                seen = (await client.get("/who"))["body"].split()[1]
                if seen != home:
                    lost.append(f"{seen!r} in place of {home!r}")
            seen = (await asked)["body"].split()[1]
            if seen != home:
                lost.append(f"{seen!r} in place of {home!r}")
        other.close()
    return {"connections": 1, "lost": lost}


PARTS = {"reloads": reloads, "workers": workers, "upgrades": upgrades, "back": back, "crash": crash, "moves": moves, "spoof": spoof}


async def main(binary, names):
    failed, origin = False, Origin()
    await origin.start()
    for name in names or PARTS:
        weir = Weir(binary, origin.port)
        began = time.monotonic()
        try:
            await weir.until(lambda: (weir.place / "pid").exists())
            await weir.until_says("0")
            figures = await PARTS[name](weir)
        except Exception as error:
            figures = {"lost": [repr(error)]}
        finally:
            weir.stop()
        failed |= bool(figures["lost"])
        word = "failed" if figures["lost"] else "ok"
        print(f"{name}: {word} in {time.monotonic() - began:.1f} s, {figures}", flush=True)
    return failed


sys.exit(asyncio.run(main(sys.argv[1], sys.argv[2:])))
