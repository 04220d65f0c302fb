"""Compares the answers of two edges, and sorts the differences into classes."""
import collections
import dataclasses
import email.utils
import hashlib
import re

# What is rewritten in both edges' answers before they are compared, and why.
PRODUCT = re.compile(r"(?:nginx/1\.[\d.]+|weir/[\d.]+|\bnginx\b|\bweir\b)")
# Fields whose values are a moment or the edge's own name.
UNCOMPARED = {"date": "the moment of the answer", "server": "the edge's name"}
# The boundary of a body of parts is the number of such bodies so far.
BOUNDARY = re.compile(r"(?<=boundary=)0\d{19}|(?<=--)0\d{19}")
# Parameters and fields that name a port of the kernel's choice, or count connections.
CHANCE = {"REMOTE_PORT": "the client's port", "x-connection": "tests/app counts connections", "x-request": "tests/app counts connections"}


@dataclasses.dataclass(frozen=True)
class Difference:
    """One difference: where it is, and both values."""
    where: str
    nginx: str
    weir: str


def headers(answer):
    """Fields by name in lower case, values in order."""
    found = collections.defaultdict(list)
    for name, value in answer["headers"]:
        name = name.lower()
        if name in UNCOMPARED:
            value = f"({UNCOMPARED[name]})"
        elif name in CHANCE:
            value = f"({CHANCE[name]})"
        elif name == "expires":
            value = relative(value, answer)
        elif name == "content-type":
            value = BOUNDARY.sub("NUMBER", value)
        elif name == "content-length" and is_page(answer):
            # The product's name is in the page.
            value = str(len(body(answer)))
        found[name].append(value)
    return found


def relative(value, answer):
    """A moment, as the distance from the answer's Date."""
    date = next((text for name, text in answer["headers"] if name.lower() == "date"), "")
    try:
        distance = email.utils.parsedate_to_datetime(value) - email.utils.parsedate_to_datetime(date)
    except ValueError:
        return value
    return f"(Date + {round(distance.total_seconds() / 2) * 2} s)" if distance.days >= 0 else value


def is_page(answer):
    """Whether the body is an error page of the edge itself."""
    return b"<hr><center>" in answer["body"]


def body(answer):
    text = answer["body"].decode("latin-1")
    if text.startswith("\r\n--0"):
        text = BOUNDARY.sub("NUMBER", text)
    return PRODUCT.sub("EDGE", text) if is_page(answer) else text


def short(text):
    return text if len(text) < 160 else f"{text[:100]!r}… {len(text)} bytes, md5 {hashlib.md5(text.encode('latin-1', 'replace')).hexdigest()}"


def seen(request):
    """A request at an origin: its line, its fields in order, its body."""
    fields = [(name, f"({CHANCE[name]})" if name in CHANCE else PRODUCT.sub("EDGE", value)) for name, value in request["headers"]]
    return request["line"], fields, request["body"]


def differences(nginx, weir):
    """All differences between two records of one request: answer and requests seen by origins."""
    first, second = nginx["answer"], weir["answer"]
    if first["status"] != second["status"]:
        # An answer of another kind has other fields and another body: only the origins' side is compared further.
        yield Difference("status", first["status"], second["status"])
    if first["before"] != second["before"]:
        yield Difference("interim answers", str(first["before"]), str(second["before"]))
    if first["status"] == second["status"]:
        yield from answer_differences(first, second)
    if len(nginx["seen"]) != len(weir["seen"]):
        yield Difference("number of requests at origins", str([one["line"] for one in nginx["seen"]]), str([one["line"] for one in weir["seen"]]))
    for left, right in zip(nginx["seen"], weir["seen"]):
        yield from origin_differences(seen(left), seen(right))


def answer_differences(nginx, weir):
    theirs, ours = headers(nginx), headers(weir)
    for name in sorted({*ours, *theirs}):
        if ours[name] != theirs[name]:
            yield Difference(f"field {name}", str(theirs[name]), str(ours[name]))
    if body(nginx) != body(weir):
        yield Difference("body", short(body(nginx)), short(body(weir)))


def origin_differences(nginx, weir):
    if nginx[0] != weir[0]:
        yield Difference("origin: request line", nginx[0], weir[0])
    left, right = collections.defaultdict(list), collections.defaultdict(list)
    for kept, found in ((left, nginx[1]), (right, weir[1])):
        for name, value in found:
            kept[name].append(value)
    differs = False
    for name in sorted({*left, *right}):
        if left[name] != right[name]:
            differs = True
            yield Difference(f"origin: field {name}", str(left[name]), str(right[name]))
    if not differs and nginx[1] != weir[1]:
        yield Difference("origin: order of fields", str([name for name, _ in nginx[1]]), str([name for name, _ in weir[1]]))
    if nginx[2] != weir[2]:
        yield Difference("origin: body", nginx[2], weir[2])


# nginx's name with its version, as `nginx -v` says it.
NGINX = []


