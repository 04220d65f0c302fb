"""Reads an nginx.conf with its includes, and says what `real_answers.py` must know of it: servers, locations, origins, roots."""
import dataclasses
import glob
import os
import re

# `sre_parse` moved in Python 3.11; both names have the same functions.
try:
    from re import _parser as sre
except ImportError:
    import sre_parse as sre

PASSES = {"proxy_pass": "http", "grpc_pass": "grpc", "fastcgi_pass": "fastcgi", "uwsgi_pass": "uwsgi", "scgi_pass": "scgi",
          "memcached_pass": "memcached"}
PORTS = {"http": 80, "https": 443, "memcached": 11211}
TOKEN = re.compile(r"""\s+|\#[^\n]*|(?P<mark>[;{}])|"(?P<double>(?:\\.|[^"\\])*)"|'(?P<single>(?:\\.|[^'\\])*)'|(?P<plain>(?:\\.|\$\{|[^\s;{}\\])(?:\\.|\$\{|[^\s;{\\])*)""",
                   re.X | re.S)


@dataclasses.dataclass
class Line:
    """One directive: its words, and the lines of its block (None if it ends with `;`)."""
    words: list
    block: list


def tokens(text):
    """The words of a file; a mark is a tuple, so that a quoted `;` is a word."""
    for found in TOKEN.finditer(text):
        if found["mark"]:
            yield (found["mark"],)
        elif found["plain"] is not None:
            yield re.sub(r"\\([\"' ;{}#])", r"\1", found["plain"])
        elif found["double"] is not None or found["single"] is not None:
            word = found["double"] if found["double"] is not None else found["single"]
            yield re.sub(r"\\([\"'\\])", r"\1", word)


def read(root, path):
    """The lines of the file `path` inside `root`, with its includes in place."""
    with open(root + path, encoding="utf-8", errors="replace") as file:
        return lines(root, tokens(file.read()))


def lines(root, words):
    found, line = [], []
    for word in words:
        if not isinstance(word, tuple):
            line.append(word)
        elif word == ("}",):
            return found
        elif word == ("{",):
            found.append(Line(line, lines(root, words)))
            line = []
        else:
            if line[0] == "include":
                pattern = os.path.join("/etc/nginx", line[1])
                for path in sorted(glob.glob(root + pattern)):
                    found += read(root, path[len(root):])
            else:
                found.append(Line(line, None))
            line = []
    return found


def walk(block):
    """Each line of a block and of the blocks in it."""
    for line in block:
        yield line
        if line.block is not None:
            yield from walk(line.block)


def named(block, name):
    """The lines of this block, and not of blocks in it, with this name."""
    return [line for line in block if line.words and line.words[0] == name]


def one(block, name):
    return next((block.block for block in named(block, name)), [])


@dataclasses.dataclass(frozen=True)
class Listen:
    """One address that a client connects to."""
    address: str
    port: int
    tls: bool
    http2: bool
    proxied: bool


def listens(server, http2):
    """What the server listens on; `http2` is what the surrounding block says."""
    for line in named(server, "http2"):
        http2 = line.words[1] == "on"
    for line in named(server, "listen") or [Line(["listen", "80"], None)]:
        address, flags = line.words[1], line.words[2:]
        if address.startswith("unix:") or "quic" in flags:
            continue
        host, _, port = address.rpartition(":") if re.search(r":\d+$", address) else ("", "", address)
        if not port.isdigit():
            host, port = port, "80"
        host = {"": "127.0.0.1", "*": "127.0.0.1", "0.0.0.0": "127.0.0.1", "localhost": "127.0.0.1", "[::]": "::1"}.get(host, host.strip("[]"))
        yield Listen(host, int(port), "ssl" in flags, http2 or "http2" in flags, "proxy_protocol" in flags)


def names(server):
    """Hosts that the server's names match."""
    for line in named(server, "server_name"):
        for name in line.words[1:]:
            if name.startswith("~"):
                yield sample(name[1:]) or "regex.example"
            elif name.startswith("*."):
                yield "any" + name[1:]
            elif name.endswith(".*"):
                yield name[:-1] + "any"
            elif name not in ("", "_") and "$" not in name:
                yield name.lstrip(".")


