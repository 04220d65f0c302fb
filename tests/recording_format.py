#!/usr/bin/env python3
"""A second reader of recordings, from docs/reference/recording.md alone: prints each part as a line of JSON.

    tests/recording_format.py FILE

It needs the packages of recording_format.txt. It shares no code with weir, so it proves the document: its lines are those of
`weir record show FILE --json`.
"""

import json
import struct
import sys
import zlib

import cbor2
import zstandard

MAGIC = b"weir-rec"
STORED_MAX = 2 << 20
UNPACKED_MAX = 4 << 20
VERSIONS = {10: "1.0", 11: "1.1", 20: "2", 30: "3"}


def blocks(file):
    """The CBOR items of all frames."""
    while first := file.read(4):
        if first == MAGIC[:4]:
            rest = file.read(8)
            assert rest[:4] == MAGIC[4:], "not a recording"
            assert struct.unpack("<I", rest[4:]) == (1,), "another version"
            continue
        head = first + file.read(8)
        stored, unpacked, checksum = struct.unpack("<III", head)
        assert stored <= STORED_MAX and unpacked <= UNPACKED_MAX, "too long"
        data = file.read(stored)
        assert zlib.crc32(head[:8] + data) == checksum, "a wrong checksum"
        block = zstandard.ZstdDecompressor().decompress(data, max_output_size=unpacked)
        assert len(block) == unpacked, "another length"
        yield cbor2.loads(block)


def text(value):
    """Bytes, or bytes with hidden places."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"hex": value.hex()}
    shown, hidden = text(value[0]), list(value[1])
    if isinstance(shown, str):
        return {"text": shown, "hidden": hidden}
    return shown | {"hidden": hidden}


def fields(value):
    return [[text(name), text(one)] for name, one in zip(value[::2], value[1::2])]


def body(value):
    length, digest, kept = value
    return {"length": length, "hash": digest, "kept": None if kept is None else text(kept)}


def answer(value):
    if value is None:
        return None
    return {"status": value[0], "fields": fields(value[1]), "body": body(value[2])}


def losses(value):
    return dict(zip(["queue", "size", "writing", "large"], value, strict=True))


def part(value):
    kind, *items = value
    match kind:
        case 0:
            names = ["unix_us", "program", "share_ppm", "key_id", "has_bodies"]
            return {"kind": "beginning"} | dict(zip(names, items, strict=True))
        case 1:
            return {"kind": "configuration"} | dict(zip(["generation", "path", "locations"], items, strict=True))
        case 2:
            names = ["at_us", "client", "connection", "version", "is_tls", "port", "method", "target", "fields", "body"]
            names += ["answer", "is_cut", "took_us", "tries", "cache", "generation", "location", "tunnel"]
            one = dict(zip(names, items, strict=True))
            one["version"] = VERSIONS[one["version"]]
            one["method"], one["target"] = text(one["method"]), text(one["target"])
            one["fields"], one["body"], one["answer"] = fields(one["fields"]), body(one["body"]), answer(one["answer"])
            one["tries"] = [dict(zip(["peer", "status", "took_us"], each, strict=True)) for each in one["tries"]]
            return {"kind": "exchange"} | one
        case 3:
            names = ["at_us", "tunnel", "is_of_client", "is_binary", "content"]
            one = dict(zip(names, items, strict=True))
            return {"kind": "message"} | one | {"content": body(one["content"])}
        case 4:
            return {"kind": "lost", "lost": losses(items)}
        case 5:
            one = dict(zip(["at_us", "exchanges", "recorded"], items[:3], strict=True))
            return {"kind": "ending"} | one | {"lost": losses(items[3:])}
    raise ValueError(f"another kind of part: {kind}")


def main():
    with open(sys.argv[1], "rb") as file:
        for block in blocks(file):
            for one in block:
                print(json.dumps(part(one), ensure_ascii=False))


main()