def is_page_length(request, difference, nginx, weir):
    """HEAD: the announced length of an error page differs by the product's name alone."""
    if request.method != "HEAD" or difference.where != "field content-length":
        return False
    lengths = [sum(int(value) for name, value in record["answer"]["headers"] if name.lower() == "content-length") for record in (nginx, weir)]
    return lengths[0] - lengths[1] in [len(name) - len("weir") for name in ("nginx", *NGINX)]


def is_websocket(request, difference, _nginx, _weir):
    """An Upgrade that nginx does not pass on."""
    return request.what == "Upgrade" and (difference.where == "status" and difference.weir.startswith("HTTP/1.1 101")
                                          or difference.where in ("origin: field Connection", "origin: field Upgrade") and difference.nginx == "[]")


def is_fragment(request, difference, _nginx, weir):
    """A target with a fragment, for an origin."""
    return "#" in request.target and weir["answer"]["status"].startswith("HTTP/1.1 400") and difference.where in ("status", "number of requests at origins")


def is_permission(request, difference, nginx, weir):
    """`100 Continue` to a client that has sent the body, or whose body nobody reads."""
    is_answered = request.what == "Expect" and not (nginx["seen"] or weir["seen"])
    return difference.where == "interim answers" and (is_answered or request.what == "Expect with the body")


def is_order_of_vary(_request, difference, nginx, weir):
    """The same values of Vary in another order."""
    return difference.where == "field vary" and sorted(headers(nginx["answer"])["vary"]) == sorted(headers(weir["answer"])["vary"])


def is_of_cache(request, difference, nginx, weir):
    """A condition or a range at a location with a cache: weir answers it, nginx sends the whole answer."""
    if difference.where == "field accept-ranges":
        return difference.nginx == "[]" and difference.weir == "['bytes']" and bool(weir["seen"] or nginx["seen"])
    is_asked = any(name.startswith(("If-", "Range")) for name, _ in request.headers)
    return is_asked and (difference.where == "status" and difference.nginx.startswith("HTTP/1.1 200") and difference.weir[9:12] in ("206", "304", "412", "416")
                         or difference.where == "origin: field Range" and difference.nginx == "[]")


def is_lost_charset(request, difference, _nginx, _weir):
    """The charset of the answer that `X-Accel-Redirect` replaced."""
    return "answer=accel" in request.target and difference.where == "field content-type" and difference.nginx.replace("; charset=utf-8", "") == difference.weir


def is_of_handshake(request, _difference, _nginx, _weir):
    """A request without a host over TLS, from a client that named a server in its handshake."""
    return request.what in ("no version",)


def is_order_of_cookie(request, difference, _nginx, _weir):
    """The place of the Cookie that the edge joins from HTTP/2's parts."""
    return request.http2 and request.what == "HTTP/2 Cookie" and difference.where == "origin: order of fields"


def is_broken_stream(request, difference, _nginx, _weir):
    """An answer over HTTP/2 that curl drops (`client.BROKEN_STREAM`), from one of the edges alone."""
    return request.http2 and bool(request.body) and difference.where == "status" and "curl's error 92" in (difference.nginx, difference.weir)


# Deliberate differences: (name, reason, test). The test gets the request, one difference, and both records.
RULES = [
    ("length of a page", "HEAD announces the length of an error page, and the product's name is in the page", is_page_length),
    ("websocket", "weir passes a WebSocket on without directives, if the file sets neither Upgrade nor Connection", is_websocket),
    ("fragment", "weir passes no target with `#` to an origin (RFC 9112 3.2): the origin may read another path than the location saw (strict_targets)", is_fragment),
    ("permission", "weir sends no `100 Continue` to a client that has sent the body already, or whose body it does not need (RFC 9110 10.1.1)", is_permission),
    ("order of Vary", "weir adds its own Vary after the origin's; the order has no meaning (RFC 9110 12.5.5)", is_order_of_vary),
    ("cache", "where the cache asks for whole answers, weir itself answers ranges and conditions (docs/guide/cache.md)", is_of_cache),
    ("charset", "nginx gives its own answer the charset of the answer that X-Accel-Redirect replaced", is_lost_charset),
    ("handshake", "a request without a host belongs to the server that the client named in the TLS handshake; nginx: to the default server", is_of_handshake),
    ("order of Cookie", "nginx puts the Cookie that it joins from HTTP/2's fields last; the order of different fields has no meaning (RFC 9110 5.3)", is_order_of_cookie),
    ("broken stream", "curl 7.88 drops an answer whose stream is reset with NO_ERROR (RFC 9113 8.1); it depends on packets with both edges", is_broken_stream),
]


def rule(request, difference, nginx, weir):
    """The name of the rule that explains this difference, or None."""
    return next((name for name, _, test in RULES if test(request, difference, nginx, weir)), None)


def kind(difference):
    """The class of a difference: where it is, and both values without what differs from case to case."""
    if difference.where in ("body", "origin: request line", "origin: order of fields"):
        return difference.where
    values = f"{difference.nginx} -> {difference.weir}"
    if difference.where.startswith(("field", "origin: field")) and len(values) > 60:
        return difference.where
    return f"{difference.where}: {re.sub(r'[0-9]{4,}', 'N', values)}"
