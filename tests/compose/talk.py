"""The client: sends each request as it is written, over HTTP/1, HTTP/2 or HTTP/3, and gives the answer as a record."""
import asyncio
import contextlib
import gzip
import ssl
import struct
import zlib

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import http3
import pools

# Seconds for which an edge may be silent.
SILENCE_S = 2.5
# Of the body of an answer.
BODY_MAX = 1 << 20
# Seconds before the body of a request that comes late.
LATE_S = 0.015
PORTS = {"plain": pools.PLAIN, "h2c": pools.PLAIN, "tls": pools.TLS, "h2": pools.TLS, "h3": pools.TLS, "proxied": pools.PROXIED, "other": pools.OTHER}
LOOSE = ssl.create_default_context()
LOOSE.check_hostname, LOOSE.verify_mode = False, ssl.CERT_NONE
LOOSE_H2 = ssl.create_default_context()
LOOSE_H2.check_hostname, LOOSE_H2.verify_mode = False, ssl.CERT_NONE
LOOSE_H2.set_alpn_protocols(["h2"])


class Arrival:
    """Says once bytes of a body have come that a reader can use: of a compressed body, those that can be decompressed."""

    def __init__(self, desk, given):
        self.desk = desk
        self.unpacked = zlib.decompressobj(31) if given.get("content-encoding") == "gzip" else None

    def take(self, data):
        try:
            if not self.unpacked or self.unpacked.decompress(data):
                self.desk.arrived.set()
        except zlib.error:
            self.desk.arrived.set()


class Odd(Exception):
    """The answer is no HTTP."""


def blank(status):
    return {"status": status, "headers": [], "body": b"", "before": [], "trailers": "", "end": ""}


