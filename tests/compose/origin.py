"""The origins behind an edge: HTTP/1, FastCGI, uwsgi, SCGI, memcached, gRPC and HTTP/2, TLS, TCP. They answer as the request says and record it."""
import asyncio
import contextlib
import socket
import struct

import answers
import h2.config
import h2.connection
import h2.events
import h2.exceptions

# Seconds that an origin waits for a body that was announced, or for the client to have the first piece.
BODY_S, PIECE_S = 0.3, 0.3
# Seconds of an origin that does not answer: longer than every timeout of the edge.
HANG_S = 8
# Of a body, in a record.
SHOWN = 300


class Desk:
    """What the origins saw, by the number of the client's request; and whether the client has got bytes of a body."""

    def __init__(self):
        self.clear()

    def clear(self):
        self.records, self.current, self.arrived, self.pieces, self.busy = [], "", asyncio.Event(), "", 0

    def begins(self, number):
        self.current, self.arrived, self.pieces = number, asyncio.Event(), ""

    def note(self, where, line, fields, body, given):
        shown = body.decode("latin-1")
        shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}… {len(shown)}"
        self.records.append((given.get("x-n") or self.current, {"at": where, "line": line, "headers": fields, "body": shown}))

    async def piece(self):
        """Waits until the client has got bytes of the answer's body."""
        number = self.current
        try:
            await asyncio.wait_for(self.arrived.wait(), PIECE_S)
            pieces = "each piece by itself"
        except TimeoutError:
            pieces = "all pieces at the end"
        # A copy may wait for longer than the client's request.
        if number == self.current:
            self.pieces = pieces


def lower(fields):
    return {name.lower(): value for name, value in fields}


async def read_chunked(reader):
    body = b""
    while True:
        size = int((await reader.readline()).split(b";")[0], 16)
        body += await reader.readexactly(size) if size else b""
        line = await reader.readline()
        if not size:
            while line.strip():
                line = await reader.readline()
            return body


async def read_length(reader, length):
    """A body of this length, or what came of it in time."""
    body = b""
    with contextlib.suppress(TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(BODY_S):
            while len(body) < length and (data := await reader.read(length - len(body))):
                body += data
    return body


def head_of(status, fields):
    return f"HTTP/1.1 {status}\r\n".encode() + b"".join(f"{name}: {value}\r\n".encode("latin-1") for name, value in fields) + b"\r\n"


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data) if data else b""


async def http(desk, where, reader, writer):
    while True:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
        fields = [(line.partition(":")[0], line.partition(":")[2].strip()) for line in lines[1:]]
        given = lower(fields)
        body = b""
        if "chunked" in given.get("transfer-encoding", ""):
            body = await read_chunked(reader)
        elif given.get("content-length", "0").isdigit():
            body = await read_length(reader, int(given.get("content-length", "0")))
        desk.note(where, lines[0], fields, body, given)
        if where == "closing":
            return
        method, _, rest = lines[0].partition(" ")
        target, _, version = rest.rpartition(" ")
        if await http_answer(desk, writer, method, target, version == "HTTP/1.0", given, body):
            return


