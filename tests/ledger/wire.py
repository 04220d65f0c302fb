"""Bytes of the protocols that the attacks speak: HTTP/1, HTTP/2, DNS, FastCGI's kin, MP4."""
import socket
import struct
import time

# Seconds that a read waits.
PATIENCE_S = 5
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
A, CNAME = 1, 5


class Answer:
    """A response of HTTP/1: status, fields, body, and the bytes after the head."""

    def __init__(self, data):
        self.data = data
        head, _, self.body = data.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        words = lines[0].split(b" ")
        self.status = int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
        self.fields = [(name.lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines[1:])]
        if self.field("transfer-encoding") == b"chunked":
            self.body = chunks(self.body)

    def field(self, name):
        return next((value for key, value in self.fields if key == name.encode()), None)


def chunks(data):
    """The data in chunks; all that stands there if they are not whole."""
    body, rest = b"", data
    while True:
        size, found, after = rest.partition(b"\r\n")
        if not found or not size or size.strip(b"0123456789abcdefABCDEF") or len(size) > 8:
            return data
        length = int(size, 16)
        if not length:
            return body
        body, rest = body + after[:length], after[length + 2:]


def connect(port, patience=PATIENCE_S, receive=None):
    """A connection; `receive` is the size of its receive buffer."""
    one = socket.socket()
    if receive:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    one.settimeout(patience)
    try:
        one.connect(("127.0.0.1", port))
    except OSError:
        one.close()
        raise
    return one


def drain(one, patience=PATIENCE_S):
    """All bytes until the end of the connection, or until nothing comes for `patience` seconds."""
    data = bytearray()
    one.settimeout(patience)
    try:
        while part := one.recv(65536):
            data += part
    except OSError:
        # A reset and a timeout end the answer as an end of the connection does.
        pass
    return bytes(data)


def exchange(port, *pieces, patience=PATIENCE_S, gap=0.0):
    """Sends the pieces with a gap between them, and returns everything that the server sends."""
    with connect(port, patience) as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number, piece in enumerate(pieces):
            if number:
                time.sleep(gap)
            try:
                one.sendall(piece)
            except OSError:
                break
        return drain(one, patience)


def request(target, method="GET", host="localhost", fields=(), body=b""):
    target = target if isinstance(target, bytes) else target.encode()
    lines = [method.encode() + b" " + target + b" HTTP/1.1", b"Host: " + host.encode(), b"Connection: close"]
    lines += [field if isinstance(field, bytes) else field.encode() for field in fields]
    if body:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def get(port, target="/", patience=PATIENCE_S, **words):
    return Answer(exchange(port, request(target, **words), patience=patience))


def head(connection):
    """The head of a request that an origin gets, and the bytes after it."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return data, b""
        data += part
    before, _, after = data.partition(b"\r\n\r\n")
    return before, after


def origin(answer, *, pieces=False, gap=0.05):
    """An origin that sends these bytes to each request and closes; with `pieces`, a list with a pause after each part."""

    def converse(connection, target):
        before, _ = head(connection)
        target.note(("request", before))
        if not before:
            return
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in answer if pieces else [answer]:
            connection.sendall(part)
            if pieces:
                time.sleep(gap)

    return converse


# DNS.


def name(text):
    return b"".join(bytes([len(label)]) + label.encode() for label in text.split(".")) + b"\0"


def after_question(question):
    at = 12
    while question[at]:
        at += 1 + question[at]
    return at + 5


def asked(question):
    """The name and the type of a question."""
    at, labels = 12, []
    while length := question[at]:
        labels.append(question[at + 1:at + 1 + length].decode("ascii", "replace"))
        at += 1 + length
    return ".".join(labels), struct.unpack("!H", question[at + 1:at + 3])[0]


def reply(question, *records, code=0, tail=b""):
    """A reply with these records: (type, data) or (type, data, seconds)."""
    end = after_question(question)
    found = b"".join(b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, more[0] if more else 60, len(data)) + data for kind, data, *more in records)
    return question[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, len(records), 0, 0) + question[12:end] + found + tail


# HTTP/2.


def frame(kind, flags, stream, data=b""):
    return struct.pack("!I", len(data))[1:] + bytes([kind, flags]) + struct.pack("!I", stream) + data


def setting(key, value):
    return struct.pack("!HI", key, value)


def number(value, bits=7, first=0):
    """An integer of HPACK with a prefix of this many bits."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    out, value = [first | most], value - most
    while value >= 128:
        out.append(value % 128 | 128)
        value //= 128
    return bytes([*out, value])


def literal(key, value):
    """A field that no table keeps, without Huffman codes."""
    return b"\0" + number(len(key)) + key + number(len(value)) + value