class Client:
    """The client of one case: it keeps the connection of the last request."""

    def __init__(self, desk):
        self.desk, self.kept = desk, None

    async def ask(self, ask, number):
        try:
            async with asyncio.timeout(SILENCE_S):
                by = self.by_http2 if ask.is_http2 else self.by_http3 if ask.is_http3 else self.by_http1
                return await by(ask, number)
        except Odd as odd:
            return blank(f"no HTTP: {odd}")
        except TimeoutError:
            return blank("silence")
        except (asyncio.IncompleteReadError, ConnectionError):
            # A close with bytes that the edge has not read yet is a reset: it depends on packets.
            return blank("closed")
        except (OSError, ssl.SSLError) as error:
            return blank(f"no answer: {type(error).__name__}")

    async def opened(self, ask):
        secure = {"tls": LOOSE, "h2": LOOSE_H2}.get(ask.way)
        host = ask.given("Host") or "x.test"
        reader, writer = await asyncio.open_connection("127.0.0.1", PORTS[ask.way], limit=1 << 18)
        if ask.way == "proxied":
            writer.write(b"PROXY TCP4 203.0.113.9 203.0.113.1 5555 80\r\n")
        if secure:
            await writer.start_tls(secure, server_hostname=host.partition(":")[0] or "x.test")
        return reader, writer

    def close(self):
        if self.kept:
            self.kept[1].close()
            self.kept = None

    async def by_http1(self, ask, number):
        reused = self.kept if ask.again and self.kept and self.kept[2] == ask.way and not self.kept[0].at_eof() else None
        if reused:
            reader, writer, _ = reused
        else:
            self.close()
            reader, writer = await self.opened(ask)
        self.kept = None
        is_stale = False
        try:
            try:
                record = await self.exchange(ask, number, reader, writer)
            except ConnectionError:
                record = blank("closed")
            if reused and record["status"] == "closed" and not record["before"]:
                # The edge has closed the kept connection: a client sends such a request once more.
                writer.close()
                reader, writer = await self.opened(ask)
                record, is_stale = await self.exchange(ask, number, reader, writer), True
        except BaseException:
            writer.close()
            raise
        record["reused"] = "closed" if is_stale else ""
        if record["end"] == "kept":
            self.kept = reader, writer, ask.way
        else:
            writer.close()
        return record

    async def exchange(self, ask, number, reader, writer):
        head, body = wire(ask, number)
        if ask.is_late and body:
            writer.write(head)
            await writer.drain()
            await asyncio.sleep(LATE_S)
            writer.write(body)
        else:
            writer.write(head + body)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        before = []
        while True:
            status = (await reader.readline()).decode("latin-1").rstrip("\r\n")
            if not status:
                return {**blank("closed"), "before": before}
            if not status.startswith("HTTP/"):
                raise Odd(status[:60])
            fields = []
            while (line := (await reader.readline()).decode("latin-1").rstrip("\r\n")):
                name, _, value = line.partition(":")
                fields.append((name, value.strip()))
            code = status.split(" ")[1]
            if not code.startswith("1") or code == "101":
                break
            before.append(" ".join([status, *(f"{name}: {value}" for name, value in fields)]))
        return {"before": before, "status": status, "headers": fields, **await self.content(ask, code, fields, reader)}

    async def content(self, ask, code, fields, reader):
        """The body, decoded, with its trailers and with the end of the connection."""
        given = {name.lower(): value for name, value in fields}
        arrival = Arrival(self.desk, given)
        body, trailers, end = b"", "", "closed" if given.get("connection") == "close" else "kept"
        try:
            if code == "101":
                body, end = await reader.readexactly(5), "tunnel"
            elif ask.method == "HEAD" or code in ("204", "304"):
                pass
            elif given.get("transfer-encoding") == "chunked":
                async for piece in self.chunks(reader):
                    if isinstance(piece, str):
                        trailers = piece
                    else:
                        body += piece
                        arrival.take(piece)
            elif "content-length" in given:
                length = int(given["content-length"])
                while len(body) < length and (data := await reader.read(min(length - len(body), 65536))):
                    body += data
                    arrival.take(data)
                if len(body) < length:
                    end = "cut short"
            else:
                end = "closed"
                while len(body) < BODY_MAX and (data := await reader.read(65536)):
                    body += data
                    arrival.take(data)
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            end = "cut short"
        return {"body": plain(given, body), "trailers": trailers, "end": end}

    async def chunks(self, reader):
        """The pieces of a chunked body, and its trailers as a text."""
        while True:
            line = await reader.readline()
            if not line:
                raise ConnectionError
            size = int(line.split(b";")[0], 16)
            if not size:
                lines = []
                while (line := (await reader.readline()).decode("latin-1").strip()):
                    lines.append(line)
                yield "\n".join(lines)
                return
            yield await reader.readexactly(size)
            await reader.readline()

    async def by_http2(self, ask, number):
        self.close()
        reader, writer = await self.opened(ask)
        try:
            return await Http2(self.desk, reader, writer).ask(ask, number)
        finally:
            writer.close()

    async def by_http3(self, ask, number):
        self.close()
        record, arrivals = {**blank("closed"), "end": "cut short"}, []

        def arrived(data):
            if not arrivals:
                arrivals.append(Arrival(self.desk, dict(record["headers"])))
            arrivals[0].take(data)
        await http3.exchange(ask, number, PORTS[ask.way], record, arrived, LATE_S)
        record["body"] = plain(dict(record["headers"]), record["body"])
        return record


def wire(ask, number):
    """The bytes of a request: its head and its body."""
    fields, body = [*ask.fields, ("X-N", number)], ask.body or b""
    if ask.body is not None and ask.is_chunked and ask.version == "HTTP/1.1":
        fields.append(("Transfer-Encoding", "chunked"))
        half = len(body) // 2
        parts = [part for part in (body[:half], body[half:]) if part]
        body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n" + b"".join(f"{name}: {value}\r\n".encode() for name, value in ask.trailers) + b"\r\n"
    elif ask.body is not None:
        fields.append(("Content-Length", str(len(body))))
    if ask.expects:
        fields.append(("Expect", "100-continue"))
    head = f"{ask.method} {ask.target} {ask.version}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields) + "\r\n"
    return head.encode("latin-1"), body


