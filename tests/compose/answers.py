"""The answers of the origins, as data: a request chooses one by its argument `o`, by its field X-O or, for an authentication, by X-A."""
import dataclasses
import gzip
import re

HTML = (b'<html><head><title>t</title></head>\n<body>One foo two FOO <!--# echo var="uri" --> <!--# set var="z" value="9" --><!--# echo var="z" -->'
        b'<!--# include virtual="/a/a.txt" --> http://127.0.0.1/foo \xe4</body></html>\n')
BIG = b"".join(b"%06d big line of text foo\n" % number for number in range(2600))
PIECES = (b"first piece of one foo " * 20 + b"\n", b"second piece of two foo\n")
LIFE = ("Cache-Control", "max-age=60")
MODIFIED = ("Last-Modified", "Tue, 14 Nov 2023 22:13:20 GMT")
TEXT, PAGE = ("Content-Type", "text/plain"), ("Content-Type", "text/html")
FROM = ("X-From", "origin")


@dataclasses.dataclass(frozen=True)
class Answer:
    """Status line, fields and body. A body of None names the answer and the path; ECHO says what came. `how`:

    length, chunked, close: the end of the body; trailers: chunked, with trailers; pieces: chunked, the second piece only after the client has bytes of
    the first; raw: the bytes as they are; early: after an interim answer; range, condition: as the request asks; none: without a body.
    """
    status: str
    fields: tuple = ()
    body: bytes | None = b""
    how: str = "length"


ECHO = b"\0echo"
ANSWERS = {
    "ok": Answer("200 OK", (TEXT, FROM), None),
    "echo": Answer("200 OK", (TEXT, LIFE), ECHO),
    "html": Answer("200 OK", (PAGE, MODIFIED, ("ETag", '"h1"')), HTML),
    "chunk": Answer("200 OK", (PAGE, LIFE), HTML, "chunked"),
    "close": Answer("200 OK", (("Content-Type", "text/html; charset=koi8-r"),), HTML, "close"),
    "trail": Answer("200 OK", (TEXT, ("Trailer", "X-T")), b"trailing", "trailers"),
    "big": Answer("200 OK", (TEXT, MODIFIED, LIFE), BIG),
    "gz": Answer("200 OK", (PAGE, ("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding"), LIFE), gzip.compress(HTML, mtime=0)),
    "range": Answer("200 OK", (TEXT, ("ETag", '"r1"'), MODIFIED, LIFE), BIG, "range"),
    "etag": Answer("200 OK", (TEXT, ("ETag", '"e1"'), MODIFIED, ("Cache-Control", "max-age=1")), b"tagged\n", "condition"),
    "weak": Answer("200 OK", (PAGE, ("ETag", 'W/"e1"'), LIFE), HTML),
    "vary": Answer("200 OK", (TEXT, ("Vary", "X-U"), LIFE), ECHO),
    "nocache": Answer("200 OK", (TEXT, ("Cache-Control", "no-cache")), ECHO),
    "private": Answer("200 OK", (TEXT, ("Cache-Control", "private, max-age=60")), ECHO),
    "cookie": Answer("200 OK", (TEXT, ("Set-Cookie", "c=1; Path=/x/; Domain=o.test; HttpOnly"), ("Set-Cookie", "d=2; path=/"), LIFE), ECHO),
    "expires": Answer("200 OK", (TEXT, ("Expires", "Thu, 01 Jan 2032 00:00:00 GMT"), ("Pragma", "x")), ECHO),
    "xae": Answer("200 OK", (TEXT, ("X-Accel-Expires", "60"), ("Cache-Control", "no-cache")), ECHO),
    "xae0": Answer("200 OK", (TEXT, ("X-Accel-Expires", "0"), LIFE), ECHO),
    "accel": Answer("200 OK", (("X-Accel-Redirect", "/i/a.txt"), ("Content-Type", "text/x-o"), ("Set-Cookie", "s=1"), ("Content-Disposition", "inline"), ("X-Y", "1")), b"no"),
    "accelargs": Answer("403 Forbidden", (("X-Accel-Redirect", "/b/a.html?o=html&z=1"), ("Cache-Control", "max-age=5"), ("ETag", '"q"'), ("X-Accel-Charset", "utf-8")), b"no"),
    "accelname": Answer("200 OK", (("X-Accel-Redirect", "@n1"), ("Content-Type", "text/css")), b"no", "chunked"),
    "accelmiss": Answer("200 OK", (("X-Accel-Redirect", "/i/none"), LIFE), b"no"),
    "accelodd": Answer("200 OK", (("X-Accel-Redirect", "/i/%61.txt"), ("X-Accel-Limit-Rate", "100000"), ("X-Accel-Buffering", "no")), b"no"),
    "nobuf": Answer("200 OK", (TEXT, ("X-Accel-Buffering", "no")), None),
    "pieces": Answer("200 OK", (TEXT, ("X-Accel-Buffering", "no")), b"", "pieces"),
    "pieceshtml": Answer("200 OK", (PAGE, ("X-Accel-Buffering", "no"), LIFE), b"", "pieces"),
    "early": Answer("200 OK", (TEXT,), b"after hints\n", "early"),
    "charset": Answer("200 OK", (PAGE, ("X-Accel-Charset", "koi8-r")), HTML),
    "201": Answer("201 Created", (("Location", "/p/new"), TEXT), b"made\n"),
    "204": Answer("204 No Content", (FROM,), b"", "none"),
    "206": Answer("206 Partial Content", (TEXT, ("Content-Range", "bytes 0-3/9")), b"part"),
    "304": Answer("304 Not Modified", (("ETag", '"e1"'),), b"", "none"),
    "301": Answer("301 Moved Permanently", (("Location", "/x/new?q=1"), LIFE), b"moved"),
    "302": Answer("302 Found", (("Location", "http://@HOST@/x/there"), ("Refresh", "5; url=http://@HOST@/x/there")), b"found"),
    "307": Answer("307 Temporary Redirect", (("Location", "http://other.test/"),)),
    "400": Answer("400 Bad Request", (TEXT,), b"bad\n"),
    "401": Answer("401 Unauthorized", (("WWW-Authenticate", 'Basic realm="o"'), TEXT), b"unknown\n"),
    "403": Answer("403 Forbidden", (PAGE,), b"no foo\n", "chunked"),
    "404": Answer("404 Not Found", (PAGE, LIFE), b"missing foo\n"),
    "404c": Answer("404 Nope", (FROM,), b"missing\n", "close"),
    "410": Answer("410 Gone", (TEXT, LIFE), b"gone\n"),
    "416": Answer("416 Range", (("Content-Range", "bytes */5"),)),
    "429": Answer("429 Too Many Requests", (("Retry-After", "9"),), b"slow\n"),
    "500": Answer("500 Internal Server Error", (TEXT, ("Cache-Control", "no-store")), b"broken\n"),
    "502": Answer("502 Bad Gateway", (), b"bad\n"),
    "503": Answer("503 Service Unavailable", (("Retry-After", "7"), ("Content-Type", "application/json")), b'{"e":1}\n'),
    "504": Answer("504 Gateway Timeout", (), b"late\n", "chunked"),
    "short": Answer("200 OK", (TEXT, ("Content-Length", "500"), LIFE), b"short\n", "raw"),
    "empty": Answer("200 OK", (PAGE, LIFE)),
    "link": Answer("200 OK", (("Link", "</s.css>; rel=preload"), ("X-Powered-By", "o"), ("Content-Language", "de"), ("Warning", "1 x"), ("X-A", "1"), ("X-A", "2")), b"link"),
    "nohead": Answer("", how="nothing"),
    "reset": Answer("", how="reset"),
    "hang": Answer("", how="hang"),
    "garbage": Answer("", body=b"\x00garbage\r\n\r\n", how="raw"),
    "ws": Answer("101 Switching Protocols", (("Upgrade", "websocket"), ("Connection", "upgrade")), b"hello", "tunnel"),
}
CHOSEN = re.compile(r"(?:^|[?&])o=(\w+)")