def ask(stream, path="/", *fields, method=b"\x82", end=True, host=b"localhost"):
    """A HEADERS frame of a request."""
    block = method + b"\x86" + b"\x04" + number(len(path)) + path.encode() + b"\x01" + number(len(host)) + host
    block += b"".join(literal(key, value) for key, value in fields)
    return frame(HEADERS, 4 | end, stream, block)


def frames(data):
    """The whole frames of some bytes: (type, flags, stream, payload)."""
    at, found = 0, []
    while at + 9 <= len(data):
        length = int.from_bytes(data[at:at + 3], "big")
        if at + 9 + length > len(data):
            break
        found.append((data[at + 3], data[at + 4], int.from_bytes(data[at + 5:at + 9], "big") & 0x7fffffff, data[at + 9:at + 9 + length]))
        at += 9 + length
    return found


class H2:
    """A client of HTTP/2 over plain TCP."""

    def __init__(self, port, settings=b"", patience=PATIENCE_S, receive=None):
        self.socket = connect(port, patience, receive)
        self.got = b""
        self.send(PREFACE + frame(SETTINGS, 0, 0, settings))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        """Sends, and returns whether the server still takes bytes."""
        try:
            self.socket.sendall(data)
            return True
        except OSError:
            return False

    def until(self, wanted, patience=PATIENCE_S):
        """Reads until a frame fulfils the condition; that frame, or None."""
        end = time.monotonic() + patience
        seen = 0
        while True:
            found = frames(self.got)
            for one in found[seen:]:
                if wanted(one):
                    return one
            seen = len(found)
            self.socket.settimeout(max(0.01, end - time.monotonic()))
            try:
                part = self.socket.recv(65536)
            except OSError:
                return None
            if not part or time.monotonic() > end:
                return None
            self.got += part

    def ping(self, patience=PATIENCE_S):
        """Whether the server answers a PING."""
        return self.send(frame(PING, 0, 0, b"ledger!!")) and self.until(lambda one: one[0] == PING and one[1] & 1 and one[3] == b"ledger!!", patience) is not None

    def goaway(self, patience=PATIENCE_S):
        """The code with which the server ends the connection, or None."""
        found = self.until(lambda one: one[0] == GOAWAY, patience)
        return int.from_bytes(found[3][4:8], "big") if found else None


# MP4.


def atom(kind, *parts):
    data = b"".join(parts)
    return struct.pack(">I", 8 + len(data)) + kind.encode() + data


def words(*values):
    return struct.pack(f">{len(values)}I", *(value & 0xffffffff for value in values))


SAMPLES = 40


def tables(offset):
    """The tables of a track of 40 samples of ten bytes, a tenth of a second each, one a chunk."""
    count = range(SAMPLES)
    return {
        "stsd": atom("stsd", words(0, 1), atom("mp4v", bytes(78))),
        "stts": atom("stts", words(0, 1, SAMPLES, 100)),
        "stss": atom("stss", words(0, 4, 1, 11, 21, 31)),
        "ctts": atom("ctts", words(0, 1, SAMPLES, 0)),
        "stsc": atom("stsc", words(0, 1, 1, 1, 1)),
        "stsz": atom("stsz", words(0, 0, SAMPLES, *[10] * SAMPLES)),
        "stco": atom("stco", words(0, SAMPLES, *[offset + 10 * one for one in count])),
    }


def movie(change=None, more=(), wrap=None, tables_last=False):
    """A small film; `change` replaces tables, `more` follows the tables, `wrap` changes a container: {"mdia": function of its bytes}.

    With `tables_last`, the last table ends where the file ends.
    """
    wrap = wrap or {}

    def box(kind, *parts):
        return wrap.get(kind, lambda data: data)(atom(kind, *parts))

    def moov(offset):
        table = {**tables(offset), **(change or {})}
        stbl = box("stbl", *table.values(), *more)
        minf = box("minf", atom("vmhd", words(1, 0, 0)), atom("dinf", atom("dref", words(0, 1), atom("url ", words(1)))), stbl)
        mdia = box("mdia", box("mdhd", words(0, 0, 0, 1000, SAMPLES * 100, 0)), box("hdlr", words(0, 0), b"vide", bytes(12), b"v\0"), minf)
        trak = box("trak", box("tkhd", words(7, 0, 0, 1, 0, SAMPLES * 100), bytes(60)), mdia)
        return box("moov", box("mvhd", words(0, 0, 0, 1000, SAMPLES * 100, 0x10000), bytes(76), words(2)), trak)

    ftyp = box("ftyp", b"isom", words(512), b"isommp41")
    mdat = box("mdat", bytes(range(10)) * SAMPLES)
    if tables_last:
        return ftyp + mdat + moov(len(ftyp) + 8)
    start = len(ftyp) + len(moov(0)) + 8
    return ftyp + moov(start) + mdat