async def http_answer(desk, writer, method, target, is_old, given, body):
    """Sends an answer; whether the connection ends."""
    status, fields, content, how = answers.answer(method, target, given, body)
    match how:
        case "nothing":
            return True
        case "hang":
            await asyncio.sleep(HANG_S)
            return True
        case "reset":
            writer.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            return True
        case "raw" if not status:
            writer.write(content)
            return True
        case "tunnel":
            writer.write(head_of(status, fields) + content)
            await writer.drain()
            return True
    early = b""
    if how == "early":
        how, early = "length", b"" if is_old else b"HTTP/1.1 103 Early Hints\r\nLink: </e.css>; rel=preload\r\n\r\n"
    chunks = how in ("chunked", "trailers", "pieces") and not is_old
    ends = is_old or how in ("close", "raw")
    if chunks:
        fields.append(("Transfer-Encoding", "chunked"))
    elif how == "length":
        fields.append(("Content-Length", str(len(content))))
    if ends:
        fields.append(("Connection", "close"))
    writer.write(early + head_of(status, fields))
    if method == "HEAD":
        return ends
    if how == "pieces":
        writer.write(chunk(answers.PIECES[0]) if chunks else answers.PIECES[0])
        await writer.drain()
        await desk.piece()
        writer.write(chunk(answers.PIECES[1]) + b"0\r\n\r\n" if chunks else answers.PIECES[1])
    elif chunks:
        third = max(1, len(content) // 3)
        writer.write(b"".join(chunk(content[at:at + third]) for at in range(0, len(content), third)) + b"0\r\n" + (b"X-T: end\r\n" if how == "trailers" else b"") + b"\r\n")
    else:
        writer.write(content)
    await writer.drain()
    return ends


async def cgi_answer(desk, write, method, target, given, body):
    """Writes an answer of CGI's form by `write(bytes)`."""
    status, fields, content, how = answers.answer(method, target, given, body)
    match how:
        case "nothing" | "reset":
            return
        case "hang":
            await asyncio.sleep(HANG_S)
            return
        case "raw" if not status:
            await write(content)
            return
    head = f"Status: {status}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields) + "\r\n"
    if how == "pieces" and method != "HEAD":
        await write(head.encode("latin-1") + answers.PIECES[0])
        await desk.piece()
        await write(answers.PIECES[1])
    else:
        await write(head.encode("latin-1") + (b"" if method == "HEAD" else content))


def as_fields(params):
    """The client's fields among parameters of CGI."""
    given = {name[5:].replace("_", "-").lower(): value for name, value in params if name.startswith("HTTP_")}
    return given | {name.replace("_", "-").lower(): value for name, value in params if name in ("CONTENT_LENGTH", "CONTENT_TYPE")}


def asked(params):
    given = dict(params)
    return given.get("REQUEST_METHOD", "GET"), given.get("REQUEST_URI", "/")


async def fastcgi(desk, where, reader, writer):
    while True:
        params, body, flags = b"", b"", 0
        while True:
            _, kind, number, length, padding, _ = struct.unpack(">BBHHBB", await reader.readexactly(8))
            data = (await reader.readexactly(length + padding))[:length]
            if kind == 1:
                flags = data[2]
            params += data if kind == 4 else b""
            body += data if kind == 5 else b""
            if kind == 5 and not length:
                break
        pairs = list(fastcgi_pairs(params))
        desk.note(where, "FastCGI", pairs, body, as_fields(pairs))

        async def write(data):
            for begin in range(0, len(data), 60000):
                part = data[begin:begin + 60000]
                writer.write(struct.pack(">BBHHBB", 1, 6, number, len(part), 0, 0) + part)
            await writer.drain()
        method, target = asked(pairs)
        await cgi_answer(desk, write, method, target, as_fields(pairs), body)
        if answers.ANSWERS.get(answers.key(target, as_fields(pairs)), answers.ANSWERS["ok"]).how in ("nothing", "reset", "hang"):
            return
        writer.write(struct.pack(">BBHHBB", 1, 6, number, 0, 0, 0) + struct.pack(">BBHHBB", 1, 3, number, 8, 0, 0) + bytes(8))
        await writer.drain()
        if not flags & 1:
            return


def fastcgi_pairs(data):
    place = 0
    while place < len(data):
        sizes = []
        for _ in range(2):
            size = data[place]
            place += 1
            if size & 0x80:
                size = (size & 0x7F) << 24 | int.from_bytes(data[place:place + 3], "big")
                place += 3
            sizes.append(size)
        yield data[place:place + sizes[0]].decode("latin-1"), data[place + sizes[0]:place + sum(sizes)].decode("latin-1")
        place += sum(sizes)


async def uwsgi(desk, where, reader, writer):
    _, size, _ = struct.unpack("<BHB", await reader.readexactly(4))
    data, place, pairs = await reader.readexactly(size), 0, []
    while place < size:
        texts = []
        for _ in range(2):
            length = int.from_bytes(data[place:place + 2], "little")
            texts.append(data[place + 2:place + 2 + length].decode("latin-1"))
            place += 2 + length
        pairs.append(tuple(texts))
    await cgi_request(desk, where, reader, writer, pairs)


async def scgi(desk, where, reader, writer):
    size = int((await reader.readuntil(b":"))[:-1])
    texts = (await reader.readexactly(size + 1))[:-2].decode("latin-1").split("\0")
    await cgi_request(desk, where, reader, writer, list(zip(texts[::2], texts[1::2])))


async def cgi_request(desk, where, reader, writer, pairs):
    length = dict(pairs).get("CONTENT_LENGTH", "0")
    body = await read_length(reader, int(length) if length.isdigit() else 0)
    desk.note(where, where, pairs, body, as_fields(pairs))

    async def write(data):
        writer.write(data)
        await writer.drain()
    method, target = asked(pairs)
    await cgi_answer(desk, write, method, target, as_fields(pairs), body)


async def memcached(desk, where, reader, writer):
    while line := (await reader.readline()).decode("latin-1").strip():
        desk.note(where, line, [], b"", {})
        name = line.partition(" ")[2]
        chosen = answers.CHOSEN.search(name)
        match chosen[1] if chosen else "ok":
            case "404" | "403" | "410":
                writer.write(b"END\r\n")
            case "500" | "503" | "502" | "garbage":
                writer.write(b"SERVER_ERROR no\r\n")
            case "nohead" | "reset" | "short":
                return
            case "gz":
                data = answers.ANSWERS["gz"].body
                writer.write(b"VALUE %s 2 %d\r\n%s\r\nEND\r\n" % (name.encode("latin-1"), len(data), data))
            case other:
                data = answers.HTML if other in ("html", "chunk") else f"memcached {name}\n".encode("latin-1")
                writer.write(b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (name.encode("latin-1"), len(data), data))
        await writer.drain()


async def http2(desk, where, reader, writer):
    """HTTP/2 with prior knowledge: gRPC and plain requests; an answer of gRPC has a frame of its own and trailers."""
    link = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="latin-1", validate_inbound_headers=False, normalize_outbound_headers=False))
    link.initiate_connection()
    link.increment_flow_control_window(1 << 20)
    writer.write(link.data_to_send())
    streams = {}
    while data := await reader.read(65536):
        try:
            events = link.receive_data(data)
        except h2.exceptions.ProtocolError:
            writer.write(link.data_to_send())
            return
        for event in events:
            match event:
                case h2.events.RequestReceived():
                    streams[event.stream_id] = [list(event.headers), b"", []]
                case h2.events.DataReceived():
                    streams[event.stream_id][1] += event.data
                    link.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                case h2.events.TrailersReceived():
                    streams[event.stream_id][2] = list(event.headers)
                case h2.events.StreamEnded():
                    http2_answer(desk, where, link, event.stream_id, *streams.pop(event.stream_id))
                case h2.events.StreamReset():
                    streams.pop(event.stream_id, None)
        writer.write(link.data_to_send())
        await writer.drain()