class Http2:
    """One stream on a connection of its own."""
    HOPS = ("connection", "upgrade", "keep-alive", "transfer-encoding", "http2-settings", "expect", "host")

    def __init__(self, desk, reader, writer):
        self.desk, self.reader, self.writer, self.arrival = desk, reader, writer, None
        config = h2.config.H2Configuration(client_side=True, header_encoding="latin-1", validate_outbound_headers=False, normalize_outbound_headers=False, validate_inbound_headers=False)
        self.link = h2.connection.H2Connection(config)

    async def ask(self, ask, number):
        link = self.link
        link.initiate_connection()
        link.increment_flow_control_window(1 << 22)
        target = ask.target if ask.target.startswith(("/", "*")) else "/" + ask.target.split("/", 3)[-1]
        fields = [(":method", ask.method), (":scheme", "https" if ask.way == "h2" else "http"), (":path", target), (":authority", ask.given("Host") or "x.test")]
        fields += [(name.lower(), value) for name, value in ask.fields if name.lower() not in self.HOPS] + [("x-n", number)]
        if ask.body is not None and not ask.is_chunked:
            fields.append(("content-length", str(len(ask.body))))
        link.send_headers(1, fields, end_stream=ask.body is None)
        if ask.body is not None:
            if ask.is_late:
                self.writer.write(link.data_to_send())
                await self.writer.drain()
                await asyncio.sleep(LATE_S)
            for begin in range(0, len(ask.body), 16000):
                link.send_data(1, ask.body[begin:begin + 16000])
            if ask.trailers:
                link.send_headers(1, [(name.lower(), value) for name, value in ask.trailers], end_stream=True)
            else:
                link.end_stream(1)
        self.writer.write(link.data_to_send())
        record = {**blank("closed"), "end": "cut short"}
        while record["end"] == "cut short":
            data = await self.reader.read(65536)
            if not data:
                break
            try:
                self.take(record, link.receive_data(data))
            except h2.exceptions.ProtocolError as error:
                raise Odd(type(error).__name__) from error
            self.writer.write(link.data_to_send())
        record["body"] = plain(dict(record["headers"]), record["body"])
        return record

    def take(self, record, events):
        for event in events:
            match event:
                case h2.events.InformationalResponseReceived():
                    record["before"].append(" ".join(["HTTP/2", *(f"{name}: {value}" for name, value in event.headers)]))
                case h2.events.ResponseReceived():
                    record["status"] = "HTTP/2 " + dict(event.headers)[":status"]
                    record["headers"] = [(name, value) for name, value in event.headers if not name.startswith(":")]
                case h2.events.DataReceived():
                    record["body"] += event.data
                    self.arrival = self.arrival or Arrival(self.desk, dict(record["headers"]))
                    self.arrival.take(event.data)
                    self.link.acknowledge_received_data(event.flow_controlled_length, 1)
                case h2.events.TrailersReceived():
                    record["trailers"] = "\n".join(f"{name}: {value}" for name, value in event.headers)
                case h2.events.StreamEnded():
                    record["end"] = "ended"
                case h2.events.StreamReset():
                    record["end"] = record["end"] if record["end"] == "ended" else "reset"
                case h2.events.ConnectionTerminated():
                    if record["end"] == "cut short" and event.error_code:
                        record["end"] = "gone"


def plain(given, body):
    """The body without its coding."""
    if given.get("content-encoding") != "gzip" or not body:
        return body
    try:
        return gzip.decompress(body)
    except (OSError, EOFError, zlib.error, struct.error):
        with contextlib.suppress(zlib.error):
            return b"[part of gzip] " + zlib.decompressobj(31).decompress(body)
        return b"[damaged gzip]"


async def stream(port):
    """A session of TCP: everything that comes, until the end."""
    try:
        async with asyncio.timeout(SILENCE_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"line\n")
            data = b""
            while not data.endswith(b"echo line\n") and (more := await reader.read(4096)):
                data += more
            writer.close()
            return data
    except TimeoutError:
        return b"silence"
    except ConnectionResetError:
        # A close with bytes that the edge has not read yet is a reset: it depends on packets.
        return b""
    except OSError:
        return b"no answer"


