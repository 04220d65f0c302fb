"""Writes the file of a recording (docs/reference/recording.md) without any package: numbers and strings in CBOR, blocks as
zstd's raw blocks. A reader unpacks them as it does compressed ones."""

import struct
import zlib

BLOCK_BYTES = 1 << 20
RAW_BYTES = 128 << 10


def cbor(value):
    """One item. A float is an error: the format has none."""
    if value is None:
        return b"\xf6"
    if value is True or value is False:
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    return head(4, len(value)) + b"".join(map(cbor, value))


def head(major, number):
    if number < 24:
        return bytes([major << 5 | number])
    for code, form in ((24, ">B"), (25, ">H"), (26, ">I"), (27, ">Q")):
        if number < 1 << 8 * struct.calcsize(form):
            return bytes([major << 5 | code]) + struct.pack(form, number)
    raise ValueError(number)


def stored(block):
    """A frame of zstd (RFC 8878) with the length of its content, and nothing compressed."""
    out = struct.pack("<IBI", 0xFD2FB528, 0b1010_0000, len(block))
    for at in range(0, len(block), RAW_BYTES):
        piece = block[at : at + RAW_BYTES]
        is_last = at + RAW_BYTES >= len(block)
        out += struct.pack("<I", is_last | len(piece) << 3)[:3] + piece
    return out


class Recording:
    """A recording; each part is the tuple of its items."""

    def __init__(self, path, beginning):
        self.file = open(path, "wb")
        self.file.write(b"weir-rec" + struct.pack("<I", 1))
        self.parts, self.bytes = [], 0
        self.put((0, *beginning))

    def put(self, part):
        item = cbor(part)
        if self.bytes + len(item) > BLOCK_BYTES:
            self.flush()
        self.parts.append(item)
        self.bytes += len(item)

    def flush(self):
        # Tag 256: strings may be named by numbers. None is.
        block = head(6, 256) + head(4, len(self.parts)) + b"".join(self.parts)
        data = stored(block)
        lengths = struct.pack("<II", len(data), len(block))
        self.file.write(lengths + struct.pack("<I", zlib.crc32(lengths + data)) + data)
        self.parts, self.bytes = [], 0

    def finish(self):
        self.flush()
        self.file.close()