def http2_answer(desk, where, link, stream, fields, body, trailers):
    given = lower(fields)
    plain = [(name, value) for name, value in fields if not name.startswith(":")] + [(f"trailer {name}", value) for name, value in trailers]
    desk.note(where, f"{given.get(':method')} {given.get(':path')} HTTP/2", plain, body, given | {"host": given.get(":authority", "")})
    status, answered, content, how = answers.answer(given.get(":method"), given.get(":path", "/"), given, body)
    if how in ("nothing", "reset", "hang") or not status:
        link.reset_stream(stream, 2)
        return
    is_grpc = given.get("content-type", "").startswith("application/grpc")
    if how == "pieces":
        content = b"".join(answers.PIECES)
    head = [(":status", status.split(" ")[0]), *((name.lower(), value) for name, value in answered if name.lower() not in ("connection", "upgrade", "content-length", "trailer"))]
    if is_grpc:
        head = [(name, "application/grpc" if name == "content-type" else value) for name, value in head]
        content = b"\0" + struct.pack(">I", len(content)) + content
    is_bare = given.get(":method") == "HEAD" or not content
    ending = is_grpc or how == "trailers"
    link.send_headers(stream, head, end_stream=is_bare and not ending)
    if not is_bare:
        content = content[:30000]
        for begin in range(0, len(content), 16000):
            if link.local_flow_control_window(stream) >= 16000:
                link.send_data(stream, content[begin:begin + 16000])
    if ending:
        link.send_headers(stream, [("grpc-status", "0"), ("x-t", "end")], end_stream=True)
    elif not is_bare:
        link.end_stream(stream)


async def tcp(desk, where, reader, writer):
    """Says a line, and gives back the first one that comes."""
    writer.write(b"hello\n")
    line = await reader.readline()
    desk.note(where, line.decode("latin-1").strip(), [], b"", {})
    writer.write(b"echo " + line)


SPEAKERS = {"one": http, "two": http, "closing": http, "tls": http, "fastcgi": fastcgi, "uwsgi": uwsgi, "scgi": scgi, "memcached": memcached, "grpc": http2, "tcp": tcp}
GONE = (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError, IndexError, struct.error, KeyError, h2.exceptions.ProtocolError)


async def start(desk, ports, secure):
    """Serves all origins on loopback; `secure` is the TLS context of the one behind TLS."""
    for name, port in ports.items():
        async def serve(reader, writer, name=name):
            desk.busy += 1
            try:
                await SPEAKERS[name](desk, name, reader, writer)
            except GONE:
                pass
            finally:
                desk.busy -= 1
                writer.close()
        await asyncio.start_server(serve, "127.0.0.1", port, backlog=256, **({"ssl": secure} if name == "tls" else {}))