def key(target, given):
    """The name of the answer to a request with these fields (by lower case)."""
    path, _, query = target.partition("?")
    if path.startswith("/auth"):
        return given.get("x-a") or "204"
    found = CHOSEN.search(query)
    name = found[1] if found else given.get("x-o", "")
    if name == "ws" and given.get("upgrade") != "websocket":
        return "ok"
    return name if name in ANSWERS else "ok"


def answer(method, target, given, body):
    """The answer to a request: status, fields, body, how."""
    name = key(target, given)
    chosen = ANSWERS.get(name, ANSWERS["ok"])
    if name not in ANSWERS and name == "200":
        chosen = dataclasses.replace(chosen, fields=(FROM,), body=b"")
    fields = tuple((field, value.replace("@HOST@", given.get("host", "x"))) for field, value in chosen.fields)
    content, how, status = chosen.body, chosen.how, chosen.status
    # The two edges may write a space in other ways; the request line is compared by itself.
    shown = target.replace("%20", " ")
    if content is None:
        content = f"{name} {shown.partition('?')[0]}\n".encode("latin-1")
    elif content == ECHO:
        content = f"{method} {shown} u={given.get('x-u')} c={given.get('cookie')} b={len(body)}:{body[:40]!r}\n".encode("latin-1")
    if how == "condition":
        how = "length"
        if given.get("if-none-match") == '"e1"' or given.get("if-modified-since") == MODIFIED[1]:
            status, content, how = "304 Not Modified", b"", "none"
    if how == "range":
        status, fields, content = ranged(given.get("range", ""), fields, content)
        how = "length"
    return status, list(fields), content, how


def ranged(asked, fields, content):
    """A part of the content, if the request asks for one."""
    fields = (*fields, ("Accept-Ranges", "bytes"))
    found = re.fullmatch(r"bytes=(\d+)-(\d*)", asked)
    if not found:
        return "200 OK", fields, content
    if int(found[1]) >= len(content):
        return "416 Range Not Satisfiable", (*fields, ("Content-Range", f"bytes */{len(content)}")), b""
    last = min(int(found[2] or len(content)), len(content) - 1)
    return "206 Partial Content", (*fields, ("Content-Range", f"bytes {found[1]}-{last}/{len(content)}")), content[int(found[1]):last + 1]