def locations(block):
    """A target for each location in this block, and its locations' locations."""
    for line in named(block, "location"):
        kind, *more = line.words[1:]
        if kind in ("~", "~*"):
            text = sample(more[0])
            for target in text is not None and (text, "/" + text, "/x" + text) or ():
                if target.startswith("/") and re.search(pcre(more[0]), target, re.I if kind == "~*" else 0):
                    yield target
                    break
        elif kind.startswith("@"):
            continue
        else:
            yield more[0] if more else kind
        yield from locations(line.block)


def pcre(pattern):
    """PCRE's groups with names, as Python writes them."""
    return re.sub(r"\(\?<(?![=!])", "(?P<", pattern)


def sample(pattern):
    """A text that the regular expression matches, or None."""
    try:
        return "".join(pieces(sre.parse(pcre(pattern))))
    except (re.error, ValueError, KeyError):
        return None


def pieces(parsed):
    for kind, value in parsed:
        kind = str(kind)
        if kind == "LITERAL":
            yield chr(value)
        elif kind in ("NOT_LITERAL", "ANY"):
            yield "x" if value != ord("x") else "y"
        elif kind == "IN":
            yield member(value)
        elif kind == "BRANCH":
            yield from pieces(value[1][0])
        elif kind == "SUBPATTERN":
            yield from pieces(value[-1])
        elif kind in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, what = value
            for _ in range(least or (1 if most else 0)):
                yield from pieces(what)


def member(items):
    """One character of a class."""
    kinds = {str(kind): value for kind, value in items}
    if "NEGATE" in kinds:
        banned = "".join(chr(value) for kind, value in items if str(kind) == "LITERAL")
        return next(letter for letter in "xyz-0" if letter not in banned)
    kind, value = items[0]
    if str(kind) == "LITERAL":
        return chr(value)
    if str(kind) == "RANGE":
        return chr(value[0])
    return {"CATEGORY_DIGIT": "7", "CATEGORY_WORD": "w", "CATEGORY_SPACE": " "}.get(str(value), "x")


@dataclasses.dataclass(frozen=True)
class Origin:
    """One server behind the edge. `path` is that of a unix socket; else `host` and `port` are."""
    protocol: str
    tls: bool
    host: str
    port: int
    path: str = ""


def origins(http):
    """Everything that the file passes requests to."""
    groups = {line.words[1]: line.block for line in named(http, "upstream")}
    sets = {line.words[1]: line.words[2] for line in walk(http) if line.words[0] == "set" and len(line.words) > 2}
    found, used = set(), set()
    for line in walk(http):
        if line.words and line.words[0] in PASSES and len(line.words) > 1:
            protocol, target = PASSES[line.words[0]], line.words[1]
            scheme, colons, rest = target.partition("://")
            tls = bool(colons) and scheme in ("https", "grpcs")
            rest = rest if colons else target
            place = rest if rest.startswith("unix:") else rest.split("/")[0].split("?")[0]
            for _ in range(3):
                place = re.sub(r"\$\{?(\w+)\}?", lambda name: sets.get("$" + name[1], ""), place)
            used.add(place)
            for text in [server.words[1] for server in named(groups.get(place, []), "server")] or [place]:
                found.add(origin(protocol, tls, text))
    for name in set(groups) - used:
        found |= {origin("http", False, server.words[1]) for server in named(groups[name], "server")}
    return sorted(found - {None}, key=str)


def origin(protocol, tls, text):
    if text.startswith("unix:"):
        return Origin(protocol, tls, "", 0, text[5:].split(":")[0])
    host, _, port = text.rpartition(":") if re.search(r":\d+$", text) else (text, "", "")
    return Origin(protocol, tls, host.strip("[]"), int(port or PORTS["https" if tls else protocol if protocol in PORTS else "http"])) if host else None


def roots(http):
    """The folders that the file serves: root and alias, without variables, and the paths of locations below a root."""
    found = {}
    def visit(block, root, prefix):
        here = next((line.words[1] for line in named(block, "root")), root)
        alias = next((line.words[1] for line in named(block, "alias")), None)
        for folder in (here, alias):
            if folder and "$" not in folder:
                found.setdefault(os.path.join("/etc/nginx", folder), set())
        if prefix and not alias and here and "$" not in here:
            found.setdefault(os.path.join("/etc/nginx", here), set()).add(prefix)
        for line in block:
            if line.block is not None and line.words[0] in ("server", "location", "if", "limit_except"):
                path = line.words[-1] if line.words[0] == "location" and line.words[1] not in ("~", "~*") else ""
                visit(line.block, here, path if path.startswith("/") else "")
    visit(http, "html", "")
    return found
